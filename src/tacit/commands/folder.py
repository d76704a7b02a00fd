"""The folder of results: it appears whole or not at all, and files that tacit did not write are never touched."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tacit.commands.failures import OutputError

RECORD = "run.json"
"""The file that says what a run was, and which files it wrote."""


class OutputFolder:
    """Files are written to a hidden folder beside the real one, and moved when all of them are there.

    Parameters
    ----------
    path : the folder; it is made where it does not exist
    force : whether results of a former run may be replaced. Only files that its ``run.json`` lists are removed, and
        only files of the same name are overwritten: a folder with other things in it keeps them

    >>> with tempfile.TemporaryDirectory() as place:
    ...     with OutputFolder(Path(place) / "new" / "out") as folder:
    ...         folder.write_text("a.txt", "first")
    ...     try:
    ...         OutputFolder(Path(place) / "new" / "out").__enter__()
    ...     except OutputError as error:
    ...         print(str(error).replace(place, "PLACE"))
    the folder PLACE/new/out is not empty; choose another --out, or replace its results with --force
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self.target = Path(path)
        self._force = force
        self._stage: Path | None = None

    def __enter__(self) -> Self:
        """Refuse at once what could not be written later."""
        try:
            if self.target.exists() and not self.target.is_dir():
                raise OutputError(f"{self.target} is a file, and --out names a folder; choose another --out")
            if self.target.is_dir() and any(self.target.iterdir()) and not self._force:
                raise OutputError(
                    f"the folder {self.target} is not empty; choose another --out, or replace its results with --force"
                )
            self.target.absolute().parent.mkdir(parents=True, exist_ok=True)
            beside = self.target if self.target.is_dir() else self.target.absolute().parent
            self._stage = Path(tempfile.mkdtemp(prefix=".tacit-", suffix=".part", dir=beside))
        except OSError as error:
            raise OutputError(
                f"the folder {self.target} cannot be written: {error.strerror or error}; choose another --out"
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stage = self.stage
        try:
            if kind is None:
                self._publish()
            elif isinstance(error, OSError) and str(stage) in str(error.filename):
                name = Path(str(error.filename)).name
                raise OutputError(
                    f"{self.target / name} cannot be written: {error.strerror or error}; choose another --out"
                ) from error
        except OSError as failed:
            raise OutputError(
                f"the folder {self.target} cannot be written: {failed.strerror or failed}; choose another --out"
            ) from failed
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
            raise OutputError(f"{name!r} is no name of a file in the output folder")
        place = self.stage.joinpath(*parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, in UTF-8 with line ends of Unix."""
        self.write_bytes(name, text.encode("utf-8"))

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file."""
        place = self.path(name)
        try:
            place.write_bytes(content)
        except OSError as error:
            raise OutputError(
                f"{self.target / name} cannot be written: {error.strerror or error}; choose another --out"
            ) from error

    def names(self) -> list[str]:
        """The files written so far."""
        return sorted(file.relative_to(self.stage).as_posix() for file in self.stage.rglob("*") if file.is_file())

    def _publish(self) -> None:
        """Move the files to their place; the record last, so that it never lists what is not there."""
        stage = self.stage
        if not self.target.is_dir():
            mask = os.umask(0)
            os.umask(mask)
            stage.chmod(0o777 & ~mask)
            stage.rename(self.target)
            return
        names = [name for name in self.names() if name != RECORD]
        former = set(_listed_files(self.target)) - set(names)
        for name in [*names, RECORD] if (stage / RECORD).is_file() else names:
            place = self.target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            os.replace(stage / name, place)
        for name in former - {RECORD}:
            (self.target / name).unlink(missing_ok=True)


def _listed_files(folder: Path) -> list[str]:
    """The files that a former run wrote, as its record lists them; none where there is no record of tacit's."""
    try:
        names = json.loads((folder / RECORD).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    inside = [name for name in names if isinstance(name, str) and ".." not in name.split("/")]
    return [name for name in inside if not Path(name).is_absolute() and (folder / name).is_file()]
