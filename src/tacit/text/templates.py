"""Indicator templates of pairs of mentions, from text alone: each is a column of a table, each value a feature.

The features follow Ng & Cardie (2002), Bengtson & Roth (2008) and Durrett & Klein (2013): types, distances, string
matches, agreement, quotations, and the words themselves. Values of few kinds are counted; words are hashed, so that
nothing has to be learned from the data and a table has the same columns everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array
from tacit.text import lexicon
from tacit.text.documents import Document
from tacit.text.mentions import FORMS, GENDERS, N_PRONOUNS, NUMBERS, TYPES, describe, number_of_word

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


class Part(NamedTuple):
    """One ingredient of a template: a name, a code per row, and what the codes mean; words have no list of names."""

    name: str
    codes: Array
    names: tuple[str, ...] | None


class Column(NamedTuple):
    """A template of pairs and of new mentions in one column, whose values are those of the former, then the latter."""

    name: str
    buckets: int
    pair: tuple[Part, ...]
    new: tuple[Part, ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of values for pairs and for new mentions."""
        return _size(self.pair, self.buckets), _size(self.new, self.buckets)

    def values(self) -> tuple[Array, Array]:
        """The values of pairs, and of new mentions, from 1."""
        pair, _ = self.sizes
        return 1 + _mix(self.pair, self.buckets), 1 + pair + _mix(self.new, self.buckets)


def _size(parts: tuple[Part, ...], buckets: int) -> int:
    if not parts:
        return 0
    if any(part.names is None for part in parts):
        return buckets
    return int(np.prod([len(part.names or ()) for part in parts]))


def _mix(parts: tuple[Part, ...], buckets: int) -> Array:
    """One number from the codes of all parts: counted where every part has few values, else hashed."""
    if not parts:
        return np.full(0, -1)
    if all(part.names is not None for part in parts):
        code = np.zeros(len(parts[0].codes), dtype=np.int64)
        for part in parts:
            code = code * len(part.names or ()) + part.codes
        return code
    mixed = np.full(len(parts[0].codes), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for part in parts:
        mixed ^= part.codes.astype(np.uint64)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(buckets)).astype(np.int64)


