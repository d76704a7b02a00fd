"""Boxes filled in by a model that sees them."""

import numpy as np
import pytest

from tacit import IterativeLatentSVM, RegionGraphs, RegionLabels, load, regions, regions_in_boxes, weak_labels
from tacit.apps import Segmenter
from tacit.vision.regions.features import REGION_FEATURES, describe_regions
from tacit.vision.regions.labels import tightest_box
from tacit.vision.segmentation.segmenter import CHOICES, accuracy_and_iou, fill_boxes, region_problem

pytest.importorskip("skimage")

NONE = [np.nan] * 4


def two_discs(seed):
    """Two discs of any colours on ground of any colour: only a box tells which of them is meant."""
    rng = np.random.default_rng(seed)
    ground, *colours = rng.permutation([(0.1, 0.1, 0.1), (0.9, 0.2, 0.2), (0.2, 0.8, 0.3), (0.3, 0.3, 0.9)])[:3]
    image = ground + 0.04 * rng.random((44, 88, 3))
    rows, columns = np.mgrid[:44, :88]
    discs = []
    for side, colour in enumerate(colours):
        x, y, radius = 44 * side + rng.uniform(19, 25), rng.uniform(19, 25), rng.uniform(12, 16)
        discs.append((columns - x) ** 2 + (rows - y) ** 2 < radius**2)
        image[discs[-1]] += colour - ground
    return np.clip(image, 0, 1), discs[int(rng.integers(2))]


@pytest.fixture(scope="module")
def planted():
    """Sixteen images, four with masks, the others with boxes."""
    images, masks = zip(*(two_discs(seed) for seed in range(16)), strict=True)
    graphs = regions(list(images), "slic", n_segments=120, compactness=10.0, verbose=0)
    boxes = np.array([tightest_box(mask) if i >= 4 else NONE for i, mask in enumerate(masks)], dtype=float)
    given = [mask if i < 4 else None for i, mask in enumerate(masks)]
    return list(images), list(masks), graphs, given, boxes


def overlap(graphs, labels, masks):
    return accuracy_and_iou([own == 1 for own in graphs.paint(labels)][4:], masks[4:])[1]


def test_a_model_that_sees_the_box_fills_it_in_better(planted):
    _, masks, graphs, given, boxes = planted
    y = weak_labels(graphs, given, boxes)
    blind = IterativeLatentSVM(region_problem(graphs, 2.0), C=30, tol=1e-2, verbose=0).fit(graphs, y)
    filled = fill_boxes(graphs, y, given, boxes, C=10, verbose=0)
    seen, unseen = overlap(graphs, filled.y, masks), overlap(graphs, blind.impute(graphs, y), masks)
    assert seen > 0.9
    assert seen > unseen + 0.02


def test_what_is_known_stays_and_all_boxes_are_complete(planted):
    _, _, graphs, given, boxes = planted
    y = weak_labels(graphs, given, boxes)
    filled = fill_boxes(graphs, y, given, boxes, C=10, verbose=0)
    inside = graphs.shares_inside(boxes)
    for i, (before, after) in enumerate(zip(y, filled.y, strict=True)):
        assert (after >= 0).all()
        assert (after[before >= 0] == before[before >= 0]).all()
        if i >= 4:
            assert not after[inside[i] < 0.5].any()
            areas = graphs[i].areas[inside[i] >= 0.5]
            share = areas[after[inside[i] >= 0.5] == 1].sum() / areas.sum()
            slack = areas.max() / areas.sum()  # a region is taken as a whole
            assert filled.limits[0] - slack <= share <= filled.limits[1] + slack
    assert filled.images.tolist() == list(range(16))


