"""Files of users: where they are, and the one limit of all readers.

A data set is in a folder that the caller names, or in one below the folder that TACIT_DATA names.

A file of a megabyte can unpack to gigabytes, and a header of a few bytes can promise more than there is. So a reader
takes at most ``max_bytes`` from a file, `MAX_BYTES` unless its caller says otherwise, and finds out before it takes
them; what a header declares must fit what is on disk. Messages name the file and the position in it, and never repeat
more than a few words of what stands there.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from tacit.data.parameters import file_path, reason, shorten, whole_number

MAX_BYTES = 1 << 28
"""Bytes that a reader takes from one file, unpacked: 256 MiB. Text may take ten times as much as Python objects."""

MAX_LINE = 1 << 25
"""Bytes of one line of text: 32 MiB."""

DEFLATE = 1032
"""Deflate packs no more than this many bytes into one."""


def read_bytes(path: Path, max_bytes: Any = MAX_BYTES) -> bytes:
    """The content of a file, unpacked if it is gzipped; a file of more than ``max_bytes`` is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bomb = Path(folder) / "bomb.gz"
    ...     _ = bomb.write_bytes(gzip.compress(bytes(10**6)))
    ...     read_bytes(bomb, max_bytes=1000)
    Traceback (most recent call last):
    ...
    ValueError: '...bomb.gz' unpacks to more than max_bytes=1000; raise it if you trust the file
    """
    room = whole_number("max_bytes", max_bytes, 1, 1 << 62)
    with reading(path), open_unpacked(path) as stream:
        content: bytes = stream.read(room + 1)
    if len(content) > room:
        raise too_large(path, room)
    return content


def read_text(path: Path, max_bytes: Any = MAX_BYTES) -> str:
    """The text of a file in UTF-8 under the limit of `read_bytes`, without a byte order mark."""
    try:
        return read_bytes(path, max_bytes).decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ValueError(f"{quote(path)} is not text in UTF-8 ({reason(error)}); save the file as UTF-8") from error


STDIN = Path("-")
"""The path that stands for standard input."""

_GZIP_MAGIC = b"\x1f\x8b"


def open_unpacked(path: Path | str) -> Any:
    """A stream of the unpacked bytes of a file, or of standard input for ``-``; gzip is recognised by its first bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     packed = Path(folder) / "without_ending"
    ...     _ = packed.write_bytes(gzip.compress(b"ACGT"))
    ...     with open_unpacked(packed) as stream:
    ...         stream.read()
    b'ACGT'
    """
    path = Path(path)
    stream: Any = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer)) if path == STDIN else path.open("rb")
    if path.suffix != ".gz" and stream.peek(2)[:2] != _GZIP_MAGIC:
        return stream
    unpacked = gzip.GzipFile(fileobj=stream)
    unpacked.myfileobj = stream  # closed with it
    return unpacked


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Wraps the reading of a file: errors of the system and of unpacking name it, and say what to do."""
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{quote(path)} is truncated or not a gzip file ({reason(error)}); fetch it again") from error
    except OSError as error:
        raise unreadable(path, error) from error


