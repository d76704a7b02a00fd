"""Windows: inside the image whatever the image, described alike, kept on disk."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from skimage.feature import hog

from tacit import boxes, windows
from tacit.runtime.archive import write_archive
from tacit.vision.hog_windows import _running_sums as running_sums
from tacit.vision.photos import as_grey


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width)).astype(np.uint8)


@settings(max_examples=40)
@given(
    height=st.integers(4, 90),
    width=st.integers(4, 90),
    channels=st.sampled_from([None, 1, 2, 3, 4]),
    kind=st.sampled_from(["uint8", "uint16", "float32", "float64", "bool"]),
    sizes=st.lists(st.tuples(st.integers(4, 120), st.integers(4, 120)), min_size=1, max_size=3),
    stride=st.integers(3, 50),
    cells=st.integers(2, 4),
    seed=st.integers(0, 9),
)
def test_windows_stay_inside_any_image(height, width, channels, kind, sizes, stride, cells, seed):
    shape = (height, width) if channels is None else (height, width, channels)
    values = np.random.default_rng(seed).random(shape)
    scale = {"uint8": 255, "uint16": 65535}.get(kind, 1)
    bags = windows(np.round(values * scale).astype(kind), sizes, stride, cells=cells)
    assert len(bags) == 1
    assert bags.lengths[0] >= 1
    assert np.isfinite(bags.values).all()
    x0, y0, x1, y1 = bags.boxes.T
    assert (x0 >= 0).all()
    assert (y0 >= 0).all()
    assert (x1 <= width).all()
    assert (y1 <= height).all()
    cut = {(min(w, width), min(h, height)) for w, h in sizes}
    assert {(w, h) for w, h in zip(x1 - x0, y1 - y0, strict=True)} == cut
    assert (x0 % stride == 0).all()
    expected = sum(((width - w) // stride + 1) * ((height - h) // stride + 1) for w, h in cut)
    assert bags.lengths[0] == expected == len(np.unique(bags.boxes, axis=0))


def test_a_window_is_described_by_its_own_pixels():
    """Away from its edge a window's cells are those that scikit-image computes from the window alone."""
    image = picture(80, 96)
    bags = windows(image, [(48, 32)], 16, cells=4)
    for row, (x0, y0, x1, y1) in zip(bags.values, bags.boxes.astype(int), strict=True):
        alone = hog(as_grey(image)[y0:y1, x0:x1], 9, (8, 12), (2, 2), "L2-Hys", feature_vector=False)
        inner = row.reshape(3, 3, 2, 2, 9)[1, 1]
        np.testing.assert_allclose(inner, alone[1, 1], atol=1e-6)


def test_the_same_pixels_give_the_same_description_wherever_they_are():
    """One patch at several places, on several phases of the cells."""
    patch = picture(40, 40)
    image = np.zeros((100, 100), np.uint8)
    image[30:70, 50:90] = patch
    found = windows(image, [(24, 24)], 2, cells=3)
    alone = windows(np.pad(patch, 30), [(24, 24)], 2, cells=3)
    at = {tuple(box): row for box, row in zip(found.boxes, found.values, strict=True)}
    other = {tuple(box): row for box, row in zip(alone.boxes, alone.values, strict=True)}
    np.testing.assert_allclose(at[(58.0, 38.0, 82.0, 62.0)], other[(38.0, 38.0, 62.0, 62.0)], atol=1e-6)


def test_a_description_does_not_depend_on_where_the_first_windows_are():
    """A window at the first corner of its grid of cells sees the pixels before it, as all others do."""
    image = picture(70, 80)
    whole = windows(image, [(24, 20)], 5, cells=4)
    for dy, dx in ((10, 0), (0, 15), (10, 15)):
        part = windows(image[dy:, dx:], [(24, 20)], 5, cells=4)
        shift = np.array([dx, dy, dx, dy])
        at = {tuple(box): row for box, row in zip(part.boxes + shift, part.values, strict=True)}
        for box, row in zip(whole.boxes, whole.values, strict=True):
            inside = (box[0] > dx or not dx) and (box[1] > dy or not dy)
            if inside:
                np.testing.assert_allclose(at[tuple(box)], row, atol=1e-6)


def test_a_window_at_the_corner_of_an_image_is_that_of_scikit_image():
    image = picture(40, 44)
    alone = hog(as_grey(image), 9, (10, 11), (2, 2), "L2-Hys")
    np.testing.assert_allclose(windows(image, [(44, 40)], 8, cells=4).values[0], alone, atol=1e-6)


