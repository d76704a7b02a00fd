"""The group ``tacit``: the list of its commands, and how one of them is found, run, and ended.

Other distributions add commands with an entry point of the group ``tacit.commands`` (docs/own_command.md).
"""

from __future__ import annotations

import importlib
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click
from click.shell_completion import get_completion_class

from tacit import __version__
from tacit.commands.failures import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    EXIT_USAGE,
    LONGEST_LINE,
    TerminatedError,
    explain,
)
from tacit.commands.values import Choice
from tacit.data.lines import one_line

COMMANDS: dict[str, tuple[str, str]] = {}
"""Every command of tacit's own, the module that has it under its name, and its line in ``tacit --help``: `tacit.cli`
lists them."""

ENTRY_POINTS = "tacit.commands"
"""The group of entry points by which other distributions add commands."""


class LazyGroup(click.Group):
    """A group that imports a command when it is called, so that ``tacit --help`` takes no longer than click."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *find_added_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
            return command
        entries = find_added_commands().get(cmd_name)
        return None if entries is None else _load_added(entries)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the nearest of all commands where there is none of this name."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            nearest = click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx)
            if nearest.possibilities:
                raise nearest from None
            raise click.UsageError(f"{error.message} tacit --help lists the commands.", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = [(name, line) for name, (_, line) in COMMANDS.items()]
        added = [(name, f"From {_distribution(entry)}.") for name, (entry, *_) in find_added_commands().items()]
        with formatter.section("Commands"):
            formatter.write_dl([*lines, *added])


def find_added_commands() -> dict[str, list[EntryPoint]]:
    """The commands of other distributions by name; tacit's own names cannot be taken."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        if entry.name not in COMMANDS:
            found.setdefault(entry.name, []).append(entry)
    return found


def _load_added(entries: list[EntryPoint]) -> click.Command:
    """Import a command of another distribution; an error names that distribution."""
    entry, *others = entries
    name, owner = entry.name, _distribution(entry)
    if others:
        owners = " and ".join(_distribution(entry) for entry in entries)
        raise ImportError(f"the command {name!r} is offered by {owners}; uninstall all but one of them")
    try:
        command = entry.load()
    except Exception as error:
        raise ImportError(
            f"the command {name!r} of {owner} cannot be loaded from {entry.value} "
            f"({type(error).__name__}: {error}); repair or uninstall {owner}"
        ) from error
    if not isinstance(command, click.Command):
        raise ImportError(
            f"the command {name!r} must be a click.Command, and {entry.value} of {owner} is of type "
            f"{type(command).__name__}; repair or uninstall {owner}"
        )
    return command


def _distribution(entry: EntryPoint) -> str:
    """Name and version of the distribution that an entry point comes from."""
    return "an unknown distribution" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, message="tacit %(version)s")
def tacit() -> None:
    """Learn from data of which a part is never labelled.

    A command reads files and writes a folder: report.html, which opens in any browser, files that other programs read,
    and run.json, the record of inputs, options and versions. At the end it prints what was found with its quality on
    held-out data, where the files are, and what to do next.
    """


@click.command(epilog=f"Example: tacit completion bash >> ~/.bashrc\n\n{EXIT_CODES}")
@click.argument("shell", type=Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands and options in your shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(tacit, {}, "tacit", "_TACIT_COMPLETE").source())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code, after one line on stderr if that is not 0."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = next((argument for argument in given if not argument.startswith("-")), "")
    shown = f"tacit {name}" if name in COMMANDS or name in find_added_commands() else "tacit"
    interrupts: list[int] = []
    try:
        with warnings.catch_warnings(), _noting_interrupts(interrupts):
            _show_warnings_in_one_line(shown)
            code = tacit.main(given, prog_name="tacit", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_USAGE
    except click.ClickException as error:
        remedy = f" {shown} --help shows the usage." if isinstance(error, click.MissingParameter) else ""
        click.echo(f"{shown}: {one_line(error.format_message(), LONGEST_LINE)}{remedy}", err=True)
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo(f"{shown}: interrupted; nothing was written", err=True)
        return EXIT_INTERRUPTED
    except TerminatedError:
        click.echo(f"{shown}: ended by SIGTERM; nothing was written", err=True)
        return EXIT_TERMINATED
    except BrokenPipeError:  # the reader of a pipe had enough
        sys.stderr.close()
        return 1
    except Exception as error:
        if interrupts:  # Ctrl-C inside of an import may end in any error
            click.echo(f"{shown}: interrupted; nothing was written", err=True)
            return EXIT_INTERRUPTED
        code, line = explain(error)
        click.echo(f"{shown}: {line}", err=True)
    return code if isinstance(code, int) else 0


@contextmanager
def _noting_interrupts(interrupts: list[int]) -> Iterator[None]:
    """Note every Ctrl-C before it is raised, and raise SIGTERM, where signals can be handled: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, frame: Any) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    def terminate(number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: nothing may stop the removal of files
        raise TerminatedError

    before = signal.signal(signal.SIGINT, note), signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def _show_warnings_in_one_line(shown: str) -> None:
    """Warnings go to stderr without the line of code that they come from, each once."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        click.echo(f"{shown}: note: {one_line(str(message), LONGEST_LINE)}", err=True)

    if not sys.warnoptions:
        warnings.simplefilter("default")
    warnings.showwarning = show
