"""The interfaces of a problem and its oracle; `tacit.oracle` explains them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from inspect import get_annotations
from typing import Any, NamedTuple, NoReturn, Protocol, Self, TypeVar, cast, overload

import numpy as np
from sklearn.base import BaseEstimator

from tacit.data.arrays import Array, Codes, Rows, positions_of
from tacit.data.parameters import is_whole, shorten, whole_number
from tacit.data.specs import check_parameters
from tacit.oracle.sharing import add_in_order, batch, join_arrays, join_tuples, view
from tacit.runtime.archive import Stored, storable

P = TypeVar("P")

Need = type | Callable[..., Any]
"""A protocol, or one method of a protocol, such as ``Oracle.predict_augmented``."""

TARGET = -1
"""The code of "this row's target", whatever the target is."""


class Assignment(NamedTuple):
    """One output per row, as integers that only its oracle reads, and what was maximised to find it."""

    code: Array
    value: Array


@storable
@dataclass(frozen=True)
class Schema:
    """What a problem learned from the training data: labels and dimensions, nothing about single samples.

    Parameters
    ----------
    classes : the labels, in the order of the weight blocks
    n_features : numbers per row of the input
    blocks : the named parts of the flat weight vector, in order, with their shapes
    facts : whatever else prediction needs, such as a learned PCA: arrays, numbers, strings
    """

    classes: Array
    n_features: int
    blocks: Mapping[str, tuple[int, ...]]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_params(self) -> int:
        """Length of the flat weight vector.

        >>> Schema(np.array([0, 1]), 3, {"weights": (2, 3), "intercept": (2,)}).n_params
        8
        """
        return sum(math.prod(shape) for shape in self.blocks.values())

    def check(self) -> None:
        """Refuse a schema that no problem could have learned: kernels rely on its sizes."""
        classes = self.classes
        if type(classes) is not np.ndarray or classes.ndim != 1 or classes.dtype.kind not in "biufUS":
            raise ValueError(f"classes must be a vector of numbers or strings, got {shorten(classes)}")
        if np.unique(classes).size != classes.size or (classes.dtype.kind == "f" and not np.isfinite(classes).all()):
            raise ValueError(f"classes must be distinct labels without missing values, got {shorten(classes)}")
        whole_number("n_features", self.n_features, 0)
        if not isinstance(self.blocks, Mapping):
            raise ValueError(f"blocks must map names to shapes, got {shorten(self.blocks)}")
        for name, shape in self.blocks.items():
            if not isinstance(name, str) or not isinstance(shape, tuple) or not shape:
                raise ValueError(f"every block must have a name and a shape, got {shorten(name)}: {shorten(shape)}")
            if not all(is_whole(size) and size >= 1 for size in shape):
                raise ValueError(f"the block {shorten(name)} must have sizes from 1, got {shorten(shape)}")
        if not isinstance(self.facts, Mapping):
            raise ValueError(f"facts must map names to values, got {shorten(self.facts)}")

    def views(self, w: Array) -> dict[str, Array]:
        """The named parts of ``w``, as views: writing to them writes to ``w``."""
        sizes = list(map(math.prod, self.blocks.values()))
        if w.shape != (sum(sizes),):
            raise ValueError(f"w must have {sum(sizes)} weights ({shorten(self.blocks)}), got shape {w.shape}")
        views, start = {}, 0
        for (name, shape), size in zip(self.blocks.items(), sizes, strict=True):
            views[name] = w[start : start + size].reshape(shape)
            start += size
        return views


class KnownHidden(NamedTuple):
    """Known hidden values, by state.

    Parameters
    ----------
    states : (n,) the state of each sample, −1 where it is not known for certain
    allowed : one boolean per state of all samples, whether it is possible; None where nothing is ruled out
    """

    states: Array
    allowed: Array | None = None

    def check(self, sizes: Array) -> None:
        """Refuse values that do not fit samples of so many states: kernels rely on them."""
        if self.states.shape != sizes.shape or not ((self.states >= -1) & (self.states < sizes)).all():
            raise ValueError(f"hidden values must be one state for each of {sizes.size} samples, −1 if unknown")
        if self.allowed is not None and self.allowed.shape != (sizes.sum(),):
            raise ValueError(f"allowed must have {sizes.sum()} entries, one per state, got shape {self.allowed.shape}")


class Example(NamedTuple):
    """A tiny instance of a problem, with its specification in plain Python for the common tests to compare with.

    ``x`` is ``X[i]``; ``outputs(x)`` lists all pairs (label, hidden), hidden being None where there is none.
    """

    X: Any
    y: Any
    hidden: Any
    outputs: Callable[[Any], list[tuple[Any, Any]]]
    joint_feature: Callable[[Any, Any, Any], Array]
    loss: Callable[[Any, Any, Any], float]


class Oracle(Protocol):
    """Bound data, and the best outputs under any weights. See `tacit.oracle` for what every method promises."""

    n_samples: int
    n_params: int
    code_offsets: Array | None
    """Where each sample's part begins in a code of all samples (n + 1 numbers); None for one integer per sample."""
    completes_labels: bool
    """Whether what is hidden is what y lacks, such as missing tags: hidden values are then completed labels."""

    @property
    def rescalings(self) -> tuple[str, ...]:
        """What `predict_augmented` can maximise: "margin", and "slack" where outputs can be listed or losses scaled."""

    @batch(join_tuples)
    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        """argmax over (y, h) of the score."""

    @batch(join_tuples, codes=("prefer",))
    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        """argmax over h of the score, the label fixed to y_i and h too where it is given; ties go to `prefer`."""

    @batch(join_tuples, codes=("target",))
    def predict_augmented(
        self, w: Array, rows: Rows = None, *, target: Codes = None, rescaling: str = "margin", rivals: bool = False
    ) -> Assignment:
        """argmax of score plus loss (margin), or of loss × (1 + score − score of the target) (slack).

        ``rivals`` leaves out the true label; a row without a rival gets TARGET and −inf. With slack rescaling of an
        oracle that has `tacit.oracle.capabilities.ScalesLoss`, the value is an upper bound of the maximum.
        """

    @batch(join_arrays, codes=("code",))
    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        """w·Ψ(x_i, code_i)."""

    @batch(join_arrays, codes=("code",))
    def loss(self, code: Array, rows: Rows = None) -> Array:
        """ℓ_i(code_i)."""

    @batch(add_in_order, codes=("code",), per_row=("coef",))
    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        """Σ_i coef_i Ψ(x_i, code_i), of length n_params."""

    def accepts(self, code: Array) -> bool:
        """Whether a code stands for outputs of these samples, `TARGET` allowed: the check of codes from elsewhere."""

    @view
    def with_hidden(self, hidden: Any) -> Oracle:
        """The same packed data with these hidden values known."""

    @view
    def with_loss(self, losses: Any) -> Oracle:
        """The same packed data under another loss."""

    def hidden_unknown(self) -> Array:
        """The samples whose hidden value is neither given nor the only one there is."""

    @view
    def exact(self) -> Oracle:
        """The same oracle with scores in double precision; itself if it has them anyway."""

    def digest(self) -> str:
        """A checksum of the bound data, labels and losses: oracles with the same one give the same answers."""

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        """The code of outputs as the user writes them."""

    def decode(self, code: Array, rows: Rows = None) -> tuple[Any, Any]:
        """Labels and hidden values as the user writes them; hidden is None for a problem without any."""


