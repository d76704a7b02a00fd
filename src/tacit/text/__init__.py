"""Text: parallel sentences and their word links; documents and the sentences that decide."""

from tacit.text.alignment_measures import AlignmentScores, alignment_scores, symmetrise
from tacit.text.ibm1 import IBM1
from tacit.text.parallel_files import format_links, read_links, read_parallel, write_links
from tacit.text.sentence_vectors import Decision, Reason, SentenceVectors, reasons
from tacit.text.word_pairs import WordPairs

__all__ = [
    "IBM1",
    "AlignmentScores",
    "Decision",
    "Reason",
    "SentenceVectors",
    "WordPairs",
    "alignment_scores",
    "format_links",
    "read_links",
    "read_parallel",
    "reasons",
    "symmetrise",
    "write_links",
]
