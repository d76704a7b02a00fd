"""What learners do before they learn: check parameters, bind the data, and for margin learners weight the samples.

At the end are checks of what a fitted learner holds, before it is written to a file and after it was read from one.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.labels import find_labels, read_labels
from tacit.data.parameters import (
    check_verbose,
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
from tacit.data.specs import (
    Spec,
    any_number,
    between,
    check_parameters,
    declared_specs,
    finite,
    instance,
    optional,
    whole,
)
from tacit.oracle import (
    CapabilityError,
    Oracle,
    Problem,
    Schema,
    capability,
    completes_labels,
    has_label_parts,
    has_long_codes,
    loss_needs_hidden,
    require,
)
from tacit.oracle.capabilities import ChecksItself, HasHiddenStates, HasTable, MeasuresCompleted, ScalesLoss
from tacit.oracle.contracts import ExplainsRescaling, Need, rescalings
from tacit.penalties import GroupNorm, Penalty, Quadratic
from tacit.runtime import Status
from tacit.runtime.blocks import check_jobs
from tacit.runtime.checkpoint import Checkpoint
from tacit.solvers import Bundle, Solver
from tacit.solvers.bundle import SOLVER_NAMES, solver_by_name

ANY_LEARNER_NEEDS = (Oracle.predict, Oracle.decode)
MARGIN_LEARNERS_NEED = (Oracle.impute, Oracle.decode, Oracle.hidden_unknown, Oracle.exact)

MIN_COST_RATIO = 5.0
"""Costs that differ by this factor make margin rescaling worse than no costs at all, for most C on the digits."""


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
    learner.__dict__.pop("labels_", None)  # of an earlier fit with missing labels
    data = learner._read(X, reset=True)
    y, hidden = (list(given) if isinstance(given, Iterator) else given for given in (y, hidden))  # read twice
    schema = learner.problem.schema(data, y)
    oracle = learner.problem.bind(data, y, schema, hidden=hidden)
    require(type(learner).__name__, learner.problem, oracle, needs, instead)
    functions = capability(oracle, ChecksItself)
    if functions is not None:
        functions.probe()
    if getattr(learner, "checkpoint", None) is not None:
        require("a checkpoint", learner.problem, oracle, [Oracle.digest])
    return schema, oracle


UNEVEN_SCALES = 1000.0
"""A feature so many times as large as the median one makes descents take thousands of steps."""


def describe_scales(oracle: Oracle) -> str:
    """For a warning: the feature whose scale exceeds those of the others, and the remedy; empty if there is none.

    >>> from tacit import problems
    >>> problem, X, y = problems.Multiclass(), np.array([[1.0, 2.0, 1e6], [0.5, 1.0, -1e6]]), [0, 1]
    >>> describe_scales(problem.bind(X, y, problem.schema(X, y)))
    'feature 2 is as large as 1e+06, 5e+05 times the median feature: scale the features (StandardScaler on all rows)'
    """
    holder = capability(oracle, HasTable)
    table: Any = None if holder is None else holder.table
    if not (sparse.issparse(table) or isinstance(table, np.ndarray)) or table.ndim != 2:
        return ""
    largest = np.asarray(abs(table).max(axis=0).todense() if sparse.issparse(table) else np.abs(table).max(axis=0))
    largest = largest.astype(np.float64).ravel()
    if not largest.any():
        return ""
    k, median = int(np.argmax(largest)), float(np.median(largest[largest > 0]))
    if largest[k] < UNEVEN_SCALES * median:
        return ""
    ratio = f"{largest[k] / median:.2g} times the median feature"
    return f"feature {k} is as large as {largest[k]:.3g}, {ratio}: scale the features (StandardScaler on all rows)"


def prepare(learner: Any, X: Any, y: Any, hidden: Any, sample_weight: Any) -> Prepared:
    """For margin learners: check everything before any work, bind the data, and compute the weights of the samples."""
    check_margin(learner)
    schema, oracle = bind_samples(learner, X, y, hidden, MARGIN_LEARNERS_NEED)
    _check_rescaling(learner, oracle)
    _warn_of_unequal_costs(learner, oracle)
    solver = given_solver(learner) or Bundle()
    require(type(solver).__name__, learner.problem, oracle, solver.needs)
    penalty = resolve_penalty(bounded_penalty(learner, schema), schema)
    if not penalty.is_quadratic and not getattr(solver, "takes_norms", False):
        raise CapabilityError(
            f"{type(solver).__name__} cannot minimise with {type(penalty).__name__}; use solver=Bundle() or 'auto'"
        )
    if learner.class_weight is not None and has_label_parts(oracle):
        raise ValueError("class_weight needs one label per sample; for sequences put the weights into a cost matrix")
    weights = sample_weights(learner, y, schema.classes, oracle.n_samples, sample_weight)
    return Prepared(schema, oracle, weights, penalty)


def given_solver(learner: Any) -> Solver | None:
    """The solver that a learner was given, as an object or by its name; None where the learner chooses it."""
    if learner.solver is None:
        return Bundle()
    if not isinstance(learner.solver, str):
        return cast(Solver, learner.solver)
    is_own = learner.solver in ("auto", *getattr(learner, "named_solvers", ()))
    return None if is_own else solver_by_name(learner.solver)


def bounded_penalty(learner: Any, schema: Schema) -> Any:
    """The penalty of a learner, with the bounds that its problem puts on weights and those given by block."""
    penalty = Quadratic() if learner.penalty is None else learner.penalty
    lower = learner.problem.lower_bounds(schema)
    if hasattr(penalty, "in_blocks"):
        return penalty.in_blocks(schema, lower)
    if lower:
        who, problem, blocks = type(learner).__name__, type(learner.problem).__name__, ", ".join(map(repr, lower))
        raise CapabilityError(
            f"{who}: {problem} needs bounds for {blocks}, which {type(penalty).__name__} does not have; "
            "use tacit.penalties.Quadratic"
        )
    return penalty


def resolve_penalty(penalty: Any, schema: Schema) -> Any:
    """A penalty for the weights of a schema: its names of blocks and groups resolved, and checked."""
    if hasattr(penalty, "in_blocks"):
        penalty = penalty.in_blocks(schema)
    penalty.check(schema.n_params)
    if isinstance(penalty, GroupNorm):
        penalty = penalty.on(schema)
        penalty.check_whole(schema.n_params)
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
    check_verbose(getattr(learner, "verbose", 0))
    if getattr(learner, "checkpoint", None) is not None:
        file_path("checkpoint", learner.checkpoint)
    if switch("resume", getattr(learner, "resume", False)) and getattr(learner, "checkpoint", None) is None:
        raise ValueError("resume=True needs checkpoint=path, the file to resume from")
    callbacks = getattr(learner, "callbacks", None)
    if callbacks is not None and not (has_length(callbacks) and all(callable(callback) for callback in callbacks)):
        raise TypeError(f"callbacks must be a list of functions, got {shorten(callbacks)}; write [function]")


def check_margin(learner: Any) -> None:
    """Refuse invalid parameters of margin learners, with the value and a remedy."""
    check_parameters(learner)
    names, solver = ("auto", *SOLVER_NAMES), learner.solver
    if not (solver in names if isinstance(solver, str) else solver is None or isinstance(solver, Solver)):
        listed = ", ".join(map(repr, names))
        raise TypeError(f"solver must be {listed} or a solver such as tacit.solvers.Bundle(), got {shorten(solver)}")
    check_penalty("penalty", learner.penalty)


def check_penalty(name: str, penalty: Any) -> None:
    """Refuse what is neither None nor a penalty."""
    methods = ("value", "primal", "near", "products", "dual_offsets", "check")
    is_penalty = all(hasattr(penalty, method) for method in methods) and not isinstance(penalty, type)
    if penalty is not None and not is_penalty:
        raise TypeError(f"{name} must be None or a penalty such as Quadratic(metric), got {shorten(penalty)}")


def sample_weights(learner: Any, y: Any, classes: Array, n: int, sample_weight: Any) -> Array:
    """c_i = C · weight_i / Σ weights, times the factor of the class."""
    given = read_weights(sample_weight, n)
    weights = float(learner.C) / float(given.sum()) * given
    if learner.class_weight is None:
        return np.asarray(weights)
    if not len(classes):
        raise ValueError("class_weight needs labels that are single values, not arrays or tuples; use sample_weight")
    return weigh_classes(weights, learner.class_weight, classes, find_labels(classes, read_labels(y, n)))


def weigh_classes(weights: Array, class_weight: Any, classes: Array, positions: Array) -> Array:
    """Weights of samples times the factors of their classes; ``positions`` has the class of every sample."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(positions, weights, minlength=len(classes))
        mean = float(weights.sum()) / np.count_nonzero(counts)
        factors = np.where(counts > 0, mean / np.where(counts > 0, counts, 1.0), 0.0)
    elif isinstance(class_weight, dict):
        listed = classes.tolist()
        for label, factor in class_weight.items():
            if label not in listed:
                raise ValueError(f"class_weight must name classes in {shorten(listed)}, got {shorten(label)}")
            number(f"class_weight[{shorten(label)}]", factor, "finite and not negative", is_not_negative)
        factors = np.array([float(class_weight.get(label, 1.0)) for label in listed])
    else:
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {shorten(class_weight)}")
    weights = weights * factors[positions]
    if not weights.any():
        raise ValueError("the products of sample_weight and class_weight must not all be zero")
    return np.asarray(weights)


