"""How time and memory of four kinds of fits grow with the number of samples."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, keep, real_data
from benchmarks.spectral_hmm import strings
from tacit import LatentSVM, Ragged
from tacit.apps import Tagger
from tacit.datasets import ewt, planted_motif
from tacit.problems import Candidates, Motif
from tacit.spectral import SpectralAutomaton

TIMES = (1, 2, 4)
"""Samples of the rows, as multiples of the first."""


def run() -> Page:
    page = Page(
        "Growth",
        "One fit with the settings of users, at a number of samples, at twice and at four times as many. CPU seconds "
        "of one thread. Memory is the peak of the process beyond libraries and a small fit, the data included; each "
        "row is a process of its own. Exponents are against the first row: 1 is linear growth.",
        ["work", "samples", "CPU seconds", "memory, MB", "exponent of time", "exponent of memory"],
    )
    for work, (_, first) in WORKS.items():
        sizes = [first * k for k in TIMES]
        found = [keep("growth", (work, n), lambda work=work, n=n: _in_process(work, n)) for n in sizes]
        for n, (seconds, memory) in zip(sizes, found, strict=True):
            ratios = [now / then for now, then in zip((seconds, memory), found[0], strict=True)]
            shown = [f"{math.log(ratio) / math.log(n / first):.2f}" if n > first else "–" for ratio in ratios]
            page.rows.append((work, f"{n:,}", f"{seconds:.2f}", f"{memory:.0f}", *shown))
    page.notes.append(
        "Exponents below 1 are costs that do not grow with the samples: kinds of windows, symbols and words that are "
        "all seen early, and the steps of a solver."
    )
    return page


def _in_process(work: str, n: int) -> list[float]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.growth", work, str(n)]
    root = str(Path(__file__).parents[1])
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root, env=dict(os.environ))
    return list(json.loads(done.stdout))


def measure(work: str, n: int) -> tuple[float, float]:
    """CPU seconds of the fit, and MB that it added to the process with its data."""
    prepare, first = WORKS[work]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model, X, y = prepare(first // 10)
        model.fit(X, y)  # compiled loops
        before = _peak()
        model, X, y = prepare(n)
        began = time.process_time()
        model.fit(X, y)
        return time.process_time() - began, _peak() - before


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _motif(n: int) -> tuple[Any, Any, Any]:
    X, y, _ = planted_motif(n, 60, "TGACGTCATC", noise=0.1)
    return LatentSVM(Motif(10), C=0.01 * n, verbose=0), X, y


def _bags(n: int) -> tuple[Any, Any, Any]:
    size, width, n_classes = 20, 50, 5
    rng = np.random.default_rng(0)
    values, y = rng.standard_normal((n * size, width)), rng.integers(0, n_classes, n)
    prototypes = rng.standard_normal((n_classes, width))
    values[np.arange(n) * size + rng.integers(0, size, n)] += prototypes[y]
    return LatentSVM(Candidates(), C=0.1 * n, verbose=0), Ragged(values, np.arange(n + 1) * size), y


def _tags(n: int) -> tuple[Any, Any, Any]:
    train = ewt("train", real_data() / "ewt")
    return Tagger(verbose=0), train.words[:n], train.tags[:n]


def _strings(n: int) -> tuple[Any, Any, Any]:
    return SpectralAutomaton(verbose=0), strings(5, n)[1], None


WORKS: dict[str, tuple[Callable[[int], tuple[Any, Any, Any]], int]] = {
    "motif: LatentSVM(Motif(10)), sequences of 60 letters": (_motif, 10_000),
    "bags: LatentSVM(Candidates()), 20 candidates of 50 numbers": (_bags, 10_000),
    "tags: Tagger(), sentences of the English Web Treebank": (_tags, 3_000),
    "strings: SpectralAutomaton(), an HMM of 10 states": (_strings, 20_000),
}
"""What makes a model, its samples and their labels; and the first number of samples."""

if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
