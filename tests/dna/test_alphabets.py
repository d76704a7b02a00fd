"""RNA and protein: letters, motifs, files, known motifs, and errors."""

import json
import re

import numpy as np
import pytest

import tacit
from tacit.apps import MotifFinder
from tacit.cli import main
from tacit.dna.files import Matrix, read_motifs, read_sequences_file
from tacit.dna.finder.known import match_known
from tacit.dna.finder.shapes import write_consensus
from tacit.dna.kmers import Pieces, find_kmers
from tacit.dna.sequences import DNA, PROTEIN, RNA, read_sequences, shuffle, shuffle_letters, write_letters
from tacit.problems import MotifSites

WORD = "RRXTLPEW"


def plant(word, letters, n=200, length=50, seed=0):
    """Random positives with a word, whose X or N is any letter, and random negatives."""
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list(letters), length)) for _ in range(2 * n)]
    for i in range(n):
        start = int(rng.integers(0, length - len(word) + 1))
        site = "".join(rng.choice(list(letters)) if c in "XN" or rng.random() < 0.1 else c for c in word)
        texts[i] = texts[i][:start] + site + texts[i][start + len(word) :]
    return texts, np.repeat([1, -1], n)


def test_codes_of_dna_are_as_before():
    assert "".join(DNA.meaning) == "ACGTRYSWKMBDHVN"
    assert read_sequences(["acguN"]).values.tolist() == [0, 1, 2, 3, 14]
    assert read_sequences(["acguT"], RNA).values.tolist() == [0, 1, 2, 3, 3]
    assert write_letters(read_sequences(["acguT"], RNA), RNA) == ["ACGUU"]


def test_masked_arrays_are_refused_before_they_are_read():
    masked = np.ma.masked_array(np.array(["AC!T", "ACGT"]), [True, False])
    with pytest.raises(ValueError, match="masked"):
        read_sequences(masked)
    with pytest.raises(ValueError, match="not a DNA"):
        read_sequences(np.ma.masked_array(np.array(["ACGT", "AC!T"])))


def test_letters_of_protein():
    codes = read_sequences(["acWYU", "bXO"], PROTEIN)
    assert write_letters(codes, PROTEIN) == ["ACWYC", "BXK"]
    assert PROTEIN.shares[codes.values[5]].nonzero()[0].tolist() == [PROTEIN.letters.index(c) for c in "DN"]
    with pytest.raises(ValueError, match="amino acid"):
        read_sequences(["AC-Y"], PROTEIN)


def test_kmers_of_protein_are_numbers_of_base_twenty():
    codes = read_sequences(["ACDYX"], PROTEIN)
    kmers = find_kmers(codes.values, codes.offsets, 2, PROTEIN)
    assert kmers.ids[:3].tolist() == [1, 22, 59]
    assert kmers.mixtures.toarray()[0].nonzero()[0].tolist() == list(range(380, 400))  # YA to YY


def test_pieces_of_protein_score_like_the_motif():
    rng = np.random.default_rng(1)
    motif = rng.standard_normal((5, 20))
    pieces = Pieces.of(5, 20)
    letters = rng.integers(0, 20, 5)
    tables = pieces.tables(motif)
    ids = [20 * letters[s] + letters[s + 1] for s in pieces.shifts]
    assert sum(tables[k, i] for k, i in enumerate(ids)) == pytest.approx(motif[np.arange(5), letters].sum())


def test_shuffles_of_protein_keep_letters_and_not_pairs():
    rng = np.random.default_rng(2)
    sequences = read_sequences(["".join(rng.choice(list(PROTEIN.letters), 60)) for _ in range(5)], PROTEIN)
    mixed = shuffle(sequences, 1, PROTEIN)
    for before, after in zip(sequences, mixed, strict=True):
        assert sorted(before) == sorted(after)
        assert (np.asarray(before) != np.asarray(after)).mean() > 0.5
    assert (shuffle_letters(sequences, 1).values == mixed.values).all()


def test_a_motif_of_protein_is_found_whole():
    X, y = plant(WORD, PROTEIN.letters)
    finder = MotifFinder(alphabet="protein", C=1000, verbose=0).fit(X, y)
    motif = finder.motifs_[0]
    assert re.search("RR[A-Z]TLPEW", motif.consensus)
    assert motif.e_value < 1e-9
    assert motif.counts.shape[1] == 20
    assert (finder.sites_.strand == 0).all()
    assert finder.score(X, y) > 0.9


def test_a_motif_of_rna_is_written_with_u(tmp_path):
    X, _ = plant("UGUANAUA", "ACGU", n=150)
    (tmp_path / "rna.fa").write_text("".join(f">r{i}\n{x}\n" for i, x in enumerate(X[:150])))
    words = ["--alphabet", "rna", "--c", "1000", "--quiet", "--out", str(tmp_path / "out")]
    assert main(["motif", str(tmp_path / "rna.fa"), *words]) == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "UGUANAUA" in record["motifs"][0]["consensus"]
    assert "ALPHABET= ACGU" in (tmp_path / "out" / "motifs.meme").read_text()
    rows = [line.split("\t") for line in (tmp_path / "out" / "sites.tsv").read_text().splitlines()[1:]]
    assert {row[4] for row in rows} == {"+"}
    assert not any("T" in row[6] for row in rows)
    assert "reverse complement" not in (tmp_path / "out" / "report.html").read_text()
    scan = ["scan", str(tmp_path / "out" / "model.tacit"), str(tmp_path / "rna.fa"), "--quiet"]
    assert main([*scan, "--out", str(tmp_path / "scan")]) == 0
    rows = (tmp_path / "scan" / "sites.tsv").read_text().splitlines()[1:]
    assert len(rows) > 20  # less than 1 is expected by chance
    assert {row.split("\t")[4] for row in rows} == {"+"}


