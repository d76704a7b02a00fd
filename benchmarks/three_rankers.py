"""The protocol of the retrieval pages: three rankers and equal weights, on partitions of one set of images.

Everything is chosen on the validation queries of a partition; its test queries are looked at once, at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Page
from tacit.ranking import GlobalRanker, MixtureRanker, Relevances, TransductiveRanker, Triplets, measures

CS = (1.0, 10.0, 100.0)
NEIGHBOURS = (25, 100, 400)
NAMES = ("equal weights", "global", "transductive", "mixture")
TOP, OTHERS = 10, 16


class Partition(NamedTuple):
    """Numbers of images: the database, queries to learn from, to choose by and to test, and a database of images that
    no triplet has seen; None for no such."""

    items: Any
    train: Any
    validation: Any
    test: Any
    novel: Any = None


class Grid(NamedTuple):
    """What is tried on validation queries: whether every ranker has a C of its own or that of the global one, numbers
    of classes, and penalties λ of the gate."""

    own_C: bool
    classes: Sequence[int]
    gate_penalties: Sequence[float]


@dataclass
class Images:
    """What a page needs to know of its images.

    Parameters
    ----------
    features : one table per family, or one table
    describe : what classes of queries are told apart by, (queries, p), given the features of some and of the database
    relevance : (queries, items) how relevant images are to others, given their numbers
    is_relevant : which of these count as relevant when rankings are judged
    relevances : the similarities
    r : how many relevant images one wants to meet
    """

    features: Any
    describe: Callable[[Any, Any], Any]
    relevance: Callable[[Any, Any], Any]
    is_relevant: Callable[[Any], Any]
    relevances: Relevances
    r: int

    def take(self, numbers: Any) -> Any:
        if isinstance(self.features, dict):
            return {name: table[numbers] for name, table in self.features.items()}
        return self.features[numbers]


@dataclass
class Judged:
    """Test queries of all partitions, one after the other: per ranker the measures of each, and what was chosen."""

    browsed: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in NAMES})
    precision: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in NAMES})
    average: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in NAMES})
    novel: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in NAMES})  # average precisions
    curves: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in NAMES})
    novel_curves: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in NAMES})
    chosen: list[str] = field(default_factory=list)
    n_triplets: list[int] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)


def split(n: int, sizes: Sequence[int], seed: int) -> Partition:
    order = np.random.default_rng(seed).permutation(n)
    return Partition(*(np.sort(part) for part in np.split(order, np.cumsum(sizes))[: len(sizes)]))


def judge(images: Images, partitions: Sequence[Partition], grid: Grid) -> Judged:
    """Fit and choose on every partition, and measure the test queries."""
    judged = Judged()
    for number, part in enumerate(partitions):
        began = time.process_time()
        _judge_partition(images, part, grid, judged)
        print(f"partition {number + 1}: {judged.chosen[-1]}, {time.process_time() - began:.0f} s", flush=True)
    return judged


def _judge_partition(images: Images, part: Partition, grid: Grid, judged: Judged) -> None:
    items, train = images.take(part.items), images.take(part.train)
    triplets = Triplets.from_similarity(
        lambda rows: images.relevance(part.train[rows], part.items), top=TOP, others=OTHERS, n_queries=len(part.train)
    )
    judged.n_triplets.append(len(triplets))
    x_train = images.describe(train, items)
    held = _Queries(images, part.validation, part.items)

    def fitted(ranker: Any) -> Any:
        return ranker.fit(train, items, triplets, query_features=x_train)

    relevances = images.relevances
    rankers = [fitted(GlobalRanker(relevances, C)) for C in CS]
    best = min(rankers, key=held.cost)
    Cs = CS if grid.own_C else (best.C,)
    mixture = min(
        (
            fitted(MixtureRanker(n, relevances, C, gate_penalty=penalty))
            for n in grid.classes
            for C in Cs
            for penalty in (grid.gate_penalties if n > 1 else grid.gate_penalties[:1])
        ),
        key=held.cost,
    )
    wanted = [n for n in NEIGHBOURS if n < len(part.train)]
    near = min((fitted(TransductiveRanker(relevances, C, n_neighbors=n)) for n in wanted for C in Cs), key=held.cost)
    judged.chosen.append(
        f"C = {best.C:g}, {near.n_neighbors} neighbours with C = {near.C:g}, {mixture.n_classes_} classes with "
        f"C = {mixture.C:g}, λ = {mixture.gate_penalty:g}"
    )
    test = _Queries(images, part.test, part.items)
    for name, ranker in zip(NAMES, (_Equal(best.scale_), best, near, mixture), strict=True):
        ranking = test.rank(ranker)
        judged.browsed[name].append(measures.search_length(ranking, test.relevant, images.r))
        judged.precision[name].append(measures.precision_at(ranking, test.relevant, images.r))
        judged.average[name].append(measures.average_precision(ranking, test.relevant))
        judged.curves[name].append(measures.precision_recall(ranking[:, :300], test.relevant))
        if part.novel is not None:
            fresh = _Queries(images, part.test, part.novel, test.x)
            ranking = fresh.rank(ranker)
            judged.novel[name].append(measures.average_precision(ranking, fresh.relevant))
            judged.novel_curves[name].append(measures.precision_recall(ranking[:, :300], fresh.relevant))
    judged.last = {"partition": part, "global": best, "transductive": near, "mixture": mixture}


class _Queries:
    """Queries whose rankings are judged; their similarities are computed once for all rankers."""

    def __init__(self, images: Images, queries: Any, items: Any, x: Any = None) -> None:
        self.r = images.r
        self.x = images.describe(images.take(queries), images.take(items)) if x is None else x
        self.table = images.relevances.set_params(budget=4_000_000_000).table(images.take(queries), images.take(items))
        self.relevant = images.is_relevant(images.relevance(queries, items))

    def rank(self, ranker: Any) -> Any:
        scores = np.einsum("qim,qm->qi", self.table, ranker.query_weights(self.x), optimize=True)
        return np.argsort(-scores, axis=1, kind="stable")

    def cost(self, ranker: Any) -> float:
        """How many images one browses."""
        return float(np.nanmean(measures.search_length(self.rank(ranker), self.relevant, self.r)))


class _Equal:
    """Every similarity counts alike, in units of its spread."""

    def __init__(self, scale: Any) -> None:
        self.scale = scale

    def query_weights(self, x: Any) -> Any:
        return np.tile(1 / self.scale, (len(x), 1))


def report(page: Page, judged: Judged, r: int, looks: str) -> None:
    """One row per ranker, with intervals over all test queries and a paired test against the global ranker."""
    reference = np.concatenate(judged.browsed["global"])
    for name in NAMES:
        browsed = np.concatenate(judged.browsed[name])
        found = measures.estimate(browsed)
        by_partition = ", ".join(f"{np.nanmean(part):.0f}" for part in judged.browsed[name])
        if name == "global":
            paired = "–"
        else:
            lead = measures.compare(browsed, reference)
            paired = f"{lead.mean:+.1f} ({lead.low:+.1f} to {lead.high:+.1f}), p = {lead.p:.1g}"
        page.rows.append(
            (
                name,
                f"{found.mean:.1f} ({found.low:.1f} to {found.high:.1f})",
                paired,
                f"{np.nanmedian(browsed):.0f}",
                f"{np.nanmean(np.concatenate(judged.precision[name])):.3f}",
                f"{np.nanmean(np.concatenate(judged.average[name])):.3f}",
                by_partition,
            )
        )
    undefined = np.isnan(reference).sum()
    page.notes.append(
        f"Triplets per partition: {', '.join(map(str, judged.n_triplets))}. Chosen on the validation queries of each "
        f"partition: {'; '.join(judged.chosen)}. {looks}"
    )
    if undefined:
        page.notes.append(f"{undefined} of {reference.size} test queries have fewer than {r} relevant images.")


COLUMNS = (
    "ranker", "images browsed (95 % interval)", "against the global ranker, paired (Wilcoxon)", "median",
    "precision at as many", "average precision", "by partition",
)  # fmt: skip