def test_grey_colour_alpha_and_depth_agree():
    grey = picture(40, 50)
    plain = windows(grey, [(32, 32)], 8).values
    for same in (
        grey[:, :, None],
        np.repeat(grey[:, :, None], 3, axis=2),
        np.dstack([grey, np.full_like(grey, 255)]),
        np.dstack([grey, grey, grey, np.full_like(grey, 255)]),
        grey.astype(np.uint16) * 257,
        grey / 255,
    ):
        np.testing.assert_allclose(windows(same, [(32, 32)], 8).values, plain, atol=1e-5)
    assert as_grey(np.zeros((2, 2, 4), np.uint8)).tolist() == [[1, 1], [1, 1]]


def test_images_that_cannot_be_described_are_refused():
    for image, why in (
        (picture(3, 50), "50 × 3 pixels"),
        (np.zeros((5, 5, 7)), "1 to 4"),
        (np.zeros((0, 5)), "shape"),
        (np.full((50, 50), np.nan), "NaN"),
        (np.full((50, 50), 1e300), "from 0 to 1"),
        (np.zeros((50, 50), int), "int64"),
        (np.zeros(5), "shape"),
        (np.zeros((3000, 3000), np.uint8), "larger stride"),
    ):
        with pytest.raises(ValueError, match=why):
            windows(image, [(8, 8)], 1)
    for arguments, why in (
        (([], 8), "sizes"),
        (([(0, 4)], 8), "width"),
        (([(3, 8)], 8), "width .*=3"),
        (([(8, 3)], 8), "height"),
        (([(8, 8)], 0), "stride"),
        (([(8, 8)], 2.5), "stride"),
    ):
        with pytest.raises(ValueError, match=why):
            windows(picture(50, 50), *arguments)
    for sizes in ([8], 8, [(8, 8, 8)]):
        with pytest.raises(TypeError, match="pairs"):
            windows(picture(50, 50), sizes, 8)
    with pytest.raises(ValueError, match="image 1"):
        windows([picture(50, 50), np.zeros(5)], [(8, 8)], 8)
    with pytest.raises(ValueError, match="cells"):
        windows(picture(50, 50), [(8, 8)], 8, cells=1)
    with pytest.raises(TypeError, match="image 1"):
        windows([picture(50, 50), 3], [(8, 8)], 8)


@pytest.fixture
def folder(tmp_path):
    for i, name in enumerate(("cat/a.png", "cat/b.png", "dog/a.jpg")):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(50 + 8 * i, 60, seed=i)).save(tmp_path / "photos" / name)
    return tmp_path / "photos"


def test_a_folder_is_read_in_order_and_kept_on_disk(folder, tmp_path):
    first = windows(folder, [(32, 32)], 8, cache=tmp_path / "cache")
    assert len(first) == 3
    (folder / "cat" / "._a.png").write_bytes(b"a note of the operating system")
    paths = [folder / name for name in ("cat/a.png", "cat/b.png", "dog/a.jpg")]
    again = windows(paths, [(32, 32)], 8)
    assert np.array_equal(first.values, again.values)
    kept = sorted((tmp_path / "cache").iterdir())
    assert len(kept) == 3
    times = [file.stat().st_mtime_ns for file in kept]
    second = windows(folder, [(32, 32)], 8, cache=tmp_path / "cache")
    assert np.array_equal(second.values, first.values)
    assert np.array_equal(second.boxes, first.boxes)
    assert [file.stat().st_mtime_ns for file in kept] == times
    windows(folder, [(32, 32)], 16, cache=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 6
    Image.fromarray(picture(50, 60, seed=9)).save(paths[0])
    changed = windows(folder, [(32, 32)], 8, cache=tmp_path / "cache")
    assert not np.array_equal(changed[0], first[0])
    assert np.array_equal(changed[1], first[1])


def test_a_broken_cache_is_made_anew_with_a_warning(folder, tmp_path):
    first = windows(folder, [(32, 32)], 8, cache=tmp_path / "cache")
    for file in (tmp_path / "cache").iterdir():
        file.write_bytes(file.read_bytes()[:-20])
    with pytest.warns(RuntimeWarning, match="cached"):
        again = windows(folder, [(32, 32)], 8, cache=tmp_path / "cache")
    assert np.array_equal(again.values, first.values)
    assert np.array_equal(windows(folder, [(32, 32)], 8, cache=tmp_path / "cache").values, first.values)
    with pytest.raises(ValueError, match="file"):
        windows(folder, [(32, 32)], 8, cache=folder / "cat" / "a.png")


def test_a_broken_image_in_a_folder_is_named(folder):
    (folder / "dog" / "b.jpg").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"b\.jpg"):
        windows(folder, [(32, 32)], 8)


