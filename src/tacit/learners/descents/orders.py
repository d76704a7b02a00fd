"""Orders of entropy: as users give them, and how held-out samples choose them, by cross-validation or by gradients."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array
from tacit.data.parameters import is_list, number, numbers, shorten
from tacit.learners.descents.held_out import HeldOutFold
from tacit.learners.path import cut_folds
from tacit.learners.preparation import sample_weights
from tacit.oracle import require
from tacit.oracle.capabilities import VisitsCells
from tacit.runtime import Status
from tacit.runtime.archive import record

Alpha = float | dict[str, float]
"""The order of an entropy, or one order for each kind of hidden value."""

DEFAULT_ALPHAS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, np.inf)

LEARNED_RANGE = 0.05, 100.0
"""Where orders are learned."""

MAX_STEPS = 15
"""Values of α after which the search for a start ends, once the line search is through."""

SMALL_SLOPE = 0.02
"""The share of the first slope at which the search ends."""


@record
class CurvePoint(NamedTuple):
    """What held-out folds say of one α and C: the mean of their scores, and the standard deviation.

    With ``alpha="learn"`` the score is minus the mean smooth slack of held-out samples.
    """

    alpha: Any
    C: float
    score: float
    std: float


def check_curve(name: str, points: Any) -> Any:
    """The spec of `curve_`."""
    if not isinstance(points, list) or not all(isinstance(point, CurvePoint) for point in points):
        raise ValueError(f"{name} must be a list of CurvePoint, got {shorten(points)}")
    return points


def check_alpha(name: str, value: Any) -> Any:
    """The spec of `alpha_`."""
    if not isinstance(value, Mapping):
        return _read_order(name, value)
    return {str(kind): _read_order(f"{name}[{shorten(kind)}]", order) for kind, order in value.items()}


def _read_order(name: str, value: Any) -> float:
    return number(name, value, "a number above 0, inf included", lambda order: order > 0)


def find_order(alpha: Alpha, problem: Any) -> float | tuple[float, ...]:
    """One order where all are equal, else one for each kind of hidden value, the outermost first.

    >>> from tacit.problems import Motif
    >>> find_order({"start": np.inf, "strand": 1.0}, Motif(8, strands="both")), find_order(2, Motif(8))
    ((1.0, inf), 2.0)
    """
    if not isinstance(alpha, Mapping):
        return float(alpha)
    orders = tuple(_read_kinds("alpha", alpha, problem).values())
    return orders[0] if len(set(orders)) == 1 else orders


def read_grid(learner: Any) -> tuple[list[Alpha], Array]:
    """The values of α and C of a learner, checked; one each unless held-out samples choose. Orders by kind are last."""
    how = learner.alpha if isinstance(learner.alpha, str) else ""
    if how not in ("", "cv", "learn"):
        raise ValueError(
            f"alpha must be a number above 0, inf included, a dict with one for each kind of hidden value, 'cv' or "
            f"'learn', got alpha={shorten(learner.alpha)}"
        )
    name = "alphas" if how else "alpha"
    given = getattr(learner, name)
    if how and given is None:
        default = [alpha for alpha in DEFAULT_ALPHAS if alpha < np.inf or learner.entropy != "havrda-charvat"]
        given = default if how == "cv" else 1.0
    alphas = _read_alphas(name, given, learner.problem)
    Cs = np.atleast_1d(numbers("C", learner.C, "a positive number, or with alpha='cv' or 'learn' a list of them"))
    if Cs.ndim != 1 or not Cs.size or not ((Cs > 0) & np.isfinite(Cs)).all():
        raise ValueError(f"C must be positive and finite, got C={shorten(learner.C)}")
    if not how and (len(alphas) > 1 or Cs.size > 1):
        raise ValueError("several values of alpha or C need alpha='cv', which chooses by cross-validation, or 'learn'")
    return alphas, np.sort(Cs)


def _read_alphas(name: str, given: Any, problem: Any) -> list[Alpha]:
    entries = list(given) if is_list(given) and not isinstance(given, Mapping) else [given]
    by_kind: list[Alpha] = [_read_kinds(name, entry, problem) for entry in entries if isinstance(entry, Mapping)]
    if len(by_kind) == len(entries) > 0:
        return by_kind
    plain = [entry for entry in entries if not isinstance(entry, Mapping)] if by_kind else given
    orders = np.atleast_1d(numbers(name, plain, "a number above 0, or a list of them"))
    if orders.ndim != 1 or not orders.size or not (orders > 0).all():
        raise ValueError(f"{name} must be above 0, inf included, got {name}={shorten(given)}")
    return [*np.sort(orders).tolist(), *by_kind]


def _read_kinds(name: str, alpha: Mapping[Any, Any], problem: Any) -> dict[str, float]:
    """Orders by kind, the outermost first."""
    kinds: tuple[str, ...] = getattr(problem, "hidden_kinds", ())
    if not kinds or set(alpha) != set(kinds):
        who = type(problem).__name__
        own = " and ".join(map(repr, kinds)) or "one without a name: give a number"
        raise ValueError(
            f"{name} must have an order for each kind of hidden value, got {shorten(dict(alpha))}; this {who} has {own}"
        )
    return {kind: _read_order(f"{name}[{kind!r}]", alpha[kind]) for kind in kinds}


def cross_validate(learner: Any, X: Any, y: Any, hidden: Any, sample_weight: Any) -> list[CurvePoint]:
    """The curve: for every C and α the score of held-out folds; along α each fit starts from the last one's weights."""
    alphas, Cs = read_grid(learner)
    folds = []
    for data, inside, held_out in cut_folds(learner.cv, X, y, _keep_given(hidden, sample_weight)):
        found = np.empty((Cs.size, len(alphas)))
        for i, C in enumerate(Cs):
            model = _copy(learner, float(C), warm_start=True)
            for j, alpha in enumerate(alphas):
                _fit(model.set_params(alpha=alpha), data, inside)
                found[i, j] = model.score(*held_out)
        folds.append(found)
    scores = np.stack(folds, axis=2)
    return [_summarise(alpha, float(C), scores[i, j]) for i, C in enumerate(Cs) for j, alpha in enumerate(alphas)]


