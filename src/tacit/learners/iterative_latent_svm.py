"""The iterative latent SVM: for losses that depend on the true hidden value when that is unknown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from tacit.data.arrays import Array, checksum
from tacit.learners.descents.descent import Descent, LatentState
from tacit.learners.descents.multistart import OptionalCodes, OptionalWeights, Words
from tacit.learners.latent_svm import LatentSVM
from tacit.learners.preparation import measures_hidden
from tacit.oracle import Oracle, require
from tacit.oracle.capabilities import MeasuresHidden
from tacit.runtime.blocks import cache_answers


class IterativeLatentSVM(LatentSVM):
    """Latent SVMs whose loss is measured against imputed hidden values (Kumar, Turki, Preston & Koller 2011).

    For losses ``Δ(y_i, h_i, y, h)``, such as the overlap of boxes, when h_i is unknown. It works in rounds. A round
    fits a whole latent SVM, ``ξ_i = max_{y,h} [Δ(y_i, h_i, y, h) + s(y, h)] − max_h s(y_i, h)``, with the present
    estimates of h_i in the loss, and then imputes every h_i again. If the start is a model, the first round uses what
    that model imputes. Such starts are a model of the known part (``init="known"``, and "auto" where some hidden values
    are known), an earlier fit (``warm_start``), or weights (``init=model.weights_``). Otherwise the loss of the first
    round counts only the label where h_i is not given.

    Each round has another loss, so rounds need not get better. They end when the hidden values of a round have occurred
    before. Kept is the round with the lowest objective, measured with its own hidden values. With a loss that does not
    depend on h this is `LatentSVM`.

    The parameters and attributes are those of `LatentSVM`. `max_iter` counts the iterations of all rounds, and the
    objective of a line of `history_` is that of its round. With a pace, only the first round goes from easy samples to
    hard ones; the others begin with all samples.

    >>> from tacit import Ragged
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]]])
    >>> bags = bags.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]] * 3)
    >>> model = IterativeLatentSVM(Candidates(loss="overlap"), C=100, n_init=5).fit(bags, ["x", "y", "x"])
    >>> model.predict(bags), model.hidden_
    (array(['x', 'y', 'x'], dtype='<U1'), array([1, 0, 0]))
    """

    def _check_loss(self, oracle: Oracle) -> None:
        if measures_hidden(oracle):
            require(type(self).__name__, self.problem, oracle, MeasuresHidden)

    def _descent(self, oracle: Oracle, prepared: Any) -> Rounds:
        return super()._descent(oracle, prepared).convert(Rounds)


class ImputedLossSVM(IterativeLatentSVM):
    """The latent SVM of Kumar (2013), chapter 4, for losses on hidden values: one convex task per imputation.

    Each iteration imputes every h_i, and solves the structured SVM with these values as targets and in the loss,
    ``ξ_i = max_{y,h} [Δ(y_i, h_i, y, h) + s(y, h)] − s(y_i, h_i)``. In `IterativeLatentSVM` the loss sees new hidden
    values only after a whole latent SVM. A start ends when the objective, measured with the new hidden values, no
    longer decreases by C · tol. It may rise, so the iteration with the lowest is kept. This is a simple baseline beside
    `IterativeLatentSVM` and `DissimilaritySVM`. With a loss that does not depend on h it is `LatentSVM`.

    The parameters and attributes are those of `LatentSVM`, without a pace.

    >>> from tacit import Ragged
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]]])
    >>> bags = bags.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]] * 3)
    >>> model = ImputedLossSVM(Candidates(loss="overlap"), C=100, n_init=5).fit(bags, ["x", "y", "x"])
    >>> model.predict(bags), model.hidden_
    (array(['x', 'y', 'x'], dtype='<U1'), array([1, 0, 0]))
    """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.pace is not None:
            raise ValueError(f"pace must be None, got {self.pace!r}; IterativeLatentSVM and LatentSVM have a pace")

    def _descent(self, oracle: Oracle, prepared: Any) -> Any:
        if not measures_hidden(oracle):
            return LatentSVM._descent(self, oracle, prepared)
        return super()._descent(oracle, prepared).convert(SingleSolves, shift=False)


@dataclass(frozen=True)
class BestState(LatentState):
    """The state of a start, and the best weights and hidden values so far."""

    best_w: OptionalWeights = field(default_factory=lambda: np.empty(0))
    best_target: OptionalCodes = field(default_factory=lambda: np.empty(0, np.int64))
    best_objective: float = np.inf
    best_gap: float = np.inf

    def keep_if_best(self, objective: float) -> Self:
        """The same state; its weights and hidden values are kept as the best if ``objective`` is."""
        if objective >= self.best_objective:
            return self
        return replace(self, best_w=self.w, best_target=self.target, best_objective=objective, best_gap=self.gap)

    def back_at_best(self) -> Self:
        """The same state, back at the best weights and hidden values."""
        return replace(self, w=self.best_w, target=self.best_target, objective=self.best_objective, gap=self.best_gap)


@dataclass(frozen=True)
class RoundState(BestState):
    """The state of a start, with the outputs that the loss of its round compares with."""

    reference: OptionalCodes = field(default_factory=lambda: np.empty(0, np.int64))  # empty in the first round
    seen: Words = field(default_factory=lambda: np.empty(0, "U8"))  # checksums of all hidden values so far


@dataclass(frozen=True)
class Rounds(Descent):
    """Descents, one per round: when one has converged, the loss of the next compares with what that one imputed.

    Where a hidden value is unknown, the loss of the first round counts only the label, unless the start begins with
    weights.
    """

    present: dict[str, Descent] = field(default_factory=dict)  # that of the present round, by its reference

    state: ClassVar[Any] = RoundState

    def begin(self, target: Array, w: Array | None = None, *, seed: int = 0, start: int = 0) -> RoundState:
        """The first state. If it has weights, the loss of the first round compares with what they impute: a loss of
        labels alone would lose what these weights know of the hidden values."""
        first: RoundState = super().begin(target, w, seed=seed, start=start)
        if w is None or not w.any() or not measures_hidden(self.oracle):
            return first
        return replace(first, reference=target, seen=np.array([checksum(target)]))

    def step(self, now: RoundState) -> RoundState:
        """One iteration of the present round; where that is its last, the next round begins, or the start ends."""
        after = self._against(now.reference).step(now) if now.reference.size else super().step(now)
        return self._next_round(after) if after.is_done and measures_hidden(self.oracle) else after

    def better(self, best: Any, now: Any) -> Any:
        """The best round so far; in the first round the best state, measured with its own hidden values.

        The objective of the first round counts only labels, so it cannot be compared with those that follow.
        """
        if not measures_hidden(self.oracle):
            return super().better(best, now)
        if not np.isfinite(now.best_objective):
            own = self._against(now.target).objective(now.w, now.target)
            return super().better(best, replace(now, objective=own, gap=np.inf))
        return now.back_at_best()

    def inference_gap(self, w: Array, target: Array) -> float:
        if measures_hidden(self.oracle):
            return self._against(target).inference_gap(w, target)
        return super().inference_gap(w, target)

    def _next_round(self, now: RoundState) -> RoundState:
        """The end of a round: keep it if it is the best; begin another unless its hidden values occurred before."""
        objective = self._against(now.target).objective(now.w, now.target)
        now = now.keep_if_best(objective)
        digest = checksum(now.target)
        if digest in now.seen:
            return now.back_at_best()
        seen = np.append(now.seen, digest)
        return replace(now, reference=now.target, seen=seen, objective=objective, is_done=False)

    def _against(self, code: Array) -> Descent:
        """The descent of a round; its oracle is the same object as long as the round lasts."""
        digest = checksum(code)
        if digest not in self.present:
            self.present.clear()
            oracle = cache_answers(cast(MeasuresHidden, self.oracle).measured_against(code))
            self.present[digest] = self.convert(Descent, oracle=oracle)
        return self.present[digest]


@dataclass(frozen=True)
class SingleSolves(Rounds):
    """Convex tasks whose targets and losses both have the hidden values that the last task imputed.

    Each is solved to the last gap: the hidden values of an imprecise solve would lead elsewhere.
    """

    state: ClassVar[Any] = BestState
    prefers_path: ClassVar[bool] = False

    def begin(self, target: Array, w: Array | None = None, *, seed: int = 0, start: int = 0) -> Any:
        first: BestState = Descent.begin(self, target, w, seed=seed, start=start)
        return replace(first, precision=self.significant)

    def step(self, now: Any) -> Any:
        """Solve with the present hidden values, impute new ones, and measure the objective with those."""
        after = self._against(now.target).step(now)
        objective = self._against(after.target).objective(after.w, after.target)
        after = replace(after, objective=objective).keep_if_best(objective)
        has_gained = now.best_objective - objective > self.significant
        return replace(after, precision=self.significant, is_done=not has_gained and not now.n_powers)

    def better(self, best: Any, now: Any) -> Any:
        return now.back_at_best()
