"""SpectralTagger with contexts of pairs, tags or symbols; tags from whole sequences and while symbols arrive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from benchmarks.spectral_tagger import LENGTH, SYMBOLS, TAGS, _draw_joint
from tacit import Ragged
from tacit.datasets import ewt
from tacit.spectral import FeatureClusters, RareWords, SpectralTagger, average_f1

STATES = 4


def run() -> Page:
    page = Page(
        "SpectralTagger: contexts, filtering, average F1",
        f"Planted HMMs of {STATES} states, {SYMBOLS} symbols and {TAGS} tags; letters as 200 clusters of pixels (fold "
        "1 to learn, the others to test); words of the web treebank (dev part to test). Rank and smoothing are chosen "
        'by held-out training sequences. "Whole" tags from P(y_t | x), "filter" from P(y_t | x_1 … x_t). Average F1 is '
        "the mean over tags. The baseline is the most frequent tag of every symbol. Must reach: whole sequences are "
        "not worse than filters.",
        ["data", "contexts", "rank", "smoothing", "error %, whole", "error %, filter", "F1, whole", "F1, filter"],
    )
    with threadpool_limits(1):
        for data, parts in _data():
            page.rows.append((data, "none: most frequent tag", "–", "–", *_judge_baseline(*parts)))
            for context in ("pairs", "tags", "symbols"):
                page.rows.append((data, context, *_judge(context, *parts)))
                print(page.rows[-1], flush=True)
    return page


def _data() -> Iterator[tuple[str, Any]]:
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        moves, start = rng.dirichlet(np.full(STATES, 0.3), STATES), rng.dirichlet(np.ones(STATES))
        of_x, of_y = rng.dirichlet(np.full(SYMBOLS, 0.3), STATES), rng.dirichlet(np.full(TAGS, 0.2), STATES)
        X, y = (
            Ragged(part.ravel(), np.arange(len(part) + 1) * LENGTH)
            for part in _draw_joint(start, moves, of_x, of_y, rng)
        )
        half = len(X) // 2
        yield f"planted HMM, seed {seed}", (X[:half], y[:half], X[half:], y[half:])
    home = real_data()
    with np.load(home / "letters" / "letters.npz") as data:
        words, letters = Ragged(data["pixels"], data["offsets"]), Ragged(data["letters"], data["offsets"])
        train, test = np.flatnonzero(data["folds"] == 1), np.flatnonzero(data["folds"] != 1)
    clusters = FeatureClusters(200).fit(words[train])
    parts = clusters.transform(words[train]), letters[train], clusters.transform(words[test]), letters[test]
    yield "letters, 200 clusters", parts
    sentences, dev = ewt("train", home / "ewt"), ewt("dev", home / "ewt")
    rare = RareWords().fit(sentences.words)
    parts = rare.transform(sentences.words), sentences.tags, rare.transform(dev.words), dev.tags
    yield "web treebank words", parts


def _judge(context: str, X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[Any, ...]:
    model = SpectralTagger("auto", smoothing="auto", context=context, verbose=0).fit(X, y)
    tables = model.predict_proba(X_test), model.filter_proba(X_test)
    found = [Ragged(model.classes_[table.values.argmax(axis=1)], table.offsets) for table in tables]
    return model.rank_, f"{model.smoothing_:g}", *_measure(found, y_test)


def _judge_baseline(X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[Any, ...]:
    pairs = np.unique([_flat(X), _flat(y)], axis=1, return_counts=True)
    order = np.argsort(pairs[1], kind="stable")
    best = dict(zip(pairs[0][0, order].tolist(), pairs[0][1, order].tolist(), strict=True))  # the last one stays
    values, counts = np.unique(_flat(y), return_counts=True)
    found = [best.get(symbol, values[counts.argmax()]) for symbol in _flat(X_test).tolist()]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in X_test])])
    return _measure([Ragged(np.array(found), offsets)] * 2, y_test)


def _flat(rows: Any) -> Any:
    return np.concatenate([np.asarray(row).astype(str) for row in rows])


def _measure(found: Any, y_test: Any) -> tuple[str, ...]:
    truth, names = _flat(y_test), [tags.values.astype(str) for tags in found]
    errors = [f"{100 * np.mean(tags != truth):.2f}" for tags in names]
    offsets = found[0].offsets
    return *errors, *(f"{average_f1(Ragged(truth, offsets), Ragged(tags, offsets)):.3f}" for tags in names)
