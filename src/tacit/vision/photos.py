"""Images from files, one at a time or as a folder with one subfolder a class. Needs Pillow, of the extra ``vision``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tacit.data.arrays import Array
from tacit.data.location import find_file, find_folder
from tacit.data.parameters import reason, whole_number
from tacit.data.reading import named

T = TypeVar("T")
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""What is opened, whatever the name of a file says: some of Pillow's other formats start a program to be read."""
ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
MAX_PIXELS = 50_000_000
"""Larger images are refused before they are unpacked: a small file can hold a picture that fills the memory."""


class ImageFiles(NamedTuple):
    """Image files and the class of each: the name of its subfolder."""

    files: list[Path]
    y: Array


def image_folder(folder: str | os.PathLike[str] | None = None, name: str = "images") -> ImageFiles:
    """All images of a folder that has one subfolder per class, sorted by class and file name. None is opened.

    A table of boxes has an order of its own: `join_boxes` brings it into this one.

    Parameters
    ----------
    folder : the folder; None for ``name`` below the folder that the environment variable TACIT_DATA names
    name : of the data set, such as "pets"

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for file in ("cat/1.png", "dog/1.png", "dog/notes.txt"):
    ...         (Path(folder) / file).parent.mkdir(exist_ok=True)
    ...         _ = (Path(folder) / file).write_bytes(b"")
    ...     image_folder(folder).y
    array(['cat', 'dog'], dtype='<U3')
    """
    place = find_folder(folder, name)
    files = [
        file
        for kind in sorted(place.iterdir())
        if kind.is_dir() and not kind.name.startswith(".")
        for file in sorted(kind.iterdir())
        if is_image(file)
    ]
    if not files:
        raise FileNotFoundError(
            f"{named(place)} has no images in subfolders; put them into one folder a class, as {' '.join(ENDINGS)}"
        )
    return ImageFiles(files, np.array([file.parent.name for file in files]))


def is_image(file: Path) -> bool:
    """Whether a file is an image by its name; names that start with a dot are notes of an operating system."""
    return file.suffix.lower() in ENDINGS and not file.name.startswith(".")


def read_image(path: str | os.PathLike[str], max_pixels: int = MAX_PIXELS) -> Array:
    """The pixels of an image: (height, width) or (height, width, channels), uint8, uint16 or float32, as the file has
    them.

    Palettes become colours; of several frames the first is taken; a camera's note of how it was held is not applied,
    so that boxes keep their place. A file that is corrupt, truncated, no image, or larger than ``max_pixels`` is
    refused with its name.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (4, 3), "red").save(f"{folder}/red.png")
    ...     read_image(f"{folder}/red.png").shape
    (3, 4, 3)
    """
    return _opened(path, max_pixels, _pixels)


def read_photo(path: str | os.PathLike[str], max_pixels: int = MAX_PIXELS) -> Array:
    """The pixels of a photo as people see it: (height, width, 3), uint8, turned as the camera noted (EXIF).

    Grey becomes colours, transparent pixels white, 16 bits 8. A note that cannot be read is a warning, and the photo is
    taken as it lies in the file. Otherwise as `read_image`.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     image = Image.new("L", (4, 3))
    ...     exif = image.getexif()
    ...     exif[0x0112] = 6  # held upright
    ...     image.save(f"{folder}/upright.png", exif=exif)
    ...     read_photo(f"{folder}/upright.png").shape
    (4, 3, 3)
    """
    notes: list[str] = []
    pixels = _opened(path, max_pixels, lambda image: _as_photo(image, notes))
    for note in notes:
        warnings.warn(f"{named(os.fspath(path))}: {note}", RuntimeWarning, stacklevel=2)
    return pixels


def _as_photo(image: Any, notes: list[str]) -> Array:
    from PIL import ImageOps

    try:
        turned = ImageOps.exif_transpose(image)
    except Exception as error:  # notes of cameras may hold anything
        notes.append(f"its EXIF notes cannot be read ({reason(error)}); it is taken as it lies in the file")
        turned = image
    pixels = _pixels(turned)
    if pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    elif pixels.dtype != np.uint8:
        low, high = float(pixels.min()), float(pixels.max())
        pixels = np.round(255 * (pixels - low) / max(high - low, 1e-12)).astype(np.uint8)
    if pixels.ndim == 2:
        return np.repeat(pixels[:, :, None], 3, axis=2)
    if pixels.shape[2] in (2, 4):
        alpha = pixels[:, :, -1:] / 255.0
        pixels = np.round(pixels[:, :, :-1] * alpha + 255 * (1 - alpha)).astype(np.uint8)
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else np.ascontiguousarray(pixels[:, :, :3])


def image_size(path: str | os.PathLike[str], max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Width and height of an image from its header alone, under the limits of `read_image`."""
    return _opened(path, max_pixels, lambda image: (int(image.width), int(image.height)))


def _opened(path: str | os.PathLike[str], max_pixels: int, look: Callable[[Any], T]) -> T:
    """What ``look`` finds in an opened image; whatever goes wrong names the file."""
    place = find_file(path, "an image")
    max_pixels = whole_number("max_pixels", max_pixels)
    Image = pillow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(place, formats=FORMATS) as image:
                if image.width * image.height > max_pixels:
                    raise Image.DecompressionBombError(
                        f"{image.width} × {image.height} pixels where max_pixels={max_pixels} allows fewer"
                    )
                return look(image)
        except Image.DecompressionBombError as error:  # ours, or Pillow's own above 179 million pixels
            raise ValueError(f"{named(place)} is too large ({reason(error)}); shrink it") from error
        except MemoryError:
            raise
        except Exception as error:  # decoders raise whatever their format makes them stumble over
            raise ValueError(f"{named(place)} is no image, or a broken one ({reason(error)}); leave it out") from error


def _pixels(image: Any) -> Array:
    if image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode not in ("1", "L", "LA", "RGB", "RGBA", "I", "F") and not image.mode.startswith("I;16"):
        image = image.convert("RGB")
    pixels = np.array(image)
    if pixels.dtype == bool:
        return np.asarray(pixels.astype(np.uint8) * 255)
    if image.mode == "I":  # 16 bits in a wider type
        if pixels.min(initial=0) < 0 or pixels.max(initial=0) > 65535:
            raise ValueError("its grey values exceed 16 bits")
        return pixels.astype(np.uint16)
    return pixels.astype(pixels.dtype.newbyteorder("="))


def pillow() -> Any:
    """Pillow's Image module, or an error that names the extra."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('images need Pillow: pip install "tacit[vision]"') from error
    return Image
