"""All problems, solvers and learners that tacit exports, for the common tests."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from tacit.learners.learner import Learner
from tacit.oracle import Problem
from tacit.problems import PerSample
from tacit.solvers import Solver
from tacit.testing.per_sample import per_sample_variants


def problems() -> list[Problem]:
    """All problems of tacit, in all their variants."""
    kinds = _exported_classes("tacit.problems", Problem)
    return [variant for kind in kinds for variant in (per_sample_variants() if kind is PerSample else kind.variants())]


def solvers() -> list[Solver]:
    """All solvers of tacit, with their default settings."""
    return [kind() for kind in _exported_classes("tacit.solvers", Solver)]


def learners() -> list[type[Learner]]:
    """All learners of tacit."""
    return _exported_classes("tacit.learners", Learner)


def _exported_classes(package: str, base: type) -> list[Any]:
    """The concrete subclasses of a class among the exports of a package, sorted by name."""
    home = importlib.import_module(package)
    found = [getattr(home, name) for name in home.__all__]
    kinds = [kind for kind in found if inspect.isclass(kind) and issubclass(kind, base) and kind is not base]
    return sorted((kind for kind in kinds if not inspect.isabstract(kind)), key=lambda kind: str(kind.__name__))
