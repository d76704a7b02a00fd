"""Two results that surprised: digits 2 and 7 with a shared block, and self-paced learning on 1 and 7, looked into."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from tacit import LatentSVM, SelfPaced
from tacit.datasets import mnist
from tacit.problems import Transforms, rotations

COMPONENTS, CS = 10, (25.0, 100.0, 300.0)
RANGES = {0: 1, 12: 3, 24: 5, 36: 7, 60: 11}
"""The largest angle, and how many angles 12° apart there are."""
STARTS = 5
WHY = (
    "2-7, what this says: the miss is one of the model, not of the search or of C. One block per class, shared by all "
    "angles, lets every label turn the digit as it likes, the wrong label too, and nothing says that upright is "
    "likelier. So the model without a hidden value is no special case of it, and on *training* digits the objective "
    "with 11 angles is far above that without, from random and from upright starts; for 3-8 it is below. Remedies: a "
    "narrower range, with which the miss shrinks to noise, or `blocks='class and state'`, which is well ahead of no "
    "hidden value. 1-7, what this says: refuted. With C chosen on held-out digits the difference of the test errors is "
    "within their noise, and self-paced learning ends at the lower objectives."
)


def run() -> Page:
    page = Page(
        "MNIST pairs: two surprises looked into",
        "Data and features as on the page `mnist_pairs`. C of 25, 100 and 300 is chosen by the error on a fifth of the "
        "training digits, never on test digits, and the model is fitted again to all training digits. First rows: 2-7 "
        "with one block per class, shared by all angles (Kumar 2013), by the range of angles, the better of two starts "
        "by objective. `turned far`: of the test digits that are wrong, the share whose wrong label won with an angle "
        "in the outer third of the range (67, 40, 29 and 36 % of the angles are there). Last rows: 1-7 with a block "
        "per class and angle, all samples at once or "
        f"self-paced, {STARTS} starts each, mean ± standard deviation over the starts.",
        ["pair", "blocks", "learner", "angles", "C", "test error, %", "error on the held fifth, %", "turned far, %"],
    )
    real_data()
    with threadpool_limits(1, user_api="blas"):
        _measure_ranges(page)
        page.notes += [_compare_with_none(pair) for pair in ((2, 7), (3, 8))]
        _measure_paces(page)
    page.notes.append(WHY)
    return page


def _load(pair: tuple[int, int]) -> tuple[Any, ...]:
    X, y = mnist(part="train", digits=pair)
    X_test, y_test = mnist(part="test", digits=pair)
    train, held = next(StratifiedShuffleSplit(1, test_size=0.2, random_state=0).split(X, y))
    return X / 255, y, X_test / 255, y_test, train, held


def _measure_ranges(page: Page) -> None:
    X, y, X_test, y_test, train, held = _load((2, 7))
    for blocks in ("class", "class and state"):
        for most, count in RANGES.items():
            if blocks == "class and state" and most not in (0, 60):
                continue
            problem = Transforms(rotations(-most, most, count), COMPONENTS, blocks=blocks)
            errors = {}
            for C in CS:
                model = LatentSVM(problem, C=C, n_init=2, init="hidden").fit(X[train], y[train])
                errors[C] = 1 - model.score(X[held], y[held])
            C = min(CS, key=lambda C, errors=errors: errors[C])
            model = LatentSVM(problem, C=C, n_init=2, init="hidden").fit(X, y)
            wrong = model.predict(X_test) != y_test
            angles = model.schema_.facts["states"][model.predict_hidden(X_test)[wrong]]
            far = f"{100 * np.mean(np.abs(angles) > 2 / 3 * most):.0f}" if most else "–"
            cells = (f"±{most}° ({count})", f"{C:g}", f"{100 * wrong.mean():.2f}", f"{100 * errors[C]:.2f}", far)
            page.rows.append(("2-7", blocks, "CCCP", *cells))
            print(page.rows[-1], flush=True)


def _compare_with_none(pair: tuple[int, int]) -> str:
    """Objective on training digits with and without a hidden angle, and errors if predictions may turn less."""
    X, y, _, _, train, held = _load(pair)
    none = LatentSVM(Transforms(rotations(0, 0, 1), COMPONENTS), C=CS[0]).fit(X[train], y[train])
    problem = Transforms(rotations(-60, 60, 11), COMPONENTS, blocks="class")
    drawn = LatentSVM(problem, C=CS[0], n_init=2, init="hidden").fit(X[train], y[train])
    upright = LatentSVM(problem, C=CS[0], init=np.full(len(train), 5)).fit(X[train], y[train])
    scores = problem.bind(X[held], y[held], upright.schema_).scores(upright.coef_).reshape(2, len(held), 11)
    errors = []
    for most, width in ((0, 0), (24, 2), (60, 5)):
        labels = upright.classes_[scores[:, :, 5 - width : 6 + width].max(axis=2).argmax(axis=0)]
        errors.append(f"±{most}° {100 * np.mean(labels != y[held]):.2f} %")
    return (
        f"{pair[0]}-{pair[1]}, one block per class, C = {CS[0]:g}, four fifths of the training digits: objective "
        f"{none.objective_:.2f} without a hidden angle, {drawn.objective_:.2f} with 11 angles (two random starts) and "
        f"{upright.objective_:.2f} (start upright); error on the held fifth "
        f"{100 * (1 - none.score(X[held], y[held])):.2f} % without, and with the weights of the last, by how far "
        f"predictions may turn: {', '.join(errors)}."
    )


def _measure_paces(page: Page) -> None:
    X, y, X_test, y_test, train, held = _load((1, 7))
    problem = Transforms(rotations(-60, 60, 11), COMPONENTS, blocks="class and state")
    tests: dict[str, np.ndarray] = {}
    objectives: dict[str, np.ndarray] = {}
    for name, pace in (("CCCP", None), ("self-paced", SelfPaced())):
        errors = {}
        for C in CS:
            model = LatentSVM(problem, C=C, pace=pace, n_init=2, init="hidden").fit(X[train], y[train])
            errors[C] = 1 - model.score(X[held], y[held])
        C = min(CS, key=lambda C, errors=errors: errors[C])
        fits = [
            LatentSVM(problem, C=C, pace=pace, init="hidden", random_state=seed).fit(X, y) for seed in range(STARTS)
        ]
        tests[name] = np.array([100 * (1 - model.score(X_test, y_test)) for model in fits])
        objectives[name] = np.array([model.objective_ for model in fits])
        spread = f"{tests[name].mean():.2f} ± {tests[name].std(ddof=1):.2f}"
        page.rows.append(("1-7", "class and state", name, "±60° (11)", f"{C:g}", spread, f"{100 * errors[C]:.2f}", "–"))
        best = int(np.argmin(objectives[name]))
        page.notes.append(
            f"1-7, {name}: objectives {' '.join(f'{o:.2f}' for o in objectives[name])}, test errors "
            f"{' '.join(f'{e:.2f}' for e in tests[name])} %; the lowest objective has {tests[name][best]:.2f} %."
        )
        print(page.rows[-1], page.notes[-1], flush=True)
    difference = tests["self-paced"].mean() - tests["CCCP"].mean()
    noise = 100 * np.sqrt(0.01 * 0.99 / len(y_test))
    page.notes.append(
        f"1-7: self-paced minus CCCP is {difference:+.2f} points; the standard error of one test error of about 1 % on "
        f"{len(y_test)} digits is {noise:.2f} points."
    )
