"""Graphs with cycles against enumeration and linear programs; weak labels; learners with bounds."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import tacit
from tacit.oracle.task import Task
from tacit.penalties import Quadratic
from tacit.problems import Graph
from tacit.problems.graph import inference
from tacit.problems.graph.inference import Pairs, Shape, best_labels, score_labels

KINDS = ("potts", "attractive", "tables")


def random_graph(rng, kind, n=None, k=None, density=0.7):
    """A graph, its scores of nodes and pairs, and the scores of pairs written out."""
    n, k = n or int(rng.integers(2, 7)), k or int(rng.integers(2, 4))
    pairs = [p if rng.random() < 0.5 else p[::-1] for p in itertools.combinations(range(n), 2)]
    edges = np.array([p for p in pairs if rng.random() < density], dtype=np.int64).reshape(-1, 2)
    unary = rng.standard_normal((n, k))
    unary[rng.random(unary.shape) < 0.1] = -np.inf
    unary[np.isinf(unary).all(axis=1), 0] = 0.0
    shape = Shape.of(np.array([0, n]), np.array([0, len(edges)]), edges)
    if kind == "tables":
        tables = rng.standard_normal((len(edges), k, k))
        return (
            shape,
            unary,
            Pairs(np.zeros(0), np.append(tables, np.zeros((1, k, k)), 0), np.arange(len(edges))),
            tables,
        )
    agreement = rng.standard_normal(len(edges))
    if kind == "attractive":
        agreement = np.abs(agreement)
    return shape, unary, Pairs.potts(agreement, k), agreement[:, None, None] * np.eye(k)


def enumerate_best(shape, unary, tables):
    n, k = unary.shape
    best = -np.inf
    for labels in itertools.product(range(k), repeat=n):
        pair = sum(tables[e][labels[a], labels[b]] for e, (a, b) in enumerate(shape.edges))
        best = max(best, unary[np.arange(n), labels].sum() + pair)
    return best


def relax(shape, unary, tables):
    """The optimum of the linear program over locally consistent marginals, by HiGHS."""
    (n, k), edges = unary.shape, shape.edges
    gain = np.concatenate([np.where(np.isinf(unary), -1e3, unary).ravel(), np.ravel(tables)])
    A = sparse.lil_matrix((n + 2 * len(edges) * k, gain.size))
    right = np.zeros(A.shape[0])
    right[:n] = 1
    for v in range(n):
        A[v, v * k : (v + 1) * k] = 1
    row = n
    for e, (a, b) in enumerate(edges):
        at = n * k + e * k * k
        for x in range(k):
            A[row, at + x * k : at + (x + 1) * k] = 1
            A[row, a * k + x] = -1
            A[row + 1, at + x : at + k * k : k] = 1
            A[row + 1, b * k + x] = -1
            row += 2
    return -linprog(-gain, A_eq=A.tocsr(), b_eq=right, bounds=(0, None), method="highs").fun


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_and_labels_attain_their_score(kind):
    rng = np.random.default_rng(0)
    n_best = 0
    for _ in range(60):
        shape, unary, pairs, tables = random_graph(rng, kind)
        best = enumerate_best(shape, unary, tables)
        found = best_labels(shape, unary.copy(), pairs)
        score = score_labels(shape, unary, pairs, found.labels)[0]
        assert score <= best + 1e-9
        assert best <= found.bounds[0] + 1e-9
        if shape.is_forest[0] or (kind == "attractive" and unary.shape[1] == 2):
            assert score == pytest.approx(best)
            assert found.bounds[0] == pytest.approx(best)
        n_best += score > best - 1e-9
        assert found.bounds[0] == pytest.approx(best)  # tiny graphs are searched completely
    assert n_best == 60


@pytest.mark.parametrize("kind", KINDS)
def test_bound_of_messages_is_that_of_the_linear_program(kind, monkeypatch):
    monkeypatch.setattr(inference, "search_labels", lambda *_: None)
    rng = np.random.default_rng(1)
    for _ in range(25):
        shape, unary, pairs, tables = random_graph(rng, kind)
        bound, relaxed = best_labels(shape, unary.copy(), pairs).bounds[0], relax(shape, unary, tables)
        best = enumerate_best(shape, unary, tables)  # labels that cannot be better are left out: below the program
        assert best - 1e-9 <= bound <= relaxed + 0.02 * abs(relaxed)
        if bound < relaxed - 1e-7:
            assert bound == pytest.approx(best)


def test_grid_of_two_attracting_labels_is_cut_exactly():
    rng = np.random.default_rng(2)
    X = tacit.Graphs.grids([rng.standard_normal((6, 7, 1))])
    shape = Shape.of(X.offsets, X.edge_offsets, X.edges)
    unary = np.hstack([np.zeros((42, 1)), X.nodes.values])
    pairs = Pairs.potts(np.full(len(X.edges), 0.4), 2)
    found = best_labels(shape, unary.copy(), pairs)
    assert found.sweeps[0] == 0
    assert found.bounds[0] == pytest.approx(relax(shape, unary, 0.4 * np.eye(2)[None].repeat(len(X.edges), 0)))


def planted(n=12, side=4, k=3, seed=0, noise=1.0):
    """Grids of blocks of equal labels, whose nodes show them with noise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=(n, side // 2, side // 2)).repeat(2, axis=1).repeat(2, axis=2)
    tables = np.eye(k)[truth] + noise * rng.standard_normal((n, side, side, k))
    return tacit.Graphs.grids(tables), [list(own.ravel()) for own in truth]


@pytest.mark.parametrize("pairs", ["potts", "symmetric", "directional"])
def test_certificate_holds_for_more_than_two_labels(pairs):
    X, y = planted()
    model = tacit.StructuredSVM(Graph(pairs), C=10, tol=1e-3).fit(X, y)
    assert model.bound_ <= model.objective_ < np.inf
    assert 0 <= model.inference_gap_ <= model.gap_ + 1e-12 < 0.05 * model.objective_
    oracle = model.problem.bind(X, y, model.schema_)
    task = Task(oracle, np.full(12, 10 / 12), oracle.encode(y), Quadratic())
    found = oracle.predict_augmented(model.coef_)
    attained = oracle.score(model.coef_, found.code) + oracle.loss(found.code)
    assert (found.value >= attained - 1e-9).all()
    assert task.objective(model.coef_) == pytest.approx(model.objective_, rel=1e-6)


def test_objective_is_above_that_of_enumeration():
    """Triangles of repelling labels, where the relaxation is loose: the certificate still brackets the optimum."""
    rng = np.random.default_rng(3)
    X = tacit.Graphs.from_list([(rng.standard_normal((3, 2)), [[0, 1], [1, 2], [2, 0]]) for _ in range(6)])
    y = [list(own) for own in rng.integers(2, size=(6, 3))]
    problem = Graph("symmetric", labels=[0, 1])
    model = tacit.StructuredSVM(problem, C=5, tol=1e-6).fit(X, y)
    oracle = problem.bind(X, y, model.schema_)
    codes = [np.array(labels) for labels in itertools.product((0, 1), repeat=3)]
    risk = 0.0
    for i in range(6):
        rows = slice(i, i + 1)
        values = [oracle.score(model.coef_, c, rows)[0] + oracle.loss(c, rows)[0] for c in codes]
        risk += 5 / 6 * (max(values) - oracle.score(model.coef_, np.array(y[i]), rows)[0])
    true = 0.5 * model.coef_ @ model.coef_ + risk
    assert model.bound_ - 1e-6 <= true <= model.objective_ + 1e-9
    assert model.objective_ - model.inference_gap_ <= true + 1e-9


def test_sets_and_labels_that_must_occur():
    X, y = planted(n=4, k=3)
    weak = [[{0, 1} if v in (0, 1) else -1 if v == 2 else own for v, own in enumerate(labels)] for labels in y]
    labels = tacit.GraphLabels(weak, present=[[2, 1]] * 4)
    problem = Graph("potts", labels=[0, 1, 2])
    oracle = problem.bind(X, labels, problem.schema(X, labels))
    rng = np.random.default_rng(0)
    for _ in range(10):
        w = rng.standard_normal(oracle.n_params)
        code = oracle.impute(w).code.reshape(4, -1)
        assert np.isin(code[:, :2], [0, 1]).all()
        assert all(set(own) >= {1, 2} or set(true[3:]) >= {1, 2} for own, true in zip(code, y, strict=True))
        assert (code[:, 3:] == np.array(y)[:, 3:]).all()
    assert (oracle.loss(oracle.impute(w).code) == 0).all()
    assert oracle.hidden_unknown().tolist() == [0, 1, 2, 3]


def test_imputation_with_random_sets_and_labels_that_must_occur():
    """Against enumeration: every set is respected, all labels occur, and what cannot be is refused."""
    rng, letters, losses, n_refused = np.random.default_rng(4), "abcd", [], 0
    for trial in range(150):
        n = int(rng.integers(2, 6))
        edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.6]
        X = tacit.Graphs([rng.standard_normal((n, 2))], edges)
        options = [sorted(set(rng.choice(list(letters), size=int(rng.integers(1, 4))).tolist())) for _ in range(n)]
        present = sorted(set(rng.choice(list(letters), size=int(rng.integers(0, 4))).tolist()))
        able = [own for own in itertools.product(*options) if set(present) <= set(own)]
        labels = tacit.GraphLabels([[own[0] if len(own) == 1 else set(own) for own in options]], present=[present])
        problem = Graph(("potts", "symmetric", "directional")[trial % 3], labels=list(letters))
        schema = problem.schema(X, labels)
        if not able:
            n_refused += 1
            with pytest.raises(ValueError, match="must occur"):
                problem.bind(X, labels, schema)
            continue
        oracle = problem.bind(X, labels, schema)
        w = rng.standard_normal(oracle.n_params)
        found = oracle.impute(w)
        assert tuple(oracle.decode(found.code)[0].values.tolist()) in able
        best = max(oracle.score(w, oracle.encode([list(own)]))[0] for own in able)
        losses.append(best - found.value[0])
        assert losses[-1] >= -1e-9
        assert present or losses[-1] < 1e-9
    assert n_refused > 5
    assert np.mean(np.array(losses) < 1e-9) > 0.9


