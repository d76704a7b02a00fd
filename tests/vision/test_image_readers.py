"""Readers of digits, images, boxes and the mammals: what they read, and what they refuse with the file's name."""

import gzip
import io
import itertools
import json
import struct
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from tacit.datasets import (
    boxes_coco,
    boxes_csv,
    boxes_voc,
    find_folder,
    image_folder,
    image_size,
    mammals,
    mnist,
    read_idx,
    read_image,
    write_idx,
)


@pytest.fixture
def digits_folder(tmp_path):
    rng = np.random.default_rng(0)
    for part, n in (("train", 20), ("t10k", 10)):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", rng.integers(0, 256, (n, 28, 28)).astype(np.uint8))
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", np.arange(n, dtype=np.uint8) % 10)
    return tmp_path


def test_digits_packed_or_not(digits_folder, monkeypatch):
    X, y = mnist(digits_folder)
    assert X.shape == (20, 28, 28)
    assert y.tolist() == [*range(10), *range(10)]
    assert mnist(digits_folder, "test", digits=(3, 8)).y.tolist() == [3, 8]
    (digits_folder / "home").mkdir()
    digits_folder.rename(digits_folder.parent / "mnist")
    monkeypatch.setenv("TACIT_DATA", str(digits_folder.parent))
    assert np.array_equal(mnist().X, X)


