"""Min-entropy models on six mammals in unknown windows, for orders of entropy up to ∞, against the latent SVM."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from benchmarks.mammals import SAME_PROTOCOL
from tacit import LatentSVM, MinEntropySVM, Ragged
from tacit.datasets import mammals
from tacit.problems import Candidates

C, EPSILON, STARTS, FOLDS = 10.0, 1e-3, 4, 5
ORDERS = (0.25, 1.0, 10.0, 1000.0, np.inf)


def run() -> Page:
    page = Page(
        "Min-entropy models: six mammals",
        f"271 images, the HOG of every window, five fixed 90/10 splits, {STARTS} random starts on each. "
        f'`MinEntropySVM(Candidates(fit_intercept=False), alpha, C={C:g}, tol={EPSILON}, init="hidden")`. '
        "Every order of entropy is reported, none was chosen. Mean over 5 splits × 4 starts, with a 95 % interval by "
        "the bootstrap over splits. Figure 3.2 of Kumar (2013) has another protocol: of four random starts per split "
        "the one with the lowest training error, ties by the objective. It has 12.3 % at every α ≥ 1000, ∞ included. "
        "His 16.9 % of the latent SVM is from table 2.2, with one start per split. One BLAS thread.",
        ["learner", "test loss, %", "95 % interval", "training loss, %", "objective", "CPU seconds per fit"],
    )
    real_data()
    problem = Candidates(fit_intercept=False)
    learners: dict[str, Any] = {"LatentSVM": LatentSVM(problem, C=C, tol=EPSILON, init="hidden", verbose=0)}
    for alpha in ORDERS:
        name = "MinEntropySVM, α = " + ("∞" if np.isinf(alpha) else f"{alpha:g}")
        learners[name] = MinEntropySVM(problem, alpha=alpha, C=C, tol=EPSILON, init="hidden", verbose=0)
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, model in learners.items():
            table = np.array([[fit(model, fold, seed) for seed in range(STARTS)] for fold in range(FOLDS)])
            test = table[:, :, 1].mean(axis=1)
            low, high = interval(test)
            means = table.mean(axis=(0, 1))
            row = (
                f"{means[1]:.2f}",
                f"{low:.1f} to {high:.1f}",
                f"{means[0]:.2f}",
                f"{means[2]:.3f}",
                f"{means[3]:.1f}",
            )
            page.rows.append((name, *row))
            print(name, *row, flush=True)
    page.notes.append(
        "Must reach: not above our latent SVM. A test half has 26 images: one image is 3.8 % of a split, .77 % of the "
        "mean over splits."
    )
    losses = {row[0]: float(row[1]) for row in page.rows}
    above = [f"{name} ({loss:.2f})" for name, loss in losses.items() if loss > losses["LatentSVM"]]
    page.notes.append("Misses, a loss above our latent SVM's: " + (", ".join(above) or "none") + ".")
    large = [f"{name} ({losses[name]:.2f})" for name in list(losses)[-2:] if losses[name] > 12.3]
    page.notes.append(
        "Misses, a loss above the 12.3 % that Kumar (2013) has at α ≥ 1000: " + (", ".join(large) or "none") + "; "
        "measured as the mean of four starts, not as the one with the lowest training error."
    )
    page.notes.append(SAME_PROTOCOL)
    return page


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
    return losses[0], losses[1], model.objective_, seconds


def interval(values: Any) -> tuple[float, float]:
    """The middle 95 % of means over splits that are drawn with replacement."""
    rng = np.random.default_rng(0)
    means = np.mean(rng.choice(values, (4000, len(values))), axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))