def test_hidden_nodes_are_imputed_from_their_states():
    X, y = planted(n=6, k=2)
    parts = []
    for x in X:  # one hidden node per grid, connected to all
        n = len(x.values)
        edges = np.vstack([x.edges, np.column_stack([np.full(n, n), np.arange(n)])])
        values = np.eye(2)[[0] * len(x.edges) + [1] * n]
        parts.append((np.vstack([x.values, np.zeros((1, 2))]), edges, values, [0] * n + [1]))
    with_hidden = tacit.Graphs.from_list(parts)
    problem = Graph("directional", label_sets=[[0, 1], [7, 8]])
    model = tacit.LatentSVM(problem, C=10, random_state=0, max_iter=5).fit(with_hidden, [[*own, -1] for own in y])
    assert all(set(own[:-1]) <= {0, 1} and own[-1] in (7, 8) for own in model.predict(with_hidden))
    assert all((h[:-1] == own).all() and h[-1] in (7, 8) for h, own in zip(model.hidden_, y, strict=True))
    assert np.isfinite(model.inference_gap_)


def test_hidden_crf_on_trees_only():
    rng = np.random.default_rng(0)
    X = tacit.Graphs.from_list([(rng.standard_normal((4, 2)), [[0, 1], [0, 2], [3, 0]]) for _ in range(8)])
    y = [[int(v > 0) for v in x.values[:, 0]] for x in X]
    model = tacit.HiddenCRF(Graph("symmetric"), C=10).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.predict_proba(X)[0].sum(axis=1) == pytest.approx(np.ones(4))
    with pytest.raises(TypeError, match="expectations"):
        tacit.HiddenCRF(Graph("symmetric")).fit(*planted(n=3))


