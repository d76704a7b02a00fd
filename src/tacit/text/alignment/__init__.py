"""Word alignment: a matching between the words of two sentences."""

from tacit.text.alignment.problem import Alignment

__all__ = ["Alignment"]
