"""Problems from a user's functions of one sample, with or without a list of all outputs."""

from tacit.problems.per_sample.problem import PerSample

__all__ = ["PerSample"]
