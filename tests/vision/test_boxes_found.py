"""From a folder and a table to bags, and back from hidden values to boxes, files and a report."""

import csv
import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit import IterativeLatentSVM, LatentSVM, Ragged, StructuredSVM, boxed_windows, plot, windows
from tacit.datasets import (
    BoxTable,
    boxes_coco,
    boxes_csv,
    boxes_voc,
    image_folder,
    join_boxes,
    write_boxes_coco,
    write_boxes_csv,
    write_boxes_voc,
)
from tacit.plot.canvas import BLUE, GREEN, ORANGE
from tacit.problems import Candidates, Motif
from tacit.vision.boxes import FoundBoxes, average_precision, nearest, overlap, pick_boxes, predict_boxes, report_boxes

SIZES = [(16, 16), (24, 24)]
NAMES = ["cat/1.png", "cat/2.png", "dog/1.png", "dog/3.png"]
DRAWN = {"cat/1.png": (0, 0, 16, 16), "cat/2.png": (24, 0, 40, 16), "dog/1.png": (8, 8, 32, 32)}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture
def photos(tmp_path):
    rng = np.random.default_rng(0)
    for name in NAMES:
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (32, 40), np.uint8)).save(tmp_path / "photos" / name)
    return tmp_path / "photos"


def table(rows, kinds=None, sizes=None):
    """A table of boxes from (file, corners) pairs."""
    files, corners = zip(*rows, strict=True)
    kinds = [""] * len(files) if kinds is None else kinds
    sizes = [(-1, -1)] * len(files) if sizes is None else sizes
    return BoxTable(np.array(files), np.array(kinds), np.array(corners, dtype=float), np.array(sizes))


def test_boxes_are_joined_by_name_whatever_the_order(photos):
    files, y = image_folder(photos)
    expected = np.array([*DRAWN.values(), [np.nan] * 4])
    rng = np.random.default_rng(0)
    for _ in range(5):
        rows = [list(DRAWN.items())[i] for i in rng.permutation(3)]
        np.testing.assert_array_equal(join_boxes(table(rows), files), expected)
        kinds = [name.split("/")[0] for name, _ in rows]
        np.testing.assert_array_equal(join_boxes(table(rows, kinds), files, y), expected)
    windows_paths = [("cat\\2.png", DRAWN["cat/2.png"]), ("photos/cat/1.png", DRAWN["cat/1.png"])]
    np.testing.assert_array_equal(join_boxes(table(windows_paths), files)[:2], expected[:2])


@pytest.mark.parametrize(
    ("rows", "kinds", "words"),
    [
        ([("cat/9.png", (0, 0, 1, 1))], None, r"row 0 .*'cat/9\.png'"),
        ([("at/1.png", (0, 0, 1, 1))], None, "'at/1.png'"),
        ([("", (0, 0, 1, 1))], None, "row 0 .*''"),
        ([("1.png", (0, 0, 1, 1))], None, r"'.*cat/1.png' and '.*dog/1.png'"),
        ([("2.png", (0, 0, 1, 1)), ("cat/2.png", (0, 0, 2, 2))], None, "several='largest'"),
        ([("2.png", (0, 0, 1, 1))], ["dog"], "'cat'.* row 0 .*'dog'"),
    ],
)
def test_a_table_that_does_not_fit_the_images_is_refused(photos, rows, kinds, words):
    files, y = image_folder(photos)
    with pytest.raises(ValueError, match=words):
        join_boxes(table(rows, kinds), files, None if kinds is None else y)


def test_the_largest_of_several_boxes_is_of_the_class_of_the_image(photos):
    files, y = image_folder(photos)
    rows = [("2.png", (0, 0, 1, 1)), ("2.png", (0, 0, 3, 3)), ("2.png", (0, 0, 9, 9))]
    assert join_boxes(table(rows), files, several="largest")[1].tolist() == [0, 0, 9, 9]
    three = table(rows, ["cat", "cat", "dog"])
    assert join_boxes(three, files, y, several="largest")[1].tolist() == [0, 0, 3, 3]
    with pytest.raises(ValueError, match="several='first'"):
        join_boxes(three, files, y, several="first")
    with pytest.raises(ValueError, match="y must"):
        join_boxes(three, files, y[:1])


