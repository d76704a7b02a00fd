"""Widths from data: motifs grow over conserved letters, join halves at a fixed distance, and otherwise stay."""

import numpy as np
import pytest

from tacit.apps import MotifFinder
from tacit.dna.finder.known import find_correlation
from tacit.dna.finder.shapes import Sites, describe_spacer, find_spacer
from tacit.dna.finder.widths import (
    LONGEST_SPACER,
    REACH,
    _connect,
    compare_evidence,
    find_extent,
    learn_mixture,
    measure_growth,
)
from tacit.dna.sequences import read_sequences


def plant(word, n=300, length=80, keep=0.85, seed=0):
    """Random sequences; the positives hold a word on either strand, whose N is any letter."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (2 * n, length))
    is_free = np.array([letter == "N" for letter in word])
    letters = np.array(["ACGTN".index(letter) % 4 for letter in word])
    start = rng.integers(0, length - len(word) + 1, n)
    for i in range(n):
        random = rng.integers(0, 4, len(word))
        site = np.where(is_free | (rng.random(len(word)) > keep), random, letters)
        codes[i, start[i] : start[i] + len(word)] = site if i % 2 else 3 - site[::-1]
    return ["".join("ACGT"[c] for c in row) for row in codes], np.repeat([1, -1], n), start


@pytest.mark.parametrize(
    ("word", "width"),
    [("TTCAGCACCATGGACAGCGCC", 21), ("TGACCTNNNNNNCAGGTAC", 19), ("ACGTTGCATG", 10), ("TGACTCA", 10)],
)
def test_the_width_is_that_of_the_planted_motif(word, width):
    X, y, _ = plant(word)
    finder = MotifFinder(C=1000, verbose=0).fit(X, y)
    assert finder.width_ == pytest.approx(width, abs=1)
    (motif,) = finder.motifs_
    assert motif.width == finder.width_
    if "N" in word:
        assert abs(motif.spacer.length - word.count("N")) <= 1
        assert f"spacer of {motif.spacer.length} letters" in describe_spacer(motif)
    else:
        assert describe_spacer(motif) == ""


def plant_words(words, shares, n=400, length=100, noise=0.2, seed=0):
    """Random sequences; every word is in a share of the positives, in a part of its own, with letters drawn anew."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (2 * n, length))
    room = length // len(words)
    for k, (word, share) in enumerate(zip(words, shares, strict=True)):
        letters = np.array(["ACGTN".index(letter) for letter in word])
        for i in np.flatnonzero(rng.random(n) < share):
            anew = (rng.random(letters.size) < noise) | (letters == 4)
            site = np.where(anew, rng.integers(0, 4, letters.size), letters)
            start = k * room + rng.integers(0, room - site.size + 1)
            codes[i, start : start + site.size] = site if rng.random() < 0.5 else 3 - site[::-1]
    return ["".join("ACGT"[c] for c in row) for row in codes], np.repeat([1, -1], n)


def planted_matrix(word, noise=0.2):
    """The shares of letters of a planted word."""
    return np.array(
        [np.eye(5)[["ACGTN".index(c)]][0, :4] * (1 - noise) + noise / 4 if c != "N" else np.full(4, 0.25) for c in word]
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_long_motif_in_few_positives_is_found_whole(seed):
    word = "TGGACCTNNNNCACTCGGT"
    X, y = plant_words([word], [0.3], seed=seed)
    (motif,) = MotifFinder(C=300, verbose=0).fit(X, y).motifs_
    assert find_correlation(motif.probabilities, planted_matrix(word)) > 0.75
    assert abs(motif.spacer.length - 4) <= 1


def test_a_later_motif_is_not_cut():
    words = ["TTGACGTT", "TGGAGGAAGTGTTTCTTTTA"]
    X, y = plant_words(words, [0.6, 0.4], length=120, noise=0.15)
    finder = MotifFinder(C=300, verbose=0).fit(X, y)
    assert finder.width_ == pytest.approx(20, abs=1)
    assert len(finder.motifs_) == 2
    for word in words:
        assert max(find_correlation(m.probabilities, planted_matrix(word)) for m in finder.motifs_) > 0.9


def test_a_motif_that_grew_and_is_dropped_leaves_the_width_as_it_was():
    X, y = plant_words(["TTGACGTT", "TGGAGGAAGTGTTTCTTTTA"], [0.95, 0.3], length=120, noise=0.05)
    finder = MotifFinder(C=300, alpha=1e-25, verbose=0).fit(X, y)
    assert len(finder.motifs_) == 1
    assert finder.width_ == 10


def test_a_given_width_is_kept():
    X, y, _ = plant("TTCAGCACCATGGACAGCGCC")
    finder = MotifFinder(width=10, C=1000, n_motifs=1, verbose=0).fit(X, y)
    assert finder.width_ == 10


def test_with_a_flank_the_width_stays():
    X, y, _ = plant("TTCAGCACCATGGACAGCGCC")
    assert MotifFinder(C=1000, n_motifs=1, flank="GTCTGTGTTC", verbose=0).fit(X, y).width_ == 10


def test_without_a_motif_nothing_grows():
    rng = np.random.default_rng(1)
    X = ["".join(rng.choice(list("ACGT"), 60)) for _ in range(300)]
    finder = MotifFinder(C=1000, verbose=0).fit(X, np.arange(300) % 2)
    assert finder.width_ == 10


def exact_sites(start, n, width, value):
    return Sites(start[:, None], np.zeros((n, 1), int), value[:, None], width)


@pytest.mark.parametrize("gap", [0, 3, LONGEST_SPACER, LONGEST_SPACER + 1])
def test_the_extent_reaches_over_gaps_up_to_the_longest_spacer(gap):
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 4, (400, 80))
    codes[:200, 30:38] = [0, 1, 2, 3, 0, 1, 2, 3]
    codes[:200, 38 + gap : 42 + gap] = [2, 2, 1, 1]
    sequences = read_sequences(["".join("ACGT"[c] for c in row) for row in codes])
    is_positive = np.arange(400) < 200
    sites = exact_sites(np.full(400, 30), 400, 8, is_positive.astype(float))
    extent = find_extent(sequences, sites, is_positive)
    assert (extent.start, extent.end) == (0, 8 if gap > LONGEST_SPACER else 12 + gap)
    assert extent.log_odds.shape == (extent.width, 4)