def require_hidden(learner: Any, oracle: Oracle) -> None:
    """Refuse data with unknown hidden values, and name the first: a structured SVM needs complete answers."""
    unknown = oracle.hidden_unknown()
    if unknown.size and completes_labels(oracle):
        raise ValueError(
            f"{type(learner).__name__} needs every label, but y[{unknown[0]}] has missing ones (-1 or None), like "
            f"{unknown.size} samples in all; complete them, leave them out, or use tacit.LatentSVM"
        )
    if unknown.size:
        raise ValueError(
            f"{type(learner).__name__} needs the hidden value of every sample, but {unknown.size} are unknown (first: "
            f"sample {unknown[0]}); give them with fit(X, y, hidden=...), or use tacit.LatentSVM"
        )


def _check_rescaling(learner: Any, oracle: Oracle) -> None:
    if learner.rescaling in rescalings(oracle):
        return
    explainer = capability(oracle, ExplainsRescaling)
    reason = "its outputs cannot be listed" if explainer is None else explainer.slack_obstacle
    name = type(learner.problem).__name__
    raise CapabilityError(f"{name} does not offer rescaling='slack': {reason}; use rescaling='margin'")


def _warn_of_unequal_costs(learner: Any, oracle: Oracle) -> None:
    """Warn if slack rescaling is better for a cost matrix of classes (benchmarks/results/costs.md)."""
    costs = np.asarray(getattr(learner.problem, "loss", "0/1"))
    is_matrix = costs.ndim == 2 and len(costs) > 2 and bool((costs > 0).any())
    is_exact = "slack" in rescalings(oracle) and capability(oracle, ScalesLoss) is None
    if learner.rescaling != "margin" or not is_exact or not is_matrix:
        return
    ratio = float(costs.max() / costs[costs > 0].min())
    if ratio >= MIN_COST_RATIO:
        warnings.warn(
            f"{type(learner).__name__}: the costs of wrong labels differ by a factor of {ratio:.3g}. With "
            "rescaling='margin' this often ends at a higher cost than ignoring the costs; try rescaling='slack' (the "
            "page 'Which solver?' compares both)",
            stacklevel=4,
        )


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
        raise ValueError(f"sample_weight must hold one number per sample ({n}), got {weights.size}")
    wrong = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if wrong.size:
        raise ValueError(f"sample_weight must be finite and not negative, got {weights[wrong[0]]} at {wrong[0]}")
    if not weights.any():
        raise ValueError("sample_weight must not be zero for all samples")
    return np.asarray(weights / weights.max())


