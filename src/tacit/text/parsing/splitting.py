"""Split and merge: a path of models with more and more sub-categories, which the group norm chooses."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array
from tacit.data.parameters import number, random_numbers, shorten, whole_number
from tacit.learners import HiddenCRF
from tacit.oracle import Schema
from tacit.text.parsing.grammar import Grammar
from tacit.text.parsing.problem import MAX_STATES, Tree, read_facts

NOISE = 0.1
"""Standard deviation of what is added to the weights of two new sub-categories, which would else stay the same."""


class SplitStep(NamedTuple):
    """A model of a path.

    Attributes
    ----------
    model : fitted
    states : sub-categories by symbol, for `Tree(states=...)`
    norms : by symbol with pairs of new sub-categories, ‖w − w'‖ of the weights of each pair, before any was merged
    """

    model: HiddenCRF
    states: dict[str, int]
    norms: dict[str, Array]


def split_path(
    learner: HiddenCRF, X: Any, y: Any, *, rounds: int = 2, share: float = 0.5, random_state: Any = 0
) -> list[SplitStep]:
    """Models of a learner on a `Tree`: without sub-categories, then after every round of split and merge.

    A round splits every sub-category in two and learns. The group norm ``‖w − w'‖``, over all weights of a pair of new
    sub-categories, says whether they differ: 0 means that one is enough. The pairs of the smallest norms are merged,
    and the model is learned again from the mean weights. Petrov et al. (2006) merge by likelihood.

    Parameters
    ----------
    learner : a `HiddenCRF` of a `Tree`, whose ``states`` are not used
    X, y : as in `HiddenCRF.fit`
    rounds : so many times the sub-categories double, before some are merged
    share : of the pairs, to be merged
    random_state : seed of what makes two new sub-categories differ

    >>> from tacit.problems import Tree
    >>> X = ["a/N b/N b/V", "b/N b/N b/V"]
    >>> y = ["(S (NP (NP (N a)) (N b)) (V b))", "(S (N b) (VP (N b) (V b)))"]
    >>> path = split_path(HiddenCRF(Tree(spans=False, min_count=1), C=10, max_iter=20, verbose=0), X, y, rounds=1)
    >>> [max([1, *step.states.values()]) for step in path]
    [1, 2]
    """
    if not isinstance(learner, HiddenCRF) or not isinstance(learner.problem, Tree):
        raise ValueError(f"learner must be a HiddenCRF of a Tree, got {shorten(learner)}")
    rounds = whole_number("rounds", rounds, 1, int(np.log2(MAX_STATES)))
    share = number("share", share, "a number from 0 to 1", lambda value: 0 <= value <= 1)
    rng = np.random.default_rng(int(random_numbers(random_state).randint(2**31)))
    model = _fit(learner, X, y, 1, "auto")
    grammar = read_facts(model.schema_)[0]
    limits, steps = np.ones(grammar.n_symbols, dtype=np.int64), [SplitStep(model, {}, {})]
    for turn in range(rounds):
        init: Any = _split(model, limits, rng) if turn else "auto"  # contexts make the first pairs
        limits = 2 * limits
        model = _fit(learner, X, y, _name(limits, grammar), init)
        norms = _pair_norms(model, limits.size)
        is_pair = np.arange(norms.shape[1]) < limits[:, None] // 2
        ordered = np.sort(norms[is_pair])
        bound = ordered[int(share * ordered.size) - 1] if int(share * ordered.size) else -np.inf
        means, limits = _merge(limits, is_pair & (norms <= bound))
        states = _name(limits, grammar)
        if max([1, *states.values()]) > 1:
            init = _merge_weights(model, means)
            model = _fit(learner, X, y, states, init)
        else:
            model = steps[0].model
        names = grammar.symbols.tolist()
        told = {names[s]: norms[s, : is_pair[s].sum()] for s in np.flatnonzero(is_pair.any(axis=1))}
        steps.append(SplitStep(model, states, told))
    return steps


def _fit(learner: HiddenCRF, X: Any, y: Any, states: Any, init: Any) -> HiddenCRF:
    model: HiddenCRF = clone(learner).set_params(problem__states=states, init=init)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # models between are only starts
        model.fit(X, y)
    return model


def _name(limits: Array, grammar: Grammar) -> dict[str, int]:
    return {str(grammar.symbols[s]): int(limits[s]) for s in np.flatnonzero(limits > 1)}


def _owners(schema: Schema) -> dict[str, tuple[Array, ...]]:
    """The symbols whose states each axis of a block has, by row; one beyond the last for rules that were not seen."""
    grammar, vocabulary = read_facts(schema)
    rules = np.append(grammar.rules[grammar.is_seen], np.full((1, 3), grammar.n_symbols), axis=0)
    leaf = grammar.leaves[:, 0]
    return {
        "left": (rules[:, 0], rules[:, 1]),
        "right": (rules[:, 0], rules[:, 2]),
        "leaf": (leaf,),
        "word": (leaf[vocabulary.pairs // vocabulary.n_words],),
        "root": (np.arange(grammar.n_symbols),),
    }


def _split(model: HiddenCRF, limits: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Weights of two sub-categories in place of each, almost the same; ``limits`` are those before."""
    weights = {name: np.array(values) for name, values in model.weights_.items()}
    k, n_rows = int(limits.max()), len(weights["rule"])
    for name in ("left", "right"):
        weights.setdefault(name, np.zeros((n_rows, 1, 1)))
    limits = np.append(2 * limits, 2 * k)
    for name, owners in _owners(model.schema_).items():
        if name not in weights:
            continue
        for axis in range(1, len(owners) + 1):
            weights[name] = np.repeat(weights[name], 2, axis=axis)
        weights[name] += NOISE * rng.standard_normal(weights[name].shape)
        for axis, owner in enumerate(owners, 1):
            is_used = np.arange(2 * k) < limits[owner][:, None]
            weights[name] *= is_used if weights[name].ndim == 2 else np.expand_dims(is_used, 3 - axis)
    return weights


