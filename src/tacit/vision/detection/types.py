"""Where learning the types of an object begins, and how types are shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import numbers, one_of, random_numbers, whole_number
from tacit.vision.maps.window_maps import WindowMaps

STARTS = ("clusters", "aspect", "random")
PIECES = 4
"""Pieces of a box across, and down, by which boxes are grouped."""
COMPONENTS = 15


def start_types(maps: WindowMaps, boxes: Any, k: int, how: str = "clusters", random_state: Any = 0) -> Array:
    """(n,) a type of every drawn box to begin with: ``init=np.column_stack([windows, types])`` of a latent learner.

    Parameters
    ----------
    maps : of the images
    boxes : (n, 4) the box drawn in each
    k : number of types
    how : "clusters" groups the boxes by looks and shape (k-means on what 4 × 4 pieces of them pool, and their aspect);
        "aspect" cuts the aspect ratios into k equal parts, as Felzenszwalb et al. (2010) do; "random" draws
    random_state : seed

    >>> maps = WindowMaps.of_maps(np.ones((4, 3, 4, 2)), [(40, 30)] * 4, 10)
    >>> start_types(maps, [[0, 0, 40, 10], [0, 0, 10, 30], [0, 0, 40, 12], [0, 0, 12, 30]], 2, how="aspect")
    array([1, 0, 1, 0])
    """
    one_of("how", how, STARTS)
    k = whole_number("k", k, 1, len(maps))
    drawn = numbers("boxes", boxes, "one box per image, (n, 4)")
    if drawn.shape != (len(maps), 4) or not (drawn[:, :2] < drawn[:, 2:]).all():
        raise ValueError(f"boxes of shape {drawn.shape} for {len(maps)} images; give one box each, none of them empty")
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
    own = WindowMaps(
        maps.values, maps.offsets, maps.grids, maps.sizes, maps.strides, inside, np.arange(len(maps) + 1)
    ).pooled(contrast=None, parts=PIECES)
    rows = PCA(min(COMPONENTS, len(maps), own.values.shape[1]), random_state=rng).fit_transform(
        own.values.astype(np.float64)
    )
    table = np.column_stack([_scaled(rows, rows[:, 0].std()), _scaled(aspect - aspect.mean(), 2 * aspect.std())])
    return np.asarray(KMeans(k, n_init=5, random_state=rng).fit_predict(table))


def _scaled(values: Array, unit: float) -> Array:
    return np.asarray(values / unit if unit > 0 else values)


def mean_type_images(images: Any, boxes: Any, types: Any, k: int, side: int = 48) -> Array:
    """(k, side, side, 3): the mean of the boxes of each type, cut out and scaled; uint8. Grey where a type has none.

    Parameters
    ----------
    images : pixels (height, width, 3) of every image; a generator may make them, as one is looked at at a time
    boxes : (n, 4) the box of each
    types : (n,) the type of each
    k : number of types
    side : pixels of the mean images

    >>> mean_type_images(np.zeros((2, 8, 8, 3), np.uint8), [[0, 0, 4, 4]] * 2, [0, 0], 2, side=4)[:, 0, 0, 0]
    array([  0, 128], dtype=uint8)
    """
    from tacit.vision.photos import pillow

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
