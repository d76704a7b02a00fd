"""Motif after motif: begun from words, learned from one part of the sequences, tested on the other, refitted to all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from tacit.data.arrays import Array, checksum
from tacit.data.parameters import is_positive, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.dna.finder.descent import Descended, descend, polish
from tacit.dna.finder.evidence import motif_p_value
from tacit.dna.finder.shapes import LONGEST_MOTIF, describe_motif, find_best_sites, find_copies
from tacit.dna.motif.sites import MotifSites
from tacit.dna.words import enriched_words, unexplained_words
from tacit.oracle import Schema
from tacit.runtime import Progress, Status
from tacit.runtime.checkpoint import Checkpoint, stored, stored_number
from tacit.runtime.loop import Deadline

FIRST_STARTS, NEXT_STARTS = 6, 3
"""Words that the first motif, and each later one, is started from."""

MAX_STEPS, STEPS_AFTER_INTERRUPT = 80, 5
"""Of a descent; and of the first one, where nothing was learned yet when Ctrl-C came."""

MAX_SHIFT = 3
"""Letters that a motif is moved by, one after the other, if each step is better."""

SAME_OBJECTIVE = 0.01
"""Starts within this share of the best objective ended at the same motif."""

_ENDED_EARLY = (Status.INTERRUPTED, Status.STOPPED)

MOST_MOTIFS = 5
"""Motifs that ``n_motifs="auto"`` looks for."""

STRENGTHS = (300.0, 1000.0, 3000.0)
"""C that are tried."""

FOLDS, STARTS, STEPS = 3, 1, 40
"""Of cross-validation: folds, words that a motif is begun from, and steps of a descent."""

MAX_LEARNED_FROM = 2000
"""Sequences that cross-validation uses."""

WIDTH_STEP = 2
"""Letters between widths of a range that are tried."""

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


def read_widths(width: Any) -> tuple[int, int]:
    """The shortest and the longest width, of a number or a pair.

    >>> read_widths(10), read_widths((6, 14))
    ((10, 10), (6, 14))
    """
    if isinstance(width, tuple | list) and len(width) == 2:
        low = whole_number("width", width[0], 3, LONGEST_MOTIF)
        high = whole_number("width", width[1], 3, LONGEST_MOTIF)
        if low > high:
            raise ValueError(f"a range of widths goes from the shortest to the longest, got {shorten(width)}")
        return low, high
    one = whole_number("width", width, 3, LONGEST_MOTIF, remedy="or a pair such as (6, 14)")
    return one, one


def make_problem(finder: Any, n_motifs: int, width: int) -> MotifSites:
    """What a finder learns: a model of so many motifs."""
    overhang = min(int(finder.overhang), width - 1)
    return MotifSites(width, int(finder.composition_), finder.strands, n_motifs, overhang)


def count_strands(finder: Any) -> int:
    """Strands that a finder reads: 1 or 2."""
    return 1 if finder.strands == "one" else 2


def choose_settings(finder: Any, sequences: Ragged, labels: Array, seed: int, deadline: Deadline) -> tuple[int, float]:
    """C at the middle width, then the width, by the loss of one motif on sequences that it was not learned from."""
    widths, strengths = _choices(finder)
    if len(widths) == len(strengths) == 1:
        return widths[0], strengths[0]
    rng = np.random.default_rng(seed)
    if len(sequences) > MAX_LEARNED_FROM:
        rows = np.sort(rng.choice(len(sequences), MAX_LEARNED_FROM, replace=False))
        sequences, labels = sequences[rows], labels[rows]
    fold = rng.permutation(len(sequences)) % FOLDS
    width, C = middle_settings(finder)

    def loss(width: int, C: float) -> float:
        losses = [_fold_loss(finder, width, C, sequences, labels, fold == k, deadline) for k in range(FOLDS)]
        return float(np.mean(losses))

    if len(strengths) > 1:
        C = min(strengths, key=lambda C: loss(width, C))
    if len(widths) > 1:
        width = min(widths, key=lambda width: loss(width, C))
    return width, C


def middle_settings(finder: Any) -> tuple[int, float]:
    """Width and C in the middle of what is allowed."""
    widths, strengths = _choices(finder)
    return widths[len(widths) // 2], strengths[len(strengths) // 2]


def _choices(finder: Any) -> tuple[list[int], tuple[float, ...]]:
    low, high = read_widths(finder.width)
    widths = list(range(low, high + 1, WIDTH_STEP))
    return widths, STRENGTHS if finder.C == "auto" else (float(finder.C),)


def _fold_loss(
    finder: Any, width: int, C: float, sequences: Ragged, labels: Array, is_out: Array, deadline: Deadline
) -> float:
    """The mean loss on a fold of a motif learned from the others; infinite if there was no time."""
    train, test = np.flatnonzero(~is_out), np.flatnonzero(is_out)
    problem = make_problem(finder, 1, width)
    own, own_labels = sequences[train], labels[train]
    schema = problem.schema(own, own_labels)
    oracle = problem.bind(own, own_labels, schema)
    found = []
    for letters in enriched_words(own, own_labels, width, count_strands(finder), STARTS):
        w = np.zeros(schema.n_params)
        begin = with_word(w, letters, schema.views(w), 0)
        found.append(descend(oracle, own_labels, begin, C, max_iter=STEPS, deadline=deadline, n_jobs=finder.n_jobs))
        if found[-1].status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if found[-1].status is Status.STOPPED:
            return np.inf
    if not found:
        return np.inf
    w = min(found, key=lambda one: one.objective).w
    score = problem.bind(sequences[test], None, schema).label_scores(w)[:, 1]
    held = labels[test]
    loss = np.logaddexp(0.0, np.where(held, -score, score))
    return float(sum(loss[held == kind].mean() for kind in (True, False) if (held == kind).any()))


def with_word(w: Array, letters: Array, blocks: dict[str, Array], motif: int, height: float = 0.5) -> Array:
    """The weights with a word in the middle of a motif: its letters speak for a site, all others against."""
    table = blocks["motif"][motif]
    places = (len(table) - letters.size) // 2 + np.arange(letters.size)
    table[:] = 0.0
    table[places] = -height
    table[places, letters] = height
    return w


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
