"""``tacit segment``: a folder in, masks and a report out, and what is refused."""

import json

import numpy as np
import pytest

from tacit import load
from tacit.cli import main
from tacit.vision.segmentation.command import read_folder
from tacit.vision.segmentation.folders import read_mask
from tests.closing import check_closing

pytest.importorskip("skimage")
Image = pytest.importorskip("PIL.Image")


def picture(seed):
    rng = np.random.default_rng(seed)
    image, mask = (60 * rng.random((36, 44, 3))).astype(np.uint8), np.zeros((36, 44), bool)
    x, y = rng.integers(4, 18), rng.integers(4, 12)
    mask[y : y + 18, x : x + 20] = True
    image[mask] += 120
    return image, mask, (x, y, x + 20, y + 18)


@pytest.fixture
def folder(tmp_path):
    """Nine pictures: four with masks, four with boxes, one with nothing; two more to predict."""
    place = tmp_path / "data"
    for name in ("images", "masks", "more"):
        (place / name).mkdir(parents=True)
    rows = ["file,class,width,height,xmin,ymin,xmax,ymax"]
    for i in range(11):
        image, mask, box = picture(i)
        Image.fromarray(image).save(place / ("images" if i < 9 else "more") / f"p{i}.png")
        if i < 4:
            Image.fromarray(np.where(mask, 255, 0).astype(np.uint8)).save(place / "masks" / f"p{i}.png")
        elif i < 8:
            rows.append(f"p{i}.png,thing,44,36,{','.join(map(str, box))}")
    (place / "boxes.csv").write_text("\n".join(rows) + "\n")
    return place


def test_a_model_segments_other_images(folder, tmp_path, capsys):
    learned, new = tmp_path / "learned", tmp_path / "new"
    options = ["--c", "10", "--predict", str(folder / "more")]
    assert main(["segment", str(folder), "--out", str(learned), *options]) == 0
    model = str(learned / "model.tacit")
    assert main(["segment", str(folder / "more"), "--model", model, "--out", str(new)]) == 0
    for name in ("p9.png", "p10.png"):
        assert (new / "masks" / name).read_bytes() == (learned / "masks" / name).read_bytes()
    assert main(["segment", str(folder / "more"), "--model", model, "--c", "3", "--out", str(new / "x")]) == 2
    assert "--c" in capsys.readouterr().err


def test_masks_of_all_images_come_out(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["segment", str(folder), "--out", str(out), "--c", "10", "--seed", "3"]) == 0
    names = sorted(file.name for file in (out / "masks").iterdir())
    assert names == [f"p{i}.png" for i in range(9)]
    for i in range(9):
        pixels = np.array(Image.open(out / "masks" / f"p{i}.png"))
        assert set(np.unique(pixels)) <= {0, 255}
        assert (read_mask(out / "masks" / f"p{i}.png") == picture(i)[1]).mean() > 0.9
    record = json.loads((out / "run.json").read_text())
    assert record["with_mask"] == 4
    assert record["seed"] == 3
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "imputed masks by iteration" in page
    assert "data:image/png" in page
    assert len(load(out / "model.tacit").predict([picture(20)[0]])) == 1
    assert "9 masks" in check_closing(capsys.readouterr().out, out)


def test_other_images_are_predicted(folder, tmp_path):
    out = tmp_path / "out"
    arguments = ["segment", str(folder), "--predict", str(folder / "more"), "--out", str(out), "--c", "10"]
    assert main(arguments) == 0
    assert sorted(file.name for file in (out / "masks").iterdir()) == ["p10.png", "p9.png"]


