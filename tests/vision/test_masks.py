"""Masks are read as they are meant, or an error asks."""

import numpy as np
import pytest
from PIL import Image

from tacit.cli import main
from tacit.vision.segmentation.folders import read_mask

INSIDE = np.zeros((20, 30), bool)
INSIDE[5:15, 8:20] = True


def save(path, values, mode=None):
    image = Image.fromarray(values)
    if mode == "P":
        image = Image.fromarray(values, mode="L").convert("L")
        indexed = Image.new("P", image.size)
        indexed.putpalette([v for i in range(256) for v in (i * 37 % 256, i * 91 % 256, i * 53 % 256)])
        indexed.putdata(values.ravel().tolist())
        image = indexed
    image.save(path)
    return path


def index(value, other=0):
    return np.where(INSIDE, value, other).astype(np.uint8)


@pytest.mark.parametrize("value", [1, 2, 38, 255])
@pytest.mark.parametrize("mode", [None, "P"])
def test_the_only_value_beside_0_is_the_object(tmp_path, value, mode):
    assert (read_mask(save(tmp_path / "m.png", index(value), mode)) == INSIDE).all()


def test_16_bits_and_one_bit(tmp_path):
    assert (read_mask(save(tmp_path / "a.png", index(1).astype(np.uint16) * 65535)) == INSIDE).all()
    Image.fromarray(INSIDE).save(tmp_path / "b.png")
    assert (read_mask(tmp_path / "b.png") == INSIDE).all()


def test_void_of_a_palette_is_outside_and_told(tmp_path):
    values = index(12)
    values[4, 8:20] = 255
    with pytest.warns(RuntimeWarning, match="void"):
        assert (read_mask(save(tmp_path / "m.png", values, "P")) == INSIDE).all()


def test_trimaps_and_instances_ask_which_value_is_meant(tmp_path):
    trimap = index(1, 2)
    trimap[4, 8:20] = 3
    path = save(tmp_path / "m.png", trimap)
    with pytest.raises(ValueError, match="--object"):
        read_mask(path)
    assert (read_mask(path, objects=[1]) == INSIDE).all()
    with pytest.raises(ValueError, match="9"):
        read_mask(path, objects=[9])
    many = index(0)
    many[INSIDE] = 1 + np.arange(INSIDE.sum()) % 40
    many[0] = 255
    with pytest.raises(ValueError, match="--object"):
        read_mask(save(tmp_path / "n.png", many))


def test_a_cut_out_is_what_is_not_transparent(tmp_path):
    colours = np.full((20, 30, 4), 255, np.uint8)
    colours[:, :, 3] = np.where(INSIDE, 255, 0)
    assert (read_mask(save(tmp_path / "m.png", colours)) == INSIDE).all()
    colours[:, :, :3] = np.where(INSIDE, 255, 0)[:, :, None]
    colours[:, :, 3] = 255
    assert (read_mask(save(tmp_path / "n.png", colours)) == INSIDE).all()


def test_soft_edges_are_cut_at_half(tmp_path):
    large = np.kron(INSIDE, np.ones((8, 8))).astype(np.uint8) * 255
    image = Image.fromarray(large)
    image.save(tmp_path / "m.jpg", quality=60)
    assert (read_mask(tmp_path / "m.jpg") == (large > 0)).mean() > 0.99


def test_masks_of_colours_are_refused(tmp_path):
    colours = np.zeros((20, 30, 3), np.uint8)
    colours[INSIDE] = (200, 30, 30)
    assert (read_mask(save(tmp_path / "two.png", colours)) == INSIDE).all()
    colours[0] = (10, 20, 200)
    with pytest.raises(ValueError, match="colours"):
        read_mask(save(tmp_path / "three.png", colours))


def test_masks_of_a_folder_that_differ_ask(tmp_path, capsys):
    for part in ("images", "masks"):
        (tmp_path / "data" / part).mkdir(parents=True)
    for i in range(2):
        save(tmp_path / "data" / "images" / f"{i}.png", np.repeat(index(200)[:, :, None], 3, axis=2))
        save(tmp_path / "data" / "masks" / f"{i}.png", index(1 + i))
    assert main(["segment", str(tmp_path / "data"), "--out", str(tmp_path / "out")]) == 1
    assert "--object" in capsys.readouterr().err
    assert main(["segment", str(tmp_path / "data"), "--object", "x", "--out", str(tmp_path / "out")]) == 2
