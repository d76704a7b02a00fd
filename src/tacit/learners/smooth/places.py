"""Where a descent by gradients is, and what its history says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit.data.arrays import Array

__all__ = ["Method", "Place", "SmoothStep", "check_shapes"]


class SmoothStep(NamedTuple):
    """One line of the history of a learner that descends by gradients.

    ``objective`` is the true one, of all samples; ``slope`` is the norm of its gradient (infinite where a method does
    not compute it). ``evaluations`` counts the passes over the data so far, ``samples_in`` the samples that the step
    learned from.
    """

    iteration: int
    seconds: float
    objective: float
    slope: float
    evaluations: int
    samples_in: int


@dataclass(frozen=True)
class Place:
    """Where a run is: weights, their objective, and in ``memory`` the arrays that its method goes on with."""

    w: Array
    objective: float
    slope: float = np.inf
    iteration: int = 0
    evaluations: int = 0
    samples_in: int = 0
    is_done: bool = False
    is_solved: bool = True
    memory: Mapping[str, Array] = field(default_factory=dict)

    def line(self, seconds: float) -> SmoothStep:
        """The line of the history for this place."""
        numbers = self.objective, self.slope, self.evaluations, self.samples_in
        return SmoothStep(self.iteration, seconds, *numbers)


class Method(Protocol):
    """How a run descends; a step returns a new place and leaves the old one whole."""

    @property
    def n_params(self) -> int:
        """The length of w."""

    def begin(self, w: Array) -> Place:
        """The first place of a run."""

    def step(self, now: Place) -> Place:
        """The next place."""

    def check(self, memory: Mapping[str, Array]) -> None:
        """Refuse a stored memory that no run of this method could have."""


def check_shapes(memory: Mapping[str, Array], shapes: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse arrays of other names or shapes (None: any size), or of anything but finite numbers."""
    for name, shape in shapes.items():
        values = memory.get(name)
        fits = (
            isinstance(values, np.ndarray)
            and values.dtype.kind in "bf"
            and values.ndim == len(shape)
            and all(wanted in (None, size) for wanted, size in zip(shape, values.shape, strict=True))
            and bool(np.isfinite(values).all())
        )
        if not fits:
            raise ValueError(f"{name} is not the finite numbers of shape {shape} that a run keeps")
