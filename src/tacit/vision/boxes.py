"""Bounding boxes in images: the candidate nearest to a drawn box, the boxes that a model finds and how good they are
(IoU, average precision); tables of boxes, joined to images by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.boxes import overlap
from tacit.data.labels import read_labels
from tacit.data.lines import one_line
from tacit.data.parameters import (
    even_table,
    has_length,
    is_list,
    number,
    numbers,
    one_of,
    plain_array,
    shorten,
    whole_number,
)
from tacit.data.ragged import Ragged
from tacit.data.reading import quote
from tacit.vision.photos import image_size

__all__ = [
    "BoxReport",
    "FoundBoxes",
    "Nearest",
    "average_precision",
    "nearest",
    "overlap",
    "pick_boxes",
    "predict_boxes",
    "report_boxes",
]

MAX_SIDE = 1e9
"""Images have at most this many pixels across, or down."""


class Nearest(NamedTuple):
    """The candidate of every bag with the highest overlap with a box, and that overlap (IoU)."""

    hidden: Array
    overlap: Array


def nearest(bags: Ragged, boxes: Any) -> Nearest:
    """The hidden values of drawn boxes: in every bag the candidate of the highest overlap (intersection over union).

    Parameters
    ----------
    bags : candidates with boxes, such as `tacit.windows` gives
    boxes : (n, 4), one box per bag *in the order of the bags*; a row of NaN for an image without a box. The hidden
        value is −1 (unknown) there, and where no candidate overlaps the box. `tacit.datasets.join_boxes` brings a
        table of boxes into the order of the images; `tacit.boxed_windows` does all in one call

    >>> bags = Ragged([[0.0], [0.0]], [0, 2], boxes=[[0, 0, 4, 4], [2, 0, 6, 4]])
    >>> nearest(bags, [[2, 0, 6, 3]])
    Nearest(hidden=array([1]), overlap=array([0.75]))
    """
    candidates = _boxes_of(bags)
    drawn = _read_boxes(boxes, len(bags))
    empty = np.flatnonzero((drawn[:, 0] >= drawn[:, 2]) | (drawn[:, 1] >= drawn[:, 3]))
    if empty.size:
        first = int(empty[0])
        raise ValueError(f"box {first} is {drawn[first].tolist()}; it must have x_min < x_max and y_min < y_max")
    shared = overlap(np.repeat(drawn, bags.lengths, axis=0), candidates)
    known = ~np.isnan(drawn).any(axis=1)
    hidden, best = np.full(len(bags), -1), np.zeros(len(bags))
    for i in np.flatnonzero(known & (bags.lengths > 0)):
        own = shared[bags.offsets[i] : bags.offsets[i + 1]]
        best[i] = own.max()
        hidden[i] = int(np.argmax(own)) if best[i] > 0 else -1
    return Nearest(hidden, best)


class FoundBoxes(NamedTuple):
    """What a model finds: the label and the box (n, 4) of every image, and a confidence.

    ``scores`` of `predict_boxes` are margins: the score of the label's best window minus that of any other label's.
    """

    y: Array
    boxes: Array
    scores: Array

    def table(self, files: Sequence[Any], sizes: Any = None) -> BoxTable:
        """A table that `tacit.datasets.write_boxes_csv`, `write_boxes_voc` and `write_boxes_coco` write.

        Parameters
        ----------
        files : the names of the images, one per box
        sizes : (n, 2) width and height of the images; None reads them from the files
        """
        if len(files) != len(self.boxes):
            raise ValueError(f"files must be {len(self.boxes)} names, one per box in the same order, got {len(files)}")
        pixels = [image_size(file) for file in files] if sizes is None else np.asarray(sizes)
        names = np.array([str(file) for file in files])
        return BoxTable(names, np.array([str(label) for label in self.y]), self.boxes, np.reshape(pixels, (-1, 2)))


def predict_boxes(model: Any, bags: Ragged) -> FoundBoxes:
    """The label and the box that a fitted model finds in every image.

    Parameters
    ----------
    model : fitted on a `tacit.problems.Candidates`, or a pipeline that ends in such a model
    bags : candidates with boxes, such as `tacit.windows` gives

    >>> from tacit import StructuredSVM
    >>> from tacit.problems import Candidates
    >>> bags = Ragged([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]], [0, 2, 4], [[0, 0, 4, 4], [2, 0, 6, 4]] * 2)
    >>> model = StructuredSVM(Candidates(), C=100).fit(bags, ["cat", "dog"], hidden=[0, 1])
    >>> found = predict_boxes(model, bags)
    >>> found.y, found.boxes
    (array(['cat', 'dog'], dtype='<U3'), array([[0., 0., 4., 4.],
           [2., 0., 6., 4.]]))
    """
    learner, bags = _last_step(model, bags)
    boxes = pick_boxes(bags, learner.predict_hidden(bags))
    return FoundBoxes(learner.predict(bags), boxes, _margins(learner, bags).max(axis=1))


def pick_boxes(bags: Ragged, hidden: Any) -> Array:
    """(n, 4) the box of the candidate that the hidden value of every bag names; NaN where it is −1 (unknown).

    >>> bags = Ragged([[0.0], [0.0]], [0, 2], boxes=[[0, 0, 4, 4], [2, 0, 6, 4]])
    >>> pick_boxes(bags, [1])
    array([[2., 0., 6., 4.]])
    """
    candidates, chosen = _boxes_of(bags), even_table("hidden", hidden)
    if chosen.shape != (len(bags),) or chosen.dtype.kind not in "iu":
        raise ValueError(
            f"hidden must be {len(bags)} whole numbers, the position of a candidate per bag, got {chosen.dtype} of "
            f"shape {chosen.shape}; models of tacit.problems.Candidates predict them"
        )
    wrong = np.flatnonzero((chosen < -1) | (chosen >= bags.lengths))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(f"hidden[{i}] is {chosen[i]}; bag {i} has candidates 0 to {bags.lengths[i] - 1}")
    known = chosen >= 0
    out = np.full((len(bags), 4), np.nan)
    out[known] = candidates[(bags.offsets[:-1] + chosen)[known]]
    return out


class BoxReport(NamedTuple):
    """How well boxes were found; printing it shows a table.

    Attributes
    ----------
    n : images that count: those with a drawn box
    mean_overlap : mean intersection over union of the found and the drawn box, whatever the label
    share_above : share of the images where that is `threshold` or more
    accuracy : share of correct labels
    average_precision : by class, see `average_precision`; a window is correct if it has the class of its image and an
        overlap of `threshold` or more
    threshold : the least IoU of a correct box
    """

    n: int
    mean_overlap: float
    share_above: float
    accuracy: float
    average_precision: dict[Any, float]
    threshold: float

    @property
    def mean_average_precision(self) -> float:
        return float(np.mean(list(self.average_precision.values())))

    def __str__(self) -> str:
        lines = [
            f"{'images with a drawn box':<34}{self.n:>8}",
            f"{'mean IoU':<34}{self.mean_overlap:>8.3f}",
            f"{f'share with an IoU of {self.threshold:g} or more':<34}{self.share_above:>8.1%}",
            f"{'right labels':<34}{self.accuracy:>8.1%}",
            f"{'mean average precision':<34}{self.mean_average_precision:>8.3f}",
            *(f"{f'  average precision of {name}':<34}{ap:>8.3f}" for name, ap in self.average_precision.items()),
        ]
        return "\n".join(lines)


def report_boxes(model: Any, bags: Ragged, y: Any, boxes: Any, threshold: float = 0.5) -> BoxReport:
    """Evaluate a detector on drawn boxes: mean overlap, share above a threshold, labels, average precision.

    Parameters
    ----------
    model, bags : as in `predict_boxes`
    y : (n,) true labels
    boxes : (n, 4) drawn boxes in the order of the bags; images with NaN do not count
    threshold : the least overlap at which a box counts as found

    >>> from tacit import StructuredSVM
    >>> from tacit.problems import Candidates
    >>> bags = Ragged([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]], [0, 2, 4], [[0, 0, 4, 4], [2, 0, 6, 4]] * 2)
    >>> model = StructuredSVM(Candidates(), C=100).fit(bags, ["cat", "dog"], hidden=[0, 1])
    >>> print(report_boxes(model, bags, ["cat", "dog"], [[0, 0, 4, 4], [0, 0, 4, 4]]))
    images with a drawn box                  2
    mean IoU                             0.667
    share with an IoU of 0.5 or more     50.0%
    right labels                        100.0%
    mean average precision               0.500
      average precision of cat           1.000
      average precision of dog           0.000
    """
    threshold = number("threshold", threshold, "an overlap above 0 and at most 1", lambda share: 0 < share <= 1)
    learner, bags = _last_step(model, bags)
    labels, drawn = read_labels(y, len(bags)), _read_boxes(boxes, len(bags))
    known = np.flatnonzero(~np.isnan(drawn).any(axis=1))
    if not known.size:
        raise ValueError("boxes are all NaN; at least one image must have a drawn box to compare with")
    bags, labels, drawn = bags[known], labels[known], drawn[known]
    found, margins = predict_boxes(learner, bags), _margins(learner, bags)
    shared = overlap(found.boxes, drawn)
    precision = {}
    for label in np.unique(labels):
        column = np.flatnonzero(learner.classes_ == label)
        if not column.size:  # a class without training images is never found
            precision[label.item()] = 0.0
            continue
        own = pick_boxes(bags, learner.impute(bags, np.full(len(bags), label)))
        is_own = labels == label
        is_right = is_own & (overlap(own, drawn) >= threshold)
        precision[label.item()] = average_precision(margins[:, column[0]], is_right, int(is_own.sum()))
    right = float(np.mean(found.y == labels))
    return BoxReport(len(bags), float(shared.mean()), float(np.mean(shared >= threshold)), right, precision, threshold)


def average_precision(scores: Any, is_right: Any, n_objects: int) -> float:
    """The area under the precision-recall curve of detections ranked by score, as in the PASCAL VOC challenge (2010).

    Precision at a recall is the highest one at that recall or above. Detections of equal score are added together, so
    that their order does not matter.

    Parameters
    ----------
    scores : of the detections
    is_right : whether each of them is correct
    n_objects : how many objects there are to find

    >>> average_precision([0.9, 0.8, 0.7, 0.6], [True, False, True, True], n_objects=4)
    0.625
    """
    values, right = numbers("scores", scores), numbers("is_right", is_right, "True or False for each") != 0
    n_objects = whole_number("n_objects", n_objects, 0, 1 << 53)
    if not np.isfinite(values).all():
        raise ValueError(f"scores must be finite numbers, got {shorten(scores)}")
    if values.shape != right.shape or values.ndim != 1 or n_objects < max(int(right.sum()), 1):
        raise ValueError(
            f"scores {values.shape} and is_right {right.shape} must be vectors of one length, and "
            f"n_objects={shorten(n_objects)} must be at least 1 and at least the {right.sum()} correct detections"
        )
    order = np.argsort(-values, kind="stable")
    last = np.flatnonzero(np.diff(values[order], append=-np.inf) != 0)
    hits = np.cumsum(right[order])[last]
    precision = np.maximum.accumulate((hits / (last + 1))[::-1])[::-1]
    return float(np.sum(np.diff(hits / n_objects, prepend=0.0) * precision))


def _boxes_of(bags: Any) -> Array:
    if not isinstance(bags, Ragged) or bags.boxes is None:
        raise ValueError("bags must have boxes; add them with Ragged.of(bags).with_boxes(...)")
    return bags.boxes


def _read_boxes(boxes: Any, n: int) -> Array:
    if hasattr(boxes, "files"):
        raise TypeError(
            "boxes must be in the order of the bags, and a BoxTable is in the order of its file; join it by name with "
            "tacit.datasets.join_boxes(table, files) or tacit.boxed_windows(folder, table, ...)"
        )
    drawn = numbers("boxes", boxes, "one box per bag, (n, 4)")
    if drawn.shape != (n, 4):
        raise ValueError(f"boxes must have shape {(n, 4)}, one box per bag, got {drawn.shape}")
    return drawn


def _last_step(model: Any, bags: Ragged) -> tuple[Any, Ragged]:
    """The learner at the end of a pipeline, and the bags as they reach it."""
    if hasattr(model, "steps"):
        *before, (_, model) = model.steps
        for _, step in before:
            bags = bags if step in (None, "passthrough") else step.transform(bags)
    if not hasattr(model, "predict_hidden"):
        raise TypeError(f"model must be a fitted learner of tacit.problems.Candidates, got {shorten(model)}")
    _boxes_of(bags)
    return model, bags


def _margins(learner: Any, bags: Ragged) -> Array:
    """(n, classes): the score of each label's best window minus the best score of any other label."""
    scores = learner.decision_function(bags)
    if scores.ndim == 1:
        return np.column_stack([-scores, scores])
    best_two = np.partition(scores, -2, axis=1)
    rivals = np.where(scores == best_two[:, -1:], best_two[:, -2:-1], best_two[:, -1:])
    return np.asarray(scores - rivals)


