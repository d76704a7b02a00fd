"""What an oracle may offer beyond `tacit.oracle.Oracle`: one protocol per capability.

A learner or solver asks for a capability with `offered`, which returns the oracle typed as what was asked for, or None.
A capability that it cannot do without it names in `require`, which raises before any work starts. An oracle offers a
capability by having its methods; there is nothing to register. Only a new capability that takes or returns something
per sample must also be declared in `tacit.runtime.blocks`, so that it can be cut into shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.oracle.contracts import Assignment, Oracle

P = TypeVar("P")


class Expectations(NamedTuple):
    """What `SumsOutputs.expectations` returns: logarithms of sums, one number per row each, and one sum of features.

    A kind of sum that was not asked for is None, and so is ``features`` if no coefficient was given.
    """

    free: Array | None
    label: Array | None
    truth: Array | None
    features: Array | None


class SumsOutputs(Protocol):
    """Sums over outputs beside maxima: what hidden CRFs, EM and min-entropy models need."""

    def expectations(
        self,
        w: Array,
        rows: Rows = None,
        *,
        free: Any = None,
        label: Any = None,
        truth: Any = None,
        power: float = 1.0,
    ) -> Expectations:
        """``log Σ exp(power·s)`` of every row, and ``Σ_i coef_i E_i[Ψ]`` under ``p ∝ exp(power·s)``, in one pass.

        The three sums run over all outputs (``free``), over those with the true label (``label``), and over those with
        the true label and a hidden value that is known or allowed (``truth``). Each takes its coefficients: an array
        with one per row, one number for all, or None to leave this sum out. The features of all three are added up, so
        the gradient of ``Σ c_i [log Σ exp s − log Σ_truth exp s]`` is one call with ``free=c, truth=-c``. Where all
        coefficients are 0 no features are summed.
        """


class GivesPosteriors(Protocol):
    """Probabilities of single hidden values."""

    def hidden_posterior(
        self, w: Array, rows: Rows = None, *, power: float = 1.0, labels: Array | None = None
    ) -> Array:
        """P(h | x_i, y_i) ∝ exp(power·s(y_i, h)) for every state of the rows, one after the other; 0 where the hidden
        value is known to be another. Or under other ``labels``, one position among the classes per row."""

    def output_posterior(self, w: Array, rows: Rows = None, *, power: float = 1.0) -> Array:
        """(states of the rows, n_labels): P(y, h | x_i) ∝ exp(power·s(y, h)) of every cell."""


class ExpectsLosses(Protocol):
    """The loss that a random output would have."""

    def expected_losses(
        self, w: Array, rows: Rows = None, *, coef: Array | None = None, power: float = 1.0
    ) -> tuple[Array, Array | None]:
        """E[ℓ_i] of every row under ``p ∝ exp(power·s)`` over all outputs, and the gradient of ``Σ coef_i E[ℓ_i]``;
        None for that where there is no ``coef``."""


class Slacks(NamedTuple):
    """What `ScoresEntropy.renyi_slacks` returns: ξ_i and its rival label per row, and ``Σ_i coef_i ∂ξ_i``."""

    value: Array
    rival: Array
    features: Array


class ScoresEntropy(Protocol):
    """Scores of labels by how sure their hidden value is: what min-entropy models need. See `tacit.oracle.renyi`."""

    def renyi_scores(self, w: Array, alpha: float, rows: Rows = None) -> Array:
        """(rows, n_labels): R_α(y), −inf for a label without any hidden value. 0 < α ≤ ∞."""

    def renyi_weights(self, w: Array, alpha: float, rows: Rows = None) -> Array:
        """(states of the rows, n_labels): the weights c(h) of the gradients of R_α(y), which is Σ_h c(h) Ψ(y, h)."""

    def renyi_slacks(self, w: Array, coef: Array, alpha: float, rows: Rows = None) -> Slacks:
        """``ξ_i = max(0, max_{y ≠ y_i} [ℓ_i(y) + R_α(y)] − R_α(y_i))`` and a subgradient of Σ coef_i ξ_i, in one pass.

        What is known of h counts: R_α(y_i) runs over the hidden values that are possible.
        """


class ScoresLabels(Protocol):
    """One score per label, the hidden value maximised or summed over."""

    def label_scores(self, w: Array, rows: Rows = None, power: float = np.inf) -> Array:
        """(rows, n_labels): ``max_h s(y, h)``, or for a finite power ``log Σ_h exp(power·s(y, h)) / power``."""

    def best_under(self, w: Array, labels: Array, rows: Rows = None) -> Assignment:
        """The best output of every row under the label at this position among the classes."""


class SumsParts(Protocol):
    """Labels of many parts under which hidden values can be summed over part by part."""

    def likeliest_clusters(self, w: Array, rows: Rows = None) -> Assignment:
        """An output of high probability, hidden values summed over: part by part, given the parts before. The value is
        the logarithm of its probability."""


class RanksHidden(Protocol):
    """The best few hidden values."""

    def ranked(self, w: Array, code: Array, k: int, rows: Rows = None) -> Assignment:
        """(rows, k) codes and scores of the best hidden values under the labels of ``code``; −1 and −inf past the
        last."""


class GivesTagPosteriors(Protocol):
    """Probabilities of the parts of an output, such as the tags of a sequence."""

    def tag_posterior(self, w: Array, rows: Rows = None, is_given: bool = False) -> Array:
        """(parts of the rows, n_labels) probabilities under ``p(y) ∝ exp s(y)``; where ``is_given``, given the parts of
        y that are known."""


class RanksOutputs(Protocol):
    """The best few outputs, where an output has several parts."""

    def best_outputs(self, w: Array, k: int, rows: Rows = None) -> Assignment:
        """The best k outputs of every row, the best first: the labels of their parts as positions among the classes,
        (parts of the rows, k), and scores (rows, k); −1 and −inf where a row has fewer."""


class DrawsHidden(Protocol):
    """Random hidden values to start from."""

    def draw(self, rng: np.random.Generator) -> Array:
        """A code of all samples with the true labels and hidden values at random; known ones stay."""


class KnownPart(NamedTuple):
    """What is completely known of samples whose hidden values are partly known.

    Parameters
    ----------
    oracle : the known pieces as samples of their own
    owner : the sample that each piece belongs to; −1 for rows to leave out
    """

    oracle: Any
    owner: Array


class KnowsPart(Protocol):
    """Samples some of whose hidden values are known."""

    def known_part(self) -> KnownPart | None:
        """The pieces with nothing left to impute: a structured SVM learns from them. None where nothing is known."""


class WeighsSamples(Protocol):
    """Samples that are labelled in several ways, and do not weigh the same."""

    def sample_factors(self) -> Array:
        """(n,) the factor of every sample's weight: weakly labelled ones together count as much as their problem says
        beside the others."""


class ProposesStarts(Protocol):
    """Hidden values that are worth starting from."""

    def proposals(self, most: int) -> list[Array]:
        """Up to so many codes of all samples with the true labels, the most promising first; known values stay."""


class MovesJointly(Protocol):
    """Moves of all hidden values at once."""

    def joint_moves(self, code: Array) -> Iterable[Array]:
        """Codes that shift every hidden value at once, to leave optima that no single sample improves."""


class SumsDifferences(Protocol):
    """A difference of two sums of features, for less than the price of both: it makes planes cheaper."""

    def difference(self, code: Array, target: Array, coef: Array, rows: Rows = None) -> Array:
        """Σ_i coef_i (Ψ(x_i, code_i) − Ψ(x_i, target_i))."""


class FusesPlanes(Protocol):
    """Answers and their planes in one question: for rows that are elsewhere, where every question is a journey."""

    def tangent(self, w: Array, weights: Array, target: Array, rescaling: str) -> tuple[Assignment, Array]:
        """What `augmented` answers for all rows, and the gradient of the plane of that answer."""

    def slopes(self, codes: Sequence[Array], weights: Array, target: Array, rescaling: str) -> list[Array]:
        """The gradients of the planes of several codes, without `TARGET`."""


class KeepsDual(Protocol):
    """Dual variables on outputs, which `tacit.solvers.FrankWolfe` moves sample by sample."""

    def dual(self, weights: Array, target: Array, start: Mapping[str, Any] | None = None) -> Any:
        """A `tacit.oracle.dual.Dual` of the task with these c_i and targets, at ``start`` where that fits."""


class OnlinePass(NamedTuple):
    """What `LearnsOnline.learn_online` returns.

    Attributes
    ----------
    w : the weights after the last visit
    total : the sum of the weights after every visit, times its share
    lost : the loss of the prediction at each visit
    mistakes : visits that moved the weights
    """

    w: Array
    total: Array
    lost: Array
    mistakes: int


class LearnsOnline(Protocol):
    """Samples visited one after the other, the weights moving in between, at a cost that does not grow with w."""

    def learn_online(
        self, w: Array, order: Array, steps: Array, decays: Array, shares: Array, *, margin: float, target: Any = None
    ) -> OnlinePass:
        """Visit samples in this order: ``w ← decay·w + step·(Ψ(truth) − Ψ(prediction))``.

        The prediction maximises score plus ``margin`` times loss. The truth is the code ``target``, or the best output
        that agrees with the labels where that is None. With a margin of 0, only a prediction with a loss moves w.
        """


class MeasuresHidden(Protocol):
    """A loss that depends on the hidden value."""

    loss_needs_hidden: bool
    """Whether ``ℓ_i`` is measured against the true hidden value, so that it is defined only where that is known."""

    def measured_against(self, code: Array | None = None, *, posterior: Array | None = None) -> Oracle:
        """The same data, the loss measured against the hidden values of these outputs, or averaged over a
        distribution of them: one probability per state, as `GivesPosteriors.hidden_posterior` returns them."""


class MovesPosteriors(Protocol):
    """How losses on the hidden value change with a distribution over it: what dissimilarity coefficients need.

    Posteriors and values have one number per state of all samples, as `GivesPosteriors.hidden_posterior` returns them.
    """

    def losses_of(self, code: Array) -> Array:
        """What these outputs cost if a state is the true one, for every state."""

    def spread(self, posterior: Array) -> tuple[Array, Array]:
        """The mean loss between two hidden values drawn from the posterior, one per sample, and its gradient by the
        posterior, one number per state."""

    def posterior_slope(self, posterior: Array, values: Array, coef: Array) -> Array:
        """Σ_i coef_i Cov(values, Ψ(x_i, y_i, h)) under the posterior: the gradient by w of Σ_i coef_i E_i[values], the
        posterior being that of w."""


class CountsUnits(Protocol):
    """Outputs of several parts, each of which can be right or wrong."""

    def units(self) -> Array:
        """(n,) the number of parts per sample that can be right or wrong, such as its known tags."""


class ChecksItself(Protocol):
    """An oracle made of a user's functions, which are tested before a fit relies on them."""

    def probe(self) -> None:
        """Raise if an answer is not the best one."""


