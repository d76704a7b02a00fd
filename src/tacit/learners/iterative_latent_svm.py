"""The iterative latent SVM: losses that look at the true hidden value, which nobody knows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.learners.cccp import Descent, Position
from tacit.learners.latent_svm import LatentSVM
from tacit.oracle import require
from tacit.oracle.enumerable import checksum
from tacit.oracle.recalling import Recalling


class IterativeLatentSVM(LatentSVM):
    """Latent SVMs whose loss is measured against imputed hidden values (Kumar, Turki, Preston & Koller 2011).

    For losses ``Δ(y_i, h_i, y, h)``, such as the overlap of boxes, when h_i is unknown: (i) estimate every h_i, (ii)
    fit a whole latent SVM, ``ξ_i = max_{y,h} [Δ(y_i, h_i, y, h) + s(y, h)] − max_h s(y_i, h)``, impute h_i anew, and
    repeat until no h_i changes. The first round counts the label alone where h_i is not given.

    Each round has a loss of its own, so nothing says that rounds get better: the end is a round whose hidden values
    were there before, and the round of the lowest objective, measured against its own hidden values, is kept.
    With a loss that does not look at h it is `LatentSVM`.

    The parameters and attributes are those of `LatentSVM`; `max_iter` counts the iterations of all rounds, and
    the objective of a line of `history_` is that of its round. Under a pace only the first round goes from easy samples
    to hard ones: the others begin with all of them in.

    >>> from tacit import Ragged
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]]])
    >>> bags = bags.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]] * 3)
    >>> model = IterativeLatentSVM(Candidates(loss="overlap"), C=100, n_init=5).fit(bags, ["x", "y", "x"])
    >>> model.predict(bags), model.hidden_
    (array(['x', 'y', 'x'], dtype='<U1'), array([1, 0, 0]))
    """

    def _check_loss(self, oracle: Any) -> None:
        if getattr(oracle, "loss_needs_hidden", False):
            require(type(self).__name__, self.problem, oracle, ["measured_against"])

    def _descent(self, oracle: Any, weights: Array, seed: int) -> Rounds:
        plain = super()._descent(oracle, weights, seed)
        return Rounds(**{name: getattr(plain, name) for name in plain.__dataclass_fields__})


@dataclass(frozen=True)
class RoundPosition(Position):
    """Where a run is, with the outputs that the loss of its round is measured against, and the best round so far."""

    reference: Array = field(default_factory=lambda: np.empty(0, np.int64))  # empty in the first round
    seen: Array = field(default_factory=lambda: np.empty(0, "U8"))  # checksums of all hidden values so far
    best_w: Array = field(default_factory=lambda: np.empty(0))
    best_target: Array = field(default_factory=lambda: np.empty(0, np.int64))
    best_objective: float = np.inf
    best_gap: float = np.inf


@dataclass(frozen=True)
class Rounds(Descent):
    """A latent task in rounds: when one has converged, the next measures its loss against what that one imputed."""

    rounds: dict[tuple[str, int], Descent] = field(default_factory=dict)  # the present one

    def begin(self, target: Array) -> RoundPosition:
        return RoundPosition(**vars(super().begin(target)))

    @staticmethod
    def restored(parts: dict[str, Any]) -> RoundPosition:
        return RoundPosition(**parts)

    def step(self, now: Position) -> Position:
        assert isinstance(now, RoundPosition)
        moved = self._against(now.reference).step(now) if now.reference.size else super().step(now)
        assert isinstance(moved, RoundPosition)
        return self._next_round(moved) if moved.is_done else moved

    def _next_round(self, now: RoundPosition) -> RoundPosition:
        """The end of a round: remember it if it is the best, begin another one unless its hidden values are old."""
        if not getattr(self.oracle, "loss_needs_hidden", False):
            return now
        objective = self._against(now.target).objective(now.w, now.target)
        if objective < now.best_objective:
            now = replace(now, best_w=now.w, best_target=now.target, best_objective=objective, best_gap=now.gap)
        mark = checksum(now.target)
        if mark in now.seen:
            return replace(now, w=now.best_w, target=now.best_target, objective=now.best_objective, gap=now.best_gap)
        seen = np.append(now.seen, mark)
        return replace(now, reference=now.target, seen=seen, objective=objective, is_done=False)

    def better(self, best: Position | None, now: Position) -> Position:
        """The best round so far; in the first one the best position, measured against its own hidden values.

        The objective of the first round counts labels alone, so it is lower than any that follows: it does not compare.
        """
        assert isinstance(now, RoundPosition)
        if not getattr(self.oracle, "loss_needs_hidden", False):
            return super().better(best, now)
        if not np.isfinite(now.best_objective):
            own = self._against(now.target).objective(now.w, now.target)
            return super().better(best, replace(now, objective=own, gap=np.inf))
        return replace(now, w=now.best_w, target=now.best_target, objective=now.best_objective, gap=now.best_gap)

    def _against(self, code: Array) -> Descent:
        """The latent task of a round, the same object as long as the round lasts."""
        mark = (checksum(code), self.start)
        if mark not in self.rounds:
            self.rounds.clear()
            measured = Recalling(self.oracle.measured_against(code))  # type: ignore[attr-defined]
            parts = {name: getattr(self, name) for name in Descent.__dataclass_fields__}
            self.rounds[mark] = Descent(**{**parts, "oracle": measured})
        return self.rounds[mark]
