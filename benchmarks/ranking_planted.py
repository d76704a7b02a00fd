"""Hidden classes of queries that were planted: are they found, and does the ranking come out as under the truth?"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.harness import Page
from tacit.ranking import GlobalRanker, MixtureRanker, Relevances, Triplets, measures

N_TRAIN, N_TEST, N_ITEMS, M, P = 1000, 500, 1000, 8, 5
NOISE, R, RELEVANT = 0.5, 20, 100
MANY_QUERIES = 4000
PENALTIES = (0.001, 0.01, 0.1, 1.0)


class Planted(NamedTuple):
    """Queries and items, what tells classes apart, the classes, their weights, and noisy relevances."""

    queries: Any
    items: Any
    x: Any
    classes: Any
    weights: Any
    relevance: Any


def run() -> Page:
    page = Page(
        "Planted classes of queries: recovered, and ranked as under the truth",
        f"{N_TRAIN} or {MANY_QUERIES} training and {N_TEST} test queries, {N_ITEMS} items, {M} similarities. A query "
        f"of class g ranks by z_g·k plus noise ({NOISE} of a standard deviation); the weights of classes are opposed "
        f"(their mean is zero). Classes lie in heaps of {P} query features, or are cut by hyperplanes through one heap "
        f"(gate). Triplets: the 10 most relevant above 16 others. Items browsed to meet {R} of the {RELEVANT} most "
        f"relevant. The penalty of the gate, one of {', '.join(f'{v:g}' for v in PENALTIES)}, is chosen on a fifth of "
        "the training queries. Must reach: adjusted Rand index at least 0.9, items browsed within 5 % of the planted "
        "weights.",
        ["classes", "query features", "training queries", "adjusted Rand, test queries", "classes by 'auto'",
         "penalty chosen", "browsed: truth", "mixture", "global", "mixture against the truth",
         "CPU seconds of the fit"],
    )  # fmt: skip
    for n_classes in (2, 3, 4):
        for kind, n_train in (("heaps", N_TRAIN), ("gate", N_TRAIN), ("gate", MANY_QUERIES)):
            page.rows.append(measure(n_classes, kind, n_train))
            print(page.rows[-1], flush=True)
    page.notes.append(
        "Where hyperplanes cut classes through one heap, a few queries next to a hyperplane fall on its wrong side; "
        "with opposed weights each of these costs hundreds of items, so that one query in a hundred is several per "
        "cent of the mean. Their number falls with the number of training queries."
    )
    page.notes.append(
        "The noise was settled on the outcome of an earlier version of this page (raised from 0.15 to 0.5 of a "
        "standard deviation); what the rankers use is chosen on training queries."
    )
    return page


def measure(n_classes: int, kind: str, n_train: int) -> tuple[Any, ...]:
    """One row of the page."""
    relevances = Relevances({f"similarity {j + 1}": [j] for j in range(M)}, ["l1"], budget=1_000_000_000)
    train, test = np.arange(n_train), np.arange(n_train, n_train + N_TEST)
    data = plant(n_classes, kind, relevances, n_train, seed=n_classes)
    penalty = choose_penalty(data, n_classes, relevances, train)
    began = time.process_time()
    mixture = fit(data, n_classes, relevances, train, penalty)
    seconds = time.process_time() - began
    auto = fit(data, "auto", relevances, train[:N_TRAIN], penalty, n_init=1, max_classes=5)
    single = GlobalRanker(relevances, C=1000).fit(data.queries[train], data.items, draw_triplets(data, train))
    weights = {
        "truth": data.weights[data.classes[test]],
        "mixture": mixture.query_weights(data.x[test]),
        "global": single.query_weights(data.x[test]),
    }
    browsed = {name: browse(data, relevances, test, rows) for name, rows in weights.items()}
    found = mixture.class_proba(query_features=data.x[test]).argmax(axis=1)
    return (
        n_classes,
        kind,
        n_train,
        f"{adjusted_rand_score(data.classes[test], found):.3f}",
        auto.n_classes_,
        f"{penalty:g}",
        *(f"{browsed[name]:.1f}" for name in ("truth", "mixture", "global")),
        f"{browsed['mixture'] / browsed['truth'] - 1:+.1%}",
        f"{seconds:.1f}",
    )


def choose_penalty(data: Planted, n_classes: int, relevances: Relevances, train: Any) -> float:
    """The penalty of the gate with which a fifth of the training queries browse least."""
    rest, held = np.split(train, [4 * len(train) // 5])
    fitted = {value: fit(data, n_classes, relevances, rest, value, n_init=1) for value in PENALTIES}
    costs = {v: browse(data, relevances, held, model.query_weights(data.x[held])) for v, model in fitted.items()}
    return min(costs, key=costs.__getitem__)


def fit(data: Planted, n_classes: Any, relevances: Relevances, train: Any, penalty: float, **options: Any) -> Any:
    ranker = MixtureRanker(n_classes, relevances, C=1000, gate_penalty=penalty, **options)
    return ranker.fit(data.queries[train], data.items, draw_triplets(data, train), query_features=data.x[train])


def draw_triplets(data: Planted, train: Any) -> Triplets:
    return Triplets.from_similarity(data.relevance[train], top=10, others=16)


def browse(data: Planted, relevances: Relevances, queries: Any, weights: Any) -> float:
    """Mean number of items that these queries browse, ranked by a row of weights each."""
    table = relevances.table(data.queries[queries], data.items)
    relevant = most_relevant(data.relevance[queries])
    return float(measures.estimate(measures.search_length(_rank(table, weights), relevant, R)).mean)


def plant(n_classes: int, kind: str, relevances: Relevances, n_train: int, seed: int) -> Planted:
    rng = np.random.default_rng(seed)
    n = n_train + N_TEST
    weights = rng.standard_normal((n_classes, M))
    weights -= weights.mean(axis=0)
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    if kind == "heaps":
        centres = 8 * np.eye(n_classes, P)
        classes = rng.integers(n_classes, size=n)
        x = centres[classes] + rng.standard_normal((n, P))
    else:
        x = rng.standard_normal((n, P))
        classes = (x @ rng.standard_normal((P, n_classes))).argmax(axis=1)
    queries, items = rng.random((n, M)), rng.random((N_ITEMS, M))
    clean = np.einsum("qim,qm->qi", relevances.table(queries, items), weights[classes], optimize=True)
    noise = NOISE * clean.std() * rng.standard_normal(clean.shape)
    return Planted(queries, items, x, classes, weights, clean + noise)


def most_relevant(relevance: Any) -> Any:
    found = np.zeros_like(relevance)
    np.put_along_axis(found, np.argsort(-relevance, axis=1)[:, :RELEVANT], 1.0, axis=1)
    return found


def _rank(table: Any, weights: Any) -> Any:
    return np.argsort(-np.einsum("qim,qm->qi", table, weights, optimize=True), axis=1, kind="stable")
