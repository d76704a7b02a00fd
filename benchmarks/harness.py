"""Interleaved timing and pages of results. Machines are noisy: only ratios of one run are compared."""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import tacit

RESULTS = Path(__file__).parent / "results"
KEPT = Path(tempfile.gettempdir()) / "tacit-benchmarks"


@dataclass
class Page:
    """One page of results: what was measured, a table, and notes on what was skipped."""

    title: str
    setting: str
    columns: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Skipped(Exception):
    """Why a benchmark cannot run here; its page stays as it is."""


def real_data() -> Path:
    """The folder of the real data, which are not part of the repository."""
    if "TACIT_DATA" not in os.environ:
        raise Skipped("TACIT_DATA is not set, and the data are not part of the repository")
    return Path(os.environ["TACIT_DATA"])


def keep(benchmark: str, key: Sequence[Any], measure: Callable[[], Sequence[Any]]) -> list[Any]:
    """The numbers of one fit: as an earlier run of the benchmark kept them, else measured now and kept.

    So a long benchmark that was stopped goes on where it was. The files are in the folder for temporary files, one per
    benchmark; remove one to measure all of it again. The key must name everything that the numbers depend on.
    """
    path, name = KEPT / f"{benchmark}.json", " ".join(map(str, (tacit.__version__, *key)))
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if name not in kept:
        kept[name] = list(measure())
        KEPT.mkdir(exist_ok=True)
        unfinished = path.with_suffix(".new")
        unfinished.write_text(json.dumps(kept), encoding="utf-8")
        unfinished.replace(path)
    return list(kept[name])


def interleave(
    calls: Mapping[str, Callable[[], Any]], rounds: int = 20, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each call, one after the other in every round, after a round that warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            began = clock()
            call()
            if turn:
                seconds[name].append(clock() - began)
    return seconds


def ratio(seconds: Mapping[str, list[float]], name: str, reference: str) -> float:
    """The lowest time of a call by the lowest of the reference: what is left when the noise of the machine is."""
    return min(seconds[name]) / min(seconds[reference])


def milliseconds(times: list[float]) -> str:
    """Lowest and median."""
    return f"{1e3 * min(times):.2f} / {1e3 * float(np.median(times)):.2f}"


def publish(name: str, page: Page) -> None:
    """Print the page and write it as markdown."""
    lines = [f"# {page.title}", "", page.setting, "", _row(page.columns), _row(["---"] * len(page.columns))]
    lines += [_row(row) for row in page.rows]
    lines += [""] + [f"- {note}" for note in page.notes] if page.notes else []
    lines += ["", f"{_machine()} `make bench` writes this page."]
    text = "\n".join(lines) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def _row(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _machine() -> str:
    return (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}, tacit {tacit.__version__}."
    )
