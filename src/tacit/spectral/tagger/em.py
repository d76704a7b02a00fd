"""Baum–Welch for hidden Markov models whose states emit pairs (x, y), started at a spectral solution."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.runtime import Status, run
from tacit.spectral.em import EMProcess, EMStep
from tacit.spectral.recovery import decompose
from tacit.spectral.tagger.estimate import PairedAutomaton

MAX_CLUSTERED = 20_000
"""Tokens that k-means clusters, at most."""

MAX_DECOMPOSED = 200
"""Pairs whose operators are decomposed, at most."""

START_NOISE = 0.05
"""Share of the average state in every state at the start of EM: what was not counted stays possible."""


class PairedHMM(NamedTuple):
    """startprob (n,), transmat (n, n), emissionprob (n, pairs)."""

    startprob: Array
    transmat: Array
    emissionprob: Array

    def automaton(self, n_operators: int) -> PairedAutomaton:
        """The automaton whose state is the one before a pair; operators without a pair are zero."""
        n = self.startprob.size
        operators = np.zeros((n_operators, n, n))
        pairs = self.emissionprob.shape[1]
        operators[:pairs] = self.emissionprob.T[:, :, None] * self.transmat[None]
        visits = np.linalg.matrix_power(0.99 * self.transmat + 0.01 * self.startprob, 200)[0]
        return PairedAutomaton(self.startprob.copy(), operators, np.ones(n), visits)


def first_model(
    automaton: PairedAutomaton, pairs: Array, n_pairs: int, starts: Array, smoothing: float, rng: np.random.Generator
) -> PairedHMM:
    """The start of EM: the likelier of two HMMs from a spectral solution.

    One is the joint decomposition of its operators (`decompose_operators`), exact where they are exact. The states of
    the other are clusters of the predictive states of tokens.
    """
    states = first_states(automaton, pairs, starts, rng)
    grouped = count_model(states, automaton.rank, pairs, n_pairs, starts, smoothing)
    shared = decompose_operators(automaton, np.bincount(pairs, minlength=n_pairs), rng)
    candidates = [grouped] if shared is None else [grouped, shared]
    return max(candidates, key=lambda model: expect_pairs(model, pairs, starts).log_likelihood)


def decompose_operators(automaton: PairedAutomaton, times: Array, rng: np.random.Generator) -> PairedHMM | None:
    """The HMM whose operators these are up to a change of basis: ``A_c = M·diag(o_c)·T·M⁻¹`` for all pairs c.

    M and T come from the most frequent pairs by alternating least squares (`tacit.spectral.recovery`), the
    emissions o_c of all pairs from M and T. Negative entries become small positive ones. None if that fails, on very
    few data.
    """
    n, n_pairs = automaton.rank, times.size
    frequent = np.argsort(-times, kind="stable")[:MAX_DECOMPOSED]
    tensor = np.ascontiguousarray(automaton.operators[frequent].transpose(1, 0, 2))
    draws = np.random.RandomState(int(rng.integers(2**31)))
    try:
        found = decompose(tensor, draws, restarts=3, sweeps=200)[0]
    except np.linalg.LinAlgError:
        return None
    if not (np.isfinite(found.left).all() and np.isfinite(found.right).all()):
        return None
    scale = np.linalg.lstsq(found.left, automaton.final, rcond=None)[0]
    left = found.left * np.where(np.abs(scale) > 1e-9, scale, 1e-9)
    moves = found.right.T @ left  # rows up to a factor each, as are the emissions
    inverse, back = np.linalg.pinv(left), np.linalg.pinv(found.right.T)
    emission = np.einsum("ip,cpq,qi->ic", inverse, automaton.operators[:n_pairs], back)
    floor = 1e-3 * times / times.sum()
    start = np.maximum(automaton.initial @ left, 0.0) + 1e-3 / n
    moves, emission = np.maximum(_fix_signs(moves), 0.0) + 1e-3 / n, np.maximum(_fix_signs(emission), 0.0)
    emission = emission / np.maximum(emission.sum(axis=1, keepdims=True), 1e-300) + floor
    return _normalise_rows(start, moves, emission)


def _fix_signs(rows: Array) -> Array:
    """Rows scaled to an absolute sum of one, the sign of the larger part positive."""
    rows = rows / np.maximum(np.abs(rows).sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(np.where(rows.sum(axis=1, keepdims=True) < 0, -rows, rows))


def first_states(automaton: PairedAutomaton, pairs: Array, starts: Array, rng: np.random.Generator) -> Array:
    """A state per token: the cluster of the automaton's predictive state before it, by k-means."""
    vectors = np.empty((pairs.size, automaton.rank))
    follow_states(pairs, starts, *automaton, vectors)
    chosen = vectors
    if len(vectors) > MAX_CLUSTERED:
        chosen = vectors[np.sort(rng.permutation(len(vectors))[:MAX_CLUSTERED])]
    n = min(automaton.rank, len(np.unique(chosen.round(12), axis=0)))
    groups = KMeans(n, n_init=3, random_state=int(rng.integers(2**31))).fit(chosen)
    return np.asarray(groups.predict(vectors), dtype=np.int64)


