"""LightGBM's example of learning to rank: linear rankers beside boosted trees, NDCG at 10."""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC

from benchmarks.harness import Page, real_data
from tacit.ranking import GlobalRanker, MixtureRanker, TransductiveRanker, Triplets, measures
from tacit.ranking.ranker import find_scale

CS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
FOLDS = 5
REFERENCE, BOTH = "tacit, GlobalRanker", "tacit, GlobalRanker, scaled by query and weighted by gain"
PEER = "LightGBM, lambdarank"


def run() -> Page:
    folder = real_data() / "lambdarank"
    train, test = (
        Triplets.from_svmlight(folder / f"rank.{part}", sizes=folder / f"rank.{part}.query")
        for part in ("train", "test")
    )
    width = max(train.X.shape[1], test.X.shape[1])
    X, Z = (np.pad(rows.X, ((0, 0), (0, width - rows.X.shape[1]))) for rows in (train, test))
    gains: dict[str, Any] = {"gain": "exponential"}
    scaled: dict[str, Any] = {**gains, "standardise": "query"}
    makers: dict[str, Any] = {
        REFERENCE: lambda C: GlobalRanker(C=C),
        "tacit, GlobalRanker, default C": lambda C: GlobalRanker(),
        "tacit, GlobalRanker, scaled by query": lambda C: GlobalRanker(C=C, standardise="query"),
        "tacit, GlobalRanker, pairs weighted by gain": lambda C: GlobalRanker(C=C, **gains),
        BOTH: lambda C: GlobalRanker(C=C, **scaled),
        "scikit-learn, LinearSVC (hinge) on pairs": lambda C: _PairSVC(C),
        "tacit, TransductiveRanker (50 neighbours)": lambda C: TransductiveRanker(C=C),
        "tacit, TransductiveRanker, both": lambda C: TransductiveRanker(C=C, **scaled),
        "tacit, MixtureRanker (2 classes)": lambda C: MixtureRanker(2, C=C, n_init=2),
        "tacit, MixtureRanker (2 classes), both": lambda C: MixtureRanker(2, C=C, n_init=2, **scaled),
    }
    if importlib.util.find_spec("lightgbm"):
        makers[PEER] = _make_lightgbm
    values, held_out, rows = {}, {}, {}
    for name, make in makers.items():
        is_fixed = name == PEER or "default" in name
        scores = {C: _cross_validate(make, X, train, C) for C in ((100.0,) if is_fixed else CS)}
        C = max(scores, key=lambda C: np.nanmean(scores[C]))
        held_out[name] = scores[C]
        began = time.process_time()
        ranker = make(C).fit(X, train.y, group=train.group)
        seconds = time.process_time() - began
        values[name] = _ndcg(_scores(ranker, Z, test.group), test)
        setting = "its example's settings" if name == PEER else f"C = {C:g}"
        rows[name] = (setting, f"{seconds:.2f}", str(measures.estimate(scores[C])))
        print(name, rows[name], np.nanmean(values[name]), flush=True)
    chosen = GlobalRanker(C="cv", **scaled).fit(X, train.y, group=train.group)
    page = Page(
        "LightGBM's ranking example: NDCG at 10",
        f"{train.group.size} training and {test.group.size} test queries, {len(X)} and {len(Z)} documents graded "
        f"0 to 4, {width} features, {len(train.triplets)} triplets. Gains 2^grade − 1; queries without a relevant "
        f"document are left out. C is the best of {', '.join(map(str, CS))} by {FOLDS}-fold "
        "cross-validation on the training queries; that mean is in the table. LightGBM has the settings of its "
        "example. Test queries were looked at several times, also while weights by gain and scales by query were "
        "tried: the cross-validated column decided, and is the fairer one. Must reach: plain linear rankers within "
        "noise of each other; with gains and scales by query, within noise of LightGBM.",
        [
            "ranker",
            "setting",
            "CPU seconds",
            "NDCG@10, cross-validated",
            "NDCG@10, test (95 % interval)",
            "minus GlobalRanker, paired",
        ],
    )
    reference = values[REFERENCE]
    for name, found in values.items():
        paired = measures.compare(found, reference)
        shown = "–" if found is reference else f"{paired.mean:+.3f} ({paired.low:+.3f} to {paired.high:+.3f})"
        page.rows.append((name, *rows[name], str(measures.estimate(found)), shown))
    page.notes.append(
        f'`GlobalRanker(C="cv", gain="exponential", standardise="query")` chooses C = {chosen.C_:g} by itself; NDCG@10 '
        f"of the test {np.nanmean(_ndcg(_scores(chosen, Z, test.group), test)):.3f}."
    )
    if PEER in values:
        lead, inner = (measures.compare(found[PEER], found[BOTH]) for found in (values, held_out))
        page.notes.append(
            f"LightGBM minus the linear ranker with both: {lead.mean:+.3f} ({lead.low:+.3f} to {lead.high:+.3f}), "
            f"paired over {lead.n} test queries; in cross-validation {inner.mean:+.3f} ({inner.low:+.3f} to "
            f"{inner.high:+.3f}) over {inner.n} training queries. Trees learn thresholds and products of features, "
            "which one weight per feature cannot."
        )
    if PEER not in values:
        page.notes.append("LightGBM is not installed, and was skipped.")
    return page


