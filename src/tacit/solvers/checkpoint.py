"""Checkpoints of a convex solve: written atomically, refused for another task."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tacit.archive import kind_of, read_archive, write_archive
from tacit.oracle import Task
from tacit.oracle.digests import checksum
from tacit.penalties import Penalty

SHARE = 0.05
"""Writing may take this share of the running time."""


class Checkpoint:
    """A file that holds the state of a run.

    Parameters
    ----------
    path : where
    facts : what a run must agree on to be resumed (`describe` of the task, C, the problem's parameters), by name
    resume : go on from the file if it exists; otherwise it is overwritten
    every_step : write after every step, however long that takes, for runs of few long steps
    """

    def __init__(
        self, path: str | Path, facts: Mapping[str, Any], resume: bool = False, every_step: bool = False
    ) -> None:
        self.path = Path(path)
        self.resume = resume
        self.every_step = every_step
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint={str(path)!r}: the folder {str(self.path.parent)!r} does not exist; make it")
        if self.path.exists() and kind_of(self.path) != "checkpoint" and (not resume or not self.path.is_file()):
            raise ValueError(
                f"checkpoint={str(path)!r} exists and is not a checkpoint; name another file, or remove it first"
            )
        self._facts = {name: _without_addresses(fact) for name, fact in facts.items()}
        self._due = 0.0

    def is_due(self) -> bool:
        return self.every_step or time.perf_counter() >= self._due

    def write(self, snapshot: Mapping[str, Any]) -> None:
        """Keep a state: arrays and numbers. A disk that cannot take it costs a warning, not the run."""
        began = time.perf_counter()
        arrays = {f"state.{name}": np.asarray(value) for name, value in snapshot.items()}
        try:
            write_archive(self.path, "checkpoint", {"run": self._facts}, arrays)
        except OSError as error:
            warnings.warn(f"the checkpoint {str(self.path)!r} could not be written: {error}", stacklevel=2)
        now = time.perf_counter()
        self._due = now + (now - began) / SHARE

    def read(self) -> dict[str, Any] | None:
        """The saved state, None if there is nothing to resume; an error if it belongs to another run."""
        if not self.resume or not self.path.exists():
            return None
        header, arrays = read_archive(self.path, "checkpoint")
        then = header["run"]
        differences = [f"{k}: {then.get(k)} then, {now} now" for k, now in self._facts.items() if then.get(k) != now]
        if differences:
            raise ValueError(
                f"the checkpoint {str(self.path)!r} is of another run; what differs: {'; '.join(differences)}. "
                "Resume with the same data and parameters, or start anew with resume=False"
            )
        return {name.removeprefix("state."): value for name, value in arrays.items() if name.startswith("state.")}


def _without_addresses(fact: Any) -> Any:
    """A fact without the places of functions in memory, which are others in every process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", fact) if isinstance(fact, str) else fact


def describe(task: Task) -> dict[str, Any]:
    """What tells a convex task from another."""
    return {
        "samples": task.oracle.n_samples,
        "weights in w": task.oracle.n_params,
        "rescaling": task.rescaling,
        "labels": checksum(task.target),
        "sample weights and C": checksum(task.weights),
        "penalty": describe_penalty(task.penalty, task.oracle.n_params),
        "features, labels and losses": task.oracle.digest(),
    }


def describe_penalty(penalty: Penalty, n_params: int) -> str:
    """What tells a penalty from another: its kind, and where it leads."""
    probe = np.linspace(0.5, 1.5, n_params)
    return f"{type(penalty).__name__} {checksum(penalty.primal(probe), np.array(penalty.value(probe)))}"
