"""`MotifFinder`: what was planted is found, what is not there is not, and tests are honest."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import tacit
from tacit.apps import MotifFinder
from tacit.datasets import planted_motif
from tacit.dna.files import Matrix
from tacit.dna.finder.evidence import auroc, choose_held_out, given_p_value, motif_p_value, share_masks
from tacit.dna.finder.finder import read_classes
from tacit.dna.finder.known import match_known
from tacit.dna.finder.models import blend, count_kmers, learn_kmers
from tacit.dna.finder.search import STEPS_AFTER_INTERRUPT
from tacit.dna.finder.shapes import Sites, find_best_sites, find_overlap
from tacit.dna.motif.sites import MotifSites
from tacit.dna.pieces import iterate_pieces
from tacit.dna.scan import ScannedMotif, Scanner, motifs_of
from tacit.dna.score_tails import learn_background
from tacit.dna.sequences import read_sequences, shuffle_pairs, write_letters
from tacit.learners import smooth_learner
from tacit.solvers import quasi_newton

WORD = "TGACTCATCC"


@pytest.fixture(scope="module")
def planted():
    return planted_motif(600, 50, WORD, noise=0.1, strands="both", seed=0)


@pytest.fixture(scope="module")
def finder(planted):
    return MotifFinder(width=10, C=1000, verbose=0).fit(planted.X, planted.y)


def test_a_planted_motif_is_found_where_it_is(planted, finder):
    (motif,) = finder.motifs_
    truth = Matrix("planted", np.eye(4)[["ACGT".index(letter) for letter in WORD]])
    assert match_known(motif.probabilities, [truth])[0].correlation > 0.95
    assert motif.p_value < 1e-10
    assert motif.agreement > 0
    start = finder.sites_.start[:, 0]
    has_one = planted.y == 1
    assert np.mean(start[has_one] == planted.hidden[has_one, 0]) > 0.9


def test_a_file_gives_the_same_answers(planted, finder, tmp_path):
    finder.save(tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    X = [letters.decode() for letters in planted.X[:50]]
    np.testing.assert_array_equal(again.decision_function(X), finder.decision_function(X))
    assert again.predict(X).tolist() == finder.predict(X).tolist()
    assert [motif.consensus for motif in again.motifs_] == [motif.consensus for motif in finder.motifs_]
    assert roc_auc_score(planted.y, finder.decision_function(planted.X)) > 0.97


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(planted, finder):
    again = clone(finder).set_params(n_jobs=2).fit(planted.X, planted.y)
    np.testing.assert_array_equal(again.coef_, finder.coef_)
    assert again.motifs_[0].p_value == finder.motifs_[0].p_value


def test_both_strands_are_alike(planted, finder):
    swap = bytes.maketrans(b"ACGT", b"TGCA")
    turned = np.array([letters[::-1].translate(swap) for letters in planted.X[:80]])
    np.testing.assert_array_equal(finder.decision_function(turned), finder.decision_function(planted.X[:80]))


def test_noise_has_no_significant_motif():
    rng = np.random.default_rng(1)
    X = ["".join(row) for row in rng.choice(list("ACGT"), (300, 40))]
    finder = MotifFinder(width=8, C=1000, verbose=0).fit(X, np.arange(300) % 2)
    assert finder.motifs_ == []
    assert finder.evidence_["motifs"][0] < 0.65


def test_composition_is_no_motif():
    """Labels that follow the share of G and C: k-mers separate them, and no motif is significant."""
    rng = np.random.default_rng(2)
    gc = np.repeat([0.35, 0.65], 200)
    strong = rng.random((400, 50)) < gc[:, None]
    X = [
        "".join(row)
        for row in np.where(strong, rng.choice(["G", "C"], strong.shape), rng.choice(["A", "T"], strong.shape))
    ]
    finder = MotifFinder(width=8, C=1000, verbose=0).fit(X, np.repeat([0, 1], 200))
    assert finder.evidence_["composition"][0] > 0.95
    assert finder.motifs_ == []


def test_two_motifs_are_two():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 4, (800, 60))
    words = [np.array(["ACGT".index(letter) for letter in word]) for word in ("TGACTCAT", "CCACGTGG")]
    for i in range(400):
        codes[i, 5 + i % 15 : 13 + i % 15] = words[i % 2]
    X = ["".join("ACGT"[code] for code in row) for row in codes]
    finder = MotifFinder(width=8, C=1000, verbose=0).fit(X, np.repeat([1, -1], 400))
    assert len(finder.motifs_) == 2
    truth = [Matrix(str(k), np.eye(4)[word]) for k, word in enumerate(words)]
    best = {match_known(motif.probabilities, truth)[0].name for motif in finder.motifs_}
    assert best == {"0", "1"}


@pytest.mark.parametrize("word", ["TGAAGTCATACGGA", "TGACGTCATACGGA"])
def test_two_windows_on_one_longer_site_are_an_overlap(word):
    """A site of 14 letters and motifs of 8: the second covers what the first leaves, and says where it lies.

    The other site begins with a palindrome, TGACGTCA, whose strand is arbitrary.
    """
    X, y, _ = planted_motif(800, 60, word, noise=0.1, strands="both", seed=1)
    finder = MotifFinder(width=8, C=1000, n_motifs=2, verbose=0).fit(X, y)
    first, second = finder.motifs_
    planted = Matrix("planted", np.eye(4)[["ACGT".index(letter) for letter in word]])
    one, two = (match_known(motif.probabilities, [planted])[0] for motif in finder.motifs_)
    places = [-match.offset if match.strand == 0 else match.offset + len(word) - 8 for match in (one, two)]
    distance = places[1] - places[0]
    assert 0 < abs(distance) < 8
    assert first.overlap is None
    assert second.overlap.motif == 1
    assert abs(second.overlap.offset) == abs(distance)
    assert second.overlap.share > 0.7
    if "TGACGTCA" not in word:
        assert second.overlap.offset == (distance if one.strand == 0 else -distance)
        assert second.overlap.on_other_strand == (one.strand != two.strand)


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_motif_is_read_along_the_strand_of_its_sites(is_turned):
    X, y, _ = planted_motif(200, 60, "GATTACAGGC", noise=0.1, strands="one", seed=0)
    if is_turned:
        X = [x[::-1].translate(bytes.maketrans(b"ACGT", b"TGCA")) for x in X]
    finder = MotifFinder(width=10, verbose=0).fit(X, y)
    assert finder.motifs_[0].consensus == ("GCCTGTAATC" if is_turned else "GATTACAGGC")
    assert finder.sites_.strand[np.asarray(y) == 1].mean() < 0.2


def test_a_copy_of_a_motif_is_no_second_one():
    """Cross-validation chooses a small C here, with which a second copy of the motif adds to the first."""
    X, y, _ = planted_motif(400, 60, "CACGTGAC", noise=0.1, strands="both", seed=0)
    finder = MotifFinder(width=8, verbose=0).fit(X, y)
    assert [motif.consensus for motif in finder.motifs_] == ["CACGTGAC"]


def test_motifs_at_places_of_their_own_do_not_overlap():
    rng = np.random.default_rng(9)
    start = np.column_stack([rng.integers(0, 20, 200), rng.integers(0, 20, 200)])
    sites = Sites(start, rng.integers(0, 2, (200, 2)), np.ones((200, 2)), 8)
    everywhere = np.ones(200, dtype=bool)
    assert find_overlap(sites, everywhere, everywhere, 1, 0, number=1) is None


def test_a_flank_completes_sites_at_the_end():
    """Half of the site is in the sequence, the other half in the linker that follows all of them."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 4, (400, 30))
    codes[:200, -5:] = ["ACGT".index(letter) for letter in WORD[:5]]
    X = ["".join("ACGT"[code] for code in row) for row in codes]
    y = np.repeat([1, -1], 200)
    finder = MotifFinder(C=1000, flank=WORD[5:], n_motifs=1, verbose=0).fit(X, y)
    assert finder.motifs_[0].consensus.count("N") < 4
    assert (np.abs(finder.sites_.start[:200, 0] - 25) <= 2).mean() > 0.9


