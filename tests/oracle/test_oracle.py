"""Class-block oracles against plain NumPy, on random shapes; tables, views and blocks."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tacit import Ragged, testing
from tacit.oracle import CapabilityError, LossTable, Oracle, Task, require
from tacit.oracle.capabilities import LearnsOnline
from tacit.penalties import Quadratic
from tacit.problems import Candidates, Multiclass
from tacit.runtime import parallel


@st.composite
def instances(draw):
    """Bags of small whole numbers: ties, one-candidate bags, two to four classes, both precisions."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, k = draw(st.integers(2, 8)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    k = min(k, n)
    sizes = np.array(draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    values = rng.integers(-2, 3, (sizes.sum(), d)).astype(dtype)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n)])[:n]
    costs = rng.integers(0, 4, (k, k)).astype(float)
    np.fill_diagonal(costs, 0)
    w = rng.integers(-2, 3, k * (d + 1)).astype(float)
    bags = Ragged(values, np.concatenate([[0], np.cumsum(sizes)]))
    hidden = rng.integers(sizes)
    return bags, y, hidden, costs, w, draw(st.integers(1, 6))


def table(bags, w, k):
    """Scores by the definition: w_y·x + b_y, one (K, candidates) table per bag."""
    d = bags.values.shape[1]
    weights, intercept = w[: k * d].reshape(k, d), w[k * d :]
    return [weights @ np.asarray(bag, dtype=float).T + intercept[:, None] for bag in bags]


@settings(max_examples=150, deadline=None)
@given(instances())
def test_oracles_equal_the_definition(instance):
    bags, y, hidden, costs, w, block = instance
    k, n = len(costs), len(bags)
    problem = Candidates(loss=costs)
    schema = problem.schema(bags, y)
    oracle = problem.bind(bags, y, schema)
    oracle.block_states = block  # blocks of one to six states, whatever the cache holds
    oracle._whole = list(oracle._cut(slice(0, n)))
    scores = table(bags, w, k)
    target = oracle.encode(y, hidden)
    np.testing.assert_array_equal(oracle.predict(w).value, [s.max() for s in scores])
    np.testing.assert_array_equal(oracle.impute(w).value, [s[t].max() for s, t in zip(scores, y, strict=True)])
    np.testing.assert_array_equal(oracle.label_scores(w), [s.max(axis=1) for s in scores])
    margin = [s + costs[t][:, None] for s, t in zip(scores, y, strict=True)]
    slack = [costs[t][:, None] * (1 + s - s[t, h]) for s, t, h in zip(scores, y, hidden, strict=True)]
    np.testing.assert_array_equal(oracle.predict_augmented(w).value, [v.max() for v in margin])
    np.testing.assert_array_equal(
        oracle.predict_augmented(w, target=target, rescaling="slack").value, [v.max() for v in slack]
    )
    # ties go to the first label, then to the first candidate
    label, state = oracle.decode(oracle.predict_augmented(w).code)
    for i in range(n):
        assert (label[i], state[i]) == np.unravel_index(np.argmax(margin[i]), margin[i].shape)


@settings(max_examples=60, deadline=None)
@given(instances())
def test_losses_on_the_hidden_value_equal_the_definition(instance):
    bags, y, hidden, costs, w, _ = instance
    k = len(costs)
    problem = Candidates()
    oracle = problem.bind(bags, y, problem.schema(bags, y))
    losses = np.abs(np.random.default_rng(0).integers(0, 3, (k, len(bags.values)))).astype(float)
    oracle = oracle.with_loss(LossTable(losses, None))
    per_bag = [losses[:, a:b] for a, b in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)]
    scores = table(bags, w, k)
    target = oracle.encode(y, hidden)
    anchors = [s[t, h] for s, t, h in zip(scores, y, hidden, strict=True)]
    rows = np.array([0, len(bags) - 1])
    for chosen in (None, slice(1, len(bags)), rows):
        pick = np.arange(len(bags)) if chosen is None else np.arange(len(bags))[chosen]
        found = oracle.predict_augmented(w, chosen)
        np.testing.assert_array_equal(found.value, [(scores[i] + per_bag[i]).max() for i in pick])
        label, state = oracle.decode(found.code, chosen)
        np.testing.assert_array_equal(
            oracle.loss(found.code, chosen), [per_bag[i][a, h] for i, a, h in zip(pick, label, state, strict=True)]
        )
        found = oracle.predict_augmented(w, chosen, target=target[pick], rescaling="slack")
        expected = [(per_bag[i] * (1 + scores[i] - anchors[i])).max() for i in pick]
        np.testing.assert_array_equal(found.value, expected)


