"""Kernels over the cells ``scores[label, state]`` of a whole block of samples.

``starts`` cuts the states into samples and may begin anywhere; cells that do not exist score −inf. The loss is
``loss[label, column[i]]`` for sample i, or ``loss[label, state]``, shaped like the scores, where ``per_state``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.kernels import kernel
from tacit.data.parameters import even_table, shorten

NO_LOSSES = np.empty((0, 0))
"""Stands for: no losses are added to scores."""


@kernel
def split_codes(code: Array, sizes: Array, n_labels: int, has_hidden: bool, label: Array, state: Array) -> int:
    """Fill the label and the state of every code; the position of the first that stands for no output, −1 for none."""
    for i in range(code.size):
        if code[i] < 0 or code[i] >= (sizes[i] * n_labels if has_hidden else n_labels):
            return i
        state[i] = code[i] // n_labels if has_hidden else 0
        label[i] = code[i] - state[i] * n_labels
    return -1


@kernel
def pair_cells(
    code: Array, target: Array, sizes: Array, firsts: Array, n_labels: int, has_hidden: bool, coef: Array, label: Array,
    state: Array, signed: Array,
) -> int:  # fmt: skip
    """Fill the cells of code, with coef, and of target, with −coef, one after the other, where coef is not 0.

    States are counted over all samples. Returns how many cells these are, −1 if a code stands for no output.
    """
    size = 0
    for i in range(coef.size):
        if coef[i] == 0.0:
            continue
        for side in range(2):
            cell = code[i] if side == 0 else target[i]
            if cell < 0 or cell >= (sizes[i] * n_labels if has_hidden else n_labels):
                return -1
            own = cell // n_labels if has_hidden else 0
            label[size], state[size] = cell - own * n_labels, firsts[i] + own
            signed[size] = coef[i] if side == 0 else -coef[i]
            size += 1
    return size


@kernel
def join_codes(label: Array, state: Array, n_labels: int, code: Array) -> None:
    """Fill the code of every label and state; −1 where there is no label."""
    for i in range(label.size):
        code[i] = state[i] * n_labels + label[i] if label[i] >= 0 else -1


@kernel
def best_labels(scores: Array, loss: Array, column: Array, label: Array, value: Array) -> None:
    """`best_cells` for samples of one state each, by score plus loss, every label competing."""
    for i in range(scores.shape[1]):
        best = scores[0, i] + loss[0, column[i]]
        where = 0
        for k in range(1, scores.shape[0]):
            v = scores[k, i] + loss[k, column[i]]
            if v > best:
                best = v
                where = k
        label[i] = where
        value[i] = best


@kernel
def best_cells(
    scores: Array,
    starts: Array,
    loss: Array,
    column: Array,
    per_state: bool,
    slack: bool,
    anchor: Array,
    left_out: Array,
    label: Array,
    state: Array,
    value: Array,
) -> None:
    """The best cell of every sample by score plus loss, or by loss × (1 + score − anchor) where ``slack``.

    Labels in ``left_out`` (one per sample, −1 for none) do not compete. Fills label, state (within the sample)
    and value; a sample with no cell left gets label −1.
    """
    n = starts.size - 1
    base = starts[0]
    for i in range(n):
        value[i] = -np.inf
        label[i] = -1
        state[i] = 0
    for k in range(scores.shape[0]):
        row = scores[k]
        losses = loss[k]
        for i in range(n):
            if left_out[i] == k:
                continue
            first = starts[i] - base
            last = starts[i + 1] - base
            if per_state:
                for j in range(first, last):
                    if row[j] == -np.inf:
                        continue
                    extra = losses[j]
                    v = extra * (1 + row[j] - anchor[i]) if slack else row[j] + extra
                    if v > value[i]:
                        value[i] = v
                        label[i] = k
                        state[i] = j - first
                continue
            top = row[first]
            second, third, fourth = top, top, top  # four chains of comparisons run side by side
            j = first
            while j + 4 <= last:
                a, b, c, d = row[j], row[j + 1], row[j + 2], row[j + 3]
                top = a if a > top else top
                second = b if b > second else second
                third = c if c > third else third
                fourth = d if d > fourth else fourth
                j += 4
            while j < last:
                v = row[j]
                top = v if v > top else top
                j += 1
            top = second if second > top else top
            third = fourth if fourth > third else third
            top = third if third > top else top
            if top == -np.inf:
                continue
            extra = losses[column[i]]
            v = extra * (1 + top - anchor[i]) if slack else top + extra
            if v > value[i]:
                value[i] = v
                label[i] = k
                j = first
                while row[j] < top:
                    j += 1
                state[i] = j - first


@kernel
def best_states(
    scores: Array, starts: Array, truth: Array, given: Array, allowed: Array, prefer: Array, state: Array, value: Array
) -> None:
    """The best state of every sample with its label fixed to ``truth``; a ``given`` state (≥ 0) stays as it is.

    Where ``allowed`` is not empty, only its states compete. Ties go to ``prefer`` where that is ≥ 0, else to the first
    state.
    """
    base = starts[0]
    for i in range(starts.size - 1):
        row = scores[truth[i]]
        first = starts[i] - base
        if given[i] >= 0:
            state[i] = given[i]
            value[i] = row[first + given[i]]
            continue
        last = starts[i + 1] - base
        best = first
        if allowed.size:
            while best < last - 1 and not allowed[best]:
                best += 1
        for j in range(best + 1, last):
            if row[j] > row[best] and (allowed.size == 0 or allowed[j]):
                best = j
        if prefer[i] >= 0 and row[first + prefer[i]] >= row[best] and (allowed.size == 0 or allowed[first + prefer[i]]):
            best = first + prefer[i]
        state[i] = best - first
        value[i] = row[best]


@kernel
def best_by_label(scores: Array, starts: Array, out: Array) -> None:
    """``out[i, label]``: the highest score of sample i under each label."""
    base = starts[0]
    for k in range(scores.shape[0]):
        row = scores[k]
        for i in range(starts.size - 1):
            top = -np.inf
            for j in range(starts[i] - base, starts[i + 1] - base):
                v = row[j]
                top = v if v > top else top
            out[i, k] = top


@kernel
def sum_by_label(scores: Array, starts: Array, power: float, out: Array) -> None:
    """``out[i, label]``, the highest score, becomes ``log Σ exp(power · score) / power``."""
    base = starts[0]
    for k in range(scores.shape[0]):
        row = scores[k]
        for i in range(starts.size - 1):
            top = out[i, k]
            if top == -np.inf:
                continue
            total = 0.0
            for j in range(starts[i] - base, starts[i + 1] - base):
                total += math.exp(power * (row[j] - top))
            out[i, k] = top + math.log(total) / power


@kernel
def subtract_highest(scores: Array, starts: Array, power: float, losses: Array, top: Array, out: Array) -> None:
    """``out = power · (scores − top)`` with ``top``, the highest score of each sample, which becomes power · top.

    ``losses`` (labels, samples) are added to the scores first, unless they are empty.
    """
    base = starts[0]
    for i in range(starts.size - 1):
        top[i] = -np.inf
    for k in range(scores.shape[0]):
        row = scores[k]
        for i in range(starts.size - 1):
            loss = losses[k, i] if losses.size else 0.0
            high = top[i]
            for j in range(starts[i] - base, starts[i + 1] - base):
                v = row[j] + loss
                high = v if v > high else high
            top[i] = high
    for k in range(scores.shape[0]):
        row = scores[k]
        into = out[k]
        for i in range(starts.size - 1):
            loss = losses[k, i] if losses.size else 0.0
            high = top[i]
            for j in range(starts[i] - base, starts[i + 1] - base):
                into[j] = power * (row[j] + loss - high)
    for i in range(starts.size - 1):
        top[i] *= power


@kernel
def weigh_cells(starts: Array, coef: Array, log: Array, cells: Array) -> None:
    """Turn exponentials in ``cells`` into coef · probability, and the highest scores in ``log`` into log Σ exp."""
    base = starts[0]
    for i in range(starts.size - 1):
        total = 0.0
        for k in range(cells.shape[0]):
            row = cells[k]
            for j in range(starts[i] - base, starts[i + 1] - base):
                total += row[j]
        log[i] += math.log(total)
        factor = coef[i] / total
        for k in range(cells.shape[0]):
            row = cells[k]
            for j in range(starts[i] - base, starts[i + 1] - base):
                row[j] *= factor


def weigh_states(
    scores: Array,
    starts: Array,
    power: float,
    truth: Array,
    given: Array,
    allowed: Array,
    coef: Array,
    log: Array,
    cells: Array,
) -> None:
    """Add coef · probability of every state under its label ``truth`` to the cells, and write log Σ exp(power · score).

    A ``given`` state (≥ 0) has probability one; where ``allowed`` is not empty, other states have none.
    """
    shares = np.empty(scores.shape[1])
    subtract_highest_state(scores, starts, power, truth, given, allowed, log, shares)
    np.exp(shares, out=shares)  # many times faster than one exponential at a time
    add_states(starts, truth, coef, shares, log, cells)


@kernel
def subtract_highest_state(
    scores: Array, starts: Array, power: float, truth: Array, given: Array, allowed: Array, top: Array, out: Array
) -> None:
    """``out = power · (scores − top)`` under the label ``truth``, −inf for states that are not allowed; ``top`` is the
    highest score of each sample times the power."""
    base = starts[0]
    for i in range(starts.size - 1):
        row = scores[truth[i]]
        first = starts[i] - base
        last = starts[i + 1] - base
        high = -np.inf
        if given[i] >= 0:
            high = row[first + given[i]]
        else:
            for j in range(first, last):
                if row[j] > high and (allowed.size == 0 or allowed[j]):
                    high = row[j]
        top[i] = power * high
        for j in range(first, last):
            if given[i] >= 0:
                out[j] = 0.0 if j == first + given[i] else -np.inf
            elif high > -np.inf and (allowed.size == 0 or allowed[j]):
                out[j] = power * (row[j] - high)
            else:
                out[j] = -np.inf


@kernel
def add_states(starts: Array, truth: Array, coef: Array, shares: Array, log: Array, cells: Array) -> None:
    """Add coef · probability to the cells of the label ``truth``, given exponentials in ``shares``; the highest scores
    in ``log`` become log Σ exp."""
    base = starts[0]
    for i in range(starts.size - 1):
        total = 0.0
        for j in range(starts[i] - base, starts[i + 1] - base):
            total += shares[j]
        if total == 0.0:  # no state is allowed
            continue
        log[i] += math.log(total)
        if coef[i] == 0.0:
            continue
        into = cells[truth[i]]
        factor = coef[i] / total
        for j in range(starts[i] - base, starts[i + 1] - base):
            into[j] += factor * shares[j]


def one_coef_each(coef: Any, n: int) -> Array:
    """One coefficient for each of n samples, as kernels read them."""
    each: Array = np.ascontiguousarray(coef, dtype=np.float64)
    if each.shape != (n,):
        raise ValueError(f"coefficients must be one per sample ({n}), got shape {each.shape}")
    return each


def spread_coefficients(n: int, *coefs: Any) -> tuple[list[Array | None], bool]:
    """The coefficients of `expectations`, numbers or one per sample, for each of n samples; whether any is not zero."""
    each = [None if c is None else np.broadcast_to(np.asarray(c, dtype=np.float64), n) for c in coefs]
    return each, any(c is not None and bool(c.any()) for c in each)


def label_positions(labels: Any, n: int, n_labels: int) -> Array:
    """The positions of the labels of n samples among the classes, as kernels read them."""
    positions = even_table("labels", labels)
    is_whole = positions.dtype.kind in "iu" and positions.shape == (n,)
    if not is_whole or not ((positions >= 0) & (positions < n_labels)).all():
        raise ValueError(f"labels must be {n} positions among {n_labels} classes, got {shorten(labels)}")
    return positions.astype(np.int64)


def take_rows(values: Array, rows: Rows) -> Array:
    """The entries of these samples."""
    return values if rows is None else values[rows]
