"""Where a start begins: given weights, proposals of the problem, a stochastic descent, or k-means.

Margin learners start from hidden values, learners by gradients from weights. The stochastic descent on the latent SVM's
objective imputes hidden values at every visit of a sample.

Hidden states below a label have equal weights at w = 0. If they are drawn at random they stay nearly equal, and the fit
ends above the one without states. A few averaged stochastic passes from slightly different weights separate them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from tacit.data.arrays import Array, checksum
from tacit.data.parameters import numbers, shorten
from tacit.data.ragged import Ragged
from tacit.learners.descents.descent import Descent, LatentState
from tacit.learners.descents.multistart import Weights
from tacit.learners.preparation import has_hidden_states
from tacit.oracle import Oracle, capability, require
from tacit.oracle.capabilities import ClustersParts, LearnsOnline, ProposesStarts

INIT_SCALE = 0.1
"""Standard deviation of the first weights, in units of the mean c_i: less than what one sample moves."""

EPOCHS = 10
"""Passes over the samples before the descent proper."""

HEAD_START = 0.1
"""Passes that the first step counts as already made. The fewer, the longer the first steps, which separate states; on
handwritten words a whole pass ended at an objective of 199 instead of 190."""


class Beginning(NamedTuple):
    """What a start begins with: a code with hidden values, weights, or neither; and the number of proposed codes."""

    code: Array | None = None
    w: Array | None = None
    n_proposed: int = 0


def find_beginning(
    learner: Any, oracle: Oracle, weights: Array, start: int, rng: np.random.Generator, init: Any = "auto"
) -> Beginning:
    """What a start begins with by ``init``: see `tacit.LatentSVM`."""
    if not isinstance(init, str):
        return Beginning()
    who = f"{type(learner).__name__}(init={init!r})"
    is_online = has_hidden_states(oracle) and capability(oracle, LearnsOnline) is not None
    if init == "warm" or (init == "auto" and is_online):
        online = require(who, learner.problem, oracle, LearnsOnline, "use init='weights'")
        return Beginning(w=learn_first_weights(online, weights, rng))
    if init == "k-means":
        clustering = require(who, learner.problem, oracle, ClustersParts, "use init='auto'")
        return Beginning(clustering.clusters(rng))
    proposed = propose(oracle, int(learner.n_init)) if init in ("auto", "proposed") else []
    return Beginning(proposed[start] if start < len(proposed) else None, n_proposed=len(proposed))


def propose(oracle: Oracle, most: int) -> list[Array]:
    """Codes that the problem proposes to begin with, one per start."""
    proposer = capability(oracle, ProposesStarts)
    return [] if proposer is None else proposer.proposals(most)


def given_weights(init: Mapping[str, Any], schema: Any, lower: Any = None) -> Array:
    """The weights that ``init`` gives by block, within bounds where there are any."""
    w = np.zeros(schema.n_params)
    views = schema.views(w)
    if set(views) != set(init):
        raise ValueError(f"init must give weights of {sorted(views)}, got {shorten(list(init))}")
    for name, values in init.items():
        table = numbers(f"init[{shorten(name)}]", values, f"an array of shape {views[name].shape}")
        if table.shape != views[name].shape or not np.isfinite(table).all():
            shape = views[name].shape
            raise ValueError(f"init[{shorten(name)}] must be finite numbers of shape {shape}, got shape {table.shape}")
        views[name][:] = table
    return w if lower is None else np.maximum(w, lower)


def digest_init(init: Any) -> str:
    """What a checkpoint compares of ``init``: its name, or a checksum of the values as the user gives them."""
    if isinstance(init, str):
        return repr(init)
    return "hidden values " + _digest_values(init)


def _digest_values(values: Any) -> str:
    if isinstance(values, Ragged):
        return checksum(values.values, values.offsets)
    if isinstance(values, Mapping):
        return " ".join(f"{name} {_digest_values(values[name])}" for name in sorted(values))
    try:
        values = np.asarray(values)
    except ValueError:  # entries of several lengths
        values = np.array([repr(value) for value in values])
    if values.dtype == object:
        values = np.array([repr(value) for value in np.ravel(values).tolist()])
    return checksum(values)


def learn_first_weights(oracle: LearnsOnline, weights: Array, rng: np.random.Generator, epochs: int = EPOCHS) -> Array:
    """The weights of a stochastic subgradient descent on ``½‖w‖² + Σ c_i ξ_i`` (Shalev-Shwartz et al. 2011).

    Hidden values are imputed at every visit. The answer is the average over the last pass.

    Parameters
    ----------
    oracle : the samples
    weights : (n,) the c_i
    rng : draws the first weights and the order of the samples
    epochs : passes over the samples
    """
    n = weights.size
    mean = w = INIT_SCALE * float(weights.mean()) * rng.standard_normal(oracle.n_params)
    for epoch in range(epochs):
        order = rng.permutation(n)
        time = (HEAD_START + epoch) * n + np.arange(1, n + 1, dtype=np.float64)
        found = oracle.learn_online(w, order, n * weights[order] / time, 1 - 1 / time, np.full(n, 1 / n), margin=1.0)
        w, mean = found.w, found.total
    return np.asarray(mean)


@dataclass(frozen=True)
class OnlineState(LatentState):
    """The state of a start: ``w`` is the average of all points, later ones counting more, ``last`` the present one."""

    last: Weights = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class OnlineDescent(Descent):
    """One pass over the samples per step, with steps 1/t and averaging (Shalev-Shwartz et al. 2011).

    For weight vectors whose planes do not fit into memory: this needs only a few vectors of the length of w.
    """

    state: ClassVar[Any] = OnlineState
    can_follow_path: ClassVar[bool] = False

    def begin(self, target: Array, w: Array | None = None, *, seed: int = 0, start: int = 0) -> OnlineState:
        """The first state: at w, or near zero with slightly different hidden states."""
        if w is None:
            noise = OnlineState(seed=seed, start=start).rng("start").standard_normal(self.oracle.n_params)
            w = INIT_SCALE * float(self.weights.mean()) * noise
        first: OnlineState = super().begin(target, w, seed=seed, start=start)
        return replace(first, last=w)

    def step(self, now: OnlineState) -> OnlineState:
        """One pass; the start ends when the objective of the average decreases too little."""
        weights, n = self.weights, self.weights.size
        order = now.rng("solve").permutation(n)
        visit = now.iteration * n + np.arange(1, n + 1, dtype=np.float64)
        time = n + visit  # the first steps are no longer than C/n
        online = cast(LearnsOnline, self.oracle)
        found = online.learn_online(now.last, order, n * weights[order] / time, 1 - 1 / time, visit, margin=1.0)
        before = (visit[0] - 1) * visit[0] / 2
        w = (before * now.w + found.total) / (before + float(visit.sum()))
        target = self.oracle.impute(w).code
        objective = self.objective(w, target)
        return replace(
            now,
            w=w,
            last=found.w,
            target=target,
            objective=objective,
            changed=self._count_changed(target, now.target),
            iteration=now.iteration + 1,
            n_warm=now.n_warm + 1,
            is_done=now.objective - objective < self.significant,
        )
