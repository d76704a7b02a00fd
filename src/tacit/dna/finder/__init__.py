"""Motifs in DNA: found, tested on sequences that were held out, compared with known ones, looked for in others."""

from tacit.dna.finder.finder import MotifFinder

__all__ = ["MotifFinder"]
