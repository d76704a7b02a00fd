"""``tacit tag``: learn tags of words from tagged sentences, and tag others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit.commands.options import INPUT_FILE, run_options
from tacit.commands.run import INTERRUPTED, CommandRun

MAX_CONFUSIONS = 15
"""Mistakes that the report lists, the most frequent ones."""

EXAMPLES = """\b
Examples:
  tacit tag train.tsv --predict new.txt --out tags
  tacit tag train.conllu --test dev.conllu --states 2
"""


@click.command(epilog=EXAMPLES)
@click.argument("train", type=INPUT_FILE)
@click.option("--predict", "wanted", type=INPUT_FILE, help="Words to tag; a second column is not looked at.")
@click.option("--test", type=INPUT_FILE, help="Tagged sentences to test on; without it, a tenth of TRAIN is held out.")
@click.option("--states", type=click.IntRange(1, 64), default=1, show_default=True, help="Hidden states per tag.")
@click.option("--epochs", type=click.IntRange(1), default=10, show_default=True, help="Passes over the sentences.")
@click.option("--c", "C", type=click.FloatRange(0, min_open=True), default=0.1, show_default=True,
              help="Weight of a sentence's loss.")  # fmt: skip
@click.option("--min-count", type=click.IntRange(1), default=1, show_default=True,
              help="How often a feature must occur.")  # fmt: skip
@run_options(out="tags")
def tag(
    run: CommandRun, train: Path, wanted: Path | None, test: Path | None, states: int, epochs: int, C: float,
    min_count: int,
) -> None:  # fmt: skip
    """Learn the tags of words from TRAIN, and tag other words.

    TRAIN has a word and its tag per line and an empty line after each sentence, or is CoNLL-U (named .conllu).

    Writes predictions.tsv for the words of --predict, model.tacit, scores.tsv, report.html with scores per tag and a
    picture of the mistakes, and run.json. Files may be gz.
    """
    from tacit.apps.tagger import Tagger
    from tacit.datasets import read_tagged
    from tacit.datasets.tagged_words import two_columns
    from tacit.report import render
    from tacit.running import Status

    inputs = [path for path in (train, wanted, test) if path is not None]
    with run.writing(*inputs) as folder:
        known = read_tagged(train)
        others = None if wanted is None else read_tagged(wanted)
        tested = None if test is None else read_tagged(test)
        tagger = Tagger(states, C, epochs, min_count, random_state=run.seed, verbose=run.verbose)
        run.note(f"learning from {len(known.words)} sentences")
        scores = tagger.evaluate(*known, *(() if tested is None else tested))
        tagger.fit(*known)
        if tagger.status_ is Status.INTERRUPTED:
            run.status = INTERRUPTED
        tagger.save(folder.path("model.tacit"))
        folder.write_text("scores.tsv", _score_lines(scores))
        if others is not None:
            folder.write_text("predictions.tsv", two_columns(others.words, list(tagger.predict(others.words))))
        page = _page(tagger, scores, known, others, str(train), "" if test is None else str(test))
        folder.write_text("report.html", render(page))
        run.record(accuracy=scores.accuracy, baseline=scores.baseline, sentences=len(known.words))
    run.say(f"{scores.accuracy:.1%} of the held-out tags are right: open {run.out / 'report.html'}")


def _score_lines(scores: Any) -> str:
    rows = [f"{tag}\t{count}\t{p:.4f}\t{r:.4f}\t{f1:.4f}\n" for tag, count, p, r, f1 in scores.per_tag()]
    return "tag\tcount\tprecision\trecall\tf1\n" + "".join(rows)


def _page(tagger: Any, scores: Any, known: Any, others: Any, train: str, test: str) -> Any:
    import numpy as np

    from tacit.report import Column, Facts, Figure, Page, Section, Table
    from tacit.report.confusion_chart import confusion_chart

    n_words = sum(map(len, known.words))
    facts = Facts(
        [
            ("learned from", f"{train}: {len(known.words):,} sentences, {n_words:,} words"),
            ("tested on", test or "a tenth of the sentences, held out, before learning from all"),
            ("right tags", f"{scores.accuracy:.2%}"),
            ("the usual tag of each word would get", f"{scores.baseline:.2%}"),
            ("right among words never seen", f"{scores.unknown_accuracy:.2%} of {scores.n_unknown:,}"),
            ("hidden states per tag", tagger.states),
            ("tagged", "nothing" if others is None else f"predictions.tsv, {sum(map(len, others.words)):,} words"),
        ]
    )
    names = ["precision", "recall", "F1"]
    meanings = [
        "share of right ones among those called so",
        "share found of those that are so",
        "harmonic mean of both",
    ]
    columns = [Column("tag"), Column("words", True)]
    columns += [Column(name, True, meaning) for name, meaning in zip(names, meanings, strict=True)]
    wrong = scores.confusion.copy()
    np.fill_diagonal(wrong, 0)
    places = np.argsort(-wrong, axis=None, kind="stable")[:MAX_CONFUSIONS]
    pairs = [np.unravel_index(place, wrong.shape) for place in places]
    mistakes = [(scores.tags[i], scores.tags[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]]
    listed = Table([Column("true tag"), Column("called"), Column("times", True)], mistakes)
    picture = Figure(confusion_chart(scores.tags, scores.confusion), "Rows: the true tag. Columns: what it was called.")
    return Page(
        "Tags of words",
        f"{scores.accuracy:.1%} of held-out tags are right",
        sections=[
            Section("In short", [facts]),
            Section("Tag by tag", [Table(columns, scores.per_tag())]),
            Section("Mistakes", [picture, listed]),
        ],
    )
