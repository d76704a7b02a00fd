"""Boxes around whole objects from labels alone."""

import numpy as np
import pytest

from tacit import load
from tacit.apps import Locator
from tacit.vision.boxes import overlap
from tacit.vision.maps.window_maps import WindowMaps
from tacit.vision.whole_objects import find_whole_objects, learn_maps


def make_maps(n=24, n_classes=2, seed=0):
    """Maps of objects of two parts: a body that all classes share, and a head of the class; boxes of the whole."""
    rng = np.random.default_rng(seed)
    maps, boxes, y = [], [], np.arange(n) % n_classes
    for label in y:
        one = 0.3 * rng.standard_normal((12, 16, 6))
        left, top, wide, high = rng.integers(1, 7), rng.integers(1, 5), rng.integers(5, 9), rng.integers(4, 7)
        one[top : top + high, left : left + wide, 0] += 2.0
        one[top : top + high, left : left + wide, 1 + label] += 0.7
        one[top : top + 2, left : left + 2, 1 + label] += 2.0
        maps.append(one)
        boxes.append([10 * left, 10 * top, 10 * (left + wide), 10 * (top + high)])
    return WindowMaps.of_maps(maps, [(160, 120)] * n, 10), y, np.array(boxes, dtype=float)


def test_boxes_enclose_the_whole_object():
    maps, y, truth = make_maps()
    found = find_whole_objects(maps, y, learn_maps(maps, y, 2))
    assert np.mean(overlap(found.boxes, truth) >= 0.5) > 0.9
    part = Locator(n_components=6, extent="part", verbose=0).fit(maps, y)
    whole = Locator(n_components=6, verbose=0).fit(maps, y)
    assert whole.method_ == "whole"
    assert part.method_ != "whole"
    assert overlap(part.found_boxes_, truth).mean() < overlap(whole.found_boxes_, truth).mean()


def test_a_source_of_photos_that_separates_classes_does_not_move_the_boxes():
    maps, y, truth = make_maps(40)
    of_cell, values = np.repeat(y, maps.lengths), maps.values.copy()
    values[:, 4] += np.where(of_cell == 0, 1.0, -1.0) * (values[:, 0] < 1.0)  # all cells beside the object
    shifted = maps.with_values(values)
    found = find_whole_objects(shifted, y, learn_maps(shifted, y, 2))
    assert np.mean(overlap(found.by_activation, truth) >= 0.5) < 0.5
    assert np.mean(overlap(found.boxes, truth) >= 0.5) > 0.9


def test_photos_without_an_object_do_not_teach_what_is_in_the_middle():
    maps, y, _ = make_maps()
    alone = learn_maps(maps[y == 0], y[y == 0], 1)
    both = learn_maps(maps, y, 2, np.array([True, False]))
    np.testing.assert_allclose(both[0, 2], alone[0, 2], rtol=1e-6, atol=1e-9)


def test_one_class_has_a_component_in_place_of_an_activation_map():
    maps, y, truth = make_maps(n_classes=1)
    weights = learn_maps(maps, y, 1)
    np.testing.assert_array_equal(weights[:, 1], weights[:, 0])
    assert np.mean(overlap(find_whole_objects(maps, y, weights).boxes, truth) >= 0.5) > 0.8


def test_confidence_is_lower_where_the_object_is_hidden():
    maps, y, _ = make_maps(40)
    weights = learn_maps(maps, y, 2)
    hidden = maps.with_values(maps.values * np.repeat(np.arange(40) % 4 > 0, maps.lengths)[:, None])
    noise = np.random.default_rng(1).standard_normal(hidden.values.shape)
    scores = find_whole_objects(hidden.with_values(hidden.values + 0.3 * noise), y, weights).scores
    assert ((scores >= 0) & (scores <= 1)).all()
    assert scores[np.arange(40) % 4 == 0].mean() < scores[np.arange(40) % 4 > 0].mean() - 0.1


def test_a_model_file_finds_the_same_boxes(tmp_path):
    maps, y, _ = make_maps()
    locator = Locator(n_components=6, verbose=0).fit(maps, y)
    locator.save(tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    np.testing.assert_array_equal(again.locate(maps, y).boxes, locator.found_.boxes)
    locator.map_weights_ = locator.map_weights_[:1]
    with pytest.raises(ValueError, match="map_weights_"):
        locator.save(tmp_path / "broken.tacit")


def test_drawn_boxes_show_the_extent():
    maps, y, truth = make_maps()
    with pytest.raises(ValueError, match="extent"):
        Locator(n_components=6, extent="part", verbose=0).fit(maps, y, boxes=truth)
    with pytest.raises(ValueError, match="extent"):
        Locator(extent="all", verbose=0).fit(maps, y)


def test_photos_of_background_need_no_box():
    maps, y, _ = make_maps()
    names = np.array(["deer", "none"])[y]
    locator = Locator(n_components=6, verbose=0).fit(maps, names)
    assert (names[locator.least_sure_] == "deer").all()
    assert len(locator.least_sure_) == 12
