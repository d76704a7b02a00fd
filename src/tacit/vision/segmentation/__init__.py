"""Segmenter, the segmentation into classes, and `tacit segment`."""
