"""The actors of a fit: one per worker, built from where its rows come from, and built again when its worker is lost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tacit.dask.actor import ShardActor, Span

POLL = 2.0
"""Seconds after which a call that has no answer yet looks whether its worker is still there."""

MAX_SILENCE = 60.0
"""Seconds without a sign of life after which a worker counts as lost: its shard is built elsewhere."""

MAX_LOSSES = 5
"""Times that one call may lose its worker before it gives up."""

WAIT_FOR_WORKERS = 60.0
"""Seconds to wait for a worker where none is left."""


class LostError(Exception):
    """The worker of an actor is gone, or silent."""


class Actors:
    """Actors on the workers of a client.

    Parameters
    ----------
    client : the client
    shards : the rows of each actor
    """

    def __init__(self, client: Any, shards: Sequence[Sequence[Span]]) -> None:
        self.client = client
        self.shards = shards
        self._actors: list[Any] = [None] * len(shards)
        self._homes = [""] * len(shards)
        self._is_crowded, self._looked = False, 0.0
        self.n_rebuilt = 0
        homes = self._addresses()
        futures = [self._submit(k, homes[k % len(homes)]) for k in range(len(shards))]
        for k, future in enumerate(futures):
            try:
                self._actors[k] = self._built(future, k)
            except LostError:
                self._build(k)

    def call(self, asked: Mapping[int, Callable[[Any], Any]]) -> dict[int, Any]:
        """Ask actors at once; ``asked[k]`` calls actor k and returns its future. Lost actors are built again."""
        self._spread()
        futures = {k: self._ask(k, ask) for k, ask in asked.items()}
        return {k: self._result(k, future, asked[k]) for k, future in futures.items()}

    def close(self) -> None:
        """Let the workers drop their rows."""
        self._actors = []

    def _ask(self, k: int, ask: Callable[[Any], Any]) -> Any:
        try:
            return ask(self._actors[k])
        except (RuntimeError, OSError):  # the actor knows that its worker was lost
            return None

    def _result(self, k: int, future: Any, ask: Callable[[Any], Any]) -> Any:
        for _ in range(MAX_LOSSES):
            try:
                return self._wait(k, future)
            except LostError:
                self._build(k)
                future = self._ask(k, ask)
        names = ", ".join(span.source.name for span in self.shards[k])
        raise RuntimeError(f"the worker that holds {names} was lost {MAX_LOSSES} times in one round; see its log")

    def _wait(self, k: int, future: Any) -> Any:
        if future is None:
            raise LostError
        while True:
            try:
                return future.result(timeout=POLL)
            except TimeoutError:
                if not self._is_alive(self._homes[k]):
                    raise LostError from None
            except Exception as error:  # an actor returns its own errors: this one is of the connection
                raise LostError from error

    def _build(self, k: int) -> None:
        """Build the actor again, on the worker with the fewest."""
        for _ in range(MAX_LOSSES):
            lost = self._homes[k]
            homes = [home for home in self._addresses() if home != lost or self._is_alive(home)]
            home = min(homes, key=lambda home: (home == lost, self._homes.count(home)))
            names = ", ".join(span.source.name for span in self.shards[k])
            if lost:
                warnings.warn(f"worker {lost} was lost; {names} moves to {home}", RuntimeWarning, stacklevel=6)
            self.n_rebuilt += 1
            try:
                self._actors[k] = self._built(self._submit(k, home), k)
            except LostError:
                continue
            self._is_crowded = self._homes.count(home) > 1
            return
        raise RuntimeError(f"{names} could not be built on any worker")

    def _submit(self, k: int, home: str) -> Any:
        self._homes[k] = home
        return self.client.submit(
            ShardActor, self.shards[k], workers=[home], allow_other_workers=False, actor=True, pure=False
        )

    def _built(self, future: Any, k: int) -> Any:
        return self._wait(k, future)

    def _spread(self) -> None:
        """Where a worker has several actors and another has none, because it came back, move one."""
        if not self._is_crowded or time.monotonic() - self._looked < POLL:
            return
        self._looked = time.monotonic()
        idle = [home for home in self._addresses() if home not in self._homes]
        crowded = [k for k, home in enumerate(self._homes) if self._homes.count(home) > 1]
        self._is_crowded = bool(crowded)
        if not idle or not crowded:
            return
        k, before = crowded[0], self._homes[crowded[0]]
        try:
            self._actors[k] = self._built(self._submit(k, idle[0]), k)
        except LostError:  # it went again: the old one still works
            self._homes[k] = before

    def _addresses(self) -> list[str]:
        """The workers; where there are none, some time for one to come."""
        deadline = time.monotonic() + WAIT_FOR_WORKERS
        while time.monotonic() < deadline:
            homes = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
            if homes:
                return homes
            time.sleep(0.2)
        raise RuntimeError("the cluster has no workers; start some, and fit again")

    def _is_alive(self, home: str) -> bool:
        known = self.client.sync(self.client.scheduler.identity, n_workers=-1)["workers"]
        return home in known and time.time() - known[home].get("last_seen", time.time()) < MAX_SILENCE
