"""Max-margin min-entropy models: predict the label whose hidden value is the least uncertain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.data.specs import choice, estimator, parameter, positive, switch, whole
from tacit.learners.descents.descent import Descent, LatentState
from tacit.learners.descents.entropy import ConvexConcave, EntropyMargins, KinkedDescent, TrustRegion
from tacit.learners.descents.multistart import MAX_STARTS, Ended, Method
from tacit.learners.descents.orders import (
    LEARNED_RANGE,
    Alpha,
    CurvePoint,
    check_alpha,
    check_curve,
    cross_validate,
    find_order,
    learn_orders,
    read_grid,
)
from tacit.learners.descents.paced import Paced
from tacit.learners.descents.pacing import SelfPaced, optional_pace
from tacit.learners.descents.smoothing import POWERS, is_smooth, takes_path
from tacit.learners.hidden_crf import Likelihood
from tacit.learners.learner import Traits, overflows
from tacit.learners.preparation import LEARNED
from tacit.learners.rules import LeastEntropy, Rule
from tacit.learners.smooth_learner import INITS, QuasiNewton, SmoothLearner, SmoothStep
from tacit.oracle import (
    TARGET,
    Assignment,
    CapabilityError,
    Oracle,
    Plane,
    Schema,
    Task,
    capability,
    loss_needs_hidden,
    require,
    take_code,
)
from tacit.oracle.capabilities import (
    GivesEntropySlacks,
    GivesLogPartition,
    RanksOutputs,
    ScoresEntropy,
    SplitsCodes,
    SumsOutputs,
    VisitsCells,
)
from tacit.oracle.contracts import code_offsets
from tacit.oracle.entropies import HavrdaCharvat, Rao, Renyi
from tacit.oracle.nested import NestedRenyi
from tacit.penalties import Quadratic
from tacit.solvers import Bundle

__all__ = ["CurvePoint", "MinEntropySVM"]

SOLVERS = ("auto", "lbfgs", "trust-region", "cccp")

ENTROPIES = ("renyi", "mathai-rathie", "havrda-charvat", "rao")


@estimator
class MinEntropySVM(SmoothLearner):
    """Max-margin min-entropy model (Miller, Kumar, Packer, Goodman & Koller 2012; Kumar 2013, chapter 3).

    Predicts the label of least entropy. For Rényi's that is the label of the highest
    ``R_α(y) = [log Σ_h exp(α s(y, h)) − log Σ_h exp s(y, h)] / (α − 1)``, and minimises ``½‖w‖² + (C/n) Σ_i ξ_i``,
    ``ξ_i = max(0, max_{y ≠ y_i} [Δ(y_i, y) + R_α(y)] − R_α(y_i))``. The larger α, the more the most probable hidden
    values count. At α = ∞ only the best one does, which is the latent SVM's objective; a small α is close to a sum over
    all of them. The slack bounds the loss of the prediction. The objective is not convex: the best of `n_init`
    starts is kept.

    Parameters
    ----------
    problem : what is predicted; its labels must be listed, as in `Candidates`, `Motif` or `SequenceClass`, or it is
        `Chain` or `Transcript`, where the label of least entropy is searched for: see `inference_gap_`
    alpha : the order of the entropy, above 0, `math.inf` included. "cv" chooses it by cross-validation in `fit`, and
        "learn" by the gradient of a held-out objective. Where a problem has several kinds of hidden value
        (`problem.hidden_kinds`), also a dict with an order for each, such as ``{"strand": 1, "start": math.inf}`` of
        ``Motif(8, strands="both")`` or ``{"type": 1, "window": 10}`` of ``Detection(types=2)``
    C : weight of the mean loss against ½‖w‖²; with ``alpha="cv"`` or "learn" also a list of values to choose from
    pace : None for all samples at once, or `tacit.SelfPaced()`
    solver : "lbfgs" descends on the exact subgradient, and leaves kinks by a step of the trust region. "trust-region"
        minimises a convex model of all Rényi scores inside a ball; "cccp" one of the concave parts alone (not near
        α = 1). At α = ∞, "cccp" imputes hidden values and solves a convex task to a certified gap, as algorithm 5 of
        Kumar (2013). "auto" is "lbfgs" for finite α and "cccp" for α = ∞
    n_init : number of starts; the one with the lowest objective is kept, all are in `runs_`
    init : where a start begins, as in `HiddenCRF`; at α = ∞ also "smooth", as in `LatentSVM`, and the first start of
        "auto" follows the smooth path where that of `LatentSVM` does
    tol : a run ends when ten steps of L-BFGS, or one of the other methods, gain less than C · tol
    max_iter : steps per start
    alphas : the values of α that ``alpha="cv"`` tries; None for 0.1, 0.25, 0.5, 1, 2, 5 and ∞. With "learn", those from
        which it begins; None for 1. Each may be a dict, as `alpha`; then "learn" learns an order for each kind
    cv : folds of held-out samples to choose α, a number or a splitter of scikit-learn
    class_weight : None, "balanced", or a factor for C by label
    warm_start : the first start begins at the present `coef_`
    entropy : "renyi", or "mathai-rathie", its generalisation to order α and type β. "havrda-charvat", also called
        Tsallis entropy, is for finite α. "rao" is the quadratic entropy under the problem's loss between hidden
        values, such as ``Candidates(loss="overlap")``; it has no order. See `tacit.oracle.entropies`
    beta : the type of "mathai-rathie", above 0 and above 1 − α; at 1 it is Rényi's
    rescaling : "margin"; or "slack", ``ξ_i = max(0, max_{y ≠ y_i} Δ(y_i, y) [1 + R_α(y) − R_α(y_i)])``
    checkpoint, resume, n_jobs, random_state, verbose : as in `StructuredSVM`. A checkpoint holds the final fit;
        cross-validation is repeated
    callbacks : functions called with every `SmoothStep`; one that returns True ends the fit

    Attributes
    ----------
    alpha_, C_ : the values that were used, given or chosen
    curve_ : with ``alpha="cv"`` one `CurvePoint` per pair of α and C: their mean score on held-out folds. With "learn"
        one for each that was tried: minus the held-out objective. Else empty
    hidden_ : the best hidden value of every training sample, given its label
    inference_gap_ : how far `objective_` may be below the true objective, since the search for rivals visits 256
        taggings per sequence of `Chain` at most, or 64 transcripts per recording of `Transcript`; 0 for other problems
    coef_, weights_, objective_, history_, runs_, status_, n_iter_ : as in `HiddenCRF`

    >>> from tacit.problems import Candidates
    >>> bags = [[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]], [[0.2, 5.0], [0.0, 0.0]]]
    >>> model = MinEntropySVM(Candidates(), alpha=0.5).fit(bags, ["x", "y", "x", "y"])
    >>> model.predict(bags), model.hidden_
    (array(['x', 'y', 'x', 'y'], dtype='<U1'), array([1, 0, 0, 0]))
    """

    traits = Traits(has_objective=True)
    learned = {
        "alpha_": check_alpha,
        "C_": positive,
        "curve_": check_curve,
        "inference_gap_": LEARNED["inference_gap_"],
    }
    alpha_: Alpha
    C_: float
    curve_: list[CurvePoint]
    inference_gap_: float
    _needs = (
        GivesEntropySlacks.renyi_slacks,
        *(Oracle.impute, Oracle.decode, Oracle.exact, Oracle.hidden_unknown),
    )
    _instead = "use tacit.LatentSVM, which needs maxima alone, or tacit.HiddenCRF where there are sums over sequences"

    _inits = (*INITS, "smooth")

    alpha: Any = 1.0
    C: Any = 100.0
    pace: SelfPaced | None = parameter(optional_pace, default=None)
    solver: str = parameter(choice(*SOLVERS), default="auto")
    n_init: int = parameter(whole(1, MAX_STARTS), default=1)
    init: Any = "auto"
    tol: float = parameter(positive, default=1e-3)
    max_iter: int = parameter(whole(), default=1000)
    alphas: Any = None
    cv: Any = 3
    class_weight: Any = None
    warm_start: bool = parameter(switch, default=False)
    entropy: str = parameter(choice(*ENTROPIES), default="renyi")
    beta: float = parameter(positive, default=1.0)
    rescaling: str = parameter(choice("margin", "slack"), default="margin")

    def _rule(self) -> Rule:
        return LeastEntropy(self._entropy())

    def _entropy(self) -> Any:
        """The entropy that is minimised, of the order `alpha_`."""
        if self.entropy == "rao":
            return Rao()
        order = self._order()
        if isinstance(order, tuple):
            return NestedRenyi(order)
        return HavrdaCharvat(order) if self.entropy == "havrda-charvat" else Renyi(order, float(self.beta))

    def _order(self) -> float | tuple[float, ...]:
        return find_order(self.alpha_, self.problem)

    def label_entropy(self, X: Any) -> Array:
        """(n, classes): the entropy of the generalised distribution P(y, h | x) of every label y, in nats.

        Rényi's is ``H_α(y) = log Z − R_α(y)``, Z being the sum over all labels and hidden values. The prediction has
        the least. Rao's is a loss, not in nats.
        """
        oracle, entropy = self._bind(X), self._entropy()
        name = f"{type(self).__name__}.label_entropy"
        require(name, self.problem, oracle, [ScoresEntropy.renyi_scores, GivesLogPartition])
        scores = self._compute_scores(oracle, lambda shards: shards.renyi_scores(self.coef_, entropy), overflows)
        if not entropy.is_shifted:
            return np.asarray(-scores)
        whole = self._compute_scores(oracle, lambda shards: shards.log_partition(self.coef_)[:, None], overflows)
        return np.asarray(whole - scores)

    def label_proba(self, X: Any) -> Array:
        """(n, classes): p(y | x) = Σ_h p(y, h | x) under ``p ∝ exp s``, in the order of `classes_`.

        The entropies are those of this distribution. It is defined for finite α: at α = ∞ the objective does not depend
        on the scale of the scores.
        """
        if self._order() == math.inf:
            raise ValueError("label_proba needs a finite alpha: at alpha=inf only the order of the scores was learned")
        return self._label_posteriors(self._bind(X), 1.0)

    def _choose(self, X: Any, y: Any, hidden: Any, sample_weight: Any) -> None:
        self.curve_ = []
        if not isinstance(self.alpha, str):
            alphas, Cs = read_grid(self)
            self.alpha_, self.C_ = alphas[0], float(Cs[0])
            return
        choose = cross_validate if self.alpha == "cv" else learn_orders
        self.curve_ = choose(self, X, y, hidden, sample_weight)
        best = max(self.curve_, key=lambda point: (point.score, -point.C))
        self.alpha_, self.C_ = best.alpha, best.C

    def _objective(self, oracle: Oracle, weights: Array) -> EntropyMargins:
        return EntropyMargins(oracle, weights, self._entropy(), self.rescaling)

    def _method(self, objective: Any, oracle: Oracle) -> Method[Any]:
        tol, significant = float(self.tol), float(self.tol) * float(objective.weights.sum())
        solver = self.solver
        is_infinite = self._order() == math.inf
        if solver == "auto":
            solver = "cccp" if is_infinite else "lbfgs"
        if solver == "cccp" and is_infinite:
            descent = RivalDescent(
                oracle,
                objective.weights,
                Quadratic(),
                lambda task: Bundle(),
                tol,
                1000,
                pace=self.pace,
                rescaling=self.rescaling,
                n_powers=len(POWERS) if is_smooth(self.init) else 0,
            )
            return replace(descent, n_powers=len(POWERS), at_zero=True) if takes_path(self, descent) else descent
        if self.pace is not None:
            return Paced(
                objective, oracle, lambda part, n: QuasiNewton(part, oracle, n, STATIONARY, significant), self.pace
            )
        if solver != "lbfgs":
            require(f"MinEntropySVM(solver={solver!r})", self.problem, oracle, VisitsCells, "use solver='lbfgs'")
        if solver == "trust-region":
            return TrustRegion(objective, significant)
        if solver == "cccp":
            return ConvexConcave(objective, significant)
        quick = QuasiNewton(objective, oracle, oracle.n_samples, STATIONARY, significant)
        if capability(oracle, VisitsCells) is None:  # tangents at kinks need cells: the descent ends there
            return quick
        return KinkedDescent(quick, TrustRegion(objective, significant))

    def _skips_zero(self) -> bool:
        """Whether a start at w = 0 would have nothing to impute hidden values by."""
        return bool(np.isinf(self._order()).any())

    def _first_weights(
        self, objective: Any, oracle: Oracle, weights: Array, previous: Array | None, seed: int, start: int
    ) -> Array:
        """The weights that a start begins with; w = 0 if it follows a smooth path by default, as the first one may."""
        method = self._method(objective, oracle)
        if not isinstance(method, RivalDescent) or not method.at_zero or (start == 0 and previous is not None):
            return super()._first_weights(objective, oracle, weights, previous, seed, start)
        if start == 0:
            return np.zeros(oracle.n_params)
        return super()._first_weights(objective, oracle, weights, None, seed, start - 1)

    def _first_objective(self, objective: Any, oracle: Oracle, weights: Array) -> Any:
        """The likelihood, where labels are searched for: at w = 0 all tie, and a descent may not leave that kink."""
        if capability(oracle, RanksOutputs) is not None and capability(oracle, SumsOutputs) is not None:
            return Likelihood(oracle, weights)
        return super()._first_objective(objective, oracle, weights)

    def _bound(self, state: Any) -> float:
        return -np.inf

    def _keep(self, ended: Ended, schema: Any, oracle: Oracle, objective: EntropyMargins) -> None:
        super()._keep(ended, schema, oracle, objective)
        self.inference_gap_ = objective.inference_gap(self.coef_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        orders = [find_order(alpha, self.problem) for alpha in read_grid(self)[0]]
        alphas = np.array([order for order in orders if isinstance(order, float)])
        self._check_entropy(alphas)
        self._check_choice([order for order in orders if isinstance(order, tuple)], alphas)
        is_cccp = self.solver == "cccp"
        if is_smooth(self.init):
            self._check_smooth()
        if self.pace is not None and (self.solver == "trust-region" or (is_cccp and np.isfinite(alphas).any())):
            raise ValueError(f"a pace needs solver='lbfgs' (or 'cccp' at alpha=inf), got solver={self.solver!r}")
        if is_cccp and (abs(alphas - 1) < NEAR_ONE).any():
            raise ValueError(
                f"solver='cccp' needs alpha at least {NEAR_ONE} away from 1, where the convex parts of R grow without "
                "bound; use 'lbfgs' or 'trust-region'"
            )

    def _check_smooth(self) -> None:
        given = (self.alpha, self.solver in ("auto", "cccp"), self.rescaling)
        if given != (math.inf, True, "margin"):
            raise ValueError(
                "init='smooth' needs alpha=inf with solver='auto' or 'cccp' and rescaling='margin', got "
                f"alpha={shorten(self.alpha)}, solver={self.solver!r}, rescaling={self.rescaling!r}; a finite alpha is "
                "smooth already: use init='auto'"
            )

    def _check_entropy(self, alphas: Array) -> None:
        if self.entropy != "mathai-rathie" and self.beta != 1:
            raise ValueError(f"beta={self.beta} needs entropy='mathai-rathie', got entropy={self.entropy!r}")
        if (alphas + self.beta <= 1).any():
            raise ValueError(f"alpha + beta must be above 1, got alpha={alphas.min():g} and beta={self.beta}")
        if self.entropy == "havrda-charvat" and np.isinf(alphas).any():
            raise ValueError(
                "entropy='havrda-charvat' needs a finite alpha: at alpha=inf it is ln 2 unless a distribution is "
                "certain, and has no gradient; use entropy='renyi'"
            )
        if self.entropy == "rao" and (isinstance(self.alpha, str) or self.alpha != 1):
            raise ValueError(f"entropy='rao' has no order: leave alpha at 1.0, got alpha={shorten(self.alpha)}")
        if self.entropy in ("havrda-charvat", "rao") and self.solver == "cccp":
            raise ValueError(
                f"solver='cccp' needs entropy='renyi' or 'mathai-rathie', whose convex parts it replaces, got "
                f"entropy={self.entropy!r}; use 'lbfgs' or 'trust-region'"
            )

    def _check_choice(self, by_kind: list[tuple[float, ...]], alphas: Array) -> None:
        """Refuse what orders by kind, and learning them, cannot do."""
        is_learned = isinstance(self.alpha, str) and self.alpha == "learn"
        if (by_kind or is_learned) and self.entropy != "renyi":
            what = "alpha='learn'" if is_learned else "an order for each kind of hidden value"
            raise ValueError(f"{what} needs entropy='renyi', got entropy={self.entropy!r}")
        if by_kind and self.solver == "cccp":
            raise ValueError(
                "solver='cccp' needs one order, whose convex parts it replaces, got an order for each kind of hidden "
                "value; use 'lbfgs' or 'trust-region'"
            )
        low, high = LEARNED_RANGE
        begins = np.concatenate([alphas, *map(np.array, by_kind)])
        if is_learned and not ((begins >= low) & (begins <= high)).all():
            raise ValueError(
                f"alphas must be from {low} to {high:g}, where alpha='learn' searches, got {shorten(self.alphas)}; for "
                "others, inf included, use alpha='cv'"
            )

    def _check_bound(self, schema: Schema, oracle: Oracle) -> None:
        """Refuse a loss on hidden values that no part of the objective would use, and Rao's entropy without one."""
        name, loss = type(self.problem).__name__, shorten(getattr(self.problem, "loss", None))
        if self.entropy == "rao" and not getattr(oracle, "has_pair_tables", False):
            raise CapabilityError(
                "entropy='rao' needs a table of losses between hidden values, which "
                f"{name} does not have; give its loss, such as Candidates(loss='overlap'), "
                "Motif(8, loss='start') or Transforms(loss='angle')"
            )
        if self.entropy != "rao" and loss_needs_hidden(oracle):
            raise CapabilityError(
                f"MinEntropySVM needs a loss of labels alone, but that of {name} (loss={loss}) depends on the hidden "
                "value; use a loss such as '0/1', entropy='rao', or tacit.DissimilaritySVM, which learns with such "
                "losses"
            )


