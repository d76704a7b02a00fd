"""Which of its three methods should a min-entropy model use: the objective that each reaches, and its CPU time."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from tacit import MinEntropySVM
from tacit.datasets import uniprobe
from tacit.problems import Candidates, Motif

METHODS = ("lbfgs", "trust-region", "cccp")
ORDERS = (0.25, 1.0, 2.0, 1000.0, math.inf)
STARTS, SEQUENCES, WIDTH = 3, 1000, 10
MAX_STEPS = {"lbfgs": 1000, "trust-region": 60, "cccp": 60}
"""Limits that keep the slow methods to a minute; the page says where one was met."""


def run() -> Page:
    page = Page(
        "Min-entropy models: which solver?",
        f'`MinEntropySVM(problem, alpha, solver=..., init="hidden", tol=1e-3)` from {STARTS} random starts that the '
        "methods share. Objective: mean over starts, lower is better; in brackets CPU seconds per fit, one BLAS "
        f"thread. Planted bags (200 × 10 × 20, two classes, C = 10), {SEQUENCES} sequences of protein 052 (Kumar 2013; "
        f"width {WIDTH}, C = 150). The best objective of a row is bold; a star: the "
        f"limit of {MAX_STEPS['cccp']} convex tasks was met.",
        ["data", "α", *METHODS],
    )
    real_data()
    kinds: dict[str, Callable[[], Any]] = {"planted bags": bags, "protein 052": protein}
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, make in kinds.items():
            problem, X, y, C = make()
            for alpha in ORDERS:
                cells = [measure(problem, X, y, C, alpha, method) for method in METHODS]
                best = min(cell[0] for cell in cells)
                shown = [
                    "–" if math.isinf(value) else f"{mark(value, best)}{'*' if met else ''} ({seconds:.2f} s)"
                    for value, seconds, met in cells
                ]
                page.rows.append((name, "∞" if math.isinf(alpha) else f"{alpha:g}", *shown))
                print(page.rows[-1], flush=True)
    page.notes.append(
        'CCCP does not exist at α = 1 (a dash). `solver="auto"` is L-BFGS for finite α and CCCP for α = ∞, where the '
        "imputation makes each task one of the certified solvers'."
    )
    return page


def measure(problem: Any, X: Any, y: Any, C: float, alpha: float, method: str) -> tuple[float, float, bool]:
    """Mean objective and seconds over the starts, and whether one ran into the limit of steps."""
    if method == "cccp" and alpha == 1:
        return math.inf, 0.0, False
    values, seconds, met = [], [], False
    for seed in range(STARTS):
        model = MinEntropySVM(
            problem, alpha, C, solver=method, init="hidden", max_iter=MAX_STEPS[method], random_state=seed, verbose=0
        )
        began = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - began)
        values.append(model.objective_)
        met |= method != "lbfgs" and model.n_iter_ >= MAX_STEPS[method]
    return float(np.mean(values)), float(np.mean(seconds)), met


def mark(value: float, best: float) -> str:
    return f"**{value:.4g}**" if value <= best * (1 + 1e-3) else f"{value:.4g}"


def bags() -> Any:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 10, 20)), rng.integers(0, 2, 200)
    X[np.arange(200), rng.integers(0, 10, 200), y] += 3.0  # one row of each bag carries the label
    return Candidates(), X, y, 10.0


def protein() -> Any:
    data = uniprobe(real_data() / "uniprobe", "052", 1)
    return Motif(WIDTH, features="literature"), data.X_train[:SEQUENCES], data.y_train[:SEQUENCES], 150.0
