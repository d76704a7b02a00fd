"""Spectral learning of weighted automata and hidden Markov models: hidden state by algebra instead of EM."""

from tacit.spectral.automaton import WeightedAutomaton
from tacit.spectral.hidden_markov import HiddenMarkovModel

__all__ = ["HiddenMarkovModel", "WeightedAutomaton"]
