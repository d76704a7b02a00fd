"""Retrieval: rankings from "this item above that one", for all queries alike or by hidden classes of queries."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
