"""Documents of which only some sentences say what the label is about."""

from tacit.text.sentences.problem import Sentences

__all__ = ["Sentences"]
