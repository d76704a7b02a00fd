"""Successive halving: what ten starts cost, and where they end; and which smooth path was taken."""

from __future__ import annotations

import time
import warnings
from itertools import islice
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from benchmarks.optima import HALVED, MANY, SETS, STARTS, Data, Split
from benchmarks.optima_paths import describe_learners, describe_paths
from tacit import LatentSVM

ONE = "CCCP, 1 start"
CHOSEN = {"Musk1": 5, "Elephant": 5, "Tiger": 5, "pets": 3, "planted bags": 5, "proteins, width 10": 2}
"""The data sets, and the number of their splits."""

METHODS: dict[str, dict[str, Any]] = {ONE: {}, MANY: {"n_init": STARTS}, HALVED: {"n_init": STARTS, "halving": True}}


def run() -> Page:
    real_data()
    page = Page(
        "Ten starts for the time of three: successive halving",
        f"`LatentSVM` by CCCP from one start, from {STARTS} starts to their end, and from {STARTS} starts with "
        "`halving=True`. Data, splits and settings are those of the page `optima`, its first splits alone. Means over "
        "splits. Starts: CPU time of halving in units of the mean of the ten whole starts. Gain kept: of the "
        "difference between the mean of the ten starts and the best of them, the share that halving keeps.",
        ["data", "splits", "one start", "best of ten", "halving", "gain kept", "starts", "times the first start"],
    )
    costs, kept = [], []
    for name, n_splits in CHOSEN.items():
        table = np.array([_measure(SETS[name], split, seed) for seed, split in _splits(name, n_splits)])
        one, many, halved, mean = (float(value) for value in table[:, :4].mean(axis=0))
        seconds = table[:, 4:].mean(axis=0)
        costs.append(STARTS * seconds[2] / seconds[1])
        kept.append((mean - halved) / (mean - many) if mean > many else 1.0)
        numbers = (f"{one:.3f}", f"{many:.3f}", f"{halved:.3f}", f"{kept[-1]:.0%}", f"{costs[-1]:.1f}")
        page.rows.append((name, len(table), *numbers, f"{seconds[2] / seconds[0]:.1f}"))
        print(page.rows[-1], flush=True)
    page.notes.append(
        f"Ten starts by halving cost {np.median(costs):.1f} whole ones (median; {min(costs):.1f} to {max(costs):.1f}; "
        f"must reach: about 3), and keep {np.median(kept):.0%} of the gain ({min(kept):.0%} to {max(kept):.0%})."
    )
    page.notes.append(
        "How starts are left out was chosen with objectives and times of these sets in sight, not with test errors."
    )
    page.notes += describe_paths() + describe_learners()
    page.notes.append(
        "The page `optima` was measured with the path before this one, 1 to 1024 by factors of 4, and with halving "
        "after five, fifteen and more rounds, which cost 4.5 starts."
    )
    return page


def _splits(name: str, n_splits: int) -> list[tuple[int, Split]]:
    return list(enumerate(islice(SETS[name].splits(), n_splits)))


def _measure(data: Data, split: Split, seed: int) -> tuple[float, ...]:
    """Objectives of the three methods, the mean over starts, and CPU seconds of the three."""
    objectives, seconds, mean = [], [], np.nan
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for method, own in METHODS.items():
            settings = {"tol": 1e-3, "random_state": seed, "verbose": 0, "init": data.cccp, **data.parameters, **own}
            if not seed:  # compiles
                LatentSVM(data.problem, **{**settings, "max_iter": 1, "n_init": 1}).fit(split.X, split.y)
            began = time.process_time()
            model = LatentSVM(data.problem, **settings).fit(split.X, split.y)
            seconds.append(time.process_time() - began)
            objectives.append(model.objective_)
            if method == MANY:
                mean = float(np.mean([run.objective for run in model.runs_]))
    return (*objectives, mean, *seconds)
