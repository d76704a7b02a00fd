"""One run of a command: its options, its inputs, its folder, what it says, and its record ``run.json``."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import math
import platform
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit import __version__
from tacit.commands.failures import EXIT_CODES, EXIT_INTERRUPTED
from tacit.commands.folder import RECORD, OutputFolder
from tacit.commands.tables import protect_tables
from tacit.commands.values import INPUT_FILE, POSITIVE, Choice, Number

if TYPE_CHECKING:
    from tacit.report import Page

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

MAX_SEED = 2**32 - 1

DONE, INTERRUPTED, OUT_OF_TIME = "done", "interrupted", "out of time"
"""How a run can end with results; the last two mean the best that was found until then."""

_RECORDED = ("numpy", "scipy", "scikit-learn", "numba")
"""Packages that can change the last bits of a result."""

_BLOCK = 1 << 20

NOT_RECORDED = ("quiet", "verbose", "debug")
"""Options that change no result."""

APPLY_OPTIONS = (
    *("model", "predict", "wanted", "transcripts", "out", "jobs", "force", "safe_tables", "as_json"),
    *("token", "features", "sequence", "mentions", "pharaoh", "cache"),
    *NOT_RECORDED,
)
"""Options that mean something where a model is applied and nothing is learned."""

REPORT = "report.html"

MAX_NAMED, MAX_LISTED = 4, 12
"""Inputs that the head of a report names; files that the closing lines name, and inputs that a report lists."""


def examples(*lines: str) -> str:
    """The epilog of the help of a command: command lines to copy, and the exit codes.

    >>> print(examples("tacit demo --out demo").replace("\\b\\n", "")[:33])
    Examples:
      tacit demo --out demo
    """
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines), "", EXIT_CODES])


def c_option(default: float | None = None, of: str = "") -> Decorator:
    """The option ``--c`` of commands with a loss; without a default, cross-validation chooses."""
    chosen = "; without it, cross-validation chooses" if default is None else ""
    words = f"Factor of the loss {of}against the penalty, above 0{chosen}."
    return click.option("--c", "C", type=POSITIVE, metavar="C", default=default, help=words)


def number_option(name: str, default: float, words: str, least: float = 1, most: float = math.inf) -> Decorator:
    """An option for a number from ``least`` to ``most``, whole if its default is."""
    return click.option(name, type=Number(type(default), least, most), default=default, help=words)


def choice_option(name: str, choices: Sequence[str], words: str) -> Decorator:
    """An option for one of some words, the first if it is not given."""
    return click.option(name, type=Choice(choices), default=choices[0], help=words)


def model_option(words: str) -> Decorator:
    """The option ``--model`` of commands that can apply the model of an earlier run."""
    return click.option("--model", type=INPUT_FILE, help=f"The model.tacit of an earlier run: {words}")


def load_model(path: Path, kind: type[Any], inputs: Mapping[str, Any]) -> Any:
    """The model of an earlier run of the present command, an instance of ``kind``.

    A model of another command is refused; so are inputs to learn from (by name, None where they were not given), and
    options of learning that were given on the command line.
    """
    from tacit import load

    context = click.get_current_context()
    typed = {
        max(param.opts, key=len)
        for param in context.command.params
        if isinstance(param, click.Option) and param.name not in APPLY_OPTIONS
        if context.get_parameter_source(str(param.name)) is click.core.ParameterSource.COMMANDLINE
    }
    learning = [name for name, value in inputs.items() if value] + sorted(typed)
    if learning:
        raise click.UsageError(
            f"{learning[0]} is for learning, and --model for a model that has learned; leave one out"
        )
    model = load(path)
    if not isinstance(model, kind):
        raise ValueError(
            f"{path} must be a model of 'tacit {context.info_name}', got a {type(model).__name__}; give the "
            "model.tacit of that command"
        )
    return model


def folder_option(name: str, words: str) -> Decorator:
    """An option for a folder to keep something in; it need not exist."""
    return click.option(name, type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", help=words)


def run_options(*, out: str, is_drawn: bool = True, is_parallel: bool = True, overwrites: bool = False) -> Decorator:
    """Give a command the shared options; the function gets a `CommandRun` as its first argument in their place.

    Parameters
    ----------
    out : the default of ``--out``
    is_drawn, is_parallel : whether something random or parallel happens, so that there are ``--seed`` and ``--jobs``
    overwrites : for commands whose folder holds nothing of the user's, which replace it without ``--force``
    """
    seed = number_option("--seed", 0, "Seed of all random numbers; the same seed gives the same results.", 0, MAX_SEED)
    most = "Largest number of threads; the results are the same for any number."
    options: list[Decorator] = [
        click.option(
            "--out",
            "-o",
            type=click.Path(path_type=Path),
            default=out,
            metavar="FOLDER",
            help="Folder for the results; it is created where it does not exist.",
        ),
        *([seed] if is_drawn else []),
        *([click.option("--jobs", "-j", type=Number(int, 1), help=most)] if is_parallel else []),
        click.option("--force", is_flag=True, help="Replace the results of an earlier run in the folder."),
        click.option(
            "--safe-tables", is_flag=True, help="Put ' before cells of tables that a spreadsheet would run as formulas."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the content of run.json instead of a summary."),
        click.option("--quiet", "-q", is_flag=True, help="Print nothing to the terminal except errors."),
        click.option("--verbose", "-v", is_flag=True, help="Print a line on progress every few seconds, for logs."),
        click.option("--debug", is_flag=True, help="Print the traceback of an error as well."),
    ]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(*, force: bool, safe_tables: bool, verbose: bool, debug: bool, **own: Any) -> int:
            context = click.get_current_context()
            given = [name for name in ("out", "seed", "jobs", "as_json", "quiet") if name in own]
            shared: dict[str, Any] = {name: own.pop(name) for name in given}
            if shared["quiet"] and verbose:
                raise click.UsageError("--quiet and --verbose exclude each other; leave one of them out")
            options = {name: value for name, value in context.params.items() if name not in NOT_RECORDED}
            shared |= {"force": force or overwrites, "safe_tables": safe_tables}
            shared |= {"is_verbose": verbose, "options": options}
            run = CommandRun(str(context.info_name), **shared)
            try:
                function(run, **own)
            except Exception:
                if debug:
                    traceback.print_exc(file=sys.stderr)
                raise
            return run.exit_code

        decorated: Callable[..., Any] = command
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


@dataclass(eq=False)
class CommandRun:
    """What a command gets from the shared options, and what it prints and writes through.

    Parameters
    ----------
    command : its name
    out : the output folder
    seed, jobs : for the application
    force : whether the results of a former run may be replaced
    safe_tables : whether cells that a spreadsheet would run as formulas get a ' before them
    as_json, quiet, is_verbose : how much is printed
    options : everything the user chose, for the record

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     run = CommandRun("demo", Path(place) / "out", quiet=True)
    ...     with run.writing() as folder:
    ...         folder.write_text("answer.txt", "42")
    ...         run.record(answer=42)
    ...     json.loads((Path(place) / "out" / "run.json").read_text())["answer"]
    42
    """

    command: str
    out: Path
    _: KW_ONLY
    seed: int = 0
    jobs: int | None = None
    force: bool = False
    safe_tables: bool = False
    as_json: bool = False
    quiet: bool = False
    is_verbose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.status = DONE
        self._facts: dict[str, Any] = {}
        self._files: list[str] = []
        self._inputs: list[dict[str, Any]] = []
        self._started = datetime.now(UTC)

    @property
    def verbose(self) -> int:
        """For the learners: 0 for nothing, 1 for a progress bar on a terminal, 2 for lines on any stderr."""
        return 2 if self.is_verbose else 0 if self.quiet or self.as_json else 1

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of an application that the shared options give."""
        return {"random_state": self.seed, "n_jobs": self.jobs, "verbose": self.verbose}

    @property
    def exit_code(self) -> int:
        return EXIT_INTERRUPTED if self.status == INTERRUPTED else 0

    @property
    def command_line(self) -> list[str]:
        """What the user typed; nothing where Python called the command."""
        return ["tacit", *sys.argv[1:]] if Path(sys.argv[0]).stem in ("tacit", "__main__") else []

    def note_status(self, status: Any) -> None:
        """Take over from a `tacit.runtime.Status` whether a fit was interrupted, or ended by its time budget."""
        self.status = {"interrupted": INTERRUPTED, "stopped": OUT_OF_TIME}.get(status.value, self.status)

    def say(self, text: str) -> None:
        """A result, on stdout; with ``--json`` and ``--quiet`` nothing."""
        if not (self.quiet or self.as_json):
            click.echo(text)

    def check_options(self, application: Any) -> None:
        """Check the parameters of an application: one that is wrong is an error of the command line."""
        try:
            application.check_parameters()
        except (ValueError, TypeError) as error:
            raise click.UsageError(str(error)) from error

    def note(self, text: str) -> None:
        """What happens at the moment, on stderr: on a terminal, or with ``--verbose``."""
        if self.is_verbose or (self.verbose and sys.stderr.isatty()):
            click.echo(text, err=True)

    def write_report(self, folder: Any, page: Page, found: str, quality: str, *notes: str) -> None:
        """Write report.html: verdict, inputs and date, the sections of the page, how far to trust it, how to repeat.

        ``found`` and ``quality`` are those of `finish`. ``notes`` are sentences on how to use the results. A page
        without blocks on trust is that of a run that learned nothing.
        """
        from tacit.report import Code, Facts, Prose, Section, render

        command = [Code(shlex.join(self.command_line))] if self.command_line else []
        inputs = [(f"input {Path(one['path']).name}", _describe_input(one)) for one in self._inputs[:MAX_LISTED]]
        others = len(self._inputs) - len(inputs)
        facts: list[tuple[str, Any]] = [
            *inputs,
            *([("more inputs", others)] if others > 0 else []),
            *([("seed", str(self.seed))] if "seed" in self.options else []),
            ("date", f"{self._started:%Y-%m-%d}"),
            ("version of tacit", __version__),
        ]
        text = " ".join([*notes, "run.json has all options, versions and checksums."])
        again = Section("How to do it again", [*command, Facts(facts), Prose(text)])
        verdict = f"{found}; {quality}".rstrip(".") + "."
        names = [Path(one["path"]).name for one in self._inputs]
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        origin = f"From {', '.join(names[:MAX_NAMED])}{more}, " if names else ""
        trust = page.trust or [Prose("This run learned nothing. See the report of the run that learned the model.")]
        page = replace(
            page,
            verdict=verdict[:1].upper() + verdict[1:],
            origin=f"{origin}{self._started:%Y-%m-%d}",
            sections=[*page.sections, Section("How far to trust it", trust), again],
        )
        folder.write_text(REPORT, render(page))

    def finish(self, found: str, quality: str, next_step: str) -> None:
        """Print the three lines at the end of every command (see `closing_lines`)."""
        found = found if self.status == DONE else f"{found} ({self.status}: the best results until then)"
        self.say(closing_lines(found, quality, self.out, self._files, next_step))

    def record(self, **facts: Any) -> None:
        """Add results to ``run.json``: anything that JSON can hold."""
        self._facts.update(facts)

    @contextmanager
    def writing(self, *inputs: Path | None) -> Iterator[OutputFolder]:
        """Check that the folder can be written and note the inputs; at the end write ``run.json`` and show it all.

        If anything fails inside, nothing is written, and the results of an earlier run are still there.
        """
        began, self._started = time.perf_counter(), datetime.now(UTC)
        with OutputFolder(self.out, force=self.force) as folder:
            self._inputs = [describe_file(path) for path in inputs if path is not None]
            yield folder
            if self.safe_tables:
                protect_tables(folder.stage)
            content = {
                "command": self.command,
                "status": self.status,
                "tacit": __version__,
                "command_line": self.command_line or None,
                "options": dict(self.options),
                "seed": self.seed,
                "inputs": self._inputs,
                "versions": {name: importlib.metadata.version(name) for name in _RECORDED},
                "python": platform.python_version(),
                "platform": platform.platform(),
                "started": self._started.isoformat(timespec="seconds"),
                "seconds": round(time.perf_counter() - began, 3),
                **self._facts,
                "files": (files := sorted([*folder.names(), RECORD])),
            }
            text = json.dumps(content, indent=2, default=_as_json, allow_nan=False) + "\n"
            folder.write_text(RECORD, text)
        self._files = files
        if self.as_json and not self.quiet:
            click.echo(text, nl=False)


