"""Who may import whom, in three rules: see docs/house.md for the map."""

import ast
from pathlib import Path

import pytest

import tacit
from tacit.exports import read_exports

HOME = Path(tacit.__file__).parent

CORE = {
    "data", "oracle", "problems", "penalties", "solvers", "learners", "runtime", "dask", "report", "commands", "plot",
    "testing", "exports",
}  # fmt: skip
DOMAINS = {"bags", "dna", "vision", "text", "spectral", "ranking", "signals"}
ABOVE = {"apps", "boxes", "cli", "datasets", "demo", "label", "__main__"}
"""What stands on the domains: short names, data sets, the demonstration, the command line."""

STOREYS = {"data": 0, "oracle": 1, "problems": 2, "penalties": 2, "solvers": 3, "learners": 4}
"""Within the core a module imports from its own storey and from those below."""


def find_home(module, name):
    """The module that a name of tacit lives in: tables of exports name it, where the module is a package with one."""
    table = HOME.joinpath(*module.split(".")[1:]) / "__init__.pyi"
    home = read_exports(table).get(name) if table.is_file() else None
    if home is None or home == module:
        return f"{module}.{name}" if module == "tacit" or home else module
    return find_home(home, name)


def imported_rooms(source):
    """The rooms of tacit that some code imports from, inside of functions too; examples in docstrings do not count."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            is_own = node.module.split(".")[0] == "tacit"
            names = [find_home(node.module, alias.name) for alias in node.names] if is_own else []
        elif isinstance(node, ast.ImportFrom) and node.level:
            raise ValueError(f"line {node.lineno} imports relatively, so that no rule can be read off it")
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            names = [node.value]  # what importlib is asked for
        for name in names:
            parts = name.split(".")
            if parts[0] == "tacit" and len(parts) > 1:
                yield parts[1]


def broken_rules(room, source):
    """What a module of this room must not import."""
    for other in imported_rooms(source):
        if room in CORE and other in DOMAINS | ABOVE:
            yield f"the core imports {other}"
        if room in DOMAINS and other in (DOMAINS - {room}) | ABOVE:
            yield f"the domain {room} imports {other}"
        if STOREYS.get(other, 0) > STOREYS.get(room, 9):
            yield f"{room} imports {other}, which is above it"


def rooms():
    names = {path.name.removesuffix(".py") for path in HOME.iterdir() if path.suffix in ("", ".py")}
    return names - {"__init__", "__pycache__", "py.typed"}


def test_every_module_keeps_the_rules():
    """Tables of exports (``__init__.pyi``) name what lives elsewhere; nothing else may."""
    wrong = []
    for path in sorted(HOME.rglob("*.py")):
        room = path.relative_to(HOME).parts[0].removesuffix(".py")
        source = path.read_text(encoding="utf-8")
        wrong += [f"{path.relative_to(HOME)}: {rule}" for rule in broken_rules(room, source)]
    assert wrong == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("solvers", "from tacit.dna.sequences import CODES"),
        ("report", "def draw():\n    from tacit import vision"),
        ("text", "import tacit.dna.sequences"),
        ("ranking", "from tacit.datasets import mnist"),
        ("oracle", "from tacit.problems import Chain"),
        ("problems", "from tacit.solvers import Bundle"),
        ("penalties", "from tacit.learners.learner import Learner"),
        ("learners", "from tacit.problems import Motif"),
        ("testing", "from tacit.problems import Chain, Detection"),
        ("plot", "def draw():\n    from tacit.plot import logo"),
        ("oracle", "from tacit import StructuredSVM"),
    ],
)
def test_a_broken_rule_is_found(room, source):
    assert list(broken_rules(room, source))


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("learners", "from tacit.problems import Chain"),
        ("dna", "from tacit import LatentSVM, Ragged"),
        ("oracle", 'def f():\n    """An example.\n\n    >>> from tacit.problems import Motif\n    """'),
    ],
)
def test_what_keeps_the_rules_is_not_called_broken(room, source):
    assert not list(broken_rules(room, source))


def test_every_room_is_known():
    assert rooms() == CORE | DOMAINS | ABOVE


def modules():
    """Every module and the modules that it imports when it is imported."""
    paths = {".".join(("tacit", *path.relative_to(HOME).with_suffix("").parts)): path for path in HOME.rglob("*.py")}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    found = {}
    for name, path in paths.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        targets = set()
        for node in imports:
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif node.module and node.level == 0:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                targets |= {one if one in paths else node.module for one in inner}
        found[name] = {target for target in targets if target in paths and target != name}
    return found


def test_no_ring_of_modules():
    left = modules()
    while True:
        free = {name for name, needs in left.items() if not needs & set(left)}
        if not free:
            break
        left = {name: needs for name, needs in left.items() if name not in free}
    assert sorted(left) == []


def test_no_export_has_the_name_of_a_module_beside_it():
    """Importing the module would put it in the place of the name."""
    for table in HOME.rglob("__init__.pyi"):
        package = ".".join(("tacit", *table.relative_to(HOME).parent.parts))
        beside = {path.stem for path in table.parent.iterdir()}
        names = {name for name, home in read_exports(table).items() if home != package}
        assert not names & beside, f"{table}: {names & beside}"
