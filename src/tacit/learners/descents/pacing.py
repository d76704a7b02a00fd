"""Self-paced learning: which samples are learned from, easy ones first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.data.specs import above, between, check_parameters, choice, estimator, optional, parameter, some_share, whole
from tacit.oracle import Oracle
from tacit.runtime.archive import storable

__all__ = ["SelfPaced"]


@storable
@estimator
class SelfPaced(BaseEstimator):  # type: ignore[misc]
    """Self-paced learning: learn from easy samples first.

    A sample is in while its share of the risk, ``(C/n) ξ_i``, is at most 1/K. K falls by the factor ``mu`` from one
    imputation to the next, until all samples are in; from there on it is plain CCCP. The guarantee is that of CCCP, but
    the optimum is often better: the hidden values of hard samples are imputed late, by a better model.

    Source: Kumar, Packer & Koller (2010); Kumar (2013), "Weakly Supervised Learning for Structured Output Prediction",
    algorithm 4.

    Parameters
    ----------
    mu : factor by which 1/K grows per imputation
    start : share of the samples in the first selection
    warmup : CCCP iterations with all samples before the first selection
    max_rounds : maximum number of alternations between choosing samples and fitting weights, per K
    K : the first K, instead of the one that ``start`` leads to; with a tiny K all samples are in
    paces : which samples may be left out. "hidden" is those whose hidden value is unknown (all, if none is unknown):
        the others are always in. "all" is algorithm 4 as printed. Negatives of a `Motif` have no site to find: "hidden"
        keeps them, "all" does not

    >>> import numpy as np
    >>> pace = SelfPaced(start=0.5)
    >>> risk = np.array([0.1, 0.4, 0.2, 0.9])
    >>> pace.choose(risk, pace.first_threshold(risk))
    array([ True, False,  True, False])
    """

    mu: float = parameter(above("a number above 1 (1.3 adds samples slowly, 2 fast)", 1), default=1.3)
    start: float = parameter(some_share, default=0.55)
    warmup: int = parameter(whole(), default=2)
    max_rounds: int = parameter(whole(), default=10)
    K: float | None = parameter(optional(between("a number from 1e-100 to 1e100", 1e-100, 1e100)), default=None)
    paces: str = parameter(choice("hidden", "all"), default="hidden")

    def check(self) -> None:
        """Refuse invalid parameters."""
        check_parameters(self)

    def can_leave_out(self, oracle: Oracle) -> Array:
        """The mask of the samples that may be left out; see the parameter ``paces``.

        By default they are those with unknown hidden values: terms of completely and of partly labelled samples cannot
        be compared.
        """
        paced = np.zeros(oracle.n_samples, dtype=bool)
        if self.paces == "hidden":
            paced[oracle.hidden_unknown()] = True
        return paced if paced.any() else ~paced

    def first_threshold(self, risk: Array, share: Array | None = None) -> float:
        """The first threshold 1/K: a share ``start`` of the samples, weighted by ``share``, has at most this risk."""
        if self.K is not None:
            return 1 / float(self.K)
        threshold = _find_quantile(risk, float(self.start), share)
        positive = risk[risk > 0]
        return threshold if threshold > 0 else float(positive.min(initial=max(1.0, float(risk.max()))))

    @property
    def n_shares(self) -> int:
        """The number of rounds until all samples are in, where their share grows by ``mu`` per round."""
        return math.ceil(math.log(1 / float(self.start)) / math.log(float(self.mu)) - 1e-9)

    def choose_share(self, risk: Array, n_rounds: int, share: Array | None = None) -> Array:
        """The share ``start · mu^n_rounds`` of the samples, those of the lowest risk, and all that tie with them.

        For learners without an objective, whose terms have no scale that a threshold could be compared with.
        """
        if n_rounds >= self.n_shares:
            return np.ones(risk.size, dtype=bool)
        return self.choose(risk, _find_quantile(risk, float(self.start) * float(self.mu) ** n_rounds, share))

    def next_threshold(self, risk: Array, last: float, is_in: Array | None = None, share: Array | None = None) -> float:
        """The threshold after the last one, which is infinite if there was none yet.

        ``is_in`` is a selection that is exhausted: the threshold then rises until the selection changes.
        """
        if not np.isfinite(last):
            return self.first_threshold(risk, share)
        mu = float(self.mu)
        threshold = last * mu
        if is_in is None or is_in.all() or not np.array_equal(self.choose(risk, threshold), is_in):
            return threshold
        powers = math.ceil(math.log(float(risk[~is_in].min()) / threshold) / math.log(mu))
        return threshold * mu**powers

    def choose(self, risk: Array, threshold: float) -> Array:
        """v_i = 1 ⇔ (C/n) ξ_i ≤ 1/K."""
        return np.asarray(risk <= threshold)


def _find_quantile(risk: Array, part: float, share: Array | None) -> float:
    """The risk that a part of the samples, weighted by ``share``, has at most."""
    order = np.argsort(risk, kind="stable")
    counts = np.arange(1.0, risk.size + 1) if share is None else np.cumsum(share[order])
    index = int(np.searchsorted(counts, part * counts[-1] * (1 - 1e-12)))
    return float(risk[order[min(index, risk.size - 1)]])


def _check_pace(name: str, value: Any) -> SelfPaced:
    if not isinstance(value, SelfPaced):
        raise TypeError(f"{name} must be None or tacit.SelfPaced(), got {shorten(value)}")
    value.check()
    return value


optional_pace = optional(_check_pace)
"""The spec of a learner's pace: None, or a valid `SelfPaced`."""