def learn_orders(learner: Any, X: Any, y: Any, hidden: Any, sample_weight: Any) -> list[CurvePoint]:
    """The curve: for every C and first α the values that L-BFGS-B tried on its way down the held-out objective.

    The descent is in log α, between the ends of `LEARNED_RANGE`.
    """
    alphas, Cs = read_grid(learner)
    parts = list(cut_folds(learner.cv, X, y, _keep_given(hidden, sample_weight)))
    curve: list[CurvePoint] = []
    for C in Cs.tolist():
        for start in alphas:
            curve += _descend(start, C, [_open_fold(learner, start, C, *part) for part in parts])
    return curve


def _open_fold(
    learner: Any, start: Alpha, C: float, data: tuple[Any, Any], inside: dict[str, Any], held_out: tuple[Any, Any]
) -> HeldOutFold:
    """A fold, its weights fitted with the first orders."""
    model = _copy(learner, C, alpha=start)
    _fit(model, data, inside)
    train = model._bind(*data, inside.get("hidden")).exact()
    require("MinEntropySVM(alpha='learn')", model.problem, train, VisitsCells, "choose with alpha='cv'")
    weights = sample_weights(model, data[1], model.classes_, train.n_samples, inside.get("sample_weight"))
    test = model._bind(*held_out).exact()
    return HeldOutFold(train, test, weights, learner.rescaling, model.coef_, learner.n_jobs)


def _descend(start: Alpha, C: float, folds: list[HeldOutFold]) -> list[CurvePoint]:
    kinds = list(start) if isinstance(start, Mapping) else []
    curve: list[CurvePoint] = []
    first_slope: list[float] = []

    def evaluate(logs: Array) -> tuple[float, Array]:
        orders = tuple(np.exp(logs).tolist())
        risks, slopes = zip(*(fold(orders) for fold in folds), strict=True)
        alpha = dict(zip(kinds, orders, strict=True)) if kinds else orders[0]
        curve.append(_summarise(alpha, C, -np.array(risks)))
        slope = np.exp(logs) * np.mean(slopes, axis=0)
        first_slope.append(max(float(np.linalg.norm(slope)), np.finfo(float).tiny))
        return float(np.mean(risks)) / first_slope[0], slope / first_slope[0]  # the first step has the length 1

    first = np.log(list(start.values()) if isinstance(start, Mapping) else [start])
    limits = [tuple(np.log(LEARNED_RANGE))] * first.size
    ending = {"maxfun": MAX_STEPS, "gtol": SMALL_SLOPE, "ftol": 1e-4}
    minimize(evaluate, first, method="L-BFGS-B", jac=True, bounds=limits, options=ending)
    return curve


def _keep_given(hidden: Any, sample_weight: Any) -> dict[str, Any]:
    known = {"hidden": hidden, "sample_weight": sample_weight}
    return {name: values for name, values in known.items() if values is not None}


def _copy(learner: Any, C: float, **settings: Any) -> Any:
    return clone(learner).set_params(checkpoint=None, resume=False, callbacks=None, C=C, **settings)


def _fit(model: Any, data: tuple[Any, Any], inside: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*data, **inside)
    if model.status_ is Status.INTERRUPTED:
        raise KeyboardInterrupt  # the score of an interrupted fit is no result


def _summarise(alpha: Alpha, C: float, scores: Array) -> CurvePoint:
    std = float(scores.std(ddof=1)) if scores.size > 1 else 0.0
    return CurvePoint(alpha, C, float(scores.mean()), std)
