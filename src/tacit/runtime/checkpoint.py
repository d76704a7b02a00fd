"""Checkpoints of long runs: written atomically, refused for another run, and checked before they are used."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.arrays import Array, is_table
from tacit.data.lines import one_line
from tacit.data.parameters import file_path, number, reason, shorten
from tacit.runtime.archive import StorageError, kind_of, read_archive, remove_unfinished, write_archive

MAX_TIME_SHARE = 0.05
"""Writing checkpoints may take this share of the running time at the most."""

CHECKSUMS = {
    "features, labels and losses": ("problem", "samples", "labels"),
    "labels": ("samples",),
    "sample weights and C": ("C", "samples"),
    "penalty": ("problem", "weights in w"),
    "features for θ": ("conditional", "features, labels and losses"),
    "theta_penalty": ("conditional", "features for θ"),
    "sequences and labels": (),
    "relevances of triplets": (),
    "queries": (),
}
"""Checksums in fingerprints. Errors do not show their values, and leave out those that change with another entry."""


class Checkpoint:
    """A file that holds the state of a run.

    Parameters
    ----------
    path : the file
    fingerprint : what must be the same for a run to be resumed, by name: checksums of the data, parameters
    resume : go on from the file if it exists; otherwise it is overwritten
    every_step : write after every step, however long that takes, for runs of few long steps
    """

    def __init__(
        self, path: str | Path, fingerprint: Mapping[str, Any], resume: bool = False, every_step: bool = False
    ) -> None:
        self.path = file_path("checkpoint", path)
        self.resume = resume
        self.every_step = every_step
        shown = f"checkpoint={shorten(str(self.path))}"
        if not os.path.isdir(self.path.parent):
            raise ValueError(f"{shown}: the folder {shorten(str(self.path.parent))} does not exist; make it")
        is_file = os.path.isfile(self.path)
        if os.path.exists(self.path) and kind_of(self.path) != "checkpoint" and not (resume and is_file):
            raise ValueError(f"{shown} exists and is not a checkpoint; name another file, or remove it first")
        remove_unfinished(Path(os.path.realpath(self.path)).parent)
        self._fingerprint = {name: _without_addresses(value) for name, value in fingerprint.items()}
        self._due = 0.0

    def require(self, name: str, value: Any) -> None:
        """Add to the fingerprint."""
        self._fingerprint[name] = _without_addresses(value)

    def is_due(self) -> bool:
        return self.every_step or time.perf_counter() >= self._due

    def write(self, snapshot: Mapping[str, Any]) -> None:
        """Write a state: arrays and numbers. If the disk cannot take it, that is a warning; the run goes on."""
        began = time.perf_counter()
        arrays = {f"state.{name}": np.asarray(value) for name, value in snapshot.items()}
        try:
            write_archive(self.path, "checkpoint", {"run": self._fingerprint}, arrays)
        except OSError as error:
            warnings.warn(f"the checkpoint {error.strerror or error}", stacklevel=2)
        now = time.perf_counter()
        self._due = now + (now - began) / MAX_TIME_SHARE

    def read(self) -> dict[str, Any] | None:
        """The saved state, None if there is nothing to resume; an error if it belongs to another run."""
        if not self.resume or not os.path.exists(self.path):
            return None
        header, arrays = read_archive(self.path, "checkpoint")
        then = header.get("run")
        if not isinstance(then, dict):
            raise StorageError(f"the checkpoint {shorten(str(self.path))} does not say which run it belongs to")
        if differences := _describe_differences(then, self._fingerprint):
            raise ValueError(
                f"the checkpoint {shorten(str(self.path))} is of another run; what differs: {'; '.join(differences)}. "
                "Resume with the same data and parameters, or start again with resume=False"
            )
        return {name.removeprefix("state."): value for name, value in arrays.items() if name.startswith("state.")}

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Wraps the restoring of a state: an error inside means that the file is damaged, and says so."""
        try:
            yield
        except Exception as error:  # a file that was made by hand may hold anything
            raise StorageError(
                f"the checkpoint {shorten(str(self.path))} cannot be resumed "
                f"({type(error).__name__}: {reason(error)}); start again with resume=False"
            ) from error


def _describe_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two fingerprints, in words that a user can read."""
    other = [name for name, value in now.items() if then.get(name) != value]
    causes = [name for name in other if not set(CHECKSUMS.get(name, ())) & set(other)]
    return [
        name.removesuffix(" and C")
        if name in CHECKSUMS
        else f"{name}: {one_line(str(then.get(name)))} then, {one_line(str(now[name]))} now"
        for name in causes
    ]


def stored_array(snapshot: Mapping[str, Any], name: str, shape: tuple[int, ...], kinds: str = "f") -> Array:
    """An array of a snapshot, refused unless it has this shape and is of finite numbers of these kinds."""
    values: Any = snapshot.get(name)
    if not is_table(values, len(shape), kinds) or values.shape != shape:
        raise StorageError(f"{name} is {shorten(values)}, not {shape} finite numbers")
    return np.asarray(values, dtype=np.float64 if values.dtype.kind == "f" else None)  # sums in single would drift


def stored_number(snapshot: Mapping[str, Any], name: str, least: float = -np.inf) -> float:
    """A number of a snapshot, not NaN."""
    values = snapshot.get(name)
    if not isinstance(values, np.ndarray) or values.shape != () or values.dtype.kind not in "biuf":
        raise StorageError(f"{name} is {shorten(values)}, not a number")
    return number(name, float(values), f"a number from {least:g}", lambda value: value >= least)


def stored_codes(snapshot: Mapping[str, Any], name: str, accepts: Callable[[Array], bool]) -> tuple[Array, ...]:
    """Codes of outputs that these samples have, as their oracle says."""
    codes = tuple(snapshot[name])
    if not all(accepts(code) for code in codes):
        raise StorageError("it holds outputs that these samples do not have")
    return codes


def _without_addresses(value: Any) -> Any:
    """A value of a fingerprint without memory addresses of functions, which differ between processes."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", value) if isinstance(value, str) else value
