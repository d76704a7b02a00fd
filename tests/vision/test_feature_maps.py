"""Feature maps, and what windows pool of them."""

import numpy as np
import pytest
from PIL import Image

from tacit import window_maps, windows
from tacit.vision.hog_windows import _normalise_blocks
from tacit.vision.maps import CalledMap, ColourMap, GradientMap, MapStack, NetworkMap, TextureMap, WordMap
from tacit.vision.maps.pooling import RING, plan_pooling, pool, pool_adjoint
from tacit.vision.maps.window_maps import WindowMaps, place_windows
from tacit.vision.photos import read_photo
from tests.tiny_network import CELL, filters, photo, write_network

GRIDS, CELLS, SIZES, STRIDES = np.array([[4, 5], [3, 7]]), np.array([0, 20, 41]), np.array([[48, 40], [68, 30]]), 10.0


def some_windows(rng):
    boxes = []
    for width, height in SIZES:
        x, y = np.sort(rng.uniform(0, width, (6, 2))), np.sort(rng.uniform(0, height, (6, 2)))
        boxes += [*np.column_stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]]).tolist(), [0, 0, width, height]]
    return np.array(boxes), np.array([0, 7, 14])


def mean_within(table, box):
    """The mean of a map (rows, columns, k) over a box, cell by cell."""
    rows, columns, _ = table.shape
    down = np.clip(
        np.minimum(box[3], STRIDES * (np.arange(rows) + 1)) - np.maximum(box[1], STRIDES * np.arange(rows)), 0, None
    )
    across = np.clip(
        np.minimum(box[2], STRIDES * (np.arange(columns) + 1)) - np.maximum(box[0], STRIDES * np.arange(columns)),
        0,
        None,
    )
    share = np.outer(down, across)
    return np.tensordot(share, table, 2), share.sum()


def pooled_by_hand(table, box, size, contrast, parts):
    left, top, right, bottom = box
    width, height = (right - left) / parts, (bottom - top) / parts
    weight = 1.0 if contrast is None else ((right - left) * (bottom - top) / np.prod(size)) ** 0.25
    total = 0.0
    for p in range(parts * parts):
        x, y = left + p % parts * width, top + p // parts * height
        part = table[:, :, p]
        inside, area = mean_within(part, (x, y, x + width, y + height))
        around = 0.0
        if contrast == "image":
            whole, all_ = mean_within(part, (0, 0, *size))
            around = whole / all_
        elif contrast == "ring":
            room = RING * np.array([left - right, top - bottom, right - left, bottom - top])
            outer = np.clip(box + room, 0, [*size, *size])
            own, own_area = mean_within(part, box)
            more, more_area = mean_within(part, outer)
            if more_area - own_area < 1e-6 * own_area:
                continue
            around = (more - own) / (more_area - own_area)
        total = total + weight * (inside / area - around)
    return total


@pytest.mark.parametrize("contrast", ["ring", "image", None])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_pooling_equals_sums_over_cells_wherever_windows_begin(contrast, parts):
    rng = np.random.default_rng(0)
    boxes, offsets = some_windows(rng)
    plan = plan_pooling(boxes, offsets, SIZES, np.full(2, STRIDES), contrast, parts)
    maps = rng.standard_normal((41, parts**2, 3))
    found = pool(maps, CELLS, GRIDS, plan, offsets)
    for m, box in enumerate(boxes):
        i = m // 7
        table = maps[CELLS[i] : CELLS[i + 1]].reshape(*GRIDS[i], parts**2, 3)
        np.testing.assert_allclose(found[m], pooled_by_hand(table, box, SIZES[i], contrast, parts), atol=1e-10)
    back = rng.standard_normal(found.shape)
    assert np.isclose((back * found).sum(), (pool_adjoint(back, CELLS, GRIDS, plan, offsets) * maps).sum())


def test_pooled_gradients_are_those_of_windows_where_cells_align():
    pixels = photo(True, 0, 96, 72)[0]
    bags = windows(pixels, [(32, 32)], stride=8)
    maps = window_maps(pixels, GradientMap(side=96, normalised=False), pixels=[(32, 32)], step=0.25)
    pooled = maps.pool_windows(contrast=None, parts=4)
    order = np.lexsort(pooled.boxes.T[:2])
    theirs = np.lexsort(bags.boxes.T[:2])
    np.testing.assert_array_equal(pooled.boxes[order], bags.boxes[theirs])
    own = _normalise_blocks(pooled.values[order].reshape(-1, 4, 4, 9).astype(float))
    np.testing.assert_allclose(own, bags.values[theirs], atol=2e-3)


def test_a_network_becomes_a_map(tmp_path):
    path = write_network(tmp_path / "net.onnx")
    pixels = photo(True, 1)[0]
    maps = window_maps([pixels], NetworkMap(path, side=96))
    image = ((pixels.astype(float) - 127) / 128).transpose(2, 0, 1)
    blocks = image.reshape(3, 9, CELL, 12, CELL).transpose(1, 3, 0, 2, 4)
    expected = np.abs(np.einsum("rcxyz,kxyz->rck", blocks, filters()))
    np.testing.assert_allclose(maps.values.reshape(9, 12, 4), expected, atol=1e-5)
    assert maps.strides.tolist() == [8.0]


def test_maps_do_not_depend_on_jobs_and_come_back_from_the_cache(tmp_path):
    path = write_network(tmp_path / "net.onnx")
    photos = [photo(bool(i % 2), i)[0] for i in range(5)]
    one = window_maps(photos, path)
    kept = window_maps(photos, path, n_jobs=2, cache=tmp_path / "cache")
    again = window_maps(photos, path, cache=tmp_path / "cache")
    assert len(list((tmp_path / "cache").glob("*.map"))) == 5
    np.testing.assert_array_equal(one.values, kept.values)
    np.testing.assert_array_equal(one.values, again.values)