class GuardedStream(io.RawIOBase):
    """The unpacked bytes of a file, for parsers of others that keep a line or a record in memory: both are limited.

    Parameters
    ----------
    path : the file
    max_bytes : of the file; None for any number
    max_line : bytes of a line
    record_start : bytes that begin a record, such as b"\\n>"; each of its lines counts 32 bytes more. None: a record is
        a line
    max_record : bytes of a record
    max_lines : of the file; None for any number
    """

    def __init__(
        self,
        path: Path,
        max_bytes: int | None = None,
        max_line: int = MAX_LINE,
        record_start: bytes | None = None,
        max_record: int = MAX_BYTES,
        max_lines: int | None = None,
    ) -> None:
        super().__init__()
        self.path, self.max_bytes, self.max_line = path, max_bytes, max_line
        self.record_start, self.max_record = record_start, max_record
        self._stream = open_unpacked(path)
        self.max_lines = max_lines
        self._total = self._line = self._record = self._lines = 0

    def readable(self) -> bool:
        return True

    def first_byte(self) -> bytes:
        """The first byte of the file after a byte order mark, which is read again later; empty for an empty file."""
        if self._stream.peek(3)[:3] == b"\xef\xbb\xbf":
            self._stream.read(3)
        start: bytes = self._stream.peek(1)[:1]
        return start

    def readinto(self, buffer: Any) -> int:
        block: bytes = self._stream.read(min(len(buffer), 1 << 16))
        self._total += len(block)
        if self.max_bytes is not None and self._total > self.max_bytes:
            raise too_large(self.path, self.max_bytes)
        self._lines += block.count(b"\n")
        if self.max_lines is not None and self._lines > self.max_lines:
            raise ValueError(f"{quote(self.path)} has more than {self.max_lines} lines; split it, or raise max_bytes")
        self._line = self._grow(self._line, block, b"\n", 0, self.max_line, "line")
        if self.record_start is not None:
            self._record = self._grow(self._record, block, self.record_start, 32, self.max_record, "record")
        buffer[: len(block)] = block
        return len(block)

    def _grow(self, size: int, block: bytes, mark: bytes, per_line: int, most: int, what: str) -> int:
        """The size of the line or record at the end of the block; that of the one at its start must be allowed."""
        first = block.find(mark)
        head = block if first < 0 else block[:first]
        size += len(head) + per_line * head.count(b"\n")
        if size > most:
            raise ValueError(f"{quote(self.path)} has a {what} of more than {most} bytes; split it, or fetch it again")
        if first < 0:
            return size
        tail = block[block.rfind(mark) :]
        return len(tail) + per_line * tail.count(b"\n")

    def close(self) -> None:
        self._stream.close()
        super().close()


def check_promise(path: Path, promised: int, max_bytes: Any) -> None:
    """Refuse a file that declares more bytes than it can hold, or than are read."""
    room = whole_number("max_bytes", max_bytes, 1, 1 << 62)
    on_disk = path.stat().st_size
    if promised > on_disk * (DEFLATE if path.suffix in (".gz", ".npz") else 1):
        raise ValueError(
            f"{quote(path)} is too short: it promises {promised} bytes, and {on_disk} are on disk; it is truncated or "
            "changed: fetch it again"
        )
    if promised > room:
        raise too_large(path, room, promised)


def too_large(path: Path, room: int, size: int | None = None) -> ValueError:
    """The error of a file above the limit; ``size`` is what it unpacks to, where that is known."""
    known = "" if size is None else f"{size} bytes, "
    return ValueError(f"{quote(path)} unpacks to {known}more than max_bytes={room}; raise it if you trust the file")


def unreadable(path: Path, error: OSError) -> OSError:
    """The error of a file that is there and cannot be read."""
    message = f"{quote(path)} could not be read: {error.strerror or error}"
    return OSError(error.errno, message) if error.errno else OSError(message)


def quote(path: str | os.PathLike[str]) -> str:
    """A file as messages name it: the end of a long path, in quotes."""
    text = os.fspath(path)
    return repr(text) if len(text) <= 300 else shorten(text, 300)


VARIABLE = "TACIT_DATA"
"""The environment variable that names the folder of data sets."""


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
    path = find_path(folder) if folder is not None else Path(str(home)) / under
    if not os.path.isdir(path):
        why = f" ({VARIABLE} is {home!r})" if folder is None else ""
        raise FileNotFoundError(f"the folder {quote(path)} does not exist{why}")
    return path


def find_file(path: str | os.PathLike[str], what: str) -> Path:
    """The path of a file that is there; the error says what was looked for."""
    path = find_path(path)
    if not os.path.isfile(path):
        kind = "a folder" if os.path.isdir(path) else "missing"
        raise FileNotFoundError(f"{quote(path)} is {kind}, and should be {what}")
    return path


def find_path(path: str | os.PathLike[str]) -> Path:
    """The path itself, or the same below ``$TACIT_DATA`` if it is there alone."""
    path, home = file_path("path", path), os.environ.get(VARIABLE)
    is_there_alone = home and not os.path.exists(path) and os.path.exists(Path(home) / path)
    return Path(home) / path if home and is_there_alone else path


def find_packed(folder: Path, name: str, remedy: str) -> Path:
    """The file ``name.gz`` or ``name`` of a folder, whichever exists."""
    found = next((path for end in (".gz", "") if os.path.isfile(path := folder / f"{name}{end}")), None)
    if found is None:
        raise FileNotFoundError(f"{quote(folder)} lacks {shorten(name)}, plain or .gz; {remedy}")
    return found
