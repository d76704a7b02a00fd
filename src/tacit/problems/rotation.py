"""Images rotated by a few angles: a rotation is one sparse matrix, so many images are rotated by one product."""

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
    """Rotations by ``count`` angles from ``low`` to ``high`` degrees, evenly spaced: the hidden values of `Transforms`.

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
        raise ValueError(f"low must not be above high, got low={shorten(low)} and high={shorten(high)} degrees")
    if count == 1 and low != high:
        raise ValueError(f"count=1 needs low = high, got low={low} and high={high}; raise count, or give one angle")
    found = Rotations(tuple(np.linspace(low, high, count).tolist()), shape)
    found.check()
    return found


@storable
@estimator
class Rotations(BaseEstimator):  # type: ignore[misc]
    """Rotations of an image about its middle, by bilinear interpolation, black outside; channels rotate together.

    The numbers are those of ``scipy.ndimage.rotate(image, angle, reshape=False, order=1)`` on floats.

    Parameters
    ----------
    angles : degrees
    shape : (height, width) of images that come as flat rows; None for square ones

    >>> Rotations((90.0,)).rotate(np.array([[[1.0, 2.0], [3.0, 4.0]]]))
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
        """Refuse angles and shapes that are not valid."""
        try:
            angles = np.asarray(self.angles, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            angles = np.empty(0)
        if angles.ndim != 1 or not 0 < angles.size <= MAX_ANGLES or not np.isfinite(angles).all():
            raise ValueError(f"angles must be 1 to {MAX_ANGLES} finite numbers (degrees), got {shorten(self.angles)}")
        self._read_shape()

    def _read_shape(self) -> tuple[int, int] | None:
        if self.shape is None:
            return None
        if not isinstance(self.shape, tuple | list) or len(self.shape) != 2 or not all(map(is_whole, self.shape)):
            raise ValueError(f"shape must be (height, width), got {shorten(self.shape)}")
        return whole_number("height", self.shape[0]), whole_number("width", self.shape[1])

    def input_shape(self, X: Array) -> tuple[int, ...]:
        """(height, width) or (height, width, channels) of these images, (n, height, width, …) or flat rows."""
        given = self._read_shape()
        if X.ndim in (3, 4):
            if given is not None and given != X.shape[1:3]:
                raise ValueError(f"images are {X.shape[1:3]}, but rotations has shape={given}; leave out shape=")
            return X.shape[1:]
        if X.ndim != 2:
            raise ValueError(f"images must be (n, height, width), (n, height, width, channels) or rows, got {X.shape}")
        side = math.isqrt(X.shape[1])
        height, width = given or (side, side)
        if height * width != X.shape[1]:
            raise ValueError(f"rows of {X.shape[1]} pixels are not {height} × {width} images; give rotations(shape=)")
        return height, width

    def maps(self, shape: tuple[int, ...]) -> list[Any]:
        """One CSR matrix per angle, (numbers, numbers): ``rows @ matrix`` rotates flat images of this shape."""
        maps = [_rotation_matrix(angle, *shape[:2]) for angle in self.angles]
        return [sparse.kron(one, sparse.eye_array(*shape[2:]), "csr") for one in maps] if shape[2:] else maps

    def rotate(self, X: Array) -> Array:
        """(n, angles, height, width, …): every image at every angle."""
        self.check()
        shape = self.input_shape(X)
        flat = X.reshape(len(X), -1)
        return np.stack([np.asarray(flat @ one).reshape(len(X), *shape) for one in self.maps(shape)], axis=1)


def _rotation_matrix(angle: float, height: int, width: int) -> Any:
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
    sources, targets, shares = [], [], []
    for dy, dx, share in (
        (0, 0, (1 - below) * (1 - right)),
        (0, 1, (1 - below) * right),
        (1, 0, below * (1 - right)),
        (1, 1, below * right),
    ):
        used = share > 0  # a neighbour past the last row or column has the share 0
        sources.append(((top + dy) * width + left + dx)[used])
        targets.append(pixel[used])
        shares.append(share[used])
    pairs = (np.concatenate(sources), np.concatenate(targets))
    return sparse.csr_array((np.concatenate(shares), pairs), shape=(height * width, height * width))
