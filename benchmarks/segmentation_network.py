"""Segmentation into 23 classes with features of a network beside those of colours and textures."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import segmentation_classes as classes
from benchmarks.harness import Page
from tacit.vision.maps.lite0 import default_network
from tacit.vision.maps.network import read_features
from tacit.vision.regions.superpixels import COMPONENTS, add_components, learn_components

FOLD = 0
ROWS = (
    ("100 %", "logistic regression"),
    ("100 %", "SVM, single regions"),
    ("100 %", "SVM, pairs of neighbours"),
    ("20 %", "masks alone"),
    ("20 %", "masks, boxes and image labels"),
)


def run() -> Page:
    page = Page(
        "Segmentation into classes with features of a network",
        "Photos, classes, fits and intervals of `segmentation_classes`, on its first fold. 'Network' adds "
        f"{COMPONENTS} principal components of the maps of EfficientNet-Lite0, which was trained on ImageNet. The "
        "components are learned from cells of training photos, and averaged over regions. `Segmenter` does that by "
        "default for classes where the extra `net` is installed. The last columns are network − without, paired by "
        "photo.",
        ["masks", "what is learned from", "accuracy, %", "class accuracy, %", "with network: accuracy, %",
         "class accuracy, %", "difference", "difference of class accuracy", "CPU s per fit"],
    )  # fmt: skip
    data = classes.Data()
    network = _with_network(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two convex tasks end at max_iter
        results = {}
        without = classes.main_rows(data, FOLD)
        for (masks, words), fit in zip(ROWS, _fits(network), strict=True):
            name = words if masks == "100 %" else f"{masks}: {words}"
            plain = data.result(FOLD, name, without[name])
            own = results[masks, words] = network.result(FOLD, f"{masks}, network: {words}", fit)
            cells = *classes.scores(plain["counts"]), *classes.scores(own["counts"])
            differences = classes.differences(own["counts"], plain["counts"])
            page.rows.append((masks, words, *cells, *differences, f"{own['seconds']:.0f}"))
    pairs = (
        ("SVM, pairs of neighbours − logistic regression", ROWS[2], ROWS[0]),
        ("20 %: masks, boxes and image labels − masks alone", ROWS[4], ROWS[3]),
    )
    for words, one, other in pairs:
        found = " and ".join(classes.differences(*(results[name]["counts"] for name in (one, other))))
        page.notes.append(f"With network, {words}: {found} points of accuracy and of class accuracy.")
    page.notes.append(
        "This fold was looked at twice with a network: at first the components were learned from regions in place of "
        "cells. Their number, the size of photos and C were not chosen by results; that `Segmenter` uses the network "
        "was. The classes of the photos are kinds of things that ImageNet has, too."
    )
    return page


def _with_network(data: Any) -> Any:
    """The same photos with features of the network, whose components are learned from the training photos."""
    maker = read_features(default_network())
    files = [data.files[i] for i in np.sort(data.train(FOLD))]
    components = learn_components(files, maker, cache=data.cache, verbose=0)
    found = copy.copy(data)
    found.graphs = add_components(data.graphs, data.files, maker, components, cache=data.cache, verbose=0)
    return found


def _fits(data: Any) -> list[Callable[[], Any]]:
    train = data.train(FOLD)
    n = round(0.2 * len(train))
    return [
        lambda: classes.Logistic(data).fit(train),
        lambda: classes.fit_all(data, train, pairwise=False),
        lambda: classes.fit_all(data, train),
        lambda: classes.fit_all(data, train[:n]),
        lambda: classes.fit_weak(data, train, n),
    ]
