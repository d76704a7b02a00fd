"""Checks that a problem's oracle agrees with its specification."""

from __future__ import annotations

import itertools
import pickle
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.base import clone

from tacit.data.arrays import Array
from tacit.oracle import Assignment, EnumerableOracle, Example, Oracle, Problem, capability, take_code
from tacit.oracle.capabilities import GivesEntropySlacks, GivesLogPartition, ScalesLoss, SumsDifferences, SumsOutputs
from tacit.oracle.contracts import rescalings
from tacit.penalties import Quadratic
from tacit.problems import PerSample
from tacit.testing.enumeration import Enumeration, assert_that, same
from tacit.testing.per_sample import check_functions

ORDERS = (0.25, 0.999, 1.0, 1.001, 2.0, 1000.0, np.inf)
"""Orders of entropy that are compared, with the difficult neighbourhood of 1."""


def check_problem(problem: Problem, seeds: int = 5) -> None:
    """Compare a problem's oracle with the enumeration of its examples; an AssertionError says what differs.

    The functions of a `PerSample` are checked first, one by one, on the samples that it was given as ``examples``.
    Without a list of outputs, they are compared with every output that they returned, which finds most mistakes.

    >>> from tacit.problems import Multiclass
    >>> check_problem(Multiclass())
    """
    before = repr(problem.get_params())
    clone(problem)
    if isinstance(problem, PerSample):
        check_functions(problem, seeds)
        if problem.example(np.random.default_rng(0)).outputs is None:
            return
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        example = problem.example(rng)
        schema = problem.schema(example.X, example.y)
        oracle = problem.bind(example.X, example.y, schema, hidden=None)
        table = Enumeration(example)
        name = type(problem).__name__
        assert_that(
            oracle.n_params == schema.n_params == table.features[0].shape[1],
            f"{name}: n_params is {oracle.n_params} in the oracle, {schema.n_params} in the schema, and "
            f"joint_feature has {table.features[0].shape[1]} numbers; all three must agree",
        )
        for i, losses in enumerate(table.losses):
            assert_that(losses.min() >= 0, f"{name}: losses must not be negative, sample {i} has {losses.min()}")
            assert_that(losses[table.target(i)] == 0, f"{name}: the loss of the true output of sample {i} must be 0")
        # whole numbers give exact ties, and scores free of rounding
        lower = lower_bounds(problem, schema)
        for w in (rng.integers(-2, 3, oracle.n_params).astype(float), np.zeros(oracle.n_params)):
            _check_maxima(name, oracle, table, np.maximum(w, lower))
        _check_sums(name, oracle, table, rng, lower)
        _check_rows(name, oracle, rng, lower)
        if isinstance(oracle, EnumerableOracle):
            _check_maps(name, oracle, rng)
        if capability(oracle, SumsOutputs) is not None:
            _check_expectations(name, oracle, table, rng)
        if capability(oracle, GivesEntropySlacks) is not None and seed < 2:  # these take longest
            _check_entropies(name, oracle.exact(), table, rng)
        _check_given_hidden(name, problem, example, table)
        if isinstance(oracle, EnumerableOracle) and example.hidden is not None:
            _check_allowed_hidden(name, oracle, table, rng)
    unchanged = repr(problem.get_params()) == before
    assert_that(unchanged, f"{type(problem).__name__}: binding data changed the problem's parameters")
    if not isinstance(problem, PerSample):  # whose functions may be lambdas
        pickle.loads(pickle.dumps(problem))


def lower_bounds(problem: Problem, schema: Any) -> Any:
    """The least value of every weight that inference allows; −inf without a bound."""
    penalty = Quadratic().in_blocks(schema, problem.lower_bounds(schema))
    return -np.inf if penalty.lower is None else penalty.lower


