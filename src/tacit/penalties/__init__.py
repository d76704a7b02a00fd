"""The convex penalty Ω(w) of a task: its value, its minimiser with a linear term added, and its dual."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