class BoxTable(NamedTuple):
    """One row per object: its file and class, its box (n, 4), and (width, height) of the image, −1 where unknown.

    Rows are in the order of the file; `join_boxes` brings them into the order of the images.
    """

    files: Array
    y: Array
    boxes: Array
    sizes: Array


def join_boxes(table: BoxTable, files: Sequence[Any], y: Any = None, *, several: str = "error") -> Array:
    """The boxes of a table in the order of image files, (n, 4), joined by name; a row of NaN where the table has none.

    A row belongs to the image whose path ends in the row's name: ``cat/1.jpg`` or ``1.jpg`` to ``photos/cat/1.jpg``.
    Errors are: a row without an image, a name that fits two images, a second box of one image, and a class other than
    the image's. Joined by position, such a table would silently give wrong boxes.

    Parameters
    ----------
    table : boxes by name, in any order
    files : paths of the images, such as those of `image_folder`
    y : the classes of the images, to be compared with those of the table; None skips the comparison
    several : what to do about an image with several boxes: "error", or "largest" to take the largest one, of the
        image's own class where y is given

    >>> table = BoxTable(np.array(["b.jpg", "a.jpg"]), np.array(["", ""]), np.array([[0, 0, 1, 1], [2, 2, 3, 3.0]]), [])
    >>> join_boxes(table, ["photos/a.jpg", "photos/b.jpg", "photos/c.jpg"])
    array([[ 2.,  2.,  3.,  3.],
           [ 0.,  0.,  1.,  1.],
           [nan, nan, nan, nan]])
    """
    rows = match_rows(table, files, y, several=several)
    return np.where((rows >= 0)[:, None], check_table(table).boxes[rows], np.nan)


