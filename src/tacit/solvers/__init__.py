"""Convex minimisation. One file a solver, and one loop (`minimise`) that runs them all."""

from tacit.solvers.bundle import Bundle
from tacit.solvers.frank_wolfe import FrankWolfe
from tacit.solvers.loop import Solution, Solver, State, Status, Step, Warm, minimise

__all__ = ["Bundle", "FrankWolfe", "Solution", "Solver", "State", "Status", "Step", "Warm", "minimise"]