def test_one_call_from_folder_and_table_to_bags_with_known_hidden_values(photos, tmp_path):
    rows = [(name, DRAWN[name]) for name in ("dog/1.png", "cat/2.png", "cat/1.png")]
    write_boxes_csv(tmp_path / "b.csv", table(rows, ["dog", "cat", "cat"], [(40, 32)] * 3))
    write_boxes_coco(tmp_path / "b.json", table(rows))
    write_boxes_voc(tmp_path / "voc", table(rows))
    for source in (tmp_path / "b.csv", tmp_path / "b.json", tmp_path / "voc", table(rows)):
        data = boxed_windows(photos, source, SIZES, 8)
        assert [file.relative_to(photos).as_posix() for file in data.files] == NAMES
        assert data.y.tolist() == ["cat", "cat", "dog", "dog"]
        assert data.overlap.tolist() == [1, 1, 1, 0]
        assert data.hidden[3] == -1
        np.testing.assert_array_equal(pick_boxes(data.X, data.hidden), data.boxes)
        np.testing.assert_array_equal(data.boxes[:3], list(DRAWN.values()))
        assert np.array_equal(data.X.values, windows(photos, SIZES, 8).values)
    positional = nearest(data.X[:3], table(rows).boxes)
    assert (positional.hidden != data.hidden[:3]).any()  # what the join is for


def test_classes_come_from_the_table_where_there_are_no_subfolders(photos):
    flat = photos / "cat"
    rows = [("2.png", DRAWN["cat/2.png"]), ("1.png", DRAWN["cat/1.png"])]
    assert boxed_windows(flat, table(rows, ["b", "a"]), SIZES, 8).y.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"1\.png"):
        boxed_windows(flat, table(rows[:1], ["b"]), SIZES, 8)


def test_a_folder_and_a_table_that_disagree_are_refused_before_any_window_is_described(photos, monkeypatch):
    def never(*_, **__):
        raise AssertionError("windows were described")

    monkeypatch.setattr("tacit.vision.hog_windows.windows", never)
    row = [("2.png", (1, 1, 20, 20))]
    for given, words in (
        (table(row, sizes=[(80, 64)]), "40 × 32 .*80 × 64"),
        (table([("2.png", (1, 1, 60, 20))]), "60.* 40 × 32"),
        (table(row, ["Persian"]), "'Persian'"),
    ):
        with pytest.raises(ValueError, match=words):
            boxed_windows(photos, given, SIZES, 8)
    with pytest.raises(TypeError, match="got int"):
        boxed_windows(photos, 3, SIZES, 8)
    with pytest.raises(TypeError, match="join_boxes"):
        nearest(Ragged([[0.0]], [0, 1], [[0, 0, 1, 1]]), table(row))


def test_classes_of_another_vocabulary_need_not_be_compared(photos):
    data = boxed_windows(photos, table([("2.png", (24, 0, 40, 16))], ["Persian"]), SIZES, 8, check_classes=False)
    assert (data.hidden >= 0).tolist() == [False, True, False, False]


# what a model finds


@pytest.fixture(scope="module")
def planted():
    """Bags of four windows, one of which carries the label: bags, labels, boxes that somebody might have drawn."""
    rng = np.random.default_rng(1)
    n = 90
    values = rng.standard_normal((n * 4, 6))
    y, hidden = np.array(["ant", "bee", "cat"])[np.arange(n) % 3], rng.integers(0, 4, n)
    values[np.arange(n) * 4 + hidden, np.arange(n) % 3] += 4
    corners = np.tile([[0, 0, 6, 6], [4, 0, 10, 6], [0, 4, 6, 10], [4, 4, 10, 10]], (n, 1))
    bags = Ragged(values, np.arange(n + 1) * 4, corners)
    return bags, y, hidden, pick_boxes(bags, hidden) + np.array([0, 0, 1, 0])


@pytest.mark.parametrize("learner", [StructuredSVM, LatentSVM, IterativeLatentSVM])
def test_boxes_are_those_of_the_predicted_hidden_values(planted, learner):
    bags, y, hidden, _ = planted
    model = learner(Candidates(), C=10).fit(bags[:60], y[:60], hidden=hidden[:60])
    new = bags[60:]
    found = predict_boxes(model, new)
    np.testing.assert_array_equal(found.boxes, new.boxes[new.offsets[:-1] + model.predict_hidden(new)])
    assert np.array_equal(found.y, model.predict(new))
    scores = np.sort(model.decision_function(new), axis=1)
    np.testing.assert_allclose(found.scores, scores[:, -1] - scores[:, -2])


def test_boxes_come_through_a_pipeline_and_for_two_classes(planted):
    bags, y, hidden, _ = planted
    two = np.flatnonzero(y != "cat")
    model = make_pipeline(Ragged.map(StandardScaler()), StructuredSVM(Candidates(), C=10))
    model.fit(bags[two], y[two], structuredsvm__hidden=hidden[two])
    found = predict_boxes(model, bags[two])
    scaled = bags[two].map(StandardScaler().fit(bags[two].values))
    np.testing.assert_allclose(found.scores, np.abs(model[-1].decision_function(scaled)))
    assert np.array_equal(found.boxes, pick_boxes(bags[two], model[-1].predict_hidden(scaled)))


