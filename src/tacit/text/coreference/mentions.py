"""Attributes of single mentions: type, head, gender, number, position, speaker. One array each."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.text.coreference import lexicon
from tacit.text.documents import Document

TYPES = (
    *lexicon.PRONOUNS, "name", "titled name", "definite", "indefinite", "possessed", "bare", "bare plural",
)  # fmt: skip
"""The types of mentions: classes of pronouns first."""

N_PRONOUNS = len(lexicon.PRONOUNS)
GENDERS = ("unknown", "male", "female", "thing", "mixed")
NUMBERS = ("unknown", "singular", "plural")
ROLES = ("other", "subject", "object", "behind a preposition", "owner")
FORMS = ("none", "plain", "object", "possessive", "reflexive")
MAX_INSERTION = 14
"""The most tokens between two parts of one turn: “Yes,” said the old man, “…”"""

MAX_SENTENCE = 60
"""The most tokens of the sentence before a quotation that are searched for its speaker."""

MAX_QUOTE = 400
"""The most tokens of a quotation; a longer one lacks its closing mark."""


class Mentions(NamedTuple):
    """The mentions of one document, one entry each. Words are numbers: checksums of lower-case text."""

    start: Array
    end: Array
    sentence: Array
    kind: Array
    """Index into `TYPES`."""
    form: Array
    """Index into `FORMS`: which form a pronoun has."""
    role: Array
    """Index into `ROLES`, guessed from the words around."""
    word: Array
    """The word of a pronoun, 0 for other mentions."""
    head: Array
    full: Array
    """All words."""
    bare: Array
    """All words without a leading article."""
    core: Array
    """The words up to the head, without articles, titles and possessives."""
    first: Array
    last: Array
    title: Array
    """The title before a name, 0 for none."""
    before: Array
    """The word before the mention."""
    after: Array
    """The word after the mention."""
    gender: Array
    """Index into `GENDERS`, by its own words."""
    company: Array
    """Index into `GENDERS`, by the pronouns that follow mentions of the same head."""
    number: Array
    turn: Array
    """The dialogue turn of the mention, −1 outside of quotations."""
    answers: Array
    """Whether that turn directly follows the one before."""
    speaker: Array
    """The mention of the speaker of that turn, −1 if unknown."""
    listener: Array
    """The mention of the speaker of the turn before or after, −1 if unknown."""
    vocative: Array
    """Whether it is between commas inside a quotation: “Come, Alice, …”"""
    opens: Array
    """Whether it is the first mention of its sentence."""
    words: list[frozenset[str]]
    """The words of the core, as a set."""


@lru_cache(maxsize=1 << 17)
def number_of_word(word: str) -> int:
    """A number above 0 for a word; the same in every process."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % (2**31 - 2) + 1


def describe(document: Document) -> Mentions:
    """Find the attributes of every mention of a document."""
    tokens, lower = document.tokens, [token.lower() for token in document.tokens]
    spans = document.mentions.tolist()
    quotes = _quotes(lower)
    rows = [_describe_one(tokens, lower, start, end) for start, end in spans]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_FIELDS)
    found = dict(zip(_FIELDS, columns, strict=True))
    start, end = document.mentions[:, 0], document.mentions[:, 1]
    sentence = document.sentence_of[start] if len(spans) else np.zeros(0, dtype=np.int64)
    arrays = {name: np.array(found[name], dtype=np.int64) for name in _FIELDS if name != "words"}
    turns = _find_turns(lower, quotes, start, end, arrays["kind"])
    turn = turns.of_token[start] if len(spans) else np.zeros(0, dtype=np.int64)
    return Mentions(
        start=start,
        end=end,
        sentence=sentence,
        before=np.array([number_of_word(lower[s - 1]) if s else 0 for s, _ in spans], dtype=np.int64),
        after=np.array([number_of_word(lower[e]) if e < len(lower) else 0 for _, e in spans], dtype=np.int64),
        role=np.array([_role(lower, s, e, f) for (s, e), f in zip(spans, found["form"], strict=True)], dtype=np.int64),
        company=_company(arrays["head"], arrays["kind"], arrays["number"], turn),
        turn=turn,
        answers=np.concatenate([turns.answers, [False]])[turn],
        speaker=np.array([turns.speaker.get(t, -1) for t in turn.tolist()], dtype=np.int64),
        listener=np.array([turns.listener.get(t, -1) for t in turn.tolist()], dtype=np.int64),
        vocative=np.array([_is_called(lower, quotes, s, e) for s, e in spans], dtype=np.int64),
        opens=np.concatenate([[True], np.diff(sentence) > 0])[: len(spans)],
        words=list(found["words"]),
        **arrays,
    )


