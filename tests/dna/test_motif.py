"""Motifs in DNA: the features are those of the authors' code, whatever form the sequences come in."""

import gzip
import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit import LatentSVM, Ragged, StructuredSVM, datasets, load
from tacit.datasets import planted_motif, uniprobe
from tacit.dna.kmers import Pieces, find_kmers
from tacit.dna.sequences import DNA, read_sequences
from tacit.oracle import EnumerableOracle, LossTable
from tacit.problems import Motif
from tacit.solvers import Bundle, FrankWolfe

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def literal_feature(x, start, strand, width, k):
    """METHODS: counts of k-mers starting at 0..L−k−1; a positive subtracts those starting inside the motif and adds 4m.

    Ambiguous letters: the mean over all plain sequences that are meant.
    """
    total, count = 0, 0
    for letters in itertools.product(*(DNA.meaning[letter] for letter in x.upper().replace("U", "T"))):
        plain = "".join(letters)
        words = {"".join(word): 0 for word in itertools.product("ACGT", repeat=k)}
        for p in range(0, len(plain) - k - 1 + 1):
            words[plain[p : p + k]] += 1
        motif = np.zeros((width, 4))
        if start >= 0:
            for p in range(start, start + width):
                words[plain[p : p + k]] -= 1
            window = plain[start : start + width]
            if strand == 1:
                window = window[::-1].translate(COMPLEMENT)
            for j, letter in enumerate(window):
                motif[j, "ACGT".index(letter)] = 1
        total = total + np.concatenate([motif.ravel(), list(words.values())])
        count += 1
    return total / count


def random_sequences(rng, lengths, letters="ACGTacgtUu", rare="NnRyKv"):
    sequences = ["".join(rng.choice(list(letters), n)) for n in lengths]
    for i in range(0, len(sequences), 2):
        for _ in range(2):
            p = rng.integers(len(sequences[i]))
            sequences[i] = sequences[i][:p] + rng.choice(list(rare)) + sequences[i][p + 1 :]
    return sequences


@pytest.mark.parametrize("strands", ["one", "both"])
@pytest.mark.parametrize(
    ("width", "background"), [(1, 1), (3, 3), (5, 2), (6, 1), (7, 3), (10, 3), (11, 4), (16, 2), (2, 5)]
)
def test_features_are_those_of_the_literature(width, background, strands):
    rng = np.random.default_rng(width)
    X = random_sequences(rng, width + background + rng.integers(1, 9, 6))
    problem = Motif(width, background, strands, features="literature")
    y = [0, 1, 0, 1, 1, 0]
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema)
    assert schema.n_params == oracle.n_params == 4**background + 4 * width
    w = rng.standard_normal(oracle.n_params)
    scores = oracle.scores(w)
    for i, x in enumerate(X):
        windows = [(h, s) for h in range(len(x) - width - background) for s in range(1 if strands == "one" else 2)]
        first = oracle.offsets[i]
        assert oracle.offsets[i + 1] - first == len(windows)
        one = np.array([i])
        for label, state, (h, s) in [(0, 0, (-1, 0)), *((1, j, window) for j, window in enumerate(windows))]:
            expected = literal_feature(x, h, s, width, background)
            found = oracle.gather(np.array([label]), np.array([state]), np.ones(1), one)
            np.testing.assert_allclose(found, expected, atol=1e-12)
            np.testing.assert_allclose(scores[label, first + state], expected @ w, atol=1e-10)
        assert np.isneginf(scores[0, first + 1 : oracle.offsets[i + 1]]).all()


