"""``tacit reasons`` and ``tacit summarise``: sentences that decide labels of documents, or make summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def _share_option(default: float, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    share = commands.Number(float, 0, 1, is_open=True)
    return click.option("--share", type=share, metavar="SHARE", default=default, help=text)


@click.command(epilog=EXAMPLES)
@click.argument("documents", metavar="FILE", type=commands.INPUT_FILE)
@_share_option(0.3, "Share of each document that is chosen, above 0 and up to 1.")
@commands.choice_option("--budget", ["sentences", "words"], "Unit in which --share is counted: sentences or words.")
@commands.c_option(100.0)
@commands.number_option("--min-documents", 2, "Smallest number of documents that a word must occur in.")
@commands.model_option("it labels and explains the documents of FILE, and nothing is learned.")
@commands.ask_option("documents whose decisive sentences should be marked")
@commands.run_options(out="reasons")
def reasons(run: commands.CommandRun, documents: Path, model: Path | None, n_asked: int | None, **options: Any) -> None:
    """Find the sentences that decide the labels of documents.

    FILE has a JSON object per line: "text" or a list "sentences", a "label" (one of two), and perhaps an "id"; or it is
    a .csv or .tsv file with the columns text and label. It may be gzipped. Lines without a label are not learned from,
    but get reasons too. "known" lists the decisive sentences of a document, counted from 0, as 'tacit label' writes
    them. With --model, FILE may be raw text (.txt), one document.

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
    spans = data.spans[i]
    content = {
        "id": data.names[i],
        "label": data.labels[i],
        "predicted": str(decision.label),
        "margin": decision.margin,
        "reasons": [
            {"sentence": reason.position, "score": reason.score, "text": data.documents[i][reason.position]}
            | ({} if spans is None else dict(zip(("start", "end"), spans[reason.position], strict=True)))
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
            Section("What was found", [Facts(facts), Prose(note)]),
            Section("Documents and their decisive sentences", [legend, *figures]),
            Section("All documents", [_table(data, found)]),
            Section("Words with the largest weights", [_words(finder)]),
        ],
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
    return Markup('<p dir="auto">') + Markup(" ").join(parts) + Markup("</p>")


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


SUMMARISE_EXAMPLES = commands.examples(
    "tacit summarise articles.jsonl --share 0.2 --out summaries",
    "tacit summarise more.jsonl --model summaries/model.tacit --out more",
    "tacit summarise article.txt --model summaries/model.tacit --out one",
)

SHOWN_SUMMARIES = 8
"""Documents shown in full."""


@click.command(epilog=SUMMARISE_EXAMPLES)
@click.argument("documents", metavar="FILE", type=commands.INPUT_FILE)
@_share_option(0.2, "Share of the words of each document that its summary may have, above 0 and up to 1.")
@commands.number_option("--min-documents", 2, "Smallest number of documents that a word must occur in.")
@commands.model_option("it summarises the documents of FILE, and nothing is learned.")
@commands.run_options(out="summaries", is_parallel=False)
def summarise(run: commands.CommandRun, documents: Path, model: Path | None, **options: Any) -> None:
    """Summarise documents by some of their sentences.

    FILE has a JSON object per line: "text" or a list "sentences", and perhaps a "summary" (text), a "label" (one of
    two) and an "id". If some lines have a summary, the model learns from those which sentences to choose. Otherwise it
    learns from the labels, and chooses the sentences that decide them. FILE may also be a .csv or .tsv file with such
    columns, and with --model raw text (.txt).

    Writes summaries.jsonl (the chosen sentences of each document), report.html, model.tacit and run.json.
    """
    from tacit.text.sentences.summariser import Summariser
    from tacit.text.sentences.vectors import read_document_file

    settings: dict[str, Any] = {"random_state": run.seed, "verbose": run.verbose}
    summariser = Summariser(**options, **settings) if model is None else commands.load_model(model, Summariser, {})
    with run.writing(documents, model) as folder:
        data = read_document_file(documents)
        if model is None:
            run.note(f"{len(data.documents)} documents: learning")
            summariser.fit(data.documents, data.summaries, data.labels)
            summariser.save(folder.path("model.tacit"))
        found = summariser.predict(data.documents)
        texts = [" ".join(own[t] for t in chosen) for own, chosen in zip(data.documents, found, strict=True)]
        entries = zip(data.names, found, texts, strict=True)
        lines = [json_line({"id": name, "sentences": chosen, "summary": text}) for name, chosen, text in entries]
        folder.write_text("summaries.jsonl", "".join(line + "\n" for line in lines))
        quality = f"quality: see the report beside {model}" if model is not None else _describe_quality(summariser)
        summary = f"summaries of {commands.count_noun(len(found), 'document')}"
        run.write_report(folder, _summaries_page(summariser, data, found, model), summary, quality)
        run.record(documents=len(data.documents), held_out=summariser.held_out_)
    run.finish(summary, quality, f"open {run.out / 'report.html'}; all summaries are in {run.out / 'summaries.jsonl'}")


def _describe_quality(summariser: Any) -> str:
    if summariser.held_out_ is None:
        return "held-out quality unknown: too few documents to hold some out"
    scores = ", ".join(f"{name} {value:.3f}" for name, value in summariser.held_out_.items())
    return f"held-out {summariser.measure}: {scores}"


def _summaries_page(summariser: Any, data: Any, found: list[list[int]], model: Path | None) -> Page:
    from tacit.text.sentences.finder import Decision, Reason

    n_words = [[len(sentence.split()) for sentence in own] for own in data.documents]
    kept = sum(own[t] for own, chosen in zip(n_words, found, strict=True) for t in chosen)
    facts: list[tuple[str, Any]] = [
        ("documents", len(found)),
        ("learned from", f"the model {model}" if model is not None else summariser.source_),
        ("words in summaries", f"{kept / max(1, sum(map(sum, n_words))):.1%}"),
    ]
    if n_empty := sum(not chosen and bool(own) for own, chosen in zip(data.documents, found, strict=True)):
        facts.append(("without a summary", f"{n_empty}: no sentence fits in the share of words; raise --share"))
    held_out = {} if model is not None else summariser.held_out_ or {}
    facts += [(f"held-out {summariser.measure}, {name}", f"{value:.3f}") for name, value in held_out.items()]
    notes = [Prose(note) for note in [summariser.describe_gain()] if note and model is None]
    figures = [
        Figure(document_html(own, Decision("", 0.0, [Reason(t, 1.0, 1.0) for t in chosen])), name)
        for own, chosen, name in list(zip(data.documents, found, data.names, strict=True))[:SHOWN_SUMMARIES]
    ]
    rows = [
        (name, len(own), len(chosen), " ".join(own[t] for t in chosen))
        for own, chosen, name in list(zip(data.documents, found, data.names, strict=True))[:MAX_TABLE_ROWS]
    ]
    caption = "" if len(rows) == len(found) else f"The first {len(rows)}; all are in summaries.jsonl."
    columns = [Column("document"), Column("sentences", True), Column("chosen", True), Column("summary")]
    return Page(
        "Summaries",
        f"{len(found)} documents",
        "",
        [
            Section("What was found", [Facts(facts), *notes]),
            Section("Documents with their summaries marked", figures),
            Section("Summaries", [Table(columns, rows, caption)]),
        ],
    )
