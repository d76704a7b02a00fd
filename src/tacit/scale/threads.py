"""Row shards on threads: compiled kernels and matrix products release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from tacit.arrays import Array, Rows
from tacit.oracle import Assignment, Oracle

T = TypeVar("T")


@contextmanager
def sharded(oracle: Oracle, n_jobs: int | None) -> Iterator[Any]:
    """The oracle itself for one job; otherwise its rows in shards, one a thread, and BLAS on one thread in each."""
    threads = effective_n_jobs(n_jobs) if n_jobs is not None else 1
    if threads == 1:
        yield oracle
        return
    with ThreadPoolExecutor(threads) as pool, threadpool_limits(1, user_api="blas"):
        yield Threaded(oracle, pool, threads)


class Threaded:
    """An oracle that splits the rows of every call into consecutive shards and puts the answers together in order.

    Sums are added in the order of the shards, so a result does not depend on which thread ends first. What is not a
    batch call (`encode`, `decode`, ...) goes to the oracle itself.
    """

    def __init__(self, oracle: Oracle, pool: ThreadPoolExecutor, shards: int) -> None:
        self.oracle = oracle
        self.n_samples = oracle.n_samples
        self.n_params = oracle.n_params
        self._pool = pool
        self._shards = shards

    def __getattr__(self, name: str) -> Any:
        return getattr(self.oracle, name)

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return _joined(self._map(rows, lambda part, own: self.oracle.predict(w, part)))

    def impute(self, w: Array, rows: Rows = None, prefer: Array | None = None) -> Assignment:
        return _joined(
            self._map(rows, lambda part, own: self.oracle.impute(w, part, None if prefer is None else prefer[own]))
        )

    def augmented(
        self,
        w: Array,
        rows: Rows = None,
        *,
        target: Array | None = None,
        rescaling: str = "margin",
        rivals: bool = False,
    ) -> Assignment:
        def one(part: Rows, own: slice) -> Assignment:
            aim = None if target is None else target[own]
            return self.oracle.augmented(w, part, target=aim, rescaling=rescaling, rivals=rivals)

        return _joined(self._map(rows, one))

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        return np.concatenate(self._map(rows, lambda part, own: self.oracle.score(w, code[own], part)))

    def loss(self, code: Array, rows: Rows = None) -> Array:
        return self.oracle.loss(code, rows)

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        parts = self._map(rows, lambda part, own: self.oracle.features(code[own], coef[own], part))
        return np.asarray(np.sum(parts, axis=0))

    def _map(self, rows: Rows, one: Callable[[Rows, slice], T]) -> list[T]:
        """``one(rows of the shard, their places in the answer)`` for every shard, results in order."""
        if rows is None or isinstance(rows, slice):
            first, last, _ = (rows or slice(None)).indices(self.n_samples)
        else:
            first, last = 0, len(rows)
        cuts = np.linspace(first, last, self._shards + 1).astype(int)
        spans = [(a, b) for a, b in pairwise(cuts) if b > a] or [(first, last)]

        def call(span: tuple[int, int]) -> T:
            a, b = span
            part = slice(a, b) if rows is None or isinstance(rows, slice) else rows[a:b]
            return one(part, slice(a - first, b - first))

        return list(self._pool.map(call, spans))


def _joined(parts: list[Assignment]) -> Assignment:
    return Assignment(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
