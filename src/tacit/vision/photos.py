"""Images from files and arrays: folders, pixels, sizes, colours; descriptions of many images, and their cache.

Files need Pillow, of the extra ``vision``.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import effective_n_jobs

from tacit.data.arrays import Array
from tacit.data.parameters import even_table, file_path, is_list, reason, shorten, whole_number
from tacit.data.reading import find_file, find_folder, find_path, quote
from tacit.runtime import Progress
from tacit.runtime.archive import StorageError, read_archive, remove_unfinished, write_archive
from tacit.runtime.blocks import check_jobs

T = TypeVar("T")
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""Formats that are opened, whatever the ending of a file: some of Pillow's other formats start a program."""
ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
OTHER_ENDINGS = (".avif", ".heic", ".heif", ".jp2", ".j2k", ".jxl", ".cr2", ".nef", ".arw", ".dng")
"""Endings of photos in formats that are not read, which are named, not passed over in silence."""
MAX_PIXELS = 50_000_000
"""Larger images are refused before they are unpacked: a small file can unpack to an image that fills the memory."""
MAX_PIXEL_VALUE = 1e6
STRIP_PIXELS = 1 << 20
"""Pixels that are converted at a time."""


class ImageFiles(NamedTuple):
    """Image files and the class of each: the name of its subfolder."""

    files: list[Path]
    y: Array


def image_folder(folder: str | os.PathLike[str] | None = None, name: str = "images") -> ImageFiles:
    """All images of a folder that has one subfolder per class, sorted by class and file name. None is opened.

    Images in folders inside of a subfolder belong to its class.

    `join_boxes` brings a table of boxes into this order.

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
    path = find_folder(folder, name)
    kinds = [kind for kind in sorted(path.iterdir()) if kind.is_dir() and not kind.name.startswith(".")]
    by_kind = {kind.name: list_images(kind, is_deep=True) for kind in kinds}
    files = [file for own in by_kind.values() for file in own]
    if not files:
        others = unreadable_images(path)
        what = f"; {' '.join(others)} files must be converted to .jpg or .png first" if others else ""
        raise FileNotFoundError(
            f"{quote(path)} contains no subfolders with images; make one subfolder per class, with {' '.join(ENDINGS)}"
            f"{what}"
        )
    return ImageFiles(files, np.array([name for name, own in by_kind.items() for _ in own]))


def list_images(folder: Path, is_deep: bool = False) -> list[Path]:
    """The images of a folder itself, sorted by name; with ``is_deep``, also those of folders in it."""
    return sorted(file for file in (folder.rglob("*") if is_deep else folder.iterdir()) if is_image(file))


def unreadable_images(folder: Path) -> list[str]:
    """The endings of images in a folder, at any depth, whose formats are not read: AVIF, HEIC, JPEG 2000, raw."""
    found = {file.suffix.lower() for file in folder.rglob("*") if not file.name.startswith(".")}
    return sorted(found & set(OTHER_ENDINGS))


def is_image(file: Path) -> bool:
    """Whether a file is an image by its name; names that start with a dot are hidden files."""
    return file.suffix.lower() in ENDINGS and not file.name.startswith(".")


def read_image(path: str | os.PathLike[str], max_pixels: int = MAX_PIXELS) -> Array:
    """The pixels of an image as stored: (height, width) or (height, width, channels), uint8, uint16 or float32.

    Palettes become colours; of several frames the first is taken. EXIF orientation is not applied, so that boxes stay
    valid. A file that is corrupt, truncated, not an image, or larger than ``max_pixels`` is refused by name.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (4, 3), "red").save(f"{folder}/red.png")
    ...     read_image(f"{folder}/red.png").shape
    (3, 4, 3)
    """
    return open_image(path, max_pixels, _pixels)


def read_photo(path: str | os.PathLike[str], max_pixels: int = MAX_PIXELS) -> Array:
    """The pixels of a photo as viewers show it: (height, width, 3), uint8. EXIF orientation is applied.

    Grey becomes RGB, transparent pixels white, 16 bits 8. Unreadable EXIF data give a warning, and the photo is not
    rotated. Otherwise as `read_image`.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     image = Image.new("L", (4, 3))
    ...     exif = image.getexif()
    ...     exif[0x0112] = 6  # rotate by 90°
    ...     image.save(f"{folder}/upright.png", exif=exif)
    ...     read_photo(f"{folder}/upright.png").shape
    (4, 3, 3)
    """
    notes: list[str] = []
    pixels = open_image(path, max_pixels, lambda image: _as_photo(image, notes))
    for note in notes:
        warnings.warn(f"{quote(os.fspath(path))}: {note}", RuntimeWarning, stacklevel=2)
    return pixels


def photo_pixels(source: Any, name: str = "the image", max_pixels: int = MAX_PIXELS) -> Array:
    """The pixels of an array or of a file as those of a photo: (height, width, 3), uint8."""
    return as_uint8(source, name) if isinstance(source, np.ndarray) else read_photo(source, max_pixels)


def _as_photo(image: Any, notes: list[str]) -> Array:
    from PIL import ImageOps

    try:
        rotated = ImageOps.exif_transpose(image)
    except Exception as error:  # EXIF data may contain anything
        notes.append(f"the EXIF orientation cannot be read ({reason(error)}); the photo is not rotated")
        rotated = image
    pixels = _pixels(rotated)
    if pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    elif pixels.dtype != np.uint8:
        low, high = float(pixels.min()), float(pixels.max())
        pixels = np.round(255 * (pixels - low) / max(high - low, 1e-12)).astype(np.uint8)
    if pixels.ndim == 2:
        return np.repeat(pixels[:, :, None], 3, axis=2)
    if pixels.shape[2] in (2, 4):
        pixels = _convert_strips(pixels, _blend)
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else np.ascontiguousarray(pixels[:, :, :3])


def _blend(pixels: Array) -> Array:
    """Pixels of 8 bits on a white ground; the last channel is how opaque they are."""
    alpha = pixels[:, :, -1:] / 255.0
    return np.asarray(np.round(pixels[:, :, :-1] * alpha + 255 * (1 - alpha)).astype(np.uint8))


def _convert_strips(pixels: Array, convert: Callable[[Array], Array]) -> Array:
    """What ``convert`` makes of the pixels, a few rows at a time, so that tables in between stay small."""
    step = max(1, STRIP_PIXELS // max(1, pixels.shape[1]))
    first = convert(pixels[:step])
    if step >= len(pixels):
        return first
    out = np.empty((len(pixels), *first.shape[1:]), dtype=first.dtype)
    out[:step] = first
    for start in range(step, len(pixels), step):
        out[start : start + step] = convert(pixels[start : start + step])
    return out


def image_size(path: str | os.PathLike[str], max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Width and height of an image from its header alone, under the limits of `read_image`."""
    return open_image(path, max_pixels, lambda image: (int(image.width), int(image.height)))


