"""Losses measured against completions of missing tags: imputed ones, or the mean over a distribution of them."""

from __future__ import annotations

from typing import Self

import numpy as np

from tacit.data.arrays import Array
from tacit.oracle import LossTable
from tacit.problems.chain.entropy import add_means
from tacit.problems.chain.packed import PackedChains


class CompletedTags(PackedChains):
    """What dissimilarity coefficients ask for: a posterior has one number per token and state, token after token.

    Losses are sums over tokens, so that means over completions need the probabilities of single states alone. Only the
    gradient by the weights of the distribution needs sums over paths.
    """

    loss_needs_hidden = False
    measures_completed = True
    """`measured_against` counts missing tags, too."""

    def measured_against(self, code: Array | None = None, *, posterior: Array | None = None) -> Self:
        """See `tacit.oracle.capabilities.MeasuresHidden`: missing tags are those of a code, or drawn from a posterior;
        known tags stay."""
        if (code is None) == (posterior is None):
            raise ValueError("give either code= or posterior= to measure the loss against, not both")
        if code is not None:
            shares = np.eye(self.n_states)[self._read(code)]
        else:
            shares = np.array(posterior, dtype=np.float64).reshape(int(self.offsets[-1]), self.n_states)
        labels = self._true_labels(None)
        known = labels >= 0
        shares[known] = np.eye(self.n_states)[self.states.first[labels[known]]]
        return self._with(_losses=LossTable(np.ascontiguousarray((shares @ self.costs).T), None))

    def losses_of(self, code: Array) -> Array:
        """See `tacit.oracle.capabilities.MovesPosteriors`."""
        return np.ascontiguousarray(self.costs.T[self._read(code)]).ravel()

    def diversity(self, posterior: Array) -> tuple[Array, Array]:
        """See `tacit.oracle.capabilities.MovesPosteriors`."""
        shares = np.reshape(posterior, (-1, self.n_states))
        slope = shares @ (self.costs + self.costs.T)
        return 0.5 * np.add.reduceat((shares * slope).sum(axis=1), self.offsets[:-1]), slope.ravel()

    def posterior_slope(self, w: Array, posterior: Array, values: Array, coef: Array) -> Array:
        """See `tacit.oracle.capabilities.MovesPosteriors`."""
        has_gaps = np.logical_or.reduceat(self._true_labels(None) < 0, self.offsets[:-1])
        rows, blocks = np.flatnonzero(has_gaps), self._zeros()
        if rows.size:
            tokens, gain = self._positions(rows), np.reshape(values, (-1, self.n_states))
            given = self._evidence(None)[tokens]
            add_means(self, w, rows, given, np.ascontiguousarray(coef[rows]), 1.0, blocks, gain[tokens])
        return self.flat(*blocks)
