"""Coreference: clusters of mentions, explained by hidden links."""

from tacit.problems.coreference.problem import Coreference

__all__ = ["Coreference"]
