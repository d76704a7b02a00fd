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
from tacit.dna.finder import models, widths
from tacit.dna.finder.evidence import motif_p_value, share_masks
from tacit.dna.finder.shapes import LEAST_SHARE, LONGEST_MOTIF, describe_motif, find_best_sites, find_copies
from tacit.dna.kmers import find_enriched_kmers, find_unexplained_kmers
from tacit.dna.motif.sites import MotifSites
from tacit.dna.sequences import ALPHABETS
from tacit.oracle import Schema
from tacit.runtime import Progress, Status
from tacit.runtime.checkpoint import Checkpoint, stored_array, stored_number
from tacit.runtime.loop import Deadline

FIRST_STARTS, NEXT_STARTS = 6, 3
"""K-mers that the first motif, and each later one, is started from."""

STEPS_AFTER_INTERRUPT = 5
"""Steps of a descent after Ctrl-C, where nothing was learned before."""

MAX_SHIFT = 3
"""Letters by which a motif is shifted, one at a time, while the objective falls."""

SAME_OBJECTIVE = 0.01
"""Starts within this share of the best objective ended at the same motif."""

MOST_MOTIFS = 5
"""Motifs that ``n_motifs="auto"`` looks for."""

COMPARED = ("alphabet", "width", "n_motifs", "learner", "C", "strands", "overhang", "flank", "held_out", "alpha")
"""Settings of a finder that must be the same for a search to be resumed."""


