"""``tacit examples``: the commands of the README run as printed, on files that tacit writes."""

import glob
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tacit.cli import COMMANDS, main
from tacit.demo.example_files import EXAMPLES, encode_png

README = Path(__file__).parents[2] / "README.md"
WITHOUT_FILES = {"demo", "completion", "examples", "network", "label"}  # label reads the files of locate and tag


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    out = tmp_path_factory.mktemp("try") / "examples"
    assert main(["examples", "--out", str(out), "--quiet"]) == 0
    return out


def call(line):
    words = [found for word in shlex.split(line)[1:] for found in (sorted(glob.glob(word)) or [word])]
    return main([*words, "--quiet"])


def test_every_command_that_reads_files_has_examples():
    assert set(EXAMPLES) == set(COMMANDS) - WITHOUT_FILES


def test_the_readme_has_the_calls_of_the_examples():
    calls = re.findall(r"\| `(tacit [^`]+)` \|$", README.read_text(), flags=re.M)
    assert [call for call in calls if call.split()[1] not in WITHOUT_FILES] == [e.call for e in EXAMPLES.values()]


def test_the_same_seed_writes_the_same_files(place, tmp_path):
    assert main(["examples", "--out", str(tmp_path / "again"), "--quiet"]) == 0
    names = {path.relative_to(place) for path in place.rglob("*") if path.is_file() and path.name != "run.json"}
    assert len(names) > 50
    assert all((place / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in names)


@pytest.mark.parametrize("shape", [(4, 5), (3, 2, 3)])
def test_png_files_hold_the_pixels(shape, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    (tmp_path / "a.png").write_bytes(encode_png(pixels))
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), pixels)


@pytest.mark.parametrize("name", ["tag", *(pytest.param(n, marks=pytest.mark.long) for n in EXAMPLES if n != "tag")])
def test_the_call_of_an_example_runs(name, place, monkeypatch):
    monkeypatch.chdir(place)
    if name == "scan":
        assert (place / "motifs").is_dir() or call(EXAMPLES["motif"].call) == 0
    out = place / EXAMPLES[name].call.rsplit(maxsplit=1)[1]
    assert out.is_dir() or call(EXAMPLES[name].call) == 0
    assert json.loads((out / "run.json").read_text())["status"] == "done"
    page = (out / "report.html").read_text()
    order = [
        'class="verdict"',
        r">From .*, \d{4}-\d\d-\d\d<",
        "<h2>What was",
        "<h2>How far to trust it",
        "<h2>How to do it again",
    ]
    positions = [re.search(part, page).start() for part in order]
    assert positions == sorted(positions)
