"""Containers and checks: bags and sequences, samples in files, labels, parameters, compiled loops."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
