"""Visual words: patches of images, grouped; how often every group occurs in a cell."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import whole_number
from tacit.vision.maps.handmade import CELL, SIDE, HistogramMap
from tacit.vision.window_bags import as_grey

PATCH, STEP = 8, 4
MAX_PATCHES_PER_IMAGE = 200


class WordMap(HistogramMap):
    """How often each of a number of visual words occurs in a cell (Csurka et al. 2004).

    Words are centres of k-means on patches of 8 × 8 grey values, each with mean 0 and length 1. `fit` learns them.

    Parameters
    ----------
    cell, side : see `HistogramMap`
    words : number of words
    random_state : seed of k-means

    >>> images = [np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)]
    >>> WordMap(words=5, side=40).fit(images)(images[0]).shape
    (5, 5, 5)
    """

    def __init__(self, cell: int = CELL, side: int = SIDE, words: int = 48, random_state: int = 0) -> None:
        super().__init__(cell, side)
        self.words = words
        self.random_state = random_state

    def check(self) -> None:
        super().check()
        words = whole_number("words", self.words, 2, 10_000)
        centres = getattr(self, "centres_", None)
        if centres is not None and (not is_table(centres, 2, "f") or centres.shape != (words, PATCH * PATCH)):
            raise ValueError(f"centres_ must be {words} patches of {PATCH * PATCH} numbers: fit again")

    def learned_attributes(self) -> dict[str, Any]:
        return {"centres_": self.centres_}

    def fit(self, images: Iterable[Array]) -> WordMap:
        """Learn the words from images, pixels (height, width, 3) each."""
        from sklearn.cluster import KMeans

        self.check()
        rng = np.random.default_rng(whole_number("random_state", self.random_state, 0))
        parts = []
        for pixels in images:
            found = _patches(pixels)[0]
            parts.append(found[rng.permutation(len(found))[:MAX_PATCHES_PER_IMAGE]])
        table = np.concatenate(parts)
        words = int(self.words)
        if len(table) < words:
            raise ValueError(f"{len(table)} patches for words={words}; give more images, or take fewer words")
        means = KMeans(words, n_init=1, random_state=int(self.random_state), max_iter=50, algorithm="lloyd").fit(table)
        self.centres_ = means.cluster_centers_
        return self

    def digest(self) -> str:
        return super().digest() + hashlib.sha256(self.centres_.tobytes()).hexdigest()

    def __call__(self, pixels: Array) -> Array:
        if not hasattr(self, "centres_"):
            raise ValueError("this WordMap has not learned its words: call fit(images) first")
        patches, rows, columns = _patches(pixels)
        word = (patches @ self.centres_.T - 0.5 * (self.centres_**2).sum(axis=1)).argmax(axis=1)
        places = np.full(pixels.shape[:2], int(self.words))
        places[rows, columns] = word
        counts = self.sum_cells(places, np.ones(1), int(self.words) + 1)[:, :, : int(self.words)]
        return np.asarray(np.sqrt(counts * STEP**2))


def _patches(pixels: Array) -> tuple[Array, Array, Array]:
    """Normalised patches of every fourth pixel, and the rows and columns of their middles."""
    grey = np.pad(as_grey(pixels), PATCH // 2, mode="edge")
    views = np.lib.stride_tricks.sliding_window_view(grey, (PATCH, PATCH))[:-1:STEP, :-1:STEP]
    flat = views.reshape(-1, PATCH * PATCH)
    flat = flat - flat.mean(axis=1, keepdims=True)
    flat /= np.sqrt((flat**2).sum(axis=1, keepdims=True)) + 0.1
    y, x = np.indices(views.shape[:2])
    return flat, STEP * y.ravel(), STEP * x.ravel()
