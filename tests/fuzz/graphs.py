"""Graphs, labels of their nodes, and fits of them."""

from __future__ import annotations

import numpy as np

from tacit import GraphLabels, Graphs, LatentSVM, StructuredSVM
from tacit.problems import Graph
from tests.fuzz.draws import Draw
from tests.fuzz.registry import target


def graph(draw: Draw, ring: bool = False) -> tuple:
    """The number of nodes of a small graph, a chain or a ring, and the graph."""
    n = draw.between(1, 4)
    edges = [[a, a + 1] for a in range(n - 1)] + ([[n - 1, 0]] if ring and n > 2 else [])
    table = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return n, (draw.table(n, 2), table, np.ones((len(table), 1)))


@target("Graphs")
def graphs(draw: Draw):
    n, (values, edges, edge_values) = graph(draw, ring=True)
    arguments = {"edges": edges, "edge_values": edge_values, "edge_offsets": None, "types": [0] * n}
    found = Graphs([values], **draw.spoil_some(arguments, 0.6))
    grid = {"neighbours": draw.pick([4, 8]), "is_directional": True}
    Graphs.grids([np.zeros((2, draw.between(1, 3), 1))], **draw.spoil_some(grid, 0.3))
    return found.edge_values


@target("GraphLabels")
def graph_labels(draw: Draw):
    arguments = {"labels": [[0, {0, 1}], [-1]], "present": [[1], None]}
    y = GraphLabels(**draw.spoil_some(arguments, 0.7))
    for i in range(len(y)):
        y[i]


@target("Graph")
def graph_fits(draw: Draw):
    sizes, X = map(list, zip(*(graph(draw, ring=True) for _ in range(3)), strict=True))
    y = [[int(label) for label in np.arange(n) % 2] for n in sizes]
    y[1][0] = draw.pick([0, 1, -1, {0, 1}])
    parameters = {"pairs": draw.pick(["potts", "symmetric", "directional", None]), "labels": draw.pick([None, [0, 1]])}
    parameters |= {"label_sets": None, "loss": "hamming", "fit_intercept": True}
    problem = Graph(**draw.spoil_some(parameters, 0.3))
    data = draw.spoil_some({"X": X, "y": y}, 0.5)
    model = LatentSVM(problem, C=1.0, tol=0.1, max_iter=5, verbose=0)
    if draw.pick([True, False]):
        model = StructuredSVM(problem, C=1.0, tol=0.1, max_iter=20, verbose=0)
    return model.fit(data["X"], data["y"]).coef_
