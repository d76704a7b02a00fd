"""Retrieval: rankings from "this item above that one", for all queries alike or by hidden classes of queries."""

from tacit.ranking import measures
from tacit.ranking.global_ranker import GlobalRanker
from tacit.ranking.mixture import MixtureStep
from tacit.ranking.mixture_ranker import MixtureRanker
from tacit.ranking.relevances import Relevances
from tacit.ranking.transductive_ranker import TransductiveRanker
from tacit.ranking.triplets import JudgedRows, Triplets

__all__ = [
    "GlobalRanker",
    "JudgedRows",
    "MixtureRanker",
    "MixtureStep",
    "Relevances",
    "TransductiveRanker",
    "Triplets",
    "measures",
]
