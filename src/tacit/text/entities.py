"""Named entities as tags: schemes (B/I/O, B/I/O/E/S), the entities of tags, scores, and pairs that are not valid."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tacit.data.parameters import entries, one_of, shorten

OUTSIDE = "O"
_TAG = re.compile(r"([BIESLU])-(.+)", re.DOTALL)
_STARTS, _ENDS = "BSU", "ESLU"
_LISTS = "a list with one list per sentence"


class Entity(NamedTuple):
    """Tokens from ``start`` up to and without ``end``, and their type."""

    start: int
    end: int
    kind: str


class EntityScore(NamedTuple):
    """How many entities there are, were predicted, and were predicted with the right tokens and the right type."""

    kind: str
    true: int
    predicted: int
    right: int

    @property
    def precision(self) -> float:
        """Share of the predicted entities that are right; 0 if none was predicted."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the true entities that were found; 0 if there are none."""
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.right / (self.true + self.predicted) if self.true + self.predicted else 0.0


class EntityScores(NamedTuple):
    """Scores of all entities together (micro average), and by type."""

    overall: EntityScore
    by_kind: list[EntityScore]

    @property
    def macro_f1(self) -> float:
        """The mean F1 over types."""
        return sum(score.f1 for score in self.by_kind) / len(self.by_kind) if self.by_kind else 0.0


def has_entities(tags: Iterable[str]) -> bool:
    """Whether tags mark entities: all are "O" or a letter of a scheme with a type, and one begins with B, I or S.

    >>> has_entities(["O", "B-person", "I-person"]), has_entities(["NOUN", "VERB"])
    (True, False)
    """
    kinds = set(_read(tags))
    is_marked = any(tag[:2] in ("B-", "I-", "S-") for tag in kinds)
    return is_marked and all(tag == OUTSIDE or _TAG.fullmatch(tag) for tag in kinds)


def find_entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of one sentence, by the rules of conlleval (Tjong Kim Sang & Buchholz 2000).

    An I after another type, or after "O", begins an entity too, so every sequence of tags has entities.

    >>> find_entities(["B-person", "I-person", "O", "B-place", "B-place"])
    [Entity(start=0, end=2, kind='person'), Entity(start=3, end=4, kind='place'), Entity(start=4, end=5, kind='place')]
    """
    found: list[Entity] = []
    start, kind, is_closed = 0, "", True
    for position, tag in enumerate([*_read(tags), OUTSIDE]):
        letter, own = _split(tag)
        is_start = own != "" and (is_closed or letter in _STARTS or own != kind)
        if not is_closed and (is_start or own == ""):
            found.append(Entity(start, position, kind))
            is_closed = True
        if is_start:
            start, kind, is_closed = position, own, False
        if own and letter in _ENDS:
            found.append(Entity(start, position + 1, kind))
            is_closed = True
    return found


SCHEMES = ("bio", "iobes")


def convert_tags(tags: Sequence[str | None], scheme: str) -> list[str | None]:
    """The tags of one sentence in another scheme: "bio" (B begins) or "iobes" (also E at the end, S for single tokens).

    Tags in any scheme are read as in `find_entities`, so that IOB1, where I may begin an entity, is converted too. A
    missing tag (None) stays, and ends the entity before it.

    >>> convert_tags(["B-person", "I-person", "O", "B-place"], "iobes")
    ['B-person', 'E-person', 'O', 'S-place']
    """
    one_of("scheme", scheme, SCHEMES)
    given = _read(tags, is_optional=True)
    wrong = [tag for tag in given if tag is not None and tag != OUTSIDE and not _TAG.fullmatch(tag)]
    if wrong:
        raise ValueError(f"tags must be 'O' or a letter and a type, such as 'B-person', got {shorten(wrong[0])}")
    found: list[str | None] = [None if tag is None else OUTSIDE for tag in given]
    for start, end, kind in find_entities([OUTSIDE if tag is None else tag for tag in given]):
        if scheme == "iobes" and end - start == 1:
            found[start] = f"S-{kind}"
            continue
        found[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
        if scheme == "iobes":
            found[end - 1] = f"E-{kind}"
    return found


def score_entities(true: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> EntityScores:
    """Compare the entities of predicted tags with those of true tags, sentence by sentence.

    >>> score_entities([["B-a", "I-a", "O", "B-b"]], [["B-a", "I-a", "O", "B-a"]]).overall.f1
    0.5
    """
    counts: Counter[tuple[str, str]] = Counter()
    first, second = (entries("tags", own, _LISTS) for own in (true, predicted))
    if len(first) != len(second):
        raise ValueError(f"there are {len(first)} sentences of true and {len(second)} of predicted tags; give as many")
    for own, other in ((_read(a), _read(b)) for a, b in zip(first, second, strict=True)):
        if len(own) != len(other):
            raise ValueError(f"a sentence has {len(own)} true and {len(other)} predicted tags; give one per token")
        truth, guess = set(find_entities(own)), set(find_entities(other))
        for name, entities in (("true", truth), ("predicted", guess), ("right", truth & guess)):
            counts.update((name, entity.kind) for entity in entities)
    kinds = sorted({kind for _, kind in counts})
    by_kind = [EntityScore(kind, *(counts[name, kind] for name in ("true", "predicted", "right"))) for kind in kinds]
    sums = np.array([score[1:] for score in by_kind], dtype=int).reshape(-1, 3).sum(axis=0)
    overall = EntityScore("all", *sums.tolist())
    return EntityScores(overall, by_kind)


def find_invalid_pairs(sentences: Iterable[Sequence[str | None]]) -> list[tuple[str, str]]:
    """Pairs of tags that the scheme rules out, such as ("O", "I-person"); none if the tags do not mark entities.

    A pair that the sentences have is never in the list.

    >>> find_invalid_pairs([["B-a", "I-a", "O"]])
    [('O', 'I-a')]
    """
    seen: set[tuple[str, str]] = set()
    kinds: set[str] = set()
    for sentence in (_read(own, is_optional=True) for own in entries("tags", sentences, _LISTS)):
        kinds.update(tag for tag in sentence if tag is not None)
        seen.update((a, b) for a, b in pairwise(sentence) if a is not None and b is not None)
    if not has_entities(kinds):
        return []
    has_ends = any(tag[0] in _ENDS for tag in kinds if tag != OUTSIDE)
    return [(a, b) for a in sorted(kinds) for b in sorted(kinds) if (a, b) not in seen and _is_invalid(a, b, has_ends)]


def _is_invalid(first: str, second: str, has_ends: bool) -> bool:
    (before, kind), (after, other) = _split(first), _split(second)
    goes_on = bool(other) and after not in _STARTS  # I, E, L continue the entity before
    is_open = bool(kind) and before not in _ENDS
    return (goes_on and not (is_open and kind == other)) or (has_ends and is_open and not goes_on)


def _read(tags: Any, *, is_optional: bool = False) -> list[Any]:
    """The tags of one sentence as a list of strings, or of strings and None."""
    found = entries("tags", tags.tolist() if isinstance(tags, np.ndarray) and tags.ndim else tags, _LISTS)
    for i, tag in enumerate(found):
        if not isinstance(tag, str) and not (is_optional and tag is None):
            raise TypeError(f"tag {i} of a sentence must be a string such as 'O' or 'B-person', got {shorten(tag)}")
    return found


def _split(tag: str) -> tuple[str, str]:
    """Letter and type of a tag; both empty for "O" and for what is not a tag of a scheme."""
    found = _TAG.fullmatch(tag)
    return (found[1], found[2]) if found else ("", "")
