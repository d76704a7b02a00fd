"""What learners do before they learn: check parameters, bind the data, and for margin learners weight the samples.

At the end are checks of what a fitted learner holds, before it is written to a file and after it was read from one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.labels import find_labels, read_labels
from tacit.data.parameters import (
    file_path,
    has_length,
    is_not_negative,
    number,
    numbers,
    shorten,
    switch,
    whole_number,
)
from tacit.data.ragged import Ragged
from tacit.data.specs import check_parameters
from tacit.oracle import (
    CapabilityError,
    Oracle,
    Problem,
    Schema,
    capability,
    completes_labels,
    has_long_codes,
    loss_needs_hidden,
    require,
)
from tacit.oracle.capabilities import ChecksItself, HasHiddenStates, MeasuresCompleted
from tacit.oracle.contracts import Need
from tacit.penalties import GroupNorm, Penalty, Quadratic
from tacit.runtime import Status
from tacit.runtime.blocks import check_jobs
from tacit.runtime.checkpoint import Checkpoint
from tacit.solvers import Bundle, Solver

ANY_LEARNER_NEEDS = (Oracle.predict, Oracle.decode)
MARGIN_LEARNERS_NEED = (Oracle.impute, Oracle.decode, Oracle.hidden_unknown, Oracle.exact)

MIN_COST_SPREAD = 5.0
"""Costs that differ by this factor make margin rescaling worse than no costs at all, on the digits at most C."""


class Prepared(NamedTuple):
    """The bound data, the weight c_i of every sample, and the penalty Ω."""

    schema: Schema
    oracle: Oracle
    weights: Array
    penalty: Penalty


def bind_samples(
    learner: Any, X: Any, y: Any, hidden: Any = None, needs: Iterable[Need] = ANY_LEARNER_NEEDS, instead: str = ""
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


def open_checkpoint(learner: Any, oracle: Oracle) -> Checkpoint | None:
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
    check_parameters(learner)
    named = ("auto", *getattr(learner, "named_solvers", ()))
    if isinstance(learner.solver, type) or (isinstance(learner.solver, str) and learner.solver not in named):
        raise TypeError(
            f"solver must be {' or '.join(map(repr, named))} or a solver such as tacit.solvers.Bundle(), "
            f"got {shorten(learner.solver)}"
        )
    if not (learner.solver is None or isinstance(learner.solver, str | Solver)):
        raise TypeError(
            f"solver must be 'auto' or a solver such as tacit.solvers.Bundle(), got {shorten(learner.solver)}"
        )
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


def require_hidden(learner: Any, oracle: Oracle) -> None:
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


def _check_rescaling(learner: Any, oracle: Oracle) -> None:
    offered = getattr(oracle, "rescalings", ("margin",))
    if learner.rescaling not in offered:
        raise CapabilityError(
            f"rescaling={learner.rescaling!r} needs outputs that can be listed, and {type(learner.problem).__name__} "
            f"offers only {' and '.join(map(repr, offered))}; {_other_way(oracle)}"
        )


def _warn_of_unequal_costs(learner: Any, oracle: Oracle) -> None:
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


def _other_way(oracle: Oracle) -> str:
    return "give it outputs=, or use rescaling='margin'" if hasattr(oracle, "remedy") else "use rescaling='margin'"


def read_weights(sample_weight: Any, n: int) -> Array:
    """One weight per sample, finite and not negative, scaled so that the largest is one; None means equal weights.

    >>> read_weights([1, 4], 2)
    array([0.25, 1.  ])
    """
    weights = numbers("sample_weight", 1.0 if sample_weight is None else sample_weight)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got shape {weights.shape}")
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has {weights.size} entries for {n} samples; give one each")
    wrong = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if wrong.size:
        raise ValueError(f"sample_weight[{wrong[0]}] is {weights[wrong[0]]}; weights are finite and not negative")
    if not weights.any():
        raise ValueError("all sample weights are zero: nothing is left to learn from or to score")
    return np.asarray(weights / weights.max())


# what a fitted learner holds

MARGIN_ATTRIBUTES = ("hidden_", "objective_", "bound_", "status_", "n_iter_", "history_")
"""Attributes that every margin learner sets in `fit`, beside those of every learner."""


def check_fitted(model: Any, also: tuple[str, ...] = ()) -> None:
    """Refuse a model whose parameters or learned attributes are invalid, or do not fit each other.

    ``also`` are attributes that it must have beside those of every learner.
    """
    missing = [name for name in ("schema_", "coef_", "n_features_in_", *also) if not hasattr(model, name)]
    if missing:
        raise ValueError(f"{missing[0]} is missing; a fitted {type(model).__name__} has it")
    check_running(model)
    model.problem.check()
    _check_schema(model)
    _check_weights(model.coef_, model.schema_.n_params)
    if getattr(model, "penalty", None) is not None:
        model.penalty.check(model.schema_.n_params)
    known = vars(model)
    for name, check in _CHECKS.items():
        if name in known:
            check(known[name])


def _check_objective(value: Any) -> None:
    number("objective_", value, "a finite number")


def _check_bound(value: Any) -> None:
    number("bound_", value, "a number below infinity", lambda bound: bound < math.inf)


def _check_inner_gap(value: Any) -> None:
    number("inner_gap_", value, "a number from 0", lambda gap: gap >= 0)


def _check_count(value: Any) -> None:
    whole_number("n_iter_", value, 0)


def _check_status(value: Any) -> None:
    if not isinstance(value, Status):
        raise ValueError(f"status_ is {shorten(value)}, no Status")


def _check_hidden(value: Any) -> None:
    if not (value is None or isinstance(value, np.ndarray | Ragged)):
        raise ValueError(f"hidden_ is {shorten(value)}, no array")


def _check_runs(runs: Any) -> None:
    if not isinstance(runs, list) or not all(hasattr(run, "history") for run in runs):
        raise ValueError("runs_ is no list of runs")
    for run in runs:
        _check_status(run.status)
        number("the objective of a run", run.objective, "a number", lambda objective: True)
        check_history(run.history)


def _check_schema(model: Any) -> None:
    schema, problem = model.schema_, model.problem
    if not isinstance(schema, Schema):
        raise ValueError(f"schema_ is {shorten(schema)}, no Schema")
    schema.check()
    problem.check_schema(schema)
    if whole_number("n_features_in_", model.n_features_in_, 0) != schema.n_features:
        raise ValueError(f"n_features_in_ is {model.n_features_in_}, and the schema has {schema.n_features} features")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and not (
        isinstance(names, np.ndarray)
        and names.shape == (schema.n_features,)
        and all(isinstance(name, str) for name in names.tolist())
    ):
        raise ValueError(f"feature_names_in_ is {shorten(names)}, no name for each of {schema.n_features} features")


def _check_weights(coef: Array, n_params: int) -> None:
    if not is_table(coef, 1, "f") or coef.dtype != np.float64 or coef.shape != (n_params,):
        found = f"{coef.dtype} of shape {coef.shape}" if isinstance(coef, np.ndarray) else shorten(coef)
        raise ValueError(f"coef_ must be {n_params} finite numbers in double precision, got {found}")


def check_history(lines: Any) -> None:
    """Every line of a history is a record of numbers, and perhaps of arrays."""
    if not isinstance(lines, list):
        raise ValueError(f"history_ is {shorten(lines)}, no list")
    for line in lines:
        if not hasattr(line, "_asdict"):
            raise ValueError(f"a line of history_ is {shorten(line)}, no record")
        is_own = type(line).__module__.startswith("tacit.")  # the history of a user's own learner may hold anything
        for name, value in line._asdict().items() if is_own else ():
            if name in ("is_in", "hidden"):
                if not (value is None or isinstance(value, np.ndarray | Ragged)):
                    raise ValueError(f"{name} of a line of history_ is {shorten(value)}, no array")
                continue
            number(name, value, "a number", lambda entry: True)


_CHECKS = {
    "objective_": _check_objective,
    "bound_": _check_bound,
    "inner_gap_": _check_inner_gap,
    "n_iter_": _check_count,
    "status_": _check_status,
    "hidden_": _check_hidden,
    "history_": check_history,
    "runs_": _check_runs,
}
"""One check per learned attribute of tacit's learners."""


def measures_hidden(oracle: Oracle) -> bool:
    """Whether rounds of learning may measure the loss against imputed hidden values: where it needs them, or where the
    oracle says that it can."""
    return loss_needs_hidden(oracle) or capability(oracle, MeasuresCompleted) is not None


def has_hidden_states(oracle: Oracle) -> bool:
    """Whether the parts of an output have hidden values below their labels (states below tags), which nothing tells
    apart at w = 0. Links between mentions are none: their features tell them apart."""
    return has_long_codes(oracle) and not completes_labels(oracle) and capability(oracle, HasHiddenStates) is not None
