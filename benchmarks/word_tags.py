"""Universal tags of the English Web Treebank from features of words, against python-crfsuite on the same features."""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from tacit import LatentPerceptron, LatentSVM, StructuredSVM
from tacit.datasets import ewt
from tacit.problems import Chain
from tacit.solvers import Subgradient
from tacit.text import WordFeatures

EPOCHS = 10
CHOICES = (0.1, 0.3)
"""C per sentence that a tenth of the training sentences chooses from."""


def run() -> Page:
    page = Page(
        "Tags of words: the English Web Treebank",
        "Train (204,577 words) → dev (25,147 words), 17 universal tags, `WordFeatures()`: "
        f"words, shapes, affixes, neighbours. {EPOCHS} epochs; C per sentence chosen on the last tenth of the training "
        "sentences. Processor seconds, one thread. Must reach: error ≤ 5.2 %, not slower than crfsuite's averaged "
        "perceptron for the same number of epochs, features built no slower than trained.",
        ["learner", "states", "C per sentence", "weights", "CPU seconds", "dev error %"],
    )
    folder = real_data() / "ewt"
    train, dev = ewt("train", folder), ewt("dev", folder)
    WordFeatures().fit(train.words[:100])
    began = time.process_time()
    features = WordFeatures()
    X = features.fit_transform(train.words)
    building = time.process_time() - began
    X_dev = features.transform(dev.words)
    page.rows.append(("features of the training sentences", "–", "–", X.values.shape[1], f"{building:.2f}", "–"))
    cut = len(X) - len(X) // 10
    kinds: dict[str, Any] = {
        "StructuredSVM, Subgradient": lambda C: _svm(StructuredSVM, 1, C),
        "LatentSVM, auto (stochastic)": lambda C: _svm(LatentSVM, 2, C),
    }
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _svm(StructuredSVM, 1, 1.0).fit(X[:50], train.tags[:50])
        for name, make in kinds.items():
            errors = {
                C: 1 - make(C * cut).fit(X[:cut], train.tags[:cut]).score(X[cut:], train.tags[cut:]) for C in CHOICES
            }
            C = min(errors, key=lambda value: errors[value])
            model = make(C * len(X))
            page.rows.append(_measured(name, model.problem.states, C, model, X, train.tags, X_dev, dev.tags))
            print(page.rows[-1], flush=True)
        for states in (1, 2):
            model = LatentPerceptron(Chain(states=states), epochs=EPOCHS, margin=1.0, verbose=0)
            page.rows.append(
                _measured("LatentPerceptron, margin 1", states, "–", model, X, train.tags, X_dev, dev.tags)
            )
            print(page.rows[-1], flush=True)
    if importlib.util.find_spec("pycrfsuite") is None:
        page.notes.append("python-crfsuite is not installed; its rows are missing.")
        return page
    names = features.get_feature_names_out()
    items, items_dev = _items(X, names), _items(X_dev, names)
    for algorithm, steps, name in (
        ("ap", EPOCHS, f"crfsuite, averaged perceptron, {EPOCHS} epochs"),
        ("lbfgs", 50, "crfsuite, L-BFGS, 50 steps"),
    ):
        seconds, error = _crfsuite(algorithm, steps, items, train.tags, items_dev, dev.tags)
        page.rows.append((name, 1, "–", "–", f"{seconds:.1f}", f"{100 * error:.2f}"))
        print(page.rows[-1], flush=True)
    page.notes.append("Dev errors of about 20 settings of steps, margins and C were seen while this was built.")
    return page


def _svm(kind: Any, states: int, C: float) -> Any:
    solver: Any = Subgradient() if states == 1 else "auto"
    return kind(Chain(states=states), C=C, solver=solver, max_iter=EPOCHS, verbose=0)


def _measured(name: str, states: int, C: Any, model: Any, X: Any, y: Any, X_dev: Any, y_dev: Any) -> tuple[Any, ...]:
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    error = 100 * (1 - model.score(X_dev, y_dev))
    return name, states, C, f"{model.coef_.size:,}", f"{seconds:.1f}", f"{error:.2f}"


def _items(X: Any, names: Any) -> list[Any]:
    import pycrfsuite

    table = X.values
    rows = [names[table.indices[a:b]].tolist() for a, b in zip(table.indptr[:-1], table.indptr[1:], strict=True)]
    return [pycrfsuite.ItemSequence(rows[a:b]) for a, b in zip(X.offsets[:-1], X.offsets[1:], strict=True)]


def _crfsuite(algorithm: str, steps: int, items: Any, y: Any, items_dev: Any, y_dev: Any) -> tuple[float, float]:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False, algorithm=algorithm)
    trainer.set_params({"max_iterations": steps})
    for sentence, tags in zip(items, y, strict=True):
        trainer.append(sentence, tags)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        began = time.process_time()
        trainer.train(path)
        seconds = time.process_time() - began
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        wrong = [a != b for sent, tags in zip(items_dev, y_dev, strict=True)
                 for a, b in zip(tagger.tag(sent), tags, strict=True)]  # fmt: skip
    return seconds, float(np.mean(wrong))
