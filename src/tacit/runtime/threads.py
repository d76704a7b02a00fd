"""Blocks of rows shared among threads: compiled kernels and matrix products release the interpreter lock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from tacit.data.parameters import is_whole, shorten
from tacit.oracle import Oracle, capability, runs_python
from tacit.oracle.capabilities import LivesOnWorkers
from tacit.oracle.sharing import Batch
from tacit.runtime.blocks import BlockOracle, RowBlocks, block_cuts
from tacit.runtime.processes import on_processes

MAX_JOBS = 1024
"""More processes would only wait for each other, and threads beyond the number of row blocks are never started."""


class _OneBlasThread:
    """Keeps BLAS on one thread while entered. The setting is one per process, so entries are counted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limits: Any = None
        self.threads_before = 1

    def __enter__(self) -> None:
        with self._lock:
            if self._holders == 0:
                self.threads_before = max(self._controller.info_threads(), 1)
                self._limits = self._controller.limit(limits=1, user_api="blas")
            self._holders += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._limits.restore_original_limits()

    @cached_property
    def _controller(self) -> _Controller:
        return _Controller()


class _Controller(ThreadpoolController):  # type: ignore[misc]
    """The BLAS libraries of the process, found once: finding them takes a millisecond, setting their threads 10 µs."""

    def __init__(self) -> None:
        import scipy.linalg  # noqa: F401  (so that its library is among those found)

        super().__init__()

    def info_threads(self) -> int:
        """The threads that BLAS may use now."""
        counts = [library.num_threads for library in self.lib_controllers if library.user_api == "blas"]
        return max(counts, default=1)


one_blas_thread = _OneBlasThread()


@contextmanager
def parallel(oracle: Oracle, n_jobs: int | None) -> Iterator[Oracle]:
    """The oracle with its rows cut into blocks that ``n_jobs`` threads share; the same bits for any number of them.

    None stands for as many threads as BLAS would use. BLAS itself runs on one thread meanwhile, because its own threads
    change the last bits and gain less. Oracles that run Python functions (`tacit.oracle.capabilities.RunsElsewhere`)
    get processes instead, once these pay; those whose rows are on the workers of a cluster are answered there.
    """
    check_jobs(n_jobs)
    with one_blas_thread:
        remote = capability(oracle, LivesOnWorkers)
        if remote is not None and remote.on_workers is not None:
            yield remote.on_workers(oracle)
            return
        if runs_python(oracle):
            jobs = 1 if n_jobs is None else effective_n_jobs(int(n_jobs))
            with on_processes(oracle, jobs) as shared:
                yield shared
            return
        threads = one_blas_thread.threads_before if n_jobs is None else effective_n_jobs(int(n_jobs))
        blocks = len(block_cuts(oracle, oracle.n_samples)) - 1
        if min(threads, blocks) == 1:
            yield cast(Oracle, Threaded(oracle, None))
            return
        with ThreadPoolExecutor(min(threads, blocks)) as pool:
            yield cast(Oracle, Threaded(oracle, pool))


def check_jobs(n_jobs: Any) -> None:
    """Refuse a parameter ``n_jobs`` that is neither None nor a number of threads."""
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0 or n_jobs > MAX_JOBS):
        raise ValueError(
            f"n_jobs must be None or a whole number other than 0 (-1 for all cores), at most {MAX_JOBS}, got "
            f"n_jobs={shorten(n_jobs)}"
        )


class Threaded(BlockOracle):
    """An oracle whose batch methods run block by block, on the threads of a pool if there is one."""

    def __init__(self, oracle: Oracle, pool: ThreadPoolExecutor | None) -> None:
        super().__init__(oracle)
        self._pool = pool
        self._whole = len(block_cuts(oracle, oracle.n_samples)) == 2

    def _is_whole(self) -> bool:
        return self._whole

    def _wrap(self, oracle: Oracle) -> Oracle:
        return cast(Oracle, Threaded(oracle, self._pool))

    def _answer(self, name: str, batch: Batch, *positional: Any, **named: Any) -> Any:
        method = getattr(self.oracle, name)
        call = RowBlocks(self.oracle, batch, positional, named)
        cuts = block_cuts(self.oracle, call.n)
        if len(cuts) == 2:
            return method(*positional, **named)
        blocks = call.cut(cuts)
        if self._pool is None:
            return batch.join([method(**block) for block in blocks])
        return batch.join(list(self._pool.map(lambda block: method(**block), blocks)))