class RunsElsewhere(Protocol):
    """An oracle that runs Python functions, and can be built again in other processes."""

    runs_python: bool

    def recipe(self, first: int, last: int) -> Any:
        """A function that builds the same oracle for the samples from first to last (exclusive)."""

    def block_starts(self) -> Array:
        """Where the blocks begin in which features are summed, and where the last ends."""


class NumbersOutputs(Protocol):
    """An oracle that numbers outputs in the order in which they occur, so that processes must share the numbering."""

    def news(self, since: int) -> tuple[Sequence[Any], int]:
        """The outputs numbered after the first ``since``, and how many there are now."""

    def learn(self, news: Sequence[Any], shift: int = 0) -> None:
        """Give outputs that another process numbered the same numbers here; ``shift`` is its first sample."""


def offered(oracle: Any, capability: type[P]) -> P | None:
    """The oracle, typed as the capability, if it has all of its methods; else None.

    >>> from tacit import problems, testing
    >>> oracle = testing.example_task(problems.Multiclass()).oracle
    >>> offered(oracle, SumsOutputs) is oracle, offered(oracle, MovesJointly) is None
    (True, True)
    """
    names = _MEMBERS.get(capability)
    if names is None:
        names = [name for name in (*vars(capability), *capability.__annotations__) if not name.startswith("_")]
        _MEMBERS[capability] = names
    return oracle if all(hasattr(oracle, name) for name in names) else None


