"""Oracle passes to a certified 0.1 % by C: the proximal bundle against the textbook algorithm. No times."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import Page
from tacit import Ragged, StructuredSVM
from tacit.problems import Candidates, Multiclass
from tacit.solvers import Bundle, Status

MAX_STEPS = 2000


def run() -> Page:
    page = Page(
        "Oracle passes by C",
        f"Passes to a certified relative gap of 0.1 %, at most {MAX_STEPS}. Digits as in the digits page; bags: 500 × "
        "20 candidates × 50 numbers, 5 classes, one planted candidate each, hidden values known.",
        ["data", "C", "Bundle()", "Bundle(proximal=False)"],
    )
    X, y = load_digits(return_X_y=True)
    bags, labels, hidden = planted(500, 20, 50, 5)
    for C in (0.1, 1, 10, 100, 1000, 10000):
        page.rows.append(("digits", C, *_both(Multiclass(), C, X / 16, y)))
    for C in (1, 10, 100, 1000):
        page.rows.append(("bags", C, *_both(Candidates(), C, bags, labels, hidden=hidden)))
    return page


def planted(n: int, size: int, width: int, classes: int) -> tuple[Ragged, np.ndarray, np.ndarray]:
    """Bags of standard normal candidates / √d; one per bag is shifted by its class's prototype of norm 5.7 / √d."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((n * size, width))
    prototypes = rng.standard_normal((classes, width))
    prototypes *= 5.7 / np.linalg.norm(prototypes, axis=1, keepdims=True)
    y, hidden = rng.integers(0, classes, n), rng.integers(0, size, n)
    values[np.arange(n) * size + hidden] += prototypes[y]
    return Ragged(values / np.sqrt(width), np.arange(n + 1) * size), y, hidden


def _both(problem: object, C: float, *data: object, **known: object) -> list[str]:
    cells = []
    for solver in (Bundle(), Bundle(proximal=False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = StructuredSVM(problem, C=C, solver=solver, max_iter=MAX_STEPS).fit(*data, **known)
        done = model.status_ is Status.CONVERGED
        cells.append(str(model.n_iter_) if done else f"over {MAX_STEPS} (gap {model.gap_ / model.objective_:.1%})")
    return cells
