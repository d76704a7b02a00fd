"""Brute force: all outputs of a tiny example, written out."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.oracle import Example, Problem, Task
from tacit.penalties import Quadratic
from tacit.testing.reference_optimum import Optimum, bracket_optimum


class Enumeration:
    """All outputs of all samples of an example, their features and losses: what every oracle must agree with.

    >>> from tacit.problems import Multiclass
    >>> table = Enumeration(Multiclass().example(np.random.default_rng(0)))
    >>> len(table.outputs[0]) == len(table.features[0]) == 3
    True
    """

    def __init__(self, example: Example) -> None:
        self.example = example
        self.n = len(example.y)
        xs = [example.X[i] for i in range(self.n)]
        self.outputs = [example.outputs(x) for x in xs]
        self.features = [
            np.array([example.joint_feature(x, *output) for output in outputs])
            for x, outputs in zip(xs, self.outputs, strict=True)
        ]
        self.losses = [
            np.array([example.loss(true, *output) for output in outputs])
            for true, outputs in zip(example.y, self.outputs, strict=True)
        ]
        self.is_true = [
            np.array([same(label, true) for label, _ in outputs])
            for true, outputs in zip(example.y, self.outputs, strict=True)
        ]

    def target(self, i: int) -> int:
        """The place of the true output among those of sample i."""
        hidden = None if self.example.hidden is None else self.example.hidden[i]
        true = self.example.y[i]
        matches = [same(label, true) and same(h, hidden) for label, h in self.outputs[i]]
        return matches.index(True)

    def optimum(self, weights: Array, precision: float = 1e-9, lower: Array | None = None) -> Optimum:
        """The optimum of ½‖w‖² + Σ c_i ξ_i with every constraint written out, between two certified numbers.

        ``lower`` are the least values of w, where the problem bounds some of them.

        ``bound`` ≤ optimum ≤ ``objective``, the value at ``w``. Neither oracles nor solvers of tacit take part. An
        ArithmeticError says if the two are further apart than ``precision`` times the objective.

        >>> from tacit.problems import Multiclass
        >>> table = Enumeration(Multiclass().example(np.random.default_rng(0)))
        >>> optimum = table.optimum(np.full(table.n, 0.5))
        >>> optimum.bound <= optimum.objective <= (1 + 1e-9) * optimum.bound
        True
        """
        differences = [psi[self.target(i)] - psi for i, psi in enumerate(self.features)]
        return bracket_optimum(differences, self.losses, weights, precision, lower)


def example_task(problem: Problem, seed: int = 0, C: float = 3.0, rescaling: str = "margin") -> Task:
    """A small task of the problem, its hidden values known.

    >>> from tacit.problems import Candidates
    >>> round(float(example_task(Candidates(), C=3.0).weights.sum()), 12)
    3.0
    """
    example = problem.example(np.random.default_rng(seed))
    schema = problem.schema(example.X, example.y)
    known = problem.bind(example.X, example.y, schema, hidden=example.hidden)
    target = known.impute(np.zeros(known.n_params)).code
    free = problem.bind(example.X, example.y, schema)
    oracle = free if free.accepts(target) else known  # a loss may count known links, and the enumeration counts labels
    n = oracle.n_samples
    penalty = Quadratic().in_blocks(schema, problem.lower_bounds(schema))
    return Task(oracle, np.full(n, C / n), target, penalty, rescaling)


def assert_that(holds: Any, otherwise: str) -> None:
    """Raise an AssertionError in words unless the condition holds."""
    if not holds:
        raise AssertionError(otherwise)


def same(a: Any, b: Any) -> bool:
    """Whether two labels or hidden values, or two Ragged of them, are the same, None and arrays included."""
    if isinstance(a, Ragged) and isinstance(b, Ragged):
        return same(a.values, b.values) and same(a.offsets, b.offsets)
    return bool(np.array_equal(a, b)) if a is not None and b is not None else a is b
