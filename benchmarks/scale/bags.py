"""The bags of the benchmark: made a shard at a time, so that they need not fit into memory."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tacit import Ragged
from tacit.data.shard_folder import write_shards

BAG, WIDTH = 50, 100
"""Candidates per bag and features per candidate, in single precision: 20 kB per bag."""

RIGHT = 7
"""The candidate that carries the label."""


def labels(n: int) -> Any:
    return np.arange(n) % 2


def part(first: int, last: int, bag: int = BAG, width: int = WIDTH) -> Ragged:
    """Bags from first to last; candidate `RIGHT` of every bag carries the label."""
    rng = np.random.default_rng(first)
    values = rng.standard_normal(((last - first) * bag, width), dtype=np.float32)
    values[RIGHT::bag, 0] += 16.0 * labels(last)[first:] - 8.0
    return Ragged(values, np.arange(last - first + 1) * bag)


def write(folder: Path, n: int, shards: int, bag: int = BAG, width: int = WIDTH) -> None:
    """A new folder of shards."""
    folder.mkdir()
    cuts = np.linspace(0, n, shards + 1).astype(int)
    write_shards(folder, (part(a, b, bag, width) for a, b in pairwise(cuts)))


def plain_environment() -> dict[str, str]:
    """That of this process, as it was before Dask told the allocator to hand every freed array back to the system."""
    return {name: value for name, value in os.environ.items() if name != "MALLOC_TRIM_THRESHOLD_"}


def asked(goal: str, is_met: bool) -> str:
    """The last column of the table: what must be reached, and whether it was missed."""
    return goal if is_met else f"{goal}: **missed**"


def in_gigabytes(n: int, bag: int = BAG, width: int = WIDTH) -> str:
    return f"{n:,} bags, {n * bag * width * 4 / 1e9:.2g} GB"