# what a fitted learner holds


def check_fitted(model: Any) -> None:
    """Refuse a model whose parameters or learned attributes are invalid, or do not fit each other.

    The attributes that its class declares in ``learned`` must be there; those of `LEARNED` may be.
    """
    learned = declared_specs(type(model), "learned")
    missing = [name for name in ("schema_", "coef_", "n_features_in_", *learned) if not hasattr(model, name)]
    if missing:
        raise ValueError(f"{missing[0]} is missing; a fitted {type(model).__name__} has it")
    check_running(model)
    model.problem.check()
    _check_schema(model)
    _check_weights(model.coef_, model.schema_.n_params)
    if getattr(model, "penalty", None) is not None:
        model.penalty.check(model.schema_.n_params)
    for name, spec in {**LEARNED, **learned}.items():
        if hasattr(model, name):
            spec(name, getattr(model, name))


def _check_schema(model: Any) -> None:
    schema, problem = model.schema_, model.problem
    if not isinstance(schema, Schema):
        raise ValueError(f"schema_ must be a Schema, got {shorten(schema)}")
    schema.check()
    problem.check_schema(schema)
    if whole_number("n_features_in_", model.n_features_in_, 0) != schema.n_features:
        raise ValueError(f"n_features_in_ must be {schema.n_features}, as in the schema, got {model.n_features_in_}")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and not (
        isinstance(names, np.ndarray)
        and names.shape == (schema.n_features,)
        and all(isinstance(name, str) for name in names.tolist())
    ):
        raise ValueError(f"feature_names_in_ must name {schema.n_features} features, got {shorten(names)}")


