"""How long `tacit motif` and `tacit scan` take, and how much memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import Page, interleave, ratio
from tacit.apps import MotifFinder
from tacit.datasets import planted_motif
from tacit.dna.pieces import Piece
from tacit.dna.scan import Scanner, motifs_of
from tacit.dna.score_tails import learn_background

POSITIONS = 1_000_000


def run() -> Page:
    page = Page(
        "Motifs: time and memory",
        "`tacit motif` on two FASTA files, one motif of width 8: seconds on the clock and of processor time after "
        "start-up (imports of the application and loading of kernels included), and the largest memory of the process. "
        "The clock counts what other programs on the machine take; processor time is what it shows on an idle one. "
        f"`tacit scan`: the sites in {POSITIONS:,} positions on both strands in one call, against the scores by a "
        "NumPy convolution of the same matrix.",
        ["what", "measured", "processor seconds", "memory, MB"],
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for n, length in ((2_000, 100), (50_000, 100)):
            positives, negatives = write_fasta(folder, n, length)
            out = str(folder / f"out{n}")
            words = ["motif", positives, negatives, "--width", "8", "--motifs", "1", "--out", out, "--quiet"]
            seconds, cpu, memory = measure_command(words)
            page.rows.append([f"motif, 2 × {n:,} of {length}", f"{seconds:.1f} s", f"{cpu:.1f}", f"{memory:.0f}"])
            print(page.rows[-1], flush=True)
        page.rows += scan_rows()
    page.notes.append(f"One-minute load of the machine meanwhile: {os.getloadavg()[0]:.1f}.")
    return page


def measure_command(words: list[str], before: str = "") -> tuple[float, float, float]:
    """Seconds, processor seconds and megabytes of a command in a process of its own, after the statement ``before``."""
    measure = (
        f"import json, resource, time; from tacit.cli import main; {before or 'pass'}; t = time.perf_counter(); "
        f"c = time.process_time(); main({words!r}); u = resource.getrusage(resource.RUSAGE_SELF); "
        "print(json.dumps([time.perf_counter() - t, time.process_time() - c, 1.024e-3 * u.ru_maxrss]))"
    )
    done = subprocess.run([sys.executable, "-c", measure], capture_output=True, text=True, check=True)
    seconds, cpu, memory = (float(v) for v in done.stdout.strip().strip("[]").split(","))
    return seconds, cpu, memory


def scan_rows() -> list[list[str]]:
    X, y, _ = planted_motif(400, 40, "TGACTCATCC", noise=0.1, strands="both", seed=0)
    finder = MotifFinder(verbose=0, n_motifs=1).fit(X, y)
    codes = np.random.default_rng(0).integers(0, 4, POSITIONS)
    piece = Piece("x", 0, codes.astype(np.uint8), True)
    background = learn_background([piece.codes])
    scanner = Scanner(motifs_of(finder, background), background)
    motif = finder.weights_["motif"][0]
    one_hot = np.eye(4)[codes].T.copy()

    def convolve() -> np.ndarray:
        sides = (motif, motif[::-1, ::-1])
        return np.stack([sum(np.convolve(one_hot[c], side[::-1, c], "valid") for c in range(4)) for side in sides])

    scores, hits = convolve(), list(scanner.scan_pieces([piece]))
    ours = np.array([hit.score for hit in hits])
    theirs = np.array([scores["+-".index(hit.strand), hit.start] for hit in hits])
    if not np.allclose(ours, theirs) or abs((scores >= ours.min()).sum() - len(hits)) > 0.01 * len(hits):
        raise AssertionError("the scanner and the convolution disagree")
    times = interleave({"tacit": lambda: list(scanner.scan_pieces([piece])), "numpy": convolve}, rounds=8)
    speed = 1 / ratio(times, "tacit", "numpy")
    return [
        ["scan, NumPy convolution", f"{1e3 * min(times['numpy']):.0f} ms", "", ""],
        ["scan, tacit", f"{1e3 * min(times['tacit']):.0f} ms, {speed:.1f} times as fast", "", ""],
    ]


def write_fasta(folder: Path, n: int, length: int) -> tuple[str, str]:
    """A planted motif in half of the sequences."""
    X, y, _ = planted_motif(2 * n, length, "TGACTCAT", noise=0.1, strands="both", seed=1)
    paths = []
    for label, name in ((1, "positives"), (-1, "negatives")):
        path = folder / f"{name}{n}.fa"
        path.write_text("".join(f">s{i}\n{s.decode()}\n" for i, s in enumerate(X[y == label])))
        paths.append(str(path))
    return paths[0], paths[1]
