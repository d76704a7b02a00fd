"""The iterative latent SVM: losses that look at the true hidden value, which nobody knows."""

from __future__ import annotations

from typing import Any

from tacit.learners.latent.descent import Descent
from tacit.learners.latent.rounds import Rounds
from tacit.learners.latent_svm import LatentSVM
from tacit.oracle import loss_needs_hidden, require


class IterativeLatentSVM(LatentSVM):
    """Latent SVMs whose loss is measured against imputed hidden values (Kumar, Turki, Preston & Koller 2011).

    For losses ``Δ(y_i, h_i, y, h)``, such as the overlap of boxes, when h_i is unknown: (i) estimate every h_i, (ii)
    fit a whole latent SVM, ``ξ_i = max_{y,h} [Δ(y_i, h_i, y, h) + s(y, h)] − max_h s(y_i, h)``, impute h_i anew, and
    repeat until no h_i changes. The first round counts the label alone where h_i is not given.

    Each round has a loss of its own, so nothing says that rounds get better: the end is a round whose hidden values
    were there before, and the round of the lowest objective, measured against its own hidden values, is kept.
    With a loss that does not look at h it is `LatentSVM`.

    The parameters and attributes are those of `LatentSVM`; `max_iter` counts the iterations of all rounds, and
    the objective of a line of `history_` is that of its round. Under a pace only the first round goes from easy samples
    to hard ones: the others begin with all of them in.

    >>> from tacit import Ragged
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]]])
    >>> bags = bags.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]] * 3)
    >>> model = IterativeLatentSVM(Candidates(loss="overlap"), C=100, n_init=5).fit(bags, ["x", "y", "x"])
    >>> model.predict(bags), model.hidden_
    (array(['x', 'y', 'x'], dtype='<U1'), array([1, 0, 0]))
    """

    def _check_loss(self, oracle: Any) -> None:
        if loss_needs_hidden(oracle):
            require(type(self).__name__, self.problem, oracle, ["measured_against"])

    def _one_run(self, descent: Descent) -> Rounds:
        return Rounds(descent)
