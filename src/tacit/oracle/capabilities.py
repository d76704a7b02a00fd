"""What an oracle may offer beyond `tacit.oracle.Oracle`: one protocol per capability.

A learner or solver asks for one with `capability`, which returns the oracle typed as the protocol, or None. What it
cannot do without it names in `require`, which raises before any work starts. An oracle offers a capability by having
its methods; there is nothing to register. One that inherits a method which it cannot offer names it, or its protocol,
in ``lacks``. The decorators of `tacit.oracle.sharing` say how a method is shared between blocks of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.oracle.contracts import Assignment, Oracle, member_names
from tacit.oracle.entropies import EntropyCells, Order
from tacit.oracle.sharing import Sharing, add_in_order, batch, join_arrays, join_sums, join_tuples, view
from tacit.oracle.slack_search import LossLevels


class Expectations(NamedTuple):
    """What `SumsOutputs.expectations` returns: logarithms of sums, one number per row each, and one sum of features.
    What was not asked for is None."""

    free: Array | None
    label: Array | None
    truth: Array | None
    features: Array | None


class SumsOutputs(Oracle, Protocol):
    """Sums over outputs beside maxima: what hidden CRFs, EM and min-entropy models need."""

    @batch(join_sums, per_row=("free", "label", "truth"))
    def expectations(
        self,
        w: Array,
        rows: Rows = None,
        *,
        free: Any = None,
        label: Any = None,
        truth: Any = None,
        power: float = 1.0,
        augmented: bool = False,
    ) -> Expectations:
        """``log Σ exp(power·s)`` of every row, and ``Σ_i coef_i E_i[Ψ]`` under ``p ∝ exp(power·s)``, in one pass.

        The three sums run over all outputs (``free``), over those with the true label (``label``), and over those with
        the true label and a hidden value that is known or allowed (``truth``). Each takes its coefficients: an array
        with one per row, one number for all, or None to leave this sum out. The features of all three are added up, so
        the gradient of ``Σ c_i [log Σ exp s − log Σ_truth exp s]`` is one call with ``free=c, truth=-c``. Where all
        coefficients are 0 no features are summed. With ``augmented`` the loss is added to the scores of the first sum,
        ``log Σ exp(power·(ℓ + s))``: the soft form of `predict_augmented`.
        """


class GivesLogPartition(Oracle, Protocol):
    """The logarithm of the sum over all outputs."""

    @batch(join_arrays)
    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """``log Σ exp s(y, h)`` of every row, over all outputs."""


class GivesPosteriors(Oracle, Protocol):
    """Probabilities of single hidden values."""

    @batch(join_arrays, per_row=("labels",))
    def hidden_posterior(
        self, w: Array, rows: Rows = None, *, power: float = 1.0, labels: Array | None = None
    ) -> Array:
        """P(h | x_i, y_i) ∝ exp(power·s(y_i, h)) for every state of the rows, one after the other; 0 where the hidden
        value is known to be another. Or under other ``labels``, one position among the classes per row."""

    @batch(join_arrays)
    def output_posterior(self, w: Array, rows: Rows = None, *, power: float = 1.0) -> Array:
        """(states of the rows, n_labels): P(y, h | x_i) ∝ exp(power·s(y, h)) of every cell."""


class Slacks(NamedTuple):
    """What `GivesEntropySlacks.renyi_slacks` returns: ξ_i per row, ``Σ_i coef_i ∂ξ_i``, and where the search for the
    rival may miss it, upper bounds of ξ_i."""

    value: Array
    features: Array
    bound: Array | None = None


class GivesEntropySlacks(Oracle, Protocol):
    """Slacks of labels scored by how sure their hidden value is: what min-entropy models need. See
    `tacit.oracle.renyi`."""

    @batch(join_sums, per_row=("coef",))
    def renyi_slacks(
        self, w: Array, coef: Array, alpha: Order, rows: Rows = None, *, rescaling: str = "margin"
    ) -> Slacks:
        """``ξ_i = max(0, max_{y ≠ y_i} [ℓ_i(y) + R_α(y)] − R_α(y_i))`` and a subgradient of Σ coef_i ξ_i, in one pass.

        With ``rescaling="slack"`` it is ``max_{y ≠ y_i} ℓ_i(y) [1 + R_α(y) − R_α(y_i)]``, at least 0. What is known of
        h counts: R_α(y_i) runs over the hidden values that are possible.
        """


class ScoresEntropy(GivesEntropySlacks, Protocol):
    """Scores of all labels by how sure their hidden value is."""

    @batch(join_arrays)
    def renyi_scores(self, w: Array, alpha: Order, rows: Rows = None) -> Array:
        """(rows, n_labels): R_α(y), −inf for a label without any hidden value. 0 < α ≤ ∞. In place of α, another
        entropy of `tacit.oracle.entropies`."""


class FindsLeastEntropy(GivesEntropySlacks, Protocol):
    """The label of least entropy, where labels cannot be listed."""

    @batch(join_tuples)
    def least_entropy(self, w: Array, alpha: Order, rows: Rows = None) -> Assignment:
        """The output of the label of the highest R_α that a search finds, with its best hidden value; value is R_α."""


class ScoresLabels(Oracle, Protocol):
    """One score per label, the hidden value maximised or summed over."""

    @batch(join_arrays)
    def label_scores(self, w: Array, rows: Rows = None, power: float = np.inf) -> Array:
        """(rows, n_labels): ``max_h s(y, h)``, or for a finite power ``log Σ_h exp(power·s(y, h)) / power``."""

    @batch(join_tuples, per_row=("labels",))
    def best_under(self, w: Array, labels: Array, rows: Rows = None) -> Assignment:
        """The best output of every row under the label at this position among the classes."""


class SplitsCodes(Oracle, Protocol):
    """Outputs of one label and one hidden value, which a code can be split into."""

    def split(self, code: Array, rows: Rows = None) -> tuple[Array, Array]:
        """Labels, as positions among the classes, and states of a code of these rows."""


class ListsOutputs(SplitsCodes, Protocol):
    """Outputs that are cells (label, state), the states of each sample one after the other."""

    n_labels: int
    offsets: Array
    """(n + 1,) where each sample's states begin."""

    def states(self, rows: Rows) -> Any:
        """The states of these samples: a slice, or an array."""

    def known_labels(self) -> Array:
        """The position of every true label among the classes; an error where there is none."""

    def labels_of(self, code: Array) -> Array:
        """The position of the label of every output of a code among the classes."""

    def in_user_order(self, values: Array, labels: Array) -> Array:
        """Numbers by state as numbers by hidden value, in the order in which users count these under the labels."""


