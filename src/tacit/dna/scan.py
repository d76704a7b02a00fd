"""``tacit scan``: find the sites of a model's motifs in other sequences, of any number and length, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from tacit.commands import INPUT_FILE, CommandRun, Number, count_noun, examples, run_options
from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.parameters import number
from tacit.data.ragged import Ragged
from tacit.dna.kmers import Pieces, find_kmers
from tacit.dna.sequences import read_sequences, shuffle_pairs

EXAMPLE_RECORDS = 20_000
"""Sequences from the beginning of the file that are shuffled."""

EXAMPLES = examples(
    "tacit scan motifs/model.tacit genome.fa.gz --out sites",
    "tacit scan motifs/model.tacit promoters.fa --p-value 1e-5",
)

BLOCK_LETTERS = 1 << 21
"""Letters that are scanned at a time; longer sequences are cut, with an overlap."""

NULL_LETTERS = 1 << 20
"""Letters of shuffled sequences that give p-values, so that these go down to 5e-7."""

BINS = 4000
"""Bins of the scores above the threshold, for q-values."""


@click.command(epilog=EXAMPLES)
@click.argument("model", type=INPUT_FILE)
@click.argument("sequences", type=INPUT_FILE)
@click.option(
    "--p-value",
    type=Number(float, 0, 0.1, is_open=True),
    metavar="P",
    default=1e-4,
    help="Largest p-value of a site that is reported, at most 0.1.",
)
@run_options(out="scan", is_parallel=False)
def scan(run: CommandRun, model: Path, sequences: Path, p_value: float) -> None:
    """Find the sites of the motifs of MODEL in SEQUENCES.

    MODEL is the model.tacit of tacit motif; SEQUENCES are FASTA or FASTQ, plain or gzipped, of any size: they are read
    in blocks. Writes sites.tsv with scores, p-values against shuffled sequences and q-values, sites.bed,
    report.html and run.json.
    """
    import tacit
    from tacit.dna.files import iterate_sequences
    from tacit.dna.finder.finder import MotifFinder
    from tacit.dna.sequences import read_sequences
    from tacit.report import render

    finder = tacit.load(model)
    if not isinstance(finder, MotifFinder):
        raise ValueError(f"{model} is a {type(finder).__name__}; tacit scan needs the model.tacit of tacit motif")
    with run.writing(model, sequences) as folder:
        first = _read_first(iterate_sequences(sequences), NULL_LETTERS)
        scanner = Scanner(finder, read_sequences(first), p_value, run.seed)
        counts = _write_sites(folder, finder, scanner, sequences)
        folder.write_text("report.html", render(_page(finder, scanner, counts, str(sequences), p_value)))
        run.record(sites=sum(counts), sites_per_motif=counts, windows=scanner.n_windows)
    where = f"{count_noun(len(counts), 'motif')} in {scanner.n_windows:,} windows"
    chance = f"{len(counts) * scanner.n_windows * p_value:,.0f} expected by chance at p-value {p_value:g}"
    next_step = f"open {run.out / 'report.html'}, or {run.out / 'sites.bed'} in a genome browser"
    run.finish(f"{count_noun(sum(counts), 'site')} of {where}", chance, next_step)


def _read_first(records: Iterator[tuple[str, str]], most: int) -> list[str]:
    """Sequences from the beginning of a file, of ``most`` letters together."""
    kept, size = [], 0
    for _, sequence in islice(records, EXAMPLE_RECORDS):
        kept.append(sequence[:most])
        size += len(kept[-1])
        if size >= most:
            break
    return kept


def _write_sites(folder: Any, finder: Any, scanner: Any, path: Path) -> list[int]:
    """Scan the file and write every site when it is found; then again with q-values, which depend on all sites."""
    from tacit.data.lines import one_line
    from tacit.dna.files import check_letters, iterate_sequences
    from tacit.dna.finder import files

    labels = files.motif_names(finder)
    counts = [0] * len(labels)

    def read_records() -> Iterator[tuple[str, str]]:
        for i, (name, letters) in enumerate(iterate_sequences(path)):
            check_letters(path, i, name, letters)
            yield one_line(name, 200) or "unnamed", letters

    draft = folder.path("sites.part")
    with draft.open("w", encoding="utf-8") as sites, folder.path("sites.bed").open("w", encoding="utf-8") as bed:
        for hit in scanner.scan(read_records()):
            counts[hit.motif - 1] += 1
            cells = (*hit[:5], f"{hit.score:.4f}", f"{hit.p_value:.3g}", scanner.bin_of(hit.motif - 1, hit.score))
            sites.write("\t".join(map(str, cells)) + "\n")
            bed.write(files.sites_bed([(*hit[:6], "")], labels))
    tables = [scanner.q_table(number + 1) for number in range(len(labels))]
    header = ("motif", "sequence", "start", "end", "strand", "score", "p_value", "q_value")
    with draft.open(encoding="utf-8") as sites, folder.path("sites.tsv").open("w", encoding="utf-8") as out:
        out.write("\t".join(header) + "\n")
        for line in sites:
            *cells, bin_ = line.rstrip("\n").split("\t")
            out.write("\t".join([*cells, f"{tables[int(cells[0]) - 1][int(bin_)]:.3g}"]) + "\n")
    draft.unlink()
    return counts


def _page(finder: Any, scanner: Any, counts: list[int], name: str, p_value: float) -> Any:
    from tacit.dna.logos import logo_svg
    from tacit.report import Column, Facts, Figure, Page, Section, Table

    facts = Facts([("sequences", name), ("windows, strands counted", scanner.n_windows), ("p-value up to", p_value)])
    expected = scanner.n_windows * p_value
    columns = [Column("motif", True), Column("consensus"), Column("sites", True), Column("expected by chance", True)]
    rows = [(n + 1, motif.consensus, counts[n], expected) for n, motif in enumerate(finder.motifs_)]
    logos = [Figure(logo_svg(m.probabilities, m.background, standalone=False), m.consensus) for m in finder.motifs_]
    sections = [Section("What was asked", [facts]), Section("What was found", [Table(columns, rows), *logos])]
    return Page("Sites of motifs", f"{sum(counts):,} sites", sections=sections)


class Hit(NamedTuple):
    """A site: motif (from 1), name of the sequence, start and end (from 0), strand, score and p-value."""

    motif: int
    name: str
    start: int
    end: int
    strand: str
    score: float
    p_value: float


class Scanner:
    """Finds the motifs of a fitted `tacit.apps.MotifFinder` in sequences, with p-values and q-values.

    Parameters
    ----------
    finder : the fitted model
    example : sequences like those to be scanned; the scores of their shuffles give p-values
    p_value : sites with a p-value up to this are reported
    seed : of the shuffles

    Attributes
    ----------
    n_windows : windows scanned so far, strands counted
    """

    def __init__(self, finder: Any, example: Ragged, p_value: float = 1e-4, seed: int = 0) -> None:
        number("p_value", p_value, "a probability above 0", lambda p: 0 < p <= 0.1)
        if not finder.motifs_:
            raise ValueError("the model is without a significant motif; fit it on more sequences, or with n_motifs=1")
        self.width = int(finder.width_)
        self.strands = 1 if finder.strands == "one" else 2
        motifs = finder.weights_["motif"][finder.motif_order_]
        self._pieces = Pieces.of(self.width)
        both = [motifs, motifs[:, ::-1, ::-1]][: self.strands]
        self._tables = np.stack([[self._pieces.tables(side[m]) for side in both] for m in range(len(motifs))])
        self._null = self._score_shuffles(example, seed)
        self._least = np.array([self._threshold(null, p_value) for null in self._null])
        self._top = np.array([table.max(axis=-1).sum(axis=-1).max() for table in self._tables])
        self._counts = np.zeros((len(motifs), BINS), np.int64)
        self.n_windows = 0

    def scan(self, records: Iterable[tuple[str, str]]) -> Iterator[Hit]:
        """The sites of all records, in their order."""
        for names, shifts, sequences in _blocks(records, self.width):
            yield from self._scan_block(names, shifts, sequences)

    def q_table(self, motif: int) -> Array:
        """The q-value of every bin of scores: the share of false sites among those of a motif with at least this score
        (Storey & Tibshirani 2003). Call it when all sequences have been scanned."""
        tail = self._counts[motif - 1][::-1].cumsum()[::-1]
        edges = self._edges(motif - 1)[:-1]
        null = self._null[motif - 1]
        expected = (1 + null.size - np.searchsorted(null, edges)) / (1 + null.size) * self.n_windows
        return np.minimum.accumulate(np.minimum(expected / np.maximum(tail, 1), 1.0))

    def _scan_block(self, names: list[str], shifts: list[int], sequences: Ragged) -> Iterator[Hit]:
        n_starts = np.maximum(sequences.lengths - self.width + 1, 0)
        self.n_windows += int(n_starts.sum()) * self.strands
        found = []
        for m in range(len(self._tables)):
            scores = self._score(sequences, m)
            for strand in range(self.strands):
                at = np.flatnonzero(scores[strand] >= self._least[m])
                found.append((np.full(at.size, m), at, np.full(at.size, strand), scores[strand][at]))
        motif, position, side, score = (np.concatenate(part) for part in zip(*found, strict=True))
        owner = np.searchsorted(sequences.offsets, position, side="right") - 1
        start = position - sequences.offsets[owner]
        inside = start < n_starts[owner]
        order = np.lexsort((motif, side, position))
        for i in order[inside[order]]:
            m, value = int(motif[i]), float(score[i])
            self._counts[m, self.bin_of(m, value)] += 1
            first, sign = int(start[i]) + shifts[owner[i]], "+-"[int(side[i])]
            yield Hit(m + 1, names[owner[i]], first, first + self.width, sign, value, self._p_value(m, value))

    def _score(self, sequences: Ragged, m: int) -> Array:
        """(strands, letters): the score of the window that starts at each letter; meaningless near the ends."""
        kmers = find_kmers(sequences.values, sequences.offsets, self._pieces.length)
        tables = kmers.extend(self._tables[m])
        out = np.full((self.strands, sequences.values.size), -np.inf)
        score_starts(kmers.ids, tables, self._pieces.shifts, sequences.values.size - self.width + 1, out)
        return out

    def _score_shuffles(self, example: Ragged, seed: int) -> list[Array]:
        """The sorted scores of all windows of shuffled sequences, per motif."""
        long = np.flatnonzero(example.lengths >= self.width)
        if not long.size:
            raise ValueError(f"all sequences are shorter than the motifs ({self.width} letters); give longer ones")
        example = example[long]
        rounds = min(int(np.ceil(NULL_LETTERS / example.values.size)), 1000)
        scores: list[list[Array]] = [[] for _ in self._tables]
        for k in range(rounds):
            shuffled = shuffle_pairs(example, seed + k)
            ends = np.repeat(shuffled.offsets[1:], shuffled.lengths)
            inside = np.arange(ends.size) + self.width <= ends
            for m, kept in enumerate(scores):
                kept.append(self._score(shuffled, m)[:, inside].ravel())
        return [np.sort(np.concatenate(kept)) for kept in scores]

    @staticmethod
    def _threshold(null: Array, p_value: float) -> float:
        """The lowest score with this p-value."""
        rank = int(np.floor(p_value * (null.size + 1))) - 1
        return float(null[-max(rank, 1)]) if rank >= 1 else float(np.nextafter(null[-1], np.inf))

    def _p_value(self, m: int, score: float) -> float:
        null = self._null[m]
        return float((1 + null.size - np.searchsorted(null, score)) / (1 + null.size))

    def _edges(self, m: int) -> Array:
        return np.linspace(self._least[m], max(self._top[m], self._least[m] + 1e-9), BINS + 1)

    def bin_of(self, m: int, score: float) -> int:
        """The bin of a score of the m-th motif, from 0, in `q_table`."""
        span = max(self._top[m] - self._least[m], 1e-9)
        return int(np.clip((score - self._least[m]) / span * BINS, 0, BINS - 1))


@kernel
def score_starts(pieces: Array, tables: Array, shifts: Array, n_starts: int, out: Array) -> None:
    """The score of the window at every start, for one motif on each strand: sums of look-ups, piece by piece."""
    for strand in range(tables.shape[0]):
        one, two = tables[strand, 0], tables[strand, 1]
        row = out[strand]
        shift = shifts[1]
        for p in range(n_starts):
            row[p] = one[pieces[p]] + two[pieces[p + shift]]
        for j in range(2, shifts.size):
            table = tables[strand, j]
            shift = shifts[j]
            for p in range(n_starts):
                row[p] += table[pieces[p + shift]]


def _blocks(records: Iterable[tuple[str, str]], width: int) -> Iterator[tuple[list[str], list[int], Ragged]]:
    """Blocks of letters: names, where each part starts in its sequence, and letter codes."""
    names: list[str] = []
    shifts: list[int] = []
    parts: list[str] = []
    size = 0
    for name, sequence in records:
        step = BLOCK_LETTERS - width + 1
        for first in range(0, max(len(sequence) - width + 1, 1), step):
            part = sequence[first : first + BLOCK_LETTERS]
            if size and size + len(part) > BLOCK_LETTERS:
                yield names, shifts, read_sequences(parts)
                names, shifts, parts, size = [], [], [], 0
            names.append(name)
            shifts.append(first)
            parts.append(part)
            size += len(part)
    if parts:
        yield names, shifts, read_sequences(parts)
