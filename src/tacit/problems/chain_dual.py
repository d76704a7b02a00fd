"""Compiled visits to the dual weights of chains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.oracle.dual import VISIT_STEPS, Dual, Mean
from tacit.problems.class_dual import flat_rows

if TYPE_CHECKING:
    from tacit.problems.chain_oracle import ChainOracle

VERTICES = 16
"""Taggings of one sequence that may hold dual weight at a time, and one more for every second token of the longest;
three to six are usual near the optimum of short sequences."""


class ChainDual(Dual):
    """α of chains by the few taggings that have any: ``vertices[token, m]`` are tags, ``shares[i, m]`` add up to one.

    A visit finds the most violated tagging (Viterbi), and moves weight from the worst tagging that has some to the best
    one, by exact line search, up to `VISIT_STEPS` times (pairwise steps: Osokin et al. 2016). O(tokens · VERTICES)
    memory instead of one plane of features a sequence.

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
        self.rows = flat_rows(oracle.table)
        self.loss, self.column = oracle.loss_rows()
        room = min(VERTICES + int(np.diff(oracle.offsets).max()) // 2, 256)
        self.vertices = np.zeros((target.size, room), dtype=target.dtype)
        self.shares = np.zeros((oracle.n_samples, room))
        if start is None or not self.fits(start):
            self.start([target], [1.0])
            return
        self.vertices[:] = start["vertices"]
        self.shares[:] = start["shares"]
        self.refresh()

    def arrays(self) -> dict[str, Array]:
        return {"vertices": self.vertices, "shares": self.shares}

    def fits(self, start: Mapping[str, Any]) -> bool:
        if not super().fits(start):
            return False
        codes = start["vertices"]
        used = np.repeat(start["shares"] > 0, np.diff(self.offsets), axis=0)
        return bool((np.abs(start["shares"].sum(axis=1) - 1) < 1e-6).all()) and all(
            self.oracle.accepts(np.where(used[:, m], codes[:, m], self.target).astype(self.target.dtype))
            for m in range(codes.shape[1])
        )

    def mean(self) -> Mean:
        return Mean(self.w.copy(), self.offset)

    def add(self, code: Array, share: float) -> None:
        same = np.logical_and.reduceat(self.vertices == code[:, None], self.offsets[:-1], axis=0) & (self.shares > 0)
        free = self.shares <= 0
        full = ~same.any(axis=1) & ~free.any(axis=1)
        slot = np.where(same.any(axis=1), np.argmax(same, axis=1), np.argmax(free, axis=1))
        slot = np.where(full, np.argmax(self.shares, axis=1), slot)  # no room: the weight goes to the heaviest tagging
        tokens = np.flatnonzero(~np.repeat(full, np.diff(self.offsets)))
        self.vertices[tokens, np.repeat(slot, np.diff(self.offsets))[tokens]] = code[tokens]
        self.shares[np.arange(slot.size), slot] += share

    def refresh(self) -> None:
        self.shares /= self.shares.sum(axis=1, keepdims=True)
        slope = -self.oracle.features(self.target, self.weights)
        self.offset = 0.0
        for m in range(self.shares.shape[1]):
            coef = self.weights * self.shares[:, m]
            if coef.any():
                slope += self.oracle.features(self.vertices[:, m], coef)
                self.offset += float(coef @ self.oracle.loss(self.vertices[:, m]))
        self.w = -slope

    def settled(self, code: Array) -> Array:
        same = np.logical_and.reduceat(self.vertices == code[:, None], self.offsets[:-1], axis=0)
        return np.asarray((same & (self.shares >= 1 - 1e-12)).any(axis=1))

    def sweep(self, order: Array, gaps: Array) -> float:
        emission, transition = self.oracle.parts(self.w)
        by_feature, transition = np.ascontiguousarray(emission.T), transition.copy()
        moved = np.zeros(1)
        total: float = visit_chains(
            order,
            *self.rows,
            by_feature,
            transition,
            self.oracle.allowed,
            self.offsets,
            self.loss,
            self.column,
            self.weights,
            self.vertices,
            self.shares,
            gaps,
            moved,
            VISIT_STEPS,
        )
        self.w = self.oracle.flat(by_feature.T, transition)
        self.offset += float(moved[0])
        return total


@kernel
def visit_chains(
    order: Array,
    values: Array,
    indices: Array,
    indptr: Array,
    weights: Array,
    transition: Array,
    allowed: Array,
    offsets: Array,
    loss: Array,
    column: Array,
    c: Array,
    vertices: Array,
    shares: Array,
    gaps: Array,
    moved: Array,
    steps: int,
) -> float:
    """Visit sequences: move weight between taggings, keeping ``weights[feature, tag]`` and ``transition`` in step.

    Rows of features are dense if ``indptr`` is empty; ``moved[0]`` gathers the change of the losses.
    """
    d, tags = weights.shape
    room = shares.shape[1]
    dense = indptr.size == 0
    longest = 1
    for s in range(offsets.size - 1):
        if offsets[s + 1] - offsets[s] > longest:
            longest = offsets[s + 1] - offsets[s]
    ways = np.empty((tags, tags))  # the transition scores, −inf where a pair is not allowed
    for i in range(tags):
        for j in range(tags):
            ways[i, j] = transition[i, j] if allowed[i, j] else -np.inf
    unary = np.empty((longest, tags))
    best = np.empty((longest, tags))
    change = np.empty((longest, tags))
    code = np.empty(longest, dtype=np.int64)
    up = np.empty(longest, dtype=np.int64)
    down = np.empty(longest, dtype=np.int64)
    differ = np.empty(longest, dtype=np.int64)
    value = np.empty(room)
    lost = np.empty(room)
    row = np.zeros(d)
    total = 0.0
    for s in order:
        if c[s] == 0.0:
            continue
        start, size = offsets[s], offsets[s + 1] - offsets[s]
        for t in range(size):
            scores = unary[t]
            for j in range(tags):
                scores[j] = 0.0
            first = (start + t) * d if dense else indptr[start + t]
            last = first + d if dense else indptr[start + t + 1]
            for p in range(first, last):
                v = values[p]
                if v != 0.0:
                    part = weights[p - first] if dense else weights[indices[p]]
                    for j in range(tags):
                        scores[j] += v * part[j]
            extra = loss[column[start + t]]
            now = best[t]
            if t == 0:
                for j in range(tags):
                    now[j] = scores[j] + extra[j]
                continue
            before = best[t - 1]
            for j in range(tags):
                now[j] = before[0] + ways[0, j]
            for i in range(1, tags):
                u = before[i]
                way = ways[i]
                for j in range(tags):
                    v = u + way[j]
                    now[j] = v if v > now[j] else now[j]
            for j in range(tags):
                now[j] += scores[j] + extra[j]
        tag = 0
        for j in range(1, tags):
            if best[size - 1, j] > best[size - 1, tag]:
                tag = j
        code[size - 1] = tag
        for t in range(size - 1, 0, -1):
            before = best[t - 1]
            come = 0
            for i in range(1, tags):
                if before[i] + ways[i, tag] > before[come] + ways[come, tag]:
                    come = i
            tag = come
            code[t - 1] = tag
        # the slot of that tagging: where it is already, else the one of the least weight
        slot, least = -1, 0
        for m in range(room):
            if shares[s, m] < shares[s, least]:
                least = m
            if shares[s, m] > 0.0 and slot < 0:
                slot = m
                for t in range(size):
                    if vertices[start + t, m] != code[t]:
                        slot = -1
                        break
        is_crowded = slot < 0 and shares[s, least] > 0.0
        if slot < 0:
            slot = least
        if not is_crowded:
            for t in range(size):
                vertices[start + t, slot] = code[t]
        gaps[s] = 0.0
        for turn in range(steps):
            held = 0.0
            high, low = -1, -1
            for m in range(room):
                if shares[s, m] <= 0.0 and m != slot:
                    continue
                v, u = 0.0, 0.0
                for t in range(size):
                    j = vertices[start + t, m]
                    v += unary[t, j]
                    u += loss[column[start + t], j]
                    if t > 0:
                        v += transition[vertices[start + t - 1, m], j]
                value[m] = v + u
                lost[m] = u
                held += shares[s, m] * value[m]
                if high < 0 or value[m] > value[high]:
                    high = m
                if shares[s, m] > 0.0 and (low < 0 or value[m] < value[low]):
                    low = m
            if turn == 0 and is_crowded:  # no slot is free: the least weight, all of it, moves to the new tagging
                low = slot
                v, u = 0.0, 0.0
                for t in range(size):
                    up[t], down[t] = code[t], vertices[start + t, slot]
                    v += unary[t, code[t]]
                    u += loss[column[start + t], code[t]]
                    if t > 0:
                        v += transition[code[t - 1], code[t]]
                top, its_lost = v + u, u
            else:
                for t in range(size):
                    up[t], down[t] = vertices[start + t, high], vertices[start + t, low]
                top, its_lost = value[high], lost[high]
            gain = top - value[low]
            if turn == 0:
                gap = c[s] * (top - held)
                if gap <= 0.0:
                    break
                gaps[s] = gap
                total += gap
                for t in range(size):
                    for j in range(tags):
                        change[t, j] = 0.0
            if not gain > 0.0:
                break
            count = 0
            for t in range(size):
                if up[t] != down[t]:
                    differ[count] = t
                    count += 1
            q = 0.0
            for x in range(count):
                t = differ[x]
                first = (start + t) * d if dense else indptr[start + t]
                last = first + d if dense else indptr[start + t + 1]
                for p in range(first, last):
                    row[p - first if dense else indices[p]] = values[p]
                for y in range(x + 1):
                    r = differ[y]
                    agree = (up[t] == up[r]) + (down[t] == down[r]) - (up[t] == down[r]) - (down[t] == up[r])
                    if agree == 0:
                        continue
                    dot = 0.0
                    a = (start + r) * d if dense else indptr[start + r]
                    b = a + d if dense else indptr[start + r + 1]
                    for p in range(a, b):
                        dot += values[p] * row[p - a if dense else indices[p]]
                    q += agree * dot if y == x else 2.0 * agree * dot
                for p in range(first, last):
                    row[p - first if dense else indices[p]] = 0.0
            for t in range(1, size):  # pairs of tags: every place where they differ against every other
                if up[t - 1] == down[t - 1] and up[t] == down[t]:
                    continue
                for r in range(1, size):
                    if up[r - 1] == down[r - 1] and up[r] == down[r]:
                        continue
                    q += up[t - 1] == up[r - 1] and up[t] == up[r]
                    q += down[t - 1] == down[r - 1] and down[t] == down[r]
                    q -= up[t - 1] == down[r - 1] and up[t] == down[r]
                    q -= down[t - 1] == up[r - 1] and down[t] == up[r]
            share = shares[s, low]
            if turn == 0 and is_crowded:
                for t in range(size):
                    vertices[start + t, slot] = code[t]
            else:
                if gain < c[s] * q * share:
                    share = gain / (c[s] * q)
                shares[s, high] += share
                shares[s, low] -= share
            step = share * c[s]
            moved[0] += step * (its_lost - lost[low])
            for x in range(count):
                t = differ[x]
                change[t, up[t]] += step
                change[t, down[t]] -= step
            for t in range(1, size):
                if up[t - 1] != down[t - 1] or up[t] != down[t]:
                    transition[up[t - 1], up[t]] -= step
                    transition[down[t - 1], down[t]] += step
                    ways[up[t - 1], up[t]] = transition[up[t - 1], up[t]]
                    ways[down[t - 1], down[t]] = transition[down[t - 1], down[t]]
            for x in range(count if turn + 1 < steps else 0):
                t = differ[x]
                first = (start + t) * d if dense else indptr[start + t]
                last = first + d if dense else indptr[start + t + 1]
                for p in range(first, last):
                    row[p - first if dense else indices[p]] = values[p]
                for r in range(size):
                    dot = 0.0
                    a = (start + r) * d if dense else indptr[start + r]
                    b = a + d if dense else indptr[start + r + 1]
                    for p in range(a, b):
                        dot += values[p] * row[p - a if dense else indices[p]]
                    unary[r, up[t]] -= step * dot
                    unary[r, down[t]] += step * dot
                for p in range(first, last):
                    row[p - first if dense else indices[p]] = 0.0
        if gaps[s] <= 0.0:
            continue
        for t in range(size):
            first = (start + t) * d if dense else indptr[start + t]
            last = first + d if dense else indptr[start + t + 1]
            is_still = True
            for j in range(tags):
                if change[t, j] != 0.0:
                    is_still = False
            if is_still:
                continue
            moves = change[t]
            for p in range(first, last):
                v = values[p]
                if v != 0.0:
                    part = weights[p - first] if dense else weights[indices[p]]
                    for j in range(tags):
                        part[j] -= v * moves[j]
    return total
