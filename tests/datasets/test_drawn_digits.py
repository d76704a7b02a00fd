"""Drawn digits: seeded, readable, and turned by the angles that they tell."""

import numpy as np
import pytest
from scipy.ndimage import rotate

from tacit import StructuredSVM
from tacit.datasets import drawn_digits
from tacit.problems import Multiclass, rotations


def test_a_seed_gives_the_same_drawings():
    first, again, other = drawn_digits(30), drawn_digits(30), drawn_digits(30, seed=1)
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.angles, again.angles)
    assert not np.array_equal(first.X, other.X)
    assert first.y.tolist() == [*range(10)] * 3


def test_pixels_are_grey_values_and_the_pen_stays_inside():
    X, _, angles = drawn_digits(200, side=40, turn=60)
    assert X.shape == (200, 40, 40)
    assert X.min() == 0
    assert X.max() == 1
    edge = np.ones((40, 40), dtype=bool)
    edge[1:-1, 1:-1] = False
    assert X[:, edge].max() == 0
    assert np.abs(angles).max() <= 60
    assert np.abs(angles).max() > 50


def test_turning_back_by_the_angle_brings_a_digit_upright():
    upright = drawn_digits(300, turn=0)
    assert not upright.angles.any()
    turned = drawn_digits(300, turn=60, seed=2)
    back = np.array([rotate(x, -a, reshape=False, order=1) for x, a in zip(turned.X, turned.angles, strict=True)])
    model = StructuredSVM(Multiclass(), C=10).fit(upright.X.reshape(300, -1), upright.y)
    assert model.score(back.reshape(300, -1), turned.y) > 0.95 > 0.8 > model.score(turned.X.reshape(300, -1), turned.y)
    quarter = rotations(-90, -90, 1).rotate(back[:1])[0, 0]  # both count angles the same way
    np.testing.assert_allclose(quarter, rotate(back[0], -90, reshape=False, order=1), atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": 0}, "n must be a whole number from 1 .*, got n=0"),
        ({"n": 2.5}, "n must be"),
        ({"n": 5, "side": 8}, "side must be a whole number from 12 .*, got side=8"),
        ({"n": 5, "turn": 200}, "turn must be degrees from 0 to 180, got turn=200"),
        ({"n": 5, "turn": np.nan}, "turn must be"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        drawn_digits(**arguments)
