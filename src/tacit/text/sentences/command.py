"""``tacit reasons``: labels of documents, and the sentences that decide them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from markupsafe import Markup, escape

from tacit import commands
from tacit.data.lines import json_line
from tacit.report import Code, Column, Facts, Figure, Page, Prose, Section, Table, render

if TYPE_CHECKING:
    from tacit.text.sentences.finder import Decision, DocumentFile

EXAMPLES = commands.examples(
    "tacit reasons reviews.jsonl --out reasons",
    "tacit reasons reviews.jsonl.gz --share 0.1 --budget words",
    "tacit reasons more.jsonl --model reasons/model.tacit --out more",
)


@click.command(epilog=EXAMPLES)
@click.argument("documents", metavar="FILE", type=commands.INPUT_FILE)
@click.option(
    "--share",
    type=commands.Number(float, 0, 1, is_open=True),
    metavar="SHARE",
    default=0.3,
    help="Share of each document that is chosen, above 0 and up to 1.",
)
@commands.choice_option("--budget", ["sentences", "words"], "Unit in which --share is counted: sentences or words.")
@commands.c_option(100.0)
@commands.number_option("--min-documents", 2, "Smallest number of documents that a word must occur in.")
@commands.model_option("it labels and explains the documents of FILE, and nothing is learned.")
@commands.run_options(out="reasons")
def reasons(run: commands.CommandRun, documents: Path, model: Path | None, **options: Any) -> None:
    """Find the sentences that decide the labels of documents.

    FILE has a JSON object per line: "text" or a list "sentences", a "label" (one of two), and perhaps an "id". It may
    be gzipped. Lines without a label are not learned from, but get reasons too. Writes report.html, reasons.jsonl (the
    predicted label of each document, and the chosen sentences with their scores), model.tacit and run.json.
    """
    from tacit.text.sentences.finder import ReasonFinder, read_document_file

    finder = ReasonFinder(**options, **run.settings) if model is None else commands.load_model(model, ReasonFinder, {})
    run.check_options(finder)
    with run.writing(documents, model) as folder:
        data = read_document_file(documents)
        known = [i for i, label in enumerate(data.labels) if label is not None]
        if model is None:
            if not known:
                raise ValueError(f"{documents} must have lines with a label to learn from, got none; add labels")
            run.note(f"{len(data.documents)} documents: learning")
            finder.fit([data.documents[i] for i in known], [data.labels[i] for i in known])
            run.note_status(finder.status_)
            finder.save(folder.path("model.tacit"))
        found = finder.reasons(data.documents)
        folder.write_text("reasons.jsonl", "".join(_line(data, i, decision) for i, decision in enumerate(found)))
        folder.write_text("report.html", render(reasons_page(finder, data, found, command=run.command_line)))
        run.record(documents=len(data.documents), labelled=len(known), held_out=finder.held_out_)
    quality = "held-out accuracy unknown: too few documents to hold some out"
    if finder.held_out_ is not None:
        scores = ", ".join(f"{name} {value:.3f}" for name, value in finder.held_out_.items())
        quality = f"held-out accuracy: {scores}"
    chosen = sum(len(decision.reasons) for decision in found)
    summary = f"{commands.count_noun(chosen, 'decisive sentence')} in {commands.count_noun(len(found), 'document')}"
    run.finish(summary, quality, f"open {run.out / 'report.html'}; all sentences are in {run.out / 'reasons.jsonl'}")


def _line(data: Any, i: int, decision: Any) -> str:
    """One document as a line of JSON."""
    content = {
        "id": data.names[i],
        "label": data.labels[i],
        "predicted": str(decision.label),
        "margin": decision.margin,
        "reasons": [
            {"sentence": reason.position, "score": reason.score, "text": data.documents[i][reason.position]}
            for reason in decision.reasons
        ],
    }
    return json_line(content) + "\n"


SHOWN_DOCUMENTS, SHOWN_WORDS = 12, 25
"""Documents shown in full, and words per column of the table."""

MAX_LETTERS, MAX_LINES = 84, 60
"""Letters of a sentence, and sentences of a document, on the page."""

MAX_TABLE_ROWS = 500


def reasons_page(finder: Any, data: DocumentFile, found: Sequence[Decision], *, command: Sequence[str] = ()) -> Page:
    """The whole page."""
    known = sum(label is not None for label in data.labels)
    banner = "Interrupted: this is the best model so far." if finder.status_.value == commands.INTERRUPTED else ""
    facts: list[tuple[str, Any]] = [
        ("documents", len(data.documents)),
        ("with a label", known),
        ("sentences", sum(map(len, data.documents))),
        ("chosen", f"{float(finder.share):.0%} of the {finder.budget}"),
    ]
    note = "There are too few documents to hold some out: the accuracy is unknown."
    if finder.held_out_ is not None:
        facts += [(f"held-out accuracy, {name}", f"{value:.3f}") for name, value in finder.held_out_.items()]
        note = (
            "Accuracies were measured on held-out folds; the linear SVM reads whole documents. The chosen sentences "
            "decided this model's prediction. That does not prove that they decided the writer's opinion."
        )
    shown = np.unique(np.linspace(0, len(found) - 1, SHOWN_DOCUMENTS).astype(int))
    figures = [Figure(document_svg(data.documents[i], found[i]), _caption(data, found[i], int(i))) for i in shown]
    return Page(
        "Reasons",
        f"{len(data.documents)} documents, labels {finder.classes_[0]} and {finder.classes_[1]}",
        banner,
        [
            Section("What was found", [Facts(facts), Prose(note)]),
            Section("Documents and their decisive sentences", figures),
            Section("All documents", [_table(data, found)]),
            Section("Words with the largest weights", [_words(finder)]),
            Section("How to do it again", [Code(shlex.join(command) or "tacit reasons FILE.jsonl --out reasons")]),
        ],
    )


def _caption(data: DocumentFile, decision: Decision, i: int) -> str:
    label = data.labels[i]
    known = "no label given" if label is None else f"labelled {label}"
    return f"{data.names[i]}: {decision.label} by {decision.margin:.2f}, {known}"


def document_svg(sentences: Sequence[str], decision: Decision) -> Markup:
    """The sentences, chosen ones with a bar as long as their score: blue for the decision, orange against it.

    >>> from tacit.text import Decision
    >>> "<i>" in document_svg(["<i>hostile</i>"], Decision("+", 1.0, []))
    False
    """
    lines, height, left = list(sentences)[:MAX_LINES], 18, 130
    scores = {reason.position: reason.score for reason in decision.reasons}
    top = max([abs(score) for score in scores.values()] + [1e-12])
    tall = height * (len(lines) + 1) + 6
    title = escape(f"{len(scores)} chosen sentences of {len(sentences)}")
    parts = [
        f'<svg viewBox="0 0 680 {tall}" role="img" aria-label="{title}"><title>{title}</title>'
        '<g font-size="12" fill="currentColor">'
    ]
    for position, sentence in enumerate(lines):
        y = height * (position + 1)
        cut = sentence if len(sentence) <= MAX_LETTERS else sentence[: MAX_LETTERS - 1] + "…"
        is_chosen = position in scores
        if is_chosen:
            length = 100 * abs(scores[position]) / top
            colour = "#2563eb" if scores[position] >= 0 else "#d97706"
            parts.append(
                f'<rect x="{left - 14 - length:.1f}" y="{y - 11}" width="{length:.1f}" height="12" fill="{colour}">'
                f"<title>{scores[position]:.3g}</title></rect>"
            )
        look = 'font-weight="600"' if is_chosen else 'fill-opacity=".45"'
        parts.append(f'<text x="{left}" y="{y}" {look}>{escape(cut)}</text>')
    if len(sentences) > len(lines):
        parts.append(f'<text x="{left}" y="{height * (len(lines) + 1)}">… {len(sentences) - len(lines)} more</text>')
    return Markup("".join(parts) + "</g></svg>")


def _table(data: DocumentFile, found: Sequence[Decision]) -> Table:
    rows = []
    for i, decision in enumerate(found[:MAX_TABLE_ROWS]):
        best = data.documents[i][decision.reasons[0].position] if decision.reasons else ""
        rows.append((data.names[i], data.labels[i] or "", decision.label, decision.margin, best))
    columns = [Column(name, name == "margin") for name in ("document", "label", "predicted", "margin", "top sentence")]
    caption = "" if len(rows) == len(found) else f"The first {len(rows)} of {len(found)}; all are in reasons.jsonl."
    return Table(columns, rows, caption)


def _words(finder: Any) -> Table:
    weights = finder.model_.weights_["polarity"]
    order = np.argsort(weights, kind="stable")
    low, high = order[:SHOWN_WORDS], order[::-1][:SHOWN_WORDS]
    rows = [
        (finder.words_[a], float(weights[a]), finder.words_[b], float(weights[b]))
        for a, b in zip(low, high, strict=True)
    ]
    first, second = map(str, finder.classes_)
    columns = [Column(f"for {first}"), Column("weight", True), Column(f"for {second}"), Column("weight ", True)]
    return Table(columns, rows, "Words of sentences with the largest weights.")