def test_the_latent_svm_finds_it_too(planted):
    finder = MotifFinder(width=10, C=300, learner="latent-svm", n_motifs=1, verbose=0).fit(planted.X, planted.y)
    assert finder.motifs_[0].p_value < 1e-10
    assert roc_auc_score(planted.y, finder.decision_function(planted.X)) > 0.95


def test_without_labels_shuffles_are_the_negatives(planted):
    finder = MotifFinder(width=10, C=1000, verbose=0).fit(planted.X[planted.y == 1])
    assert finder.motifs_[0].p_value < 1e-6


def test_time_runs_out_and_the_best_so_far_is_kept(planted):
    finder = MotifFinder(time_budget=1e-3, verbose=0).fit(planted.X, planted.y)
    assert finder.status_ is tacit.solvers.Status.STOPPED
    assert finder.predict(planted.X[:3]).shape == (3,)


def test_ctrl_c_keeps_the_best_so_far(planted, monkeypatch):
    """It comes in the second start of the first motif."""
    real, steps = quasi_newton.step, []

    def interrupted(function, now):
        steps.append(1)
        if len(steps) == 100:
            raise KeyboardInterrupt
        return real(function, now)

    monkeypatch.setattr(smooth_learner, "step", interrupted)
    finder = MotifFinder(C=1000, verbose=0).fit(planted.X, planted.y)
    assert finder.status_ is tacit.solvers.Status.INTERRUPTED
    assert len(steps) == 100
    assert finder.motifs_


