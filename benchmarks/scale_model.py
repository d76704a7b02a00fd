"""How long a round takes on 1 to 512 workers: a model with measured constants, checked where it can be."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import numpy as np

from benchmarks.harness import Page
from benchmarks.scale.bags import in_gigabytes, write
from benchmarks.scale.workers import Passes, cluster_of, far_passes
from tacit.runtime.blocks import MAX_OPERATIONS

N_SMALL, N_MEASURED, N_LARGE = 640, 20_000, 10_000_000
"""Bags whose rounds are all overhead, bags of the rounds that check the model, and those that it is asked about."""

BANDWIDTH = 1.25e9
"""Bytes per second into the process that calls fit: 10 Gbit/s. This one is assumed."""

BYTES_HOME = 9
"""Bytes per bag and round that come home: one of its code, eight of its value."""

WORKERS = (1, 2, 4)
PREDICTED = (8, 16, 32, 64, 128, 256, 512)

WORTH = 0.9
"""Twice as many workers pay where a round takes at most this share of the time."""


def run() -> Page:
    warnings.simplefilter("ignore")
    page = Page(
        "How many workers pay",
        "The time of a round on p workers is T(p) = n·c/p + n·s + L(p) + bytes/bandwidth. It says up to where more "
        f"workers make a fit faster. All constants but the bandwidth were measured in this run, on {os.cpu_count()} "
        f"cores, with bags of 50 × 100 numbers in single precision: rounds over {in_gigabytes(N_MEASURED)}, and over "
        f"{N_SMALL} bags, which take hardly any work. Other programs ran at the same time, so that every time is the "
        "best of several, and c and s are CPU times.",
        ("workers", "bags", "model, ms per round", "measured", "speed-up by the model"),
    )
    small, large = _measure()
    # two unknowns per kind of work: what every round takes, and what every bag adds
    span = N_MEASURED - N_SMALL
    c = (large[1].there - small[1].there) / span
    s = max((large[1].here - small[1].here) / span, 0.0)
    slope, start = np.polyfit(WORKERS, [small[p].wall for p in WORKERS], 1)
    cores = os.cpu_count() or 1

    def predict(p: int, n: int, at_once: int, bandwidth: float) -> float:
        return n * c / at_once + n * s + start + slope * p + BYTES_HOME * n / bandwidth

    for p in WORKERS:  # what comes home through memory is part of s
        told = predict(p, N_MEASURED, min(p, cores), np.inf)
        alone = predict(1, N_MEASURED, 1, np.inf)
        page.rows.append(
            [p, f"{N_MEASURED:,}", f"{1e3 * told:.0f}", f"{1e3 * large[p].wall:.0f} ms", f"{alone / told:.2f}"]
        )
    alone = predict(1, N_LARGE, 1, BANDWIDTH)
    times = {p: predict(p, N_LARGE, p, BANDWIDTH) for p in PREDICTED}
    for p, told in times.items():
        page.rows.append([p, f"{N_LARGE:,}", f"{1e3 * told:.0f}", "", f"{alone / told:.1f}"])
    paying = [p for p in PREDICTED[:-1] if times[2 * p] <= WORTH * times[p]]
    last = 2 * max(paying) if paying else PREDICTED[0]
    page.notes += [
        f"Measured: c = {1e6 * c:.1f} µs of CPU per bag and round on a worker; s = {1e6 * s:.2f} µs per bag and round "
        f"in the process that calls fit, which takes all codes in; L(p) = {1e3 * start:.1f} + {1e3 * slope:.2f} · p "
        f"ms. Assumed: {8 * BANDWIDTH / 1e9:.0f} Gbit/s into that process, {BYTES_HOME} bytes per bag and round.",
        f"{N_LARGE:,} bags are {N_LARGE * 20e-6:.0f} GB. Twice as many workers shorten a round by a tenth or more up "
        f"to {last} workers; from there on codes that come home are what a round waits for: "
        f"{1e3 * N_LARGE * (s + BYTES_HOME / BANDWIDTH):.0f} ms that no worker takes over.",
        f"A worker holds at least one block of rows, and a pass over {N_LARGE:,} bags has "
        f"{int(N_LARGE * 50 * 100 * 2 // MAX_OPERATIONS):,}.",
        f"On 4 workers the model counts {cores} cores, because there are no more here. Clusters of several machines "
        "were not measured.",
    ]
    return page


def _measure() -> tuple[dict[int, Passes], dict[int, Passes]]:
    """Rounds over few bags and over many, on every number of workers."""
    small: dict[int, Passes] = {}
    large: dict[int, Passes] = {}
    with tempfile.TemporaryDirectory() as top:
        few, many = Path(top) / "few", Path(top) / "many"
        write(few, N_SMALL, 4)
        write(many, N_MEASURED, 4)
        for p in WORKERS:
            with cluster_of(p) as client:
                small[p] = far_passes(client, few, N_SMALL)
                large[p] = far_passes(client, many, N_MEASURED)
            print(p, small[p], large[p], flush=True)
    return small, large
