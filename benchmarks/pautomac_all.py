"""All 24 PAutomaC problems at hand, on two processes: python -m benchmarks pautomac_all."""

from __future__ import annotations

import functools
import multiprocessing
import os
import time

import numpy as np

from benchmarks.harness import Page
from benchmarks.pautomac import COLUMNS, SETTING, measure

LONG = True
ODD = [13, 19, 23, 37, 41, 47, 21, 1, 3, 11, 15, 17, 25, 27, 33, 35, 43, 45, 31, 29, 39, 5, 7, 9]


def run() -> Page:
    page = Page(
        "PAutomaC, all odd problems",
        SETTING + " Must reach: median ≤ 1.01, every one ≤ 1.06, all in 30 minutes on two cores.",
        COLUMNS,
    )
    folder = os.environ.get("TACIT_DATA")
    if folder is None:
        page.notes.append("TACIT_DATA is not set: nothing was measured.")
        return page
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        rows = []
        for row in pool.imap_unordered(functools.partial(measure, folder=folder), ODD):
            print(*row, flush=True)
            rows.append(row)
    minutes = (time.perf_counter() - began) / 60
    page.rows = sorted(rows)
    ratios = [float(row[4]) for row in rows]
    worked = sum(float(row[1]) for row in rows) / 60
    page.notes += [
        f"Median {np.median(ratios):.4f}, worst {max(ratios):.4f} (problem {rows[int(np.argmax(ratios))][0]}).",
        f"{minutes:.1f} minutes on the clock, {worked:.1f} CPU minutes of fitting.",
    ]
    return page