@pytest.mark.parametrize("kind", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("ending", ["idx", "idx.gz"])
def test_idx_files_keep_every_type(tmp_path, kind, ending):
    values = np.random.default_rng(0).integers(0, 100, (3, 2, 4)).astype(kind)
    write_idx(tmp_path / f"a.{ending}", values)
    found = read_idx(tmp_path / f"a.{ending}")
    assert np.array_equal(found, values)
    assert found.dtype == values.dtype


def test_broken_idx_files_are_refused_by_name(tmp_path, digits_folder):
    whole = gzip.decompress((digits_folder / "train-images-idx3-ubyte.gz").read_bytes())
    packed = (digits_folder / "train-images-idx3-ubyte.gz").read_bytes()
    for name, content, why in (
        ("cut.gz", packed[: len(packed) // 2], "truncated"),
        ("text.gz", b"hello", "gzip"),
        ("header.idx", whole[:7], "header"),
        ("short.idx", whole[:-5], "truncated"),
        ("long.idx", whole + b"x", "more bytes"),
        ("other.idx", b"PK\x03\x04" + whole, "not an idx file"),
        ("empty.idx", b"", "not an idx file"),
        ("huge.idx", whole[:4] + b"\xff" * 12, "truncated"),
        ("deep.idx", b"\0\0\x08\xff" + struct.pack(">I", 1) * 255 + b"x", "not an idx file"),
        ("promise.gz", gzip.compress(whole[:4] + struct.pack(">III", 1 << 20, 28, 28)), "too short"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name}.*{why}"):
            read_idx(tmp_path / name)


def test_files_that_grow_beyond_the_limit_are_not_unpacked(tmp_path):
    write_idx(tmp_path / "bomb.gz", np.zeros((6000,), np.uint8))
    with pytest.raises(ValueError, match=r"bomb\.gz.*6000"):
        read_idx(tmp_path / "bomb.gz", max_bytes=5000)
    assert read_idx(tmp_path / "bomb.gz", max_bytes=6000).size == 6000
    arrays = {"hog": np.zeros((100, 100)), "position": np.zeros((100, 2)), "offsets": np.array([0, 100])}
    np.savez_compressed(tmp_path / "hog.npz", **arrays)
    with pytest.raises(ValueError, match=r"hog\.npz.*5000"):
        mammals(tmp_path, max_bytes=5000)
    for name, read, content in (
        ("boxes.csv", boxes_csv, "file,xmin,ymin,xmax,ymax\n" + "a.jpg,1,2,31,42\n" * 500),
        ("boxes.json", boxes_coco, "[" * 10_000),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match=f"{name}.*5000"):
            read(tmp_path / name, max_bytes=5000)
    (tmp_path / "huge.xml").write_text(voc("x" * 10_000_001))
    with pytest.raises(ValueError, match=r"huge\.xml.*10000000"):
        boxes_voc(tmp_path / "huge.xml")


def test_arrays_that_promise_more_than_there_is_are_refused(tmp_path):
    (tmp_path / "images.csv").write_text("image,class,columns,rows,test_folds\n")
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 9), }"
    with zipfile.ZipFile(tmp_path / "hog.npz", "w") as archive:
        for name in ("hog", "position", "offsets"):
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
    with pytest.raises(ValueError, match=r"hog\.npz.*72000000000000"):
        mammals(tmp_path)


def test_messages_do_not_repeat_what_stands_in_a_file(tmp_path):
    long = "x" * 100_000
    head = "file,xmin,ymin,xmax,ymax\n"
    good = {"images": [{"id": 1, "file_name": "a"}], "categories": [{"id": 3, "name": "cat"}]}
    note = {"image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4]}
    for read, name, content in (
        (boxes_csv, "header.csv", f"{long},b\n"),
        (boxes_csv, "number.csv", f"{head}a,1,2,{long},4\n"),
        (boxes_csv, "field.csv", head + "a" * 200_000 + ",1,2,3,4\n"),
        (boxes_voc, "tag.xml", f"<{long}></{long}>"),
        (boxes_voc, "box.xml", voc(f"<xmin>{long}</xmin>")),
        (boxes_coco, "image.json", json.dumps({**good, "annotations": [{**note, "image_id": long}]})),
        (boxes_coco, "box.json", json.dumps({**good, "annotations": [{**note, "bbox": [long]}]})),
        (boxes_coco, "list.json", json.dumps({**good, "annotations": [{**note, "image_id": [long]}]})),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match=name) as caught:
            read(tmp_path / name)
        assert len(str(caught.value)) < 600, name


def test_one_long_name_does_not_widen_a_column_of_many(tmp_path):
    rows = "".join(f"{'x' * (100_000 if i == 0 else 1)},1,2,3,4\n" for i in range(5000))
    (tmp_path / "boxes.csv").write_text("file,xmin,ymin,xmax,ymax\n" + rows)
    with pytest.raises(ValueError, match="100000"):
        boxes_csv(tmp_path / "boxes.csv")


@pytest.mark.parametrize("wrong", [None, 3, b"a", "", "a\0b", ["a"]])
def test_what_is_no_path_is_refused_by_every_reader(wrong, tmp_path):
    for read in (read_idx, read_image, image_size, boxes_csv, boxes_voc, boxes_coco):
        with pytest.raises((TypeError, ValueError), match=r"must be a path|NUL"):
            read(wrong)
    for read in (mnist, mammals, image_folder) if wrong is not None else ():
        with pytest.raises((TypeError, ValueError), match=r"must be a path|NUL"):
            read(wrong)
    for read in (read_idx, read_image, boxes_csv, mnist):
        with pytest.raises(FileNotFoundError, match="xxx"):
            read("x" * 5000)


def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "boxes.csv").write_text("file\n")

    def denied(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.open", denied)
    with pytest.raises(PermissionError, match=r"boxes\.csv.*Permission denied"):
        boxes_csv(tmp_path / "boxes.csv")


def test_missing_data_say_what_to_set(tmp_path, monkeypatch, digits_folder):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="TACIT_DATA"):
        mnist()
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        find_folder(None, "mnist")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        mnist(tmp_path / "empty")
    with pytest.raises(ValueError, match=r"digits.*11"):
        mnist(digits_folder, digits=(11,))
    with pytest.raises(TypeError, match="digits"):
        mnist(digits_folder, digits=3)
    with pytest.raises(ValueError, match="part"):
        mnist(digits_folder, "validation")
    write_idx(digits_folder / "train-labels-idx1-ubyte", np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="labels"):
        mnist(digits_folder)


@pytest.mark.parametrize(
    ("mode", "shape", "kind"),
    [
        ("1", (3, 4), "u1"),
        ("L", (3, 4), "u1"),
        ("LA", (3, 4, 2), "u1"),
        ("RGB", (3, 4, 3), "u1"),
        ("RGBA", (3, 4, 4), "u1"),
        ("P", (3, 4, 3), "u1"),
        ("I;16", (3, 4), "u2"),
    ],
)
def test_images_of_every_kind(tmp_path, mode, shape, kind):
    Image.new(mode, (4, 3)).save(tmp_path / "a.png")
    pixels = read_image(tmp_path / "a.png")
    assert pixels.shape == shape
    assert pixels.dtype == np.dtype(kind)
    assert image_size(tmp_path / "a.png") == (4, 3)


def test_sixteen_bits_are_kept(tmp_path):
    values = np.array([[0, 300, 65535]], np.uint16)
    Image.fromarray(values).save(tmp_path / "deep.png")
    assert np.array_equal(read_image(tmp_path / "deep.png"), values)


def bomb(width, height):
    """A few hundred bytes that promise a huge picture."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 9999))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [8000, 12000, 60000])
def test_image_bombs_are_refused_by_name(tmp_path, side):
    (tmp_path / "bomb.png").write_bytes(bomb(side, side))
    with pytest.raises(ValueError, match=r"bomb\.png.*pixels"):
        read_image(tmp_path / "bomb.png")


def test_broken_images_are_refused_by_name(tmp_path):
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 60, 3)).astype(np.uint8)).save(stream, "jpeg")
    whole = stream.getvalue()
    for name, content in (
        ("cut.jpg", whole[: len(whole) // 2]),
        ("text.jpg", b"hello"),
        ("empty.png", b""),
        ("small.png", bomb(1000, 1000)),
        ("start.gif", b"GIF89a\x10\x00"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=name):
            read_image(tmp_path / name)
    (tmp_path / "program.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n")
    with pytest.raises(ValueError, match=r"program\.png.*cannot identify"):  # never handed to an interpreter
        read_image(tmp_path / "program.png")
    with pytest.raises(FileNotFoundError, match=r"gone\.png"):
        read_image(tmp_path / "gone.png")


def test_a_folder_of_images_is_sorted_and_labelled(tmp_path):
    for name in ("dog/b.png", "cat/a.JPG", "dog/a.png", "dog/notes.txt", "dog/._a.png", ".hidden/a.png", "top.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    files, y = image_folder(tmp_path)
    assert [file.name for file in files] == ["a.JPG", "a.png", "b.png"]
    assert y.tolist() == ["cat", "dog", "dog"]
    (tmp_path / "none").mkdir()
    with pytest.raises(FileNotFoundError, match=r"none.*subfolders"):
        image_folder(tmp_path / "none")


def test_three_formats_one_table(tmp_path):
    (tmp_path / "boxes.csv").write_text("file,class,width,height,xmin,ymin,xmax,ymax\na.jpg,cat,50,60,1,2,31,42\n")
    content = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 50, "height": 60}],
        "categories": [{"id": 3, "name": "cat"}],
        "annotations": [{"image_id": 1, "category_id": 3, "bbox": [1, 2, 30, 40]}],
    }
    (tmp_path / "boxes.json").write_text(json.dumps(content))
    (tmp_path / "a.xml").write_text(voc("<xmin>2</xmin><ymin>3</ymin><xmax>31</xmax><ymax>42</ymax>"))
    for table in (
        boxes_csv(tmp_path / "boxes.csv"),
        boxes_coco(tmp_path / "boxes.json"),
        boxes_voc(tmp_path / "a.xml"),
        boxes_voc(tmp_path),
    ):
        assert table.files.tolist() == ["a.jpg"]
        assert table.y.tolist() == ["cat"]
        assert table.boxes.tolist() == [[1, 2, 31, 42]]
        assert table.sizes.tolist() == [[50, 60]]


def test_tables_of_boxes_are_found_below_the_folder_of_data(tmp_path, monkeypatch):
    (tmp_path / "set" / "notes").mkdir(parents=True)
    (tmp_path / "set" / "boxes.csv").write_text("file,xmin,ymin,xmax,ymax\na.jpg,1,2,31,42\n")
    (tmp_path / "set" / "notes" / "a.xml").write_text(
        voc("<xmin>2</xmin><ymin>3</ymin><xmax>31</xmax><ymax>42</ymax>").replace("50", "0").replace("60", "0")
    )
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    assert boxes_csv("set/boxes.csv").boxes.tolist() == [[1, 2, 31, 42]]
    table = boxes_voc("set/notes")
    assert table.boxes.tolist() == [[1, 2, 31, 42]]
    assert table.sizes.tolist() == [[-1, -1]]  # 0 × 0 is what annotators' tools write for a size they do not know
    monkeypatch.delenv("TACIT_DATA")
    with pytest.raises(FileNotFoundError, match=r"set/boxes\.csv"):
        boxes_csv("set/boxes.csv")


def voc(box, start=""):
    return (
        f"{start}<annotation><filename>a.jpg</filename><size><width>50</width><height>60</height></size>"
        f"<object><name>cat</name><bndbox>{box}</bndbox></object></annotation>"
    )


def test_entities_in_xml_are_refused_before_they_grow(tmp_path):
    names = "abcdefghij"
    grow = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in itertools.pairwise(names))
    laughs = f'<?xml version="1.0"?><!DOCTYPE annotation [<!ENTITY a "ha">{grow}]>'
    (tmp_path / "laughs.xml").write_text(voc("<xmin>&j;</xmin>", laughs))
    with pytest.raises(ValueError, match=r"laughs\.xml.*document type"):
        boxes_voc(tmp_path / "laughs.xml")
    outside = '<!DOCTYPE annotation [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
    (tmp_path / "outside.xml").write_text(voc("<xmin>&a;</xmin>", outside))
    with pytest.raises(ValueError, match=r"outside\.xml.*document type"):
        boxes_voc(tmp_path / "outside.xml")


def test_wrong_boxes_are_refused_with_their_place(tmp_path):
    head = "file,xmin,ymin,xmax,ymax,width,height\n"
    for name, text, why in (
        ("number.csv", head + "a,1,2,x,4,9,9\n", "line 2: xmax .*'x'"),
        ("nan.csv", head + "a,1,2,nan,4,9,9\n", "xmax .*'nan'"),
        ("empty.csv", head + "a,5,2,5,4,9,9\n", "empty"),
        ("outside.csv", head + "a,5,2,50,4,9,9\n", "9 × 9"),
        ("short.csv", head + "a,5,2\n", "xmax .*None"),
        ("column.csv", "file,x\na,1\n", "'xmin'"),
        ("nothing.csv", head, "no boxes"),
        ("nameless.csv", head + ",1,2,3,4,9,9\n", "line 2: .*image"),
        ("wide.csv", head + "a,1,2,3,4,1e30,9\n", "width .*1e"),
        ("binary.csv", "\udcff\udcfe", "UTF-8"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8", errors="surrogateescape")
        with pytest.raises(ValueError, match=f"{name}.*{why}"):
            boxes_csv(tmp_path / name)
    for name, text, why in (
        ("cut.xml", voc("")[:50], "truncated"),
        ("other.xml", "<html></html>", "VOC"),
        ("lost.xml", voc("<xmin>1</xmin>"), "ymin .*None"),
        ("japan.xml", voc("", '<?xml version="1.0" encoding="shift_jis"?>'), "XML"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=f"{name}.*{why}"):
            boxes_voc(tmp_path / name)
    good = {"images": [{"id": 1, "file_name": "a"}], "categories": [{"id": 3, "name": "cat"}], "annotations": []}
    for name, content, why in (
        ("cut.json", json.dumps(good)[:20], "truncated"),
        ("list.json", "[]", "'images'"),
        ("none.json", json.dumps(good), "no boxes"),
        ("image.json", json.dumps({**good, "annotations": [{"image_id": 2, "category_id": 3, "bbox": []}]}), "image 2"),
        ("box.json", json.dumps({**good, "annotations": [{"image_id": 1, "category_id": 3, "bbox": [1]}]}), "bbox"),
        ("large.json", huge("9" * 400), "bbox"),
        ("larger.json", huge("9" * 5000), "JSON"),
        ("field.json", json.dumps({**good, "annotations": [{"image_id": 1}]}), "category_id"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match=f"{name}.*{why}"):
            boxes_coco(tmp_path / name)
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError, match=r"\*\.xml"):
        boxes_voc(tmp_path / "folder")
    with pytest.raises(FileNotFoundError, match="folder"):
        boxes_csv(tmp_path)


def huge(number):
    return (
        '{"images": [{"id": 1, "file_name": "a"}], "categories": [{"id": 3, "name": "cat"}], '
        f'"annotations": [{{"image_id": 1, "category_id": 3, "bbox": [1, 1, 5, {number}]}}]}}'
    )


def test_broken_mammals_are_refused_by_name(tmp_path):
    good = {"hog": np.ones((3, 4), np.float16), "position": np.zeros((3, 2), int), "offsets": np.array([0, 2, 3])}
    table = "image,class,columns,rows,test_folds\na,bison,1,2,\nb,deer,1,1,15\n"

    def write(arrays, text):
        np.savez(tmp_path / "hog.npz", **arrays)
        (tmp_path / "images.csv").write_text(text, encoding="utf-8", errors="surrogateescape")

    write(good, table)
    assert mammals(tmp_path).y.tolist() == ["bison", "deer"]
    for arrays, text, why in (
        ({"hog": good["hog"]}, table, "hog.npz.*'position'"),
        ({**good, "hog": np.array(["a"])}, table, "hog.npz.*hog"),
        (good, table[:40], "images.csv has 0 images|truncated"),
        (good, table.replace("1,2", "2,2"), "image 'a'"),
        (good, table.replace("class", "kind"), "'class'"),
        (good, table.replace("1,1,15", "1"), "line 3"),
        (good, table.replace("1,2", "1,²"), "line 2"),
        (good, table.replace("bison", "b\udcff"), "images.csv.*UTF-8"),
        ({**good, "offsets": np.array([0, 5, 3])}, table, "hog.npz.*offsets"),
    ):
        write(arrays, text)
        with pytest.raises(ValueError, match=why):
            mammals(tmp_path)
    write(good, table)
    content = (tmp_path / "hog.npz").read_bytes()
    np.savez_compressed(tmp_path / "hog.npz", **{**good, "hog": np.random.default_rng(0).random((3, 400))})
    packed = bytearray((tmp_path / "hog.npz").read_bytes())
    packed[200:300] = b"\xff" * 100
    one = io.BytesIO()
    np.save(one, good["hog"])
    for broken in (packed, one.getvalue(), b""):
        (tmp_path / "hog.npz").write_bytes(broken)
        with pytest.raises(ValueError, match=r"hog\.npz.*truncated"):
            mammals(tmp_path)
    (tmp_path / "hog.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"hog\.npz.*truncated"):
        mammals(tmp_path)


def test_a_name_that_is_no_name_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    with pytest.raises(TypeError, match="name"):
        image_folder(None, name=False)


@pytest.mark.parametrize("channels", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_images_are_converted_in_strips_to_the_same_bits(monkeypatch, channels, kind):
    from tacit.vision import photos

    shape = (37, 21, channels) if channels else (37, 21)
    pixels = np.random.default_rng(0).random(shape)
    image = (pixels if kind is np.float32 else pixels * np.iinfo(kind).max).astype(kind)
    whole = [convert(image) for convert in (photos.as_grey, photos.as_colours, photos.as_uint8)]
    monkeypatch.setattr(photos, "STRIP_PIXELS", 50)
    parts = [convert(image) for convert in (photos.as_grey, photos.as_colours, photos.as_uint8)]
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(whole, parts, strict=True))


def test_a_large_image_takes_memory_for_little_more_than_its_pixels(tmp_path):
    import tracemalloc

    from tacit.vision.photos import as_colours, read_photo

    pixels = np.zeros((2000, 2000, 4), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png", compress_level=1)
    tracemalloc.start()
    try:
        read_photo(tmp_path / "a.png")
        photo = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        as_colours(pixels)
        colours = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert photo < 60 * 4e6  # four tables of doubles took 100 bytes per pixel
    assert colours < 60 * 4e6
