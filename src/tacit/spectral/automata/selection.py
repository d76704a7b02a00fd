"""Choices on held-out strings, and the model that follows from them: rank, smoothing, number of EM steps."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.spectral.automata.automaton import WeightedAutomaton
from tacit.spectral.automata.projection import project
from tacit.spectral.em import EMStep, Expected, Parameters, improve, smoothed, softened
from tacit.spectral.strings.moments import Moments
from tacit.spectral.strings.next_symbol import NextSymbol, of_probabilities

SMOOTHINGS = ("ngram", "normalise", "project")
MIXINGS = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])
STRENGTHS = (0.1, 1.0, 10.0)
NGRAM_SHARE = 0.001
"""The share of the n-gram under "normalise": enough that nothing is impossible."""
STEPS_PER_CHECK, MAX_IDLE_CHECKS = 5, 3
"""EM steps between two looks at the held-out strings, and looks without progress before it stops."""
TRIAL_STEPS = 15
"""EM steps that each number of states is tried with; the best one then goes on."""
MIN_STATE_PROBABILITY = 1e-5
"""States less probable than this are left out of EM: twice as fast, and the likelihood differs in the fifth digit."""
STEPS_PER_FINAL_STEP = 5
"""The best model of the training part goes on with all strings for one EM step in so many that it took."""
START_NOISE = 0.2
"""Share of the average state in the automaton that EM starts from: moves that were never counted stay possible."""


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


class Choice(NamedTuple):
    """What was chosen, and the held-out log-likelihood a string of each rank that was tried."""

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
    """Strings to choose by, and their weights."""

    strings: Ragged
    weights: Array | None

    def mean(self, log_prob: Array) -> float:
        weights = self.weights if self.weights is not None and self.weights.any() else None
        return float(np.average(log_prob, weights=weights))


def choose(train: Moments, held: HeldOut, ranks: list[int], recipe: Recipe) -> tuple[Choice, Trial | None, bool]:
    """The best rank and its settings by held-out likelihood, the trial that showed it, and whether Ctrl-C came first.

    Ranks are tried from the smallest on. With EM, which is dear, trying ends at the first one that is worse.
    """
    best: tuple[float, Choice, Trial | None] = (-math.inf, Choice(ranks[0]), None)
    trial = None
    tried: dict[int, float] = {}
    possible = train.factors.singular_values.size
    interrupted = False
    try:
        for rank in sorted({min(rank, possible) for rank in ranks}):
            trial = Trial(train, held, rank, recipe) if recipe.projects else None
            value, choice = (
                _mix(train, held, rank, recipe) if trial is None else trial.run(min(TRIAL_STEPS, recipe.max_iter))
            )
            tried[rank] = value
            if value > best[0]:
                best = value, choice, trial
            elif recipe.refine is not None:
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
    """The model of all strings, with the settings that were chosen; EM goes on from where the trial was best."""
    if not recipe.projects:
        return Model(whole.automaton(choice.rank), whole.next_symbol(choice.rank, choice.mixing), [], False)
    if recipe.refine is None:
        counts = project(whole.tree, whole.next_symbol(choice.rank, NGRAM_SHARE), choice.rank, recipe.seed)
        return Model(_automaton(smoothed(counts, choice.strength), whole.symbols), None, [], False)
    if trial is None:
        trial, interrupted = Trial(whole, None, choice.rank, recipe), False
        try:
            trial.run(recipe.max_iter)
        except KeyboardInterrupt:
            interrupted = True
        return trial.model(choice, interrupted)
    shown = EMProgress(recipe.verbose)
    start = smoothed(trial.best[2], choice.strength)
    steps = max(choice.steps // STEPS_PER_FINAL_STEP, 1)
    fit = improve(whole.tree, start, max_iter=steps, tol=recipe.tol, skip=MIN_STATE_PROBABILITY, watch=shown)
    shown.close()
    parameters = smoothed(fit.counts, choice.strength)
    mixed = of_probabilities(*parameters, whole.table, choice.mixing) if choice.mixing > 0 else None
    return Model(_automaton(parameters, whole.symbols), mixed, [*trial.history, *fit.history], fit.interrupted)


class Trial:
    """EM on the training part, watched by the held-out part; can be run on."""

    def __init__(self, train: Moments, held: HeldOut | None, rank: int, recipe: Recipe) -> None:
        self.train, self.held, self.rank, self.recipe = train, held, rank, recipe
        self.start = project(train.tree, train.next_symbol(rank, NGRAM_SHARE), rank, recipe.seed)
        self.parameters = softened(self.start, START_NOISE)
        self.best: tuple[float, Choice, Expected] = (-math.inf, Choice(rank), self.start)
        self.history: list[EMStep] = []
        self.idle = 0

    def run(self, steps: int) -> tuple[float, Choice]:
        """The best held-out value so far and its settings, after so many EM steps more (none without ``refine``)."""
        if self.recipe.refine is None:
            self._look(self.start, 0)
            return self.best[:2]
        done = len(self.history)
        shown = EMProgress(self.recipe.verbose)

        def watch(line: EMStep, counts: Expected) -> bool:
            shown(line, counts)
            if (done + line.iteration) % STEPS_PER_CHECK == 0:
                self._look(counts, done + line.iteration)
            return self.idle >= MAX_IDLE_CHECKS

        fit = improve(
            self.train.tree,
            self.parameters,
            max_iter=steps,
            tol=self.recipe.tol,
            skip=MIN_STATE_PROBABILITY,
            watch=watch,
        )
        shown.close()
        self._look(fit.counts, done + len(fit.history))
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
        model = of_probabilities(*smoothed(counts, choice.strength), self.train.table, 0.0)
        mixings = np.concatenate([[0.0], MIXINGS])
        values = [self.held.mean(row) for row in model.log_probs(self.held.strings, mixings)]
        place = int(np.argmax(values))
        return values[place], choice._replace(mixing=float(mixings[place]))

    def model(self, choice: Choice, interrupted: bool = False) -> Model:
        """The best model of the training part alone."""
        return Model(
            _automaton(smoothed(self.best[2], choice.strength), self.train.symbols), None, self.history, interrupted
        )

    def _look(self, counts: Expected, steps: int) -> None:
        """Score the held-out strings, for every strength of smoothing; without any, the last counts are the best."""
        if self.held is None:
            self.best = 0.0, Choice(self.rank, mixing=0.0, steps=steps), counts
            return
        self.idle += 1
        for strength in STRENGTHS:
            automaton = _automaton(smoothed(counts, strength), self.train.symbols)
            value = self.held.mean(automaton.log_prob_of_codes(self.held.strings))
            if value > self.best[0]:
                self.best = value, Choice(self.rank, mixing=0.0, strength=strength, steps=steps), counts
                self.idle = 0


def _mix(train: Moments, held: HeldOut, rank: int, recipe: Recipe) -> tuple[float, Choice]:
    """The best share of the n-gram, and the held-out value with it."""
    mixings = MIXINGS if recipe.smoothing == "ngram" else np.array([NGRAM_SHARE])
    values = [held.mean(row) for row in train.next_symbol(rank, NGRAM_SHARE).log_probs(held.strings, mixings)]
    place = int(np.argmax(values))
    return values[place], Choice(rank, mixing=float(mixings[place]))


def _automaton(parameters: Parameters, symbols: Array) -> WeightedAutomaton:
    return WeightedAutomaton(*parameters, symbols)


class EMProgress:
    """Shows EM steps; how many there will be nobody knows."""

    def __init__(self, verbose: int) -> None:
        from tacit.runtime import Progress

        self.bar = Progress(verbose, None)

    def __call__(self, line: EMStep, counts: Expected) -> bool:
        self.bar.show(line.seconds, line.iteration, f"log-likelihood a string {line.log_likelihood:.6g}")
        return False

    def close(self) -> None:
        self.bar.close()