def _check_weights(coef: Array, n_params: int) -> None:
    if not isinstance(coef, np.ndarray) or coef.dtype != np.float64 or coef.shape != (n_params,):
        found = f"{coef.dtype} of shape {coef.shape}" if isinstance(coef, np.ndarray) else shorten(coef)
        raise ValueError(f"coef_ must be {n_params} numbers in double precision, got {found}")
    wrong = np.flatnonzero(~np.isfinite(coef))
    if wrong.size:
        raise ValueError(f"coef_[{wrong[0]}] is {coef[wrong[0]]}; all {n_params} numbers must be finite")


def check_history(name: str, lines: Any) -> Any:
    """The spec of a history: a list of named tuples of numbers, and perhaps of arrays."""
    if not isinstance(lines, list):
        raise ValueError(f"{name} must be a list, got {shorten(lines)}")
    for line in lines:
        if not hasattr(line, "_asdict"):
            raise ValueError(f"{name} entries must be named tuples, got {shorten(line)}")
        is_own = type(line).__module__.startswith("tacit.")  # the history of a user's own learner may hold anything
        for part, value in line._asdict().items() if is_own else ():
            (_array_or_none if part in ("is_in", "hidden") else any_number)(part, value)
    return lines


def _check_runs(name: str, runs: Any) -> Any:
    if not isinstance(runs, list) or not all(hasattr(run, "history") for run in runs):
        raise ValueError(f"{name} must be a list of runs, got {shorten(runs)}")
    for run in runs:
        LEARNED["status_"]("the status of a run", run.status)
        any_number("the objective of a run", run.objective)
        check_history("the history of a run", run.history)
    return runs


_array_or_none = optional(instance((np.ndarray, Ragged), "None or an array"))

LEARNED: dict[str, Spec] = {
    "objective_": finite,
    "bound_": between("a number below infinity", -math.inf, sys.float_info.max),
    "inner_gap_": between("a number from 0", 0, math.inf),
    "inference_gap_": between("a number from 0", 0, math.inf),
    "n_iter_": whole(0),
    "status_": instance(Status, "a Status"),
    "hidden_": _array_or_none,
    "labels_": _array_or_none,
    "history_": check_history,
    "runs_": _check_runs,
}
"""Specs of attributes that several learners set in `fit`."""

MARGIN_LEARNED = {name: LEARNED[name] for name in ("hidden_", "objective_", "bound_", "status_", "n_iter_", "history_")}
"""Those that every margin learner sets."""


def measures_hidden(oracle: Oracle) -> bool:
    """Whether the loss can be measured with imputed hidden values: if it needs them, or if the oracle offers it."""
    return loss_needs_hidden(oracle) or capability(oracle, MeasuresCompleted) is not None


def has_hidden_states(oracle: Oracle) -> bool:
    """Whether parts of an output have hidden states below their labels (states below tags), which tie at w = 0.

    Coreference links are not hidden states: they have different features."""
    return has_long_codes(oracle) and not completes_labels(oracle) and capability(oracle, HasHiddenStates) is not None