def test_searching_while_sliding_equals_searching_the_table():
    rng = np.random.default_rng(0)
    X = random_sequences(rng, rng.integers(20, 40, 50))
    y = rng.integers(0, 2, 50)
    for problem in (Motif(7), Motif(11, 2, strands="both"), Motif(4, 2, strands="both")):
        oracle = problem.bind(X, y, problem.schema(X, y))
        whole, real = rng.integers(-1, 2, oracle.n_params).astype(float), rng.standard_normal(oracle.n_params)
        for w, rows in itertools.product((whole, real, 0 * real), (None, slice(3, 40), np.array([0, 7, 30]))):
            oracle_rows = np.arange(50)[slice(None) if rows is None else rows]
            wish = oracle.encode(y, oracle.decode(2 * (np.arange(50) % 4) * y + y)[1])[oracle_rows]
            losses = oracle._loss_table()
            for mine, generic in (
                (oracle.predict_augmented(w, rows), EnumerableOracle._argmax(oracle, w, rows, losses)),
                (
                    oracle.predict_augmented(w, rows, target=wish, rescaling="slack", rivals=True),
                    EnumerableOracle._argmax(oracle, w, rows, losses, anchor=oracle.score(w, wish, rows), rivals=True),
                ),
                (oracle.impute(w, rows), EnumerableOracle.impute(oracle, w, rows)),
                (oracle.impute(w, rows, wish), EnumerableOracle.impute(oracle, w, rows, wish)),
            ):
                np.testing.assert_array_equal(mine.code, generic.code)
                np.testing.assert_array_equal(mine.value, generic.value)
            np.testing.assert_array_equal(oracle.score(w, wish, rows), EnumerableOracle.score(oracle, w, wish, rows))
            np.testing.assert_array_equal(oracle.label_scores(w, rows), EnumerableOracle.label_scores(oracle, w, rows))


def test_a_loss_on_the_start_is_searched_too():
    X, y, start = planted_motif(6, 20, "ACGTAC")
    problem = Motif(6)
    oracle = problem.bind(X, y, problem.schema(X, y), hidden=start)
    per_state = np.vstack([np.where(np.repeat(y, 15) == 1, 1.0, 0.0), np.tile(np.arange(15.0), 6)])
    worst = oracle.with_loss(LossTable(per_state, None)).predict_augmented(np.zeros(oracle.n_params))
    assert oracle.decode(worst.code)[1].tolist() == [14] * 6


def test_a_motif_is_cut_into_pieces_that_cover_it_once():
    for width in range(1, 30):
        pieces = Pieces.of(width)
        covered = pieces.covers[pieces.covers >= 0]
        assert sorted(covered.tolist()) == list(range(width))
        assert len(pieces.shifts) >= 2
        assert pieces.shifts.max() + pieces.length <= width or width < pieces.length


def test_words_with_many_spellings_still_fit():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, len(DNA.meaning), 70_000).astype(np.uint8)
    words = find_kmers(codes, np.array([0, codes.size]), 5)
    assert words.ids.dtype == np.uint32
    assert words.ids.max() == words.size - 1
    np.testing.assert_allclose(words.mixtures.sum(axis=1), 1.0)


def test_known_hidden_values_stay_and_unknown_ones_are_found():
    X, y, start = planted_motif(60, 25, "GATTACA", seed=3)
    model = StructuredSVM(Motif(7), C=50).fit(X, y, hidden=start)
    np.testing.assert_array_equal(model.hidden_, start)
    some = np.where(np.arange(60) % 4 == 1, start, -1)
    some[1] = 0
    oracle = model.problem.bind(X, y, model.schema_, hidden=some)
    assert oracle.hidden_unknown().tolist() == np.flatnonzero((y == 1) & (some < 0)).tolist()
    _, hidden = oracle.decode(oracle.impute(model.coef_).code)
    assert hidden[1] == 0
    np.testing.assert_array_equal(hidden[2:], start[2:])
    np.testing.assert_array_equal(model.impute(X, y), start)


def test_both_strands_find_the_reverse_complement():
    X, y, hidden = planted_motif(200, 40, "GATTACAGGC", strands="both", seed=1)
    assert set(hidden[y == 1, 1]) == {0, 1}
    i = int(np.flatnonzero(hidden[:, 1] == 1)[0])
    h = hidden[i, 0]
    assert X[i][h : h + 10].decode()[::-1].translate(COMPLEMENT) == "GATTACAGGC"
    model = StructuredSVM(Motif(10, strands="both"), C=100).fit(X, y, hidden=hidden)
    assert "".join("ACGT"[a] for a in model.weights_["motif"].argmax(axis=1)) == "GATTACAGGC"
    new, labels, starts = planted_motif(200, 40, "GATTACAGGC", strands="both", seed=2)
    assert model.score(new, labels) > 0.95
    np.testing.assert_array_equal(model.impute(new, labels), starts)
    assert (model.predict_hidden(new)[model.predict(new) == -1] == -1).all()


