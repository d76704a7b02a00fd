"""What an error becomes on the command line: an exit code, and one line that says cause, value and remedy."""

from __future__ import annotations

import errno

from tacit.data.lines import one_line

EXIT_INPUT = 1
"""An input is missing, or holds what cannot be used."""

EXIT_USAGE = 2
"""The command line itself is wrong: an unknown option, a value that the option does not allow, a missing argument."""

EXIT_OUTPUT = 3
"""The results cannot be written: the folder exists, is read-only, or the disk is full."""

EXIT_INTERRUPTED = 130
"""Ctrl-C; what was learned so far is in the folder, if there was anything."""

EXIT_TERMINATED = 143
"""SIGTERM: the system, or a scheduler, ended the command; nothing was written."""

EXIT_CODES = """Exit codes: 0 done; 1 an input is missing or cannot be used; 2 the command line is wrong; 3 the results
cannot be written; 130 interrupted by Ctrl-C; 143 ended by SIGTERM."""
"""What the help says about them."""

LONGEST_LINE = 1000
"""Characters of the line of an error."""

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


class TerminatedError(BaseException):
    """SIGTERM, as an exception, so that unfinished files are removed on the way out; nothing but `main` catches it."""


class OutputError(Exception):
    """The output folder cannot be written, or must not be."""


def explain(error: Exception) -> tuple[int, str]:
    """The exit code of an error, and its line.

    >>> explain(ValueError("width must be a whole number from 1, got width=0"))
    (1, 'width must be a whole number from 1, got width=0')
    >>> explain(OSError(errno.ENOSPC, "No space left on device"))
    (3, '[Errno 28] No space left on device; free some space, or choose another --out')
    """
    line = one_line(str(error), LONGEST_LINE)
    if isinstance(error, OutputError):
        return EXIT_OUTPUT, line
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        return EXIT_OUTPUT, f"{line}; free some space, or choose another --out"
    if isinstance(error, MemoryError):
        return EXIT_INPUT, "out of memory; give fewer or shorter inputs"
    if isinstance(error, ValueError | TypeError | OSError | ImportError):
        return EXIT_INPUT, line or type(error).__name__
    return EXIT_INPUT, f"{type(error).__name__}: {line} (this is a bug in tacit; --debug shows where)"
