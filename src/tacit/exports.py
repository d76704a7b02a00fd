"""Tables of exports: the ``__init__.pyi`` of a package lists its names and the modules that define them.

Type checkers and `export` read that file, so a name is written once. A name is imported when it is first used, so
``import tacit`` is fast, and ``from tacit.apps import MotifFinder`` loads only what motifs need.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

Table = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def export(package: str, file: str) -> Table:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose exports are listed in the stub beside ``file``.

    A line of the stub is ``from tacit.room.module import Name as Name``.

    >>> import tacit.penalties
    >>> export("tacit.penalties", tacit.penalties.__file__)[2]
    ['GroupNorm', 'Penalty', 'Prior', 'Quadratic', 'without_bounds']
    """
    homes = read_exports(Path(file))

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        if home != package and hasattr(importlib.import_module(home), name):
            found = getattr(importlib.import_module(home), name)
        else:  # `from tacit import plot`: a package, not a name in a module
            found = importlib.import_module(f"{home}.{name}")
        setattr(sys.modules[package], name, found)
        return found

    names = sorted(homes)
    return get, lambda: names, names


def find_exported(name: str) -> Any:
    """What a package of tacit exports under this name; None for an unknown name."""
    package = _exporters().get(name)
    return None if package is None else getattr(importlib.import_module(package), name)


@cache
def _exporters() -> dict[str, str]:
    """The package that exports each name, for all packages of tacit."""
    home = Path(__file__).parent
    tables = {table: ".".join(("tacit", *table.parent.relative_to(home).parts)) for table in home.rglob("__init__.pyi")}
    return {name: package for table, package in tables.items() for name in read_exports(table)}


def read_exports(file: Path) -> dict[str, str]:
    """The module that each name of a stub is imported from."""
    tree = ast.parse(file.with_suffix(".pyi").read_text(encoding="utf-8"))
    lines = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: line.module or "" for line in lines for alias in line.names}
