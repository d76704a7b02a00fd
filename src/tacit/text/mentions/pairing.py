"""Candidate pairs of mentions and their features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten, switch, whole_number
from tacit.text.files.documents import Document, read_documents
from tacit.text.mentions.mentions import N_PRONOUNS
from tacit.text.mentions.pairs import FIRST_FEATURE, MAX_VALUE, MentionPairs, RowMaker
from tacit.text.mentions.templates import TEMPLATES, PairTemplates, template_sizes

MAX_FAR_MATCHES = 20
"""Mentions of the same words, beyond the window, that a mention may link to: the closest ones."""

OwnFeatures = Callable[[Document, Array, Array], Any]


def mention_pairs(
    documents: Any,
    *,
    candidates: int = 60,
    own: OwnFeatures | Sequence[Any] | None = None,
    text: bool = True,
) -> MentionPairs:
    """The pairs of mentions that may be linked, with their features: what `tacit.problems.Coreference` learns from.

    A mention may link to each of the ``candidates`` mentions before it, and beyond these to the closest mentions of the
    same head or the same words. Features are indicators, from tokens and mentions alone; the guide "Who is who in a
    text" lists them. O(mentions · candidates · templates) time and memory: about 70 bytes per pair.

    Parameters
    ----------
    documents : a list of `tacit.text.Document`; clusters are never looked at
    candidates : the size of the window
    own : features of your own, whole numbers from 0 (nothing) to 65535: a function ``own(document, later, earlier)``
        of two arrays of mentions that returns one row per pair, where later = earlier asks for the features of a
        mention that is new; or a list with one array (n, n) or (n, n, k) per document, ``array[later, earlier]``
    text : whether the features from text are there too; False leaves your own alone

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
        raise ValueError("text=False leaves no features; give own=...")
    if own is not None and not callable(own) and len(own) != len(listed):
        raise ValueError(f"own holds {len(own)} arrays for {len(listed)} documents; give one each")
    makers: list[RowMaker] = []
    parts: list[Array] = []
    for number, document in enumerate(listed):
        if len(document) > MAX_VALUE:
            raise ValueError(f"document {number} has {len(document)} mentions, above {MAX_VALUE}; cut it into parts")
        templates = PairTemplates(document)
        maker = partial(_rows, templates if text else None, document, _own_rows(own, number), number)
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
    return tuple(template.name for template in TEMPLATES), template_sizes()


def _candidates(templates: PairTemplates, window: int) -> tuple[Array, Array]:
    """The pairs of one document, each mention's together: "new", then earlier mentions in order."""
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
    """The feature columns of pairs: from text, and the user's."""
    parts = [] if templates is None else [templates.rows(later, earlier)]
    if own is not None:
        parts.append(_read_own(own(document, later, earlier), later.size, number))
    return np.hstack(parts)


def _own_rows(own: Any, number: int) -> Any:
    """The user's features of one document as a function of pairs."""
    if own is None or callable(own):
        return own
    return partial(_from_array, own[number], number)


def _from_array(array: Any, number: int, document: Document, later: Array, earlier: Array) -> Any:
    table = np.asarray(array)
    n = len(document)
    if table.ndim not in (2, 3) or table.shape[:2] != (n, n):
        raise ValueError(f"own[{number}] has shape {table.shape}; document {number} needs ({n}, {n}) or ({n}, {n}, k)")
    return table[later, earlier].reshape(later.size, -1)


def _read_own(values: Any, n: int, number: int) -> Array:
    try:
        table = np.asarray(values)
    except ValueError:
        table = np.empty(())
    table = table[:, None] if table.ndim == 1 else table
    is_whole = table.dtype.kind in "biu" or (table.dtype.kind == "f" and bool((table == table // 1).all()))
    if (
        table.ndim != 2
        or len(table) != n
        or not is_whole
        or (table.size and not 0 <= table.min() <= table.max() <= MAX_VALUE)
    ):
        raise ValueError(
            f"own features of document {number} are {shorten(values)}; {n} rows of whole numbers from 0 to {MAX_VALUE} "
            "are needed, one row per pair"
        )
    return table.astype(np.uint16)
