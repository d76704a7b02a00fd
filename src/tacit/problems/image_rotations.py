"""Images turned by a few angles: every turn is one sparse matrix, so many images turn by one product."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse, special
from sklearn.base import BaseEstimator

from tacit.arrays import Array

__all__ = ["Rotations", "rotations"]


def rotations(low: float, high: float, count: int, shape: tuple[int, int] | None = None) -> Rotations:
    """Turns by ``count`` angles from ``low`` to ``high`` degrees, evenly spaced: the hidden values of `Transforms`.

    Parameters
    ----------
    low, high : degrees, counter-clockwise as `scipy.ndimage.rotate` counts them
    count : how many
    shape : (height, width) of images that come as flat rows; None for square ones

    >>> rotations(-60, 60, 11).states
    array([-60., -48., -36., -24., -12.,   0.,  12.,  24.,  36.,  48.,  60.])
    """
    if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
        raise ValueError(f"count must be a whole number from 1, got {count!r}")
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"angles run from low to high, in degrees, got low={low!r} and high={high!r}")
    if count == 1 and low != high:
        raise ValueError(f"one angle cannot span {low} to {high}: raise count, or give low = high")
    return Rotations(tuple(np.linspace(low, high, int(count)).tolist()), shape)


class Rotations(BaseEstimator):  # type: ignore[misc]
    """Turns of an image about its middle, by bilinear interpolation, black outside; channels turn together.

    The numbers are those of ``scipy.ndimage.rotate(image, angle, reshape=False, order=1)`` on floats.

    Parameters
    ----------
    angles : degrees
    shape : (height, width) of images that come as flat rows; None for square ones

    >>> Rotations((90.0,)).turned(np.array([[[1.0, 2.0], [3.0, 4.0]]]))
    array([[[[2., 4.],
             [1., 3.]]]])
    """

    def __init__(self, angles: tuple[float, ...], shape: tuple[int, int] | None = None) -> None:
        self.angles = angles
        self.shape = shape

    @property
    def states(self) -> Array:
        """The angles."""
        return np.asarray(self.angles, dtype=np.float64)

    def check(self) -> None:
        """Refuse angles and shapes that cannot be."""
        try:
            angles = np.asarray(self.angles, dtype=np.float64)
        except (TypeError, ValueError):
            angles = np.empty(0)
        if angles.ndim != 1 or not angles.size or not np.isfinite(angles).all():
            raise ValueError(f"angles must be degrees, one or more, such as (-30.0, 0.0, 30.0), got {self.angles!r}")
        if self.shape is not None and (np.shape(self.shape) != (2,) or min(self.shape) < 1):
            raise ValueError(f"shape must be (height, width), got {self.shape!r}")

    def input_shape(self, X: Array) -> tuple[int, ...]:
        """(height, width) or (height, width, channels) of these images, (n, height, width, …) or flat rows."""
        if X.ndim in (3, 4):
            if self.shape is not None and tuple(self.shape) != X.shape[1:3]:
                raise ValueError(f"images of shape {X.shape[1:]}, but rotations(shape={self.shape}); leave out shape")
            return X.shape[1:]
        if X.ndim != 2:
            raise ValueError(
                f"X has shape {X.shape}; images are (n, height, width), (n, height, width, channels) or flat rows"
            )
        side = math.isqrt(X.shape[1])
        height, width = (side, side) if self.shape is None else self.shape
        if height * width != X.shape[1]:
            raise ValueError(
                f"rows of {X.shape[1]} pixels are no image of {height} × {width}; give images as (n, height, width), "
                "or rotations(..., shape=(height, width))"
            )
        return height, width

    def maps(self, shape: tuple[int, ...]) -> list[Any]:
        """One CSR matrix an angle, (numbers, numbers): ``rows @ matrix`` turns flat images of this shape."""
        turns = [_turn(angle, *shape[:2]) for angle in self.angles]
        return [sparse.kron(turn, sparse.eye_array(*shape[2:]), "csr") for turn in turns] if shape[2:] else turns

    def turned(self, X: Array) -> Array:
        """(n, angles, height, width, …): every image at every angle."""
        self.check()
        shape = self.input_shape(X)
        flat = X.reshape(len(X), -1)
        return np.stack([np.asarray(flat @ turn).reshape(len(X), *shape) for turn in self.maps(shape)], axis=1)


def _turn(angle: float, height: int, width: int) -> Any:
    """Where every pixel comes from, in the order of operations of SciPy, so that pixels at the very edge agree."""
    c, s = special.cosdg(angle), special.sindg(angle)
    matrix = np.array([[c, s], [-s, c]])
    middle = (np.array([height, width]) - 1) / 2
    shift = middle - matrix @ middle
    row, column = (part.ravel().astype(np.float64) for part in np.indices((height, width)))
    y = shift[0] + row * matrix[0, 0] + column * matrix[0, 1]
    x = shift[1] + row * matrix[1, 0] + column * matrix[1, 1]
    pixel = np.flatnonzero((y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1))
    y, x = y[pixel], x[pixel]
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    below, right = y - top, x - left
    sources, targets, weights = [], [], []
    for dy, dx, weight in (
        (0, 0, (1 - below) * (1 - right)),
        (0, 1, (1 - below) * right),
        (1, 0, below * (1 - right)),
        (1, 1, below * right),
    ):
        used = weight > 0  # a neighbour past the last row or column has the weight 0
        sources.append(((top + dy) * width + left + dx)[used])
        targets.append(pixel[used])
        weights.append(weight[used])
    places = (np.concatenate(sources), np.concatenate(targets))
    return sparse.csr_array((np.concatenate(weights), places), shape=(height * width, height * width))
