"""Cuts against brute force and SciPy, weak labels as constraints, and what is refused."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow

from tacit import IterativeLatentSVM, LatentSVM, RegionGraphs, RegionLabels, SelfPaced, StructuredSVM, load, weak_labels
from tacit.penalties import Quadratic
from tacit.problems import Regions
from tacit.problems.graph.inference import Shape, ends
from tacit.testing import check_problem
from tacit.vision.regions.cuts import best_labels, best_within_limits, violations


def random_graph(rng, n, k, whole=True):
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.5]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    scores = rng.integers(-3, 4, (n, k)).astype(float) if whole else rng.normal(size=(n, k))
    costs = rng.integers(0, 3, len(edges)).astype(float) if whole else rng.exponential(size=len(edges))
    return Shape.of(np.array([0, n]), np.array([0, len(edges)]), edges), scores, costs


def value(graphs, scores, costs, labels):
    a, b = ends(graphs)
    return scores[np.arange(len(scores)), labels].sum() - (costs * (labels[a] != labels[b])).sum()


def all_values(graphs, scores, costs):
    labellings = itertools.product(range(scores.shape[1]), repeat=len(scores))
    return {labels: value(graphs, scores, costs, np.array(labels)) for labels in labellings}


def images(seed=0, n=12):
    """Small pictures of two labels: the features say which, with noise; neighbours in a row."""
    rng = np.random.default_rng(seed)
    graphs, truth = [], []
    for _ in range(n):
        size = int(rng.integers(4, 9))
        labels = (np.arange(size) >= rng.integers(1, size)).astype(int)
        values = np.column_stack([labels + 0.4 * rng.normal(size=size), rng.normal(size=size)])
        edges = np.column_stack([np.arange(size - 1), np.arange(1, size)])
        graphs.append((values, rng.integers(1, 5, size), edges, rng.random((size - 1, 2))))
        truth.append(labels)
    return RegionGraphs.from_list(graphs), truth


def weakly(truth, X, known=4):
    """The first images complete, of the others only the share, within a tenth."""
    shares = [X.shares[X.offsets[i] : X.offsets[i + 1]] @ own for i, own in enumerate(truth)]
    limits = [[np.nan] * 2 if i < known else [max(s - 0.1, 0), min(s + 0.1, 1)] for i, s in enumerate(shares)]
    return RegionLabels([own if i < known else np.full(len(own), -1) for i, own in enumerate(truth)], {1: limits})


# cuts


@pytest.mark.parametrize("seed", range(40))
def test_a_cut_is_the_best_of_all_labellings(seed):
    rng = np.random.default_rng(seed)
    graphs, scores, costs = random_graph(rng, int(rng.integers(1, 11)), 2, whole=seed % 2 == 0)
    best = max(all_values(graphs, scores, costs).values())
    assert value(graphs, scores, costs, best_labels(graphs, scores, costs)) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_a_cut_has_the_capacity_of_scipys_flow(seed):
    rng = np.random.default_rng(seed)
    n = 150
    edges = np.array([pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.03])
    costs, gains = rng.integers(0, 50, len(edges)), rng.integers(-60, 61, n)
    capacity = sparse.lil_matrix((n + 2, n + 2), dtype=np.int32)
    for (a, b), cost in zip(edges, costs, strict=True):
        capacity[a, b] = capacity[b, a] = cost
    for r, gain in enumerate(gains):
        capacity[(n, r) if gain > 0 else (r, n + 1)] = abs(gain)
    flow = maximum_flow(capacity.tocsr(), n, n + 1).flow_value
    graphs = Shape.of(np.array([0, n]), np.array([0, len(edges)]), edges)
    scores = np.column_stack([np.zeros(n), gains]).astype(float)
    labels = best_labels(graphs, scores, costs.astype(float))
    assert value(graphs, scores, costs, labels) == gains[gains > 0].sum() - flow


def test_ties_go_to_the_first_label():
    graphs = Shape.of(np.array([0, 2]), np.array([0, 1]), np.array([[0, 1]]))
    assert best_labels(graphs, np.zeros((2, 2)), np.ones(1)).tolist() == [0, 0]


def test_more_than_two_labels_have_a_certificate():
    X, truth = images()
    y = [np.where(np.arange(len(own)) == 0, 2, own) for own in truth]
    model = StructuredSVM(Regions(), C=10, tol=1e-2).fit(X, y)
    assert model.gap_ - model.inference_gap_ <= 1.01e-2 * model.objective_
    assert model.inference_gap_ <= 0.01 * model.objective_
    two = StructuredSVM(Regions(), C=10, tol=1e-2).fit(X, truth)
    assert two.gap_ <= 1.01e-2 * two.objective_
    assert two.inference_gap_ == 0


def test_three_labels_have_the_same_bits_on_two_threads():
    X, truth = images(n=60)
    y = [np.where(np.arange(len(own)) == 0, 2, own) for own in truth]
    fits = [StructuredSVM(Regions(), C=10, tol=1e-2, n_jobs=n).fit(X, y) for n in (1, 2)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].inference_gap_ == fits[1].inference_gap_


@pytest.mark.parametrize("pairwise", [True, False])
def test_bounds_of_three_labels_are_above_enumeration(pairwise):
    rng = np.random.default_rng(8)
    graphs = []
    for n in (3, 5, 6, 4):
        edges = np.array([pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.8])
        graphs.append((rng.standard_normal((n, 2)), rng.random(n), edges, rng.random((len(edges), 1))))
    X = RegionGraphs.from_list(graphs)
    y = [rng.integers(0, 3, len(values)) for values, *_ in graphs]
    problem = Regions(labels=(0, 1, 2), pairwise=pairwise)
    oracle = problem.bind(X, y, problem.schema(X, y))
    for _ in range(5):
        w = rng.standard_normal(oracle.n_params)
        oracle._views(w).get("pairwise", np.zeros(1))[:] = rng.random()
        for rows in (slice(0, 1), slice(1, 2), np.array([3])):
            found = oracle.predict_augmented(w, rows)
            codes = [np.array(own) for own in itertools.product(range(3), repeat=found.code.size)]
            best = max((oracle.score(w, code, rows) + oracle.loss(code, rows))[0] for code in codes)
            assert found.value[0] == pytest.approx(best)
            assert (oracle.score(w, found.code, rows) + oracle.loss(found.code, rows))[0] == pytest.approx(best)


# limits of shares


@pytest.mark.parametrize("seed", range(20))
def test_limits_are_met_where_they_can_be_and_cost_little(seed):
    rng = np.random.default_rng(seed)
    graphs, scores, costs = random_graph(rng, 8, 2, whole=False)
    shares, limits = np.full(8, 1 / 8), np.array([[[0.0, 1.0], [0.45, 0.7]]])
    labels = best_within_limits(graphs, scores, costs, shares, limits)
    assert not violations(shares, labels, graphs.starts, limits).any()
    allowed = [v for own, v in all_values(graphs, scores, costs).items() if 0.45 <= np.mean(own) <= 0.7]
    assert value(graphs, scores, costs, labels) <= max(allowed) + 1e-9
    assert value(graphs, scores, costs, labels) >= min(allowed) - 1e-9


@pytest.mark.parametrize("pace", [None, SelfPaced()], ids=["all", "paced"])
def test_the_objective_never_rises_under_limits(pace):
    X, truth = images(1)
    model = LatentSVM(Regions(), C=20, tol=1e-4, pace=pace).fit(X, weakly(truth, X))
    held = [line.objective for line in model.history_ if line.samples_in == len(X)]
    tail = held[len(held) // 2 :] if pace else held
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(tail))


def test_imputing_again_never_lowers_a_score():
    X, truth = images(2)
    problem, y = Regions(), weakly(truth, X)
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema)
    rng = np.random.default_rng(0)
    lower = Quadratic().in_blocks(schema, problem.lower_bounds(schema)).lower
    code = oracle.impute(np.zeros(oracle.n_params)).code
    for _ in range(10):
        w = np.maximum(rng.normal(size=oracle.n_params), lower)
        before = oracle.score(w, code)
        after = oracle.impute(w, prefer=code)
        assert (after.value >= before - 1e-9).all()
        code = after.code


def test_the_pace_never_drops_complete_images():
    X, truth = images(3)
    model = LatentSVM(Regions(), C=50, pace=SelfPaced(start=0.3), tol=1e-3).fit(X, weakly(truth, X))
    assert all(line.is_in[:4].all() for line in model.history_)


def test_weak_images_weigh_together_what_the_problem_says():
    X, truth = images()
    y = weakly(truth, X)
    for weak in (0.0, 1.0, 3.0):
        problem = Regions(weak=weak)
        factors = problem.bind(X, y, problem.schema(X, y)).sample_factors()
        assert factors[4:].sum() == pytest.approx(weak * factors[:4].sum())


# learning


def test_bounded_weights_stay_and_five_features_converge():
    X, truth = images(4, 20)
    wide = RegionGraphs(X.nodes, X.areas, X.edges, np.random.default_rng(0).random((len(X.edges), 5)), X.edge_offsets)
    model = StructuredSVM(Regions(), C=1000, tol=1e-4).fit(wide, truth)
    assert model.status_.name == "CONVERGED"
    assert (model.weights_["pairwise"] >= 0).all()


def test_rounds_begin_with_the_given_weights():
    X, truth = images(5)
    y = weakly(truth, X)
    start = StructuredSVM(Regions(), C=20).fit(X[:4], truth[:4])
    model = IterativeLatentSVM(Regions(), C=20, init=start.weights_, max_iter=1)
    with pytest.warns(match="converge"):
        model.fit(X, y)
    imputed = start.impute(X, y)
    first = model.history_[0].hidden
    agree = np.mean([np.mean(np.asarray(first[i]) == imputed[i]) for i in range(len(X))])
    assert agree > 0.8  # the first round keeps to what the start imputes


def test_a_model_with_given_weights_is_saved_and_loaded(tmp_path):
    X, truth = images(6)
    start = StructuredSVM(Regions(), C=20).fit(X[:4], truth[:4])
    model = IterativeLatentSVM(Regions(), C=20, init=start.weights_).fit(X, weakly(truth, X))
    model.save(tmp_path / "m.tacit")
    again = load(tmp_path / "m.tacit")
    assert np.array_equal(again.predict(X).values, model.predict(X).values)


def test_standardised_features_agree_with_enumeration():
    check_problem(Regions(labels=["ground", "horse"]), seeds=5)


def test_a_feature_far_from_all_others_cannot_outvote_them():
    X, truth = images(7)
    model = StructuredSVM(Regions(), C=100).fit(X, truth)
    scores = []
    for far in (10.0, 1e6):
        values = X.nodes.values.copy()
        values[0, 0] = far
        odd = X.with_values(values)
        oracle = model.problem.bind(odd, None, model.schema_)
        scores.append(oracle.score(model.coef_, np.ones(int(X.offsets[-1]), dtype=np.int64)))
    assert np.allclose(*scores)


def test_the_intercept_costs_no_more_than_the_features():
    """Many useless features, one label rare: the intercept alone decides, also where C is small."""
    rng = np.random.default_rng(0)
    X = RegionGraphs([rng.normal(size=(20, 100)) for _ in range(10)])
    y = [(np.arange(20) < 2).astype(int) for _ in range(10)]
    model = StructuredSVM(Regions(), C=0.3).fit(X, y)
    fresh = RegionGraphs([rng.normal(size=(20, 100)) for _ in range(10)])
    assert model.predict(fresh).values.mean() < 0.05


def test_features_of_scale_zero_are_left_out():
    X, truth = images(8)
    d = X.nodes.values.shape[1]
    model = StructuredSVM(Regions(scales=[1.0] + [0.0] * (d - 1)), C=100).fit(X, truth)
    assert (model.weights_["unary"][:, 1:] == 0).all()
    assert (model.weights_["unary"][:, 0] != 0).any()


@pytest.mark.parametrize(
    ("change", "keyword"),
    [
        ({"scales": [1.0]}, "scales"),
        ({"scales": [1.0, -1.0]}, r"scales\[1\] .*-1"),
        ({"scales": [1.0, np.nan]}, r"scales\[1\] .*nan"),
        ({"scales": "wide"}, "scales"),
        ({"scales": [1.0, 1.0], "standardise": False}, "standardise"),
    ],
)
def test_wrong_scales_are_refused(change, keyword):
    X, y = RegionGraphs([[[1.0, 0.0], [2.0, 1.0]]]), [[0, 1]]
    with pytest.raises(ValueError, match=keyword):
        StructuredSVM(Regions(**change)).fit(X, y)


# odd input


def test_single_regions_and_images_without_pairs_are_learned():
    X = RegionGraphs([[[1.0]], [[-1.0]], [[2.0], [-2.0]]])
    model = StructuredSVM(Regions(), C=100).fit(X, [[1], [0], [1, 0]])
    assert [own.tolist() for own in model.predict(X)] == [[1], [0], [1, 0]]


@pytest.mark.parametrize(
    ("labels", "limits"),
    [([[0, 0, -1]], [[0.9, 1.0]]), ([[1, 1, -1]], [[0.0, 0.1]])],
)
def test_limits_that_nothing_can_meet_are_refused(labels, limits):
    X = RegionGraphs([[[1.0], [2.0], [3.0]], [[1.0], [0.0]]])
    y = RegionLabels([*labels, [0, 1]], {1: [*limits, [np.nan, np.nan]]})
    with pytest.raises(ValueError, match="limits of image 0"):
        LatentSVM(Regions()).fit(X, y)


@pytest.mark.parametrize(
    ("change", "keyword"),
    [
        ({"edges": [[0, 5]]}, r"\[0, 5\]"),
        ({"edges": [[1, 1]]}, "itself"),
        ({"edges": [[0, 1]], "edge_values": [[-1.0]]}, "edge_values"),
        ({"areas": [1.0, 0.0]}, "area "),
        ({"maps": [np.zeros((2, 2), int)]}, r"maps\[0\]"),
    ],
)
def test_wrong_graphs_are_refused(change, keyword):
    with pytest.raises(ValueError, match=keyword):
        RegionGraphs([[[1.0], [2.0]]], **change)


def test_one_label_everywhere_is_refused():
    with pytest.raises(ValueError, match="one"):
        StructuredSVM(Regions()).fit(RegionGraphs([[[1.0], [2.0]]]), [[1, 1]])


def squares():
    """Two pictures of four regions, each a quarter."""
    quarter = np.kron([[0, 1], [2, 3]], np.ones((4, 4), int))
    return RegionGraphs([np.eye(4)] * 2, maps=[quarter] * 2)


def test_boxes_rule_out_what_is_outside():
    y = weak_labels(squares(), boxes=[[0, 0, 4, 4], [np.nan] * 4])
    assert y[0].tolist() == [-1, 0, 0, 0]
    assert y[1].tolist() == [-1, -1, -1, -1]
    low, high = y.limits[1][0]
    assert 0 < low < high <= 0.25


def test_strokes_image_labels_and_empty_masks_become_labels():
    strokes = np.full((8, 8), -1)
    strokes[0, 0], strokes[7, 7] = 1, 0
    y = weak_labels(squares(), masks=[strokes, np.zeros((8, 8), int)])
    assert [own.tolist() for own in y] == [[1, -1, -1, 0], [0, 0, 0, 0]]
    assert weak_labels(squares(), contains=[False, True])[0].tolist() == [0, 0, 0, 0]


def test_a_box_outside_of_the_image_is_refused():
    with pytest.raises(ValueError, match="image 0"):
        weak_labels(squares(), boxes=[[20, 20, 30, 30], [np.nan] * 4])


def test_labels_in_a_sparse_matrix_are_refused():
    with pytest.raises((TypeError, ValueError), match="label"):
        RegionLabels(sparse.csr_array(np.eye(2)))
