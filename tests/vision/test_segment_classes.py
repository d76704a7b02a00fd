"""Segmentation into classes: weak labels of every kind, what a Segmenter learns from them, and what is refused."""

import itertools

import numpy as np
import pytest

from tacit import LatentSVM, RegionGraphs, RegionLabels, StructuredSVM, load, weak_labels
from tacit.apps import Segmenter
from tacit.problems import Regions
from tacit.problems.graph.inference import Shape
from tacit.vision.regions.class_labels import leave_out_void, mark_classes, read_class_names
from tacit.vision.regions.cuts import best_labels, label_values
from tacit.vision.segmentation.class_segmenter import count_confusions, score_classes

NAMES = ["ground", "red", "blue"]
COLOURS = np.array([[0.2, 0.25, 0.2], [0.8, 0.2, 0.1], [0.1, 0.2, 0.8]])


def scene(seed):
    """An image of a red and a blue rectangle on grey ground, and its classes."""
    rng = np.random.default_rng(seed)
    mask = np.zeros((36, 48), dtype=np.int64)
    x, y = rng.integers(2, 8), rng.integers(3, 10)
    mask[y : y + 18, x : x + 14] = 1
    mask[y + 2 : y + 20, x + 20 : x + 34] = 2
    return np.clip(COLOURS[mask] + 0.1 * rng.standard_normal((36, 48, 3)), 0, 1), mask


def squares():
    """One image of four regions in a row, 2 × 2 pixels each, with a feature per region."""
    cut = np.repeat(np.repeat([[0, 1, 2, 3]], 2, axis=0), 2, axis=1)
    return RegionGraphs([np.arange(4.0)[:, None]], np.full(4, 4.0), [[0, 1], [1, 2], [2, 3]], maps=[cut])


def test_labels_of_small_images_are_the_best_of_all():
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, k = int(rng.integers(2, 6)), int(rng.integers(3, 5))
        edges = np.array([pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.6] or [(0, 1)])
        graphs = Shape.of(np.array([0, n]), np.array([0, len(edges)]), edges)
        scores, costs = rng.normal(size=(n, k)), rng.random(len(edges))
        scores[rng.random((n, k)) < 0.2] = -np.inf
        scores[:, 0] = np.where(np.isfinite(scores).any(axis=1), scores[:, 0], 0.0)
        every = [np.array(labels) for labels in itertools.product(range(k), repeat=n)]
        best = max(label_values(graphs, scores, costs, labels)[0] for labels in every)
        found = best_labels(graphs, scores, costs)
        assert label_values(graphs, scores, costs, found)[0] == pytest.approx(best)


def test_allowed_labels_are_obeyed_and_their_loss_counts_others():
    X = RegionGraphs.concatenate([squares(), squares()])
    allowed = {0: [[True] * 4, [False, True, True, True]], 2: [[True] * 4, [True, False, True, True]]}
    y = RegionLabels([[0, 1, 2, 0], [-1, -1, 0, 2]], allowed=allowed)
    model = LatentSVM(Regions(labels=[0, 1, 2]), C=10.0, verbose=0).fit(X, y)
    filled = np.asarray(model.impute(X, y)[1])
    assert filled[0] in (1, 2)
    assert filled[1] in (0, 1)
    assert filled[2:].tolist() == [0, 2]
    oracle = model.problem.bind(X, y, model.schema_)
    assert oracle.loss(np.array([0, 1, 2, 0, 0, 2, 0, 2]))[1] == pytest.approx(0.5)
    assert oracle.loss(np.array([0, 1, 2, 0, 1, 1, 0, 2]))[1] == 0
    assert y[[1]].allowed[0][0].tolist() == [False, True, True, True]


def test_imputation_under_allowed_labels_is_the_best_of_those_allowed():
    rng = np.random.default_rng(3)
    X = RegionGraphs.concatenate([squares(), squares()])
    table = rng.random((4, 3)) < 0.6
    table[:, 1] = True
    y = RegionLabels([[0, 1, 2, 0], [-1] * 4], allowed={c: [[True] * 4, table[:, c]] for c in range(3)})
    problem = Regions(labels=[0, 1, 2])
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema)
    fits = [own for own in itertools.product(range(3), repeat=4) if table[np.arange(4), own].all()]
    for _ in range(10):
        w = rng.normal(size=schema.n_params)
        w[-1] = 0.0  # without pairs the labels are exact
        best = max(oracle.score(w, np.array([0, 1, 2, 0, *own]))[1] for own in fits)
        assert oracle.impute(w).value[1] == pytest.approx(best)