def _pair_norms(model: HiddenCRF, n_symbols: int) -> Array:
    """[symbol, pair] the norm of the differences of all weights of sub-categories 2i and 2i + 1."""
    squares = np.zeros((n_symbols + 1, model.weights_["leaf"].shape[1] // 2))
    for name, owners in _owners(model.schema_).items():
        for axis, owner in enumerate(owners, 1):
            if name in model.weights_:
                values = np.moveaxis(model.weights_[name], axis, 1)
                differences = (values[:, ::2] - values[:, 1::2]) ** 2
                np.add.at(squares, owner, differences.reshape(*differences.shape[:2], -1).sum(axis=2))
    return np.asarray(np.sqrt(squares[:n_symbols]))


def _merge(limits: Array, is_merged: Array) -> tuple[Array, Array]:
    """[symbol, new, old] means over the sub-categories that become one, also for an unknown symbol; new limits."""
    after = limits - is_merged.sum(axis=1)
    k, old = int(after.max()), int(limits.max())
    means = np.zeros((limits.size + 1, k, old))
    means[-1] = np.eye(k, old)
    for s, limit in enumerate(limits.tolist()):
        at = 0
        for x in range(limit):
            is_second = limit > 1 and x % 2 == 1 and is_merged[s, x // 2]
            at += x > 0 and not is_second
            means[s, at, x] = 1.0
        means[s] /= np.maximum(means[s].sum(axis=1, keepdims=True), 1.0)
    return means, after


def _merge_weights(model: HiddenCRF, means: Array) -> dict[str, Array]:
    """The weights of merged sub-categories: means of those before."""
    weights = {name: np.array(values) for name, values in model.weights_.items()}
    for name, owners in _owners(model.schema_).items():
        if name in weights and len(owners) == 2:
            weights[name] = np.einsum("rab,rbc,rdc->rad", means[owners[0]], weights[name], means[owners[1]])
        elif name in weights:
            weights[name] = np.einsum("rab,rb->ra", means[owners[0]], weights[name])
    return weights
