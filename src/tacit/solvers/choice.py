"""Which solver for which task: the rule of ``solver="auto"``, from measurements (benchmarks/which_solver.py)."""

from __future__ import annotations

from tacit.oracle import Task, capability, has_long_codes, runs_python
from tacit.oracle.capabilities import KeepsDual
from tacit.solvers.bundle import Bundle
from tacit.solvers.frank_wolfe import FrankWolfe
from tacit.solvers.loop import Solver

MIN_SEQUENCES = 2000
"""From this many sequences on `FrankWolfe` beats `Bundle`: at 700 they tie, at 3000 it takes 0.5 to 0.9 of the time."""

MAX_MEAN_LENGTH = 50
"""Mean number of tokens per sequence up to which `FrankWolfe` is chosen. Words of 8 letters were measured; the limit
leaves a margin."""

MAX_INFLUENCE = 1.0
"""The `sample_influence` up to which `FrankWolfe` is chosen. At ten times that, it takes twice as long as `Bundle`."""

MAX_PLANE_NUMBERS = 1_000_000
"""Weights of sequences from which on `FrankWolfe` is chosen whatever C is. It keeps a few vectors of the length of w
and 8 taggings per sequence at first; `Bundle` keeps up to a hundred planes as long as w, 0.8 GB at this length."""

MIN_TOLERANCE = 3e-3
"""From this tolerance on `FrankWolfe` needs 0.4 to 0.6 of the calls of an oracle in Python. Below it the saving shrinks
and its updates, some 0.1 ms each, grow in number: functions that take less time are better off with `Bundle`."""


def choose(task: Task, tol: float) -> Solver:
    """The solver that is usually fastest to a relative gap of ``tol``; the same for the same task, on any machine.

    `FrankWolfe` is chosen in three cases. First, where every call of the oracle is a user's Python function, C is small
    and the tolerance loose: it needs the fewest calls. Second, for many short sequences at small C. Third, for
    sequences with a million weights or more, where `Bundle` would hold gigabytes of planes. In all other cases it is
    `Bundle`: its passes are matrix products, and their number grows the least with C.

    >>> from tacit import problems, testing
    >>> choose(testing.example_task(problems.Multiclass()), tol=1e-3)
    Bundle()
    """
    oracle = task.oracle
    if not task.penalty.is_quadratic:
        return Bundle()
    has_dual = capability(oracle, KeepsDual) is not None
    if runs_python(oracle) and not has_dual:
        return FrankWolfe() if tol >= MIN_TOLERANCE and _is_small(task) else Bundle()
    if has_long_codes(oracle) and has_dual and oracle.n_params > MAX_PLANE_NUMBERS:
        return FrankWolfe()
    if has_long_codes(oracle) and has_dual and oracle.n_samples >= MIN_SEQUENCES and _is_small(task):
        return FrankWolfe() if task.target.size <= MAX_MEAN_LENGTH * oracle.n_samples else Bundle()
    return Bundle()


def _is_small(task: Task) -> bool:
    return sample_influence(task) <= MAX_INFLUENCE


def sample_influence(task: Task) -> float:
    """How far one sample moves w away from 0: ‖g‖² / (R(0) · n), with the risk R, its slope g at 0, and n samples.

    It is proportional to C and does not depend on the units of the features: features ten times as large, with a
    hundredth of the C, have the same influence.

    >>> from tacit import problems, testing
    >>> small, large = (sample_influence(testing.example_task(problems.Multiclass(), C=C)) for C in (1.0, 10.0))
    >>> round(large / small, 6)
    10.0
    """
    plane = task.origin[1]
    if not plane.offset > 0:
        return 0.0
    return float(plane.gradient @ plane.gradient) / (plane.offset * task.oracle.n_samples)
