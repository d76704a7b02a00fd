"""The options that every command with results has, and the `CommandRun` that they become."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tacit.commands.run import CommandRun

MAX_SEED = 2**32 - 1

INPUT_FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
"""An argument that names a file to read; click says in one line if there is none."""

INPUT_FILE_OR_FOLDER = click.Path(exists=True, readable=True, path_type=Path)
"""The same of a file, or of a folder of shards."""


def run_options(
    *, out: str, is_drawn: bool = True, overwrites: bool = False, option: str = "--out"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the shared options; the function gets a `CommandRun` as its first argument in their place.

    Parameters
    ----------
    out : the default of ``--out``
    is_drawn : whether something random or parallel happens, so that there are ``--seed`` and ``--jobs``
    option : its name, for commands whose main result is a file of its own
    overwrites : for commands whose folder holds nothing of the user's, which replace it without ``--force``
    """
    drawing = [
        click.option(
            "--seed",
            type=click.IntRange(0, MAX_SEED),
            default=0,
            show_default=True,
            help="Of everything random: the same seed gives the same results.",
        ),
        click.option("--jobs", type=click.IntRange(1), help="Threads at the most; the results are the same for any."),
    ]
    options = [
        click.option(
            option, "out", type=click.Path(path_type=Path), default=out, show_default=True, help="Output folder."
        ),
        *(drawing if is_drawn else []),
        click.option("--force", is_flag=True, help="Replace the results of a former run in the folder."),
        click.option("--json", "as_json", is_flag=True, help="Print the content of run.json instead of a summary."),
        click.option("--quiet", is_flag=True, help="Print nothing but errors."),
        click.option("--debug", is_flag=True, help="Show where in the code an error comes from."),
    ]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(
            *,
            out: Path,
            force: bool,
            as_json: bool,
            quiet: bool,
            debug: bool,
            seed: int = 0,
            jobs: int | None = None,
            **own: Any,
        ) -> int:
            context = click.get_current_context()
            run = CommandRun(
                str(context.info_name),
                out,
                seed=seed,
                jobs=jobs,
                force=force or overwrites,
                force_given=force,
                as_json=as_json,
                quiet=quiet,
                options={name: value for name, value in context.params.items() if name not in ("quiet", "debug")},
            )
            try:
                function(run, **own)
            except Exception:
                if debug:
                    traceback.print_exc(file=sys.stderr)
                raise
            return run.exit_code

        for option in reversed(options):
            command = option(command)
        return command

    return decorate
