"""``tacit scan``: where the motifs of a model are in other sequences."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click

from tacit.commands import INPUT_FILE, CommandRun, run_options

EXAMPLE_RECORDS = 20_000
"""Sequences at the beginning of the file, of which shuffles are made."""

EXAMPLES = """\b
Examples:
  tacit scan motifs/model.tacit genome.fa.gz --out sites
  tacit scan motifs/model.tacit promoters.fa --p-value 1e-5
"""


@click.command(epilog=EXAMPLES)
@click.argument("model", type=INPUT_FILE)
@click.argument("sequences", type=INPUT_FILE)
@click.option("--p-value", type=click.FloatRange(0, 0.1, min_open=True), default=1e-4, show_default=True)
@run_options(out="scan")
def scan(run: CommandRun, model: Path, sequences: Path, p_value: float) -> None:
    """Look for the motifs of MODEL in SEQUENCES.

    MODEL is the model.tacit of tacit motif; SEQUENCES are FASTA or FASTQ, plain or gz, of any size: they are read a
    block at a time. Writes sites.tsv with scores, p-values against shuffled sequences and q-values, sites.bed,
    report.html and run.json.
    """
    import tacit
    from tacit.dna.finder import MotifFinder
    from tacit.dna.motif.sequences import read_sequences
    from tacit.dna.scan import NULL_LETTERS, Scanner
    from tacit.dna.sequence_files import iterate_sequences
    from tacit.report import render

    finder = tacit.load(model)
    if not isinstance(finder, MotifFinder):
        raise ValueError(f"{model} holds a {type(finder).__name__}; tacit scan needs the model.tacit of tacit motif")
    with run.writing(model, sequences) as folder:
        first = _example(iterate_sequences(sequences), NULL_LETTERS)
        scanner = Scanner(finder, read_sequences(first), p_value, run.seed)
        counts = _write_sites(folder, finder, scanner, sequences)
        folder.write_text("report.html", render(_page(finder, scanner, counts, str(sequences), p_value)))
        run.record(sites=sum(counts), sites_per_motif=counts, windows=scanner.n_windows)
    run.say(f"{sum(counts)} sites in {scanner.n_windows:,} windows: {run.out / 'sites.tsv'}")


def _example(records: Iterator[tuple[str, str]], most: int) -> list[str]:
    """Letters from the beginning of the file."""
    kept, size = [], 0
    for _, sequence in islice(records, EXAMPLE_RECORDS):
        kept.append(sequence[:most])
        size += len(kept[-1])
        if size >= most:
            break
    return kept


def _write_sites(folder: Any, finder: Any, scanner: Any, path: Path) -> list[int]:
    """Scan the file and write every site as it is found; then once more with q-values, which need all of them."""
    from tacit.data.lines import one_line
    from tacit.dna.finder import exports
    from tacit.dna.sequence_files import check_letters, iterate_sequences

    labels = exports.motif_names(finder)
    counts = [0] * len(labels)

    def checked() -> Iterator[tuple[str, str]]:
        for number, (name, letters) in enumerate(iterate_sequences(path)):
            check_letters(path, number, name, letters)
            yield one_line(name, 200) or "unnamed", letters

    draft = folder.path("sites.part")
    with draft.open("w", encoding="utf-8") as sites, folder.path("sites.bed").open("w", encoding="utf-8") as bed:
        for hit in scanner.scan(checked()):
            counts[hit.motif - 1] += 1
            place = scanner.bin_of(hit.motif, hit.score)
            cells = (
                hit.motif,
                hit.name,
                hit.start,
                hit.end,
                hit.strand,
                f"{hit.score:.4f}",
                f"{hit.p_value:.3g}",
                place,
            )
            sites.write("\t".join(map(str, cells)) + "\n")
            bed.write(exports.sites_bed([(*hit[:6], "")], labels))
    tables = [scanner.q_table(number + 1) for number in range(len(labels))]
    header = ("motif", "sequence", "start", "end", "strand", "score", "p_value", "q_value")
    with draft.open(encoding="utf-8") as sites, folder.path("sites.tsv").open("w", encoding="utf-8") as out:
        out.write("\t".join(header) + "\n")
        for line in sites:
            *cells, place = line.rstrip("\n").split("\t")
            out.write("\t".join([*cells, f"{tables[int(cells[0]) - 1][int(place)]:.3g}"]) + "\n")
    draft.unlink()
    return counts


def _page(finder: Any, scanner: Any, counts: list[int], name: str, p_value: float) -> Any:
    from tacit.dna.finder.logos import logo_svg
    from tacit.report import Column, Facts, Figure, Page, Section, Table

    facts = Facts(
        [("sequences", name), ("windows looked at, both strands", scanner.n_windows), ("p-value up to", p_value)]
    )
    expected = scanner.n_windows * p_value
    columns = [Column("motif", True), Column("consensus"), Column("sites", True), Column("expected by chance", True)]
    rows = [(n + 1, motif.consensus, counts[n], expected) for n, motif in enumerate(finder.motifs_)]
    logos = [Figure(logo_svg(m.probabilities, m.background, standalone=False), m.consensus) for m in finder.motifs_]
    sections = [Section("What was asked", [facts]), Section("What was found", [Table(columns, rows), *logos])]
    return Page("Sites of motifs", f"{sum(counts):,} sites", sections=sections)
