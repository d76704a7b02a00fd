"""Images scaled to a longest side."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.vision.photos import pillow


def scaled_size(width: int, height: int, side: int) -> tuple[int, int]:
    """Width and height of an image whose longest side is brought to ``side``.

    >>> scaled_size(320, 240, 160)
    (160, 120)
    """
    factor = side / max(width, height)
    return max(1, round(width * factor)), max(1, round(height * factor))


def scale_image(pixels: Array, side: int) -> Array:
    """Pixels (height, width, 3) of an image, scaled so that its longest side has ``side`` pixels."""
    height, width = pixels.shape[:2]
    size = scaled_size(width, height, side)
    if size == (width, height):
        return pixels
    Image = pillow()
    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(image.resize(size, Image.Resampling.BILINEAR))
