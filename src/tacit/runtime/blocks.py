"""Oracles that stand for others: their rows shared in blocks among threads, processes or workers; answers cached.

The result is the same to the bit for any ``n_jobs``. Rounding depends on the order of a sum, and the last bits of a
matrix product on its size. So the blocks depend on the data alone, never on how many workers share them; every block is
computed by the same calls; and sums of blocks are added in their order.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, cast

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from tacit.data.arrays import Array, Rows, span
from tacit.data.parameters import is_whole, shorten
from tacit.oracle import Assignment, CapabilityError, Oracle, capability, code_offsets, runs_python
from tacit.oracle.capabilities import DECLARED, CountsOperations, FusesPlanes, KnownPart, LivesOnWorkers
from tacit.oracle.sharing import Batch, Sharing, View

BLOCK_OPERATIONS = 6_000_000
"""Multiplications per block of rows, at least: about two milliseconds, thirty times the cost of a call."""

_block_operations = BLOCK_OPERATIONS

MAX_BLOCKS = 64
"""Blocks of rows at the most, as long as they have no more than `MAX_OPERATIONS`."""

_max_blocks = MAX_BLOCKS

MAX_OPERATIONS = 100_000_000
"""Multiplications per block at the most. Workers share a pass by blocks, and hundreds of them are for much data."""


MAX_ANSWERS = 3
"""Answers of `predict_augmented`, for all samples each, that are kept."""

MAX_JOBS = 1024
"""More processes would only wait for each other, and threads beyond the number of row blocks are never started."""


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
            from tacit.runtime.processes import on_processes

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


def map_threads(function: Callable[[Any], Any], items: Sequence[Any], n_jobs: int | None = None) -> Iterator[Any]:
    """The results of a function for every item, in order, by threads; only a few results wait at any time.

    >>> list(map_threads(abs, [-1, 2], n_jobs=2))
    [1, 2]
    """
    check_jobs(n_jobs)
    jobs = min(effective_n_jobs(n_jobs), len(items))
    if jobs <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(jobs) as pool:
        ahead: deque[Future[Any]] = deque()
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > jobs:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


class OracleProxy:
    """Stands for an oracle, some of whose members it answers in another way; functions return it as an `Oracle`.

    A member is looked up once and kept, so that asking again, in every step of a solver, costs what it costs to ask the
    oracle itself.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.n_samples = oracle.n_samples
        self.n_params = oracle.n_params
        self.innermost: Any = getattr(oracle, "innermost", oracle)
        """The oracle at the bottom, which `tacit.oracle.capability` asks what it offers."""

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or name.startswith("__"):
            raise AttributeError(name)
        member = self.__dict__[name] = getattr(self.oracle, name)
        return member


_OWN = ("oracle", "innermost")  # there before anything is looked up, except in a copy that is being made


class BlockOracle(OracleProxy, ABC):
    """An oracle whose batch methods are answered block by block; a subclass says by whom."""

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or name.startswith("__"):
            raise AttributeError(name)
        member = value = getattr(self.oracle, name)
        sharing = sharing_of(self.oracle, name)
        if name == "known_part":
            member = lambda: self._known_part(value())  # noqa: E731
        elif isinstance(sharing, View):
            member = lambda *positional, **named: self._view(value(*positional, **named))  # noqa: E731
        elif sharing is not None and not self._is_whole():
            member = partial(self._answer, name, sharing)
        self.__dict__[name] = member
        return member

    def _is_whole(self) -> bool:
        """Whether all rows are one block, so that there is nothing to share."""
        return False

    def _known_part(self, part: KnownPart | None) -> KnownPart | None:
        """The known part, shared in the same way where it is known of the same samples."""
        if part is None or part.oracle is not self.oracle:
            return part
        return part._replace(oracle=cast(Oracle, self))

    def _view(self, oracle: Oracle) -> Oracle:
        return cast(Oracle, self) if oracle is self.oracle else self._wrap(oracle)

    @abstractmethod
    def _wrap(self, oracle: Oracle) -> Oracle:
        """Another oracle of the same samples, shared in the same way."""

    @abstractmethod
    def _answer(self, name: str, batch: Batch, *positional: Any, **named: Any) -> Any:
        """The answer of a batch method, joined from those for its blocks."""


