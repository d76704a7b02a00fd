"""Problems from a user's plain functions of one sample: with outputs that are listed, or only met."""

from tacit.problems.per_sample.problem import PerSample

__all__ = ["PerSample"]