def open_image(path: str | os.PathLike[str], max_pixels: int, read: Callable[[Any], T]) -> T:
    """What ``read`` returns for the opened image of Pillow; all errors name the file."""
    file = find_file(path, "an image")
    max_pixels = whole_number("max_pixels", max_pixels)
    Image = pillow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(file, formats=FORMATS) as image:
                if image.width * image.height > max_pixels:
                    size = f"{image.width} × {image.height} pixels"
                    raise Image.DecompressionBombError(f"{size} are more than max_pixels={max_pixels}")
                return read(image)
        except Image.DecompressionBombError as error:  # ours, or Pillow's own above 179 million pixels
            raise ValueError(f"{quote(file)} is too large ({reason(error)}); shrink it") from error
        except MemoryError:
            raise
        except Exception as error:  # decoders raise exceptions of many types
            raise ValueError(f"{quote(file)} is not a valid image ({reason(error)}); remove it") from error


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


def image_sources(images: Any) -> list[Any]:
    """Arrays and paths, one per image: of an array, a path, a folder, or a list of arrays and paths."""
    if isinstance(images, np.ndarray):
        if images.ndim not in (2, 3):
            raise ValueError(
                f"an image must be (height, width) or (height, width, channels), got shape {images.shape}; "
                "give several images as list(images)"
            )
        return [images]
    if isinstance(images, (str, os.PathLike)):
        path = find_path(images)
        return [path] if not os.path.isdir(path) else list_images(path) or image_folder(path).files
    if not is_list(images):
        raise TypeError(f"images must be an array, a path or a list of them, got {shorten(images)}")
    sources = list(images)
    wrong = [i for i, s in enumerate(sources) if not isinstance(s, (str, os.PathLike, np.ndarray))]
    if wrong:
        raise TypeError(f"image {wrong[0]} must be an array or a path, got {type(sources[wrong[0]]).__name__}")
    if not sources:
        raise ValueError("images must have at least one image, got an empty list")
    return sources


def describe_images(
    images: Any, describe: Callable[[Any, str], T], what: str, n_jobs: int | None = None, verbose: int = 1
) -> Iterator[T]:
    """What ``describe(source, name)`` returns for every image, in order, with progress.

    Threads share the images; only a few results wait at any time, so that all images need not fit into memory.
    """
    check_jobs(n_jobs)
    sources, jobs = image_sources(images), effective_n_jobs(n_jobs)
    progress, began = Progress(verbose, len(sources)), time.perf_counter()

    def answers() -> Iterator[T]:
        names = [f"image {i}" if isinstance(s, np.ndarray) else repr(str(s)) for i, s in enumerate(sources)]
        if jobs == 1:
            yield from map(describe, sources, names)
            return
        with ThreadPoolExecutor(jobs) as pool:
            ahead: deque[Future[T]] = deque()
            for source, name in zip(sources, names, strict=True):
                ahead.append(pool.submit(describe, source, name))
                if len(ahead) > 2 * jobs:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    try:
        for i, found in enumerate(answers()):
            progress.show(time.perf_counter() - began, i + 1, what)
            yield found
    finally:
        progress.close()


