"""Other motif finders on the planted long and gapped motifs, in the same run."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Page, Skipped, keep
from benchmarks.motif_long import CASES, measure, plant
from tacit.dna.finder.known import find_correlation

TOOLS = "TACIT_PEER_TOOLS"
"""Environment variable: a folder with BioProspector, compiled, and chipmunk.jar, from the sources of gimmemotifs."""

SEED = 2


def run() -> Page:
    page = Page(
        "Motifs: other finders",
        "Data set 2 of each row of the page of long motifs. BioProspector 4/15/04 (Liu et al. 2001) with the right "
        "width and the right spacer told, ten tries, and the negatives as its background. ChIPMunk 7 (Kulakovskiy et "
        "al. 2010) with widths 10 to 25 told, of which it chooses; it has no spacers, so it has the rows without one. "
        "Found: the first motif has a correlation of at least 0.75 with the whole. `MotifFinder()` is told nothing. "
        "Seconds of processor time.",
        [
            *("letters", "spacer", "share of positives", "tacit: found", "length ±1", "seconds"),
            *("BioProspector: found", "seconds", "ChIPMunk: found", "length ±1", "seconds"),
        ],
    )
    if TOOLS not in os.environ:
        raise Skipped(f"{TOOLS} must name a folder with BioProspector and chipmunk.jar")
    counts = np.zeros(3, np.int64)
    for case in CASES:
        X, y, truth = plant(*case, np.random.default_rng([SEED, *map(int, case[:2]), int(10 * case[2])]))
        ours = keep("motif_long", (*case, SEED), partial(measure, case, SEED))
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for name, label in (("positives", 1), ("negatives", -1)):
                lines = (f">s{i}\n{X[i]}\n" for i in np.flatnonzero(y == label))
                (folder / f"{name}.fa").write_text("".join(lines))
            found, seconds = run_bioprospector(folder, case[0], case[1])
            rows = [is_like(found, truth), f"{seconds:.1f}"]
            counts += [bool(ours[0]), rows[0] == "yes", case[1] == 0]
            if case[1] == 0:
                found, seconds = run_chipmunk(folder)
                length = "yes" if abs(len(found) - len(truth)) <= 1 else f"{len(found)}"
                rows += [is_like(found, truth), length, f"{seconds:.1f}"]
            else:
                rows += ["", "", ""]
        shown = ["yes" if value else "no" for value in ours[:2]]
        page.rows.append([*map(str, case), *shown, f"{ours[-1]:.1f}", *rows])
        print(page.rows[-1], flush=True)
    page.notes.append(f"Found: tacit {counts[0]}, BioProspector {counts[1]} of {len(CASES)}.")
    return page


def is_like(found: np.ndarray, truth: np.ndarray) -> str:
    return "yes" if len(found) and find_correlation(found, truth) >= 0.75 else "no"


def run_bioprospector(folder: Path, width: int, spacer: int) -> tuple[np.ndarray, float]:
    """The best motif, spacer included, and processor seconds."""
    half = width // 2
    parts = ["-W", half, "-w", width - half, "-g", spacer, "-G", spacer] if spacer else ["-W", width]
    files = ["-i", folder / "positives.fa", "-b", folder / "negatives.fa", "-o", folder / "out"]
    seconds = time_tool(["./BioProspector", *files, *parts, "-n", 10, "-r", 1])
    blocks: list[list[list[float]]] = []
    for line in (folder / "out").read_text().splitlines():
        if line.startswith("Blk"):
            blocks.append([])
        elif blocks and (row := re.match(r"\d+((\s+\d+\.\d+){4})\s", line)):
            blocks[-1].append([float(value) / 100 for value in row[1].split()])
    pieces = [np.array(block) for block in blocks if block]
    if len(pieces) == 2:
        pieces.insert(1, np.full((spacer, 4), 0.25))
    return (np.concatenate(pieces) if pieces else np.zeros((0, 4))), seconds


def run_chipmunk(folder: Path) -> tuple[np.ndarray, float]:
    """The motif, and processor seconds."""
    words = ["java", "-Xmx512m", "-cp", "chipmunk.jar", "ru.autosome.ChIPMunk", 10, 25, "y", "1.0"]
    seconds = time_tool([*words, f"s:{folder / 'positives.fa'}", 20, 5, 1, 1], folder / "munk")
    lines = (folder / "munk").read_text().splitlines()
    rows = [np.array(line[2:].split(), float) for line in lines if re.match(r"[ACGT]\|[\d.]", line)]
    if len(rows) != 4:
        return np.zeros((0, 4)), seconds
    table = np.stack(rows, axis=1)
    return table / table.sum(axis=1, keepdims=True), seconds


def time_tool(words: list[object], out: Path | None = None) -> float:
    """Run a tool in its folder; returns its processor seconds."""
    before = os.times()
    done = subprocess.run(list(map(str, words)), cwd=os.environ[TOOLS], capture_output=True, text=True)
    after = os.times()
    if out is not None:
        out.write_text(done.stdout)
    return after.children_user + after.children_system - before.children_user - before.children_system
