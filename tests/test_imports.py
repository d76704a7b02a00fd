"""Imports go one way, from what a user calls down to what everything stands on."""

import ast
from pathlib import Path

import tacit

ROOMS = [
    {"arrays", "kernels", "links", "ragged", "region_graphs", "inputs", "shards"},
    {"running", "penalties"},
    {"datasets", "boxes", "text", "words"},
    {"oracle"},
    {"scale", "images", "problems", "pacing"},
    {"solvers", "storage"},
    {"learners"},
    {"dask"},
    {"ranking", "spectral", "regularisation_path", "state_selection"},
    {"plot"},
    {"report"},
    {"apps"},
    {"testing", "demo"},
    {"commands"},
    {"cli", "__main__"},
]
"""From the ground up. A module imports from its own storey and from those below; what is imported inside a function, to
start quickly, counts too, except where a model file is read: it names classes of every storey."""

LAZY = {("storage", "oracle"), ("storage", "learners")}


def storey(room):
    return next(level for level, rooms in enumerate(ROOMS) if room in rooms)


def imported_rooms(path):
    """The rooms of tacit that a file imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"tacit.{alias.name}" for alias in node.names] if node.module == "tacit" else [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "tacit" and len(parts) > 1 and any(parts[1] in rooms for rooms in ROOMS):
                yield parts[1]


def test_imports_go_one_way():
    home = Path(tacit.__file__).parent
    wrong = []
    for path in sorted(home.rglob("*.py")):
        own = path.relative_to(home).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        above = {room for room in imported_rooms(path) if storey(room) > storey(own) and (own, room) not in LAZY}
        wrong += [f"{path.relative_to(home)} imports {room}" for room in sorted(above)]
    assert wrong == []


def test_every_room_has_a_storey():
    home = Path(tacit.__file__).parent
    rooms = {path.name.removesuffix(".py") for path in home.iterdir() if path.suffix in ("", ".py")}
    rooms -= {"__init__", "__pycache__", "py.typed"}
    assert rooms == set().union(*ROOMS)


def test_problems_know_no_solver_and_solvers_no_learner():
    home = Path(tacit.__file__).parent
    for room, others in (("problems", {"solvers", "learners"}), ("solvers", {"learners"}), ("oracle", {"problems"})):
        for path in (home / room).rglob("*.py"):
            assert not others & set(imported_rooms(path)), f"{path} looks up"