def _check_maxima(name: str, oracle: Oracle, table: Enumeration, w: Array) -> None:
    rows = range(table.n)
    scores = [psi @ w for psi in table.features]
    truth = oracle.encode(*_outputs(table, [table.target(i) for i in rows]))
    predicted = oracle.predict(w)
    _compare(f"{name}.predict", [s.max() for s in scores], predicted.value)
    _check_attained(f"{name}.predict", oracle, table, w, predicted.code, predicted.value, scores)
    imputed = oracle.impute(w)
    inside = [np.where(table.is_true[i], scores[i], -np.inf) for i in rows]
    _compare(f"{name}.impute", [s.max() for s in inside], imputed.value)
    _check_attained(f"{name}.impute", oracle, table, w, imputed.code, imputed.value, inside)
    preferring = oracle.impute(w, prefer=truth)
    for i in rows:
        t = table.target(i)
        if inside[i][t] == inside[i].max():
            own, preferred = (take_code(oracle, code, slice(i, i + 1)) for code in (preferring.code, truth))
            assert_that(np.array_equal(own, preferred), f"{name}.impute: a tie of sample {i} must go to `prefer`")
    offered, is_bounded = rescalings(oracle), capability(oracle, ScalesLoss) is not None
    leaves_out = "slack" in offered and not is_bounded  # listed outputs can also be left out
    for rescaling, rivals in itertools.product(offered, (False, True) if leaves_out else (False,)):
        values = []
        for i in rows:
            t = table.target(i)
            slack = table.losses[i] * (1 + scores[i] - scores[i][t])
            value = slack if rescaling == "slack" else scores[i] + table.losses[i]
            values.append(np.where(table.is_true[i], -np.inf, value) if rivals else value)
        found = oracle.predict_augmented(w, target=truth, rescaling=rescaling, rivals=rivals)
        what = f"{name}.predict_augmented(rescaling={rescaling!r}, rivals={rivals})"
        if rescaling == "slack" and is_bounded:
            _check_bounded(what, oracle, w, truth, found, np.array([max(v.max(), 0.0) for v in values]))
            continue
        _compare(what, [v.max() for v in values], found.value)
        _check_attained(what, oracle, table, w, found.code, found.value, values)


def _check_bounded(what: str, oracle: Oracle, w: Array, truth: Array, found: Assignment, exact: Array) -> None:
    """The largest product must be between that of the output that was found and the value, which is an upper bound."""
    product = oracle.loss(found.code) * (1 + oracle.score(w, found.code) - oracle.score(w, truth))
    room = 1e-9 + 1e-5 * np.abs(exact)  # scores may be in single precision
    for i in np.flatnonzero((product > exact + room) | (exact > found.value + room)):
        between = f"between {product[i]}, what its output has, and the bound {found.value[i]}"
        assert_that(False, f"{what}: the largest product of sample {i} must be {between}, but it is {exact[i]}")


def _check_attained(
    what: str, oracle: Oracle, table: Enumeration, w: Array, code: Array, value: Array, values: list[Array]
) -> None:
    """The code must stand for an output that has the reported value."""
    labels, hidden = oracle.decode(code)
    for i in range(table.n):
        h = None if hidden is None else hidden[i]
        own = values[i][[same(a, labels[i]) and same(b, h) for a, b in table.outputs[i]].index(True)]
        found = f"{what}: sample {i} reports value {value[i]}, but its output {labels[i], h} has {own}"
        assert_that(np.isclose(own, value[i]), found)


def _check_sums(name: str, oracle: Oracle, table: Enumeration, rng: np.random.Generator, lower: Any) -> None:
    coef = rng.standard_normal(table.n)
    w = np.maximum(rng.standard_normal(oracle.n_params), lower)
    for _ in range(3):
        chosen = [int(rng.integers(len(outputs))) for outputs in table.outputs]
        labels, hidden = _outputs(table, chosen)
        code = oracle.encode(labels, hidden)
        back, back_hidden = oracle.decode(code)
        for i in range(table.n):
            kept = same(back[i], labels[i]) and (back_hidden is None or same(back_hidden[i], hidden[i]))
            assert_that(kept, f"{name}: decode(encode(...)) must not change sample {i}")
        psi = np.array([table.features[i][chosen[i]] for i in range(table.n)])
        _compare(f"{name}.score", psi @ w, oracle.score(w, code))
        _compare(f"{name}.loss", [table.losses[i][chosen[i]] for i in range(table.n)], oracle.loss(code))
        _compare(f"{name}.features", coef @ psi, oracle.features(code, coef))
        summing = capability(oracle, SumsDifferences)
        if summing is not None:
            other = oracle.impute(w).code
            expected = oracle.features(code, coef) - oracle.features(other, coef)
            _compare(f"{name}.difference", expected, summing.difference(code, other, coef))


