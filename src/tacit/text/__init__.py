"""Text: parallel sentences and their word links."""

from tacit.text.alignment_measures import AlignmentScores, alignment_scores, symmetrise
from tacit.text.ibm1 import IBM1
from tacit.text.parallel_files import format_links, read_links, read_parallel, write_links

__all__ = [
    "IBM1",
    "AlignmentScores",
    "alignment_scores",
    "format_links",
    "read_links",
    "read_parallel",
    "symmetrise",
    "write_links",
]
