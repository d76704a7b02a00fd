"""Time and oracle passes of the solvers by problem, C and tolerance: the table behind `solver="auto"`."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import Page
from benchmarks.passes import planted
from tacit import Ragged, StructuredSVM
from tacit.oracle import Task
from tacit.penalties import Quadratic
from tacit.problems import Candidates, Chain, Multiclass
from tacit.solvers import Bundle, FrankWolfe, choose, minimise
from tacit.solvers.bundle import sample_influence

ROUNDS = 3
SLOW = 1.0  # seconds from which one round is enough
MAX_STEPS = 300


def run() -> Page:
    page = Page(
        "Which solver?",
        "Milliseconds to a certified relative gap (best of three fits), and for an oracle without dual weights, as a "
        "user's Python functions are, oracle passes: calls by samples. `influence` is ‖slope of the risk at 0‖² by "
        "(risk · n), proportional to C. `auto` is what `solver='auto'` picks.",
        ["data", "n", "C/n", "influence", "tol", "Bundle", "FrankWolfe", "FrankWolfe / Bundle", "auto"],
    )
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, problem, X, y, known in data(page):
        oracle = problem.bind(X, y, problem.schema(X, y), **known)
        target = oracle.impute(np.zeros(oracle.n_params)).code
        n = oracle.n_samples
        for c in (0.001, 0.01, 0.1):
            task = Task(oracle, np.full(n, c), target, Quadratic())
            for tol in (0.1, 0.01, 0.001):
                times = [_seconds(problem, c * n, tol, solver, X, y, known) for solver in (Bundle(), FrankWolfe())]
                shown = [f"{1e3 * t:.0f} ms" for t in times]
                _add(page, name, n, c, task, tol, shown, times)
    X, y = load_digits(return_X_y=True)
    problem = Multiclass()
    oracle = problem.bind(X / 16, y, problem.schema(X / 16, y))
    for c in (0.001, 0.01, 0.1):
        for tol in (0.1, 0.01, 0.001):
            passes = [_passes(oracle, c, tol, solver) for solver in (Bundle(), FrankWolfe())]
            task = Task(_Slow(oracle), np.full(len(y), c), oracle.impute(np.zeros(oracle.n_params)).code, Quadratic())
            _add(page, "digits, Python oracle", len(y), c, task, tol, [f"{p:.0f} passes" for p in passes], passes)
    return page


def data(page: Page) -> list[tuple[str, Any, Any, Any, dict[str, Any]]]:
    X, y = load_digits(return_X_y=True)
    bags, labels, hidden = planted(500, 20, 50, 5)
    sets: list[tuple[str, Any, Any, Any, dict[str, Any]]] = [
        ("digits", Multiclass(), X / 16, y, {}),
        ("bags", Candidates(), bags, labels, {"hidden": hidden}),
    ]
    folder = os.environ.get("TACIT_DATA")
    if folder is None:
        page.notes.append("TACIT_DATA is not set: the words were left out.")
        return sets
    with np.load(Path(folder) / "letters" / "letters.npz") as file:
        words = Ragged(file["pixels"].astype(float), file["offsets"])
        tags = Ragged(file["letters"], file["offsets"])
        order = np.random.default_rng(0).permutation(len(words))
    return sets + [("words", Chain(fit_intercept=True), words[order[:n]], tags[order[:n]], {}) for n in (700, 3000)]


class _Slow:
    """An oracle as Python functions make it: no dual weights; it counts its calls."""

    runs_python = True

    def __init__(self, oracle: Any) -> None:
        self.oracle, self.n_samples, self.n_params, self.calls = oracle, oracle.n_samples, oracle.n_params, 0

    def __getattr__(self, name: str) -> Any:
        if name == "dual":
            raise AttributeError(name)
        return getattr(self.oracle, name)

    def exact(self) -> _Slow:
        return self

    def predict_augmented(self, w: Any, rows: Any = None, **options: Any) -> Any:
        answer = self.oracle.predict_augmented(w, rows, **options)
        self.calls += len(answer.value)
        return answer


def _passes(oracle: Any, c: float, tol: float, solver: Any) -> float:
    slow = _Slow(oracle)
    n = oracle.n_samples
    task = Task(slow, np.full(n, c), oracle.impute(np.zeros(oracle.n_params)).code, Quadratic())
    minimise(task, solver, tol=tol, max_iter=MAX_STEPS)
    return slow.calls / n


def _seconds(problem: Any, C: float, tol: float, solver: Any, X: Any, y: Any, known: dict[str, Any]) -> float:
    best = np.inf
    for _ in range(ROUNDS):
        began = time.perf_counter()
        StructuredSVM(problem, C=C, tol=tol, solver=solver, max_iter=MAX_STEPS, verbose=0).fit(X, y, **known)
        best = min(best, time.perf_counter() - began)
        if best > SLOW:
            break
    return best


def _add(page: Page, name: str, n: int, c: float, task: Task, tol: float, shown: list[str], costs: list[float]) -> None:
    choice = type(choose(task, tol)).__name__
    page.rows.append((name, n, c, f"{sample_influence(task):.2g}", tol, *shown, f"{costs[1] / costs[0]:.2f}", choice))