def test_ctrl_c_before_anything_was_learned_takes_a_few_steps_more(planted, monkeypatch):
    real, steps = quasi_newton.step, []

    def interrupted(function, now):
        steps.append(1)
        if len(steps) == 1:
            raise KeyboardInterrupt
        return real(function, now)

    monkeypatch.setattr(smooth_learner, "step", interrupted)
    finder = MotifFinder(C=1000, verbose=0).fit(planted.X, planted.y)
    assert finder.status_ is tacit.solvers.Status.INTERRUPTED
    assert len(steps) == 1 + STEPS_AFTER_INTERRUPT
    assert finder.predict(planted.X[:3]).shape == (3,)


def test_a_resumed_fit_ends_at_the_same_bits_and_refuses_other_data(planted, tmp_path):
    settings = {"C": 1000, "n_motifs": 2, "verbose": 0, "checkpoint": tmp_path / "state"}
    whole = MotifFinder(**settings).fit(planted.X, planted.y)
    again = MotifFinder(**settings, resume=True).fit(planted.X, planted.y)
    np.testing.assert_array_equal(whole.coef_, again.coef_)
    refitted = whole.set_params(resume=True).fit(planted.X, planted.y)
    np.testing.assert_array_equal(refitted.coef_, again.coef_)
    with pytest.raises(ValueError, match="sequences and labels"):
        MotifFinder(**settings, resume=True).fit(planted.X[:300], planted.y[:300])


