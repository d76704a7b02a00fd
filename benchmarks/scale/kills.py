"""Workers that are killed at random moments of a fit."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import tacit.dask
from benchmarks.harness import Page
from benchmarks.scale.bags import RIGHT, asked, labels
from benchmarks.scale.workers import cluster_of
from tacit import LatentSVM, SelfPaced, Shards, StructuredSVM
from tacit.dask.actors import Actors
from tacit.problems import Candidates

KILLS = 20

MAX_RESTART = 20.0
"""Seconds that Dask may take to start a worker again; a new cluster is started where it takes longer."""


def learners(n: int) -> dict[str, tuple[Any, Any]]:
    """Ways to learn: a function that makes the learner, and known hidden values."""
    common = {"C": 10.0, "n_jobs": 1, "verbose": 0}
    start = np.full(n, RIGHT)
    return {
        "bundle": (lambda: StructuredSVM(Candidates(), tol=1e-4, max_iter=20, **common), start),
        "CCCP": (lambda: LatentSVM(Candidates(), init=start, max_iter=3, max_inner=8, **common), None),
        "self-paced": (
            lambda: LatentSVM(Candidates(), pace=SelfPaced(), max_iter=3, max_inner=8, **{**common, "C": 1.0}),
            None,
        ),
    }


@contextmanager
def timed_rounds() -> Iterator[list[float]]:
    """The seconds of every round, and those of building the actors first."""
    seconds: list[float] = []
    call = Actors.call

    def timed(actors: Any, questions: Any) -> Any:
        began = time.perf_counter()
        try:
            return call(actors, questions)
        finally:
            seconds.append(time.perf_counter() - began)

    Actors.call = timed
    try:
        yield seconds
    finally:
        Actors.call = call


def wait_for_two(client: Any) -> list[int] | None:
    """The processes of two workers whose nannies have them running: one that is starting is not started again."""
    deadline = time.monotonic() + MAX_RESTART
    while time.monotonic() < deadline:
        nannies = client.cluster.workers.values()
        if all(nanny.status.name == "running" and nanny.is_alive() for nanny in nannies):
            found = client.run(os.getpid, on_error="ignore")
            if len(found) == 2:
                time.sleep(1.0)
                return list(found.values())
        time.sleep(0.2)
    return None


def measure_kills(page: Page, folder: Path, n: int) -> None:
    """SIGKILL to a random worker at a random moment, and the model of a fit that nobody disturbed."""
    drawn = random.Random(0)
    ways = learners(n)
    quiet, lasted, usual = {}, {}, {}
    same, spared, recovery = 0, 0, []
    while len(recovery) < KILLS:
        with cluster_of(2) as client:
            for name, (make, hidden) in ways.items() if not quiet else ():
                quiet[name] = make().fit(Shards.open(folder), labels(n), hidden=hidden)
                for _ in range(2):  # the first one compiles
                    with timed_rounds() as rounds:
                        began = time.perf_counter()
                        tacit.dask.fit(make(), folder, labels(n), hidden=hidden, client=client)
                    lasted[name], usual[name] = time.perf_counter() - began, max(rounds)
            while len(recovery) < KILLS:
                running = wait_for_two(client)
                if running is None:
                    print("a new cluster, because Dask did not start a worker again", flush=True)
                    break
                name = list(ways)[len(recovery) % 3]
                make, hidden = ways[name]
                moment = drawn.uniform(0.1, 0.9) * lasted[name]
                killer = threading.Timer(moment, os.kill, (drawn.choice(running), signal.SIGKILL))
                with timed_rounds() as rounds:
                    killer.start()
                    model = tacit.dask.fit(make(), folder, labels(n), hidden=hidden, client=client)
                was_killed = killer.finished.is_set()
                killer.cancel()
                is_same = np.array_equal(model.coef_, quiet[name].coef_) and model.objective_ == quiet[name].objective_
                assert is_same or was_killed, "a fit that nobody disturbed differs from the one in memory"
                if was_killed:
                    same += is_same
                    recovery.append(max(rounds) - usual[name])
                else:
                    spared += 1  # it ended before the kill: another one takes its place
                print(name, f"after {moment:.1f} s", "killed" if was_killed else "ended first", same, flush=True)
    began = time.perf_counter()
    Shards.open(folder).verify()
    load = (time.perf_counter() - began) / 2
    page.rows += [
        [
            f"a worker killed during the fit, {KILLS} fits",
            f"{same} of {KILLS} bit-identical ({spared} more ended before the kill)",
            asked("all", same == KILLS),
        ],
        [
            f"recovery, {n:,} bags: the longest round less that of a fit without a kill",
            f"median {np.median(recovery):.1f} s, at the most {max(recovery):.1f} s; loading the rows of a worker "
            f"takes {load:.1f} s",
            asked(f"≤ {load + 2:.1f} s", max(recovery) <= load + 2),
        ],
    ]
    print(*page.rows[-2:], sep="\n", flush=True)
