"""Where objects are in photos, from labels alone or from a few drawn boxes: what is behind ``tacit locate``."""

from tacit.vision.locator.locator import Locator

__all__ = ["Locator"]
