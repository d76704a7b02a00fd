"""Summaries that keep the verdict: the sentences of a review, within a number of words, that its label rests on.

Run it from anywhere: ``python examples/summary.py --out summary.png``. It makes up reviews: most of a review retells
the plot, with words of praise and blame for its characters, and a few sentences judge. Or give it real ones:
``--reviews FILE.jsonl``, a JSON object per line with "sentences" and "label". It learns from "positive" and "negative"
alone, prints summaries, and shows how well a classifier does that reads nothing else.
"""

# ruff: noqa: T201
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import LinearSVC

from tacit.apps import ReasonFinder
from tacit.text import SentenceVectors

PRAISE = ["fine", "brilliant", "moving", "funny", "clever", "superb", "charming", "gripping"]
BLAME = ["dull", "clumsy", "boring", "silly", "weak", "awful", "tedious", "shallow"]
JUDGING = ["overall it is {}", "i found this {}", "the film is simply {}", "what a {} piece of work", "in short , {}"]
TELLING = [
    "the {} captain meets a stranger at the harbour",
    "his {} brother opens the letter in the kitchen",
    "a {} storm keeps the travellers in the village",
    "the detective follows a {} clue to the old mill",
    "years later the {} teacher returns to the island",
    "she hides the map from the {} collector",
]
SHARES = (0.1, 0.2, 0.3, 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("summary.png"), help="where the picture goes")
    parser.add_argument("--reviews", type=Path, help="reviews of your own, JSON lines")
    given = parser.parse_args()
    texts, labels = made_up(600) if given.reviews is None else read(given.reviews)
    half = len(texts) // 2
    train, test = (texts[:half], labels[:half]), (texts[half:], labels[half:])
    vectors = SentenceVectors().fit(train[0])
    reader = LinearSVC(random_state=0).fit(whole(vectors, train[0]), train[1])
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {"chosen sentences": [], "first sentences": [], "random sentences": []}
    for share in SHARES:
        finder = ReasonFinder(share=share, budget="words", verbose=0).fit(*train)
        chosen = [sorted(reason.position for reason in decision.reasons) for decision in finder.reasons(test[0])]
        ways = [
            chosen,
            [within(text, share, range(len(text))) for text in test[0]],
            [within(text, share, rng.permutation(len(text))) for text in test[0]],
        ]
        for values, places in zip(found.values(), ways, strict=True):
            summaries = [[text[p] for p in own] for text, own in zip(test[0], places, strict=True)]
            values.append(float(np.mean(reader.predict(whole(vectors, summaries)) == test[1])))
        if share == SHARES[1]:
            for text, own, label in zip(test[0][:3], chosen, test[1], strict=False):
                print(f"{label}: {' / '.join(text[p] for p in own)}")
    everything = float(np.mean(reader.predict(whole(vectors, test[0])) == test[1]))
    for name, values in found.items():
        print(f"{name}: " + ", ".join(f"{v:.2f} at {s:.0%}" for v, s in zip(values, SHARES, strict=True)))
    print(f"whole reviews: {everything:.2f}")
    draw(found, everything, given.out)
    print(f"picture: {given.out}")


def made_up(n: int) -> tuple[list[list[str]], np.ndarray]:
    """Reviews of ten sentences, two of which judge."""
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(n) % 2, "positive", "negative")
    texts = []
    for label in labels:
        own = PRAISE if label == "positive" else BLAME
        lines = [str(rng.choice(TELLING)).format(rng.choice(PRAISE + BLAME)) for _ in range(8)]
        lines += [str(line).format(rng.choice(own)) for line in rng.choice(JUDGING, 2, replace=False)]
        texts.append([lines[i] for i in rng.permutation(10)])
    return texts, labels


def read(path: Path) -> tuple[list[list[str]], np.ndarray]:
    reviews = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    order = np.random.default_rng(0).permutation(len(reviews))
    return [reviews[i]["sentences"] for i in order], np.array([reviews[i]["label"] for i in order])


def whole(vectors: SentenceVectors, texts: list[list[str]]) -> Any:
    """One row per text: the words that are in it."""
    X = vectors.transform(texts)
    return X.values[X.offsets[:-1]]


def within(text: list[str], share: float, order: Any) -> list[int]:
    """Sentences in this order, as long as they fit into a share of the words."""
    sizes = [len(sentence.split()) for sentence in text]
    room, kept = int(share * sum(sizes)), []
    for place in order:
        if sizes[place] <= room:
            kept.append(int(place))
            room -= sizes[place]
    return sorted(kept)


def draw(found: dict[str, list[float]], everything: float, out: Path) -> None:
    figure, axes = plt.subplots(figsize=(6.5, 4))
    for name, values in found.items():
        axes.plot([100 * share for share in SHARES], values, marker="o", label=name)
    axes.axhline(everything, color="grey", linestyle="--", label="the whole review")
    axes.set_xlabel("words of the summary, % of the review")
    axes.set_ylabel("right labels, read from the summary alone")
    axes.legend()
    figure.tight_layout()
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
