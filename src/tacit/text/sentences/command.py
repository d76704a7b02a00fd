"""``tacit reasons``: labels of documents, and the sentences that decide them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from markupsafe import Markup, escape

from tacit import commands
from tacit.data.lines import json_line
from tacit.report import Column, Facts, Figure, Page, Prose, Section, Table

if TYPE_CHECKING:
    from tacit.text.sentences.finder import Decision
    from tacit.text.sentences.vectors import DocumentFile

EXAMPLES = commands.examples(
    "tacit reasons reviews.jsonl --out reasons",
    "tacit reasons reviews.jsonl.gz --share 0.1 --budget words",
    "tacit reasons more.jsonl --model reasons/model.tacit --out more",
    "tacit reasons review.txt --model reasons/model.tacit --out one",
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
@commands.ask_option("documents whose decisive sentences should be marked")
@commands.run_options(out="reasons")
def reasons(run: commands.CommandRun, documents: Path, model: Path | None, n_asked: int | None, **options: Any) -> None:
    """Find the sentences that decide the labels of documents.

    FILE has a JSON object per line: "text" or a list "sentences", a "label" (one of two), and perhaps an "id". It may
    be gzipped. Lines without a label are not learned from, but get reasons too. "known" lists the decisive sentences of
    a document, counted from 0, as 'tacit label' writes them. With --model, FILE may be raw
    text (.txt), one document.

    Writes report.html, reasons.jsonl (the predicted label of each document, and the chosen sentences with their
    scores), model.tacit and run.json.
    """
    from tacit.text.sentences.finder import ReasonFinder
    from tacit.text.sentences.vectors import read_document_file

    finder = ReasonFinder(**options, **run.settings) if model is None else commands.load_model(model, ReasonFinder, {})
    run.check_options(finder)
    with run.writing(documents, model) as folder:
        data = read_document_file(documents)
        known = [i for i, label in enumerate(data.labels) if label is not None]
        if model is None:
            if not known:
                raise ValueError(f"{documents} must have lines with a label to learn from, got none; add labels")
            run.note(f"{len(data.documents)} documents: learning")
            hidden = [data.known[i] for i in known]
            marked = None if all(own is None for own in hidden) else hidden
            finder.fit([data.documents[i] for i in known], [data.labels[i] for i in known], marked)
            run.note_status(finder.status_)
            finder.save(folder.path("model.tacit"))
            if n_asked is not None:
                _write_questions(folder, finder, data, known, n_asked, run.seed)
        found = finder.reasons(data.documents)
        folder.write_text("reasons.jsonl", "".join(_line(data, i, decision) for i, decision in enumerate(found)))
        quality = "held-out accuracy unknown: too few documents to hold some out"
        if finder.held_out_ is not None:
            scores = ", ".join(f"{name} {value:.3f}" for name, value in finder.held_out_.items())
            quality = f"held-out accuracy: {scores}. {compare_held_out(finder.held_out_)}"
        chosen = sum(len(decision.reasons) for decision in found)
        summary = f"{commands.count_noun(chosen, 'decisive sentence')} in {commands.count_noun(len(found), 'document')}"
        run.write_report(folder, reasons_page(finder, data, found), summary, quality)
        run.record(documents=len(data.documents), labelled=len(known), held_out=finder.held_out_)
    run.finish(summary, quality, f"open {run.out / 'report.html'}; all sentences are in {run.out / 'reasons.jsonl'}")


def _write_questions(folder: Any, finder: Any, data: Any, rows: Sequence[int], k: int, seed: int) -> None:
    """The labelled documents to mark decisive sentences in, with those that the model chooses."""
    documents, labels = [data.documents[i] for i in rows], [data.labels[i] for i in rows]
    asked = finder.ask(documents, labels, k, hidden=[data.known[i] for i in rows], random_state=seed)
    guesses = [" ".join(str(t) for t in own) for own in asked.guesses]
    commands.write_questions(folder, [data.names[rows[i]] for i in asked.rows], asked.usefulness, guesses)


def _line(data: Any, i: int, decision: Any) -> str:
    """One document as a line of JSON."""
    content = {
        "id": data.names[i],
        "label": data.labels[i],
        "predicted": str(decision.label),
        "margin": decision.margin,
        "reasons": [
            {"sentence": reason.position, "score": reason.score, "text": data.documents[i][reason.position]}
            | ({} if data.spans is None else dict(zip(("start", "end"), data.spans[reason.position], strict=True)))
            for reason in decision.reasons
        ],
    }
    return json_line(content) + "\n"


SHOWN_DOCUMENTS, SHOWN_WORDS = 12, 25
"""Documents shown in full, and words per column of the table."""

MAX_SENTENCES = 200
"""Sentences of a document on the page."""

MAX_TABLE_ROWS = 500


def reasons_page(finder: Any, data: DocumentFile, found: Sequence[Decision]) -> Page:
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
            f"{compare_held_out(finder.held_out_)} Accuracies were measured on held-out folds; the linear SVM reads "
            "whole documents. The chosen sentences speak for this model's prediction. That does not prove that they "
            "decided the writer's opinion."
        )
    order = _order(data, found)
    spread = np.linspace(0, len(found) - 1, SHOWN_DOCUMENTS).astype(int).tolist()
    shown = list(dict.fromkeys([*order[: SHOWN_DOCUMENTS // 2], *spread]))[:SHOWN_DOCUMENTS]
    figures = [Figure(document_html(data.documents[i], found[i]), _caption(data, found[i], i)) for i in shown]
    legend = Prose(
        "Chosen sentences are marked: blue for the predicted label, orange against it. Wrong labels come first."
    )
    return Page(
        "Reasons",
        f"{len(data.documents)} documents, labels {finder.classes_[0]} and {finder.classes_[1]}",
        banner,
        [
            Section("What was found", [Facts(facts)]),
            Section("Documents and their decisive sentences", [legend, *figures]),
            Section("All documents", [_table(data, found)]),
            Section("Words with the largest weights", [_words(finder)]),
        ],
        trust=[Prose(note)],
    )


def compare_held_out(accuracies: dict[str, float]) -> str:
    """A sentence on whether this model or the linear SVM is more accurate on held-out documents.

    >>> compare_held_out({"this model": 0.8, "linear SVM": 0.85})
    'The linear SVM is more accurate here: take its labels, and these sentences as hints.'
    """
    own, other = accuracies["this model"], accuracies["linear SVM"]
    if own > other:
        return "This model is more accurate than a linear SVM on whole documents."
    if own == other:
        return "This model is as accurate as a linear SVM on whole documents."
    return "The linear SVM is more accurate here: take its labels, and these sentences as hints."


def _caption(data: DocumentFile, decision: Decision, i: int) -> str:
    label = data.labels[i]
    known = "no label given" if label is None else f"labelled {label}"
    verdict = "" if label is None or str(label) == str(decision.label) else "; wrong"
    return f"{data.names[i]}: {decision.label} by {decision.margin:.2f}, {known}{verdict}"


def document_html(sentences: Sequence[str], decision: Decision) -> Markup:
    """The text with its chosen sentences marked: blue for the decision, orange against it; stronger, a higher score.

    >>> from tacit.text import Decision
    >>> "<i>" in document_html(["<i>hostile</i>"], Decision("+", 1.0, []))
    False
    """
    scores = {reason.position: reason.score for reason in decision.reasons}
    top = max([abs(score) for score in scores.values()] + [1e-12])
    parts = []
    for position, sentence in enumerate(sentences[:MAX_SENTENCES]):
        if position in scores:
            hue = 215 if scores[position] >= 0 else 35
            strength = 0.15 + 0.35 * abs(scores[position]) / top
            style = f"background:hsl({hue} 90% 60% / {strength:.2f});color:inherit"
            text = Markup('<mark style="{}" title="score {}">{}</mark>')
            parts.append(text.format(style, f"{scores[position]:.3g}", sentence))
        else:
            parts.append(escape(sentence))
    if len(sentences) > MAX_SENTENCES:
        parts.append(escape(f"… {len(sentences) - MAX_SENTENCES} more sentences"))
    return Markup("<p>") + Markup(" ").join(parts) + Markup("</p>")


def _order(data: DocumentFile, found: Sequence[Decision]) -> list[int]:
    """Positions of documents, those with a wrong prediction first."""
    is_wrong = [
        label is not None and str(own.label) != str(label) for label, own in zip(data.labels, found, strict=True)
    ]
    return sorted(range(len(found)), key=lambda i: not is_wrong[i])


def _table(data: DocumentFile, found: Sequence[Decision]) -> Table:
    rows = []
    for i in _order(data, found)[:MAX_TABLE_ROWS]:
        decision = found[i]
        best = data.documents[i][decision.reasons[0].position] if decision.reasons else ""
        rows.append((data.names[i], data.labels[i] or "", decision.label, decision.margin, best))
    columns = [Column(name, name == "margin") for name in ("document", "label", "predicted", "margin", "top sentence")]
    caption = "" if len(rows) == len(found) else f"{len(rows)} of {len(found)}; all are in reasons.jsonl."
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
