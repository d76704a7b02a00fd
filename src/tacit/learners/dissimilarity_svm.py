"""Dissimilarity-coefficient learning: losses on the hidden value when nobody labelled it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import is_not_negative, is_positive, number, one_of, shorten
from tacit.data.ragged import Ragged
from tacit.learners.descent import Descent, Iteration
from tacit.learners.dissimilarity import Dissimilarity, PairState
from tacit.learners.latent_svm import LatentSVM
from tacit.learners.multistart import Ended
from tacit.learners.pacing import SelfPaced
from tacit.learners.rounds import Rounds
from tacit.learners.starts import propose
from tacit.oracle import Problem, loss_needs_hidden, require
from tacit.oracle.capabilities import GivesPosteriors, MeasuresHidden, MovesPosteriors, SplitsCodes, SumsOutputs
from tacit.penalties import Penalty
from tacit.solvers import Solver

_NEEDS = (MeasuresHidden, MovesPosteriors, GivesPosteriors.hidden_posterior, SumsOutputs)


class DissimilaritySVM(LatentSVM):
    """Learns w, which predicts (y, h), and θ, which says how sure one can be of h where only y is known.

    For losses ``Δ(y_i, h_i, y, h)`` such as the overlap of boxes, when h_i is unknown. ``P_θ(h)``, proportional to
    ``exp θ·Φ(x_i, y_i, h)``, is a distribution over hidden values, and a prediction costs its mean loss over it.
    Minimises ``½‖w‖² + ½J‖θ‖² + (C/n) Σ_i [ξ_i(w, θ) − β H_i(θ)]``. There ``ξ_i = max_{y,h} [s(y, h) + Σ_h' P_θ(h')
    Δ(y_i, h', y, h)] − max_h s(y_i, h)``, and H_i is the mean loss between two values drawn from P_θ. The first term
    brings the two models together; the second keeps P_θ wide where w predicts a wrong label. `IterativeLatentSVM` is
    the special case of a single value in place of P_θ. With a loss that does not depend on h this is `LatentSVM`.

    A run alternates between iterations of a latent SVM for w and steps for θ, and ends when a round gains less than
    ``C · tol``. It begins at θ = 0: all hidden values are as likely. So the first start of ``init="auto"`` imputes from
    the mean features of each label, in place of values drawn at random.

    Source: Kumar, Packer & Koller (2012), "Modeling Latent Variable Uncertainty for Loss-based Learning"; Kumar (2013),
    chapter 4, of whose equation 4.17 the gradient is corrected here.

    Parameters
    ----------
    problem : what is predicted; its loss looks at the hidden value, such as ``Candidates(loss="overlap")``
    J : weight of ½‖θ‖²
    beta : weight of the spread H, from 0, below 1
    C : weight of the mean loss against ½‖w‖²
    conditional : None for Φ = Ψ; another problem, which gives the same samples other features and has the same hidden
        values; or "delta" for the best hidden value in place of P_θ, which is `IterativeLatentSVM`
    theta_step : "joint" makes quasi-Newton steps on the joint objective, which then never rises; "text" the stochastic
        steps of the source, corrected, which may raise it: the best pair is kept
    solver, pace, n_init, init, tol, max_iter, max_inner, unknown_weight, rescaling, penalty, class_weight : as in
        `LatentSVM`
    warm_start, escape, shift : as in `LatentSVM`. With a pace the first round goes from easy samples to hard ones
    checkpoint, resume, n_jobs, random_state, verbose, callbacks : as in `LatentSVM`

    Attributes
    ----------
    theta_ : the weights of P_θ
    objective_parts_ : (iterations, 3) what the objective is made of: ``½‖w‖² + (C/n) Σ ξ_i``, ``−β (C/n) Σ H_i`` and
        ``½J‖θ‖²``
    coef_, hidden_, objective_, history_ and the others : as in `LatentSVM`; the objective is that of the pair

    >>> from tacit import Ragged
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]]])
    >>> bags = bags.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]] * 3)
    >>> model = DissimilaritySVM(Candidates(loss="overlap"), C=100, n_init=5).fit(bags, ["x", "y", "x"])
    >>> model.predict(bags), model.predict_hidden(bags)
    (array(['x', 'y', 'x'], dtype='<U1'), array([1, 0, 0]))
    >>> model.conditional_proba(bags, ["x", "y", "x"])[0].argmax()
    np.int64(1)
    """

    asks_for_rows = True
    _also_compared = ("J", "beta", "theta_step", "conditional")

    def __init__(
        self,
        problem: Problem,
        J: float = 0.1,
        beta: float = 0.1,
        C: float = 100.0,
        conditional: Any = None,
        theta_step: str = "joint",
        solver: Solver | str | None = "auto",
        pace: SelfPaced | None = None,
        n_init: int = 1,
        init: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        max_inner: int = 1000,
        unknown_weight: float | str = "auto",
        rescaling: str = "margin",
        penalty: Penalty | None = None,
        class_weight: Any = None,
        warm_start: bool = False,
        escape: bool = True,
        shift: bool = True,
        checkpoint: Any = None,
        resume: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 1,
        callbacks: Iterable[Callable[[Iteration], Any]] | None = None,
    ) -> None:
        super().__init__(
            problem, C, solver, pace, n_init, init, tol, max_iter, max_inner, unknown_weight, rescaling, penalty,
            class_weight, warm_start, escape, shift, checkpoint, resume, n_jobs, random_state, verbose, callbacks,
        )  # fmt: skip
        self.J = J
        self.beta = beta
        self.conditional = conditional
        self.theta_step = theta_step

    def fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> DissimilaritySVM:
        """Learn from labelled samples; the arguments are those of `LatentSVM.fit`."""
        self._check()
        self._data = X, y, hidden
        try:
            super().fit(X, y, hidden=hidden, sample_weight=sample_weight)
        finally:
            del self._data
            self.__dict__.pop("_oracle", None)
        return self

    def conditional_proba(self, X: Any, y: Any, *, hidden: Any = None) -> Ragged:
        """P_θ(h | x, y) of every sample: one probability per hidden value, as a `Ragged` of rows of numbers.

        Where ``hidden`` gives a value, or rules some out, the others have probability 0.
        """
        oracle = self._bind(X, y, hidden)
        if isinstance(self.conditional, str):
            require(type(self).__name__, self.problem, oracle, SplitsCodes)
            chances = np.zeros(int(oracle.offsets[-1]))
            chances[oracle.offsets[:-1] + oracle.split(oracle.impute(self.coef_).code)[1]] = 1.0
            return Ragged(chances, oracle.offsets)
        if self.conditional is not None:
            oracle = self.conditional.bind(X, y, self.theta_schema_, hidden=hidden)
        require(type(self).__name__, self.problem, oracle, [GivesPosteriors.hidden_posterior])
        return Ragged(oracle.hidden_posterior(self.theta_), oracle.offsets)

    def check(self) -> None:
        super().check()
        theta = getattr(self, "theta_", None)
        size = 0 if isinstance(self.conditional, str) else self._theta_schema().n_params
        if not isinstance(theta, np.ndarray) or theta.dtype != np.float64 or not np.isfinite(theta).all():
            raise ValueError(f"theta_ is {shorten(theta)}, no finite numbers in double precision")
        if theta.size not in (0, size):
            raise ValueError(f"theta_ has shape {theta.shape}, and {size} weights are needed")
        parts = getattr(self, "objective_parts_", None)
        if not isinstance(parts, np.ndarray) or parts.ndim != 2 or parts.shape[1] != 3 or parts.dtype.kind != "f":
            raise ValueError(f"objective_parts_ is {shorten(parts)}, no table of three columns")

    def _theta_schema(self) -> Any:
        return self.schema_ if self.conditional is None else self.theta_schema_

    def _check(self) -> None:
        super()._check()
        number("J", self.J, "a positive number", is_positive)
        number("beta", self.beta, "a number from 0, below 1", lambda beta: is_not_negative(beta) and beta < 1)
        one_of("theta_step", self.theta_step, ("joint", "text"))
        is_name = isinstance(self.conditional, str)
        if (is_name and self.conditional != "delta") or not (
            is_name or self.conditional is None or isinstance(self.conditional, Problem)
        ):
            raise ValueError(f"conditional must be None, 'delta' or a problem, got {shorten(self.conditional)}")
        if not isinstance(self.rescaling, str) or self.rescaling != "margin":
            raise ValueError("a loss that is averaged over hidden values is not zero on the truth: rescaling='margin'")

    def _check_loss(self, oracle: Any) -> None:
        """Bind the oracle of P_θ, and refuse problems that cannot do what it takes."""
        self._oracle = None
        if not loss_needs_hidden(oracle):
            return
        require(type(self).__name__, self.problem, oracle, MeasuresHidden)
        if isinstance(self.conditional, str):
            return
        self._oracle = oracle
        require(type(self).__name__, self.problem, oracle, _NEEDS)
        if self.conditional is None:
            return
        X, y, hidden = self._data
        self.theta_schema_ = self.conditional.schema(X, y)
        self._oracle = self.conditional.bind(X, y, self.theta_schema_, hidden=hidden)
        require(
            type(self).__name__,
            self.conditional,
            self._oracle,
            [GivesPosteriors.hidden_posterior, MovesPosteriors.posterior_slope],
        )
        if not np.array_equal(self._oracle.offsets, oracle.offsets):
            raise ValueError(
                "conditional must give every sample as many hidden values as the problem does; sample "
                f"{int(np.argmax(np.diff(self._oracle.offsets) != np.diff(oracle.offsets)))} differs"
            )

    def _begin(self, descent: Descent, oracle: Any, y: Any, previous: Array | None, *, seed: int, start: int) -> Any:
        """Where a start begins: the first of "auto" where all hidden values are as likely, as θ = 0 says.

        There the features of a label are their means over its hidden values. Their differences from those of all labels
        point towards what occurs in many hidden values, and impute the first ones.
        """
        is_mean = isinstance(descent, Dissimilarity) and isinstance(self.init, str) and self.init == "auto"
        is_mean = is_mean and not start and previous is None and bool(oracle.hidden_unknown().size)
        if not is_mean or self._known_part(oracle) is not None or propose(oracle, int(self.n_init)):
            return super()._begin(descent, oracle, y, previous, seed=seed, start=start)
        weights = descent.weights
        w = oracle.expectations(np.zeros(oracle.n_params), label=weights, free=-weights).features
        return descent.begin(oracle.impute(w).code, seed=seed, start=start)

    def _descent(self, oracle: Any, prepared: Any) -> Descent:
        descent = super()._descent(oracle, prepared)
        if isinstance(self.conditional, str):
            return descent.turned_into(Rounds)
        if self._oracle is None:
            return descent.turned_into(Descent)
        settings = {"conditional": self._oracle, "J": float(self.J), "beta": float(self.beta)}
        return descent.turned_into(Dissimilarity, **settings, step_kind=self.theta_step)

    def _keep(self, ended: Ended, schema: Any, oracle: Any) -> None:
        super()._keep(ended, schema, oracle)
        best = ended.state
        if isinstance(best, PairState):
            self.theta_, self.objective_parts_ = best.theta, best.parts
            return
        size = 0 if isinstance(self.conditional, str) else schema.n_params
        if isinstance(self.conditional, Problem):
            X, y, _ = self._data
            self.theta_schema_ = self.conditional.schema(X, y)
            size = self.theta_schema_.n_params
        self.theta_ = np.zeros(size)
        self.objective_parts_ = np.array([[line.objective, 0.0, 0.0] for line in self.history_])
