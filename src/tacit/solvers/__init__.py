"""Convex minimisation. One file a solver, and one loop (`minimise`) that runs them all."""

from tacit.solvers.bundle import Bundle
from tacit.solvers.loop import Solution, Solver, State, Status, Step, minimise

__all__ = ["Bundle", "Solution", "Solver", "State", "Status", "Step", "minimise"]