_FIELDS = (
    "kind", "form", "word", "head", "full", "bare", "core", "first", "last", "title", "gender", "number", "words",
)  # fmt: skip


def _describe_one(tokens: list[str], lower: list[str], start: int, end: int) -> tuple[object, ...]:
    own = lower[start:end]
    if len(own) == 1:
        for kind, words in enumerate(lexicon.PRONOUNS.values()):
            if own[0] in words:
                return _pronoun(own[0], kind)
    head_place = _find_head(own)
    head = own[head_place]
    skipped = 0
    while skipped < head_place and (own[skipped] in lexicon.ARTICLES or own[skipped] in lexicon.POSSESSIVES):
        skipped += 1
    core = [w for w in own[skipped : head_place + 1] if w not in lexicon.TITLES or w == head]
    title = next((w for w in own[:head_place] if w in lexicon.TITLES), None)
    has_owner = own[0] in lexicon.POSSESSIVES or any(w in ("'s", "’s", "'") for w in own[:head_place])
    is_name = tokens[start + head_place][:1].isupper() and own[0] not in lexicon.INDEFINITE
    gender, number = _gender(own[: head_place + 1], head, is_name), _number(own, head, is_name)
    kind = _kind(own, is_name, has_owner, title, number)
    bare = own[1:] if own[0] in lexicon.ARTICLES and len(own) > 1 else own
    return (
        kind, 0, 0, number_of_word(head), number_of_word(" ".join(own)), number_of_word(" ".join(bare)),
        number_of_word(" ".join(core)), number_of_word(own[0]), number_of_word(own[-1]),
        number_of_word(title) if title and is_name else 0, gender, number, frozenset(core),
    )  # fmt: skip


def _pronoun(word: str, kind: int) -> tuple[object, ...]:
    name = TYPES[kind]
    gender = {"he": 1, "she": 2, "it": 3, "place": 3}.get(name, 0)
    number = {"we": 2, "they": 2, "I": 1, "he": 1, "she": 1, "it": 1}.get(name, 0)
    form = (
        4 if word in lexicon.REFLEXIVES else 3 if word in lexicon.POSSESSIVES else 2 if word in lexicon.OBJECTS else 1
    )
    code = number_of_word(word)
    return kind, form, code, code, code, code, code, code, code, 0, gender, number, frozenset((word,))


def _find_head(own: list[str]) -> int:
    """The last word before a preposition, a comma or a relative clause."""
    for position, word in enumerate(own[1:], 1):
        if word in lexicon.STOPS:
            return position - 1
    last = len(own) - 1
    return last - 1 if last and own[last] in ("'s", "’s", "'") else last


def _kind(own: list[str], is_name: bool, has_owner: bool, title: str | None, number: int) -> int:
    if is_name and not has_owner and own[0] not in lexicon.DEFINITE:
        return TYPES.index("titled name" if title else "name")
    if own[0] in lexicon.DEFINITE:
        return TYPES.index("definite")
    if has_owner:
        return TYPES.index("possessed")
    if own[0] in lexicon.INDEFINITE:
        return TYPES.index("indefinite")
    return TYPES.index("bare plural" if number == NUMBERS.index("plural") else "bare")


def _gender(own: list[str], head: str, is_name: bool) -> int:
    male = any(w in lexicon.MALE for w in (own if is_name else (head,)))
    female = any(w in lexicon.FEMALE for w in (own if is_name else (head,)))
    if is_name and male and female:  # a title says more than a name
        male, female = own[0] in lexicon.MALE, own[0] in lexicon.FEMALE
    if male != female:
        return 1 if male else 2
    if head in lexicon.PLACES:
        return 3
    return 4 if male and female else 0


def _number(own: list[str], head: str, is_name: bool) -> int:
    if "and" in own[1:] or head in lexicon.PLURAL or own[0] in lexicon.PLURAL_DETERMINERS:
        return 2
    if own[0] in lexicon.SINGULAR_DETERMINERS or head in lexicon.PERSONS or head in lexicon.SINGULAR_S or is_name:
        return 1
    return 2 if len(head) > 3 and head.endswith("s") and not head.endswith(("ss", "us", "is")) else 1


