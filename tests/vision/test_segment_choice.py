"""How the weight of the loss is chosen from a few masks."""

import numpy as np
import pytest

from tacit.apps import Segmenter
from tacit.vision.segmentation.segmenter import CHOICES, nearest_good

pytest.importorskip("skimage")


def test_chance_does_not_move_the_choice():
    """Noise of a tenth, no difference: the wished value stays, in nearly all of a hundred draws."""
    rng = np.random.default_rng(0)
    kept = [nearest_good(range(5), 0.7 + 0.1 * rng.normal(size=(5, 5)), 2) == 2 for _ in range(100)]
    plain = [int(np.argmax((0.7 + 0.1 * rng.normal(size=(5, 5))).mean(axis=1))) == 2 for _ in range(100)]
    assert np.mean(kept) > 2 * np.mean(plain)


def test_what_is_better_on_every_image_is_taken():
    scores = np.array([[0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.6, 0.7, 0.8]])
    assert nearest_good([0, 1, 2], scores, 0) == 2


def pictures(n):
    rng = np.random.default_rng(0)
    images, masks = [], []
    for _ in range(n):
        image, mask = 0.3 * rng.random((30, 40, 3)), np.zeros((30, 40), bool)
        x, y = rng.integers(3, 18), rng.integers(3, 10)
        mask[y : y + 15, x : x + 18] = True
        image[mask] += 0.4
        images.append(image)
        masks.append(mask)
    return images, masks


def test_one_or_two_masks_weigh_one_each():
    images, masks = pictures(2)
    model = Segmenter(verbose=0).fit(images, masks)
    assert model.C_ == 2
    assert np.isnan(model.iou_)


def test_masks_that_any_C_finds_have_the_choice_nearest_to_their_number():
    images, masks = pictures(4)
    model = Segmenter(verbose=0).fit(images, masks)
    assert min(CHOICES, key=lambda C: abs(np.log(C / 4))) == model.C_


def test_features_of_your_own_are_learned_from():
    images, masks = pictures(3)
    app = Segmenter(C=10, verbose=0)
    graphs = app.cut(images)
    own = graphs.with_values(graphs.nodes.values[:, :3])  # colours alone
    app.fit_regions(own, own.mark(masks), masks)
    found = app.predict_regions(own)
    assert np.mean([np.mean(a == b) for a, b in zip(found, masks, strict=True)]) > 0.95
