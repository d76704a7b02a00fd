"""Hidden CRFs against scikit-learn, python-crfsuite, bare matrix products and our latent SVM."""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, Skipped, real_data
from benchmarks.latent_speed import bags
from tacit import HiddenCRF, LatentPerceptron, LatentSVM, MinEntropySVM, Ragged
from tacit.problems import Candidates, Chain, Multiclass

ROUNDS = 5


def run() -> Page:
    page = Page(
        "Hidden CRF: correctness and time",
        "CPU seconds, the lowest of several, all lines of a task in one run, one BLAS thread. *Letters*: fold 0 trains "
        "(as the test of `letters`), 128 pixels and a constant, ½ of the squared norm per word-log-likelihood as "
        "python-crfsuite's c2 = 1. *Digits*: both until the same norm of the gradient. *Sum pass*: log-partition and "
        "gradient on 2000 bags × 50 candidates × 100 features, 5 classes, against the two matrix products that it "
        "needs (scores, and their transpose), same dtype. *Bags*: those of `latent_speed`, 500 × 50 × 100, C = 100; "
        "held-out bags are drawn from the same prototypes.",
        ["task", "learner", "seconds", "ratio", "must reach", "result"],
    )
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        letters(page)
        digits(page)
        sum_pass(page)
        descents(page)
    return page


def lowest(call: Callable[[], Any], rounds: int = ROUNDS) -> float:
    call()
    seconds = []
    for _ in range(rounds):
        began = time.process_time()
        call()
        seconds.append(time.process_time() - began)
    return min(seconds)


def letters(page: Page) -> None:
    if importlib.util.find_spec("pycrfsuite") is None:
        raise Skipped("python-crfsuite is not installed")
    with np.load(real_data() / "letters" / "letters.npz") as data:
        words, tags = Ragged(data["pixels"], data["offsets"]), Ragged(data["letters"], data["offsets"])
        train, test = np.flatnonzero(data["folds"] == 0), np.flatnonzero(data["folds"] != 0)
    X, y, X_test, y_test = words[train], tags[train], words[test], tags[test]
    for is_dense in (True, False):
        peer = _Crfsuite(X, y, is_dense)
        peer_seconds = lowest(peer.fit, 2)
        what = "all pairs of pixel and letter" if is_dense else "its default: pairs that occur in training"
        error = peer.error(X_test, y_test)
        page.rows.append(
            (
                "letters",
                f"crfsuite, L-BFGS, 100 steps, {what}",
                f"{peer_seconds:.2f}",
                "1",
                "",
                f"objective {0.5 * peer.loss:.3f}, error {error:.4f}",
            )
        )
        if is_dense:
            reference = peer_seconds
    model = HiddenCRF(Chain(fit_intercept=True), C=0.5 * len(train), verbose=0)
    seconds = lowest(lambda: model.fit(X, y), 2)
    page.rows.append(
        (
            "letters",
            "HiddenCRF(Chain)",
            f"{seconds:.2f}",
            f"{seconds / reference:.2f}",
            "≤ 1 ×, error within .003",
            f"objective {model.objective_:.3f}, gap {model.gap_:.2g}, error {1 - model.score(X_test, y_test):.4f}",
        )
    )


class _Crfsuite:
    """python-crfsuite on the same features and regulariser; its items are made before the clock starts."""

    def __init__(self, X: Ragged, y: Ragged, is_dense: bool) -> None:
        self.items, self.y, self.is_dense = self._items(X), y, is_dense
        self.loss = np.inf

    def fit(self) -> None:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(verbose=False, algorithm="lbfgs")
        wanted = {"feature.possible_states": self.is_dense, "feature.possible_transitions": self.is_dense}
        trainer.set_params({"max_iterations": 100, "c2": 1.0, **wanted})
        for word, tags in zip(self.items, self.y, strict=True):
            trainer.append(word, [str(letter) for letter in tags])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            trainer.train(path)
            with open(path, "rb") as file:
                self.model = file.read()
        self.loss = trainer.logparser.last_iteration["loss"]

    def error(self, X: Ragged, y: Ragged) -> float:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open_inmemory(self.model)
        read = [int(letter) for word in self._items(X) for letter in tagger.tag(word)]
        return float(np.mean(np.array(read) != y.values))

    @staticmethod
    def _items(X: Ragged) -> list[Any]:
        import pycrfsuite

        names = np.array([f"pixel{j}" for j in range(X.values.shape[1])])
        return [pycrfsuite.ItemSequence([["constant", *names[letter > 0]] for letter in word]) for word in X]


