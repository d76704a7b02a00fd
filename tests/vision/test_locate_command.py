"""``tacit locate``: photos in, boxes and a report out."""

import json

import numpy as np
import pytest
from PIL import Image

from tacit import load
from tacit.apps import Locator
from tacit.cli import main
from tacit.datasets import boxes_coco, boxes_csv
from tacit.vision.boxes import overlap
from tests.chromium import needs_chromium, open_page
from tests.closing import check_closing
from tests.tiny_network import photo, write_network, write_photos


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Photos of two classes, their boxes, a network, and one run from labels alone."""
    home = tmp_path_factory.mktemp("locate")
    table = write_photos(home / "photos", n=10)
    network = write_network(home / "net.onnx")
    arguments = [str(home / "photos"), "--features", str(network), "--evaluate", str(table), "--out", str(home / "out")]
    assert main(["locate", *arguments, "--extent", "part", "--quiet"]) == 0
    return home


def test_every_photo_has_one_box_in_coco_and_csv(place):
    content = json.loads((place / "out" / "boxes.json").read_text())
    assert len(content["images"]) == len(content["annotations"]) == 20
    assert {kind["name"] for kind in content["categories"]} == {"falls", "rises"}
    assert all(0 <= note["score"] <= 1 and len(note["bbox"]) == 4 for note in content["annotations"])
    coco, table = boxes_coco(place / "out" / "boxes.json"), boxes_csv(place / "out" / "boxes.csv")
    np.testing.assert_allclose(coco.boxes, table.boxes)
    assert (table.boxes[:, 2:] <= table.sizes + 1e-6).all()


def test_labels_alone_place_the_boxes_of_an_easy_object(place):
    record = json.loads((place / "out" / "run.json").read_text())
    assert record["evaluation"]["IoU of 0.5 or more"] > 0.5
    assert record["method"] == "agreed"
    assert record["left_out"] == []


def test_the_same_seed_gives_the_same_boxes_for_any_number_of_jobs(place, tmp_path):
    arguments = [str(place / "photos"), "--features", str(place / "net.onnx"), "--jobs", "2", "--quiet"]
    assert main(["locate", *arguments, "--extent", "part", "--out", str(tmp_path / "again")]) == 0
    again = (tmp_path / "again" / "boxes.json").read_bytes()
    assert again == (place / "out" / "boxes.json").read_bytes()


def test_some_boxes_make_a_detector_that_all_classes_share(place, tmp_path):
    lines = (place / "photos.csv").read_text().splitlines()
    (tmp_path / "some.csv").write_text("\n".join(lines[:1] + lines[1::3]) + "\n")
    arguments = [str(place / "photos"), "--features", str(place / "net.onnx"), "--boxes", str(tmp_path / "some.csv")]
    assert main(["locate", *arguments, "--evaluate", str(place / "photos.csv"), "--out", str(tmp_path / "o")]) == 0
    record = json.loads((tmp_path / "o" / "run.json").read_text())
    assert record["method"].startswith("shared")
    assert record["evidence"]["photos with drawn boxes"] == 7
    assert record["evaluation"]["mean IoU"] > 0.5


def test_types_of_the_object_are_shown_as_mean_images(place, tmp_path, capsys):
    arguments = [str(place / "photos"), "--features", str(place / "net.onnx"), "--types", "2"]
    assert main(["locate", *arguments, "--out", str(tmp_path / "none")]) == 2
    assert "--boxes" in capsys.readouterr().err
    arguments += ["--boxes", str(place / "photos.csv"), "--out", str(tmp_path / "o"), "--quiet"]
    assert main(["locate", *arguments]) == 0
    report = (tmp_path / "o" / "report.html").read_text()
    assert "Types of the object" in report
    assert report.count('alt="mean of type') == 2
    model = load(tmp_path / "o" / "model.tacit")
    by_class = [np.bincount(model.found_types_[model.found_labels_ == name], minlength=2) for name in model.classes_]
    assert np.max(by_class, axis=1).sum() >= 16  # of 20: the types are the two ways of hatching


def test_a_model_labels_and_locates_new_photos(place, tmp_path):
    table = write_photos(tmp_path / "new", n=4, seed=77)
    arguments = ["--model", str(place / "out" / "model.tacit"), str(tmp_path / "new"), "--out", str(tmp_path / "found")]
    assert main(["locate", *arguments, "--evaluate", str(table), "--quiet"]) == 0
    found = boxes_coco(tmp_path / "found" / "boxes.json")
    assert np.mean([name.split("/")[0] == label for name, label in zip(found.files, found.y, strict=True)]) > 0.8
    assert json.loads((tmp_path / "found" / "run.json").read_text())["evaluation"]["photos with a box"] == 8


def test_a_model_remembers_its_network(place, tmp_path):
    model = load(place / "out" / "model.tacit")
    pixels, box = photo(True, 999)
    found = model.predict([pixels])
    assert found.y[0] == "rises"
    assert overlap(found.boxes[0], box) > 0.3
    model.use_network(write_network(tmp_path / "other.onnx", is_map=True))
    assert model.predict([pixels]).y[0] == "rises"  # the same file elsewhere
    (tmp_path / "changed.onnx").write_bytes((tmp_path / "other.onnx").read_bytes() + b"\x0a\x00")
    model.use_network(tmp_path / "changed.onnx")
    with pytest.raises(ValueError, match="network"):
        model.predict([pixels])


@needs_chromium
def test_the_report_opens_and_fetches_nothing(place, tmp_path):
    text = (place / "out" / "report.html").read_text()
    for title in (
        "What was found",
        "Compared with drawn boxes",
        "Least confident boxes",
        "Draw boxes here next",
        "Labels",
    ):
        assert title in text
    _, console, addresses = open_page(place / "out" / "report.html", tmp_path)
    assert console == []
    assert addresses == []


def test_photos_that_cannot_be_read_are_left_out_with_a_line(place, tmp_path, capsys):
    write_photos(tmp_path / "photos", n=4)
    (tmp_path / "photos" / "rises" / "broken.png").write_bytes(b"\x89PNG no more")
    Image.new("1", (9000, 9000)).save(tmp_path / "photos" / "rises" / "huge.png")
    Image.new("L", (4, 4)).save(tmp_path / "photos" / "falls" / "tiny.png")
    arguments = [str(tmp_path / "photos"), "--features", str(place / "net.onnx"), "--out", str(tmp_path / "out")]
    assert main(["locate", *arguments]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("left out") == 3
    assert "3 files" in shown.out
    check_closing(shown.out, tmp_path / "out")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert sorted(name for name, _ in record["left_out"]) == ["falls/tiny.png", "rises/broken.png", "rises/huge.png"]
    assert len(json.loads((tmp_path / "out" / "boxes.json").read_text())["images"]) == 8


def broken_input(kind, folder, table):
    """What a user got wrong, and a keyword of the line."""
    if kind == "no photos":
        (folder / "empty").mkdir()
        return [str(folder / "empty")], "empty"
    if kind == "one class":
        for file in (folder / "photos" / "falls").iterdir():
            file.unlink()
        return [str(folder / "photos")], "'rises'"
    lines = table.read_text().splitlines()
    changed = {
        "unknown file": (lines[1].replace("falls_0", "falls_99"), "falls_99"),
        "outside": (",".join([*lines[1].split(",")[:6], "500", "60"]), "500"),
        "another size": (lines[1].replace(",96,72,", ",97,72,"), "97 × 72"),
    }[kind]
    (folder / "wrong.csv").write_text("\n".join([lines[0], changed[0]]) + "\n")
    return [str(folder / "photos"), "--boxes", str(folder / "wrong.csv")], changed[1]


@pytest.mark.parametrize("kind", ["no photos", "one class", "unknown file", "outside", "another size"])
def test_bad_input_is_one_line_and_writes_nothing(tmp_path, capsys, kind):
    import re

    table = write_photos(tmp_path / "photos", n=2)
    arguments, keyword = broken_input(kind, tmp_path, table)
    assert main(["locate", *arguments, "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err.strip()
    assert re.search(keyword, error)
    assert "\n" not in error
    assert not (tmp_path / "out").exists()


def test_networks_and_models_that_do_not_fit_are_one_line(place, tmp_path, capsys):
    flat = write_network(tmp_path / "flat.onnx", is_map=False)
    assert main(["locate", str(place / "photos"), "--features", str(flat), "--out", str(tmp_path / "a")]) == 1
    assert "flat.onnx" in capsys.readouterr().err
    (tmp_path / "model.tacit").write_bytes(b"nothing")
    assert (
        main(["locate", "--model", str(tmp_path / "model.tacit"), str(place / "photos"), "--out", str(tmp_path)]) == 1
    )
    two = [str(place / "photos"), str(place / "photos"), "--out", str(tmp_path / "b")]
    assert main(["locate", *two]) == 2


def test_boxes_are_in_coordinates_after_exif_orientation(place, tmp_path):
    pixels, _ = photo(True, 5)
    image = Image.fromarray(np.rot90(pixels))  # lies on its side in the file
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(tmp_path / "rotated.png", exif=exif)
    Image.fromarray(pixels).save(tmp_path / "upright.png")
    model = load(place / "out" / "model.tacit")
    found = model.predict([tmp_path / "rotated.png", tmp_path / "upright.png"])
    np.testing.assert_allclose(found.boxes[0], found.boxes[1])


def test_unreadable_exif_data_are_a_warning(tmp_path, recwarn):
    from tacit.vision.photos import read_photo

    Image.fromarray(photo(True, 5)[0]).save(tmp_path / "a.jpg", exif=b"Exif\x00\x00MM\x00*\xff\xff\xff\xff broken")
    assert read_photo(tmp_path / "a.jpg").shape == (72, 96, 3)


def test_hand_made_features_need_no_network_and_say_what_they_lack(tmp_path):
    write_photos(tmp_path / "photos", n=4)
    arguments = [str(tmp_path / "photos"), "--features", "handmade", "--out", str(tmp_path / "out"), "--quiet"]
    assert main(["locate", *arguments]) == 0
    assert "Hand-made features" in (tmp_path / "out" / "report.html").read_text()
    assert isinstance(load(tmp_path / "out" / "model.tacit"), Locator)


def test_a_locator_is_an_estimator_that_refuses_what_does_not_fit():
    photos = [photo(bool(i % 2), i)[0] for i in range(8)]
    y = np.array(["falls", "rises"] * 4)
    with pytest.raises(ValueError, match="n_components"):
        Locator(n_components=0).fit(photos, y)
    with pytest.raises(ValueError, match="boxes"):
        Locator().fit(photos, y, boxes=np.zeros((3, 4)))
    with pytest.raises(TypeError, match="features"):
        Locator(features=3).fit(photos, y)


def test_one_drawn_box_is_kept_and_said_to_be_too_few(place, tmp_path, capsys):
    lines = (place / "photos.csv").read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join(lines[:2]))
    arguments = [str(place / "photos"), "--features", str(place / "net.onnx"), "--out", str(tmp_path / "out")]
    assert main(["locate", *arguments, "--boxes", str(tmp_path / "one.csv")]) == 0
    assert "too few" in capsys.readouterr().out
    assert (tmp_path / "out" / "boxes.csv").read_text().count(",drawn") == 1


def test_labels_alone_enclose_whole_objects_and_leave_out_photos_without_one(place, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "rises").symlink_to(place / "photos" / "rises")
    (tmp_path / "photos" / "none").symlink_to(place / "photos" / "falls")
    arguments = [str(tmp_path / "photos"), "--features", str(place / "net.onnx"), "--out", str(tmp_path / "out")]
    assert main(["locate", *arguments, "--quiet"]) == 0
    assert json.loads((tmp_path / "out" / "run.json").read_text())["method"] == "whole"
    table = boxes_csv(tmp_path / "out" / "boxes.csv")
    assert set(table.y.tolist()) == {"rises"}
    assert len(table.y) == 10
    assert main(["locate", *arguments, "--extent", "whole", "--boxes", str(place / "photos.csv")]) == 2


def test_a_model_names_its_network_where_it_is_missing(place, tmp_path, capsys):
    network = write_network(tmp_path / "own.onnx")
    arguments = [str(place / "photos"), "--features", str(network), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(["locate", *arguments]) == 0
    network.unlink()
    arguments = [
        "--model",
        str(tmp_path / "out" / "model.tacit"),
        str(place / "photos"),
        "--out",
        str(tmp_path / "new"),
    ]
    assert main(["locate", *arguments]) == 1
    said = capsys.readouterr().err
    assert "own.onnx" in said
    assert "SHA-256" in said
