"""The group-norm latent SVM: it selects the hidden states that are needed."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten, switch, whole_number
from tacit.data.specs import choice, estimator, parameter
from tacit.learners.descents.descent import Descent, LatentState
from tacit.learners.descents.multistart import Ended, Weights
from tacit.learners.descents.smoothing import minimise_soft
from tacit.learners.latent_svm import LatentSVM
from tacit.oracle import CapabilityError, Oracle, Problem, Schema, Task
from tacit.penalties import GroupNorm, Quadratic
from tacit.solvers import Bundle
from tacit.solvers.bundle import overflow_error

MAX_FIRST_ITERATIONS = 10
"""Maximum number of iterations with ½‖w‖² before those with the norm: they only have to find first hidden values."""

SUBGRADIENT_STEPS = 100
"""Subgradient steps per outer iteration."""


@estimator
class Groups:
    """Parameters that come first: the last base is listed first."""

    problem: Problem
    groups: Any = "auto"
    weights: Any = 1.0


@estimator
class GroupNormSVM(LatentSVM, Groups):
    """Latent SVM with the group norm ``Σ_g λ_g ‖w_g‖`` for ½‖w‖²: the weights of hidden states not needed are zero.

    Minimises ``Σ_g λ_g ‖w_g‖ + (C/n) Σ_i ξ_i``, with the slacks of `LatentSVM`, by the same procedure. Every convex
    task is solved to a certified gap, with exact zeros. The smaller C, the fewer states remain. A start begins with a
    few iterations under ½‖w‖²: from random hidden values the norm would end at w = 0 immediately.

    Source: Chen, Batra, Freeman & Johnson (2011), "Group Norm for Learning Latent Structural SVMs".

    Parameters
    ----------
    problem : one with separate weights for every state, where zero groups are states that are not needed:
        ``Transforms(..., blocks="class and state")``, ``Chain(states=k)``, `tacit.problems.SequenceClass`; or any other
    groups, weights : as in `tacit.penalties.GroupNorm`. "label-state" makes a group per pair of label and hidden state,
        "state" one per state. "auto" is "label-state" where there are such weights, and else makes every row of a block
        of weights a group
    C : coefficient of the mean loss against the norm
    solver : "auto" and `tacit.solvers.Bundle()` certify; "subgradient" is the algorithm of the paper, which does not,
        and whose groups are only nearly zero
    stop : when a start ends. "decrease": when an iteration, of 100 steps if the solver is "subgradient", decreases the
        objective L by less than ``C · tol``. "relative" is the rule of the paper, for ``solver="subgradient"`` alone:
        when a single step t has ``|L(w_t) − L(w_{t−1})| < tol · L(w_t)``
    pace, n_init, init, tol, max_iter, max_inner, unknown_weight, rescaling, class_weight, warm_start, escape, shift : \
