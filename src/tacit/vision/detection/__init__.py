"""Windows on feature maps: a whole-image term, windows with shared and own weights, hidden types of an object."""

from tacit.vision.detection.problem import Detection

__all__ = ["Detection"]
