"""Digits drawn with a shaky pen, each turned by an angle of its own: images whose hidden turn is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import number, whole_number
from tacit.data.reading import MAX_BYTES

SHORTEST_SIDE = 12
"""Pixels below which a digit cannot be told from another."""
POINTS = 24
"""Points along a stroke, close enough to be one line."""
ROOM = 1.25
"""Width of the image where the square of the strokes is 1: corners that turn outward stay inside."""


class DrawnDigits(NamedTuple):
    """Images (n, side, side) of grey values from 0 to 1, digits 0 to 9, and degrees by which each image was turned.

    Angles count counter-clockwise, as `scipy.ndimage.rotate` and `tacit.problems.rotations` count them: turning image
    i by ``−angles[i]`` brings it upright.
    """

    X: Array
    y: Array
    angles: Array


def drawn_digits(n: int, *, side: int = 32, turn: float = 60.0, seed: int = 0) -> DrawnDigits:
    """Digits from 0 to 9 in turn, drawn with a pen of random width, slant, size and shake, then turned.

    Nothing is downloaded or rotated pixel by pixel: strokes are turned before they are drawn, so images are sharp.

    Parameters
    ----------
    n : how many images
    side : pixels across and down
    turn : angles are drawn uniformly from −turn to turn degrees

    >>> X, y, angles = drawn_digits(20, seed=0)
    >>> X.shape, y[:5], bool(np.abs(angles).max() <= 60)
    ((20, 32, 32), array([0, 1, 2, 3, 4]), True)
    """
    n, side = whole_number("n", n, 1, MAX_BYTES), whole_number("side", side, SHORTEST_SIDE, MAX_BYTES)
    if 8 * n * side**2 > MAX_BYTES:
        raise ValueError(f"{n} images of {side} × {side} pixels take more than {MAX_BYTES} bytes; draw them in parts")
    turn = number("turn", turn, "degrees from 0 to 180", lambda degrees: 0 <= degrees <= 180)
    rng = np.random.default_rng(whole_number("seed", seed, 0))
    y = np.arange(n) % 10
    angles = rng.uniform(-turn, turn, len(y)) if turn else np.zeros(len(y))
    shapes = [np.concatenate(strokes) for strokes in _STROKES]
    images = [_draw(_shake(shapes[digit], angle, rng), side, rng) for digit, angle in zip(y, angles, strict=True)]
    return DrawnDigits(np.array(images), y, angles)


def _shake(points: Array, angle: float, rng: np.random.Generator) -> Array:
    """A digit as one hand draws it: smooth waves move its points, it is scaled and slanted, and turned at last."""
    phase = rng.uniform(0, 2, 2)
    moved = points - 0.5 + np.sin(np.pi * (2 * points + phase)) @ rng.normal(0, 0.035, (2, 2))
    slant = np.array([[rng.uniform(0.8, 1.1), 0.0], [rng.normal(0, 0.12), rng.uniform(0.85, 1.1)]])
    c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    turn = np.array([[c, -s], [s, c]])  # counter-clockwise on the page, where y points down
    return np.asarray(moved @ slant @ turn + rng.normal(0, 0.015, 2))


def _draw(points: Array, side: int, rng: np.random.Generator) -> Array:
    """Grey values by the distance of each pixel from the pen's way; (0, 0) is the middle of the image."""
    middle = ROOM * ((np.arange(side) + 0.5) / side - 0.5)
    across, down = ((middle[:, None] - part) ** 2 for part in points.T)
    distance = np.sqrt((down[:, None, :] + across[None, :, :]).min(axis=2))
    grey: Array = np.clip((rng.uniform(0.035, 0.06) - distance) * side / ROOM + 0.5, 0.0, 1.0)
    return grey


def _line(x0: float, y0: float, x1: float, y1: float) -> Array:
    return np.linspace([x0, y0], [x1, y1], POINTS)


def _arc(x: float, y: float, across: float, down: float, start: float, end: float) -> Array:
    """Part of an ellipse, in degrees from three o'clock, clockwise on the page as y points down."""
    angle = np.deg2rad(np.linspace(start, end, POINTS))
    return np.column_stack([x + across * np.cos(angle), y + down * np.sin(angle)])


_STROKES: list[list[Array]] = [
    [_arc(0.5, 0.5, 0.25, 0.36, 0, 180), _arc(0.5, 0.5, 0.25, 0.36, 180, 360)],
    [_line(0.36, 0.28, 0.54, 0.14), _line(0.54, 0.14, 0.54, 0.86)],
    [_arc(0.5, 0.34, 0.23, 0.2, 180, 390), _line(0.7, 0.44, 0.27, 0.86), _line(0.27, 0.86, 0.76, 0.86)],
    [_arc(0.46, 0.32, 0.22, 0.18, 210, 450), _arc(0.46, 0.68, 0.26, 0.18, 270, 500)],
    [_line(0.6, 0.14, 0.24, 0.6), _line(0.24, 0.6, 0.78, 0.6), _line(0.6, 0.14, 0.6, 0.86)],
    [_line(0.72, 0.14, 0.34, 0.14), _line(0.34, 0.14, 0.31, 0.46), _arc(0.48, 0.64, 0.25, 0.22, 230, 500)],
    [_arc(0.78, 0.66, 0.52, 0.54, 180, 260), _arc(0.5, 0.66, 0.23, 0.2, 0, 180), _arc(0.5, 0.66, 0.23, 0.2, 180, 360)],
    [_line(0.25, 0.14, 0.76, 0.14), _line(0.76, 0.14, 0.42, 0.86)],
    [_arc(0.5, 0.32, 0.19, 0.18, 0, 360), _arc(0.5, 0.68, 0.24, 0.18, 0, 180), _arc(0.5, 0.68, 0.24, 0.18, 180, 360)],
    [_arc(0.5, 0.35, 0.22, 0.2, 0, 180), _arc(0.5, 0.35, 0.22, 0.2, 180, 360), _line(0.72, 0.35, 0.62, 0.86)],
]
"""The strokes of 0 to 9 in a square from (0, 0), the upper left corner, to (1, 1)."""
