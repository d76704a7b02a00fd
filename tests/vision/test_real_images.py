"""The readers on the real data, where TACIT_DATA names a folder that has them."""

import os
from pathlib import Path

import numpy as np
import pytest

from tacit import LatentSVM, windows
from tacit.datasets import boxes_csv, find_folder, image_folder, image_size, mammals, mnist
from tacit.problems import Candidates
from tacit.vision.boxes import nearest

DATA = Path(os.environ.get("TACIT_DATA", "nowhere"))


def needs(name):
    return pytest.mark.skipif(not (DATA / name).is_dir(), reason=f"TACIT_DATA does not name a folder with {name!r}")


@needs("mammals")
def test_mammals_are_all_there():
    data = mammals()
    assert len(data.X) == len(data.y) == 271
    assert data.X.values.shape == (8026, 1488)
    assert len(np.unique(data.y)) == 6
    assert (data.is_test.mean(axis=0) < 0.11).all()
    assert data.is_test.any(axis=0).all()


@needs("mammals")
def test_mammals_end_where_they_are_reported_to():
    data = mammals()
    train = ~data.is_test[:, 0]
    settings = {"C": 10.0, "tol": 1e-2, "random_state": 0}
    model, smooth = (
        LatentSVM(Candidates(fit_intercept=False), init=init, **settings).fit(data.X[train], data.y[train])
        for init in ("hidden", "auto")
    )
    assert abs(model.objective_ - 4.70) < 0.33  # Kumar (2013), table 2.2: 4.70 with a standard deviation of 0.11
    assert model.score(data.X[train], data.y[train]) > 0.98
    assert smooth.objective_ < 4.45  # below that of self-paced learning there, 4.53


@needs("mnist")
def test_digits_are_all_there():
    X, y = mnist(part="test")
    assert X.shape == (10_000, 28, 28)
    assert np.bincount(y).min() == 892  # fives, the rarest (LeCun & Cortes)
    assert len(mnist(digits=(1, 7)).y) == 6742 + 6265


@needs("pets")
def test_windows_cover_the_boxes_of_pets():
    folder = find_folder(None, "pets")
    table = boxes_csv(folder / "boxes.csv")
    assert len(table.files) == len(image_folder(folder).files) == 480
    assert [image_size(folder / file) for file in table.files[:5]] == [tuple(size) for size in table.sizes[:5]]
    bags = windows([folder / file for file in table.files[:6]], [(48, 48), (96, 96)], 8)
    assert nearest(bags, table.boxes[:6]).overlap.mean() > 0.5
    assert np.isfinite(bags.values).all()
