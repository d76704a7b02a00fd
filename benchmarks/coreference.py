"""Coreference on LitBank: who is who in a hundred chapters, mentions given."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from benchmarks.harness import Page, real_data
from tacit import HiddenCRF, LatentPerceptron, LatentSVM, SelfPaced
from tacit.data.arrays import Array
from tacit.problems import Coreference
from tacit.text import Document, MentionPairs, coreference_scores, mention_pairs, read_conll
from tacit.text.coreference.mentions import N_PRONOUNS
from tacit.text.coreference.pairs import FIRST_FEATURE
from tacit.text.documents import first_occurrence

FOLDS = 5
SVM = {"C": 5.0, "tol": 10.0, "max_iter": 5, "verbose": 0}
"""A document's loss is about 200, and a gain counts from C · tol on: from five per cent of that."""

LEARNERS: dict[str, Callable[[], Any]] = {
    "perceptron, left links": lambda: LatentPerceptron(Coreference(), epochs=6, verbose=0),
    "perceptron, forest": lambda: LatentPerceptron(Coreference("forest"), epochs=6, verbose=0),
}
MARGIN_LEARNERS: dict[str, Callable[[], Any]] = {
    "latent SVM (CCCP), left links, C = 5": lambda: LatentSVM(Coreference(), **SVM),
    "latent SVM (self-paced), left links, C = 5": lambda: LatentSVM(Coreference(), pace=SelfPaced(), **SVM),
    "latent SVM (CCCP), forest, C = 5": lambda: LatentSVM(Coreference("forest"), **SVM),
    "latent SVM (self-paced), forest, C = 5": lambda: LatentSVM(Coreference("forest"), pace=SelfPaced(), **SVM),
}
SPLIT = "first 80, last 20"


def run() -> Page:
    page = Page(
        "Coreference: LitBank, mentions given",
        "100 chapters, 29,103 mentions, those that occur once kept. Five contiguous folds of the sorted names. CoNLL "
        "and its parts are taken over all documents at once, MITRE loss (1 − MUC) and pairwise loss are means over "
        "documents; per cent. Seconds are CPU time of one fit on 80 documents, features made before. Must reach (best "
        "learner): CoNLL ≥ 78.2, MITRE ≤ 14.4, pairwise ≤ 9.2; perceptron ≤ 3 s, latent SVM ≤ 30 s; first 80 / last "
        "20: CoNLL ≥ 78.4, MITRE ≤ 16.5, pairwise ≤ 7.5.",
        ["learner", "documents", "CoNLL", "MUC", "B³", "CEAF-e", "LEA", "MITRE loss", "pairwise loss", "fit (s)"],
    )
    documents = read_conll(sorted((real_data() / "litbank").glob("*.conll")))
    y = [np.asarray(document.clusters) for document in documents]
    began = time.process_time()
    X = mention_pairs(documents)
    seconds = time.process_time() - began
    for name, answer in BASELINES.items():
        _add(page, name, "all", y, [answer(document) for document in documents], None)
    closest, fit = _cross(_Pairwise, X, y)
    _add(page, "pairwise logistic regression, closest first", "5 folds", y, [a for a, _ in closest], fit)
    _add(page, "pairwise logistic regression, transitive", "5 folds", y, [b for _, b in closest], fit)
    for name, learner in LEARNERS.items():
        predicted, fit = _cross(learner, X, y)
        _add(page, name, "5 folds", y, predicted, fit)
        _add(page, name, SPLIT, y[80:], predicted[80:], None)
    answers, fit = _cross(_BothRules, X, y)
    for place, rule in enumerate(("best link", "likeliest cluster")):
        name, predicted = f"hidden CRF, left links, C = 15, {rule}", [pair[place] for pair in answers]
        _add(page, name, "5 folds", y, predicted, fit)
        _add(page, name, SPLIT, y[80:], predicted[80:], None)
    for name, learner in MARGIN_LEARNERS.items():
        model, predicted, fit = _split(learner, X, y)
        _add(page, name, SPLIT, y[80:], predicted[80:], fit)
        training = _mitre(y[:80], predicted[:80]), coreference_scores(y[:80], predicted[:80]).pairwise
        page.notes.append(
            f"{name}: objective {model.objective_:.1f} after {model.n_iter_} iterations"
            f"{' (stopped there by max_iter, not converged)' if model.n_iter_ == SVM['max_iter'] else ''}, in training "
            f"MITRE loss {100 * training[0]:.1f}, pairwise loss {100 * training[1]:.1f}."
        )
        print(page.notes[-1], flush=True)
    page.notes.append(_pass(X, y))
    page.notes.append(
        f"Features of all 100 documents: {seconds:.1f} s, {X.values.nbytes / 1e6:.0f} MB, {len(X.values):,} pairs of "
        f"{len(X.templates)} templates, {sum(X.sizes):,} weights (must reach ≤ 5 s)."
    )
    page.notes.append(
        "Features, epochs and C were chosen on documents 61–80 of the first 80, training on the first 60, and by "
        "four folds within the first 80. The folds, the last 20 among them, were looked at three times: before "
        "roles of mentions were added, after that, and after the likeliest cluster was added; both were kept for "
        "what they gained within the first 80. The latent SVMs were once more fitted with tol = 10 in place of 3, "
        "which takes half of the time and is as good on documents 61–80 (CoNLL 78.5 against 78.4). Four of the "
        "five folds test documents on which features were chosen, though never with their own clusters in "
        "training."
    )
    page.notes.append(
        "A run that max_iter stops has an objective that is still falling, so a comparison of self-paced learning with "
        "CCCP by objective, as in figure 2.1 of Kumar (2013), needs more iterations: page `coreference_sweep`."
    )
    page.notes.append(
        "Kumar (2013) on MUC6, which is not free: MITRE loss 15.4 by CCCP, 14.9 self-paced; pairwise loss 34.1 and "
        "33.9."
    )
    return page


