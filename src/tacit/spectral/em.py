"""Baum–Welch (EM) for probabilistic automata and HMMs, on a prefix tree instead of strings.

Each prefix is propagated once, however many strings share it. Forward vectors are stored along one path only, so memory
does not grow with the data. One step costs O(nodes · n²); states of probability zero are skipped. The likelihood never
falls (Baum et al. 1970; Dempster, Laird & Rubin 1977).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.parameters import shorten, whole_number
from tacit.data.specs import any_number
from tacit.runtime import Status, run
from tacit.runtime.archive import record
from tacit.spectral.prefix_tree import PrefixTree

MIN_PROBABILITY = 1e-13
"""Probabilities below this become zero: they only cost time."""

STRETCH_GROWTH, MAX_STRETCH = 1.3, 10.0
"""The step after a successful one is longer by this factor, up to a limit."""
STATE_MULTIPLE = 4
"""The number of states is padded to a multiple of this, for vector instructions."""

P = TypeVar("P")
"""The parameters of a model."""


class Counts(Protocol):
    """Expected counts under some parameters, and their log-likelihood."""

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of all strings."""


C = TypeVar("C", bound=Counts)


class Parameters(NamedTuple):
    """A probabilistic automaton: initial (n,), moves (symbols, n, n), final (n,); what leaves a state sums to one."""

    initial: Array
    moves: Array
    final: Array


class Expected(NamedTuple):
    """Expected numbers of starts, moves and ends of the paths of all strings, and the strings' log-likelihood."""

    initial: Array
    moves: Array
    final: Array
    log_likelihood: float


@record
class EMStep(NamedTuple):
    """One line of the history: seconds since the start, and the log-likelihood per string before the step."""

    iteration: int
    seconds: float
    log_likelihood: float


def check_steps(name: str, history: Any) -> None:
    """Refuse anything but a list of steps."""
    if not isinstance(history, list) or not all(isinstance(step, EMStep) for step in history):
        raise ValueError(f"{name} must be a list of EM steps, got {shorten(history)}")
    for step in history:
        whole_number("iteration", step.iteration, 0)
        any_number("seconds", step.seconds)
        any_number("log_likelihood", step.log_likelihood)