def count_model(states: Array, n_states: int, pairs: Array, n_pairs: int, starts: Array, smoothing: float) -> PairedHMM:
    """The HMM of tokens with these states, every state mixed with the average one."""
    start = np.bincount(states[starts[:-1]], minlength=n_states) + 1e-3
    inside = np.ones(pairs.size, dtype=bool)
    inside[starts[:-1]] = False
    at = np.flatnonzero(inside)
    moves = np.zeros((n_states, n_states))
    np.add.at(moves, (states[at - 1], states[at]), 1.0)
    emission = np.zeros((n_states, n_pairs))
    np.add.at(emission, (states, pairs), 1.0)
    shares = np.bincount(pairs, minlength=n_pairs)
    sharp = _maximise(start, moves, emission, smoothing, shares)
    moves, emission = (np.tile(part.sum(axis=0), (n_states, 1)) for part in (moves, emission))
    average = _maximise(start, moves, emission, smoothing, shares)
    return PairedHMM(*((1 - START_NOISE) * a + START_NOISE * b for a, b in zip(sharp, average, strict=True)))


def improve_pairs(
    model: PairedHMM, pairs: Array, starts: Array, *, max_iter: int, tol: float, smoothing: float, verbose: int
) -> tuple[PairedHMM, list[EMStep], Status]:
    """EM until the log-likelihood per token rises by less than ``tol``, see `EMProcess`: model, history, status."""
    shares = np.bincount(pairs, minlength=model.emissionprob.shape[1])
    process = EMProcess(
        lambda now: expect_pairs(now, pairs, starts),
        lambda counts: _maximise(*counts[:3], smoothing, shares),
        _extrapolate,
        (starts.size - 1, pairs.size),
        max_iter,
        tol,
    )
    last, status = run(process, process.begin(model), verbose=verbose, total=max_iter)
    return last.parameters, [step._replace(iteration=step.iteration - 1) for step in last.history[1:]], status


def _extrapolate(old: PairedHMM, new: PairedHMM, stretch: float) -> PairedHMM:
    return _normalise_rows(*(b * (b / a) ** (stretch - 1) for a, b in zip(old, new, strict=True)))


class Expected(NamedTuple):
    """Expected numbers of starts, moves and emissions, and the log-likelihood."""

    start: Array
    moves: Array
    emission: Array
    log_likelihood: float


