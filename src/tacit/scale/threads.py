"""Row shards on threads: compiled kernels and matrix products release the interpreter lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from tacit.arrays import Array, Rows, span
from tacit.oracle import Assignment, Oracle
from tacit.parameters import is_whole, shorten
from tacit.scale.processes import on_processes

T = TypeVar("T")

MAX_THREADS = 1024
"""More would only wait for each other, and cost the memory of their stacks."""


class _OneBlasThread:
    """BLAS on one thread as long as anybody holds this; the setting belongs to the process, so holders are counted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._limits = threadpool_limits(1, user_api="blas")
            self._holders += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._limits.restore_original_limits()


_one_blas_thread = _OneBlasThread()


@contextmanager
def sharded(oracle: Oracle, n_jobs: int | None) -> Iterator[Any]:
    """The oracle itself for one job; otherwise its rows in shards, one a thread, and BLAS on one thread in each.

    Oracles that say that they run Python functions (``runs_python``) get processes instead, once that pays.
    """
    threads = count_threads(n_jobs)
    if threads == 1:
        yield oracle
        return
    if getattr(oracle, "runs_python", False):
        with on_processes(oracle, threads) as shards:
            yield shards
        return
    with ThreadPoolExecutor(threads) as pool, _one_blas_thread:
        yield Threaded(oracle, pool, threads)


def count_threads(n_jobs: Any) -> int:
    """How many threads or processes ``n_jobs`` asks for: None for one, −1 for as many as there are cores."""
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs) or n_jobs == 0 or n_jobs > MAX_THREADS:
        raise ValueError(
            f"n_jobs must be None or a whole number other than 0 (-1 for all cores), at most {MAX_THREADS}, got "
            f"n_jobs={shorten(n_jobs)}"
        )
    return int(effective_n_jobs(int(n_jobs)))


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
        if name.startswith("__") or name == "oracle":
            raise AttributeError(name)
        method = getattr(self.oracle, name)
        return self._sum_differences if name == "difference" else method

    def _sum_differences(self, code: Array, target: Array, coef: Array, rows: Rows = None) -> Array:
        def one(part: Rows, own: slice) -> Array:
            parts = (self.cut(output, rows, own) for output in (code, target))
            return np.asarray(self.oracle.difference(*parts, coef[own], part))  # type: ignore[attr-defined]

        return np.asarray(np.sum(self._map(rows, one), axis=0))

    def cut(self, code: Array, rows: Rows, own: slice) -> Array:
        """The part of a code of ``rows`` that belongs to the consecutive ``own`` of them."""
        offsets = getattr(self.oracle, "code_offsets", None)
        if offsets is None:
            return code[own]
        lengths = np.diff(offsets)[slice(None) if rows is None else rows]
        return code[int(lengths[: own.start].sum()) : int(lengths[: own.stop].sum())]

    def exact(self) -> Threaded:
        return self._of(self.oracle.exact())

    def with_hidden(self, hidden: Array | None) -> Threaded:
        return self._of(self.oracle.with_hidden(hidden))

    def with_loss(self, losses: Any) -> Threaded:
        return self._of(self.oracle.with_loss(losses))

    def measured_against(self, code: Array) -> Threaded:
        return self._of(self.oracle.measured_against(code))  # type: ignore[attr-defined]

    def _of(self, oracle: Oracle) -> Threaded:
        return self if oracle is self.oracle else Threaded(oracle, self._pool, self._shards)

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return _joined(self._map(rows, lambda part, own: self.oracle.predict(w, part)))

    def impute(self, w: Array, rows: Rows = None, prefer: Array | None = None) -> Assignment:
        def one(part: Rows, own: slice) -> Assignment:
            return self.oracle.impute(w, part, None if prefer is None else self.cut(prefer, rows, own))

        return _joined(self._map(rows, one))

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
            aim = None if target is None else self.cut(target, rows, own)
            return self.oracle.augmented(w, part, target=aim, rescaling=rescaling, rivals=rivals)

        return _joined(self._map(rows, one))

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        parts = self._map(rows, lambda part, own: self.oracle.score(w, self.cut(code, rows, own), part))
        return np.concatenate(parts)

    def loss(self, code: Array, rows: Rows = None) -> Array:
        return self.oracle.loss(code, rows)

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        parts = self._map(rows, lambda part, own: self.oracle.features(self.cut(code, rows, own), coef[own], part))
        return np.asarray(np.sum(parts, axis=0))

    def _map(self, rows: Rows, one: Callable[[Rows, slice], T]) -> list[T]:
        """``one(rows of the shard, their places in the answer)`` for every shard, results in order."""
        if rows is None or isinstance(rows, slice):
            first, last = span(rows or slice(None), self.n_samples)
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