def take_code(oracle: Oracle, code: Array, rows: Rows) -> Array:
    """The part of a code of all samples that belongs to ``rows``: a view where the rows are consecutive."""
    if rows is None:
        return code
    offsets = code_offsets(oracle)
    if offsets is None:
        return np.asarray(code[rows])
    return np.asarray(code[positions_of(offsets, rows)])


def capability(oracle: object, protocol: type[P]) -> P | None:
    """The oracle, typed as the protocol, if it offers all that the protocol adds to `tacit.oracle.Oracle`; else None.

    >>> from tacit import problems, testing
    >>> from tacit.oracle.capabilities import MovesJointly, SumsOutputs
    >>> oracle = testing.example_task(problems.Multiclass()).oracle
    >>> capability(oracle, SumsOutputs) is oracle, capability(oracle, MovesJointly) is None
    (True, True)
    """
    asked = getattr(oracle, "innermost", oracle)
    for name in member_names(cast(type, protocol)):
        if not hasattr(asked, name):
            return None
    return None if getattr(asked, "lacks", ()) and missing_methods(asked, [protocol]) else cast(P, oracle)


@overload
def require(user: str, problem: object, oracle: object, needs: type[P], instead: str = "") -> P: ...


@overload
def require(user: str, problem: object, oracle: object, needs: Iterable[Need], instead: str = "") -> Oracle: ...