as in `LatentSVM`
    checkpoint, resume, n_jobs, random_state, verbose, callbacks : as in `LatentSVM`

    Attributes
    ----------
    group_norms_ : (n_groups,) the ‖w_g‖
    dual_norms_ : (n_groups,) the ‖v_g‖ / λ_g for the slope v of the best lower bound of the last convex task; NaN
        where the solver gives none. At the optimum of that task a group of less than 1 is zero: this certifies zero
        groups
    selected_states_ : whether a group is not zero, (labels, states) for groups by label and state, else (n_groups,)
    coef_, hidden_, objective_, history_ and the others : as in `LatentSVM`

    >>> from tacit.datasets import drawn_digits
    >>> from tacit.problems import Transforms, rotations
    >>> X, y, _ = drawn_digits(400)
    >>> X, y = X[(y == 3) | (y == 8)], y[(y == 3) | (y == 8)]
    >>> problem = Transforms(rotations(-60, 60, 5), n_components=10, blocks="class and state")
    >>> model = GroupNormSVM(problem, C=1).fit(X, y)
    >>> model.selected_states_.shape, int(model.selected_states_.sum()) < 10
    ((2, 5), True)
    >>> bool((model.predict(X) == model.prune().predict(X)).all())
    True
    """

    named_solvers = ("subgradient",)
    _also_compared = ("groups", "weights", "stop")

    _: KW_ONLY
    stop: str = parameter(choice("decrease", "relative"), default="decrease")

    @property  # type: ignore[misc]
    def penalty(self) -> GroupNorm:  # type: ignore[override]
        """Ω, with groups as given: names are resolved in `fit`."""
        return GroupNorm(self.groups, self.weights)

    def prune(self, drop_null: bool = False) -> GroupNormSVM:
        """A model without the states whose weights are zero: it predicts the same, in less time.

        A state with weights zero scores 0, not −∞. So every label that loses states keeps one null state of score 0,
        whose hidden value is −1. With ``drop_null=True`` it does not, as in Chen et al. (2011), and predictions may
        differ.
        """
        return self._keep_states(self._by_label(self.group_norms_ > 0), not switch("drop_null", drop_null))

    def budget(
        self,
        k: int,
        X: Any,
        y: Any,
        *,
        hidden: Any = None,
        sample_weight: Any = None,
        null: bool = False,
        per_label: bool = True,
        at_once: bool = False,
    ) -> GroupNormSVM:
        """A model of ``k`` states per label, fitted again to these samples.

        Of every label with too many states the one with the smallest norm is removed, and the model is fitted again
        from its weights; this is repeated until ``k`` are left. On rotated digits that ends with fewer errors than
        removing all at once.

        Parameters
        ----------
        k : states per label
        X, y, hidden, sample_weight : as in `fit`
        null : whether labels keep a null state of score 0, as in `prune`
        per_label : False lets ``k`` count the states of all labels together; each label keeps at least one
        at_once : keep the ``k`` largest norms and fit once again, as in Chen et al. (2011)
        """
        k, null = min(whole_number("k", k), self.group_norms_.size), switch("null", null)
        n_labels = len(self._by_label(self.group_norms_))
        if not switch("per_label", per_label) and k < n_labels:
            raise ValueError(f"k must be at least {n_labels}, one state for each label, got k={k}")
        model, own = self, {"warm_start": self.warm_start, "n_init": self.n_init}
        while True:
            norms = model._by_label(model.group_norms_)
            used = np.count_nonzero(norms, axis=1, keepdims=True) if per_label else np.count_nonzero(norms)
            n_left = np.maximum(k, 0 if switch("at_once", at_once) else used - 1)
            is_last = bool(np.all(n_left == k))
            model = model._keep_states(_largest(norms, n_left, per_label), null)
            model.set_params(warm_start=True, n_init=own["n_init"] if is_last else 1)
            model.fit(X, y, hidden=hidden, sample_weight=sample_weight)
            if is_last:
                model.set_params(**own)
                return model

    def check(self) -> None:
        super().check()
        self.penalty.on(self.schema_).check_whole(self.schema_.n_params)
        n_groups = self.penalty.on(self.schema_).n_groups
        for name in ("group_norms_", "dual_norms_"):
            values = getattr(self, name, None)
            if not isinstance(values, np.ndarray) or values.shape != (n_groups,) or values.dtype.kind != "f":
                raise ValueError(f"{name} must hold a number for each of {n_groups} groups, got {shorten(values)}")
        selected: Any = getattr(self, "selected_states_", None)
        if np.shape(selected) not in ((n_groups,), self._label_states()):
            raise ValueError(f"selected_states_ must say whether each of {n_groups} groups is used")

    def _keep(self, ended: Ended, schema: Schema, oracle: Oracle) -> None:
        super()._keep(ended, schema, oracle)
        self._measure_groups(ended.state.bound_slope)

    def _measure_groups(self, slope: Array) -> None:
        penalty = self.penalty.on(self.schema_)
        self.group_norms_ = penalty.norms(self.coef_)
        self.dual_norms_ = np.full(penalty.n_groups, np.nan)
        if slope.size:
            self.dual_norms_ = penalty.norms(slope) / penalty.each_weight
        selected = self.group_norms_ > 0
        self.selected_states_ = self._by_label(selected) if self._has_states(penalty) else selected

    def _label_states(self) -> tuple[int, ...]:
        """The number of labels and of states, where each pair has separate weights."""
        return len(self.schema_.classes), len(self.schema_.facts.get("states", ()))

    def _has_states(self, penalty: GroupNorm) -> bool:
        """Whether groups are those of hidden states."""
        try:
            pairs = GroupNorm("label-state").on(self.schema_)
        except ValueError:
            return False
        first = np.zeros(pairs.n_groups, dtype=np.int64)
        first[pairs.groups] = penalty.groups
        return bool((first[pairs.groups] == penalty.groups).all())

    def _by_label(self, values: Array) -> Array:
        """(labels, states) of values that groups have."""
        penalty = self.penalty.on(self.schema_)
        if not self._has_states(penalty):
            raise CapabilityError(
                f"{type(self.problem).__name__} lacks separate weights for every state, or the groups mix states; use "
                "Transforms(..., blocks='class and state') with groups='label-state' or 'state'"
            )
        pairs = GroupNorm("label-state").on(self.schema_)
        table = np.zeros(pairs.n_groups, dtype=values.dtype)
        table[pairs.groups] = values[penalty.groups]
        return table.reshape(self._label_states())

    def _keep_states(self, kept: Array, null: bool) -> GroupNormSVM:
        """The same model with only these states."""
        if not hasattr(self.problem, "with_states"):
            raise CapabilityError(f"{type(self.problem).__name__} cannot leave out states: it lacks `with_states`")
        problem, schema, w = self.problem.with_states(self.schema_, self.coef_, kept, null)
        each = self._by_label(self.penalty.on(self.schema_).each_weight)[:, kept.any(axis=0)]
        twin: GroupNormSVM = self.copy_fitted()
        twin.set_params(problem=problem, groups="label-state")
        twin.set_params(weights=each.ravel() if np.ndim(self.weights) else self.weights)
        twin.schema_, twin.coef_ = schema, w
        twin._measure_groups(np.empty(0))
        return twin

    def _descent(self, oracle: Oracle, prepared: Any) -> Descent:
        descent = super()._descent(oracle, prepared)
        if isinstance(self.solver, str):
            descent = replace(descent, solver=lambda task: Bundle())
        if not isinstance(self.solver, str) or self.solver != "subgradient":
            return descent
        return descent.convert(AlternatingSubgradient, is_relative=self.stop == "relative")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.stop == "relative" and self.solver != "subgradient":
            raise ValueError(
                "stop='relative' is a rule for single steps and needs solver='subgradient', got "
                f"solver={shorten(self.solver)}; other solvers certify their tasks: use stop='decrease'"
            )

    def _previous_weights(self, schema: Any) -> Array | None:
        previous = super()._previous_weights(schema)
        return previous if previous is not None and previous.any() else None  # at w = 0 all hidden values tie

    def _begin(self, descent: Descent, oracle: Oracle, y: Any, previous: Array | None, *, seed: int, start: int) -> Any:
        first = super()._begin(descent, oracle, y, previous, seed=seed, start=start)
        if first.w.any() or first.n_powers or not oracle.hidden_unknown().size:
            return first
        plain = descent.convert(Descent, penalty=Quadratic(), pace=None, shift=False)
        now = plain.begin(first.target, seed=seed, start=start)
        while not now.is_done and now.iteration < MAX_FIRST_ITERATIONS:
            now = plain.step(now)
        return descent.begin(now.target, now.w, seed=seed, start=start)


def _largest(norms: Array, k: Any, per_label: bool) -> Array:
    """(labels, states) the k states with the largest norms per label; or of all, every label keeping its largest."""
    if per_label:
        return np.asarray(_ranks(norms) < k)
    first = _ranks(norms) == 0
    return np.asarray(_ranks(np.where(first, np.inf, norms).reshape(1, -1)) < k).reshape(norms.shape)


def _ranks(norms: Array) -> Array:
    """The rank of every entry in its row; that of the largest is 0."""
    return np.argsort(np.argsort(-norms, axis=1, kind="stable"), axis=1)


@dataclass(frozen=True)
class SubgradientState(LatentState):
    """The best point so far, the present one, its objective, and how often that rose."""

    present_w: Weights = field(default_factory=lambda: np.empty(0))
    present_objective: float = np.inf
    rises: int = 0


@dataclass(frozen=True)
class AlternatingSubgradient(Descent):
    """Algorithm 1 of Chen, Batra, Freeman & Johnson (2011), with two corrections.

    Their equation 9 lacks the weights λ_g of the groups, and groups that are zero, where 0 is a valid subgradient. A
    step has the length ``1 / (rises + 1)``. It never makes a group exactly zero. Kept is the best point; a start ends
    when `SUBGRADIENT_STEPS` steps decrease its objective by less than ``C · tol``, or, if ``is_relative``, after a step
    that changes it by less than ``tol`` times itself. The penalty is a group norm. While a pace leaves samples out, the
    steps of an iteration are on those that are easy at its beginning, and no rule ends them.
    """

    is_relative: bool = False

    state: ClassVar[Any] = SubgradientState

    def begin(self, target: Array, w: Array | None = None, *, seed: int = 0, start: int = 0) -> SubgradientState:
        first: SubgradientState = super().begin(target, w, seed=seed, start=start)
        return replace(first, present_w=first.w)

    def better(self, best: SubgradientState | None, now: SubgradientState) -> SubgradientState:
        return now

    def step(self, now: SubgradientState) -> SubgradientState:
        if now.n_powers:
            after: SubgradientState = minimise_soft(self, now)
            return replace(after, present_w=after.w)
        if self._is_pacing(now):
            return self._step_easy(now)
        end, is_still = self._follow(now, self.weights, self.tol if self.is_relative else 0.0)
        if not self.is_relative:
            is_still = now.objective - end.objective < self.significant
        has_paced = self.pace is None or bool(np.isfinite(now.threshold))
        return replace(end, is_in=np.ones_like(now.is_in), is_done=is_still and has_paced)

    def _step_easy(self, now: SubgradientState) -> SubgradientState:
        """Steps on the samples that are easy now. The next ones begin afresh, on others: objectives differ."""
        assert self.pace is not None
        slack, share, unit = self.slack(now.w, now.target), *self._shares()
        paced = self.pace.can_leave_out(self.oracle)
        last = None if now.changed else now.is_in[paced]
        threshold = self.pace.next_threshold((unit * slack)[paced], now.threshold, last, share[paced])
        is_in = self.pace.choose(unit * slack, threshold) | (share == 0) | ~paced
        begin = replace(now, objective=np.inf, present_w=now.w, present_objective=np.inf, rises=0)
        end = replace(begin, iteration=now.iteration + 1)
        if is_in.any():
            end = self._follow(begin, self.weights * is_in)[0]
        objective = self.objective(end.w, end.target)
        end = replace(end, present_w=end.w, present_objective=np.inf, rises=0)
        return replace(end, objective=objective, is_in=is_in, threshold=threshold)

    def _follow(self, now: SubgradientState, weights: Array, tol: float = 0.0) -> tuple[SubgradientState, bool]:
        """`SUBGRADIENT_STEPS` steps with these weights of samples, or fewer if one changes the objective by less than
        ``tol`` times itself; and whether one did."""
        oracle, penalty = self.oracle.exact(), self.penalty
        assert isinstance(penalty, GroupNorm)
        best, best_target, lowest = now.w, now.target, now.objective
        w, target, last, rises = now.present_w, now.target, now.present_objective, now.rises
        is_still = False
        for _ in range(SUBGRADIENT_STEPS):
            if w.any():  # at w = 0 all hidden values tie, and the first ones stay
                target = oracle.impute(w, prefer=target).code
            task = Task(oracle, weights, target, penalty, self.rescaling)
            plane = task.plane_at(w)[1]
            objective = penalty.value(w) + plane.value(w) + plane.excess
            if not np.isfinite(objective):
                raise overflow_error()
            rises += objective > last
            is_still = abs(objective - last) < tol * objective
            last = objective
            if objective < lowest:
                best, best_target, lowest = w, target, objective
            if is_still:
                break
            w = w - (_norm_slope(penalty, w) + plane.gradient) / (rises + 1)
        after = replace(
            now,
            w=best,
            target=best_target,
            objective=lowest,
            changed=self._count_changed(best_target, now.target),
            iteration=now.iteration + 1,
            n_warm=now.n_warm + 1,
            present_w=w,
            present_objective=last,
            rises=rises,
        )
        return after, bool(is_still)


def _norm_slope(penalty: GroupNorm, w: Array) -> Array:
    """A subgradient of the norm: λ_g w_g / ‖w_g‖, and 0 for groups that are zero."""
    norms = penalty.norms(w)
    factor = np.zeros_like(norms)
    np.divide(penalty.each_weight, norms, out=factor, where=norms > 0)
    return np.asarray(w * penalty.of_groups(factor))