NEAR_ONE = 0.1
"""At this distance from α = 1 and below, the steps of CCCP become tiny."""

STATIONARY = 1e-9
"""A smooth stationary point ends a run, whatever its last steps gained: half the squared slope as a share of the
objective."""


@dataclass(frozen=True)
class RivalTask(Task):
    """A task whose slack is ``max(0, max over outputs of other labels of [ℓ + score] − score of the target)``, or with
    slack rescaling ``max(0, max over outputs of other labels of ℓ [1 + score − score of the target])``.

    It is the convex task of algorithm 5 of Kumar (2013): outputs with the true label do not compete, except the target.
    """

    @cached_property
    def predict_augmented(self) -> Callable[..., Assignment]:
        return self._predict_rivals

    def _predict_rivals(self, w: Array, rows: Any = None) -> Assignment:
        target = take_code(self.oracle, self.target, rows)
        if self.rescaling == "margin":
            found = self.oracle.predict_augmented(w, rows, rivals=True)
            own = self.oracle.score(w, target, rows)
        else:
            found = self.oracle.predict_augmented(w, rows, target=target, rescaling=self.rescaling, rivals=True)
            own = np.zeros(found.value.size)
        is_active = found.value > own
        code = np.where(self._per_code(is_active, rows), found.code, target)
        return Assignment(code, np.where(is_active, found.value, own))

    def plane(self, code: Array, rows: Any = None) -> Plane:
        """As in `Task`; codes of the true label are targets of earlier tasks, and stand for this task's own."""
        oracle = cast(SplitsCodes, self.oracle)
        target = take_code(oracle, self.target, rows)
        labels = oracle.split(np.where(code < 0, target, code), rows)[0]
        is_own = labels == oracle.split(target, rows)[0]
        return super().plane(np.where(self._per_code(is_own, rows), TARGET, code), rows)

    def _per_code(self, is_so: Array, rows: Any) -> Array:
        """An answer per row as one per number of its code: a path has one for every token."""
        offsets = code_offsets(self.oracle)
        if offsets is None:
            return is_so
        return np.repeat(is_so, np.diff(offsets)[slice(None) if rows is None else rows])


