"""``tacit scan``: find the sites of motifs in other sequences, of any number and length, piece by piece."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import click
import numpy as np

from tacit.commands import INPUT_FILE, INPUT_FILE_OR_STDIN, CommandRun, Number, count_noun, examples, run_options

SAMPLE_LETTERS = 1 << 24
"""Letters from the beginning of the sequences whose dinucleotides give p-values."""

CHANCE = 0.05
"""Sites are called more than by chance where a Poisson variable with the expected number is as high with a lower
probability than this."""

SHOWN_LOGOS = 50

EXAMPLES = examples(
    "tacit scan motifs/model.tacit genome.fa.gz --out sites",
    "tacit scan jaspar.meme promoters.fa --p-value 1e-5",
    "zcat genome.fa.gz | tacit scan motifs/motifs.meme - --stdout > sites.tsv",
)


@click.command(epilog=EXAMPLES)
@click.argument("motifs", type=INPUT_FILE)
@click.argument("sequences", type=INPUT_FILE_OR_STDIN)
@click.option(
    "--p-value",
    type=Number(float, 0, 0.1, is_open=True),
    metavar="P",
    default=1e-4,
    help="Largest p-value of a site that is reported, at most 0.1.",
)
@click.option(
    "--strands",
    type=click.Choice(["both", "one"]),
    help="Strands to scan; those of a model are the default, else both.",
)
@click.option("--stdout", "to_stdout", is_flag=True, help="Print the table of sites instead of writing a folder.")
@run_options(out="scan", is_parallel=False, is_drawn=False)
def scan(run: CommandRun, motifs: Path, sequences: Path, p_value: float, strands: str | None, to_stdout: bool) -> None:
    """Find the sites of MOTIFS in SEQUENCES.

    MOTIFS is the model.tacit of tacit motif, or a file of matrices in the MEME or JASPAR format. SEQUENCES are FASTA or
    FASTQ, plain or gzipped, of any size, or - for standard input: they are read in pieces. Windows with letters other
    than A, C, G, T are skipped. Writes sites.tsv with scores, p-values and q-values, sites.bed, sites.narrowPeak,
    sites.gff3, report.html and run.json.
    """
    source = _read_motifs(motifs)
    if to_stdout:
        with tempfile.TemporaryDirectory() as place:
            _scan(replace(run, out=Path(place) / "scan", quiet=True), motifs, source, sequences, p_value, strands)
            with (Path(place) / "scan" / "sites.tsv").open(encoding="utf-8") as table:
                shutil.copyfileobj(table, sys.stdout)
        return
    _scan(run, motifs, source, sequences, p_value, strands)


def _read_motifs(path: Path) -> Any:
    """A fitted finder, or a list of matrices."""
    from tacit.dna.files import read_motifs

    with path.open("rb") as stream:
        is_archive = stream.read(2) == b"PK"
    if not is_archive:
        found = read_motifs(path)
        if found[0].shares.shape[1] != 4:
            raise ValueError(f"{path} has motifs of protein; tacit scan reads DNA and RNA")
        return found
    import tacit
    from tacit.dna.finder.finder import MotifFinder

    finder = tacit.load(path)
    if not isinstance(finder, MotifFinder):
        raise ValueError(f"{path} is a {type(finder).__name__}; tacit scan needs the model.tacit of tacit motif")
    if finder.alphabet == "protein":
        raise ValueError(f"{path} is a model of protein; tacit scan reads DNA and RNA")
    return finder


def _scan(run: CommandRun, motifs: Path, source: Any, sequences: Path, p_value: float, strands: str | None) -> None:
    from tacit.dna.finder.models import count_strands
    from tacit.dna.pieces import Piece, iterate_pieces
    from tacit.dna.scan import Scanner, motifs_of
    from tacit.dna.score_tails import learn_background

    is_one = strands == "one" or (strands is None and not isinstance(source, list) and count_strands(source) == 1)
    n_strands = 1 if is_one else 2
    with run.writing(motifs, sequences) as folder:
        pieces = iterate_pieces(sequences)
        sample: list[Piece] = []
        size = 0
        for piece in pieces:
            sample.append(piece)
            size += piece.codes.size
            if size >= SAMPLE_LETTERS:
                break
        background = learn_background((piece.codes for piece in sample), n_strands)
        scanner = Scanner(motifs_of(source, background), background, p_value, n_strands)
        counts = _write_sites(folder, scanner, chain(_release(sample), pieces))
        if not scanner.n_windows.any():
            raise ValueError(
                f"{sequences} lacks a window of A, C, G and T that is as long as a motif ({scanner.width} letters); "
                "give longer sequences"
            )
        chance = [_by_chance(count, scanner.expect(m + 1)) for m, count in enumerate(counts)]
        expected = [scanner.expect(m + 1) for m in range(len(counts))]
        quality = f"{sum(expected):,.0f} expected by chance at p-value {p_value:g}"
        if all(chance):
            quality += "; by chance: not more sites than random sequences have"
        elif any(chance):
            quality += f"; by chance: {count_noun(sum(chance), 'motif')} of {len(counts)} without more sites than that"
        where = f"{count_noun(len(counts), 'motif')} in {int(scanner.n_windows.sum()):,} windows"
        found = f"{count_noun(sum(counts), 'site')} of {where}"
        run.write_report(folder, _page(source, scanner, counts, chance, str(sequences)), found, quality)
        run.record(sites=sum(counts), windows=int(scanner.n_windows.sum()), by_chance=chance)
        run.record(sites_per_motif=counts, expected_per_motif=expected)
    next_step = f"open {run.out / 'report.html'}, or {run.out / 'sites.bed'} in a genome browser"
    run.finish(found, quality, next_step)


def _release(sample: list[Any]) -> Iterator[Any]:
    """The pieces of a list, which is emptied."""
    sample.reverse()
    while sample:
        yield sample.pop()


def _by_chance(count: int, expected: float) -> bool:
    """Whether random sequences often have as many sites."""
    from scipy.stats import poisson

    return bool(poisson.sf(count - 1, expected) > CHANCE)


def _write_sites(folder: Any, scanner: Any, pieces: Iterator[Any]) -> list[int]:
    """Write every site when it is found; then again with q-values, which depend on all sites; return their numbers."""
    from tacit.dna.files import clean_name
    from tacit.dna.finder import files

    labels = [clean_name(motif.name) for motif in scanner.motifs]
    counts = [0] * len(labels)
    draft = folder.path("sites.part")
    with (
        draft.open("w", encoding="utf-8") as sites,
        folder.path("sites.gff3").open("w", encoding="utf-8") as gff,
    ):
        gff.write("##gff-version 3\n")
        for hit in scanner.scan_pieces(pieces):
            counts[hit.motif - 1] += 1
            cells = (*hit[:5], f"{hit.score:.4f}", f"{hit.p_value:.3g}", hit.steps)
            sites.write("\t".join(map(str, cells)) + "\n")
            gff.write(files.gff_lines([(*hit[:6], "")], labels, [hit.p_value]))
    tables = [scanner.q_table(number + 1) for number in range(len(labels))]
    header = ("motif", "sequence", "start", "end", "strand", "score", "p_value", "q_value", "name")
    with (
        draft.open(encoding="utf-8") as sites,
        folder.path("sites.tsv").open("w", encoding="utf-8") as out,
        folder.path("sites.bed").open("w", encoding="utf-8") as bed,
        folder.path("sites.narrowPeak").open("w", encoding="utf-8") as peaks,
    ):
        out.write("\t".join(header) + "\n")
        for line in sites:
            *cells, steps = line.rstrip("\n").split("\t")
            m, start, end = int(cells[0]) - 1, int(cells[2]), int(cells[3])
            p, q = float(cells[6]), float(tables[m][int(steps)])
            out.write("\t".join([*cells, f"{q:.3g}", labels[m]]) + "\n")
            region = files.sites_bed([(m + 1, cells[1], start, end, cells[4], float(cells[5]), "")], labels)
            bed.write(region)
            signs = (f"{-np.log10(max(value, 1e-300)):.3f}" for value in (p, q))
            peaks.write("\t".join([region.rstrip("\n"), cells[5], *signs, str((end - start) // 2)]) + "\n")
    draft.unlink()
    return counts


def _page(source: Any, scanner: Any, counts: list[int], chance: list[bool], name: str) -> Any:
    from tacit.dna.finder.shapes import write_consensus
    from tacit.dna.logos import logo_svg
    from tacit.report import Column, Facts, Figure, Notice, Page, Prose, Section, Table

    if isinstance(source, list):
        shapes = [(one.shares, np.full(4, 0.25), write_consensus(one.shares)) for one in source]
    else:
        shapes = [(one.probabilities, one.background, one.consensus) for one in source.motifs_]
    windows = int(scanner.n_windows.sum())
    facts = Facts(
        [("sequences", name), ("windows, motifs and strands counted", windows), ("p-value up to", scanner.p_value)]
    )
    columns = [
        *(Column("motif", True), Column("name"), Column("consensus"), Column("sites", True)),
        *(Column("expected by chance", True, "in random sequences with the same dinucleotides"), Column("more?")),
    ]
    rows = [
        (m + 1, one.name, shapes[m][2], counts[m], scanner.expect(m + 1), "by chance" if chance[m] else "more")
        for m, one in enumerate(scanner.motifs)
    ]
    caption = f"By chance: as many sites, or more, occur in random sequences with a probability above {CHANCE}."
    notice = (
        [Notice("As many as by chance: no motif has more sites than random sequences.", "warning")]
        if all(chance)
        else []
    )
    logos = [Figure(logo_svg(p, q, standalone=False), text) for p, q, text in shapes[:SHOWN_LOGOS]]
    found = [*notice, Table(columns, rows), *logos]
    return Page(
        "Sites of motifs",
        f"{sum(counts):,} sites",
        sections=[Section("What was asked", [facts]), Section("What was found", found)],
        trust=[
            Prose(
                f"{caption} A site is a match of letters: whether a protein binds there is not tested. sites.tsv has a "
                "q-value per site, the share of false ones among the sites that are at least as good."
            )
        ],
    )
