"""Where data sets are: a folder that the caller names, or one below the folder that TACIT_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "TACIT_DATA"


def find_folder(folder: str | os.PathLike[str] | None, name: str) -> Path:
    """``folder`` itself, or ``name`` below ``$TACIT_DATA`` if it is None; an error says what to set.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     find_folder(home, "mnist") == Path(home)
    True
    """
    home = os.environ.get(VARIABLE)
    if folder is None and not home:
        raise FileNotFoundError(
            f"no folder given and {VARIABLE} is not set: pass folder=..., or set {VARIABLE} to the folder that "
            f"holds {name!r}"
        )
    place = Path(folder) if folder is not None else Path(str(home)) / name
    if not place.is_dir():
        why = f" ({VARIABLE} is {home!r})" if folder is None else ""
        raise FileNotFoundError(f"there is no folder {str(place)!r}{why}")
    return place


def find_file(path: str | os.PathLike[str], what: str) -> Path:
    """The path of a file that is there; the error says what was looked for."""
    place = Path(path)
    if not place.is_file():
        kind = "a folder" if place.is_dir() else "missing"
        raise FileNotFoundError(f"{str(place)!r} is {kind}, and should be {what}")
    return place
