"""How scores become an answer: the best output, or the best label after summing over hidden values."""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np

from tacit.data.arrays import Array
from tacit.learners.preparation import has_hidden_states
from tacit.oracle import Oracle, capability, has_long_codes
from tacit.oracle.capabilities import (
    FindsLeastEntropy,
    GivesEntropySlacks,
    HasHiddenStates,
    ScoresEntropy,
    ScoresLabels,
    SumsParts,
)
from tacit.oracle.contracts import Need
from tacit.oracle.entropies import Order


class Rule(Protocol):
    """How a learner predicts (`tacit.learners.learner.Learner.rule`)."""

    needs: tuple[Need, ...]
    """The protocols or methods of an oracle that `answer` calls."""

    def answer(self, oracle: Oracle, w: Array) -> Array:
        """The code of the output that is predicted for every sample."""

    def label_scores(self, oracle: Oracle, w: Array) -> Array:
        """(n, n_labels): the score of every label, the highest being predicted."""


class BestOutput:
    """``argmax over (y, h) of s(y, h)``: the rule of margin learners."""

    needs: tuple[Need, ...] = (Oracle.predict,)

    def answer(self, oracle: Oracle, w: Array) -> Array:
        return oracle.predict(w).code

    def label_scores(self, oracle: Oracle, w: Array) -> Array:
        return cast(ScoresLabels, oracle).label_scores(w)


class SummedHidden:
    """``argmax over y of log Σ_h exp s(y, h)``, and the best hidden value with it: the rule of likelihoods."""

    needs: tuple[Need, ...] = (ScoresLabels,)

    def answer(self, oracle: Oracle, w: Array) -> Array:
        return cast(ScoresLabels, oracle).best_under(w, np.argmax(self.label_scores(oracle, w), axis=1)).code

    def label_scores(self, oracle: Oracle, w: Array) -> Array:
        return cast(ScoresLabels, oracle).label_scores(w, power=1.0)


class LikeliestLabel(SummedHidden):
    """`SummedHidden` for single labels. Where labels have many parts: the likeliest tag of every token where tags have
    hidden states, the likeliest cluster of every mention, the tree of the highest F1. Else the best output, as for
    plain sequences."""

    needs: tuple[Need, ...] = (Oracle.predict,)

    def answer(self, oracle: Oracle, w: Array) -> Array:
        if has_hidden_states(oracle):
            return cast(HasHiddenStates, oracle).likeliest(w)
        summing = capability(oracle, SumsParts)
        if summing is not None:
            return summing.likeliest_parts(w).code
        return BestOutput().answer(oracle, w) if has_long_codes(oracle) else super().answer(oracle, w)


class LeastEntropy:
    """``argmax over y of R_α(y)``, the label of least entropy, and the best hidden value with it."""

    needs: tuple[Need, ...] = (GivesEntropySlacks,)

    def __init__(self, alpha: Order) -> None:
        self.alpha = alpha

    def answer(self, oracle: Oracle, w: Array) -> Array:
        finder = capability(oracle, FindsLeastEntropy)
        if finder is not None:
            return finder.least_entropy(w, self.alpha).code
        return cast(ScoresLabels, oracle).best_under(w, np.argmax(self.label_scores(oracle, w), axis=1)).code

    def label_scores(self, oracle: Oracle, w: Array) -> Array:
        return cast(ScoresEntropy, oracle).renyi_scores(w, self.alpha)
