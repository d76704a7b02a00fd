"""Does a learner behave as users of scikit-learn expect?"""

from __future__ import annotations

import copy
import itertools
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tacit import storage
from tacit.arrays import Array
from tacit.learners.learner import Learner
from tacit.oracle import Problem
from tacit.ragged import Ragged
from tacit.solvers import Status
from tacit.testing.enumeration import same, say


def check_learner(learner: Learner) -> None:
    """The common behaviour of learners: clone, copies, files, weights, permutations, shards, precision, bad input.

    Convex learners must reach the same objective whatever the order, precision or number of shards.

    >>> from tacit import StructuredSVM
    >>> from tacit.problems import Multiclass
    >>> check_learner(StructuredSVM(Multiclass()))
    """
    name = type(learner).__name__
    learner = clone(learner).set_params(tol=1e-5, verbose=0, C=5.0, random_state=0)
    X, y, hidden = _data(learner.problem)
    n = len(y)
    known = {} if hidden is None else {"hidden": hidden}
    before = repr(learner.get_params())
    model = clone(learner)
    say(model.fit(X, y, **known) is model, f"{name}: fit must return the learner")
    say(repr(learner.get_params()) == before, f"{name}: fit changed a parameter or the problem")
    say(len(model.predict(X)) == n, f"{name}: predict must give one label per sample")
    say(model.bound_ <= model.objective_, f"{name}: bound_ {model.bound_} above objective_ {model.objective_}")
    say(model.n_features_in_ == model.schema_.n_features, f"{name}: n_features_in_ is wrong")
    say(
        not np.isnan(model.coef_).any() and model.coef_.dtype == np.float64,
        f"{name}: coef_ must be finite float64",
    )
    if storage.is_own(model):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tacit"
            model.save(path)
            loaded = storage.load(path, problem=None if storage.is_own(model.problem) else model.problem)
        say(same(loaded.predict(X), model.predict(X)), f"{name}: the loaded model predicts otherwise")
        say(loaded.objective_ == model.objective_, f"{name}: the loaded model has another objective_")
    copied = copy.deepcopy(model)
    say(same(copied.predict(X), model.predict(X)), f"{name}: a copy of the model predicts otherwise")
    again = clone(learner).fit(X, y, **known)
    say(np.array_equal(again.coef_, model.coef_), f"{name}: the same seed gave another result")

    def agrees(what: str, other: Any) -> None:
        room = 3e-5 * max(1.0, model.objective_)
        say(
            abs(other.objective_ - model.objective_) <= room,
            f"{name}: {what} moved the objective from {model.objective_} to {other.objective_}",
        )

    order = np.random.default_rng(0).permutation(n)
    agrees("permuting the samples", clone(learner).fit(X[order], y[order], **_taken(known, order)))
    agrees("splitting rows into shards", clone(learner).set_params(n_jobs=2).fit(X, y, **known))
    agrees("float32 features", clone(learner).fit(_cast(X, np.float32), y, **known))
    weight = np.random.default_rng(1).integers(0, 3, n)
    weight[:3] = 1
    repeated = np.repeat(np.arange(n), weight)
    weighted = clone(learner).fit(X, y, sample_weight=weight, **known)
    doubled = clone(learner).fit(X[repeated], y[repeated], **_taken(known, repeated))
    say(
        abs(weighted.objective_ - doubled.objective_) <= 3e-5 * max(1.0, doubled.objective_),
        f"{name}: weight 2 must be the sample twice: {weighted.objective_} against {doubled.objective_}",
    )
    _check_refusals(name, learner, X, y, known)


def _check_refusals(name: str, learner: Learner, X: Any, y: Any, known: dict[str, Any]) -> None:
    single = (
        Ragged(np.repeat(y.values[:1], y.values.size), y.offsets) if isinstance(y, Ragged) else np.repeat(y[:1], len(y))
    )
    for what, change, data, labels in (
        ("C = 0", {"C": 0.0}, X, y),
        ("C = −1", {"C": -1.0}, X, y),
        ("no samples", {}, X[:0], y[:0]),
        ("y too short", {}, X, y[:-1]),
        ("y of one class", {}, X, single),
    ):
        if what == "y of one class" and any(
            getattr(learner.problem, name, None) is not None for name in ("classes", "outputs")
        ):
            continue
        try:
            clone(learner).set_params(**change).fit(data, labels, **known)
        except ValueError as error:
            say(len(str(error)) > 20, f"{name}: the error for {what} says too little: {error}")
        else:
            raise AssertionError(f"{name}: {what} must be refused with a ValueError")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short = clone(learner).set_params(max_iter=1, tol=1e-12).fit(X, y, **known)
    say(
        short.status_ is not Status.CONVERGED or short.gap_ < 1e-9,
        f"{name}: one step cannot converge to 1e-12",
    )


def _data(problem: Problem) -> tuple[Any, Any, Any]:
    """Several examples of a problem in one table, labelled by a model, so that there is something to learn."""
    examples: list[Any] = []
    for seed in itertools.count():
        example = problem.example(np.random.default_rng(seed))
        if not examples or _width(example.X) == _width(examples[0].X):
            examples.append(example)
        if len(examples) == 8:
            break
    X = _cast(_joined([e.X for e in examples]), np.float64)
    schema = problem.schema(X, _joined([e.y for e in examples]))
    oracle = problem.bind(X, None, schema)
    for seed in itertools.count():
        w = np.random.default_rng(seed).standard_normal(schema.n_params)
        y, hidden = oracle.decode(oracle.predict(w).code)
        if isinstance(y, Ragged):
            if len(np.unique(y.values)) == len(schema.classes):
                return X, y, hidden
        elif len(np.unique(y)) == len(schema.classes):
            first = [int(np.flatnonzero(y == label)[0]) for label in schema.classes]
            order = np.concatenate([first, np.setdiff1d(np.arange(len(y)), first)])
            return X[order], y[order], None if hidden is None else hidden[order]
    raise AssertionError("unreachable")


def _joined(parts: list[Any]) -> Any:
    return Ragged.concatenate(parts) if isinstance(parts[0], Ragged) else np.concatenate(parts)


def _width(X: Any) -> Any:
    return (X.values if isinstance(X, Ragged) else X).shape[1:]


def _cast(X: Any, kind: type) -> Any:
    """The same numbers in another precision; strings stay as they are."""
    if isinstance(X, Ragged):
        return X.with_values(X.values.astype(kind))
    return X if X.dtype.kind in "SU" else X.astype(kind)


def _taken(known: dict[str, Any], order: Array) -> dict[str, Any]:
    return {name: values[order] for name, values in known.items()}
