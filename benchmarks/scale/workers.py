"""A local cluster: the cost of a round, the CPU of a fit, the speed-up by two workers, and what that says of many."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tacit.dask
from benchmarks.harness import Page
from benchmarks.scale.bags import RIGHT, asked, labels, part, plain_environment
from tacit import LatentSVM, Shards, StructuredSVM
from tacit.dask.fitting import RemoteShards
from tacit.dask.sources import describe, read_sources
from tacit.problems import Candidates
from tacit.runtime import parallel
from tacit.runtime.blocks import smallest_blocks

ROUNDS = 200
"""Rounds whose overhead is measured."""

PASSES, REPEATS = 8, 4
"""Rounds that are timed together, and how often."""


@contextmanager
def cluster_of(workers: int) -> Iterator[Any]:
    """A client of so many workers of one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def spent(client: Any) -> float:
    """CPU seconds of this process and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def measure_rounds(page: Page, client: Any) -> None:
    """The cost of a round whose work takes next to no time: that of a fit on workers less that of one in memory."""
    for shards in (2, 8):
        times: list[float] = []

        def note(step: Any, times: list[float] = times) -> None:
            times.append(time.perf_counter())

        bags = part(0, 64)
        size = 64 // shards
        loaders = [lambda a=a, b=a + size, bags=bags: bags[a:b] for a in range(0, 64, size)]
        model = StructuredSVM(Candidates(), C=1e4, tol=1e-9, max_iter=ROUNDS, callbacks=[note], verbose=0)
        hidden = np.full(64, RIGHT)
        with smallest_blocks():
            tacit.dask.fit(model, loaders, labels(64), hidden=hidden, client=client)  # compiles
            times.clear()
            tacit.dask.fit(model, loaders, labels(64), hidden=hidden, client=client)
            far = 1e3 * np.diff(times)
            times.clear()
            model.fit(bags, labels(64), hidden=hidden)
            near = 1e3 * np.diff(times)
        quiet, typical = (np.percentile(far, share) - np.percentile(near, share) for share in (10, 50))
        page.rows.append(
            [
                f"overhead of a round, 2 workers, {shards} shards",
                f"{quiet:.1f} ms in quiet moments (the tenth percentile of {len(far)} rounds), median {typical:.1f} ms",
                asked("≤ 10 ms", quiet <= 10) if shards == 2 else asked("≤ 20 ms", quiet <= 20),
            ]
        )
        print(page.rows[-1], flush=True)


def measure_cpu(page: Page, client: Any, folder: Path, n: int) -> None:
    """The CPU of CCCP on two workers, that of this process included, by that in one process."""

    def model() -> LatentSVM:
        return LatentSVM(Candidates(), C=10.0, init=np.full(n, RIGHT), max_iter=3, max_inner=15, n_jobs=1, verbose=0)

    far_times, near_times = [], []
    tacit.dask.fit(model(), folder, labels(n), client=client)  # compiles
    for _ in range(3):
        before = spent(client)
        far = tacit.dask.fit(model(), folder, labels(n), client=client)
        far_times.append(spent(client) - before)
        before = time.process_time()
        near = model().fit(Shards.open(folder), labels(n))
        near_times.append(time.process_time() - before)
        assert np.array_equal(near.coef_, far.coef_), "the models differ"
    there, here = min(far_times), min(near_times)
    page.rows.append(
        [
            f"CPU of CCCP on two workers, {n:,} bags",
            f"{there / here:.2f} × one process ({there:.1f} / {here:.1f} s)",
            asked("≤ 1.2 ×", there <= 1.2 * here),
        ]
    )
    print(page.rows[-1], flush=True)


class Passes(NamedTuple):
    """Wall seconds of a round, and CPU seconds of this process and of all workers."""

    wall: float
    here: float
    there: float


def far_passes(client: Any, folder: Path, n: int) -> Passes:
    """Rounds on a cluster; the best of several."""
    sources = read_sources(folder)
    shards = RemoteShards(client, sources, client.gather(client.map(describe, sources, pure=False)))
    problem = Candidates()
    oracle: Any = problem.bind(shards, labels(n), problem.schema(shards, labels(n)))
    found = []
    with parallel(oracle, 1) as rows:
        target, weights = oracle.encode(labels(n), np.full(n, RIGHT)), np.full(n, 1.0 / n)
        for w in draw_weights(oracle.n_params, REPEATS + 1):
            before = time.perf_counter(), time.process_time(), sum(client.run(time.process_time).values())
            for _ in range(PASSES):
                rows.tangent(w, weights, target, "margin")
            wall, here = time.perf_counter() - before[0], time.process_time() - before[1]
            there = sum(client.run(time.process_time).values()) - before[2]
            found.append(Passes(wall / PASSES, here / PASSES, there / PASSES))
    shards.table.actors.close()
    return Passes(*(min(values) for values in zip(*found[1:], strict=True)))  # the first one compiles


def draw_weights(n_params: int, count: int) -> Any:
    return np.random.default_rng(0).standard_normal((count, n_params))


def pass_here(folder: str, n: int, first: int, last: int) -> None:
    """The same rounds in a plain process, over the bags from first to last; says when it is ready, and waits."""
    from tacit.dask.actors import TaskPart, tangent
    from tacit.runtime.blocks import block_cuts

    shards = Shards.open(folder)
    problem = Candidates()
    oracle: Any = problem.bind(shards, labels(n), problem.schema(shards, labels(n)))
    task = TaskPart(np.full(n, 1.0 / n), oracle.encode(labels(n), np.full(n, RIGHT)), True, {})
    cuts = [cut for cut in block_cuts(oracle, n) if first <= cut <= last]
    with parallel(oracle, 1):
        for k, w in enumerate(draw_weights(oracle.n_params, REPEATS + 1)):
            if k:
                print("ready", flush=True)
                sys.stdin.readline()
            for _ in range(PASSES if k else 1):
                for a, b in pairwise(cuts):
                    tangent(oracle, task, w, "margin", slice(a, b))
            if k:
                print(json.dumps(time.perf_counter()), flush=True)


def plain_passes(folder: Path, n: int, processes: int) -> float:
    """Wall seconds of a round in plain processes that share the bags and never speak; the best of several."""
    cuts = [n * k // processes for k in range(processes + 1)]
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"from benchmarks.scale.workers import pass_here; pass_here({str(folder)!r}, {n}, {a}, {b})",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=plain_environment(),
        )
        for a, b in pairwise(cuts)
    ]
    times = []
    for _ in range(REPEATS):
        for process in running:
            process.stdout.readline()
        began = time.perf_counter()
        for process in running:
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in running:
            process.stdout.readline()
        times.append((time.perf_counter() - began) / PASSES)
    for process in running:
        process.communicate()
    return min(times)


def measure_speed(page: Page, folder: Path, n: int) -> dict[int, Passes]:
    """The speed-up by two workers, and that of two plain processes; returns rounds on 1, 2 and 4 workers."""
    found: dict[int, Passes] = {}
    plain = {1: np.inf, 2: np.inf}
    for _ in range(2):  # interleaved: the machine is not always equally busy
        for workers in (1, 2, 4):
            with cluster_of(workers) as client:
                now = far_passes(client, folder, n)
            found[workers] = min(now, found.get(workers, now))
            if workers in plain:
                plain[workers] = min(plain[workers], plain_passes(folder, n, workers))
    speed, ceiling = found[1].wall / found[2].wall, plain[1] / plain[2]
    page.rows.append(
        [
            f"speed-up by 2 workers, {n:,} bags",
            f"{speed:.2f} ×, two plain processes {ceiling:.2f} ×: {speed / ceiling:.2f} of the ceiling (a round: "
            f"{1e3 * found[1].wall:.0f} and {1e3 * found[2].wall:.0f} ms, plain {1e3 * plain[1]:.0f} and "
            f"{1e3 * plain[2]:.0f} ms)",
            asked("≥ 0.85 of the ceiling", speed >= 0.85 * ceiling),
        ]
    )
    print(page.rows[-1], flush=True)
    return found