@pytest.mark.parametrize(
    ("parameters", "keyword"),
    [
        ({"width": 2}, "width"),
        ({"width": (9, 6)}, "shortest"),
        ({"n_motifs": 0}, "n_motifs"),
        ({"learner": "magic"}, "learner"),
        ({"C": -1}, "C must be"),
        ({"flank": "AC!"}, "flank"),
        ({"flank": b"AC"}, "flank"),
        ({"held_out": 1.5}, "held_out"),
        ({"time_budget": 0}, "time_budget"),
        ({"resume": True}, "checkpoint"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(parameters, keyword):
    with pytest.raises(ValueError, match=keyword):
        MotifFinder(**parameters).fit(["ACGT"], [1])


@pytest.mark.parametrize(
    ("X", "y", "keyword"),
    [
        (["ACGTACGTACGT"] * 30, [1] * 30, "one class"),
        (["ACGTACGTACGT", "GGCCGGTTAACC"] * 3, [0, 1] * 3, "3 positive"),
        (["ACGT"] * 30, [0, 1] * 15, "4 letters"),
        (["ACGTACGTACGTA", "GGCCGGTTAACCA"] * 15, [0, 1] * 15, "copies"),
    ],
)
def test_sequences_that_cannot_be_learned_from_are_refused(X, y, keyword):
    with pytest.raises(ValueError, match=keyword):
        MotifFinder(verbose=0).fit(X, y)


def test_shuffles_are_not_counted_among_sequences_that_are_too_short():
    with pytest.raises(ValueError, match="20 are"):
        MotifFinder(verbose=0).fit(["ACGTAC"] * 20)


def test_copies_of_a_sequence_are_never_on_both_sides():
    X = [
        "ACGTTTGACC",
        "GGTCAAACGT",
        "ACGTTTGACC",
        *("".join(row) for row in np.random.default_rng(0).choice(list("ACGT"), (97, 10))),
    ]
    held = choose_held_out(read_sequences(X), np.arange(100) % 2 == 0, 0.5, 0)
    assert held[0] == held[1] == held[2]  # the second is the reverse complement of the first
    assert 40 < held.sum() < 60


def test_p_values_of_chance_are_uniform():
    rng = np.random.default_rng(5)
    p = []
    for _ in range(400):
        composition = rng.standard_normal((200, 4))
        label = rng.random(200) < 1 / (1 + np.exp(-composition[:, 0]))
        score = composition[:, 0] + rng.standard_normal(200)  # goes with the label through composition alone
        p.append(given_p_value(score, composition, label))
    assert abs(np.mean(np.array(p) < 0.05) - 0.05) < 0.03
    assert abs(np.mean(p) - 0.5) < 0.06


def test_p_values_of_chance_are_uniform_with_many_covariates():
    rng = np.random.default_rng(7)
    label = np.arange(60) % 2 == 0
    p = [given_p_value(rng.standard_normal(60), rng.standard_normal((60, 20)), label) for _ in range(600)]
    assert abs(np.mean(np.array(p) < 0.05) - 0.05) < 0.02


def test_pairs_of_letters_are_composition_also_of_few_sequences():
    rng = np.random.default_rng(8)
    p = []
    for _ in range(40):
        codes = rng.integers(0, 4, (120, 60))
        after_c = np.zeros(codes.shape, dtype=bool)
        after_c[:60, 1:] = (codes[:60, :-1] == 1) & (codes[:60, 1:] == 2)
        codes[after_c & (rng.random(codes.shape) < 0.7)] = 3  # positives have fewer pairs CG
        few = -((codes[:, :-1] == 1) & (codes[:, 1:] == 2)).sum(axis=1) + 0.5 * rng.standard_normal(120)
        sequences = read_sequences(["".join("ACGT"[c] for c in row) for row in codes])
        p.append(motif_p_value(few, np.zeros((120, 0)), sequences, np.arange(120) < 60, 2))
    assert np.mean(np.array(p) < 0.05) < 0.2


@pytest.mark.parametrize("masked_class", [True, False])
def test_masked_letters_in_one_class_do_not_make_a_motif(masked_class):
    rng = np.random.default_rng(9)
    problem, is_positive = MotifSites(6), np.arange(120) < 60
    schema = problem.schema(["ACGTTGCA"] * 2, [1, -1])
    w = rng.standard_normal(schema.n_params)
    p = []
    for _ in range(60):
        codes = rng.integers(0, 4, (120, 60))
        for i in np.flatnonzero(is_positive == masked_class):
            codes[i, (start := rng.integers(30)) : start + 30] = 14
        sequences = share_masks(
            read_sequences(["".join("ACGTNNNNNNNNNNN"[c] for c in row) for row in codes]), is_positive, 0
        )
        value = find_best_sites(problem, schema, w, sequences).value
        p.append(motif_p_value(value[:, 0], value[:, 1:], sequences, is_positive, 1))
    assert np.mean(np.array(p) < 0.05) < 0.15
    assert 0.35 < np.mean(p) < 0.65


def test_shared_masks_are_those_of_the_other_class_and_leave_plain_sequences():
    plain = read_sequences(["ACGTAC", "GGTT"])
    assert share_masks(plain, np.array([True, False]), 0) is plain
    mixed = read_sequences(["ACGTAC", "NGTR", "ANAAAAA"])
    assert write_letters(share_masks(mixed, np.array([True, False, True]), 0)) == ["NCGNAC", "NNTR", "NNANAAA"]


def test_areas_agree_with_scikit_learn_and_intervals_hold_the_truth():
    rng = np.random.default_rng(6)
    label = np.arange(300) % 3 == 0
    inside = []
    for _ in range(200):
        score = np.round(rng.standard_normal(300) + label, 1)
        area = auroc(score, label)
        assert area.value == pytest.approx(roc_auc_score(label, score))
        inside.append(area.low <= 0.7602 <= area.high)  # Φ(1/√2)
    assert np.mean(inside) > 0.9


def test_the_scanner_scores_as_the_model_does_and_finds_planted_sites(planted, finder):
    letters = [sequence.decode() for sequence in planted.X]
    background = learn_background([read_sequences(letters).values])
    scanner = Scanner(motifs_of(finder, background), background, p_value=1e-3)
    hits = list(scanner.scan((str(i), sequence) for i, sequence in enumerate(letters)))
    assert scanner.n_windows.tolist() == [600 * 41 * 2]
    places = {(int(hit.name), hit.start) for hit in hits}
    truth = {(i, int(start)) for i, (start, _) in enumerate(planted.hidden) if start >= 0}
    assert len(places & truth) > 0.85 * len(truth)
    assert len(places - truth) < 0.003 * scanner.n_windows[0]
    best = {
        (i, int(s)): v
        for i, (s, v) in enumerate(zip(finder.sites_.start[:, 0], finder.sites_.value[:, 0], strict=True))
    }
    for hit in hits[:50]:
        if (int(hit.name), hit.start) in best:
            assert hit.score == pytest.approx(best[int(hit.name), hit.start])
    assert all(0 < hit.p_value <= 1e-3 for hit in hits)


def test_a_long_sequence_is_scanned_in_parts_that_miss_nothing(finder, tmp_path):
    rng = np.random.default_rng(7)
    text = list("".join(rng.choice(list("ACGT"), 5000)))
    for start in (0, 995, 1990, 4990):
        text[start : start + 10] = WORD
    background = learn_background([read_sequences(["".join(text)]).values])
    narrow = ScannedMotif("narrow", np.eye(4)[[3, 2, 0]])
    (tmp_path / "x.fa").write_text(">x\n" + "".join(text))
    motifs = [*motifs_of(finder, background), narrow]
    whole, parts = (Scanner(motifs, background, p_value=0.02) for _ in range(2))
    hits = list(whole.scan([("x", "".join(text))]))
    assert sorted(parts.scan_pieces(iterate_pieces(tmp_path / "x.fa", 1000))) == sorted(hits)
    assert parts.n_windows.tolist() == whole.n_windows.tolist()
    assert {0, 995, 1990, 4990} <= {hit.start for hit in hits}


def test_kmers_learn_from_more_shuffles_of_the_positives():
    rng = np.random.default_rng(0)
    positives = read_sequences(["".join(rng.choice(list("ACGT"), 30)) for _ in range(40)])
    sequences, is_positive, _ = read_classes(write_letters(positives), None, seed=5)
    more = count_kmers(shuffle_pairs(positives, 6), 2)
    table = sparse.vstack([count_kmers(sequences, 2), more])
    plain = LogisticRegression(C=0.01, max_iter=1000, class_weight="balanced")
    plain.fit(table, np.append(is_positive, np.zeros(40, dtype=bool)))
    found = learn_kmers(sequences, is_positive, 2, seed=5, strengths=(0.01,), shuffles=2)
    assert found.weights == pytest.approx(plain.coef_[0], abs=1e-9)


def test_the_better_score_stays_where_the_sum_would_take_one_off():
    rng = np.random.default_rng(0)
    labels, noise = np.arange(200) % 2 == 1, rng.standard_normal(200)
    weights = blend(0.2 * labels + noise, labels + noise, labels, 0)[1]
    assert weights[1] == 0
    assert weights[2] > 0
