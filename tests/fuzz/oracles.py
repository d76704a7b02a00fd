"""Oracles with codes, weights, rows and losses that do not fit: kernels must never see them."""

from __future__ import annotations

import numpy as np

from tacit.oracle import HiddenLoss, LossTable, Reference, Schema, check_hidden, read_hidden
from tacit.problems import PerSample
from tacit.testing.discovery import problems
from tests.fuzz.draws import Draw
from tests.fuzz.fits import PROBLEMS
from tests.fuzz.registry import target

EXAMPLES = [problem for problem in problems() if not isinstance(problem, PerSample)]
"""Every problem of tacit in all its variants, each with a tiny example; what a user's functions raise is theirs."""


def bound(draw: Draw):
    if draw.chance(0.4):
        problem = draw.pick(EXAMPLES)
        X, y = problem.example(draw.rng)[:2]
        return problem, X, y, problem.schema(X, y)
    kind, parameters, X, y, _ = draw.pick(PROBLEMS)(draw)
    parameters.pop("loss", None)
    problem = kind(**parameters)
    return problem, X, y, problem.schema(X, y)


def spoiled_code(draw: Draw, code):
    """A code of other outputs, of other samples, or of none."""
    way = draw.between(0, 6)
    if way == 0:
        return code[:-1]
    if way == 1:
        return np.append(code, code)
    if way == 2:
        return np.full(code.size, draw.pick([10**9, 127, -5, -1]))
    if way == 3:
        return code[:0]
    other = code.astype(np.int64)
    if other.size and way < 6:
        other[draw.between(0, other.size - 1)] = draw.pick([50, 1000, 2**40, -2, 3])
    return other


@target("EnumerableOracle", "LossTable", "Schema")
def oracle_calls(draw: Draw):
    problem, X, y, schema = bound(draw)
    oracle = problem.bind(X, y, schema)
    w = draw.rng.standard_normal(oracle.n_params)
    code = oracle.predict(w).code
    n, tried = oracle.n_samples, spoiled_code(draw, code)
    if draw.chance(0.3):
        w = draw.pick([w[:-1], np.append(w, w), w[:0]])
    coef = np.ones(draw.pick([n, n, 1, n + 1]))
    rows = draw.pick([None, None, slice(0, n), np.arange(n)])
    calls = {
        "features": lambda: oracle.features(tried, coef, rows),
        "score": lambda: oracle.score(w, tried, rows),
        "loss": lambda: oracle.loss(tried, rows),
        "impute": lambda: oracle.impute(w, rows, prefer=np.maximum(tried, 0)).value,
        "decode": lambda: oracle.decode(tried, rows) and None,
        "accepts": lambda: float(oracle.accepts(tried)),
    }
    if hasattr(oracle, "difference"):
        calls["difference"] = lambda: oracle.difference(code, tried, coef, rows)
    if hasattr(oracle, "best_hidden"):
        calls["best_hidden"] = lambda: oracle.best_hidden(w, tried, 2, rows).code
    if hasattr(oracle, "best_under"):
        calls["best_under"] = lambda: oracle.best_under(w, tried, rows).value
    return calls[draw.pick(calls)]()


@target("HiddenLoss", "Reference", "check_hidden", "read_hidden", "KnownHidden")
def losses_and_hidden(draw: Draw):
    problem, X, y, schema = bound(draw)
    oracle = problem.bind(X, y, schema)
    n, k = oracle.n_samples, getattr(oracle, "n_labels", 2)
    way = draw.between(0, 3)
    if way == 0 and hasattr(oracle, "with_loss"):
        table = np.ones((draw.pick([k, k, k + 1, 1]), draw.between(1, 4)))
        column = draw.pick([None, draw.rng.integers(-1, 4, draw.pick([n, n + 1]))])
        found = oracle.with_loss(LossTable(table, column))
        return found.predict_augmented(np.zeros(oracle.n_params)).value
    sizes = draw.rng.integers(1, 4, n)
    if way == 1:
        kinds, tables = draw.rng.integers(0, 2, n), [np.zeros((draw.between(1, 3),) * 2) for _ in range(2)]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        loss = HiddenLoss(kinds, tables)
        return loss.table(2, offsets, np.zeros(n, int), Reference(np.zeros(n, int)))
    given = [draw.pick([0, -1, None, [0], [0, 1], {0}, np.array([True])]) for _ in range(n)]
    read = draw.pick([read_hidden, check_hidden])
    return np.asarray(getattr(read(draw.spoil(given), sizes), "states", 0.0))


@target()
def foreign_schemas(draw: Draw):
    """A schema of another problem, or one that was changed, at prediction."""
    problem, X, _, schema = bound(draw)
    parts = {"classes": schema.classes, "n_features": schema.n_features, "blocks": dict(schema.blocks)}
    parts = draw.spoil_some(parts | {"facts": dict(schema.facts)})
    other = Schema(**parts)
    if draw.chance(0.5):
        other.check()
    oracle = problem.bind(X, None, other)
    return oracle.predict(np.zeros(oracle.n_params)).value
