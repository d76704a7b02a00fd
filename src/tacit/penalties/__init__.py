"""The convex penalty Ω(w) of a task: its value, its minimiser with a linear term added, and its dual."""

from tacit.penalties.contract import Penalty
from tacit.penalties.group_norm import GroupNorm
from tacit.penalties.prior import Prior
from tacit.penalties.quadratic import Quadratic, without_bounds

__all__ = ["GroupNorm", "Penalty", "Prior", "Quadratic", "without_bounds"]
