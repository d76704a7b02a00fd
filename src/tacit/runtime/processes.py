"""Rows shared among processes: for oracles that run Python functions, which hold the interpreter lock."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, cast

import numpy as np
from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor
from joblib.externals.loky.backend.reduction import dumps  # by value: functions may be lambdas

from tacit.data.arrays import Array
from tacit.oracle import Oracle, capability
from tacit.oracle.capabilities import NumbersOutputs, RunsElsewhere
from tacit.oracle.sharing import Batch, join_arrays, join_tuples
from tacit.runtime.blocks import BlockOracle, RowBlocks

START_AFTER = 3.0
"""Seconds of work after which workers are started. Starting them takes about as long (2.5 s for two on the test
machine, nearly all of it imports). So waiting costs at most twice the best choice, and short fits start no workers."""

LEAST_WORK = 0.01
"""Seconds of work below which a call stays in this process: sending it around takes a few milliseconds (22 ms of work
on two processes took 15 ms)."""

LOOK_UPS = ("loss", "label_scores", "best_hidden")
"""Methods that call the user's functions rarely or never: they are answered in this process."""


@contextmanager
def on_processes(oracle: Oracle, jobs: int) -> Iterator[Oracle]:
    """The rows of an oracle shared among processes, which end with the context, at once after an error."""
    processes = Processes(oracle, jobs)
    try:
        yield cast(Oracle, processes)
    except BaseException:
        processes.close(at_once=True)
        raise
    processes.close()


