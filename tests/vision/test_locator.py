"""What `Locator` decides: agreement of two methods, boxes between windows, types and pieces of an object."""

import tracemalloc

import numpy as np
import pytest

from tacit import load
from tacit.apps import Locator
from tacit.problems import Detection
from tacit.runtime.archive import StorageError, read_archive, write_archive
from tacit.vision.boxes import overlap
from tacit.vision.detectors import choose_detector
from tacit.vision.locator_command import Result, locator_page
from tacit.vision.maps.window_maps import WindowMaps, best_types, best_windows, boxes_of, expected_boxes, window_scores
from tacit.vision.photo_folders import Photos
from tests.vision.test_detection import planted

QUIET = {"verbose": 0, "n_jobs": 1, "random_state": 0}


def maps_of_two_classes(is_odd=False):
    """Two classes whose object is a bright patch; if odd, the second class has nothing but its clutter."""
    X, y, boxes = planted(40, noise=0.1)
    values = X.values.copy()
    if not is_odd:
        values[:, 3] = 0
    else:
        values[np.repeat(y, X.lengths) == 1, 1] = 0
    return X.with_values(values), y, boxes


@pytest.mark.parametrize("parts", [1, 2])
def test_scores_of_windows_equal_those_of_the_problem(parts):
    X, y, _ = planted(8)
    problem = Detection(parts=parts, fit_intercept=False)
    schema = problem.schema(X, y)
    w = np.random.default_rng(0).standard_normal(schema.n_params)
    expected = problem.bind(X, None, schema).scores(w)
    weights = w.reshape(2, -1)
    own = np.repeat(y, X.window_counts)
    np.testing.assert_allclose(window_scores(X, weights[y]), expected[own, np.arange(len(own))], atol=1e-9)
    np.testing.assert_allclose(window_scores(X, weights[1]), expected[1], atol=1e-9)


def test_boxes_are_the_best_windows_when_cold_and_means_of_windows_around_them_when_warm():
    X, _, _ = planted(30)
    weights = np.array([1.0, 1.0, 0.0, 0.0])
    scores = window_scores(X, weights)
    cold, sure = expected_boxes(X, scores, 1e-9)
    np.testing.assert_allclose(cold, boxes_of(X, best_windows(X, weights)))
    np.testing.assert_allclose(sure, 1.0)
    warm, less = expected_boxes(X, scores, 0.2 * scores.std())
    assert (less < 1).all()
    assert not np.allclose(warm, cold)
    assert (overlap(warm, cold) > 0.25).all()
    assert (warm >= 0).all()
    assert (warm <= 80).all()


def test_a_box_is_no_mean_of_two_places():
    X = WindowMaps.of_maps([np.ones((4, 8, 1))], [(80, 40)], 10, windows=[[[0, 0, 20, 20], [60, 20, 80, 40]]])
    found, sure = expected_boxes(X, np.array([1.0, 1.0]), 1.0)
    np.testing.assert_allclose(found, [[0, 0, 20, 20]])
    np.testing.assert_allclose(sure, 0.5)


def test_boxes_on_which_two_methods_agree_teach_one_detector():
    X, y, boxes = maps_of_two_classes()
    none = np.full((40, 4), np.nan)
    recipe = choose_detector(X, y, np.unique(y), none, QUIET)
    assert recipe.method == "agreed"
    assert not recipe.own.any()
    assert recipe.shared.any()
    assert recipe.evidence["boxes taken for drawn"] >= 20
    found = boxes_of(X, best_windows(X, recipe.shared))
    assert overlap(found, boxes).mean() > 0.7
    assert set(recipe.others) == {"component", "latent SVM"}


def test_classes_in_which_two_methods_disagree_keep_the_latent_weights():
    X, y, boxes = maps_of_two_classes(is_odd=True)
    none = np.full((40, 4), np.nan)
    recipe = choose_detector(X, np.array(["thing", "clutter"])[y], np.array(["clutter", "thing"]), none, QUIET)
    assert recipe.method == "agreed and latent"
    assert recipe.evidence["classes in which they disagree"] == "clutter"
    assert recipe.own[0].any()
    assert not recipe.own[1].any()
    things = np.flatnonzero(y == 0)
    assert overlap(boxes_of(X, best_windows(X, recipe.shared))[things], boxes[things]).mean() > 0.7


