"""Logistic regression on the best hidden value: two classes, max over h, L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.special import expit

from tacit.data.arrays import Array
from tacit.data.labels import find_missing
from tacit.data.specs import estimator, parameter, positive, switch, whole
from tacit.learners.descents.multistart import MAX_STARTS, Method
from tacit.learners.descents.paced import Paced
from tacit.learners.descents.pacing import SelfPaced, optional_pace
from tacit.learners.descents.unlabelled import self_train
from tacit.learners.learner import Traits
from tacit.learners.smooth_learner import QuasiNewton, SmoothLearner, SmoothState
from tacit.oracle import Assignment, CapabilityError, Oracle, Schema, capability
from tacit.oracle.capabilities import ListsOutputs, ScoresLabels, SumsDifferences

STATIONARY = 1e-8
"""Half the squared slope, relative to the objective, that ends a descent. At kinks the slope does not vanish: a descent
mostly ends because the objective no longer decreases."""


@estimator
class LatentLogistic(SmoothLearner):
    """Logistic regression of two classes on the score of the best hidden value.

    Minimises ``½‖w‖² + (C/n) Σ_i log(1 + exp(s_i(ȳ_i) − s_i(y_i)))`` with ``s_i(y) = max_h w·Ψ(x_i, y, h)`` and ȳ the
    other class. Where ``Ψ(x, negative) = 0``, as in `tacit.problems.MotifSites`, this is the logistic loss of
    ``F(x) = max_h w·Ψ(x, positive, h)``. Unlike in `LatentSVM` every sample counts, even far beyond the margin, and no
    convex tasks are solved; unlike in `HiddenCRF` the hidden value is the best one instead of a sum. The objective is
    not convex, and has kinks where the best hidden value changes: L-BFGS passes them, and other starts may end lower.
    Two maximisations per evaluation, about one evaluation per step.

    Source: the latent model of Felzenszwalb, Girshick, McAllester & Ramanan (2010), with the logistic loss in place of
    the hinge; Redhead & Bailey (2007) learn motifs by such a likelihood, summed over hidden positions.

    Parameters
    ----------
    problem : what is predicted, of two classes and with a hidden value, such as `tacit.problems.MotifSites(8)`
    C : coefficient of the mean loss against ½‖w‖²
    n_init, init : as in `HiddenCRF`; ``init`` may also be a list of weights by name, one per start
    tol : stop when ten steps together decrease the objective by less than C · tol, or the slope is nearly zero
    max_iter : steps per start; with a pace, rounds
    class_weight : None, "balanced" (both classes count half), or a factor for C by label
    warm_start : the first start begins at the present `coef_`
    pace : None for all samples at once, or `tacit.SelfPaced()`, as in `HiddenCRF`
    checkpoint, resume, n_jobs, random_state, verbose, callbacks : as in `HiddenCRF`

    Attributes
    ----------
    hidden_ : the best hidden value of every training sample, given its label
    bound_, gap_ : −inf and inf, because the objective is not convex
    coef_, weights_, objective_, history_, runs_, status_, n_iter_ : as in `HiddenCRF`

    >>> from tacit.datasets import planted_motif
    >>> from tacit.problems import MotifSites
    >>> X, y, start = planted_motif(200, 30, "TGACTCA", seed=0)
    >>> model = LatentLogistic(MotifSites(7), C=300, class_weight="balanced").fit(X, y)
    >>> "".join("ACGT"[i] for i in model.weights_["motif"][0].argmax(axis=1)), model.score(X, y) > 0.98
    ('TGACTCA', True)
    """

    traits = Traits(has_objective=True)
    _needs = (
        ScoresLabels.best_under,
        ListsOutputs.known_labels,
        *(Oracle.impute, Oracle.decode, Oracle.exact, Oracle.hidden_unknown),
    )
    _instead = "use tacit.HiddenCRF, which takes other problems"

    C: float = parameter(positive, default=100.0)
    n_init: int = parameter(whole(1, MAX_STARTS), default=1)
    init: Any = "auto"
    tol: float = parameter(positive, default=1e-6)
    max_iter: int = parameter(whole(), default=1000)
    class_weight: Any = None
    warm_start: bool = parameter(switch, default=False)
    pace: SelfPaced | None = parameter(optional_pace, default=None)

    def fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> LatentLogistic:
        """Learn from labelled samples; the arguments are those of `HiddenCRF.fit`."""
        if (is_missing := find_missing(y, getattr(self.problem, "has_marginals", False))).any():
            return self_train(self, X, y, is_missing, hidden, sample_weight)
        self._is_free = hidden is None
        try:
            super().fit(X, y, hidden=hidden, sample_weight=sample_weight)
        finally:
            del self._is_free
        return self

    def _check_bound(self, schema: Schema, oracle: Oracle) -> None:
        name = type(self.problem).__name__
        if len(schema.classes) != 2:
            raise CapabilityError(
                f"LatentLogistic needs two classes, got {len(schema.classes)} from {name}; use tacit.HiddenCRF, or one "
                "model per class"
            )
        if oracle.decode(oracle.predict(np.zeros(oracle.n_params)).code)[1] is None:
            raise CapabilityError(
                f"LatentLogistic needs a problem with a hidden value, got {name}; use tacit.HiddenCRF, which is "
                "logistic regression there"
            )

    def _skips_zero(self) -> bool:
        return True  # all hidden values tie there

    def _objective(self, oracle: Oracle, weights: Array) -> LogisticLoss:
        return LogisticLoss(oracle, weights, self._is_free)

    def _method(self, objective: Any, oracle: Oracle) -> Method[Any]:
        significant = float(self.tol) * float(objective.weights.sum())

        def descend(part: LogisticLoss, n_samples: int) -> QuasiNewton:
            return QuasiNewton(part, oracle, n_samples, STATIONARY, significant)

        if self.pace is None:
            return descend(objective, oracle.n_samples)
        return Paced(objective, oracle, descend, self.pace)

    def _bound(self, state: SmoothState) -> float:
        return -np.inf


@dataclass(frozen=True)
class LogisticLoss:
    """``½‖w‖² + Σ_i c_i log(1 + exp(s_i(ȳ_i) − s_i(y_i)))``, and a subgradient: the features of the best outputs under
    both labels. Known hidden values are fixed under the true one, unless ``is_free`` says that there are none."""

    oracle: Oracle
    weights: Array
    is_free: bool

    def __call__(self, w: Array) -> tuple[float, Array]:
        truth, rival = self._best_outputs(w)
        excess = rival.value - truth.value
        pull = self.weights * expit(excess)
        value = 0.5 * float(w @ w) + float(self.weights @ np.logaddexp(0.0, excess))
        if self._sums is not None:
            return value, w + self._sums.difference(rival.code, truth.code, pull)
        return value, w + self.oracle.features(rival.code, pull) - self.oracle.features(truth.code, pull)

    def of(self, oracle: Oracle, weights: Array) -> LogisticLoss:
        """The same objective of other samples, or with other hidden values known."""
        return LogisticLoss(oracle, weights, False)

    def slack(self, w: Array) -> Array:
        """The logistic loss of every sample."""
        truth, rival = self._best_outputs(w)
        return np.asarray(np.logaddexp(0.0, rival.value - truth.value))

    def _best_outputs(self, w: Array) -> tuple[Assignment, Assignment]:
        """Under the true label, and under the other one."""
        if not self.is_free:
            return self.oracle.impute(w), cast(ScoresLabels, self.oracle).best_under(w, 1 - self._labels)
        one, other = (
            cast(ScoresLabels, self.oracle).best_under(w, np.full_like(self._labels, label)) for label in (0, 1)
        )
        is_one = self._labels == 0
        pairs = [(np.where(is_one, a, b), np.where(is_one, b, a)) for a, b in zip(one, other, strict=True)]
        truth, rival = zip(*pairs, strict=True)
        return Assignment(*truth), Assignment(*rival)

    @cached_property
    def _labels(self) -> Array:
        return cast(ListsOutputs, self.oracle).known_labels()

    @cached_property
    def _sums(self) -> SumsDifferences | None:
        return capability(self.oracle, SumsDifferences)
