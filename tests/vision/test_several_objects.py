"""Several objects per photo: suppression, count, scores."""

import numpy as np
import pytest

import tacit
from tacit.apps import Locator
from tacit.vision import several_objects
from tacit.vision.maps.window_maps import WindowMaps


def planted(n, seed, names=("a",), empty=0):
    """Photos with one or two bright squares each, and some without; labels and true boxes."""
    rng = np.random.default_rng(seed)
    maps, boxes = [], []
    for i in range(n + empty):
        cells, own = rng.random((12, 16, 4)) * 0.3, []
        for left in (1, 9) if i % 2 else (int(rng.integers(1, 10)),):
            top = int(rng.integers(1, 6))
            if i < n:
                cells[top : top + 5, left : left + 5, :2] += 1
                own.append([10 * left, 10 * top, 10 * left + 50, 10 * top + 50])
        maps.append(cells)
        boxes.append(np.array(own, dtype=float).reshape(-1, 4))
    y = np.array([names[i % len(names)] for i in range(n)] + ["none"] * empty)
    return WindowMaps.of_maps(maps, [(160, 120)] * len(maps), 10), y, boxes


def test_all_objects_are_found_and_none_where_there_is_none(tmp_path):
    X, y, boxes = planted(24, 0, empty=8)
    given = [own if i < 16 or y[i] == "none" else None for i, own in enumerate(boxes)]
    locator = Locator(verbose=0).fit(X, y, boxes=given)
    assert locator.is_several_
    new, labels, truth = planted(20, 1, empty=6)
    found = locator.detect(new, labels)
    scores = several_objects.score_detections(found.owners, found.boxes, found.scores, truth)
    one = locator.locate(new, labels)
    alone = several_objects.score_detections(np.arange(20), one.boxes[:20], one.scores[:20], truth)
    assert scores["recall"] > max(alone["recall"], 0.7), (scores, alone)  # one box per photo cannot find all
    assert scores["precision"] > 0.7
    assert not (labels[found.owners] == "none").any()
    locator.save(tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit").detect(new, labels)
    assert np.array_equal(again.boxes, found.boxes)
    assert np.array_equal(again.scores, found.scores)
    assert len(locator.detections_.owners) > 24


def test_a_lower_confidence_keeps_more_boxes():
    X, y, boxes = planted(16, 4)
    locator = Locator(verbose=0, objects="several").fit(X, y, boxes=boxes)
    everything, usual, few = (locator.detect(X, y, min_score=least) for least in (0.0, None, 0.99))
    assert len(everything.owners) > len(usual.owners) >= len(few.owners)
    assert (few.scores >= 0.99).all()
    with pytest.raises(ValueError, match="min_score"):
        locator.detect(X, y, min_score=1.5)


def test_a_box_inside_of_a_better_one_is_nested():
    windows = [[0, 0, 40, 30], [10, 10, 20, 20], [30, 20, 40, 30]]
    maps = WindowMaps.of_maps([np.ones((3, 4, 2))], [(40, 30)], 10, windows=[windows])
    found = several_objects.propose_boxes(maps, np.array([0.5, 1.0, 0.1]), 0.01)
    assert found.facts[:, several_objects.FACTS.index("nested")].tolist() == [0.0, 1.0, 1.0]


def test_one_class_is_enough_with_boxes(tmp_path):
    X, y, boxes = planted(12, 2)
    locator = Locator(verbose=0, objects="one").fit(X, y, boxes=boxes)
    assert not locator.is_several_
    assert locator.predict(X).y.tolist() == ["a"] * 12
    locator.save(tmp_path / "model.tacit")
    assert np.array_equal(tacit.load(tmp_path / "model.tacit").predict(X).boxes, locator.predict(X).boxes)


def test_several_objects_need_boxes():
    X, y, boxes = planted(6, 3, names=("a", "b"))
    with pytest.raises(ValueError, match="at least 4"):
        Locator(verbose=0, objects="several").fit(X, y)
    with pytest.raises(ValueError, match="photo 1"):
        Locator(verbose=0).fit(X, y, boxes=[boxes[0], [[5, 5, 1, 1]], *boxes[2:]])


def test_each_object_is_found_once():
    truths = [np.array([[0, 0, 10, 10.0]])]
    boxes = np.array([[0, 0, 10, 10.0], [0, 0, 10, 11], [50, 50, 60, 60]])
    is_right = several_objects.match_boxes(np.zeros(3, int), boxes, np.array([0.5, 0.9, 0.1]), truths)
    assert is_right.tolist() == [False, True, False]


def test_suppressed_windows_do_not_overlap():
    X, _, _ = planted(4, 4)
    proposals = several_objects.propose_boxes(X, np.random.default_rng(0).random(len(X.windows)), 1e-6)
    for i in range(4):
        own = proposals.boxes[proposals.owners == i]
        shared = several_objects.overlap_table(own, own) - np.eye(len(own))
        assert len(own) == several_objects.MAX_PROPOSED
        assert shared.max() <= several_objects.MAX_SHARED + 1e-6
