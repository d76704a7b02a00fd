"""Which solver for which task: a rule with the measurements behind it (benchmarks/which_solver.py, docs)."""

from __future__ import annotations

from tacit.oracle import Task, has_long_codes, offered, runs_python
from tacit.oracle.capabilities import KeepsDual
from tacit.solvers.bundle import Bundle
from tacit.solvers.frank_wolfe import FrankWolfe
from tacit.solvers.loop import Solver

MANY = 2000
"""Sequences from which on Frank–Wolfe's sweeps beat the bundle's passes: at 700 words they tie, at 3000 they take 0.5
to 0.9 of the time."""

SHORT = 50
"""Tokens a sequence, in the mean, up to which that was measured (words of 8 letters) with room to spare."""

SMALL_PUSH = 1.0
"""The push up to which they do. At ten times as much they take twice the time of the bundle."""

LOOSE = 3e-3
"""The tolerance from which on Frank–Wolfe needs 0.4 to 0.6 of the calls of an oracle in Python. Below it the saving
shrinks, while its visits, some 0.1 ms each, grow in number: functions that take less are better off without."""


def choose(task: Task, tol: float) -> Solver:
    """The solver that is usually fastest to a relative gap of ``tol``; the same for the same task, on any machine.

    `FrankWolfe` where every call of the oracle is a user's Python function, C is small and the tolerance loose,
    because it needs the fewest calls; and for many short sequences at small C. `Bundle` everywhere else: its passes are
    matrix products, and its number of passes grows the least with C.

    >>> from tacit import problems, testing
    >>> choose(testing.example_task(problems.Multiclass()), tol=1e-3)
    Bundle()
    """
    oracle = task.oracle
    is_small = push(task) <= SMALL_PUSH
    has_dual = offered(oracle, KeepsDual) is not None
    if runs_python(oracle) and not has_dual:
        return FrankWolfe() if is_small and tol >= LOOSE else Bundle()
    if has_long_codes(oracle) and has_dual and oracle.n_samples >= MANY and is_small:
        return FrankWolfe() if task.target.size <= SHORT * oracle.n_samples else Bundle()
    return Bundle()


def push(task: Task) -> float:
    """How hard one sample pulls at w = 0: ‖slope of the risk‖² by the risk, by the number of samples.

    It is proportional to C, and the same for the same problem in other units: features ten times as large with a C of
    a hundredth.

    >>> from tacit import problems, testing
    >>> small, large = (push(testing.example_task(problems.Multiclass(), C=C)) for C in (1.0, 10.0))
    >>> round(large / small, 6)
    10.0
    """
    plane = task.origin[1]
    if not plane.offset > 0:
        return 0.0
    return float(plane.gradient @ plane.gradient) / (plane.offset * task.oracle.n_samples)
