"""Pairs of MNIST digits at an unknown turn: how many of 22 states are worth having (Chen et al. 2011)?"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from tacit import GroupNormSVM, LatentSVM, group_norm_path
from tacit.datasets import mnist
from tacit.problems import Transforms, rotations

PAIRS = {(1, 7): (5, 3), (2, 7): (8, 4), (3, 8): (7, 3), (8, 9): (9, 4)}
"""States kept of 22, and angles per digit that match the accuracy of 11, in Chen et al. (2011)."""
ANGLES, COMPONENTS = rotations(-60, 60, 11), 10
PATH_CS, FULL_CS, REFIT_C = (10.0, 30.0, 100.0), (100.0, 300.0, 1000.0), 1000.0
MOST_REFITTED, FEWEST, STARTS = 10, 2, 5
DRAWS, WITHIN = 10, 0.002


class Digits(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    train: np.ndarray
    held: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def held_score(self, model: Any) -> float:
        return float(model.score(self.X[self.held], self.y[self.held]))

    def test_score(self, model: Any) -> float:
        return float(model.score(self.X_test, self.y_test))


def run() -> Page:
    page = Page(
        "MNIST pairs: which hidden turns are worth having",
        "All training digits of a pair, all test digits; pixels / 255; 11 angles from −60° to 60°; "
        f"{COMPONENTS} principal components of the pair's untransformed training digits, not scaled; a block of "
        "weights for every pair of digit and angle, 22 groups, λ = 1. A fifth of the training digits is held out, and "
        "all choices are made on it. `all states`: `LatentSVM` (½‖w‖²), its C one of "
        f"{', '.join(f'{C:g}' for C in FULL_CS)}, two starts. `group norm`: `group_norm_path(GroupNormSVM(problem, "
        f"'label-state', n_init=2))` from C = {PATH_CS[-1]:g} down. `fewer states`: from models of C = "
        f"{PATH_CS[-1]:g}, {STARTS} starts, states leave one at a time, `model.budget(k, X, y, per_label=False)`; from "
        f"{MOST_REFITTED} states on a latent SVM is fitted to those that are left, `LatentSVM(small.problem, "
        f"C={REFIT_C:g}, init=small.weights_)`; and once more with states that leave by the norms of that latent SVM. "
        f"The one with the fewest states that is at most {100 * WITHIN:.1f} points below `all states` on the held "
        "fifth is fitted again to all training digits; so is the best with as many states as in the paper, where "
        "that is another. Test digits are looked at once per row. `random`: as many angles per digit, drawn "
        f"{DRAWS} times: taken from the model with all states, as in the paper, or fitted to all training digits. "
        "In brackets Chen et al. (2011), C = 1 at an unknown scale of features. Prediction: CPU milliseconds for all "
        "test digits, from images to labels, least of 15.",
        [
            "pair",
            "model",
            "C",
            "states of 22",
            "angles per digit, at most",
            "held accuracy, %",
            "test accuracy, %",
            "prediction, ms (angles computed)",
        ],
    )
    real_data()
    began = time.process_time()
    with threadpool_limits(1, user_api="blas"):
        for pair in PAIRS:
            _measure(page, pair)
    page.notes.append(
        "Prediction time is a fixed part, for reading the images, and a part in proportion to the angles that are "
        "computed; states of both digits at one angle share it. The test digits were looked at before, two or three "
        "times per pair: with a solver that ended convex tasks too early, and with one start and with three in place "
        f"of {STARTS}. The number of starts, C = 1000 of the refit, and that states leave in two ways were settled "
        "after that, on the held fifth."
    )
    page.notes.append(
        "3-8 needs 8 states on the held fifth, the paper has 7. Other ways to choose seven, on the training part "
        "alone: by the norms of latent SVMs from eight starts, held accuracy 96.3 to 97.4; always leaving out the "
        "state whose loss raises the objective least, 97.0; exchanging states as long as the objective falls by "
        ".3 %, 96.9 and 97.2 from two starts, with 97.5 and 97.6 on what they learn from (all states: 98.2)."
    )
    page.notes.append(
        "8-9 misses: its few states are as good as all on the held digits and .4 to .6 points below on the test "
        "digits. The best of ten ways to leave states out, by 2,400 digits, looks better than it is; an earlier "
        "page, with three starts and one way, had 6 states at -0.20 there, and 9 states at +0.20 on 3-8. So much "
        "do these differences move."
    )
    page.notes.append(f"The page took {(time.process_time() - began) / 60:.0f} CPU minutes.")
    return page


def _measure(page: Page, pair: tuple[int, int]) -> None:
    X, y = mnist(part="train", digits=pair)
    X_test, y_test = mnist(part="test", digits=pair)
    train, held = next(StratifiedShuffleSplit(1, test_size=0.2, random_state=0).split(X, y))
    data = Digits(X / 255, y, train, held, X_test / 255, y_test)
    problem = Transforms(ANGLES, COMPONENTS, blocks="class and state")
    name, first = f"{pair[0]}-{pair[1]}", len(page.rows)

    full, full_held = _latent(problem, data)
    all_states = data.test_score(full)
    full_ms = _least_ms(full, data.X_test)
    page.rows.append(
        (name, "all states", f"{full.C:g}", 22, 11, _percent(full_held), _percent(all_states), f"{full_ms:.1f} (11)")
    )
    models = group_norm_path(GroupNormSVM(problem, "label-state", n_init=2), data.X[train], data.y[train], PATH_CS)
    for model in models:
        kept = model.selected_states_
        cells = int(kept.sum()), int(kept.sum(axis=1).max()), _percent(data.held_score(model))
        page.rows.append((name, "group norm", f"{model.C:g}", *cells, "–", "–"))

    tried = _fewer_states(problem, data)
    near = [one for one in tried if one[1] >= full_held - WITHIN] or [max(tried, key=lambda one: one[1])]
    small, small_held = min(near, key=lambda one: (one[0].problem.kept.sum(), -one[1]))
    by_paper = next((one for one in tried if one[0].problem.kept.sum() == PAIRS[pair][0]), None)
    chosen = {"fewer states": (small, small_held)}
    if by_paper is not None and by_paper[0] is not small:
        chosen["as many as the paper"] = by_paper
    for what, (model, held_score) in chosen.items():
        page.rows.append((name, what, *_small_cells(pair, model, held_score, all_states, data)))
    kept = small.problem.kept
    ms = float(str(page.rows[-len(chosen)][-1]).split()[0])
    page.notes.append(
        f"{name}: held accuracy by the number of states left: "
        + ", ".join(f"{one.problem.kept.sum()}: {_percent(score)}" for one, score in tried)
        + f". Prediction with {kept.shape[1]} of 11 angles takes {ms / full_ms:.2f} of the time of all "
        f"(in proportion: {kept.shape[1] / 11:.2f})."
    )
    for row in _random_rows(name, full, kept, small.C, data):
        page.rows.append(row)
    print(*page.rows[first:], page.notes[-1], sep="\n", flush=True)


def _latent(problem: Any, data: Digits) -> tuple[Any, float]:
    def fitted(C: float, rows: Any) -> Any:
        return LatentSVM(problem, C=C, n_init=2).fit(data.X[rows], data.y[rows])

    scores = {C: data.held_score(fitted(C, data.train)) for C in FULL_CS}
    C = max(scores, key=lambda C: scores[C])
    return fitted(C, slice(None)), scores[C]


def _small_cells(
    pair: tuple[int, int], small: Any, held_score: float, all_states: float, data: Digits
) -> tuple[object, ...]:
    """The model with these states, fitted to all training digits."""
    final = LatentSVM(small.problem, C=small.C, init=small.weights_).fit(data.X, data.y)
    kept, accuracy = small.problem.kept, data.test_score(final)
    return (
        f"{small.C:g}",
        f"{kept.sum()} [{PAIRS[pair][0]}]",
        f"{kept.sum(axis=1).max()} [{PAIRS[pair][1]}]",
        _percent(held_score),
        f"{_percent(accuracy)} ({100 * (accuracy - all_states):+.2f})",
        f"{_least_ms(final, data.X_test):.1f} ({kept.shape[1]})",
    )


def _fewer_states(problem: Any, data: Digits) -> list[tuple[Any, float]]:
    """Latent SVMs with fewer and fewer states, the best of some starts on the held digits for each number of them."""
    X, y = data.X[data.train], data.y[data.train]
    best: dict[int, tuple[Any, float]] = {}

    def keep_best(fit: Any) -> None:
        states = int(fit.problem.kept.sum())
        best[states] = max(best.get(states, (fit, 0.0)), (fit, data.held_score(fit)), key=lambda one: one[1])

    for start in range(STARTS):
        model = GroupNormSVM(problem, "label-state", C=PATH_CS[-1], random_state=start).fit(X, y)
        fit = _refit(model.prune(drop_null=True), X, y)
        while (states := int(model.selected_states_.sum())) >= FEWEST:
            if states <= MOST_REFITTED:
                keep_best(_refit(model.prune(drop_null=True), X, y))
            if states == FEWEST:
                break
            model = model.budget(states - 1, X, y, per_label=False)
        while int(fit.problem.kept.sum()) > FEWEST:
            fit = _refit(_without_least(fit), X, y)
            if fit.problem.kept.sum() <= MOST_REFITTED:
                keep_best(fit)
    return [best[states] for states in sorted(best, reverse=True)]


def _refit(small: Any, X: np.ndarray, y: np.ndarray) -> Any:
    return LatentSVM(small.problem, C=REFIT_C, init=small.weights_).fit(X, y)


def _without_least(fit: Any) -> Any:
    """The same model without the state whose weights have the smallest norm; each digit keeps one."""
    kept = fit.problem.kept
    norms = np.sqrt(sum((block.reshape(*kept.shape, -1) ** 2).sum(axis=-1) for block in fit.weights_.values()))
    norms[~kept] = np.inf
    norms[kept.sum(axis=1) == 1] = np.inf
    left = kept.copy()
    left.flat[np.argmin(norms)] = False
    problem, schema, w = fit.problem.with_states(fit.schema_, fit.coef_, left, False)
    twin = fit.frozen().set_params(problem=problem)
    twin.schema_, twin.coef_ = schema, w
    return twin


def _random_rows(name: str, full: Any, kept: np.ndarray, C: float, data: Digits) -> list[tuple[Any, ...]]:
    """Accuracy with angles drawn at random, as many per digit: from the model with all, and fitted again."""
    rng, taken, fitted = np.random.default_rng(0), [], []
    for _ in range(DRAWS):
        drawn = np.zeros((2, 11), dtype=bool)
        for row, count in zip(drawn, kept.sum(axis=1), strict=True):
            row[rng.choice(11, count, replace=False)] = True
        problem, schema, w = full.problem.with_states(full.schema_, full.coef_, drawn, False)
        twin = full.frozen().set_params(problem=problem)
        twin.schema_, twin.coef_ = schema, w
        taken.append(100 * data.test_score(twin))
        again = LatentSVM(problem, C=C, init=dict(schema.views(w))).fit(data.X, data.y)
        fitted.append(100 * data.test_score(again))
    shape = (int(kept.sum()), int(kept.sum(axis=1).max()))
    return [
        (name, what, "–", *shape, "–", f"{np.mean(found):.2f} ± {np.std(found, ddof=1):.2f}", "–")
        for what, found in (("random angles of all states", taken), ("random angles, fitted again", fitted))
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


def _least_ms(model: Any, X: np.ndarray) -> float:
    times = []
    for _ in range(15):
        began = time.process_time()
        model.predict(X)
        times.append(time.process_time() - began)
    return 1e3 * min(times)
