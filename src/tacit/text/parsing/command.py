"""``tacit parse``: learn trees of sentences from bracketed trees, and parse other sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from markupsafe import Markup, escape

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
from tacit.report import Column, Facts, Figure, Page, Prose, Section, Table
from tacit.text.parsing.brackets import (
    MAX_WORDS,
    Node,
    count_words,
    format_tree,
    list_leaves,
    list_spans,
    parse_tree,
    read_trees,
)
from tacit.text.parsing.scores import parse_scores

MAX_DRAWN, MAX_DRAWN_WORDS = 10, 30
"""Sentences that a report draws, and the words of the longest."""

LETTER, ROW, GAP = 8, 34, 10
"""Pixels per letter, per level, and between words."""

WRONG = "fill: #c2410c; font-weight: 700"
"""How a mistake is written."""

MAX_NAME = 18
"""Letters of a word that are shown."""

EXAMPLES = examples(
    "tacit parse train.ptb --predict new.conllu --out trees",
    "tacit parse a.ptb b.ptb --test c.ptb --states 2",
    "tacit parse --model trees/model.tacit --predict more.txt --out more",
)


@click.command(epilog=EXAMPLES)
@click.argument("train", type=INPUT_FILE, nargs=-1)
@click.option("--predict", "wanted", type=INPUT_FILE, help="Sentences to parse: words, or words and tags, or trees.")
@click.option("--test", type=INPUT_FILE, help="Trees to test on; without it, a tenth of TRAIN is held out.")
@model_option("it parses the sentences of --predict, and nothing is learned.")
@number_option("--states", 2, "Number of hidden sub-categories per category, from 1 to 64.", most=64)
@number_option("--max-iter", 40, "Number of steps, each about one pass through all sentences.")
@c_option(0.3, of="of a sentence ")
@run_options(out="trees", is_parallel=False)
def parse(
    run: CommandRun,
    train: tuple[Path, ...],
    wanted: Path | None,
    test: Path | None,
    model: Path | None,
    **options: Any,
) -> None:
    """Learn phrase-structure trees from TRAIN, and parse other sentences.

    TRAIN are files of bracketed trees (Penn treebank): (S (NP (PRP it)) (VP (VBZ rains))). Functions of labels, such as
    in NP-SBJ, and empty elements are left out.

    --predict has a word and its tag per line and an empty line after each sentence; a word alone is tagged first. Of
    files named .conllu the fifth column is the tag. Of files named .ptb, words and tags of the trees are read. Files
    named .txt without such lines have running text, which is split into sentences and words.

    Writes trees.ptb for the sentences of --predict, model.tacit, scores.tsv, report.html with drawn trees, and
    run.json. Files may be gzipped.
    """
    from tacit.text.parsing.parser import Parser

    if model is not None:
        _parse_new(run, model, train, wanted)
        return
    if not train:
        raise click.UsageError("Missing argument 'TRAIN': bracketed trees to learn from; or give --model")
    with run.writing(*train, wanted, test) as folder:
        known = [tree for path in train for tree in read_trees(path)]
        tested = None if test is None else read_trees(test)
        sentences = None if wanted is None else read_sentences(wanted)
        if tested is None and len(known) < 2:
            raise ValueError(f"{train[0]} has only one tree; add another to test on, or give --test")
        parser = Parser(**options, random_state=run.seed, verbose=run.verbose)
        run.note(f"learning from {len(known)} trees")
        held_out = parser.evaluate(known) if tested is None else None
        parser.fit(known)
        found = held_out or parser.compare(tested)
        run.note_status(parser.status_)
        parser.save(folder.path("model.tacit"))
        folder.write_text("scores.tsv", _score_lines(found.scores))
        others = None if sentences is None else _parse_to_file(folder, parser, sentences)
        names = ", ".join(map(str, train))
        parsed = f"trees of {count_noun(0 if others is None else len(others.trees), 'sentence')}, "
        summary = f"{parsed}learned from {count_noun(len(known), 'tree')}"
        quality = f"held-out {_quality(found)}"
        run.write_report(folder, _page(parser, found, len(known), names, test, others), summary, quality)
        overall = found.scores.overall
        run.record(f1=overall.f1, precision=overall.precision, recall=overall.recall, trees=len(known))
    then = "" if others else "; parse other sentences with --predict FILE"
    run.finish(summary, quality, f"open {run.out / 'report.html'}{then}")


def read_sentences(path: Path) -> list[Any]:
    """Sentences of a file: lists of words, or of pairs (word, tag) where all words of a sentence have a tag."""
    from tacit.text.parsing.parser import read_leaves
    from tacit.text.raw_text import has_columns, is_raw_text, read_raw_text
    from tacit.text.tagged_words import read_conllu, read_two_columns

    name = path.name.removesuffix(".gz")
    if is_raw_text(path) and not has_columns(path):
        return _check_lengths(path, list(read_raw_text(path).words))
    if name.endswith(".ptb"):
        return [read_leaves(tree, f"{path}, tree {i}") for i, tree in enumerate(read_trees(path), 1)]
    found = read_conllu(path, tag="xpos") if name.endswith(".conllu") else read_two_columns(path)
    pairs = zip(found.words, found.tags, strict=True)
    tagged = [words if None in tags else list(zip(words, tags, strict=True)) for words, tags in pairs]
    return _check_lengths(path, tagged)


def _check_lengths(path: Path, sentences: list[Any]) -> list[Any]:
    """These sentences, unless one is too long for any parser."""
    for i, own in enumerate(sentences, 1):
        if len(own) > MAX_WORDS:
            raise ValueError(f"{path}, sentence {i}, has {len(own)} words, at most {MAX_WORDS} can be parsed; split it")
    return sentences


def _parse_new(run: CommandRun, model: Path, train: tuple[Path, ...], wanted: Path | None) -> None:
    """Parse sentences by the model of an earlier run."""
    from tacit.text.parsing.parser import Parser

    parser = load_model(model, Parser, {"TRAIN": train or None})
    if wanted is None:
        raise click.UsageError("--model must have sentences to parse; give --predict FILE")
    with run.writing(model, wanted) as folder:
        found = _parse_to_file(folder, parser, read_sentences(wanted))
        trees = found.trees
        facts = Facts([("sentences of", f"{wanted}: {len(trees):,}"), ("model", str(model)), *_fallbacks(found)])
        short = [node for node in map(parse_tree, trees) if count_words(node) <= MAX_DRAWN_WORDS][:MAX_DRAWN]
        drawn = [Figure(draw_tree(node)) for node in short]
        sections = [Section("What was found", [facts]), Section("First trees", drawn)]
        summary, quality = f"trees of {count_noun(len(trees), 'sentence')}", f"quality: see the report beside {model}"
        run.write_report(folder, Page("Trees", f"{len(trees):,} sentences", sections=sections), summary, quality)
        run.record(sentences=len(trees), in_fragments=len(found.fragments), new_tags=found.new_tags)
    run.finish(summary, quality, f"open {run.out / 'trees.ptb'}")


def _parse_to_file(folder: Any, parser: Any, sentences: list[Any]) -> Any:
    """Parse sentences, and write their trees."""
    found = parser.parse(sentences)
    folder.write_text("trees.ptb", "".join(f"{tree}\n" for tree in found.trees))
    return found


def _fallbacks(found: Any) -> list[tuple[str, str]]:
    """What a report tells of sentences that the training trees do not cover."""
    n, facts = len(found.fragments), []
    if n:
        facts.append(("in fragments", f"{count_noun(n, 'sentence')}: no rules cover the whole, so it is cut"))
    if found.new_tags:
        facts.append(("new tags", f"{', '.join(found.new_tags)}: read as the most frequent tag"))
    return facts


def _quality(found: Any) -> str:
    scores, usual = found.scores, parse_scores(found.true, [_branch_right(tree) for tree in found.true]).overall.f1
    exact = f"{scores.exact:.1%} of the trees exactly right"
    return f"labelled F1 {scores.overall.f1:.3f} ({usual:.3f} when every phrase goes on to the end), {exact}"


def _branch_right(tree: str) -> str:
    """The words of a tree below the simplest one: every phrase is a word and the phrase of all words after it."""
    node = parse_tree(tree)
    *leaves, last = map(format_tree, list_leaves(node))
    for leaf in reversed(leaves):
        last = f"({node[0]} {leaf} {last})"
    return last


def _score_lines(scores: Any) -> str:
    """Scores by category, all together first; a share of nothing is left empty."""
    lines = ["category\ttrue\tpredicted\tright\tprecision\trecall\tf1\n"]
    for own in (scores.overall, *scores.by_label):
        shares = ("" if v != v else f"{v:.4f}" for v in (own.precision, own.recall, own.f1))
        lines.append("\t".join([own.label, *map(str, own[1:]), *shares]) + "\n")
    return "".join(lines)


def _page(parser: Any, found: Any, n_trees: int, train: str, test: Path | None, others: Any) -> Page:
    scores = found.scores
    facts = Facts(
        [
            ("learned from", f"{train}: {n_trees:,} trees"),
            ("tested on", f"{test or 'a tenth of the trees, held out'}: {len(found.true):,} trees, words without tags"),
            ("labelled F1", f"{scores.overall.f1:.4f}"),
            ("exactly right", f"{scores.exact:.1%}"),
            ("spans within reach", f"{found.reachable:.1%}: the grammar and the coarse pass leave them"),
            ("hidden sub-categories per category", parser.states),
            ("predictions", "none" if others is None else f"trees.ptb, {len(others.trees):,} trees"),
            *([] if others is None else _fallbacks(others)),
        ]
    )
    columns = [Column("category")]
    columns += [Column(name, True) for name in ("true", "predicted", "right", "precision", "recall", "F1")]
    rows = [(own.label, *own[1:], own.precision, own.recall, own.f1) for own in (scores.overall, *scores.by_label)]
    legend = "Labelled spans by the rules of evalb: without punctuation and without the outermost bracket."
    figures: list[Any] = []
    quality = scores.sentence_f1()
    mistakes = scores.counts[:, 0] + scores.counts[:, 1] - 2 * scores.counts[:, 2]
    for i in np.argsort(-mistakes, kind="stable").tolist():
        true, guess = parse_tree(found.true[i]), parse_tree(found.predicted[i])
        if count_words(true) > MAX_DRAWN_WORDS or len(figures) >= 2 * MAX_DRAWN or mistakes[i] == 0:
            continue
        spans = [frozenset(list_spans(node)[0]) for node in (true, guess)]
        figures.append(
            Figure(
                draw_tree(guess, spans[1] - spans[0]),
                f"Predicted: {mistakes[i]} wrong or missed spans, F1 {quality[i]:.2f}.",
            )
        )
        figures.append(Figure(draw_tree(true, spans[0] - spans[1]), "True."))
    note = Prose(
        "The most mistakes first. Wrong categories of a predicted tree and missed ones of a true tree are in orange. "
        f"Sentences of more than {MAX_DRAWN_WORDS} words are not drawn."
    )
    return Page(
        "Trees of sentences",
        sections=[Section("What was found", [facts])],
        trust=[Table(columns, rows, legend), *([note, *figures] if figures else [Prose("There are no mistakes.")])],
    )


def draw_tree(tree: Node, wrong: frozenset[tuple[str, int, int]] = frozenset()) -> Markup:
    """A tree as SVG in its own size, which scrolls; labelled spans in ``wrong`` are in the colour of mistakes. Words
    are below their brackets, so that no lines cross.

    >>> "<svg" in draw_tree(parse_tree("(NP (DT a) (NN dog))"))
    True
    """
    parts: list[str] = []
    state = {"x": float(GAP), "word": 0}

    def text(x: float, y: float, content: str, style: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" style="{style}">{escape(content)}</text>'

    def line(x1: float, y1: float, x2: float, y2: float) -> str:
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        return f'<line {ends} stroke="currentColor" stroke-opacity="0.4"/>'

    def visit(node: Node, level: int, letters: int = 0) -> tuple[float, float]:
        # letters: of the longest label of the chain above
        y = ROW * level
        letters = max(letters, len(node.label))
        if node.word is not None:
            word = node.word if len(node.word) <= MAX_NAME else node.word[: MAX_NAME - 1] + "…"
            width = LETTER * max(len(word), letters) + GAP
            x = state["x"] + width / 2
            state["x"] += width
            state["word"] += 1
            parts.append(text(x, y, node.label))
            parts.append(text(x, y + 16, word, "font-weight: 600"))
            return x, y
        first = int(state["word"])
        letters = letters if len(node.children) == 1 else 0
        ends = [visit(child, level + 1, letters) for child in node.children]
        x = (ends[0][0] + ends[-1][0]) / 2
        parts.extend(line(x, y + 4, a, b - 12) for a, b in ends)
        is_wrong = (node.label, first, int(state["word"])) in wrong
        parts.append(text(x, y, node.label, WRONG if is_wrong else ""))
        return x, y

    visit(tree, 1)
    width, height = state["x"] + GAP, ROW * _depth(tree)
    title = f"tree of {count_words(tree)} words"
    return Markup(
        f'<div style="overflow-x: auto"><svg viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" '
        f'role="img" aria-label="{title}">{"".join(parts)}</svg></div>'
    )


def _depth(node: Node) -> int:
    return 2 if node.word is not None else 1 + max(map(_depth, node.children))
