"""Fits that are killed at random moments, and inside the writing of a checkpoint: do they end as if never killed?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.harness import Page

KILLS = 60
"""Kills per learner."""

SCRIPT = """
import os, signal, sys, time
import numpy as np
from tacit import LatentSVM, SelfPaced, StructuredSVM
from tacit.datasets import planted_motif
from tacit.problems import Motif, Multiclass
from sklearn.datasets import load_digits

kind, folder, where = sys.argv[1:]
if where != "-":  # die inside the writing of the checkpoint, after so many written bytes
    left = [int(where)]
    fsync = os.fsync
    def dying(handle):
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return fsync(handle)
    os.fsync = dying
shared = {"checkpoint": os.path.join(folder, "state"), "resume": True, "verbose": 0}
shared["callbacks"] = [lambda line: time.sleep(0.02)]
if kind == "structured":
    X, y = load_digits(return_X_y=True)
    model = StructuredSVM(Multiclass(), C=100, **shared).fit(X / 16, y)
else:
    X, y, _ = planted_motif(400, 40, "TGACTCAG", noise=0.2, seed=1)
    pace = SelfPaced() if kind == "paced" else None
    model = LatentSVM(Motif(8), C=30, n_init=3, init="hidden", pace=pace, **shared).fit(X, y)
np.save(os.path.join(folder, "result.npy"), np.append(model.coef_, model.objective_))
"""


def run() -> Page:
    page = Page(
        "Killed fits",
        "Fits with a checkpoint, killed (SIGKILL) at random moments, or while the checkpoint is being written to disk, "
        "and started again with the same call until they end. The weights and the objective are compared, to the bit, "
        "with those of a fit that was never killed.",
        ["learner", "kills", "of them inside a write", "fits that ended", "with the same bits"],
    )
    for kind in ("structured", "latent", "paced"):
        page.rows.append(_row(kind))
    return page


def _row(kind: str) -> tuple[str, int, int, int, int]:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        whole = _until_it_ends(kind, Path(folder), rng, 0)[0]
    kills, inside, ended, same = 0, 0, 0, 0
    while kills < KILLS:
        with tempfile.TemporaryDirectory() as folder:
            found, killed, written = _until_it_ends(kind, Path(folder), rng, min(6, KILLS - kills))
        kills, inside, ended = kills + killed, inside + written, ended + 1
        same += bool(np.array_equal(found, whole))
    return kind, kills, inside, ended, same


def _until_it_ends(kind: str, folder: Path, rng: np.random.Generator, kills: int) -> tuple[np.ndarray, int, int]:
    """What a fit ends with that is killed so often, how often it was, and how often inside a write."""
    killed = inside = 0
    while not (folder / "result.npy").exists():
        is_inside = killed < kills and rng.random() < 0.5
        where = str(int(rng.integers(1, 6))) if is_inside else "-"
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, kind, str(folder), where])
        if killed < kills and not is_inside:
            _wait_for_work(process, folder)
            time.sleep(float(rng.uniform(0.0, 0.6)))
            process.send_signal(signal.SIGKILL)
        code = process.wait(timeout=600)
        if code == -signal.SIGKILL:
            killed, inside = killed + 1, inside + is_inside
        elif code:
            raise RuntimeError(f"a {kind} fit ended with code {code} after {killed} kills")
    return np.load(folder / "result.npy"), killed, inside


def _wait_for_work(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Until the process has imported everything and has written once."""
    began = time.monotonic()
    before = os.stat(folder / "state").st_mtime_ns if (folder / "state").exists() else 0
    while process.poll() is None and time.monotonic() - began < 120:
        if (folder / "state").exists() and os.stat(folder / "state").st_mtime_ns != before:
            return
        time.sleep(0.01)
