"""Rankers, triplets and similarities: spoiled parameters, tables and constraints."""

from __future__ import annotations

import numpy as np

from tacit.ranking import GlobalRanker, MixtureRanker, Relevances, TransductiveRanker, Triplets
from tests.fuzz.draws import Draw
from tests.fuzz.fits import answers
from tests.fuzz.registry import target


def retrieval(draw: Draw):
    """Features of queries and items, relevances, and triplets in one of their forms."""
    n, n_items = draw.between(3, 8), draw.between(6, 12)
    queries, items = draw.rng.random((n, 3)), draw.rng.random((n_items, 3))
    relevance = draw.rng.random((n, n_items))
    triplets = Triplets.from_similarity(relevance, top=2, others=3)
    return queries, items, relevance, draw.pick([triplets, triplets.to_array()])


def similarities(draw: Draw):
    return {
        "families": draw.pick([None, {"left": [0], "right": [1, 2]}, {"all": slice(0, 3)}]),
        "similarities": draw.pick([("cosine",), ["l1", "rbf"], ("chi2", "intersection", "l2")]),
        "gamma": draw.pick([None, draw.real(0.1, 2)]),
        "budget": draw.pick([1000, 10**6]),
    }


@target("Triplets")
def triplets_of_all_kinds(draw: Draw):
    _, _, relevance, _ = retrieval(draw)
    sampling = {"top": draw.whole(1, 3), "others": draw.whole(1, 4), "random_state": 0}
    own = {"itself": draw.pick([None, np.arange(len(relevance)) % relevance.shape[1]])}
    tags = [[draw.pick("abc") for _ in range(draw.between(0, 3))] for _ in range(5)]
    kind = draw.between(0, 4)
    if kind == 0:
        found = Triplets.from_relevance(**draw.spoil_some({"relevance": relevance, **sampling, **own}, 0.6))
    elif kind == 1:
        found = Triplets.from_similarity(**draw.spoil_some({"similarity": relevance, **sampling, **own}, 0.6))
    elif kind == 2:
        found = Triplets.from_tags(**draw.spoil_some({"query_tags": tags, "item_tags": tags, **sampling}, 0.6))
    elif kind == 3:
        array = np.array([[0, 1, 2], [0, 2, 3], [1, 0, 1]])
        found = Triplets.from_array(**draw.spoil_some({"triplets": array, "n_queries": 2}, 0.6))
    else:
        found = Triplets.from_groups(**draw.spoil_some({"y": np.array([0, 1, 2, 1]), "group": np.array([3, 1])}, 0.6))
    found.check()
    return found.to_array()


@target("Relevances")
def relevances_of_tables(draw: Draw):
    queries, items, _, _ = retrieval(draw)
    relevances = Relevances(**draw.spoil_some(similarities(draw), 0.3))
    data = draw.spoil_some({"queries": queries, "items": items}, 0.3)
    return relevances.set_params(budget=10**6).table(**data)


@target("GlobalRanker", "MixtureRanker", "TransductiveRanker")
def rankers(draw: Draw):
    """Fit to triplets or to rows, parameters or data spoiled, or what is asked."""
    theme = draw.pick(["nothing", "parameters", "data", "asked"])
    kind = draw.pick([GlobalRanker, MixtureRanker, TransductiveRanker])
    parameters = {"C": draw.real(0.1, 100), "standardise": draw.chance(0.5), "tol": 1e-2, "max_iter": draw.whole(5, 50)}
    if kind is MixtureRanker:
        parameters |= {"n_classes": draw.pick([1, draw.whole(1, 3), "auto"]), "n_init": 1, "max_classes": 2}
        parameters |= {"gate_penalty": 0.1, "validation": 0.3, "random_state": 0}
    if kind is TransductiveRanker:
        parameters["n_neighbors"] = draw.whole(1, 5)
    queries, items, _, triplets = retrieval(draw)
    of_rows = draw.chance(0.4)
    if of_rows:
        group = np.full(4, 5)
        data = {"X": draw.rng.random((20, 3)), "y": draw.rng.integers(0, 3, 20), "group": group}
        asked = {"X": data["X"], "k": draw.whole(1, 9), "group": group}
    else:
        parameters["relevances"] = Relevances(**similarities(draw))
        data = {"X": queries, "y": items, "triplets": triplets}
        asked = {"X": queries, "k": draw.whole(1, 9), "itself": draw.pick([None, np.zeros(len(queries), dtype=int)])}
    ranker = kind(**draw.spoil_some(parameters, float(theme == "parameters")), verbose=0)
    ranker.fit(**draw.spoil_some(data, float(theme == "data")))
    given = draw.spoil_some(asked, float(theme == "asked"))
    return answers([lambda: ranker.rank(**given), lambda: ranker.score(**data)])
