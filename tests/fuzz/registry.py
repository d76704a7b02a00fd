"""The targets by name, and which public names each of them covers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fuzz.draws import Draw

TARGETS: dict[str, Callable[[Draw], Any]] = {}
COVERED: set[str] = set()


def target(*covers: str):
    """Enter a function of a `Draw` into the list, with the public names that it calls."""

    def enter(function):
        TARGETS[function.__name__] = function
        COVERED.update(covers)
        return function

    return enter
