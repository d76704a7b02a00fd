"""Files of public formats: damaged bytes, odd values in the right place, odd paths and limits."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
from PIL import Image

import tacit
from tacit import datasets
from tests.fuzz.bags import box_table
from tests.fuzz.draws import HUGE, LONG, Draw
from tests.fuzz.registry import target


def write_file(draw: Draw, name: str, content: bytes, share: float = 0.8):
    """A file with this content, damaged at times, packed if its name says so."""
    content = draw.corrupt(content) if draw.chance(share) else content
    if name.endswith(".gz"):
        content = gzip.compress(content)
        content = draw.corrupt(content) if draw.chance(0.2) else content
    place = draw.folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


def read(draw: Draw, reader, path, **limits):
    """What a reader makes of a file; at times of a path or a limit that is none."""
    if draw.chance(0.1):
        path = draw.pick([draw.odd(), str(path) + "\0", "x" * 5000, draw.folder, draw.folder / "none"])
    if draw.chance(0.1):
        limits["max_bytes"] = draw.pick([draw.odd(), 1, 10, 10**30])
    return reader(path, **limits)


@target("read_idx", "write_idx")
def idx_files(draw: Draw):
    place = draw.folder / draw.pick(["a.idx", "a.idx.gz"])
    array = draw.rng.integers(0, 100, draw.pick([(3,), (2, 3), (2, 2, 2)])).astype(draw.pick(["u1", "i2", "f4", "f8"]))
    if draw.chance(0.2):
        return datasets.write_idx(**draw.spoil_some({"path": place, "array": array}))
    datasets.write_idx(place, array)
    place.write_bytes(draw.corrupt(place.read_bytes()))
    return read(draw, datasets.read_idx, place).shape


@target("mnist", "Images", "find_folder")
def digits(draw: Draw):
    for name, array in (("images-idx3", np.zeros((4, 3, 3), np.uint8)), ("labels-idx1", np.arange(4, dtype=np.uint8))):
        place = draw.folder / f"train-{name}-ubyte.gz"
        datasets.write_idx(place, array)
        if draw.chance(0.4):
            place.write_bytes(draw.corrupt(place.read_bytes()))
    given = {"folder": draw.folder, "part": "train", "digits": draw.pick([None, (1, 2)])}
    return datasets.mnist(**draw.spoil_some(given)).X.astype(float)


@target("uniprobe")
def probes(draw: Draw):
    lines = [
        f"{'ACGT' * draw.between(1, 3)}\t{draw.pick(['+1', '-1', '1'])}\t{draw.pick(['1', '25', ''])}" for _ in "abcd"
    ]
    end = draw.pick(["tsv", "tsv.gz"])
    write_file(draw, f"052.{end}", "\n".join(lines).encode())
    given = {"folder": draw.folder, "protein": "052", "fold": draw.whole(1, 5)}
    found = datasets.uniprobe(**draw.spoil_some(given, share=0.3))
    return found.y_train.astype(float)


@target("read_pautomac", "pautomac", "Pautomac", "PautomacStrings")
def automata_strings(draw: Draw):
    strings = write_file(draw, "1.pautomac.train", b"3 2\n2 0 1\n0\n1 1\n")
    if draw.chance(0.5):
        return len(read(draw, datasets.read_pautomac, strings).strings)
    write_file(draw, "1.pautomac.test", b"2 2\n1 0\n0\n", share=0.3)
    write_file(draw, "1.pautomac_solution.txt", b"2\n0.25\n0.5\n", share=0.3)
    return datasets.pautomac(**draw.spoil_some({"number": draw.whole(1, 1), "folder": draw.folder}, share=0.3)).solution


@target("boxes_csv")
def csv_boxes(draw: Draw):
    rows = [["file", "class", "width", "height", "xmin", "ymin", "xmax", "ymax"]]
    rows += [["a.jpg", "cat", "50", "60", "1", "2", "30", "40.5"] for _ in range(draw.between(0, 3))]
    if draw.chance(0.5):
        row, column = draw.pick(rows), draw.between(0, 7)
        row[column] = draw.pick(["", "x", "nan", "inf", "-5", "9" * 400, "1e30", LONG, '"', "é", "1_0", "\x00"])
    place = write_file(draw, "boxes.csv", "\n".join(map(",".join, rows)).encode(), share=0.5)
    return read(draw, datasets.boxes_csv, place).boxes


@target("boxes_voc")
def voc_boxes(draw: Draw):
    number = draw.pick(["1", "1", "x", "", "nan", "1e400", LONG, "&lt;"])
    text = (
        "<annotation><filename>a.jpg</filename><size><width>50</width><height>60</height></size><object><name>cat</name>"
        f"<bndbox><xmin>{number}</xmin><ymin>1</ymin><xmax>10</xmax><ymax>20</ymax></bndbox></object></annotation>"
    )
    if draw.chance(0.1):
        text = draw.pick([f"<!DOCTYPE a [<!ENTITY b 'c'>]>{text}", "<a>" * 10_000, f"<{LONG}/>"])
    place = write_file(draw, "a.xml", text.encode(), share=0.5)
    return datasets.boxes_voc(draw.pick([place, draw.folder])).boxes


@target("boxes_coco")
def coco_boxes(draw: Draw):
    content = {
        "images": [{"id": 7, "file_name": "a.jpg", "width": 50, "height": 60}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"image_id": 7, "category_id": 1, "bbox": [1, 2, 30, 40]}],
    }
    content = draw.corrupt_tree(content) if draw.chance(0.6) else content
    text = json.dumps(content, allow_nan=True)
    text = draw.pick([text, text, text, "[" * 50_000, text.replace("30", "9" * 5000)])
    return read(draw, datasets.boxes_coco, write_file(draw, "boxes.json", text.encode(), share=0.4)).boxes


@target("write_boxes_csv", "write_boxes_voc", "write_boxes_coco")
def box_writers(draw: Draw):
    table = box_table(draw, draw.between(1, 3))
    table = type(table)(**draw.spoil_some(table._asdict(), share=0.5))
    end, write = draw.pick(
        [("a.csv", datasets.write_boxes_csv), ("voc", datasets.write_boxes_voc), ("a.json", datasets.write_boxes_coco)]
    )
    place = draw.odd() if draw.chance(0.2) else draw.folder / end
    return write(place, table, draw.odd() if draw.chance(0.3) else draw.pick([None, np.ones(3)]))


@target("mammals", "Mammals")
def animals(draw: Draw):
    arrays = {"hog": np.ones((3, 4), np.float16), "position": np.zeros((3, 2), int), "offsets": np.array([0, 2, 3])}
    if draw.chance(0.5):
        arrays = {name: draw.spoil(array) if draw.chance(0.4) else array for name, array in arrays.items()}
        arrays = {k: v for k, v in arrays.items() if isinstance(v, np.ndarray) and v.dtype != object and v.size < HUGE}
    stream = io.BytesIO()
    draw.pick([np.savez, np.savez_compressed])(stream, **arrays)
    write_file(draw, "hog.npz", stream.getvalue(), share=0.4)
    write_file(draw, "images.csv", b"image,class,columns,rows,test_folds\na,bison,1,2,\nb,deer,1,1,15\n", share=0.4)
    found = datasets.mammals(draw.folder)
    return found.is_test.astype(float)


def picture(draw: Draw, name: str):
    stream = io.BytesIO()
    mode = draw.pick(["L", "RGB", "RGBA", "P", "1", "LA"])
    kind = draw.pick(["png", "gif", "bmp", "tiff", "webp", "jpeg"])
    image = Image.new(mode if kind in ("png", "tiff") else "RGB", (draw.between(1, 40), draw.between(1, 40)))
    image.save(stream, kind)
    return write_file(draw, name, stream.getvalue())


@target("read_image", "image_size")
def image_files(draw: Draw):
    place = picture(draw, "a.png")
    limits = {"max_pixels": draw.pick([draw.odd(), 1, 10])} if draw.chance(0.2) else {}
    if draw.chance(0.3):
        return datasets.image_size(place, **limits)
    return datasets.read_image(place if draw.chance(0.9) else draw.odd(), **limits).shape


@target("image_folder", "ImageFiles", "boxed_windows")
def image_folders(draw: Draw):
    names = [f"photos/{kind}/{i}.png" for kind in ("cat", "dog") for i in range(2)]
    for name in names:
        picture(draw, name)
    table = box_table(draw, 1)._replace(files=np.array(["cat/0.png"]))
    given = {"folder": draw.folder / "photos", "table": table, "sizes": [(8, 8)], "stride": 4}
    given |= {"several": "error", "check_classes": True, "cells": 2, "cache": draw.pick([None, draw.folder / "kept"])}
    if draw.chance(0.3):
        return float(len(datasets.image_folder(**draw.spoil_some({"folder": given["folder"], "name": "x"})).files))
    return tacit.boxed_windows(**draw.spoil_some(given), verbose=0).overlap
