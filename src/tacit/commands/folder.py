"""The folder of results: it appears whole or not at all, and files that tacit did not write are never touched."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from tacit.commands.failures import OutputError
from tacit.data.unfinished import make_unfinished, remove_unfinished

RECORD = "run.json"
"""The file that says what a run was, and which files it wrote."""


class OutputFolder:
    """Files are written to a hidden folder beside the real one, and moved when all of them are there.

    Parameters
    ----------
    path : the folder; it is made where it does not exist
    force : whether results of an earlier run may be replaced. Only files that its ``run.json`` lists are removed, and
        only files of the same name are overwritten: a folder with other things in it keeps them

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with OutputFolder(Path(home) / "new" / "out") as folder:
    ...         folder.write_text("a.txt", "first")
    ...     try:
    ...         OutputFolder(Path(home) / "new" / "out").__enter__()
    ...     except OutputError as error:
    ...         print(str(error).replace(home, "HOME"))
    the folder HOME/new/out is not empty; choose another --out, or replace its results with --force
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self.target = Path(path)
        self._force = force
        self._stage: Path | None = None

    def __enter__(self) -> Self:
        """Refuse at once what could not be written later."""
        try:
            if self.target.exists() and not self.target.is_dir():
                raise OutputError(f"--out must be a folder, and {self.target} is a file; choose another --out")
            if self.target.is_dir() and any(self.target.iterdir()) and not self._force:
                raise OutputError(
                    f"the folder {self.target} is not empty; choose another --out, or replace its results with --force"
                )
            self.target.absolute().parent.mkdir(parents=True, exist_ok=True)
            beside = self.target if self.target.is_dir() else self.target.absolute().parent
            remove_unfinished(beside)
            self._stage = make_unfinished(beside, is_folder=True)
        except OSError as error:
            raise _write_error(f"the folder {self.target}", error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stage = self.stage
        try:
            if kind is None:
                self._publish()
            elif isinstance(error, OSError) and str(stage) in str(error.filename):
                raise _write_error(self.target / Path(str(error.filename)).name, error) from error
        except OSError as failed:
            raise _write_error(f"the folder {self.target}", failed) from failed
        finally:
            shutil.rmtree(stage, ignore_errors=True)
            self._stage = None

    @property
    def stage(self) -> Path:
        """Where files are until all of them are there."""
        if self._stage is None:
            raise OutputError(f"the folder {self.target} is not open")
        return self._stage

    def path(self, name: str) -> Path:
        """Where to write the file of this name, for writers that take a path; folders on the way are made.

        Names are tacit's own, or made of what is safe everywhere: never a user's text as it stands.
        """
        parts = name.split("/")
        if not all(part and part == Path(part).name and part not in (".", "..") for part in parts):
            raise OutputError(f"{name!r} must be the name of a file in the output folder; leave out .. and /")
        path = self.stage.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, in UTF-8 with line ends of Unix."""
        self.write_bytes(name, text.encode("utf-8"))

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file."""
        try:
            self.path(name).write_bytes(content)
        except OSError as error:
            raise _write_error(self.target / name, error) from error

    def names(self) -> list[str]:
        """The files written so far."""
        return sorted(file.relative_to(self.stage).as_posix() for file in self.stage.rglob("*") if file.is_file())

    def _publish(self) -> None:
        """Move the files to the folder; the record last, so that it never lists files that are missing."""
        stage = self.stage
        if not self.target.is_dir():
            stage.rename(self.target)
            return
        names = [name for name in self.names() if name != RECORD]
        earlier = set(_listed_files(self.target)) - set(names)
        for name in [*names, RECORD] if (stage / RECORD).is_file() else names:
            path = self.target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(stage / name, path)
        for name in earlier - {RECORD}:
            (self.target / name).unlink(missing_ok=True)


def _write_error(what: str | Path, error: OSError) -> OutputError:
    return OutputError(f"{what} cannot be written: {error.strerror or error}; choose another --out")


def _listed_files(folder: Path) -> list[str]:
    """The files that an earlier run wrote, as its record lists them; an empty list without such a record."""
    try:
        names = json.loads((folder / RECORD).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    inside = [name for name in names if isinstance(name, str) and ".." not in name.split("/")]
    return [name for name in inside if not Path(name).is_absolute() and (folder / name).is_file()]
