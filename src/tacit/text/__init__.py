"""Text with mentions: documents, their files, pair features, and measures of coreference."""

from tacit.text.conll import read_conll, write_conll
from tacit.text.documents import Document
from tacit.text.json_files import read_json, write_json
from tacit.text.mention_pairs import mention_pairs
from tacit.text.pairs import MentionPairs
from tacit.text.scores import CoreferenceScores, Score, coreference_scores

__all__ = [
    "CoreferenceScores",
    "Document",
    "MentionPairs",
    "Score",
    "coreference_scores",
    "mention_pairs",
    "read_conll",
    "read_json",
    "write_conll",
    "write_json",
]
