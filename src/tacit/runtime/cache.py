"""An oracle with a cache of its latest answers."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, cast

from tacit.data.arrays import Array, Rows
from tacit.oracle import Assignment, Oracle
from tacit.runtime.blocks import OracleProxy

MAX_ANSWERS = 3
"""Answers of `augmented`, for all samples each, that are kept."""


def cache_answers(oracle: Oracle) -> Oracle:
    """The same oracle, with the latest `MAX_ANSWERS` answers of `augmented` for all samples in a cache.

    A descent solves one convex task after the other, and asks for the same w again and again: at the end of a task, for
    the true objective, and at the start of the next task; and in every task at w = 0, whose answer always stays.
    """
    return cast(Oracle, CachedOracle(oracle))


class CachedOracle(OracleProxy):
    """See `cache_answers`."""

    def __init__(self, oracle: Oracle) -> None:
        super().__init__(oracle)
        self._answers: dict[bytes, Assignment] = {}

    def _member(self, name: str, value: Any) -> Any:
        return partial(self._tangent, value) if name == "tangent" else value

    def augmented(self, w: Array, rows: Rows = None, **asked: Any) -> Assignment:
        if rows is not None or asked:
            return self.oracle.augmented(w, rows, **asked)
        answer = self._answers.get(_key(w))
        return self._remember(w, self.oracle.augmented(w) if answer is None else answer)

    def _tangent(self, ask: Any, w: Array, weights: Array, target: Array, rescaling: str) -> tuple[Assignment, Array]:
        """See `tacit.oracle.capabilities.FusesPlanes`: the answer that comes with a plane is remembered too."""
        best, gradient = ask(w, weights, target, rescaling)
        return (self._remember(w, best) if rescaling == "margin" else best), gradient

    def _remember(self, w: Array, answer: Assignment) -> Assignment:
        self._answers.pop(_key(w), None)
        self._answers[_key(w)] = answer  # the latest comes last
        if len(self._answers) > MAX_ANSWERS:
            del self._answers[next(old for old in self._answers if old)]
        return answer

    def exact(self) -> Oracle:
        return cast(Oracle, self) if self.oracle.exact() is self.oracle else self._exact

    @cached_property
    def _exact(self) -> Oracle:
        return cache_answers(self.oracle.exact())


def _key(w: Array) -> bytes:
    return w.tobytes() if w.any() else b""
