"""The iterative latent SVM: for losses that depend on the true hidden value when that is unknown."""

from __future__ import annotations

from typing import Any

from tacit.learners.latent_svm import LatentSVM
from tacit.learners.rounds import Rounds
from tacit.oracle import measures_hidden, require
from tacit.oracle.capabilities import MeasuresHidden


class IterativeLatentSVM(LatentSVM):
    """Latent SVMs whose loss is measured against imputed hidden values (Kumar, Turki, Preston & Koller 2011).

    For losses ``Δ(y_i, h_i, y, h)``, such as the overlap of boxes, when h_i is unknown. It works in rounds. A round
    fits a whole latent SVM, ``ξ_i = max_{y,h} [Δ(y_i, h_i, y, h) + s(y, h)] − max_h s(y_i, h)``, against the present
    estimates of h_i, and then imputes every h_i anew. The first round is measured against what the start imputes, where
    the start is a model: one of the known part (``init="known"``, and "auto" where some hidden values are known), an
    earlier fit (``warm_start``), or weights (``init=model.weights_``). Otherwise it counts the label alone where h_i is
    not given.

    Each round has a loss of its own, so rounds need not get better. They end when the hidden values of a round have
    occurred before. Kept is the round with the lowest objective, measured against its own hidden values. With a loss
    that does not depend on h this is `LatentSVM`.

    The parameters and attributes are those of `LatentSVM`. `max_iter` counts the iterations of all rounds, and the
    objective of a line of `history_` is that of its round. With a pace, only the first round goes from easy samples to
    hard ones; the others begin with all samples.

    >>> from tacit import Ragged
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]]])
    >>> bags = bags.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]] * 3)
    >>> model = IterativeLatentSVM(Candidates(loss="overlap"), C=100, n_init=5).fit(bags, ["x", "y", "x"])
    >>> model.predict(bags), model.hidden_
    (array(['x', 'y', 'x'], dtype='<U1'), array([1, 0, 0]))
    """

    def _check_loss(self, oracle: Any) -> None:
        if measures_hidden(oracle):
            require(type(self).__name__, self.problem, oracle, MeasuresHidden)

    def _descent(self, oracle: Any, prepared: Any) -> Rounds:
        return super()._descent(oracle, prepared).turned_into(Rounds)