_MEMBERS: dict[type, list[str]] = {}  # the names of the methods of every capability that was asked for


def loss_needs_hidden(oracle: Any) -> bool:
    """Whether the loss is measured against the true hidden value; see `MeasuresHidden`."""
    return bool(getattr(oracle, "loss_needs_hidden", False))


def measures_hidden(oracle: Any) -> bool:
    """Whether rounds of learning may measure the loss against imputed hidden values: where it needs them, or where the
    oracle says that it can (``measures_completed``)."""
    return loss_needs_hidden(oracle) or bool(getattr(oracle, "measures_completed", False))


def completes_labels(oracle: Any) -> bool:
    """Whether what is hidden is what y lacks (missing tags of a sequence), so that hidden values are completed
    labels."""
    return bool(getattr(oracle, "completes_labels", False))


def runs_python(oracle: Any) -> bool:
    """Whether passes call Python functions, which hold the interpreter lock; see `RunsElsewhere`."""
    return bool(getattr(oracle, "runs_python", False))


def has_long_codes(oracle: Any) -> bool:
    """Whether a code has several integers per sample, cut by ``code_offsets``."""
    return getattr(oracle, "code_offsets", None) is not None


def has_hidden_states(oracle: Any) -> bool:
    """Whether the parts of an output have hidden values below their labels (states below tags), which nothing tells
    apart at w = 0. Links between mentions are none: their features tell them apart."""
    return has_long_codes(oracle) and not completes_labels(oracle) and hasattr(oracle, "state_posterior")


def hidden_values(oracle: Any, code: Array) -> Any:
    """What a code says of the hidden values: completed labels where y itself has gaps."""
    labels, hidden = oracle.decode(code)
    return labels if completes_labels(oracle) else hidden