def take_boxes(table: BoxTable, rows: Array, names: Sequence[Any], sizes: Callable[[int], Any]) -> Array:
    """(n, 4) the boxes of images, given the row (of `match_rows`) of each; NaN where there is none.

    A box that was drawn in an image of another size, or that exceeds its image, is an error; ``sizes(i)`` returns width
    and height of image i.
    """
    for i in np.flatnonzero(rows >= 0).tolist():
        name, row = quote(str(names[i])), int(rows[i])
        (width, height), noted = sizes(i), tuple(int(side) for side in table.sizes[row])
        if min(noted) > 0 and noted != (width, height):
            raise ValueError(
                f"{name} has {width} × {height} pixels, but {noted[0]} × {noted[1]} in the table of boxes; "
                "scale or rotate the box, or use the version of the image that it was drawn in"
            )
        left, top, right, bottom = table.boxes[row].tolist()
        if min(left, top) < -1 or right > width + 1 or bottom > height + 1:
            raise ValueError(
                f"the box {(left, top, right, bottom)} of {name} must lie inside the image of {width} × {height} "
                "pixels; correct it, or remove the row"
            )
    return np.where((rows >= 0)[:, None], table.boxes[rows], np.nan)


def match_rows(table: BoxTable, files: Sequence[Any], y: Any = None, *, several: str = "error") -> Array:
    """(n,) the row of the table that belongs to every file, −1 where there is none; by the rules of `join_boxes`."""
    one_of("several", several, ("error", "largest"))
    table = check_table(table)
    if not isinstance(files, list | tuple | np.ndarray) or not is_list(files):
        raise TypeError(f"files must be a list of paths of images, got {shorten(files)}")
    if y is not None and not has_length(y):
        raise TypeError(f"y must be None or one class per image, got {shorten(y)}")
    labels = None if y is None else [str(label) for label in y]
    if labels is not None and len(labels) != len(files):
        raise ValueError(f"y must have one class per image, got {len(labels)} for {len(files)} images")
    rows = np.full(len(files), -1)
    for i, own in enumerate(rows_by_file(table, files)):
        if len(own) > 1 and several == "error":
            raise ValueError(
                f"image {quote(str(files[i]))} has {len(own)} boxes (rows {own[0]} and {own[1]} of the table); keep "
                "one per image, or take the largest with several='largest'"
            )
        if labels is not None and own:
            same = [row for row in own if str(table.y[row]) in ("", labels[i])]
            if not same:
                raise ValueError(
                    f"image {quote(str(files[i]))} has class {shorten(labels[i])}, but row {own[0]} of the table "
                    f"has {shorten(str(table.y[own[0]]))}; correct one of the two, or join without classes"
                )
            own = same
        if own:
            corners = np.asarray(table.boxes)[own]
            rows[i] = own[int(np.argmax(np.prod(corners[:, 2:] - corners[:, :2], axis=1)))]
    return rows