class Processes(BlockOracle):
    """An oracle that hands consecutive parts of its rows to worker processes, where that pays.

    Each worker gets the samples of its part once, when it starts, and builds its own oracle from them. After that only
    weights, codes and sums of features are sent. Work is done in this process until it took `START_AFTER` seconds;
    calls of little work always are. The results are the same to the bit in any case: answers are joined in the order of
    the rows, and sums are taken over blocks that do not depend on the number of workers.

    The oracle must be a `tacit.oracle.capabilities.RunsElsewhere`. One that numbers outputs as they occur must also be
    a `NumbersOutputs`, which keeps the numbering the same in all processes. Functions may be lambdas. Views
    (`with_hidden`, `with_loss`) work in this process.

    Parameters
    ----------
    oracle : the oracle of all rows
    jobs : processes at the most
    start_after, least_work : see the constants of this module
    """

    def __init__(
        self, oracle: Oracle, jobs: int, start_after: float | None = None, least_work: float | None = None
    ) -> None:
        super().__init__(oracle)
        self._start_after = START_AFTER if start_after is None else start_after
        self._least_work = LEAST_WORK if least_work is None else least_work
        self._runner = cast(RunsElsewhere, oracle)
        self._blocks = self._runner.block_starts()
        self._cuts = _worker_cuts(self._blocks, oracle.n_samples, jobs)
        self._workers: list[ProcessPoolExecutor] = []
        self._n_sent = [0] * (len(self._cuts) - 1)  # how many of the oracle's numbered outputs each worker knows
        self._spent, self._rows = 0.0, 0
        self._may_start = len(self._cuts) > 2
        self._lock = threading.RLock()  # numbers of outputs agree everywhere only if calls come one after the other

    def _wrap(self, oracle: Oracle) -> Oracle:
        return oracle

    def close(self, at_once: bool = False) -> None:
        """End the workers; after that all work is done in this process."""
        workers, self._workers, self._may_start = self._workers, [], False
        for worker in workers:
            worker.shutdown(wait=True, kill_workers=at_once)

    def _answer(self, name: str, batch: Batch, *positional: Any, **named: Any) -> Any:
        call = RowBlocks(self.oracle, batch, positional, named)
        cuts = np.unique(np.searchsorted(call.indices(), self._blocks)) if call.n else np.array([0, 0])
        with self._lock:
            if name not in LOOK_UPS and call.n:
                parts = self._share(name, call, cuts)
                if parts is not None:
                    return batch.join(parts)
            began = time.perf_counter()
            answer = self._answer_here(name, batch, call, cuts)
            if batch.join is join_tuples:
                self._spent += time.perf_counter() - began
                self._rows += call.n
            return answer

    def _answer_here(self, name: str, batch: Batch, call: RowBlocks, cuts: Array) -> Any:
        method = getattr(self.oracle, name)
        if batch.join in (join_arrays, join_tuples):  # one after the other, in whatever pieces: the same bits
            return method(**call.arguments)
        return batch.join([method(**block) for block in call.cut(cuts.tolist())])

    def _share(self, name: str, call: RowBlocks, cuts: Array) -> list[Any] | None:
        """The answers for all blocks in order; None where the call is better done here."""
        if call.n * self._spent / max(self._rows, 1) < self._least_work:
            return None
        if self._may_start and self._spent >= self._start_after:
            self._start()
        if not self._workers:
            return None
        wanted = call.indices()
        blocks: list[list[dict[str, Any]]] = [[] for _ in self._workers]
        for first, block in zip(cuts[:-1], call.cut(cuts.tolist()), strict=True):
            k = int(np.searchsorted(self._cuts, wanted[first], side="right")) - 1
            block["rows"] = RowBlocks(self.oracle, call.batch, (), block).indices() - self._cuts[k]
            blocks[k].append(block)
        try:
            futures = [
                (k, self._workers[k].submit(_work, (name, own, self._outputs_for(k))))
                for k, own in enumerate(blocks)
                if own
            ]
            return [part for k, future in futures for part in self._take_in(k, future.result())]
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
            recipes = [bytes(dumps(self._runner.recipe(first, last))) for first, last in pairwise(self._cuts.tolist())]
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            warnings.warn(
                f"the samples or functions cannot be sent to other processes ({error}); going on in one process",
                RuntimeWarning,
                stacklevel=6,
            )
            return
        for recipe in recipes:
            self._workers.append(ProcessPoolExecutor(1, initializer=_prepare, initargs=(recipe,), timeout=None))

    def _outputs_for(self, k: int) -> bytes | None:
        """Outputs of worker k's samples that were numbered in another process and that it does not know yet."""
        numbering = capability(self.oracle, NumbersOutputs)
        if numbering is None:
            return None
        first, last = self._cuts[k], self._cuts[k + 1]
        found, self._n_sent[k] = numbering.outputs_since(self._n_sent[k])
        own = [(i - int(first), *rest) for i, *rest in found if first <= i < last]
        return bytes(dumps(own)) if own else None

    def _take_in(self, k: int, answer: bytes) -> list[Any]:
        """The parts of worker k's answer; outputs that it numbered are numbered here too."""
        parts, found = pickle.loads(answer)
        numbering = capability(self.oracle, NumbersOutputs)
        if found and numbering is not None:
            numbering.register_outputs(found, int(self._cuts[k]))
        return list(parts)


def _worker_cuts(blocks: Array, n: int, jobs: int) -> Array:
    """Where the rows of workers begin: at blocks in which features are summed, with about equally many rows each."""
    ideal = np.linspace(0, n, jobs + 1)
    return np.unique(blocks[np.abs(blocks[:, None] - ideal).argmin(axis=0)])


_oracle: Any = None  # of this worker
_known = 0


def _prepare(recipe: bytes) -> None:
    """Build the worker's oracle. A worker ignores Ctrl-C: the process that waits for it handles it."""
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


def _work(call: tuple[str, list[dict[str, Any]], bytes | None]) -> bytes:
    """Answer one call for all its blocks; returns the answers and the outputs that were numbered for them."""
    global _known
    method, blocks, found = call
    if found is not None:
        _oracle.register_outputs(pickle.loads(found))
    numbering = capability(_oracle, NumbersOutputs)
    if numbering is not None:
        _known = numbering.outputs_since(_known)[1]
    parts = [getattr(_oracle, method)(**block) for block in blocks]
    met = [] if numbering is None else numbering.outputs_since(_known)[0]
    return bytes(dumps((parts, met)))
