"""Models of instances: a hidden CRF on `tacit.problems.Bags`, linear or with Nyström features of an RBF kernel."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from tacit.bags.combination import held_out_loss, spread_classes
from tacit.bags.features import Scaler, as_dense, cut_blocks, similarities, typical_distance, whiten
from tacit.bags.samples import Samples
from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.data.specs import choice, not_negative, positive, table
from tacit.learners import HiddenCRF
from tacit.problems import Bags
from tacit.runtime.archive import storable

KERNELS = ("linear", "rbf")

MAX_LANDMARKS = 200
"""Instances that others are compared with."""

MAX_FEATURES = 20_000_000
"""Numbers that the features of all instances may have. Where there are more, nonlinear models learn from fewer bags;
where the bags of a choice have more, they are not tried beside linear ones."""

GAMMAS = (0.25, 1.0, 4.0)
"""Tried widths of the RBF kernel, divided by the typical squared distance."""

CS = (10.0, 100.0, 1000.0, 10_000.0)
"""Tried factors of the loss, for features of mean squared norm 1."""

MAX_STEPS = 300


@storable
@dataclass(frozen=True)
class Instances:
    """How instances become features: scaled, compared with landmarks for the RBF kernel, and of mean squared norm 1.

    Parameters
    ----------
    scaler : of the columns
    size : the root mean square of the norms, that features are divided by
    gamma : of the RBF kernel; 0 for linear features
    landmarks, mapping : of the RBF kernel; empty for linear features
    """

    scaler: Scaler
    size: float
    gamma: float
    landmarks: Array
    mapping: Array

    def __call__(self, bags: Ragged) -> Ragged:
        """The same bags with features in place of the instances."""
        if not self.gamma:
            return bags.with_values(self.scaler(bags.values) / self.size)
        blocks = cut_blocks(bags, len(self.landmarks))
        parts = [similarities(self.scaler(own.values), self.landmarks, self.gamma) @ self.mapping for _, own in blocks]
        return bags.with_values(np.concatenate(parts) / self.size)

    def check(self) -> None:
        """Refuse what no fit could have made."""
        self.scaler.check()
        positive("size", self.size)
        not_negative("gamma", self.gamma)
        table(None, self.scaler.scale.size if self.gamma else 0)("landmarks", self.landmarks)
        table(len(self.landmarks), None)("mapping", self.mapping)


@storable
@dataclass(frozen=True)
class WitnessModel:
    """A hidden CRF that sums over the instances of a bag which may carry its label.

    Parameters
    ----------
    rule : of `tacit.problems.Bags`
    C : factor of the loss
    instances : their features
    model : the fitted learner; its classes are positions of labels, the background first
    """

    rule: str
    C: float
    instances: Instances
    model: Any

    @property
    def name(self) -> str:
        return self.rule

    @property
    def kernel(self) -> str:
        return "rbf" if self.instances.gamma else "linear"

    @property
    def n_features(self) -> int:
        return int(self.instances.scaler.scale.size)

    @property
    def n_classes(self) -> int:
        return len(self.model.classes_)

    def scores(self, bags: Ragged) -> Array:
        """(n, classes)"""
        cells = max(len(self.instances.landmarks), 1)
        found = [self.model.decision_function(self.instances(own)) for _, own in cut_blocks(bags, cells)]
        return _by_label(_two_columns(np.concatenate(found)), self.model.classes_)

    def instance_scores(self, bags: Ragged) -> Array:
        """(rows, classes) scores of instances, those of the background 0."""
        blocks = cut_blocks(bags, max(len(self.instances.landmarks), 1))
        return np.concatenate([_score_instances(self.model, self.instances(own)) for _, own in blocks])

    def check(self) -> None:
        """Refuse what no fit could have made."""
        choice("witness", "instances", "both")("rule", self.rule)
        self.instances.check()
        if not isinstance(self.model, HiddenCRF) or not isinstance(self.model.problem, Bags):
            raise ValueError("model must be a fitted HiddenCRF of Bags")
        self.model.check()
        width = self.instances.mapping.shape[1] if self.instances.gamma else self.instances.scaler.scale.size
        if self.model.problem.rule != self.rule or self.model.schema_.n_features != width:
            raise ValueError(f"model must have the rule {self.rule!r} and {width} features")
        if not np.array_equal(np.sort(self.model.classes_), np.arange(len(self.model.classes_))):
            raise ValueError("the classes of model must be positions of labels")


@dataclass(frozen=True)
class Grid:
    """Which settings of witness models are tried."""

    kernels: Sequence[str] = KERNELS
    Cs: Sequence[float] = CS
    gammas: Sequence[float] | None = None
    background: int = 0
    n_jobs: int | None = None

    def feature_maps(self, samples: Samples) -> Iterator[Instances]:
        """The features to try; gammas that the user gave are of scaled instances."""
        values = samples.bags.values
        scaler = Scaler.fit(values)
        nothing = np.zeros((0, 0))
        if "linear" in self.kernels:
            yield _set_size(Instances(scaler, 1.0, 0.0, nothing, nothing), samples.bags)
        is_small = values.shape[0] * MAX_LANDMARKS <= MAX_FEATURES
        if "rbf" in self.kernels and (is_small or "linear" not in self.kernels):
            landmarks = as_dense(scaler(values[samples.draw(values.shape[0], MAX_LANDMARKS)]))
            typical = typical_distance(landmarks)
            for gamma in self.gammas or [factor / typical for factor in GAMMAS]:
                mapping = whiten(landmarks, gamma)
                yield _set_size(Instances(scaler, 1.0, float(gamma), landmarks, mapping), samples.bags)


def fit_witness_model(rule: str, samples: Samples, grid: Grid) -> tuple[WitnessModel, Array]:
    """Choose kernel, gamma and C on held-out bags, by their labels and known witnesses.

    Returns the model of all bags and its held-out scores.
    """
    trial = samples.trial()
    known = trial.known_witnesses(grid.background)
    best: tuple[float, float, Instances, Array] | None = None
    for instances in grid.feature_maps(trial):
        bags = instances(trial.bags)
        scores = np.zeros((len(grid.Cs), len(trial.y), samples.n_classes))
        ranks: list[list[tuple[int, Array]]] = [[] for _ in grid.Cs]
        for train, test in trial.folds():
            learner = _learner(rule, grid, samples.n_classes)
            part = replace(trial, bags=bags).take(train)
            told = test[known[test] >= 0]
            for i, C in enumerate(grid.Cs):
                _learn(learner.set_params(C=C), part)
                scores[i, test] = _by_label(_two_columns(learner.decision_function(bags[test])), learner.classes_)
                for bag in told:
                    ranks[i].append((bag, _score_instances(learner, bags[[bag]])[:, trial.y[bag]]))
        for own, ranked, C in zip(scores, ranks, grid.Cs, strict=True):
            loss, calibration = held_out_loss(own, trial.y, trial.weights)
            slope = float(calibration.slopes[0])
            for bag, s in ranked:
                loss += trial.weights[bag] * (logsumexp(slope * s) - slope * s[known[bag]]) / trial.weights.sum()
            if best is None or loss < best[0]:
                best = loss, C, instances, own
    assert best is not None
    _, C, instances, held_out = best
    if instances.gamma:
        per_bag = samples.bags.values.shape[0] / len(samples.y)
        samples = samples.at_most(max(int(MAX_FEATURES / (per_bag * instances.mapping.shape[1])), 1))
    learner = _learner(rule, grid, samples.n_classes).set_params(C=C, warm_start=False)
    _learn(learner, replace(samples, bags=instances(samples.bags)))
    return WitnessModel(rule, float(C), instances, learner), held_out


def _learner(rule: str, grid: Grid, n_classes: int) -> HiddenCRF:
    problem = Bags(rule=rule, background=grid.background, classes=list(range(n_classes)))
    return HiddenCRF(problem, tol=1e-3, max_iter=MAX_STEPS, warm_start=True, n_jobs=grid.n_jobs, verbose=0)


def _learn(learner: HiddenCRF, samples: Samples) -> None:
    """Fit; a fit that ends at its last step is as good for a choice, so that it does not warn."""
    hidden = samples.hidden
    if hidden is not None and learner.problem.rule != "both":  # the background has no witness
        hidden = hidden.copy()
        hidden[samples.y == learner.problem.background] = -1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.fit(samples.bags, samples.y, hidden=hidden, sample_weight=samples.weights)


def _score_instances(model: HiddenCRF, bags: Ragged) -> Array:
    """(rows, classes) scores of instances by their features, those of the background 0."""
    found = np.asarray(bags.values @ model.weights_["weights"].T + model.weights_["intercept"])
    if model.problem.rule == "both":
        found = found - found[:, model.classes_ == model.problem.background]
    else:
        found = np.hstack([np.zeros((len(found), 1)), found])
    return _by_label(found, model.classes_)


def _set_size(instances: Instances, bags: Ragged) -> Instances:
    values = instances(bags).values
    squares = values.multiply(values).sum() if hasattr(values, "multiply") else np.square(values).sum()
    return replace(instances, size=float(np.sqrt(max(squares / values.shape[0], 1e-12))))


def _two_columns(scores: Array) -> Array:
    return spread_classes(scores) if scores.ndim == 1 else scores


def _by_label(scores: Array, classes: Array) -> Array:
    """Columns in the order of the labels' positions."""
    return np.asarray(scores[:, np.argsort(classes)], dtype=np.float64)
