"""``tacit reasons``: labels of documents, and the sentences that decide them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from tacit.commands import INPUT_FILE, INTERRUPTED, CommandRun, run_options

EXAMPLES = """\b
Examples:
  tacit reasons reviews.jsonl --out reasons
  tacit reasons reviews.jsonl.gz --share 0.1 --budget words
"""


@click.command(epilog=EXAMPLES)
@click.argument("documents", metavar="FILE", type=INPUT_FILE)
@click.option(
    "--share", type=click.FloatRange(0, 1, min_open=True), default=0.3, show_default=True, help="Of each document."
)
@click.option(
    "--budget",
    type=click.Choice(["sentences", "words"]),
    default="sentences",
    show_default=True,
    help="What is shared.",
)
@click.option(
    "--c", "C", type=click.FloatRange(0, min_open=True), default=100.0, show_default=True, help="Weight of the loss."
)
@click.option("--min-documents", type=click.IntRange(1), default=2, show_default=True, help="That a word occurs in.")
@run_options(out="reasons")
def reasons(run: CommandRun, documents: Path, **options: Any) -> None:
    """Find the sentences that decide the labels of documents.

    FILE has a JSON object per line: "text" or a list "sentences", a "label" (one of two), perhaps an "id"; it may be
    gzipped. Lines without a label are not learned from, but get reasons too. Writes report.html, reasons.jsonl (what is
    predicted for each document, and the chosen sentences with their scores), model.tacit and run.json.
    """
    from tacit.report import render
    from tacit.runtime import Status
    from tacit.text.sentences.finder import ReasonFinder
    from tacit.text.sentences.inputs import read_document_file
    from tacit.text.sentences.page import reasons_page

    finder = ReasonFinder(**options, random_state=run.seed, n_jobs=run.jobs, verbose=run.verbose)
    finder.check_parameters()
    with run.writing(documents) as folder:
        data = read_document_file(documents)
        known = [i for i, label in enumerate(data.labels) if label is not None]
        if not known:
            raise ValueError(f"{documents}: no line has a label, so there is nothing to learn from")
        run.note(f"{len(data.documents)} documents: learning")
        finder.fit([data.documents[i] for i in known], [data.labels[i] for i in known])
        if finder.status_ is Status.INTERRUPTED:
            run.status = INTERRUPTED
        found = finder.reasons(data.documents)
        folder.write_text("reasons.jsonl", "".join(_line(data, i, decision) for i, decision in enumerate(found)))
        finder.save(folder.path("model.tacit"))
        command = ["tacit", *sys.argv[1:]] if Path(sys.argv[0]).stem in ("tacit", "__main__") else []
        folder.write_text("report.html", render(reasons_page(finder, data, found, command=command)))
        run.record(documents=len(data.documents), labelled=len(known), held_out=finder.held_out_)
    if finder.held_out_ is not None:
        told = ", ".join(f"{name} {value:.3f}" for name, value in finder.held_out_.items())
        run.say(f"held-out accuracy: {told}")
    run.say(f"reasons of {len(found)} documents: open {run.out / 'report.html'}")


def _line(data: Any, i: int, decision: Any) -> str:
    """One document as a line of JSON."""
    content = {
        "id": data.names[i],
        "label": data.labels[i],
        "predicted": str(decision.label),
        "margin": decision.margin,
        "reasons": [
            {"sentence": reason.place, "score": reason.score, "text": data.documents[i][reason.place]}
            for reason in decision.reasons
        ],
    }
    return json.dumps(content, ensure_ascii=False) + "\n"
