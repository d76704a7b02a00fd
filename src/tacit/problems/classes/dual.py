"""Compiled visits to the dual variables of class blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.oracle.task import VISIT_STEPS, CellDual

if TYPE_CHECKING:
    from tacit.problems.classes.blocks import ClassBlocks


class ClassDual(CellDual):
    """`CellDual` for `ClassBlocks`: a sample with one state is solved exactly at every visit (Crammer & Singer 2001),
    one with several by steps between pairs of cells."""

    def __init__(
        self, oracle: ClassBlocks, weights: Array, target: Array, start: Mapping[str, Any] | None = None
    ) -> None:
        self.blocks = oracle
        self.rows = flat_rows(oracle.table)
        super().__init__(oracle, weights, target, start)

    def refresh(self) -> None:
        self.normalise()
        state, label = np.nonzero(self.alpha)
        coef = self.alpha[state, label]
        self.w = self.oracle.features(self.target, self.weights) - self.blocks.sum_cells(label, state, coef)
        self.offset = float(coef @ self.loss[self.column[state], label])

    def sweep(self, order: Array, gaps: Array) -> float:
        weights, intercept = self.blocks.parts(self.w)
        by_feature = np.ascontiguousarray(weights.T)
        moved = np.zeros(1)
        model = (by_feature, intercept, self.blocks.constant)
        point = (self.loss, self.column, self.weights, self.alpha, gaps, moved)
        if self.offsets.size == self.offsets[-1] + 1:
            total = visit_single(order, self.rows, model, point)
        else:
            total = visit_bags(order, self.rows, model, self.offsets, point, VISIT_STEPS)
        self.w = self.blocks.flat(by_feature.T, intercept)
        self.offset += float(moved[0])
        return float(total)


def flat_rows(table: Any) -> tuple[Array, Array, Array]:
    """Values, indices and row pointers of a table; a dense one has all values and no indices.

    A dense table that is mostly zeros becomes a sparse one, on which visits are twice as fast.
    """
    if not sparse.issparse(table):
        sample = table[:: max(1, len(table) // 1000)]
        if np.count_nonzero(sample) > 0.5 * sample.size:
            return np.ascontiguousarray(table).reshape(-1), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
        table = sparse.csr_array(table)
    return table.data, table.indices, table.indptr


@kernel
def visit_single(order: Array, table: tuple[Array, ...], model: tuple[Any, ...], point: tuple[Array, ...]) -> float:
    """Visit samples of one state each: the best ``alpha[i]`` given all others, by projection onto a simplex.

    Keeps ``weights[feature, label]`` in step. Rows are dense if ``indptr`` is empty. ``constant`` is the feature
    behind the intercepts, 0 without; ``moved[0]`` sums the change of the losses. Returns the sum of the gaps, NaN
    where numbers overflow.
    """
    values, indices, indptr = table
    weights, intercept, constant = model
    loss, column, c, alpha, gaps, moved = point
    d, labels = weights.shape
    dense = indptr.size == 0
    g = np.empty(labels)
    level = np.empty(labels)
    total = 0.0
    for i in order:
        gaps[i] = 0.0
        if c[i] == 0.0:
            continue
        first = i * d if dense else indptr[i]
        last = first + d if dense else indptr[i + 1]
        extra = loss[column[i]]
        share = alpha[i]
        q = constant * constant
        for k in range(labels):
            g[k] = extra[k] + constant * intercept[k]
        for p in range(first, last):
            v = np.float64(values[p])  # squares of single precision overflow at 1e19
            if v != 0.0:
                q += v * v
                part = weights[p - first] if dense else weights[indices[p]]
                for k in range(labels):
                    g[k] += v * part[k]
        held = 0.0
        best = 0
        for k in range(labels):
            held += share[k] * g[k]
            if g[k] > g[best]:
                best = k
        gap = c[i] * g[best] - held
        if not (q < np.inf and gap < np.inf):
            return np.nan
        gaps[i] = gap if gap > 0.0 else 0.0
        if gap <= 0.0:
            continue
        total += gap
        if q == 0.0:  # features are zero: all dual weight to the largest loss
            for k in range(labels):
                moved[0] -= share[k] * extra[k]
                share[k] = 0.0
            share[best] = c[i]
            moved[0] += c[i] * extra[best]
            continue
        top = g[best]
        for k in range(labels):  # relative to the best, so that a tiny q loses nothing
            g[k] = (g[k] - top) + q * share[k]
            level[k] = g[k]
        for k in range(1, labels):  # sorted from the highest down
            v = level[k]
            z = k - 1
            while z >= 0 and level[z] < v:
                level[z + 1] = level[z]
                z -= 1
            level[z + 1] = v
        water = -c[i] * q
        cut = 0.0
        for k in range(labels):
            water += level[k]
            cut = water / (k + 1)
            if k + 1 == labels or level[k + 1] <= cut:
                break
        whole = 0.0
        for k in range(labels):
            g[k] = (g[k] - cut) / q if g[k] > cut else 0.0
            whole += g[k]
        if not 0.0 < whole < np.inf:
            return np.nan
        for k in range(labels):
            v = g[k] * (c[i] / whole)
            level[k] = v - share[k]
            share[k] = v
            moved[0] += level[k] * extra[k]
            intercept[k] -= constant * level[k]
        for p in range(first, last):
            v = values[p]
            if v != 0.0:
                part = weights[p - first] if dense else weights[indices[p]]
                for k in range(labels):
                    part[k] -= v * level[k]
    return total


@kernel
def visit_bags(
    order: Array, table: tuple[Array, ...], model: tuple[Any, ...], offsets: Array, point: tuple[Array, ...], steps: int
) -> float:
    """Visit samples of several states: move weight between two cells of ``alpha[state, label]``, ``steps`` times each.

    The rest is as in `visit_single`.
    """
    values, indices, indptr = table
    weights, intercept, constant = model
    loss, column, c, alpha, gaps, moved = point
    d, labels = weights.shape
    dense = indptr.size == 0
    most = 1
    for i in range(offsets.size - 1):
        most = max(most, offsets[i + 1] - offsets[i])
    g = np.empty((most, labels))
    mine = np.zeros(d)
    its = np.zeros(d)
    total = 0.0
    for i in order:
        gaps[i] = 0.0
        if c[i] == 0.0:
            continue
        start, size = offsets[i], offsets[i + 1] - offsets[i]
        held = 0.0
        top = -np.inf
        for h in range(size):
            row = g[h]
            extra = loss[column[start + h]]
            for k in range(labels):
                row[k] = extra[k] + constant * intercept[k]
            first = (start + h) * d if dense else indptr[start + h]
            last = first + d if dense else indptr[start + h + 1]
            for p in range(first, last):
                v = values[p]
                if v != 0.0:
                    part = weights[p - first] if dense else weights[indices[p]]
                    for k in range(labels):
                        row[k] += v * part[k]
            for k in range(labels):
                held += alpha[start + h, k] * row[k]
                top = row[k] if row[k] > top else top
        gap = c[i] * top - held
        if not gap < np.inf:
            return np.nan
        gaps[i] = gap if gap > 0.0 else 0.0
        if gap <= 0.0:
            continue
        total += gap
        for _ in range(steps):
            best, label, away, its_label = 0, 0, -1, -1
            for h in range(size):
                for k in range(labels):
                    if g[h, k] > g[best, label]:
                        best, label = h, k
                    if alpha[start + h, k] > 0.0 and (away < 0 or g[h, k] < g[away, its_label]):
                        away, its_label = h, k
            gain = g[best, label] - g[away, its_label]
            if not gain > 0.0:
                break
            first = (start + best) * d if dense else indptr[start + best]
            last = first + d if dense else indptr[start + best + 1]
            its_first = (start + away) * d if dense else indptr[start + away]
            its_last = its_first + d if dense else indptr[start + away + 1]
            for p in range(first, last):
                mine[p - first if dense else indices[p]] = values[p]
            for p in range(its_first, its_last):
                its[p - its_first if dense else indices[p]] = values[p]
            q = 0.0 if label == its_label else 2.0 * constant * constant
            for p in range(first, last):
                j = p - first if dense else indices[p]
                q += mine[j] * mine[j]
                if label == its_label:
                    q -= 2.0 * mine[j] * its[j]
            for p in range(its_first, its_last):
                j = p - its_first if dense else indices[p]
                q += its[j] * its[j]
            if not q < np.inf:
                return np.nan
            share = alpha[start + away, its_label]
            step = share if gain >= q * share else gain / q
            alpha[start + best, label] += step
            alpha[start + away, its_label] = share - step
            moved[0] += step * (loss[column[start + best], label] - loss[column[start + away], its_label])
            for p in range(first, last):
                j = p - first if dense else indices[p]
                weights[j, label] -= step * mine[j]
            for p in range(its_first, its_last):
                j = p - its_first if dense else indices[p]
                weights[j, its_label] += step * its[j]
            intercept[label] -= step * constant
            intercept[its_label] += step * constant
            for h in range(size):
                u = (start + h) * d if dense else indptr[start + h]
                end = u + d if dense else indptr[start + h + 1]
                with_mine, with_its = constant * constant, constant * constant
                for p in range(u, end):
                    j = p - u if dense else indices[p]
                    with_mine += values[p] * mine[j]
                    with_its += values[p] * its[j]
                g[h, label] -= step * with_mine
                g[h, its_label] += step * with_its
            for p in range(first, last):
                mine[p - first if dense else indices[p]] = 0.0
            for p in range(its_first, its_last):
                its[p - its_first if dense else indices[p]] = 0.0
    return total
