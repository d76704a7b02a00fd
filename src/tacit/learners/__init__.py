"""Learners: which objective to minimise. One file per method; all are scikit-learn estimators."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
