"""Known motifs: p-values that are calibrated, alignments, E-values."""

import numpy as np
import pytest

from tacit.dna.files import Matrix
from tacit.dna.finder import known
from tacit.dna.finder.known import find_correlation, match_known
from tacit.dna.finder.shapes import write_consensus


def draw(rng, width):
    return rng.dirichlet(np.full(4, 0.3), width)


@pytest.fixture
def library():
    rng = np.random.default_rng(8)
    return [Matrix(str(k), draw(rng, 6 + k % 12)) for k in range(60)]


def test_a_part_of_a_known_motif_is_found_with_its_alignment(library):
    motif = next(one for one in library if len(one.shares) == 15)
    noisy = 0.9 * motif.shares[3:12] + 0.025
    best, second = match_known(noisy[::-1, ::-1], library)[:2]
    assert (best.name, best.strand, best.overlap) == (motif.name, 1, 9)
    assert best.e_value == pytest.approx(best.p_value * len(library))
    assert best.e_value < 1e-3 < second.e_value
    found, other = best.alignment
    assert len(other.strip()) == 15
    assert found == "   " + write_consensus(noisy[::-1, ::-1]) + "   "


def test_p_values_of_random_motifs_are_uniform(library):
    rng = np.random.default_rng(1)
    p = np.array([[match.p_value for match in match_known(draw(rng, 10), library)] for _ in range(80)])
    for level in (0.01, 0.05, 0.2):
        assert 0.5 * level < np.mean(p <= level) < 1.5 * level
    assert 0.2 < np.mean(p.min(axis=1) * len(library) < 0.5) < 0.6  # 1 − exp(−.5) = .39


def test_few_known_motifs_do_not_make_everything_similar():
    rng = np.random.default_rng(2)
    alone = [Matrix("one", draw(rng, 8))]
    p = [match_known(draw(rng, 10), alone)[0].p_value for _ in range(300)]
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09
    assert match_known(alone[0].shares, alone)[0].p_value < 1e-4


def test_a_tail_is_that_of_all_sums_of_columns(library, monkeypatch):
    monkeypatch.setattr(known, "LEAST_COLUMNS", 0)
    query = draw(np.random.default_rng(3), 6)
    null = known._NullScores(query, library[:2])
    columns = np.concatenate([part for one in library[:2] for part in (one.shares, one.shares[::-1, ::-1])])
    steps = null.steps_of(columns)
    sums = (steps[1][:, None, None] + steps[2][None, :, None] + steps[3][None, None, :]).ravel()
    for score in np.quantile(sums, (0.1, 0.5, 0.9, 1.0)).astype(int):
        assert null.tail(1, 4, score) == pytest.approx((sums >= score).mean())
    assert null.tail(1, 4, sums.max() + 1) == 0


def test_correlation_ignores_strand_and_weighs_short_overlaps_less(library):
    one = library[9].shares
    assert find_correlation(one, one[::-1, ::-1]) == pytest.approx(1)
    shifted = np.concatenate([one[4:], np.full((4, 4), 0.25)])
    assert find_correlation(shifted, one) < 0.95


def test_without_known_motifs_there_are_no_matches():
    assert match_known(np.eye(4), []) == []