@pytest.mark.parametrize(
    ("negative", "positive", "given"),
    [
        (-1, 1, None),
        (0, 1, None),
        (False, True, None),
        ("background", "bound", None),
        ("-1", "+1", None),
        ("unbound", "bound", ["unbound", "bound"]),
        (5, 2, [5, 2]),
    ],
)
def test_any_two_labels(negative, positive, given):
    X, y, start = planted_motif(30, 20, "ACGGT")
    labels = np.where(y == 1, positive, negative)
    model = StructuredSVM(Motif(5, 2, classes=given)).fit(X, labels, hidden=start)
    assert model.classes_.tolist() == [negative, positive]
    np.testing.assert_array_equal(model.hidden_, start)
    assert set(model.predict(X)) <= {negative, positive}
    assert model.objective_ == pytest.approx(StructuredSVM(Motif(5, 2)).fit(X, y, hidden=start).objective_, rel=2e-3)


def test_every_form_of_input_gives_the_same_model():
    X, y, start = planted_motif(20, 20, "ACGGT")
    text = [sequence.decode() for sequence in X]
    codes = read_sequences(X)
    for same in (
        text,
        tuple(text),
        X.tolist(),
        np.array(text),
        np.array(text).astype(">U20"),
        np.array(text, dtype=object),
        np.array(text, dtype="S40"),
        np.array(text, dtype=np.dtypes.StringDType()),
        pd.Series(text, index=range(5, 25)),
        pd.Series(text, dtype="string"),
        [b.lower() if i % 2 else t.replace("T", "U") for i, (b, t) in enumerate(zip(X.tolist(), text, strict=True))],
        Ragged(np.frombuffer("".join(text).encode(), np.uint8), 20 * np.arange(21)),
        np.repeat(X, 2)[::2],
        codes,
    ):
        np.testing.assert_array_equal(read_sequences(same).values, codes.values)
        np.testing.assert_array_equal(read_sequences(same).offsets, codes.offsets)
    model = StructuredSVM(Motif(5)).fit(X, y, hidden=start)
    np.testing.assert_array_equal(model.coef_, StructuredSVM(Motif(5)).fit(text, y, hidden=start).coef_)


def test_lengths_may_differ_in_every_form():
    text = ["ACGTACGTA", "ACG", "ACGTAC"]
    for form in (text, np.array(text), np.array(text, dtype="S")):
        assert read_sequences(form).lengths.tolist() == [9, 3, 6]


class Unlisted(np.ndarray):
    """An array whose entries nobody may take out one by one."""

    def __iter__(self):
        raise AssertionError("a Python object was made for every sequence")

    def tolist(self):
        raise AssertionError("a Python object was made for every sequence")


def test_many_sequences_bind_without_an_object_each():
    X, y, _ = planted_motif(100_000, 30, "TGACTCA")
    problem = Motif(7)
    for form in (X.view(Unlisted), X.astype("U35").view(Unlisted)):
        oracle = problem.bind(form, y, problem.schema(form, y))
        assert oracle.n_samples == 100_000
        assert oracle._all.kmers.ids.dtype == oracle._all.pieces.ids.dtype == np.uint16
        assert oracle._all.kmers.ids.shape == (3_000_000,)