class PairTemplates:
    """The templates of one document, for any of its pairs.

    Parameters
    ----------
    document : the text and its mentions
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        m = self.mentions = describe(document)
        n = len(document)
        self.gender = np.where(m.gender == 0, m.company, m.gender)
        is_pronoun = m.kind < N_PRONOUNS
        self.coarse = np.where(
            is_pronoun, m.kind, np.where(m.kind <= TYPES.index("titled name"), N_PRONOUNS, N_PRONOUNS + 1)
        )
        self.word = np.where(is_pronoun, m.word, m.kind)
        self.in_quote = (m.turn >= 0).astype(np.int64)
        self.previous_head = _previous(m.head, m.kind)
        self.previous_coarse = _previous(self.coarse, m.kind)
        self.order = _previous_count(m.head)
        _, place, counts = np.unique(m.head, return_inverse=True, return_counts=True)
        self.count = counts[place]
        self.match_of, self.modifier_of = _core_matches(m.core, m.words, is_pronoun)
        self.best_match, self.best_gap = self._best_matches()
        self.nested = _is_nested(m.start, m.end)
        self.compatible_before = self._compatible_counts(np.ones(n, dtype=bool))
        self.rivals_before = self._compatible_counts(~is_pronoun)
        self.kinds_before = (
            np.concatenate(
                [
                    np.zeros((len(COARSE), 1), np.int64),
                    np.cumsum(self.coarse == np.arange(len(COARSE))[:, None], axis=1),
                ],
                axis=1,
            )
            if n
            else np.zeros((len(COARSE), 1), np.int64)
        )

    def rows(self, later: Array, earlier: Array) -> Array:
        """The values of pairs; a pair of a mention with itself stands for "new"."""
        is_new = later == earlier
        columns = self.columns(later[~is_new], earlier[~is_new], later[is_new])
        table = np.zeros((later.size, len(columns)), dtype=np.uint16)
        for t, column in enumerate(columns):
            pair, new = column.values()
            if column.pair:
                table[~is_new, t] = pair
            if column.new:
                table[is_new, t] = new
        return table

    def columns(self, j: Array, i: Array, k: Array) -> list[Column]:
        """All templates of the pairs (later j, earlier i) and the new mentions k."""
        m = self.mentions
        kind_j, kind_i, kind_k = (
            Part(name, m.kind[x], TYPES) for name, x in (("later", j), ("earlier", i), ("type", k))
        )
        coarse_j, coarse_i = (Part(name, self.coarse[x], COARSE) for name, x in (("later", j), ("earlier", i)))
        sentences = Part(
            "sentences apart", np.searchsorted(SENTENCE_CUTS, m.sentence[j] - m.sentence[i], "right"), SENTENCES
        )
        distance = Part("mentions apart", np.searchsorted(DISTANCE_CUTS, j - i, "right"), DISTANCES)
        match = Part("match", self._match(j, i), MATCHES)
        so_far = Part("mentions before", np.searchsorted(DISTANCE_CUTS, k, "right"), DISTANCES)
        best = Part("best match before", self.best_match[k], MATCHES)
        gap = Part("mentions to it", np.searchsorted(DISTANCE_CUTS, self.best_gap[k], "right"), DISTANCES)
        gender_j, gender_i, gender_k = (
            Part(name, self.gender[x], GENDERS)
            for name, x in (("later gender", j), ("earlier gender", i), ("gender", k))
        )
        number_j, number_i, number_k = (
            Part(name, m.number[x], NUMBERS) for name, x in (("later number", j), ("earlier number", i), ("number", k))
        )
        word_j, word_i, word_k = (
            Part(name, self.word[x], None) for name, x in (("later word", j), ("earlier word", i), ("word", k))
        )
        head_j, head_i, head_k = (
            Part(name, m.head[x], None) for name, x in (("later head", j), ("earlier head", i), ("head", k))
        )
        quoted_j, quoted_k = Part("later quoted", self.in_quote[j], YES), Part("quoted", self.in_quote[k], YES)
        form_j, form_i, form_k = (
            Part(name, m.form[x], FORMS) for name, x in (("later form", j), ("earlier form", i), ("form", k))
        )
        opens_j, opens_i, opens_k = (
            Part(name, m.opens[x].astype(np.int64), YES)
            for name, x in (("later opens", j), ("earlier opens", i), ("opens its sentence", k))
        )
        same_sentence = Part("same sentence", (m.sentence[i] == m.sentence[j]).astype(np.int64), YES)
        near = Part("mentions apart", np.minimum(j - i, 5) - 1, (*DISTANCES[:4], "over 4"))
        return [
            Column("types", 0, (kind_i, kind_j), (kind_k,)),
            Column("types and sentences", 0, (coarse_i, kind_j, sentences), (kind_k, so_far)),
            Column("distance", 0, (kind_j, distance, quoted_j), (kind_k, quoted_k, opens_k)),
            Column("match and types", 0, (match, kind_i, kind_j), (kind_k, best)),
            Column("match and distance", 0, (match, distance, coarse_j), (Part("kind", self.coarse[k], COARSE), best, gap)),
            Column("agreement", 0, (gender_i, gender_j, number_i, number_j, Part("later is a pronoun", (m.kind[j] < N_PRONOUNS).astype(np.int64), YES)), (kind_k, gender_k, number_k)),
            Column("pronouns", 4096, (word_i, word_j, quoted_j), (word_k, quoted_k)),
            Column("pronoun and gender", 4096, (word_j, gender_i, number_i, sentences), (word_k, so_far)),
            Column("forms", 0, (form_i, form_j, coarse_j, same_sentence), (form_k, quoted_k)),
            Column("nesting", 0, (Part("nesting", self._nesting(j, i), NESTINGS), coarse_i, kind_j), (kind_k, Part("inside of another", self.nested[k], YES))),
            Column("nearness", 0, (Part("nearness", self._nearness(j, i), NEARNESS), coarse_i, coarse_j), ()),
            Column("quotations", 0, (Part("quotations", self._quotations(j, i), QUOTES), coarse_i, coarse_j), ()),
            Column("speakers", 0, (Part("speakers", self._speakers(j, i), SPEAKERS), coarse_i, coarse_j), ()),
            Column("compatible between", 0, (Part("compatible between", self._between(self.compatible_before, self._class(j), j, i), COUNTS), kind_j, coarse_i), (Part("compatible before", np.searchsorted(COUNT_CUTS, self.compatible_before[self._class(k), k], "right"), COUNTS), kind_k)),
            Column("rivals between", 0, (Part("names and nouns between", self._between(self.rivals_before, self._class(j), j, i), COUNTS), coarse_i, coarse_j, same_sentence), ()),
            Column("forms and distance", 0, (form_i, form_j, near, sentences, opens_i), ()),
            Column("alike between", 0, (Part("of the earlier type between", self._between(self.kinds_before, self.coarse[i], j, i), COUNTS), coarse_i, coarse_j), ()),
            Column("closest", 0, (Part("closest of its head", (self.previous_head[j] == i).astype(np.int64), YES), Part("closest of its type", (self._between(self.kinds_before, self.coarse[i], j, i) == 0).astype(np.int64), YES), Part("closest of the later type", (self.previous_coarse[j] == i).astype(np.int64), YES), coarse_i, coarse_j), ()),
            Column("heads", 32768, (head_i, head_j), (head_k,)),
            Column("later head", 8192, (head_j, match), (head_k, best)),
            Column("earlier head", 8192, (head_i, coarse_j), (Part("first word", m.first[k], None), kind_k)),
            Column("word before", 8192, (Part("word before later", m.before[j], None), coarse_i, coarse_j), (Part("word before", m.before[k], None), kind_k)),
            Column("word behind", 8192, (Part("word behind later", m.after[j], None), coarse_i, coarse_j), (Part("word behind", m.after[k], None), kind_k)),
            Column("first words", 4096, (Part("first of earlier", m.first[i], None), Part("first of later", m.first[j], None), match), (Part("first word", m.first[k], None), best)),
            Column("openings", 0, (opens_i, opens_j, sentences, coarse_i, coarse_j), ()),
            Column("frequency", 0, (Part("earlier's head so far", np.searchsorted(COUNT_CUTS, self.order[i], "right"), COUNTS), coarse_i, kind_j), ()),
            Column("frequency in all", 0, (Part("mentions of the earlier head", np.searchsorted(COUNT_CUTS, self.count[i] - 1, "right"), COUNTS), Part("later gender", self.gender[j], GENDERS), coarse_i, coarse_j), ()),
            Column("context", 16384, (Part("word before later", m.before[j], None), word_i, form_j, same_sentence, near), ()),
            Column("titles", 0, (Part("titles", self._titles(j, i), TITLES), match, coarse_i, coarse_j), ()),
            Column("modifiers", 0, (Part("modifiers", self._modifiers(j, i), MODIFIERS), kind_i, kind_j), ()),
            Column("words behind both", 4096, (Part("behind earlier", m.after[i], None), Part("behind later", m.after[j], None)), ()),
        ]  # fmt: skip

    def explain(self, later: int, earlier: int) -> list[tuple[str, str]]:
        """The templates of one pair in words: names, and what they hold."""
        pair = np.array([later]), np.array([earlier])
        nothing = np.zeros(0, dtype=np.int64)
        columns = self.columns(nothing, nothing, pair[0]) if later == earlier else self.columns(*pair, nothing)
        words = {number_of_word(w): w for w in {token.lower() for token in self.document.tokens}}
        found = []
        for column in columns:
            parts = column.new if later == earlier else column.pair
            found.append((column.name, ", ".join(f"{part.name}: {_told(part, words)}" for part in parts)))
        return found

    def _class(self, later: Array) -> Array:
        """The class by which mentions between are compared with the later one: its gender and number."""
        return np.asarray(self.gender[later] * len(NUMBERS) + self.mentions.number[later])

    def _compatible_counts(self, among: Array) -> Array:
        """(classes, n + 1): how many of these mentions before each are no contradiction to a class of gender and
        number."""
        number = self.mentions.number
        rows = []
        for gender in range(len(GENDERS)):
            for count in range(len(NUMBERS)):
                fits = (gender == 0) | (self.gender == 0) | (self.gender == gender)
                fits &= (count == 0) | (number == 0) | (number == count)
                rows.append(np.concatenate([[0], np.cumsum(fits & among)]))
        return np.array(rows, dtype=np.int64)

    def _between(self, counts: Array, row: Array, j: Array, i: Array) -> Array:
        return np.searchsorted(COUNT_CUTS, counts[row, j] - counts[row, i + 1], "right")

    def _match(self, j: Array, i: Array) -> Array:
        m = self.mentions
        same_word = (m.kind[j] < N_PRONOUNS) == (m.kind[i] < N_PRONOUNS)
        level = self.match_of[j, i]
        level = np.where((m.head[j] == m.head[i]) & (level < 2), 2, level)
        level = np.where((m.core[j] == m.core[i]) & (level < 3), 3, level)
        level = np.where((m.bare[j] == m.bare[i]) & (level < 4), 4, level)
        level = np.where(m.full[j] == m.full[i], 5, level)
        return np.where(same_word, level, 0)

    def _best_matches(self) -> tuple[Array, Array]:
        """The best match of every mention with one before it, and how far back that is."""
        n = len(self.document)
        best, gap = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        m = self.mentions
        for level, keys in ((2, m.head), (3, m.core), (4, m.bare), (5, m.full)):
            before = _previous(keys, m.kind)
            best = np.where(before >= 0, level, best)
            gap = np.where(before >= 0, np.arange(n) - before, gap)
        part = np.tril(self.match_of > 0, -1).any(axis=1) if n else np.zeros(0, dtype=bool)
        return np.where((best == 0) & part, 1, best), gap

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
            """Whether two mentions, where there are two, have the same head, and no pronoun for it."""
            return (a >= 0) & (b >= 0) & (m.head[a] == m.head[b]) & (m.kind[a] >= N_PRONOUNS)

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
        m = self.mentions
        relation = self.modifier_of[j, i]
        return np.where((m.head[i] == m.head[j]) & (m.kind[i] >= N_PRONOUNS) & (m.kind[j] >= N_PRONOUNS), relation, 4)


def _told(part: Part, words: dict[int, str]) -> str:
    code = int(part.codes[0])
    if part.names is not None:
        return part.names[code]
    return repr(words[code]) if code in words else TYPES[code] if code < len(TYPES) else "several words"


def _previous(keys: Array, kind: Array) -> Array:
    """The closest mention before with the same key, −1 where there is none."""
    order = np.lexsort((np.arange(keys.size), keys))
    before = np.full(keys.size, -1)
    same = keys[order][1:] == keys[order][:-1]
    before[order[1:][same]] = order[:-1][same]
    return before


def _previous_count(keys: Array) -> Array:
    """How many mentions before have the same key."""
    order = np.argsort(keys, kind="stable")
    ranks = np.arange(keys.size)
    begins = np.concatenate([[True], np.diff(keys[order]) != 0])[: keys.size]
    first = np.maximum.accumulate(np.where(begins, ranks, 0))
    count = np.empty(keys.size, dtype=np.int64)
    count[order] = ranks - first
    return count


def _core_matches(core: Array, words: list[frozenset[str]], is_pronoun: Array) -> tuple[Array, Array]:
    """Two (n, n) tables by cores: whether two share a word, and how their words differ (`MODIFIERS`)."""
    n = len(words)
    keys, first, place = np.unique(core, return_index=True, return_inverse=True)
    sets = [words[f] for f in first.tolist()]
    shared = np.zeros((len(sets), len(sets)), dtype=np.int64)
    differ = np.zeros((len(sets), len(sets)), dtype=np.int64)
    owners: dict[str, list[int]] = {}
    for number, own in enumerate(sets):
        for word in own:
            owners.setdefault(word, []).append(number)
    for together in owners.values():
        for a in together:
            for b in together:
                shared[a, b] = 1
                # rows are later mentions, columns earlier ones
                differ[a, b] = (sets[b] != sets[a]) * (1 if sets[b] > sets[a] else 2 if sets[a] > sets[b] else 3)
    apart = (
        np.zeros((n, n), dtype=np.int64)
        if not n
        else shared[place[:, None], place] * ~(is_pronoun[:, None] | is_pronoun)
    )
    return apart, differ[place[:, None], place] if n else np.zeros((0, 0), dtype=np.int64)


def _is_nested(start: Array, end: Array) -> Array:
    """Whether a mention lies inside of one before it."""
    reach = np.concatenate([[0], np.maximum.accumulate(end)[:-1]]) if end.size else end
    return (reach >= end).astype(np.int64)
