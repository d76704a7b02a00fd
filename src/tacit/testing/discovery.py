"""Everything that tacit exports, found by walking its packages."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

from sklearn.base import BaseEstimator

from tacit.learners.learner import Learner
from tacit.oracle import Problem
from tacit.problems import PerSample
from tacit.solvers import Solver
from tacit.testing.per_sample_examples import per_sample_variants


def problems() -> list[Problem]:
    """All problems of tacit, in all their variants."""
    kinds = _classes("tacit.problems", Problem)
    return [variant for kind in kinds for variant in (per_sample_variants() if kind is PerSample else kind.variants())]


def solvers() -> list[Solver]:
    """All solvers of tacit, with their default settings."""
    kinds = _classes("tacit.solvers", BaseEstimator)
    return [kind() for kind in kinds if hasattr(kind, "init") and hasattr(kind, "step")]


def learners() -> list[type[Learner]]:
    """All learners of tacit."""
    return _classes("tacit.learners", Learner)


def _classes(package: str, base: type) -> list[Any]:
    return sorted(set(_walk(package, base)), key=lambda kind: str(kind.__name__))


def _walk(package: str, base: type) -> Iterator[Any]:
    """Concrete public classes of the modules of a package, each from the module that defines it."""
    home = importlib.import_module(package)
    for module in pkgutil.walk_packages(home.__path__, f"{package}."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            public = kind.__module__ == module.name and not kind.__name__.startswith("_")
            if (
                public
                and issubclass(kind, base)
                and kind is not base
                and not getattr(kind, "__abstractmethods__", None)
            ):
                yield kind
