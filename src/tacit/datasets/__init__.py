"""Readers of public formats, and small generators."""

from tacit.datasets.dna import planted_motif, uniprobe

__all__ = ["planted_motif", "uniprobe"]
