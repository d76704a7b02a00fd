"""Types of arguments and options: a plain name in the help, and one sentence that names the option in errors."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, NoReturn

import click


class InputPath(click.Path):
    """A path that is read. A missing file has the exit code of a bad file (1), not of a wrong command line (2)."""

    def __init__(self, name: str, *, file_okay: bool = True, dir_okay: bool = True, allow_dash: bool = False) -> None:
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, path_type=Path)
        self.name, self.allow_dash = name, allow_dash

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path, role = Path(value), f"{str(value)!r} ({parameter_name(param)})"
        if self.allow_dash and str(value) == "-":
            return path
        if not path.exists():
            raise FileNotFoundError(f"{role} does not exist; check the path")
        if path.is_dir() and not self.dir_okay:
            raise IsADirectoryError(f"{role} is a folder; give the path of a file")
        if not path.is_dir() and not self.file_okay:
            raise NotADirectoryError(f"{role} is a file; give the path of a folder")
        if not os.access(path, os.R_OK):
            raise PermissionError(f"{role} cannot be read; change its permissions")
        return path


INPUT_FILE = InputPath("FILE", dir_okay=False)
"""An argument or option that names a file to read."""

INPUT_FILE_OR_STDIN = InputPath("FILE", dir_okay=False, allow_dash=True)
"""The same for a file, or - for standard input."""

INPUT_FOLDER = InputPath("FOLDER", file_okay=False)
"""The same for a folder."""

INPUT_FILE_OR_FOLDER = InputPath("PATH")
"""The same for a file or a folder."""

INPUT_PATH_OR_STDIN = InputPath("PATH", allow_dash=True)
"""The same for a file, a folder, or - for standard input."""


class Number(click.ParamType[Any]):
    """A number from ``least`` to ``most``, or above ``least`` if that is not allowed itself.

    >>> Number(int, 1, 64).convert("8", None, None)
    8
    >>> Number(float, 0, is_open=True).describe()
    'a number above 0'
    """

    name = "N"

    def __init__(self, kind: type[int] | type[float], least: float, most: float = math.inf, *, is_open: bool = False):
        self.kind, self.least, self.most, self.is_open = kind, least, most, is_open

    def describe(self) -> str:
        """Which numbers are allowed, in words."""
        what = "a whole number" if self.kind is int else "a number"
        if self.most == math.inf:
            return f"{what} above {self.least}" if self.is_open else f"{what} of at least {self.least}"
        return f"{what} {f'above {self.least} and up' if self.is_open else f'from {self.least}'} to {self.most}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = self.kind(value)
        except ValueError:
            refuse(value, self.describe(), param, ctx)
        is_above = number > self.least if self.is_open else number >= self.least
        if not (is_above and number <= self.most and math.isfinite(number)):
            refuse(value, self.describe(), param, ctx)
        return number


POSITIVE = Number(float, 0, is_open=True)


class Choice(click.Choice[str]):
    """One of some words. Spaces may be written for hyphens, as in files of earlier versions."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        return super().normalize_choice(choice, ctx).replace(" ", "-")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if self.normalize_choice(value, ctx) not in self.choices:
            refuse(value, " or ".join(self.choices), param, ctx)
        return super().convert(value, param, ctx)


def refuse(value: Any, wanted: str, param: click.Parameter | None, ctx: click.Context | None) -> NoReturn:
    """Raise the error of a value that is not what the option wants."""
    raise click.UsageError(f"{parameter_name(param)} must be {wanted}, got {str(value)!r}", ctx)


def parameter_name(param: click.Parameter | None) -> str:
    """The name that users see: the long form of an option, or the name of an argument in the usage line."""
    if param is None:
        return "the value"
    return max(param.opts, key=len) if isinstance(param, click.Option) else param.human_readable_name
