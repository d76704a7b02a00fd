"""Windows on feature maps: shared and own terms, drawn boxes, hidden types of an object."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from tacit import HiddenCRF, IterativeLatentSVM, LatentSVM, StructuredSVM
from tacit.oracle import Schema
from tacit.problems import Candidates, Detection
from tacit.vision.boxes import overlap
from tacit.vision.detection import nearest_windows
from tacit.vision.maps.window_maps import WindowMaps
from tacit.vision.window_types import mean_type_images, start_types


def planted(n=60, kinds=2, seed=0, noise=0.3):
    """Maps of noise with an object of one of several types; types differ in their features and in their shape."""
    rng = np.random.default_rng(seed)
    maps = noise * rng.standard_normal((n, 8, 8, 4))
    types = np.arange(n) % kinds
    boxes = []
    for i, kind in enumerate(types):
        width, height = ((4, 2), (2, 4), (3, 3))[kind]
        left, top = rng.integers(0, 9 - width), rng.integers(0, 9 - height)
        maps[i, top : top + height, left : left + width, kind] += 1
        maps[i, rng.integers(8), :, 3] += 1  # clutter
        boxes.append([10 * left, 10 * top, 10 * (left + width), 10 * (top + height)])
    sizes = [(10 * w, 10 * h) for w, h in ((4, 2), (2, 4), (3, 3))]
    X = WindowMaps.of_maps(maps, [(80, 80)] * n, 10, pixels=sizes, step=0.25)
    return X, types, np.array(boxes, float)


def found_boxes(X, windows):
    return X.windows[X.window_offsets[:-1] + windows]


def test_scores_by_maps_equal_scores_of_pooled_rows():
    X, y, _ = planted(12)
    problem = Detection()
    schema = problem.schema(X, y)
    w = np.random.default_rng(0).standard_normal(schema.n_params)
    rows = X.pool_windows()
    plain = Candidates()
    theirs = plain.schema(rows, y)
    oracle, other = problem.bind(X, y, schema), plain.bind(rows, y, theirs)
    assert schema.n_params == theirs.n_params
    np.testing.assert_allclose(oracle.scores(w), other.scores(w), atol=1e-9)
    np.testing.assert_allclose(oracle.predict(w).value, other.predict(w).value, atol=1e-9)


def test_drawn_boxes_teach_a_detector_that_all_classes_share():
    X, _, boxes = planted()
    half = np.arange(30), np.arange(30, 60)
    problem = Detection(loss="overlap", classes=["thing"], fit_intercept=False)
    model = StructuredSVM(problem, C=100)
    model.fit(X[half[0]], ["thing"] * 30, hidden=nearest_windows(X[half[0]], boxes[half[0]]))
    found = found_boxes(X[half[1]], model.predict_hidden(X[half[1]]))
    assert overlap(found, boxes[half[1]]).mean() > 0.8


@pytest.mark.parametrize("learner", [LatentSVM, IterativeLatentSVM])
def test_learners_of_hidden_values_place_windows_by_labels(learner):
    X, y, boxes = planted(40)
    model = learner(Detection(image_term=True, n_components=3), C=10, n_init=2, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert overlap(found_boxes(X, model.hidden_), boxes).mean() > 0.3


def test_types_given_in_training_are_found_in_use():
    X, types, boxes = planted()
    windows = nearest_windows(X, boxes)
    problem = Detection(types=2, loss="overlap", classes=[0])
    model = StructuredSVM(problem, C=100).fit(X[:40], np.zeros(40, int), hidden=np.column_stack([windows, types])[:40])
    found = model.predict_hidden(X[40:])
    assert adjusted_rand_score(types[40:], found[:, 1]) > 0.9
    assert overlap(found_boxes(X[40:], found[:, 0]), boxes[40:]).mean() > 0.8


@pytest.mark.parametrize("how", ["clusters", "aspect"])
def test_hidden_types_are_recovered_from_drawn_boxes(how):
    X, types, boxes = planted(60, kinds=3)
    windows, one = nearest_windows(X, boxes), np.zeros(60, int)
    start = start_types(X, boxes, 3, how)
    problem = Detection(types=3, loss="overlap", classes=[0], shared=True)
    model = LatentSVM(problem, C=100, init=np.column_stack([windows, start])).fit(X, one, hidden=windows)
    assert (model.hidden_[:, 0] == windows).all()
    assert adjusted_rand_score(types, model.hidden_[:, 1]) > (0.9 if how == "clusters" else 0.5)
    single = StructuredSVM(clone(problem).set_params(types=1), C=100).fit(X, one, hidden=windows)
    new, _, truth = planted(60, kinds=3, seed=1)
    by_types = overlap(found_boxes(new, model.predict_hidden(new)[:, 0]), truth).mean()
    assert by_types > overlap(found_boxes(new, single.predict_hidden(new)), truth).mean() - 0.02


def test_a_hidden_crf_sums_over_types():
    X, types, _ = planted(30)
    y = types.astype(str)
    model = HiddenCRF(Detection(types=2), random_state=0, max_iter=30)
    model.fit(X, y)
    assert model.score(X, y) > 0.6
    assert model.predict_hidden(X).shape == (30, 2)


def test_known_windows_with_unknown_types_stay():
    X, types, boxes = planted(10)
    problem = Detection(types=2)
    schema = problem.schema(X, types)
    windows = nearest_windows(X, boxes)
    w = np.random.default_rng(0).standard_normal(schema.n_params)
    for hidden in (windows, np.column_stack([windows, np.full(10, -1)])):
        oracle = problem.bind(X, types, schema, hidden=hidden)
        found = oracle.decode(oracle.impute(w).code)[1]
        assert (found[:, 0] == windows).all()
        assert len(oracle.hidden_unknown()) == 10
    kinds = problem.bind(X, types, schema, hidden=np.column_stack([np.full(10, -1), types]))
    assert (kinds.decode(kinds.impute(w).code)[1][:, 1] == types).all()


def test_the_loss_is_measured_against_the_drawn_window_whatever_the_type():
    X, types, boxes = planted(6)
    problem = Detection(types=2, loss="overlap", classes=[0])
    y, windows = np.zeros(6, int), nearest_windows(X, boxes)
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema, hidden=windows)
    assert not oracle.loss_needs_hidden
    code = oracle.encode(y, np.column_stack([np.zeros(6, int), types]))
    expected = 1 - overlap(found_boxes(X, np.zeros(6, int)), found_boxes(X, windows))
    np.testing.assert_allclose(oracle.loss(code), expected)
    assert problem.bind(X, y, schema).loss_needs_hidden


def test_what_does_not_fit_is_refused():
    X, y, _ = planted(6)
    with pytest.raises(TypeError, match="window_maps"):
        LatentSVM(Detection()).fit(np.zeros((6, 3)), y)
    with pytest.raises(ValueError, match="n_components=9"):
        LatentSVM(Detection(n_components=9)).fit(X, y)
    with pytest.raises(ValueError, match=r"hidden\[0\]"):
        LatentSVM(Detection(types=2)).fit(X, y, hidden=np.full((6, 2), 9999))
    with pytest.raises(ValueError, match="contrast"):
        LatentSVM(Detection(contrast="edge")).fit(X, y)
    model = StructuredSVM(Detection()).fit(X, y, hidden=np.zeros(6, int))
    with pytest.raises(ValueError, match="4 features"):
        model.predict(X.with_values(X.values[:, :2].copy()))
    schema = model.schema_
    wrong = Schema(schema.classes, schema.n_features, {"window": (2, 1, 1, 9)})
    with pytest.raises(ValueError, match="window"):
        Detection().bind(X, y, wrong)


def test_types_are_shown_as_mean_images():
    images = np.zeros((3, 8, 8, 3), np.uint8)
    images[1:] = 100
    means = mean_type_images(images, [[0, 0, 8, 8]] * 3, [0, 1, 1], 2, side=4)
    assert means[:, 0, 0, 0].tolist() == [0, 100]
    one_by_one = mean_type_images((image for image in images), [[0, 0, 8, 8]] * 3, [0, 1, 1], 2, side=4)
    np.testing.assert_array_equal(one_by_one, means)


def test_losses_of_outputs_and_of_pairs_equal_those_of_boxes():
    from tacit.vision.window_types import WindowLoss

    X, types, _ = planted(3)
    rng = np.random.default_rng(0)
    loss = WindowLoss(X.windows, X.window_offsets, 2)
    offsets = 2 * X.window_offsets
    posterior = rng.random(offsets[-1])
    posterior /= np.repeat(np.add.reduceat(posterior, offsets[:-1]), np.diff(offsets))
    said = (np.array([0, 1, 1]), rng.integers(0, 20, 3))
    found = loss.of_outputs(2, offsets, types[:3], said)
    both = loss.diversity_slope(2, offsets, types[:3], posterior)
    for i in range(3):
        own = slice(offsets[i], offsets[i + 1])
        boxes = np.repeat(X.windows[X.window_offsets[i] : X.window_offsets[i + 1]], 2, axis=0)
        pairs = 1 - overlap(boxes[:, None], boxes[None])
        expected = pairs[:, said[1][i]] if said[0][i] == types[i] else np.ones(len(boxes))
        np.testing.assert_allclose(found[own], expected, atol=1e-12)
        np.testing.assert_allclose(both[own], 2 * pairs @ posterior[own], atol=1e-9)
