"""Windows and types of an object as hidden values: known ones, the loss between them, initial types."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import has_length, numbers, one_of, random_numbers, whole_number
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.known_hidden import from_masks, read_hidden, read_positions
from tacit.oracle.losses import Reference
from tacit.vision.boxes import overlap
from tacit.vision.maps.window_maps import WindowMaps
from tacit.vision.photos import pillow

STARTS = ("clusters", "aspect", "random")
PIECES = 4
"""Pieces of a box across, and down, by which boxes are grouped."""
COMPONENTS = 15


def read_windows_and_types(hidden: Any, counts: Array, types: int) -> KnownHidden:
    """Known windows and types as known states; ``state = window · types + type``.

    Parameters
    ----------
    hidden : per sample a window, −1 if it is unknown; with several types a pair (window, type), of which both may be
        −1, or the window alone
    counts : windows per sample
    types : number of types

    >>> read_windows_and_types([(1, 0), (1, -1), (-1, -1)], np.array([2, 2, 2]), 2).allowed.reshape(3, 4)
    array([[ True,  True,  True,  True],
           [False, False,  True,  True],
           [ True,  True,  True,  True]])
    """
    if types == 1:
        return read_hidden(hidden, counts, "windows")
    if _has_pairs(hidden):
        pairs = read_positions(hidden, (counts.size, 2))
    else:
        pairs = np.column_stack([read_positions(hidden, (counts.size,)), np.full(counts.size, -1)])
    limits = np.column_stack([counts, np.full(counts.size, types)])
    wrong = np.flatnonzero(((pairs < -1) | (pairs >= limits)).any(axis=1))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"hidden[{i}] is {pairs[i].tolist()}, but sample {i} has windows 0 to {counts[i] - 1} and types 0 to "
            f"{types - 1} (-1 for unknown)"
        )
    masks: list[Array | None] = []
    for (window, kind), count in zip(pairs.tolist(), counts.tolist(), strict=True):
        mask = np.ones((count, types), dtype=bool)
        if window >= 0:
            mask &= (np.arange(count) == window)[:, None]
        if kind >= 0:
            mask &= np.arange(types) == kind
        masks.append(None if mask.all() else mask.ravel())
    return from_masks(masks, counts * types)


def _has_pairs(hidden: Any) -> bool:
    """Whether samples have a pair each; `read_positions` checks the shapes."""
    if isinstance(hidden, list | tuple):
        return any(has_length(entry) for entry in hidden)
    return getattr(hidden, "ndim", 1) == 2


def join_hidden(states: Array | None, types: int) -> Array | None:
    """Windows, or (n, 2) windows and types, of states."""
    if states is None or types == 1:
        return states
    return np.column_stack(np.divmod(states, types))


def known_window(known: KnownHidden, offsets: Array, types: int) -> Array:
    """(n,) the window that all allowed states of a sample have in common; −1 where they differ."""
    out = np.where(known.states >= 0, known.states // types, -1)
    if known.allowed is None:
        return out
    counts = np.diff(offsets)
    of_sample = np.repeat(np.arange(counts.size), counts)
    window = (np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], counts)) // types
    low, high = np.full(counts.size, np.iinfo(np.int64).max), np.full(counts.size, -1)
    np.minimum.at(low, of_sample[known.allowed], window[known.allowed])
    np.maximum.at(high, of_sample[known.allowed], window[known.allowed])
    return np.where((out < 0) & (low == high), low, out)


class WindowLoss:
    """1 for a wrong label, else 1 − IoU with the true window, whatever the types; 0 where that is unknown.

    Parameters
    ----------
    boxes : (m, 4) the windows of all samples
    offsets : (n + 1,) where they begin
    types : number of types
    """

    def __init__(self, boxes: Array, offsets: Array, types: int) -> None:
        self.boxes = boxes
        self.windows = offsets
        self.types = types

    def table(self, n_labels: int, offsets: Array, labels: Array, reference: Reference) -> Array:
        out = np.ones((n_labels, int(offsets[-1])))
        if reference.posterior is not None:
            costs = self._mean_costs(reference.posterior)
        else:
            costs = self.costs(known_window(KnownHidden(reference.states, reference.allowed), offsets, self.types))
        own = np.repeat(labels, np.diff(offsets))
        is_known = own < n_labels
        out[own[is_known], np.flatnonzero(is_known)] = np.repeat(costs, self.types)[is_known]
        return out

    def of_outputs(self, n_labels: int, offsets: Array, labels: Array, said: tuple[Array, Array]) -> Array:
        label, state = said
        costs = np.repeat(self.costs(state // self.types), self.types)
        return np.asarray(np.where(np.repeat(label == labels, np.diff(offsets)), costs, 1.0))

    def diversity_slope(self, n_labels: int, offsets: Array, labels: Array, posterior: Array) -> Array:
        return np.repeat(2.0 * self._mean_costs(posterior), self.types)

    def of(self, i: int) -> Array:
        """The losses between the hidden values of sample i."""
        boxes = self.boxes[self.windows[i] : self.windows[i + 1]]
        table = 1.0 - overlap(boxes[:, None], boxes[None])
        np.fill_diagonal(table, 0.0)
        return np.asarray(np.kron(table, np.ones((self.types, self.types))))

    def costs(self, window: Array) -> Array:
        """(m,) 1 − IoU of every window with the chosen one of its sample; 0 where none is chosen."""
        counts = np.diff(self.windows)
        true = self.boxes[self.windows[:-1] + np.maximum(window, 0)]
        shared = overlap(np.repeat(true, counts, axis=0), self.boxes)
        costs = np.where(np.repeat(window, counts) >= 0, 1.0 - shared, 0.0)
        known = np.flatnonzero(window >= 0)
        costs[self.windows[known] + window[known]] = 0.0
        return costs

    def _mean_costs(self, posterior: Array) -> Array:
        chance = posterior.reshape(-1, self.types).sum(axis=1)
        costs = np.zeros(len(self.boxes))
        for a, b in zip(self.windows[:-1].tolist(), self.windows[1:].tolist(), strict=True):
            likely = a + np.flatnonzero(chance[a:b] > 0)
            costs[a:b] = 1.0 - chance[likely] @ overlap(self.boxes[likely][:, None], self.boxes[None, a:b])
        return np.maximum(costs, 0.0)

    def digest_arrays(self, n_labels: int, offsets: Array, labels: Array) -> tuple[Array, ...]:
        return self.boxes, self.windows


def start_types(maps: WindowMaps, boxes: Any, k: int, how: str = "clusters", random_state: Any = 0) -> Array:
    """(n,) an initial type of every drawn box: ``init=np.column_stack([windows, types])`` of a latent learner.

    Parameters
    ----------
    maps : of the images
    boxes : (n, 4) the box drawn in each
    k : number of types
    how : "clusters" groups the boxes by looks and shape (k-means on what 4 × 4 pieces of them pool, and their aspect);
        "aspect" cuts the aspect ratios into k groups of equal size, as Felzenszwalb et al. (2010) do; "random" draws
    random_state : seed

    >>> maps = WindowMaps.of_maps(np.ones((4, 3, 4, 2)), [(40, 30)] * 4, 10)
    >>> start_types(maps, [[0, 0, 40, 10], [0, 0, 10, 30], [0, 0, 40, 12], [0, 0, 12, 30]], 2, how="aspect")
    array([1, 0, 1, 0])
    """
    one_of("how", how, STARTS)
    k = whole_number("k", k, 1, len(maps))
    drawn = numbers("boxes", boxes, "one box per image, (n, 4)")
    if drawn.shape != (len(maps), 4) or not (drawn[:, :2] < drawn[:, 2:]).all():
        raise ValueError(f"boxes must be {(len(maps), 4)}, one per image and none empty, got shape {drawn.shape}")
    rng = random_numbers(random_state)
    if how == "random":
        return np.asarray(rng.randint(k, size=len(maps)))
    sides = drawn[:, 2:] - drawn[:, :2]
    aspect = np.log(sides[:, 0] / sides[:, 1])
    if how == "aspect":
        return np.asarray(np.argsort(np.argsort(aspect, kind="stable"), kind="stable") * k // len(maps))
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    inside = np.clip(drawn, 0, np.tile(maps.sizes, 2))
    ends = np.arange(len(maps) + 1)
    boxed = WindowMaps(maps.values, maps.offsets, maps.grids, maps.sizes, maps.strides, inside, ends)
    own = boxed.pool_windows(contrast=None, parts=PIECES).values.astype(np.float64)
    rows = PCA(min(COMPONENTS, len(maps), own.shape[1]), random_state=rng).fit_transform(own)
    units = rows[:, 0].std() or 1.0, 2 * aspect.std() or 1.0
    table = np.column_stack([rows / units[0], (aspect - aspect.mean()) / units[1]])
    return np.asarray(KMeans(k, n_init=5, random_state=rng).fit_predict(table))


def mean_type_images(images: Any, boxes: Any, types: Any, k: int, side: int = 48) -> Array:
    """(k, side, side, 3): the mean of the boxes of each type, cut out and scaled; uint8. Grey where a type has none.

    Parameters
    ----------
    images : pixels (height, width, 3) of every image; may be a generator, since one is needed at a time
    boxes : (n, 4) the box of each
    types : (n,) the type of each
    k : number of types
    side : pixels of the mean images

    >>> mean_type_images(np.zeros((2, 8, 8, 3), np.uint8), [[0, 0, 4, 4]] * 2, [0, 0], 2, side=4)[:, 0, 0, 0]
    array([  0, 128], dtype=uint8)
    """
    Image = pillow()
    sums, counts = np.zeros((k, side, side, 3)), np.zeros(k)
    for pixels, box, kind in zip(images, np.asarray(boxes), np.asarray(types), strict=True):
        cut = Image.fromarray(np.ascontiguousarray(pixels)).resize(
            (side, side), Image.Resampling.BILINEAR, box=tuple(np.maximum(box, 0).tolist())
        )
        sums[kind] += np.asarray(cut)
        counts[kind] += 1
    means = np.where(counts[:, None, None, None] > 0, sums / np.maximum(counts, 1)[:, None, None, None], 128)
    return np.asarray(np.round(means).astype(np.uint8))