@settings(max_examples=60, deadline=None)
@given(instances(), st.sampled_from(["margin", "slack"]))
def test_planes_touch_the_risk_and_stay_below_it(instance, rescaling):
    bags, y, hidden, costs, w, _ = instance
    problem = Candidates(loss=costs)
    oracle = problem.bind(bags, y, problem.schema(bags, y))
    rng = np.random.default_rng(0)
    task = Task(oracle, rng.random(len(bags)), oracle.encode(y, hidden), Quadratic(), rescaling=rescaling)
    slack, best = task.slack(w)
    plane = task.plane(best.code)
    assert plane.value(w) == pytest.approx(task.weights @ slack, abs=1e-9)
    other = rng.integers(-2, 3, w.size).astype(float)
    assert plane.value(other) <= task.weights @ task.slack(other)[0] + 1e-9
    # a kept plane stays valid for other weights and targets
    moved = Task(oracle, rng.random(len(bags)), oracle.impute(w).code, Quadratic(), rescaling=rescaling)
    assert moved.plane(best.code).value(other) <= moved.weights @ moved.slack(other)[0] + 1e-9


def test_missing_cells_never_win_in_either_rescaling():
    class OneStateForTheFirstLabel(type(_bound())):
        def scores(self, w, rows=None):
            scores = super().scores(w, rows)
            scores[0, 1] = -np.inf
            return scores

    oracle = _bound()
    oracle.__class__ = OneStateForTheFirstLabel
    w = np.array([5.0, 1.0, 0.0, 0.0])
    target = np.zeros(2, dtype=int)
    for found in (
        oracle.predict(w),
        oracle.predict_augmented(w),
        oracle.predict_augmented(w, target=target, rescaling="slack"),
        oracle.predict_augmented(w, rivals=True),
    ):
        assert np.isfinite(found.value).all()
        assert found.code[0] != 2  # label 0 at state 1


def _bound():
    problem = Candidates()
    bags = Ragged.from_list([[[1.0], [9.0]], [[2.0]]])
    return problem.bind(bags, [0, 1], problem.schema(bags, [0, 1]))


def test_sparse_tables_equal_dense_ones(bags):
    X, y, _hidden = bags
    w = np.random.default_rng(0).standard_normal(15)
    dense_problem = Candidates()
    schema = dense_problem.schema(X, y)
    dense = dense_problem.bind(X, y, schema)
    thin = dense_problem.bind(Ragged(sparse.csr_matrix(X.values), X.offsets), y, schema)
    for rows in (None, slice(3, 20), np.array([1, 5, 6])):
        a, b = dense.predict_augmented(w, rows), thin.predict_augmented(w, rows)
        np.testing.assert_array_equal(a.code, b.code)
        np.testing.assert_allclose(a.value, b.value)
        coef = np.arange(len(a.code), dtype=float)
        np.testing.assert_allclose(dense.features(a.code, coef, rows), thin.features(a.code, coef, rows), atol=1e-12)
        V = np.random.default_rng(1).standard_normal(dense.scores(w, rows).shape)
        np.testing.assert_allclose(dense.adjoint(V, rows), thin.adjoint(V, rows), atol=1e-12)


def test_given_hidden_values_are_kept(bags):
    X, y, hidden = bags
    some = np.where(np.arange(len(y)) % 2, hidden, -1)
    problem = Candidates()
    oracle = problem.bind(X, y, problem.schema(X, y), hidden=some)
    w = np.random.default_rng(3).standard_normal(oracle.n_params)
    _, found = oracle.decode(oracle.impute(w).code)
    np.testing.assert_array_equal(found[some >= 0], some[some >= 0])
    free = oracle.with_hidden(None)
    assert (oracle.impute(w).value <= free.impute(w).value).all()


