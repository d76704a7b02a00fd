"""What margin learners do before they minimise: check parameters, bind the data, weigh the samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.labels import find_labels, read_labels
from tacit.learners.learner import Learner, read_weights
from tacit.oracle import CapabilityError, Oracle, Problem, Schema, is_sequence, require
from tacit.parameters import file_path, is_not_negative, is_positive, number, one_of, shorten, switch, whole_number
from tacit.solvers import Bundle


class Prepared(NamedTuple):
    """Bound data and the weight c_i of every sample."""

    schema: Schema
    oracle: Any
    weights: Array


def prepare(learner: Any, X: Any, y: Any, hidden: Any, sample_weight: Any) -> Prepared:
    """Check everything that can be checked before any work, and bind the data."""
    check_parameters(learner)
    X = learner._read(X, reset=True)
    schema = learner.problem.schema(X, y)
    oracle = learner.problem.bind(X, y, schema, hidden=hidden)
    require(type(learner).__name__, learner.problem, oracle, ["impute", "decode", "hidden_unknown", "exact"])
    if callable(getattr(oracle, "probe", None)):
        oracle.probe()
    _check_rescaling(learner, oracle)
    if learner.checkpoint is not None:
        require("a checkpoint", learner.problem, oracle, ["digest"])
    solver = Bundle() if learner.solver is None or isinstance(learner.solver, str) else learner.solver
    require(type(solver).__name__, learner.problem, oracle, solver.needs)
    if learner.class_weight is not None and is_sequence(oracle):
        raise ValueError("class_weight needs one label a sample; for sequences put the weights into a cost matrix")
    weights = sample_weights(learner, y, schema.classes, oracle.n_samples, sample_weight)
    return Prepared(schema, oracle, weights)


def check_parameters(learner: Any) -> None:
    """Refuse parameters that cannot be, with the value and a remedy."""
    if not isinstance(learner.problem, Problem):
        raise TypeError(
            f"problem must be a problem such as tacit.problems.Multiclass(), got {learner.problem!r}"
            + ("; call the class: add ()" if isinstance(learner.problem, type) else "")
        )
    number("C", learner.C, "a positive number", is_positive)
    number("tol", learner.tol, "a positive number", is_positive)
    whole_number("max_iter", learner.max_iter)
    if switch("resume", learner.resume) and learner.checkpoint is None:
        raise ValueError("resume=True needs checkpoint=path: there is no file to resume from")
    for name in ("warm_start", "escape", "shift"):
        switch(name, getattr(learner, name, False))
    if learner.checkpoint is not None:
        file_path("checkpoint", learner.checkpoint)
    if learner.callbacks is not None and not (
        isinstance(learner.callbacks, Iterable) and all(callable(callback) for callback in learner.callbacks)
    ):
        raise TypeError(f"callbacks must be a list of functions, got {learner.callbacks!r}; write [function]")
    if isinstance(learner.solver, type) or (isinstance(learner.solver, str) and learner.solver != "auto"):
        raise TypeError(f"solver must be 'auto' or a solver such as tacit.solvers.Bundle(), got {learner.solver!r}")
    if learner.solver is not None and not isinstance(learner.solver, str) and not hasattr(learner.solver, "step"):
        raise TypeError(f"solver must be 'auto' or a solver such as tacit.solvers.Bundle(), got {learner.solver!r}")
    one_of("rescaling", learner.rescaling, ("margin", "slack"))


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
    """A structured SVM needs the whole answer: say which hidden value is missing."""
    unknown = oracle.hidden_unknown()
    if unknown.size and is_sequence(oracle):
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


def _other_way(oracle: Any) -> str:
    return "give it outputs=, or use rescaling='margin'" if hasattr(oracle, "remedy") else "use rescaling='margin'"
