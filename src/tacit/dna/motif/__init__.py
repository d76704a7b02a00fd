"""DNA motifs: the problem, its inference, its compiled loops, where to start, and sequences as users write them."""

from tacit.dna.motif.problem import Motif

__all__ = ["Motif"]
