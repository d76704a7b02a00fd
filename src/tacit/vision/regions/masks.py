"""Masks from image files: black and white, indices with or without a palette, soft edges, cut-outs.

Where a file does not say which of its values mean the object, this is an error that lists them; nothing is guessed.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.reading import quote
from tacit.vision.photos import MAX_PIXELS, open_image, read_image

VOID = 255
"""In masks with a palette (Pascal VOC): pixels at the outline, which belong neither to the object nor to the rest."""
SOFT_SHARE = 0.9
"""Share of pixels near black or white above which grey values between them are soft edges, as JPEG leaves them."""
SOFT = 0.1
"""What is near, as a share of the range."""
MAX_LISTED = 8


def read_mask(path: Path, max_pixels: int = MAX_PIXELS, objects: Collection[int] | None = None) -> Array:
    """Which pixels of a mask are object, (height, width).

    Parameters
    ----------
    path : the image
    max_pixels : larger files are refused before they are unpacked
    objects : the values that mean the object; None where the mask has two, or one beside 0
    """
    values = read_mask_values(path, max_pixels)
    return np.isin(values, list(object_values({path.name: list_values(values)}, objects)))


def read_mask_values(path: Path, max_pixels: int = MAX_PIXELS) -> Array:
    """The value of every pixel: the index, where there is a palette; 0 or 255 where the mask is soft or a cut-out."""
    mode, indices = open_image(path, max_pixels, lambda image: (image.mode, _indices(image)))
    if indices is not None:
        values = np.asarray(indices)
        is_void = values == VOID
        if is_void.any() and len(np.unique(values[~is_void])) > 1:
            warnings.warn(
                f"{quote(path)} has void pixels ({VOID}), which count as outside", RuntimeWarning, stacklevel=3
            )
            return np.asarray(np.where(is_void, 0, values))
        return values
    pixels = read_image(path, max_pixels)
    if pixels.dtype.kind == "f":
        pixels = np.round(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    top = int(np.iinfo(pixels.dtype).max)
    if pixels.ndim == 3 and pixels.shape[2] in (2, 4):
        if (pixels[:, :, -1] != top).any():  # a cut-out: what is transparent is outside
            return np.where(pixels[:, :, -1] > top / 2, 255, 0)
        pixels = pixels[:, :, :-1]
    if pixels.ndim == 3 and pixels.shape[2] == 3:
        pixels = _one_channel(pixels, path)
    values = pixels.reshape(pixels.shape[:2])
    if mode != "1" and _is_soft(values, top):
        return np.where(values > top / 2, 255, 0)
    return np.asarray(values)


def _is_soft(values: Array, top: int) -> bool:
    """Whether a mask is black and white with soft edges: few pixels between, of many values all over the range."""
    if values.max() < (1 - SOFT) * top or values.min() > SOFT * top:
        return False
    between = values[(values > SOFT * top) & (values < (1 - SOFT) * top)]
    if not between.size or between.size > (1 - SOFT_SHARE) * values.size:
        return False
    is_all_over = between.min() < top / 2 < between.max()
    return bool(is_all_over and len(np.unique(values)) > MAX_LISTED)


def _indices(image: Any) -> Array | None:
    return np.array(image) if image.mode == "P" else None


def _one_channel(pixels: Array, path: Path) -> Array:
    """Grey values of three channels; of two colours, which one is black, the other is the object."""
    if (pixels == pixels[:, :, :1]).all():
        return np.asarray(pixels[:, :, 0])
    colours = np.unique(pixels.reshape(-1, 3), axis=0)
    if len(colours) == 2 and not colours[0].any():
        return np.where(pixels.any(axis=2), 255, 0)
    shown = ", ".join(str(tuple(colour)) for colour in colours[:MAX_LISTED].tolist())
    shown += ", …" if len(colours) > MAX_LISTED else ""
    raise ValueError(f"{quote(path)} is a mask of {len(colours)} colours ({shown}); save it with a palette or in grey")


def list_values(values: Array) -> set[int]:
    """The different values of a mask."""
    return {int(value) for value in np.unique(values)}


def object_values(found: Mapping[str, set[int]], objects: Collection[int] | None = None) -> set[int]:
    """The values of masks that mean the object.

    Parameters
    ----------
    found : the values of every mask, by the name of its file
    objects : as given by the user; None to take the only value beside 0

    >>> object_values({"a.png": {0, 1}, "b.png": {0}})
    {1}
    >>> object_values({"a.png": {1, 2, 3}}, [1])
    {1}
    >>> object_values({"a.png": {0, 1}, "b.png": {0, 2}})
    Traceback (most recent call last):
    ValueError: masks have the values 1 (a.png), 2 (b.png) beside 0; say which of them mean the object (--object 1,2)
    """
    present: dict[int, str] = {}
    for name, values in found.items():
        for value in sorted(values):
            present.setdefault(value, name)
    if objects is not None:
        wanted = {int(value) for value in objects}
        missing = sorted(wanted - set(present))
        if missing:
            shown = ", ".join(map(str, sorted(present)[:MAX_LISTED]))
            raise ValueError(f"no mask has the value {missing[0]} of --object; masks have {shown}")
        return wanted
    beside = sorted(value for value in present if value)
    if len(beside) > 1:
        shown = ", ".join(f"{value} ({present[value]})" for value in beside[:MAX_LISTED])
        more = ", …" if len(beside) > MAX_LISTED else ""
        choice = ",".join(map(str, beside[:2]))
        raise ValueError(
            f"masks have the values {shown}{more} beside 0; say which of them mean the object (--object {choice})"
        )
    return set(beside)
