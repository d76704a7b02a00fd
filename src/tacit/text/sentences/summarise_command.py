"""``tacit summarise``: sentences within a share of the words, learned from summaries or from labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit import commands
from tacit.data.lines import json_line
from tacit.report import Column, Facts, Figure, Page, Prose, Section, Table

EXAMPLES = commands.examples(
    "tacit summarise articles.jsonl --share 0.2 --out summaries",
    "tacit summarise more.jsonl --model summaries/model.tacit --out more",
    "tacit summarise article.txt --model summaries/model.tacit --out one",
)

SHOWN, MAX_TABLE_ROWS = 8, 200
"""Documents shown in full, and in the table."""


@click.command(epilog=EXAMPLES)
@click.argument("documents", metavar="FILE", type=commands.INPUT_FILE)
@click.option(
    "--share",
    type=commands.Number(float, 0, 1, is_open=True),
    metavar="SHARE",
    default=0.2,
    help="Share of the words of each document that its summary may have, above 0 and up to 1.",
)
@commands.number_option("--min-documents", 2, "Smallest number of documents that a word must occur in.")
@commands.model_option("it summarises the documents of FILE, and nothing is learned.")
@commands.run_options(out="summaries", is_parallel=False)
def summarise(run: commands.CommandRun, documents: Path, model: Path | None, **options: Any) -> None:
    """Summarise documents by some of their sentences.

    FILE has a JSON object per line: "text" or a list "sentences", and perhaps a "summary" (text), a "label" (one of
    two) and an "id". If some lines have a summary, the model learns from those which sentences to choose. Otherwise it
    learns from the labels, and chooses the sentences that decide them. With --model, FILE may be raw text (.txt).

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
        run.write_report(folder, _page(summariser, data, found, model), summary, quality)
        run.record(documents=len(data.documents), held_out=summariser.held_out_)
    run.finish(summary, quality, f"open {run.out / 'report.html'}; all summaries are in {run.out / 'summaries.jsonl'}")


def _describe_quality(summariser: Any) -> str:
    if summariser.held_out_ is None:
        return "held-out quality unknown: too few documents to hold some out"
    scores = ", ".join(f"{name} {value:.3f}" for name, value in summariser.held_out_.items())
    return f"held-out {summariser.measure}: {scores}"


def _page(summariser: Any, data: Any, found: list[list[int]], model: Path | None) -> Page:
    from tacit.text.sentences.command import document_html
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
    gain = summariser.describe_gain() or "There are too few documents to hold some out: the quality is unknown."
    figures = [
        Figure(document_html(own, Decision("", 0.0, [Reason(t, 1.0, 1.0) for t in chosen])), name)
        for own, chosen, name in list(zip(data.documents, found, data.names, strict=True))[:SHOWN]
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
            Section("What was found", [Facts(facts)]),
            Section("Documents with their summaries marked", figures),
            Section("Summaries", [Table(columns, rows, caption)]),
        ],
        trust=[Prose(gain)] if model is None else [],
    )
