"""Runs programs, and forks at their calls: each child has one argument changed, and limits on memory and time."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import inspect
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

import tacit
from tacit.commands import OutputError
from tests.fuzz.verdicts import raised_lines
from tests.replay.changes import Changer
from tests.replay.programs import HOOK, Program, run_command

MEMORY = 4 << 30
"""Bytes that a child may take beyond what it begins with."""

SECONDS = 10.0
"""Processor time of a child, beside five times what its program takes unchanged."""

OCCURRENCES = 3
"""How often the same call is changed where a program makes it again and again."""

SHARES = {"tacit ": 12.0, "tacit.": 1.5, "reader ": 6.0}
"""How often programs are drawn by how their names begin; 1/4 for fits, of which there are many."""

PER_PROGRAM = 25
"""Inputs between two runs of the same program."""

CONTRACTS = ("tacit.oracle", "tacit.testing", "tacit.runtime.loop", "tacit.runtime.blocks", "tacit.runtime.processes")
PARTS = ("tacit.penalties", "tacit.solvers", "tacit.learners.descents.pacing")
"""What people who extend tacit use: all of these modules, and the methods of the objects of those."""

TELLING = (
    ValueError,
    TypeError,
    OSError,
    IndexError,
    FloatingPointError,
    ImportError,
    click.ClickException,
    OutputError,
)
"""Kinds of errors that tell a user what to change."""


HOME = str(Path(tacit.__file__).parent)
HERE = str(Path(__file__).parent)


@dataclass
class Report:
    """What came of all inputs: counts by verdict, and every defect with its program and change."""

    counts: Counter[str] = field(default_factory=Counter)
    defects: list[dict[str, Any]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class Session:
    """One run of a program. With a plan, the process is forked before the calls that the plan names."""

    def __init__(self, program: Program, plan: dict[int, list[int]], log: int, seconds: float = 0.0) -> None:
        self.program, self.plan, self.log, self.seconds = program, plan, log, seconds
        self.calls, self.seen, self.with_nan = 0, Counter[int](), set[int]()
        self.case: dict[str, Any] | None = None
        self.current: Any = None

    def run(self) -> None:
        names = {**self.program.names, HOOK: self.call, "__name__": "program"}
        for statement in self.program.statements:
            try:
                exec(statement, names)
            except Exception as error:
                if self.case is not None:
                    self.leave(*judge(error))

    def call(self, site: int, function: Any, *args: Any, **kwargs: Any) -> Any:
        if self.case is None and (args or kwargs) and self.takes(function):
            self.seen[site] += 1
            if self.seen[site] <= OCCURRENCES:
                self.calls += 1
                left = list(self.plan.get(self.calls, ()))
                while left:
                    done = self.fork()
                    if done is None:
                        return self.checked(site, function, self.try_changes(function, args, kwargs, left))
                    del left[:done]
        self.current = function
        return self.checked(site, function, function(*args, **kwargs))

    def takes(self, function: Any) -> bool:
        """Whether the arguments of a call are changed: of public names, and of all readers of files."""
        is_ours = str(getattr(function, "__module__", "")).startswith(("tacit.", "tests.replay.samples"))
        return (self.is_reader() and is_ours) or is_public(function)

    def checked(self, site: int, function: Any, result: Any) -> Any:
        """The result; a child whose program gives NaN where it gave none unchanged ends here."""
        if has_nan(result):
            if self.case is None:
                self.with_nan.add(site)
            elif site not in self.with_nan and is_public(function):
                self.leave("nan", f"{_name(function)} gives NaN", _name(function))
        return result

    def fork(self) -> int | None:
        """None in the child; in the parent, which waits for it, the number of inputs that it has tried."""
        before = self.lines()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            return None
        _, status, _usage = os.wait4(pid, 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        if not (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0):
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)
            kind = "hang" if number in (signal.SIGPROF, signal.SIGALRM) else "crash"
            told = Path(f"../told.{pid}")
            case = json.loads(told.read_text()) if told.exists() else {"program": self.program.name}
            _write(self.log, {**case, "verdict": kind, "error": f"signal {number}", "where": case.get("function")})
        return max(1, self.lines() - before)

    def lines(self) -> int:
        size = os.fstat(self.log).st_size
        return os.pread(self.log, size, 0).count(b"\n")

    def try_changes(self, function: Any, args: Any, kwargs: Any, numbers: list[int]) -> Any:
        """In the child: one changed call after the other, up to one that gives a result; that goes on."""
        told = Path(f"../told.{os.getpid()}").absolute()
        folder = Path(tempfile.mkdtemp(dir=os.getcwd() + "-children"))
        self.program.prepare(folder, Path.cwd())
        os.chdir(folder)
        with open(os.devnull, "r+b") as nothing:
            for stream in (0, 1, 2):
                os.dup2(nothing.fileno(), stream)
        names = _argument_names(function, args, kwargs)
        _limit_memory()
        for number in numbers:
            _limit_time(SECONDS + 5 * min(self.seconds, SECONDS))
            seed = [zlib.crc32(self.program.name.encode()), self.calls, number]
            case = {"program": self.program.name, "call": self.calls, "number": number, "function": _name(function)}
            self.case, self.current = case, function
            changer = Changer(np.random.default_rng(seed), folder / f"change{number}")
            changer.folder.mkdir()
            given: list[Any] = [*args, *kwargs.values()]
            at = choose_argument(given, changer.rng, function is run_command, self.is_reader())
            try:
                given[at] = self.change(changer, function, given[at])
                case["change"] = f"{names[at]}: {changer.told}"
                told.write_text(json.dumps(case))
                return function(*given[: len(args)], **dict(zip(kwargs, given[len(args) :], strict=True)))
            except Exception as error:
                case["change"] = f"{names[at]}: {changer.told}"
                self.note(*judge(error))
        os._exit(0)

    def change(self, changer: Changer, function: Any, value: Any) -> Any:
        """Another value; a word of a command line stays a word, and has fewer letters than a value may have."""
        if function is run_command:
            new = changer.change(value)
            return (
                str(new)[:1000].replace("\0", "0").encode("utf-8", "replace").decode()
                if isinstance(new, str)
                else value[1:]
            )
        return changer.file(value) if self.is_reader() and os.path.exists(value) else changer.change(value)

    def is_reader(self) -> bool:
        return self.program.name.startswith("reader ")

    def note(self, verdict: str, error: str, where: str, trace: str = "") -> None:
        is_promised = self.takes(self.current) and not is_contract(self.current)
        if verdict in ("raw", "nan") and not is_promised:
            verdict = "contract"
        _write(self.log, {**(self.case or {}), "verdict": verdict, "error": error, "where": where, "trace": trace})

    def leave(self, verdict: str, error: str, where: str, trace: str = "") -> None:
        """The child ends, and says what came of its input."""
        self.note(verdict, error, where, trace)
        os._exit(0)


def choose_argument(given: list[Any], rng: np.random.Generator, is_command: bool, is_reader: bool) -> int:
    """Any argument; of a command most often an input file, and never its name; of a reader always a file."""
    files = [at for at, one in enumerate(given) if isinstance(one, str | Path) and os.path.exists(one)]
    if files and (is_reader or (is_command and rng.random() < 0.8)):
        return files[int(rng.integers(len(files)))]
    return int(rng.integers(int(is_command), len(given)))


def judge(error: BaseException) -> tuple[str, str, str, str]:
    """Verdict, text and place of an exception: clear if tacit or scikit-learn's validation raised it on purpose."""
    frames = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in frames if not frame.filename.startswith("<frozen")]
    text = f"{type(error).__name__}: {_text(error)[:300]}"
    inside = [at for at, frame in enumerate(frames) if frame.filename.startswith(HOME)]
    last = frames[-1].filename if frames else ""
    if (
        not inside
        or last.startswith((HERE, "<program"))
        or any(frame.filename.endswith("testing/per_sample.py") for frame in frames)
    ):
        return "own", text, "", ""
    if isinstance(error, OSError) and error.filename is not None:
        return "clear", text, "", ""
    place = frames[inside[-1]]
    where = f"{place.filename.removeprefix(HOME)[1:]}:{place.lineno} {place.name}"
    trace = "\n".join(f"  {f.filename}:{f.lineno} {f.name}: {f.line}" for f in frames[-6:])
    is_clear = last.startswith(HOME) and (place.lineno or 0) in raised_lines(place.filename)
    is_clear |= any(part in last for part in ("/sklearn/", "/click/")) and (frames[-1].lineno or 0) in raised_lines(
        last
    )
    if isinstance(error, TELLING) and is_clear and len(_text(error)) <= 3000 and _text(error).strip():
        return "clear", text, where, ""
    return "raw", text, where, trace


