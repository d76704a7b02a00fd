"""`MotifSites`: composition apart, several motifs, no site or one, an overhang; every learner takes it."""

import numpy as np
import pytest

import tacit
from tacit import LatentSVM, StructuredSVM
from tacit.datasets import planted_motif
from tacit.dna.motif.hidden import NO_SITE
from tacit.problems import MotifSites
from tacit.runtime.archive import read_archive, write_archive


@pytest.fixture(scope="module")
def planted():
    return planted_motif(200, 30, "TGACTCA", noise=0.05, strands="both", seed=0)


def test_a_structured_svm_learns_from_given_sites(planted):
    problem = MotifSites(7, strands="both")
    model = StructuredSVM(problem, C=100, verbose=0).fit(planted.X, planted.y, hidden=planted.hidden)
    assert model.score(planted.X, planted.y) > 0.95
    assert model.score_hidden(planted.X, planted.y, planted.hidden) > 0.95


def test_a_latent_svm_finds_the_sites_and_a_file_keeps_it(planted, tmp_path):
    problem = MotifSites(7, strands="both", overhang=1)
    model = LatentSVM(problem, C=300, tol=1e-2, verbose=0).fit(planted.X, planted.y)
    start = model.impute(planted.X, planted.y)[:, 0] - problem.overhang
    has_one = planted.y == 1
    assert np.mean(start[has_one] == planted.hidden[has_one, 0]) > 0.9
    model.save(tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    np.testing.assert_array_equal(again.decision_function(planted.X), model.decision_function(planted.X))


def test_files_from_before_it_had_a_class_of_its_own_load(planted, tmp_path):
    model = LatentSVM(MotifSites(7, 2, "both", n_motifs=2, overhang=1), C=10, verbose=0).fit(planted.X, planted.y)
    model.save(tmp_path / "model.tacit")
    header, arrays = read_archive(tmp_path / "model.tacit", "model")
    parts = header["params"]["problem"]["parts"]
    parts |= {"features": "sites", "background": parts.pop("composition")}
    header["params"]["problem"]["$object"] = "Motif"
    write_archive(tmp_path / "old.tacit", "model", {k: header[k] for k in ("learner", "params", "facts")}, arrays)
    again = tacit.load(tmp_path / "old.tacit")
    assert repr(again.problem) == repr(model.problem)
    np.testing.assert_array_equal(again.decision_function(planted.X), model.decision_function(planted.X))


def test_a_sequence_and_its_reverse_complement_are_the_same_to_the_bit(planted):
    problem = MotifSites(7, strands="both", n_motifs=2, overhang=2)
    swap = bytes.maketrans(b"ACGT", b"TGCA")
    turned = np.array([letters[::-1].translate(swap) for letters in planted.X])
    schema = problem.schema(planted.X, planted.y)
    w = np.random.default_rng(0).standard_normal(schema.n_params)
    oracles = [problem.bind(X, planted.y, schema) for X in (planted.X, turned)]
    np.testing.assert_array_equal(*(oracle.label_scores(w) for oracle in oracles))
    np.testing.assert_array_equal(*(oracle.features(oracle.impute(w).code, np.ones(200)) for oracle in oracles))
    start, back = (oracle.decode(oracle.impute(w).code)[1] for oracle in oracles)
    there = (start[..., 0] >= 0) & (back[..., 0] >= 0)
    np.testing.assert_array_equal((start[..., 0] + back[..., 0])[there], 30 + 2 * 2 - 7)


def test_a_motif_that_speaks_against_has_no_site():
    problem = MotifSites(3, composition=1)
    X, y = ["ACGTACGT", "CCCCCCCC"], [1, 0]
    schema = problem.schema(X, y)
    w = np.zeros(schema.n_params)
    schema.views(w)["motif"][:] = -1.0
    assert problem.bind(X, y, schema).decode(problem.bind(X, y, schema).impute(w).code)[1].tolist() == [NO_SITE, -1]


def test_weights_have_names_and_shapes(planted):
    problem = MotifSites(7, n_motifs=2, strands="both")
    assert problem.schema(planted.X, planted.y).blocks == {"motif": (2, 7, 4), "composition": (44,), "intercept": (1,)}


@pytest.mark.parametrize(
    ("problem", "keyword"),
    [
        (MotifSites(4, overhang=4), "overhang=4"),
        (MotifSites(4, n_motifs=99), "n_motifs"),
        (MotifSites(4, composition=6), "composition"),
        (MotifSites(9, overhang=0), "sequence 0 has 8"),
    ],
)
def test_bad_parameters(problem, keyword):
    with pytest.raises(ValueError, match=keyword):
        StructuredSVM(problem).fit(["ACGTACGT", "CCGTACGT"], [0, 1], hidden=[-1, 0])


@pytest.mark.parametrize(
    ("hidden", "keyword"),
    [
        ([[-1, -1], [99, 0]], "99"),
        ([[-1, -1], [0, 2]], "strand"),
        ([[0, 0], [0, 0]], "negative"),
        ([0, 1], "shape"),
    ],
)
def test_bad_hidden_values(hidden, keyword):
    with pytest.raises(ValueError, match=keyword):
        StructuredSVM(MotifSites(2, strands="both")).fit(["ACGTACGT", "CCGTACGT"], [0, 1], hidden=hidden)


def test_too_many_combinations_are_refused():
    with pytest.raises(ValueError, match="n_motifs"):
        LatentSVM(MotifSites(3, n_motifs=8)).fit(["ACGT" * 100, "CCGT" * 100], [0, 1])