def expect_pairs(model: PairedHMM, pairs: Array, starts: Array) -> Expected:
    """The E step.

    >>> coin = PairedHMM(np.ones(1), np.ones((1, 1)), np.array([[0.25, 0.75]]))
    >>> counts = expect_pairs(coin, np.array([0, 1]), np.array([0, 2]))
    >>> counts.emission, bool(np.isclose(counts.log_likelihood, np.log(0.25 * 0.75)))
    (array([[1., 1.]]), True)
    """
    start, moves = np.zeros_like(model.startprob), np.zeros_like(model.transmat)
    emission = np.zeros((model.emissionprob.shape[1], model.startprob.size))
    columns = np.ascontiguousarray(model.emissionprob.T)
    log = _expect(pairs, starts, model.startprob, model.transmat, columns, start, moves, emission)
    return Expected(start, moves * model.transmat, emission.T.copy(), float(log))


def _maximise(start: Array, moves: Array, emission: Array, smoothing: float, shares: Array) -> PairedHMM:
    """The M step: counts as probabilities; every state is given ``smoothing`` visits of the average one."""
    n = start.size
    start = start + smoothing / n + 1e-300
    moves = moves + smoothing / n + 1e-300
    return _normalise_rows(start, moves, emission + smoothing * shares / shares.sum() + 1e-300)


def _normalise_rows(*parts: Array) -> PairedHMM:
    """Scale rows to sum to one."""
    return PairedHMM(*(part / part.sum(axis=-1, keepdims=True) for part in parts))


@kernel
def follow_states(
    pairs: Array, starts: Array, initial: Array, operators: Array, final: Array, middle: Array, out: Array
) -> None:
    """The predictive state before every pair, scaled to probability one."""
    n = initial.size
    now, after = np.empty(n), np.empty(n)
    for s in range(starts.size - 1):
        now[:] = initial
        for t in range(starts[s], starts[s + 1]):
            for j in range(n):
                out[t, j] = now[j]
                after[j] = 0.0
            for i in range(n):
                for j in range(n):
                    after[j] += now[i] * operators[pairs[t], i, j]
            mass, size = 0.0, 0.0
            for j in range(n):
                mass += after[j] * final[j]
                size += abs(after[j] * final[j])
            is_lost = not mass > 0.01 * size  # nearly cancelled: the direction is noise
            if is_lost:
                mass = 0.0
                for j in range(n):
                    mass += middle[j] * final[j]
                mass = mass if mass > 0.0 else 1.0
            for j in range(n):
                now[j] = middle[j] / mass if is_lost else after[j] / mass


@kernel
def _expect(
    pairs: Array, starts: Array, start: Array, moves: Array, emission: Array, start_count: Array, move_count: Array,
    emission_count: Array,
) -> float:  # fmt: skip
    """Scaled forward–backward; ``move_count`` lacks the factor ``moves``."""
    n = start.size
    longest = max(1, np.diff(starts).max())
    forward, scale = np.empty((longest, n)), np.empty(longest)
    behind, ahead = np.empty(n), np.empty(n)
    log = 0.0
    for s in range(starts.size - 1):
        first, size = starts[s], starts[s + 1] - starts[s]
        for t in range(size):
            now, row = forward[t], emission[pairs[first + t]]
            if t == 0:
                now[:] = start
            else:
                now[:] = 0.0
                for i in range(n):
                    u = forward[t - 1, i]
                    for j in range(n):
                        now[j] += u * moves[i, j]
            total = 0.0
            for j in range(n):
                now[j] *= row[j]
                total += now[j]
            scale[t] = total
            log += math.log(total)
            for j in range(n):
                now[j] /= total
        behind[:] = 1.0
        for t in range(size - 1, -1, -1):
            row = emission[pairs[first + t]]
            for j in range(n):
                emission_count[pairs[first + t], j] += forward[t, j] * behind[j]
                ahead[j] = row[j] * behind[j] / scale[t]
            if t == 0:
                for j in range(n):
                    start_count[j] += forward[0, j] * behind[j]
                continue
            for i in range(n):
                u = forward[t - 1, i]
                dot = 0.0
                for j in range(n):
                    move_count[i, j] += u * ahead[j]
                    dot += moves[i, j] * ahead[j]
                behind[i] = dot
    return log
