"""Row shards on processes: for oracles that run Python functions, which hold the interpreter lock."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor
from joblib.externals.loky.backend.reduction import dumps  # by value: functions may be lambdas

from tacit.arrays import Array, Rows, span
from tacit.oracle import Assignment

START_AFTER = 3.0
"""Seconds of work after which workers are started: about what starting them takes (2.5 s for two on the test machine,
nearly all of it imports), so waiting never costs more than twice the best choice, and short fits never start any."""

LEAST_WORK = 0.01
"""Seconds of work below which a call stays in this process: sending it around takes a few milliseconds (22 ms of work
on two processes took 15 ms)."""


@contextmanager
def on_processes(oracle: Any, jobs: int) -> Iterator[Processes]:
    """The rows of an oracle in shards, one a process; the processes end with the block, at once after an error."""
    shards = Processes(oracle, jobs)
    try:
        yield shards
    except BaseException:
        shards.close(at_once=True)
        raise
    shards.close()


class Processes:
    """An oracle that hands consecutive shards of its rows to worker processes, where that pays.

    Each worker gets the samples of its shard once, when it starts, and builds its own oracle from them; after that
    weights, codes and sums of features travel. Work is done in this process until it took `START_AFTER` seconds, and
    calls of little work always are. Results are the same bit by bit in any case: answers come home in the order of the
    rows, and features are summed in blocks that do not depend on the number of workers.

    The oracle must offer `recipe` (how a worker builds its part) and `block_features`; if it numbers outputs as it
    meets them, also `news` and `learn`, which keep the numbering the same everywhere. Functions may be lambdas. Views
    (`with_hidden`, `with_loss`) work in this process.

    Parameters
    ----------
    oracle : the oracle of all rows
    jobs : processes at the most
    start_after, least_work : see the constants of this module
    """

    def __init__(
        self, oracle: Any, jobs: int, start_after: float | None = None, least_work: float | None = None
    ) -> None:
        self.oracle = oracle
        self.n_samples = oracle.n_samples
        self.n_params = oracle.n_params
        self._start_after = START_AFTER if start_after is None else start_after
        self._least_work = LEAST_WORK if least_work is None else least_work
        self._cuts = _shard_cuts(oracle, jobs)
        self._workers: list[ProcessPoolExecutor] = []
        self._told = [0] * (len(self._cuts) - 1)  # how much of the oracle's news each worker has
        self._spent, self._rows = 0.0, 0
        self._may_start = len(self._cuts) > 2
        self._lock = threading.RLock()  # numbers of outputs agree everywhere only if calls come one after the other

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "oracle":
            raise AttributeError(name)
        return getattr(self.oracle, name)

    def exact(self) -> Any:
        exact = self.oracle.exact()
        return self if exact is self.oracle else exact

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._assign("predict", w, rows)

    def impute(self, w: Array, rows: Rows = None, prefer: Array | None = None) -> Assignment:
        return self._assign("impute", w, rows, prefer=prefer)

    def augmented(
        self,
        w: Array,
        rows: Rows = None,
        *,
        target: Array | None = None,
        rescaling: str = "margin",
        rivals: bool = False,
    ) -> Assignment:
        return self._assign("augmented", w, rows, options={"rescaling": rescaling, "rivals": rivals}, target=target)

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        with self._lock:
            parts = self._share("score", rows, lambda own: ((w, code[own]), {}))
        return np.asarray(self.oracle.score(w, code, rows) if parts is None else np.concatenate(parts))

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        with self._lock:
            parts = self._share("block_features", rows, lambda own: ((code[own], coef[own]), {}))
        if parts is None:
            return np.asarray(self.oracle.features(code, coef, rows))
        total = np.zeros(self.n_params)
        for block in (block for part in parts for block in part):
            total += block
        return total

    def close(self, at_once: bool = False) -> None:
        """End the workers; after that all work is done in this process."""
        workers, self._workers, self._may_start = self._workers, [], False
        for worker in workers:
            worker.shutdown(wait=True, kill_workers=at_once)

    def _assign(
        self, method: str, w: Array, rows: Rows, options: dict[str, Any] | None = None, **codes: Array | None
    ) -> Assignment:
        options = options or {}

        def arguments(own: slice) -> tuple[tuple[Any, ...], dict[str, Any]]:
            return (w,), {**options, **{k: None if code is None else code[own] for k, code in codes.items()}}

        with self._lock:
            parts = self._share(method, rows, arguments)
            if parts is not None:
                return Assignment(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
            began = time.perf_counter()
            answer: Assignment = getattr(self.oracle, method)(w, rows, **options, **codes)
            self._spent += time.perf_counter() - began
            self._rows += len(answer.value)
            return answer

    def _share(
        self, method: str, rows: Rows, arguments: Callable[[slice], tuple[tuple[Any, ...], dict[str, Any]]]
    ) -> list[Any] | None:
        """The answers of the shards in order; None where the call is better done here."""
        if rows is None or isinstance(rows, slice):
            wanted = np.arange(*span(rows or slice(None), self.n_samples))
        else:
            wanted = np.asarray(rows)
        work = wanted.size * self._spent / max(self._rows, 1)
        if not wanted.size or work < self._least_work:
            return None
        if self._may_start and self._spent >= self._start_after:
            self._start()
        if not self._workers:
            return None
        places = np.searchsorted(wanted, self._cuts)
        try:
            futures = []
            for k, (a, b) in enumerate(pairwise(places)):
                if b > a:
                    positional, named = arguments(slice(int(a), int(b)))
                    call = method, positional, named, wanted[a:b] - self._cuts[k], self._told_to(k)
                    futures.append((k, self._workers[k].submit(_work, call)))
            return [self._heard_from(k, future.result()) for k, future in futures]
        except BrokenProcessPool as error:
            self.close(at_once=True)
            warnings.warn(f"a worker process died ({error}); going on in one process", RuntimeWarning, stacklevel=5)
            return None
        except BaseException:  # a worker may be busy, or know outputs that this process does not
            self.close(at_once=True)
            raise

    def _start(self) -> None:
        self._may_start = False
        try:
            recipes = [bytes(dumps(self.oracle.recipe(first, last))) for first, last in pairwise(self._cuts.tolist())]
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            warnings.warn(
                f"the samples or functions cannot be sent to other processes ({error}); going on in one process",
                RuntimeWarning,
                stacklevel=6,
            )
            return
        for recipe in recipes:
            self._workers.append(ProcessPoolExecutor(1, initializer=_prepare, initargs=(recipe,), timeout=None))

    def _told_to(self, k: int) -> bytes | None:
        """What a worker has to learn of outputs that were first met elsewhere."""
        if not hasattr(self.oracle, "news"):
            return None
        first, last = self._cuts[k], self._cuts[k + 1]
        news, self._told[k] = self.oracle.news(self._told[k])
        own = [(i - int(first), *rest) for i, *rest in news if first <= i < last]
        return bytes(dumps(own)) if own else None

    def _heard_from(self, k: int, answer: bytes) -> Any:
        result, news = pickle.loads(answer)
        if news:
            self.oracle.learn(news, int(self._cuts[k]))
        return result


def _shard_cuts(oracle: Any, jobs: int) -> Array:
    """Where shards begin: at blocks in which the oracle sums features, about equally many rows each."""
    blocks = oracle.block_starts()
    ideal = np.linspace(0, oracle.n_samples, jobs + 1)
    return np.unique(blocks[np.abs(blocks[:, None] - ideal).argmin(axis=0)])


_oracle: Any = None  # of this worker
_known = 0


def _prepare(recipe: bytes) -> None:
    """Build the worker's oracle. Ctrl-C is for the process that waits: it ends the workers."""
    global _oracle, _known
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    threadpool_limits(1)
    _oracle = pickle.loads(recipe)()
    _known = 0


def _end_with(parent: int) -> None:
    """A worker whose parent was killed, or interrupted twice, must not stay."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _work(call: tuple[str, tuple[Any, ...], dict[str, Any], Array, bytes | None]) -> bytes:
    """Answer one call, and tell which outputs were met for the first time."""
    global _known
    method, positional, named, rows, news = call
    if news is not None:
        _oracle.learn(pickle.loads(news))
    if hasattr(_oracle, "news"):
        _known = _oracle.news(_known)[1]
    if method in ("score", "block_features"):
        result = getattr(_oracle, method)(*positional, rows)
    else:
        result = getattr(_oracle, method)(*positional, rows, **named)
    met = _oracle.news(_known)[0] if hasattr(_oracle, "news") else []
    return bytes(dumps((result, met)))
