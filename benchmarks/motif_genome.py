"""The scan of a genome: `tacit scan` beside two implementations of FIMO, in one run."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import Page
from benchmarks.motif_speed import measure_command
from tacit.dna.files import Matrix, write_meme

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

GENOME = 100_000_000


def run() -> Page:
    page = Page(
        "Motifs: scan of a genome",
        f"{GENOME:,} random letters in two chromosomes, a matrix of 19 positions, both strands, p-value 1e-4. `tacit "
        "scan` with p- and q-values and all files; FIMO of the MEME suite by the bindings of pymemesuite; the FIMO of "
        "memelite (Numba, without q-values); the last two write no files. Each in a process of its own on one thread, "
        "after imports and a first scan of 100 letters; reading counts. Memory is the largest of the process.",
        ["what", "sites", "processor seconds", "memory, MB"],
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        genome, matrix = write_genome(folder)
        small, out = str(folder / "small.fa"), str(folder / "sites")
        Path(small).write_text(">one\n" + "ACGTTGCAAC" * 10 + "\n")
        before = f"main({['scan', matrix, small, '--out', str(folder / 'small'), '--quiet']!r})"
        _, cpu, memory = measure_command(["scan", matrix, genome, "--out", out, "--quiet"], before)
        with (folder / "sites" / "sites.tsv").open(encoding="utf-8") as table:
            n_sites = sum(1 for _ in table) - 1
        page.rows.append(["tacit scan", f"{n_sites:,}", f"{cpu:.1f}", f"{memory:.0f}"])
        print(page.rows[-1], flush=True)
        for name, script in (("pymemesuite", _PYMEMESUITE), ("memelite", _MEMELITE)):
            peer = measure_peer(script, genome, matrix, small)
            if peer is None:
                page.notes.append(f"{name} was not measured: {PEERS} must name a Python that has it.")
                continue
            peer_cpu, peer_memory, n = peer
            page.rows.append([f"FIMO, {name}", f"{n:,.0f}", f"{peer_cpu:.1f}", f"{peer_memory:.0f}"])
            page.notes.append(f"`tacit scan` takes {cpu / peer_cpu:.2f} times the processor seconds of {name}.")
            print(page.rows[-1], flush=True)
    page.notes.append(
        "pymemesuite reports more sites than the two others, which agree; why was not looked into. Its seconds include "
        "q-values."
    )
    return page


def measure_peer(script: str, genome: str, matrix: str, small: str) -> list[float] | None:
    """Processor seconds, megabytes and sites of a peer; None without it."""
    if PEERS not in os.environ:
        return None
    head = f"import json, resource, time\ngenome, matrix, small = {genome!r}, {matrix!r}, {small!r}\n"
    tail = (
        "cpu = time.process_time() - began\n"
        "print(json.dumps([cpu, 1.024e-3 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, n]))"
    )
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    words = [os.environ[PEERS], "-c", head + script + tail]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [float(value) for value in json.loads(done.stdout)]


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
