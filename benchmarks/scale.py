"""Fits on shards and on a Dask cluster: memory, the cost of a round, and workers that are killed."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Page
from tacit import LatentSVM, Ragged, SelfPaced, Shards, StructuredSVM
from tacit.problems import Candidates
from tacit.scale.sharding import smallest_blocks
from tacit.shards.folder import write_shards

BAG, WIDTH = 50, 100
"""Candidates per bag and features per candidate, in single precision: 20 kB per bag."""

KILLS = 20
ROUNDS = 200


def labels(n: int) -> Any:
    return np.arange(n) % 2


def part(first: int, last: int) -> Ragged:
    """Bags from first to last: candidate 7 of every bag carries the label."""
    rng = np.random.default_rng(first)
    values = rng.standard_normal(((last - first) * BAG, WIDTH), dtype=np.float32)
    values[7::BAG, 0] += 16.0 * labels(last)[first:] - 8.0
    return Ragged(values, np.arange(last - first + 1) * BAG)


def write(folder: Path, n: int, shards: int) -> None:
    folder.mkdir()
    cuts = np.linspace(0, n, shards + 1).astype(int)
    write_shards(folder, (part(a, b) for a, b in pairwise(cuts)))


def fit_alone(folder: str, way: str, n: int) -> None:
    """A fit in this process; prints what it took. ``way`` is "shards" or "memory"."""
    began = time.process_time()
    shards = Shards.open(folder)
    X: Any = shards.in_memory() if way == "memory" else shards
    if way == "shards":
        shards.verify()
    loaded = time.process_time()
    model = LatentSVM(Candidates(), C=10.0, init=np.full(n, 7), max_iter=2, max_inner=8, n_jobs=1, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, labels(n))
    assert model.coef_.any(), "w = 0 needs no rows"
    took = {
        "load": loaded - began,
        "fit": time.process_time() - loaded,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "model": model.coef_.tobytes().hex(),
    }
    print(json.dumps(took), flush=True)


def alone(folder: Path, way: str, n: int) -> dict[str, Any]:
    code = f"from benchmarks.scale import fit_alone; fit_alone({str(folder)!r}, {way!r}, {n})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def measure_memory(page: Page, n: int, with_memory: bool) -> None:
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "shards"
        write(folder, n, 8)
        alone(folder, "shards", n)  # compiles, and warms the system's cache of files
        mapped = alone(folder, "shards", n)
        size = f"{n:,} bags, {n * BAG * WIDTH * 4 / 1e9:.2g} GB"
        peaks, ratio = f"{mapped['peak']:.0f} MB", "not run"
        if with_memory:
            memory = alone(folder, "memory", n)
            assert memory["model"] == mapped["model"], "the models differ"
            peaks += f" (memory: {memory['peak']:.0f} MB)"
            ratio = (
                f"{mapped['fit'] / memory['fit']:.2f} × the CPU of memory ({mapped['fit']:.1f} / {memory['fit']:.1f} s)"
            )
        page.rows.append([f"peak memory of a fit on shards, {size}", peaks, "≤ 500 MB at 4 GB"])
        page.rows.append([f"CPU of a warm fit on shards, {size}", ratio, "≤ 1.3 ×"])
        print(page.rows[-2:], flush=True)


def measure_rounds(page: Page, client: Any) -> None:
    """The cost of a question whose work takes next to no time."""
    import tacit.dask

    for shards in (2, 8):
        times: list[float] = []

        def note(step: Any, times: list[float] = times) -> None:
            times.append(time.perf_counter())

        bags = part(0, 64)
        size = 64 // shards
        loaders = [lambda a=a, b=a + size, bags=bags: bags[a:b] for a in range(0, 64, size)]
        model = StructuredSVM(Candidates(), C=1e4, tol=1e-9, max_iter=ROUNDS, callbacks=[note], verbose=0)
        with smallest_blocks():
            tacit.dask.fit(model, loaders, labels(64), hidden=np.full(64, 7), client=client)
            far = np.diff(times)
            times.clear()
            model.fit(bags, labels(64), hidden=np.full(64, 7))
        over = 1e3 * (np.median(far) - np.median(np.diff(times)))
        most = "≤ 10 ms" if shards == 2 else "≤ 20 ms"
        page.rows.append(
            [f"overhead of a round, 2 workers, {shards} shards", f"{over:.1f} ms (median of {len(far)})", most]
        )
        print(page.rows[-1], flush=True)


def measure_cpu(page: Page, client: Any, folder: Path, n: int) -> None:
    """The CPU of CCCP on two workers, that of this process included, by that in one process."""
    import tacit.dask

    def spent() -> float:
        return time.process_time() + sum(client.run(time.process_time).values())

    def model() -> LatentSVM:
        return LatentSVM(Candidates(), C=10.0, init=np.full(n, 7), max_iter=3, max_inner=15, n_jobs=1, verbose=0)

    tacit.dask.fit(model(), folder, labels(n), client=client)  # compiles
    before = spent()
    far = tacit.dask.fit(model(), folder, labels(n), client=client)
    there = spent() - before
    began = time.process_time()
    near = model().fit(Shards.open(folder), labels(n))
    here = time.process_time() - began
    assert np.array_equal(near.coef_, far.coef_), "the models differ"
    page.rows.append(
        [
            f"CPU of CCCP on two workers, {n:,} bags",
            f"{there / here:.2f} × one process ({there:.1f} / {here:.1f} s)",
            "≤ 1.2 ×",
        ]
    )
    print(page.rows[-1], flush=True)


def measure_kills(page: Page, client: Any, folder: Path, n: int) -> None:
    """SIGKILL to a random worker at a random round, and the model of a fit that nobody disturbed."""
    import tacit.dask

    ways = {
        "bundle": (
            lambda **more: StructuredSVM(Candidates(), C=10.0, tol=1e-4, max_iter=40, verbose=0, **more),
            np.full(n, 7),
        ),
        "CCCP": (
            lambda **more: LatentSVM(
                Candidates(), C=10.0, init=np.full(n, 7), max_iter=4, max_inner=20, verbose=0, **more
            ),
            None,
        ),
        "self-paced": (
            lambda **more: LatentSVM(
                Candidates(), C=1.0, max_iter=4, max_inner=20, pace=SelfPaced(), verbose=0, **more
            ),
            None,
        ),
    }
    drawn = random.Random(0)
    same, longest, done = 0, [], 0
    quiet = {name: make().fit(Shards.open(folder), labels(n), hidden=hidden) for name, (make, hidden) in ways.items()}
    for k in range(KILLS):
        client.wait_for_workers(2, timeout=120)
        name = list(ways)[k % 3]
        make, hidden = ways[name]
        doomed = [drawn.choice(list(client.run(os.getpid).values()))]
        moment = drawn.randint(1, 12 if name == "bundle" else 2)
        times: list[float] = [time.perf_counter()]

        def kill(line: Any, doomed: list[int] = doomed, moment: int = moment, times: list[float] = times) -> None:
            times.append(time.perf_counter())
            if line.iteration >= moment and doomed:
                os.kill(doomed.pop(), signal.SIGKILL)

        model = tacit.dask.fit(make(callbacks=[kill]), folder, labels(n), hidden=hidden, client=client)
        same += np.array_equal(model.coef_, quiet[name].coef_) and model.objective_ == quiet[name].objective_
        done += not doomed
        if name == "bundle":
            longest.append(float(np.diff(times[1:]).max()))
        print(k, name, moment, "killed" if not doomed else "ended first", same, flush=True)
    page.rows.append(
        [f"workers killed, {done} of {KILLS} fits before their end", f"{same} of {KILLS} bit-identical", "all"]
    )
    page.rows.append(
        [
            "longest round of the fits with Bundle after a kill",
            f"{max(longest):.1f} s, median {np.median(longest):.1f} s",
            "loading the shard + 2 s",
        ]
    )


def run(full: bool = False) -> Page:
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore")
    page = Page(
        "Beyond memory and beyond one machine",
        f"Bags of {BAG} candidates of {WIDTH} features in single precision, written in 8 shards; margin learners with "
        "Bundle. Memory is the peak of the whole process, libraries included, each fit in a process of its own. The "
        "cluster is local, two workers of one thread. Other programs ran on the machine at the same time, so CPU time "
        "and ratios are what counts.",
        ("work", "measured", "must reach"),
    )
    measure_memory(page, 200_000 if full else 20_000, not full)
    if full:
        page.notes.append("The long version measures the 4 GB alone; memory for a comparison is not at hand.")
        return page
    with (
        tempfile.TemporaryDirectory() as top,
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        folder, n = Path(top) / "shards", 2000
        write(folder, n, 4)
        measure_rounds(page, client)
        measure_cpu(page, client, folder, n)
        measure_kills(page, client, folder, n)
    page.notes += [
        "Every fit on shards or workers had the weights of the fit in memory, bit by bit; the run ends if one has not.",
        "Not measured: the speed-up of two workers against two plain processes (the two cores were shared "
        "with other work), cold reads, 10⁶ bags against 10⁵, and clusters of more than one machine.",
    ]
    return page