@pytest.mark.parametrize(
    ("problem", "X", "y", "keyword"),
    [
        (Motif(4), ["ACGTACGTAC", "ACGTXCGTAC"], [0, 1], "sequence 1: 'X' at position 4"),
        (Motif(4), np.array([b"ACGTACGTAC", b"ACG-ACGTAC"]), [0, 1], "sequence 1: '-' at position 3"),
        (Motif(4), np.array(["ACGTACGTAC", "ACé"]), [0, 1], "sequence 1: 'é' at position 2"),
        (Motif(4), ["ACGTACGTAC", "AC\u0394GTACGTAC"], [0, 1], "sequence 1: '\u0394' at position 2"),
        (Motif(4), ["ACGTACGT", "ACG"], [0, 1], "sequence 1 has 3"),
        (
            Motif(4, features="literature"),
            ["ACGTACGT", "ACGTACG"],
            [0, 1],
            "sequence 1 has 7",
        ),
        (
            Motif(4, features="old"),
            ["ACGTACGT"] * 2,
            [0, 1],
            "features='old'",
        ),
        (Motif(4, features="sites"), ["ACGTACGT"] * 2, [0, 1], "MotifSites"),
        (Motif(4), ["ACGTACGT", ""], [0, 1], "sequence 1 has 0"),
        (Motif(4), np.array(["", ""]), [0, 1], "sequence 0 has 0"),
        (Motif(4), [], [], "0 samples"),
        (Motif(4), "ACGTACGT", [0, 1], r"\[sequence\]"),
        (Motif(4), ["ACGTACGT", None], [0, 1], r"X\[1\]"),
        (Motif(4), np.array([["ACGTACGT"]]), [0], "shape"),
        (Motif(4), Ragged(np.arange(9.0), [0, 9]), [0], "uint8"),
        (Motif(4), ["ACGTACGT"] * 3, [0, 1, 2], r"\[0, 1, 2\]"),
        (Motif(4), ["ACGTACGT"] * 3, [1, 1, 1], "one class"),
        (Motif(4, classes=[0, 1, 2]), ["ACGTACGT"] * 2, [0, 1], "got 3"),
        (Motif(4), ["ACGTACGT"] * 3, [0, 1], "2 labels"),
        (Motif(0), ["ACGTACGT"] * 2, [0, 1], "width=0"),
        (Motif(2.5), ["ACGTACGT"] * 2, [0, 1], "width=2.5"),
        (Motif(4, background=9), ["ACGTACGT"] * 2, [0, 1], "background=9"),
        (Motif(4, strands="two"), ["ACGTACGT"] * 2, [0, 1], "strands='two'"),
        (Motif(4, loss=[[0, 1, 1]] * 3), ["ACGTACGT"] * 2, [0, 1], "cost matrix"),
    ],
)
def test_bad_input(problem, X, y, keyword):
    with pytest.raises(ValueError, match=keyword):
        StructuredSVM(problem).fit(X, y)


@pytest.mark.parametrize(
    ("strands", "hidden", "keyword"),
    [
        ("one", [-1, 6], r"hidden\[1\]"),
        ("one", [-1, -2], r"hidden\[1\]"),
        ("one", [1, 1], r"hidden\[0\]"),
        ("one", [-1], "shape"),
        ("one", [-1, 0.5], "positions"),
        ("one", ["a", "b"], "positions"),
        ("one", [-1, -1], "1 are unknown"),
        ("one", [None, None], "1 are unknown"),
        ("one", None, "1 are unknown"),
        ("both", [-1, 1], r"shape \(n, 2\)"),
        ("both", [[-1, -1], [1, 2]], "strand"),
        ("both", [[-1, -1], [1, -1]], "1 are unknown"),
        ("both", [[0, 0], [1, 1]], "negative"),
        ("both", [[-1, -1], [np.nan, np.nan]], "1 are unknown"),
    ],
)
def test_bad_hidden_values(strands, hidden, keyword):
    with pytest.raises(ValueError, match=keyword):
        StructuredSVM(Motif(4, strands=strands)).fit(["ACGTACGTA"] * 2, ["free", "motif"], hidden=hidden)


def test_codes_of_outputs():
    X, y, start = planted_motif(6, 14, "ACGTA")
    problem = Motif(5)
    oracle = problem.bind(X, y, problem.schema(X, y))
    code = oracle.encode(y, start)
    labels, hidden = oracle.decode(code)
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(hidden, start)
    assert oracle.accepts(code)
    assert not oracle.accepts(np.full_like(code, 2))  # background has one state only
    assert oracle.encode([-1] * 6).tolist() == [0] * 6
    with pytest.raises(ValueError, match="sample 1"):
        oracle.encode(y)
    with pytest.raises(ValueError, match=r"y\[0\]"):
        oracle.encode([3] * 6)
    twin = problem.bind(X, y, problem.schema(X, y))
    assert twin.digest() == oracle.digest() != problem.bind(X[::-1], y, problem.schema(X, y)).digest()


def test_solvers_threads_and_files_agree(tmp_path):
    X, y, start = planted_motif(80, 20, "ACGGT", noise=0.3)
    problem = Motif(5, 2, loss=[[0, 2], [1, 0]])
    models = [
        StructuredSVM(problem, C=5, tol=1e-4, solver=solver, n_jobs=jobs).fit(X, y, hidden=start)
        for solver, jobs in ((Bundle(), None), (Bundle(), 2), (FrankWolfe(), None))
    ]
    for model in models[1:]:
        assert model.objective_ == pytest.approx(models[0].objective_, rel=2e-4)
    slack = StructuredSVM(problem, C=5, rescaling="slack").fit(X, y, hidden=start)
    assert slack.gap_ <= 1e-3 * slack.objective_
    models[0].save(tmp_path / "motif.tacit")
    np.testing.assert_array_equal(load(tmp_path / "motif.tacit").predict_hidden(X), models[0].predict_hidden(X))