def test_the_report_is_what_its_parts_say(planted):
    bags, y, hidden, drawn = planted
    model = LatentSVM(Candidates(), C=10, n_init=3, random_state=0).fit(bags[:60], y[:60], hidden=hidden[:60])
    new, labels, boxes = bags[60:], y[60:], drawn[60:].copy()
    boxes[4] = np.nan
    report = report_boxes(model, new, labels, boxes)
    known = np.arange(30) != 4
    shared = overlap(predict_boxes(model, new).boxes, boxes)[known]
    assert report.n == 29
    assert report.mean_overlap == pytest.approx(shared.mean())
    assert report.share_above == pytest.approx((shared >= 0.5).mean())
    assert report.accuracy == pytest.approx((model.predict(new) == labels)[known].mean())
    assert list(report.average_precision) == ["ant", "bee", "cat"]
    assert 0.5 < report.mean_average_precision <= 1
    assert f"{report.mean_overlap:.3f}" in str(report)
    assert str(report).count("\n") == 7
    strict = report_boxes(model, new, labels, boxes, threshold=0.99)  # drawn boxes are a pixel wider than any window
    assert strict.share_above == strict.mean_average_precision == 0
    unseen = report_boxes(model, new[:2], ["ant", "elk"], boxes[:2])
    assert unseen.average_precision["elk"] == 0


def test_average_precision_is_the_area_under_the_highest_precision_to_the_right():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, right = rng.integers(0, 6, 12).astype(float), rng.random(12) < 0.5
        n = int(right.sum()) + 2
        # by hand: at every threshold precision and recall, then the highest precision from there on
        points = [(np.sum(right[scores >= t]), np.sum(scores >= t)) for t in np.unique(scores)[::-1]]
        recall = [hits / n for hits, _ in points]
        best = [max(h / m for h, m in points[k:]) for k in range(len(points))]
        area = sum(p * (r - before) for p, r, before in zip(best, recall, [0, *recall[:-1]], strict=True))
        assert average_precision(scores, right, n) == pytest.approx(area)
        order = rng.permutation(12)
        assert average_precision(scores[order], right[order], n) == pytest.approx(area)
        if right.any():  # the area without "the highest to the right" is scikit-learn's, and never above
            assert average_precision_score(right, scores) * right.sum() / n <= area + 1e-12
    with pytest.raises(ValueError, match="n_objects=1"):
        average_precision([1, 2], [True, True], 1)


def test_what_has_no_boxes_is_refused(planted):
    bags, y, hidden, drawn = planted
    model = StructuredSVM(Candidates(), C=10).fit(bags, y, hidden=hidden)
    bare = Ragged(bags.values, bags.offsets)
    for call, kind, words in (
        (lambda: predict_boxes(model, bare), ValueError, "with_boxes"),
        (lambda: predict_boxes(Candidates(), bags), TypeError, "model must be"),
        (lambda: pick_boxes(bags, hidden[:3]), ValueError, r"\(3,\)"),
        (lambda: pick_boxes(bags, np.full(90, 7)), ValueError, r"hidden\[0\] is 7"),
        (lambda: pick_boxes(bags, hidden / 2), ValueError, "hidden .*float64"),
        (lambda: report_boxes(model, bags, y, drawn[:5]), ValueError, r"boxes .*\(5, 4\)"),
        (lambda: report_boxes(model, bags, y[:5], drawn), ValueError, "y .*5"),
        (lambda: report_boxes(model, bags, y, np.full((90, 4), np.nan)), ValueError, "boxes .*NaN"),
        (lambda: report_boxes(model, bags, y, drawn, threshold=0), ValueError, "threshold"),
    ):
        with pytest.raises(kind, match=words):
            call()
    motif = LatentSVM(Motif(4), C=1).fit(["ACGTACGTACGT", "CCCCCCCCCCCC"] * 3, [0, 1] * 3)
    with pytest.raises((ValueError, TypeError)):
        predict_boxes(motif, bags)


# files


def found_table():
    rows = [("cat/1.png", (0, 0, 16, 16)), ("dog/ü & <1>.png", (0.25, 8, 32, 31.125)), ("cat/1.png", (3, 4, 5, 6))]
    return table(rows, ["cat", "dog", "cat"], [(40, 32), (-1, -1), (40, 32)])