@pytest.fixture(scope="module")
def peptides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("peptides")
    X, _ = plant(WORD, PROTEIN.letters, n=120)
    (folder / "pep.fa").write_text("".join(f">p{i}\n{x}\n" for i, x in enumerate(X[:120])))
    words = ["--alphabet", "protein", "--width", "8", "--c", "1000", "--motifs", "1", "--quiet", "--ask", "3"]
    assert main(["motif", str(folder / "pep.fa"), *words, "--out", str(folder / "out")]) == 0
    return folder


def test_files_of_protein(peptides):
    (matrix,) = read_motifs(peptides / "out" / "motifs.meme")
    assert matrix.shares.shape == (8, 20)
    assert not (peptides / "out" / "motifs.jaspar").exists()
    assert len((peptides / "out" / "questions.tsv").read_text().splitlines()) == 1 + 3
    finder = tacit.load(peptides / "out" / "model.tacit")
    assert finder.alphabet == finder.motifs_[0].alphabet == "protein"
    assert finder.predict(["AAAAARRATLPEWAAAAA", "AAAAAGGGGGGGGGAAAA"])[1] == -1
    found = match_known(finder.motifs_[0].probabilities, [matrix], PROTEIN)[0]
    assert (found.strand, found.offset) == (0, 0)
    assert found.p_value < 1e-4


@pytest.mark.parametrize("file", ["model.tacit", "motifs.meme"])
def test_scan_refuses_protein(file, peptides, tmp_path, capsys):
    (tmp_path / "a.fa").write_text(">a\nACGTACGT\n")
    words = ["scan", str(peptides / "out" / file), str(tmp_path / "a.fa"), "--out", str(tmp_path / "out")]
    assert main(words) == 1
    assert "protein" in capsys.readouterr().err


def test_protein_without_the_option_names_it(peptides, tmp_path, capsys):
    assert main(["motif", str(peptides / "pep.fa"), "--out", str(tmp_path / "out")]) == 1
    assert "--alphabet protein" in capsys.readouterr().err


def test_known_motifs_of_another_alphabet_are_refused():
    with pytest.raises(ValueError, match="alphabet"):
        match_known(np.full((6, 20), 0.05), [Matrix("dna", np.full((6, 4), 0.25))], PROTEIN)


def test_other_strands_and_flanks_of_protein_are_refused():
    with pytest.raises(ValueError, match="direction"):
        MotifSites(5, alphabet="protein", strands="both").check()
    with pytest.raises(ValueError, match="flank"):
        MotifFinder(alphabet="protein", flank="ACG").fit(["A"] * 30, np.arange(30) % 2)


def test_the_consensus_of_protein_has_x_for_mixed_positions():
    table = np.full((3, 20), 0.01)
    table[0, 3], table[1, [2, 11]], table[2, [0, 5]] = 0.81, 0.41, 0.41
    assert write_consensus(table, PROTEIN) == "EBX"


@pytest.mark.parametrize("share", [0.8, 0.0])
def test_a_motif_of_few_peptides_is_found_and_noise_is_not(share):
    rng = np.random.default_rng(1)
    X = ["".join(rng.choice(list(PROTEIN.letters), 60)) for _ in range(160)]
    for i in np.flatnonzero(rng.random(80) < share):
        start = rng.integers(0, 54)
        X[i] = X[i][:start] + "RGDWKP" + X[i][start + 6 :]
    finder = MotifFinder(alphabet="protein", C=1000, verbose=0).fit(X, np.repeat([1, -1], 80))
    assert ["RGDWKP" in motif.consensus for motif in finder.motifs_] == [True] * (share > 0)


def test_a_stop_codon_at_the_end_is_left_out(tmp_path):
    (tmp_path / "a.fa").write_text(">a\nMEEPQ*\n")
    assert read_sequences_file(tmp_path / "a.fa", is_protein=True).letters == ["MEEPQ"]
    (tmp_path / "a.fa").write_text(">a\nME*PQ\n")
    with pytest.raises(ValueError, match="amino acid"):
        read_sequences_file(tmp_path / "a.fa", is_protein=True)


def test_letters_u_without_the_option_name_it(tmp_path, capsys):
    rng = np.random.default_rng(0)
    letters = ["".join(rng.choice(list("ACGU"), 20)) for _ in range(24)]
    (tmp_path / "a.fa").write_text("".join(f">{i}\n{own}\n" for i, own in enumerate(letters)))
    words = ["motif", str(tmp_path / "a.fa"), "--width", "6", "--motifs", "1", "--c", "1", "--out", str(tmp_path / "o")]
    assert main(words) == 0
    assert "--alphabet rna" in capsys.readouterr().out