@pytest.mark.parametrize(("is_conserved", "end"), [("001", 4), ("00101", 9), ("0011", 8), ("01", 6), ("1001", 5)])
def test_behind_a_gap_one_conserved_position_is_not_a_part(is_conserved, end):
    table = np.array([float(letter) for letter in "1111" + is_conserved + "0" * 20])
    assert _connect(table, 0, 4, 40) == (0, end)


def test_behind_a_gap_weak_preferences_are_not_a_part():
    bits = np.array([1.0] * 4 + [0.0] * 4 + [0.3, 0.3] + [0.0] * 10)
    assert _connect(bits, 0, 4, 40) == (0, 4)
    assert _connect(2 * bits, 0, 4, 40) == (0, 10)


def test_sites_at_the_ends_of_sequences_count_only_letters_inside():
    codes = np.tile([0, 1, 2, 3, 0, 1, 2, 3], (100, 1))
    sequences = read_sequences(["".join("ACGT"[c] for c in row) for row in codes])
    is_positive = np.arange(100) < 50
    extent = find_extent(sequences, exact_sites(np.zeros(100, int), 100, 4, is_positive.astype(float)), is_positive)
    assert extent.start == 0
    assert extent.end == 8 <= 4 + REACH


def test_few_sites_give_no_extent():
    sequences = read_sequences(["ACGTACGTACGT"] * 20)
    is_positive = np.arange(20) < 10
    assert find_extent(sequences, exact_sites(np.zeros(20, int), 20, 4, is_positive.astype(float)), is_positive) is None


@pytest.mark.parametrize("keep", [0.8, 0.0])
def test_letters_beside_sites_are_evidence_where_they_are_conserved_in_positives_alone(keep):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 4, (400, 60))
    codes[:, 30:38] = [0, 1, 2, 3, 0, 1, 2, 3]
    beside = rng.random((100, 4)) < keep
    codes[:100, 38:42] = np.where(beside, [2, 2, 1, 1], codes[:100, 38:42])
    sequences = read_sequences(["".join("ACGT"[c] for c in row) for row in codes])
    is_positive = np.arange(400) < 200
    value = np.where(is_positive, 2.0, np.arange(400) % 5 == 0)
    value[~is_positive] *= rng.uniform(0.5, 1.5, 200)
    sites = exact_sites(np.full(400, 30), 400, 8, value)
    extent = find_extent(sequences, sites, is_positive)
    wide = extent._replace(start=0, end=12)
    assert (measure_growth(sequences, sites, is_positive, wide, 0) < 0.01) == (keep > 0)
    assert (extent.end == 12) == (keep > 0)


def test_a_mixture_learns_the_share_and_the_letters_of_what_was_mixed():
    rng = np.random.default_rng(5)
    is_own = rng.random(600) < 0.4
    letters = rng.integers(0, 4, (600, 8))
    letters[is_own] = np.where(rng.random((is_own.sum(), 8)) < 0.8, np.arange(8) % 4, letters[is_own])
    found = learn_mixture(np.eye(4)[letters], np.full(4, 0.25))
    assert found.share == pytest.approx(0.4, abs=0.05)
    np.testing.assert_allclose(0.25 * np.exp(found.log_odds), 0.05 + 0.8 * np.eye(4)[np.arange(8) % 4], atol=0.08)


def test_evidence_without_spread_is_not_evidence():
    assert compare_evidence(np.ones(5), np.ones(5, bool)) == 1.0
    assert compare_evidence(np.zeros(0), np.zeros(0, bool)) == 1.0


def test_a_spacer_lies_between_two_parts():
    assert find_spacer(np.array([1.0, 0.0, 0.0, 1.0])) == (1, 2)
    assert find_spacer(np.array([0.0, 0.0, 1.0, 1.0, 0.0])) is None
    assert find_spacer(np.zeros(4)) is None
