"""Word alignment of long texts: CPU time, memory and error rate by number of sentence pairs."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.harness import Page
from tacit import Links
from tacit.apps import WordAligner
from tacit.text import IBM1, alignment_scores, symmetrise

SIZES, MEASURED = (12_500, 25_000, 50_000, 100_000), 1_000
N_WORDS, MEAN_LENGTH = 40_000, 18


def run() -> Page:
    page = Page(
        "Word alignment: long texts",
        f"Made-up sentence pairs of {MEAN_LENGTH} words on average: {N_WORDS:,} words with frequencies by Zipf's law, "
        "each with one to three translations, words without a translation on both sides, and neighbours that change "
        f"places. Error rate of the first {MEASURED:,} sentence pairs, whose links are known here and to no model. "
        "`WordAligner()` at its defaults learns from the text alone, on two threads; each row is a process of its own, "
        "whose memory is its peak (Python and its libraries take 190 MB). CPU time is that of all threads. IBM-1 with "
        "a diagonal prior, both directions joined by grow-diag-final-and, is the baseline.",
        ["model", "sentence pairs", "CPU seconds", "CPU seconds per 1,000 pairs", "peak memory, MB", "error rate"],
    )
    for model in ("**WordAligner()**", "IBM-1 with diagonal prior"):
        for n in SIZES:
            command = [sys.executable, "-m", "benchmarks.alignment_scale", model, str(n)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            seconds, memory, error = found
            row = (model, f"{n:,}", f"{seconds:.0f}", f"{1000 * seconds / n:.2f}", f"{memory:,.0f}", f"{error:.3f}")
            page.rows.append(row)
            print(row, flush=True)
    page.notes.append(
        "Up to about a million pairs of words (3,000 sentence pairs here) all sentence pairs are learned from. Of "
        "longer texts a sample is; translation tables come from the other sentence pairs, and all are aligned in "
        "blocks. Of more than two million pairs of different words, those are kept that may translate each other."
    )
    return page


def make_text(n: int) -> tuple[list[list[str]], list[list[str]], list[Links]]:
    """Sentence pairs, and the links of the first ones."""
    rng = np.random.default_rng(0)
    shares = np.cumsum(1.0 / np.arange(1, N_WORDS + 1))
    n_translations = rng.integers(1, 4, N_WORDS)
    translations = rng.permutation(3 * N_WORDS).reshape(N_WORDS, 3)
    source, target, gold = [], [], []
    names = [f"s{word}" for word in range(N_WORDS)], [f"t{word}" for word in range(3 * N_WORDS)]
    others = [f"n{k}" for k in range(50)]
    for k in range(n):
        words = np.searchsorted(shares, shares[-1] * rng.random(max(2, int(rng.poisson(MEAN_LENGTH)))))
        kept = np.flatnonzero(rng.random(words.size) < 0.9)
        kept = kept[np.argsort(kept + rng.uniform(0, 3, kept.size))]
        out, links = [], []
        for i in kept.tolist():
            if rng.random() < 0.1:
                out.append(others[rng.choice(50)])
            links.append((i, len(out)))
            out.append(names[1][translations[words[i], rng.integers(n_translations[words[i]])]])
        source.append([names[0][word] for word in words])
        target.append(out or others[:1])
        if k < MEASURED:
            gold.append(Links(links))
    return source, target, gold


def measure(model: str, n: int) -> tuple[float, float, float]:
    """CPU seconds, peak memory in MB, and error rate."""
    source, target, gold = make_text(n)
    began = time.process_time()
    found: Any
    if model.startswith("IBM"):
        forward = IBM1().fit(source, target).align(source[:MEASURED], target[:MEASURED])
        backward = IBM1().fit(target, source).align(target[:MEASURED], source[:MEASURED])
        found = [symmetrise(a, b[:, ::-1]) for a, b in zip(forward, backward, strict=True)]
    else:
        found = WordAligner(verbose=0, n_jobs=2).fit(source, target).links_[:MEASURED]
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds, memory, alignment_scores(list(found), gold).error_rate


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
