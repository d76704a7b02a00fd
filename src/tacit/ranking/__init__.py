"""Retrieval: rankings from "this item above that one", for all queries alike or by hidden classes of queries."""

from tacit.ranking.global_ranker import GlobalRanker
from tacit.ranking.relevances import Relevances
from tacit.ranking.triplets import JudgedRows, Triplets

__all__ = ["GlobalRanker", "JudgedRows", "Relevances", "Triplets"]