def digits(page: Page) -> None:
    X, y = load_digits(return_X_y=True)
    X, n, C = X / 16, len(y), 100.0
    model = HiddenCRF(Multiclass(fit_intercept=False), C=C, tol=1e-6, verbose=0).fit(X, y)
    slope = model.history_[-1].slope
    peer, tol = None, 1e-2
    while True:  # the first tolerance that takes the peer to the same norm of the gradient of the same objective
        peer = LogisticRegression(C=C / n, fit_intercept=False, tol=tol, max_iter=2000).fit(X, y)
        probability = peer.predict_proba(X)
        probability[np.arange(n), y] -= 1
        if np.linalg.norm(peer.coef_ + C / n * probability.T @ X) <= slope:
            break
        tol /= 1.5
    theirs, ours = lowest(lambda: peer.fit(X, y)), lowest(lambda: model.fit(X, y))
    page.rows.append(
        ("digits", f"LogisticRegression, tol {tol:.2g}", f"{theirs:.4f}", "1", "", f"gradient ≤ {slope:.3g}")
    )
    page.rows.append(
        ("digits", "HiddenCRF(Multiclass)", f"{ours:.4f}", f"{ours / theirs:.2f}", "≤ 1.5 ×", f"gradient {slope:.3g}")
    )


def sum_pass(page: Page) -> None:
    rng = np.random.default_rng(0)
    n, size, d, K = 2000, 50, 100, 5
    for kind in (np.float64, np.float32):
        X, y = Ragged(rng.standard_normal((n * size, d)).astype(kind), np.arange(n + 1) * size), rng.integers(0, K, n)
        problem = Candidates(fit_intercept=False)
        oracle = problem.bind(X, y, problem.schema(X, y))
        w, c = 0.1 * rng.standard_normal(oracle.n_params), np.full(n, 1.0 / n)
        W, table, columns = w.reshape(K, d).astype(kind), X.values, np.ascontiguousarray(X.values.T)
        V = W @ columns

        def products(W: Any = W, V: Any = V, columns: Any = columns, table: Any = table) -> None:
            W @ columns
            V @ table

        bare = lowest(products, 20)
        ours = lowest(lambda o=oracle, w=w, c=c: o.expectations(w, free=c, truth=-c), 20)  # type: ignore[misc]
        page.rows.append((f"sum pass, {kind.__name__}", "two bare products", f"{bare:.4f}", "1", "", ""))
        page.rows.append(
            (
                f"sum pass, {kind.__name__}",
                "log-partitions and gradient",
                f"{ours:.4f}",
                f"{ours / bare:.2f}",
                "≤ 1.6 ×",
                "",
            )
        )


def descents(page: Page) -> None:
    X, y = bags(0)
    held_out, y_held = bags_alike(0)
    problem = Candidates(fit_intercept=False)
    learners = {
        "LatentSVM": LatentSVM(problem, C=100.0, init="proposed", verbose=0),
        "HiddenCRF, L-BFGS": HiddenCRF(problem, C=100.0, verbose=0),
        "HiddenCRF, EM": HiddenCRF(problem, C=100.0, method="em", verbose=0),
        "HiddenCRF, hard EM": HiddenCRF(problem, C=100.0, method="hard-em", verbose=0),
        "MinEntropySVM, α = 0.25": MinEntropySVM(problem, alpha=0.25, C=100.0, verbose=0),
        "MinEntropySVM, α = 1": MinEntropySVM(problem, alpha=1.0, C=100.0, verbose=0),
        "LatentPerceptron": LatentPerceptron(problem, verbose=0),
    }
    for name, model in learners.items():
        seconds = lowest(lambda m=model: m.fit(X, y), 1)  # type: ignore[misc]
        errors = f"training error {1 - model.score(X, y):.3f}, held-out {1 - model.score(held_out, y_held):.3f}"
        objective = f", objective {model.objective_:.2f}" if hasattr(model, "objective_") else ""
        wanted = "≤ 2 s" if name == "HiddenCRF, L-BFGS" else ""
        page.rows.append(("bags", name, f"{seconds:.2f}", "", wanted, errors + objective))


def bags_alike(seed: int) -> tuple[Ragged, Any]:
    """More bags of the same prototypes: the generator of `bags` goes on after them."""
    n, candidates, d, classes = 500, 50, 100, 5
    rng = np.random.default_rng(seed)
    rng.standard_normal((n * candidates, d))
    rng.integers(0, classes, n), rng.integers(0, candidates, n)
    prototypes = rng.standard_normal((classes, d))
    prototypes *= 5.7 / np.linalg.norm(prototypes, axis=1, keepdims=True)
    values = rng.standard_normal((n * candidates, d))
    y, hidden = rng.integers(0, classes, n), rng.integers(0, candidates, n)
    values[np.arange(n) * candidates + hidden] += prototypes[y]
    return Ragged(values / np.sqrt(d), np.arange(n + 1) * candidates), y
