"""The hidden CRF: labels by maximum likelihood, hidden values summed over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.data.arrays import Array
from tacit.data.specs import choice, estimator, parameter, positive, switch, whole
from tacit.learners.descents.multistart import MAX_STARTS, Method
from tacit.learners.descents.paced import Paced
from tacit.learners.descents.pacing import SelfPaced, optional_pace
from tacit.learners.learner import Traits
from tacit.learners.rules import BestOutput, LikeliestLabel, Rule
from tacit.learners.smooth_learner import QuasiNewton, SmoothLearner, SmoothState, SmoothStep
from tacit.oracle import Oracle, has_label_parts
from tacit.oracle.capabilities import SumsOutputs
from tacit.solvers.quasi_newton import begin, step

METHODS = ("lbfgs", "em", "hard-em")


@estimator
class HiddenCRF(SmoothLearner):
    """Hidden conditional random field: the likelihood of the labels, hidden values summed over.

    Minimises ``½‖w‖² − (C/n) Σ_i log p(y_i | x_i)`` with ``p(y, h | x) ∝ exp w·Ψ(x, y, h)`` and
    ``p(y | x) = Σ_h p(y, h | x)``. On `Multiclass` this is multinomial logistic regression, on `Chain` a linear-chain
    CRF, with missing tags a partially labelled one, and on `Candidates` soft multiple-instance learning. Where every
    hidden value is known the objective is convex, and `bound_` certifies it; otherwise another start may end lower, and
    the best of `n_init` is kept. O(cells · features) per pass.

    Source: Quattoni, Wang, Morency, Collins & Darrell (2007); Lafferty, McCallum & Pereira (2001) for chains.

    Parameters
    ----------
    problem : what is predicted, such as `tacit.problems.Candidates()`
    C : coefficient of the mean log-loss against ½‖w‖²
    method : "lbfgs" minimises the objective itself. "em" is expectation maximisation: it repeatedly fits a CRF to the
        features expected given the labels; "hard-em" takes the best hidden value in place of the expectation
    pace : None for all samples at once, or `tacit.SelfPaced()`: samples of a high log-loss (of hard EM, with the best
        hidden value in place of the sum) come in later. A step is then one round of the pace, see `SmoothStep`
    rule : "sum" predicts the label of the highest probability, "max" that of the best single output. For sequences
        whose tags have states, "sum" takes the likeliest tag of every token (marginal decoding), "max" the tags of the
        best states (Viterbi). For trees, "sum" takes the tree of the highest expected F1
    n_init : number of starts; the one with the lowest objective is kept, all are in `runs_`
    init : where a start begins. "auto" takes hidden values that the problem proposes, then w = 0, then random hidden
        values. "zero" is always w = 0, "hidden" random hidden values, "weights" random weights. A dict gives weights by
        name, such as ``weights_`` of a fitted model. For chains with states, "auto" is "warm": ten averaged passes of a
        stochastic latent SVM; "k-means" groups the tokens of every tag
    tol : stop when half the squared norm of the gradient is below ``tol`` times the objective. Where every hidden value
        is known this bounds the relative gap
    max_iter : steps per start; with a pace, rounds
    class_weight : None, "balanced", or a factor for C by label
    warm_start : the first start begins at the present `coef_`
    checkpoint, resume, n_jobs, random_state, verbose : as in `StructuredSVM`
    callbacks : functions called with every `SmoothStep`; one that returns True ends the fit

    Attributes
    ----------
    coef_, weights_ : the weights, flat and by name
    hidden_ : the likeliest hidden value of every training sample, given its label
    objective_ : the objective
    bound_, gap_ : a lower bound on it and the distance, if every hidden value was given; otherwise −inf and inf
    history_ : one `SmoothStep` per step of the best start
    runs_ : all starts
    status_, n_iter_ : why it stopped, and after how many steps of the best start

    >>> from tacit.problems import Candidates
    >>> bags = [[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]], [[0.2, 5.0], [0.0, 0.0]]]
    >>> model = HiddenCRF(Candidates(), C=100).fit(bags, ["x", "y", "x", "y"])
    >>> model.predict(bags), model.hidden_, model.predict_proba(bags).round(2)[:, 0]
    (array(['x', 'y', 'x', 'y'], dtype='<U1'), array([1, 0, 0, 0]), array([0.99, 0.01, 1.  , 0.  ]))
    """

    traits = Traits(has_objective=True, is_convex=True, is_certified=True)
    _needs = (SumsOutputs, Oracle.impute, Oracle.decode, Oracle.exact, Oracle.hidden_unknown)
    _instead = "use tacit.LatentSVM, which needs maxima alone"

    C: float = parameter(positive, default=100.0)
    method: str = parameter(choice(*METHODS), default="lbfgs")
    rule: str = parameter(choice("sum", "max"), default="sum")  # type: ignore[assignment]
    n_init: int = parameter(whole(1, MAX_STARTS), default=1)
    init: Any = "auto"
    tol: float = parameter(positive, default=1e-4)
    max_iter: int = parameter(whole(), default=1000)
    class_weight: Any = None
    warm_start: bool = parameter(switch, default=False)
    pace: SelfPaced | None = parameter(optional_pace, default=None)

    def _rule(self) -> Rule:
        return LikeliestLabel() if self.rule == "sum" else BestOutput()

    def predict_proba(self, X: Any) -> Any:
        """p(y | x), (n, classes) in the order of `classes_`; for sequences the probability of every tag of every
        token, as a `Ragged` of tables."""
        oracle = self._bind(X)
        if has_label_parts(oracle):
            return self._tag_posteriors(oracle)
        return self._label_posteriors(oracle, 1.0)

    def _objective(self, oracle: Oracle, weights: Array) -> Likelihood:
        return Likelihood(oracle, weights, self.method == "hard-em")

    def _method(self, objective: Any, oracle: Oracle) -> Method[Any]:
        tol, is_smooth = float(self.tol), self.method == "lbfgs"

        def descend(part: Likelihood, n_samples: int) -> Method[Any]:
            return QuasiNewton(part, oracle, n_samples, tol) if is_smooth else EM(part, oracle, part.is_hard, tol)

        if self.pace is None:
            return descend(objective, oracle.n_samples)
        return Paced(objective, oracle, descend, self.pace, warm_steps=10 if is_smooth else 1)

    def _bound(self, state: SmoothState) -> float:
        return state.objective - 0.5 * state.slope**2 if np.isfinite(state.slope) else -np.inf


@dataclass(frozen=True)
class Likelihood:
    """``½‖w‖² − Σ_i c_i log p(y_i | x_i)``, with ``p(y | x) = Σ_h exp s(y, h) / Σ_{y,h} exp s(y, h)``.

    Where a hidden value is known, or known to be in a set, the sum is over the possible values. The gradient
    of a sample is ``E[Ψ] − E[Ψ | y_i]``, from one pass of the oracle. ``is_hard`` says that hard EM minimises it.
    """

    oracle: Any
    weights: Array
    is_hard: bool = False

    def __call__(self, w: Array) -> tuple[float, Array]:
        found = self.oracle.expectations(w, free=self.weights, truth=-self.weights)
        return 0.5 * float(w @ w) + float((self.weights * (found.free - found.truth)).sum()), w + found.features

    def of(self, oracle: Oracle, weights: Array) -> Likelihood:
        """The same objective of other samples, or with other hidden values known."""
        return Likelihood(oracle, weights, self.is_hard)

    def slack(self, w: Array) -> Array:
        """−log p(y_i | x_i) of every sample; of hard EM −log p(y_i, h | x_i) with the best h."""
        if self.is_hard:
            return np.asarray(self.oracle.expectations(w, free=0.0).free - self.oracle.impute(w).value)
        found = self.oracle.expectations(w, free=0.0, truth=0.0)
        return np.asarray(found.free - found.truth)


@dataclass(frozen=True)
class ExpectedLikelihood:
    """The objective of an M step: ``½‖w‖² + Σ_i c_i log Σ exp s − w·b``, with b the features expected by the E step."""

    oracle: Any
    weights: Array
    expected: Array

    def __call__(self, w: Array) -> tuple[float, Array]:
        found = self.oracle.expectations(w, free=self.weights)
        value = 0.5 * float(w @ w) + float((self.weights * found.free).sum()) - float(w @ self.expected)
        return value, w + found.features - self.expected


@dataclass(frozen=True)
class EM(Method[SmoothState]):
    """EM for a `Likelihood`: expect the features given the labels, then fit a CRF in which they are observed.

    The E step is soft (under ``p(h | x_i, y_i)``) or hard (of the best hidden value alone). Soft EM never lowers the
    likelihood (Dempster, Laird & Rubin 1977): L-BFGS minimises a bound from the present weights, as far as it pays.
    Hard EM descends on another objective, with the best hidden value in place of the sum; `objective_` is still the
    likelihood.

    Parameters
    ----------
    likelihood : the objective
    oracle : the samples
    is_hard : which E step
    tol : stop when half the squared slope (of a soft E step's likelihood) is below ``tol`` times the objective
    max_inner : steps of L-BFGS per M step
    """

    likelihood: Likelihood
    oracle: Any
    is_hard: bool
    tol: float
    max_inner: int = 50

    state: ClassVar[Any] = SmoothState
    line_type: ClassVar[Any] = SmoothStep

    def begin_at(self, w: Array) -> SmoothState:
        return self._at(w, 0, 0)

    def step(self, now: SmoothState) -> SmoothState:
        oracle, weights = self.oracle, self.likelihood.weights
        if self.is_hard:
            expected = oracle.features(oracle.impute(now.w).code, weights)
        else:
            expected = oracle.expectations(now.w, truth=weights).features
        bound = ExpectedLikelihood(oracle, weights, expected)
        point = begin(bound, now.w)
        enough = max(M_STEP_GAIN * 0.5 * point.slope**2, 0.1 * self.tol * now.objective)
        for _ in range(self.max_inner):
            if 0.5 * point.slope**2 <= enough or point.is_stuck:
                break
            point = step(bound, point)
        return self._at(point.w, now.iteration + 1, now.evaluations + point.evaluations + 1, now)

    def _at(self, w: Array, iteration: int, evaluations: int, before: SmoothState | None = None) -> SmoothState:
        objective, gradient = self.likelihood(w)
        slope = float(np.sqrt(gradient @ gradient))
        is_solved = 0.5 * slope**2 <= self.tol * abs(objective)
        is_still = before is not None and bool(np.array_equal(w, before.w))
        if self.is_hard and before is not None:  # the likelihood need not be stationary where hard EM ends
            is_solved = is_still = abs(before.objective - objective) <= self.tol * abs(objective)
        is_done = is_solved or is_still
        counts = {"evaluations": evaluations + 1, "samples_in": self.likelihood.weights.size}
        return SmoothState(objective, iteration, is_done, is_done, w, slope, **counts)


M_STEP_GAIN = 1e-3
"""An M step ends when its squared slope has decreased to this share: the next E step moves its optimum anyway."""
