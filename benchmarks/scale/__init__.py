"""Fits on shards and on a Dask cluster: memory, files, the cost of a round, speed, and workers that are killed."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import Page, publish
from benchmarks.scale.bags import BAG, WIDTH, write

N_FIT, N_LONG, N_KILLED = 20_000, 80_000, 2000
"""Bags of the fits whose CPU and speed are compared, of one that takes longer, and of those with killed workers."""

NOTES = (
    "Every fit on shards or workers had the weights of the fit in memory, bit by bit; the run ends if one has not.",
    "The CPU of the fit in memory includes turning its table into columns; on shards there is none.",
    "A round over 20,000 bags takes about 0.1 s of CPU, and a tenth more goes into messages and the loops of Dask; "
    "over 80,000 it is less. Below 2 GB a cluster is not worth it (`docs/scale.md`).",
    "Where the second core is busy with other work, two processes are no faster than one: the speed-up says something "
    "only beside that of the plain processes.",
    "`benchmarks/results/scale_model.md` predicts rounds on up to 512 workers. Clusters of several machines were not "
    "measured.",
)


def run() -> Page:
    from benchmarks.scale.disk import measure_disk, measure_growth
    from benchmarks.scale.kills import measure_kills
    from benchmarks.scale.workers import measure_rounds, measure_speed

    warnings.simplefilter("ignore")
    page = Page(
        "Beyond memory and beyond one machine",
        f"Bags of {BAG} candidates of {WIDTH} features in single precision (where ten times as many are compared, 10 "
        "candidates), in NumPy files; margin learners with Bundle. Peaks are those of a whole process, "
        "libraries included, each fit in a process of its own. Clusters are local, with workers of one thread. "
        "Times are the best of several. In the minute before the run the load of the machine was "
        f"{os.getloadavg()[0]:.1f}.",
        ("work", "measured", "must reach"),
    )
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        sections = {
            "rounds": lambda: _on_two(lambda client: measure_rounds(page, client)),
            "kills": lambda: measure_kills(page, _bags(folder, N_KILLED), N_KILLED),
            "the CPU of CCCP": lambda: _on_two(lambda client: _compare_cpu(page, client, folder)),
            "4 GB from disk": lambda: measure_disk(page, folder),
            "10⁶ bags": lambda: measure_growth(page, folder),
            "speed-up": lambda: measure_speed(page, _bags(folder, N_FIT), N_FIT),
        }
        left = list(sections)
        for name, measure in sections.items():
            measure()
            left.remove(name)
            page.notes = [
                *NOTES,
                *([f"Not measured, because the run was cut short: {', '.join(left)}."] if left else []),
            ]
            publish("scale", page)  # a run takes a quarter of an hour and more: what is measured is not lost
    return page


def _on_two(measure: Callable[[Any], None]) -> None:
    from benchmarks.scale.workers import cluster_of

    with cluster_of(2) as client:
        measure(client)


def _compare_cpu(page: Page, client: Any, top: Path) -> None:
    from benchmarks.scale.workers import measure_cpu

    for n in (N_FIT, N_LONG):
        measure_cpu(page, client, _bags(top, n), n)


def _bags(top: Path, n: int) -> Path:
    """A folder of so many bags in four shards."""
    folder = top / f"bags-{n}"
    if not folder.exists():
        write(folder, n, 4)
    return folder
