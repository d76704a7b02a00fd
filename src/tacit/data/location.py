"""Where data sets are: a folder that the caller names, or one below the folder that TACIT_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

from tacit.data.parameters import file_path
from tacit.data.reading import named

VARIABLE = "TACIT_DATA"


def find_folder(folder: str | os.PathLike[str] | None, name: str) -> Path:
    """``folder``, here or below ``$TACIT_DATA``, or ``name`` below that if it is None; an error says what to set.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     find_folder(home, "mnist") == Path(home)
    True
    """
    home, under = os.environ.get(VARIABLE), file_path("name", name)
    if folder is None and not home:
        raise FileNotFoundError(
            f"no folder given and {VARIABLE} is not set: pass folder=..., or set {VARIABLE} to the folder that "
            f"holds {name!r}"
        )
    place = find_place(folder) if folder is not None else Path(str(home)) / under
    if not os.path.isdir(place):
        why = f" ({VARIABLE} is {home!r})" if folder is None else ""
        raise FileNotFoundError(f"there is no folder {named(place)}{why}")
    return place


def find_file(path: str | os.PathLike[str], what: str) -> Path:
    """The path of a file that is there; the error says what was looked for."""
    place = find_place(path)
    if not os.path.isfile(place):
        kind = "a folder" if os.path.isdir(place) else "missing"
        raise FileNotFoundError(f"{named(place)} is {kind}, and should be {what}")
    return place


def find_place(path: str | os.PathLike[str]) -> Path:
    """The path itself, or the same below ``$TACIT_DATA`` if it is there alone."""
    place, home = file_path("path", path), os.environ.get(VARIABLE)
    is_there_alone = home and not os.path.exists(place) and os.path.exists(Path(home) / place)
    return Path(home) / place if home and is_there_alone else place
