"""The sum of the norms of groups of weights: whole groups are exactly zero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.parameters import numbers, shorten
from tacit.penalties.quadratic import add_proximal
from tacit.runtime.archive import record

NAMED_GROUPS = ("auto", "label-state", "state", "feature", "weight")
"""Names of groups that `tacit.penalties.GroupNorm` knows."""


@record
@dataclass(frozen=True)
class GroupNorm:
    """Ω(w) = Σ_g λ_g ‖w_g‖₂, the group lasso: whole groups of weights are exactly zero (Yuan & Lin 2006).

    `tacit.solvers.Bundle` minimises it, with proximal steps and a certificate: the optimum of a task has ``w_g = 0``
    where the slope v of its best lower bound has ``‖v_g‖ < λ_g``.

    Parameters
    ----------
    groups : the group of every weight, whole numbers from 0; or of every input feature, shared by all classes and
        states; or a name. "weight" makes every weight a group, which is the L1 norm. "feature" makes every input
        feature a group, "state" every hidden state, "label-state" every pair of label and hidden state. The last two
        are for problems with separate weights for each pair: ``Transforms(..., blocks="class and state")``,
        ``Chain(states=k)`` and `tacit.problems.SequenceClass`, where the weights of steps are in the group of the state
        that they leave.
        "auto" is "label-state" where there are such weights, and else makes every row of a block a group: a class, a
        position of a motif
    weights : λ, one positive number for all groups or one each. Infinity switches a group off. Zero is an error:
        without a penalty no lower bound holds; use a small number
    pull, centre : a proximal term ½ pull ‖w − centre‖², which solvers add

    >>> penalty = GroupNorm([0, 0, 1], weights=[1.0, 2.0])
    >>> penalty.value(np.array([3.0, 4.0, 1.0])), penalty.norms(np.array([3.0, 4.0, 1.0]))
    (7.0, array([5., 1.]))
    """

    groups: Any = "auto"
    weights: Any = 1.0
    pull: float = 0.0
    centre: Array | None = None

    is_plain = False
    is_quadratic = False

    @property
    def stiffness(self) -> float:
        return self.pull

    @property
    def dual_scale(self) -> Any:
        return np.sqrt(self.pull)

    @cached_property
    def _cut(self) -> _Cut:
        self.check_whole(np.size(self.groups))  # kernels write where groups point
        groups = np.ascontiguousarray(self.groups, dtype=np.int64)
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
        is_sorted = bool((np.diff(order) > 0).all())
        weights = np.broadcast_to(np.asarray(self.weights, dtype=np.float64), starts.size)
        return _Cut(groups, None if is_sorted else order, starts, np.ascontiguousarray(weights))

    @property
    def n_groups(self) -> int:
        return int(self._cut.starts.size)

    @property
    def each_weight(self) -> Array:
        """(n_groups,) the λ_g."""
        return self._cut.weights

    @property
    def group_of_each(self) -> Array:
        """(n_params,) the group of every weight."""
        return self._cut.groups

    def of_groups(self, values: Array) -> Array:
        """For every weight the value of its group."""
        return np.asarray(values[..., self._cut.groups])

    def sums(self, values: Array) -> Array:
        """Sums over the weights of each group, along the last axis."""
        order = self._cut.order
        return np.add.reduceat(values if order is None else values[..., order], self._cut.starts, axis=-1)

    def norms(self, w: Array) -> Array:
        """(n_groups,) the ‖w_g‖."""
        w = self._one_per_weight("w", w)
        return np.sqrt(self.sums(w * w))

    def value(self, w: Array) -> float:
        w = self._one_per_weight("w", w)
        total = sum_norms(w, self.group_of_each, self.each_weight)
        if self.centre is not None and self.pull:
            away = w - self._one_per_weight("centre", self.centre)
            total += 0.5 * self.pull * float(away @ away)
        return total

    def primal(self, slope: Array) -> Array:
        """argmin_w Ω(w) + slope·w, with a proximal term; without one the minimum is at 0, or does not exist.

        >>> GroupNorm([0, 0, 1]).near(np.array([3.0, 4.0, 0.5]), 1.0).primal(np.zeros(3))
        array([2.4, 3.2, 0. ])
        """
        slope = self._one_per_weight("slope", slope)
        if self.centre is None or not self.pull:
            if (self.norms(slope) > self.each_weight).any():
                raise ValueError("the slope is steeper than the norm: add a proximal term with near(...)")
            return np.zeros_like(slope)
        limits, centre = self.each_weight / self.pull, self._one_per_weight("centre", self.centre)
        free, w = np.empty_like(centre), np.empty_like(centre)
        norms, shrinkage = np.empty(limits.size), np.empty(limits.size)
        shrink_groups(slope, centre, self.pull, self.group_of_each, limits, free, norms, shrinkage, w)
        return w

    def _one_per_weight(self, name: str, values: Any) -> Array:
        """A vector with a float64 for every weight: kernels read as many."""
        groups = self._cut.groups
        if type(values) is np.ndarray and values.dtype == np.float64 and values.shape == groups.shape:
            return values
        found = numbers(name, values, f"{groups.size} numbers, one per weight")
        if found.shape != groups.shape:
            raise ValueError(f"{name} must have {groups.size} numbers, one per weight, got shape {found.shape}")
        return found

    def near(self, centre: Array, weight: float) -> Self:
        pull, centre = add_proximal(self.pull, self.centre, weight, centre)
        twin = object.__new__(type(self))  # solvers call this in every step: the cut into groups is shared
        twin.__dict__.update(groups=self.groups, weights=self.weights, pull=pull, centre=centre, _cut=self._cut)
        return twin

    def products(self, slopes: Array, slope: Array) -> Array:
        return np.asarray(slopes @ slope)

    def dual_offsets(self, slopes: Array, offsets: Array) -> Array:
        if self.centre is None or not self.pull:
            return offsets
        return np.asarray(offsets + slopes @ self.centre)

    def least(self, slope: Array, offset: float, floor: float) -> float:
        """A slope that is too steep for a bound is mixed with the slope of the floor, which is 0, until it is not."""
        share = min(1.0, 1.0 / max(self.steepness(slope), 1e-300))
        return share * offset + (1 - share) * floor

    def steepness(self, slope: Array) -> float:
        """max_g ‖slope_g‖ / λ_g, the dual norm: up to 1, Ω(w) + slope·w is not negative anywhere."""
        return find_steepest(self._one_per_weight("slope", slope), self.group_of_each, self.each_weight)

    def on(self, schema: Any) -> Self:
        """The same penalty with a group for every weight of a schema."""
        sizes = [int(np.prod(shape)) for shape in schema.blocks.values()]
        if isinstance(self.groups, str):
            return replace(self, groups=name_groups(self.groups, schema))
        given = np.asarray(self.groups)
        has_features = [shape[-1] == schema.n_features for shape in schema.blocks.values()]
        if given.shape == (schema.n_features,) and sum(sizes) != given.size and any(has_features):
            return replace(self, groups=repeat_groups(given, schema))
        return self

    def check(self, n_params: int) -> None:
        weights = numbers("weights of the group norm", self.weights, "a positive number, or one for each group")
        if isinstance(self.groups, str):
            if self.groups not in NAMED_GROUPS:
                raise ValueError(f"groups must be one of {NAMED_GROUPS} or an array, got {shorten(self.groups)}")
        else:
            groups = numbers("groups", self.groups, "whole numbers from 0")
            if groups.ndim != 1 or not groups.size or (groups != np.round(groups)).any() or groups.min() < 0:
                raise ValueError(f"groups must be whole numbers from 0, one per weight, got {shorten(self.groups)}")
            counts = np.bincount(groups.astype(np.int64), minlength=1) if groups.max() < n_params else np.zeros(1)
            if not counts.all():
                raise ValueError(f"groups must be numbered 0, 1, 2, ... without gaps, got {shorten(self.groups)}")
            if weights.ndim and weights.shape != counts.shape:
                raise ValueError(f"weights must be one number, or one per group ({counts.size}), got {weights.size}")
        if np.isnan(weights).any() or weights.ndim > 1:
            raise ValueError(f"weights of the group norm must be numbers, got {shorten(self.weights)}")
        if not (weights > 0).all():
            raise ValueError(
                f"weights of the group norm must be positive, got {shorten(self.weights)}: without a penalty on a "
                "group no lower bound holds; use a small number such as 1e-3, and infinity to switch a group off"
            )
        if np.isinf(weights).all():
            raise ValueError("weights of the group norm must not all be infinite: every group would be switched off")

    def check_whole(self, n_params: int) -> None:
        """Raise unless there is a group for each of ``n_params`` weights."""
        self.check(n_params)
        if isinstance(self.groups, str) or np.shape(self.groups) != (n_params,):
            raise ValueError(
                f"groups must name one of {NAMED_GROUPS}, or hold one number for each of {n_params} weights or for "
                f"each input feature, got {shorten(self.groups)}"
            )


class _Cut(NamedTuple):
    """How weights are cut into groups: the group of each, their order by group (None if sorted), starts, and λ."""

    groups: Array
    order: Array | None
    starts: Array
    weights: Array


def name_groups(name: str, schema: Any) -> Array:
    """The groups of a name, for the blocks of a schema."""
    if name == "weight":
        return np.arange(schema.n_params)
    if name == "feature":
        return repeat_groups(np.arange(schema.n_features), schema)
    if name == "auto":
        return _rows_of_blocks(schema)
    parts = []
    K, T = len(schema.classes), len(schema.facts.get("states", ()))
    table = np.arange(K * T).reshape(K, T) if name == "label-state" else np.tile(np.arange(T), (K, 1))
    for shape in schema.blocks.values():
        if not T or (shape[:2] != (K, T) and shape[0] != K * T):
            raise ValueError(
                f"groups={name!r} needs separate weights for every label and state, but the blocks are "
                f"{shorten(dict(schema.blocks))}; use Transforms(..., blocks='class and state'), or give an array "
                "with the group of every weight"
            )
        rows = table if shape[:2] == (K, T) else table.ravel()
        parts.append(np.broadcast_to(rows.reshape(*rows.shape, *[1] * (len(shape) - rows.ndim)), shape).ravel())
    return np.concatenate(parts)


def _rows_of_blocks(schema: Any) -> Array:
    """A group for every row of a block; a block with one number per row of another (intercepts) joins those rows."""
    first: dict[tuple[int, ...], Array] = {}
    parts, n = [], 0
    for shape in sorted(schema.blocks.values(), key=len, reverse=True):
        if shape not in first:
            rows = shape[:-1] if len(shape) > 1 else shape
            first.setdefault(rows, np.arange(n, n + int(np.prod(rows))).reshape(rows))
            n = max(n, int(first[rows].max()) + 1)
    for shape in schema.blocks.values():
        table = first[shape] if shape in first else first[shape[:-1]][..., None]
        parts.append(np.broadcast_to(table, shape).ravel())
    return np.unique(np.concatenate(parts), return_inverse=True)[1].ravel()


def repeat_groups(given: Array, schema: Any) -> Array:
    """The groups of features for every block of a schema; weights without a feature (intercepts) are one more group."""
    parts, rest = [], int(given.max()) + 1
    for shape in schema.blocks.values():
        has_features = len(shape) > 1 and shape[-1] == schema.n_features
        parts.append(np.broadcast_to(given if has_features else np.full(shape[-1], rest), shape).ravel())
    return np.concatenate(parts)


@kernel
def sum_norms(w: Array, groups: Array, weights: Array) -> float:
    """Σ_g λ_g ‖w_g‖; groups that are zero add nothing, whatever their λ."""
    total, squares = 0.0, np.zeros(weights.size)
    for k in range(w.size):
        squares[groups[k]] += w[k] * w[k]
    for g in range(weights.size):
        if squares[g] > 0:
            total += weights[g] * np.sqrt(squares[g])
    return total


@kernel
def find_steepest(slope: Array, groups: Array, weights: Array) -> float:
    """max_g ‖slope_g‖ / λ_g."""
    steepest, squares = 0.0, np.zeros(weights.size)
    for k in range(slope.size):
        squares[groups[k]] += slope[k] * slope[k]
    for g in range(weights.size):
        steepness = np.sqrt(squares[g]) / weights[g]
        steepest = steepness if steepness > steepest else steepest
    return steepest


@kernel
def shrink_groups(
    slope: Array,
    centre: Array,
    rho: float,
    groups: Array,
    limits: Array,
    free: Array,
    norms: Array,
    shrinkage: Array,
    w: Array,
) -> None:
    """The proximal step of a slope: u before groups are shrunk, their norms, the factors, and w = the factors · u."""
    for g in range(norms.size):
        norms[g] = 0.0
    for k in range(slope.size):
        free[k] = centre[k] - slope[k] / rho
        norms[groups[k]] += free[k] * free[k]
    for g in range(norms.size):
        norms[g] = np.sqrt(norms[g])
        shrinkage[g] = 1.0 - limits[g] / norms[g] if norms[g] > limits[g] else 0.0
    for k in range(slope.size):
        w[k] = free[k] * shrinkage[groups[k]]
