"""Quadratic penalties: ½‖w‖² with an optional metric, proximal term and lower bounds; ½‖w − z‖², a prior at z."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import is_not_negative, number, numbers, shorten
from tacit.runtime.archive import record


class InMetric:
    """What penalties that are quadratic in a diagonal metric have in common."""

    is_quadratic = True

    @property
    def dual_scale(self: Any) -> Any:
        return np.sqrt(self.metric * self.stiffness)

    def products(self: Any, slopes: Array, slope: Array) -> Array:
        return np.asarray(slopes @ (slope / self.metric))

    def least(self: Any, slope: Array, offset: float, floor: float) -> float:
        w = self.primal(slope)
        return offset + float(slope @ w) + float(self.value(w))


@record
@dataclass(frozen=True)
class Quadratic(InMetric):
    """Ω(w) = ½ wᵀMw + ½ρ (w − z)ᵀM(w − z), with a diagonal metric M, a proximal weight ρ and its centre z.

    The default is ½‖w‖². The second part is a proximal term, or the Lagrangian of a ball around z. A metric that is
    constant per block of weights is the variational form of a group norm.

    Parameters
    ----------
    metric : the diagonal of M, one number for all weights or one each, positive
    pull : the proximal weight ρ
    centre : z; None for no proximal term
    lower : the least value of every weight, 0 or below; None for no bounds. One number for all weights, one each, or a
        dict from names of blocks (those of a learner's `weights_`) to numbers or arrays of their shape. Solvers stay
        within the bounds, and certificates hold among the weights that they allow. ``{"pairwise": 0}`` says that these
        weights are not negative; −inf leaves a weight free

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
    def stiffness(self) -> float:
        return 1.0 + (self.pull if self.centre is not None else 0.0)

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
        pull, centre = add_proximal(self.pull, self.centre, weight, centre)
        return replace(self, pull=pull, centre=centre)

    def dual_offsets(self, slopes: Array, offsets: Array) -> Array:
        if self.centre is None or not self.pull:
            return offsets
        return np.asarray(offsets + self.pull / self.stiffness * (slopes @ self.centre))

    def check(self, n_params: int) -> None:
        for name, values in (("metric", self.metric), ("centre", 0.0 if self.centre is None else self.centre)):
            if not np.isfinite(_one_per_weight(name, values, n_params)).all():
                raise ValueError(f"{name} of the penalty must be finite, got {shorten(values)}")
        if self.centre is not None and np.ndim(self.centre) == 0:
            raise ValueError(f"centre must hold one number for each of {n_params} weights, got {shorten(self.centre)}")
        if not np.all(np.asarray(self.metric) > 0):
            raise ValueError(f"metric of the penalty must be positive, got {shorten(self.metric)}")
        number("pull", self.pull, "a number from 0", is_not_negative)
        if self.lower is not None:
            _check_lower(self.lower, n_params)

    def in_blocks(self, schema: Any, lower: Mapping[str, float] | None = None) -> Self:
        """The same penalty with its bounds by block as one vector; ``lower`` are more bounds by block.

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


@record
@dataclass(frozen=True)
class Prior(InMetric):
    """Ω(w) = ½ (w − z)ᵀM(w − z): a Gaussian prior with mean z instead of 0, and a diagonal metric M.

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

    is_plain = False

    @property
    def stiffness(self) -> float:
        return 1.0 + (self.proximal if self.around is not None else 0.0)

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
            away = w - self.around
            total += 0.5 * self.proximal * float(away @ (self.metric * away))
        return total

    def primal(self, slope: Array) -> Array:
        return np.asarray(self._middle - slope / self.metric / self.stiffness)

    def near(self, centre: Array, weight: float) -> Self:
        proximal, around = add_proximal(self.proximal, self.around, weight, centre)
        return replace(self, proximal=proximal, around=around)

    def dual_offsets(self, slopes: Array, offsets: Array) -> Array:
        return np.asarray(offsets + slopes @ self._middle)

    def check(self, n_params: int) -> None:
        centre = numbers("centre of the prior", self.centre, "one number for each weight")
        if centre.shape != (n_params,) or not np.isfinite(centre).all():
            found = shorten(centre.tolist())
            raise ValueError(f"centre must hold a finite number for each of {n_params} weights, got {found}")
        Quadratic(self.metric, self.proximal, self.around).check(n_params)


def add_proximal(pull: float, centre: Array | None, weight: float, other: Array) -> tuple[float, Array]:
    """Two proximal terms as one: ``½ pull ‖w − centre‖²``, if there is one, and ``½ weight ‖w − other‖²``."""
    if centre is None or not pull:
        return weight, other
    total = pull + weight
    return total, (pull * centre + weight * other) / total


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
            raise ValueError(f"lower must name blocks of weights ({', '.join(map(repr, views))}), got {shorten(name)}")
        table = numbers(f"lower[{shorten(name)}]", value, "a number, or one for each weight of the block")
        if table.ndim and table.shape != views[name].shape:
            raise ValueError(f"lower[{shorten(name)}] must have the shape {views[name].shape}, got {table.shape}")
        views[name][:] = np.maximum(views[name], table)


def _check_lower(lower: Any, n_params: int) -> None:
    if isinstance(lower, Mapping):  # names and shapes of blocks are compared where the schema is known
        for name, value in lower.items():
            _check_signs(numbers(f"lower[{shorten(name)}]", value, "a number, or one for each weight of the block"))
        return
    _check_signs(_one_per_weight("lower", lower, n_params, ", or a dict by block"))


def _one_per_weight(name: str, values: Any, n_params: int, also: str = "") -> Array:
    table = numbers(f"{name} of the penalty", values, f"a number, or one for each weight{also}")
    if table.ndim and table.shape != (n_params,):
        raise ValueError(f"{name} must hold one number for each of {n_params} weights, got shape {table.shape}")
    return table


def _check_signs(table: Array) -> None:
    if np.isnan(table).any() or (table > 0).any():
        raise ValueError(
            "lower bounds must be 0 or below (−inf for none), so that w = 0 is allowed, "
            f"got lower={shorten(table.tolist())}"
        )