def test_a_broken_cache_is_made_anew(tmp_path):
    pixels = photo(True, 1)[0]
    first = window_maps(pixels, GradientMap(), cache=tmp_path)
    next(tmp_path.glob("*.map")).write_bytes(b"no archive")
    with pytest.warns(RuntimeWarning, match="cached map"):
        again = window_maps(pixels, GradientMap(), cache=tmp_path)
    np.testing.assert_array_equal(first.values, again.values)


@pytest.mark.parametrize(
    ("setting", "keyword"),
    [({"is_map": False}, "rows, columns"), ({"side": 64}, "64 × 64"), ({"channels": 1}, "one image")],
)
def test_networks_without_a_map_are_refused(tmp_path, setting, keyword):
    path = write_network(tmp_path / "net.onnx", **setting)
    with pytest.raises(ValueError, match=keyword):
        window_maps(photo(True, 0)[0], path)


def test_a_file_that_is_not_a_network_is_refused(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"hello")
    with pytest.raises(ValueError, match="ONNX"):
        window_maps(photo(True, 0)[0], tmp_path / "net.onnx")


def test_functions_are_maps_if_they_return_maps():
    pixels = photo(True, 0)[0]
    maps = window_maps(pixels, CalledMap(lambda image: image[::8, ::8] / 255.0, cell=8, side=96))
    assert maps.values.shape == (9 * 12, 3)
    with pytest.raises(ValueError, match="finite"):
        window_maps(pixels, CalledMap(lambda image: image.mean(axis=2), cell=8, side=96))
    with pytest.raises(TypeError, match="CalledMap"):
        window_maps(pixels, lambda image: image)


def test_stacked_maps_lie_on_the_cells_of_the_coarsest():
    pixels = photo(True, 3, 96, 72)[0]
    fine, coarse = GradientMap(cell=8, side=96), ColourMap(cell=24, side=96)
    stack = MapStack([fine, coarse])(pixels)
    assert stack.shape == (3, 4, 54)
    expected = fine(pixels).reshape(3, 3, 4, 3, 36).mean(axis=(1, 3))
    np.testing.assert_allclose(stack[:, :, :36], expected, atol=1e-5)
    np.testing.assert_allclose(stack[:, :, 36:], coarse(pixels), atol=1e-6)


def test_histograms_count_every_pixel_once():
    pixels = np.random.default_rng(0).integers(0, 255, (50, 60, 3), dtype=np.uint8)  # cells are cut short at the edges
    for maker, groups in ((TextureMap(), 1), (ColourMap(), 3)):
        np.testing.assert_allclose((maker(pixels) ** 2).sum(axis=2), groups, rtol=1e-5)
    words = WordMap(words=6).fit([pixels])
    np.testing.assert_array_equal(words(pixels), WordMap(words=6).fit([pixels])(pixels))
    with pytest.raises(ValueError, match="fit"):
        WordMap()(pixels)


def test_windows_stay_inside_and_reach_every_edge():
    boxes = place_windows(101, 67)
    assert boxes[:, :2].min() == 0
    np.testing.assert_allclose(boxes[:, 2:].max(axis=0), [101, 67])
    assert (boxes[:, 2:] - boxes[:, :2] > 10).all()
    with pytest.raises(ValueError, match="sizes"):
        place_windows(10, 10, sizes=[0.0])


def test_maps_are_cut_and_joined_as_bags_are():
    maps = [np.random.default_rng(i).random((2 + i, 3, 2)) for i in range(3)]
    X = WindowMaps.of_maps(maps, [(30, 10 * (2 + i)) for i in range(3)], 10)
    np.testing.assert_array_equal(X[[2, 0]].pool_windows()[0], X.pool_windows()[2])
    again = WindowMaps.concatenate([X[:1], X[1:]])
    np.testing.assert_array_equal(again.values, X.values)
    np.testing.assert_array_equal(again.windows, X.windows)
    with pytest.raises(ValueError, match="stride"):
        WindowMaps.of_maps(maps[:1], [(300, 200)], 10)


def test_windows_of_given_maps_have_the_sizes_that_are_wanted():
    X = WindowMaps.of_maps([np.ones((4, 4, 1))], [(40, 40)], 10, window_sizes=[0.5], aspects=[1.0], step=1.0)
    np.testing.assert_array_equal(X.windows, place_windows(40, 40, sizes=[0.5], aspects=[1.0], step=1.0))
    assert len(X.windows) == 4


@pytest.mark.parametrize("turn", range(1, 9))
def test_photos_are_turned_as_the_camera_noted(tmp_path, turn):
    pixels = np.random.default_rng(0).integers(0, 255, (24, 32, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = turn
    image.save(tmp_path / "a.png", exif=exif)
    flips = {2: pixels[:, ::-1], 3: pixels[::-1, ::-1], 4: pixels[::-1]}
    turned = {5: pixels, 6: pixels[::-1], 7: pixels[::-1, ::-1], 8: pixels[:, ::-1]}
    expected = flips.get(turn, pixels) if turn < 5 else turned[turn].transpose(1, 0, 2)
    np.testing.assert_array_equal(read_photo(tmp_path / "a.png"), expected)


def test_photos_of_every_kind_become_colours(tmp_path):
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16", "F"):
        Image.new(mode, (20, 16)).save(tmp_path / f"a.{'tiff' if mode == 'F' else 'png'}")
        pixels = read_photo(tmp_path / f"a.{'tiff' if mode == 'F' else 'png'}")
        assert pixels.shape == (16, 20, 3)
        assert pixels.dtype == np.uint8