def test_three_formats_are_written_as_they_are_read(tmp_path):
    given = found_table()
    scores = [1.5, -0.25, 3]
    write_boxes_csv(tmp_path / "a.csv", given, scores)
    write_boxes_coco(tmp_path / "a.json", given, scores)
    write_boxes_voc(tmp_path / "voc" / "new", given, scores)
    for again in (boxes_csv(tmp_path / "a.csv"), boxes_coco(tmp_path / "a.json"), boxes_voc(tmp_path / "voc" / "new")):
        order, same = (np.lexsort((t.boxes[:, 0], t.files)) for t in (again, given))
        assert again.files[order].tolist() == given.files[same].tolist()
        assert again.y[order].tolist() == given.y[same].tolist()
        np.testing.assert_array_equal(again.boxes[order], given.boxes[same])
        np.testing.assert_array_equal(again.sizes[order], given.sizes[same])
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as stream:
        assert [float(row["score"]) for row in csv.DictReader(stream)] == scores
    content = json.loads((tmp_path / "a.json").read_text())
    assert [note["score"] for note in content["annotations"]] == scores
    assert [note["area"] for note in content["annotations"]] == [256, 31.75 * 23.125, 4]
    assert len(content["images"]) == 2
    assert "<confidence>-0.25</confidence>" in (tmp_path / "voc" / "new" / "dog_ü & <1>.xml").read_text("utf-8")


def test_what_cannot_be_written_is_refused(tmp_path):
    given = found_table()
    for writer, path in ((write_boxes_csv, "a.csv"), (write_boxes_coco, "a.json"), (write_boxes_voc, "voc")):
        with pytest.raises(ValueError, match=r"scores .*\(2,\)"):
            writer(tmp_path / path, given, [1, 2])
        with pytest.raises(ValueError, match=r"cat/1.png' is \[nan"):
            writer(tmp_path / path, given._replace(boxes=np.full((3, 4), np.nan)))
    with pytest.raises(ValueError, match=r"a_1\.xml"):
        write_boxes_voc(tmp_path / "voc", table([("a/1.png", (0, 0, 1, 1)), ("a_1.jpg", (0, 0, 1, 1))]))
    assert list(tmp_path.iterdir()) == []
    outside = table([("../../up.png", (0, 0, 1, 1))])
    write_boxes_voc(tmp_path / "voc", outside)
    assert [file.name for file in (tmp_path / "voc").iterdir()] == [".._.._up.xml"]


def test_what_was_found_in_new_images_becomes_a_table(photos):
    files = image_folder(photos).files[:2]
    found = FoundBoxes(np.array([3, 8]), np.array([[0, 0, 4, 4.0], [1, 1, 5, 5]]), np.array([1.0, 2.0]))
    made = found.table(files)
    assert made.files.tolist() == [str(file) for file in files]
    assert made.y.tolist() == ["3", "8"]
    assert made.sizes.tolist() == [[40, 32]] * 2
    assert found.table(["a", "b"], sizes=[[9, 9], [8, 8]]).sizes.tolist() == [[9, 9], [8, 8]]
    with pytest.raises(ValueError, match="files must"):
        found.table(files[:1])


# picture


def test_the_picture_of_new_images_shows_found_and_drawn_boxes(photos):
    files = image_folder(photos).files
    boxes = np.array([[0, 0, 8, 8], [4, 4, 12, 12], [8, 8, 16, 16], [2, 2, 9, 9.0]])
    found = FoundBoxes(np.array(["cat", "dog", "dog", "dog"]), boxes, np.array([1.0, 0.5, 0.25, 2.0]))
    truth = np.array([[1, 1, 9, 9], [np.nan] * 4, [8, 8, 16, 16], [2, 2, 9, 9]])
    figure = plot.predicted_boxes(files, found, y=["cat", "cat", "dog", "dog"], truth=truth, columns=3)
    assert len(figure.axes) == 4
    for i, ax in enumerate(figure.axes):
        lines = ax.lines[len(ax.lines) // 2 :]
        x, y = lines[0].get_data()
        assert (min(x), min(y), max(x), max(y)) == tuple(boxes[i])
        assert lines[0].get_color() == (ORANGE if i == 1 else BLUE)
        assert [line.get_color() for line in lines[1:]] == ([] if i == 1 else [GREEN])
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["found, label right", "found, label wrong", "drawn by hand"]
    alone = plot.predicted_boxes([np.zeros((9, 9))], FoundBoxes(found.y[:1], boxes[:1], found.scores[:1]))
    assert [text.get_text() for text in alone.legends[0].get_texts()] == ["found"]
    for arguments, words in (
        ((files[:2], found), "images .*2.*4"),
        ((files, found, ["cat"]), "y .*1"),
        ((files, found, None, truth[:2]), "truth"),
    ):
        with pytest.raises(ValueError, match=words):
            plot.predicted_boxes(*arguments)