@functools.cache
def public_classes() -> tuple[set[Any], set[Any]]:
    """The classes and the functions that the packages of tacit export."""
    tables = [p.parent.relative_to(HOME).parts for p in Path(HOME).rglob("__init__.pyi")]
    found: list[Any] = []
    for parts in tables:
        module = importlib.import_module(".".join(("tacit", *parts)))
        found += [getattr(module, name) for name in module.__all__]
    kinds = {own for own in found if inspect.isclass(own)}
    return kinds, {own for own in found if inspect.isfunction(own)}


def is_public(function: Any) -> bool:
    """Whether this is an exported function or class, or a public method of an object of such a class."""
    kinds, functions = public_classes()
    try:
        if function is run_command:
            return True
        owner = getattr(function, "__self__", None)
        if owner is None or inspect.ismodule(owner):
            return function in kinds or function in functions
        kind = owner if inspect.isclass(owner) else type(owner)
        return not function.__name__.startswith("_") and any(own in kinds for own in kind.__mro__)
    except TypeError:
        return False


def is_contract(function: Any) -> bool:
    """Whether solvers and learners call this, and not users: docs/safety.md does not promise clear errors of it."""
    owner = getattr(function, "__self__", None)
    module = (function if owner is None or inspect.isclass(owner) else type(owner)).__module__
    is_part = module.startswith(CONTRACTS)
    is_made = inspect.isclass(function) and owner is None
    return is_part or (module.startswith(PARTS) and not is_made)