def sharing_of(oracle: Oracle, name: str) -> Sharing:
    """How a method is shared: as the oracle's ``batches`` say, or the protocol that it is of; an error where neither
    does. Members that are not methods are never shared."""
    own: Mapping[str, Batch | None] = getattr(oracle, "batches", {})
    if name in own:
        return own[name]
    if name in DECLARED or not callable(getattr(oracle, name)):
        return DECLARED.get(name)
    raise CapabilityError(
        f"{type(oracle).__name__}.{name} is missing from `batches`; "
        f"add to the oracle's class batches = {{{name!r}: tacit.runtime.Batch(...)}}, or None in its place to call "
        "it once for all samples"
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


class RowBlocks:
    """A call of a batch method, cut into blocks of rows.

    Parameters
    ----------
    oracle : whose method it is
    batch : how it is cut
    positional, named : the arguments of the call
    """

    def __init__(self, oracle: Oracle, batch: Batch, positional: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self.batch = batch
        self.arguments = dict(zip(batch.arguments, positional, strict=False)) | dict(named)
        self.rows: Rows = self.arguments.get("rows")
        if self.rows is None or isinstance(self.rows, slice):
            self.first, last = span(self.rows or slice(None), oracle.n_samples)
            self.n = last - self.first
        else:
            self.first, self.n = 0, len(self.rows)
        self._offsets = code_offsets(oracle)

    def cut(self, cuts: Sequence[int]) -> Iterator[dict[str, Any]]:
        """The arguments of the call for each block; ``cuts`` are positions among the rows of the call."""
        code_cuts = self._code_positions(cuts)
        for (a, b), (start, stop) in zip(pairwise(cuts), pairwise(code_cuts), strict=True):
            own = dict(self.arguments)
            consecutive = self.rows is None or isinstance(self.rows, slice)
            own["rows"] = slice(self.first + a, self.first + b) if consecutive else np.asarray(self.rows)[a:b]
            for name in self.batch.codes:
                if own.get(name) is not None:
                    own[name] = own[name][start:stop]
            for name in self.batch.per_row:
                if isinstance(own.get(name), np.ndarray) and own[name].ndim:
                    own[name] = own[name][a:b]
            yield own

    def indices(self) -> Array:
        """The samples of the call."""
        if self.rows is None or isinstance(self.rows, slice):
            return np.arange(self.first, self.first + self.n)
        return np.asarray(self.rows)

    def _code_positions(self, cuts: Sequence[int]) -> Sequence[int]:
        if self._offsets is None:
            return cuts
        lengths = np.diff(self._offsets)
        if self.rows is not None:
            lengths = lengths[self.rows]
        return [int(cut) for cut in np.concatenate([[0], np.cumsum(lengths)])[list(cuts)]]


@contextmanager
def smallest_blocks(most: int = MAX_BLOCKS) -> Iterator[None]:
    """Blocks of one row or a few as long as this lasts: for tests on few samples, which would be one block."""
    global _block_operations, _max_blocks
    before, _block_operations, _max_blocks = (_block_operations, _max_blocks), 1, most
    try:
        yield
    finally:
        _block_operations, _max_blocks = before


def block_cuts(oracle: Oracle, n_rows: int) -> list[int]:
    """Where the blocks of a call for so many rows begin, and where the last ends. It depends on the data alone."""
    share = n_rows / max(oracle.n_samples, 1)
    total = share * operations(oracle)
    n_blocks = max(int(min(max(min(total // _block_operations, _max_blocks), total // MAX_OPERATIONS), n_rows)), 1)
    return [n_rows * block // n_blocks for block in range(n_blocks + 1)]


def operations(oracle: Oracle) -> float:
    """Multiplications of one pass over all samples, roughly: what the oracle says, or one per weight and sample."""
    counting = capability(oracle, CountsOperations)
    return float(oracle.n_samples * oracle.n_params if counting is None else counting.operations)


def cache_answers(oracle: Oracle) -> Oracle:
    """The same oracle, with the latest `MAX_ANSWERS` answers of `predict_augmented` for all samples in a cache.

    A descent asks for the same w several times: at the end of a convex task, for the true objective, and at the start
    of the next task. Every task asks at w = 0, whose answer always stays.
    """
    return cast(Oracle, CachedOracle(oracle))


class CachedOracle(OracleProxy):
    """See `cache_answers`."""

    def __init__(self, oracle: Oracle) -> None:
        super().__init__(oracle)
        self._answers: dict[bytes, Assignment] = {}
        fusing = capability(oracle, FusesPlanes)
        if fusing is not None:
            self.tangent = partial(self._tangent, fusing.tangent)

    def predict_augmented(self, w: Array, rows: Rows = None, **asked: Any) -> Assignment:
        if rows is not None or asked:
            return self.oracle.predict_augmented(w, rows, **asked)
        answer = self._answers.get(_key(w))
        return self._remember(w, self.oracle.predict_augmented(w) if answer is None else answer)

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