Visit = Callable[[Array, Array, Rows], "Array | None"]
"""Called with the scores of a block, how its states are cut into samples, and which samples they are."""


class VisitsCells(ListsOutputs, Protocol):
    """The scores of all cells, one block at a time."""

    @batch(add_in_order)
    def visit_cells(self, w: Array, visit: Visit, rows: Rows = None) -> Array:
        """Call a function with the scores of every block; the sum of the features of all cells, weighed by what it
        returns."""

    def score_entropy(self, scores: Array, starts: Array, rows: Rows, alpha: Order) -> EntropyCells:
        """The scores of the labels of a block by an entropy, or by that of Rényi of this order."""

    def rule_out(self, scores: Array, rows: Rows, starts: Array) -> Array:
        """These scores of a block, −inf for cells of the true label whose state is known not to be the true one."""

    def label_losses(self, rows: Rows, starts: Array) -> Array:
        """(n, labels): the loss of every label; where it depends on the hidden value, the highest."""


class ScoresCells(ListsOutputs, Protocol):
    """The linear maps behind the scores of cells: what dual variables on cells are moved by."""

    def scores(self, w: Array, rows: Rows = None) -> Array:
        """(n_labels, states of the rows): the score of every cell."""

    def adjoint(self, V: Array, rows: Rows = None) -> Array:
        """Σ over cells of V[label, state] Ψ(cell)."""

    def loss_rows(self) -> tuple[Array, Array]:
        """The loss by state: ``table[column[state], label]``."""


class SumsParts(Oracle, Protocol):
    """Labels of many parts, such as clusters and trees, whose hidden values can be summed over part by part."""

    @batch(join_tuples)
    def likeliest_parts(self, w: Array, rows: Rows = None) -> Assignment:
        """An output of likely parts, hidden values summed over: clusters one by one, given those before; spans of a
        tree all together. The value is the logarithm of its probability."""


class RanksHidden(Oracle, Protocol):
    """The best few hidden values."""

    @batch(join_tuples, codes=("code",))
    def best_hidden(self, w: Array, code: Array, k: int, rows: Rows = None) -> Assignment:
        """(rows, k) codes and scores of the best hidden values under the labels of ``code``, or −1 and −inf."""


class HasTable(Oracle, Protocol):
    """Features that are rows of one table."""

    @property
    def table(self) -> Any:
        """The rows: dense, CSR, or a `tacit.data.table.Table`."""


class HasParts(Oracle, Protocol):
    """Outputs of several parts."""

    offsets: Array
    """(n + 1,) where each sample's parts begin."""


class HasOpenParts(HasParts, Protocol):
    """Parts of an output whose labels may be missing one by one, such as the tags of a sequence."""

    def open_parts(self) -> Array:
        """The positions of the parts of y that are missing."""


