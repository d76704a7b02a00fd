"""Fits on shards and on a Dask cluster: memory, files, the cost of a round, speed, and workers that are killed."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

from benchmarks.harness import Page
from benchmarks.scale.bags import BAG, WIDTH, write

N_FIT, N_KILLED = 20_000, 2000
"""Bags of the fits whose CPU and speed are compared, and of those whose workers are killed."""


def run() -> Page:
    from benchmarks.scale.disk import measure_disk, measure_growth
    from benchmarks.scale.kills import measure_kills
    from benchmarks.scale.workers import cluster_of, measure_cpu, measure_rounds, measure_speed

    warnings.simplefilter("ignore")
    page = Page(
        "Beyond memory and beyond one machine",
        f"Bags of {BAG} candidates of {WIDTH} features in single precision (where ten times as many are compared, 10 "
        "candidates of 50 features), in NumPy files; margin learners with Bundle. Peaks are those of a whole process, "
        "libraries included, each fit in a process of its own. Clusters are local, with workers of one thread. Other "
        "programs ran on the two cores at the same time: times are the best of several, CPU times and ratios are what "
        "counts.",
        ("work", "measured", "must reach"),
    )
    with tempfile.TemporaryDirectory() as top:
        many, few = Path(top) / "many", Path(top) / "few"
        write(many, N_FIT, 4)
        write(few, N_KILLED, 4)
        with cluster_of(2) as client:
            measure_rounds(page, client)
            measure_cpu(page, client, many, N_FIT)
            measure_kills(page, client, few, N_KILLED)
        measure_speed(page, many, N_FIT)
    with tempfile.TemporaryDirectory() as top:
        measure_growth(page, Path(top))
    with tempfile.TemporaryDirectory() as top:
        measure_disk(page, Path(top))
    page.notes += [
        "Every fit on shards or workers had the weights of the fit in memory, bit by bit; the run ends if one has not.",
        "`benchmarks/results/scale_model.md` predicts rounds on up to 512 workers. Clusters of several machines were "
        "not measured.",
    ]
    return page
