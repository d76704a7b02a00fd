"""The convex penalty Ω(w) of a task: its value, its minimiser with a linear term added, and its dual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from tacit.arrays import Array
from tacit.inputs.parameters import is_not_negative, number, numbers, shorten

__all__ = ["GroupNorm", "Penalty", "Prior", "Quadratic"]


class Penalty(Protocol):
    """What learners, tasks and solvers need of Ω.

    A solver that works in the dual minimises ``Ω(w) + Σ_m α_m (slope_m·w + offset_m)`` over w, for weights α of planes;
    `primal` gives that w. What is then maximised over α is quadratic: ``α·dual_offsets − ½ αᵀGα / stiffness`` with the
    inner products G of `products`.
    """

    @property
    def is_plain(self) -> bool:
        """Whether this is exactly ½‖w‖²: dual points that are kept as weights on outputs rely on it."""

    @property
    def stiffness(self) -> float:
        """By how much the curvature of the dual is divided."""

    @property
    def dual_scale(self) -> Any:
        """Slopes divided by this have the inner products ``G / stiffness``."""

    @property
    def is_quadratic(self) -> bool:
        """Whether the dual is the quadratic above; of norms solvers ask for proximal steps instead, as `GroupNorm` has
        them."""

    def value(self, w: Array) -> float:
        """Ω(w), not negative."""

    def primal(self, slope: Array) -> Array:
        """argmin_w Ω(w) + slope·w."""

    def near(self, centre: Array, weight: float) -> Penalty:
        """This penalty plus a proximal term of this weight; values are right up to a constant."""

    def products(self, slopes: Array, slope: Array) -> Array:
        """Inner products of slopes in the metric of the dual."""

    def dual_offsets(self, slopes: Array, offsets: Array) -> Array:
        """The linear coefficients of the dual, one per plane."""

    def least(self, slope: Array, offset: float, floor: float) -> float:
        """A lower bound on ``Ω(w) + max(slope·w + offset, floor)`` over all w."""

    def check(self, n_params: int) -> None:
        """Raise if this is no penalty for so many weights."""


@dataclass(frozen=True)
class Quadratic:
    """Ω(w) = ½ wᵀMw + ½ρ (w − z)ᵀM(w − z), with a diagonal metric M, a proximal weight ρ and its centre z.

    The default is ½‖w‖². The second part is a proximal term, or the Lagrangian of a ball around z. A metric that is
    constant per block of weights is the variational form of a group norm.

    Parameters
    ----------
    metric : the diagonal of M, one number for all weights or one each, positive
    pull : the proximal weight ρ
    centre : z; None for no proximal term
    lower : the least value of every weight, 0 or below: one number for all weights, one each, or a dict from names of
        blocks (`weights_` of a learner has them) to numbers or arrays of their shape; None for no bounds. Beyond them
        the penalty is infinite: solvers stay within, and their certificates hold among the weights that are allowed.
        ``{"pairwise": 0}`` says that these weights are not negative; −inf leaves a weight free

    >>> Quadratic().value(np.array([3.0, 4.0]))
    12.5
    >>> Quadratic(lower=0.0).primal(np.array([-2.0, 5.0]))
    array([2., 0.])
    """

    metric: Any = 1.0
    pull: float = 0.0
    centre: Array | None = None
    lower: Any = None

    @property
    def is_plain(self) -> bool:
        is_unit = np.ndim(self.metric) == 0 and self.metric == 1.0
        return is_unit and self.lower is None and (not self.pull or self.centre is None)

    @property
    def is_quadratic(self) -> bool:
        return True

    @property
    def stiffness(self) -> float:
        return 1.0 + (self.pull if self.centre is not None else 0.0)

    @property
    def dual_scale(self) -> Any:
        return np.sqrt(self.metric * self.stiffness)

    def value(self, w: Array) -> float:
        total = 0.5 * float(w @ (self.metric * w))
        if self.centre is not None and self.pull:
            away = w - self.centre
            total += 0.5 * self.pull * float(away @ (self.metric * away))
        return total

    def primal(self, slope: Array) -> Array:
        """argmin_w Ω(w) + slope·w.

        >>> Quadratic(pull=1.0, centre=np.array([2.0])).primal(np.array([0.0]))
        array([1.])
        """
        free = -slope / self.metric
        if self.centre is not None and self.pull:
            free = (self.pull * self.centre + free) / (1 + self.pull)
        return np.asarray(free) if self.lower is None else np.maximum(free, self.lower)

    def near(self, centre: Array, weight: float) -> Self:
        """This penalty plus a proximal term.

        >>> Quadratic(pull=1.0, centre=np.array([2.0])).near(np.array([4.0]), 1.0).centre
        array([3.])
        """
        if self.centre is None or not self.pull:
            return replace(self, pull=weight, centre=centre)
        total = self.pull + weight
        return replace(self, pull=total, centre=(self.pull * self.centre + weight * centre) / total)

    def products(self, slopes: Array, slope: Array) -> Array:
        return np.asarray(slopes @ (slope / self.metric))

    def dual_offsets(self, slopes: Array, offsets: Array) -> Array:
        if self.centre is None or not self.pull:
            return offsets
        return np.asarray(offsets + self.pull / self.stiffness * (slopes @ self.centre))

    def least(self, slope: Array, offset: float, floor: float) -> float:
        w = self.primal(slope)
        return offset + float(slope @ w) + self.value(w)

    def check(self, n_params: int) -> None:
        for name, values in (("metric", self.metric), ("centre", 0.0 if self.centre is None else self.centre)):
            table = numbers(f"{name} of the penalty", values, "a number, or one for each weight")
            if table.ndim and table.shape != (n_params,):
                raise ValueError(
                    f"{name} of the penalty has shape {table.shape}, there are {n_params} weights; give one number each"
                )
            if not np.isfinite(table).all():
                raise ValueError(f"{name} of the penalty holds NaN or infinity")
        if self.centre is not None and np.ndim(self.centre) == 0:
            raise ValueError(
                f"centre of the penalty is one number for each of {n_params} weights, got {shorten(self.centre)}"
            )
        if not np.all(np.asarray(self.metric) > 0):
            raise ValueError(f"the metric of a penalty is positive, got metric={shorten(self.metric)}")
        number("pull", self.pull, "a number from 0", is_not_negative)
        if self.lower is not None:
            _check_lower(self.lower, n_params)

    def in_blocks(self, schema: Any, lower: Mapping[str, float] | None = None) -> Self:
        """The same penalty with bounds that were given by block as one vector; ``lower`` are more bounds by block.

        >>> from tacit.oracle import Schema
        >>> schema = Schema(np.array([0, 1]), 2, {"weights": (2, 2), "intercept": (2,)})
        >>> Quadratic(lower={"intercept": 0}).in_blocks(schema).lower
        array([-inf, -inf, -inf, -inf,   0.,   0.])
        """
        if not lower and not isinstance(self.lower, Mapping):
            return self
        bounds = np.full(schema.n_params, -np.inf)
        if self.lower is not None and not isinstance(self.lower, Mapping):
            _check_lower(self.lower, schema.n_params)
            bounds[:] = self.lower
        for given in (self.lower, lower):
            if isinstance(given, Mapping):
                _raise_by_block(bounds, schema, given)
        return replace(self, lower=bounds)


def without_bounds(penalty: Any) -> tuple[Any, Any]:
    """A penalty without its lower bounds, and the bounds; None for those where it has none.

    >>> without_bounds(Quadratic(lower=0.0))
    (Quadratic(metric=1.0, pull=0.0, centre=None, lower=None), 0.0)
    """
    lower = getattr(penalty, "lower", None)
    return (penalty, None) if lower is None else (replace(penalty, lower=None), lower)


def _raise_by_block(bounds: Array, schema: Any, given: Mapping[str, Any]) -> None:
    views = schema.views(bounds)
    for name, value in given.items():
        if name not in views:
            raise ValueError(
                f"lower names the block {shorten(name)} of weights, and there are {', '.join(map(repr, views))}"
            )
        table = numbers(f"lower[{shorten(name)}]", value, "a number, or one for each weight of the block")
        if table.ndim and table.shape != views[name].shape:
            raise ValueError(f"lower[{shorten(name)}] has shape {table.shape}, the block has {views[name].shape}")
        views[name][:] = np.maximum(views[name], table)


def _check_lower(lower: Any, n_params: int) -> None:
    table = numbers("lower of the penalty", lower, "a number, one for each weight, or a dict by block")
    if table.ndim and table.shape != (n_params,):
        raise ValueError(
            f"lower of the penalty has shape {table.shape}, there are {n_params} weights; give one number each"
        )
    if np.isnan(table).any() or (table > 0).any():
        raise ValueError(
            f"lower bounds of weights are 0 or below (−inf for none), so that w = 0 is allowed, got {shorten(lower)}"
        )


@dataclass(frozen=True)
class Prior:
    """Ω(w) = ½ (w − z)ᵀM(w − z): a pull to given weights z instead of 0, with a diagonal metric M.

    Where the data say nothing the weights are z, and not between z and 0 as with ``Quadratic(pull=..., centre=z)``.

    Parameters
    ----------
    centre : z, one number for each weight
    metric : the diagonal of M, one number for all weights or one each, positive
    proximal, around : a proximal term ½ proximal (w − around)ᵀM(w − around), which solvers add

    >>> prior = Prior(np.array([2.0, -1.0]))
    >>> prior.value(np.array([3.0, -1.0])), prior.primal(np.zeros(2))
    (0.5, array([ 2., -1.]))
    """

    centre: Any
    metric: Any = 1.0
    proximal: float = 0.0
    around: Array | None = None

    @property
    def is_plain(self) -> bool:
        return False

    @property
    def is_quadratic(self) -> bool:
        return True

    @property
    def stiffness(self) -> float:
        return 1.0 + (self.proximal if self.around is not None else 0.0)

    @property
    def dual_scale(self) -> Any:
        return np.sqrt(self.metric * self.stiffness)

    @property
    def _middle(self) -> Array:
        """Where the penalty and its proximal term together are lowest."""
        centre = np.asarray(self.centre, dtype=np.float64)
        if self.around is None or not self.proximal:
            return centre
        return np.asarray((centre + self.proximal * self.around) / (1 + self.proximal))

    def value(self, w: Array) -> float:
        away = w - np.asarray(self.centre, dtype=np.float64)
        total = 0.5 * float(away @ (self.metric * away))
        if self.around is not None and self.proximal:
            moved = w - self.around
            total += 0.5 * self.proximal * float(moved @ (self.metric * moved))
        return total

    def primal(self, slope: Array) -> Array:
        return np.asarray(self._middle - slope / self.metric / self.stiffness)

    def near(self, centre: Array, weight: float) -> Self:
        if self.around is None or not self.proximal:
            return replace(self, proximal=weight, around=centre)
        total = self.proximal + weight
        return replace(self, proximal=total, around=(self.proximal * self.around + weight * centre) / total)

    def products(self, slopes: Array, slope: Array) -> Array:
        return np.asarray(slopes @ (slope / self.metric))

    def dual_offsets(self, slopes: Array, offsets: Array) -> Array:
        return np.asarray(offsets + slopes @ self._middle)

    def least(self, slope: Array, offset: float, floor: float) -> float:
        w = self.primal(slope)
        return offset + float(slope @ w) + self.value(w)

    def check(self, n_params: int) -> None:
        centre = numbers("centre of the prior", self.centre, "one number for each weight")
        if centre.shape != (n_params,) or not np.isfinite(centre).all():
            raise ValueError(
                f"centre of the prior has shape {centre.shape}; give a finite number for each of {n_params} weights"
            )
        Quadratic(self.metric, self.proximal, self.around).check(n_params)


NAMED_GROUPS = ("auto", "label-state", "state", "feature")
"""Names of groups that `GroupNorm.on` knows."""


@dataclass(frozen=True)
class GroupNorm:
    """Ω(w) = Σ_g λ_g ‖w_g‖₂, with which whole groups of weights are exactly zero (Yuan & Lin 2006).

    `tacit.solvers.Bundle` minimises it, with proximal steps and a certificate: the optimum of a task has ``w_g = 0``
    where the slope v of its best lower bound has ``‖v_g‖ < λ_g``.

    Parameters
    ----------
    groups : the group of every weight, whole numbers from 0; or one for every input feature, shared by all classes and
        states, so that families of features are switched on and off together; or a name. "feature" makes every input
        feature a group, "state" every hidden state, "label-state" every pair of label and hidden state, for problems
        with weights of their own for each, such as ``Transforms(..., blocks="class and state")``. "auto" is that where
        there are such weights, and else every row of a block: a class, a position of a motif
    weights : λ, one positive number for all groups or one each. Infinity switches a group off. Zero is an error:
        without a penalty no lower bound holds; take a small number
    pull, centre : a proximal term ½ pull ‖w − centre‖², which solvers add

    >>> penalty = GroupNorm([0, 0, 1], weights=[1.0, 2.0])
    >>> penalty.value(np.array([3.0, 4.0, 1.0])), penalty.norms(np.array([3.0, 4.0, 1.0]))
    (7.0, array([5., 1.]))
    """

    groups: Any = "auto"
    weights: Any = 1.0
    pull: float = 0.0
    centre: Array | None = None

    @property
    def is_plain(self) -> bool:
        return False

    @property
    def is_quadratic(self) -> bool:
        return False

    @property
    def stiffness(self) -> float:
        return self.pull

    @property
    def dual_scale(self) -> Any:
        return np.sqrt(self.pull)

    @cached_property
    def _cut(self) -> _Cut:
        groups = np.ascontiguousarray(self.groups, dtype=np.int64)
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
        is_sorted = bool((np.diff(order) > 0).all())
        weights = np.broadcast_to(np.asarray(self.weights, dtype=np.float64), starts.size)
        return _Cut(groups, None if is_sorted else order, starts, weights)

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
        return np.sqrt(self.sums(w * w))

    def value(self, w: Array) -> float:
        norms = self.norms(w)
        used = norms > 0
        total = float((self.each_weight[used] * norms[used]).sum())
        if self.centre is not None and self.pull:
            away = w - self.centre
            total += 0.5 * self.pull * float(away @ away)
        return total

    def primal(self, slope: Array) -> Array:
        """argmin_w Ω(w) + slope·w, with a proximal term: without one there is no minimum, or it is 0.

        >>> GroupNorm([0, 0, 1]).near(np.array([3.0, 4.0, 0.5]), 1.0).primal(np.zeros(3))
        array([2.4, 3.2, 0. ])
        """
        if self.centre is None or not self.pull:
            if (self.norms(slope) > self.each_weight).any():
                raise ValueError("a norm plus a steep slope has no minimum: add a proximal term with near(...)")
            return np.zeros_like(slope)
        free = self.centre - slope / self.pull
        return np.asarray(free * self.of_groups(self.shrinkage(self.norms(free))))

    def shrinkage(self, norms: Array) -> Array:
        """By which factor proximal steps shrink groups of these norms; 0 for those that become zero."""
        limit = self.each_weight / self.pull
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(norms > limit, 1.0 - limit / norms, 0.0)

    def near(self, centre: Array, weight: float) -> Self:
        if self.centre is None or not self.pull:
            return self._with(weight, centre)
        total = self.pull + weight
        return self._with(total, (self.pull * self.centre + weight * centre) / total)

    def _with(self, pull: float, centre: Array) -> Self:
        twin = replace(self, pull=pull, centre=centre)
        twin.__dict__["_cut"] = self._cut  # a solver asks for a new centre in every step
        return twin

    def products(self, slopes: Array, slope: Array) -> Array:
        return np.asarray(slopes @ slope)

    def dual_offsets(self, slopes: Array, offsets: Array) -> Array:
        if self.centre is None or not self.pull:
            return offsets
        return np.asarray(offsets + slopes @ self.centre)

    def least(self, slope: Array, offset: float, floor: float) -> float:
        """A slope that is too steep for a bound is mixed with that of the floor, 0, until it is not."""
        share = min(1.0, 1.0 / max(self.steepness(slope), 1e-300))
        return share * offset + (1 - share) * floor

    def steepness(self, slope: Array) -> float:
        """max_g ‖slope_g‖ / λ_g, the dual norm: up to 1 the penalty outweighs the slope everywhere."""
        return float(np.max(self.norms(slope) / self.each_weight, initial=0.0))

    def on(self, schema: Any) -> Self:
        """The same penalty with a group for every weight of a schema."""
        sizes = [int(np.prod(shape)) for shape in schema.blocks.values()]
        if isinstance(self.groups, str):
            return replace(self, groups=_named_groups(self.groups, schema))
        given = np.asarray(self.groups)
        has_features = [shape[-1] == schema.n_features for shape in schema.blocks.values()]
        if given.shape == (schema.n_features,) and sum(sizes) != given.size and any(has_features):
            return replace(self, groups=_repeated(given, schema))
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
                raise ValueError(f"groups are numbered 0, 1, 2, ... without gaps, got {shorten(self.groups)}")
            if weights.ndim and weights.shape != counts.shape:
                raise ValueError(f"{counts.size} groups have {weights.size} weights; give one each, or one for all")
        if np.isnan(weights).any() or weights.ndim > 1:
            raise ValueError(f"weights of the group norm are numbers, got {shorten(self.weights)}")
        if not (weights > 0).all():
            raise ValueError(
                f"weights of the group norm are positive, got {shorten(self.weights)}: without a penalty on a group "
                "no lower bound holds; use a small number such as 1e-3, and infinity to switch a group off"
            )
        if np.isinf(weights).all():
            raise ValueError("every group is switched off by an infinite weight: nothing is left to learn")

    def check_whole(self, n_params: int) -> None:
        """Raise unless there is a group for each of so many weights."""
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


def _named_groups(name: str, schema: Any) -> Array:
    """The groups of a name, for the blocks of a schema."""
    parts = []
    if name == "feature":
        return _repeated(np.arange(schema.n_features), schema)
    if name == "auto":
        return _rows_of_blocks(schema)
    for shape in schema.blocks.values():
        if len(schema.facts.get("states", ())) == 0 or shape[:2] != (len(schema.classes), len(schema.facts["states"])):
            raise ValueError(
                f"groups={name!r} needs weights of their own for every label and state, and there are the blocks "
                f"{shorten(dict(schema.blocks))}; use Transforms(..., blocks='class and state'), or give an array "
                "with the group of every weight"
            )
        K, T = shape[:2]
        table = np.arange(K * T).reshape(K, T) if name == "label-state" else np.tile(np.arange(T), (K, 1))
        parts.append(np.broadcast_to(table.reshape(K, T, *[1] * (len(shape) - 2)), shape).ravel())
    return np.concatenate(parts)


def _rows_of_blocks(schema: Any) -> Array:
    """A group for every row of a block; a block with one number for each row of another, intercepts, joins those."""
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


def _repeated(given: Array, schema: Any) -> Array:
    """The groups of features for every block of a schema; weights of no feature, intercepts, are one more group."""
    parts, rest = [], int(given.max()) + 1
    for shape in schema.blocks.values():
        has_features = len(shape) > 1 and shape[-1] == schema.n_features
        parts.append(np.broadcast_to(given if has_features else np.full(shape[-1], rest), shape).ravel())
    return np.concatenate(parts)
