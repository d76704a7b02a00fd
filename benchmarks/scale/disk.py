"""One machine, files on disk: memory, CPU against a fit in memory, cold reads, and ten times as many bags."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Page
from benchmarks.scale.bags import BAG, RIGHT, asked, in_gigabytes, labels, part, plain_environment, write
from tacit import LatentSVM, Shards, StructuredSVM
from tacit.problems import Candidates
from tacit.runtime import parallel

N_BAGS = 200_000
"""Bags of the large folder: 4 GB."""

N_FEW, FEW = 100_000, 10
"""Bags of the smaller of two folders of small bags, and their candidates; the larger has ten times as many.

Both are larger than what stays in memory between passes (`tacit.data.table.MAX_RESIDENT`)."""

REPEATS = 2


def fit_here(folder: str, way: str, n: int, steps: int) -> None:
    """A fit in this process; prints what it took. ``way`` is "shards", "memory", or "bundle": shards, and one task."""
    shards = Shards.open(folder)
    shards.verify()
    X: Any = shards.in_memory() if way == "memory" else shards
    common: dict[str, Any] = {"C": 10.0, "tol": 1e-12, "n_jobs": 1, "verbose": 0}
    hidden = np.full(n, RIGHT)
    model: Any = LatentSVM(Candidates(), init=hidden, max_iter=2, max_inner=steps, **common)
    if way == "bundle":
        model = StructuredSVM(Candidates(), max_iter=steps, **common)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile_all(shards.values.shape[1], way == "memory", common)
        began = time.process_time(), time.perf_counter()
        model.fit(X, labels(n), hidden=hidden if way == "bundle" else None)
    assert model.coef_.any(), "w = 0 needs no rows"
    took = {
        "cpu": time.process_time() - began[0],
        "wall": time.perf_counter() - began[1],
        "peak": peak_memory(),
        "steps": model.n_iter_,
        "model": model.coef_.tobytes().hex(),
    }
    print(json.dumps(took), flush=True)


def compile_all(width: int, in_memory: bool, settings: dict[str, Any]) -> None:
    """A fit of a few bags of the same kind: what is compiled, and tried out, once per process."""
    bags = part(0, 8, BAG, width)
    with tempfile.TemporaryDirectory() as folder:
        X: Any = bags if in_memory else bags.to_shards(Path(folder) / "few", shards=1)
        StructuredSVM(Candidates(), max_iter=2, **settings).fit(X, labels(8), hidden=np.full(8, RIGHT))


def peak_memory() -> float:
    """Megabytes. Not from ``getrusage``, which counts the memory of the process that started this one."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def pass_here(folder: str, n: int) -> None:
    """One pass over files that are not in memory, and reading their bytes; prints seconds of both, several times."""
    shards = Shards.open(folder)
    problem = Candidates()
    schema = problem.schema(shards, labels(n))
    oracle = problem.bind(shards, labels(n), schema)
    w = np.random.default_rng(0).standard_normal(oracle.n_params)
    files = sorted(Path(folder).glob("*.values.npy"))
    passes, reads = [], []
    with parallel(oracle, 1) as rows:
        for _ in range(REPEATS):
            forget(files)
            began = time.perf_counter()
            rows.predict_augmented(w)
            passes.append(time.perf_counter() - began)
            forget(files)
            began = time.perf_counter()
            for file in files:
                with file.open("rb", buffering=0) as stream:
                    while stream.read(1 << 22):
                        pass
            reads.append(time.perf_counter() - began)
    print(json.dumps({"pass": passes, "read": reads}), flush=True)


def forget(files: list[Path]) -> None:
    """Let the system drop what it keeps of these files."""
    for file in files:
        number = os.open(file, os.O_RDONLY)
        try:
            os.fsync(number)
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(number)


def alone(call: str, *arguments: Any) -> dict[str, Any]:
    """What a function of this module prints, called in a process of its own."""
    code = f"from benchmarks.scale.disk import {call}; {call}(*{arguments!r})"
    out = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, env=plain_environment()
    ).stdout
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def measure_disk(page: Page, top: Path, n: int = N_BAGS) -> None:
    """Peak memory, CPU by that of memory, and cold reads."""
    folder, size = top / "large", in_gigabytes(n)
    write(folder, n, 8)
    cold = alone("pass_here", str(folder), n)
    ratio = min(cold["pass"]) / min(cold["read"])
    mapped = [alone("fit_here", str(folder), "shards", n, 4) for _ in range(2)]
    memory = alone("fit_here", str(folder), "memory", n, 4)
    assert memory["model"] == mapped[0]["model"] == mapped[1]["model"], "the models differ"
    best = min(mapped, key=lambda took: took["cpu"])
    peak = max(took["peak"] for took in mapped)
    page.rows += [
        [
            f"peak memory of a fit on shards, {size}",
            f"{peak:.0f} MB (the same fit in memory: {memory['peak']:.0f} MB)",
            asked("≤ 500 MB", peak <= 500),
        ],
        [
            f"CPU of a warm fit on shards, {size}",
            f"{best['cpu'] / memory['cpu']:.2f} × that in memory ({best['cpu']:.1f} / {memory['cpu']:.1f} s; wall "
            f"{best['wall']:.1f} / {memory['wall']:.1f} s)",
            asked("≤ 1.3 ×", best["cpu"] <= 1.3 * memory["cpu"]),
        ],
        [
            f"a cold pass, {size}",
            f"{ratio:.2f} × reading the bytes (best of {REPEATS}: {min(cold['pass']):.1f} / {min(cold['read']):.1f} s)",
            asked("≤ 1.2 ×", ratio <= 1.2),
        ],
    ]
    print(*page.rows[-3:], sep="\n", flush=True)
    shutil.rmtree(folder)


def measure_growth(page: Page, top: Path, n: int = N_FEW) -> None:
    """Ten times as many bags, the same number of steps."""
    runs: dict[int, list[dict[str, Any]]] = {n: [], 10 * n: []}
    for size in runs:
        write(_small_bags(top, size), size, 8, FEW)
    for _ in range(REPEATS + 1):  # interleaved: the machine is not always equally fast
        for size, own in runs.items():
            own.append(alone("fit_here", str(_small_bags(top, size)), "bundle", size, 12))
    few, many = (min(own, key=lambda took: took["cpu"]) for own in runs.values())
    page.rows += [
        [
            f"{in_gigabytes(10 * n, FEW)} against {in_gigabytes(n, FEW)}, {many['steps']} and {few['steps']} steps",
            f"{many['cpu'] / few['cpu']:.1f} × the CPU ({many['cpu']:.1f} / {few['cpu']:.2f} s), "
            f"{many['wall'] / few['wall']:.1f} × the wall time",
            asked("9 to 11 ×", 9 <= many["cpu"] / few["cpu"] <= 11),
        ],
        [f"peak memory, {10 * n:,} bags", f"{many['peak']:.0f} MB", asked("≤ 1 GB", many["peak"] <= 1000)],
    ]
    print(*page.rows[-2:], sep="\n", flush=True)


def _small_bags(top: Path, n: int) -> Path:
    return top / f"small-bags-{n}"
