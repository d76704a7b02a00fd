"""The parts of feature templates: types, distances, matches, agreement, quotations and words of pairs of mentions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.text.coreference import lexicon
from tacit.text.coreference.mentions import FORMS, GENDERS, N_PRONOUNS, NUMBERS, ROLES, TYPES, describe, number_of_word
from tacit.text.documents import Document, previous_same

MATCHES = ("none", "part", "head", "core", "without article", "exact")
NESTINGS = ("apart", "earlier holds later", "later holds earlier", "overlap", "same span")
NEARNESS = ("apart", "apposition", "copula", "next to each other", "one word between")
QUOTES = (
    "both in the text", "same turn", "answer", "next turn", "second next", "other turn", "earlier quoted",
    "later quoted",
)  # fmt: skip
SPEAKERS = (
    "nothing known", "earlier speaks later's turn", "later speaks earlier's turn", "same speaker",
    "speakers of one pronoun", "other speaker", "earlier listens to later's turn", "later listens to earlier's turn",
    "speaker has earlier's head", "listener has earlier's head", "earlier's speaker listens", "earlier is called",
)  # fmt: skip
TITLES = ("none", "same title", "one title", "other title")
MODIFIERS = ("same words", "earlier has more", "later has more", "both have others", "no match")
YES = ("no", "yes")
COARSE = (*TYPES[:N_PRONOUNS], "name", "noun")
SENTENCES = ("0", "1", "2", "3", "4-5", "6-10", "11-20", "over 20")
DISTANCES = ("1", "2", "3", "4", "5-7", "8-11", "12-20", "21-40", "41-80", "over 80")
COUNTS = ("0", "1", "2", "3-4", "5-8", "9-16", "over 16")

SENTENCE_CUTS = np.array([1, 2, 3, 4, 6, 11, 21])
DISTANCE_CUTS = np.array([2, 3, 4, 5, 8, 12, 21, 41, 81])
COUNT_CUTS = np.array([1, 2, 3, 5, 9, 17])
NEAR = (*DISTANCES[:4], "over 4")


class Part(NamedTuple):
    """One part of a template: a code per row, and the names of the codes; None for words."""

    codes: Array
    names: tuple[str, ...] | None


class PairParts:
    """The parts of templates for any pair of mentions of one document."""

    def __init__(self, document: Document) -> None:
        m = self.mentions = describe(document)
        is_pronoun = m.kind < N_PRONOUNS
        is_name = m.kind <= TYPES.index("titled name")
        self.gender = np.where(m.gender == 0, m.company, m.gender)
        self.coarse = np.where(is_pronoun, m.kind, np.where(is_name, N_PRONOUNS, N_PRONOUNS + 1))
        self.word = np.where(is_pronoun, m.word, m.kind)
        self.previous_head, self.previous_coarse = previous_same(m.head), previous_same(self.coarse)
        self.heads_before, self.heads = _counts(m.head)
        self.cores = _Cores(np.where(is_pronoun, 0, m.core), m.words)
        self.best_match, self.best_gap = self._best_matches()
        self.nested = _is_nested(m.end)
        self.compatible_before = self._compatible_counts(np.ones(m.kind.size, dtype=bool))
        self.rivals_before = self._compatible_counts(~is_pronoun)
        self.subjects_before = self._compatible_counts(m.role == ROLES.index("subject"))
        self.kinds_before = _cumulate(self.coarse == np.arange(len(COARSE))[:, None])

    def of_new(self, k: Array) -> dict[str, Part]:
        """The parts of mentions that begin a cluster."""
        m = self.mentions
        before = self.compatible_before[self._class(k), k]
        return {
            **self._of_each(k),
            "kind": Part(self.coarse[k], COARSE),
            "inside of another": _is(self.nested[k]),
            "mentions before": Part(np.searchsorted(DISTANCE_CUTS, k, "right"), DISTANCES),
            "best match": Part(self.best_match[k], MATCHES),
            "mentions to it": Part(np.searchsorted(DISTANCE_CUTS, self.best_gap[k], "right"), DISTANCES),
            "compatible before": Part(np.searchsorted(COUNT_CUTS, before, "right"), COUNTS),
            "first word": Part(m.first[k], None),
            "word before": Part(m.before[k], None),
            "word behind": Part(m.after[k], None),
        }

    def of_pairs(self, j: Array, i: Array) -> dict[str, Part]:
        """The parts of pairs of a later mention j and an earlier mention i."""
        m = self.mentions
        sentences = m.sentence[j] - m.sentence[i]
        alike = self._between(self.kinds_before, self.coarse[i], j, i)
        return {
            **{f"earlier {name}": part for name, part in self._of_each(i).items()},
            **{f"later {name}": part for name, part in self._of_each(j).items()},
            "earlier": Part(self.coarse[i], COARSE),
            "later": Part(self.coarse[j], COARSE),
            "later is a pronoun": _is(m.kind[j] < N_PRONOUNS),
            "sentences apart": Part(np.searchsorted(SENTENCE_CUTS, sentences, "right"), SENTENCES),
            "same sentence": _is(sentences == 0),
            "mentions apart": Part(np.searchsorted(DISTANCE_CUTS, j - i, "right"), DISTANCES),
            "near": Part(np.minimum(j - i, 5) - 1, NEAR),
            "match": Part(self._match(j, i), MATCHES),
            "titles": Part(self._titles(j, i), TITLES),
            "modifiers": Part(self._modifiers(j, i), MODIFIERS),
            "nesting": Part(self._nesting(j, i), NESTINGS),
            "nearness": Part(self._nearness(j, i), NEARNESS),
            "quotations": Part(self._quotations(j, i), QUOTES),
            "speakers": Part(self._speakers(j, i), SPEAKERS),
            "compatible between": Part(self._between(self.compatible_before, self._class(j), j, i), COUNTS),
            "names and nouns between": Part(self._between(self.rivals_before, self._class(j), j, i), COUNTS),
            "subjects between": Part(self._between(self.subjects_before, self._class(j), j, i), COUNTS),
            "of the earlier kind between": Part(alike, COUNTS),
            "closest of its head": _is(self.previous_head[j] == i),
            "closest of its kind": _is(alike == 0),
            "closest of the later kind": _is(self.previous_coarse[j] == i),
            "earlier head so far": Part(np.searchsorted(COUNT_CUTS, self.heads_before[i], "right"), COUNTS),
            "earlier head in all": Part(np.searchsorted(COUNT_CUTS, self.heads[i] - 1, "right"), COUNTS),
            "first of earlier": Part(m.first[i], None),
            "first of later": Part(m.first[j], None),
            "word before later": Part(m.before[j], None),
            "word behind earlier": Part(m.after[i], None),
            "word behind later": Part(m.after[j], None),
        }

    def _of_each(self, k: Array) -> dict[str, Part]:
        """The parts of single mentions: new ones, and both of a pair."""
        m = self.mentions
        return {
            "type": Part(m.kind[k], TYPES),
            "form": Part(m.form[k], FORMS),
            "role": Part(m.role[k], ROLES),
            "gender": Part(self.gender[k], GENDERS),
            "number": Part(m.number[k], NUMBERS),
            "quoted": _is(m.turn[k] >= 0),
            "opens": _is(m.opens[k]),
            "word": Part(self.word[k], None),
            "head": Part(m.head[k], None),
        }

    def _class(self, later: Array) -> Array:
        """The class of gender and number of the later mention."""
        return np.asarray(self.gender[later] * len(NUMBERS) + self.mentions.number[later])

    def _compatible_counts(self, among: Array) -> Array:
        """(classes, n + 1): how many of these mentions before each agree with a class of gender and number."""
        number = self.mentions.number
        rows = []
        for gender in range(len(GENDERS)):
            for count in range(len(NUMBERS)):
                fits = (gender == 0) | (self.gender == 0) | (self.gender == gender)
                fits &= (count == 0) | (number == 0) | (number == count)
                rows.append(fits & among)
        return _cumulate(np.array(rows))

    def _between(self, counts: Array, row: Array, j: Array, i: Array) -> Array:
        return np.asarray(np.searchsorted(COUNT_CUTS, counts[row, j] - counts[row, i + 1], "right"))

    def _match(self, j: Array, i: Array) -> Array:
        m, core = self.mentions, self.cores.index
        same_word = (m.kind[j] < N_PRONOUNS) == (m.kind[i] < N_PRONOUNS)
        level = self.cores.shared[core[j], core[i]].astype(np.int64)
        level = np.where((m.head[j] == m.head[i]) & (level < 2), 2, level)
        level = np.where((m.core[j] == m.core[i]) & (level < 3), 3, level)
        level = np.where((m.bare[j] == m.bare[i]) & (level < 4), 4, level)
        level = np.where(m.full[j] == m.full[i], 5, level)
        return np.where(same_word, level, 0)

    def _best_matches(self) -> tuple[Array, Array]:
        """The best match of every mention with an earlier one, and the distance to that."""
        m = self.mentions
        positions = np.arange(m.kind.size)
        best, gap = self.cores.share_with_earlier().astype(np.int64), np.zeros(positions.size, dtype=np.int64)
        for level, keys in ((2, m.head), (3, m.core), (4, m.bare), (5, m.full)):
            before = previous_same(keys)
            best = np.where(before >= 0, level, best)
            gap = np.where(before >= 0, positions - before, gap)
        return best, gap

    def _nesting(self, j: Array, i: Array) -> Array:
        start, end = self.mentions.start, self.mentions.end
        overlap = start[j] < end[i]
        holds, held = end[j] <= end[i], (start[i] == start[j]) & (end[i] <= end[j])
        return np.where(overlap, np.where(holds & held, 4, np.where(holds, 1, np.where(held, 2, 3))), 0)

    def _nearness(self, j: Array, i: Array) -> Array:
        m = self.mentions
        gap = m.start[j] - m.end[i]
        comma, copulas = number_of_word(","), np.array([number_of_word(w) for w in sorted(lexicon.COPULAS)])
        near = np.where(gap == 0, 3, np.where(gap == 1, 4, 0))
        near = np.where((gap >= 1) & (gap <= 3) & np.isin(m.after[i], copulas), 2, near)
        return np.where((gap == 1) & (m.after[i] == comma), 1, near)

    def _quotations(self, j: Array, i: Array) -> Array:
        m = self.mentions
        t = m.turn
        step = t[j] - t[i]
        both = np.where(step == 0, 1, np.where(step == 1, np.where(m.answers[j], 2, 3), np.where(step == 2, 4, 5)))
        return np.where((t[i] < 0) & (t[j] < 0), 0, np.where(t[j] < 0, 6, np.where(t[i] < 0, 7, both)))

    def _speakers(self, j: Array, i: Array) -> Array:
        m = self.mentions
        speaks_j, speaks_i, hears_j, hears_i = m.speaker[j], m.speaker[i], m.listener[j], m.listener[i]

        def is_like(a: Array, b: Array) -> Array:
            """Whether two known mentions have the same head that is not a pronoun."""
            return np.asarray((a >= 0) & (b >= 0) & (m.head[a] == m.head[b]) & (m.kind[a] >= N_PRONOUNS))

        known = (speaks_j >= 0) & (speaks_i >= 0)
        unsure = known & (m.head[speaks_j] == m.head[speaks_i])
        relation = np.where(known, np.where(unsure, 4, 5), 0)
        relation = np.where((known & (speaks_j == speaks_i)) | is_like(speaks_j, speaks_i), 3, relation)
        relation = np.where((speaks_i >= 0) & ((hears_j == speaks_i) | is_like(hears_j, speaks_i)), 10, relation)
        relation = np.where(is_like(hears_j, i), 9, relation)
        relation = np.where(is_like(speaks_j, i), 8, relation)
        relation = np.where((m.vocative[i] > 0) & (m.turn[i] == m.turn[j]), 11, relation)
        relation = np.where((hears_j == i) & (hears_j >= 0), 6, relation)
        relation = np.where((hears_i == j) & (hears_i >= 0), 7, relation)
        relation = np.where((speaks_i == j) & (speaks_i >= 0), 2, relation)
        return np.where((speaks_j == i) & (speaks_j >= 0), 1, relation)

    def _titles(self, j: Array, i: Array) -> Array:
        a, b = self.mentions.title[i], self.mentions.title[j]
        return np.where((a == 0) & (b == 0), 0, np.where(a == b, 1, np.where((a == 0) | (b == 0), 2, 3)))

    def _modifiers(self, j: Array, i: Array) -> Array:
        m, core = self.mentions, self.cores.index
        relation = self.cores.relation[core[j], core[i]].astype(np.int64)
        return np.where((m.head[i] == m.head[j]) & (m.kind[i] >= N_PRONOUNS) & (m.kind[j] >= N_PRONOUNS), relation, 4)


class _Cores:
    """The words of the cores of mentions, compared for every pair of different cores: O(cores²) bytes.

    Parameters
    ----------
    keys : one number per mention, the same for the same core; 0 for mentions that match nothing
    words : the words of every core
    """

    def __init__(self, keys: Array, words: list[frozenset[str]]) -> None:
        different, self.first, self.index = np.unique(keys, return_index=True, return_inverse=True)
        sets = [
            words[m] if key else frozenset() for key, m in zip(different.tolist(), self.first.tolist(), strict=True)
        ]
        self.shared = np.zeros((len(sets), len(sets)), dtype=bool)
        self.relation = np.zeros((len(sets), len(sets)), dtype=np.int8)  # [later, earlier], an index into MODIFIERS
        owners: dict[str, list[int]] = {}
        for number, own in enumerate(sets):
            for word in own:
                owners.setdefault(word, []).append(number)
        for together in owners.values():
            for a in together:
                for b in together:
                    self.shared[a, b] = True
                    if sets[a] != sets[b]:
                        self.relation[a, b] = 1 if sets[b] > sets[a] else 2 if sets[a] > sets[b] else 3

    def share_with_earlier(self) -> Array:
        """Whether an earlier mention shares a word of the core."""
        n = self.index.size
        earliest = np.where(self.shared, self.first, n).min(axis=1, initial=n)
        return np.asarray(earliest[self.index] < np.arange(n))


def _is(holds: Array) -> Part:
    """A part that is yes or no."""
    return Part(np.asarray(holds).astype(np.int64), YES)


def _cumulate(flags: Array) -> Array:
    """(rows, n + 1): how many of the entries before each are true."""
    return np.pad(np.cumsum(flags, axis=1, dtype=np.int64), ((0, 0), (1, 0)))


def _counts(keys: Array) -> tuple[Array, Array]:
    """How many earlier mentions, and how many in all, have the same key."""
    _, index, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(keys, kind="stable")
    before = np.empty(keys.size, dtype=np.int64)
    before[order] = np.arange(keys.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return before, np.asarray(counts[index])


def _is_nested(end: Array) -> Array:
    """Whether a mention lies inside an earlier one."""
    reach = np.concatenate([[0], np.maximum.accumulate(end)[:-1]]) if end.size else end
    return np.asarray(reach >= end)
