"""Structured prediction when part of the answer is never labelled.

A *problem* says what ``F(x, y, h) = w·Ψ(x, y, h)`` looks like and how to maximise it; a *learner* says which
objective to minimise; a *solver* minimises a convex piece of it.

>>> import tacit
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> model = tacit.StructuredSVM(tacit.problems.Multiclass(), C=100).fit(X, y)
>>> bool(model.score(X, y) > 0.95 and model.bound_ <= model.objective_)
True

Everything here is imported on first use, so ``import tacit`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit import (
        apps,
        boxes,
        dask,
        datasets,
        oracle,
        penalties,
        plot,
        problems,
        ranking,
        report,
        solvers,
        spectral,
        storage,
        testing,
        text,
    )
    from tacit.images.boxed_windows import boxed_windows
    from tacit.images.map_making import window_maps
    from tacit.images.regions import regions
    from tacit.images.regions_in_boxes import regions_in_boxes
    from tacit.images.weak_labels import weak_labels
    from tacit.images.windows import windows
    from tacit.learners import (
        DissimilaritySVM,
        GroupNormSVM,
        HiddenCRF,
        IterativeLatentSVM,
        LatentPerceptron,
        LatentSVM,
        MinEntropySVM,
        StructuredSVM,
    )
    from tacit.links import Links
    from tacit.oracle import AnyOf
    from tacit.pacing import SelfPaced
    from tacit.problems.regions import RegionLabels
    from tacit.ragged import Ragged
    from tacit.region_graphs import RegionGraphs
    from tacit.regularisation_path import path
    from tacit.shards import Shards
    from tacit.state_selection import group_norm_path
    from tacit.storage import load

__version__ = "0.1.0"

__all__ = [
    "AnyOf",
    "DissimilaritySVM",
    "GroupNormSVM",
    "HiddenCRF",
    "IterativeLatentSVM",
    "LatentPerceptron",
    "LatentSVM",
    "Links",
    "MinEntropySVM",
    "Ragged",
    "RegionGraphs",
    "RegionLabels",
    "SelfPaced",
    "Shards",
    "StructuredSVM",
    "apps",
    "boxed_windows",
    "boxes",
    "dask",
    "datasets",
    "group_norm_path",
    "load",
    "oracle",
    "path",
    "penalties",
    "plot",
    "problems",
    "ranking",
    "regions",
    "regions_in_boxes",
    "report",
    "solvers",
    "spectral",
    "storage",
    "testing",
    "text",
    "weak_labels",
    "window_maps",
    "windows",
]

_HOME = {
    "AnyOf": "tacit.oracle",
    "DissimilaritySVM": "tacit.learners",
    "GroupNormSVM": "tacit.learners",
    "HiddenCRF": "tacit.learners",
    "IterativeLatentSVM": "tacit.learners",
    "LatentPerceptron": "tacit.learners",
    "LatentSVM": "tacit.learners",
    "MinEntropySVM": "tacit.learners",
    "SelfPaced": "tacit.pacing",
    "Links": "tacit.links",
    "Ragged": "tacit.ragged",
    "Shards": "tacit.shards",
    "StructuredSVM": "tacit.learners",
    "boxed_windows": "tacit.images.boxed_windows",
    "group_norm_path": "tacit.state_selection",
    "load": "tacit.storage",
    "path": "tacit.regularisation_path",
    "window_maps": "tacit.images.map_making",
    "RegionGraphs": "tacit.region_graphs",
    "RegionLabels": "tacit.problems.regions",
    "regions": "tacit.images.regions",
    "regions_in_boxes": "tacit.images.regions_in_boxes",
    "weak_labels": "tacit.images.weak_labels",
    "windows": "tacit.images.windows",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    return importlib.import_module(f"tacit.{name}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