def _cross(make: Callable[[], Any], X: MentionPairs, y: Sequence[Array]) -> tuple[list[Any], float]:
    """Predictions for every document by a model of the other folds, and the mean seconds of a fit."""
    n = len(y)
    predicted: list[Any] = [None] * n
    seconds = 0.0
    for fold in range(FOLDS):
        tested = np.arange(n * fold // FOLDS, n * (fold + 1) // FOLDS)
        others = np.setdiff1d(np.arange(n), tested)
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make().fit(X[others], [y[i] for i in others])
        seconds += time.process_time() - began
        for i, clusters in zip(tested, model.predict(X[tested]), strict=True):
            predicted[i] = clusters
    return predicted, seconds / FOLDS


def _add(page: Page, name: str, part: str, y: Sequence[Array], predicted: Sequence[Array], fit: float | None) -> None:
    scores = coreference_scores(y, predicted)
    shown = [scores[name] for name in ("conll", "muc", "b3", "ceafe", "lea")]
    row = [f"{100 * value:.1f}" for value in (*shown, _mitre(y, predicted), scores.pairwise)]
    page.rows.append((name, part, *row, "–" if fit is None else f"{fit:.1f}"))
    print(*page.rows[-1], sep=" | ", flush=True)


def _pass(X: MentionPairs, y: Sequence[Array]) -> str:
    problem = Coreference()
    oracle = problem.bind(X[:80], y[:80], problem.schema(X[:80], y[:80]))
    w = np.random.default_rng(0).standard_normal(oracle.n_params)
    times = []
    for _ in range(6):
        began = time.process_time()
        oracle.predict_augmented(w)
        times.append(time.process_time() - began)
    return f"A pass of `augmented` over 80 documents: {min(times):.3f} s on one thread (must reach ≤ 0.1)."


def _split(make: Callable[[], Any], X: MentionPairs, y: Sequence[Array]) -> tuple[Any, list[Array], float]:
    """A model of the first 80 documents, what it predicts for all, and the seconds of its fit."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make().fit(X[:80], y[:80])
    seconds = time.process_time() - began
    return model, [np.asarray(clusters) for clusters in model.predict(X)], seconds


def _mitre(y: Sequence[Array], predicted: Sequence[Array]) -> float:
    """The mean over documents of 1 − MUC."""
    return float(1 - np.mean([coreference_scores([a], [b])["muc"] for a, b in zip(y, predicted, strict=True)]))


def _one_cluster(document: Document) -> Array:
    return np.zeros(len(document), dtype=int)


def _by_words(document: Document) -> Array:
    """One cluster per text of a mention without its article, and one per class of pronouns."""
    from tacit.text.coreference.mentions import describe

    mentions = describe(document)
    return first_occurrence(np.where(mentions.kind < N_PRONOUNS, mentions.kind, mentions.bare))


BASELINES: dict[str, Callable[[Document], Array]] = {
    "all in one cluster": _one_cluster,
    "string match, one cluster per pronoun class": _by_words,
}


class _BothRules:
    """A hidden CRF, and two answers: by the best link of every mention, and by its likeliest cluster."""

    def fit(self, X: MentionPairs, y: Sequence[Array]) -> _BothRules:
        self.model = HiddenCRF(Coreference(), C=15, init="zero", max_iter=40, verbose=0).fit(X, y)
        return self

    def predict(self, X: MentionPairs) -> list[tuple[Array, Array]]:
        best, likeliest = (self.model.set_params(rule=rule).predict(X) for rule in ("max", "sum"))
        return [(np.asarray(a), np.asarray(b)) for a, b in zip(best, likeliest, strict=True)]


class _Pairwise:
    """Logistic regression on pairs, each for itself. It links to the closest mention that is likely, and it joins all
    that are: two answers."""

    def fit(self, X: MentionPairs, y: Sequence[Array]) -> _Pairwise:
        rows, labels = [], []
        for table, clusters in zip(X, y, strict=True):
            is_link = table[:, 0] != table[:, 1]
            same = clusters[table[:, 0]] == clusters[table[:, 1]]
            keep = is_link & (same | (np.arange(len(table)) % 7 == 0))  # a seventh of the pairs that are apart
            rows.append(table[keep])
            labels.append(same[keep])
        self.shift = np.log(7.0)
        self.starts = np.concatenate([[0], np.cumsum(X.sizes)])
        self.model = LogisticRegression(C=0.1, solver="liblinear", tol=1e-2).fit(
            self._matrix(np.concatenate(rows)), np.concatenate(labels)
        )
        return self

    def predict(self, X: MentionPairs) -> list[tuple[Array, Array]]:
        return [self._resolve(table) for table in X]

    def _resolve(self, table: Array) -> tuple[Array, Array]:
        pairs = table[table[:, 0] != table[:, 1]]
        likely = pairs[self.model.decision_function(self._matrix(pairs)) > self.shift] if len(pairs) else pairs
        closest, joined = (np.arange(int(table[:, 0].max()) + 1) for _ in range(2))
        seen = set()
        for later, earlier in likely[::-1, :FIRST_FEATURE].tolist():  # the closest first
            joined[joined == joined[later]] = joined[earlier]
            if later not in seen:
                seen.add(later)
                closest[closest == closest[later]] = closest[earlier]
        return first_occurrence(closest), first_occurrence(joined)

    def _matrix(self, rows: Array) -> Any:
        from scipy import sparse

        values = rows[:, FIRST_FEATURE:].astype(np.int64)
        indices = (self.starts[:-1] + values - 1)[values > 0]
        indptr = np.concatenate([[0], np.cumsum((values > 0).sum(axis=1))])
        return sparse.csr_matrix((np.ones(indices.size), indices, indptr), shape=(len(rows), self.starts[-1]))
