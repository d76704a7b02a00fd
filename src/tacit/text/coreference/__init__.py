"""Coreference: clusters of mentions, explained by hidden links."""

from tacit.text.coreference.problem import Coreference

__all__ = ["Coreference"]
