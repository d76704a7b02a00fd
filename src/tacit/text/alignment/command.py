"""``tacit align``: from parallel text to word links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from markupsafe import Markup, escape

from tacit.commands import (
    INPUT_FILE,
    INTERRUPTED,
    CommandRun,
    Number,
    c_option,
    count_noun,
    examples,
    load_model,
    model_option,
    run_options,
)
from tacit.report import Column, Facts, Figure, Notice, Page, Prose, Section, Table, bar_chart

EXAMPLES = examples(
    "tacit align text.en-fr --out links",
    "tacit align text.en text.fr --out links --gold some.gold",
    "tacit align more.en-fr --model links/model.tacit --out more",
)


@click.command(epilog=EXAMPLES)
@click.argument("source", metavar="FILE", type=INPUT_FILE)
@click.argument("target", type=INPUT_FILE, required=False)
@click.option(
    "--gold",
    type=INPUT_FILE,
    help="Known links, one line per sentence pair; pairs with an empty or missing line are unknown.",
)
@click.option("--pharaoh", is_flag=True, help="Count words from 0 in --gold and links.txt, as Pharaoh files do.")
@c_option(100.0)
@click.option(
    "--weak-weight",
    type=Number(float, 0),
    metavar="PAIRS",
    default=15.0,
    help="With --gold: importance of all pairs without gold links together, counted in pairs with gold links.",
)
@model_option("it aligns the sentence pairs of FILE, and nothing is learned.")
@run_options(out="links")
def align(
    run: CommandRun,
    source: Path,
    target: Path | None,
    gold: Path | None,
    pharaoh: bool,
    model: Path | None,
    **options: Any,
) -> None:
    """Align the words of parallel sentences.

    FILE has lines 'source ||| target', or with a tab in between. Or it has the source sentences alone, and TARGET has
    their translations, line by line. Words are separated by spaces. Without --gold the model learns from the text
    alone, by distinguishing translations from re-paired sentences. A gold file has links i-j (sure) and ipj (possible).
    Writes links.txt (a line of links i-j per sentence pair, words counted from 1), report.html, model.tacit and
    run.json.
    """
    from tacit.text import format_links, read_parallel
    from tacit.text.alignment.aligner import WordAligner

    first = 0 if pharaoh else 1
    aligner = WordAligner(**options, **run.settings) if model is None else load_model(model, WordAligner, {})
    run.check_options(aligner)
    with run.writing(source, target, gold, model) as folder:
        sources, targets = read_parallel(source, target)
        known = None if gold is None else _read_gold(gold, first, sources, targets)
        if model is None:
            run.note(f"{len(sources)} sentence pairs: learning")
            aligner.fit(sources, targets, known)
            run.note_status(aligner.status_)
            aligner.save(folder.path("model.tacit"))
        else:
            aligner.links_, aligner.scores_ = aligner.predict_scores(sources, targets)
        quality = f"{aligner.accuracy_:.1%} accuracy on re-paired training sentences; no gold links were held out"
        if aligner.held_out_ is not None:
            quality = f"held-out alignment error rate {aligner.held_out_['error_rate']:.3f}"
        found = f"{count_noun(len(aligner.links_.values), 'link')} in {count_noun(len(sources), 'sentence pair')}"
        run.write_report(folder, align_page(aligner, sources, targets, known, model=model), found, quality)
        folder.write_text("links.txt", format_links(aligner.links_, first))
        run.record(
            links=len(aligner.links_.values),
            sentence_pairs=len(sources),
            accuracy=aligner.accuracy_,
            held_out=aligner.held_out_,
        )
    run.finish(found, quality, f"open {run.out / 'report.html'}; the links are in {run.out / 'links.txt'}")


def _read_gold(path: Path, first: int, sources: Any, targets: Any) -> list[Any]:
    """Gold links of all sentence pairs, None where a line is empty or missing."""
    from tacit.text import read_links
    from tacit.text.alignment.links import check_links

    links, n = read_links(path, first), len(sources)
    if len(links) > n:
        raise ValueError(f"{path} has {len(links)} lines for {n} sentence pairs; give at most one line per pair")
    check_links(links, sources[: len(links)], targets[: len(links)], str(path), first)
    return [own if len(own.possible) else None for own in links] + [None] * (n - len(links))


SHOWN_PAIRS, SHOWN_WORDS = 12, 24
"""Alignment matrices on the page, of sentences up to so many words."""

MAX_TABLE_ROWS = 300
"""Word pairs in the table."""

CELL, LABEL = 18, 110
"""Pixels of a cell, and of the margin with the words."""

VIEW_WIDTH = LABEL + CELL * SHOWN_WORDS + LABEL // 2
"""Of every matrix, so that all of them are drawn to one scale."""


def align_page(
    aligner: Any,
    source: Sequence[Sequence[str]],
    target: Sequence[Sequence[str]],
    gold: Sequence[Any] | None = None,
    *,
    model: Path | None = None,
) -> Page:
    """The whole page; ``model`` is the file of the model if nothing was learned."""
    known = 0 if gold is None else sum(links is not None for links in gold)
    learned = "learned from the text alone" if model is None else f"aligned by {model}"
    if known:
        learned = f"learned from {known} sentence pairs with gold links and the text"
    banner = "Interrupted: this is the best model so far." if aligner.status_.value == INTERRUPTED else ""
    return Page(
        "Word alignment",
        f"{len(source)} sentence pairs, {learned}",
        banner,
        [
            Section("What was found", [_facts(aligner, source), _quality_note(aligner, known)]),
            Section("Alignments to look at", _matrices(aligner, source, target, gold)),
            Section("Words that were linked", [_table(aligner, source, target)]),
            Section("Features with the largest weights", [_weights(aligner)]),
        ],
    )


def _facts(aligner: Any, source: Sequence[Sequence[str]]) -> Facts:
    pairs = [
        ("sentence pairs", len(source)),
        ("links", len(aligner.links_.values)),
        ("accuracy on re-paired sentences", f"{aligner.accuracy_:.1%}"),
    ]
    if aligner.held_out_ is not None:
        scores = aligner.held_out_
        pairs += [
            ("alignment error rate, held out", f"{scores['error_rate']:.3f}"),
            ("precision and recall, held out", f"{scores['precision']:.3f} and {scores['recall']:.3f}"),
        ]
    return Facts(pairs)


def _quality_note(aligner: Any, known: int) -> Any:
    if aligner.held_out_ is not None:
        return Prose("The error rate was measured on folds of the gold links that were held out.")
    if known:
        return Notice("Too few sentence pairs have gold links to hold some out: the error rate is unknown.")
    return Prose(
        "No links were given. The model learned to distinguish translations from re-paired sentences; the links are "
        "its hidden values."
    )


def _matrices(
    aligner: Any, source: Sequence[Sequence[str]], target: Sequence[Sequence[str]], gold: Sequence[Any] | None
) -> list[Any]:
    """Matrices of sentence pairs that are short enough to show, from all over the text."""
    lengths = [sorted((len(s), len(t))) for s, t in zip(source, target, strict=True)]
    fit = [i for i, (short, long) in enumerate(lengths) if short >= 3 and long <= SHOWN_WORDS]
    fit = fit or [i for i, (short, long) in enumerate(lengths) if short > 0 and long <= SHOWN_WORDS]
    if not fit:
        return [Prose(f"No sentence pair has at most {SHOWN_WORDS} words on both sides.")]
    chosen = [fit[k] for k in np.unique(np.linspace(0, len(fit) - 1, SHOWN_PAIRS).astype(int))]
    has_gold = gold is not None and any(gold[i] is not None for i in chosen)
    legend = "Filled cells are links; the darker, the higher the score."
    legend += " Frames are gold links: solid ones sure, dashed ones possible." if has_gold else ""
    figures = [
        Figure(
            alignment_svg(
                source[i], target[i], aligner.links_[i], aligner.scores_[i], None if gold is None else gold[i]
            ),
            f"Sentence pair {i + 1}",
        )
        for i in chosen
    ]
    return [Prose(legend), *figures]


def alignment_svg(
    source: Sequence[str], target: Sequence[str], links: Any, scores: Any = None, gold: Any = None
) -> Markup:
    """A matrix with source words as rows and target words as columns; all text is escaped.

    >>> svg = alignment_svg(["<b>"], ["x"], [(0, 0)])
    >>> "<b>" in svg, "&lt;b&gt;" in svg
    (False, True)
    """
    width, height = max(LABEL + CELL * len(target) + LABEL // 2, VIEW_WIDTH), LABEL + CELL * len(source) + 4
    shown = escape(f"{len(list(links))} links between {len(source)} and {len(target)} words")
    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{shown}"><title>{shown}</title>',
        '<g font-size="11" fill="currentColor">',
    ]
    for i, word in enumerate(source):
        y = LABEL + CELL * i
        parts.append(f'<text x="{LABEL - 6}" y="{y + 13}" text-anchor="end">{escape(_cut(word))}</text>')
    for j, word in enumerate(target):
        x = LABEL + CELL * j + 12
        parts.append(f'<text transform="translate({x},{LABEL - 6}) rotate(-55)">{escape(_cut(word))}</text>')
    parts.append('</g><g stroke="currentColor" stroke-opacity=".15" fill="none">')
    for i in range(len(source) + 1):
        y = LABEL + CELL * i
        parts.append(f'<line x1="{LABEL}" y1="{y}" x2="{LABEL + CELL * len(target)}" y2="{y}"/>')
    for j in range(len(target) + 1):
        x = LABEL + CELL * j
        parts.append(f'<line x1="{x}" y1="{LABEL}" x2="{x}" y2="{LABEL + CELL * len(source)}"/>')
    parts.append("</g>")
    strengths = np.ones(len(list(links))) if scores is None else np.asarray(scores, dtype=float)
    top = max(float(strengths.max(initial=0.0)), 1e-12)
    for (i, j), strength in zip(links, strengths, strict=True):
        x, y = LABEL + CELL * int(j) + 2, LABEL + CELL * int(i) + 2
        opacity = 0.35 + 0.65 * float(strength) / top
        words = escape(f"{source[int(i)]} – {target[int(j)]}")
        parts.append(
            f'<rect x="{x}" y="{y}" width="{CELL - 4}" height="{CELL - 4}" rx="3" fill="#2563eb" '
            f'fill-opacity="{opacity:.2f}"><title>{words}</title></rect>'
        )
    if gold is not None:
        sure = {tuple(pair) for pair in gold.sure.tolist()}
        for i, j in gold.possible.tolist():
            dash = "" if (i, j) in sure else ' stroke-dasharray="3 2"'
            x, y = LABEL + CELL * j + 1, LABEL + CELL * i + 1
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" fill="none" stroke="#d97706" '
                f'stroke-width="1.6"{dash}/>'
            )
    return Markup("".join(parts) + "</svg>")


def _cut(word: str, most: int = 16) -> str:
    return word if len(word) <= most else word[: most - 1] + "…"


def _table(aligner: Any, source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]) -> Table:
    counts: Counter[tuple[str, str]] = Counter()
    best: dict[tuple[str, str], float] = {}
    for i in range(len(source)):
        for (a, b), score in zip(aligner.links_[i].tolist(), aligner.scores_[i].tolist(), strict=True):
            words = source[i][a].lower(), target[i][b].lower()
            counts[words] += 1
            best[words] = max(best.get(words, 0.0), score)
    rows = [(a, b, count, best[a, b]) for (a, b), count in counts.most_common(MAX_TABLE_ROWS)]
    columns = [Column("source"), Column("target"), Column("links", True), Column("highest score", True)]
    return Table(columns, rows, f"The {len(rows)} most frequent of {len(counts)} pairs of words.")


def _weights(aligner: Any) -> Figure:
    from tacit.text.alignment.word_pairs import NAMES

    weights = aligner.model_.weights_["weights"]
    order = np.argsort(-np.abs(weights))[:15]
    return Figure(
        bar_chart([NAMES[k] for k in order], [float(abs(weights[k])) for k in order], "size of the weight"),
        "The 15 largest absolute weights.",
    )
