"""Shared data, processes that may be killed, and one compilation for all workers. Matplotlib draws to files only."""

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import settings
from numba.core.dispatcher import Dispatcher
from sklearn.datasets import load_digits

os.environ.setdefault("MPLBACKEND", "Agg")
settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")


def pytest_configure(config):
    """Of workers that need the same kernel at once, the first compiles it; the others wait, and find it on the disk."""
    compile_here = Dispatcher.compile

    def compile_or_wait(self, signature):
        folder = self._cache.cache_path
        if folder is None:  # a function of Numba's own
            return compile_here(self, signature)
        with FileLock(Path(folder) / f"{self.py_func.__module__}.{self.py_func.__name__}.lock"):
            return compile_here(self, signature)

    if hasattr(config, "workerinput"):
        Dispatcher.compile = compile_or_wait


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


@pytest.fixture(scope="session")
def start_process():
    """Start a process that runs a script with some names defined, and may be killed.

    It is forked from one that has imported what scripts need, because that takes longer than what they do.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["numba", "sklearn.datasets", "tacit.datasets", "tacit.learners", "tacit.problems"])

    def start(script, **names):
        process = context.Process(target=exec, args=(script, names))
        process.start()
        return process

    return start


@pytest.fixture(autouse=True)
def _nobody_pressed_ctrl_c(monkeypatch):
    """The last press was long ago: a second one soon after it would end everything."""
    monkeypatch.setattr("tacit.runtime.loop._last_press", -np.inf)
