"""Segmentation from a few masks and many weak labels."""

from tacit.apps.segmenter.segmenter import Segmenter

__all__ = ["Segmenter"]
