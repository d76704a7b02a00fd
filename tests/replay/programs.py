"""Programs that work: statements of Python, whose calls of tacit can be changed one by one."""

from __future__ import annotations

import ast
import contextlib
import doctest
import functools
import importlib
import itertools
import os
import pkgutil
import shutil
from collections.abc import Iterator, Sequence
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


USES = {
    "motif": "scan {model} genome.fa",
    "locate": "locate photos --model {model}",
    "segment": "segment pebbles/images --model {model}",
    "bags": "bags molecules.csv --model {model}",
    "transcribe": "transcribe sounds --model {model}",
    "tag": "tag --predict words.txt --model {model}",
    "parse": "parse --predict sentences.tsv --model {model}",
    "coref": "coref --predict tales/new_*.conll --model {model}",
    "align": "align sentences.en-fr --model {model}",
    "reasons": "reasons reviews.jsonl --model {model}",
    "summarise": "summarise reviews.jsonl --model {model}",
}
"""What is done with the model of a command."""

QUICK = {"motif": "--width 8 --motifs 1", "bags": "--rule witness --kernel linear --c 1"}
"""Options without which a command takes ten seconds."""


def commands(home: Path) -> Iterator[Program]:
    """The commands that ``tacit examples`` prints, and for each one that uses what it has learned."""
    folder = home / "examples"
    run_command("examples", "--out", str(folder), "--force", "--quiet")
    for line in (folder / "commands.txt").read_text(encoding="utf-8").splitlines():
        name = line.split()[1]
        if name in USES:
            words = _expand(f"{line} {QUICK.get(name, '')}", folder)[1:]
            yield _command(f"tacit {name}", words, folder)
            model = f"trained_{name}"
            train = [model if before == "--out" else word for before, word in itertools.pairwise(["", *words])]
            use = USES[name].format(model=f"{model}/model.tacit")
            yield _command(f"tacit {name} --model", _expand(f"{use} --out more", folder), folder, train)


def _command(name: str, words: list[str], folder: Path, train: Sequence[str] = ()) -> Program:
    """A command in a folder of examples, and the one that must run there once before it."""

    def prepare() -> None:
        model = next((word for word in train if word.startswith("trained_")), "")
        if model and not Path(model).exists():
            with contextlib.chdir(folder):
                run_command(*train, "--quiet")
            shutil.copytree(folder / model, model)

    source = f"prepare()\nrun_command({', '.join(map(repr, words))}, '--quiet', '--safe-tables')\n"
    return from_source(name, source, {"run_command": run_command, "prepare": prepare}, folder)


def _expand(line: str, home: Path) -> list[str]:
    """The words of a line, and for patterns of the shell the files that they stand for."""
    found = ([str(path.relative_to(home)) for path in sorted(home.glob(w))] if "*" in w else [w] for w in line.split())
    return list(itertools.chain.from_iterable(found))


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
