"""The hidden CRF: labels by maximum likelihood, hidden values summed over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import one_of
from tacit.learners.learner import Traits
from tacit.learners.rules import BestOutput, LikeliestLabel, Rule
from tacit.learners.smooth.learner import SmoothLearner
from tacit.learners.smooth.likelihood import EM, Likelihood
from tacit.learners.smooth.places import Method, SmoothStep
from tacit.learners.smooth.quasi_newton_method import QuasiNewton
from tacit.oracle import Oracle, Problem, has_long_codes
from tacit.oracle.capabilities import SumsOutputs

METHODS = ("lbfgs", "em", "hard-em")


class HiddenCRF(SmoothLearner):
    """Hidden conditional random field: the likelihood of the labels, hidden values summed over.

    Minimises ``½‖w‖² − (C/n) Σ_i log p(y_i | x_i)`` with ``p(y, h | x) ∝ exp w·Ψ(x, y, h)`` and
    ``p(y | x) = Σ_h p(y, h | x)``. On `Multiclass` this is multinomial logistic regression, on `Chain` a linear-chain
    CRF, with missing tags a partially labelled one, and on `Candidates` a soft multiple-instance classifier. Where
    every hidden value is known the objective is convex, and `bound_` certifies it; otherwise another start may end
    lower, and the best of `n_init` is kept. O(cells · features) per pass.

    Source: Quattoni, Wang, Morency, Collins & Darrell (2007); Lafferty, McCallum & Pereira (2001) for chains.

    Parameters
    ----------
    problem : what is predicted, such as `tacit.problems.Candidates()`
    C : weight of the mean log-loss against ½‖w‖²; a sample's weight is C/n
    method : "lbfgs" minimises the objective itself. "em" fits a CRF to the features that are expected given the labels,
        over and over; "hard-em" takes the best hidden value in place of the expectation
    rule : "sum" predicts the label of the highest probability, "max" that of the best single output. For sequences
        whose tags have states, "sum" takes the likeliest tag of every token (marginal decoding), "max" the tags of the
        best states (Viterbi)
    n_init : number of starts; the one with the lowest objective is kept, all are in `runs_`
    init : where a start begins. "auto": from hidden values that the problem proposes, then from w = 0, then from hidden
        values at random; or only "zero", "hidden" (at random) or "weights" (at random). For chains with states, "auto"
        is "warm": ten averaged passes of a stochastic latent SVM; "k-means" groups the tokens of every tag
    tol : stop when half the squared norm of the gradient is below ``tol`` times the objective. Where every hidden value
        is known this bounds the relative gap
    max_iter : steps per start
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
    rule: str = "sum"  # type: ignore[assignment]
    _needs = (SumsOutputs, Oracle.impute, Oracle.decode, Oracle.exact, Oracle.hidden_unknown)
    _instead = "use tacit.LatentSVM, which needs maxima alone"

    def __init__(
        self,
        problem: Problem,
        C: float = 100.0,
        method: str = "lbfgs",
        rule: str = "sum",
        n_init: int = 1,
        init: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        resume: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 1,
        callbacks: Iterable[Callable[[SmoothStep], Any]] | None = None,
    ) -> None:
        self.problem = problem
        self.C = C
        self.method = method
        self.rule = rule
        self.n_init = n_init
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.resume = resume
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _rule(self) -> Rule:
        return LikeliestLabel() if self.rule == "sum" else BestOutput()

    def predict_proba(self, X: Any) -> Any:
        """p(y | x), (n, classes) in the order of `classes_`; for sequences the probability of every tag of every
        token, as a `Ragged` of tables."""
        oracle = self._bind(X)
        if has_long_codes(oracle):
            return self._tag_posteriors(oracle)
        return self._label_posteriors(oracle, 1.0)

    def _objective(self, oracle: Any, weights: Array) -> Likelihood:
        return Likelihood(oracle, weights)

    def _method(self, objective: Any, oracle: Any) -> Method:
        if self.method == "lbfgs":
            return QuasiNewton(objective, oracle.n_params, oracle.n_samples, float(self.tol))
        return EM(objective, self.method == "hard-em", oracle.n_params, float(self.tol))

    def _bound(self, objective: float, slope: float) -> float:
        return objective - 0.5 * slope**2 if np.isfinite(slope) else -np.inf

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("method", self.method, METHODS)
        one_of("rule", self.rule, ("sum", "max"))