def rows_by_file(table: BoxTable, files: Sequence[Any], missing: list[int] | None = None) -> list[list[int]]:
    """The rows of every file, by the end of its path.

    A row without a file is an error; where ``missing`` is a list, a file of the same stem is taken if there is exactly
    one, and rows without any are added to the list.
    """
    paths = [path_parts(file) for file in files]
    by_name: dict[str, list[int]] = {}
    for i, path in enumerate(paths):
        by_name.setdefault(path[-1], []).append(i)
    by_stem: dict[str, list[int]] = {}
    for i, path in enumerate(paths if missing is not None else ()):
        by_stem.setdefault(PurePosixPath(path[-1]).stem, []).append(i)
    found: list[list[int]] = [[] for _ in files]
    for row, name in enumerate(table.files):
        wanted = path_parts(name)
        fits = [i for i in by_name.get(wanted[-1], ()) if paths[i][-len(wanted) :] == wanted]
        if not fits and missing is not None:
            fits = by_stem.get(PurePosixPath(wanted[-1]).stem, [])
            if len(fits) != 1:
                missing.append(row)
                continue
        if not fits:
            known = ", ".join(one_line("/".join(path[-2:]), 80) for path in paths[:3])
            raise ValueError(
                f"row {row} of the table is about {shorten(str(name))}, but none of the {len(files)} paths ends in "
                f"that ({known}, …); correct the name, or remove the row"
            )
        if len(fits) > 1:
            both = " and ".join(quote(str(files[i])) for i in fits[:2])
            raise ValueError(
                f"row {row} of the table is about {shorten(str(name))}, which fits {both}; write more of the path "
                "into the table, such as the subfolder"
            )
        found[fits[0]].append(row)
    return found


