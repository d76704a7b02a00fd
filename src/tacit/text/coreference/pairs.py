"""Pairs of mentions as tables of indicators: what the problem `tacit.problems.Coreference` learns from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tacit.data.arrays import Array, locate
from tacit.data.parameters import as_array, entries, shorten, switch, whole_number
from tacit.data.ragged import Ragged, as_index
from tacit.text.coreference.mentions import N_PRONOUNS, TYPES, number_of_word
from tacit.text.coreference.pair_parts import PairParts, Part
from tacit.text.documents import Document, read_documents

MAX_FAR_MATCHES = 20
"""The most candidates beyond the window: the closest mentions of the same words."""

OwnFeatures = Callable[[Document, Array, Array], Any]


def mention_pairs(
    documents: Any, *, candidates: int = 60, own: OwnFeatures | Sequence[Any] | None = None, text: bool = True
) -> MentionPairs:
    """Make the pairs of mentions that may be linked, with their features, for `tacit.problems.Coreference`.

    A mention may link to each of the ``candidates`` mentions before it, and beyond these to the closest mentions with
    the same head or the same words. Features are indicators, from tokens and mentions only; the coreference guide lists
    them. O(mentions · candidates · templates) time and memory: about 70 bytes per pair.

    Parameters
    ----------
    documents : a list of `tacit.text.Document`; their clusters are not used
    candidates : the size of the window
    own : features of your own, whole numbers from 0 (nothing) to 65535. Either a function ``own(document, later,
        earlier)`` of two arrays of mentions that returns one row per pair; ``later == earlier`` stands for "new". Or a
        list with one array (n, n) or (n, n, k) per document, indexed by ``[later, earlier]``
    text : whether to have the features from text; False leaves only your own

    >>> tale = Document([["Alice", "saw", "her", "sister"]], [(0, 1), (2, 4), (2, 3)])
    >>> pairs = mention_pairs([tale])
    >>> pairs, pairs[0][:, :2].tolist()
    (MentionPairs(1 documents, 6 pairs, 33 templates), [[0, 0], [1, 1], [1, 0], [2, 2], [2, 0], [2, 1]])
    >>> mention_pairs([tale], own=lambda document, later, earlier: [[1 + (a == b)] for a, b in zip(later, earlier)])
    MentionPairs(1 documents, 6 pairs, 34 templates)
    """
    listed = read_documents(documents)
    window = whole_number("candidates", candidates)
    if not switch("text", text) and own is None:
        raise ValueError("text=False requires features of your own; give own=...")
    if own is not None and not callable(own):
        own = entries("own", own, "a function, or one array per document")
    if own is not None and not callable(own) and len(own) != len(listed):
        raise ValueError(f"own has {len(own)} arrays for {len(listed)} documents; give one per document")
    makers: list[RowMaker] = []
    parts: list[Array] = []
    for number, document in enumerate(listed):
        if len(document) > MAX_VALUE:
            raise ValueError(f"document {number} has {len(document)} mentions, above {MAX_VALUE}; split it")
        templates = PairTemplates(document)
        function = own if own is None or callable(own) else partial(_from_array, own[number], number)
        maker = partial(_rows, templates if text else None, document, function, number)
        later, earlier = _candidates(templates, window)
        parts.append(np.hstack([np.column_stack([later, earlier]).astype(np.uint16), maker(later, earlier)]))
        makers.append(maker)
    names: list[str] = list(text_templates()[0]) if text else []
    sizes: list[int] = list(text_templates()[1]) if text else []
    width = parts[0].shape[1] - FIRST_FEATURE if parts else len(names)
    for t in range(width - len(names)):
        names.append(f"own {t}")
        sizes.append(max([1, *(int(part[:, FIRST_FEATURE + len(sizes)].max(initial=0)) for part in parts)]))
    values = np.concatenate(parts) if parts else np.zeros((0, FIRST_FEATURE + width), dtype=np.uint16)
    offsets = np.cumsum([0, *(len(part) for part in parts)])
    return MentionPairs(values, offsets, names, sizes, makers)


@lru_cache(maxsize=1)
def text_templates() -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The names of the features from text, and how many values each has."""
    nothing, parts = np.zeros(0, dtype=np.int64), PairParts(Document([["."]], []))
    pair, new = parts.of_pairs(nothing, nothing), parts.of_new(nothing)
    sizes = (
        _size(_parts_of(pair, own.pair), own.buckets) + _size(_parts_of(new, own.new), own.buckets) for own in TEMPLATES
    )
    return tuple(template.name for template in TEMPLATES), tuple(sizes)


