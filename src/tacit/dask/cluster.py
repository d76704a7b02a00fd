"""The actors of a fit: one per worker, built from where its rows come from, and built again when its worker is lost."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Mapping, Sequence
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

MAX_REACH = 5.0
"""Seconds in which a worker must answer a call that does not go through the scheduler; if not, all calls do."""


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
        self._is_direct = client.sync(self._reach, homes[: len(shards)])
        futures = [self._submit(k, homes[k % len(homes)]) for k in range(len(shards))]
        for k, future in enumerate(futures):
            try:
                self._actors[k] = self._wait(k, future)
            except LostError:
                self._build(k)

    def call(self, questions: Mapping[int, bytes]) -> dict[int, bytes]:
        """Ask actors at once, each its question. Lost actors are built again, and asked once more."""
        self._spread()
        answers: dict[int, bytes] = {}
        waiting = dict(questions)
        for _ in range(MAX_LOSSES):
            found = self.client.sync(self._ask_all, waiting)
            answers |= {k: answer for k, answer in found.items() if answer is not None}
            waiting = {k: question for k, question in waiting.items() if found[k] is None}
            if not waiting:
                return answers
            for k in waiting:
                self._build(k)
        names = ", ".join(span.source.name for span in self.shards[min(waiting)])
        raise RuntimeError(f"the worker that holds {names} was lost {MAX_LOSSES} times in one round; see its log")

    def close(self) -> None:
        """Let the workers drop their rows."""
        self._actors = []

    async def _ask_all(self, questions: Mapping[int, bytes]) -> dict[int, bytes | None]:
        """The answers of actors; None of those that are lost. The scheduler is asked once per poll for all of them."""
        calls = {k: asyncio.ensure_future(self._post(k, question)) for k, question in questions.items()}
        waiting = set(calls)
        while waiting:
            await asyncio.wait([calls[k] for k in waiting], timeout=POLL)
            waiting = {k for k in waiting if not calls[k].done()}
            known = await self._known() if waiting else set()
            for k in [k for k in waiting if self._homes[k] not in known]:
                calls[k].cancel()
                waiting.remove(k)
        return {k: self._read(k, call) for k, call in calls.items()}

    def _read(self, k: int, call: asyncio.Future[Any]) -> bytes | None:
        """The answer of an actor; None where it is lost."""
        if not call.done() or call.cancelled() or call.exception() is not None:
            return None  # an actor returns its own errors: this one is of the connection
        reply = call.result()
        if reply["status"] == "OK":
            answer: bytes = reply["result"]
            return answer
        error = reply.get("exception")
        if "after shutdown" in str(error):  # the worker is closing, and takes no more calls
            return None
        names = ", ".join(span.source.name for span in self.shards[k])
        raise RuntimeError(f"a worker could not answer for {names}: {type(error).__name__}: {error}")

    async def _post(self, k: int, question: bytes) -> Any:
        """Call an actor: what `distributed.Actor` does, without a thread per call, and past the scheduler."""
        from distributed.actor import ProxyRPC
        from distributed.protocol import to_serialize

        home, client = self._homes[k], self.client
        rpc = client.rpc(home) if self._is_direct else ProxyRPC(client.scheduler, home)
        return await rpc.actor_execute(
            function="answer", actor=self._actors[k].key, args=[to_serialize(question)], kwargs={}
        )

    async def _reach(self, homes: Sequence[str]) -> bool:
        """Whether this process can connect to the workers; where it cannot, the scheduler passes messages on."""
        try:
            await asyncio.wait_for(asyncio.gather(*(self.client.rpc(home).identity() for home in homes)), MAX_REACH)
        except (TimeoutError, OSError):
            return False
        return True

    def _wait(self, k: int, future: Any) -> Any:
        while True:
            try:
                return future.result(timeout=POLL)
            except TimeoutError:
                if not self._is_alive(self._homes[k]):
                    raise LostError from None
            except Exception as error:  # the constructor of an actor keeps its own errors
                raise LostError from error

    def _build(self, k: int) -> None:
        """Build the actor again, on the worker with the fewest."""
        for _ in range(MAX_LOSSES):
            lost = self._homes[k]
            homes = self._addresses(lost)
            home = min(homes, key=lambda home: (home == lost, self._homes.count(home)))
            names = ", ".join(span.source.name for span in self.shards[k])
            if lost:
                warnings.warn(f"worker {lost} was lost; {names} moves to {home}", RuntimeWarning, stacklevel=6)
            self.n_rebuilt += 1
            try:
                self._actors[k] = self._wait(k, self._submit(k, home))
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
            self._actors[k] = self._wait(k, self._submit(k, idle[0]))
        except LostError:  # it went again: the old one still works
            self._homes[k] = before

    def _addresses(self, lost: str = "") -> list[str]:
        """The workers, without one that was lost and is dead; where there are none, some time for one to come."""
        deadline = time.monotonic() + WAIT_FOR_WORKERS
        while time.monotonic() < deadline:
            homes = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
            homes = [home for home in homes if home != lost or self._is_alive(home)]
            if homes:
                return homes
            time.sleep(0.2)
        raise RuntimeError("the cluster has no workers; start some, and fit again")

    def _is_alive(self, home: str) -> bool:
        return home in self.client.sync(self._known)

    async def _known(self) -> set[str]:
        """The workers that have shown a sign of life."""
        known = (await self.client.scheduler.identity(n_workers=-1))["workers"]
        now = time.time()
        return {home for home, facts in known.items() if now - facts.get("last_seen", now) < MAX_SILENCE}