@pytest.mark.parametrize("allowed", [{0: [[False] * 4], 1: [[False] * 4]}, {7: [[True] * 4]}, {0: [[1] * 4]}, [1]])
def test_impossible_sets_of_labels_are_refused(allowed):
    with pytest.raises((ValueError, TypeError), match="allowed"):
        StructuredSVM(Regions(labels=[0, 1])).fit(squares(), RegionLabels([[-1, 0, 1, 0]], allowed=allowed))


def test_masks_may_be_partial_generic_and_void():
    mask = np.repeat([[0, 0, 3, 3, -1, -1, -2, -2]], 2, axis=0)
    y = weak_labels(squares(), [mask], classes=NAMES, generic={"coloured": ["red", "blue"]})
    assert y[0].tolist() == [0, -1, -1, -1]
    assert y.allowed[0][0].tolist() == [True, False, True, True]
    classes = read_class_names(NAMES, {"coloured": ["red", "blue"]})
    void = mark_classes(squares(), [mask], classes)[1]
    assert void[0].tolist() == [False, False, False, True]
    graphs, left = leave_out_void(squares(), y, void)
    assert graphs.lengths.tolist() == [3]
    assert graphs.edges.tolist() == [[0, 1], [1, 2]]
    assert left[0].tolist() == [0, -1, -1]


def test_boxes_and_image_labels_say_where_classes_may_be():
    boxes = [{"red": [0, 0, 4, 2]}]
    y = weak_labels(squares(), None, boxes, [["ground", "red"]], classes=NAMES)
    assert y.allowed[1][0].tolist() == [True, True, False, False]
    assert y.allowed[2][0].tolist() == [False] * 4
    assert 0 not in y.allowed
    low, high = y.limits[1][0]
    assert 0 < low < 0.5
    assert high == 1
    some = weak_labels(squares(), None, None, [{"red": True, "blue": False}], classes=NAMES)
    assert set(some.limits) == {1}
    assert set(some.allowed) == {2}


def test_a_generic_box_restricts_its_members():
    y = weak_labels(
        squares(), None, [{"coloured": [[4, 0, 8, 2]]}], classes=NAMES, generic={"coloured": ["red", "blue"]}
    )
    assert y.allowed[1][0].tolist() == y.allowed[2][0].tolist() == [False, False, True, True]
    assert not y.limits


