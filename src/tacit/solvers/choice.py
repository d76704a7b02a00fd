"""Which solver for which task."""

from __future__ import annotations

from tacit.oracle import Task
from tacit.solvers.bundle import Bundle
from tacit.solvers.loop import Solver


def choose(task: Task, tol: float) -> Solver:
    """The solver that is usually fastest to a relative gap of ``tol``.

    >>> from tacit import problems, testing
    >>> choose(testing.example_task(problems.Multiclass()), tol=1e-3)
    Bundle()
    """
    return Bundle()
