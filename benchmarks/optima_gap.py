"""How far from the global optimum? Lower bounds on latent objectives of small problems, beside where fits end."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

from benchmarks.harness import Page
from tacit import LatentSVM, Ragged
from tacit.data.arrays import Array
from tacit.datasets import planted_motif
from tacit.problems import Candidates, Motif
from tacit.testing import Enumeration
from tacit.testing.latent_bounds import LatentTable, bracket_latent

STARTS, STEPS, NODE_STEPS = 10, 300, 40
BAGS = Candidates(fit_intercept=False)


def run() -> Page:
    page = Page(
        "The true gap of latent objectives",
        "`LatentSVM` on problems that are small enough for a lower bound (`tacit.testing.latent_bounds`): every sample "
        "gets its own weights, which multipliers pull together, so that its part of the objective is replaced by its "
        "convex envelope. Bags: 5 candidates × 5 features by √5, two classes; one candidate is shifted by a prototype "
        "of this norm. Motif: width 3, GAT in positive sequences of 7 letters, a tenth of its letters drawn anew. "
        f"Random: the best of {STARTS} starts of CCCP. Root: the bound without branching; search: after so many nodes "
        "of branch and bound. Looseness: (smooth − bound) / smooth, an upper limit on how far the smooth path is above "
        "the optimum.",
        ["data", "samples", "C", "random", "smooth", "root", "search", "nodes", "looseness", "CPU seconds"],
    )
    for n, distance, C, nodes in ((50, 3.0, 1.0, 60), (50, 6.0, 10.0, 250), (100, 6.0, 10.0, 60), (200, 6.0, 10.0, 20)):
        X, y = plant_bags(n, distance)
        add_row(page, f"bags, norm {distance:g}", BAGS, X, y, tabulate_bags(X, y, C), C, nodes)
    for n, C, nodes in ((50, 10.0, 100),):
        X, y, _ = planted_motif(n, 7, "GAT", noise=0.1, seed=0)
        X, y, problem = np.char.decode(X), y.astype(str), Motif(3)
        add_row(page, "motif", problem, X, y, tabulate(problem, X, y, C), C, nodes)
    page.notes.append(verify())
    return page


def add_row(page: Page, name: str, problem: Any, X: Any, y: Array, table: LatentTable, C: float, n_nodes: int) -> None:
    common: dict[str, Any] = {"C": C, "tol": 1e-4, "verbose": 0}
    smooth = LatentSVM(problem, **common).fit(X, y)
    random = LatentSVM(problem, init="hidden", n_init=STARTS, random_state=0, **common).fit(X, y)
    assert abs(table.objective(smooth.coef_) - smooth.objective_) < 1e-6
    began = time.process_time()
    root = bracket_latent(table, smooth.coef_, max_steps=STEPS)
    search = bracket_latent(table, smooth.coef_, max_nodes=n_nodes, max_steps=NODE_STEPS)
    seconds = time.process_time() - began
    bound = max(root.bound, search.bound)
    numbers = [f"{value:.4f}" for value in (random.objective_, smooth.objective_, root.bound, bound)]
    loose = (smooth.objective_ - bound) / smooth.objective_
    page.rows.append((name, len(y), f"{C:g}", *numbers, search.n_nodes, f"{loose:.0%}", f"{seconds:.0f}"))
    print(*page.rows[-1], flush=True)


def plant_bags(n: int, distance: float, n_candidates: int = 5, d: int = 5) -> tuple[Ragged, Array]:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((n * n_candidates, d))
    y, places = rng.integers(2, size=n), rng.integers(n_candidates, size=n)
    prototypes = rng.standard_normal((2, d))
    prototypes *= distance / np.linalg.norm(prototypes, axis=1, keepdims=True)
    values[np.arange(n) * n_candidates + places] += prototypes[y]
    return Ragged(values / np.sqrt(d), np.arange(n + 1) * n_candidates), y


def tabulate_bags(X: Ragged, y: Array, C: float) -> LatentTable:
    """All outputs of bags of two classes: a candidate in the block of its class."""
    features = [np.kron(np.eye(2), X[i]) for i in range(len(y))]
    is_true = [np.repeat([0, 1], len(X[i])) == y[i] for i in range(len(y))]
    return LatentTable(features, [1.0 - true for true in is_true], is_true, np.full(len(y), C / len(y)))


def tabulate(problem: Any, X: Any, y: Any, C: float) -> LatentTable:
    """All outputs of a problem, by its specification in plain Python."""
    example = problem.example(np.random.default_rng(0))._replace(X=X, y=y, hidden=None)
    found = Enumeration(example)
    return LatentTable(found.features, found.losses, found.is_true, np.full(found.n, C / found.n))


def verify() -> str:
    """Compare with the lowest of the convex tasks of all imputations, on tiny problems."""
    worst, ends, count = -np.inf, [], 0
    for seed, problem in itertools.product(range(6), (Candidates(), Motif(2))):
        example = problem.example(np.random.default_rng(seed))
        table = tabulate(problem, example.X, example.y, C=3.0)
        choices = [np.flatnonzero(row) for row in table.is_true]
        truth = min(table.solve(np.array(hidden))[1] for hidden in itertools.product(*choices))
        zero = np.zeros(table.features.shape[2])
        bounds = [bracket_latent(table, zero, max_nodes=k, max_steps=60).bound for k in (1, 400)]
        worst = max(worst, *((bound - truth) / truth for bound in bounds))
        ends.append((truth - bounds[1]) / truth)
        count += 1
    return (
        f"Verified on {count} tiny problems by brute force, one convex task per imputation: no bound is above the "
        f"optimum (the highest is {worst:.1e} of it above, rounding included), and a search of 400 nodes ends "
        f"{max(ends):.1e} below it at the most."
    )
