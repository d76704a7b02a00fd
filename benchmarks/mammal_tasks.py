"""Figure 3.3 of Kumar (2013): six binary tasks, one mammal against the others, by latent SVM and min-entropy models."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, keep, real_data
from benchmarks.mammals import BASELINES, fit_baseline, one_vector
from benchmarks.min_entropy_mammals import interval, keep_start
from tacit import LatentSVM, MinEntropySVM, Ragged
from tacit.datasets import mammals
from tacit.problems import Candidates

C, EPSILON, FOLDS = 10.0, 1e-3, 5
LEARNERS = {"latent SVM": (None, 4), "min-entropy, α = 2": (2.0, 1), "min-entropy, α = ∞": (np.inf, 4)}
"""α, None for the latent SVM, and the number of random starts per split."""
BEST = "min-entropy, lower of the two"
REPORTED = {"latent SVM": "5.7", "min-entropy, α = ∞": "5.4", BEST: "4.2"}
"""Mean over the six tasks: Kumar (2013), section 3.7.2."""


def run() -> Page:
    page = Page(
        "Six mammals: one against the others",
        "271 images, the HOG of every window, five fixed 90/10 splits. "
        f'`MinEntropySVM(Candidates(fit_intercept=False), alpha, C={C:g}, tol={EPSILON}, init="hidden")` and '
        "`LatentSVM`. As in figure 3.3 of Kumar (2013), of four random starts per split the one with the lowest "
        "training error is kept, ties by the objective. He keeps of many α the one with the lowest test error, and "
        "does not print C. To keep the run short this page has α = 2, from one start, and ∞ (for four mammals his best "
        "α is between 2 and 8). Test error in %, mean over splits. First start: the mean over tasks with one start per "
        "split, and nothing kept. Lower of the two: per mammal the α with the "
        "lower test error, as he chooses it, which is optimistic. Always the majority: every image is one of the "
        "others. Linear SVM (libsvm): one vector per image, C by 5-fold cross-validation inside every training half. "
        "Mean over tasks, with a 95 % interval by the bootstrap over splits. In brackets Kumar (2013).",
        ["learner"],
    )
    real_data()
    data = mammals()
    names = np.unique(data.y)
    page.columns = ["learner", *names.tolist(), "mean", "95 % interval", "first start, mean", "training error, mean"]
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = {
            learner: [
                [
                    [
                        keep(
                            "mammal_tasks",
                            (name, fold, alpha, seed, C, EPSILON),
                            partial(fit, data, name, fold, alpha, seed),
                        )
                        for seed in range(n_starts)
                    ]
                    for fold in range(FOLDS)
                ]
                for name in names
            ]
            for learner, (alpha, n_starts) in LEARNERS.items()
        }
    kept = {
        learner: np.array([[keep_start(starts) for starts in task] for task in own]) for learner, own in fits.items()
    }
    first = {learner: np.array([[starts[0] for starts in task] for task in own]) for learner, own in fits.items()}
    shares = [[np.mean(data.y[data.is_test[:, fold]] == name) for fold in range(FOLDS)] for name in names]
    page.rows.append(row("always the majority", 100 * np.array(shares)))
    for name in BASELINES:
        vectors = one_vector(data, name)
        plain = np.array(
            [[fit_baseline(vectors, data.y == task, is_test) for is_test in data.is_test.T] for task in names]
        )
        page.rows.append(row(f"linear SVM, {name}", plain[:, :, 1], plain[:, :, 0]))
    for errors in (kept, first):
        errors[BEST] = take_lower(errors["min-entropy, α = 2"], errors["min-entropy, α = ∞"])
    for learner, table in kept.items():
        page.rows.append(row(learner, table[:, :, 1], table[:, :, 0], first[learner][:, :, 1]))
    for starts, errors in (("kept start", kept), ("first start", first)):
        for learner in ("min-entropy, α = 2", "min-entropy, α = ∞", BEST):
            if errors is kept and LEARNERS.get(learner, (None, 4))[1] == 1:
                continue  # one start against the best of four
            gaps = (errors[learner] - errors["latent SVM"])[:, :, 1].mean(axis=0)
            page.notes.append(
                f"{learner}, minus latent SVM, {starts}: {gaps.mean():+.1f} points, 95 % interval "
                f"{interval(gaps)[0]:+.1f} to {interval(gaps)[1]:+.1f}, by the bootstrap over splits."
            )
    other = take_lower(kept["min-entropy, α = ∞"], kept["min-entropy, α = 2"])[:, :, 1].mean(axis=0)
    page.notes.append(
        "Where α = 2 and ∞ tie, the lower of the two is ∞. That was decided after bison had tied. With the other "
        f"choice it has {other.mean():.1f} ({interval(other)[0]:.1f} to {interval(other)[1]:.1f})."
    )
    page.notes.append("A test half has 26 images: one image is 0.13 points of a mean over tasks and splits.")
    return page


def take_lower(low: Any, high: Any) -> Any:
    """Per task the one of two learners with the lower test error, as Kumar (2013) chooses it; ties take the second."""
    takes_low = low[:, :, 1].mean(axis=1) < high[:, :, 1].mean(axis=1) - 1e-9
    return np.where(takes_low[:, None, None], low, high)


def row(learner: str, test: Any, train: Any = None, first: Any = None) -> tuple[str, ...]:
    """A row of the table, from errors by task and split."""
    low, high = interval(test.mean(axis=0))
    mean = f"{test.mean():.1f}" + (f" [{REPORTED[learner]}]" if learner in REPORTED else "")
    tasks = (f"{error:.1f}" for error in test.mean(axis=1))
    others = ("–" if part is None else f"{part.mean():.1f}" for part in (first, train))
    return learner, *tasks, mean, f"{low:.1f} to {high:.1f}", *others


def fit(data: Any, name: str, fold: int, alpha: float | None, seed: int) -> tuple[float, float, float]:
    """Training error, test error and objective of one start."""
    train, test = np.flatnonzero(~data.is_test[:, fold]), np.flatnonzero(data.is_test[:, fold])
    X, y = data.X[train], data.y == name
    X = Ragged(X.values.astype(np.float64), X.offsets)  # sums are taken in double precision: convert once
    settings: dict[str, Any] = {"C": C, "tol": EPSILON, "init": "hidden", "random_state": seed, "verbose": 0}
    problem = Candidates(fit_intercept=False)
    model: Any = LatentSVM(problem, **settings) if alpha is None else MinEntropySVM(problem, alpha=alpha, **settings)
    model.fit(X, y[train])
    errors = 100 * (1 - model.score(X, y[train])), 100 * (1 - model.score(data.X[test], y[test]))
    print(name, fold, alpha, seed, errors, flush=True)
    return *errors, model.objective_
