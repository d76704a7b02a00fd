"""Text: mentions and who is who; parallel sentences and the links of their words; sentences that decide."""

from tacit.text.alignment_measures import AlignmentScores, alignment_scores, symmetrise
from tacit.text.conll import read_conll, write_conll
from tacit.text.documents import Document
from tacit.text.ibm1 import IBM1
from tacit.text.json_files import read_json, write_json
from tacit.text.mention_pairs import mention_pairs
from tacit.text.pairs import MentionPairs
from tacit.text.parallel_files import format_links, read_links, read_parallel, write_links
from tacit.text.scores import CoreferenceScores, Score, coreference_scores
from tacit.text.sentence_vectors import Decision, Reason, SentenceVectors, reasons
from tacit.text.word_pairs import WordPairs

__all__ = [
    "IBM1",
    "AlignmentScores",
    "CoreferenceScores",
    "Decision",
    "Document",
    "MentionPairs",
    "Reason",
    "Score",
    "SentenceVectors",
    "WordPairs",
    "alignment_scores",
    "coreference_scores",
    "format_links",
    "mention_pairs",
    "read_conll",
    "read_json",
    "read_links",
    "read_parallel",
    "reasons",
    "symmetrise",
    "write_conll",
    "write_json",
    "write_links",
]
