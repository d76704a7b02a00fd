"""Handwritten words: 704 to learn from, 6,173 to read, against python-crfsuite."""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

import tacit
from benchmarks.harness import Page, interleave, ratio, real_data
from tacit import Ragged, StructuredSVM
from tacit.problems import Chain
from tacit.solvers import FrankWolfe

PEER = "crfsuite, averaged perceptron, 30 epochs"


def run() -> Page:
    page = Page(
        "Letters: words read by a chain",
        "Train on fold 1 (704 words), test on the rest; 128 binary pixels and a constant per letter, 26 tags, C = 0.1 "
        "per word. Seconds of the fit from bound arrays or appended items; preparing is what comes before (crfsuite: "
        "items from pixels; tacit: `bind`, part of its fit). Must reach: error ≤ .210 with the gap stated, no slower "
        "than crfsuite's perceptron, preparing not slower than fitting; best C by cross-validation ≤ .200. CPU "
        "seconds, the least of four, one BLAS thread.",
        ["learner", "seconds", "× perceptron", "preparing", "gap", "test error"],
    )
    with np.load(real_data() / "letters" / "letters.npz") as data:
        words, tags = Ragged(data["pixels"], data["offsets"]), Ragged(data["letters"], data["offsets"])
        train, test = np.flatnonzero(data["folds"] == 1), np.flatnonzero(data["folds"] != 1)
    X, y, X_test, y_test = words[train], tags[train], words[test], tags[test]
    C = 0.1 * len(train)
    learners: dict[str, Any] = {}
    if importlib.util.find_spec("pycrfsuite") is None:
        page.notes.append("python-crfsuite is not installed; measured elsewhere: perceptron .2091, L-BFGS .2000.")
    else:
        learners[PEER] = _Crfsuite("ap", 30, X)
        learners["crfsuite, L-BFGS, 100 steps"] = _Crfsuite("lbfgs", 100, X)
    for name, solver, tol in (
        ("tacit, auto, tol 1e-2", "auto", 1e-2),
        ("tacit, auto, tol 1e-3", "auto", 1e-3),
        ("tacit, FrankWolfe, tol 0.1", FrankWolfe(), 0.1),
        ("tacit, FrankWolfe, tol 1e-2", FrankWolfe(), 1e-2),
    ):
        learners[name] = StructuredSVM(Chain(fit_intercept=True), C=C, solver=solver, tol=tol, verbose=0)
    with threadpool_limits(1):
        seconds = interleave(
            {name: lambda m=model: m.fit(X, y) for name, model in learners.items()}, 4, time.process_time
        )
    for name, model in learners.items():
        relative = f"{ratio(seconds, name, PEER):.2f}" if PEER in learners else "–"
        preparing = model.preparing if isinstance(model, _Crfsuite) else _binding(X, y)
        gap = f"{model.gap_ / model.objective_:.1%}" if hasattr(model, "gap_") else "none"
        error = f"{1 - model.score(X_test, y_test):.4f}"
        page.rows.append((name, f"{min(seconds[name]):.3f}", relative, f"{preparing:.3f}", gap, error))
    began = time.perf_counter()
    Cs = len(train) * np.array([0.02, 0.05, 0.1, 0.2, 0.5])
    folds = KFold(5, shuffle=True, random_state=0)  # the file is sorted by word, and the test words are the same ones
    chosen = tacit.path(StructuredSVM(Chain(fit_intercept=True), tol=1e-2, verbose=0), X, y, Cs, cv=folds).best
    page.rows.append(
        (
            f"tacit.path, 5 folds × 5 values of C, best C/n {chosen.C / len(train):g}",
            f"{time.perf_counter() - began:.2f}",
            "–",
            "–",
            f"{chosen.gap_ / chosen.objective_:.1%}",
            f"{1 - chosen.score(X_test, y_test):.4f}",
        )
    )
    return page


def _binding(X: Ragged, y: Ragged) -> float:
    began = time.perf_counter()
    problem = Chain(fit_intercept=True)
    problem.bind(X, y, problem.schema(X, y))
    return time.perf_counter() - began


class _Crfsuite:
    """python-crfsuite behind the same face; its items are made once."""

    def __init__(self, algorithm: str, steps: int, X: Ragged) -> None:
        self.algorithm, self.steps = algorithm, steps
        began = time.perf_counter()
        self.items = _items(X)
        self.preparing = time.perf_counter() - began

    def fit(self, X: Ragged, y: Ragged) -> None:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(verbose=False, algorithm=self.algorithm)
        trainer.set_params({"max_iterations": self.steps})
        for word, letters in zip(self.items, y, strict=True):
            trainer.append(word, [str(letter) for letter in letters])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            trainer.train(path)
            self.model = Path(path).read_bytes()

    def score(self, X: Ragged, y: Ragged) -> float:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open_inmemory(self.model)
        read = [[int(letter) for letter in tagger.tag(word)] for word in _items(X)]
        return float(np.mean(np.concatenate(read) == y.values))


def _items(X: Ragged) -> list[Any]:
    import pycrfsuite

    names = np.array([f"pixel{j}" for j in range(X.values.shape[1])])
    return [pycrfsuite.ItemSequence([["constant", *names[letter > 0]] for letter in word]) for word in X]
