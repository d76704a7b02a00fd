"""For all tests, those in docstrings too."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _close_figures():
    """Pictures of one test are gone before the next: matplotlib warns of too many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
