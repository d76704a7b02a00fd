"""Motif after motif: begun from words, learned from one part of the sequences, tested on the other, refitted to all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.finder.descent import Descended, descend, polish
from tacit.dna.finder.evidence import motif_p_value
from tacit.dna.finder.overlaps import find_copies
from tacit.dna.finder.resuming import keep_motifs, open_checkpoint, restore_motifs
from tacit.dna.finder.seeds import unexplained_words, with_word
from tacit.dna.finder.settings import (
    MOST_MOTIFS,
    STRENGTHS,
    choose_settings,
    count_strands,
    make_problem,
    middle_settings,
)
from tacit.dna.finder.shapes import describe_motif, find_best_sites
from tacit.dna.motif.starts import enriched_words
from tacit.oracle import Schema
from tacit.problems import Motif
from tacit.runtime import Progress, Status
from tacit.runtime.deadline import Deadline

FIRST_STARTS, NEXT_STARTS = 6, 3
"""Words that the first motif, and each later one, is started from."""

MAX_STEPS, STEPS_AFTER_INTERRUPT = 80, 5
"""Of a descent; and of the first one, where nothing was learned yet when Ctrl-C came."""

MAX_SHIFT = 3
"""Letters that a motif is moved by, one after the other, if each step is better."""

SAME_OBJECTIVE = 0.01
"""Starts within this share of the best objective ended at the same motif."""

_ENDED_EARLY = (Status.INTERRUPTED, Status.STOPPED)


class MotifSearch:
    """The search of a `tacit.apps.MotifFinder`: `run` finds the motifs, `refit` learns them again from all sequences.

    Parameters
    ----------
    finder : its settings, checked
    sequences : letter codes, flank included
    is_positive, is_held_out : per sequence
    seed : of cross-validation
    deadline : when to stop
    progress : where to show what is going on

    Attributes
    ----------
    width, C : as asked for, or chosen by cross-validation
    schema, w : the model so far
    before : the weights without its last motif, as they were when it was added; None if it is the first
    p_values, agreement, history : per motif, in the order in which they were found
    n_tested : motifs that were tested, those included that were dropped afterwards
    ended_early : INTERRUPTED or STOPPED, None if neither happened
    """

    width: int
    C: float
    schema: Schema
    w: Array | None
    before: Array | None

    def __init__(
        self,
        finder: Any,
        sequences: Ragged,
        is_positive: Array,
        is_held_out: Array,
        seed: int,
        deadline: Deadline,
        progress: Progress,
    ) -> None:
        self.finder, self.sequences, self.is_positive = finder, sequences, is_positive
        self.train, self.test = np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
        self.seed, self.deadline = seed, deadline
        self.progress, self.began = progress, time.perf_counter()
        self.w = self.before = None
        self.p_values: list[float] = []
        self.agreement: list[float] = []
        self.history: list[list[float]] = []
        self.n_tested = 0
        self.ended_early: Status | None = None

    def run(self) -> None:
        """Add motif after motif on the training part, each tested on the other, until one is not significant."""
        own, labels = self.sequences[self.train], self.is_positive[self.train]
        keeper = open_checkpoint(self)
        if keeper is None or not restore_motifs(keeper, self, own, labels):
            try:
                self.width, self.C = choose_settings(self.finder, own, labels, self.seed, self.deadline)
            except KeyboardInterrupt:
                self.ended_early = Status.INTERRUPTED
                self.width, self.C = middle_settings(self.finder)
        most = MOST_MOTIFS if self.finder.n_motifs == "auto" else int(self.finder.n_motifs)
        while len(self.p_values) < most and (self.ended_early is None or not self.p_values):
            if self.p_values and self.finder.n_motifs == "auto" and not self._is_last_significant():
                break
            if not self._add_motif(own, labels):
                break
            if self._is_held_back(own, labels):
                self._begin_again()
                continue
            if keeper is not None:
                keep_motifs(keeper, self)
        if self.finder.n_motifs == "auto":
            self._drop_the_superfluous(own, labels)

    def refit(self) -> None:
        """Learn the same motifs from all sequences."""
        assert self.w is not None
        problem = make_problem(self.finder, len(self.p_values), self.width)
        self.schema = problem.schema(self.sequences, self.is_positive)
        oracle = problem.bind(self.sequences, self.is_positive, self.schema)
        again = self._descend(oracle, self.is_positive, self.w, tell=self._teller("all sequences"))
        if self.finder.learner == "latent svm" and again.status not in _ENDED_EARLY:
            again = polish(problem, self.sequences, self.is_positive, again, self.C, self.finder.n_jobs)
        self.w = again.w
        if again.status in _ENDED_EARLY:
            self.ended_early = again.status

    def _add_motif(self, own: Ragged, labels: Array) -> bool:
        """One more motif, and its p-value; False if there is no word to begin from."""
        m = len(self.p_values) + 1
        problem = make_problem(self.finder, m, self.width)
        schema = problem.schema(own, labels)
        oracle = problem.bind(own, labels, schema)
        words = self._words(own, labels, m)
        words, steps = (words, MAX_STEPS) if self.ended_early is None else (words[:1], STEPS_AFTER_INTERRUPT)
        found: list[Descended] = []
        for letters in words:
            begin = _grown(self.w, schema)
            with_word(begin, letters, schema.views(begin), m - 1)
            tell = self._teller(f"motif {m}, start {len(found) + 1} of {len(words)}")
            found.append(self._descend(oracle, labels, begin, max_iter=steps, tell=tell))
            if found[-1].status in _ENDED_EARLY:
                self.ended_early = found[-1].status
                break
        if not found:
            return False
        best = min(found, key=lambda one: one.objective)
        near = [one.objective <= best.objective * (1 + SAME_OBJECTIVE) for one in found]
        if self.ended_early is None:
            best = self._try_shifts(oracle, schema, labels, best, m - 1)
        if self.finder.learner == "latent svm" and self.ended_early is None:
            best = polish(problem, own, labels, best, self.C, self.finder.n_jobs)
            if best.status is Status.INTERRUPTED:
                self.ended_early = best.status
        self.history.append(best.history)
        self.agreement.append(float(np.mean(near)))
        self.p_values.append(self._test_last(problem, schema, best.w))
        self.n_tested += 1
        self.schema, self.w, self.before = schema, best.w, self.w
        return True

    def _test_last(self, problem: Motif, schema: Schema, w: Array) -> float:
        """The p-value of the last motif on the held-out part.

        Given are the motifs before it, as they are beside it and as they were without it: learned together, two
        motifs may share the letters of one, and each would then be found to add to the other.
        """
        held_out, labels = self.sequences[self.test], self.is_positive[self.test]
        value = find_best_sites(problem, schema, w, held_out).value
        given = value[:, :-1]
        if self.w is not None:
            before = make_problem(self.finder, len(self.p_values), self.width)
            given = np.hstack([given, find_best_sites(before, self.schema, self.w, held_out).value])
        return motif_p_value(value[:, -1], given, held_out, labels, count_strands(self.finder))

    def _words(self, sequences: Ragged, labels: Array, m: int) -> list[Array]:
        """Words to begin the m-th motif from."""
        strands = count_strands(self.finder)
        if m == 1 or self.w is None:
            words = enriched_words(sequences, labels, self.width, strands, FIRST_STARTS)
            return words or [np.zeros(min(self.width, 6), np.int64)]
        before = make_problem(self.finder, m - 1, self.width)
        score = before.bind(sequences, None, before.schema(sequences, labels)).label_scores(self.w)[:, 1]
        p = expit(score)
        weight = np.where(labels, 0.5 / labels.mean(), 0.5 / (1 - labels.mean()))
        return unexplained_words(sequences, weight * (labels - p), weight * p * (1 - p), strands, NEXT_STARTS)

    def _try_shifts(self, oracle: Any, schema: Schema, labels: Array, found: Descended, motif: int) -> Descended:
        """The same model with the motif moved towards its weaker end, by a letter or two, where that is better.

        A motif that was found a letter beside its place is a local optimum: letters outside of it have no weights.
        """
        best = found
        for _ in range(MAX_SHIFT):
            w = best.w.copy()
            table = schema.views(w)["motif"][motif]
            strength = np.abs(table - table.mean(axis=1, keepdims=True)).sum(axis=1)
            step = -1 if strength[0] < strength[-1] else 1
            table[:] = np.roll(table, step, axis=0)
            table[-1 if step == -1 else 0] = table.mean(axis=1).mean()
            moved = self._descend(oracle, labels, w, max_iter=MAX_STEPS // 2)
            if moved.status in _ENDED_EARLY:
                self.ended_early = moved.status
                return best
            if moved.objective >= best.objective:
                return best
            best = moved._replace(history=[*best.history, *moved.history])
        return best

    def _is_held_back(self, own: Ragged, labels: Array) -> bool:
        """Whether the penalty keeps a motif too weak, as a significant copy of it shows, and could be less.

        Two copies of w / 2 have half of the penalty of w: they do what a larger C would do.
        """
        is_free = self.finder.n_motifs == self.finder.C == "auto" and self.ended_early is None
        if not is_free or STRENGTHS[-1] <= self.C or not self._is_last_significant():
            return False
        return bool(self._find_copies(own, labels))

    def _begin_again(self) -> None:
        """Forget all motifs and look for them with the next larger C."""
        self.C = min(C for C in STRENGTHS if C > self.C)
        self.w = self.before = None
        self.p_values, self.agreement, self.history = [], [], []

    def _find_copies(self, own: Ragged, labels: Array) -> set[int]:
        assert self.w is not None
        n = len(self.p_values)
        sites = find_best_sites(make_problem(self.finder, n, self.width), self.schema, self.w, own)
        return find_copies([describe_motif(own, sites, m, labels) for m in range(n)], sites, labels)

    def _drop_the_superfluous(self, own: Ragged, labels: Array) -> None:
        """Go back by a motif that was tried in vain; leave out copies of others, and learn the rest again."""
        if self.before is not None and not self._is_last_significant():
            self._keep(range(len(self.p_values) - 1), own, labels)
            self.w = self.before
        copies = self._find_copies(own, labels)
        if copies:
            assert self.w is not None
            blocks = self.schema.views(self.w)
            kept = [m for m in range(len(self.p_values)) if m not in copies]
            parts = [blocks["motif"][kept], *(part for name, part in blocks.items() if name != "motif")]
            problem = self._keep(kept, own, labels)
            begin = np.concatenate([part.ravel() for part in parts])
            self.w = self._descend(problem.bind(own, labels, self.schema), labels, begin).w

    def _keep(self, kept: Sequence[int], own: Ragged, labels: Array) -> Motif:
        """Forget all but these motifs; returns the problem of those that are left, to which weights are to be given."""
        problem = make_problem(self.finder, len(kept), self.width)
        self.schema = problem.schema(own, labels)
        self.p_values = [self.p_values[m] for m in kept]
        self.agreement = [self.agreement[m] for m in kept]
        self.history = [self.history[m] for m in kept]
        return problem

    def _is_last_significant(self) -> bool:
        """Whether the last motif is, given how many were tested."""
        return self.p_values[-1] * self.n_tested < float(self.finder.alpha)

    def _descend(self, oracle: Any, labels: Array, w: Array, **more: Any) -> Descended:
        return descend(oracle, labels, w, self.C, deadline=self.deadline, n_jobs=self.finder.n_jobs, **more)

    def _teller(self, what: str) -> Callable[[int, float], None]:
        """Shows on the terminal what is going on, and its objective."""

        def tell(step: int, objective: float) -> None:
            self.progress.show(time.perf_counter() - self.began, step, f"{what}: objective {objective:.5g}")

        return tell


def _grown(w: Array | None, schema: Schema) -> Array:
    """Weights with room for one more motif; zeros where there were none."""
    grown = np.zeros(schema.n_params)
    if w is not None:
        motifs = schema.views(grown)["motif"]
        size = motifs.size - motifs[0].size
        motifs[:-1] = w[:size].reshape(motifs[:-1].shape)
        grown[motifs.size :] = w[size:]
    return grown
