"""Checkpoints of a convex solve: written atomically, refused for another task."""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.oracle import Task
from tacit.storage import read_archive, write_archive

SHARE = 0.05
"""Writing may take this share of the running time."""


class Checkpoint:
    """A file that holds the state of a run.

    Parameters
    ----------
    path : where
    resume : go on from the file if it exists; otherwise it is overwritten
    settings : what else a run must agree on to be resumed (C, the problem's parameters), as text
    """

    def __init__(self, path: str | Path, resume: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self.path = Path(path)
        self.resume = resume
        self.settings = dict(settings or {})
        self._due = 0.0
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint={str(path)!r}: the folder {str(self.path.parent)!r} does not exist; make it")

    def is_due(self) -> bool:
        return time.perf_counter() >= self._due

    def write(self, task: Task, snapshot: Mapping[str, Any], history: Sequence[Any]) -> None:
        """Keep a state, and the history before it."""
        began = time.perf_counter()
        arrays = {f"state.{name}": np.asarray(value) for name, value in snapshot.items()}
        arrays["history"] = np.array(history, dtype=np.float64).reshape(len(history), 5)
        arrays["probe"] = _probe(task)
        header = {"settings": self.settings, "task": _describe(task)}
        write_archive(self.path, "checkpoint", header, arrays)
        now = time.perf_counter()
        self._due = now + (now - began) / SHARE

    def read(self, task: Task) -> dict[str, Any] | None:
        """The saved state, None if there is nothing to resume; an error if it belongs to another run."""
        if not self.resume or not self.path.exists():
            return None
        header, arrays = read_archive(self.path, "checkpoint")
        then, now = {**header["task"], **header["settings"]}, {**_describe(task), **self.settings}
        differences = [f"{k}: {then.get(k)} then, {now[k]} now" for k in now if then.get(k) != now[k]]
        probe = _probe(task) if not differences else None
        if probe is not None and not np.allclose(arrays["probe"], probe, rtol=1e-6, atol=1e-9 * np.abs(probe).max()):
            differences = ["the features or the loss of the samples"]
        if differences:
            raise ValueError(
                f"the checkpoint {str(self.path)!r} is of another run; what differs: {'; '.join(differences)}. "
                "Resume with the same data and parameters, or start anew with resume=False"
            )
        saved = {name.removeprefix("state."): value for name, value in arrays.items() if name.startswith("state.")}
        return {**saved, "history": arrays["history"]}


def _describe(task: Task) -> dict[str, Any]:
    return {
        "samples": task.oracle.n_samples,
        "weights in w": task.oracle.n_params,
        "rescaling": task.rescaling,
        "sample weights and C": _digest(task.weights),
        "labels": _digest(task.target),
    }


def _digest(values: Array) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(values).tobytes()):08x}"


def _probe(task: Task) -> Array:
    """A plane at a pseudo-random point: it depends on every feature and every loss, up to rounding."""
    w = np.random.default_rng(0).standard_normal(task.oracle.n_params)
    plane = task.plane(task.augmented(w).code)
    size = float(np.linalg.norm(plane.gradient))
    return np.array([plane.offset, size, float(plane.gradient @ w)])
