"""Sequences and motifs in files, as they come and as they break; shuffles."""

import gzip

import numpy as np
import pytest

from tacit.dna.files import Matrix, read_motifs, read_sequence_table, read_sequences_file, write_jaspar, write_meme
from tacit.dna.sequences import read_sequences, shuffle_pairs

FASTA = ">one\nACGTACGT\nAC\n>two words\nggttnnaa\n"


def test_fasta_fastq_gz_and_windows_line_ends_give_the_same_sequences(tmp_path):
    (tmp_path / "a.fa").write_text(FASTA)
    (tmp_path / "b.fa").write_bytes(FASTA.replace("\n", "\r\n").encode())
    (tmp_path / "c.fa.gz").write_bytes(gzip.compress(FASTA.encode()))
    (tmp_path / "d.fq").write_text("@one\nACGTACGTAC\n+\nIIIIIIIIII\n@two words\nggttnnaa\n+\nIIIIIIII\n")
    for name in ("a.fa", "b.fa", "c.fa.gz", "d.fq"):
        found = read_sequences_file(tmp_path / name)
        assert found.names == ["one", "two words"]
        assert [letters.upper() for letters in found.letters] == ["ACGTACGTAC", "GGTTNNAA"]


@pytest.mark.parametrize(
    ("content", "keyword"),
    [
        (b"", "empty"),
        (b">only a name\n", "0 letters"),
        (b">p53\nMEEPQSDPSV\n", "protein"),
        (b">x\nACG!T\n", "'!' at position 3"),
        (b"ACGT\n", "FASTQ"),
        (b"\x00\xff\xfe", "FASTQ"),
        (b"@x\nACGT\n+\nII\n", "FASTQ"),
    ],
)
def test_a_broken_file_of_sequences_is_one_clear_error(content, keyword, tmp_path):
    (tmp_path / "x.fa").write_bytes(content)
    with pytest.raises(ValueError, match=keyword):
        read_sequences_file(tmp_path / "x.fa")


def test_a_broken_gz_is_one_clear_error(tmp_path):
    whole = gzip.compress(FASTA.encode() * 1000)
    for content in (whole[: len(whole) // 2], b"no gzip at all"):
        (tmp_path / "x.fa.gz").write_bytes(content)
        with pytest.raises(ValueError, match="gzip"):
            read_sequences_file(tmp_path / "x.fa.gz")


def test_tables_have_labels_or_signals_with_or_without_a_header(tmp_path):
    (tmp_path / "a.tsv").write_text("ACGT\t1\nCCCC\t0\nGGGG\t1\n")
    (tmp_path / "b.tsv").write_text("id\tseq\tsignal\nx\tACGT\t1.5\ny\tCCCC\t0.25\nz\tGGGG\t9\n")
    labels, signals = read_sequence_table(tmp_path / "a.tsv"), read_sequence_table(tmp_path / "b.tsv")
    assert labels.has_labels
    assert not signals.has_labels
    assert signals.names == ["x", "y", "z"]
    assert signals.values.tolist() == [1.5, 0.25, 9]
    assert labels.letters == signals.letters == ["ACGT", "CCCC", "GGGG"]


@pytest.mark.parametrize(
    ("content", "keyword"),
    [
        ("", "empty"),
        ("a\tb\n1\t2\n", "column of DNA"),
        ("ACGT\nCCGT\n", "column of numbers"),
        ("ACGT\t1\nCC\n", "line 2"),
        ("\nACGT\t1\n\n\nCC\n", "line 5 has 1 columns and line 2"),
        ("ACGT\tnan\nCCGT\tinf\n", "column of numbers"),
    ],
)
def test_a_broken_table_is_one_clear_error(content, keyword, tmp_path):
    (tmp_path / "x.tsv").write_text(content)
    with pytest.raises(ValueError, match=keyword):
        read_sequence_table(tmp_path / "x.tsv")


def test_lines_without_names_are_named_by_their_line_in_the_file(tmp_path):
    (tmp_path / "x.tsv").write_text("\nsequence\tsignal\n\nACGT\t1\nCCGT\t2\n")
    assert read_sequence_table(tmp_path / "x.tsv").names == ["line 4", "line 5"]


def test_motifs_survive_both_formats(tmp_path):
    shares = np.random.default_rng(0).dirichlet(np.ones(4), 7)
    (tmp_path / "a.meme").write_text(write_meme([Matrix("m 1", shares)], np.full(4, 0.25), [9], [0.1]))
    (tmp_path / "a.jaspar").write_text(write_jaspar([Matrix("m 1", 1e4 * shares)]))
    for name in ("a.meme", "a.jaspar"):
        (found,) = read_motifs(tmp_path / name)
        assert found.name == "m_1"
        np.testing.assert_allclose(found.shares, shares, atol=1e-4)


@pytest.mark.parametrize(
    ("content", "keyword"),
    [
        ("nothing", "0 motifs"),
        (">x\nA [ 1 2 ]\nC [ 1 ]\nG [ 1 2 ]\nT [ 1 2 ]\n", "equal length"),
        (">x\nA [ 0 ]\nC [ 0 ]\nG [ 0 ]\nT [ 0 ]\n", "position"),
        ("MOTIF x\n", "letter-probability matrix"),
    ],
)
def test_a_broken_file_of_motifs_is_one_clear_error(content, keyword, tmp_path):
    (tmp_path / "x").write_text(content)
    with pytest.raises(ValueError, match=keyword):
        read_motifs(tmp_path / "x")


def test_shuffles_keep_pairs_of_letters_and_are_not_the_same():
    rng = np.random.default_rng(0)
    lengths = [1, 2, 3, 10, 200, 57]
    X = read_sequences(["".join(rng.choice(list("ACGTN"), n, p=[0.4, 0.3, 0.1, 0.15, 0.05])) for n in lengths])
    first, again, other = (shuffle_pairs(X, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.values, again.values)
    assert (first.values != other.values).any()
    for before, after in zip(X, first, strict=True):
        assert sorted(zip(before[:-1].tolist(), before[1:].tolist(), strict=True)) == sorted(
            zip(after[:-1].tolist(), after[1:].tolist(), strict=True)
        )


def test_all_orders_with_the_same_pairs_are_as_likely():
    """AACAGA... has few orders: over many shuffles each occurs about as often (chi-square, seeded)."""
    X = read_sequences(["ACAGAATA"] * 6000)
    shuffled = shuffle_pairs(X, 3).values.reshape(6000, 8)
    orders, counts = np.unique(shuffled, axis=0, return_counts=True)
    assert len(orders) == 24  # A? four edges out of A lead to C, G, A, T: all 4! orders are paths
    assert ((counts - 250) ** 2 / 250).sum() < 49.7  # 99.9 % of chi-square with 23 degrees of freedom


def test_what_is_not_fasta_is_refused_by_its_first_letter(tmp_path):
    (tmp_path / "a.fa").write_text("ACGT\nACGT\n")
    with pytest.raises(ValueError, match="begins with 'A'"):
        read_sequences_file(tmp_path / "a.fa")
    (tmp_path / "b.fa").write_text("# a comment\n>one\nACGT\n")
    assert read_sequences_file(tmp_path / "b.fa").letters == ["ACGT"]
