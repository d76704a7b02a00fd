"""Peaks of a genome: BED and narrowPeak in, sequences and sites with positions of the genome out."""

import json

import numpy as np
import pytest

from tacit.cli import main
from tacit.dna.regions import Region, cut_regions, read_peaks, read_regions

WORD = "TGACTCATCC"


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def random_text(rng, n):
    return "".join(rng.choice(list("ACGT"), n))


def test_regions_of_a_genome_are_cut_in_one_pass(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("tacit.dna.pieces.PIECE_LETTERS", 100)
    genome = {name: random_text(rng, 1500) for name in ("chr1", "chr2")}
    (tmp_path / "g.fa").write_text("".join(f">{name} primary\n{text}\n" for name, text in genome.items()))
    regions = [Region(f"chr{1 + i % 2}", s, s + 150) for i, s in enumerate(range(0, 1500, 70))]
    found, letters = cut_regions(tmp_path / "g.fa", [*regions, Region("chrX", 0, 10), Region("chr1", 9000, 9010)])
    assert found == list(range(len(regions)))
    assert letters == [genome[r.chromosome][r.start : r.end] for r in regions]


@pytest.fixture
def genome(tmp_path, rng):
    """Two chromosomes with 120 sites each, and the peaks around them."""
    places, lines = {}, []
    with (tmp_path / "g.fa").open("w") as file:
        for name in ("chr1", "chr2"):
            text = list(random_text(rng, 30_000))
            places[name] = (200 + 240 * np.arange(120) + rng.integers(-20, 20, 120)).tolist()
            for start in places[name]:
                text[start : start + 10] = WORD
                lines.append(f"{name}\t{start - 200}\t{start + 100}\tp\t0\t.\t1\t1\t1\t{200 + rng.integers(-9, 9)}")
            file.write(f">{name} assembly\n{''.join(text)}\n")
    (tmp_path / "peaks.narrowPeak").write_text("\n".join([*lines, "chrUn\t5\t400\tp\t0\t.\t1\t1\t1\t-1"]))
    return tmp_path, places


@pytest.mark.parametrize("as_option", [True, False])
def test_sites_have_positions_of_the_genome(as_option, genome, capsys):
    folder, places = genome
    peaks = [*(["--peaks"] if as_option else []), str(folder / "peaks.narrowPeak")]
    options = ["--genome", str(folder / "g.fa"), "--width", "10", "--c", "1000", "--motifs", "1"]
    assert main(["motif", *peaks, *options, "--out", str(folder / "out")]) == 0
    record = json.loads((folder / "out" / "run.json").read_text())
    assert "240" in record["summary"]
    assert "1 peak" in record["summary"]
    rows = [line.split("\t") for line in (folder / "out" / "sites.bed").read_text().splitlines()]
    right = [abs(int(row[1]) - min(places[row[0]], key=lambda s: abs(s - int(row[1])))) <= 1 for row in rows]
    assert len(rows) > 200
    assert np.mean(right) > 0.95
    gff = [line.split("\t") for line in (folder / "out" / "sites.gff3").read_text().splitlines()[1:]]
    assert [int(row[3]) - 1 for row in gff] == [int(row[1]) for row in rows]
    assert len((folder / "out" / "report.html").read_text()) > 1000


def test_a_summit_is_the_middle(tmp_path):
    (tmp_path / "a.narrowPeak").write_text("chr1\t100\t400\tp\t0\t.\t1\t1\t1\t50\nchr1\t0\t30\tp\t0\t.\t1\t1\t1\t-1\n")
    assert read_regions(tmp_path / "a.narrowPeak", 20) == [Region("chr1", 140, 160), Region("chr1", 5, 25)]


@pytest.mark.parametrize(("line", "keyword"), [("chr1 5", "end"), ("chr1 9 5", "before"), ("# x", "0 regions")])
def test_broken_regions_are_refused(line, keyword, tmp_path):
    (tmp_path / "a.bed").write_text(line + "\n")
    with pytest.raises(ValueError, match=keyword):
        read_regions(tmp_path / "a.bed")


def test_another_assembly_is_named(genome, capsys):
    folder, _ = genome
    (folder / "b.bed").write_text("1\t100\t300\n")
    assert main(["motif", str(folder / "b.bed"), "--genome", str(folder / "g.fa"), "--out", str(folder / "o")]) == 1
    assert "assembly" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [[], ["--peaks", "peaks.narrowPeak"], ["peaks.narrowPeak"], ["g.fa", "--genome", "g.fa"]]
)
def test_peaks_and_genome_go_together(words, genome, capsys):
    folder, _ = genome
    words = [str(folder / word) if "." in word else word for word in words]
    assert main(["motif", *words, "--out", str(folder / "o")]) == 2
    assert "--genome" in capsys.readouterr().err


def test_peaks_mostly_beyond_the_end_are_left_out(tmp_path):
    (tmp_path / "g.fa").write_text("\ufeff>chr1\n" + "ACGTT" * 20 + "\n", "utf-8")
    (tmp_path / "a.bed").write_text("chr1\t10\t30\nchr1\t95\t115\nchr1\t85\t105\nchr2\t5\t9\n")
    names, letters, n_lacking = read_peaks(tmp_path / "a.bed", tmp_path / "g.fa", 0)
    assert names == ["chr1:10-30", "chr1:85-105"]
    assert [len(own) for own in letters] == [20, 15]
    assert n_lacking == 2
