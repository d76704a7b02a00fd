"""How long `tacit motif` and `tacit scan` take, and how much memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.harness import Page, interleave, ratio
from tacit.apps import MotifFinder
from tacit.datasets import planted_motif
from tacit.dna.files import Matrix, write_meme
from tacit.dna.pieces import Piece
from tacit.dna.scan import Scanner, motifs_of
from tacit.dna.score_tails import learn_background

PEERS = "TACIT_PEERS"
"""Environment variable: the Python of an environment with memelite and pymemesuite, which hold two FIMOs."""

_MEMELITE = """
from memelite import fimo
fimo(matrix, small)  # compiles
began = time.process_time()
n = sum(len(table) for table in fimo(matrix, genome))
"""

_PYMEMESUITE = """
from pymemesuite.common import MotifFile, Sequence
from pymemesuite.fimo import FIMO
began = time.process_time()
with open(genome) as file:
    records = [record.partition("\\n") for record in file.read().split(">")[1:]]
sequences = [Sequence(text.replace("\\n", ""), name.encode()) for name, _, text in records]
with open(matrix, "rb") as file:
    motifs = MotifFile(file, symmetrical=True)
    found = FIMO(both_strands=True).score_motif(motifs.read(), sequences, motifs.background)
n = len(found.matched_elements)
"""

POSITIONS = 1_000_000

GENOME = 100_000_000


def run() -> Page:
    page = Page(
        "Motifs: time and memory",
        "`tacit motif` on two FASTA files, one motif of width 8: seconds on the clock and of processor time after "
        "start-up (imports of the application and loading of kernels included), and the largest memory of the process. "
        "The clock counts what other programs on the machine take; processor time is what it shows on an idle one. "
        f"`tacit scan`: the sites in {POSITIONS:,} positions on both strands in one call, against the scores by a "
        f"NumPy convolution of the same matrix; then the command on a genome of {GENOME:,} random letters in two "
        "chromosomes, a matrix of 19 positions, both strands, p-value 1e-4, with p- and q-values and all files. FIMO "
        "of the MEME suite by the bindings of pymemesuite, and the FIMO of memelite (Numba, compiled before, without "
        "q-values), both on one thread, without files. All three in a process of its own, after imports and a first "
        "scan of 100 letters; reading counts.",
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
        genome, matrix = write_genome(folder)
        small, out = str(folder / "small.fa"), str(folder / "sites")
        Path(small).write_text(">one\n" + "ACGTTGCAAC" * 10 + "\n")
        before = f"main({['scan', matrix, small, '--out', str(folder / 'small'), '--quiet']!r})"
        seconds, cpu, memory = measure_command(["scan", matrix, genome, "--out", out, "--quiet"], before)
        with (folder / "sites" / "sites.tsv").open(encoding="utf-8") as table:
            n_sites = sum(1 for _ in table) - 1
        found = f"{seconds:.1f} s, {n_sites:,} sites"
        page.rows.append([f"tacit scan, {GENOME:,} letters", found, f"{cpu:.1f}", f"{memory:.0f}"])
        for name, script in (("pymemesuite", _PYMEMESUITE), ("memelite", _MEMELITE)):
            peer = measure_peer(script, genome, matrix, small)
            if peer is None:
                page.notes.append(f"{name} was not measured: {PEERS} must name a Python that has it.")
                continue
            wall, peer_cpu, peer_memory, n = peer
            page.rows.append(
                [f"FIMO, {name}", f"{wall:.1f} s, {n:,.0f} sites", f"{peer_cpu:.1f}", f"{peer_memory:.0f}"]
            )
            page.notes.append(f"tacit scan takes {cpu / peer_cpu:.2f} times the processor seconds of {name}.")
    page.notes.append(f"One-minute load of the machine meanwhile: {os.getloadavg()[0]:.1f}.")
    return page


def measure_command(words: list[str], before: str = "") -> tuple[float, float, float]:
    """Seconds, processor seconds and megabytes of a command in a process of its own, after the statement ``before``."""
    measure = (
        f"import json, resource, time; from tacit.cli import main; {before}; t = time.perf_counter(); "
        f"c = time.process_time(); main({words!r}); u = resource.getrusage(resource.RUSAGE_SELF); "
        "print(json.dumps([time.perf_counter() - t, time.process_time() - c, 1.024e-3 * u.ru_maxrss]))"
    )
    done = subprocess.run([sys.executable, "-c", measure], capture_output=True, text=True, check=True)
    seconds, cpu, memory = (float(v) for v in done.stdout.strip().strip("[]").split(","))
    return seconds, cpu, memory


def measure_peer(script: str, genome: str, matrix: str, small: str) -> list[float] | None:
    """Seconds, processor seconds, megabytes and sites of a peer; None without it."""
    if PEERS not in os.environ:
        return None
    head = f"import json, resource, time\ngenome, matrix, small = {genome!r}, {matrix!r}, {small!r}\n"
    tail = (
        "cpu = time.process_time() - began\n"
        "print(json.dumps([cpu, 1.024e-3 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, n]))"
    )
    started = time.perf_counter()
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    words = [os.environ[PEERS], "-c", head + script + tail]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [time.perf_counter() - started, *json.loads(done.stdout)]


def write_genome(folder: Path) -> tuple[str, str]:
    """Two random chromosomes in lines of 50 letters, and a matrix of 19 positions."""
    rng, letters = np.random.default_rng(0), np.frombuffer(b"ACGT", np.uint8)
    with (folder / "genome.fa").open("wb") as file:
        for name in (b">chr1\n", b">chr2\n"):
            lines = letters[rng.integers(0, 4, (GENOME // 100, 50), np.uint8)]
            file.write(name + np.hstack([lines, np.full((len(lines), 1), 10, np.uint8)]).tobytes())
    shares = np.eye(4)[["ACGT".index(c) for c in "TGGCCACCAGGGGGCGCTA"]] * 0.8 + 0.05
    (folder / "m.meme").write_text(write_meme([Matrix("one", shares)], np.full(4, 0.25), [20], [1.0]))
    return str(folder / "genome.fa"), str(folder / "m.meme")


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
