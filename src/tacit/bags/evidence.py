"""How well bags are classified that were held out: of `BagClassifier`, and of two baselines in the same folds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from tacit.bags.features import bag_statistics
from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.runtime import Status

FOLDS = 5
LEAST_BAGS = 5
"""Bags of every class that a test needs."""


class HeldOut(NamedTuple):
    """Results of one classifier on held-out bags.

    Parameters
    ----------
    name : of the classifier
    accuracy : the share of right labels
    area : under the ROC curve; for several classes the mean of one against the rest
    curve : false and true positive rates, for two classes
    right : whether each bag was right
    scores : (n,) or (n, classes)
    """

    name: str
    accuracy: float
    area: float
    curve: tuple[Array, Array] | None
    right: Array
    scores: Array


def extremes_svc() -> Any:
    """Minimum and maximum of every column, and an SVM with an RBF kernel with scikit-learn's defaults."""
    extremes = FunctionTransformer(_extremes)
    return make_pipeline(extremes, StandardScaler(), SVC())


def statistics_forest(seed: int) -> Any:
    """Statistics of every column, and a random forest."""
    return make_pipeline(FunctionTransformer(bag_statistics), RandomForestClassifier(200, random_state=seed))


def cross_validate(model: Any, bags: Ragged, y: Array) -> list[HeldOut] | None:
    """Cross-validate a classifier and the baselines in the same folds; None where a class has fewer than five bags.

    Ctrl-C ends the test, which is None then.
    """
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < LEAST_BAGS:
        return None
    seed = int(model.random_state)
    rivals = {
        "BagClassifier": clone(model).set_params(bag=None, label=None),
        "min and max + RBF SVC": extremes_svc(),
        "random forest on statistics": statistics_forest(seed),
    }
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y))
    found = []
    for name, rival in rivals.items():
        labels = np.empty_like(y)
        scores = np.zeros((len(y), len(classes))[: 1 if len(classes) == 2 else 2])
        for train, test in folds:
            fitted = clone(rival).fit(bags[train], y[train])
            if getattr(fitted, "status_", None) is Status.INTERRUPTED:
                return None
            labels[test] = fitted.predict(bags[test])
            scores[test] = _scores(fitted, bags[test])
        found.append(_measure(name, labels, scores, y, classes))
    return found


def _measure(name: str, labels: Array, scores: Array, y: Array, classes: Array) -> HeldOut:
    right = labels == y
    if len(classes) > 2:
        areas = [roc_auc_score(y == label, scores[:, k]) for k, label in enumerate(classes)]
        return HeldOut(name, float(right.mean()), float(np.mean(areas)), None, right, scores)
    is_second = y == classes[1]
    x, rate, _ = roc_curve(is_second, scores)
    return HeldOut(name, float(right.mean()), float(roc_auc_score(is_second, scores)), (x, rate), right, scores)


def _scores(fitted: Any, bags: Ragged) -> Array:
    if hasattr(fitted, "decision_function"):
        return np.asarray(fitted.decision_function(bags))
    found = np.asarray(fitted.predict_proba(bags))
    return found[:, 1] if found.shape[1] == 2 else found


def _extremes(bags: Any) -> Any:
    return bag_statistics(bags, ("min", "max"))
