"""Where sites lie: counts per sequence, the middle of sequences, pairs of motifs; and shares of G and C."""

import json

import numpy as np
import pytest

from tacit.apps import MotifFinder
from tacit.cli import main
from tacit.dna.finder.files import match_gc_rows
from tacit.dna.finder.placement import SITES_PER_SEQUENCE, Placement, find_distance, find_sites, measure_centre
from tacit.dna.sequences import read_sequences

FIRST, SECOND = "TGACTCATCC", "CAGGTGGTTA"


def plant(starts, n=300, length=100, seed=0):
    """Positives hold FIRST at starts[:, 0] and SECOND at starts[:, 1]; a negative start leaves it out."""
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list("ACGT"), length)) for _ in range(2 * n)]
    for i in range(n):
        for word, start in zip((FIRST, SECOND), starts[i], strict=True):
            if start >= 0:
                texts[i] = texts[i][:start] + word + texts[i][start + 10 :]
    return texts, np.repeat([1, -1], n)


@pytest.mark.parametrize("is_central", [True, False])
def test_sites_near_the_middle_are_significant_and_others_not(is_central):
    rng = np.random.default_rng(1)
    start = rng.integers(38, 52, 300) if is_central else rng.integers(0, 91, 300)
    X, y = plant(np.column_stack([start, np.full(300, -1)]))
    finder = MotifFinder(width=10, C=1000, n_motifs=1, verbose=0).fit(X, y)
    (place,) = finder.placements_
    assert (place.centre_p_value < 1e-9) == is_central
    assert place.none + place.one + place.several == pytest.approx(1)
    assert place.one > 0.7
    assert finder.pairs_ == []


def test_p_values_of_the_middle_are_uniform_by_chance():
    rng = np.random.default_rng(2)
    p = np.array([measure_centre(rng.random(40))[1] for _ in range(2000)])
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.015)
    assert measure_centre(np.zeros(0)) == (0.5, 1.0)


@pytest.mark.parametrize("is_fixed", [True, False])
def test_a_fixed_distance_of_two_motifs_is_found(is_fixed, tmp_path):
    rng = np.random.default_rng(3)
    first = rng.integers(0, 40, 300)
    second = first + 25 if is_fixed else 50 + rng.integers(0, 41, 300)
    first[:100], second[100:200] = -1, -1  # each motif is needed
    X, y = plant(np.column_stack([first, second]))
    for name, label in (("a.fa", 1), ("b.fa", -1)):
        (tmp_path / name).write_text("".join(f">s{i}\n{X[i]}\n" for i in np.flatnonzero(y == label)))
    files = [str(tmp_path / "a.fa"), str(tmp_path / "b.fa")]
    options = ["--width", "10", "--c", "1000", "--motifs", "2", "--quiet", "--out", str(tmp_path / "out")]
    assert main(["motif", *files, *options]) == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    (pair,) = record["pairs"]
    is_near = abs(abs(pair["distance"]) - 25) <= 2  # a window may be off by a letter
    assert (is_near and pair["distance_p_value"] < 1e-9) == is_fixed
    report = (tmp_path / "out" / "report.html").read_text()
    assert "most frequent distance" in report
    assert ("perhaps one motif" in report) == is_fixed
    assert {one["placement"]["sites_per_sequence"] for one in record["motifs"]} <= set(SITES_PER_SEQUENCE)


def test_distances_by_chance_are_rarely_significant():
    rng = np.random.default_rng(4)
    p = [find_distance(rng.integers(0, 91, 60) - rng.integers(0, 91, 60), 10, 100)[2] for _ in range(300)]
    assert np.mean(np.array(p) < 0.05) < 0.06
    assert find_distance(np.zeros(0, int), 10, 100) == (None, 0, 1.0)