def _check_expectations(name: str, oracle: Any, table: Enumeration, rng: np.random.Generator) -> None:
    """Log-sums and expected features against enumeration, at small and huge scores; gradients by differences."""
    is_true = [np.asarray(true, dtype=bool) for true in table.is_true]
    everything = [np.ones(true.size, dtype=bool) for true in is_true]
    direction = rng.standard_normal(oracle.n_params)
    for scale, power in ((1.0, 1.0), (1.0, 0.5), (100.0, 1.0), (1e4, 2.0)):
        w = scale * direction
        free, label = rng.standard_normal(table.n), rng.standard_normal(table.n)
        found = oracle.expectations(w, free=free, label=label, truth=0.0, power=power)
        logs, means = _enumerate_sums(table, w, power, everything)
        true_logs, true_means = _enumerate_sums(table, w, power, is_true)
        what = f"{name}.expectations(power={power}) at scores of {scale:g}"
        _compare(f"{what}, free", logs / scale, found.free / scale)
        _compare(f"{what}, label", true_logs / scale, found.label / scale)
        _compare(f"{what}, truth", true_logs / scale, found.truth / scale)
        _compare(f"{what}, features", free @ means + label @ true_means, found.features)
        soft = oracle.expectations(w, free=free, truth=label, power=power, augmented=True)
        logs_of_losses, means = _enumerate_sums(table, w, power, everything, table.losses)
        _compare(f"{what}, free with losses", logs_of_losses / scale, soft.free / scale)
        _compare(f"{what}, features with losses", free @ means + label @ true_means, soft.features)
        summed = capability(oracle, GivesLogPartition)
        if power == 1.0 and summed is not None:
            _compare(f"{name}.log_partition at scores of {scale:g}", logs / scale, summed.log_partition(w) / scale)
    w, step = direction, 1e-4 * rng.standard_normal(oracle.n_params)
    coef = rng.standard_normal(table.n)
    oracle = oracle.exact()
    ahead, behind = (oracle.expectations(w + sign * step, free=0.0, truth=0.0, power=0.5) for sign in (1, -1))
    rise = coef @ (ahead.free - behind.free - ahead.truth + behind.truth) / 2
    slope = 0.5 * oracle.expectations(w, free=coef, truth=-coef, power=0.5).features @ step
    _compare_slopes(f"{name}.expectations: the sums", rise, slope, atol=1e-8)


def _enumerate_sums(
    table: Enumeration, w: Array, power: float, among: list[Array], losses: Any = None
) -> tuple[Array, Array]:
    """log Σ exp(power·s) and E[Ψ] of every sample, over the outputs of these masks; with losses, of ℓ + s."""
    logs, means = [], []
    for psi, mask, loss in zip(table.features, among, losses or [0.0] * table.n, strict=True):
        scores = np.where(mask, power * (psi.astype(float) @ w + loss), -np.inf)
        logs.append(logsumexp(scores))
        means.append(softmax(scores) @ psi)
    return np.array(logs), np.array(means)


def _check_entropies(name: str, oracle: Any, table: Enumeration, rng: np.random.Generator) -> None:
    """Compare with enumeration at scores of size 1, 100 and 10⁴, and gradients with differences."""
    oracle = oracle.exact()
    direction = rng.standard_normal(oracle.n_params)
    labels = [_labels(table, i) for i in range(table.n)]
    for scale in (1.0, 100.0, 1e4):
        w = scale * direction
        scores = [psi.astype(float) @ w for psi in table.features]
        for alpha in ORDERS:
            found = oracle.renyi_slacks(w, np.ones(table.n), alpha).value
            expected = [_slack(labels[i], scores[i], alpha) for i in range(table.n)]
            what = f"{name}.renyi_slacks(alpha={alpha}) at scores of {scale:g}"
            _compare(what, np.array(expected) / scale, found / scale)
        if not isinstance(oracle, EnumerableOracle):
            continue
        posterior = oracle.output_posterior(w)
        sums = np.add.reduceat(posterior.sum(axis=1), oracle.offsets[:-1])
        _compare(f"{name}.output_posterior at scores of {scale:g}, its sums", np.ones(table.n), sums)
    _check_gradients(name, oracle, direction, rng)


