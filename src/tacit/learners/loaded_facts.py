"""What a fitted learner must hold for its methods to work: asked before it is written, and after it was read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.arrays import Array, is_table
from tacit.oracle import Schema
from tacit.parameters import is_not_negative, number, shorten, whole_number
from tacit.ragged import Ragged
from tacit.scale.threads import count_threads
from tacit.solvers import Status

FACTS = ("schema_", "coef_", "n_features_in_", "hidden_", "objective_", "bound_", "status_", "n_iter_", "history_")
"""What every margin learner sets in `fit`."""


ARRAYS = ("w", "target", "planes", "is_in", "reference", "seen", "best_w", "best_target")
"""Fields of the position of a descent that are arrays; all others are numbers."""


def check_facts(model: Any) -> None:
    """Refuse a model whose parameters or learned facts cannot be, or do not fit each other."""
    from tacit.learners.preparation import check_parameters

    missing = [name for name in FACTS if not hasattr(model, name)]
    if missing:
        raise ValueError(f"{missing[0]} is missing; a fitted {type(model).__name__} has it")
    check_parameters(model)
    count_threads(model.n_jobs)
    model.problem.check()
    _check_schema(model)
    _check_weights(model.coef_, model.schema_.n_params)
    number("objective_", model.objective_, "a finite number")
    number("bound_", model.bound_, "a number below infinity", lambda bound: bound < math.inf)
    whole_number("n_iter_", model.n_iter_, 0)
    if not isinstance(model.status_, Status):
        raise ValueError(f"status_ is {shorten(model.status_)}, no Status")
    if not (model.hidden_ is None or isinstance(model.hidden_, np.ndarray | Ragged)):
        raise ValueError(f"hidden_ is {shorten(model.hidden_)}, no array")
    _check_history(model.history_)
    runs = getattr(model, "runs_", [])
    if not isinstance(runs, list) or not all(isinstance(getattr(run, "status", None), Status) for run in runs):
        raise ValueError("runs_ is no list of runs")
    for run in runs:
        number("the objective of a run", run.objective, "a number", lambda objective: True)
        _check_history(run.history)


def check_position(position: Any, parts: Mapping[str, Any], oracle: Any) -> None:
    """Refuse the position of a descent, made of stored parts, that is none of these samples.

    Kernels go where its codes say.
    """
    missing = set(vars(position)) - set(parts)
    if missing:
        raise ValueError(f"{min(missing)} is missing")
    number("precision", position.precision, "a finite number from 0", is_not_negative)
    for name, values in vars(position).items():
        if isinstance(values, np.ndarray) != (name in ARRAYS):
            raise ValueError(f"{name} is {shorten(values)}")
        if name in ("target", "reference", "best_target") and values.size:
            if not oracle.accepts(values) or values.min() < 0:
                raise ValueError(f"{name} holds outputs that these samples do not have")
        elif name in ("w", "best_w") and values.size:
            _check_weights(values, oracle.n_params)
        elif name in ("iteration", "changed", "n_warm"):
            whole_number(name, values, 0)
        elif name not in ARRAYS and not isinstance(values, bool):
            number(name, values, "a number", lambda value: True)
    if not is_table(position.is_in, 1, "b") or position.is_in.size != oracle.n_samples:
        raise ValueError(f"is_in does not say of {oracle.n_samples} samples whether they are in")
    if position.w.size != oracle.n_params or not position.target.size:
        raise ValueError("it holds no weights, or no outputs")
    if not all(oracle.accepts(code) for code in position.planes):
        raise ValueError("planes hold outputs that these samples do not have")


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


def _check_history(lines: Any) -> None:
    """Every line of a history is a record of numbers, and perhaps of arrays."""
    if not isinstance(lines, list):
        raise ValueError(f"history_ is {shorten(lines)}, no list")
    for line in lines:
        if not hasattr(line, "_asdict"):
            raise ValueError(f"a line of history_ is {shorten(line)}, no record")
        for name, value in line._asdict().items():
            if name in ("is_in", "hidden"):
                if not (value is None or isinstance(value, np.ndarray | Ragged)):
                    raise ValueError(f"{name} of a line of history_ is {shorten(value)}, no array")
                continue
            number(name, value, "a number", lambda entry: True)
