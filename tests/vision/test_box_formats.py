"""Formats of boxes that annotation tools write, and folders of photos as users have them."""

import numpy as np
import pytest
from PIL import Image

from tacit.datasets import BoxTable, boxes_csv
from tacit.vision.box_formats import WRITERS, read_table
from tacit.vision.photo_folders import join_drawn_boxes, read_photo_folder

TABLE = BoxTable(
    np.array(["a.jpg", "a.jpg", "b.jpg"]),
    np.array(["cat", "dog", "cat"]),
    np.array([[10, 20, 50, 60], [0, 0, 30.5, 40], [5, 5, 95, 75.0]]),
    np.array([[100, 80]] * 3),
)
PHOTOS = [("a.jpg", 100, 80), ("b.jpg", 100, 80)]


@pytest.mark.parametrize("name", list(WRITERS))
def test_every_format_is_read_as_it_was_written(tmp_path, name):
    file, write = WRITERS[name]
    (tmp_path / file).mkdir() if "." not in file else None
    write(tmp_path / file, TABLE, [0.9, 0.8, 0.7])
    found = read_table(tmp_path / file, PHOTOS)
    order = np.lexsort((found.y, found.files))
    assert found.files[order].tolist() == TABLE.files.tolist()
    assert found.y[order].tolist() == TABLE.y.tolist()
    assert np.allclose(found.boxes[order], TABLE.boxes, atol=1e-3)
    assert (found.sizes == [100, 80]).all()


@pytest.mark.parametrize("name", list(WRITERS))
def test_photos_of_one_name_in_two_folders_keep_their_boxes(tmp_path, name):
    corners = {"cat/1.jpg": [10, 20, 50, 60], "dog/1.jpg": [5, 5, 95, 75]}
    for photo in corners:
        (tmp_path / "photos" / photo).parent.mkdir(parents=True)
        Image.new("RGB", (100, 80)).save(tmp_path / "photos" / photo)
    kinds = np.array(["cat", "dog"])
    file, write = WRITERS[name]
    (tmp_path / file).mkdir() if "." not in file else None
    sizes = np.array([[100, 80]] * 2)
    write(tmp_path / file, BoxTable(np.array(list(corners)), kinds, np.array(list(corners.values()), float), sizes))
    photos = read_photo_folder(tmp_path / "photos")
    drawn = join_drawn_boxes(tmp_path / file, photos)
    for own, photo in zip(drawn.boxes, photos.names, strict=True):
        np.testing.assert_allclose(own, [corners[photo]], atol=1e-3)


def test_polygons_become_boxes(tmp_path):
    (tmp_path / "cvat.xml").write_text(
        '<annotations><image id="0" name="a.jpg" width="100" height="80">'
        '<polygon label="cat" points="10.0,20.0;50,25;30,60"/><tag label="x"/></image></annotations>'
    )
    assert read_table(tmp_path / "cvat.xml").boxes.tolist() == [[10, 20, 50, 60]]
    (tmp_path / "yolo").mkdir()
    (tmp_path / "yolo" / "a.txt").write_text("0 0.1 0.25 0.5 0.3 0.3 0.75\n")
    (tmp_path / "data.yaml").write_text("names:\n  0: 'cat'\n  1: dog\n")
    found = read_table(tmp_path / "yolo", PHOTOS)
    assert found.boxes.round(6).tolist() == [[10, 20, 50, 60]]
    assert found.y.tolist() == ["cat"]


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("a.txt", "0 0.5 0.5\n", "YOLO"),
        ("a.json", '{"shapes": [{"label": "cat", "points": [1]}]}', "points"),
        ("a.json", '{"version": 5}', "shapes"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, name, text, word):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=word):
        read_table(tmp_path, PHOTOS)


def test_tables_of_other_programs(tmp_path):
    file = tmp_path / "train.csv"
    file.write_text("filename;width;height;class;xmin;ymin;xmax;ymax\na.jpg;100;80;cat;1;2;30;40.5\n")
    found = boxes_csv(file)
    assert found.files.tolist() == ["a.jpg"]
    assert found.boxes.tolist() == [[1, 2, 30, 40.5]]
    file.write_text("Image\tLabel\tX1\tY1\tX2\tY2\na.jpg\tcat\t1\t2\t30\t40.5\n")
    assert boxes_csv(file).boxes.tolist() == found.boxes.tolist()


def test_shares_of_the_photo_are_not_taken_for_pixels(tmp_path):
    file = tmp_path / "train.csv"
    file.write_text("file,xmin,ymin,xmax,ymax\na.jpg,0.1,0.2,0.5,1\n")
    with pytest.raises(ValueError, match="shares"):
        boxes_csv(file)


@pytest.fixture
def folder(tmp_path):
    for name in ("cat/1.jpg", "cat/young/2.jpg", "dog/3.png", "dog/4.png"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (100, 80)).save(path)
    return tmp_path / "photos"


def test_nested_folders_belong_to_their_class(folder):
    assert read_photo_folder(folder).y.tolist() == ["cat", "cat", "dog", "dog"]


def test_formats_that_are_not_read_are_named(folder):
    (folder / "cat" / "5.heic").write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="heic"):
        photos = read_photo_folder(folder)
    assert photos.left_out[0][0].endswith("5.heic")


def test_all_boxes_are_kept_and_those_of_other_photos_said(folder, tmp_path):
    rows = ["cat/1.jpg,cat,1,1,20,20", "cat/1.jpg,cat,30,30,60,60", "1.jpg,dog,0,0,9,9", "gone.jpg,cat,1,1,5,5"]
    rows.append("2.jpeg,cat,5,5,50,50")  # the ending differs
    (tmp_path / "boxes.csv").write_text("file,class,xmin,ymin,xmax,ymax\n" + "\n".join(rows) + "\n")
    drawn = join_drawn_boxes(tmp_path / "boxes.csv", read_photo_folder(folder))
    assert [len(own) for own in drawn.boxes] == [2, 1, 0, 0]
    assert drawn.missing == ["gone.jpg"]
    assert drawn.other_class == 1
    assert len(drawn.notes) == 2
    (tmp_path / "boxes.csv").write_text("file,xmin,ymin,xmax,ymax\ngone.jpg,1,1,5,5\n")
    with pytest.raises(ValueError, match="none of 1 boxes"):
        join_drawn_boxes(tmp_path / "boxes.csv", read_photo_folder(folder))


def test_one_class_needs_negatives_or_boxes(tmp_path):
    Image.new("RGB", (40, 40)).save(tmp_path / "1.png")
    assert read_photo_folder(tmp_path, has_boxes=True).y.tolist() == ["object"]
    (tmp_path / "cat").mkdir()
    (tmp_path / "1.png").rename(tmp_path / "cat" / "1.png")
    with pytest.raises(ValueError, match="none/"):
        read_photo_folder(tmp_path)
    assert read_photo_folder(tmp_path, has_boxes=True).y.tolist() == ["cat"]
