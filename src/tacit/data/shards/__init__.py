"""Samples in shards on disk, for data that outgrow memory."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
