"""Checks that a learner behaves as users of scikit-learn expect."""

from __future__ import annotations

import copy
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.learners.learner import Learner
from tacit.oracle import CapabilityError, Problem
from tacit.runtime import Status, storage
from tacit.runtime.blocks import smallest_blocks
from tacit.testing.enumeration import assert_that, same
from tacit.testing.problem_checks import lower_bounds

N_EXAMPLES = 8
"""Examples of the problem that are joined to one table."""
N_BLOCKS = 5
"""Blocks of rows that threads share, of unequal size and more than there are threads."""
MAX_DRAWS = 1000
"""Random examples or models that are tried before the problem is called wrong."""


def check_learner(learner: Learner) -> None:
    """The common behaviour of learners: clone, copies, files, weights, permutations, shards, precision, bad input.

    What a learner promises in its `traits` is tested. If it is convex: the same objective whatever the order, precision
    or weights of the samples. If it is certified: a bound below the objective. Every learner must give the same weights
    to the bit for any ``n_jobs``. An AssertionError begins with the class at fault: the problem or the learner.

    >>> from tacit import StructuredSVM
    >>> from tacit.problems import Multiclass
    >>> check_learner(StructuredSVM(Multiclass()))
    """
    name = f"{type(learner).__name__} on {type(learner.problem).__name__}"
    tol = 1e-5 if learner.traits.is_convex else 1e-2  # only convex objectives are compared
    learner = _clone_with(learner, tol=tol, verbose=0, C=5.0, random_state=0)
    X, y, hidden = make_samples(learner.problem)
    known = {} if hidden is None else {"hidden": hidden}
    _check_problem_refuses(learner.problem, X, y, hidden)
    before = repr(learner.get_params())
    model = clone(learner)
    try:
        model.fit(X, y, **known)
    except CapabilityError as error:  # the problem lacks what this learner needs
        wanted = f"{name}: the error for a problem that lacks a method must name the learner and a remedy: {error}"
        assert_that(type(learner).__name__ in str(error) and ";" in str(error), wanted)
        return
    _check_learned(name, model)
    first = model.coef_.copy()
    assert_that(model.fit(X, y, **known) is model, f"{name}: fit must return the learner")
    assert_that(np.array_equal(first, model.coef_), f"{name}: a second fit with the same seed gave other weights")
    assert_that(repr(learner.get_params()) == before, f"{name}: fit changed a parameter of the learner or the problem")
    assert_that(len(model.predict(X)) == len(y), f"{name}: predict must give one label per sample")
    _check_copies(name, model, X)
    with smallest_blocks(N_BLOCKS):  # so that even these few samples are shared
        alone, shared = (_clone_with(learner, n_jobs=n_jobs).fit(X, y, **known) for n_jobs in (1, 3))
    assert_that(np.array_equal(shared.coef_, alone.coef_), f"{name}: n_jobs=3 gave other weights than n_jobs=1")
    if model.traits.is_convex:
        _check_convex(name, learner, model, X, y, known)
    if hidden is not None:
        _check_hidden(name, learner, X, y)
    _check_refusals(name, learner, X, y, known)


def make_samples(problem: Problem) -> tuple[Any, Any, Any]:
    """Several examples of a problem in one table, labelled by a model, so that there is something to learn."""
    examples: list[Any] = []
    for seed in range(MAX_DRAWS):
        example = problem.example(np.random.default_rng(seed))
        if _can_join([*(e.X for e in examples), example.X]):
            examples.append(example)
        if len(examples) == N_EXAMPLES:
            break
    else:
        raise AssertionError(
            f"{type(problem).__name__}: {len(examples)} of {MAX_DRAWS} examples have as many features as the first; "
            f"let `example` draw few sizes, so that {N_EXAMPLES} can be joined in one table"
        )
    X = _cast(_join([e.X for e in examples]), np.float64)
    schema = problem.schema(X, _join([e.y for e in examples]))
    oracle, lower = problem.bind(X, None, schema), lower_bounds(problem, schema)
    for seed in range(MAX_DRAWS):
        w = np.maximum(np.random.default_rng(seed).standard_normal(schema.n_params), lower)
        y, hidden = oracle.decode(oracle.predict(w).code)
        if isinstance(y, Ragged):
            # clusters are numbered within each document: two of them in some document are enough
            if len(np.unique(y.values)) == (len(schema.classes) or 2):
                return X, y, hidden
        elif len(schema.classes) and len(np.unique(y)) == len(schema.classes):
            first = [int(np.flatnonzero(y == label)[0]) for label in schema.classes]
            order = np.concatenate([first, np.setdiff1d(np.arange(len(y)), first)]).astype(np.int64)
            return X[order], y[order], None if hidden is None else hidden[order]
        elif not len(schema.classes) and _has_rivals(problem, X, y):
            return X, y, hidden
    raise AssertionError(
        f"{type(problem).__name__}: none of {MAX_DRAWS} random models predicts every label of the schema on "
        f"{N_EXAMPLES} examples; is there a label that predict never returns?"
    )


