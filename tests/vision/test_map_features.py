"""Feature maps as features of regions: averages beside interpolation by SciPy, components beside scikit-learn."""

import numpy as np
import pytest
from scipy.ndimage import map_coordinates
from sklearn.decomposition import PCA

import tacit
from tacit.vision.maps import CalledMap, GradientMap
from tacit.vision.maps.photo_maps import MappedImage, map_photos
from tacit.vision.regions import superpixels
from tacit.vision.regions.superpixels import add_components, average_cells, learn_components
from tacit.vision.segmentation.segmenter import Segmenter
from tests.vision.test_segment_classes import NAMES, scene

pytest.importorskip("skimage")


def colours(pixels):
    return pixels[::4, ::4] / 255


MAKER = CalledMap(colours, cell=4, side=48, name="colours")


def test_maps_are_linear_between_cells():
    rng = np.random.default_rng(0)
    found = MappedImage(rng.random((3, 5, 2)), (20, 12), 4.0)
    regions = rng.permutation(np.repeat(np.arange(6), 10)).reshape(6, 10)  # an image of half the size
    down, across = (np.arange(6) + 0.5) / 2 - 0.5, (np.arange(10) + 0.5) / 2 - 0.5
    pixels = [
        map_coordinates(found.map[:, :, j], np.meshgrid(down, across, indexing="ij"), order=1, mode="nearest")
        for j in range(2)
    ]
    expected = [[one[regions == r].mean() for one in pixels] for r in range(6)]
    np.testing.assert_allclose(average_cells(found, regions), expected)


def test_components_are_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(superpixels, "COMPONENTS", 3)
    images = [scene(i)[0] for i in range(4)]
    components = learn_components(images, GradientMap(), verbose=0)
    cells = np.concatenate([own.map.reshape(-1, own.map.shape[2]) for own in map_photos(images, GradientMap())])
    expected = PCA(3, whiten=True).fit(cells.astype(float)).transform(cells.astype(float))
    found = cells @ components[:, :-1].T - components[:, -1]
    np.testing.assert_allclose(np.abs(found), np.abs(expected) * np.sqrt(len(cells) / (len(cells) - 1)), atol=1e-4)


def test_maps_without_variance_add_nothing():
    maker = CalledMap(lambda pixels: np.ones((2, 2, 3)), cell=24, side=48, name="ones")
    images = [scene(0)[0]]
    components = learn_components(images, maker, verbose=0)
    graphs = tacit.regions(images, verbose=0)
    assert components.shape == (0, 4)
    assert add_components(graphs, images, maker, components).values.shape == graphs.values.shape


def test_a_segmenter_keeps_its_features(tmp_path):
    images, masks = (list(own) for own in zip(*(scene(i) for i in range(6)), strict=True))
    model = Segmenter(classes=NAMES, C=10, features=GradientMap(), verbose=0).fit(images, masks)
    plain = Segmenter(classes=NAMES, C=10, features=None, verbose=0).fit(images, masks)
    added = len(model.components_)
    assert added > 0
    assert model.model_.schema_.n_features == plain.model_.schema_.n_features + added
    model.save(tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit").set_params(features=GradientMap())
    assert all(np.array_equal(*pair) for pair in zip(model.predict(images), again.predict(images), strict=True))
    with pytest.raises(ValueError, match="features"):
        model.set_params(features=MAKER).predict(images)
    with pytest.raises(ValueError, match="classes"):
        Segmenter(features=MAKER, verbose=0).fit(images, [own > 0 for own in masks])