def test_same_bits_for_any_number_of_threads():
    X, y = planted(n=40, side=6)
    fits = [tacit.StructuredSVM(Graph("symmetric"), C=10, n_jobs=n, tol=1e-2).fit(X, y) for n in (1, 2)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.parametrize(
    ("edges", "keyword"), [([[0, 3]], "nodes are"), ([[1, 1]], "itself"), ([[0, 1], [1, 0]], "doubled")]
)
def test_edges_are_checked(edges, keyword):
    with pytest.raises(ValueError, match=keyword):
        tacit.Graphs([np.zeros((3, 1))], edges)


def test_errors_of_a_list_name_its_graph():
    own, wrong = (np.zeros((2, 1)), [[0, 1]]), [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="edge 1 of graph 2"):
        tacit.Graphs.from_list([own, own, (np.zeros((2, 1)), wrong)])
    with pytest.raises(ValueError, match="pair 1 of image 1"):
        tacit.RegionGraphs.from_list([(own[0], None, own[1], []), (own[0], None, wrong, [])])


def test_labels_are_checked():
    X = tacit.Graphs([np.zeros((2, 1))], [[0, 1]], types=[0, 1])
    with pytest.raises(ValueError, match="empty"):
        tacit.GraphLabels([[set(), 1]])
    with pytest.raises(ValueError, match="label_sets"):
        Graph().schema(X, [[0, 1]])
    problem = Graph(label_sets=[["a", "b"], ["c"]])
    for y, keyword in (([["c", "c"]], "not among"), ([[{"c"}, "c"]], "possible")):
        with pytest.raises(ValueError, match=keyword):
            problem.bind(X, y, problem.schema(X, [["a", "c"]]))
    with pytest.raises(ValueError, match="numbers or all text"):
        Graph().schema(tacit.Graphs([np.zeros((2, 1))]), [[{1, "a"}, 1]])
    with pytest.raises(ValueError, match="labels"):
        Graph().schema(tacit.Graphs([np.zeros((2, 1))]), [[-1, -1]])
    absent = tacit.GraphLabels([["a", "c"]], present=[["b"]])
    with pytest.raises(ValueError, match="must occur"):
        problem.bind(X, absent, problem.schema(X, absent))


def test_weights_have_the_lowest_proven_objective():
    """Frustrated triangles with many labels: the weights that are returned are the best that inference can certify."""
    rng = np.random.default_rng(5)
    triangle = [[0, 1], [1, 2], [2, 0]]
    X = tacit.Graphs.from_list([(rng.standard_normal((3, 2)), triangle) for _ in range(10)])
    y = [list(own) for own in rng.integers(3, size=(10, 3))]
    model = tacit.StructuredSVM(Graph("potts", labels=[0, 1, 2]), C=20, tol=1e-3).fit(X, y)
    oracle = model.problem.bind(X, y, model.schema_)
    task = Task(oracle, np.full(10, 2.0), oracle.encode(y), Quadratic())
    assert task.objective(model.coef_) == pytest.approx(model.objective_)
    assert model.objective_ <= min(step.objective for step in model.history_) + 1e-9


@pytest.mark.parametrize("kind", ["potts", "symmetric"])
def test_imputation_is_that_of_enumeration(kind):
    """Known labels, sets and types, in graphs with cycles."""
    rng = np.random.default_rng(6)
    for _ in range(10):
        shape, _, _, _ = random_graph(rng, "potts", n=5)
        X = tacit.Graphs([rng.standard_normal((5, 2))], shape.edges, types=[0, 0, 0, 1, 1])
        known = [{"a", "b"}, -1, "c", -1, {"x", "y"}]
        problem = Graph(kind, label_sets=[["a", "b", "c"], ["x", "y", "z"]])
        oracle = problem.bind(X, [known], problem.schema(X, [["a", "b", "c", "x", "y"]]))
        options = ["ab", "abc", "c", "xyz", "xy"]
        codes = [oracle.encode([list(own)]) for own in itertools.product(*options)]
        w = rng.standard_normal(oracle.n_params)
        best = max(oracle.score(w, code)[0] for code in codes)
        assert oracle.impute(w).value[0] == pytest.approx(best)
        rivals = itertools.product("abc", "abc", "abc", "xyz", "xyz")
        codes = [oracle.encode([list(own)]) for own in rivals]
        most = max(oracle.score(w, code)[0] + oracle.loss(code)[0] for code in codes)
        assert oracle.predict_augmented(w).value[0] == pytest.approx(most)
