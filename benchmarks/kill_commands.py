"""Commands that are ended by SIGKILL and SIGTERM at random moments, and started again."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Page, Skipped
from tacit import cli

ROUNDS = 10
"""How often each command is ended by signals, and then run to its end."""

PAIRS = 3
"""SIGTERM and SIGKILL so often before it may end."""

MAX_SECONDS = 450
"""Seconds after which the benchmark ends with fewer, but at least one of each."""

TIMES = ("run.json", "report.html", "model.tacit")
"""Results that hold times, and so differ from run to run; all others must have the same bytes."""


def write_inputs(folder: Path) -> dict[str, list[str]]:
    """The inputs of ``tacit examples`` and a model to scan with, and the arguments of every command that reads them."""
    run_here(["examples", "--out", str(folder / "examples"), "--quiet"])
    home = folder / "examples"
    lines = [line.split()[1:] for line in (home / "commands.txt").read_text(encoding="utf-8").splitlines()]
    commands = {line[0]: [own for word in line[:-2] for own in _expand(word, home)] for line in lines}  # not --out
    (home / "commands.txt").unlink()
    commands["motif"] += ["--width", "8", "--motifs", "1", "--checkpoint", "state", "--resume"]
    commands["bags"] += ["--rule", "witness", "--kernel", "linear", "--c", "1"]  # all kinds of models take ten seconds
    with contextlib.chdir(home):
        run_here(["motif", "bound.fa", "unbound.fa", "--width", "8", "--motifs", "1", "--out", "motifs", "--quiet"])
    return commands


def _expand(word: str, home: Path) -> list[str]:
    """The files that a pattern of the shell stands for."""
    return sorted(str(path.relative_to(home)) for path in home.glob(word)) if "*" in word else [word]


def run_here(arguments: list[str]) -> None:
    if (code := cli.main(arguments)) != 0:
        raise RuntimeError(f"tacit {arguments[0]} ends with exit code {code} without signals")


def start(arguments: list[str], folder: Path) -> Any:
    """A command in a process that is forked from this one, which has imported what commands need."""

    def work() -> None:
        os.chdir(folder)
        with open(os.devnull, "r+b") as nothing:
            for stream in (0, 1, 2):
                os.dup2(nothing.fileno(), stream)
        os._exit(cli.main([*arguments, "--out", "out", "--force", "--quiet"]))

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def results(folder: Path) -> dict[str, Any]:
    """The bytes of all results, but for those that hold times, and the names of these."""
    files = [path for path in sorted((folder / "out").rglob("*")) if path.is_file()]
    return {str(p.relative_to(folder)): None if p.name in TIMES else p.read_bytes() for p in files}


def unfinished(folder: Path) -> set[Path]:
    return set(folder.rglob(".tacit-*"))


def _wait(process: Any) -> int:
    process.join()
    return int(process.exitcode)


def run() -> Page:
    if os.name != "posix":
        raise Skipped("there is no SIGKILL here")
    page = Page(
        "Commands that are ended and started again",
        "Each command is ended at random moments of its run, by SIGTERM and by SIGKILL in turn, and then started again "
        "with the same arguments. Must reach: after SIGTERM the exit code 143 and no unfinished files; after the last "
        "start the same bytes as without signals, in all results that hold no times.",
        ["command", "SIGTERM", "exit code 143, nothing left", "SIGKILL", "rounds", "same results"],
    )
    rng, began = np.random.default_rng(0), time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        commands = write_inputs(Path(home))
        source = Path(home) / "examples"
        counts = {name: [0, 0, 0, 0, 0] for name in commands}
        expected: dict[str, Any] = {}
        seconds: dict[str, float] = {}
        for number_of_round in range(ROUNDS):
            for name, arguments in commands.items():
                if number_of_round and time.monotonic() - began > MAX_SECONDS:
                    continue
                folder = Path(home) / "rounds" / name
                shutil.rmtree(folder.parent, ignore_errors=True)
                shutil.copytree(source, folder)
                if name not in expected:
                    with contextlib.chdir(folder):  # in this process, so that kernels are loaded for all others
                        run_here([*arguments, "--out", "out", "--force", "--quiet"])
                    expected[name] = results(folder)
                    first = time.monotonic()
                    _wait(start(arguments, folder))
                    seconds[name] = time.monotonic() - first
                    shutil.rmtree(folder / "out")
                    (folder / "state").unlink(missing_ok=True)
                for number in (signal.SIGTERM, signal.SIGKILL) * PAIRS:
                    before = unfinished(folder)  # that SIGKILL left
                    process = start(arguments, folder)
                    time.sleep(float(rng.uniform(0.02, 1.0)) * seconds[name])
                    if process.is_alive():
                        os.kill(process.pid, number)
                    code = _wait(process)
                    if number == signal.SIGTERM and code != 0:
                        counts[name][0] += 1
                        counts[name][1] += code in (143, -signal.SIGTERM) and unfinished(folder) == before
                    counts[name][2] += number == signal.SIGKILL and code == -signal.SIGKILL
                is_done = _wait(start(arguments, folder)) == 0
                counts[name][3] += 1
                counts[name][4] += is_done and results(folder) == expected[name]
    page.rows = [(name, *own) for name, own in counts.items()]
    page.rows.append(("all", *np.sum(list(counts.values()), axis=0).tolist()))
    page.notes.append(
        "A command that ended before the signal came is not counted. A SIGTERM while Python starts, before the command "
        "itself runs, ends the process by the signal: the shell shows 143 as well."
    )
    return page
