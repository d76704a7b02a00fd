"""Retrieval of photos: nine classes of Caltech and Oxford pets, four families of features, the three rankers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from skimage.color import rgb2hsv
from skimage.feature import hog, local_binary_pattern
from sklearn.decomposition import PCA

from benchmarks.harness import Page, Skipped, real_data
from benchmarks.three_rankers import COLUMNS, Grid, Images, Judged, judge, report, split
from tacit import plot
from tacit.ranking import Relevances
from tacit.ranking.measures import precision_recall

SIZES = (400, 150, 80, 150)
GRID = Grid(own_C=True, classes=(2, 3, 4, 6), gate_penalties=(0.1,))
R = 20
SIDE = 64


def run() -> Page:
    images, _, y = photo_images(real_data())
    judged = judge(images, [split(len(y), SIZES, seed) for seed in range(5)], GRID)
    page = Page(
        "Photos: how many one browses to meet 20 of the same class",
        f"{len(y)} photos of {len(np.unique(y))} classes (Caltech-101: airplane, face, motorbike; Oxford pets: six "
        f"breeds), 5 random partitions into {SIZES[0]} photos to search, {SIZES[1]} training, {SIZES[2]} validation "
        f"and {SIZES[3]} test queries. Relevant is the same class. Families of features: colour histogram (HSV) and "
        "local binary patterns, each with χ², intersection and cosine; HOG and a coarse layout (8 × 8 thumbnail), each "
        "with −L1, −L2 and cosine. Triplets: 10 of the same class above 16 others. The slides have SUN images instead, "
        "220 browsed by the mixture against 286.",
        COLUMNS,
    )
    report(page, judged, R, "Test queries were looked at once.")
    mixture, single, near = (np.concatenate(judged.browsed[name]) for name in ("mixture", "global", "transductive"))
    page.notes.append(
        f"What was found: hidden classes change the number of photos browsed by "
        f"{np.nanmean(mixture) / np.nanmean(single) - 1:+.1%} against one weight vector, neighbours by "
        f"{np.nanmean(near) / np.nanmean(single) - 1:+.1%}; the slides report −23 % for the mixture on SUN."
    )
    return page


def photo_images(folder: Path) -> tuple[Images, list[Any], Any]:
    """Features of all photos, the photos themselves, and their classes."""
    paths = sorted(path for part in ("caltech", "pets") for path in (folder / part).glob("*/*.jpg"))
    if not paths:
        raise Skipped("there are no photos below TACIT_DATA")
    photos = [np.asarray(Image.open(path).convert("RGB").resize((SIDE, SIDE))) for path in paths]
    y = np.array([path.parent.name for path in paths])
    features = {
        "colour": np.array([_colour(photo) for photo in photos]),
        "shape": np.array([_shape(photo) for photo in photos]),
        "texture": np.array([_texture(photo) for photo in photos]),
        "layout": np.array([_layout(photo) for photo in photos]),
    }
    similarities = dict.fromkeys(("colour", "texture"), ("chi2", "intersection", "cosine"))
    similarities |= dict.fromkeys(("shape", "layout"), ("l1", "l2", "cosine"))

    def relevance(queries: Any, items: Any) -> Any:
        return (y[queries][:, None] == y[items]).astype(float)

    return Images(features, _directions, relevance, lambda table: table, Relevances(None, similarities), R), photos, y


def _directions(queries: dict[str, Any], items: dict[str, Any]) -> Any:
    """Coordinates of queries among the directions in which each family varies most in the database."""
    parts = []
    for name, table in items.items():
        main = PCA(5, random_state=0).fit(table)
        parts.append(main.transform(queries[name]) / np.sqrt(main.explained_variance_[0]))
    return np.hstack(parts)


def _colour(photo: Any) -> Any:
    values, _ = np.histogramdd(rgb2hsv(photo).reshape(-1, 3), bins=(8, 3, 3), range=[(0, 1)] * 3)
    return values.ravel() / values.sum()


def _shape(photo: Any) -> Any:
    return hog(photo, orientations=8, pixels_per_cell=(8, 8), cells_per_block=(1, 1), channel_axis=2)


def _texture(photo: Any) -> Any:
    grey = np.asarray(Image.fromarray(photo).convert("L"))
    parts = []
    for radius in (1, 3):
        codes = local_binary_pattern(grey, 8, radius, method="uniform")
        parts.append(np.bincount(codes.astype(int).ravel(), minlength=10) / codes.size)
    return np.concatenate(parts)


def _layout(photo: Any) -> Any:
    return np.asarray(Image.fromarray(photo).resize((8, 8), Image.Resampling.BOX)).ravel() / 255


def draw(out: Path) -> None:
    """The pictures of one partition: curves, hidden classes and a retrieval sheet. They hold photos: not to be kept."""
    images, photos, y = photo_images(real_data())
    judged = judge(images, [split(len(y), SIZES, 0)], GRID)
    draw_judged(images, photos, y, judged, out)


def draw_judged(images: Images, photos: list[Any], y: Any, judged: Judged, out: Path) -> None:
    part, mixture = judged.last["partition"], judged.last["mixture"]
    queries, items = images.take(part.test), images.take(part.items)
    x = images.describe(queries, items)
    relevant = images.relevance(part.test, part.items)
    rankings = {
        name: judged.last[name].rank(queries, 300, query_features=x) for name in ("global", "transductive", "mixture")
    }
    curves = {name: precision_recall(ranking, relevant) for name, ranking in rankings.items()}
    plot.precision_recall(curves).figure.savefig(out / "photos_precision_recall.png", dpi=100)
    shown, answers = [photos[i] for i in part.test], [photos[i] for i in part.items]
    proba = mixture.class_proba(query_features=x)
    plot.hidden_classes(mixture, shown, proba).savefig(out / "photos_classes.png", dpi=100)
    first = [int(np.flatnonzero(y[part.test] == name)[0]) for name in np.unique(y)[::2]]
    sheet = plot.retrieval_sheet(shown, answers, rankings, relevant, queries=first)
    sheet.savefig(out / "photos_sheet.png", dpi=100)
