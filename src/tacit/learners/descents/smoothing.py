"""A smooth path into a latent objective: both maxima are softened, and less and less, until CCCP takes over.

The soft objective has log-sum-exp in place of the two maxima. At a power of 1 it is a hidden CRF with a margin, at a
high power nearly the latent SVM. L-BFGS minimises it for rising powers, each from the last result.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.preparation import has_hidden_states
from tacit.oracle import Oracle, capability
from tacit.oracle.capabilities import KnowsPart, SumsOutputs
from tacit.penalties import Penalty, Quadratic, without_bounds
from tacit.solvers.quasi_newton import begin, step

POWERS = (1.0, 4.0, 8.0, 16.0, 64.0, 256.0)
"""The powers of the path. Chosen by the objective on training data (`benchmarks/optima_paths.py`): factors of 2 end
about as low and take longer, factors of 8 and a first power of 16 or more end higher. If only the imputing side is
soft, or with Rényi scores of a single high order, the path ends clearly higher."""

STATIONARY = (1e-3, 1e-3, 1.0, 1e-4, 1e-4, 1e-4)
"""A power also ends when half the squared slope is below this share of the soft objective. So the first powers take few
steps, and the third takes one: after it the objective is far below that of w = 0."""

MAX_STEPS, PATIENCE = 200, 5
"""The maximum number of steps of L-BFGS per power, and how many steps together must decrease the objective by
``significant``."""

NOISE = 0.1
"""Standard deviation of the first weights where states would be equal at w = 0."""


@dataclass(frozen=True)
class SoftObjective:
    """``Ω(w) + Σ_i c_i [log Σ_a exp(β (ℓ_i(a) + s(a))) − log Σ_h exp(β s(y_i, h))] / β``, β being the power.

    Where Ω is a norm it is ½‖w‖²; bounds of Ω are left out. As β → ∞ this is the objective of `LatentSVM`.
    """

    oracle: SumsOutputs
    weights: Array
    penalty: Penalty
    power: float

    def __call__(self, w: Array) -> tuple[float, Array]:
        c, free = self.weights, without_bounds(self.penalty)[0]
        penalty = free if free.is_quadratic else Quadratic()
        found = self.oracle.expectations(w, free=c, truth=-c, power=self.power, augmented=True)
        assert found.free is not None
        assert found.truth is not None
        risk = float((c * (found.free - found.truth)).sum()) / self.power
        slope = penalty.dual_scale**2 * (w - penalty.primal(np.zeros_like(w)))
        return penalty.value(w) + risk, slope if found.features is None else slope + found.features


def is_smooth(init: Any) -> bool:
    """Whether ``init`` of a learner asks for a smooth path; it may also be an array."""
    return isinstance(init, str) and init == "smooth"


def takes_path(learner: Any, descent: Any) -> bool:
    """Whether the first start of ``init="auto"`` follows the path, as it does where that was measured to end lower.

    That is a property of the problem. Not with a pace, nor where hidden values are known or tie at w = 0, nor where
    `max_iter` leaves no room for CCCP.
    """
    oracle = descent.oracle
    if not isinstance(learner.init, str) or learner.init != "auto" or learner.pace is not None:
        return False
    if not learner.problem.has_smooth_start or not descent.prefers_path or learner.max_iter <= len(POWERS):
        return False
    if not oracle.hidden_unknown().size or why_not_smooth(descent) or has_ties(oracle):
        return False
    knower = capability(oracle, KnowsPart)
    return knower is None or knower.known_part() is None


def has_ties(oracle: Oracle) -> bool:
    """Whether hidden values have the same features in different blocks of w, so that they tie at w = 0."""
    return has_hidden_states(oracle) or bool(getattr(oracle, "has_tied_blocks", False))


def warn_unless_smooth(learner: Any, descent: Any) -> None:
    """Say in words where a smooth path was asked for and cannot be followed."""
    reason = why_not_smooth(descent) if is_smooth(learner.init) and descent.oracle.hidden_unknown().size else ""
    if reason:
        name = f"{type(learner).__name__}(init='smooth')"
        warnings.warn(f"{name} {reason}; it takes CCCP with init='auto' instead", stacklevel=3)


def why_not_smooth(descent: Any) -> str:
    """Why a descent cannot begin with a smooth path; empty if it can."""
    if not descent.can_follow_path:
        return "needs convex tasks, but the solver visits one sample at a time"
    if descent.rescaling != "margin":
        return f"needs rescaling='margin', got {descent.rescaling!r}"
    if not np.isfinite(without_bounds(descent.penalty)[0].value(np.ones(descent.oracle.n_params))):
        return "needs a finite penalty, but infinite weights switch groups off"
    if capability(descent.oracle, SumsOutputs) is None:
        return "needs sums over outputs (`expectations`), which this problem does not offer"
    return ""


def draw_weights(descent: Any, rng: np.random.Generator, start: int) -> tuple[Array, int]:
    """Where a path begins, and its number of powers: the first start at w = 0, others at random weights.

    Hidden values that tie would stay equal at w = 0. There the first start begins near zero, at the second power: at
    the first one they become nearly equal again.
    """
    noise: Array = rng.standard_normal(descent.oracle.n_params)
    is_tied = has_ties(descent.oracle)
    return (1.0 if start else NOISE if is_tied else 0.0) * noise, len(POWERS) - is_tied


def minimise_soft(descent: Any, now: Any) -> Any:
    """The state of a descent after the next power of its path: one iteration, without a convex task."""
    oracle = descent.oracle.exact()
    stage = len(POWERS) - now.n_powers
    power, stationary = POWERS[stage], STATIONARY[stage]
    function = SoftObjective(oracle, descent.weights, descent.penalty, power)
    point = begin(function, now.w)
    values = [point.value]
    for _ in range(MAX_STEPS):
        point = step(function, point)
        values.append(point.value)
        has_gained = len(values) <= PATIENCE or values[-1 - PATIENCE] - values[-1] > descent.significant
        if point.is_stuck or not has_gained or 0.5 * point.slope**2 <= stationary * abs(point.value):
            break
    lower = without_bounds(descent.penalty)[1]
    w = point.w if lower is None else np.maximum(point.w, lower)
    target = oracle.impute(w, prefer=now.target).code
    objective = descent.objective(w, target)
    return replace(
        now,
        w=w,
        target=target,
        objective=objective,
        changed=descent._count_changed(target, now.target),
        iteration=now.iteration + 1,
        n_powers=now.n_powers - 1,
        n_warm=now.n_warm + bool(w.any()),
        precision=descent._at_least(FIRST_GAP * objective),
    )


FIRST_GAP = 0.01
"""The gap of the first convex task after the path, as a share of the objective."""
