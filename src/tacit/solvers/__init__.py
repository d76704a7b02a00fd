"""Convex minimisation. One file per solver, and one loop (`minimise`) that runs them all."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
