"""Where a start begins: given weights, what is known, what the problem proposes, a stochastic descent, k-means, chance.

A learner of margins goes on from hidden values, a learner by gradients from weights. What both ask for is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import numbers, shorten
from tacit.data.ragged import Ragged
from tacit.learners.online_descent import learn_first_weights
from tacit.oracle import capability, has_hidden_states, require
from tacit.oracle.capabilities import ClustersParts, LearnsOnline, ProposesStarts
from tacit.oracle.digests import checksum


class Beginning(NamedTuple):
    """What a start begins with: a code with hidden values, or weights, or neither; and how many codes are proposed."""

    code: Array | None = None
    w: Array | None = None
    n_proposed: int = 0


def find_beginning(
    learner: Any, oracle: Any, weights: Array, start: int, rng: np.random.Generator, init: Any = "auto"
) -> Beginning:
    """What the problem has for a start to begin with, as ``init`` says.

    For chains with states, "auto" is "warm": ten averaged stochastic passes from weights that are not quite equal.
    Elsewhere it is what the problem proposes, as long as there are proposals. "k-means" groups the tokens of every tag.
    """
    who = f"{type(learner).__name__}(init={shorten(init)})"
    if not isinstance(init, str):
        return Beginning()
    if init == "warm" or (init == "auto" and has_hidden_states(oracle)):
        require(who, learner.problem, oracle, LearnsOnline, "use init='weights'")
        return Beginning(w=learn_first_weights(oracle, weights, rng))
    if init == "k-means":
        require(who, learner.problem, oracle, ClustersParts, "use init='auto'")
        return Beginning(oracle.clusters(rng))
    proposed = propose(oracle, int(learner.n_init)) if init == "auto" else []
    return Beginning(proposed[start] if start < len(proposed) else None, n_proposed=len(proposed))


def propose(oracle: Any, most: int) -> list[Array]:
    """Codes that the problem proposes to begin with, one per start."""
    proposer = capability(oracle, ProposesStarts)
    return [] if proposer is None else proposer.proposals(most)


def given_weights(init: Mapping[str, Any], schema: Any, lower: Any = None) -> Array:
    """The weights that ``init`` gives by block, within bounds where there are any."""
    w = np.zeros(schema.n_params)
    views = schema.views(w)
    if set(views) != set(init):
        raise ValueError(f"init gives weights of {shorten(list(init))}, the problem has {sorted(views)}")
    for name, values in init.items():
        table = numbers(f"init[{shorten(name)}]", values, f"an array of shape {views[name].shape}")
        if table.shape != views[name].shape or not np.isfinite(table).all():
            raise ValueError(
                f"init[{shorten(name)}] has shape {table.shape}; weights to begin with are finite numbers of shape "
                f"{views[name].shape}"
            )
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