def require(user: str, problem: object, oracle: Any, needs: Any, instead: str = "") -> Any:
    """The oracle, if it offers what is needed; else a `CapabilityError` that names user, problem and what is missing.

    ``needs`` is a protocol, and the oracle is then typed as that, or a list of protocols and of single methods of them.

    >>> from tacit.oracle.capabilities import ScoresLabels
    >>> require("MinEntropySVM", "Coreference", object(), ScoresLabels, instead="use LatentSVM")
    Traceback (most recent call last):
    ...
    tacit.oracle.contracts.CapabilityError: MinEntropySVM needs `label_scores` and `best_under`, which Coreference \
does not offer; use LatentSVM
    """
    missing = " and ".join(
        f"`{name}`" for name in missing_methods(oracle, [needs] if isinstance(needs, type) else needs)
    )
    if missing:
        name = problem if isinstance(problem, str) else type(problem).__name__
        adviser = capability(oracle, AdvisesUsers)
        instead = instead or (
            f"add {missing} to the oracle that {name}.bind returns" if adviser is None else adviser.remedy
        )
        raise CapabilityError(f"{user} needs {missing}, which {name} does not offer; {instead}")
    return oracle


def missing_methods(oracle: object, needs: Iterable[Need]) -> list[str]:
    """The names of what an oracle does not offer, each once. One that stands for another offers what its `innermost`
    does."""
    oracle = getattr(oracle, "innermost", oracle)
    lacked = {name for need in getattr(oracle, "lacks", ()) for name in member_names(need, own=True)}
    wanted = dict.fromkeys(name for need in needs for name in member_names(need))
    return [name for name in wanted if name in lacked or not hasattr(oracle, name)]


@cache
def member_names(need: Need, own: bool = False) -> tuple[str, ...]:
    """The names of a method, or of all that a protocol adds to those of every oracle; ``own`` leaves out what it
    inherits from other protocols."""
    if not isinstance(need, type):
        return (need.__name__,)
    kinds = [kind for kind in need.__mro__ if kind is need or (not own and kind not in (*Oracle.__mro__, need))]
    found = (name for kind in kinds for name in (*vars(kind), *get_annotations(kind)))
    return tuple(dict.fromkeys(name for name in found if not name.startswith("_")))


class CapabilityError(TypeError):
    """A learner or solver needs a method that the problem's oracle does not offer."""


class AdvisesUsers(Oracle, Protocol):
    """An oracle that knows what a user can do where it lacks something."""

    @property
    def remedy(self) -> str:
        """What to give or use instead."""


class ExplainsRescaling(Oracle, Protocol):
    """An oracle that says why it does not offer slack rescaling."""

    @property
    def slack_obstacle(self) -> str:
        """The reason, and what to do about it if anything; empty where slack rescaling is offered."""


def rescalings(oracle: Oracle) -> tuple[str, ...]:
    """`Oracle.rescalings`; margin rescaling alone where the oracle does not say."""
    offered: tuple[str, ...] = getattr(oracle, "rescalings", ("margin",))
    return offered


def code_offsets(oracle: Oracle) -> Array | None:
    """`Oracle.code_offsets`; None, for one integer per sample, where the oracle does not say."""
    offsets: Array | None = getattr(oracle, "code_offsets", None)
    return offsets


def has_long_codes(oracle: Oracle) -> bool:
    """Whether a code has several integers per sample, cut by ``code_offsets``."""
    return code_offsets(oracle) is not None


def has_label_parts(oracle: Oracle) -> bool:
    """Whether a label has several parts, such as a tag per token; not where only the hidden value has them."""
    return has_long_codes(oracle) and bool(getattr(oracle, "labels_parts", True))


