"""Documents of which only some sentences say what the label is about."""

from tacit.problems.sentences.problem import Sentences

__all__ = ["Sentences"]
