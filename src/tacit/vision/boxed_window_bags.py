"""From a folder of images and a table of boxes to bags of windows whose hidden values are known where a box is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.location import find_folder, find_place
from tacit.data.parameters import switch
from tacit.data.ragged import Ragged
from tacit.vision.box_files import BoxTable, boxes_coco, boxes_csv, boxes_voc, checked_table, match_rows
from tacit.vision.boxes import nearest
from tacit.vision.photos import MAX_PIXELS, image_folder, image_size, is_image
from tacit.vision.window_bags import windows


class BoxedWindows(NamedTuple):
    """Images as bags of windows, and what is known of each; all in the order of ``files``.

    Attributes
    ----------
    X : bags of windows with their boxes and gradients
    y : (n,) the class of every image
    hidden : (n,) the window that shares most with the drawn box, −1 where nobody drew one: for ``fit(X, y, hidden=)``
    boxes : (n, 4) the drawn boxes, NaN where there is none
    overlap : (n,) how much that window and the box share (intersection over union), 0 where there is no box
    files : the paths of the images
    """

    X: Ragged
    y: Array
    hidden: Array
    boxes: Array
    overlap: Array
    files: list[Path]


def boxed_windows(
    folder: str | os.PathLike[str],
    table: Any,
    sizes: Sequence[tuple[int, int]],
    stride: int,
    *,
    several: str = "error",
    check_classes: bool = True,
    cells: int = 4,
    cache: str | os.PathLike[str] | None = None,
    max_pixels: int = MAX_PIXELS,
    verbose: int = 1,
) -> BoxedWindows:
    """Windows of all images of a folder, with the boxes that a table has for them, joined by file name.

    Images without a row are kept, their hidden value unknown. A row without an image, a name that fits two images, a
    class or a size that is not the image's, and a box outside of its image are errors. Needs the extra ``vision``.

    Parameters
    ----------
    folder : one subfolder per class; or all images in one folder, then the table says the class of each
    table : a `tacit.datasets.BoxTable`, or the path of one: ``.csv``, ``.json`` (COCO), ``.xml`` or a folder (VOC)
    sizes, stride, cells, cache, max_pixels, verbose : of the windows, as in `tacit.windows`
    several : "error", or "largest": what to do about an image with several boxes, see `tacit.datasets.join_boxes`
    check_classes : False where the table's classes are not those of the folder, say species and breeds

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat/1.png", "dog/1.png"):
    ...         (Path(folder) / name).parent.mkdir()
    ...         Image.new("L", (40, 32)).save(f"{folder}/{name}")
    ...     _ = (Path(folder) / "boxes.csv").write_text("file,xmin,ymin,xmax,ymax\\ndog/1.png,7,0,40,32\\n")
    ...     data = boxed_windows(folder, f"{folder}/boxes.csv", sizes=[(32, 32)], stride=8)
    >>> data.y, data.hidden
    (array(['cat', 'dog'], dtype='<U3'), array([-1,  1]))
    """
    check_classes = switch("check_classes", check_classes)
    boxes = checked_table(table if isinstance(table, BoxTable) else read_table(table))
    place = find_folder(folder, "images")
    flat = sorted(file for file in place.iterdir() if is_image(file))
    files, y = (flat, None) if flat else image_folder(place)
    rows = match_rows(boxes, files, y if check_classes else None, several=several)
    known = np.flatnonzero(rows >= 0)
    if y is None:
        y = _classes_of_table(boxes, files, rows)
    for i in known:
        _check_size(files[i], boxes, int(rows[i]), max_pixels)
    drawn = np.where((rows >= 0)[:, None], boxes.boxes[rows], np.nan)
    X = windows(files, sizes, stride, cells=cells, cache=cache, max_pixels=max_pixels, verbose=verbose)
    hidden, shared = nearest(X, drawn)
    return BoxedWindows(X, y, hidden, drawn, shared, files)


def read_table(path: Any) -> BoxTable:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"table must be a BoxTable or the path of one, got {type(path).__name__}")
    place = find_place(path)
    if os.path.isdir(place) or place.suffix.lower() == ".xml":
        return boxes_voc(place)
    return boxes_coco(place) if place.suffix.lower() == ".json" else boxes_csv(place)


def _classes_of_table(table: BoxTable, files: Sequence[Path], rows: Array) -> Array:
    y = np.where(rows >= 0, table.y[rows], "")
    unknown = np.flatnonzero(y == "")
    if unknown.size:
        raise ValueError(
            f"{str(files[unknown[0]])!r} has no class, as have {unknown.size} of {len(files)} images: the folder has "
            "no subfolders to tell, and neither does the table; make one subfolder per class, or list all images"
        )
    return y


def _check_size(file: Path, table: BoxTable, row: int, max_pixels: int) -> None:
    """Boxes drawn in an image of another size lie elsewhere."""
    width, height = image_size(file, max_pixels)
    noted = tuple(int(side) for side in table.sizes[row])
    if min(noted) > 0 and noted != (width, height):
        raise ValueError(
            f"{str(file)!r} has {width} × {height} pixels, and row {row} of the table says {noted[0]} × {noted[1]}: "
            "the box belongs to another version of the image; scale the box, or take that version"
        )
    left, top, right, bottom = table.boxes[row].tolist()
    if min(left, top) < -1 or right > width + 1 or bottom > height + 1:
        raise ValueError(
            f"the box {(left, top, right, bottom)} of {str(file)!r} (row {row} of the table) leaves the image of "
            f"{width} × {height} pixels"
        )