def test_what_was_drawn_comes_out_to_the_pixel(folder, tmp_path):
    """Regions lie across the border of a drawn mask and of a box; the masks that are written do not."""
    odd = np.zeros((36, 44), bool)
    odd[5:23:2, 3:30] = True  # no cut into regions follows these stripes
    Image.fromarray(np.where(odd, 255, 0).astype(np.uint8)).save(folder / "masks" / "p0.png")
    text = (folder / "boxes.csv").read_text()
    assert "\np4.png," in text
    rows = [row for row in text.splitlines() if not row.startswith("p4.png")]
    (folder / "boxes.csv").write_text("\n".join([*rows, "p4.png,thing,44,36,9,7,23,21"]) + "\n")
    out = tmp_path / "out"
    assert main(["segment", str(folder), "--out", str(out), "--c", "10"]) == 0
    assert (read_mask(out / "masks" / "p0.png") == odd).all()
    inside = np.zeros((36, 44), bool)
    inside[7:21, 9:23] = True
    found = read_mask(out / "masks" / "p4.png")
    assert found.any()
    assert not (found & ~inside).any()


def test_two_boxes_of_an_image_are_one_around_both(folder):
    text = (folder / "boxes.csv").read_text()
    (folder / "boxes.csv").write_text(text + "p8.png,thing,44,36,3,4,10,11\np8.png,thing,44,36,20,2,31,9\n")
    assert read_folder(folder).boxes[8].tolist() == [3, 2, 31, 11]


def lonely_mask(folder):
    Image.new("L", (44, 36)).save(folder / "masks" / "lonely.png")


def other_size(folder):
    Image.new("L", (10, 10)).save(folder / "masks" / "p0.png")


def no_masks(folder):
    for file in (folder / "masks").iterdir():
        file.unlink()


def empty_masks(folder):
    for file in (folder / "masks").iterdir():
        Image.new("L", (44, 36)).save(file)


def box_outside(folder):
    text = (folder / "boxes.csv").read_text()
    (folder / "boxes.csv").write_text(text + "p8.png,thing,44,36,300,300,320,320\n")


def broken_image(folder):
    (folder / "images" / "p8.png").write_bytes(b"no image")


def unknown_label(folder):
    (folder / "labels.csv").write_text("file,contains\np8.png,perhaps\n")


def labels_without_a_header(folder):
    (folder / "labels.csv").write_text("p8.png,yes\n")


def two_labels(folder):
    (folder / "labels.csv").write_text("file,contains\np8.png,yes\np8.png,no\n")


def label_against_a_box(folder):
    (folder / "labels.csv").write_text("file,contains\np4.png,no\n")


def label_against_a_mask(folder):
    (folder / "labels.csv").write_text("file,contains\np0.png,no\n")


def box_of_another_size(folder):
    text = (folder / "boxes.csv").read_text()
    (folder / "boxes.csv").write_text(text + "p8.png,thing,88,72,3,3,30,30\n")


def tiny_box(folder):
    text = (folder / "boxes.csv").read_text()
    (folder / "boxes.csv").write_text(text + "p8.png,thing,44,36,1,1,2,2\n")


def boxes_of_two_kinds(folder):
    text = (folder / "boxes.csv").read_text()
    (folder / "boxes.csv").write_text(text + "p8.png,zebra,44,36,3,3,30,30\n")


def same_stem(folder):
    Image.new("L", (44, 36)).save(folder / "images" / "p8.jpg")


@pytest.mark.parametrize(
    ("spoil", "keyword"),
    [
        (lonely_mask, "lonely.png"),
        (other_size, "10 × 10"),
        (no_masks, "masks"),
        (empty_masks, "empty"),
        (box_outside, "320"),
        (broken_image, "p8.png"),
        (unknown_label, "'perhaps'"),
        (labels_without_a_header, "file,contains"),
        (two_labels, "line 3"),
        (label_against_a_box, "p4.png"),
        (label_against_a_mask, "p0.png"),
        (box_of_another_size, "88 × 72"),
        (tiny_box, "p8.png"),
        (boxes_of_two_kinds, "'zebra'"),
        (same_stem, "p8.jpg"),
    ],
)
def test_bad_folders_are_refused_in_one_line(folder, tmp_path, capsys, spoil, keyword):
    spoil(folder)
    assert main(["segment", str(folder), "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err.strip()
    assert keyword in error
    assert "\n" not in error
    assert not (tmp_path / "out").exists()
