"""Measures of coreference resolution: MUC, B³, CEAF-e, their mean, LEA, and the share of wrong pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import as_array, entries, has_length, is_whole, shorten
from tacit.data.ragged import Ragged
from tacit.text.documents import Document, first_occurrence

Clusters = list[list[Hashable]]
"""The clusters of one document: each a list of mentions."""


class Score(float):
    """An F1 score, with its precision and recall."""

    precision: float
    recall: float

    def __new__(cls, precision: float, recall: float) -> Score:
        total = precision + recall
        score = super().__new__(cls, 2 * precision * recall / total if total else 0.0)
        score.precision, score.recall = float(precision), float(recall)
        return score


class CoreferenceScores(dict[str, float]):
    """The result of `coreference_scores`: a dict whose entries are attributes, too."""

    def __getattr__(self, name: str) -> float:
        if name not in self:
            raise AttributeError(f"{name!r} is not a measure; the measures are {', '.join(self)}")
        return self[name]


def coreference_scores(gold: Any, predicted: Any) -> CoreferenceScores:
    """Compare predicted clusters of mentions with the true ones.

    Counts are summed over all documents before the division, as in the reference scorer (Pradhan et al. 2014). All
    measures are between 0 and 1.

    Parameters
    ----------
    gold, predicted : the clusters of one document, or a list with those of each. Clusters may be a
        `tacit.text.Document`, or one number per mention (``[0, 1, 0]``), for the same mentions in both. They may also
        be a list of sets of mentions (``[{"a"}, {"b", "c"}]``), a mention being any text or tuple. Then a mention that
        only one of both has counts as wrong, and only the first of repeated mentions counts

    Returns
    -------
    CoreferenceScores : F1 scores with ``precision`` and ``recall``: ``muc`` (Vilain et al. 1995; 1 − muc is the MITRE
        loss), ``b3`` (Bagga & Baldwin 1998), ``ceafe`` (Luo 2005) and ``lea`` (Moosavi & Strube 2016). ``conll`` is the
        mean of the first three. ``pairwise`` is a **loss**: the share of pairs of mentions that are wrongly joined or
        wrongly apart, 1 − the Rand index, as the mean over documents

    >>> scores = coreference_scores([0, 1, 1, 2, 2, 2], [0, 1, 1, 2, 2, 1])
    >>> round(scores["muc"], 4), round(scores.b3.precision, 4), round(scores.pairwise, 4)
    (0.6667, 0.7778, 0.2667)
    """
    truth, answer = _read_side(gold, "gold"), _read_side(predicted, "predicted")
    if len(truth) != len(answer):
        raise ValueError(f"gold has {len(truth)} documents, but predicted has {len(answer)}; give as many of each")
    if not truth:
        raise ValueError("gold and predicted are empty; give at least one document")
    totals = {name: np.zeros(4) for name in _MEASURES}
    losses = []
    for i, (key, response) in enumerate(zip(truth, answer, strict=True)):
        if isinstance(key, np.ndarray) != isinstance(response, np.ndarray):
            raise ValueError(f"document {i}: gold and predicted must both be numbers, or both be sets of mentions")
        if isinstance(key, np.ndarray) and key.size != len(response):
            raise ValueError(f"document {i} has {key.size} mentions in gold, but {len(response)} in predicted")
        pair = _Pair(_as_clusters(key), _as_clusters(response))
        for name, measure in _MEASURES.items():
            totals[name] += measure(pair)
        losses.append(_wrong_pairs(pair))
    scores = {
        name: Score(_ratio(hit_p, all_p), _ratio(hit_r, all_r)) for name, (hit_r, all_r, hit_p, all_p) in totals.items()
    }
    lea = scores.pop("lea")
    mean = sum(scores.values()) / len(scores)
    return CoreferenceScores({**scores, "conll": mean, "lea": lea, "pairwise": float(np.mean(losses))})


class _Pair:
    """The true and predicted clusters of one document, each mention once."""

    def __init__(self, key: Clusters, response: Clusters) -> None:
        self.key, self.response = _without_repeats(key), _without_repeats(response)
        self.key_of = {mention: i for i, cluster in enumerate(self.key) for mention in cluster}
        self.response_of = {mention: i for i, cluster in enumerate(self.response) for mention in cluster}
        self.common = Counter(
            (i, self.response_of[mention]) for mention, i in self.key_of.items() if mention in self.response_of
        )


def _muc(pair: _Pair) -> Array:
    """The right links and all links, of the key and of the response; a cluster of n mentions has n − 1."""
    parts = []
    for clusters, other in ((pair.key, pair.response_of), (pair.response, pair.key_of)):
        links = sum(len(cluster) - 1 for cluster in clusters)
        # a mention that only one of both has is a part of its own
        pieces = sum(len({other.get(mention, ("alone", mention)) for mention in cluster}) for cluster in clusters)
        parts += [sum(map(len, clusters)) - pieces, links]
    return np.array(parts, dtype=float)


def _b3(pair: _Pair) -> Array:
    parts: list[float] = []
    for clusters, side in ((pair.key, 0), (pair.response, 1)):
        hits = sum(count**2 / len(clusters[both[side]]) for both, count in pair.common.items())
        parts += [hits, sum(map(len, clusters))]
    return np.array(parts, dtype=float)


def _ceafe(pair: _Pair) -> Array:
    from scipy.optimize import linear_sum_assignment

    if not pair.key or not pair.response:
        return np.array([0.0, len(pair.key), 0.0, len(pair.response)])
    alike = np.zeros((len(pair.key), len(pair.response)))
    for (i, j), count in pair.common.items():
        alike[i, j] = 2 * count / (len(pair.key[i]) + len(pair.response[j]))
    best = float(alike[linear_sum_assignment(alike, maximize=True)].sum())
    return np.array([best, len(pair.key), best, len(pair.response)])


def _lea(pair: _Pair) -> Array:
    parts: list[float] = []
    for clusters, others, side in ((pair.key, pair.response, 0), (pair.response, pair.key, 1)):
        links: Counter[int] = Counter()
        for both, count in pair.common.items():
            own, other = both[side], both[1 - side]
            if len(clusters[own]) == 1:  # a single mention is linked to itself
                links[own] += len(others[other]) == 1
            else:
                links[own] += count * (count - 1) // 2
        hits = sum(
            len(cluster) * links[i] / max(len(cluster) * (len(cluster) - 1) // 2, 1)
            for i, cluster in enumerate(clusters)
        )
        parts += [hits, sum(map(len, clusters))]
    return np.array(parts, dtype=float)


_MEASURES = {"muc": _muc, "b3": _b3, "ceafe": _ceafe, "lea": _lea}
"""Each returns four numbers per document: numerator and denominator of the recall, and of the precision."""


def _wrong_pairs(pair: _Pair) -> float:
    """The share of pairs of mentions that only one of both joins; missing mentions are clusters of their own."""
    n = len(pair.key_of.keys() | pair.response_of.keys())
    joined = [sum(len(cluster) * (len(cluster) - 1) // 2 for cluster in side) for side in (pair.key, pair.response)]
    both = sum(count * (count - 1) // 2 for count in pair.common.values())
    return _ratio(joined[0] + joined[1] - 2 * both, n * (n - 1) / 2)


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _without_repeats(clusters: Clusters) -> Clusters:
    seen: set[Hashable] = set()
    kept = []
    for cluster in clusters:
        own = [mention for mention in dict.fromkeys(cluster) if mention not in seen]
        seen.update(own)
        if own:
            kept.append(own)
    return kept


def _as_clusters(side: Array | Clusters) -> Clusters:
    if not isinstance(side, np.ndarray):
        return side
    if not side.size:
        return []
    numbers = first_occurrence(side)
    order = np.argsort(numbers, kind="stable")
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    return [part.tolist() for part in np.split(order, cuts)]


def _read_side(side: Any, name: str) -> list[Array | Clusters]:
    """Read one entry per document: an array of numbers, or a list of clusters."""
    if isinstance(side, Document):
        side = [side]
    if isinstance(side, Ragged):
        return [np.asarray(part) for part in side]
    if isinstance(side, np.ndarray) and side.dtype != object:
        return [_read_labels(part, name) for part in (side if side.ndim == 2 else [side])]
    listed = entries(name, side, "clusters of mentions")
    if all(isinstance(entry, Document) for entry in listed):
        return [_of_document(entry, name) for entry in listed]
    if listed and all(map(is_whole, listed)):
        return [_read_labels(listed, name)]
    if _is_clustering(listed):
        return [[list(cluster) for cluster in listed]]
    return [
        [list(cluster) for cluster in entry] if _is_clustering(entry) else _read_labels(entry, name) for entry in listed
    ]


def _of_document(document: Document, name: str) -> Clusters:
    if document.clusters is None:
        raise ValueError(f"{name}: the clusters of document {shorten(document.name)} are unknown")
    spans = list(map(tuple, document.mentions.tolist()))
    seen: Counter[Any] = Counter()
    mentions = []
    for span in spans:  # a repeated span is two mentions
        mentions.append((*span, seen[span]))
        seen[span] += 1
    groups: dict[int, list[Hashable]] = {}
    for mention, number in zip(mentions, document.clusters.tolist(), strict=True):
        groups.setdefault(number, []).append(mention)
    return list(groups.values())


def _is_clustering(entry: Any) -> bool:
    """Whether an entry is a list of clusters: sets, or lists of tuples."""
    if isinstance(entry, np.ndarray | str | bytes) or not has_length(entry):
        return False
    clusters = list(entry)
    return bool(clusters) and all(
        isinstance(cluster, set | frozenset)
        or (isinstance(cluster, list | tuple) and bool(cluster) and all(isinstance(m, tuple) for m in cluster))
        for cluster in clusters
    )


def _read_labels(entry: Any, name: str) -> Array:
    labels = as_array(entry)
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iuUS"):
        raise ValueError(f"{name} must have one number per mention, or sets of mentions, got {shorten(entry)}")
    return labels