def test_types_of_an_object_are_learned_from_drawn_boxes(tmp_path):
    X, kinds, boxes = planted(40, noise=0.1)
    y = np.array(["a", "b"] * 10 + ["b", "a"] * 10)  # labels that say nothing of the types
    locator = Locator(n_components=4, parts=1, types=2, verbose=0).fit(X, y, boxes=boxes)
    assert locator.method_ == "types"
    same = np.mean(locator.found_types_ == kinds)
    assert max(same, 1 - same) > 0.9
    assert overlap(locator.found_.boxes, boxes).mean() > 0.5
    locator.save(tmp_path / "model.tacit")
    header, arrays = read_archive(tmp_path / "model.tacit", "model")
    for part in ("found_scores_", "found_labels_", "found_boxes_"):
        facts = {name: value for name, value in header["facts"].items() if name != part}
        parts = {"learner": header["learner"], "params": header["params"], "facts": facts}
        write_archive(tmp_path / "forged.tacit", "model", parts, arrays)
        with pytest.raises(StorageError, match="found_"):
            load(tmp_path / "forged.tacit")
    again = load(tmp_path / "model.tacit")
    np.testing.assert_array_equal(again.predict(X).boxes, locator.predict(X).boxes)


class Interrupted:
    """A callback that counts its calls, and presses Ctrl-C at one of them."""

    def __init__(self, at=None):
        self.calls, self.at = 0, at

    def __call__(self, line):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("types", [1, 2])
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_detector_that_was_cut_short_says_so(types, place):
    X, y, boxes = planted(24, noise=0.1)

    def learn(callback):
        settings = QUIET | {"parts": 1, "callbacks": [callback]}
        return choose_detector(X, y, np.unique(y), boxes, settings, types=types)

    whole = Interrupted()
    assert not learn(whole).is_interrupted
    assert learn(Interrupted(1 if place == "first" else whole.calls)).is_interrupted


def test_a_detector_from_agreed_boxes_that_was_cut_short_says_so():
    X, y = maps_of_two_classes()[:2]

    def learn(callback):
        none = np.full((len(X), 4), np.nan)
        return choose_detector(X, y, np.unique(y), none, QUIET | {"callbacks": [callback]})

    whole = Interrupted()
    assert learn(whole).method == "agreed"
    assert learn(Interrupted(whole.calls)).is_interrupted


def test_a_report_of_types_holds_one_photo_at_a_time(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    X, y, boxes = planted(40, noise=0.1)
    locator = Locator(n_components=4, parts=1, types=2, verbose=0).fit(X, y, boxes=boxes)
    pixels = np.zeros((400, 400, 3), np.uint8)
    pillow.fromarray(pixels).save(tmp_path / "photo.png")
    photos = Photos([tmp_path / "photo.png"] * 40, ["photo"] * 40, y.astype(str), np.full((40, 2), 400), [])
    result = Result(photos, locator.found_, locator.detections_, None, None)
    locator_page(locator, result)  # what is imported at first use is no photo
    tracemalloc.start()
    try:
        locator_page(locator, result)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * pixels.nbytes


def test_types_need_boxes():
    X, y, boxes = planted(8)
    boxes[1:] = np.nan
    with pytest.raises(ValueError, match="types=2"):
        Locator(types=2, verbose=0).fit(X, y, boxes=boxes)
    with pytest.raises(ValueError, match="types"):
        Locator(types=0, verbose=0).fit(X, y)


def test_the_type_of_a_photo_is_that_of_its_best_window():
    X = WindowMaps.of_maps(np.ones((2, 4, 4, 1)), [(40, 40)] * 2, 10, windows=[[[0, 0, 9, 9], [9, 9, 20, 20]]] * 2)
    scores = np.array([[0.0, 1.0], [3.0, 2.0], [0.0, 5.0], [4.0, 0.0]])
    np.testing.assert_array_equal(best_types(X, scores), [0, 1])


def test_pieces_of_a_window_are_for_drawn_boxes_and_hand_made_features():
    X, y, boxes = planted(8)
    boxes[4:] = np.nan
    assert Locator(n_components=4, verbose=0).fit(X, y).parts_ == 1
    drawn = Locator(n_components=4, verbose=0).fit(X, y, boxes=boxes)
    assert drawn.parts_ == 4
    assert drawn.schema_.blocks["window"] == (2, 1, 16, 4)
    assert Locator(n_components=4, parts=2, verbose=0).fit(X, y, boxes=boxes).parts_ == 2