def _has_rivals(problem: Problem, X: Any, y: Any) -> bool:
    """Whether another output than the true one is possible for some sample: a grammar is read from the true trees."""
    schema = problem.schema(X, y)
    found = problem.bind(X, y, schema).predict_augmented(np.zeros(schema.n_params))
    return bool((found.value > 0).any())


def _can_join(parts: list[Any]) -> bool:
    try:
        _join(parts)
    except ValueError:
        return False
    return True


def _join(parts: list[Any]) -> Any:
    """Arrays, or containers that have ``concatenate``, in one."""
    return getattr(type(parts[0]), "concatenate", np.concatenate)(parts)


def _cast(X: Any, kind: type) -> Any:
    """The same numbers in another precision, of an array or a container with ``values``; strings stay as they are."""
    if hasattr(X, "with_values"):
        return X.with_values(X.values.astype(kind))
    return X if X.dtype.kind in "SU" else X.astype(kind)


def _bad_data(problem: Problem, X: Any, y: Any) -> list[tuple[str, Any, Any]]:
    """Names of bad data, with their samples and labels."""
    single = (
        y.with_values(np.repeat(y.values[:1], y.values.size)) if isinstance(y, Ragged) else np.repeat(y[:1], len(y))
    )
    are_listed = any(getattr(problem, name, None) is not None for name in ("classes", "labels", "outputs"))
    are_found = not are_listed and len(problem.schema(X, y).classes) > 0  # clusters are without classes
    cases = [("0 samples", X[:0], y[:0]), ("a y that is too short", X, y[:-1])]
    return [*cases, ("a y of one class", X, single)] if are_found else cases


def _check_problem_refuses(problem: Problem, X: Any, y: Any, hidden: Any) -> None:
    """A problem must refuse bad data itself, and good data must not change it."""
    name, before = type(problem).__name__, repr(problem.get_params())
    problem.bind(X, y, problem.schema(X, y), hidden=hidden)
    unchanged = repr(problem.get_params()) == before
    assert_that(unchanged, f"{name}: binding data changed the problem's parameters; work on a copy")
    for what, data, labels in _bad_data(problem, X, y):
        try:
            problem.bind(data, labels, problem.schema(data, labels))
        except ValueError:
            continue
        except Exception as error:
            raise AssertionError(
                f"{name}: schema or bind must refuse {what} with a ValueError, not {error!r}"
            ) from error
        raise AssertionError(f"{name}: schema or bind must refuse {what} with a ValueError")


def _check_learned(name: str, model: Any) -> None:
    """The attributes that a fit must set."""
    for attribute in ("coef_", "schema_", "n_features_in_"):
        assert_that(hasattr(model, attribute), f"{name}: fit must set {attribute}")
    assert_that(model.n_features_in_ == model.schema_.n_features, f"{name}: n_features_in_ is wrong")
    is_sound = not np.isnan(model.coef_).any() and model.coef_.dtype == np.float64
    assert_that(is_sound, f"{name}: coef_ must be finite float64")
    if model.traits.has_objective:
        assert_that(np.isfinite(getattr(model, "objective_", np.nan)), f"{name}: objective_ must be a finite number")
        assert_that(len(getattr(model, "history_", [])) > 0, f"{name}: history_ is missing or empty")
    objective, bound = getattr(model, "objective_", np.inf), getattr(model, "bound_", -np.inf)
    assert_that(bound <= objective, f"{name}: bound_ {bound} is above objective_ {objective}")
    if model.traits.is_certified:
        assert_that(bound > -np.inf, f"{name}: traits.is_certified is True, but bound_ is {bound}")
        assert_that(model.gap_ >= 0, f"{name}: gap_ must not be negative, got {model.gap_}")


