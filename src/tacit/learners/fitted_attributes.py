"""Checks of the attributes of a fitted learner, before it is written to a file and after it was read from one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import number, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.oracle import Schema
from tacit.runtime import Status

MARGIN_ATTRIBUTES = ("hidden_", "objective_", "bound_", "status_", "n_iter_", "history_")
"""Attributes that every margin learner sets in `fit`, beside those of every learner."""


def check_fitted(model: Any, also: tuple[str, ...] = ()) -> None:
    """Refuse a model whose parameters or learned attributes are invalid, or do not fit each other.

    ``also`` are attributes that it must have beside those of every learner.
    """
    from tacit.learners.preparation import check_running

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
