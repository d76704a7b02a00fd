"""Model selection on held-out strings: rank, smoothing, number of EM steps; and the selected model."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.spectral.automaton import WeightedAutomaton
from tacit.spectral.em import EMStep, Expected, Fit, Parameters, Watch, improve, mix_with_average, smooth
from tacit.spectral.moments import Moments
from tacit.spectral.next_symbol import (
    Conditional,
    NextSymbol,
    average,
    constant_weights,
    fit_weights,
    of_probabilities,
)
from tacit.spectral.prefix_tree import PrefixTree

SMOOTHINGS = ("ngram", "normalise", "project")
ORDERS = range(2, 13)
"""Orders of the n-gram that are tried, as long as the held-out likelihood grows."""
MAX_NODES = 3_000_000
"""No longer n-grams are counted once there are so many."""
MIXING = 0.1
"""The share of the n-gram where there are too few strings to choose it."""
STRENGTHS = (0.1, 1.0, 10.0, 30.0)
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
START_NOISE = 0.2
"""Share of the average state in the automaton that EM starts from: moves that were not counted stay possible."""


class Recipe(NamedTuple):
    """How a model is made; the fields are parameters of `SpectralAutomaton`."""

    smoothing: str
    refine: str | None
    max_iter: int
    tol: float
    n_models: int
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


class HeldOut(NamedTuple):
    """Held-out strings, and their weights."""

    strings: Ragged
    weights: Array | None

    def mean(self, log_prob: Array) -> float:
        weights = self.weights if self.weights is not None and self.weights.any() else None
        return float(np.average(log_prob, weights=weights))

    @property
    def owner(self) -> Array:
        """The string of every symbol and end."""
        return np.repeat(np.arange(len(self.strings)), self.strings.lengths + 1)

    def mean_of_symbols(self, chances: Array) -> float:
        """`mean` of the strings whose symbols and ends have these probabilities."""
        with np.errstate(divide="ignore"):
            return self.mean(np.bincount(self.owner, np.log(chances), minlength=len(self.strings)))


class Choice(NamedTuple):
    """The selected settings.

    Attributes
    ----------
    ranks : of the automata, the best first
    order : of the n-gram
    weights : of `NextSymbol`; None for the first automaton alone
    mixing : the share of the n-gram over all held-out symbols
    trials : EM on the training part, one per automaton
    held_out : the held-out log-likelihood per string of each rank that was tried
    interrupted : whether Ctrl-C ended the search
    """

    ranks: tuple[int, ...]
    order: int
    weights: Array | None
    mixing: float
    trials: tuple[Trial, ...] = ()
    held_out: dict[int, float] = {}
    interrupted: bool = False


class Model(NamedTuple):
    """A learned distribution: ``distribution`` is None where the automaton is proper by itself."""

    automaton: WeightedAutomaton
    distribution: NextSymbol | None
    history: list[EMStep]
    interrupted: bool


def choose(train: Moments, held: HeldOut, ranks: list[int], recipe: Recipe) -> Choice:
    """The best rank and its settings by held-out likelihood."""
    possible = train.factors.singular_values.size
    ranks = sorted({min(rank, possible) for rank in ranks})
    return _choose_with_em(train, held, ranks, recipe) if recipe.projects else _choose(train, held, ranks, recipe)


def choose_without_held_out(rank: int, recipe: Recipe) -> Choice:
    """The settings where nothing is held out."""
    share = NGRAM_SHARE if recipe.smoothing == "normalise" else MIXING
    return Choice((rank,), ORDERS[1], constant_weights(1, share), share)


def _choose(train: Moments, held: HeldOut, ranks: list[int], recipe: Recipe) -> Choice:
    """Ranks are tried in increasing order, until the held-out likelihood fell `MAX_WORSE` times in a row.

    Then the best automata are averaged if that helps.
    """
    order, own, levels = _choose_order(train, held)
    found: dict[int, Array] = {}
    tried: dict[int, float] = {}
    weights = constant_weights(1, NGRAM_SHARE)
    best = ranks[0]
    for rank in ranks:
        found[rank] = _follow(train.conditional(rank), held)
        chances = np.array([found[rank], own])
        if recipe.smoothing == "normalise":
            tried[rank] = held.mean_of_symbols(average(chances, weights[levels].T))
        else:
            tried[rank], fitted = _fit_weights(chances, levels, held)
        if tried[rank] >= tried[best]:
            best = rank
            weights = weights if recipe.smoothing == "normalise" else fitted
        elif len(tried) - list(tried).index(best) > MAX_WORSE:
            break
    parts = [best]
    if recipe.smoothing == "ngram":
        ordered = sorted(tried, key=lambda rank: -tried[rank])[: recipe.n_models]
        for n in range(2, len(ordered) + 1):
            value, fitted = _fit_weights(np.array([*(found[rank] for rank in ordered[:n]), own]), levels, held)
            if value > tried[best]:
                tried[best], weights, parts = value, fitted, ordered[:n]
    return Choice(tuple(parts), order, weights, _share(weights, levels), (), tried)


def _choose_with_em(train: Moments, held: HeldOut, ranks: list[int], recipe: Recipe) -> Choice:
    """Ranks are tried in increasing order, a few steps each, until the held-out likelihood falls; the best continues.

    Then further automata of this rank and the one before are learned from other starts, and averaged if that helps.
    """
    trial: Trial | None = None
    best: list[Trial] = []
    order, weights, mixing = 1, None, 0.0
    tried: dict[int, float] = {}
    interrupted = False
    try:
        for rank in ranks:
            trial = Trial(train, held, rank, recipe)
            tried[rank] = trial.run(min(TRIAL_STEPS, recipe.max_iter))
            if best and tried[rank] <= best[0].value:
                break
            best = [trial, *best][:2]
        if recipe.refine is not None:
            tried[best[0].rank] = best[0].run(recipe.max_iter - TRIAL_STEPS)
        if recipe.smoothing == "ngram":
            trials = [best[0], *_further_trials(train, held, best, recipe)]
            order, own, levels = _choose_order(train, held)
            chances = np.array([*(_follow(trial.conditional, held) for trial in trials), own])
            for n in range(1, len(trials) + 1):
                value, found = _fit_weights(chances[[*range(n), -1]], levels, held)
                if value > tried[trials[0].rank]:
                    best, weights = trials[:n], found
                    tried[trials[0].rank], mixing = value, _share(found, levels)
    except KeyboardInterrupt:
        if trial is None:
            raise
        best, weights, interrupted = best or [trial], None, True
    best = best[:1] if weights is None else best
    return Choice(tuple(trial.rank for trial in best), order, weights, mixing, tuple(best), tried, interrupted)


def _further_trials(train: Moments, held: HeldOut, best: list[Trial], recipe: Recipe) -> list[Trial]:
    """EM from other starts, to be averaged with the best: of the same rank and of the one tried before, in turn."""
    found = []
    for i in range(1, recipe.n_models):
        if len(best) == 1 or i % 2:
            trial = Trial(train, held, best[0].rank, recipe, start=i)
        else:
            trial = best[1] if i == 2 else Trial(train, held, best[1].rank, recipe, start=i)
        trial.run(recipe.max_iter - len(trial.history))
        found.append(trial)
    return found


def _choose_order(train: Moments, held: HeldOut) -> tuple[int, Array, Array]:
    """The order of the n-gram by held-out likelihood; with it, the probability and level of every held-out symbol."""
    best: tuple[float, int, Array, Array] | None = None
    for order in ORDERS:
        ngram = train.ngram(order)
        chances, levels, _ = ngram.follow(held.strings, np.full(len(held.strings), ngram.start, dtype=np.int64))
        value = held.mean_of_symbols(chances)
        if best is not None and value <= best[0]:
            break
        best = value, order, chances, levels
        if ngram.symbol.size > MAX_NODES:
            break
    assert best is not None
    return best[1], best[2], best[3]


def _fit_weights(chances: Array, levels: Array, held: HeldOut) -> tuple[float, Array]:
    """The weights of a mixture, and its log-likelihood per held-out string on strings that they were not learned from.

    Three kinds are compared, each learned from one half of the strings and tried on the other: equal ones, the same
    ones everywhere, and those of each level.
    """
    weights = np.ones(len(held.strings)) if held.weights is None or not held.weights.any() else held.weights
    times, half = weights[held.owner], held.owner % 2

    def learn(kind: int, rows: Any) -> Array:
        if kind == 0:
            return constant_weights(len(chances) - 1, NGRAM_SHARE)
        return fit_weights(chances[:, rows], levels[rows] if kind == 2 else None, times[rows])

    values = []
    for kind in range(3):
        tested = np.empty(len(levels))
        for side in (0, 1):
            rows = half == side
            tested[rows] = average(chances[:, rows], learn(kind, ~rows)[levels[rows]].T)
        values.append(held.mean_of_symbols(tested))
    best = int(np.argmax(values))
    return values[best], learn(best, slice(None))


def _follow(part: Conditional, held: HeldOut) -> Array:
    """The probability of every held-out symbol and end."""
    return part.follow(held.strings, np.tile(part.initial, (len(held.strings), 1)))[0]


def _share(weights: Array, levels: Array) -> float:
    return float(weights[levels, -1].mean())


def build(whole: Moments, choice: Choice, recipe: Recipe) -> Model:
    """The model of all strings with the selected settings; EM continues from the best of the trials."""
    if choice.interrupted:
        return choice.trials[0].model()
    if not recipe.projects:
        assert choice.weights is not None
        automata = tuple(whole.conditional(rank) for rank in choice.ranks)
        mixed = NextSymbol(automata, whole.ngram(choice.order), choice.weights)
        return Model(whole.automaton(choice.ranks[0]), mixed, [], False)
    if not choice.trials:
        trial = Trial(whole, None, choice.ranks[0], recipe)
        try:
            trial.run(recipe.max_iter)
        except KeyboardInterrupt:
            return trial.model(True)
        return trial.model()
    parts: list[Parameters] = []
    history, interrupted = choice.trials[0].history, False
    for trial in choice.trials:
        if recipe.refine is None:
            counts = whole.project(trial.rank, trial.seed)
        elif interrupted:
            counts = trial.counts
        else:
            steps = max(trial.steps // STEPS_PER_FINAL_STEP, 1)
            fit = recipe.improve(whole.tree, smooth(trial.counts, trial.strength), steps)
            counts, interrupted = fit.counts, fit.interrupted
            history = history if parts else [*history, *fit.history]
        parts.append(smooth(counts, trial.strength))
    automaton = WeightedAutomaton(*parts[0], whole.symbols)
    if choice.weights is None:
        return Model(automaton, None, history, interrupted)
    mixed = NextSymbol(tuple(of_probabilities(*part) for part in parts), whole.ngram(choice.order), choice.weights)
    return Model(automaton, mixed, history, interrupted)


class Trial:
    """EM on the training part, stopped by the likelihood of the held-out part; `run` may be called again.

    ``value`` is the best held-out log-likelihood so far; ``counts``, ``strength`` and ``steps`` are how it was reached.
    """

    def __init__(self, train: Moments, held: HeldOut | None, rank: int, recipe: Recipe, start: int = 0) -> None:
        self.train, self.held, self.rank, self.recipe = train, held, rank, recipe
        self.seed = recipe.seed + start
        self.counts = train.project(rank, self.seed)
        self.parameters = mix_with_average(self.counts, START_NOISE)
        self.value, self.strength, self.steps = -math.inf, 1.0, 0
        self.history: list[EMStep] = []
        self.idle = 0

    def run(self, steps: int) -> float:
        """Run this many EM steps more (none without ``refine``); the best held-out value so far."""
        if self.recipe.refine is None:
            self._score(self.counts, 0)
        if self.recipe.refine is None or steps <= 0 or self.idle >= MAX_IDLE_CHECKS:
            return self.value
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
        return self.value

    @property
    def conditional(self) -> Conditional:
        """The next-symbol distributions of the best automaton."""
        return of_probabilities(*smooth(self.counts, self.strength))

    def model(self, interrupted: bool | None = None) -> Model:
        """The best model of the training part alone."""
        automaton = WeightedAutomaton(*smooth(self.counts, self.strength), self.train.symbols)
        return Model(automaton, None, self.history, self.held is not None if interrupted is None else interrupted)

    def _score(self, counts: Expected, steps: int) -> None:
        """Score held-out strings with every strength of smoothing; without any, the last counts are the best."""
        if self.held is None:
            self.counts, self.steps = counts, steps
            return
        self.idle += 1
        for strength in STRENGTHS:
            automaton = WeightedAutomaton(*smooth(counts, strength), self.train.symbols)
            value = self.held.mean(automaton.log_prob_of_codes(self.held.strings))
            if value > self.value:
                self.value, self.counts, self.strength, self.steps = value, counts, strength, steps
                self.idle = 0
