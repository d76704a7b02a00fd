"""Min-entropy models on six mammals in unknown windows, for orders of entropy up to ∞, against the latent SVM."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, keep, real_data
from benchmarks.mammals import SAME_PROTOCOL
from tacit import LatentSVM, MinEntropySVM, Ragged
from tacit.datasets import mammals
from tacit.problems import Candidates

C, EPSILON, STARTS, FOLDS = 10.0, 1e-3, 4, 5
ORDERS = (0.25, 1.0, 10.0, 1000.0, np.inf)
LARGE = ("MinEntropySVM, α = 1000", "MinEntropySVM, α = ∞")
REPORTED = 12.3
"""Test loss in % at every α ≥ 1000: Kumar (2013), figure 3.2."""


def run() -> Page:
    page = Page(
        "Min-entropy models: six mammals",
        f"271 images, the HOG of every window, five fixed 90/10 splits, {STARTS} random starts on each. "
        f'`MinEntropySVM(Candidates(fit_intercept=False), alpha, C={C:g}, tol={EPSILON}, init="hidden")`. '
        "Every order of entropy is reported, none was chosen. `Kept start` follows figure 3.2 of Kumar (2013): of four "
        "random starts per split the one with the lowest training error, ties by the objective, then the mean over "
        "splits. `All starts` is the mean over 5 splits × 4 starts. Intervals are 95 %, by the bootstrap over splits. "
        "He has 12.3 % at every α ≥ 1000, ∞ included, and prints no C for this figure: C and ε are those of his table "
        "2.2. His 16.9 % of the latent SVM is from that table, with one start per split. One BLAS thread.",
        [
            *("learner", "test loss of the kept start, %", "95 % interval", "minus LatentSVM", "95 % interval"),
            *("test loss of all starts, %", "95 % interval", "training loss, %, kept / all", "objective, kept / all"),
            "CPU seconds per fit",
        ],
    )
    real_data()
    problem = Candidates(fit_intercept=False)
    learners: dict[str, Any] = {"LatentSVM": LatentSVM(problem, C=C, tol=EPSILON, init="hidden", verbose=0)}
    for alpha in ORDERS:
        name = "MinEntropySVM, α = " + ("∞" if np.isinf(alpha) else f"{alpha:g}")
        learners[name] = MinEntropySVM(problem, alpha=alpha, C=C, tol=EPSILON, init="hidden", verbose=0)
    kept: dict[str, Any] = {}
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, model in learners.items():
            fits = [
                [
                    keep("min_entropy_mammals", (name, C, EPSILON, fold, seed), partial(fit, model, fold, seed))
                    for seed in range(STARTS)
                ]
                for fold in range(FOLDS)
            ]
            kept[name] = np.array([keep_start(starts) for starts in fits])
            page.rows.append(_row(name, np.array(fits), kept[name], kept["LatentSVM"]))
            print(*page.rows[-1], flush=True)
    page.notes.append(
        "Must reach: not above our latent SVM. A test half has 26 images: one image is 3.8 % of a split, .77 % of the "
        "mean over splits."
    )
    _name_misses(page)
    page.notes.append(SAME_PROTOCOL)
    return page


def _row(name: str, fits: Any, kept: Any, reference: Any) -> tuple[str, ...]:
    """A row of the table, from all starts by split, the kept ones, and those of the latent SVM."""
    gap = kept[:, 1] - reference[:, 1]
    (train, test, objective, seconds), (own_train, _, own_objective, _) = fits.mean((0, 1)), kept.mean(0)
    return (
        *(name, f"{kept[:, 1].mean():.2f}", interval_text(kept[:, 1])),
        *(("–", "–") if name == "LatentSVM" else (f"{gap.mean():+.2f}", interval_text(gap, "+"))),
        *(f"{test:.2f}", interval_text(fits[:, :, 1].mean(axis=1))),
        *(f"{own_train:.2f} / {train:.2f}", f"{own_objective:.3f} / {objective:.3f}", f"{seconds:.1f}"),
    )


def _name_misses(page: Page) -> None:
    for column, starts in ((1, "kept start"), (5, "all starts")):
        losses = {row[0]: float(row[column]) for row in page.rows if row[column] != "–"}
        above = [f"{name} ({loss:.2f})" for name, loss in losses.items() if loss > losses["LatentSVM"]]
        page.notes.append(f"Misses, {starts}, a loss above our latent SVM's: " + (", ".join(above) or "none") + ".")
        large = [f"{name} ({losses[name]:.2f})" for name in losses if name in LARGE and losses[name] > REPORTED]
        page.notes.append(
            f"Misses, {starts}, a loss above the {REPORTED} % that Kumar (2013) has at α ≥ 1000: "
            + (", ".join(large) or "none")
            + "."
        )


def keep_start(starts: list[Sequence[float]]) -> Sequence[float]:
    """Of several starts the one with the lowest training loss, ties by the objective: never by the test loss.

    A start has its training loss, its test loss and its objective first.
    """
    return min(starts, key=lambda start: (round(start[0], 6), start[2]))


def fit(model: Any, fold: int, seed: int) -> tuple[float, float, float, float]:
    data = mammals()
    train, test = np.flatnonzero(~data.is_test[:, fold]), np.flatnonzero(data.is_test[:, fold])
    X, y = data.X[train], data.y[train]
    X = Ragged(X.values.astype(np.float64), X.offsets)  # sums are taken in double precision: convert once
    model.set_params(random_state=seed)
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    losses = [100 * (1 - model.score(*half)) for half in ((X, y), (data.X[test], data.y[test]))]
    print(type(model).__name__, fold, seed, losses, model.objective_, f"{seconds:.1f} s", flush=True)
    return losses[0], losses[1], model.objective_, seconds


def interval(values: Any) -> tuple[float, float]:
    """The middle 95 % of means over splits that are drawn with replacement."""
    rng = np.random.default_rng(0)
    means = np.mean(rng.choice(values, (4000, len(values))), axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def interval_text(values: Any, sign: str = "") -> str:
    low, high = interval(values)
    return f"{low:{sign}.1f} to {high:{sign}.1f}"
