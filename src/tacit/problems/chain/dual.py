"""The dual variables of chains, which are zero for all but a few taggings per sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.arrays import Array
from tacit.oracle.task import VISIT_STEPS, Dual, Mean
from tacit.problems.chain.visits import Model, Sequences, Taggings, visit_chains
from tacit.problems.classes.dual import flat_rows

if TYPE_CHECKING:
    from tacit.problems.chain.oracle import ChainOracle

FIRST_SLOTS = 8
"""Taggings of one sequence that may hold dual weight at first; three to six are usual near the optimum of short ones.
The number doubles when a visit finds no free slot."""

MAX_SLOT_BYTES = 1 << 28
"""Memory that the taggings in all slots may take. Beyond that, a new tagging replaces the one of the least share."""


class ChainDual(Dual):
    """α of chains by the few taggings with α > 0: ``vertices[token, m]`` are tags, ``shares[i, m]`` add up to one.

    A visit finds the most violated tagging (Viterbi), and moves weight from the worst tagging that has some to the best
    one, by exact line search, up to `VISIT_STEPS` times (pairwise steps: Osokin et al. 2016). O(tokens · slots)
    memory instead of one plane of features per sequence.

    Parameters
    ----------
    oracle, weights, target : those of the task
    start : `arrays` of an earlier dual of the same sequences
    """

    def __init__(
        self, oracle: ChainOracle, weights: Array, target: Array, start: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(weights)
        self.oracle = oracle
        self.target = target
        self.offsets = oracle.offsets
        self.sequences = Sequences(*flat_rows(oracle.table), oracle.offsets, *oracle.loss_rows(), weights)
        self.vertices = np.zeros((target.size, FIRST_SLOTS), dtype=target.dtype)
        self.shares = np.zeros((oracle.n_samples, FIRST_SLOTS))
        if start is None or not self.fits(start):
            self.start([target], [1.0])
            return
        self.load(start)
        used = np.repeat(self.shares > 0, np.diff(self.offsets), axis=0)
        self.vertices = np.where(used, self.vertices, target[:, None])

    def arrays(self) -> dict[str, Array]:
        return {"vertices": self.vertices, "shares": self.shares}

    def fits(self, start: Mapping[str, Any]) -> bool:
        if set(start) != {"vertices", "shares"}:
            return False
        codes, shares = np.asarray(start["vertices"]), np.asarray(start["shares"])
        if codes.ndim != 2 or codes.shape[0] != self.target.size or shares.shape != (self.weights.size, codes.shape[1]):
            return False
        if codes.dtype.kind != "i" or not (np.isfinite(shares).all() and (shares >= 0).all()):
            return False
        used = np.repeat(start["shares"] > 0, np.diff(self.offsets), axis=0)
        return bool((np.abs(start["shares"].sum(axis=1) - 1) < 1e-6).all()) and all(
            self.oracle.accepts(np.where(used[:, m], codes[:, m], self.target).astype(self.target.dtype))
            for m in range(codes.shape[1])
        )

    def load(self, state: Mapping[str, Any]) -> None:
        self.vertices = np.array(state["vertices"], dtype=self.target.dtype)
        self.shares = np.array(state["shares"], dtype=np.float64)
        self.refresh()

    def widen(self) -> None:
        """Twice as many slots."""
        self.vertices = np.hstack([self.vertices, np.repeat(self.target[:, None], self.shares.shape[1], axis=1)])
        self.shares = np.hstack([self.shares, np.zeros_like(self.shares)])

    def mean(self) -> Mean:
        return Mean(self.w.copy(), self.offset)

    def add(self, code: Array, share: float) -> None:
        same = np.logical_and.reduceat(self.vertices == code[:, None], self.offsets[:-1], axis=0) & (self.shares > 0)
        if not (same | (self.shares <= 0)).any(axis=1).all():
            self.widen()
            return self.add(code, share)
        slot = np.where(same.any(axis=1), np.argmax(same, axis=1), np.argmax(self.shares <= 0, axis=1))
        self.vertices[np.arange(code.size), np.repeat(slot, np.diff(self.offsets))] = code
        self.shares[np.arange(slot.size), slot] += share
        return None

    def refresh(self) -> None:
        sums = self.shares.sum(axis=1, keepdims=True)
        self.shares /= np.where(np.abs(sums - 1) > 1e-13, sums, 1.0)  # sums that are right stay the same, to the bit
        slope = -self.oracle.features(self.target, self.weights)
        self.offset = 0.0
        for m in range(self.shares.shape[1]):
            coef = self.weights * self.shares[:, m]
            if coef.any():
                slope += self.oracle.features(self.vertices[:, m], coef)
                self.offset += float(coef @ self.oracle.loss(self.vertices[:, m]))
        self.w = -slope

    def cannot_gain(self, code: Array) -> Array:
        same = np.logical_and.reduceat(self.vertices == code[:, None], self.offsets[:-1], axis=0)
        return np.asarray((same & (self.shares >= 1 - 1e-12)).any(axis=1) | (self.weights == 0))

    def sweep(self, order: Array, gaps: Array) -> float:
        emission, transition = self.oracle.parts(self.w)
        model = Model(np.ascontiguousarray(emission.T), transition.copy(), self.oracle.allowed)
        taggings = Taggings(self.vertices, self.shares)
        moved = np.zeros(2)
        may_widen = 2 * self.vertices.nbytes <= MAX_SLOT_BYTES
        total: float = visit_chains(order, self.sequences, model, taggings, gaps, moved, may_widen, VISIT_STEPS)
        if moved[1] and may_widen:
            self.widen()
        self.w = self.oracle.flat(model.emission.T, model.transition)
        self.offset += float(moved[0])
        return total