def has_nan(value: Any, depth: int = 0) -> bool:
    if isinstance(value, float):
        return value != value
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, list | tuple | dict) and depth < 3:
        return any(has_nan(v, depth + 1) for v in (value.values() if isinstance(value, dict) else value[:50]))
    return hasattr(type(value), "fit") and has_nan(vars(value).get("coef_"), depth + 1)


def replay(
    programs: Iterable[Program], inputs: int, seed: int = 0, show: Callable[[str], None] | None = None
) -> Report:
    """Draw programs and calls, change one argument each, and collect what comes of it."""
    report, rng = Report(), np.random.default_rng(seed)
    known = list(programs)
    shares = np.array([next((s for start, s in SHARES.items() if p.name.startswith(start)), 0.25) for p in known])
    gc.freeze()
    while report.total < inputs:
        program = known[rng.choice(len(known), p=shares / shares.sum())]
        with tempfile.TemporaryDirectory() as home, contextlib.chdir("."), _quiet():
            began = time.process_time()
            trial = Session(program, {}, -1)
            _run(trial, Path(home) / "first")
            if not trial.calls:
                shares[known.index(program)] = 0.0
                continue
            seconds = time.process_time() - began
            calls = rng.integers(1, trial.calls + 1, min(PER_PROGRAM, inputs - report.total))
            plan: dict[int, list[int]] = {}
            for call in calls:
                plan.setdefault(int(call), []).append(int(rng.integers(2**31)))
            log = os.open(Path(home) / "log", os.O_CREAT | os.O_APPEND | os.O_RDWR)
            session = Session(program, plan, log, seconds)
            session.with_nan = trial.with_nan
            _run(session, Path(home) / "again")
            if session.case is not None:
                session.leave("clean", "", "")
            cases = [json.loads(line) for line in (Path(home) / "log").read_text().splitlines()]
            os.close(log)
        if show is not None and report.total % 100 + len(cases) >= 100:
            show(json.dumps({"total": report.total + len(cases), **report.counts}))
        for case in cases:
            report.counts[case["verdict"]] += 1
            if case["verdict"] in ("raw", "crash", "hang", "nan"):
                report.defects.append(case)
                if show is not None:
                    show(json.dumps(case))
    return report


def _run(session: Session, folder: Path) -> None:
    for own in (folder, Path(f"{folder}-children")):
        own.mkdir()
    session.program.prepare(folder, session.program.files)
    os.chdir(folder)
    warnings.simplefilter("ignore")
    session.run()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
        yield


def _limit_memory() -> None:
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(seconds: float) -> None:
    """Signals end the process after so many seconds of processor time, and after five minutes."""
    for timer, number, most in (
        (signal.ITIMER_PROF, signal.SIGPROF, seconds),
        (signal.ITIMER_REAL, signal.SIGALRM, 300.0),
    ):
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, most)


def _argument_names(function: Any, args: Any, kwargs: Any) -> list[str]:
    try:
        names = list(inspect.signature(function).parameters)
    except (ValueError, TypeError):
        names = []
    return [names[at] if at < len(names) else str(at) for at in range(len(args))] + list(kwargs)


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", function))


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:
        return f"(str fails: {type(other).__name__})"


def _write(log: int, case: dict[str, Any]) -> None:
    os.write(log, (json.dumps(case) + "\n").encode())


if sys.platform == "win32":
    raise ImportError("there is no fork here")