class _PairSVC:
    """liblinear on the differences of all pairs, scaled as the ranker scales them."""

    def __init__(self, C: float) -> None:
        self.C = C

    def fit(self, X: Any, y: Any, group: Any) -> _PairSVC:
        pairs = Triplets.from_groups(y, group).to_array()
        self.scale = find_scale(X, np.concatenate([[0], np.cumsum(group)]))
        differences = (X[pairs[:, 1]] - X[pairs[:, 2]]) / self.scale
        signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
        model = LinearSVC(loss="hinge", C=self.C / len(pairs), fit_intercept=False, tol=1e-3, max_iter=20_000)
        self.w = model.fit(differences * signs[:, None], signs).coef_.ravel()
        return self

    def decision_function(self, X: Any, group: Any = None) -> Any:
        return X / self.scale @ self.w


def _make_lightgbm(C: float) -> Any:
    from lightgbm import LGBMRanker

    return LGBMRanker(n_estimators=100, num_leaves=31, learning_rate=0.1, min_child_samples=50, verbose=-1, n_jobs=1)


def _scores(ranker: Any, X: Any, group: Any) -> Any:
    return ranker.decision_function(X, group=group) if hasattr(ranker, "decision_function") else ranker.predict(X)


def _cross_validate(make: Any, X: Any, train: Any, C: float) -> Any:
    """NDCG of every training query, held out in one of the folds."""
    offsets = np.concatenate([[0], np.cumsum(train.group)])

    def rows(queries: Any) -> Any:
        return np.concatenate([np.arange(offsets[q], offsets[q + 1]) for q in queries])

    parts = []
    for kept, held in KFold(FOLDS, shuffle=True, random_state=0).split(train.group):
        ranker = make(C).fit(X[rows(kept)], train.y[rows(kept)], group=train.group[kept])
        part = train._replace(y=train.y[rows(held)], group=train.group[held])
        parts.append(_ndcg(_scores(ranker, X[rows(held)], part.group), part))
    return np.concatenate(parts)


def _ndcg(scores: Any, judged: Any) -> Any:
    offsets = np.concatenate([[0], np.cumsum(judged.group)])
    ranking = np.full((judged.group.size, judged.group.max()), -1)
    for q, size in enumerate(judged.group):
        own = slice(offsets[q], offsets[q + 1])
        ranking[q, :size] = offsets[q] + np.argsort(-scores[own], kind="stable")
    return measures.ndcg(ranking, judged.y, 10, gain="exponential", group=judged.group)
