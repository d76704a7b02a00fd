"""Files of ``tacit motif``: it reads sequences, with or without labels, and writes motifs, sites and tables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.lines import one_line
from tacit.data.reading import quote
from tacit.data.shards import Shards
from tacit.dna.files import (
    Matrix,
    Sequences,
    is_table,
    read_sequence_table,
    read_sequences_file,
    write_jaspar,
    write_meme,
)
from tacit.dna.finder.shapes import FoundMotif
from tacit.dna.regions import is_regions, read_peaks
from tacit.dna.sequences import ALPHABETS, DNA, load_letters, read_sequences, write_letters

_OTHER_STRAND = str.maketrans("".join(DNA.meaning), DNA.letters_of(DNA.complement).tobytes().decode())

_REGION = re.compile(r"^([A-Za-z0-9_.]{1,60}):(\d{1,12})-(\d{1,12})")


@dataclass(frozen=True)
class MotifInput:
    """Sequences for `tacit.apps.MotifFinder`.

    Parameters
    ----------
    names, letters : of every sequence
    labels : 1 and −1; None where all are positive and shuffles become the negatives
    summary : what was read, in a sentence
    n_duplicates : sequences whose name occurs before in their file
    """

    names: list[str]
    letters: list[str]
    labels: Array | None
    summary: str
    n_duplicates: int


def read_motif_input(
    positives: Path,
    negatives: Path | None,
    *,
    top: int,
    seed: int,
    genome: Path | None = None,
    peak_width: int = 100,
    match_gc: bool = False,
    is_protein: bool = False,
) -> MotifInput:
    """Read one or two files.

    Parameters
    ----------
    positives : FASTA, FASTQ, a folder of shards (`tacit.Shards.write`), or a table of sequences with labels or signals
    negatives : FASTA, FASTQ, or a folder of shards; None for shuffles, or where the first file has both
    top : number of positives, those with the strongest signal; as many of the others are drawn as negatives
    seed : of that draw
    genome : FASTA, out of which files of regions (BED, narrowPeak) are cut
    peak_width : letters around the summit or the middle of a region; 0 for the whole region
    match_gc : draw those negatives whose shares of G and C are distributed as in the positives
    is_protein : whether sequences are amino acids
    """
    if is_protein and any(is_table(path) or os.path.isdir(path) for path in (positives, negatives) if path is not None):
        raise ValueError(f"{quote(positives)}: protein must be in FASTA; tables and shards are for DNA and RNA")
    if not os.path.isdir(positives) and is_table(positives):
        if negatives is not None:
            raise ValueError(f"{quote(positives)} is a table with both classes; leave out {quote(negatives)}")
        return _from_table(positives, top, seed)
    first, lacking = _read_sequences(positives, genome, peak_width, is_protein)
    if negatives is None:
        summary = f"{len(first.names)} sequences{lacking}, and a shuffle of each"
        return _finish(first.names, first.letters, None, summary)
    second, more_lacking = _read_sequences(negatives, genome, peak_width, is_protein)
    n_read = len(second.names)
    if match_gc:
        rows = match_gc_rows(first.letters, second.letters, seed)
        second = Sequences([second.names[i] for i in rows], [second.letters[i] for i in rows])
        more_lacking += f" (of {n_read}, matched by G and C)"
    labels = np.repeat([1, -1], [len(first.names), len(second.names)])
    summary = f"{len(first.names)} positive{lacking} and {len(second.names)} negative sequences{more_lacking}"
    both = _finish(first.names + second.names, first.letters + second.letters, labels, summary)
    twice = sum(len(names) - len(set(names)) for names in (first.names, second.names))
    return replace(both, n_duplicates=twice)


def _read_sequences(path: Path, genome: Path | None, peak_width: int, is_protein: bool) -> tuple[Sequences, str]:
    """Sequences of a file, of shards or of regions of a genome; and a remark on regions that the genome lacks."""
    if not is_regions(path):
        return _read_file_or_shards(path, is_protein), ""
    names, letters, n_lacking = read_peaks(path, genome, peak_width)
    remark = f" ({n_lacking} peak{'s' * (n_lacking != 1)} outside of the genome)" if n_lacking else ""
    return Sequences(names, letters), remark


GC_BINS = 20
"""Bins of the share of G and C in which negatives are matched to positives."""


def match_gc_rows(positives: Sequence[str], negatives: Sequence[str], seed: int = 0) -> list[int]:
    """Rows of as many negatives as possible whose shares of G and C are distributed as those of the positives.

    Positives in bins without a negative are not matched. At most ten negatives per positive are drawn.

    >>> match_gc_rows(["GGCC", "AATT"], ["AAAA", "TTTT", "GCGC", "ACGT"])
    [1, 2]
    """
    bins = [np.minimum((_gc_shares(part) * GC_BINS).astype(np.int64), GC_BINS - 1) for part in (positives, negatives)]
    wanted, there = (np.bincount(part, minlength=GC_BINS) for part in bins)
    both = (wanted > 0) & (there > 0)
    if not both.any():
        raise ValueError("no negative has a share of G and C as the positives have; give other negatives")
    factor = min(float((there[both] / wanted[both]).min()), 10.0)
    if factor < 1:  # a thin bin must not empty the others: as many as there are, up to one per positive
        factor = 1.0
    rng = np.random.default_rng(seed)
    rows: list[int] = []
    for number in np.flatnonzero(both):
        own = np.flatnonzero(bins[1] == number)
        rows += rng.choice(own, min(own.size, round(factor * wanted[number])), replace=False).tolist()
    return sorted(rows)


def _gc_shares(letters: Sequence[str]) -> Array:
    upper = [text.upper() for text in letters]
    return np.array([(text.count("G") + text.count("C")) / max(len(text), 1) for text in upper])


def _read_file_or_shards(path: Path, is_protein: bool) -> Sequences:
    """Sequences of a file, or of a folder of shards, whose names are numbers."""
    if not os.path.isdir(path):
        return read_sequences_file(path, is_protein=is_protein)
    letters = write_letters(read_sequences(load_letters(Shards.open(path))))
    return Sequences([f"{path.name}:{number}" for number in range(1, len(letters) + 1)], letters)


def _from_table(path: Path, top: int, seed: int) -> MotifInput:
    table = read_sequence_table(path)
    if table.has_labels:
        values = np.unique(table.values)
        if values.size < 2:
            raise ValueError(f"{quote(path)} has only the label {values[0]:g}; give sequences of two classes")
        labels = np.where(table.values == values[1], 1, -1)
        n = int((labels == 1).sum())
        summary = f"{n} sequences of label {values[1]:g} and {labels.size - n} of label {values[0]:g}"
        return _finish(table.names, table.letters, labels, summary)
    order = np.argsort(-table.values, kind="stable")
    if order.size < 2 * top:
        raise ValueError(
            f"{quote(path)} has {order.size} sequences, but --top {top} needs {top} positives and {top} negatives; "
            f"lower --top to {order.size // 2} or less"
        )
    drawn = np.random.default_rng(seed).choice(order[top:], top, replace=False)
    rows = np.concatenate([order[:top], np.sort(drawn)])
    summary = f"the {top} sequences of the strongest signal, and {top} drawn from the {order.size - top} others"
    names, letters = [table.names[i] for i in rows], [table.letters[i] for i in rows]
    return _finish(names, letters, np.repeat([1, -1], top), summary)


def _finish(names: list[str], letters: list[str], labels: Array | None, summary: str) -> MotifInput:
    plain = [one_line(name, 200) or "unnamed" for name in names]
    return MotifInput(plain, letters, labels, summary, len(plain) - len(set(plain)))


def name_motifs(motifs: Sequence[FoundMotif]) -> list[str]:
    """The names of motifs in files: their number and consensus."""
    return [f"tacit-{number + 1}-{motif.consensus}" for number, motif in enumerate(motifs)]


def meme_text(motifs: Sequence[FoundMotif]) -> str:
    """All motifs in the minimal MEME format."""
    letters = ALPHABETS[motifs[0].alphabet].letters if motifs else "ACGT"
    background = motifs[0].background if motifs else np.full(4, 0.25)
    matrices = [Matrix(name, motif.probabilities) for name, motif in zip(name_motifs(motifs), motifs, strict=True)]
    return write_meme(
        matrices, background, [motif.sites for motif in motifs], [motif.e_value for motif in motifs], letters
    )


def jaspar_text(motifs: Sequence[FoundMotif]) -> str:
    """All motifs as counts in the JASPAR format."""
    pairs = zip(name_motifs(motifs), motifs, strict=True)
    return write_jaspar([Matrix(name, motif.counts) for name, motif in pairs])


def list_sites(finder: Any, data: MotifInput) -> list[tuple[Any, ...]]:
    """(motif, name, start, end, strand, score, letters) of every site in the positive sequences, the best first.

    Starts count from 0, at the first letter of the sequence as given; a site may reach over its ends.
    """
    names, letters = data.names, data.letters
    rows = []
    for number, (found, motif) in enumerate(zip(finder.site_lists_, finder.motifs_, strict=True)):
        for i, start, strand, value in zip(*(part.tolist() for part in found), strict=True):
            site = cut_site(letters[i] + finder.flank, start, motif.width, strand, motif.alphabet)
            rows.append((number + 1, names[i], start, start + motif.width, "+-"[strand], value, site))
    return rows


def cut_site(sequence: str, start: int, width: int, strand: int, alphabet: str = "dna") -> str:
    """The letters of a site along its strand, with a dot for each outside the sequence.

    >>> cut_site("AACGT", 3, 3, 0), cut_site("AACGT", 0, 3, 1)
    ('GT.', 'GTT')
    """
    inside = sequence[max(start, 0) : max(start + width, 0)].upper()
    if alphabet != "protein":
        inside = inside.replace(*("UT" if alphabet == "dna" else "TU"))
    site = ("." * max(-start, 0) + inside).ljust(width, ".")[:width]
    return site[::-1].translate(_OTHER_STRAND) if strand else site


def sites_bed(rows: Iterable[tuple[Any, ...]], motif_labels: Sequence[str]) -> str:
    """Sites in the BED format. Where a sequence is named ``chr1:100-200``, positions are those in the chromosome.

    >>> row = (1, "chr7:100-200 peak", 5, 15, "+", 3.2, "ACGTACGTAC")
    >>> sites_bed([row], ["tacit-1"]).split("\\t")[:3]
    ['chr7', '105', '115']
    """
    lines = []
    for number, name, start, end, strand, score, _ in rows:
        chromosome, low, high = _locate(name, start, end)
        shown = int(np.clip(round(100 * score), 0, 1000))
        lines.append(f"{chromosome}\t{low}\t{high}\t{motif_labels[number - 1]}\t{shown}\t{strand}")
    return "".join(line + "\n" for line in lines)


def gff_lines(rows: Iterable[tuple[Any, ...]], motif_labels: Sequence[str], p_values: Iterable[float | None]) -> str:
    """Sites as lines of GFF3, where positions count from 1 and ends are inside; without p-values None for each.

    >>> row = (1, "chr7:100-200 peak", 5, 15, "+", 3.2, "ACGTACGTAC")
    >>> gff_lines([row], ["tacit-1"], [1e-5]).split("\\t")[3:5]
    ['106', '115']
    """
    lines = []
    for (number, name, start, end, strand, score, _), p in zip(rows, p_values, strict=True):
        chromosome, low, high = _locate(name, start, end)
        more = "" if p is None else f";pvalue={p:.3g}"
        place = f"{chromosome}\ttacit\tsequence_feature\t{low + 1}\t{max(high, low + 1)}"
        lines.append(f"{place}\t{score:.4g}\t{strand}\t.\tName={motif_labels[number - 1]}{more}")
    return "".join(line + "\n" for line in lines)


def _locate(name: str, start: int, end: int) -> tuple[str, int, int]:
    """Chromosome, start and end of a site, from 0; of a sequence named chr1:100-200 those of the chromosome."""
    region = _REGION.match(name)
    first_word = re.sub(r"[^A-Za-z0-9_.:|+-]", "_", (name.split() or ["unnamed"])[0])[:100]
    chromosome, shift = (region[1], int(region[2])) if region else (first_word or "unnamed", 0)
    return chromosome, max(start + shift, 0), max(end + shift, 1)


def tsv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with tabs between columns. Text has tabs and line ends replaced, numbers have six digits.

    >>> tsv(("name", "score"), [("a\\tb", 0.5)])
    'name\\tscore\\na b\\t0.5\\n'
    """
    lines = ["\t".join(header)]
    for row in rows:
        cells = (f"{cell:.6g}" if isinstance(cell, float) else one_line(str(cell), 1000) for cell in row)
        lines.append("\t".join(cells))
    return "\n".join(lines) + "\n"