def _quotes(lower: list[str]) -> Array:
    """The number of the quotation of every token, −1 outside of quotations."""
    doubles = sum(token in lexicon.OPENING or token in lexicon.EITHER for token in lower)
    singles = sum(token in lexicon.SINGLE_OPENING or token in lexicon.SINGLE_EITHER for token in lower)
    opening, closing, either = lexicon.OPENING, lexicon.CLOSING, lexicon.EITHER
    if doubles < 3 and singles >= 6:
        opening, closing = lexicon.SINGLE_OPENING, lexicon.SINGLE_CLOSING
        either = lexicon.SINGLE_EITHER if not any(token in opening for token in lower) else frozenset()
    inside = np.full(len(lower), -1, dtype=np.int64)
    count, began = -1, -1
    for position, token in enumerate(lower):
        if token in opening or (token in either and began < 0):
            count, began = count + 1, position
        elif began >= 0 and (token in closing or token in either or position - began > MAX_QUOTE):
            began = -1
        elif began >= 0:
            inside[position] = count
    return inside


class Turns(NamedTuple):
    """Dialogue turns, each one or more quotations, and the mentions of their speakers and listeners."""

    of_token: Array
    """The turn that every token is in, −1 outside."""
    speaker: dict[int, int]
    listener: dict[int, int]
    answers: Array
    """Whether a turn directly follows the one before: somebody else speaks."""


def _find_turns(lower: list[str], quotes: Array, start: Array, end: Array, kind: Array) -> Turns:
    """Join quotations such as “…,” said she, “…” to turns; find speakers by verbs of speech, then by alternation."""
    first = {int(q): position for position, q in reversed(list(enumerate(quotes.tolist()))) if q >= 0}
    last = {int(q): position for position, q in enumerate(quotes.tolist()) if q >= 0}
    named = _speakers(lower, quotes, start, end, kind)
    turn_of: dict[int, int] = {}
    speaker: dict[int, int] = {}
    answers: list[bool] = []
    before = -1
    for q in sorted(first):
        gap = first[q] - last[before] if before >= 0 else len(lower)
        goes_on = before >= 0 and 3 < gap <= MAX_INSERTION and lower[last[before]] in (",", "--", "-", ";")
        if not goes_on or (q in named and named[q] != named.get(before, named[q])):
            answers.append(before >= 0 and gap <= 3)
        turn_of[q] = len(answers) - 1
        if q in named:
            speaker.setdefault(turn_of[q], named[q])
        before = q
    for q in sorted(first):
        if turn_of[q] not in speaker and not answers[turn_of[q]]:
            actor = _last_actor(lower, quotes, first[q], start, kind)
            if actor >= 0:
                speaker[turn_of[q]] = actor
    for turn in range(2, len(answers)):  # A, B, A, B, …
        if turn not in speaker and answers[turn] and answers[turn - 1] and turn - 2 in speaker:
            speaker[turn] = speaker[turn - 2]
    for turn in range(len(answers) - 3, -1, -1):
        if turn not in speaker and answers[turn + 1] and answers[turn + 2] and turn + 2 in speaker:
            speaker[turn] = speaker[turn + 2]
    listener = {}
    for turn in range(len(answers)):
        other = turn - 1 if answers[turn] else turn + 1 if turn + 1 < len(answers) and answers[turn + 1] else turn - 1
        if other in speaker:
            listener[turn] = speaker[other]
    of_token = np.array([turn_of.get(q, -1) for q in quotes.tolist()], dtype=np.int64)
    return Turns(of_token, speaker, listener, np.array(answers, dtype=bool))


def _last_actor(lower: list[str], quotes: Array, position: int, start: Array, kind: Array) -> int:
    """The first person of the sentence before a quotation: Terry bent down. “Look!”; −1 if there is none."""
    low = position - 2
    while low > 0 and quotes[low - 1] < 0 and lower[low - 1] not in (".", "!", "?") and position - low < MAX_SENTENCE:
        low -= 1
    for m in range(int(np.searchsorted(start, low)), int(np.searchsorted(start, position - 1))):
        if kind[m] < N_PRONOUNS - 3 or kind[m] >= N_PRONOUNS:
            return m
    return -1


