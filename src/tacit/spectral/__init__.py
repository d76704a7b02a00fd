"""Spectral learning of weighted automata and hidden Markov models: hidden state by algebra instead of EM."""

from tacit.spectral.automaton import WeightedAutomaton
from tacit.spectral.baum_welch import EMStep
from tacit.spectral.hidden_markov import HiddenMarkovModel
from tacit.spectral.next_symbol import NextSymbol
from tacit.spectral.spectral_automaton import SpectralAutomaton
from tacit.spectral.spectral_hmm import SpectralHMM

__all__ = ["EMStep", "HiddenMarkovModel", "NextSymbol", "SpectralAutomaton", "SpectralHMM", "WeightedAutomaton"]
