"""What learners do before they learn: check parameters, bind the data, and for margin learners weight the samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import find_labels, read_labels
from tacit.data.parameters import (
    file_path,
    has_length,
    is_not_negative,
    is_positive,
    number,
    one_of,
    shorten,
    switch,
    whole_number,
)
from tacit.learners.learner import Learner, read_weights
from tacit.oracle import CapabilityError, Oracle, Problem, Schema, capability, completes_labels, has_long_codes, require
from tacit.oracle.capabilities import ChecksItself, Need
from tacit.penalties import GroupNorm, Penalty, Quadratic
from tacit.runtime.checkpoint import Checkpoint
from tacit.runtime.threads import check_jobs
from tacit.solvers import Bundle, Solver

ANY_LEARNER_NEEDS = (Oracle.predict, Oracle.decode)
MARGIN_LEARNERS_NEED = (Oracle.impute, Oracle.decode, Oracle.hidden_unknown, Oracle.exact)

MIN_COST_SPREAD = 5.0
"""Costs that differ by this factor make margin rescaling worse than no costs at all, on the digits at most C."""


class Prepared(NamedTuple):
    """The bound data, the weight c_i of every sample, and the penalty Ω."""

    schema: Schema
    oracle: Any
    weights: Array
    penalty: Penalty


def bind_samples(
    learner: Learner, X: Any, y: Any, hidden: Any = None, needs: Iterable[Need] = ANY_LEARNER_NEEDS, instead: str = ""
) -> tuple[Schema, Any]:
    """For any learner: check the parameters that all of them have, read the data once, and bind it.

    ``needs`` are the protocols or methods of an oracle that the learner calls; a missing one is an error before any
    work, which says what to do ``instead``.
    """
    check_running(learner)
    data = learner._read(X, reset=True)
    schema = learner.problem.schema(data, y)
    oracle = learner.problem.bind(data, y, schema, hidden=hidden)
    require(type(learner).__name__, learner.problem, oracle, needs, instead)
    functions = capability(oracle, ChecksItself)
    if functions is not None:
        functions.probe()
    if getattr(learner, "checkpoint", None) is not None:
        require("a checkpoint", learner.problem, oracle, [Oracle.digest])
    return schema, oracle


def prepare(learner: Any, X: Any, y: Any, hidden: Any, sample_weight: Any) -> Prepared:
    """For margin learners: check everything before any work, bind the data, and compute the weights of the samples."""
    check_margin(learner)
    schema, oracle = bind_samples(learner, X, y, hidden, MARGIN_LEARNERS_NEED)
    _check_rescaling(learner, oracle)
    _warn_of_unequal_costs(learner, oracle)
    solver = Bundle() if learner.solver is None or isinstance(learner.solver, str) else learner.solver
    require(type(solver).__name__, learner.problem, oracle, solver.needs)
    penalty = bounded_penalty(learner, schema)
    penalty.check(oracle.n_params)
    if isinstance(penalty, GroupNorm):
        penalty = penalty.on(schema)
        penalty.check_whole(oracle.n_params)
    if not penalty.is_quadratic and not getattr(solver, "takes_norms", False):
        raise CapabilityError(
            f"{type(solver).__name__} cannot minimise with {type(penalty).__name__}; use solver=Bundle() or 'auto'"
        )
    if learner.class_weight is not None and has_long_codes(oracle):
        raise ValueError("class_weight needs one label per sample; for sequences put the weights into a cost matrix")
    weights = sample_weights(learner, y, schema.classes, oracle.n_samples, sample_weight)
    return Prepared(schema, oracle, weights, penalty)


def bounded_penalty(learner: Any, schema: Schema) -> Any:
    """The penalty of a learner, with the bounds that its problem puts on weights and those given by block."""
    penalty = Quadratic() if learner.penalty is None else learner.penalty
    lower = learner.problem.lower_bounds(schema)
    if hasattr(penalty, "in_blocks"):
        return penalty.in_blocks(schema, lower)
    if lower:
        raise CapabilityError(
            f"{type(learner).__name__}: {type(learner.problem).__name__} bounds the weights of "
            f"{', '.join(map(repr, lower))}, which {type(penalty).__name__} cannot; use tacit.penalties.Quadratic"
        )
    return penalty


def open_checkpoint(learner: Any, oracle: Any) -> Checkpoint | None:
    """The checkpoint of a learner, None if its parameter ``checkpoint`` is None.

    A run resumes only with the same data and parameters. Parameters are compared by their ``repr``.
    """
    if getattr(learner, "checkpoint", None) is None:
        return None
    free = (*learner._not_saved, "n_jobs", "verbose")
    compared = {name: value for name, value in learner.get_params(deep=False).items() if name not in free}
    fingerprint = {
        "features, labels and losses": oracle.digest(),
        **{name: repr(value) for name, value in compared.items()},
    }
    return Checkpoint(learner.checkpoint, fingerprint, learner.resume)


def check_running(learner: Any) -> None:
    """Refuse an invalid problem, and invalid values of those parameters of long runs that the learner has."""
    if not isinstance(learner.problem, Problem):
        raise TypeError(
            f"problem must be a problem such as tacit.problems.Multiclass(), got {shorten(learner.problem)}"
            + ("; call the class: add ()" if isinstance(learner.problem, type) else "")
        )
    check_long_run(learner)


def check_long_run(learner: Any) -> None:
    """Refuse invalid values of those parameters of long runs that an estimator has."""
    whole_number("max_iter", getattr(learner, "max_iter", 1))
    check_jobs(learner.n_jobs)
    if getattr(learner, "checkpoint", None) is not None:
        file_path("checkpoint", learner.checkpoint)
    if switch("resume", getattr(learner, "resume", False)) and getattr(learner, "checkpoint", None) is None:
        raise ValueError("resume=True needs checkpoint=path: there is no file to resume from")
    callbacks = getattr(learner, "callbacks", None)
    if callbacks is not None and not (has_length(callbacks) and all(callable(callback) for callback in callbacks)):
        raise TypeError(f"callbacks must be a list of functions, got {shorten(callbacks)}; write [function]")


def check_margin(learner: Any) -> None:
    """Refuse invalid parameters of margin learners, with the value and a remedy."""
    number("C", learner.C, "a positive number", is_positive)
    number("tol", learner.tol, "a positive number", is_positive)
    switch("warm_start", learner.warm_start)
    named = ("auto", *getattr(learner, "named_solvers", ()))
    if isinstance(learner.solver, type) or (isinstance(learner.solver, str) and learner.solver not in named):
        raise TypeError(
            f"solver must be {' or '.join(map(repr, named))} or a solver such as tacit.solvers.Bundle(), "
            f"got {shorten(learner.solver)}"
        )
    if (
        learner.solver is not None
        and not isinstance(learner.solver, str)
        and capability(learner.solver, Solver) is None
    ):
        raise TypeError(
            f"solver must be 'auto' or a solver such as tacit.solvers.Bundle(), got {shorten(learner.solver)}"
        )
    one_of("rescaling", learner.rescaling, ("margin", "slack"))
    methods = ("value", "primal", "near", "products", "dual_offsets", "check")
    is_penalty = all(hasattr(learner.penalty, name) for name in methods) and not isinstance(learner.penalty, type)
    if learner.penalty is not None and not is_penalty:
        raise TypeError(f"penalty must be None or a penalty such as Quadratic(metric), got {shorten(learner.penalty)}")


def sample_weights(learner: Any, y: Any, classes: Array, n: int, sample_weight: Any) -> Array:
    """c_i = C · weight_i / Σ weights, times the factor of the class."""
    given = read_weights(sample_weight, n)
    total = float(given.sum())
    weights = float(learner.C) / total * given
    if learner.class_weight is None:
        return np.asarray(weights)
    if not len(classes):
        raise ValueError("class_weight needs labels that are single values, not arrays or tuples; use sample_weight")
    place = find_labels(classes, read_labels(y, n))
    if isinstance(learner.class_weight, str) and learner.class_weight == "balanced":
        counts = np.bincount(place, given, minlength=len(classes))
        factors = np.where(counts > 0, total / np.count_nonzero(counts) / np.where(counts > 0, counts, 1.0), 0.0)
    elif isinstance(learner.class_weight, dict):
        listed = classes.tolist()
        for label, factor in learner.class_weight.items():
            if label not in listed:
                raise ValueError(f"class_weight names {shorten(label)}, which is none of the classes {shorten(listed)}")
            number(f"class_weight[{shorten(label)}]", factor, "finite and not negative", is_not_negative)
        factors = np.array([float(learner.class_weight.get(label, 1.0)) for label in listed])
    else:
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {shorten(learner.class_weight)}")
    weights = weights * factors[place]
    if not weights.any():
        raise ValueError("sample weights and class weights leave nothing to learn from: their products are all zero")
    return np.asarray(weights)


def require_hidden(learner: Learner, oracle: Oracle) -> None:
    """Refuse data with unknown hidden values, and name the first: a structured SVM needs complete answers."""
    unknown = oracle.hidden_unknown()
    if unknown.size and completes_labels(oracle):
        raise ValueError(
            f"{type(learner).__name__} needs every tag, and y[{unknown[0]}] has missing ones (-1 or None), as have "
            f"{unknown.size} sequences in all; complete them, leave these sequences out, or use a learner for hidden "
            "values"
        )
    if unknown.size:
        raise ValueError(
            f"{type(learner).__name__} needs the hidden value of every sample, and {unknown.size} are unknown "
            f"(the first is sample {unknown[0]}); give them with fit(X, y, hidden=...), "
            "or use a learner for hidden values"
        )


def _check_rescaling(learner: Any, oracle: Any) -> None:
    offered = getattr(oracle, "rescalings", ("margin",))
    if learner.rescaling not in offered:
        raise CapabilityError(
            f"rescaling={learner.rescaling!r} needs outputs that can be listed, and {type(learner.problem).__name__} "
            f"offers only {' and '.join(map(repr, offered))}; {_other_way(oracle)}"
        )


def _warn_of_unequal_costs(learner: Any, oracle: Any) -> None:
    """Say when a cost matrix is better served by slack rescaling (benchmarks/results/costs.md)."""
    costs = np.asarray(getattr(learner.problem, "loss", "0/1"))
    is_matrix = costs.ndim == 2 and len(costs) > 2 and bool((costs > 0).any())
    if learner.rescaling != "margin" or "slack" not in getattr(oracle, "rescalings", ()) or not is_matrix:
        return
    spread = float(costs.max() / costs[costs > 0].min())
    if spread >= MIN_COST_SPREAD:
        warnings.warn(
            f"{type(learner).__name__}: the costs of wrong labels differ by a factor of {spread:.3g}, and "
            "rescaling='margin' asks for margins as wide as the costs, which often ends at a higher cost than to "
            "ignore them; try rescaling='slack' (the page 'Which solver?' shows both)",
            stacklevel=4,
        )


def _other_way(oracle: Any) -> str:
    return "give it outputs=, or use rescaling='margin'" if hasattr(oracle, "remedy") else "use rescaling='margin'"