def test_an_unknown_base_scores_the_mean_of_its_bases():
    X, y, start = planted_motif(40, 20, "ACGGT")
    model = StructuredSVM(Motif(5)).fit(X, y, hidden=start)
    versions = [X[1][:9] + base + X[1][10:] for base in (b"N", b"A", b"C", b"G", b"T")]
    oracle = model.problem.bind(versions, None, model.schema_)
    values = oracle.score(model.coef_, oracle.encode([1] * 5, [7] * 5))
    assert values[0] == pytest.approx(values[1:].mean())


def test_planted_motifs_are_where_they_are_said_to_be():
    X, y, start = datasets.planted_motif(50, 30, "TGACTCA", seed=5)
    for sequence, h in zip(X[y == 1], start[y == 1], strict=True):
        assert sequence[h : h + 7] == b"TGACTCA"
    assert (start[y == -1] == -1).all()
    assert X.dtype == "S30"
    np.testing.assert_array_equal(X, planted_motif(50, 30, "TGACTCA", seed=5).X)
    for change, keyword in (
        ({"motif": "TGN"}, "motif"),
        ({"length": 6}, "7 or more"),
        ({"length": 10, "background": 3}, "11 or more"),
        ({"strands": 2}, "strands"),
    ):
        with pytest.raises(ValueError, match=keyword):
            planted_motif(**{"n": 5, "length": 30, "motif": "TGACTCA"} | change)


def test_uniprobe_files_are_checked(tmp_path):
    (tmp_path / "1.tsv").write_text("ACGT\t+1\t12\nACGA\t2\t1\n", encoding="ascii")
    with pytest.raises(ValueError, match="line 2"):
        uniprobe(tmp_path, "1", 1)
    for fold in (6, 0, True, 1.0, "1", None):
        with pytest.raises(ValueError, match="fold"):
            uniprobe(tmp_path, "1", fold)
    with pytest.raises(FileNotFoundError, match="052"):
        uniprobe(tmp_path, "052", 1)


