"""Feature maps, windows on them, and the problem that learns from them."""

from __future__ import annotations

import numpy as np

import tacit
from tacit import LatentSVM
from tacit.problems import Detection
from tacit.vision.maps import ColourMap, GradientMap
from tacit.vision.maps.window_maps import WindowMaps
from tests.fuzz.draws import Draw
from tests.fuzz.registry import target


@target("window_maps")
def maps_of_images(draw: Draw):
    image = draw.rng.random((draw.between(4, 30), draw.between(4, 30)))
    image = draw.pick([image, (255 * image).astype(np.uint8), np.dstack([image] * draw.between(1, 4)), [image, image]])
    given = {
        "images": image,
        "features": draw.pick([GradientMap(side=24), ColourMap(cell=6, side=24)]),
        "sizes": [draw.real(0.2, 1.0)],
        "aspects": [draw.real(0.5, 2.0)],
        "step": draw.real(0.2, 1.0),
        "shape": draw.real(0.0, 1.0),
        "max_pixels": 10**6,
    }
    maps = tacit.window_maps(**draw.spoil_some(given), verbose=0)
    return maps.values, maps.windows


@target("Detection")
def detections(draw: Draw):
    n = draw.between(4, 6)
    maps = WindowMaps.of_maps(draw.rng.random((n, 2, 3, 2)), [(30, 20)] * n, 10, pixels=[(10, 10)], step=1.0)
    given = {
        "contrast": draw.pick(["ring", "image", None]),
        "parts": draw.whole(1, 2),
        "types": draw.whole(1, 2),
        "n_components": draw.pick([None, 1, 2]),
        "shared": draw.chance(0.5),
        "image_term": draw.chance(0.5),
        "loss": draw.pick(["0/1", [[0, 1], [2, 0]]]),
        "classes": draw.pick([None, [0, 1]]),
        "fit_intercept": draw.chance(0.5),
    }
    problem = Detection(**draw.spoil_some(given))
    data = {"X": maps, "y": np.arange(n) % 2, "hidden": draw.pick([None, np.zeros(n, int)])}
    model = LatentSVM(problem, C=1.0, tol=0.1, max_iter=3, verbose=0).fit(**draw.spoil_some(data))
    return model.coef_
