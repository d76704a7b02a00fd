"""Drawn digits: seeded, readable, and rotated by the angles that they tell."""

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
    X, _, angles = drawn_digits(200, side=40, max_angle=60)
    assert X.shape == (200, 40, 40)
    assert X.min() == 0
    assert X.max() == 1
    edge = np.ones((40, 40), dtype=bool)
    edge[1:-1, 1:-1] = False
    assert X[:, edge].max() == 0
    assert np.abs(angles).max() <= 60
    assert np.abs(angles).max() > 50


def test_a_rotation_by_minus_the_angle_brings_a_digit_upright():
    upright = drawn_digits(300, max_angle=0)
    assert not upright.angles.any()
    rotated = drawn_digits(300, max_angle=60, seed=2)
    back = np.array([rotate(x, -a, reshape=False, order=1) for x, a in zip(rotated.X, rotated.angles, strict=True)])
    model = StructuredSVM(Multiclass(), C=10).fit(upright.X.reshape(300, -1), upright.y)
    assert model.score(back.reshape(300, -1), rotated.y) > 0.95
    assert model.score(rotated.X.reshape(300, -1), rotated.y) < 0.8
    quarter = rotations(-90, -90, 1).rotate(back[:1])[0, 0]  # both count angles the same way
    np.testing.assert_allclose(quarter, rotate(back[0], -90, reshape=False, order=1), atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "keyword"),
    [
        ({"n": 0}, "n=0"),
        ({"n": 2.5}, "n=2.5"),
        ({"n": 5, "side": 8}, "side=8"),
        ({"n": 5, "max_angle": 200}, "max_angle"),
        ({"n": 5, "max_angle": np.nan}, "max_angle"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, keyword):
    with pytest.raises(ValueError, match=keyword):
        drawn_digits(**arguments)
