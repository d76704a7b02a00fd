"""The report of a motif finder: settings, motifs and sites, held-out quality, learning, how to repeat the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.dna.finder.evidence import separation_warnings
from tacit.dna.finder.files import MotifInput
from tacit.dna.finder.known import LIKENESS, Match
from tacit.dna.finder.models import choose_lengths, count_strands
from tacit.dna.finder.placement import describe_pair
from tacit.dna.finder.shapes import describe_overlap, describe_spacer
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
"""Aligned sites that are shown per motif."""

MOST_BINS = 25
"""Bins of the histogram of positions: each has the same number of letters."""

MAX_TABLE_ROWS = 500
"""Sites in the table of the page; all of them are in sites.tsv."""

_STOPPED = {
    Status.INTERRUPTED: "Interrupted: this is the best model so far. Tests and refits may be missing.",
    Status.STOPPED: "The time budget is used up: this is the best model so far.",
}


def motif_page(
    finder: Any,
    data: MotifInput,
    sites: Sequence[tuple[Any, ...]],
    *,
    matches: Sequence[Sequence[Match]] = (),
) -> Page:
    """The whole page."""
    found = finder.motifs_
    subtitle = f"{data.summary}; {len(found)} motif{'s' * (len(found) != 1)}"
    sections = [
        Section("What was asked", _show_settings(finder, data)),
        Section("What was found", _show_motifs(finder, sites, matches, data)),
        Section("How sure is it", _show_quality(finder)),
        Section("How it was learned", _show_learning(finder)),
    ]
    return Page("Motifs", subtitle, _STOPPED.get(finder.status_, ""), sections)


def _show_settings(finder: Any, data: MotifInput) -> list[Any]:
    lengths = np.array([len(letters) for letters in data.letters])
    span = f"{lengths.min()}" if lengths.min() == lengths.max() else f"{lengths.min()} to {lengths.max()}"
    width = finder.width if isinstance(finder.width, int | str) else f"{finder.width[0]} to {finder.width[1]}"
    facts = Facts(
        [
            ("sequences", data.summary),
            ("letters per sequence", span),
            ("width of a motif", f"{width}, chosen: {finder.width_}" if width != finder.width_ else width),
            ("motifs", "as many as are significant" if finder.n_motifs == "auto" else finder.n_motifs),
            ("alphabet", finder.alphabet),
            ("strands", "both" if count_strands(finder) == 2 else "one"),
            ("flank", finder.flank or "none"),
            ("sites per sequence", _show_told(finder)),
            ("held out for tests", f"{finder.held_out:.0%} of each class"),
            ("names that occur twice", data.n_duplicates),
        ]
    )
    warnings = separation_warnings(finder.length_area_, finder.gc_area_)
    return [facts, *(Notice(text[0].upper() + text[1:] + ".", "warning") for text in warnings)]


def _show_told(finder: Any) -> str:
    """Sites per sequence: as asked for, or as chosen for every motif."""
    if finder.sites_per_sequence != "auto" or not finder.placements_:
        return str(finder.sites_per_sequence)
    return "chosen: " + ", ".join(one.model for one in finder.placements_)


def _show_motifs(
    finder: Any, sites: Sequence[tuple[Any, ...]], matches: Sequence[Sequence[Match]], data: MotifInput
) -> list[Any]:
    if not finder.motifs_:
        text = f"No motif is significant: on held-out sequences none adds to composition (E < {finder.alpha:g})."
        return [Notice(text, "warning")]
    blocks: list[Any] = [_table_of_motifs(finder)]
    if matches:
        blocks += _table_of_matches(finder, matches)
    for number, motif in enumerate(finder.motifs_):
        own = [row for row in sites if row[0] == number + 1]
        p, q = motif.probabilities, motif.background
        title = f"Motif {number + 1}: {motif.consensus}"
        blocks.append(
            Prose(f"{title}, E = {show_number(motif.e_value)}, p = {show_number(motif.p_value)}, {motif.sites:,} sites")
        )
        if motif.spacer is not None:
            blocks.append(Notice(f"Motif {number + 1} {describe_spacer(motif)}."))
        if motif.overlap is not None:
            blocks.append(Notice(f"Motif {number + 1} {describe_overlap(motif)}."))
        figures = [Figure(logo_svg(p, q, standalone=False, letters=finder.letters_.letters), "As found, in bits.")]
        if count_strands(finder) == 2:
            figures.append(Figure(logo_svg(p[::-1, ::-1], q[::-1], standalone=False), "Its reverse complement."))
        blocks += [Row(figures), Row([_align_sites(own), _positions(own, data)])]
    blocks += _show_places(finder)
    columns = [
        *(Column("motif", True), Column("sequence"), Column("start", True), Column("strand")),
        *(Column("score", True, "evidence of the site for the positive class"), Column("site")),
    ]
    rows = [(n, name, start, strand, score, site) for n, name, start, _, strand, score, site in sites[:MAX_TABLE_ROWS]]
    shown = f"The best {len(rows):,} of {len(sites):,}" if len(rows) < len(sites) else f"All {len(rows):,}"
    blocks.append(Table(columns, rows, f"{shown} sites; sites.tsv and sites.bed have all of them."))
    return blocks


def _table_of_motifs(finder: Any) -> Table:
    columns = [
        *(
            Column("motif", True),
            Column("consensus"),
            Column("E-value", True, "p-value times the number of motifs tested"),
        ),
        Column("p-value", True, "on held-out sequences, given composition and earlier motifs"),
        *(Column("sites", True), Column("in positives", True), Column("in negatives", True)),
        *(Column("bits", True), Column("starts agree", True, "starts that ended at this motif")),
    ]
    rows = []
    for number, motif in enumerate(finder.motifs_):
        shares = (f"{motif.in_positives:.0%}", f"{motif.in_negatives:.0%}")
        row: list[Any] = [number + 1, motif.consensus, motif.e_value, motif.p_value, motif.sites, *shares, motif.bits]
        rows.append([*row, f"{motif.agreement:.0%}"])
    return Table(
        columns, rows, "The most significant first. A site scores higher than the best of nine in ten negatives."
    )


def _table_of_matches(finder: Any, matches: Sequence[Sequence[Match]]) -> list[Any]:
    columns = [
        *(Column("motif", True), Column("most similar known motif"), Column("similar?")),
        *(Column("E-value", True, "matches as good that are expected by chance among the known motifs"),),
        *(Column("p-value", True), Column("correlation", True), Column("strand"), Column("letters in common", True)),
    ]
    rows, lines = [], []
    for n, (best, *_) in enumerate(matches):
        is_like = "similar" if best.e_value < LIKENESS else "by chance"
        numbers = (best.e_value, best.p_value, best.correlation, "+-"[best.strand], best.overlap)
        rows.append((n + 1, best.name, is_like, *numbers))
        lines += [f"motif {n + 1:<4}{best.alignment[0]}", f"known     {best.alignment[1]}  {best.name}", ""]
    caption = f"A known motif with an E-value of {LIKENESS} or more may match by chance. matches.tsv has all of them."
    return [Table(columns, rows, caption), Code("\n".join(lines[:-1]))]


def _show_places(finder: Any) -> list[Any]:
    columns = [
        *(Column("motif", True), Column("sites per sequence"), Column("none", True), Column("one", True)),
        *(Column("several", True), Column("distance from the middle", True, "0 in the middle, 1 at the ends")),
        Column("p-value", True, "of sites as close to the middle, if all positions are equally likely"),
    ]
    rows = [
        (n + 1, one.model, f"{one.none:.0%}", f"{one.one:.0%}", f"{one.several:.0%}", one.centre, one.centre_p_value)
        for n, one in enumerate(finder.placements_)
    ]
    blocks: list[Any] = [Table(columns, rows, "Sites in the positive sequences. By chance the distance is 0.5.")]
    if not finder.pairs_:
        return blocks
    columns = [
        *(Column("motifs"), Column("together", True), Column("expected", True), Column("p-value", True)),
        *(Column("most frequent distance", True), Column("sequences", True)),
        Column("p-value of the distance", True, "times the number of distances"),
    ]
    pairs = []
    for one in finder.pairs_:
        distance = "none" if one.distance is None else f"{one.distance:+d}"
        counts = (one.together, one.expected, one.p_value)
        pairs.append((f"{one.first} and {one.second}", *counts, distance, one.at_distance, one.distance_p_value))
    caption = "Pairs of motifs in the positive sequences: sequences with both, and the distance of their starts."
    remarks = [text for text in (describe_pair(one, finder.width_) for one in finder.pairs_) if text]
    notices = [Notice(text[0].upper() + text[1:] + ".") for text in remarks]
    return [*blocks, *notices, Table(columns, pairs, caption)]


def _align_sites(own: Sequence[tuple[Any, ...]]) -> Code:
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
    return Figure(svg, "Positions of the sites in the sequences.")


def _show_quality(finder: Any) -> list[Any]:
    areas, held = finder.evidence_, finder.held_out_
    lengths = choose_lengths(finder.letters_)
    labels = held["is_positive"]
    names = [name for name in ("motifs and k-mers", "motifs", "k-mers", "composition") if name in areas]
    shown = {
        "motifs and k-mers": "motifs and k-mers",
        "motifs": "motifs, composition",
        "k-mers": f"k-mers of {lengths[0]}–{lengths[-1]}",
        "composition": "composition alone",
    }
    low = min(0.5, min(areas[name][1] for name in names))
    bars = bar_chart(
        [shown[name] for name in names],
        [areas[name][0] for name in names],
        "area under the ROC curve",
        intervals=[(areas[name][1], areas[name][2]) for name in names],
        x_range=(low, 1.0),
    )
    roc = {shown[name]: _roc(held[name], labels) for name in names[:3]}
    precision = {shown[name]: _precision(held[name], labels) for name in names[:3]}
    recall = line_chart(precision, "recall", "precision", x_range=(0.0, 1.0), y_range=(0.0, 1.0))
    lines = [(f"AUROC, {shown[name]}", f"{a:.3f} ({b:.3f} to {c:.3f})") for name in names for a, b, c in [areas[name]]]
    return [
        Prose(
            f"All numbers are for {labels.size:,} held-out sequences, {int(labels.sum()):,} of them positive. No motif "
            "was learned from them. A p-value tests whether better sites go with positive sequences, given composition "
            "and earlier motifs. The E-value is the p-value times the number of motifs that were tested. Intervals are "
            "95 %."
        ),
        Row([Figure(bars), Facts(lines)]),
        Row([Figure(roc_chart(roc), "ROC."), Figure(recall, "Precision and recall.")]),
    ]


def _show_learning(finder: Any) -> list[Any]:
    curves = {f"motif {m + 1}": (np.arange(1, len(h) + 1), h) for m, h in enumerate(finder.history_) if len(h) > 1}
    facts = Facts(
        [
            ("learner", finder.learner),
            ("C", f"{finder.C_:g}" + (", chosen from the data" if finder.C == "auto" else "")),
            ("width", finder.width_),
            ("why it stopped", finder.status_.value),
            ("objective", "½‖w‖² + C · mean loss; after each new motif all are refitted together"),
        ]
    )
    if not curves:
        return [facts]
    chart = line_chart(curves, "step", "objective", whole_x=True)
    return [Row([facts, Figure(chart, "The objective on the training part: the best start of every motif.")])]


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
