"""Convex minimisation. One file per solver, and one loop (`minimise`) that runs them all."""

from tacit.running import Status
from tacit.solvers.bundle import Bundle
from tacit.solvers.choice import choose
from tacit.solvers.frank_wolfe import FrankWolfe
from tacit.solvers.loop import Solution, Solver, State, Step, Warm, WarmStart, minimise  # noqa: F401 (former name)
from tacit.solvers.subgradient import Subgradient

__all__ = [
    "Bundle",
    "FrankWolfe",
    "Solution",
    "Solver",
    "State",
    "Status",
    "Step",
    "Subgradient",
    "WarmStart",
    "choose",
    "minimise",
]
