"""Files and folders that are being written: they get their name when they are complete. No NumPy, as for `lines`."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from pathlib import Path

UNFINISHED = ".tacit-", ".part"
"""How the names of files that are being written begin and end."""

STALE_AFTER = 600.0
"""Seconds after which an unfinished file that nobody wrote to was left by a process that was killed."""


def make_unfinished(folder: Path, is_folder: bool = False) -> Path:
    """A new empty file or folder under a new name, to be renamed when it is complete.

    The system gives it the permissions of any new file. Asking for the umask would set it to 0 for a moment, in which
    another thread could make a file that everybody may write.
    """
    begin, end = UNFINISHED
    while True:
        path = folder / f"{begin}{secrets.token_hex(8)}{end}"
        try:
            if is_folder:
                path.mkdir()
            else:
                path.touch(exist_ok=False)
        except FileExistsError:
            continue
        return path


def remove_unfinished(folder: str | os.PathLike[str]) -> int:
    """Remove unfinished files and folders that killed processes left in a folder; returns how many there were.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     left = Path(folder) / ".tacit-x1y2.part"
    ...     _ = left.write_bytes(b"half of a file")
    ...     os.utime(left, (0, 0))
    ...     remove_unfinished(folder)
    1
    """
    begin, end = UNFINISHED
    removed = 0
    try:
        for file in Path(folder).glob(f"{begin}*{end}"):
            inside = [part.stat().st_mtime for part in file.rglob("*")] if file.is_dir() else []
            if time.time() - max([file.stat().st_mtime, *inside]) <= STALE_AFTER:
                continue
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file)
            else:
                file.unlink()
            removed += 1
    except OSError:  # another process was faster, or may remove files where this one may not
        pass
    return removed
