"""Weights that belong to pixels, as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.plot.canvas import INK


def images(weights: Array, titles: Sequence[Any], axes: Sequence[Any]) -> None:
    """Weight vectors as images, one per class: blue speaks for the class, red against it.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> images(np.eye(4).reshape(1, 4, 4), ["a"], [plt.subplots()[1]])
    """
    top = float(np.abs(weights).max()) or 1.0
    for ax, image, title in zip(axes, weights, titles, strict=True):
        ax.imshow(image, cmap="RdBu", vmin=-top, vmax=top)
        ax.set_title(str(title), fontsize=10, color=INK)
        ax.set_axis_off()
