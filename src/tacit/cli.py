"""The entry of the command line: ``tacit`` and ``python -m tacit``. The commands are in `tacit.commands`."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; click is imported here, and not by ``import tacit``."""
    from tacit.commands.group import main as run_command_line

    return run_command_line(arguments)
