"""How the source is cut: modules, who imports them, and how many files and levels a fit passes."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tacit
from benchmarks.harness import Page
from tacit import LatentSVM
from tacit.datasets import planted_motif
from tacit.problems import Motif

HOME = Path(tacit.__file__).parent


def run() -> Page:
    page = Page(
        "The house",
        "Counts of the source of tacit. Files and levels are those of its own functions in the second call of "
        "`LatentSVM(Motif).fit`; must reach: at most 260 modules, 60 with one importer, 16 files per folder, 55,000 "
        "lines, 28 files and 16 levels, 120 modules for `MotifFinder`, 10 times `oracle: Any`, no ring.",
        ["what", "how many"],
    )
    texts = {path: path.read_text(encoding="utf-8") for path in HOME.rglob("*.py")}
    imports = find_imports(texts)
    importers = Counter(target for targets in imports.values() for target in targets)
    files, levels = measure_fit()
    page.rows += [
        ("modules", len(texts)),
        ("modules with one importer", sum(count == 1 for count in importers.values())),
        ("files in the fullest folder", max(Counter(path.parent for path in texts).values())),
        ("lines", sum(len(text.splitlines()) for text in texts.values())),
        ("files that a fit passes", files),
        ("levels of a fit", levels),
        ("modules loaded by `from tacit.apps import MotifFinder`", count_loaded("from tacit.apps import MotifFinder")),
        ("`oracle: Any`", sum(len(re.findall(r"\boracle: Any\b", text)) for text in texts.values())),
        ("modules in rings", len(find_rings(find_imports(texts, at_once=True)))),
    ]
    return page


def measure_fit() -> tuple[int, int]:
    """Files and levels of the second fit of a small latent SVM."""
    X, y, _ = planted_motif(200, 30, "GATTACA", noise=0.2)
    model = LatentSVM(Motif(7), C=10, n_init=2, verbose=0).fit(X, y)
    return profile_calls(lambda: model.fit(X, y))


def profile_calls(call: Callable[[], Any]) -> tuple[int, int]:
    """How many files of tacit a call passes, and how many of its functions are inside each other at the most."""
    files: set[str] = set()
    is_own: list[bool] = []
    deepest = 0

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal deepest
        if event == "call":
            name = frame.f_code.co_filename
            is_own.append(name.startswith(str(HOME)))
            if is_own[-1]:
                files.add(name)
                deepest = max(deepest, sum(is_own))
        elif event == "return" and is_own:
            is_own.pop()

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), deepest


def find_imports(texts: dict[Path, str], at_once: bool = False) -> dict[str, set[str]]:
    """The modules of tacit that each of them imports; ``at_once`` leaves out what functions import when called."""
    names = {path: ".".join(path.relative_to(HOME.parent).with_suffix("").parts) for path in texts}
    names = {path: name.removesuffix(".__init__") for path, name in names.items()}
    known = set(names.values())
    found: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        tree = ast.parse(text)
        for node in tree.body if at_once else ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = {name if name in known else node.module for name in inner}
            elif isinstance(node, ast.Import):
                targets = {alias.name for alias in node.names}
            else:
                continue
            found[names[path]] |= (targets & known) - {names[path]}
    return found


def find_rings(imports: dict[str, set[str]]) -> list[str]:
    """The modules that import each other in a circle, or are imported by such."""
    left = dict(imports)
    while free := [name for name, targets in left.items() if not targets & set(left)]:
        left = {name: targets for name, targets in left.items() if name not in free}
    return sorted(left)


def count_loaded(statement: str) -> int:
    """How many modules of tacit a statement loads, in a new process."""
    code = f"import sys; {statement}; print(sum(name.split('.')[0] == 'tacit' for name in sys.modules))"
    path = os.pathsep.join([str(HOME.parent), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    return int(done.stdout)
