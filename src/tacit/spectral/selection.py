"""Model selection on held-out strings: rank, smoothing, number of EM steps; and the selected model."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.ragged import Ragged
from tacit.spectral.automaton import WeightedAutomaton
from tacit.spectral.em import EMStep, Expected, Fit, Parameters, Watch, improve, mix_with_average, smooth
from tacit.spectral.hankel import Factors, Hankel, count, factorise, operators
from tacit.spectral.next_symbol import NextSymbol, next_symbol, ngram, ngram_order, of_probabilities
from tacit.spectral.prefix_tree import PrefixTree, grow

SMOOTHINGS = ("ngram", "normalise", "project")
MIXINGS = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])
STRENGTHS = (0.1, 1.0, 10.0)
NGRAM_SHARE = 0.001
"""The share of the n-gram under "normalise": enough for probabilities above zero."""
STEPS_PER_CHECK, MAX_IDLE_CHECKS = 5, 3
"""EM steps between two scores of the held-out strings, and scores without progress before it stops."""
TRIAL_STEPS = 15
"""EM steps for each number of states; the best one then continues."""
MIN_STATE_PROBABILITY = 1e-5
"""States less probable than this are left out of EM: twice as fast; the likelihood differs in the fifth digit."""
STEPS_PER_FINAL_STEP = 5
"""The best model of the training part is then trained on all strings, for one EM step in so many that it took."""
MAX_WORSE = 3
"""So many ranks in a row may be worse than the best before the search ends, without EM."""
MAX_CLUSTERED_PREFIXES = 30_000
"""Prefixes for k-means, at most: the most frequent."""
START_NOISE = 0.2
"""Share of the average state in the automaton that EM starts from: moves that were not counted stay possible."""


class Recipe(NamedTuple):
    """How a model is made; the fields are parameters of `SpectralAutomaton`."""

    smoothing: str
    refine: str | None
    max_iter: int
    tol: float
    seed: int
    verbose: int

    @property
    def projects(self) -> bool:
        return self.smoothing == "project" or self.refine is not None

    def improve(self, tree: PrefixTree, start: Parameters, steps: int, watch: Watch | None = None) -> Fit:
        """Run this many EM steps."""
        return improve(
            tree, start, max_iter=steps, tol=self.tol, skip=MIN_STATE_PROBABILITY, watch=watch, verbose=self.verbose
        )


class Choice(NamedTuple):
    """The selected settings, and the held-out log-likelihood per string of each rank that was tried."""

    rank: int
    mixing: float = 0.1
    strength: float = 1.0
    steps: int = 0
    held_out: dict[int, float] = {}


class Model(NamedTuple):
    """A learned distribution: ``distribution`` is None where the automaton is proper by itself."""

    automaton: WeightedAutomaton
    distribution: NextSymbol | None
    history: list[EMStep]
    interrupted: bool


class HeldOut(NamedTuple):
    """Held-out strings, and their weights."""

    strings: Ragged
    weights: Array | None

    def mean(self, log_prob: Array) -> float:
        weights = self.weights if self.weights is not None and self.weights.any() else None
        return float(np.average(log_prob, weights=weights))


def choose(train: Moments, held: HeldOut, ranks: list[int], recipe: Recipe) -> tuple[Choice, Trial | None, bool]:
    """The best rank and its settings by held-out likelihood, its trial, and whether Ctrl-C ended the search.

    Ranks are tried in increasing order, until the held-out likelihood falls: once with EM, which is expensive, and else
    `MAX_WORSE` times in a row.
    """
    best: tuple[float, Choice, Trial | None] = (-math.inf, Choice(ranks[0]), None)
    trial = None
    tried: dict[int, float] = {}
    possible = train.factors.singular_values.size
    interrupted, n_worse = False, 0
    try:
        for rank in sorted({min(rank, possible) for rank in ranks}):
            trial = Trial(train, held, rank, recipe) if recipe.projects else None
            value, choice = (
                _mix(train, held, rank, recipe) if trial is None else trial.run(min(TRIAL_STEPS, recipe.max_iter))
            )
            tried[rank] = value
            n_worse += 1
            if value > best[0]:
                best, n_worse = (value, choice, trial), 0
            elif recipe.refine is not None or n_worse == MAX_WORSE:
                break
        if best[2] is not None and recipe.refine is not None and recipe.max_iter > TRIAL_STEPS:
            value, choice = best[2].run(recipe.max_iter - TRIAL_STEPS)
            tried[choice.rank] = value
            best = value, choice, best[2]
        if best[2] is not None and recipe.smoothing == "ngram":
            best = (*best[2].mix(), best[2])
            tried[best[1].rank] = best[0]
    except KeyboardInterrupt:
        if trial is None:
            raise
        interrupted = True
        best = best if best[2] is not None else (*trial.best[:2], trial)
    return best[1]._replace(held_out=tried), best[2], interrupted


def build(whole: Moments, choice: Choice, trial: Trial | None, recipe: Recipe) -> Model:
    """The model of all strings with the selected settings; EM continues from the best of the trial."""
    if not recipe.projects:
        return Model(whole.automaton(choice.rank), whole.next_symbol(choice.rank, choice.mixing), [], False)
    if recipe.refine is None:
        counts = project(whole.tree, whole.next_symbol(choice.rank, NGRAM_SHARE), choice.rank, recipe.seed)
        return Model(WeightedAutomaton(*smooth(counts, choice.strength), whole.symbols), None, [], False)
    if trial is None:
        trial, interrupted = Trial(whole, None, choice.rank, recipe), False
        try:
            trial.run(recipe.max_iter)
        except KeyboardInterrupt:
            interrupted = True
        return trial.model(choice, interrupted)
    start = smooth(trial.best[2], choice.strength)
    steps = max(choice.steps // STEPS_PER_FINAL_STEP, 1)
    fit = recipe.improve(whole.tree, start, steps)
    parameters = smooth(fit.counts, choice.strength)
    mixed = of_probabilities(*parameters, whole.table, choice.mixing) if choice.mixing > 0 else None
    return Model(WeightedAutomaton(*parameters, whole.symbols), mixed, [*trial.history, *fit.history], fit.interrupted)


class Trial:
    """EM on the training part, stopped by the likelihood of the held-out part; `run` may be called again."""

    def __init__(self, train: Moments, held: HeldOut | None, rank: int, recipe: Recipe) -> None:
        self.train, self.held, self.rank, self.recipe = train, held, rank, recipe
        self.start = project(train.tree, train.next_symbol(rank, NGRAM_SHARE), rank, recipe.seed)
        self.parameters = mix_with_average(self.start, START_NOISE)
        self.best: tuple[float, Choice, Expected] = (-math.inf, Choice(rank), self.start)
        self.history: list[EMStep] = []
        self.idle = 0

    def run(self, steps: int) -> tuple[float, Choice]:
        """Run this many EM steps more (none without ``refine``); the best held-out value so far and its settings."""
        if self.recipe.refine is None:
            self._score(self.start, 0)
            return self.best[:2]
        done = len(self.history)

        def watch(line: EMStep, counts: Expected) -> bool:
            if (done + line.iteration) % STEPS_PER_CHECK == 0:
                self._score(counts, done + line.iteration)
            return self.idle >= MAX_IDLE_CHECKS

        fit = self.recipe.improve(self.train.tree, self.parameters, steps, watch)
        self._score(fit.counts, done + len(fit.history))
        self.parameters = fit.parameters
        self.history += fit.history[:-1]
        if fit.interrupted:
            raise KeyboardInterrupt
        return self.best[:2]

    def mix(self) -> tuple[float, Choice]:
        """The best share of the n-gram beside the best automaton, zero where it does not help."""
        value, choice, counts = self.best
        if self.held is None:
            return value, choice
        model = of_probabilities(*smooth(counts, choice.strength), self.train.table, 0.0)
        mixings = np.concatenate([[0.0], MIXINGS])
        values = [self.held.mean(row) for row in model.log_probs(self.held.strings, mixings)]
        best = int(np.argmax(values))
        return values[best], choice._replace(mixing=float(mixings[best]))

    def model(self, choice: Choice, interrupted: bool = False) -> Model:
        """The best model of the training part alone."""
        automaton = WeightedAutomaton(*smooth(self.best[2], choice.strength), self.train.symbols)
        return Model(automaton, None, self.history, interrupted)

    def _score(self, counts: Expected, steps: int) -> None:
        """Score held-out strings with every strength of smoothing; without any, the last counts are the best."""
        if self.held is None:
            self.best = 0.0, Choice(self.rank, mixing=0.0, steps=steps), counts
            return
        self.idle += 1
        for strength in STRENGTHS:
            automaton = WeightedAutomaton(*smooth(counts, strength), self.train.symbols)
            value = self.held.mean(automaton.log_prob_of_codes(self.held.strings))
            if value > self.best[0]:
                self.best = value, Choice(self.rank, mixing=0.0, strength=strength, steps=steps), counts
                self.idle = 0


def _mix(train: Moments, held: HeldOut, rank: int, recipe: Recipe) -> tuple[float, Choice]:
    """The best share of the n-gram, and the held-out value with it."""
    mixings = MIXINGS if recipe.smoothing == "ngram" else np.array([NGRAM_SHARE])
    values = [held.mean(row) for row in train.next_symbol(rank, NGRAM_SHARE).log_probs(held.strings, mixings)]
    best = int(np.argmax(values))
    return values[best], Choice(rank, mixing=float(mixings[best]))


def project(tree: PrefixTree, model: NextSymbol, n_states: int, seed: int) -> Expected:
    """The probabilistic automaton nearest to a spectral one, as counts of moves between at most ``n_states`` states.

    A spectral automaton maps every prefix to a vector, its state scaled to weight one, and prefixes with the same
    future have the same vector. The clusters of these vectors by k-means are the states. The result is a distribution,
    and the start of Baum–Welch. O(nodes · (rank² + rank · n_states)).
    """
    chosen = np.sort(np.lexsort((np.arange(tree.passing.size), -tree.passing))[:MAX_CLUSTERED_PREFIXES])
    row = np.full(tree.parent.size, -1, dtype=np.int32)
    row[chosen] = np.arange(chosen.size)
    vectors = np.empty((chosen.size, model.initial.size))
    labels = np.zeros(tree.parent.size, dtype=np.int32)
    none, path = np.empty((0, model.initial.size)), np.empty((int(tree.depth.max()) + 1, model.initial.size))
    fixed = tree.symbol, tree.depth, model.initial, model.transitions, model.going_on, model.fresh
    _walk(*fixed, row, none, np.inf, path, vectors, labels)
    sizes = np.linalg.norm(vectors, axis=1)
    largest = float(np.quantile(sizes, 0.99))
    vectors *= np.minimum(1.0, largest / np.maximum(sizes, 1e-300))[:, None]
    n_states = min(n_states, len(np.unique(vectors.round(8), axis=0)))
    groups = KMeans(n_states, n_init=1, max_iter=50, random_state=seed)
    groups.fit(vectors, sample_weight=tree.passing[chosen])
    row[:] = -1
    _walk(*fixed, row, np.ascontiguousarray(groups.cluster_centers_), largest, path, vectors, labels)
    return _count(tree, labels, n_states, len(model.transitions))


def _count(tree: PrefixTree, labels: Array, n: int, k: int) -> Expected:
    """Numbers of starts, moves and ends of the clusters."""
    initial = np.zeros(n)
    initial[labels[0]] = tree.passing[0]
    keys = (tree.symbol[1:].astype(np.int64) * n + labels[tree.parent[1:]]) * n + labels[1:]
    moves = np.bincount(keys, tree.passing[1:], minlength=k * n * n).reshape(k, n, n)
    return Expected(initial, moves, np.bincount(labels, tree.ending, minlength=n), 0.0)


@kernel
def _walk(
    symbol: Array, depth: Array, initial: Array, transitions: Array, going_on: Array, fresh: Array, row: Array,
    centres: Array, largest: float, path: Array, vectors: Array, labels: Array,
) -> None:  # fmt: skip
    """The vector of every node: written to ``vectors`` where it has a row, and compared with the centres."""
    n = initial.size
    for node in range(symbol.size):
        level = depth[node]
        weight = 0.0
        if level > 0:
            s = symbol[node]
            path[level] = 0.0
            for i in range(n):
                share = path[level - 1, i]
                for j in range(n):
                    path[level, j] += share * transitions[s, i, j]
            for j in range(n):
                weight += path[level, j] * going_on[j]
            if weight > 1e-6:
                for j in range(n):
                    path[level, j] /= weight
            else:
                for j in range(n):
                    path[level, j] = fresh[s, j]
        else:
            path[0] = initial
        if row[node] >= 0:
            for j in range(n):
                vectors[row[node], j] = path[level, j]
        if centres.shape[0] > 0:
            size = 0.0
            for j in range(n):
                size += path[level, j] * path[level, j]
            shrink = min(1.0, largest / np.sqrt(size)) if size > 0.0 else 1.0
            best = np.inf
            for c in range(centres.shape[0]):
                distance = 0.0
                for j in range(n):
                    gap = path[level, j] * shrink - centres[c, j]
                    distance += gap * gap
                if distance < best:
                    best = distance
                    labels[node] = c


class Counting(NamedTuple):
    """What is counted; the fields are parameters of `SpectralAutomaton`."""

    statistics: str
    length: int
    size: int | None
    basis: tuple[Ragged, Ragged] | None
    scaling: float


class Moments:
    """Counts of strings over an alphabet, each computed when it is first used.

    Parameters
    ----------
    strings : codes
    symbols : the alphabet
    weights : of the strings; None for one each
    counting : what is counted
    rank : the largest that will be used
    seed : of the SVD of large blocks
    """

    def __init__(
        self, strings: Ragged, symbols: Array, weights: Array | None, counting: Counting, rank: int, seed: int
    ) -> None:
        self.strings, self.symbols, self.weights = strings, symbols, weights
        self.counting, self.rank, self.seed = counting, rank, seed

    @functools.cached_property
    def hankel(self) -> Hankel:
        return count(
            self.strings,
            len(self.symbols),
            statistics=self.counting.statistics,
            length=self.counting.length,
            size=self.counting.size,
            basis=self.counting.basis,
            weights=self.weights,
        )

    @functools.cached_property
    def factors(self) -> Factors:
        return factorise(self.hankel, self.rank, scaling=self.counting.scaling, seed=self.seed)

    @functools.cached_property
    def tree(self) -> PrefixTree:
        return grow(self.strings, self.weights)

    @functools.cached_property
    def table(self) -> Array:
        """The n-gram of the strings."""
        return ngram(self.strings, len(self.symbols), ngram_order(len(self.symbols)), self.weights)

    def automaton(self, rank: int) -> WeightedAutomaton:
        """The spectral automaton of whole strings, whose values may be negative."""
        initial, transitions, final = operators(self.hankel, self.factors, rank)
        rest = np.eye(initial.size) - transitions.sum(axis=0)
        if self.counting.statistics != "string":
            final = rest @ final
        if self.counting.statistics == "substring":
            initial = initial @ rest
        return WeightedAutomaton(initial, transitions, final, self.symbols)

    def next_symbol(self, rank: int, mixing: float) -> NextSymbol:
        """The spectral automaton with next-symbol distributions.

        The weight of a prefix and the average state come from counts, too: inverting I − Σ_σ A_σ, the exact way, would
        fail where noise makes the sum of the automaton's values infinite.
        """
        automaton = self.automaton(rank)
        initial, _, final = operators(self.hankel, self.factors, rank)
        is_string, is_substring = (self.counting.statistics == kind for kind in ("string", "substring"))
        going_on = self.factors.rows[:rank] @ self.hankel.row_totals if is_string else final
        everywhere = initial if is_substring else self.hankel.column_totals @ self.factors.columns[:, :rank]
        parts = (automaton.initial, automaton.transitions, automaton.final)
        return next_symbol(*parts, going_on, everywhere, self.table, mixing)