class MotifSearch:
    """The search of a `tacit.apps.MotifFinder`: `run` finds the motifs, `refit` learns them again from all sequences.

    Parameters
    ----------
    finder : has the settings, already checked
    sequences : letter codes, flank included
    is_positive, is_held_out : per sequence
    seed : of cross-validation
    deadline : when to stop

    Attributes
    ----------
    width, C : as given, or chosen by cross-validation
    schema, w : the model so far
    before, before_width : weights without its last motif, as they were when it was added, None if it is the first; and
        the width they had
    p_values, agreement, history : per motif, in the order in which they were found
    n_tested : motifs that were tested, including those that were dropped later
    ended_early : INTERRUPTED or STOPPED, None if neither happened
    """

    width: int
    C: float
    schema: Schema
    w: Array | None
    before: Array | None

    def __init__(
        self, finder: Any, sequences: Ragged, is_positive: Array, is_held_out: Array, seed: int, deadline: Deadline
    ) -> None:
        self.finder, self.sequences, self.is_positive = finder, sequences, is_positive
        self.train, self.test = np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
        self.own, self.labels = sequences[self.train], is_positive[self.train]
        self.seed, self.deadline = seed, deadline
        self.alphabet = ALPHABETS[finder.alphabet]
        self.progress, self.began = Progress(int(finder.verbose), None), time.perf_counter()
        self.w = self.before = None
        self.before_width = 0
        self.p_values: list[float] = []
        self.agreement: list[float] = []
        self.history: list[list[float]] = []
        self.n_tested = 0
        self.ended_early: Status | None = None

    def run(self) -> None:
        """Add motifs, learned from the training part and tested on the other, while they are significant."""
        keeper = self._open_checkpoint()
        if keeper is None or not self._restore_motifs(keeper):
            try:
                self.width, self.C = models.choose_settings(
                    self.finder, self.own, self.labels, self.seed, self.deadline
                )
            except KeyboardInterrupt:
                self.ended_early = Status.INTERRUPTED
                self.width, self.C = models.middle_settings(self.finder)
        most = MOST_MOTIFS if self.finder.n_motifs == "auto" else int(self.finder.n_motifs)
        while len(self.p_values) < most and (self.ended_early is None or not self.p_values):
            if self.p_values and self.finder.n_motifs == "auto" and not self._is_last_significant():
                break
            if not self._add_motif():
                break
            if self._needs_larger_C():
                self._restart()
                continue
            if keeper is not None:
                self._store_motifs(keeper)
        if self.finder.n_motifs == "auto":
            self._drop_redundant()

    def refit(self) -> None:
        """Learn the same motifs from all sequences."""
        assert self.w is not None
        problem = models.make_problem(self.finder, len(self.p_values), self.width)
        self.schema = problem.schema(self.sequences, self.is_positive)
        again = self._learn_from(self.sequences, self.is_positive, problem, self.w, "all sequences", models.MAX_STEPS)
        if self.finder.learner != "logistic" and self.ended_early is None:
            again = models.polish(problem, self.sequences, self.is_positive, again, self.C, self.finder.n_jobs)
            self._note_end(again)
        self.w = again.w

    def _add_motif(self) -> bool:
        """Add one motif and its p-value; False without a k-mer to start from."""
        m = len(self.p_values) + 1
        before = self.w, self.width
        problem = models.make_problem(self.finder, m, self.width)
        schema = problem.schema(self.own, self.labels)
        init = [models.start_from_kmer(schema, letters, m - 1, self.w) for letters in self._find_kmers(m)]
        if not init:
            return False
        ends = self._learn_starts(problem, init, m)
        near = [end.objective <= ends[0].objective * (1 + SAME_OBJECTIVE) for end in ends]
        if self.ended_early is None:
            ends[0] = self._try_shifts(problem, schema, ends[0], m - 1)
        best = ends[0]
        may_grow = self.finder.width == "auto" and not self.finder.flank  # letters of a flank look conserved
        if may_grow and self.ended_early is None:
            problem, schema, best = self._choose_grown(problem, schema, ends)
        if self.finder.learner != "logistic" and self.ended_early is None:
            best = models.polish(problem, self.own, self.labels, best, self.C, self.finder.n_jobs)
            self._note_end(best)
        self.history.append(best.history)
        self.agreement.append(float(np.mean(near)))
        self.p_values.append(self._test_last(problem, schema, best.w))
        self.n_tested += 1
        self.schema, self.w = schema, best.w
        self.before, self.before_width = before
        return True

    def _learn_starts(self, problem: MotifSites, init: list[Array], m: int) -> list[models.Descent]:
        """Where the starts end, the lowest objective first."""
        ends = []
        for number, w in enumerate(init, 1):
            ends.append(self._learn(problem, w, f"motif {m}" + f", start {number} of {len(init)}" * (len(init) > 1)))
            if self.ended_early is not None:
                break
        return sorted(ends, key=lambda end: end.objective)

    def _choose_grown(
        self, problem: MotifSites, schema: Schema, ends: list[models.Descent]
    ) -> tuple[MotifSites, Schema, models.Descent]:
        """Grow the last motif of the best start, and the models before it with it.

        Where it does not grow, another start that does may then be better: ten letters of a long motif are often not
        better than some that only fit the training part. A start that found the same sites, shifted, is left out.
        """
        first = best = self._grow(problem, schema, ends[0])
        for end in ends[1:]:
            if first[0].width != self.width or self.ended_early is not None:
                break
            if not self._overlap(problem, schema, ends[0], end):
                best = min(best, self._grow(problem, schema, end), key=lambda one: one[2].objective)
        if best[0].width != self.width:
            if self.w is not None:
                before = models.make_problem(self.finder, len(self.p_values), best[0].width)
                wider = before.schema(self.own, self.labels)
                self.w = widths.widen(self.schema, self.w, wider, widths.Extent(0, before.width, np.zeros(0)), -1)
                self.schema = wider
            self.width = best[0].width
        return best

    def _overlap(self, problem: MotifSites, schema: Schema, one: models.Descent, other: models.Descent) -> bool:
        """Whether most sites of the last motif of the other model, in positives, overlap those of the one."""
        sites = [find_best_sites(problem, schema, found.w, self.own).of_motif(-1) for found in (one, other)]
        first, second = (each.value[:, 0] > widths.least_score(each, self.labels) for each in sites)
        is_near = np.abs(sites[0].start - sites[1].start)[:, 0] < problem.width
        return int((is_near & first & second & self.labels).sum()) >= LEAST_SHARE * int((second & self.labels).sum())

    def _grow(
        self, problem: MotifSites, schema: Schema, best: models.Descent
    ) -> tuple[MotifSites, Schema, models.Descent]:
        """Widen or shift the last motif over conserved letters beside its sites, while those in held-out folds are."""
        longest = min(LONGEST_MOTIF, int(self.sequences.lengths.min()) - 1)
        for _ in range(widths.ROUNDS):
            sites = find_best_sites(problem, schema, best.w, self.own).of_motif(-1)
            extent = widths.find_extent(self.own, sites, self.labels, longest, self.alphabet)
            if extent is None or (extent.start >= 0 and extent.end <= problem.width):
                break
            p = widths.measure_growth(self.own, sites, self.labels, extent, self.seed, self.alphabet)
            if p >= widths.GROWTH_P_VALUE:
                break
            wider = models.make_problem(self.finder, problem.n_motifs, extent.width)
            wider_schema = wider.schema(self.own, self.labels)
            init = widths.widen(schema, best.w, wider_schema, extent, problem.n_motifs - 1)
            found = self._learn(wider, init, f"motif {problem.n_motifs}, wider")
            if self.ended_early is not None:
                break
            problem, schema = wider, wider_schema
            best = found._replace(history=[*best.history, *found.history])
        return problem, schema, best

    def _test_last(self, problem: MotifSites, schema: Schema, w: Array) -> float:
        """The p-value of the last motif on the held-out part.

        It is tested given the earlier motifs, both as they are now and as they were without it. Learned together, two
        motifs may share the letters of one, and each would then seem to add to the other.
        """
        labels = self.is_positive[self.test]
        held_out = share_masks(self.sequences[self.test], labels, self.seed, self.alphabet)
        value = find_best_sites(problem, schema, w, held_out).value
        given = value[:, :-1]
        if self.w is not None:
            before = models.make_problem(self.finder, len(self.p_values), self.width)
            given = np.hstack([given, find_best_sites(before, self.schema, self.w, held_out).value])
        return motif_p_value(value[:, -1], given, held_out, labels, models.count_strands(self.finder), self.alphabet)

    def _find_kmers(self, m: int) -> list[Array]:
        """K-mers from which the m-th motif starts."""
        sequences, labels, strands = self.own, self.labels, models.count_strands(self.finder)
        if m == 1 or self.w is None:
            kmers = find_enriched_kmers(sequences, labels, self.width, strands, FIRST_STARTS, self.alphabet)
            return kmers or [np.zeros(min(self.width, 6), np.int64)]
        before = models.make_problem(self.finder, m - 1, self.width)
        score = before.bind(sequences, None, before.schema(sequences, labels)).label_scores(self.w)[:, 1]
        p = expit(score)
        factor = np.where(labels, 0.5 / labels.mean(), 0.5 / (1 - labels.mean()))
        unexplained = factor * (labels - p), factor * p * (1 - p)
        return find_unexplained_kmers(sequences, *unexplained, strands, NEXT_STARTS, self.alphabet)

    def _try_shifts(self, problem: MotifSites, schema: Schema, best: models.Descent, motif: int) -> models.Descent:
        """The same model with the motif shifted by a few letters where that lowers the objective.

        A motif that is off by a letter is a local optimum, because the weights of letters outside it are 0.
        """
        for _ in range(MAX_SHIFT):
            w = best.w.copy()
            table = schema.views(w)["motif"][motif]
            strength = np.abs(table - table.mean(axis=1, keepdims=True)).sum(axis=1)
            step = -1 if strength[0] < strength[-1] else 1
            table[:] = np.roll(table, step, axis=0)
            table[-1 if step == -1 else 0] = table.mean(axis=1).mean()
            shifted = self._learn(problem, w, f"motif {motif + 1}, shifted", models.MAX_STEPS // 2)
            if self.ended_early is not None or shifted.objective >= best.objective:
                return best
            best = shifted._replace(history=[*best.history, *shifted.history])
        return best

    def _needs_larger_C(self) -> bool:
        """Whether the penalty keeps a motif too weak, which shows as a significant copy of it.

        Two copies of w / 2 have half the penalty of w, so they do what a larger C would do.
        """
        is_free = self.finder.n_motifs == self.finder.C == "auto" and self.ended_early is None
        if not is_free or models.STRENGTHS[-1] <= self.C or not self._is_last_significant():
            return False
        return bool(self._find_copies())

    def _restart(self) -> None:
        """Drop all motifs and start again with the next larger C."""
        self.C = min(C for C in models.STRENGTHS if C > self.C)
        self.w = self.before = None
        self.p_values, self.agreement, self.history = [], [], []

    def _find_copies(self) -> set[int]:
        assert self.w is not None
        n = len(self.p_values)
        sites = find_best_sites(models.make_problem(self.finder, n, self.width), self.schema, self.w, self.own)
        return find_copies(
            [describe_motif(self.own, sites, self.labels, m, alphabet=self.alphabet) for m in range(n)],
            sites,
            self.labels,
        )

    def _drop_redundant(self) -> None:
        """Drop the last motif if it is not significant, and copies of others; then learn the rest again."""
        if self.before is not None and not self._is_last_significant():
            self.width = self.before_width
            self._keep(range(len(self.p_values) - 1))
            self.w = self.before
        copies = self._find_copies()
        if copies:
            assert self.w is not None
            blocks = self.schema.views(self.w)
            kept = [m for m in range(len(self.p_values)) if m not in copies]
            blocks["motif"] = blocks["motif"][kept]
            problem = self._keep(kept)
            w = np.concatenate([block.ravel() for block in blocks.values()])
            self.w = self._learn(problem, w, "without copies").w

    def _keep(self, kept: Sequence[int]) -> MotifSites:
        """Drop all but these motifs; returns the problem of the rest, for which the caller sets `w`."""
        problem = models.make_problem(self.finder, len(kept), self.width)
        self.schema = problem.schema(self.own, self.labels)
        self.p_values = [self.p_values[m] for m in kept]
        self.agreement = [self.agreement[m] for m in kept]
        self.history = [self.history[m] for m in kept]
        return problem

    def _is_last_significant(self) -> bool:
        """Whether the last motif is significant, given how many were tested."""
        return self.p_values[-1] * self.n_tested < float(self.finder.alpha)

    def _learn(self, problem: MotifSites, init: Array, what: str, steps: int = models.MAX_STEPS) -> models.Descent:
        """Learn from the training part and these weights; after Ctrl-C only a few steps."""
        return self._learn_from(self.own, self.labels, problem, init, what, steps)

    def _learn_from(
        self, sequences: Ragged, labels: Array, problem: MotifSites, init: Array, what: str, steps: int
    ) -> models.Descent:
        limits = {"n_jobs": self.finder.n_jobs, "callbacks": [self._show_progress(what), self.deadline]}
        if self.ended_early is None:
            try:
                found = models.descend(problem, sequences, labels, init, self.C, max_iter=steps, **limits)
                self._note_end(found)
                return found
            except KeyboardInterrupt:
                self.ended_early = Status.INTERRUPTED
        return models.descend(problem, sequences, labels, init, self.C, max_iter=STEPS_AFTER_INTERRUPT, **limits)

    def _note_end(self, found: models.Descent) -> None:
        if found.status in (Status.INTERRUPTED, Status.STOPPED):
            self.ended_early = found.status

    def _show_progress(self, what: str) -> Callable[[Any], None]:
        """A callback that shows the objective on the terminal."""

        def show(line: Any) -> None:
            text = f"{what}: objective {line.objective:.5g}"
            self.progress.show(time.perf_counter() - self.began, line.iteration, text)

        return show

    # checkpoint

    def _open_checkpoint(self) -> Checkpoint | None:
        if self.finder.checkpoint is None:
            return None
        fingerprint = {
            "sequences and labels": checksum(self.sequences.values, self.sequences.offsets, self.is_positive),
            "seed": self.seed,
            **{name: repr(getattr(self.finder, name)) for name in COMPARED},
        }
        return Checkpoint(self.finder.checkpoint, fingerprint, bool(self.finder.resume), every_step=True)

    def _store_motifs(self, keeper: Checkpoint) -> None:
        before = np.zeros(0) if self.before is None else self.before
        per_motif = {"p_values": np.array(self.p_values), "agreement": np.array(self.agreement)}
        model = {"width": self.width, "C": self.C, "w": self.w, "before": before, "before_width": self.before_width}
        keeper.write({**model, **per_motif, "n_tested": self.n_tested})

    def _restore_motifs(self, keeper: Checkpoint) -> bool:
        """Restore the motifs of the checkpoint; False without one to resume from."""
        saved = keeper.read()
        if saved is None:
            return False
        with keeper.restoring():
            n = whole_number("the number of motifs", np.asarray(saved["p_values"]).size, 1, MOST_MOTIFS)
            self.p_values = stored_array(saved, "p_values", (n,)).tolist()
            self.agreement = stored_array(saved, "agreement", (n,)).tolist()
            low, high = models.read_widths(self.finder.width)
            high = LONGEST_MOTIF if self.finder.width == "auto" else high
            self.width, self.C = int(stored_number(saved, "width", low)), stored_number(saved, "C", 0.0)
            if not (self.width <= high and is_positive(self.C)):
                raise ValueError(f"width={self.width} and C={self.C} do not match the settings of the finder")
            self.schema = models.make_problem(self.finder, n, self.width).schema(self.own, self.labels)
            self.w = stored_array(saved, "w", (self.schema.n_params,))
            if n > 1:
                self.before_width = whole_number(
                    "before_width", int(stored_number(saved, "before_width", low)), low, high
                )
                schema = models.make_problem(self.finder, n - 1, self.before_width).schema(self.own, self.labels)
                self.before = stored_array(saved, "before", (schema.n_params,))
            self.n_tested = int(stored_number(saved, "n_tested", n))
            self.history = [[] for _ in self.p_values]
        return True
