"""Shared data. Matplotlib draws to files only."""

import os

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_digits

os.environ.setdefault("MPLBACKEND", "Agg")
settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")


@pytest.fixture(scope="session")
def digits():
    """The digits of the certificate: pixels in [0, 1] and a column of ones."""
    X, y = load_digits(return_X_y=True)
    return np.hstack([X / 16, np.ones((len(X), 1))]), y


@pytest.fixture
def bags():
    """Forty bags of one to five candidates, three classes, a planted candidate each: (Ragged, y, hidden)."""
    from tacit import Ragged

    rng = np.random.default_rng(7)
    sizes = rng.integers(1, 6, 40)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.standard_normal((offsets[-1], 4))
    y = np.array(["deer", "llama", "wolf"])[np.arange(40) % 3]
    hidden = rng.integers(sizes)
    values[offsets[:-1] + hidden, np.arange(40) % 3] += 3
    return Ragged(values, offsets), y, hidden
