"""`tacit.vision.boxes` under its short name."""

from tacit.vision.boxes import *  # noqa: F403
