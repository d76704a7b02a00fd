"""Compiled visits to the dual weights of chains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.oracle.dual import VISIT_STEPS, Dual, Mean
from tacit.problems.classes.dual import flat_rows

if TYPE_CHECKING:
    from tacit.problems.chain.oracle import ChainOracle

VERTICES = 8
"""Taggings of one sequence that may hold dual weight at first; three to six are usual near the optimum of short ones.
The room doubles when a visit finds none free."""

ROOM = 1 << 28
"""Tags that all slots together may take (bytes, mostly). Beyond that a new tagging takes the place of a light one."""

FEW = 8
"""Tokens in which two taggings differ up to which their distance is taken pair by pair of tokens."""


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
        self.vertices = np.zeros((target.size, VERTICES), dtype=target.dtype)
        self.shares = np.zeros((oracle.n_samples, VERTICES))
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
        self.shares /= np.where(np.abs(sums - 1) > 1e-13, sums, 1.0)  # what is right already stays as it is, bit by bit
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
        return np.asarray((same & (self.shares >= 1 - 1e-12)).any(axis=1) | (self.weights == 0))

    def sweep(self, order: Array, gaps: Array) -> float:
        emission, transition = self.oracle.parts(self.w)
        by_feature, transition = np.ascontiguousarray(emission.T), transition.copy()
        moved = np.zeros(2)
        may_widen = 2 * self.vertices.nbytes <= ROOM
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
            may_widen,
            VISIT_STEPS,
        )
        if moved[1] and may_widen:
            self.widen()
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
    may_widen: bool,
    steps: int,
) -> float:
    """Visit sequences: move weight between taggings, keeping ``weights[feature, tag]`` and ``transition`` in step.

    Rows of features are dense if ``indptr`` is empty; ``moved[0]`` gathers the change of the losses, ``moved[1]``
    counts visits that found no free slot; if it ``may_widen``, those move weight only between the taggings there are.
    Returns the sum of the gaps, NaN where numbers overflow.
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
    slope = np.empty((d, tags))
    which = np.empty(d, dtype=np.int64)
    is_touched = np.zeros(d, dtype=np.bool_)
    turn_by = np.zeros((tags, tags))
    total = 0.0
    for s in order:
        gaps[s] = 0.0
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
        if is_crowded:
            moved[1] += 1.0
        else:
            for t in range(size):
                vertices[start + t, slot] = code[t]
        top = 0.0  # the value of the most violated tagging
        for t in range(size):
            top += unary[t, code[t]] + loss[column[start + t], code[t]]
            if t > 0:
                top += transition[code[t - 1], code[t]]
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
            is_forced = turn == 0 and is_crowded and not may_widen
            if is_forced:  # the least weight, all of it, moves to the new tagging, which takes its slot
                low = slot
                its_lost = 0.0
                for t in range(size):
                    up[t], down[t] = code[t], vertices[start + t, slot]
                    its_lost += loss[column[start + t], code[t]]
                gain = top - value[low]
            else:
                for t in range(size):
                    up[t], down[t] = vertices[start + t, high], vertices[start + t, low]
                its_lost = lost[high]
                gain = value[high] - value[low]
            if turn == 0:
                gap = c[s] * (top - held)
                if not gap < np.inf:
                    return np.nan
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
            if count <= FEW:
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
            else:
                touched = 0
                for x in range(count):
                    t = differ[x]
                    first = (start + t) * d if dense else indptr[start + t]
                    last = first + d if dense else indptr[start + t + 1]
                    for p in range(first, last):
                        j = p - first if dense else indices[p]
                        if not is_touched[j]:
                            is_touched[j] = True
                            which[touched] = j
                            touched += 1
                            for k in range(tags):
                                slope[j, k] = 0.0
                        slope[j, up[t]] += values[p]
                        slope[j, down[t]] -= values[p]
                for x in range(touched):
                    j = which[x]
                    is_touched[j] = False
                    for k in range(tags):
                        q += slope[j, k] * slope[j, k]
            for t in range(1, size):
                if up[t - 1] != down[t - 1] or up[t] != down[t]:
                    turn_by[up[t - 1], up[t]] += 1.0
                    turn_by[down[t - 1], down[t]] -= 1.0
            for t in range(1, size):  # every pair of tags is counted at the first place that has it
                if up[t - 1] != down[t - 1] or up[t] != down[t]:
                    v = turn_by[up[t - 1], up[t]]
                    q += v * v
                    turn_by[up[t - 1], up[t]] = 0.0
                    v = turn_by[down[t - 1], down[t]]
                    q += v * v
                    turn_by[down[t - 1], down[t]] = 0.0
            if not q < np.inf:
                return np.nan
            share = shares[s, low]
            if is_forced:
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
            if count > tags:  # scores anew would cost less than their change: the next visit has them
                break
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
