"""Rankers on items that no triplet has seen: the novel database of the slides, on photos and on Corel 5k."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.harness import Page, real_data
from benchmarks.ranking_corel import corel_images
from benchmarks.ranking_photos import photo_images
from benchmarks.three_rankers import NAMES, Grid, Images, judge, split
from tacit.ranking import measures

PARTS = (6, 2, 1, 2, 1)
"""Shares of the slides: database, training, validation and test queries, novel database."""

GRID = Grid(own_C=False, classes=(1, 2, 4), gate_penalties=(0.1,))
SHARE = 0.04
"""The share of a database that is relevant to a query of Corel, if it has a tag in common: 100 of 2500."""

RANKS = (5, 10, 20, 50, 100)
"""Where the curves of precision and recall are read off."""


def run() -> Page:
    photos, _, y = photo_images(real_data())
    corel = replace(corel_images(real_data() / "corel5k"), is_relevant=_most_relevant)
    page = Page(
        "Rankers on novel items",
        "The slides learn from triplets of one database and test on it and on a second one, whose items no triplet has "
        "seen. Their shares are 6 : 2 : 1 : 2 : 1 for the database, training, validation and test queries, and the "
        "novel database; here of photos (nine classes, five partitions) and of Corel 5k (tags, two partitions). "
        "Features and triplets are those of the pages `ranking_photos` and `ranking_corel`. On Corel the 4 % of a "
        "database with the largest overlap of tags are relevant. C, classes (1, 2 or 4) and neighbours are chosen on "
        "validation queries with the first database. Average precision of the test queries on both; databases differ "
        "in size, so compare rankers within a column. Curves: precision and recall, mean over queries and partitions, "
        "as on the slides, read off at these ranks. Must reach: weights that were learned are not worse than equal "
        "ones on novel items.",
        [
            "data",
            "ranker",
            "items of training (95 % interval)",
            "novel items (95 % interval)",
            "novel: minus global, paired",
            "items of training: rank: precision / recall, %",
            "novel items: rank: precision / recall, %",
        ],
    )
    for data, images, n, seeds in (("photos", photos, len(y), 5), ("Corel 5k", corel, 5000, 2)):
        _measure(page, data, images, n, seeds)
    page.notes.append(
        "The slides show precision and recall on SUN in pictures, without numbers for the novel database; these pages "
        "have no SUN images. Test queries were looked at once."
    )
    return page


def _measure(page: Page, data: str, images: Images, n: int, seeds: int) -> None:
    sizes = [n * share // sum(PARTS) for share in PARTS]
    judged = judge(images, [split(n, sizes, seed) for seed in range(seeds)], GRID)
    reference = np.concatenate(judged.novel["global"])
    for name in NAMES:
        known, novel = (np.concatenate(part[name]) for part in (judged.average, judged.novel))
        lead = measures.compare(novel, reference)
        paired = (
            "–" if name == "global" else f"{lead.mean:+.3f} ({lead.low:+.3f} to {lead.high:+.3f}), p = {lead.p:.1g}"
        )
        curves = [_read_off(part[name]) for part in (judged.curves, judged.novel_curves)]
        page.rows.append((data, name, str(measures.estimate(known)), str(measures.estimate(novel)), paired, *curves))
    page.notes.append(f"{data}: {', '.join(map(str, sizes))} images. Chosen: {'; '.join(judged.chosen)}.")


def _read_off(curves: list[tuple[Any, Any]]) -> str:
    """Mean precision and recall of some curves at `RANKS`, as far as they reach."""
    precision, recall = (100 * np.mean([curve[k] for curve in curves], axis=0) for k in (0, 1))
    reached = [rank for rank in RANKS if rank <= len(precision)]
    return "; ".join(f"{rank}: {precision[rank - 1]:.1f} / {recall[rank - 1]:.1f}" for rank in reached)


def _most_relevant(relevance: Any) -> Any:
    order = np.argsort(-relevance, axis=1, kind="stable")[:, : round(SHARE * relevance.shape[1])]
    found = np.zeros_like(relevance)
    np.put_along_axis(found, order, 1.0, axis=1)
    return found * (relevance > 0)