def test_memory_mapped_rows_give_the_same_scores(bags, tmp_path):
    X, y, _ = bags
    np.save(tmp_path / "rows.npy", X.values)
    mapped = Ragged(np.load(tmp_path / "rows.npy", mmap_mode="r"), X.offsets)
    assert isinstance(mapped.values, np.memmap)
    assert isinstance(mapped[3:9].values, np.memmap)
    problem = Candidates()
    schema = problem.schema(X, y)
    oracle = problem.bind(mapped, y, schema)
    w = np.random.default_rng(0).standard_normal(schema.n_params)
    np.testing.assert_allclose(oracle.predict_augmented(w).value, problem.bind(X, y, schema).predict_augmented(w).value)
    assert np.shares_memory(oracle._columns, mapped.values)


def test_negative_and_infinite_losses_are_refused():
    oracle = _bound()
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="losses"):
            oracle.with_loss(LossTable(np.full((2, 3), bad), None))


def test_shards_are_oracles_too():
    oracle = _bound()
    with parallel(oracle, 2) as shards:
        assert shards is not oracle
        assert copy.copy(shards).oracle is oracle
        assert shards.exact() is shards
        view = shards.with_hidden(np.array([1, 0]))
        assert type(view) is type(shards)
        assert (view.impute(np.ones(4)).code == oracle.with_hidden(np.array([1, 0])).impute(np.ones(4)).code).all()
        with pytest.raises(ValueError, match="step 1"):
            shards.predict(np.ones(4), slice(0, 2, 2))


def test_a_digest_sees_every_number(bags):
    X, y, hidden = bags
    problem = Candidates()
    schema = problem.schema(X, y)
    digest = problem.bind(X, y, schema, hidden=hidden).digest()
    assert digest == problem.bind(X, y, schema, hidden=hidden).digest()
    for i in range(0, len(X.values), 17):
        values = X.values.copy()
        values[i, 2] += 1e-12
        assert problem.bind(Ragged(values, X.offsets), y, schema, hidden=hidden).digest() != digest
    assert problem.bind(X, y, schema).digest() != digest
    assert problem.bind(X, y[::-1], schema, hidden=hidden).digest() != digest
    thin = Ragged(sparse.csr_matrix(X.values), X.offsets)
    assert problem.bind(thin, y, schema, hidden=hidden).digest() != digest


def test_codes_of_other_data_are_recognised():
    oracle = _bound()
    assert oracle.accepts(np.array([3, 1], dtype=np.int8))
    assert oracle.accepts(np.array([-1, -1], dtype=np.int8))
    assert not oracle.accepts(np.array([3, 2], dtype=np.int8))  # the second bag has one candidate
    assert not oracle.accepts(np.array([3], dtype=np.int8))
    with pytest.raises(ValueError, match="TARGET"):
        oracle.features(np.array([0, -1]), np.ones(2))


def test_a_missing_capability_names_learner_problem_and_method():
    oracle = _bound()
    with pytest.raises(CapabilityError, match="`learn_online`"):
        require("OnlineSVM", Candidates(), oracle, [Oracle.predict_augmented, LearnsOnline])


def test_unlabelled_samples_cannot_be_imputed_or_compared():
    problem = Multiclass()
    X = np.eye(3)
    oracle = problem.bind(X, None, problem.schema(X, [0, 1, 2]))
    w = np.zeros(oracle.n_params)
    for call in (lambda: oracle.impute(w), lambda: oracle.predict_augmented(w), lambda: oracle.loss(np.zeros(3, int))):
        with pytest.raises(ValueError, match="labels"):
            call()


def test_differences_refuse_codes_that_stand_for_no_output() -> None:
    oracle = testing.example_task(Candidates(), seed=0).oracle
    target, ones = oracle.impute(np.zeros(oracle.n_params)).code, np.ones(oracle.n_samples)
    rival = oracle.predict_augmented(np.ones(oracle.n_params)).code
    expected = oracle.features(rival, ones) - oracle.features(target, ones)
    np.testing.assert_allclose(oracle.difference(rival, target, ones), expected, atol=1e-12)
    for wrong in (np.full_like(target, -5), np.full(target.size, 10**6)):
        with pytest.raises(ValueError, match="outputs"):
            oracle.difference(wrong, target, ones)
        assert not oracle.difference(wrong, target, 0 * ones).any()
    with pytest.raises(ValueError, match="one integer"):
        oracle.difference(rival[:-1], target, ones)
