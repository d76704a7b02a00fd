"""Weak labels of regions where there are several classes: masks, strokes, void, generic labels, boxes, image labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import entries, even_table, is_list, numbers, shorten
from tacit.vision.regions.graphs import RegionGraphs, pixels_inside
from tacit.vision.regions.labels import (
    MIN_INSIDE,
    MIN_MASKS,
    WIDEST_IN_BOX,
    WIDEST_IN_IMAGE,
    RegionLabels,
    refuse_empty_box,
    tightest_box,
)

UNKNOWN, VOID = -1, -2
"""Values of pixels of a mask: to be filled in; and left out of training and of scores."""
MAX_CLASSES = 1000
MAX_COVERED = 0.9
"""The least shares of all classes of an image together, and of one class in the area where it is allowed: more leaves
no room for errors of the shares."""


class Classes(NamedTuple):
    """The names of classes, and generic names with the positions of the classes that they may mean.

    In masks, the numbers from 0 are classes in this order, and after them generic names in theirs.
    """

    names: tuple[str, ...]
    generic: dict[str, Array]

    @property
    def size(self) -> int:
        return len(self.names)

    def position(self, name: Any, where: str, *, allows_generic: bool = False) -> int:
        """The number of a name in masks; a name that is not known is an error that says where it stands."""
        known = [*self.names, *self.generic] if allows_generic else self.names
        if not isinstance(name, str) or name not in known:
            if isinstance(name, str) and name in self.generic:
                raise ValueError(f"{where} names {shorten(name)}, which is generic; name one class")
            raise ValueError(f"{where} names {shorten(name)}, which is not a class; classes are {shorten(list(known))}")
        return list(known).index(name)


def read_class_names(classes: Any, generic: Any = None) -> Classes:
    """The checked parameters ``classes`` and ``generic`` of `tacit.weak_labels`.

    >>> read_class_names(["grass", "cow", "sheep"], {"some animal": ["cow", "sheep"]}).generic
    {'some animal': array([1, 2])}
    """
    names = list(classes) if is_list(classes) and not isinstance(classes, str | bytes) else []
    if not 2 <= len(names) <= MAX_CLASSES or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"classes must be 2 to {MAX_CLASSES} names, got {shorten(classes)}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"classes must have different names, got {shorten(twice)} twice")
    if generic is not None and not isinstance(generic, Mapping):
        raise TypeError(f"generic must be a dict from a name to a list of classes, got {shorten(generic)}")
    sets = {}
    for name, members in (generic or {}).items():
        if not isinstance(name, str) or not name or name in names:
            raise ValueError(f"names of generic must be text and not those of classes, got {shorten(name)}")
        listed = list(members) if is_list(members) and not isinstance(members, str | bytes) else []
        wrong = [member for member in listed if not isinstance(member, str) or member not in names]
        if not listed or wrong:
            got = wrong[0] if wrong else members
            raise ValueError(f"generic[{name!r}] must be a list of classes, got {shorten(got)}")
        sets[name] = np.array(sorted({names.index(member) for member in listed}))
    return Classes(tuple(names), sets)


def mark_classes(graphs: RegionGraphs, masks: Any, classes: Classes) -> tuple[list[Array], list[Array]]:
    """Per image the number of every region in its mask, −1 where it is unknown, and whether the region is void.

    Unknown and void pixels do not count in regions with other pixels.
    """
    masks = entries("masks", masks, f"a mask or None for each of {len(graphs)} images", len(graphs))
    drawn: list[Array | None] = []
    void: list[Array | None] = []
    for i, mask in enumerate(masks):
        if mask is None:
            drawn.append(None)
            void.append(None)
            continue
        table = even_table(f"the mask of image {i}", mask)
        if table.dtype.kind not in "biu":
            raise ValueError(f"the mask of image {i} must have whole numbers, got {table.dtype}")
        table = table.astype(np.int64)
        most = classes.size + len(classes.generic)
        wrong = table[(table < VOID) | (table >= most)]
        if wrong.size:
            raise ValueError(
                f"the mask of image {i} must have numbers of classes, 0 to {most - 1}, {UNKNOWN} for unknown or "
                f"{VOID} for void, got {wrong[0]}"
            )
        drawn.append(np.maximum(table, UNKNOWN))
        void.append(np.where(table >= 0, 0, (table == VOID).astype(np.int64)))
    labels, marked = graphs.mark(drawn), graphs.mark(void)
    return labels, [(own < 0) & (is_void == 1) for own, is_void in zip(labels, marked, strict=True)]


def leave_out_void(graphs: RegionGraphs, y: RegionLabels, void: Sequence[Array]) -> tuple[RegionGraphs, RegionLabels]:
    """The graphs and labels without void regions, and without maps of pixels. An image of void alone stays whole."""
    keep = [np.ones_like(own) if own.all() else ~own for own in void]
    parts, flat = [], np.concatenate(keep)
    for graph, own in zip(graphs, keep, strict=True):
        inside = own[graph.edges].all(axis=1)
        edges = (np.cumsum(own) - 1)[graph.edges[inside]]
        parts.append((graph.values[own], graph.areas[own], edges, graph.edge_values[inside]))
    labels = [np.asarray(own)[kept] for own, kept in zip(y, keep, strict=True)]
    cut = np.cumsum([own.size for own in labels])[:-1]
    allowed = {label: np.split(own.values[flat], cut) for label, own in y.allowed.items()}
    return RegionGraphs.from_list(parts), RegionLabels(labels, y.limits, allowed)


def weak_class_labels(
    graphs: RegionGraphs, masks: Any, boxes: Any, contains: Any, low: float, classes: Classes
) -> RegionLabels:
    """`tacit.weak_labels` for several classes; ``low`` is the quantile of the shares in masks."""
    n, k = len(graphs), classes.size
    labels, void = mark_classes(graphs, [None] * n if masks is None else masks, classes)
    listed = [None] * n if boxes is None else entries("boxes", boxes, f"a dict of boxes for each of {n} images", n)
    drawn = [_read_boxes(i, own, classes) for i, own in enumerate(listed)]
    listed = [None] * n if contains is None else entries("contains", contains, f"a dict for each of {n} images", n)
    said = [_read_contains(i, own, classes) for i, own in enumerate(listed)]
    in_box, in_image = _least_shares(graphs, labels, void, low, k)
    allowed = [np.ones((own.size, k), dtype=bool) for own in labels]
    lows = np.zeros((n, k))
    for i, own in enumerate(labels):
        shares = graphs.areas[graphs.offsets[i] : graphs.offsets[i + 1]]
        shares = shares / shares.sum()
        for number, (_, members) in enumerate(classes.generic.items()):
            allowed[i][own == k + number] = np.isin(np.arange(k), members)
        own[own >= k] = UNKNOWN
        is_open = (own < 0) & ~void[i]
        if not is_open.any():
            continue
        inside = _regions_in_boxes(graphs, i, drawn[i], classes)
        for c, word in said[i].items():
            if not word:
                _refuse_drawn(i, own, c, classes)
                allowed[i][is_open, c] = False
            elif c not in inside:
                lows[i, c] = in_image[c]
        for c, covered in inside.items():
            allowed[i][is_open & ~covered, c] = False
            if c in drawn[i]:
                lows[i, c] = in_box[c] * float(shares[covered].sum())
        between = is_open & ~allowed[i].any(axis=1)  # beside the boxes of all classes that occur
        allowed[i][between] = [said[i].get(c, True) for c in range(k)]
        lows[i] = _possible(i, lows[i], own, allowed[i], is_open, shares, classes)
    limits = {c: np.column_stack([lows[:, c], np.ones(n)]) for c in range(k) if lows[:, c].any()}
    is_set = [c for c in range(k) if not all(own[:, c].all() for own in allowed)]
    return RegionLabels(labels, limits, {c: [own[:, c] for own in allowed] for c in is_set})


def _read_contains(i: int, words: Any, classes: Classes) -> dict[int, bool]:
    """By class, whether image i contains it: from a dict, or a list of all classes that it contains."""
    where = f"contains[{i}]"
    if words is None:
        return {}
    if isinstance(words, Mapping):
        for name, word in words.items():
            if not isinstance(word, bool | np.bool_):
                raise ValueError(f"{where}[{shorten(name)}] must be True or False, got {shorten(word)}")
        return {classes.position(name, where): bool(word) for name, word in words.items()}
    meaning = "a dict from class to True or False, a list of classes, or None"
    listed = entries(where, words, meaning)
    if not listed:
        raise ValueError(f"{where} must be {meaning}, got {shorten(words)}")
    present = {classes.position(name, where) for name in listed}
    return {c: c in present for c in range(classes.size)}


def _read_boxes(i: int, boxes: Any, classes: Classes) -> dict[int, Array]:
    """By number of a class or generic name, the boxes of image i, (m, 4)."""
    if boxes is None:
        return {}
    if not isinstance(boxes, Mapping):
        raise TypeError(f"boxes[{i}] must be a dict from class to boxes, or None, got {shorten(boxes)}")
    found = {}
    for name, own in boxes.items():
        table = numbers(f"boxes[{i}][{shorten(name)}]", own, "rows of x_min, y_min, x_max, y_max").astype(np.float64)
        table = table[None] if table.ndim == 1 else table
        if table.ndim != 2 or table.shape[1] != 4 or not len(table) or not np.isfinite(table).all():
            raise ValueError(f"boxes[{i}][{shorten(name)}] must be rows of four finite numbers, got {shorten(own)}")
        found[classes.position(name, f"boxes[{i}]", allows_generic=True)] = table
    return found


def _regions_in_boxes(graphs: RegionGraphs, i: int, boxes: dict[int, Array], classes: Classes) -> dict[int, Array]:
    """By class that has a box in image i, its own or a generic one: the regions inside of these boxes."""
    assert graphs.maps is not None  # `mark_classes` needs them
    regions, n = graphs.maps[i], int(graphs.lengths[i])
    sizes, generic = np.bincount(regions.ravel(), minlength=n), list(classes.generic.values())
    inside: dict[int, Array] = {}
    for name, table in boxes.items():
        for box in table:
            counts = np.bincount(regions.ravel(), pixels_inside(regions.shape, box).ravel(), n)
            refuse_empty_box(i, box, counts > 0)
            covered = counts >= MIN_INSIDE * sizes
            covered[np.argmax(counts)] = True  # of a box that is smaller than any region
            for c in [name] if name < classes.size else generic[name - classes.size].tolist():
                inside[c] = inside.get(c, np.zeros(n, dtype=bool)) | covered
    return inside


def _least_shares(
    graphs: RegionGraphs, labels: list[Array], void: list[Array], low: float, k: int
) -> tuple[Array, Array]:
    """(K,) each: a low quantile of the share that a class covers of its tightest box, and of an image that has it.

    Classes with fewer than `MIN_MASKS` masks have the quantile of all classes together.
    """
    in_box: list[list[float]] = [[] for _ in range(k)]
    in_image: list[list[float]] = [[] for _ in range(k)]
    for i, own in enumerate(labels):
        if ((own < 0) & ~void[i]).any():
            continue
        assert graphs.maps is not None
        painted = own[graphs.maps[i]]
        for c in np.unique(own[(own >= 0) & (own < k)]):
            left, top, right, bottom = tightest_box(painted == c)
            count = int((painted == c).sum())
            in_box[c].append(count / ((right - left) * (bottom - top)))
            in_image[c].append(count / painted.size)
    return _quantiles(in_box, low, WIDEST_IN_BOX[0]), _quantiles(in_image, low, WIDEST_IN_IMAGE[0])


def _quantiles(shares: list[list[float]], low: float, least: float) -> Array:
    every = [share for own in shares for share in own]
    common = float(np.quantile(every, low)) if len(every) >= MIN_MASKS else least
    return np.array([np.quantile(own, low) if len(own) >= MIN_MASKS else common for own in shares])


def _refuse_drawn(i: int, own: Array, c: int, classes: Classes) -> None:
    if (own == c).any():
        name = shorten(classes.names[c])
        raise ValueError(f"contains[{i}] says that image {i} lacks {name}, but its mask has it; correct one of them")


def _possible(
    i: int, lows: Array, own: Array, allowed: Array, is_open: Array, shares: Array, classes: Classes
) -> Array:
    """The least shares of the classes of image i, reduced to what its known regions and its boxes leave."""
    known = np.bincount(own[own >= 0], shares[own >= 0], len(lows))
    room = known + shares[is_open] @ allowed[is_open]
    none = np.flatnonzero((lows > 0) & (room == 0))
    if none.size:
        raise ValueError(f"image {i} must contain {shorten(classes.names[none[0]])}, but no region may have that label")
    lows = np.maximum(np.minimum(lows, MAX_COVERED * room), 0.0)
    return np.asarray(lows * min(1.0, MAX_COVERED / max(lows.sum(), 1e-9)))