def read_cached(
    folder: Path | None,
    kind: str,
    settings: str,
    pixels: Array,
    name: str,
    make: Callable[[], dict[str, Array]],
    check: Callable[[dict[str, Array]], None],
) -> dict[str, Array]:
    """The description of an image, from a cache with checksums of pixels and settings as keys; else made and kept.

    Parameters
    ----------
    folder : of the cache; None for no cache
    kind : of the file, and the ending of its name
    settings : all that the numbers depend on beside the pixels
    pixels, name : of the image
    make : describes the image by named arrays
    check : raises a `StorageError` or a KeyError for arrays that cannot describe an image
    """
    if folder is None:
        return make()
    key = hashlib.sha256(settings.encode() + pixels.tobytes()).hexdigest()[:40]
    kept = folder / f"{key}.{kind}"
    if os.path.exists(kept):
        try:
            found = read_archive(kept, kind)[1]
            check(found)
            return found
        except (StorageError, KeyError) as error:
            message = f"the cached {kind} of {name} cannot be read and is computed again ({reason(error)})"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
    found = make()
    write_archive(kept, kind, {"image": name}, found)
    return found


def cache_folder(cache: str | os.PathLike[str] | None) -> Path | None:
    """The folder of a cache, created where it is missing; None for no cache."""
    if cache is None:
        return None
    folder = make_folder("cache", cache)
    remove_unfinished(folder)
    return folder


def make_folder(name: str, path: str | os.PathLike[str]) -> Path:
    """The folder that a parameter names, created where it is missing."""
    folder = file_path(name, path)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise ValueError(f"{name}={shorten(str(folder))} is a file, but must be a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder {name}={shorten(str(folder))} cannot be created: {error.strerror}"
        raise OSError(error.errno, message) from error
    return folder


def as_grey(image: Array, name: str = "the image") -> Array:
    """Grey values in [0, 1], (height, width), from grey or colours, with or without alpha, of 1, 8, 16 bits or floats.

    >>> as_grey(np.array([[[255, 0, 0, 255], [255, 0, 0, 0]]], np.uint8)).round(3)
    array([[0.212, 1.   ]])
    """
    image = check_image(image, name)
    return _convert_strips(image, lambda strip: _grey_of(strip, name))


def _grey_of(image: Array, name: str) -> Array:
    colours, alpha = _unit_pixels(image, name)
    if colours.ndim == 2:
        return colours
    grey = colours @ np.array([0.2125, 0.7154, 0.0721]) if colours.shape[2] == 3 else colours[:, :, 0]
    return np.asarray(grey if alpha is None else grey * alpha + (1 - alpha))


def as_colours(image: Array, name: str = "the image") -> Array:
    """(height, width, 3) in [0, 1], from grey or colours of 1, 8, 16 bits or floats; transparent pixels are white.

    >>> as_colours(np.array([[0, 255]], np.uint8))[0].tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    image = check_image(image, name)
    return _convert_strips(image, lambda strip: _colours_of(strip, name))


def _colours_of(image: Array, name: str) -> Array:
    if image.ndim != 3 or image.shape[2] < 3:
        return np.asarray(np.clip(np.repeat(_grey_of(image, name)[:, :, None], 3, axis=2), 0, 1))
    colours, alpha = _unit_pixels(image, name)
    return np.clip(colours if alpha is None else colours * alpha[:, :, None] + (1 - alpha[:, :, None]), 0, 1)


def as_uint8(image: Array, name: str = "the image") -> Array:
    """`as_colours` in 8 bits, from 0 to 255."""
    image = check_image(image, name)
    if image.ndim == 3 and image.shape[2] == 3 and image.dtype == np.uint8:
        return image
    return _convert_strips(image, lambda strip: np.round(255 * _colours_of(strip, name)).astype(np.uint8))


def check_image(image: Any, name: str = "the image") -> Array:
    """An array with the shape of an image; one that repeats a few pixels without end is refused."""
    table = even_table(name, image)
    if table.ndim not in (2, 3) or 0 in table.shape or (table.ndim == 3 and table.shape[2] not in (1, 2, 3, 4)):
        raise ValueError(f"{name} must be (height, width) or (height, width, 1 to 4 channels), got shape {table.shape}")
    return np.asarray(table)


def _unit_pixels(image: Array, name: str) -> tuple[Array, Array | None]:
    """Grey values or colours from 0 to 1, and alpha (None without); an error if this is not an image."""
    if image.dtype.kind == "u":
        pixels = image / np.iinfo(image.dtype).max
    elif image.dtype.kind in "bf":
        pixels = image.astype(np.float64)
    else:
        raise ValueError(f"{name} must be of uint8, uint16, bool, or floats from 0 to 1, got {image.dtype}")
    if not np.isfinite(pixels).all():
        raise ValueError(f"{name} contains NaN or infinity; replace them")
    if np.abs(pixels).max() > MAX_PIXEL_VALUE:
        raise ValueError(f"{name} contains {np.abs(pixels).max():g}; floats must be from 0 to 1: divide them")
    if pixels.ndim == 2 or pixels.shape[2] % 2:
        return np.asarray(pixels), None
    return np.asarray(pixels[:, :, :-1]), np.asarray(pixels[:, :, -1])
