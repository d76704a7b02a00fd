"""The command line: ``tacit demo``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tacit import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 on success, 1 with one line on stderr for a user's error, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="tacit", description="Learn from partly labelled data.")
    parser.add_argument("--version", action="version", version=f"tacit {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="find a hidden motif in DNA, and how far digits are turned (half a minute)")
    demo.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures (default: demo)")
    options = parser.parse_args(arguments)
    try:
        _use_files_only()
        from tacit.demo import reports

        for report in reports(options.out):
            print(report, flush=True)
    except (ValueError, OSError, ImportError) as error:
        print(f"tacit {options.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"tacit {options.command}: interrupted", file=sys.stderr)
        return 130
    return 0


def _use_files_only() -> None:
    """Pictures go to files, so no display is needed."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