class _Label(NamedTuple):
    """One label of a sample: the numbers of its outputs, its highest loss, and whether it is the true one."""

    numbers: Array
    loss: float
    is_true: bool


def _labels(table: Enumeration, i: int) -> list[_Label]:
    found: list[tuple[Any, list[int]]] = []
    for number, (label, _) in enumerate(table.outputs[i]):
        own = next((numbers for other, numbers in found if same(label, other)), None)
        if own is None:
            found.append((label, [number]))
        else:
            own.append(number)
    groups = [np.array(own) for _, own in found]
    return [_Label(own, table.losses[i][own].max(), bool(table.is_true[i][own].all())) for own in groups]


def _slack(labels: list[_Label], scores: Array, alpha: float) -> float:
    """ξ_i from the outputs of a sample, written out."""
    entropies = [_renyi(scores[label.numbers], alpha) for label in labels]
    pairs = list(zip(labels, entropies, strict=True))
    others = [label.loss + entropy for label, entropy in pairs if not label.is_true]
    truth = next(entropy for label, entropy in pairs if label.is_true)
    return max(0.0, max(others) - truth) if others else 0.0


def _renyi(scores: Array, alpha: float) -> float:
    """R_α of a few scores, by its definition."""
    top = float(scores.max())
    if np.isinf(alpha):
        return top
    away = scores - top
    if alpha == 1:
        return top + float(softmax(away) @ away)
    return top + float(logsumexp(alpha * away) - logsumexp(away)) / (alpha - 1)


def _check_gradients(name: str, oracle: Any, w: Array, rng: np.random.Generator) -> None:
    coef = rng.random(oracle.n_samples)
    step = 1e-6 * rng.standard_normal(oracle.n_params)
    for alpha in ORDERS:
        ahead, behind = (coef @ oracle.renyi_slacks(w + sign * step, coef, alpha).value for sign in (1, -1))
        slope = oracle.renyi_slacks(w, coef, alpha).features @ step
        _compare_slopes(f"{name}.renyi_slacks(alpha={alpha}): the slacks", (ahead - behind) / 2, slope, atol=1e-9)


def _check_allowed_hidden(name: str, oracle: EnumerableOracle, table: Enumeration, rng: np.random.Generator) -> None:
    """Where a hidden value is known to be in a set, impute, draw and sums stay inside."""
    allowed, masks = [], []
    for i in range(table.n):
        own = np.flatnonzero(table.is_true[i])
        chosen = sorted({table.target(i), *rng.choice(own, min(2, own.size), replace=False).tolist()})
        pairs = [table.outputs[i][number] for number in chosen]
        codes = [oracle.encode([label], [h], rows=slice(i, i + 1)) for label, h in pairs]
        allowed.append([int(oracle.split(code, slice(i, i + 1))[1][0]) for code in codes])
        masks.append(np.isin(np.arange(len(table.outputs[i])), chosen))
    oracle = oracle.with_hidden(allowed)
    w = rng.standard_normal(oracle.n_params)
    best = [np.where(mask, psi @ w, -np.inf).max() for psi, mask in zip(table.features, masks, strict=True)]
    _compare(f"{name}.impute among allowed hidden values", best, oracle.impute(w).value)
    logs, means = _enumerate_sums(table, w, 1.0, masks)
    found = oracle.expectations(w, truth=np.ones(table.n))
    _compare(f"{name}.expectations among allowed hidden values", logs, found.truth)
    _compare(f"{name}.expectations among allowed hidden values, features", means.sum(axis=0), found.features)
    drawn: Any = oracle.decode(oracle.draw(rng))[1]
    for i in range(table.n):
        values = [table.outputs[i][number][1] for number in np.flatnonzero(masks[i])]
        is_inside = any(same(drawn[i], h) for h in values)
        assert_that(is_inside, f"{name}.draw gave sample {i} the value {drawn[i]}, which is not allowed")
    is_open = np.flatnonzero([np.count_nonzero(mask) > 1 for mask in masks])
    assert_that(np.array_equal(oracle.hidden_unknown(), is_open), f"{name}.hidden_unknown does not respect sets")


