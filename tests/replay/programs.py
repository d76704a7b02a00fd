"""Programs that work: statements of Python, whose calls of tacit can be changed one by one."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import os
import pkgutil
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import tacit

HOOK = "_call_"
"""What a program calls in place of every function: ``_call_(site, function, *args, **kwargs)``."""

FIT = """
problem, X, y, hidden = make_samples()
model = Learner(problem, C=5.0, tol=1e-2, verbose=0, random_state=0)
model.fit(X, y)
model.predict(X)
model.score(X, y)
model.save("model.tacit")
tacit.load("model.tacit").predict(X)
"""

KEPT = """
problem, X, y, hidden = make_samples()
problem.schema(X, y)
Learner(problem, C=5.0, tol=1e-2, verbose=0, max_iter=3, checkpoint="fit.state").fit(X, y, hidden=hidden)
Learner(problem, C=5.0, tol=1e-2, verbose=0, max_iter=3, checkpoint="fit.state", resume=True).fit(X, y, hidden=hidden)
"""


@dataclass
class Program:
    """Statements, what they need, and the files that lie in the folder where they run."""

    name: str
    statements: list[CodeType]
    names: dict[str, Any] = field(default_factory=dict)
    files: Path | None = None

    def prepare(self, folder: Path, source: Path | None) -> None:
        """Copy the files of a folder; those that only commands read are linked."""
        if source is not None:
            copy = os.link if self.files is not None else shutil.copyfile
            shutil.copytree(source, folder, dirs_exist_ok=True, copy_function=copy)


class _Hooked(ast.NodeTransformer):
    """Replaces every call ``f(a, b=c)`` by ``_call_(site, f, a, b=c)``."""

    def __init__(self) -> None:
        self.sites = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals"):
            return node
        self.sites += 1
        site = ast.Constant(self.sites)
        return ast.copy_location(
            ast.Call(ast.Name(HOOK, ast.Load()), [site, node.func, *node.args], node.keywords), node
        )


def compile_statements(name: str, source: str, hooked: _Hooked) -> list[CodeType]:
    tree = ast.fix_missing_locations(hooked.visit(ast.parse(source)))
    return [compile(ast.Module([line], []), f"<program {name}>", "exec") for line in tree.body]


def from_source(name: str, source: str, names: dict[str, Any], files: Path | None = None) -> Program:
    return Program(name, compile_statements(name, source, _Hooked()), names, files)


def find_programs(home: Path) -> list[Program]:
    """All programs; files that they need are written below ``home``."""
    from tests.replay.samples import readers

    return [*doctests(), *fits(), *commands(home), *readers(home / "samples")]


def doctests() -> Iterator[Program]:
    """One program per docstring with examples, in every module of tacit."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module in pkgutil.walk_packages(tacit.__path__, "tacit."):
        if module.name.endswith("__main__"):
            continue
        for test in finder.find(importlib.import_module(module.name)):
            hooked = _Hooked()
            lines = [
                line
                for example in test.examples
                if doctest.SKIP not in example.options
                for line in compile_statements(test.name, example.source, hooked)
            ]
            if hooked.sites:
                yield Program(test.name, lines, dict(test.globs))


def fits() -> Iterator[Program]:
    """All pairs of learners and problems, and again with checkpoints."""
    from tacit.testing import learner_checks, learners, problems

    @functools.cache
    def samples(number: int) -> Any:
        return kinds[number], *learner_checks.make_samples(kinds[number])

    kinds = problems()
    for learner in learners():
        for number, problem in enumerate(kinds):
            make_samples = functools.partial(samples, number)
            name = f"{learner.__name__} {type(problem).__name__} {number}"
            names = {"Learner": learner, "make_samples": make_samples, "tacit": tacit}
            yield from_source(name, FIT, names)
            yield from_source(f"{name} kept", KEPT, names)


def commands(home: Path) -> Iterator[Program]:
    """The commands that ``tacit examples`` prints."""
    run_command("examples", "--out", str(home / "examples"), "--force", "--quiet")
    motifs = home / "examples" / "motifs"
    lines = (home / "examples" / "commands.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, name, *words = line.split()
        given = [path for word in words for path in _expand(word, home / "examples")]
        if name == "scan":  # needs the model of the first command
            train = ["bound.fa", "unbound.fa", "--width", "8", "--motifs", "1"]
            run_command(
                "motif",
                *(str(home / "examples" / a) if a.endswith(".fa") else a for a in train),
                "--out",
                str(motifs),
                "--quiet",
            )
        source = f"run_command({name!r}, *{given!r}, '--quiet', '--safe-tables')\n".replace("*[", "").replace("],", ",")
        yield from_source(f"tacit {name}", source, {"run_command": run_command}, home / "examples")


def _expand(word: str, home: Path) -> list[str]:
    """The files that a pattern of the shell stands for."""
    return sorted(str(path.relative_to(home)) for path in home.glob(word)) if "*" in word else [word]


def run_command(*words: str) -> int:
    """A command of tacit in this process; its errors are raised, not turned into one line."""
    import click

    from tacit import cli
    from tacit.commands import group

    group.COMMANDS.update(cli.COMMANDS)
    try:
        return group.tacit.main(list(words), prog_name="tacit", standalone_mode=False) or 0
    except click.exceptions.Exit as end:
        return end.exit_code
