"""Digits that look alike: a ranker whose hidden classes of queries weigh the similarities in their own way.

Run it from anywhere: ``python examples/retrieval.py --out retrieval.png``. Queries are digits of scikit-learn; an item
is relevant if it shows the same digit. It learns from "this one above that one" alone, prints how many items one
browses to meet twenty relevant ones, and writes a picture.
"""

# ruff: noqa: T201
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from tacit import plot
from tacit.ranking import GlobalRanker, MixtureRanker, Relevances, TransductiveRanker, Triplets, measures

WANTED = 20
PARTS = {"upper half": slice(0, 32), "lower half": slice(32, 64)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("retrieval.png"), help="where the picture goes")
    out = parser.parse_args().out
    items, train, test = split()
    relevances = Relevances(None, ["cosine", "intersection", "l1"])
    triplets = Triplets.from_relevance(same_digit(train, items), top=10, others=16)
    print(f"{triplets.n_queries} queries to learn from, {len(triplets)} triplets")
    rankers: dict[str, Any] = {
        "global": GlobalRanker(relevances),
        "transductive": TransductiveRanker(relevances, n_neighbors=50),
        "mixture": MixtureRanker(4, relevances, random_state=0),
    }
    right = same_digit(test, items)
    rankings = {}
    for name, ranker in rankers.items():
        ranker.fit(features(train), features(items), triplets)
        rankings[name] = ranker.rank(features(test), len(items[1]))
        browsed = measures.estimate(measures.search_length(rankings[name], right, WANTED))
        found = f"{browsed.mean:.1f} items ({browsed.low:.1f} to {browsed.high:.1f})"
        print(f"{name}: {found} browsed to meet {WANTED} of the same digit")
    draw(rankers["mixture"], rankings, test, items, right).savefig(out, dpi=100)
    print("picture:", out)


def split() -> tuple[Any, Any, Any]:
    """Images and digits of 900 items, 400 queries to learn from and 200 others to test; none is in two parts."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.images))
    parts = np.split(order, [900, 1300, 1500])[:3]
    return tuple((data.images[part], data.target[part]) for part in parts)  # type: ignore[return-value]


def features(part: Any) -> dict[str, Any]:
    """Three families: the pixels of both halves, and how dark rows and columns are."""
    images = part[0] / 16
    pixels = images.reshape(len(images), -1)
    profile = np.hstack([images.mean(axis=1), images.mean(axis=2)])
    return {name: pixels[:, columns] for name, columns in PARTS.items()} | {"profile": profile}


def same_digit(queries: Any, items: Any) -> Any:
    return (queries[1][:, None] == items[1]).astype(float)


def draw(mixture: Any, rankings: dict[str, Any], test: Any, items: Any, right: Any) -> Any:
    """Precision and recall, what the hidden classes look at, and which digits they hold."""
    figure = plot.pyplot().figure(figsize=(10.5, 7.2), layout="constrained")
    (upper_left, upper_right), (lower_left, lower_right) = figure.subplots(2, 2)
    curves = {name: measures.precision_recall(ranking[:, :200], right) for name, ranking in rankings.items()}
    plot.precision_recall(curves, ax=upper_left)
    plot.class_weights(mixture, ax=upper_right)
    classes = mixture.class_proba(features(test)).argmax(axis=1)
    counts = np.array([np.bincount(test[1][classes == g], minlength=10) for g in range(mixture.n_classes_)])
    lower_left.imshow(counts, cmap="Blues", aspect="auto")
    for g, digit in np.argwhere(counts > 0):
        dark = counts[g, digit] > counts.max() / 2
        lower_left.text(digit, g, counts[g, digit], ha="center", va="center", color="white" if dark else "#222222")
    lower_left.set_yticks(range(len(counts)), [f"class {g + 1}" for g in range(len(counts))])
    lower_left.set_xticks(range(10))
    lower_left.set(title="Which digits the hidden classes hold (nobody told)", xlabel="digit of the query")
    shown = [int(np.flatnonzero(test[1] == digit)[0]) for digit in (1, 3, 4, 8, 9)]
    answers = [np.concatenate([test[0][[q]], items[0][rankings["mixture"][q, :10]]]) for q in shown]
    sheet = np.vstack([np.hstack([np.pad(image, 1) for image in row]) for row in answers])
    lower_right.imshow(sheet, cmap="gray_r", aspect="auto")
    lower_right.axvline(9.5, color="#d55e00", lw=2)
    lower_right.axis("off")
    lower_right.set_title("Queries, and the first ten answers of the mixture")
    return figure


if __name__ == "__main__":
    main()