def check_table(table: Any) -> BoxTable:
    """The table as arrays of matching lengths; sizes may be missing altogether."""
    if not isinstance(table, BoxTable):
        raise TypeError(f"table must be a BoxTable, such as boxes_csv returns, got {shorten(table)}")
    names = [_as_names(name, part) for name, part in (("files", table.files), ("y", table.y))]
    n = len(names[0])
    boxes, sizes = numbers("boxes", table.boxes), numbers("sizes", table.sizes)
    sizes = sizes if sizes.size else np.full((n, 2), -1.0)
    for name, part, shape in (("y", names[1], (n,)), ("boxes", boxes, (n, 4)), ("sizes", sizes, (n, 2))):
        if part.shape != shape:
            raise ValueError(f"{name} of a BoxTable with {n} files must have shape {shape}, got {part.shape}")
    if not (np.abs(sizes) <= MAX_SIDE).all():
        raise ValueError(f"sizes of a BoxTable must be pixels, −1 where unknown, got {shorten(table.sizes)}")
    return BoxTable(names[0], names[1], boxes, sizes.astype(np.int64))


def _as_names(name: str, part: Any) -> Array:
    """A vector of names as strings."""
    if isinstance(part, str | bytes | dict | set) or not is_list(part) or getattr(part, "ndim", 1) != 1:
        raise TypeError(f"{name} of a BoxTable must be a list of names, got {shorten(part)}")
    return plain_array([str(entry) for entry in part], f"{name} of a BoxTable").astype(np.str_)


def path_parts(name: Any) -> tuple[str, ...]:
    """The parts of a path, written with slashes or backslashes; never empty."""
    return PurePosixPath(str(name).replace("\\", "/")).parts or ("",)
