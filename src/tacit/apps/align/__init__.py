"""Word alignment: from parallel text to links."""

from tacit.apps.align.aligner import WordAligner

__all__ = ["WordAligner"]