def closing_lines(found: str, quality: str, folder: Path, files: Sequence[str], next_step: str) -> str:
    """What was found and how good it is on data held out, where the files are, and what to do next: a line each.

    >>> print(closing_lines("2 motifs", "held-out AUROC 0.93", Path("out"), ["logos/1.png", "a.tsv"], "open a.tsv"))
    Found: 2 motifs; held-out AUROC 0.93
    Files: out/ (a.tsv, logos/)
    Next:  open a.tsv
    """
    names = sorted({name if "/" not in name else name.split("/")[0] + "/" for name in files})
    rest = [f"{len(names) - MAX_LISTED} more"] if len(names) > MAX_LISTED else []
    return f"Found: {found}; {quality}\nFiles: {folder}/ ({', '.join(names[:MAX_LISTED] + rest)})\nNext:  {next_step}"


def count_noun(n: int, noun: str) -> str:
    """A number with its noun, as in "1 motif" and "1,200 motifs"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def describe_file(path: Path) -> dict[str, Any]:
    """Path, size and SHA-256 of an input, so that a reader of the record can tell whether it is the same file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     file = Path(place) / "a.txt"
    ...     _ = file.write_bytes(b"abc")
    ...     describe_file(file)["sha256"][:8]
    'ba7816bf'
    """
    if not path.is_file():  # standard input and pipes can be read only once
        return {"path": str(path), "bytes": None, "sha256": None}
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return {"path": str(path), "bytes": size, "sha256": digest.hexdigest()}


def _describe_input(described: Mapping[str, Any]) -> str:
    """Size and the start of the checksum of an input; its path where it can be read only once."""
    if described["sha256"] is None:
        return str(described["path"])
    return f"{described['bytes']:,} bytes, SHA-256 {described['sha256'][:12]}…"


def _as_json(value: Any) -> Any:
    """Paths as text, NumPy's numbers and arrays as Python's."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be written to run.json")


def draw_to_files() -> None:
    """Pictures go to files, so no display is needed."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
