"""``tacit motif sets/*.fa``: motifs of many sets of sequences, and a table of motifs and sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from tacit import commands
from tacit.dna.files import clean_name
from tacit.dna.finder import files
from tacit.dna.finder.command import describe_match, motif_facts, write_results
from tacit.dna.finder.finder import MotifFinder
from tacit.dna.finder.known import check_known, match_motifs
from tacit.dna.finder.sets import Cell, SharedMotif, compare_sets, merge_motifs
from tacit.dna.logos import logo_svg
from tacit.dna.sequences import ALPHABETS
from tacit.report import Column, Facts, Figure, Notice, Page, Prose, Row, Section, Table
from tacit.report.page import show_number
from tacit.runtime import Status

SHOWN_LOGOS = 30


class Nested:
    """A folder inside the folder of a run, for the files of one set."""

    def __init__(self, folder: Any, name: str) -> None:
        self._folder, self._name = folder, name

    def write_text(self, name: str, text: str) -> None:
        self._folder.write_text(f"{self._name}/{name}", text)

    def path(self, name: str) -> Path:
        return Path(self._folder.path(f"{self._name}/{name}"))


def name_sets(paths: Sequence[Path]) -> list[str]:
    """The names of the files without their endings; two with the same name are refused.

    >>> name_sets([Path("sets/liver.fa.gz"), Path("sets/brain.fa")])
    ['liver', 'brain']
    """
    names = [path.name.removesuffix(".gz").rsplit(".", 1)[0] or path.name for path in paths]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise click.UsageError(f"two sets are called {twice[0]!r}; rename one of the files")
    return [clean_name(name) for name in names]


def find_in_sets(
    run: commands.CommandRun,
    paths: Sequence[Path],
    options: dict[str, Any],
    *,
    against: str,
    known: Path | None,
    genome: Path | None,
    **reading: Any,
) -> None:
    """Fit a finder to every set, and write the results of each and the table of all."""
    from tacit.data.shard_folder import manifest_or_file
    from tacit.dna.files import read_motifs

    names = name_sets(paths)
    with run.writing(*map(manifest_or_file, paths), genome, known) as folder:
        data = [files.read_motif_input(path, None, genome=genome, seed=run.seed, **reading) for path in paths]
        library = [] if known is None else read_motifs(known)
        check_known(library, ALPHABETS[options["alphabet"]])
        sets = [[x for x, is_own in zip(one.letters, _positives(one), strict=True) if is_own] for one in data]
        finders = []
        for i in range(len(data)):
            one = _against_others(i, data, names) if against == "others" else data[i]
            run.note(f"{names[i]}: {one.summary}: looking for motifs")
            finder = MotifFinder(**options, **run.settings).fit(one.letters, one.labels)
            finders.append(finder)
            run.note_status(finder.status_)
            matches = match_motifs(finder.motifs_, library, finder.letters_)
            sites = files.list_sites(finder, one)
            write_results(run, Nested(folder, names[i]), finder, one, sites, matches)
            if finder.status_ is Status.INTERRUPTED:
                break
        names, sets = names[: len(finders)], sets[: len(finders)]
        rows = merge_motifs(finders)
        cells = compare_sets(rows, finders, sets, against, run.seed)
        matches = match_motifs([row.motif for row in rows], library, finders[0].letters_)
        folder.write_text("motifs_by_set.tsv", _table_text(rows, cells, names))
        folder.write_text("motifs.meme", files.meme_text([row.motif for row in rows]))
        found = f"{commands.count_noun(len(rows), 'motif')} in {commands.count_noun(len(names), 'set')}"
        quality = f"{sum(len(row.found_in) > 1 for row in rows)} of them in more than one set"
        page = sets_page(rows, cells, names, [len(one) for one in sets], against, matches)
        how = "Every set has a folder of its own with its report, model.tacit and files of sites."
        run.write_report(folder, page, found, quality, how)
        run.record(
            sets=[{"name": name, "sequences": len(one)} for name, one in zip(names, sets, strict=True)],
            motifs=[
                motif_facts(row.motif, k, matches)
                | {"found_in": [names[i] for i in row.found_in], "home": names[row.home]}
                | {"sets": {name: cell._asdict() for name, cell in zip(names, line, strict=True)}}
                for k, (row, line) in enumerate(zip(rows, cells, strict=True))
            ],
        )
    for k, (row, line) in enumerate(zip(rows, cells, strict=True)):
        shares = ", ".join(f"{name} {cell.share:.0%}" for name, cell in zip(names, line, strict=True))
        run.say(f"motif {k + 1}: {row.motif.consensus}  E = {row.motif.e_value:.2g} in {names[row.home]}; {shares}")
        for text in describe_match(matches[k][0]) if matches else ():
            run.say(f"  {text}")
    next_step = f"open {run.out / 'report.html'}; the report of a set is in its folder"
    run.finish(found, quality, next_step)


def _positives(data: files.MotifInput) -> Any:
    return np.ones(len(data.names), bool) if data.labels is None else data.labels == 1


def _against_others(i: int, data: Sequence[files.MotifInput], names: Sequence[str]) -> files.MotifInput:
    """Set i as positives, and all other sets as negatives."""
    wrong = [name for name, one in zip(names, data, strict=True) if one.labels is not None]
    if wrong:
        raise ValueError(f"--against others needs sets of one class, but {wrong[0]} has labels; give FASTA files")
    order = [i, *(k for k in range(len(data)) if k != i)]
    letters = [x for k in order for x in data[k].letters]
    sequence_names = [x for k in order for x in data[k].names]
    n = len(data[i].names)
    labels = np.repeat([1, -1], [n, len(letters) - n])
    summary = f"{n} sequences of {names[i]} and {len(letters) - n} of the other sets"
    return files.MotifInput(sequence_names, letters, labels, summary, data[i].n_duplicates)


def _table_text(rows: Sequence[SharedMotif], cells: Sequence[Sequence[Cell]], names: Sequence[str]) -> str:
    header = ("motif", "consensus", "e_value", "found_in", "set", "share", "expected_share", "p_value")
    lines = []
    for k, (row, line) in enumerate(zip(rows, cells, strict=True)):
        found_in = ",".join(names[i] for i in row.found_in)
        for name, cell in zip(names, line, strict=True):
            optional = ["" if value is None else value for value in (cell.expected, cell.p_value)]
            lines.append((k + 1, row.motif.consensus, row.motif.e_value, found_in, name, cell.share, *optional))
    return files.tsv(header, lines)


def sets_page(
    rows: Sequence[SharedMotif],
    cells: Sequence[Sequence[Cell]],
    names: Sequence[str],
    sizes: Sequence[int],
    against: str,
    matches: Sequence[Any],
) -> Page:
    """The page of all sets: a table of motifs and sets, and a logo of each motif."""
    negatives = "shuffles of the set" if against == "shuffles" else "the sequences of the other sets"
    facts = Facts([*zip(names, (f"{size:,} sequences" for size in sizes), strict=True), ("negatives", negatives)])
    found: list[Any] = []
    trust = [Prose("Every motif was tested on held-out sequences of its set.")]
    if not rows:
        found.append(Notice("No motif is significant in any set.", "warning"))
    else:
        known = [Column("known motif")] if matches else []
        columns = [Column("motif", True), Column("consensus"), *known, Column("E-value", True, "where it is lowest")]
        columns += [Column(name, True, "share of sequences with a site") for name in names]
        lines = []
        for k, (row, line) in enumerate(zip(rows, cells, strict=True)):
            shown = [f"{cell.share:.0%}{' *' * (i in row.found_in)}" for i, cell in enumerate(line)]
            name = [matches[k][0].name if matches[k][0].e_value < 0.05 else "none"] if matches else []
            lines.append([k + 1, row.motif.consensus, *name, row.motif.e_value, *shown])
        caption = "Share of sequences with a site. A star: a similar motif was found in this set by itself."
        found.append(Table(columns, lines, caption))
        of_home = "In the set that a motif comes from, its p-value is that of the finder, on held-out sequences"
        others = "elsewhere the share is compared with that in shuffles of the set (Fisher's exact test)"
        trust = [Prose(f"{of_home}; {others}." if against == "shuffles" else f"{of_home}.")]
        for k, row in enumerate(rows[:SHOWN_LOGOS]):
            text = f"Motif {k + 1}: {row.motif.consensus}, from {names[row.home]}."
            letters = ALPHABETS[row.motif.alphabet].letters
            p, q = row.motif.probabilities, row.motif.background
            figure = Figure(logo_svg(p, q, standalone=False, letters=letters), text)
            shown = [_show_cell(cell, i in row.found_in) for i, cell in enumerate(cells[k])]
            found.append(Row([figure, Facts(list(zip(names, shown, strict=True)))]))
    sections = [Section("What was asked", [facts]), Section("What was found", found)]
    return Page("Motifs of many sets", f"{len(rows)} motifs in {len(names)} sets", "", sections, trust=trust)


def _show_cell(cell: Cell, is_found: bool) -> str:
    text = f"{cell.share:.0%}"
    if cell.p_value is not None:
        text += f" (p = {show_number(cell.p_value)})"
    return text + " *" * is_found