class GivesTagPosteriors(HasParts, Protocol):
    """Probabilities of the parts of an output, such as the tags of a sequence."""

    @batch(join_arrays)
    def tag_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(parts of the rows, n_labels) probabilities under ``p(y) ∝ exp s(y)``; where ``is_given``, given the parts of
        y that are known."""


class HasHiddenStates(HasParts, Protocol):
    """Parts of an output that have hidden states below their labels, such as states below tags."""

    @batch(join_arrays)
    def state_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(parts of the rows, states) probabilities under ``p ∝ exp s``; where ``is_given``, given what is known."""

    @batch(join_arrays)
    def likeliest(self, w: Array, rows: Rows = None) -> Array:
        """A code of the likeliest label of every part, hidden states summed over, and its best state."""


class RanksOutputs(HasParts, Protocol):
    """The best few outputs, where an output has several parts."""

    @batch(join_tuples)
    def best_outputs(self, w: Array, k: int, rows: Rows = None) -> Assignment:
        """The best k labels of every row, the best first, (parts of the rows, k), each in a code that has it, and the
        scores of their best hidden values, (rows, k). −1 and −inf where a row has fewer."""


class DrawsHidden(Oracle, Protocol):
    """Random hidden values to start from."""

    def draw(self, rng: np.random.Generator) -> Array:
        """A code of all samples with the true labels and hidden values at random; known ones stay."""


class ClustersParts(Oracle, Protocol):
    """Hidden states to start from that group parts with similar features."""

    def clusters(self, rng: np.random.Generator) -> Array:
        """A code of all samples with the true labels and the hidden states by k-means; known ones stay."""


class KnownPart(NamedTuple):
    """What is completely known of samples whose hidden values are partly known: an oracle of the known pieces, and the
    sample that each piece belongs to, −1 for rows to leave out."""

    oracle: Oracle
    owner: Array


class KnowsPart(Oracle, Protocol):
    """Samples some of whose hidden values are known."""

    def known_part(self) -> KnownPart | None:
        """The pieces with nothing left to impute: a structured SVM learns from them. None where nothing is known."""


class WeighsSamples(Oracle, Protocol):
    """Samples that are labelled in several ways, and do not weigh the same."""

    def sample_factors(self) -> Array:
        """(n,) the factor of every sample's weight: weakly labelled ones together count as much as their problem says
        beside the others."""


class ProposesStarts(Oracle, Protocol):
    """Hidden values that are worth starting from."""

    def proposals(self, most: int) -> list[Array]:
        """Up to so many codes of all samples with the true labels, the most promising first; known values stay."""


class MovesJointly(Oracle, Protocol):
    """Moves of all hidden values at once."""

    def joint_moves(self, code: Array) -> Iterable[Array]:
        """Codes that shift every hidden value at once, to leave optima that no single sample improves."""


class SumsDifferences(Oracle, Protocol):
    """A difference of two sums of features, for less than the price of both: it makes planes cheaper."""

    @batch(add_in_order, codes=("code", "target"), per_row=("coef",))
    def difference(self, code: Array, target: Array, coef: Array, rows: Rows = None) -> Array:
        """Σ_i coef_i (Ψ(x_i, code_i) − Ψ(x_i, target_i))."""


class FusesPlanes(Oracle, Protocol):
    """Answers and their planes in one question: for rows that are elsewhere, one round trip per call."""

    def tangent(self, w: Array, weights: Array, target: Array, rescaling: str) -> tuple[Assignment, Array]:
        """What `predict_augmented` answers for all rows, and the gradient of the plane of that answer."""

    def slopes(self, codes: Sequence[Array], weights: Array, target: Array, rescaling: str) -> list[Array]:
        """The gradients of the planes of several codes, without `TARGET`."""


class ScalesLoss(HasParts, Protocol):
    """Margin rescaling under multiples of the loss: `tacit.oracle.slack_search` finds slack rescaling by it. As value,
    `predict_augmented` then returns an upper bound, which the output need not attain."""

    @batch(join_tuples, per_row=("factor",))
    def predict_scaled(self, w: Array, factor: Array, rows: Rows = None) -> Assignment:
        """argmax of score plus ``factor_i`` times loss, exactly; factors are not negative."""

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """Which losses the outputs of these rows can have."""


class BoundsMaximum(Oracle, Protocol):
    """Inference that may miss the best output, but proves an upper bound of its score."""

    @property
    def gives_bounds(self) -> bool:
        """Whether the values of `predict` and `predict_augmented` are upper bounds, which outputs need not attain."""


class KeepsDual(Oracle, Protocol):
    """Dual variables on outputs, which `tacit.solvers.FrankWolfe` moves sample by sample."""

    def dual(self, weights: Array, target: Array, start: Mapping[str, Any] | None = None) -> Any:
        """A `tacit.oracle.task.Dual` of the task with these c_i and targets, at ``start`` where that fits."""


