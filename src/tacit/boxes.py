"""`tacit.vision.boxes` under its short name."""

from tacit.vision.boxes import *  # noqa: F403
from tacit.vision.boxes import __all__ as __all__
