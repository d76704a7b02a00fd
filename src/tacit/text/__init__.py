"""Text: parallel sentences and their word links."""

from tacit.text.alignment_measures import AlignmentScores, alignment_scores, symmetrise
from tacit.text.ibm1 import IBM1
from tacit.text.parallel_files import format_links, read_links, read_parallel, write_links
from tacit.text.word_pairs import WordPairs

__all__ = [
    "IBM1",
    "AlignmentScores",
    "WordPairs",
    "alignment_scores",
    "format_links",
    "read_links",
    "read_parallel",
    "symmetrise",
    "write_links",
]
