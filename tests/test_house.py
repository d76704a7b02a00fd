"""The maps of the house name every folder of the package, and nothing else."""

import re
from pathlib import Path

import tacit

HOME = Path(tacit.__file__).parent
ROOT = Path(__file__).parents[1]


def folders(depth):
    """The folders of the package with Python in them, down to some depth."""
    packages = {path.parent.relative_to(HOME) for path in HOME.rglob("*.py")} - {Path()}
    return {path.as_posix() for path in packages if len(path.parts) <= depth}


def test_the_map_for_contributors_names_every_folder():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = re.search(r"^src/tacit/\n(.*?)^```", text, re.S | re.M)[1].splitlines()
    named, room = [], ""
    for line in lines:
        found = re.match(r"(  |    )(\w+)/ ", line)
        if found and found[1] == "  ":
            room = found[2]
            named.append(room)
        elif found:
            named.append(f"{room}/{found[2]}")
    assert sorted(named) == sorted(folders(9))


def test_the_page_names_every_room():
    page = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)/` \|", page, re.M)) == sorted(folders(1))


def test_the_picture_names_every_room():
    drawn = (ROOT / "docs" / "images" / "house.svg").read_text(encoding="utf-8")
    titles = re.findall(r'class="title[^>]*>([^<]+)<', drawn)
    named = {name for title in titles for name in title.split(", ")}
    assert named == folders(1) | {"cli", "exports"}


def test_files_that_pages_name_exist():
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
    for page in pages:
        for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.pyi?)`", page.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file() or (HOME / name).is_file(), f"{page.name} names {name}"


def test_the_reference_has_a_page_per_room():
    pages = {page.stem for page in (ROOT / "docs" / "api").glob("*.rst")}
    assert pages == folders(1) - {"apps", "demo"}
