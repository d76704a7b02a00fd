"""Segmentation from a few masks and many weak labels."""

from tacit.vision.segmenter.fill_boxes import FilledBoxes, fill_boxes
from tacit.vision.segmenter.segmenter import Segmenter

__all__ = ["FilledBoxes", "Segmenter", "fill_boxes"]
