"""``tacit segment`` in a folder with classes.csv: mixed labels in, indexed masks and a report out; what is refused."""

import base64
import io
import re

import numpy as np
import pytest

from tacit import load
from tacit.cli import main
from tacit.vision.segmentation.command import read_class_folder
from tests.vision.test_segment_classes import NAMES, scene

pytest.importorskip("skimage")
Image = pytest.importorskip("PIL.Image")

VALUES = np.array([0, 10, 20])


@pytest.fixture
def folder(tmp_path):
    """Ten scenes: six with masks, one with strokes, one with boxes, one with a label, one generic."""
    place = tmp_path / "data"
    for name in ("images", "masks"):
        (place / name).mkdir(parents=True)
    rows = ["file,class,width,height,xmin,ymin,xmax,ymax"]
    for i in range(10):
        image, mask = scene(i)
        Image.fromarray((255 * image).astype(np.uint8)).save(place / "images" / f"p{i}.png")
        values = VALUES[mask]
        if i == 6:
            values = np.where(np.arange(36)[:, None] == 15, values, 77)
        if i == 9:
            values = np.where(mask > 0, 99, 0)
        if i <= 6 or i == 9:
            values[:, 0] = 255
            Image.fromarray(values.astype(np.uint8)).save(place / "masks" / f"p{i}.png")
        elif i == 7:
            for c in (1, 2):
                down, across = np.nonzero(mask == c)
                box = (across.min(), down.min(), across.max() + 1, down.max() + 1)
                rows.append(f"p{i}.png,{NAMES[c]},48,36,{','.join(map(str, box))}")
    (place / "boxes.csv").write_text("\n".join(rows) + "\n")
    (place / "labels.csv").write_text("file,classes\np7.png,ground;red;blue\np8,ground; red; blue\n")
    (place / "classes.csv").write_text(
        "name,value,members\nground,0,\nred,10,\nblue,20,\nvoid,255,\nunknown,77,\ncoloured,99,red;blue\n"
    )
    return place


def test_indexed_masks_of_all_images_come_out(folder, tmp_path):
    out = tmp_path / "out"
    assert main(["segment", str(folder), "--out", str(out), "--c", "10"]) == 0
    for i in range(10):
        picture = Image.open(out / "masks" / f"p{i}.png")
        assert picture.mode == "P"
        assert (np.array(picture) == VALUES[scene(i)[1]]).mean() > 0.9
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Segmentation into classes" in page
    assert "IoU" in page
    assert page.count('height="14" fill="rgb(') == 3
    assert (out / "areas.csv").read_text().startswith("file,class,share\np0.png,ground,")
    assert load(out / "model.tacit").classes == NAMES


def test_a_model_segments_other_images(folder, tmp_path, capsys):
    learned, images = tmp_path / "learned", folder / "images"
    options = ["--c", "10", "--predict", str(images)]
    assert main(["segment", str(folder), "--out", str(learned), *options]) == 0
    command = ["segment", str(images), "--model", str(learned / "model.tacit"), "--out"]
    assert main([*command, str(tmp_path / "counted")]) == 0
    (images / "classes.csv").write_text("name,value\nground,0\nred,10\nblue,20\n")
    assert main([*command, str(tmp_path / "named")]) == 0
    for i in range(10):
        known, named, counted = (
            np.array(Image.open(place / "masks" / f"p{i}.png"))
            for place in (learned, tmp_path / "named", tmp_path / "counted")
        )
        assert np.array_equal(named, known)
        assert np.array_equal(VALUES[counted], known)
    (images / "classes.csv").write_text("name,value\nred,0\nground,10\nblue,20\n")
    assert main([*command, str(tmp_path / "other")]) == 1
    assert "order" in capsys.readouterr().err


def test_pictures_of_large_photos_are_small(folder, tmp_path):
    for path in (folder / "images" / "p0.png", folder / "masks" / "p0.png"):
        with Image.open(path) as picture:
            picture.resize((1200, 900), Image.Resampling.NEAREST).save(path)
    assert main(["segment", str(folder), "--out", str(tmp_path / "out"), "--c", "10"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    pictures = re.findall("data:image/png;base64,([A-Za-z0-9+/=]+)", page)
    sides = [max(Image.open(io.BytesIO(base64.b64decode(one))).size) for one in pictures]
    assert sorted(sides) == [48] * 9 + [480]
    with Image.open(tmp_path / "out" / "masks" / "p0.png") as written:
        assert written.size == (1200, 900)


@pytest.mark.parametrize("name", ["boxes.csv", "labels.csv"])
def test_tables_may_be_missing(folder, tmp_path, name):
    (folder / name).unlink()
    assert main(["segment", str(folder), "--out", str(tmp_path / "out"), "--c", "10"]) == 0
    assert (tmp_path / "out" / "masks" / "p9.png").exists()


def test_masks_may_have_colours(folder):
    (folder / "classes.csv").write_text(
        "name,colour\nground,#000000\nred,#0a0a0a\nblue,#141414\nvoid,#ffffff\nunknown,#4d4d4d\nother,#636363\n"
    )
    data, _ = read_class_folder(folder)
    assert (data.masks[0][:, 1:] == scene(0)[1][:, 1:]).all()
    assert (data.masks[0][:, 0] == -2).all()
    assert data.table.colours[1].tolist() == [10, 10, 10]


def other_size(folder):
    Image.new("L", (10, 10)).save(folder / "masks" / "p0.png")


def unknown_value(folder):
    Image.new("L", (48, 36), 5).save(folder / "masks" / "p0.png")


def coloured_mask(folder):
    Image.new("RGB", (48, 36), (5, 0, 0)).save(folder / "masks" / "p0.png")


def unknown_class_of_box(folder):
    text = (folder / "boxes.csv").read_text()
    (folder / "boxes.csv").write_text(text + "p8.png,green,48,36,3,3,20,20\n")


def unknown_class_of_label(folder):
    (folder / "labels.csv").write_text("file,classes\np7.png,green\n")


def neither_yes_nor_no(folder):
    (folder / "labels.csv").write_text("file,class,contains\np7.png,red,perhaps\n")


def value_twice(folder):
    (folder / "classes.csv").write_text("name,value\na,0\nb,0\n")


def bad_colour(folder):
    (folder / "classes.csv").write_text("name,colour\na,red\nb,#000000\n")


BAD = {
    other_size: "48 × 36", unknown_value: "value 5", coloured_mask: "colour", unknown_class_of_box: "green",
    unknown_class_of_label: "green", neither_yes_nor_no: "yes or no", value_twice: "already", bad_colour: "colour",
}  # fmt: skip


@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
def test_bad_folders_are_refused(folder, spoil, tmp_path, capsys):
    spoil(folder)
    assert main(["segment", str(folder), "--out", str(tmp_path / "out")]) != 0
    assert BAD[spoil] in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_object_and_classes_exclude_each_other(folder, tmp_path, capsys):
    assert main(["segment", str(folder), "--object", "1", "--out", str(tmp_path / "out")]) != 0
    assert "--object" in capsys.readouterr().err