def _speakers(lower: list[str], quotes: Array, start: Array, end: Array, kind: Array) -> dict[int, int]:
    """The speaker of each quotation: the mention next to a verb of speech, right after or right before it."""
    speakers: dict[int, int] = {}
    n = len(lower)
    is_person = (kind < N_PRONOUNS - 3) | (kind >= N_PRONOUNS)
    begins = {int(s): m for m, s in reversed(list(enumerate(start.tolist()))) if is_person[m]}
    ends = {int(e): m for m, e in enumerate(end.tolist()) if is_person[m]}
    edges = np.flatnonzero(np.diff(np.concatenate([[-1], quotes, [-1]])))
    for position in edges.tolist():
        behind = quotes[position - 1] if position else -1
        if behind >= 0 and behind not in speakers:  # a quotation ended: “…” said Alice, or “…” Alice said
            for offset in range(position, min(position + 4, n)):
                if offset in begins and quotes[offset] < 0:
                    mention = begins[offset]
                    close = min(int(end[mention]) + 2, n)
                    if any(w in lexicon.SPEECH for w in (*lower[position:offset], *lower[int(end[mention]) : close])):
                        speakers[int(behind)] = mention
                        break
        ahead = quotes[position] if position < n else -1
        if ahead >= 0 and ahead not in speakers:  # one begins: Alice said: “…”
            words = lower[max(0, position - 8) : position]
            if any(w in lexicon.SPEECH for w in words):
                for offset in range(position, max(0, position - 9), -1):
                    if offset in ends and quotes[max(offset - 1, 0)] < 0:
                        speakers[int(ahead)] = ends[offset]
                        break
    return speakers


def _role(lower: list[str], start: int, end: int, form: int) -> int:
    """The index into `ROLES`, guessed from the form of a pronoun and the words around."""
    before = lower[start - 1] if start else "."
    behind = lower[end] if end < len(lower) else "."
    is_verb = behind in lexicon.AUXILIARIES or behind in lexicon.SPEECH or (len(behind) > 4 and behind.endswith("ed"))
    own = lower[start]
    if behind in ("'s", "’s") and not form:
        return 4
    if form == 3:  # her sister, and: he saw her.
        is_object = own == "her" and (not behind.isalpha() or behind in lexicon.STOPS or behind in lexicon.ARTICLES)
        return 4 if not is_object else 3 if before in lexicon.PREPOSITIONS else 2
    if form == 2 or before in lexicon.PREPOSITIONS:
        return 3 if before in lexicon.PREPOSITIONS else 2
    if is_verb or own in ("he", "she", "they", "i", "we"):
        return 1
    return 2 if before.endswith("ed") or before in lexicon.AUXILIARIES else 0


def _is_called(lower: list[str], quotes: Array, start: int, end: int) -> bool:
    """Whether somebody is addressed: a mention inside a quotation, between punctuation marks."""
    if quotes[start] < 0:
        return False
    before = lower[start - 1] if start else "“"
    behind = lower[end] if end < len(lower) else "”"
    marks = {",", ".", "!", "?", ";", *lexicon.OPENING, *lexicon.CLOSING, *lexicon.EITHER}
    return before in {*marks, "oh", "dear", "my", "well", "yes", "no"} and behind in marks


def _company(head: Array, kind: Array, number: Array, turn: Array) -> Array:
    """Male or female, by the pronouns that follow mentions with the same head most often."""
    he, she = TYPES.index("he"), TYPES.index("she")
    votes: dict[int, list[float]] = {}
    n = len(head)
    for m in range(n):
        if kind[m] < N_PRONOUNS or number[m] == 2:
            continue
        tally = votes.setdefault(int(head[m]), [0.0, 0.0])
        for step, other in enumerate(range(m + 1, min(m + 4, n))):
            if turn[other] >= 0 and turn[m] < 0:
                continue
            if kind[other] in (he, she):
                tally[int(kind[other] == she)] += 1.0 / (1 + step)
            elif kind[other] >= N_PRONOUNS:
                break
    found = np.zeros(n, dtype=np.int64)
    for m in range(n):
        men, women = votes.get(int(head[m]), (0.0, 0.0)) if kind[m] >= N_PRONOUNS else (0.0, 0.0)
        if men + women >= 1.0 and max(men, women) >= 2.0 * min(men, women):
            found[m] = 1 if men > women else 2
    return found
