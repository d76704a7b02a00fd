"""Scans: windows with a p-value from an exact distribution, matrices of anybody, standard input, unknown letters."""

import gzip
import io
import json
import sys

import numpy as np
import pytest

from tacit.cli import main
from tacit.dna.files import Matrix, write_meme
from tacit.dna.pieces import iterate_pieces
from tacit.dna.scan import ScannedMotif, Scanner
from tacit.dna.score_tails import STEPS, Background, learn_background, log_odds, score_tail
from tacit.dna.sequences import read_sequences, shuffle_pairs

WORD = "TGACTCATCC"


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def random_text(rng, n, shares=(0.3, 0.2, 0.2, 0.3)):
    return "".join(rng.choice(list("ACGT"), n, p=shares))


def sharp(word=WORD):
    return np.eye(4)[["ACGT".index(letter) for letter in word]] * 0.88 + 0.03


def write_motif(path, word=WORD):
    path.write_text(write_meme([Matrix("mine", sharp(word))], np.full(4, 0.25), [20], [1.0]))
    return str(path)


def test_the_tail_is_that_of_all_words_of_a_markov_chain(rng):
    weights = rng.standard_normal((5, 4))
    following = rng.dirichlet(np.ones(4), (2, 4))
    background = Background(np.array([0.3, 0.7]), rng.dirichlet(np.ones(4), 2), following)
    tail = score_tail(weights, background)
    words = np.arange(4**5)[:, None] // 4 ** np.arange(5) % 4
    steps = tail.steps[np.arange(5), words].sum(axis=1)
    chance = np.zeros(4**5)
    for share, first, after in zip(*background, strict=True):
        chance += share * first[words[:, 0]] * np.prod(after[words[:, :-1], words[:, 1:]], axis=1)
    for level in (0, 1000, 4000, 7000, int(steps.max())):
        assert tail.p_values[level] == pytest.approx(chance[steps >= level].sum(), abs=1e-12)
    exact = weights[np.arange(5), words].sum(axis=1)
    span = np.ptp(exact)
    assert np.abs((exact - exact.min()) / span * STEPS - steps).max() <= 2.5


def test_p_values_are_right_on_shuffled_sequences(rng):
    shares = ((0.4, 0.1, 0.1, 0.4), (0.2, 0.3, 0.3, 0.2))
    sequences = read_sequences([random_text(rng, 2000, shares[i % 2]) for i in range(300)])
    background = learn_background([sequences[i : i + 1].values for i in range(300)])
    scanner = Scanner([ScannedMotif("x", log_odds(sharp("GGCGGAA"), background.letters))], background, 1e-3)
    shuffled = shuffle_pairs(sequences, 1)
    letters = "ACGT"
    hits = scanner.scan((str(i), "".join(letters[c] for c in shuffled[i : i + 1].values)) for i in range(300))
    p = np.array([hit.p_value for hit in hits])
    for level in (1e-3, 1e-4):
        n, expected = (p <= level).sum(), p[p <= level].max() * scanner.n_windows[0]  # scores are few
        assert abs(n - expected) < 4 * np.sqrt(expected) + 0.15 * expected


