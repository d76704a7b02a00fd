"""Models that grow: few features first, and more as long as held-out samples are predicted better."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from tacit.data.arrays import Array
from tacit.data.parameters import entries, number, random_numbers, shorten, whole_number
from tacit.learners.learner import Learner
from tacit.learners.path import cut_folds, single_labels
from tacit.runtime import Status


class GrownModel(NamedTuple):
    """What `tacit.grow_model` returns.

    Attributes
    ----------
    model : the learner of the chosen size, fitted to all samples
    size : the chosen value of the parameter
    sizes : those that were tried
    scores : of each on the held-out samples
    seconds : of CPU time that each took, the final fits not counted
    """

    model: Any
    size: int
    sizes: list[int]
    scores: Array
    seconds: Array


def grow_model(
    estimator: Learner,
    X: Any,
    y: Any,
    sizes: Any,
    *,
    parameter: str = "problem__n_components",
    hidden: Any = None,
    sample_weight: Any = None,
    validation: float = 0.2,
    patience: int = 1,
    random_state: Any = 0,
) -> GrownModel:
    """Fit a learner with a simple model first, then with larger ones, as long as held-out samples gain.

    Each size begins with the weights of the last one, whose new entries are 0, so a larger model begins as the smaller
    one that it contains. Non-convex learners are led by the simple model to hidden values that it is sure of. When the
    size is chosen, all samples are learned from in the same way.

    Parameters
    ----------
    estimator : a learner that takes ``init=`` as a dict of weights, such as `tacit.LatentSVM` or `tacit.HiddenCRF`; it
        is copied, never changed
    X, y, hidden, sample_weight : as in the learner's ``fit``
    sizes : values of the parameter, in increasing order
    parameter : what grows: the features of `tacit.problems.FeatureMap`, or another size whose blocks of weights grow at
        their ends, such as ``problem__width`` of a `tacit.problems.Motif`
    validation : share of the samples that the size is chosen on
    patience : so many sizes in a row may fail to be better before growth ends
    random_state : seed of the held-out samples

    >>> from tacit import LatentSVM
    >>> from tacit.problems import Bags, FeatureMap
    >>> rng = np.random.default_rng(0)
    >>> bags, y = rng.normal(size=(60, 4, 2)), np.arange(60) % 2
    >>> bags[y == 1, 0] *= 0.1  # instances of positive bags near the middle: no linear model sees them
    >>> grown = grow_model(LatentSVM(FeatureMap(Bags(), gamma=1.0), C=100), bags, y, [1, 4, 16])
    >>> grown.sizes[: len(grown.scores)], bool(grown.model.score(bags, y) > 0.7)
    ([1, 4, 16], True)
    """
    sizes = _read_sizes(sizes)
    _check(estimator, parameter)
    patience = whole_number("patience", patience)
    share = number("validation", validation, "a share between 0 and 1", lambda value: 0 < value < 1)
    seed = int(random_numbers(random_state).randint(2**31))
    given = {"hidden": hidden, "sample_weight": sample_weight}
    known = {name: values for name, values in given.items() if values is not None}
    kind = ShuffleSplit if single_labels(y) is None else StratifiedShuffleSplit
    train, inside, test = next(iter(cut_folds(kind(1, test_size=share, random_state=seed), X, y, known)))
    scores: list[float] = []
    seconds: list[float] = []
    weights: Mapping[str, Array] | None = None
    for size in sizes:
        began = time.process_time()
        model = _fit(estimator, parameter, size, weights, train, inside)
        weights = model.weights_
        scores.append(float(model.score(*test)))
        seconds.append(time.process_time() - began)
        if len(scores) - 1 - int(np.argmax(scores)) >= patience:
            break
    best = int(np.argmax(scores))
    weights = None
    for size in sizes[: best + 1]:
        model = _fit(estimator, parameter, size, weights, (X, y), known)
        weights = model.weights_
    return GrownModel(model, sizes[best], sizes[: len(scores)], np.array(scores), np.array(seconds))


def _fit(
    estimator: Learner, parameter: str, size: int, weights: Any, data: tuple[Any, Any], known: dict[str, Any]
) -> Any:
    """A model of this size that begins with the weights of a smaller one."""
    model = clone(estimator).set_params(**{parameter: size})
    if weights is not None:
        schema = model.problem.schema(*data)
        model.set_params(init=pad_weights(weights, schema.blocks), n_init=1)
    model.fit(*data, **known)
    if getattr(model, "status_", None) is Status.INTERRUPTED:
        raise KeyboardInterrupt  # neither the score of an interrupted fit nor what follows from it is a result
    return model


def pad_weights(weights: Mapping[str, Array], blocks: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Weights by block in the shapes of a larger model: what is new is 0.

    >>> pad_weights({"weights": np.array([[1.0, 2.0]])}, {"weights": (1, 3)})
    {'weights': array([[1., 2., 0.]])}
    """
    padded = {}
    for name, shape in blocks.items():
        old = weights.get(name, np.zeros((0,) * len(shape)))
        if old.ndim != len(shape) or any(one > two for one, two in zip(old.shape, shape, strict=True)):
            raise ValueError(f"the block {name!r} must not shrink, but it goes from {old.shape} to {shape}")
        padded[name] = np.zeros(shape)
        padded[name][tuple(slice(size) for size in old.shape)] = old
    return padded


def _read_sizes(sizes: Any) -> list[int]:
    found = [whole_number("an entry of sizes", size) for size in entries("sizes", sizes, "a list of whole numbers")]
    if not found or found != sorted(set(found)):
        raise ValueError(f"sizes must be increasing whole numbers, got {shorten(found)}")
    return found


def _check(estimator: Any, parameter: Any) -> None:
    if not isinstance(estimator, Learner):
        raise TypeError(f"estimator must be a learner, such as LatentSVM(...), got {shorten(estimator)}")
    offered = estimator.get_params()
    for name, remedy in (
        ("init", "use LatentSVM, HiddenCRF or another learner that takes weights as init="),
        (parameter, "the problem must have such a parameter, as FeatureMap(...) has n_components"),
    ):
        if not isinstance(name, str) or name not in offered:
            raise ValueError(f"{type(estimator).__name__} has no parameter {shorten(name)}; {remedy}")