def _check_rows(name: str, oracle: Oracle, rng: np.random.Generator, lower: Any) -> None:
    w = np.maximum(rng.integers(-2, 3, oracle.n_params).astype(float), lower)
    n = oracle.n_samples
    whole = {"predict": oracle.predict(w), "impute": oracle.impute(w), "predict_augmented": oracle.predict_augmented(w)}
    code, coef = whole["predict_augmented"].code, rng.standard_normal(n)
    for rows in (slice(1, n), slice(0, 1), np.array([0, n - 1]), np.arange(n)):
        for method, answer in whole.items():
            _compare(f"{name}.{method}(rows={rows})", answer.value[rows], getattr(oracle, method)(w, rows).value)
        own = take_code(oracle, code, rows)
        _compare(f"{name}.score(rows={rows})", oracle.score(w, code)[rows], oracle.score(w, own, rows))
        _compare(f"{name}.loss(rows={rows})", oracle.loss(code)[rows], oracle.loss(own, rows))
        part = np.zeros(n)
        part[rows] = coef[rows]
        whole_sum, own_sum = oracle.features(code, part), oracle.features(own, coef[rows], rows)
        _compare(f"{name}.features(rows={rows})", whole_sum, own_sum)


def _check_maps(name: str, oracle: EnumerableOracle, rng: np.random.Generator) -> None:
    w = rng.standard_normal(oracle.n_params)
    scores = oracle.scores(w).astype(np.float64)
    V = np.where(np.isfinite(scores), rng.standard_normal(scores.shape), 0.0)
    left, right = float((V * np.where(np.isfinite(scores), scores, 0.0)).sum()), float(oracle.adjoint(V) @ w)
    _compare(f"{name}.adjoint (as the transpose of scores)", [left], [right])


def _check_given_hidden(name: str, problem: Problem, example: Example, table: Enumeration) -> None:
    if example.hidden is None:
        return
    schema = problem.schema(example.X, example.y)
    oracle = problem.bind(example.X, example.y, schema, hidden=example.hidden)
    w = np.random.default_rng(0).standard_normal(oracle.n_params)
    _, hidden = oracle.decode(oracle.impute(w).code)
    for i in range(table.n):
        assert_that(same(hidden[i], example.hidden[i]), f"{name}.impute must keep the given hidden value of sample {i}")


def _outputs(table: Enumeration, chosen: list[int]) -> tuple[list[Any], Any]:
    pairs = [table.outputs[i][number] for i, number in enumerate(chosen)]
    hidden = [h for _, h in pairs]
    return [label for label, _ in pairs], (None if hidden[0] is None else hidden)


def _compare_slopes(what: str, rise: float, slope: float, atol: float) -> None:
    is_right = np.isclose(rise, slope, rtol=1e-3, atol=atol)
    assert_that(is_right, f"{what} rise by {rise}, but by features they rise by {slope}")


def _compare(what: str, expected: Any, found: Any) -> None:
    expected, found = np.asarray(expected, dtype=float), np.asarray(found, dtype=float)
    assert_that(
        expected.shape == found.shape, f"{what}: the shape is {found.shape}, enumeration gives {expected.shape}"
    )
    wrong = np.flatnonzero(~np.isclose(expected, found, rtol=1e-5, atol=1e-5))
    if wrong.size:
        i = int(wrong[0])
        raise AssertionError(f"{what}: entry {i} is {found.ravel()[i]}, enumeration gives {expected.ravel()[i]}")
