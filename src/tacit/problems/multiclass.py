"""One label out of a few, nothing hidden."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from tacit.data.arrays import Array, as_csr, find_uneven, first_non_finite
from tacit.data.lines import one_line
from tacit.data.parameters import plain_array
from tacit.data.shards import Shards, read_table_shards
from tacit.oracle import Example
from tacit.oracle.contracts import KnownHidden
from tacit.problems.classes.problem import TableProblem


class Multiclass(TableProblem):
    """Multi-class classification, ``s(y) = w_y·x + b_y`` (Crammer & Singer 2001).

    ``X`` is a dense or scipy-sparse table. O(n·K·d) per pass. Intercepts are weights of a constant feature 1, so they
    are penalised like the others.

    Parameters
    ----------
    loss : "0/1", or a cost matrix ``loss[true, predicted]`` in the order of the classes
    classes : all labels, where the training data may lack some; None takes those of y, sorted
    fit_intercept : whether each class has an intercept

    >>> import numpy as np
    >>> from tacit import StructuredSVM
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["low", "low", "high", "high"]
    >>> StructuredSVM(Multiclass(), C=100).fit(X, y).predict([[0.2], [2.9]])
    array(['low', 'high'], dtype='<U4')
    """

    has_hidden = False

    def read(self, X: Any) -> Any:
        if isinstance(X, Shards):
            return read_table_shards(X)
        if sparse.issparse(X):
            X = as_csr(X)
        elif hasattr(X, "__array__") and not hasattr(X, "columns"):
            X = plain_array(X, "X")
        kinds = [np.float64, np.float32]
        try:
            X = check_array(X, accept_sparse="csr", dtype=kinds, ensure_all_finite=False, input_name="X")
        except (ValueError, TypeError, OverflowError) as error:
            why = find_uneven(X) or one_line(str(error), 500)
            kind = ValueError if isinstance(error, OverflowError) else type(error)
            raise kind(f"X must be a table of numbers: {why}") from error
        if found := first_non_finite(X):
            where = f"{X[found]} in row {found[0]}, column {found[1]}"
            raise ValueError(f"X contains NaN or infinity: {where}; drop the row or fill the gap")
        return X

    def rows(self, X: Any) -> tuple[Any, Array]:
        return X.values if isinstance(X, Shards) else X, np.arange(X.shape[0] + 1)

    def known_hidden(self, hidden: Any, offsets: Array) -> KnownHidden:
        raise ValueError("Multiclass does not take hidden=: leave it out")

    def example(self, rng: np.random.Generator) -> Example:
        shape = int(rng.integers(3, 7)), int(rng.integers(1, 4))
        X = rng.integers(-2, 3, shape).astype(rng.choice(["float64", "float32"]))
        return self.specify(X, None, np.array(["ant", "bee", "cat"] if self.classes is None else self.classes), rng)

    @classmethod
    def variants(cls) -> list[Self]:
        costs = [[0, 1, 3], [2, 0, 0.75], [1, 1, 0]]
        return [cls(), cls(fit_intercept=False), cls(loss=costs, classes=["cat", "ant", "bee"])]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