def test_the_nearest_window_of_a_drawn_box():
    bags = windows([picture(64, 64), picture(40, 40)], [(32, 32)], 8)
    drawn = bags.boxes[[7, bags.offsets[1] + 3]] + 1
    hidden, shared = boxes.nearest(bags, drawn)
    assert hidden.tolist() == [7, 3]
    assert (shared > 0.85).all()
    drawn[0] = np.nan
    assert boxes.nearest(bags, drawn).hidden.tolist() == [-1, 3]
    drawn[0] = [900, 900, 950, 950]  # nothing to do with any window
    assert boxes.nearest(bags, drawn).hidden.tolist() == [-1, 3]
    drawn[0] = [8, 8, 0, 0]
    with pytest.raises(ValueError, match="box 0"):
        boxes.nearest(bags, drawn)


def test_the_missing_extra_is_named_and_arrays_need_none():
    code = (
        "import sys; sys.modules['skimage'] = None; sys.modules['PIL'] = None\n"
        "import numpy as np, tacit\n"
        "for images in (np.zeros((9, 9)), sys.argv[1]):\n"
        "    try: print(tacit.windows(images, [(8, 8)], 1))\n"
        "    except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code, __file__], capture_output=True, text=True, check=True)
    described, refused = run.stdout.splitlines()
    assert described == "Ragged(1 samples, 4–4 rows each; 4 × 324 float32)"
    assert "tacit[vision]" in refused


def test_many_phases_of_large_windows_cost_one_map_of_gradients(monkeypatch):
    """Corners at every place within a cell of 100 pixels: the image was described five thousand times."""
    image = picture(900, 900)
    calls = []
    monkeypatch.setattr("tacit.vision.hog_windows._running_sums", lambda grey: calls.append(1) or running_sums(grey))
    bags = windows(image, [(400, 400)], 7)
    assert len(calls) == 1
    assert bags.lengths[0] == 72 * 72
    for row in (0, 1000, 5183):
        x0, y0, x1, y1 = bags.boxes[row].astype(int)
        alone = hog(as_grey(image)[y0:y1, x0:x1], 9, (100, 100), (2, 2), "L2-Hys", feature_vector=False)
        inner = bags.values[row].reshape(3, 3, 2, 2, 9)[1, 1]
        np.testing.assert_allclose(inner, alone[1, 1], atol=1e-6)


def test_windows_that_need_too_many_numbers_are_refused_before_any_work():
    with pytest.raises(ValueError, match="29 windows"):
        windows(picture(2000, 2000), [(500, 500)], 10, cells=500)


def test_a_patch_has_the_same_description_to_the_last_bit_wherever_it_is():
    patch = picture(40, 40)
    image = np.zeros((200, 200), np.uint8)
    for top, left in ((30, 50), (110, 20), (130, 141)):
        image[top : top + 40, left : left + 40] = patch
    found = windows(image, [(24, 24)], 1, cells=3)
    at = {tuple(box[:2].astype(int)): row for box, row in zip(found.boxes, found.values, strict=True)}
    first = at[58, 38]
    assert first.any()
    assert np.array_equal(at[28, 118], first)
    assert np.array_equal(at[149, 138], first)


def test_a_cache_that_no_window_has_is_made_anew(folder, tmp_path):
    first = windows(folder, [(32, 32)], 8, cache=tmp_path / "cache")
    for arrays in (
        {"hog": np.zeros((3, 5), np.float32), "boxes": np.zeros((3, 4))},
        {"hog": np.full((3, 324), np.nan, np.float32), "boxes": np.zeros((3, 4))},
        {"hog": np.zeros((3, 324), np.float32), "boxes": np.zeros((2, 4))},
        {"hog": np.zeros((3, 324), np.float32)},
    ):
        for file in (tmp_path / "cache").iterdir():
            write_archive(file, "windows", {}, arrays)
        with pytest.warns(RuntimeWarning, match="cached"):
            again = windows(folder, [(32, 32)], 8, cache=tmp_path / "cache")
        assert np.array_equal(again.values, first.values)
