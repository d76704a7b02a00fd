"""Reviews, in which every sentence says a little: do bags with one sentence that carries the label suit them?"""

from __future__ import annotations

import gzip
import json
import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks.harness import Page, real_data
from tacit import LatentSVM, Ragged, StructuredSVM
from tacit.problems import Candidates, Multiclass

SPLITS, STARTS, SIZES = 3, 2, (10.0, 100.0, 1000.0)


def run() -> Page:
    page = Page(
        "Reviews: one carrier, or the whole text?",
        f"2,000 film reviews (Pang & Lee), half of them positive, 32 sentences each on average. tf-idf of words, "
        f"learned from the training half; {SPLITS} stratified splits in halves. A review as one row, or as a bag of "
        f"its sentences of which one carries the label (the best of {STARTS} starts). Accuracy in %, mean ± standard "
        "deviation over the splits.",
        ["model", "C", "training", "test", "CPU seconds per fit"],
    )
    texts, y = _read()
    scores: dict[tuple[str, float], list[tuple[float, float, float]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for train, test in StratifiedShuffleSplit(SPLITS, test_size=0.5, random_state=0).split(y, y):
            whole, bags = _describe(texts, train)
            for C in SIZES:
                models: dict[str, tuple[Any, Any]] = {
                    "the whole review: StructuredSVM(Multiclass())": (StructuredSVM(Multiclass(), C=C), whole),
                    "one sentence: LatentSVM(Candidates())": (
                        LatentSVM(Candidates(), C=C, n_init=STARTS, init="hidden"),
                        bags,
                    ),
                }
                for name, (model, X) in models.items():
                    began = time.process_time()
                    model.fit(X[train], y[train])
                    seconds = time.process_time() - began
                    row = model.score(X[train], y[train]), model.score(X[test], y[test]), seconds
                    scores.setdefault((name, C), []).append(row)
    for (name, C), rows in sorted(scores.items(), reverse=True):
        fitted, tested, seconds = np.array(rows).T
        page.rows.append((name, f"{C:g}", spread(fitted), spread(tested), f"{seconds.mean():.1f}"))
    page.notes.append(
        "A review says what it says all over: a model that must pick one sentence learns sentences by heart instead. "
        "Bags with one carrier are for samples in which one candidate holds what the label is about."
    )
    return page


def _read() -> tuple[list[list[str]], np.ndarray]:
    with gzip.open(real_data() / "sentiment" / "movie_reviews.jsonl.gz", "rt", encoding="utf-8") as lines:
        reviews = [json.loads(line) for line in lines]
    return [review["sentences"] for review in reviews], np.array([review["label"] for review in reviews])


def _describe(texts: list[list[str]], train: np.ndarray) -> tuple[Any, Ragged]:
    """Every review as one row, and as a bag of rows."""
    words = TfidfVectorizer(min_df=3, sublinear_tf=True).fit([" ".join(texts[i]) for i in train])
    sentences = words.transform([sentence for text in texts for sentence in text])
    offsets = np.cumsum([0] + [len(text) for text in texts])
    return words.transform([" ".join(text) for text in texts]), Ragged(sentences, offsets)


def spread(values: np.ndarray) -> str:
    return f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f}"
