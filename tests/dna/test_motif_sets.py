"""Many sets of sequences: motifs of each, similar ones together, and a table of motifs and sets."""

import json

import numpy as np
import pytest

from tacit.cli import main

FIRST, SECOND = "TGACTCATCC", "CAGGTGGTTA"


def plant(words, n=200, length=60, seed=0):
    """Random sequences that hold each of these words with a probability of 0.7."""
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list("ACGT"), length)) for _ in range(n)]
    for i in range(n):
        for k, word in enumerate(words):
            if rng.random() > 0.7:
                continue
            start = 30 * k + int(rng.integers(0, 20))
            texts[i] = texts[i][:start] + word + texts[i][start + 10 :]
    return texts


@pytest.fixture
def sets(tmp_path):
    paths = []
    words_of = {"one": [FIRST], "two": [SECOND], "again": [FIRST], "both": [FIRST, SECOND]}
    for seed, (name, words) in enumerate(words_of.items()):
        path = tmp_path / f"{name}.fa"
        path.write_text("".join(f">{name}{i}\n{x}\n" for i, x in enumerate(plant(words, seed=seed))))
        paths.append(str(path))
    return paths


OPTIONS = ["--width", "10", "--c", "1000", "--quiet"]


def test_a_table_says_which_set_holds_which_motif(sets, tmp_path):
    assert main(["motif", *sets[:3], *OPTIONS, "--out", str(tmp_path / "out")]) == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    names = ["one", "two", "again"]
    assert [one["name"] for one in record["sets"]] == names
    assert sorted(motif["found_in"] for motif in record["motifs"]) == [["one", "again"], ["two"]]
    for motif in record["motifs"]:
        for name in names:
            cell = motif["sets"][name]
            assert (cell["share"] > 0.6) == (cell["p_value"] < 1e-3) == (name in motif["found_in"])
            assert cell["expected"] < 0.35
    lines = (tmp_path / "out" / "motifs_by_set.tsv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 3
    assert "Motifs of many sets" in (tmp_path / "out" / "report.html").read_text()
    for name in names:
        assert (tmp_path / "out" / name / "model.tacit").exists()


def test_against_the_other_sets_only_what_differs_is_found(sets, tmp_path):
    sets = [sets[0], sets[3]]
    assert main(["motif", *sets, *OPTIONS, "--sets", "--against", "others", "--out", str(tmp_path / "out")]) == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert [motif["home"] for motif in record["motifs"]] == ["both"]  # both sets hold the first word
    (motif,) = record["motifs"]
    assert motif["sets"]["both"]["share"] > motif["sets"]["one"]["share"] + 0.4
    assert motif["sets"]["one"]["p_value"] is None


@pytest.mark.parametrize(
    ("words", "keyword"),
    [(["--sets"], "two files"), (["--against", "others"], "several sets"), (["--sets", "--match-gc"], "one set")],
)
def test_options_that_do_not_go_together_are_refused(words, keyword, sets, tmp_path, capsys):
    given = sets[: 1 + ("--match-gc" in words)]
    assert main(["motif", *given, *words, "--out", str(tmp_path / "out")]) == 2
    assert keyword in capsys.readouterr().err


def test_two_sets_of_one_name_are_refused(sets, tmp_path, capsys):
    assert main(["motif", *sets, sets[0], "--out", str(tmp_path / "out")]) == 2
    assert "rename" in capsys.readouterr().err
