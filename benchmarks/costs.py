"""Cost matrices: does training on the costs lower the cost of predictions, and under which rescaling?"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from benchmarks.harness import Page
from tacit import StructuredSVM
from tacit.problems import Multiclass

FOLDS = 5


def run() -> Page:
    X, y = load_digits(return_X_y=True)
    page = Page(
        "Cost matrices: margin or slack rescaling?",
        f"`load_digits()/16`, `StructuredSVM(Multiclass(loss=costs))`, tol 0.01, the mean cost of predictions on "
        f"held-out digits over {FOLDS} folds. 'Costs ignored' trains with 0/1 loss and pays the same costs. "
        "Nothing was chosen: every C is shown.",
        ["costs", "largest / smallest", "C", "costs ignored", "margin", "margin, costs with mean 1", "slack"],
    )
    for name, costs in cost_matrices().items():
        for C in (1, 10, 100, 1000):
            ways = {
                "ignored": ("0/1", "margin"),
                "margin": (costs, "margin"),
                "scaled": (costs / costs[costs > 0].mean(), "margin"),
                "slack": (costs, "slack"),
            }
            means = [mean_cost(X / 16, y, costs, loss, rescaling, C) for loss, rescaling in ways.values()]
            spread = costs.max() / costs[costs > 0].min()
            page.rows.append((name, f"{spread:.3g}", f"{C}", *(f"{mean:.3f}" for mean in means)))
    return page


def cost_matrices() -> dict[str, np.ndarray]:
    digits = np.arange(10)
    wrong = 1.0 - np.eye(10)
    small = digits < 5
    drawn = np.exp(np.random.default_rng(0).uniform(0, np.log(10), (10, 10)))
    return {
        "distance of the digits": np.abs(np.subtract.outer(digits, digits)).astype(float),
        "double between 0-4 and 5-9": wrong * np.where(small[:, None] == small, 1.0, 2.0),
        "ten times for a true 0": wrong * np.where(digits[:, None] == 0, 10.0, 1.0),
        "drawn between 1 and 10": wrong * drawn,
    }


def mean_cost(X: np.ndarray, y: np.ndarray, costs: np.ndarray, loss: object, rescaling: str, C: float) -> float:
    paid = np.zeros(len(y))
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        model = StructuredSVM(Multiclass(loss=loss), C=C, rescaling=rescaling, tol=1e-2, verbose=0)
        paid[test] = costs[y[test], model.fit(X[train], y[train]).predict(X[test])]
    return float(paid.mean())
