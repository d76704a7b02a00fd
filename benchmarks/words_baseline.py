"""The baselines of the motif pages: linear models of counts of all words of 3 to 6 letters, without a hidden value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from benchmarks.harness import Page, Skipped
from tacit.datasets.dna_sequences import Halves

_SWAP = str.maketrans("ACGT", "TGCA")


def words_of(sequence: str, n_strands: int = 2, lengths: Sequence[int] = (3, 4, 5, 6)) -> list[str]:
    """All words of one strand or of both."""
    strands = (sequence, sequence[::-1].translate(_SWAP))[:n_strands]
    return [s[i : i + k] for s in strands for k in lengths for i in range(len(s) - k + 1)]


def words_scores(X: Sequence[str], y: np.ndarray, X_test: Sequence[str]) -> np.ndarray:
    """Scores of test sequences; C by three-fold cross-validation."""
    counts = CountVectorizer(analyzer=words_of)
    search = GridSearchCV(LogisticRegression(max_iter=2000), {"C": [1e-4, 1e-3, 1e-2, 1e-1]}, cv=3, scoring="roc_auc")
    search.fit(counts.fit_transform(X), y)
    return np.asarray(search.decision_function(counts.transform(X_test)))


def words_errors(data: Halves, lengths: Sequence[int]) -> tuple[float, float]:
    """Training and test error in % of a linear SVM on counts of words of one strand; C by cross-validation."""
    counts = CountVectorizer(analyzer=partial(words_of, n_strands=1, lengths=lengths))
    train, test = counts.fit_transform(data.X_train.astype(str)), counts.transform(data.X_test.astype(str))
    search = GridSearchCV(LinearSVC(random_state=0), {"C": [1e-4, 1e-3, 1e-2]}, cv=3).fit(train, data.y_train)
    return 100 * (1 - search.score(train, data.y_train)), 100 * (1 - search.score(test, data.y_test))


def paired_bootstrap(one: np.ndarray, other: np.ndarray, y: np.ndarray, rounds: int = 200) -> tuple[float, float]:
    """The 95 % interval of the difference of two areas under the ROC curve, resampling the test sequences."""
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    up, down = np.flatnonzero(y == 1), np.flatnonzero(y != 1)
    found = []
    for _ in range(rounds):
        rows = np.concatenate([rng.choice(up, up.size), rng.choice(down, down.size)])
        found.append(roc_auc_score(y[rows], one[rows]) - roc_auc_score(y[rows], other[rows]))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def run() -> Page:
    raise Skipped("it is part of motif_arrays, motif_peaks, uniprobe and min_entropy_grid")