def _candidates(templates: PairTemplates, window: int) -> tuple[Array, Array]:
    """The pairs of one document: for every mention "new", then its earlier candidates in order."""
    mentions = templates.parts.mentions
    n = len(mentions.start)
    pairs: list[Array] = []
    far: dict[tuple[str, int], list[int]] = {}
    for m in range(n):
        first = max(0, m - window)
        kept = range(first, m)
        if mentions.kind[m] >= N_PRONOUNS:
            keys = [("head", int(mentions.head[m])), ("bare", int(mentions.bare[m]))]
            beyond = {e for key in keys for e in far.get(key, [])[-MAX_FAR_MATCHES - window :] if e < first}
            pairs.append(np.array([m, *sorted(beyond)[-MAX_FAR_MATCHES:], *kept]))
            for key in keys:
                far.setdefault(key, []).append(m)
        else:
            pairs.append(np.array([m, *kept]))
    later = np.repeat(np.arange(n), [len(part) for part in pairs])
    return later, np.concatenate(pairs) if pairs else np.zeros(0, dtype=np.int64)


def _rows(
    templates: PairTemplates | None, document: Document, own: Any, number: int, later: Array, earlier: Array
) -> Array:
    """The feature columns of pairs, from text and of the user."""
    parts = [] if templates is None else [templates.rows(later, earlier)]
    if own is not None:
        parts.append(_read_own(own(document, later, earlier), later.size, number))
    return np.hstack(parts)


def _from_array(array: Any, number: int, document: Document, later: Array, earlier: Array) -> Any:
    table = np.asarray(array)
    n = len(document)
    if table.ndim not in (2, 3) or table.shape[:2] != (n, n):
        raise ValueError(f"own[{number}] must have shape ({n}, {n}) or ({n}, {n}, k), got {table.shape}")
    return table[later, earlier].reshape(later.size, -1)


