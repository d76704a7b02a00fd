"""The report of a motif finder: what was asked, what was found, how sure, how it was learned, how to do it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.dna.finder.evidence import LIKENESS, Match, tell_lengths
from tacit.dna.finder.files import MotifInput
from tacit.dna.finder.shapes import tell_overlap
from tacit.dna.logos import logo_svg
from tacit.report import (
    Code,
    Column,
    Facts,
    Figure,
    Notice,
    Page,
    Prose,
    Row,
    Section,
    Table,
    bar_chart,
    histogram,
    line_chart,
    roc_chart,
)
from tacit.report.page import show_number
from tacit.runtime import Status

SHOWN_SITES = 20
"""Aligned sites of a motif."""

MOST_BINS = 25
"""Of the histogram of places: each holds the same number of letters."""

MAX_TABLE_ROWS = 500
"""Sites in the table of the page; all of them are in sites.tsv."""

_STOPPED = {
    Status.INTERRUPTED: "Interrupted: this is the best that was found until then. Tests and refits may be missing.",
    Status.STOPPED: "The time budget was used up: this is the best that was found until then.",
}


def motif_page(
    finder: Any,
    data: MotifInput,
    sites: Sequence[tuple[Any, ...]],
    *,
    matches: Sequence[Sequence[Match]] = (),
    command: Sequence[str] = (),
) -> Page:
    """The whole page."""
    found = finder.motifs_
    subtitle = f"{data.told}; {len(found)} motif{'s' * (len(found) != 1)}"
    sections = [
        Section("What was asked", [_asked(finder, data), *_warn_of_lengths(finder)]),
        Section("What was found", _found(finder, sites, matches, data)),
        Section("How sure is it", _sure(finder)),
        Section("How it was learned", _learned(finder)),
        Section("How to do it again", _again(command)),
    ]
    return Page("Motifs", subtitle, _STOPPED.get(finder.status_, ""), sections)


def _asked(finder: Any, data: MotifInput) -> Facts:
    lengths = np.array([len(letters) for letters in data.letters])
    span = f"{lengths.min()}" if lengths.min() == lengths.max() else f"{lengths.min()} to {lengths.max()}"
    width = finder.width if isinstance(finder.width, int) else f"{finder.width[0]} to {finder.width[1]}"
    return Facts(
        [
            ("sequences", data.told),
            ("letters per sequence", span),
            ("width of a motif", f"{width}, chosen: {finder.width_}" if width != finder.width_ else width),
            ("motifs", "as many as are significant" if finder.n_motifs == "auto" else finder.n_motifs),
            ("strands", finder.strands),
            ("flank", finder.flank or "none"),
            ("held out for tests", f"{finder.held_out:.0%} of each class"),
            ("names that occur twice", data.n_duplicates),
        ]
    )


def _warn_of_lengths(finder: Any) -> list[Any]:
    told = tell_lengths(finder.length_area_)
    return [Notice(told[0].upper() + told[1:] + ".", "warning")] if told else []


def _found(
    finder: Any, sites: Sequence[tuple[Any, ...]], matches: Sequence[Sequence[Match]], data: MotifInput
) -> list[Any]:
    if not finder.motifs_:
        return [
            Notice(
                "No motif is significant: on the held-out sequences no motif tells more than composition does "
                f"(p < {finder.alpha:g} is asked for).",
                "warning",
            )
        ]
    blocks: list[Any] = [_table_of_motifs(finder)]
    if matches:
        blocks.append(_table_of_matches(finder, matches))
    for number, motif in enumerate(finder.motifs_):
        own = [row for row in sites if row[0] == number + 1]
        p = motif.probabilities
        turned = p[::-1, ::-1]
        title = f"Motif {number + 1}: {motif.consensus}"
        blocks.append(Prose(f"{title}, p = {show_number(motif.p_value)}, {motif.sites:,} sites"))
        if motif.overlap is not None:
            blocks.append(Notice(f"Motif {number + 1} {tell_overlap(motif)}."))
        blocks.append(
            Row(
                [
                    Figure(logo_svg(p, motif.background, standalone=False), "As found, in bits."),
                    Figure(logo_svg(turned, motif.background[::-1], standalone=False), "Its reverse complement."),
                ]
            )
        )
        blocks.append(Row([_aligned(own), _positions(own, data)]))
    columns = [
        *(Column("motif", True), Column("sequence"), Column("start", True), Column("strand")),
        *(Column("score", True, "how much the site speaks for the positive class"), Column("site")),
    ]
    rows = [(n, name, start, strand, score, site) for n, name, start, _, strand, score, site in sites[:MAX_TABLE_ROWS]]
    shown = f"The best {len(rows):,} of {len(sites):,}" if len(rows) < len(sites) else f"All {len(rows):,}"
    blocks.append(Table(columns, rows, f"{shown} sites; sites.tsv and sites.bed have all of them."))
    return blocks


def _table_of_motifs(finder: Any) -> Table:
    columns = [
        *(Column("motif", True), Column("consensus"), Column("p-value", True, "on held-out sequences")),
        *(Column("sites", True), Column("in positives", True), Column("in negatives", True)),
        *(Column("bits", True), Column("starts agree", True, "starts that ended at this motif")),
    ]
    rows = []
    for number, motif in enumerate(finder.motifs_):
        shares = (f"{motif.in_positives:.0%}", f"{motif.in_negatives:.0%}")
        row: list[Any] = [number + 1, motif.consensus, motif.p_value, motif.sites, *shares, motif.bits]
        rows.append([*row, f"{motif.agreement:.0%}"])
    return Table(columns, rows, "The most significant first. A site is better than the best of nine in ten negatives.")


def _table_of_matches(finder: Any, matches: Sequence[Sequence[Match]]) -> Table:
    columns = [
        *(Column("motif", True), Column("consensus"), Column("known motif most like it")),
        *(Column("correlation", True), Column("p-value", True, "against shuffled columns, times the known motifs")),
        *(Column("strand"), Column("letters in common", True)),
    ]
    rows = []
    for number, (motif, found) in enumerate(zip(finder.motifs_, matches, strict=True)):
        best = found[0]
        strand = "+-"[best.strand]
        row = (number + 1, motif.consensus, best.name, best.correlation, best.p_value, strand, best.overlap)
        rows.append(row)
    told = f"Known motifs: a p-value of {LIKENESS} or more is chance. matches.tsv has all of them."
    return Table(columns, rows, told)


def _aligned(own: Sequence[tuple[Any, ...]]) -> Code:
    widest = max((len(str(row[1])) for row in own[:SHOWN_SITES]), default=0)
    names = max(min(widest, 24), len("sequence"))
    head = f"{'sequence':<{names}}  start    site"
    lines = [f"{str(row[1])[:names]:<{names}}  {row[2]:>5} {row[4]}  {row[6]}" for row in own[:SHOWN_SITES]]
    return Code("\n".join([head, *lines]) if lines else "no sites")


def _positions(own: Sequence[tuple[Any, ...]], data: MotifInput) -> Figure:
    longest = max(len(letters) for letters in data.letters)
    middles = np.array([(row[2] + row[3]) // 2 for row in own])
    step = -(-longest // MOST_BINS)
    bins = -(-longest // step)
    svg = histogram({"sites": middles}, "position in the sequence", bins=bins, x_range=(0.0, float(bins * step)))
    return Figure(svg, "Where in the sequences the sites lie.")


def _sure(finder: Any) -> list[Any]:
    areas, held = finder.evidence_, finder.held_out_
    labels = held["is_positive"]
    names = [name for name in ("motifs and k-mers", "motifs", "k-mers", "composition") if name in areas]
    told = {
        "motifs and k-mers": "motifs and k-mers",
        "motifs": "motifs, composition",
        "k-mers": "k-mers of 3–6 letters",
        "composition": "composition alone",
    }
    low = min(0.5, min(areas[name][1] for name in names))
    bars = bar_chart(
        [told[name] for name in names],
        [areas[name][0] for name in names],
        "area under the ROC curve",
        intervals=[(areas[name][1], areas[name][2]) for name in names],
        x_range=(low, 1.0),
    )
    roc = {told[name]: _roc(held[name], labels) for name in names[:3]}
    precision = {told[name]: _precision(held[name], labels) for name in names[:3]}
    lines = [(f"AUROC, {told[name]}", f"{a:.3f} ({b:.3f} to {c:.3f})") for name in names for a, b, c in [areas[name]]]
    return [
        Prose(
            f"All numbers are of {labels.size:,} held-out sequences, {int(labels.sum()):,} of them positive, which no "
            "motif was learned from. A p-value asks: given its composition and the motifs before, do better sites go "
            "with positive sequences? It is multiplied by the number of motifs that were tested. Intervals are 95 %."
        ),
        Row([Figure(bars), Facts(lines)]),
        Row(
            [
                Figure(roc_chart(roc), "ROC on held-out sequences."),
                Figure(
                    line_chart(precision, "recall", "precision", x_range=(0.0, 1.0), y_range=(0.0, 1.0)),
                    "Precision and recall on held-out sequences.",
                ),
            ]
        ),
    ]


def _learned(finder: Any) -> list[Any]:
    curves = {f"motif {m + 1}": (np.arange(1, len(h) + 1), h) for m, h in enumerate(finder.history_) if len(h) > 1}
    facts = Facts(
        [
            ("learner", finder.learner),
            ("C", f"{finder.C_:g}" + (", chosen from the data" if finder.C == "auto" else "")),
            ("width", finder.width_),
            ("why it stopped", finder.status_.value),
            ("objective", "½‖w‖² + C · mean loss; a motif is added, then all are refitted together"),
        ]
    )
    if not curves:
        return [facts]
    chart = line_chart(curves, "step", "objective", whole_x=True)
    return [Row([facts, Figure(chart, "The objective on the training part, the best start of every motif.")])]


def _again(command: Sequence[str]) -> list[Any]:
    shown = " ".join(shlex.quote(word) for word in command)
    blocks: list[Any] = [Code(shown)] if shown else []
    text = (
        "run.json has the versions, the seed and the checksums of the input files. The model is model.tacit: tacit "
        "scan looks for its motifs in other sequences, and in Python tacit.load gives an estimator."
    )
    return [*blocks, Prose(text)]


def _roc(score: Array, labels: Array) -> tuple[Array, Array]:
    order = np.argsort(-score, kind="stable")
    hit = labels[order]
    up = np.concatenate([[0.0], np.cumsum(hit) / max(hit.sum(), 1)])
    across = np.concatenate([[0.0], np.cumsum(~hit) / max((~hit).sum(), 1)])
    return across, up


def _precision(score: Array, labels: Array) -> tuple[Array, Array]:
    hit = labels[np.argsort(-score, kind="stable")]
    found = np.cumsum(hit)
    skip = min(10, hit.size - 1)
    return (found / max(hit.sum(), 1))[skip:], (found / np.arange(1, hit.size + 1))[skip:]
