"""Spectral learning of weighted automata and hidden Markov models: hidden state by algebra instead of EM."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
