"""The hidden Markov model of word alignment (Vogel et al. 1996), null words as in Och & Ney (2003)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma

from tacit.text import IBM1
from tacit.text.alignment.corpus import number_text, number_types

NULL, ALPHA, ROUNDS = 0.1, 0.01, 5
WIDEST = 100
"""Jumps beyond are counted as this one."""


def align(source: Any, target: Any) -> list[np.ndarray]:
    """Links (source word, target word) by posterior probabilities; learned from the same sentence pairs.

    It begins with the table of an IBM-1 with a diagonal prior: from a plain one it ends much worse on short texts.
    """
    types = number_types(source), number_types(target)
    text, n_target = number_text(source, target, *types), len(types[1])
    model = IBM1(n_iter=ROUNDS).fit(source, target)
    kinds, table = model.index_.keys, model.table_
    given, alone = table.given, table.alone
    jumps = np.exp(-np.abs(np.arange(-WIDEST, WIDEST + 1) - 1.0)) + 1e-3
    pairs = []
    for a, b, c, d in zip(text[1][:-1], text[1][1:], text[3][:-1], text[3][1:], strict=True):
        words, others = text.source[a:b], text.target[c:d]
        pairs.append((np.searchsorted(kinds, words[:, None] * n_target + others), others))
    for _ in range(ROUNDS):
        counts, none, steps = np.zeros(kinds.size), np.zeros(n_target), np.full(jumps.size, ALPHA)
        for places, others in pairs:
            real, null, moves = posteriors(given[places], alone[others], jumps)
            np.add.at(counts, places, real)
            np.add.at(none, others, null)
            np.add.at(steps, clip_jumps(len(places)), moves)
        totals = np.bincount(kinds // n_target, counts, minlength=len(types[0]))
        given = np.exp(digamma(counts + ALPHA) - digamma(totals + ALPHA * n_target)[kinds // n_target])
        alone = np.exp(digamma(none + ALPHA) - digamma(none.sum() + ALPHA * n_target))
        jumps = steps
    found = []
    for places, others in pairs:
        real, null, _ = posteriors(given[places], alone[others], jumps)
        is_linked = real.max(axis=0) > null
        found.append(np.column_stack([real.argmax(axis=0), np.arange(others.size)])[is_linked])
    return found


def clip_jumps(n: int) -> np.ndarray:
    """The number of the jump from every source word (row) to every other."""
    return np.clip(np.arange(n) - np.arange(n)[:, None], -WIDEST, WIDEST) + WIDEST


def posteriors(emission: np.ndarray, alone: np.ndarray, jumps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Posteriors of links (source, target) and of null words, and expected jumps (source, source).

    A null word keeps the source word before it, so every source word has a second, null state.
    """
    n, length = emission.shape
    moves = jumps[clip_jumps(n)]
    moves = moves / moves.sum(axis=1, keepdims=True)
    forward, backward = np.zeros((2, length, 2, n))
    scale = np.zeros(length)
    for j in range(length):
        if j:
            before = forward[j - 1].sum(axis=0)
            real, null = before @ moves, before
        else:
            real = null = np.full(n, 1.0 / n)
        forward[j] = (1 - NULL) * real * emission[:, j], NULL * null * alone[j]
        scale[j] = max(forward[j].sum(), 1e-300)
        forward[j] /= scale[j]
    backward[-1] = 1.0
    expected = np.zeros((n, n))
    for j in range(length - 1, 0, -1):
        real = (1 - NULL) * emission[:, j] * backward[j, 0]
        expected += np.outer(forward[j - 1].sum(axis=0), real) * moves / scale[j]
        backward[j - 1] = (moves @ real + NULL * alone[j] * backward[j, 1]) / scale[j]
    both = forward * backward
    return both[:, 0].T, both[:, 1].sum(axis=1), expected
