"""Images as regions: graphs, weak labels, and fits of them."""

from __future__ import annotations

import numpy as np

from tacit import IterativeLatentSVM, RegionGraphs, RegionLabels, StructuredSVM, regions, regions_in_boxes, weak_labels
from tacit.problems import Regions
from tests.fuzz.draws import Draw
from tests.fuzz.registry import target


def graph(draw: Draw) -> tuple:
    """One small graph."""
    n = draw.between(1, 4)
    edges = np.array([[a, a + 1] for a in range(n - 1)], dtype=np.int64).reshape(-1, 2)
    return draw.table(n, 2), np.ones(n), edges, np.ones((n - 1, 1))


def image(draw: Draw) -> np.ndarray:
    return np.random.default_rng(draw.between(0, 99)).random((draw.between(1, 14), draw.between(1, 14), 3))


@target("RegionGraphs")
def region_graphs(draw: Draw):
    values, areas, edges, edge_values = graph(draw)
    arguments = {"areas": areas, "edges": edges, "edge_values": edge_values, "edge_offsets": None, "maps": None}
    graphs = RegionGraphs([values], **draw.spoil_some(arguments, 0.6))
    return graphs.shares


@target("RegionLabels")
def region_labels(draw: Draw):
    arguments = {"labels": [[0, 1], [-1]], "limits": {1: [[0.1, 0.9], [np.nan, np.nan]]}}
    RegionLabels(**draw.spoil_some(arguments, 0.7))


@target("Regions")
def region_fits(draw: Draw):
    X = [graph(draw) for _ in range(3)]
    y = [[int(label) for label in np.arange(len(own[1])) % 2] for own in X]
    y[0] = [0] * len(y[0])
    y[1][0] = draw.pick([0, 1, -1])
    parameters = {"labels": draw.pick([None, [0, 1]]), "pairwise": True, "weak": 1.0, "loss": "area"}
    parameters["scales"] = draw.pick([None, [1.0, 2.0]])
    problem = Regions(**draw.spoil_some(parameters, 0.3))
    data = draw.spoil_some({"X": X, "y": y}, 0.5)
    kind = draw.pick([StructuredSVM, IterativeLatentSVM])
    model = kind(problem, C=1.0, tol=0.1, max_iter=20, verbose=0).fit(data["X"], data["y"])
    return model.coef_


@target("regions", "weak_labels")
def cut_images(draw: Draw):
    images = [image(draw), image(draw)]
    settings = {"method": draw.pick(["slic", "felzenszwalb"]), "n_segments": 8, "compactness": 10.0, "min_size": 3}
    graphs = regions(draw.pick([images, draw.odd()]), verbose=0, **draw.spoil_some(settings, 0.3))
    weak = {"masks": None, "boxes": None, "contains": [True, None], "quantiles": (0.2, 0.8)}
    weak_labels(graphs, **draw.spoil_some(weak, 0.5))
    return graphs.nodes.values


@target("regions_in_boxes")
def cut_boxes(draw: Draw):
    graphs = regions([image(draw), image(draw)], "slic", n_segments=8, verbose=0)
    boxes = [[0, 0, draw.between(1, 14), draw.between(1, 14)] for _ in range(2)]
    return regions_in_boxes(graphs, draw.spoil_some({"boxes": boxes}, 0.7)["boxes"]).graphs.nodes.values