def test_overlapping_windows_count_once_on_either_strand():
    sequences = read_sequences(["AAAAAAA", "CCTTTCC", "CCCCC", "AA"])
    for strands, rows in ((2, [0, 0, 1]), (1, [0, 0])):
        assert find_sites(sequences, np.eye(4)[[0, 0, 0]], 2.5, strands).row.tolist() == rows
    found = find_sites(sequences, np.eye(4)[[0, 0, 0]], 2.5, 2, most="one")
    assert (found.row.tolist(), found.strand.tolist()) == ([0, 1, 2], [0, 1, 0])


def test_of_overlapping_windows_the_best_is_the_site():
    weights = np.eye(4)[[0, 1, 2]] + [[0, 0, 0, 0.5], [0, 0, 0, 0], [0, 0, 0, 0]]
    found = find_sites(read_sequences(["TACGCC"]), weights, 0.4, 1)  # TAC, ACG, CGC, GCC score 0.5, 3, 0, 1
    assert (found.start.tolist(), found.value.tolist()) == ([1], [3.0])


def test_sites_over_an_end_are_found_with_an_overhang():
    found = find_sites(read_sequences(["CGAA"]), np.eye(4)[[0, 1, 2]], 2.0, 1, overhang=1)
    assert found.start.tolist() == [-1]


@pytest.mark.parametrize(("told", "per_positive"), [("one", 1.0), ("any", 1.67), ("zero-or-one", 0.9)])
def test_as_many_sites_are_listed_as_are_told(told, per_positive):
    rng = np.random.default_rng(6)
    start = rng.integers(0, 35, 300)
    X, y = plant(np.column_stack([start, np.full(300, -1)]))
    X = [x[:50] + (x[:50] if i < 200 else x[50:]) for i, x in enumerate(X)]  # two of three positives hold two
    finder = MotifFinder(width=10, C=1000, n_motifs=1, sites_per_sequence=told, verbose=0).fit(X, y)
    (found,) = finder.site_lists_
    assert (y[found.row] == 1).all()
    assert (np.diff(found.value) <= 0).all()
    counts = np.bincount(found.row, minlength=300)[:300]
    assert counts.mean() == pytest.approx(per_positive, abs=0.25)
    assert (counts.max() > 1) == (told == "any")
    assert told != "one" or (counts == 1).all()


def test_sites_per_sequence_have_a_name():
    assert Placement(0.0, 0.98, 0.02, 0.5, 1.0).model == "one"
    assert Placement(0.4, 0.55, 0.05, 0.5, 1.0).model == "zero-or-one"
    assert Placement(0.1, 0.5, 0.4, 0.5, 1.0).model == "any"


def test_matched_negatives_have_the_same_shares_of_g_and_c(tmp_path, capsys):
    rng = np.random.default_rng(5)
    rich = ["".join(rng.choice(list("ACGT"), 60, p=[0.2, 0.3, 0.3, 0.2])) for _ in range(150)]
    poor = ["".join(rng.choice(list("ACGT"), 60, p=[p, 0.5 - p, 0.5 - p, p])) for p in rng.uniform(0.19, 0.45, 1500)]
    rows = match_gc_rows(rich, poor)
    share = [[(text.count("G") + text.count("C")) / 60 for text in part] for part in (rich, [poor[i] for i in rows])]
    assert len(rows) >= 150
    assert np.mean(share[0]) == pytest.approx(np.mean(share[1]), abs=0.02)
    for name, part in (("a.fa", rich), ("b.fa", poor)):
        (tmp_path / name).write_text("".join(f">s{i}\n{text}\n" for i, text in enumerate(part)))
    words = ["motif", str(tmp_path / "a.fa"), str(tmp_path / "b.fa"), "--width", "8", "--c", "300"]
    assert main([*words, "--out", str(tmp_path / "plain")]) == 0
    assert "--match-gc" in capsys.readouterr().out
    assert main([*words, "--match-gc", "--out", str(tmp_path / "matched")]) == 0
    assert "--match-gc" not in capsys.readouterr().out