def test_runs_of_unknown_letters_hold_no_site(tmp_path, rng):
    text = random_text(rng, 20_000) + "N" * 50_000 + WORD + "NNRYNN" + "N" * 1000
    (tmp_path / "x.fa").write_text(">x\n" + text)
    motif = write_motif(tmp_path / "m.meme")
    assert main(["scan", motif, str(tmp_path / "x.fa"), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    rows = [line.split("\t") for line in (tmp_path / "out" / "sites.tsv").read_text().splitlines()[1:]]
    assert [row[2] for row in rows if int(row[2]) >= 20_000] == ["70000"]
    peaks = [line.split("\t") for line in (tmp_path / "out" / "sites.narrowPeak").read_text().splitlines()]
    bed = [line.split("\t") for line in (tmp_path / "out" / "sites.bed").read_text().splitlines()]
    assert [peak[:6] for peak in peaks] == bed
    for peak, row in zip(peaks, rows, strict=True):
        assert [float(peak[7]), float(peak[8])] == pytest.approx([-np.log10(float(p)) for p in row[6:8]], abs=0.01)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["windows"] == 2 * (20_000 - 9 + 1)


@pytest.mark.parametrize("is_packed", [True, False])
def test_standard_input_to_standard_output(is_packed, tmp_path, rng, monkeypatch, capsys):
    text = f">a\n{random_text(rng, 3000)}{WORD}\n>b\n{random_text(rng, 50)}\n".encode()
    content = gzip.compress(text) if is_packed else text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["scan", write_motif(tmp_path / "m.meme"), "-", "--stdout", "--p-value", "1e-5"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0][:3] == ["motif", "sequence", "start"]
    assert ["1", "a", "3000", "3010", "+"] in [row[:5] for row in rows[1:]]
    assert [path.name for path in tmp_path.iterdir()] == ["m.meme"]


def test_gzip_is_recognised_without_its_ending(tmp_path, rng):
    (tmp_path / "x.fa").write_bytes(gzip.compress(f">a\n{random_text(rng, 300)}{WORD}\n".encode()))
    (piece,) = iterate_pieces(tmp_path / "x.fa")
    assert piece.codes.size == 310


@pytest.mark.parametrize(("planted", "is_chance"), [(0, True), (40, False)])
def test_as_many_sites_as_by_chance_are_called_so(planted, is_chance, tmp_path, rng, capsys):
    text = random_text(rng, 200_000) + WORD * planted
    (tmp_path / "x.fa").write_text(f">x\n{text}\n")
    out = tmp_path / "out"
    assert main(["scan", write_motif(tmp_path / "m.meme"), str(tmp_path / "x.fa"), "--out", str(out)]) == 0
    assert ("by chance: not more" in capsys.readouterr().out) == is_chance
    assert ("As many as by chance: no motif" in (out / "report.html").read_text()) == is_chance
    record = json.loads((out / "run.json").read_text())
    assert record["by_chance"] == [is_chance]
    assert record["expected_per_motif"][0] == pytest.approx(40, rel=0.2)


def test_q_values_are_the_share_of_false_sites(rng):
    text = random_text(rng, 100_000) + WORD * 100
    background = learn_background([read_sequences([text]).values])
    scanner = Scanner([ScannedMotif("x", log_odds(sharp(), background.letters))], background, 1e-3)
    hits = list(scanner.scan([("x", text)]))
    q = np.array([scanner.q_table(1)[hit.steps] for hit in hits])
    true = np.array([hit.start >= 100_000 and (hit.start - 100_000) % 10 == 0 for hit in hits])
    assert 95 <= (q < 0.05).sum() <= 115
    assert true[q < 0.05].sum() >= 95
    order = np.argsort([hit.p_value for hit in hits], kind="stable")
    assert (np.diff(q[order]) >= -1e-12).all()


def test_pieces_of_any_size_join_to_the_same_sequences(tmp_path, rng):
    texts = [random_text(rng, n) for n in (1, 70, 500, 64)]
    cut = ["\r\n".join(text[k : k + 60] for k in range(0, len(text), 60)) for text in texts]
    lines = "".join(f">s{i} more\r\n{text}\r\n" for i, text in enumerate(cut))
    (tmp_path / "x.fa").write_bytes(lines.encode())
    for most in (1, 7, 64, 1000):
        joined = {}
        for piece in iterate_pieces(tmp_path / "x.fa", most):
            assert piece.start == len(joined.get(piece.name, ""))
            joined[piece.name] = joined.get(piece.name, "") + "".join("ACGT"[c] for c in piece.codes)
        assert joined == {f"s{i} more": text for i, text in enumerate(texts)}


def test_blocks_may_end_anywhere_in_a_file(tmp_path, rng, monkeypatch):
    texts = [random_text(rng, n) for n in (3, 30, 8)]
    (tmp_path / "x.fa").write_text("".join(f">s{i}\n{text[:5]}\n{text[5:]}\n" for i, text in enumerate(texts)))
    whole = [(piece.name, piece.codes.tolist()) for piece in iterate_pieces(tmp_path / "x.fa")]
    for size in range(1, 12):
        monkeypatch.setattr("tacit.dna.pieces._READ", size)
        assert [(piece.name, piece.codes.tolist()) for piece in iterate_pieces(tmp_path / "x.fa")] == whole


@pytest.mark.parametrize(
    ("content", "keyword"),
    [("", "empty"), (">a\nAC!T\n", "position 2"), (">a\n>b\nACGT\n", "0 letters"), ("ACGT\n", "FASTA"), (">a", "name")],
)
def test_broken_files_are_refused(content, keyword, tmp_path):
    (tmp_path / "x.fa").write_text(content)
    with pytest.raises(ValueError, match=keyword):
        list(iterate_pieces(tmp_path / "x.fa"))