def test_images_without_box_and_mask_stay_open(planted):
    _, _, graphs, given, boxes = planted
    boxes = boxes.copy()
    boxes[12:] = np.nan
    y = weak_labels(graphs, given, boxes)
    filled = fill_boxes(graphs, y, given, boxes, C=10, verbose=0)
    assert [bool((own < 0).any()) for own in filled.y] == [False] * 12 + [True] * 4
    app = Segmenter(C=10, verbose=0).fit_regions(graphs, y, given, boxes)
    assert isinstance(app.model_, IterativeLatentSVM)
    factors = app.model_.problem.bind(graphs, filled.y, app.model_.schema_).sample_factors()
    assert factors[12:] == pytest.approx(app.weak_ * 4 / 12)  # as much as each of the filled boxes
    assert pytest.approx(10 * (1 + app.weak_)) == app.model_.C


def test_a_segmenter_completes_by_the_box_and_predicts_without(planted, tmp_path):
    _, masks, graphs, given, boxes = planted
    y = weak_labels(graphs, given, boxes)
    app = Segmenter(C=10, verbose=0).fit_regions(graphs, y, given, boxes)
    completed = app.complete(graphs, y, boxes)
    assert accuracy_and_iou(completed[4:], masks[4:])[1] > 0.9
    app.save(tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    for one, other in zip(completed, again.complete(graphs, y, boxes), strict=True):
        assert np.array_equal(one, other)
    assert len(again.predict_regions(graphs[:2])) == 2
    assert not app.is_interrupted


def test_filled_boxes_count_where_C_is_chosen(planted):
    _, _, graphs, given, boxes = planted
    y = weak_labels(graphs, given, boxes)
    alone = Segmenter(verbose=0, weak=0).fit_regions(graphs, y, given, boxes)
    app = Segmenter(verbose=0).fit_regions(graphs, y, given, boxes)
    assert pytest.approx((alone.C_ * 16) ** 0.5) == app.C_  # four masks and twelve boxes
    assert pytest.approx(app.C_ * (1 + app.weak_)) == app.model_.C
    assert alone.model_.C == alone.C_ in CHOICES
    assert Segmenter(C=10, verbose=0).fit_regions(graphs, y, given, boxes).C_ == 10  # a number is taken as it is
    assert Segmenter(verbose=0).fit_regions(graphs, y, given).C_ == alone.C_  # these boxes are not filled in
    two = Segmenter(verbose=0).fit_regions(graphs[2:], y[2:], given[2:], boxes[2:])
    assert two.C_ == 2  # what two masks fill in is too rough to count


def test_a_segmenter_without_boxes_has_no_model_of_them(planted, tmp_path):
    _, _, graphs, given, boxes = planted
    app = Segmenter(C=10, verbose=0).fit_regions(graphs[:4], weak_labels(graphs[:4], given[:4]), given[:4])
    app.save(tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    assert again.box_model_ is None
    y = weak_labels(graphs[4:], None, boxes[4:])
    assert len(again.complete(graphs[4:], y, boxes[4:])) == 12  # by what y says of the boxes


@pytest.mark.parametrize(
    ("name", "value"),
    [("box_limits_", np.array([0.9, 0.1])), ("box_limits_", None), ("box_model_", 3)],
)
def test_a_file_with_a_broken_model_of_boxes_is_refused(planted, name, value):
    _, _, graphs, given, boxes = planted
    app = Segmenter(C=10, verbose=0).fit_regions(
        graphs[:6], weak_labels(graphs, given, boxes)[:6], given[:6], boxes[:6]
    )
    app.check()
    setattr(app, name, value)
    with pytest.raises(ValueError, match=name):
        app.check()


def test_strokes_count_before_a_box(planted):
    _, masks, graphs, given, boxes = planted
    strokes = np.full(masks[5].shape, -1)
    x, y = boxes[5, :2].astype(int)
    strokes[y + 8 : y + 16, x + 8 : x + 16] = 0  # against the truth: what was drawn is believed
    known = weak_labels(graphs, [*given[:5], strokes, *given[6:]], boxes)
    app = Segmenter(C=10, verbose=0).fit_regions(graphs, known, [*given[:5], strokes, *given[6:]], boxes)
    assert 5 not in app.box_images_
    own = graphs[[5]].mark([np.where(strokes == 0, 0, -1)])[0]
    found = graphs[[5]].mark([app.complete(graphs, known, boxes)[5].astype(int)])[0]
    assert not found[own == 0].any()


def test_the_same_bits_for_any_number_of_threads(planted):
    _, _, graphs, given, boxes = planted
    y = weak_labels(graphs, given, boxes)
    one, two = (fill_boxes(graphs, y, given, boxes, C=10, n_jobs=jobs, verbose=0) for jobs in (1, 2))
    assert np.array_equal(one.model.coef_, two.model.coef_)


def test_features_of_your_own_get_the_place_in_the_box(planted):
    _, masks, graphs, given, boxes = planted
    own = graphs.with_values(graphs.nodes.values[:, :3])
    filled = fill_boxes(own, weak_labels(own, given, boxes), given, boxes, C=10, verbose=0)
    assert overlap(graphs, filled.y, masks) > 0.75
    width = regions_in_boxes(own[4:], boxes[4:]).graphs.nodes.values.shape[1]
    assert 3 < width < regions_in_boxes(graphs[4:], boxes[4:]).graphs.nodes.values.shape[1] - len(REGION_FEATURES)


def test_a_box_moved_with_its_object_describes_it_alike():
    """The place in the box does not change where the image around it grows."""
    image, mask = two_discs(3)
    box = tightest_box(mask)
    tables = []
    for pad in (0, 20):
        wide = np.pad(image, ((pad, pad), (pad, pad), (0, 0)), mode="edge")
        cut = np.zeros(wide.shape[:2], np.int32)
        cut[pad : pad + 44, pad : pad + 88][mask] = 1
        found = describe_regions(wide, cut)
        graphs = RegionGraphs([found.values], found.areas, found.edges, found.edge_values, None, [found.regions])
        tables.append(regions_in_boxes(graphs, [box + pad]).graphs.nodes.values[0, len(REGION_FEATURES) :])
    assert tables[0][:36] == pytest.approx(tables[1][:36], abs=1e-5)


@pytest.mark.parametrize("n_segments", [1, 60])
def test_boxes_around_the_whole_image_and_single_regions_are_finite(n_segments):
    image, _ = two_discs(0)
    graphs = regions([image], "slic", n_segments=n_segments, verbose=0)
    boxed = regions_in_boxes(graphs, [[0, 0, 88, 44]])
    assert np.isfinite(boxed.graphs.nodes.values).all()
    assert boxed.members[0].tolist() == list(range(graphs.lengths[0]))


def test_wrong_input_is_refused_before_any_work(planted):
    _, _, graphs, given, boxes = planted
    y = weak_labels(graphs, given, boxes)
    with pytest.raises(ValueError, match="image 0"):
        regions_in_boxes(graphs, boxes)
    with pytest.raises(ValueError, match="image 1"):
        regions_in_boxes(graphs[4:6], [boxes[4], [200, 200, 220, 220]])
    with pytest.raises(ValueError, match=r"image 0 .*\[-inf"):
        regions_in_boxes(graphs[4:5], [[-np.inf, 0, 20, 20]])
    with pytest.raises(ValueError, match="boxes"):
        fill_boxes(graphs, y, given, np.full((16, 4), np.nan), C=10)
    with pytest.raises(ValueError, match="masks"):
        fill_boxes(graphs, RegionLabels([np.full(n, -1) for n in graphs.lengths]), [None] * 16, boxes, C=10)
    with pytest.raises(ValueError, match="C=0"):
        fill_boxes(graphs, y, given, boxes, C=0)
    with pytest.raises(ValueError, match=r"boxes .*\(3, 4\)"):
        fill_boxes(graphs, y, given, boxes[:3], C=10)
    with pytest.raises(ValueError, match=r"boxes .*\(3, 4\)"):
        Segmenter(verbose=0).fit_regions(graphs, y, given, boxes[:3])
    with pytest.raises(ValueError, match="masks"):
        fill_boxes(graphs, y, given[:3], boxes, C=10)
