"""Images turned by a few angles: every turn is one sparse matrix, so many images turn by one product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse, special
from sklearn.base import BaseEstimator

from tacit.data.arrays import Array
from tacit.data.parameters import is_whole, number, shorten, whole_number
from tacit.data.specs import estimator
from tacit.runtime.archive import storable

__all__ = ["Rotations", "rotations"]

MAX_ANGLES = 10_000


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
    count = whole_number("count", count, 1, MAX_ANGLES, remedy="every angle is a view of every sample")
    low, high = number("low", low, "an angle in degrees"), number("high", high, "an angle in degrees")
    if low > high:
        raise ValueError(f"angles run from low to high, in degrees, got low={shorten(low)} and high={shorten(high)}")
    if count == 1 and low != high:
        raise ValueError(f"one angle cannot span {low} to {high}: raise count, or give low = high")
    turns = Rotations(tuple(np.linspace(low, high, count).tolist()), shape)
    turns.check()
    return turns


@storable
@estimator
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

    angles: tuple[float, ...]
    shape: tuple[int, int] | None = None

    @property
    def states(self) -> Array:
        """The angles."""
        return np.asarray(self.angles, dtype=np.float64)

    def check(self) -> None:
        """Refuse angles and shapes that cannot be."""
        try:
            angles = np.asarray(self.angles, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            angles = np.empty(0)
        if angles.ndim != 1 or not 0 < angles.size <= MAX_ANGLES or not np.isfinite(angles).all():
            raise ValueError(
                f"angles must be degrees, one to {MAX_ANGLES} of them, such as (-30.0, 0.0, 30.0), got "
                f"{shorten(self.angles)}"
            )
        self._given_shape()

    def _given_shape(self) -> tuple[int, int] | None:
        if self.shape is None:
            return None
        if not isinstance(self.shape, tuple | list) or len(self.shape) != 2 or not all(map(is_whole, self.shape)):
            raise ValueError(f"shape must be (height, width), got {shorten(self.shape)}")
        return whole_number("height", self.shape[0]), whole_number("width", self.shape[1])

    def input_shape(self, X: Array) -> tuple[int, ...]:
        """(height, width) or (height, width, channels) of these images, (n, height, width, …) or flat rows."""
        given = self._given_shape()
        if X.ndim in (3, 4):
            if given is not None and given != X.shape[1:3]:
                raise ValueError(f"images of shape {X.shape[1:]}, but rotations(shape={given}); leave out shape")
            return X.shape[1:]
        if X.ndim != 2:
            raise ValueError(
                f"X has shape {X.shape}; images are (n, height, width), (n, height, width, channels) or flat rows"
            )
        side = math.isqrt(X.shape[1])
        height, width = given or (side, side)
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
