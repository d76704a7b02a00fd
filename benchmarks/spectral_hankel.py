"""Hankel matrices of many strings: counting against scikit-splearn, and memory at a million strings."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import multiprocessing
import resource
import time
from typing import Any

import numpy as np

from benchmarks.harness import Page
from benchmarks.spectral_hmm import STATES, SYMBOLS, Splearn, padded, strings
from tacit import Ragged
from tacit.spectral.hankel import count
from tacit.spectral.symbols import encode

SIZE, LENGTH, SHORT = 5_000, 4, 3


def run() -> Page:
    page = Page(
        "Hankel matrices",
        f"Strings of the HMM of the page on strings ({STATES} states, {SYMBOLS} symbols); H and all H_σ, sparse. At "
        f"10⁵ strings the basis is all strings of up to {SHORT} symbols that occur, for tacit and splearn, which "
        f"counts in dictionaries; at 10⁶ the most frequent of up to {LENGTH}. Must reach: ≥ 20 × faster than it at "
        "a basis of 5,000 × 5,000, 10⁶ strings below 4 GB. Seconds are the lowest of five, splearn's of one.",
        ["strings", "statistics", "who", "seconds", "splearn / tacit", "entries of H and H_σ", "peak memory, GB"],
    )
    _, train, _ = strings(5, 100_000)
    for statistics, version in (("string", "classic"), ("prefix", "prefix"), ("substring", "factor")):
        count(train[:100], SYMBOLS, statistics=statistics, length=SHORT)
        best = np.inf
        for _ in range(5):
            began = time.perf_counter()
            hankel = count(train, SYMBOLS, statistics=statistics, length=SHORT)
            best = min(best, time.perf_counter() - began)
        ratio = "–"
        basis = "10⁵, basis " + " × ".join(f"{size:,}" for size in hankel.block.shape)
        entries = f"{hankel.block.nnz:,} and {hankel.shifted.nnz:,}"
        if importlib.util.find_spec("splearn") is not None:
            seconds = _splearn(train, version)
            ratio = f"{seconds / best:.0f}"
            page.rows.append((basis, statistics, "splearn", f"{seconds:.1f}", "", entries, ""))
        page.rows.append((basis, statistics, "tacit", f"{best:.3f}", ratio, entries, ""))
    if importlib.util.find_spec("splearn") is None:
        page.notes.append("scikit-splearn is not installed; measured elsewhere: 0.7 to 3.4 s a fit at 20,000 strings.")
    for statistics, size in (("string", SIZE), ("prefix", SIZE), ("substring", SIZE), ("prefix", 10_000)):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, gigabytes, entries = pool.apply(_million, (statistics, size))
        page.rows.append(
            (f"10⁶, basis {size:,}", statistics, "tacit", f"{seconds:.2f}", "", entries, f"{gigabytes:.2f}")
        )
    return page


def _million(statistics: str, size: int) -> tuple[float, float, str]:
    """Seconds, peak memory of the whole process (its data and libraries included) and entries at a million strings."""
    truth, few, _ = strings(5, 100)
    count(few, SYMBOLS, statistics=statistics, length=LENGTH, size=size)  # compiles
    data = Ragged.concatenate([encode(truth.sample(100_000, random_state=i), truth.symbols) for i in range(10)])
    began = time.perf_counter()
    hankel = count(data, SYMBOLS, statistics=statistics, length=LENGTH, size=size)
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return seconds, memory, f"{hankel.block.nnz:,} and {hankel.shifted.nnz:,}"


def _splearn(train: Any, version: str) -> float:
    """Seconds that splearn takes to count the same statistics, its array of words given."""
    peer = Splearn(version, SHORT, STATES).fit(train[:50]).model
    words = padded(train)
    from splearn.hankel import Hankel

    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        counted = peer.polulate_dictionnaries(words)
        Hankel(counted, lrows=SHORT, lcolumns=SHORT, version=version, partial=True, sparse=True, mode_quiet=True)
    return time.perf_counter() - began
