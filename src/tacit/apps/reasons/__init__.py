"""Reasons: which sentences of a document decide its label."""

from tacit.apps.reasons.finder import ReasonFinder

__all__ = ["ReasonFinder"]
