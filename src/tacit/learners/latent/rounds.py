"""Latent descents in rounds: each round measures its loss against the hidden values that the last one imputed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.latent.descent import Descent, Iteration, Position
from tacit.oracle import measures_hidden
from tacit.oracle.digests import checksum
from tacit.runtime.cache import CachedOracle


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
class Rounds:
    """Descents, one per round: when one has converged, the next measures its loss against what that one imputed.

    Parameters
    ----------
    descent : that of the first round, whose loss counts the label alone where the hidden value is not known, unless
        the run begins with weights: those of a model of the known part, or of an earlier fit
    """

    descent: Descent
    present: dict[str, Descent] = field(default_factory=dict)  # that of the present round, by its reference

    def of_run(self, start: int, seed: int) -> Rounds:
        return Rounds(self.descent.of_run(start, seed), self.present)

    def begin(self, target: Array, w: Array | None = None) -> RoundPosition:
        """The first position. With weights to begin with, the first round is measured against what they impute: a loss
        of labels alone would throw away what these weights know of the hidden values."""
        position = self.descent.begin(target, w, kind=RoundPosition)
        if w is None or not w.any() or not measures_hidden(self.descent.oracle):
            return position
        return replace(position, reference=target, seen=np.array([checksum(target)]))

    def restored(self, parts: dict[str, Any]) -> RoundPosition:
        return RoundPosition(**parts)

    def rng(self, purpose: str) -> np.random.Generator:
        return self.descent.rng(purpose)

    def line(self, now: Position, seconds: float) -> Iteration:
        return self.descent.line(now, seconds)

    def step(self, now: RoundPosition) -> RoundPosition:
        """One iteration of the present round; where that is its last, the next round begins, or the run ends."""
        moved = (self._against(now.reference) if now.reference.size else self.descent).step(now)
        return self._next_round(moved) if moved.is_done and measures_hidden(self.descent.oracle) else moved

    def better(self, best: RoundPosition | None, now: RoundPosition) -> RoundPosition:
        """The best round so far; in the first round the best position, measured against its own hidden values.

        The objective of the first round counts labels alone, so it cannot be compared with those that follow.
        """
        if not measures_hidden(self.descent.oracle):
            return self.descent.better(best, now)
        if not np.isfinite(now.best_objective):
            own = self._against(now.target).objective(now.w, now.target)
            return self.descent.better(best, replace(now, objective=own, gap=np.inf))
        return _back_at_best(now)

    def _next_round(self, now: RoundPosition) -> RoundPosition:
        """The end of a round: keep it if it is the best; begin another unless its hidden values occurred before."""
        objective = self._against(now.target).objective(now.w, now.target)
        if objective < now.best_objective:
            now = replace(now, best_w=now.w, best_target=now.target, best_objective=objective, best_gap=now.gap)
        digest = checksum(now.target)
        if digest in now.seen:
            return _back_at_best(now)
        seen = np.append(now.seen, digest)
        return replace(now, reference=now.target, seen=seen, objective=objective, is_done=False)

    def _against(self, code: Array) -> Descent:
        """The descent of a round, its oracle the same object as long as the round lasts."""
        digest = checksum(code)
        if digest not in self.present:
            self.present.clear()
            self.present[digest] = replace(
                self.descent, oracle=CachedOracle(self.descent.oracle.measured_against(code))
            )
        return self.present[digest].of_run(self.descent.start, self.descent.seed)


def _back_at_best(now: RoundPosition) -> RoundPosition:
    return replace(now, w=now.best_w, target=now.best_target, objective=now.best_objective, gap=now.best_gap)