def test_uniprobe_never_leaves_its_folder(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret.tsv").write_text("ACGT\t+1\t12\n")
    for name in ("../secret", "..", ".", "", "a/../../secret", str(tmp_path / "secret"), "x\0", None, 52, b"052"):
        with pytest.raises(ValueError, match="protein"):
            uniprobe(tmp_path / "inside", name, 1)


@pytest.mark.parametrize(
    ("content", "keyword"),
    [
        (b"", "empty"),
        (b"\n", "line 1"),
        (b"ACGT\t+1\t1\n\nACGT\t+1\t1\n", "line 2"),
        (b"ACGT\t+1\t1\nAC\xc3\xa9T\t+1\t1\n", "line 2"),
        (b"ACGT\t+1\t1\nAC T\t-1\t1\n", "line 2"),
        (b"ACGT\t+1\t1\n\t-1\t1\n", "line 2"),
        (b"ACGT\t+1\t1\nACGT\t-1\t7\n", "line 2"),
        (b"ACGT\t+1\nACGT\t-1\t1\t1\n", "line 1"),
        (b"ACGT\t+1\t1\nACGT\t*1\t1\n", "line 2"),
        (b"ACGT\t+1\t1\nACGT\t11\t1\n", "line 2"),
        (b"ACGT\t+1\t1\n" + b"A" * 10**6 + b"\n", "line 2"),
        (b"\x00" * 100, "line 1"),
    ],
)
def test_lines_that_are_not_probes_are_named_and_not_repeated(tmp_path, content, keyword):
    (tmp_path / "1.tsv").write_bytes(content)
    with pytest.raises(ValueError, match=keyword) as caught:
        uniprobe(tmp_path, "1", 1)
    assert len(str(caught.value)) < 500


def test_uniprobe_reads_any_line_ending_and_any_length(tmp_path):
    (tmp_path / "1.tsv").write_bytes(b"ACGT\t+1\t12\r\nAC\t-1\t\r\nTTTTT\t1\t3")
    found = uniprobe(tmp_path, "1", 1)
    assert found.X_train.tolist() == [b"ACGT"]
    assert found.X_test.tolist() == [b"AC", b"TTTTT"]
    assert found.y_test.tolist() == [-1, 1]


def test_packed_probes_that_grow_beyond_the_limit_are_not_unpacked(tmp_path):
    """A megabyte of them was unpacked to a gigabyte, and took ten."""
    bomb = gzip.compress(b"ACGT\t+1\t1\n" * 10**6)
    assert len(bomb) < 10**5
    (tmp_path / "1.tsv.gz").write_bytes(bomb)
    with pytest.raises(ValueError, match="100000"):
        uniprobe(tmp_path, "1", 1, max_bytes=100_000)
    assert uniprobe(tmp_path, "1", 1).X_train.size == 10**6
    for broken in (bomb[: len(bomb) // 2], b"hello", b""):
        (tmp_path / "1.tsv.gz").write_bytes(broken)
        with pytest.raises(ValueError, match=r"gzip|empty"):
            uniprobe(tmp_path, "1", 1)
    (tmp_path / "wide.tsv").write_bytes(b"A" * 10**6 + b"\t1\t1\n" + b"A\t1\t1\n" * 10**6)
    with pytest.raises(ValueError, match="1000000"):
        uniprobe(tmp_path, "wide", 1)


@pytest.mark.skipif("TACIT_DATA" not in os.environ, reason="TACIT_DATA is unset: no UniPROBE data")
def test_uniprobe_halves():
    halves = uniprobe(Path(os.environ["TACIT_DATA"]) / "uniprobe", "052", 1)
    assert halves.X_train.shape == halves.y_train.shape == (20_950,)  # PEERS: fold 1 has 20,950 sequences
    assert halves.X_test.size == 40_685 - 20_950
    assert set(halves.y_test) == {-1, 1}


# every window, either strand


def test_a_motif_at_the_very_end_is_found():
    rng = np.random.default_rng(0)
    letters = rng.choice(list("ACGT"), (200, 30))
    y = np.arange(200) % 2
    for i in np.flatnonzero(y):
        letters[i, -7:] = list("TGACTCA")
    X = ["".join(row) for row in letters]
    model = LatentSVM(Motif(width=7), C=50, n_init=4).fit(X, y)
    assert (model.hidden_[y == 1] == 23).mean() > 0.95
    assert model.score(X, y) > LatentSVM(Motif(width=7, features="literature"), C=50, n_init=4).fit(X, y).score(X, y)


def reverse_complement(sequences):
    swap = str.maketrans("ACGTRY", "TGCAYR")
    return [str(x).translate(swap)[::-1] for x in sequences]


@pytest.mark.parametrize("background", [1, 3])
def test_both_strands_are_the_same_to_the_last_bit(background):
    X, y, place = planted_motif(150, 35, "GATTACA", noise=0.1, strands="both", seed=3)
    X = [x.decode() for x in X]
    X[0] = "RY" + X[0][2:]
    reverse = reverse_complement(X)
    some = np.arange(150) % 5 == 0
    hidden = np.where(some[:, None], place, -1)
    mirrored = np.where(hidden >= 0, np.column_stack([35 - 7 - hidden[:, 0], 1 - hidden[:, 1]]), -1)
    one, other = (
        LatentSVM(Motif(width=7, background=background, strands="both"), C=20, n_init=2).fit(sequences, y, hidden=known)
        for sequences, known in ((X, hidden), (reverse, mirrored))
    )
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.decision_function(X), one.decision_function(reverse))
    start, strand = one.hidden_[y == 1].T
    assert np.array_equal(other.hidden_[y == 1], np.column_stack([28 - start, 1 - strand]))
    found, back = one.predict_hidden(X, k=2)[0], one.predict_hidden(reverse, k=2)[0]
    has_motif = one.predict(X) == 1
    assert np.array_equal(back[has_motif][..., 0], 28 - found[has_motif][..., 0])


def test_known_sets_follow_the_reverse_complement():
    X, y, place = planted_motif(60, 30, "GATTACA", strands="both", seed=1)
    allowed = [-1 if s < 0 else [(s, -1), (max(s - 1, 0), 0)] for s, _ in place.tolist()]
    model = LatentSVM(Motif(width=7, strands="both"), C=20).fit(X, y, hidden=allowed)
    for (s, _), (found, strand) in zip(place.tolist(), model.hidden_.tolist(), strict=True):
        assert s < 0 or found == s or (found == max(s - 1, 0) and strand == 0)