def _read_own(values: Any, n: int, number: int) -> Array:
    table = as_array(values)
    table = table[:, None] if table.ndim == 1 else table
    is_whole = table.dtype.kind in "biu" or (table.dtype.kind == "f" and bool((table == table // 1).all()))
    is_inside = is_whole and (not table.size or 0 <= table.min() <= table.max() <= MAX_VALUE)
    if table.ndim != 2 or len(table) != n or not is_inside:
        raise ValueError(
            f"own features of document {number} must be {n} rows, one per pair, of whole numbers from 0 to "
            f"{MAX_VALUE}, got {shorten(values)}"
        )
    return table.astype(np.uint16)


FIRST_FEATURE = 2
"""The index of the first feature column, after the later and the earlier mention."""

MAX_VALUE = 2**16 - 1
"""The largest number in a column: of a mention, and of a value of a feature."""

RowMaker = Callable[[Array, Array], Array]
"""The feature columns of pairs (later, earlier) of one document; both are the same for "new"."""


class MentionPairs(Ragged):
    """One table of pairs per document, as `tacit.text.mention_pairs` makes them.

    A row is a mention, an earlier mention that it may link to, and one value per template (0: nothing). The first row
    of a mention has the mention itself twice, and stands for "new". Columns are uint16.

    Parameters
    ----------
    values, offsets : as in `tacit.Ragged`
    templates : the name of every feature column
    sizes : the largest value of each
    makers : one function per document that computes the features of any pair, to add right links beyond the window in
        training; None if there are none
    """

    def __init__(
        self,
        values: Any,
        offsets: Any,
        templates: Sequence[str],
        sizes: Sequence[int],
        makers: Sequence[RowMaker] | None = None,
    ) -> None:
        super().__init__(values, offsets)
        self.templates = tuple(templates)
        self.sizes = tuple(int(size) for size in sizes)
        self.makers = None if makers is None else tuple(makers)

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        if not isinstance(part, Ragged) or part is self:
            return part
        key = key[0] if isinstance(key, tuple) else key
        chosen = np.arange(len(self))[key] if isinstance(key, slice) else as_index(key, len(self))
        makers = None if self.makers is None else [self.makers[i] for i in chosen]
        return MentionPairs(part.values, part.offsets, self.templates, self.sizes, makers)

    def __repr__(self) -> str:
        return f"MentionPairs({len(self)} documents, {self.values.shape[0]} pairs, {len(self.templates)} templates)"


def read_pairs(X: Any) -> Ragged:
    """Check tables of pairs: whole numbers, mention by mention, "new" first, then earlier mentions.

    >>> read_pairs([[[0, 0, 1], [1, 1, 2], [1, 0, 3]]])
    Ragged(1 samples, 3–3 rows each; 3 × 3 uint16)
    """
    pairs = Ragged.of(X)
    if len(pairs) == 0:
        raise ValueError("X has 0 samples; a minimum of 1 is required")
    values = pairs.values
    if sparse.issparse(values):
        raise TypeError("pairs of mentions must be a dense table, got a sparse one; give X.toarray()")
    if values.ndim != 2 or values.shape[1] <= FIRST_FEATURE:
        raise ValueError(f"a row must be (later mention, earlier mention, features...), got shape {values.shape[1:]}")
    if values.dtype != np.uint16:
        is_number = values.dtype.kind in "biuf"
        if not is_number or not ((values >= 0) & (values <= MAX_VALUE) & (values == values // 1)).all():
            raise ValueError(f"pairs must be whole numbers from 0 to {MAX_VALUE}, got {shorten(values)}")
        pairs = pairs.with_values(values.astype(np.uint16))
    _check_order(pairs)
    return pairs


def _check_order(pairs: Ragged) -> None:
    """Refuse tables whose rows are not in the order that kernels rely on."""
    empty = np.flatnonzero(pairs.lengths == 0)
    if empty.size:
        raise ValueError(f"document {empty[0]} is without mentions; leave it out")
    later, earlier = pairs.values[:, 0].astype(np.int64), pairs.values[:, 1].astype(np.int64)
    begins = np.zeros(later.size, dtype=bool)
    begins[pairs.offsets[:-1]] = True
    before = np.roll(later, 1)
    is_new = later == earlier
    follows = np.where(
        is_new, later == np.where(begins, 0, before + 1), (later == before) & (earlier < later) & ~begins
    )
    wrong = np.flatnonzero(~follows)
    if not wrong.size:
        # a repeated pair would be two outputs with one meaning
        owner = np.cumsum(is_new)
        order = np.lexsort((earlier, owner))
        twice = (np.diff(owner[order]) == 0) & (np.diff(earlier[order]) == 0)
        wrong = order[1:][twice]
    if wrong.size:
        i, row = locate(pairs.offsets, int(wrong[0]))
        raise ValueError(
            f"row {row} of document {i}, ({later[wrong[0]]}, {earlier[wrong[0]]}), is in the wrong position; for each "
            "mention m in order from 0, give (m, m) for 'new', then (m, e) once per earlier candidate e"
        )


class Template(NamedTuple):
    """One feature column: its parts for a pair of mentions, and for a new mention.

    Values of pairs come first, then those of new mentions. ``buckets`` is the number of hash values of words.
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
"""All templates; `tacit.text.coreference.pair_parts.PairParts` has their parts."""


class PairTemplates:
    """The templates for any pair of mentions of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.parts = PairParts(document)

    def rows(self, later: Array, earlier: Array) -> Array:
        """(pairs, templates): the values of pairs; a mention with itself stands for "new"."""
        is_new = later == earlier
        pair, new = self.parts.of_pairs(later[~is_new], earlier[~is_new]), self.parts.of_new(later[is_new])
        table = np.zeros((later.size, len(TEMPLATES)), dtype=np.uint16)
        for t, template in enumerate(TEMPLATES):
            table[~is_new, t] = 1 + _mix(_parts_of(pair, template.pair), template.buckets)
            if template.new:
                shift = _size(_parts_of(pair, template.pair), template.buckets)
                table[is_new, t] = 1 + shift + _mix(_parts_of(new, template.new), template.buckets)
        return table

    def explain(self, later: int, earlier: int) -> list[tuple[str, str]]:
        """The name of every template, and its value for one pair as text."""
        is_new = later == earlier
        one, other = np.array([later]), np.array([earlier])
        parts = self.parts.of_new(one) if is_new else self.parts.of_pairs(one, other)
        words = {number_of_word(word): word for word in {token.lower() for token in self.document.tokens}}
        found = []
        for template in TEMPLATES:
            chosen = template.new if is_new else template.pair
            found.append((template.name, ", ".join(f"{name}: {_value_name(parts[name], words)}" for name in chosen)))
        return found


def _parts_of(parts: Mapping[str, Part], names: tuple[str, ...]) -> tuple[Part, ...]:
    return tuple(parts[name] for name in names)


def _size(parts: tuple[Part, ...], buckets: int) -> int:
    if not parts:
        return 0
    if any(part.names is None for part in parts):
        return buckets
    return int(np.prod([len(part.names or ()) for part in parts]))


def _mix(parts: tuple[Part, ...], buckets: int) -> Array:
    """One number from the codes of all parts: their product if there are few values, else a hash."""
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


def _value_name(part: Part, words: dict[int, str]) -> str:
    code = int(part.codes[0])
    if part.names is not None:
        return part.names[code]
    return repr(words[code]) if code in words else TYPES[code] if code < len(TYPES) else "several words"