@dataclass(frozen=True)
class RivalDescent(Descent):
    """CCCP at α = ∞: the latent SVM's descent with `RivalTask` as convex tasks; algorithm 5 of Kumar (2013)."""

    n_powers: int = 0
    at_zero: bool = False
    """Powers of the smooth path that a start begins with, and whether only a start at w = 0 does."""

    line_type: ClassVar[Any] = SmoothStep

    def begin_at(self, w: Array) -> LatentState:
        """The first state, at weights."""
        state: LatentState = self.begin(self.oracle.impute(w).code, w)
        has_path = self.oracle.hidden_unknown().size and not (self.at_zero and w.any())
        return replace(state, n_powers=self.n_powers if has_path else 0)

    def better(self, best: Any, now: Any) -> Any:
        return now

    def line(self, now: LatentState, seconds: float) -> Any:
        samples_in = int(now.is_in.sum())
        return SmoothStep(now.iteration, seconds, now.objective, np.inf, now.iteration, samples_in)

    def line_arrays(self, now: LatentState) -> dict[str, Array]:
        return {}

    def restore_line(self, numbers: Any, arrays: Any, now: LatentState) -> Any:
        return SmoothStep(**numbers)

    def slack(self, w: Array, target: Array) -> Array:
        return self._kind(self.oracle.exact(), self.weights, target, self.penalty, self.rescaling).slack(w)[0]

    def _task(self, target: Array, weights: Array) -> Task:
        return self._kind(self.oracle, weights, target, self.penalty, self.rescaling)

    @property
    def _kind(self) -> type[Task]:
        """Where labels cannot be listed, outputs of the true label compete, too: the slack at 0 is the same."""
        return Task if capability(self.oracle, SplitsCodes) is None else RivalTask
