"""Text: part-of-speech and entity tagging, coreference resolution, word alignment, and rationales of labels."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
