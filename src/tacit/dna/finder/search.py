"""Motif after motif: started from k-mers, learned from one part of the sequences, tested on the other, refitted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from tacit.data.arrays import Array, checksum
from tacit.data.parameters import is_positive, whole_number
from tacit.data.ragged import Ragged
from tacit.dna.finder.evidence import motif_p_value
from tacit.dna.finder.models import (
    MAX_STEPS,
    STRENGTHS,
    Descended,
    choose_settings,
    count_strands,
    descend,
    make_problem,
    middle_settings,
    polish,
    read_widths,
    start_from_kmer,
)
from tacit.dna.finder.shapes import describe_motif, find_best_sites, find_copies
from tacit.dna.kmers import find_enriched_kmers, find_unexplained_kmers
from tacit.dna.motif.sites import MotifSites
from tacit.oracle import Schema
from tacit.runtime import Progress, Status
from tacit.runtime.checkpoint import Checkpoint, stored, stored_number
from tacit.runtime.loop import Deadline

FIRST_STARTS, NEXT_STARTS = 6, 3
"""K-mers that the first motif, and each later one, is started from."""

STEPS_AFTER_INTERRUPT = 5
"""Of a descent where nothing was learned yet when Ctrl-C came."""

MAX_SHIFT = 3
"""Letters that a motif is moved by, one after the other, if each step is better."""

SAME_OBJECTIVE = 0.01
"""Starts within this share of the best objective ended at the same motif."""


MOST_MOTIFS = 5
"""Motifs that ``n_motifs="auto"`` looks for."""


COMPARED = ("width", "n_motifs", "learner", "C", "strands", "overhang", "flank", "held_out", "alpha")
"""Settings of a finder that must be the same for a search to be resumed."""


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
        again = self._learn(problem, self.sequences, self.is_positive, [self.w], "all sequences")
        if self.finder.learner == "latent svm" and self.ended_early is None:
            again = polish(problem, self.sequences, self.is_positive, again, self.C, self.finder.n_jobs)
            self._note_end(again)
        self.w = again.w

    def _add_motif(self, own: Ragged, labels: Array) -> bool:
        """One more motif, and its p-value; False if there is no k-mer to begin from."""
        m = len(self.p_values) + 1
        problem = make_problem(self.finder, m, self.width)
        schema = problem.schema(own, labels)
        begins = [start_from_kmer(schema, letters, m - 1, self.w) for letters in self._kmers(own, labels, m)]
        if not begins:
            return False
        best = self._learn(problem, own, labels, begins, f"motif {m}")
        near = [objective <= best.objective * (1 + SAME_OBJECTIVE) for objective in best.objectives]
        if self.ended_early is None:
            best = self._try_shifts(problem, schema, own, labels, best, m - 1)
        if self.finder.learner == "latent svm" and self.ended_early is None:
            best = polish(problem, own, labels, best, self.C, self.finder.n_jobs)
            self._note_end(best)
        self.history.append(best.history)
        self.agreement.append(float(np.mean(near)))
        self.p_values.append(self._test_last(problem, schema, best.w))
        self.n_tested += 1
        self.schema, self.w, self.before = schema, best.w, self.w
        return True

    def _test_last(self, problem: MotifSites, schema: Schema, w: Array) -> float:
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

    def _kmers(self, sequences: Ragged, labels: Array, m: int) -> list[Array]:
        """K-mers to begin the m-th motif from."""
        strands = count_strands(self.finder)
        if m == 1 or self.w is None:
            kmers = find_enriched_kmers(sequences, labels, self.width, strands, FIRST_STARTS)
            return kmers or [np.zeros(min(self.width, 6), np.int64)]
        before = make_problem(self.finder, m - 1, self.width)
        score = before.bind(sequences, None, before.schema(sequences, labels)).label_scores(self.w)[:, 1]
        p = expit(score)
        weight = np.where(labels, 0.5 / labels.mean(), 0.5 / (1 - labels.mean()))
        return find_unexplained_kmers(sequences, weight * (labels - p), weight * p * (1 - p), strands, NEXT_STARTS)

    def _try_shifts(
        self, problem: MotifSites, schema: Schema, own: Ragged, labels: Array, found: Descended, motif: int
    ) -> Descended:
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
            moved = self._learn(problem, own, labels, [w], f"motif {motif + 1}, moved", MAX_STEPS // 2)
            if self.ended_early is not None or moved.objective >= best.objective:
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
            self.w = self._learn(problem, own, labels, [begin], "without copies").w

    def _keep(self, kept: Sequence[int], own: Ragged, labels: Array) -> MotifSites:
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

    def _learn(
        self,
        problem: MotifSites,
        sequences: Ragged,
        labels: Array,
        begins: list[Array],
        what: str,
        steps: int = MAX_STEPS,
    ) -> Descended:
        """Learn from these weights; after Ctrl-C only a few steps from the first, where nothing was learned before."""
        limits = {"n_jobs": self.finder.n_jobs, "callbacks": [self._teller(what, len(begins)), self.deadline]}
        if self.ended_early is None:
            try:
                found = descend(problem, sequences, labels, begins, self.C, max_iter=steps, **limits)
                self._note_end(found)
                return found
            except KeyboardInterrupt:
                self.ended_early = Status.INTERRUPTED
        return descend(problem, sequences, labels, begins[:1], self.C, max_iter=STEPS_AFTER_INTERRUPT, **limits)

    def _note_end(self, found: Descended) -> None:
        if found.status in (Status.INTERRUPTED, Status.STOPPED):
            self.ended_early = found.status

    def _teller(self, what: str, n_starts: int) -> Callable[[Any], None]:
        """A callback that shows on the terminal what is going on, and its objective."""
        start = 0

        def tell(line: Any) -> None:
            nonlocal start
            start += line.iteration == 1
            place = f", start {start} of {n_starts}" if n_starts > 1 else ""
            text = f"{what}{place}: objective {line.objective:.5g}"
            self.progress.show(time.perf_counter() - self.began, line.iteration, text)

        return tell


def open_checkpoint(search: Any) -> Checkpoint | None:
    """The file that the finder of a search asks for, if it does."""
    finder = search.finder
    if finder.checkpoint is None:
        return None
    fingerprint = {
        "sequences and labels": checksum(search.sequences.values, search.sequences.offsets, search.is_positive),
        "seed": search.seed,
        **{name: repr(getattr(finder, name)) for name in COMPARED},
    }
    return Checkpoint(finder.checkpoint, fingerprint, bool(finder.resume), every_step=True)


def keep_motifs(keeper: Checkpoint, search: Any) -> None:
    """Write the motifs of a search."""
    keeper.write(
        {
            "width": search.width,
            "C": search.C,
            "w": search.w,
            "before": np.zeros(0) if search.before is None else search.before,
            "p_values": np.array(search.p_values),
            "agreement": np.array(search.agreement),
            "n_tested": search.n_tested,
        }
    )


def restore_motifs(keeper: Checkpoint, search: Any, own: Ragged, labels: Any) -> bool:
    """Give a search the motifs of the file; False if there are none to resume from."""
    saved = keeper.read()
    if saved is None:
        return False
    with keeper.restoring():
        n = whole_number("the number of motifs", np.asarray(saved["p_values"]).size, 1, MOST_MOTIFS)
        search.p_values = stored(saved, "p_values", (n,)).tolist()
        search.agreement = stored(saved, "agreement", (n,)).tolist()
        low, high = read_widths(search.finder.width)
        search.width = int(stored_number(saved, "width", low))
        search.C = stored_number(saved, "C", 0.0)
        if not (search.width <= high and is_positive(search.C)):
            raise ValueError(f"width {search.width} and C {search.C} are none that were asked for")
        search.schema = make_problem(search.finder, n, search.width).schema(own, labels)
        search.w = stored(saved, "w", (search.schema.n_params,))
        if n > 1:
            schema = make_problem(search.finder, n - 1, search.width).schema(own, labels)
            search.before = stored(saved, "before", (schema.n_params,))
        search.n_tested = int(stored_number(saved, "n_tested", n))
        search.history = [[] for _ in search.p_values]
    return True
