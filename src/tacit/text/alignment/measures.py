"""How good are links: alignment error rate, precision and recall; and links of two directions joined to one set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import one_of, shorten
from tacit.data.ragged import Ragged
from tacit.text.links import Links, read_pairs, sort_pairs

SYMMETRISATIONS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")


class AlignmentScores(NamedTuple):
    """Measures of links against sure and possible ones (Och & Ney 2003); the error rate is better when it is low."""

    error_rate: float
    precision: float
    recall: float


def alignment_scores(found: Sequence[Any], gold: Sequence[Any]) -> AlignmentScores:
    """Compare links with gold links, over all sentence pairs together.

    With found links A, sure ones S and possible ones P: precision ``|A∩P| / |A|``, recall ``|A∩S| / |S|``, error rate
    ``1 − (|A∩S| + |A∩P|) / (|A| + |S|)``. Where there is nothing to count, precision and recall are 1, the
    error 0.

    >>> alignment_scores([[(0, 0), (1, 2)]], [Links([(0, 0), (1, 1)], possible=[(1, 2)])])
    AlignmentScores(error_rate=0.25, precision=1.0, recall=0.5)
    """
    for name, given in (("found", found), ("gold", gold)):
        if not isinstance(given, list | tuple | np.ndarray | Ragged) or getattr(given, "ndim", 1) == 0:
            raise TypeError(f"{name} holds the links of each sentence pair, a list; got {shorten(given)}")
    if len(found) != len(gold):
        raise ValueError(f"links of {len(found)} sentence pairs, gold links of {len(gold)}; give as many of each")
    n_found = n_sure = found_sure = found_possible = 0
    for own, truth in zip(found, gold, strict=True):
        links = truth if isinstance(truth, Links) else Links(truth)
        pairs = _as_set(own)
        sure, possible = _as_set(links.sure), _as_set(links.possible)
        n_found += len(pairs)
        n_sure += len(sure)
        found_sure += len(pairs & sure)
        found_possible += len(pairs & possible)
    total = n_found + n_sure
    return AlignmentScores(
        1 - (found_sure + found_possible) / total if total else 0.0,
        found_possible / n_found if n_found else 1.0,
        found_sure / n_sure if n_sure else 1.0,
    )


def symmetrise(forward: Any, backward: Any, method: str = "grow-diag-final-and") -> Array:
    """Join the links of one sentence pair that two models of opposite directions found.

    "grow-diag" begins with what both found and adds neighbours that one of them found, while a word of them has no link
    yet; "-final" adds the other links of words without any, "-final-and" only where both words have none (Koehn, Och &
    Marcu 2003).

    >>> symmetrise([(0, 0), (1, 1)], [(0, 0), (2, 1)], "intersection").tolist()
    [[0, 0]]
    """
    one_of("method", method, SYMMETRISATIONS)
    first, second = _as_set(forward), _as_set(backward)
    if method == "union":
        return _as_array(first | second)
    kept = first & second
    if method == "intersection":
        return _as_array(kept)
    either = sorted(first | second)
    sources, targets = {i for i, _ in kept}, {j for _, j in kept}

    def add(i: int, j: int) -> None:
        kept.add((i, j))
        sources.add(i)
        targets.add(j)

    is_growing = True
    while is_growing:
        is_growing = False
        for i, j in either:
            if (i, j) in kept or (i in sources and j in targets):
                continue
            if any((i + a, j + b) in kept for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b):
                add(i, j)
                is_growing = True
    if method != "grow-diag":
        for links in (first, second):
            for i, j in sorted(links):
                free = (i not in sources, j not in targets)
                if all(free) if method.endswith("and") else any(free):
                    add(i, j)
    return _as_array(kept)


def _as_set(pairs: Any) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in read_pairs(pairs)}


def _as_array(pairs: set[tuple[int, int]]) -> Array:
    return sort_pairs(np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2))