def completes_labels(oracle: Oracle) -> bool:
    """Whether what is hidden is what y lacks (missing tags of a sequence), so that hidden values are completed
    labels."""
    return bool(getattr(oracle, "completes_labels", False))


def hidden_values(oracle: Oracle, code: Array) -> Any:
    """What a code says of the hidden values: completed labels where y itself has gaps."""
    labels, hidden = oracle.decode(code)
    return labels if completes_labels(oracle) else hidden


def loss_needs_hidden(oracle: Oracle) -> bool:
    """Whether the loss is measured against the true hidden value; see `tacit.oracle.capabilities.MeasuresHidden`."""
    return bool(getattr(oracle, "loss_needs_hidden", False))


def runs_python(oracle: Oracle) -> bool:
    """Whether passes call Python functions, which hold the interpreter lock; see
    `tacit.oracle.capabilities.RunsElsewhere`."""
    return bool(getattr(oracle, "runs_python", False))


class Read(NamedTuple):
    """Input that `Problem.read` has already checked."""

    data: Any


class Problem(Stored, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of all problems. A problem holds hyperparameters only, never data or anything learned."""

    def refuse_shards(self, remedy: str) -> NoReturn:
        """Say that this problem cannot learn from shards, and what to do."""
        raise CapabilityError(f"{type(self).__name__} cannot learn from shards; {remedy}")

    reads_once: bool = False
    """Whether `schema` and `bind` ask `ensure_read` for their input, so that a learner may pass it as `Read`."""

    takes_shards: bool = False
    """Whether `read` takes `tacit.Shards`. If not, `refuse_shards` says what to do."""

    has_smooth_start: bool = False
    """Whether ``init="auto"`` begins with a smooth path (`tacit.LatentSVM`). It should be measured first: a path from
    w = 0 ends in a poor optimum where the mean features of all labels are the same."""

    takes_table: bool = True
    """Whether X has a row per sample, as scikit-learn has it; bags, sequences and images are not a table."""

    has_marginals: bool = False
    """Whether the oracle has `tacit.oracle.capabilities.GivesTagPosteriors`: learners then have ``predict_proba``."""

    @property
    def hidden_kinds(self) -> tuple[str, ...]:
        """Names of the kinds of hidden value, the outermost first, if entropies may have an order for each."""
        return ()

    def read(self, X: Any) -> Any:
        """Check the input and turn it into the container that `schema` and `bind` take."""
        return X

    def ensure_read(self, X: Any) -> Any:
        """The checked input: what `read` returns, or returned before."""
        return X.data if isinstance(X, Read) else self.read(X)

    def describe_rows(self, table: Any, offsets: Array) -> Array | None:
        """What `bind` has to know of the samples of a shard that another process reads, one entry each, or None.

        It runs where the rows are, and refuses those that cannot be; the message follows the name of the shard.
        """
        return None

    def check(self) -> None:
        """Refuse invalid parameters, as far as that can be seen without data: those that specs do not allow."""
        check_parameters(self)

    def check_schema(self, schema: Schema) -> None:
        """Refuse a schema that is not of this problem: `bind` and its kernels rely on its blocks and facts."""
        if not isinstance(schema, Schema):
            raise TypeError(f"schema must come from {type(self).__name__}.schema, got {shorten(schema)}")
        schema.check()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = self.takes_table
        return tags

    @abstractmethod
    def schema(self, X: Any, y: Any) -> Schema:
        """Learn classes, dimensions and preprocessing from training data."""

    def lower_bounds(self, schema: Schema) -> Mapping[str, float]:
        """The least values, 0 or below, that inference allows the weights of some blocks, by the block's name."""
        return {}

    @abstractmethod
    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> Oracle:
        """Pack the data once. ``y`` is None when predicting; ``hidden`` holds known hidden values, −1 elsewhere."""

    @abstractmethod
    def example(self, rng: np.random.Generator) -> Example:
        """A tiny instance, small enough to enumerate, different for every state of ``rng``."""

    @classmethod
    def variants(cls) -> list[Self]:
        """The settings that the common tests run through."""
        return [cls()]
