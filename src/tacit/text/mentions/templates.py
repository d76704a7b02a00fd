"""Indicator templates of pairs of mentions, from text alone: each is a column of a table, each value a feature.

The features follow Ng & Cardie (2002), Bengtson & Roth (2008) and Durrett & Klein (2013): types, distances, string
matches, agreement, quotations, and the words themselves. Values of few kinds are counted; words are hashed, so that
nothing has to be learned from the data and a table has the same columns everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.text.files.documents import Document
from tacit.text.mentions.mentions import TYPES, number_of_word
from tacit.text.mentions.pair_parts import PairParts, Part


class Template(NamedTuple):
    """One column: what it is made of for a pair, and what for a mention that is new.

    The values of pairs come first, those of new mentions behind them. ``buckets`` is how many values words are hashed
    to.
    """

    name: str
    pair: tuple[str, ...]
    new: tuple[str, ...] = ()
    buckets: int = 0


TEMPLATES = (
    Template("types", ("earlier type", "later type"), ("type",)),
    Template("types and sentences", ("earlier", "later type", "sentences apart"), ("type", "mentions before")),
    Template("distance", ("later type", "mentions apart", "later quoted"), ("type", "quoted", "opens")),
    Template("match and types", ("match", "earlier type", "later type"), ("type", "best match")),
    Template("match and distance", ("match", "mentions apart", "later"), ("kind", "best match", "mentions to it")),
    Template(
        "agreement",
        ("earlier gender", "later gender", "earlier number", "later number", "later is a pronoun"),
        ("type", "gender", "number"),
    ),
    Template("pronouns", ("earlier word", "later word", "later quoted"), ("word", "quoted"), 4096),
    Template(
        "pronoun and gender",
        ("later word", "earlier gender", "earlier number", "sentences apart"),
        ("word", "mentions before"),
        4096,
    ),
    Template("forms", ("earlier form", "later form", "later", "same sentence"), ("form", "quoted")),
    Template("nesting", ("nesting", "earlier", "later type"), ("type", "inside of another")),
    Template("nearness", ("nearness", "earlier", "later")),
    Template("quotations", ("quotations", "earlier", "later")),
    Template("speakers", ("speakers", "earlier", "later")),
    Template("compatible between", ("compatible between", "later type", "earlier"), ("compatible before", "type")),
    Template("rivals between", ("names and nouns between", "earlier", "later", "same sentence")),
    Template("forms and distance", ("earlier form", "later form", "near", "sentences apart", "earlier opens")),
    Template(
        "roles", ("earlier role", "later role", "near", "same sentence", "later", "earlier opens"), ("type", "role")
    ),
    Template("subjects between", ("subjects between", "earlier role", "later role", "earlier", "later")),
    Template("alike between", ("of the earlier kind between", "earlier", "later")),
    Template(
        "closest", ("closest of its head", "closest of its kind", "closest of the later kind", "earlier", "later")
    ),
    Template("heads", ("earlier head", "later head"), ("head",), 32768),
    Template("later head", ("later head", "match"), ("head", "best match"), 8192),
    Template("earlier head", ("earlier head", "later"), ("first word", "type"), 8192),
    Template("word before", ("word before later", "earlier", "later"), ("word before", "type"), 8192),
    Template("word behind", ("word behind later", "earlier", "later"), ("word behind", "type"), 8192),
    Template("first words", ("first of earlier", "first of later", "match"), ("first word", "best match"), 4096),
    Template("openings", ("earlier opens", "later opens", "sentences apart", "earlier", "later")),
    Template("frequency", ("earlier head so far", "earlier", "later type")),
    Template("frequency in all", ("earlier head in all", "later gender", "earlier", "later")),
    Template("context", ("word before later", "earlier word", "later form", "same sentence", "near"), (), 16384),
    Template("titles", ("titles", "match", "earlier", "later")),
    Template("modifiers", ("modifiers", "earlier type", "later type")),
    Template("words behind both", ("word behind earlier", "word behind later"), (), 4096),
)
"""All templates. `tacit.text.mentions.pair_parts.PairParts` says what their parts mean."""


class PairTemplates:
    """The templates of one document, for any of its pairs.

    Parameters
    ----------
    document : the text and its mentions
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.parts = PairParts(document)

    def rows(self, later: Array, earlier: Array) -> Array:
        """The values of pairs, (pairs, templates); a pair of a mention with itself stands for "new"."""
        is_new = later == earlier
        pair, new = self.parts.of_pairs(later[~is_new], earlier[~is_new]), self.parts.of_new(later[is_new])
        table = np.zeros((later.size, len(TEMPLATES)), dtype=np.uint16)
        for t, template in enumerate(TEMPLATES):
            table[~is_new, t] = 1 + _mix(_chosen(pair, template.pair), template.buckets)
            if template.new:
                shift = _size(_chosen(pair, template.pair), template.buckets)
                table[is_new, t] = 1 + shift + _mix(_chosen(new, template.new), template.buckets)
        return table

    def explain(self, later: int, earlier: int) -> list[tuple[str, str]]:
        """The templates of one pair in words: names, and what they hold."""
        is_new = later == earlier
        one, other = np.array([later]), np.array([earlier])
        parts = self.parts.of_new(one) if is_new else self.parts.of_pairs(one, other)
        words = {number_of_word(word): word for word in {token.lower() for token in self.document.tokens}}
        found = []
        for template in TEMPLATES:
            chosen = template.new if is_new else template.pair
            found.append((template.name, ", ".join(f"{name}: {_told(parts[name], words)}" for name in chosen)))
        return found


def template_sizes() -> tuple[int, ...]:
    """How many values every template has."""
    nothing, parts = np.zeros(0, dtype=np.int64), PairParts(Document([["."]], []))
    pair, new = parts.of_pairs(nothing, nothing), parts.of_new(nothing)
    return tuple(
        _size(_chosen(pair, template.pair), template.buckets) + _size(_chosen(new, template.new), template.buckets)
        for template in TEMPLATES
    )


def _chosen(parts: Mapping[str, Part], names: tuple[str, ...]) -> tuple[Part, ...]:
    return tuple(parts[name] for name in names)


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


def _told(part: Part, words: dict[int, str]) -> str:
    code = int(part.codes[0])
    if part.names is not None:
        return part.names[code]
    return repr(words[code]) if code in words else TYPES[code] if code < len(TYPES) else "several words"
