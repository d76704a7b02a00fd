"""``tacit tag``: learn tags of words from tagged sentences, and tag others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from tacit.commands import (
    INPUT_FILE,
    CommandRun,
    ask_option,
    c_option,
    choice_option,
    count_noun,
    examples,
    load_model,
    model_option,
    number_option,
    run_options,
    write_questions,
)
from tacit.data.lines import one_line
from tacit.data.text_files import TextReader
from tacit.report import Column, Facts, Figure, Page, Prose, Section, Table, confusion_chart

if TYPE_CHECKING:
    from tacit.text.raw_text import RawText
    from tacit.text.tagger import Tagger

MAX_CONFUSIONS = 15
"""Mistakes that the report lists, the most frequent ones."""

EXAMPLES = examples(
    "tacit tag train.tsv --predict new.txt --out tags",
    "tacit tag train.conllu --test dev.conllu --states 2",
    "tacit tag train.conll --token 1 --tag 4 --features 2 --unlabelled more.txt --gazetteer city=cities.txt",
    "tacit tag gestures.csv --sequence recording --states 2 --predict new.csv",
    "tacit tag --model tags/model.tacit --predict more.txt --out more",
)


@click.command(epilog=EXAMPLES)
@click.argument("train", type=INPUT_FILE, required=False)
@click.option(
    "--predict", "wanted", type=INPUT_FILE, help="Raw text (.txt), or words to tag, one per line; tags are ignored."
)
@click.option("--test", type=INPUT_FILE, help="Tagged sentences to test on; without it, a tenth of TRAIN is held out.")
@model_option("it tags the words of --predict, and nothing is learned.")
@number_option("--states", 1, "Number of hidden states per tag, from 1 to 64.", most=64)
@number_option("--epochs", 10, "Number of passes through all sentences.")
@c_option(0.1, of="of a sentence ")
@number_option("--min-count", 1, "Smallest number of times that a feature must occur in TRAIN.")
@click.option("--token", metavar="COLUMN", help="Column of the words, counted from 1, or its name in CoNLL-U files.")
@click.option("--tag", "tag_column", metavar="COLUMN", help="Column of the tags; without it, the last (CoNLL-U: upos).")
@click.option("--features", metavar="COLUMNS", help="More columns to use as features, separated by commas: 2,3.")
@click.option("--sequence", metavar="COLUMN", help="Of a .csv file: the column that tells sequences apart.")
@choice_option("--scheme", ["keep", "bio", "iobes"], "Scheme that tags of entities are converted to before learning.")
@click.option(
    "--unlabelled", type=INPUT_FILE, help="Text (.txt) or words without tags; clusters of its words become features."
)
@click.option("--gazetteer", multiple=True, metavar="TYPE=FILE", help="List of names, one per line; may be repeated.")
@ask_option("sentences of --predict to tag next")
@run_options(out="tags", is_parallel=False)
def tag(
    run: CommandRun,
    train: Path | None,
    wanted: Path | None,
    test: Path | None,
    model: Path | None,
    unlabelled: Path | None,
    gazetteer: tuple[str, ...],
    token: str | None,
    tag_column: str | None,
    features: str | None,
    sequence: str | None,
    n_asked: int | None,
    **options: Any,
) -> None:
    """Learn part-of-speech or entity tags from TRAIN, and tag other words.

    TRAIN has a word and its tag per line, separated by a tab or spaces, and an empty line after each sentence; of more
    columns the first and the last are read. Files named .conllu are read as CoNLL-U. A tag _ is missing.

    Tags of entities (B-person, I-person, O and so on) are recognised: whole entities are scored, and tags that cannot
    follow each other are never predicted.

    Raw text (--predict FILE.txt) is split into sentences and words by rules for languages with spaces between words. A
    .txt file with one word per line is read as words.

    Sequences of numbers, such as sensors and gestures: a .csv file with a header and one row per time step. The columns
    "tag" and "sequence" have the tags and the names of the sequences; other columns are numbers.

    Writes predictions.tsv for the words of --predict, and predictions.ann (stand-off) for raw text. Writes model.tacit,
    scores.tsv (and entities.tsv), report.html with scores per tag and a picture of the mistakes, and run.json. Files
    may be gzipped.
    """
    from tacit.text.tagger import Tagger

    if n_asked is not None and wanted is None:
        raise click.UsageError("--ask chooses among the sentences of --predict; give that, too")
    is_csv = _check_kinds([path for path in (train, test, wanted) if path is not None])
    columns: dict[str, Any] = {"features": _split(features) or None, "sequence": sequence}
    if is_csv:
        for name, value in (("--token", token), ("--unlabelled", unlabelled), ("--gazetteer", gazetteer)):
            if value:
                raise click.UsageError(f"{name} is for words, but a .csv file has numbers; leave it out")
        if n_asked is not None:
            raise click.UsageError("--ask is for words, but a .csv file has numbers; leave it out")
    else:
        if sequence is not None:
            raise click.UsageError("--sequence is for .csv files of numbers; name the file so, or leave it out")
        columns = {"token": _column("--token", token), "extra": [_column("--features", c) for c in _split(features)]}
    if model is not None:
        inputs = {"TRAIN": train, "--test": test, "--unlabelled": unlabelled, "--gazetteer": gazetteer}
        _tag_new(run, model, inputs, wanted, is_csv, lambda path: _read_new(path, tag_column, columns, is_csv))
        return
    if train is None:
        raise click.UsageError("Missing argument 'TRAIN': tagged sentences to learn from; or give --model")
    lists = _gazetteer_files(gazetteer)
    with run.writing(train, wanted, test, unlabelled, *lists.values()) as folder:
        known = _read_known(train, tag_column, columns, is_csv)
        tested = None if test is None else _read_known(test, tag_column, columns, is_csv)
        others = None if wanted is None else _read_new(wanted, tag_column, columns, is_csv)
        text = None if unlabelled is None else _read_words(unlabelled, {"token": columns["token"], "extra": []}).words
        _check_tags(known, str(train))
        if tested is not None:
            _check_tags(tested, str(test), 1)
        elif len(known.words) < 2:
            raise ValueError(f"{train} has only one sentence; add another to test on, or give --test")
        names = {kind: _read_names(path) for kind, path in lists.items()} or None
        tagger = Tagger(**options, gazetteers=names, random_state=run.seed, verbose=run.verbose)
        run.note(f"learning from {len(known.words)} sentences")
        scores = tagger.evaluate(known.words, known.tags, *(tested or ()), unlabelled=text)
        tagger.fit(known.words, known.tags, unlabelled=text)
        run.note_status(tagger.status_)
        tagger.save(folder.path("model.tacit"))
        folder.write_text("scores.tsv", _score_lines(scores))
        if scores.entities is not None:
            folder.write_text("entities.tsv", _entity_lines(scores.entities))
        if others is not None:
            _write_tags(folder, others, tagger)
            if n_asked is not None:
                asked = tagger.ask(others.words, n_asked, random_state=run.seed)
                words = [[own[0] if isinstance(own, tuple) else own for own in others.words[i]] for i in asked.rows]
                sentences = [f"{i + 1}: {' '.join(own)}" for i, own in zip(asked.rows, words, strict=True)]
                write_questions(folder, sentences, asked.usefulness, [" ".join(own) for own in asked.guesses])
        page = _page(tagger, scores, known, others, str(train), "" if test is None else str(test))
        n_words = 0 if others is None else sum(map(len, others.words))
        unit, group = ("time step", "sequence") if is_csv else ("word", "sentence")
        found = f"tags of {count_noun(n_words, unit)}, learned from {count_noun(len(known.words), group)}"
        quality = f"held-out {_describe_quality(scores, is_csv)}"
        run.write_report(folder, page, found, quality)
        run.record(accuracy=scores.accuracy, baseline=scores.baseline, sentences=len(known.words))
        if scores.entities is not None and scores.entity_baseline is not None:
            run.record(entity_f1=scores.entities.overall.f1, entity_baseline=scores.entity_baseline.overall.f1)
    then = "" if others else "; tag other words with --predict FILE"
    run.finish(found, quality, f"open {run.out / 'report.html'}{then}")


def _describe_quality(scores: Any, is_csv: bool = False) -> str:
    """F1 of entities where tags mark them, else accuracy; beside it the most frequent tag of each word."""
    if scores.entities is None:
        usual = "a logistic regression on each step" if is_csv else "the usual tag of each word"
        return f"accuracy {scores.accuracy:.1%} ({scores.baseline:.1%} with {usual})"
    own, usual = scores.entities.overall.f1, scores.entity_baseline.overall.f1
    return f"F1 of entities {own:.3f} ({usual:.3f} with the usual tag of each word)"


class Words(NamedTuple):
    """Sentences to tag; the text that they come from, or the names of sequences of numbers."""

    words: list[Any]
    raw: RawText | None = None
    names: list[str] | None = None


def _check_kinds(paths: list[Path]) -> bool:
    """Whether the files have numbers (.csv); refuse a mixture of numbers and words."""
    numbers, words = ([path for path in paths if _is_csv(path) is kind] for kind in (True, False))
    if numbers and words:
        raise click.UsageError(
            f"{numbers[0]} has sequences of numbers and {words[0]} has words; give files of one kind (numbers in .csv)"
        )
    return bool(numbers)


def _is_csv(path: Path) -> bool:
    return str(path).removesuffix(".gz").endswith(".csv")


def _read_known(path: Path, tag: str | None, columns: dict[str, Any], is_csv: bool) -> Any:
    """Words or time steps with their tags."""
    from tacit.text.steps import read_steps
    from tacit.text.tagged_words import read_tagged

    if is_csv:
        return read_steps(path, tag=tag, **columns)[0]
    return read_tagged(path, tag=_column("--tag", tag), **columns)


def _read_new(path: Path, tag: str | None, columns: dict[str, Any], is_csv: bool) -> Words:
    """What is tagged; a file of time steps need not have the column of tags."""
    from tacit.text.steps import read_steps

    if not is_csv:
        return _read_words(path, columns)
    found, names = read_steps(path, tag=tag, is_tagged=False, **columns)
    return Words(found.words, None, names)


def _read_words(path: Path, columns: dict[str, Any]) -> Words:
    """Read raw text, or columns; a .txt file with at most one word in every line, or with tabs, has columns."""
    from tacit.text.raw_text import has_columns, is_raw_text, read_raw_text
    from tacit.text.tagged_words import read_tagged

    if is_raw_text(path) and not has_columns(path):
        if columns["extra"]:
            raise ValueError(f"{path} is raw text, without the columns of --features; give a file that has them")
        raw = read_raw_text(path)
        return Words(raw.words, raw)
    return Words(read_tagged(path, **columns).words)


def _write_tags(folder: Any, others: Words, tagger: Tagger) -> list[Any]:
    """Tag words; write them in two columns, and for raw text the entities (or all words) by their characters."""
    from tacit.text.entities import find_entities, has_entities
    from tacit.text.raw_text import stand_off
    from tacit.text.steps import step_lines
    from tacit.text.tagged_words import two_columns

    tags = list(tagger.predict(others.words))
    if others.names is not None:
        folder.write_text("predictions.tsv", step_lines(others.names, tags))
        return tags
    words = [[token[0] if isinstance(token, tuple) else token for token in own] for own in others.words]
    folder.write_text("predictions.tsv", two_columns(words, tags))
    if others.raw is None:
        return tags
    named = has_entities(map(str, tagger.model_.classes_))
    found: list[tuple[int, int, str]] = []
    for spans, own in zip(others.raw.spans, tags, strict=True):
        kinds = list(map(str, own))
        parts = find_entities(kinds) if named else [(i, i + 1, kind) for i, kind in enumerate(kinds)]
        found += [(int(spans[first, 0]), int(spans[last - 1, 1]), kind) for first, last, kind in parts]
    folder.write_text("predictions.ann", stand_off(others.raw.text, found))
    return tags


def _split(columns: str | None) -> list[str]:
    return [] if columns is None else [column.strip() for column in columns.split(",")]


def _column(name: str, value: str | None) -> Any:
    """A column: a whole number, or a name."""
    if value is None:
        return None
    if not value:
        raise click.UsageError(f"{name} must name columns, such as 2,3 or upos, got an empty one")
    return int(value) if value.lstrip("-").isdecimal() else value


def _gazetteer_files(given: tuple[str, ...]) -> dict[str, Path]:
    """The files of --gazetteer by type."""
    found: dict[str, Path] = {}
    for text in given:
        kind, mark, path = text.partition("=")
        if not (kind and mark and path):
            raise click.UsageError(f"--gazetteer must be TYPE=FILE, such as city=cities.txt, got {text!r}")
        if kind in found:
            raise click.UsageError(f"--gazetteer has two files of the type {kind!r}; join them")
        found[kind] = INPUT_FILE.convert(path, click.Option(["--gazetteer"]), None)
    return found


def _read_names(path: Path) -> list[str]:
    names = [line.strip() for _, line in TextReader(path).lines() if line.strip()]
    if not names:
        raise ValueError(f"{path} is without names; give one per line")
    return names


def _tag_new(
    run: CommandRun,
    model: Path,
    inputs: dict[str, Any],
    wanted: Path | None,
    is_csv: bool,
    read: Callable[[Path], Words],
) -> None:
    """Tag words or time steps by the model of an earlier run."""
    from tacit.text.steps import StepFeatures
    from tacit.text.tagger import Tagger

    tagger = load_model(model, Tagger, inputs)
    if wanted is None:
        raise click.UsageError("--model must have words to tag; give --predict FILE")
    if isinstance(tagger.features_, StepFeatures) is not is_csv:
        kinds = ("words", "numbers of a .csv file") if is_csv else ("numbers of a .csv file", "words")
        raise ValueError(
            f"{model} tags {kinds[0]}, but {wanted} has {kinds[1]}; give the model of an earlier run on such"
        )
    with run.writing(model, wanted) as folder:
        others = read(wanted)
        words = others.words
        tags = _write_tags(folder, others, tagger)
        counts = Counter(tag for own in tags for tag in own)
        n_words = sum(counts.values())
        unit, group = ("time step", "sequence") if is_csv else ("word", "sentence")
        size = f"{count_noun(len(words), group)}, {count_noun(n_words, unit)}"
        facts = Facts([("tagged", f"{wanted}: {size}"), ("model", str(model))])
        rows = [(tag, count, f"{count / n_words:.1%}") for tag, count in counts.most_common()]
        heads = [Column("tag"), Column(f"{unit}s", True), Column("share", True)]
        sections = [Section("What was found", [facts]), Section("Tags", [Table(heads, rows)])]
        found, quality = f"tags of {count_noun(n_words, unit)}", f"quality: see the report beside {model}"
        run.write_report(folder, Page(f"Tags of {unit}s", size, sections=sections), found, quality)
        run.record(words=n_words, tags=dict(counts))
    run.finish(found, quality, f"open {run.out / 'predictions.tsv'}")


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
        columns,
        rows,
        f"Entities: one is right if all of its words and its type are. Mean F1 of types: {scores.macro_f1:.3f}.",
    )


def _page(tagger: Any, scores: Any, known: Any, others: Any, train: str, test: str) -> Any:
    n_words, n_tested = sum(map(len, known.words)), int(scores.confusion.sum())
    is_csv = _is_csv(Path(train))
    sentences, words = ("sequences", "time steps") if is_csv else ("sentences", "words")
    unknown = "the training data have all test words"
    if scores.n_unknown:
        unknown = f"{scores.unknown_accuracy:.2%} of {scores.n_unknown:,}"
    usual = "a logistic regression, each step by itself" if is_csv else "the most frequent tag per word"
    facts = Facts(
        [
            ("learned from", f"{train}: {len(known.words):,} {sentences}, {n_words:,} {words}"),
            (
                "tested on",
                f"{test or f'a tenth of the {sentences}, held out, before learning from all'}: {n_tested:,} {words}",
            ),
            ("accuracy", f"{scores.accuracy:.2%}"),
            (f"accuracy of {usual}", f"{scores.baseline:.2%}"),
            *([] if is_csv else [("accuracy on words not in the training data", unknown)]),
            ("hidden states per tag", tagger.states),
            *([] if tagger.clusters_ is None else [("words with clusters", f"{tagger.clusters_.words_.size:,}")]),
            *(("gazetteer", f"{kind}: {len(names):,} names") for kind, names in (tagger.gazetteers or {}).items()),
            ("predictions", "none" if others is None else f"predictions.tsv, {sum(map(len, others.words)):,} {words}"),
        ]
    )
    columns = [
        Column("tag"),
        Column(words, True),
        Column("precision", True, f"share of the {words} with this predicted tag that are right"),
        Column("recall", True, f"share of the {words} with this true tag that are right"),
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
        f"Tags of {words}",
        sections=[Section("What was found", [facts])],
        trust=[
            *([] if scores.entities is None else [_entity_table(scores.entities)]),
            Table(columns, scores.per_tag(), f"Tag by tag, on {words} that were not used to learn."),
            picture,
            listed if mistakes else Prose("There are no mistakes."),
        ],
    )
