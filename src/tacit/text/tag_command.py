"""``tacit tag``: learn tags of words from tagged sentences, and tag others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np

from tacit.commands import (
    INPUT_FILE,
    CommandRun,
    c_option,
    count_noun,
    examples,
    load_model,
    model_option,
    number_option,
    run_options,
)
from tacit.data.lines import one_line
from tacit.report import Column, Facts, Figure, Page, Prose, Section, Table, confusion_chart, render

MAX_CONFUSIONS = 15
"""Mistakes that the report lists, the most frequent ones."""

EXAMPLES = examples(
    "tacit tag train.tsv --predict new.txt --out tags",
    "tacit tag train.conllu --test dev.conllu --states 2",
    "tacit tag --model tags/model.tacit --predict more.txt --out more",
)


@click.command(epilog=EXAMPLES)
@click.argument("train", type=INPUT_FILE, required=False)
@click.option("--predict", "wanted", type=INPUT_FILE, help="Words to tag, one per line; a second column is ignored.")
@click.option("--test", type=INPUT_FILE, help="Tagged sentences to test on; without it, a tenth of TRAIN is held out.")
@model_option("it tags the words of --predict, and nothing is learned.")
@number_option("--states", 1, "Number of hidden states per tag, from 1 to 64.", most=64)
@number_option("--epochs", 10, "Number of passes through all sentences.")
@c_option(0.1, of="of a sentence ")
@number_option("--min-count", 1, "Smallest number of times that a feature must occur in TRAIN.")
@run_options(out="tags", is_parallel=False)
def tag(
    run: CommandRun, train: Path | None, wanted: Path | None, test: Path | None, model: Path | None, **options: Any
) -> None:
    """Learn part-of-speech or entity tags from TRAIN, and tag other words.

    TRAIN has a word and its tag per line, separated by a tab or spaces, and an empty line after each sentence; of more
    columns the first and the last are read. Files named .conllu are read as CoNLL-U. A tag _ is missing.

    Tags of entities (B-person, I-person, O and so on) are recognised: whole entities are scored, and tags that cannot
    follow each other are never predicted.

    Writes predictions.tsv for the words of --predict, model.tacit, scores.tsv (and entities.tsv), report.html with
    scores per tag and a picture of the mistakes, and run.json. Files may be gzipped.
    """
    from tacit.text.tagged_words import read_tagged, two_columns
    from tacit.text.tagger import Tagger

    if model is not None:
        _tag_new(run, model, train, wanted)
        return
    if train is None:
        raise click.UsageError("Missing argument 'TRAIN': tagged sentences to learn from; or give --model")
    with run.writing(train, wanted, test) as folder:
        known = read_tagged(train)
        others = None if wanted is None else read_tagged(wanted)
        tested = None if test is None else read_tagged(test)
        _check_tags(known, str(train))
        if tested is not None:
            _check_tags(tested, str(test), 1)
        elif len(known.words) < 2:
            raise ValueError(f"{train} has only one sentence; add another to test on, or give --test")
        tagger = Tagger(**options, random_state=run.seed, verbose=run.verbose)
        run.note(f"learning from {len(known.words)} sentences")
        scores = tagger.evaluate(*known, *(() if tested is None else tested))
        tagger.fit(*known)
        run.note_status(tagger.status_)
        tagger.save(folder.path("model.tacit"))
        folder.write_text("scores.tsv", _score_lines(scores))
        if scores.entities is not None:
            folder.write_text("entities.tsv", _entity_lines(scores.entities))
        if others is not None:
            folder.write_text("predictions.tsv", two_columns(others.words, list(tagger.predict(others.words))))
        page = _page(tagger, scores, known, others, str(train), "" if test is None else str(test))
        folder.write_text("report.html", render(page))
        run.record(accuracy=scores.accuracy, baseline=scores.baseline, sentences=len(known.words))
        if scores.entities is not None and scores.entity_baseline is not None:
            run.record(entity_f1=scores.entities.overall.f1, entity_baseline=scores.entity_baseline.overall.f1)
    n_words = 0 if others is None else sum(map(len, others.words))
    found = f"tags of {count_noun(n_words, 'word')}, learned from {count_noun(len(known.words), 'sentence')}"
    quality = f"held-out {_describe_quality(scores)}"
    then = "" if others else "; tag other words with --predict FILE"
    run.finish(found, quality, f"open {run.out / 'report.html'}{then}")


def _describe_quality(scores: Any) -> str:
    """F1 of entities where tags mark them, else accuracy; beside it the most frequent tag of each word."""
    if scores.entities is None:
        return f"accuracy {scores.accuracy:.1%} ({scores.baseline:.1%} with the usual tag of each word)"
    own, usual = scores.entities.overall.f1, scores.entity_baseline.overall.f1
    return f"F1 of entities {own:.3f} ({usual:.3f} with the usual tag of each word)"


def _tag_new(run: CommandRun, model: Path, train: Path | None, wanted: Path | None) -> None:
    """Tag words by the model of an earlier run."""
    from tacit.text.tagged_words import read_tagged, two_columns
    from tacit.text.tagger import Tagger

    tagger = load_model(model, Tagger, {"TRAIN": train})
    if wanted is None:
        raise click.UsageError("--model must have words to tag; give --predict FILE")
    with run.writing(model, wanted) as folder:
        words = read_tagged(wanted).words
        tags = list(tagger.predict(words))
        folder.write_text("predictions.tsv", two_columns(words, tags))
        counts = Counter(tag for own in tags for tag in own)
        n_words = sum(counts.values())
        facts = Facts([("words of", f"{wanted}: {len(words):,} sentences, {n_words:,} words"), ("model", str(model))])
        rows = [(tag, count, f"{count / n_words:.1%}") for tag, count in counts.most_common()]
        columns = [Column("tag"), Column("words", True), Column("share", True)]
        note = Prose("Nothing was learned in this run. The report of the run that learned the model has its quality.")
        sections = [Section("What was found", [facts, note]), Section("Tags", [Table(columns, rows)])]
        folder.write_text("report.html", render(Page("Tags of words", f"{n_words:,} words", sections=sections)))
        run.record(words=n_words, tags=dict(counts))
    found = f"tags of {count_noun(n_words, 'word')}"
    run.finish(found, f"quality: see the report beside {model}", f"open {run.out / 'predictions.tsv'}")


def _check_tags(sentences: Any, name: str, least: int = 2) -> None:
    """Refuse a file with too few different tags."""
    kinds = {tag for tags in sentences.tags for tag in tags if tag is not None}
    if len(kinds) >= least:
        return
    found = f"only one tag, {kinds.pop()}," if kinds else "no tags"
    raise ValueError(
        f"{name} has {found} in {sum(map(len, sentences.words)):,} words; write a word and its tag on every line, "
        "separated by a tab or spaces, with at least two different tags. CoNLL-U files must be named .conllu"
    )


def _score_lines(scores: Any) -> str:
    """Scores per tag; a precision or recall of nothing is left empty."""
    lines = ["tag\tcount\tprecision\trecall\tf1\n"]
    for tag, count, *shares in scores.per_tag():
        lines.append("\t".join([one_line(tag), str(count), *("" if v != v else f"{v:.4f}" for v in shares)]) + "\n")
    return "".join(lines)


def _entity_lines(scores: Any) -> str:
    """Scores by type of entity, all types together first."""
    lines = ["type\ttrue\tpredicted\tright\tprecision\trecall\tf1\n"]
    for own in (scores.overall, *scores.by_kind):
        shares = (f"{share:.4f}" for share in (own.precision, own.recall, own.f1))
        lines.append("\t".join([one_line(own.kind), *map(str, own[1:]), *shares]) + "\n")
    return "".join(lines)


def _entity_table(scores: Any) -> Table:
    """Scores by type of entity; an entity is right if all of its words and its type are."""
    columns = [Column("type")]
    columns += [Column(name, True) for name in ("true", "predicted", "right", "precision", "recall", "F1")]
    rows = [(own.kind, *own[1:], own.precision, own.recall, own.f1) for own in (scores.overall, *scores.by_kind)]
    return Table(
        columns, rows, f"An entity is right if all of its words and its type are. Mean F1: {scores.macro_f1:.3f}."
    )


def _page(tagger: Any, scores: Any, known: Any, others: Any, train: str, test: str) -> Any:
    n_words, n_tested = sum(map(len, known.words)), int(scores.confusion.sum())
    facts = Facts(
        [
            ("learned from", f"{train}: {len(known.words):,} sentences, {n_words:,} words"),
            (
                "tested on",
                f"{test or 'a tenth of the sentences, held out, before learning from all'}: {n_tested:,} words",
            ),
            ("accuracy", f"{scores.accuracy:.2%}"),
            ("accuracy of the most frequent tag per word", f"{scores.baseline:.2%}"),
            (
                "accuracy on words not in the training data",
                f"{scores.unknown_accuracy:.2%} of {scores.n_unknown:,}"
                if scores.n_unknown
                else "the training data have all test words",
            ),
            ("hidden states per tag", tagger.states),
            ("predictions", "none" if others is None else f"predictions.tsv, {sum(map(len, others.words)):,} words"),
        ]
    )
    columns = [
        Column("tag"),
        Column("words", True),
        Column("precision", True, "share of the words with this predicted tag that are right"),
        Column("recall", True, "share of the words with this true tag that are right"),
        Column("F1", True, "harmonic mean of precision and recall"),
    ]
    wrong = scores.confusion.copy()
    np.fill_diagonal(wrong, 0)
    positions = np.argsort(-wrong, axis=None, kind="stable")[:MAX_CONFUSIONS]
    pairs = [np.unravel_index(position, wrong.shape) for position in positions]
    mistakes = [(scores.tags[i], scores.tags[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]]
    listed: Any = Table([Column("true tag"), Column("predicted"), Column("times", True)], mistakes)
    legend = "Rows: true tags. Columns: predicted tags. Blue is right, orange wrong; a darker cell is more of its row."
    picture = Figure(confusion_chart(scores.tags, scores.confusion), legend)
    return Page(
        "Tags of words",
        f"Held-out {_describe_quality(scores)}",
        sections=[
            Section("What was found", [facts]),
            *([] if scores.entities is None else [Section("Entities", [_entity_table(scores.entities)])]),
            Section("Tag by tag", [Table(columns, scores.per_tag())]),
            Section("Mistakes", [picture, listed if mistakes else Prose("There are no mistakes.")]),
        ],
    )
