"""Checks that a solver certifies its optimum."""

from __future__ import annotations

import itertools

import numpy as np

from tacit.oracle.contracts import missing_methods
from tacit.solvers import Solver, Status, minimise
from tacit.testing.discovery import problems
from tacit.testing.enumeration import Enumeration, assert_that, example_task

ROUNDING = 1e-9
"""How far rounding may move an objective, as a share of it: no solver certifies more than that."""
MAX_WARM_STEPS = 100
"""Steps of a second solve from the first one's solution, which must not end higher."""


def check_solver(solver: Solver, seeds: int = 3, tol: float = 1e-4) -> None:
    """Solve tasks of every problem and compare with enumeration: objective ≥ optimum ≥ bound, and a gap that closes.

    The optimum is known between two certified numbers (`Enumeration.optimum`), so that a right certificate is never
    called wrong. A solver that says ``is_coarse`` need only come within 5 % of the objective, in 1000 steps, and not at
    large C.

    >>> from tacit.solvers import Bundle
    >>> check_solver(Bundle(), seeds=1)
    """
    name = type(solver).__name__
    is_coarse = getattr(solver, "is_coarse", False)
    tol, most = (0.05, 2000) if is_coarse else (tol, 20000)
    sizes = (0.1, 3.0) if is_coarse else (0.1, 3.0, 100.0)
    ran = 0
    for problem, seed, C in itertools.product(problems(), range(seeds), sizes):
        task = example_task(problem, seed, C)
        if missing_methods(task.oracle, solver.needs):
            continue
        ran += 1
        table = Enumeration(problem.example(np.random.default_rng(seed)))
        optimum = table.optimum(task.weights, ROUNDING, getattr(task.penalty, "lower", None))
        solution = minimise(task, solver, tol=tol, max_iter=most)
        where = f"{name} on {type(problem).__name__}, seed {seed}, C={C}"
        room = ROUNDING * optimum.objective
        assert_that(
            solution.objective >= optimum.bound - room and solution.bound <= optimum.objective + room,
            f"{where}: the optimum, {optimum.objective}, must be between bound {solution.bound} and objective "
            f"{solution.objective}",
        )
        assert_that(solution.status is Status.CONVERGED or is_coarse, f"{where}: {solution.advice()}")
        assert_that(solution.gap <= tol * solution.objective + room, f"{where}: the gap at the end is {solution.gap}")
        assert_that(
            abs(solution.objective - task.objective(solution.w)) <= room,
            f"{where}: objective {solution.objective} is not the value at w, {task.objective(solution.w)}",
        )
        bounds = [step.bound for step in solution.history]
        objectives = [step.objective for step in solution.history]
        assert_that(bounds == sorted(bounds), f"{where}: the lower bound must not fall")
        assert_that(objectives == sorted(objectives, reverse=True), f"{where}: the best objective must not rise")
        again = minimise(
            task, solver, tol=tol, max_iter=MAX_WARM_STEPS, start=solution.w, planes=solution.planes, dual=solution.dual
        )
        assert_that(
            again.objective <= solution.objective + room,
            f"{where}: a warm start ended at {again.objective}, above {solution.objective}",
        )
    assert_that(ran > 0, f"{name}: no problem offers what it needs: {', '.join(missing_methods(None, solver.needs))}")
