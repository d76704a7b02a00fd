"""An oracle with a cache of its latest answers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from tacit.arrays import Array, Rows
from tacit.oracle.contracts import Assignment, Oracle

MAX_ANSWERS = 3
"""Answers of `augmented`, for all samples each, that are kept."""


class CachedOracle:
    """The same oracle, with the latest `MAX_ANSWERS` answers of `augmented` for all samples in a cache.

    A descent solves one convex task after the other, and asks for the same w again and again: at the end of a task, for
    the true objective, and at the start of the next task; and in every task at w = 0, whose answer always stays.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.n_samples = oracle.n_samples
        self.n_params = oracle.n_params
        self._answers: dict[bytes, Assignment] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "oracle":
            raise AttributeError(name)
        return getattr(self.oracle, name)

    def augmented(self, w: Array, rows: Rows = None, **asked: Any) -> Assignment:
        if rows is not None or asked:
            return self.oracle.augmented(w, rows, **asked)
        key = w.tobytes() if w.any() else b""
        answer = self._answers.pop(key, None)
        if answer is None:
            answer = self.oracle.augmented(w)
        self._answers[key] = answer  # the latest comes last
        if len(self._answers) > MAX_ANSWERS:
            del self._answers[next(old for old in self._answers if old)]
        return answer

    def exact(self) -> Any:
        return self if self.oracle.exact() is self.oracle else self._exact

    @cached_property
    def _exact(self) -> CachedOracle:
        return CachedOracle(self.oracle.exact())