BAD = {
    "another size": ({"masks": [np.zeros((3, 3), int)]}, "shape"),
    "an unknown number": ({"masks": [np.full((2, 8), 9)]}, "numbers of classes"),
    "numbers with a point": ({"masks": [np.zeros((2, 8))]}, "whole"),
    "an unknown class in a box": ({"boxes": [{"green": [0, 0, 4, 2]}]}, "green"),
    "an unknown class in a label": ({"contains": [["green"]]}, "green"),
    "a label that is neither": ({"contains": [{"red": 2}]}, "True or False"),
    "a box outside": ({"boxes": [{"red": [90, 90, 99, 99]}]}, "no region"),
    "a box of three numbers": ({"boxes": [{"red": [0, 0, 4]}]}, "four"),
    "boxes as a table": ({"boxes": [[0, 0, 4, 2]]}, "dict"),
    "classes twice": ({"classes": ["a", "a"]}, "twice"),
    "one class": ({"classes": ["a"]}, "names"),
    "an unknown member": ({"generic": {"some": ["green"]}}, "green"),
    "generic named as a class": ({"generic": {"red": ["blue"]}}, "generic"),
    "an image label of a generic name": ({"contains": [["some"]], "generic": {"some": ["red"]}}, "generic"),
    "a mask against a label": (
        {"masks": [np.repeat([[1, 1, -1, -1, -1, -1, -1, -1]], 2, axis=0)], "contains": [{"red": False}]},
        "lacks",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_weak_labels_are_refused(name):
    arguments, word = BAD[name]
    with pytest.raises((ValueError, TypeError), match=word):
        weak_labels(squares(), **{"classes": NAMES, **arguments})


def test_generic_needs_classes():
    with pytest.raises(ValueError, match="classes"):
        weak_labels(squares(), generic={"some": ["red"]})
    for bad in ({"generic": {"some": ["red"]}}, {"loss": "overlap"}):
        with pytest.raises(ValueError, match="needs classes"):
            Segmenter(**bad).check_parameters()


def test_scores_per_class_are_those_of_a_count_by_hand():
    truth, found = np.array([[0, 0, 1, 1, -2]]), np.array([[0, 1, 1, 1, 0]])
    scores = score_classes(count_confusions([found], [truth], 3))
    assert scores.accuracy == 0.75
    assert scores.class_accuracy[:2].tolist() == [0.5, 1.0]
    assert scores.iou[:2] == pytest.approx([1 / 2, 2 / 3])
    assert np.isnan(scores.iou[2])


@pytest.fixture(scope="module")
def mixed():
    """Twelve scenes: six with masks (void in one), one with strokes, two with boxes, two with labels, one generic."""
    pytest.importorskip("skimage")
    scenes = [scene(i) for i in range(12)]
    images, truths = [image for image, _ in scenes], [mask for _, mask in scenes]
    masks, boxes, contains = [None] * 12, [None] * 12, [None] * 12
    masks[:6] = [mask.copy() for mask in truths[:6]]
    masks[0][:, :2] = -2
    masks[6] = np.full_like(truths[6], -1)
    masks[6][15:17] = truths[6][15:17]
    for i in (7, 8):
        boxes[i] = {}
        for c in (1, 2):
            rows, columns = np.nonzero(truths[i] == c)
            boxes[i][NAMES[c]] = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        contains[i] = NAMES
    contains[9], contains[10] = NAMES, {"red": True, "blue": True}
    masks[11] = np.where(truths[11] > 0, 3, 0)
    given = {"masks": masks, "boxes": boxes, "contains": contains}
    model = Segmenter(classes=NAMES, generic={"coloured": ["red", "blue"]}, verbose=0).fit(images, **given)
    return model, images, truths, given


def test_a_segmenter_learns_classes_from_mixed_labels(mixed, tmp_path):
    model, _, truths, _ = mixed
    fresh = [scene(seed) for seed in range(20, 24)]
    found = model.predict([image for image, _ in fresh])
    assert np.mean([(a == mask).mean() for a, (_, mask) in zip(found, fresh, strict=True)]) > 0.9
    assert model.confusion_.shape == (3, 3)
    assert model.confusion_.sum() == sum(mask.size for mask in truths[:6]) - 2 * 36
    assert 0.9 < model.accuracy_ <= 1
    model.save(tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit").predict([fresh[0][0]])
    assert (again[0] == found[0]).all()


def test_completed_masks_obey_what_is_known(mixed):
    model, images, truths, given = mixed
    graphs = model.cut(images)
    y = weak_labels(graphs, **given, classes=NAMES, generic={"coloured": ["red", "blue"]})
    completed = model.complete(graphs, y)
    regions = graphs.maps[11]
    own = np.asarray(y[11])
    assert (completed[11][own[regions] == 0] == 0).all()
    assert (completed[11][own[regions] < 0] > 0).all()  # generic: one of the two colours
    assert (completed[11] == truths[11]).mean() > 0.9


def test_two_classes_named_are_as_good_as_background_and_object():
    pytest.importorskip("skimage")
    scenes = [scene(i) for i in range(6)]
    images, masks = [image for image, _ in scenes], [np.minimum(mask, 1) for _, mask in scenes]
    plain = Segmenter(verbose=0, C=10.0).fit(images, masks).predict(images)
    named = Segmenter(verbose=0, C=10.0, classes=["ground", "thing"]).fit(images, masks).predict(images)
    assert np.mean([(a == b).mean() for a, b in zip(plain, named, strict=True)]) > 0.97


def test_a_segmenter_of_classes_needs_a_complete_mask():
    pytest.importorskip("skimage")
    image, mask = scene(0)
    with pytest.raises(ValueError, match="complete"):
        Segmenter(classes=NAMES, verbose=0).fit([image], [np.where(mask == 0, -1, mask)])
    with pytest.raises(ValueError, match="one class"):
        Segmenter(classes=NAMES, verbose=0).fit([image], [np.zeros_like(mask)])