def expect(tree: PrefixTree, parameters: Parameters, skip: float = 0.0, counting: bool = True) -> Expected:
    """The E step: expected counts under the present parameters.

    States whose probability after a prefix is at most ``skip`` are left out, which saves time; the log-likelihood is
    then that of the other paths, a lower bound. Without ``counting`` the likelihood alone is right, for half of the
    time.

    >>> from tacit.data.ragged import Ragged
    >>> from tacit.spectral.prefix_tree import grow
    >>> coin = Parameters(np.ones(1), np.array([[[0.3]], [[0.5]]]), np.array([0.2]))
    >>> counts = expect(grow(Ragged([0, 1, 1], [0, 2, 3])), coin)
    >>> counts.moves.ravel().round(6), counts.final.round(6), round(counts.log_likelihood, 6)
    (array([1., 2.]), array([2.]), -5.809143)
    """
    n, deepest = parameters.initial.size, int(tree.depth.max()) + 1
    wide = -(-n // STATE_MULTIPLE) * STATE_MULTIPLE
    initial, final = (np.pad(part, (0, wide - n)) for part in (parameters.initial, parameters.final))
    moves = np.pad(parameters.moves, ((0, 0), (0, wide - n), (0, wide - n)))
    counts = Parameters(np.zeros(wide), np.zeros_like(moves), np.zeros(wide))
    log_likelihood = _walk(
        *tree, initial, moves, np.ascontiguousarray(moves.transpose(0, 2, 1)), final, np.empty((deepest, wide)),
        np.empty((deepest, wide)), np.empty(deepest), np.empty(deepest, dtype=np.int64), skip, counting, *counts,
    )  # fmt: skip
    return Expected(counts.initial[:n], counts.moves[:, :n, :n] * parameters.moves, counts.final[:n], log_likelihood)


def maximise(counts: Expected) -> Parameters:
    """The M step: counts scaled to probabilities. Strings end in a state that is never entered."""
    leaving = counts.moves.sum(axis=(0, 2)) + counts.final
    used = np.where(leaving > 0, leaving, 1.0)
    moves, final = counts.moves / used[:, None], np.where(leaving > 0, counts.final / used, 1.0)
    return tidy(Parameters(counts.initial / counts.initial.sum(), moves, final))


def tidy(parameters: Parameters) -> Parameters:
    """Drop negligible probabilities, and scale sums to one."""
    initial, moves, final = (np.where(part < MIN_PROBABILITY, 0.0, part) for part in parameters)
    leaving = moves.sum(axis=(0, 2)) + final
    return Parameters(initial / initial.sum(), moves / leaving[:, None], final / leaving)


def smooth(counts: Expected, strength: float) -> Parameters:
    """Parameters above zero: each state is given ``strength`` visits of the average state."""
    moves, final = _average_state(counts)
    leaving = counts.moves.sum(axis=(0, 2)) + counts.final + strength
    initial = counts.initial + 1e-6 * counts.initial.sum() / counts.initial.size
    return Parameters(
        initial / initial.sum(),
        (counts.moves + strength * moves[:, None, :]) / leaving[:, None],
        (counts.final + strength * final) / leaving,
    )


def mix_with_average(counts: Expected, share: float) -> Parameters:
    """The parameters of the counts, each state mixed with this share of the average state: a start of EM."""
    sharp = maximise(counts)
    moves, final = _average_state(counts)
    return Parameters(
        (1 - share) * sharp.initial + share / sharp.initial.size,
        (1 - share) * sharp.moves + share * moves[:, None, :],
        (1 - share) * sharp.final + share * final,
    )


def _average_state(counts: Expected) -> tuple[Array, Array]:
    """Moves (symbols, n) and end of a state with the frequencies of all states together.

    Half an occurrence of every symbol and of the end is added, so that none has probability zero.
    """
    arrivals = counts.moves.sum(axis=1)
    seen = arrivals.sum(axis=1)
    shares = np.append(seen + 0.5, counts.final.sum() + 0.5)
    shares /= shares.sum()
    anywhere = arrivals.sum(axis=0) + 1e-9
    target = arrivals + 1e-3 * anywhere / anywhere.sum()
    return shares[:-1, None] * target / target.sum(axis=1, keepdims=True), shares[-1]


Watch: TypeAlias = Callable[[EMStep, Expected], bool]
"""Called with every step and its counts before it is taken; True stops."""


class Fit(NamedTuple):
    """The result of `improve`: the last parameters, the counts that they were computed from, and the steps."""

    parameters: Parameters
    counts: Expected
    history: list[EMStep]
    converged: bool
    interrupted: bool


def improve(
    tree: PrefixTree,
    parameters: Parameters,
    *,
    step: Callable[[Expected], Parameters] = maximise,
    max_iter: int,
    tol: float,
    skip: float = 0.0,
    watch: Watch | None = None,
    verbose: int = 0,
) -> Fit:
    """EM on a prefix tree, see `EMProcess`."""
    process = EMProcess(
        lambda now: expect(tree, now, skip),
        step,
        _extrapolate,
        (float(tree.passing[0]), float(tree.passing.sum())),
        max_iter,
        tol,
    )
    last, status = run(
        process,
        process.begin(parameters),
        callbacks=[] if watch is None else [lambda now: watch(now.history[-1], now.counts)],
        verbose=verbose,
    )
    history = list(last.history)
    history[-1] = history[-1]._replace(log_likelihood=last.counts.log_likelihood / process.n_strings)
    if status is Status.STOPPED:  # the history includes the step that was not taken
        history.append(history[-1]._replace(iteration=len(history) + 1))
    return Fit(last.parameters, last.counts, history, last.is_converged, status is Status.INTERRUPTED)


class EMState(NamedTuple, Generic[P, C]):
    """The state of a run: the best parameters, their counts, the length of the next step, and a line per step."""

    parameters: P
    counts: C
    stretch: float
    history: tuple[EMStep, ...]
    is_converged: bool  # whether the last step gained less than tol


class EMProcess(Generic[P, C]):
    """EM as a `tacit.runtime.Process`, until the log-likelihood per symbol rises by less than ``tol`` in a step.

    Steps are overrelaxed (Salakhutdinov & Roweis 2003): longer ones are tried while they raise the likelihood, else the
    plain step is taken, so it never falls. The first line of the history is that of the start.

    Parameters
    ----------
    expect, maximise : the E and the M step
    extrapolate : ``new·(new / old)^(stretch − 1)`` of old and new parameters
    sizes : the numbers of strings and of symbols
    """

    def __init__(
        self,
        expect: Callable[[P], C],
        maximise: Callable[[C], P],
        extrapolate: Callable[[P, P, float], P],
        sizes: tuple[float, float],
        max_iter: int,
        tol: float,
    ) -> None:
        self.expect, self.maximise, self.extrapolate = expect, maximise, extrapolate
        self.n_strings, self.n_symbols = sizes
        self.max_iter, self.tol = max_iter, tol
        self._began = time.perf_counter()

    def begin(self, parameters: P) -> EMState[P, C]:
        counts = self.expect(parameters)
        return EMState(parameters, counts, 1.0, (self._line(1, counts),), False)

    def step(self, now: EMState[P, C]) -> EMState[P, C]:
        plain, stretch = self.maximise(now.counts), now.stretch
        following = plain if stretch == 1 else self.extrapolate(now.parameters, plain, stretch)
        counts = self.expect(following)
        if stretch > 1 and not counts.log_likelihood > now.counts.log_likelihood:
            stretch, following = 1.0, plain
            counts = self.expect(following)
        rise = (counts.log_likelihood - now.counts.log_likelihood) / self.n_symbols
        best = (following, counts) if rise > 0 else (now.parameters, now.counts)
        history = (*now.history, self._line(len(now.history) + 1, counts))
        return EMState(*best, min(stretch * STRETCH_GROWTH, MAX_STRETCH), history, rise < self.tol)

    def report(self, now: EMState[P, C]) -> EMState[P, C] | None:
        return None if self.verdict(now) else now

    def describe(self, now: EMState[P, C]) -> tuple[int, str]:
        return len(now.history) - 1, f"log-likelihood per string {now.history[-1].log_likelihood:.6g}"

    def verdict(self, now: EMState[P, C]) -> Status | None:
        if now.is_converged:
            return Status.CONVERGED
        return Status.MAX_ITER if len(now.history) > self.max_iter else None

    def snapshot(self, now: EMState[P, C]) -> dict[str, Any]:
        return {"stretch": now.stretch}

    def _line(self, iteration: int, counts: C) -> EMStep:
        return EMStep(iteration, time.perf_counter() - self._began, counts.log_likelihood / self.n_strings)


def _extrapolate(old: Parameters, new: Parameters, stretch: float) -> Parameters:
    """See `EMProcess`; of the automata of HMMs the result is one of an HMM."""
    initial, moves, final = (
        b * np.divide(b, a, out=np.ones_like(a), where=a > 0) ** (stretch - 1) for a, b in zip(old, new, strict=True)
    )
    leaving = moves.sum(axis=(0, 2)) + final
    return tidy(Parameters(initial, moves / leaving[:, None], final / leaving))


@kernel
def _walk(
    parent: Array, symbol: Array, depth: Array, passing: Array, ending: Array, cut: Array, initial: Array,
    moves: Array, moves_back: Array, final: Array, path: Array, pull: Array, scale: Array, on_path: Array,
    skip: float, counting: bool, initial_count: Array, move_count: Array, final_count: Array,
) -> float:  # fmt: skip
    """Depth first through the tree: forward on the way down, backward and counting on the way up.

    ``path[d]`` is the distribution of the state after the first d symbols of the current prefix. ``pull[d]`` is
    (expected number of strings below in each state) / path. ``move_count`` lacks the factor ``moves``.
    """
    n, nodes = initial.size, parent.size
    log_likelihood = 0.0
    level = 0
    for node in range(nodes + 1):
        upto = depth[node] if node < nodes else 0
        while counting and level >= max(upto, 1):
            s = symbol[on_path[level]]
            inverse = 1.0 / scale[level]
            for j in range(n):
                pull[level, j] *= inverse
            for j in range(n):
                weight = pull[level, j]
                if path[level, j] > skip:
                    for i in range(n):
                        pull[level - 1, i] += moves_back[s, j, i] * weight
            for i in range(n):
                weight = path[level - 1, i]
                if weight > skip:
                    for j in range(n):
                        move_count[s, i, j] += weight * pull[level, j]
            level -= 1
        if node == nodes:
            break
        level = upto
        on_path[level] = node
        if level == 0:
            path[0] = initial
        else:
            s = symbol[node]
            path[level] = 0.0
            for i in range(n):
                weight = path[level - 1, i]
                if weight > skip:
                    for j in range(n):
                        path[level, j] += weight * moves[s, i, j]
        total = 0.0
        for j in range(n):
            total += path[level, j]
        if total <= 0.0:
            return -np.inf
        scale[level] = total
        log_likelihood += passing[node] * np.log(total)
        inverse = 1.0 / total
        for j in range(n):
            path[level, j] *= inverse
            pull[level, j] = cut[node]
        if ending[node] > 0.0:
            chance = 0.0
            for j in range(n):
                chance += path[level, j] * final[j]
            if chance <= 0.0:
                return -np.inf
            log_likelihood += ending[node] * np.log(chance)
            weight = ending[node] / chance
            for j in range(n):
                pull[level, j] += weight * final[j]
                final_count[j] += weight * path[level, j] * final[j]
    for j in range(n):
        initial_count[j] = path[0, j] * pull[0, j]
    return log_likelihood
