"""Spectral learning of weighted automata and hidden Markov models: hidden state by algebra instead of EM."""

from tacit.spectral.automaton import WeightedAutomaton
from tacit.spectral.baum_welch import EMStep
from tacit.spectral.hidden_markov import HiddenMarkovModel
from tacit.spectral.next_symbol import NextSymbol
from tacit.spectral.spectral_automaton import SpectralAutomaton
from tacit.spectral.spectral_hmm import SpectralHMM
from tacit.spectral.spectral_tagger import SpectralTagger
from tacit.spectral.vocabulary import FeatureClusters, HashedSymbols, RareWords

__all__ = [
    "EMStep",
    "FeatureClusters",
    "HashedSymbols",
    "HiddenMarkovModel",
    "NextSymbol",
    "RareWords",
    "SpectralAutomaton",
    "SpectralHMM",
    "SpectralTagger",
    "WeightedAutomaton",
]
