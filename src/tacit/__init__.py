"""Structured prediction when part of the answer is never labelled.

A *problem* says what ``F(x, y, h) = w·Ψ(x, y, h)`` looks like and how to maximise it; a *learner* says which
objective to minimise; a *solver* minimises a convex piece of it.

>>> import tacit
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> model = tacit.StructuredSVM(tacit.problems.Multiclass(), C=100).fit(X, y)
>>> bool(model.score(X, y) > 0.95 and model.bound_ <= model.objective_)
True

Everything here is imported on first use, so ``import tacit`` costs next to nothing.
"""

from tacit.exports import export

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = export(__name__, __file__)