class OnlinePass(NamedTuple):
    """What `LearnsOnline.learn_online` returns: the weights after the last visit, the sum of the weights after every
    visit times its share, the loss of the prediction at each visit, and how many visits moved the weights."""

    w: Array
    total: Array
    lost: Array
    mistakes: int


class LearnsOnline(Oracle, Protocol):
    """Samples visited one after the other, the weights moving in between, at a cost that does not grow with w."""

    def learn_online(
        self, w: Array, order: Array, steps: Array, decays: Array, shares: Array, *, margin: float, target: Any = None
    ) -> OnlinePass:
        """Visit samples in this order: ``w ← decay·w + step·(Ψ(truth) − Ψ(prediction))``.

        The prediction maximises score plus ``margin`` times loss. The truth is the code ``target``, or the best output
        that agrees with the labels where that is None. With a margin of 0, only a prediction with a loss moves w.
        """


class MeasuresHidden(Oracle, Protocol):
    """A loss that depends on the hidden value."""

    loss_needs_hidden: bool
    """Whether ``ℓ_i`` is measured against the true hidden value, so that it is defined only where that is known."""

    @view
    def measured_against(self, code: Array | None = None, *, posterior: Array | None = None) -> Oracle:
        """The same data, the loss measured against the hidden values of these outputs, or averaged over a
        distribution of them: one probability per state, as `GivesPosteriors.hidden_posterior` returns them."""


class MeasuresCompleted(MeasuresHidden, Protocol):
    """A loss that rounds of learning may measure against imputed hidden values, also where it does not need them."""

    measures_completed: bool


class MovesPosteriors(Oracle, Protocol):
    """How losses on the hidden value change with a distribution over it: what dissimilarity coefficients need.

    Posteriors and values have one number per state of all samples, as `GivesPosteriors.hidden_posterior` returns them.
    """

    def losses_of(self, code: Array) -> Array:
        """What these outputs cost if a state is the true one, for every state."""

    def diversity(self, posterior: Array) -> tuple[Array, Array]:
        """The mean loss between two hidden values drawn from the posterior, one per sample, and its gradient by the
        posterior, one number per state."""

    def posterior_slope(self, w: Array, posterior: Array, values: Array, coef: Array) -> Array:
        """Σ_i coef_i Cov(values, Ψ(x_i, y_i, h)) under the posterior, which is that of w: the gradient by w of
        Σ_i coef_i E_i[values]."""


class CountsUnits(Oracle, Protocol):
    """Outputs of several parts, each of which can be right or wrong."""

    def units(self) -> Array:
        """(n,) the number of parts per sample that can be right or wrong, such as its known tags."""


class ChecksItself(Oracle, Protocol):
    """An oracle made of a user's functions, which are tested before a fit relies on them."""

    def probe(self) -> None:
        """Raise if an answer is not the best one."""


class RunsElsewhere(Oracle, Protocol):
    """An oracle that runs Python functions, and can be built again in other processes."""

    runs_python: bool

    def recipe(self, first: int, last: int) -> Any:
        """A function that builds the same oracle for the samples from first to last (exclusive)."""

    def block_starts(self) -> Array:
        """Where the blocks begin in which features are summed, and where the last ends."""


class NumbersOutputs(Oracle, Protocol):
    """An oracle that numbers outputs in the order in which they occur, so that processes must share the numbering."""

    def outputs_since(self, since: int) -> tuple[Sequence[Any], int]:
        """The outputs numbered after the first ``since``, and how many there are now."""

    def register_outputs(self, found: Sequence[Any], shift: int = 0) -> None:
        """Give outputs that another process numbered the same numbers here; ``shift`` is its first sample."""


class LivesOnWorkers(Oracle, Protocol):
    """Samples whose rows may be on the workers of a cluster, which answer for them."""

    @property
    def on_workers(self) -> Callable[[Oracle], Oracle] | None:
        """A function that lets workers answer for this oracle, where they have the rows; else None."""

    def part(self, first: int, last: int) -> Oracle:
        """The same oracle of the samples from first to last (exclusive), to be sent to where their rows are."""

    def on_rows(self, table: Any) -> Oracle:
        """The same oracle with these rows."""


class CountsOperations(Oracle, Protocol):
    """An oracle that knows what a pass costs."""

    @property
    def operations(self) -> float:
        """Multiplications per pass over all samples, roughly: they decide into how many blocks the rows are cut."""


_PROTOCOLS = [kind for kind in list(vars().values()) if isinstance(kind, type) and Oracle in kind.__mro__]

DECLARED: Mapping[str, Sharing] = {
    name: getattr(getattr(kind, name, None), "sharing", None) for kind in _PROTOCOLS for name in member_names(kind)
}
"""How every member of the protocols above and of `Oracle` is shared."""