def _check_copies(name: str, model: Any, X: Any) -> None:
    """Files and copies predict as the model does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tacit"
        model.save(path)
        problem = None if storage.is_own(model.problem) else model.problem
        lines = [] if not model.traits.has_objective else [type(model.history_[0])]
        loaded = storage.load(path, problem=problem, classes=[type(model), *lines])
    assert_that(same(loaded.predict(X), model.predict(X)), f"{name}: the loaded model has other predictions")
    assert_that(np.array_equal(loaded.coef_, model.coef_), f"{name}: the loaded model has other weights")
    copied = copy.deepcopy(model)
    assert_that(same(copied.predict(X), model.predict(X)), f"{name}: a copy of the model has other predictions")


def _check_convex(name: str, learner: Learner, model: Any, X: Any, y: Any, known: dict[str, Any]) -> None:
    """The optimum is the same in any order and precision of the samples, and with weights instead of copies."""

    def agrees(what: str, other: Any, with_: Any = model) -> None:
        room = 3e-5 * max(1.0, with_.objective_)
        assert_that(
            abs(other.objective_ - with_.objective_) <= room,
            f"{name}: {what} changed the objective from {with_.objective_} to {other.objective_}",
        )

    n = len(y)
    order = np.random.default_rng(0).permutation(n)
    agrees("permuting the samples", clone(learner).fit(X[order], y[order], **_take_rows(known, order)))
    agrees("float32 features", clone(learner).fit(_cast(X, np.float32), y, **known))
    weight = np.random.default_rng(1).integers(0, 3, n)
    weight[:3] = 1
    kept = np.flatnonzero(weight)
    if model.problem.schema(X[kept], y[kept]).blocks != model.schema_.blocks:
        weight = np.maximum(weight, 1)  # all samples are needed for the same schema, such as the rules of a grammar
    repeated = np.repeat(np.arange(n), weight)
    weighted = clone(learner).fit(X, y, sample_weight=weight, **known)
    doubled = clone(learner).fit(X[repeated], y[repeated], **_take_rows(known, repeated))
    agrees("a weight of 2 instead of the sample twice", weighted, doubled)


def _check_hidden(name: str, learner: Learner, X: Any, y: Any) -> None:
    """Without hidden values a learner learns, or says that it needs them."""
    try:
        model = clone(learner).fit(X, y)
    except CapabilityError:  # the problem lacks what that needs
        return
    except ValueError as error:
        assert_that(learner.traits.needs_hidden, f"{name}: fit without hidden values raised {error!r}")
        assert_that("hidden" in str(error), f"{name}: the error must say that hidden values are unknown: {error}")
    else:
        needs = learner.traits.needs_hidden
        assert_that(not needs, f"{name}: traits.needs_hidden is True, but it fits without hidden values")
        assert_that(
            len(model.predict(X)) == len(y),
            f"{name}: after a fit without hidden values, predict must give one label per sample",
        )


def _check_refusals(name: str, learner: Learner, X: Any, y: Any, known: dict[str, Any]) -> None:
    """A learner refuses bad parameters, and data that its problem refuses; one step is not called convergence."""
    params = learner.get_params(deep=False)
    bad_data: list[Any] = [(what, {}, data, labels) for what, data, labels in _bad_data(learner.problem, X, y)]
    for what, change, data, labels in (("C = 0", {"C": 0.0}, X, y), ("C = −1", {"C": -1.0}, X, y), *bad_data):
        if not set(change) <= set(params):
            continue
        try:
            clone(learner).set_params(**change).fit(data, labels, **known)
        except ValueError:
            continue
        raise AssertionError(f"{name}: the learner must refuse {what} with a ValueError")
    if "max_iter" in params and hasattr(clone(learner), "tol"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            short = clone(learner).set_params(max_iter=1, tol=1e-12).fit(X, y, **known)
        is_solved = learner.traits.is_certified and short.gap_ < 1e-9
        assert_that(short.status_ is not Status.CONVERGED or is_solved, f"{name}: one step cannot converge to 1e-12")


def _clone_with(learner: Learner, **params: Any) -> Any:
    """A clone with these parameters, except those that the learner does not have."""
    known = learner.get_params(deep=False)
    return clone(learner).set_params(**{name: value for name, value in params.items() if name in known})


def _take_rows(known: dict[str, Any], order: Array) -> dict[str, Any]:
    return {name: values[order] for name, values in known.items()}
