"""``tacit coref``: coreference resolution, learned from texts with clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from markupsafe import Markup, escape

from tacit.commands import (
    INPUT_FILE,
    RECORD,
    Choice,
    CommandRun,
    choice_option,
    count_noun,
    examples,
    load_model,
    model_option,
    number_option,
    run_options,
)
from tacit.data.arrays import Array
from tacit.report import Column, Facts, Figure, Notice, Page, Prose, Section, Table
from tacit.text.documents import Document
from tacit.text.raw_text import RawText, is_raw_text, read_raw_text, stand_off

if TYPE_CHECKING:
    from tacit.text.coreference.resolver import CoreferenceResolver, Link

EXAMPLES = examples(
    "tacit coref train/*.conll --predict new.conll --out who",
    "tacit coref train/*.conll --predict new/*.conll --out who --learner perceptron",
    "tacit coref train/*.conll --mentions auto --predict new.txt --out who",
    "tacit coref --model who/model.tacit --predict more.conll --out more",
)

MODEL = "model.tacit"
REPORT = "report.html"


class ManyValues(click.Command):
    """A command whose option ``--predict`` takes all values that follow it, as shells expand ``new/*.conll``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        expanded: list[str] = []
        is_open = False
        for position, argument in enumerate(args):
            if argument == "--":
                expanded += args[position:]
                break
            if argument.startswith("-"):
                is_open = argument == "--predict"
                expanded += [] if is_open else [argument]
            else:
                expanded += ["--predict", argument] if is_open else [argument]
            is_last = position == len(args) - 1
            if is_open and argument == "--predict" and (is_last or args[position + 1].startswith("-")):
                raise click.UsageError("--predict must have one or more files to resolve, got none", ctx)
        return super().parse_args(ctx, expanded)


@click.command(cls=ManyValues, epilog=EXAMPLES)
@click.argument("train", type=INPUT_FILE, nargs=-1)
@click.option(
    "--predict",
    type=INPUT_FILE,
    multiple=True,
    required=True,
    help="One or more files to resolve: CoNLL-2012, or raw text.",
)
@click.option(
    "--mentions",
    type=Choice(["gold", "auto"]),
    help="Resolve the mentions of the files (gold, the default), or find mentions too (auto), as raw text needs it.",
)
@choice_option(
    "--learner",
    ["crf", "perceptron"],
    "A hidden CRF (by likelihood), or a perceptron, which is five times as fast and less exact.",
)
@model_option("it resolves the files of --predict, and nothing is learned.")
@number_option("--candidates", 60, "Number of earlier mentions that a mention may link to.")
@run_options(out="coref")
def coref(
    run: CommandRun,
    train: tuple[Path, ...],
    predict: tuple[Path, ...],
    model: Path | None,
    learner: str,
    mentions: str | None,
    candidates: int,
) -> None:
    """Resolve coreference: find which mentions of a text mean the same.

    TRAIN are CoNLL-2012 files with clusters in the last column. The files after --predict have mentions there; their
    cluster numbers are ignored, and may all differ. Writes for each of them a CoNLL-2012 file of the same name with the
    predicted clusters, and report.html, model.tacit and run.json.

    With --mentions auto, a detector of mentions learns from TRAIN too. Then the files after --predict may be raw text
    (.txt). Their clusters are written as name.conll, and by their characters as name.ann (stand-off).
    """
    from tacit.text import read_conll, write_conll
    from tacit.text.coreference.resolver import CoreferenceResolver

    _check_names(predict)
    if model is not None:
        resolver = load_model(model, CoreferenceResolver, {"TRAIN": train})
    elif not train:
        raise click.UsageError("Missing argument 'TRAIN...': files with clusters to learn from; or give --model")
    else:
        resolver = CoreferenceResolver(learner, candidates=candidates, mentions=mentions or "gold", **run.settings)
        run.check_options(resolver)
    _choose_mentions(resolver, mentions, predict, is_fitted=model is not None)
    if texts_only := [path for path in train if is_raw_text(path)]:
        raise ValueError(f"{texts_only[0]} is raw text, without clusters to learn from; give CoNLL-2012 files as TRAIN")
    with run.writing(*train, *predict, model) as folder:
        texts = read_conll(train) if train else []
        # clusters in files to predict are never used
        raw = {path: read_raw_text(path) for path in predict if is_raw_text(path)}
        asked = {
            path: [Document(raw[path].words, [], None, _stem(path))]
            if path in raw
            else [text.with_clusters(None) for text in read_conll(path)]
            for path in predict
        }
        if texts:
            run.note(f"{len(texts)} documents to learn from")
            resolver.fit(texts)
            run.note_status(resolver.status_)
            resolver.save(folder.path(MODEL))
        found = {}
        for path, parts in asked.items():
            found[path] = resolver.resolve(parts)
            write_conll(folder.path(_output_name(path)), found[path])
            if path in raw:
                folder.write_text(f"{_stem(path)}.ann", _cluster_lines(raw[path], found[path][0]))
        resolved = [text for parts in found.values() for text in parts]
        facts: dict[str, Any] = {
            **({} if texts else {"model": str(model)}),
            **({"training documents": len(texts), "training mentions": sum(map(len, texts))} if texts else {}),
            "documents resolved": len(resolved),
            "mentions resolved": sum(map(len, resolved)),
            "learner": resolver.learner,
        }
        quality = _describe_quality(resolver)
        mentions_of = count_noun(facts["mentions resolved"], "mention")
        summary = f"clusters of {mentions_of} in {count_noun(len(found), 'file')}"
        run.write_report(folder, coreference_page(resolver, resolved, facts), summary, quality)
        run.record(held_out=resolver.held_out_, **{name.replace(" ", "_"): value for name, value in facts.items()})
    run.finish(summary, quality, f"open {run.out / REPORT}; the clusters are in the files of {run.out}")


def _describe_quality(resolver: CoreferenceResolver) -> str:
    scores = resolver.held_out_
    if not scores:
        return "held-out quality unknown: too few documents to hold some out"
    text = f"held-out CoNLL score {100 * scores['conll']:.1f}, pairwise loss {100 * scores['pairwise']:.1f} %"
    if "mention f1" in scores:
        text += f"; F1 of mentions {scores['mention f1']:.3f}, CoNLL {100 * scores['gold conll']:.1f} with true ones"
    return text


def _choose_mentions(
    resolver: CoreferenceResolver, mentions: str | None, predict: tuple[Path, ...], *, is_fitted: bool
) -> None:
    """Set whether mentions are found, and refuse what has none."""
    if is_fitted and mentions == "auto" and resolver.finder_ is None:
        raise ValueError("the model does not find mentions; learn it again with --mentions auto")
    resolver.mentions = mentions or resolver.mentions
    texts = [path for path in predict if is_raw_text(path)]
    if texts and resolver.mentions == "gold":
        raise ValueError(f"{texts[0]} is raw text, without mentions; learn with --mentions auto")


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".txt")


def _output_name(path: Path) -> str:
    return f"{_stem(path)}.conll" if is_raw_text(path) else path.name


def _cluster_lines(raw: RawText, document: Document) -> str:
    """The mentions of a text by their characters, and one line per cluster of two or more, as brat writes them."""
    spans = np.concatenate(raw.spans)
    found = [(int(spans[a, 0]), int(spans[b - 1, 1]), "mention") for a, b in document.mentions.tolist()]
    lines = [stand_off(raw.text, found)]
    for number in np.unique(document.clusters).tolist():
        own = np.flatnonzero(np.asarray(document.clusters) == number)
        if own.size > 1:
            lines.append(f"*\tCoreference {' '.join(f'T{m + 1}' for m in own.tolist())}\n")
    return "".join(lines)


def _check_names(predict: tuple[Path, ...]) -> None:
    """Refuse files whose outputs would have the same name, or that of another file of the folder."""
    seen: dict[str, Path] = {}
    for path in predict:
        name = _output_name(path)
        if name in seen:
            raise ValueError(f"{seen[name]} and {path} would have one output file {name}; rename one")
        if name in (MODEL, REPORT, RECORD):
            raise ValueError(f"{path} has the name of another output file, {name}; rename the input")
        seen[name] = path


MAX_SHOWN = 10
"""Documents that the page shows in full."""

MAX_TOKENS = 4000
"""Tokens of a document that the page shows."""

GOLDEN_ANGLE = 137.508
"""Degrees between the colours of one cluster and the next: neighbours are always far apart."""

NO_SPACE_BEFORE = frozenset(".,;:!?)]}'’”%") | {"'s", "’s", "n't", "n’t", "'ll", "'ve", "'m", "'d", "'re", "--"}
NO_SPACE_BEHIND = frozenset("([{‘“")

MEASURES = {
    "conll": "CoNLL score: the mean of the next three",
    "muc": "MUC: share of right links (F1)",
    "b3": "B³: overlap of the clusters of each mention (F1)",
    "ceafe": "CEAF-e: clusters matched one to one (F1)",
    "lea": "LEA: links weighted by the size of their cluster (F1)",
    "pairwise": "share of pairs that are wrongly joined or wrongly apart",
}


def coreference_page(resolver: CoreferenceResolver, documents: Sequence[Document], facts: dict[str, Any]) -> Page:
    """The page of a run; ``documents`` have the predicted clusters."""
    sections = [Section("Training", _training_blocks(resolver, facts))]
    shown = documents[:MAX_SHOWN]
    sections += [Section(document.name or "document", list(_document_blocks(resolver, document))) for document in shown]
    if len(documents) > MAX_SHOWN:
        more = f"{len(documents) - MAX_SHOWN} more documents are not shown here; their clusters are in the files."
        sections.append(Section("More documents", [Notice(more)]))
    return Page("Coreference", f"{count_noun(len(documents), 'document')} resolved", sections=sections)


def _training_blocks(resolver: CoreferenceResolver, facts: dict[str, Any]) -> list[Any]:
    blocks: list[Any] = [Facts(list(facts.items()))]
    scores = resolver.held_out_
    if scores:
        n = int(scores["documents"])
        blocks.append(Prose(f"Quality on {count_noun(n, 'training document')}, held out from a fit on the others:"))
        if "mention f1" in scores:
            shares = [f"{100 * scores[f'mention {name}']:.1f} %" for name in ("precision", "recall", "f1")]
            blocks.append(Facts([("mentions found: precision, recall, F1", ", ".join(shares))]))
            heads = ["found mentions", "found, without clusters of one mention", "true mentions"]
            columns = [Column("measure"), *(Column(head, True) for head in heads)]
            parts = ("", "plain ", "gold ")
            table = [(MEASURES[name], *(f"{100 * scores[part + name]:.1f} %" for part in parts)) for name in MEASURES]
            blocks.append(Table(columns, table))
        else:
            blocks.append(Facts([(MEASURES[name], f"{100 * scores[name]:.1f} %") for name in MEASURES]))
    else:
        blocks.append(Notice("Too few documents to hold some out: the quality is unknown.", "warning"))
    return blocks


def _document_blocks(resolver: CoreferenceResolver, document: Document) -> Iterator[Any]:
    if not len(document):
        yield Notice("No mentions.")
        return
    clusters = np.asarray(document.clusters)
    sizes = np.bincount(clusters)
    yield Facts(
        [("mentions", len(document)), ("clusters", int(sizes.size)), ("mentioned once", int((sizes == 1).sum()))]
    )
    cut = len(document.tokens) > MAX_TOKENS
    yield Figure(
        coloured_text(document),
        "One colour and number per cluster of two or more mentions."
        + (f" The first {MAX_TOKENS} tokens of {len(document.tokens)}." if cut else ""),
    )
    yield _cluster_table(document, clusters, sizes)
    yield _link_table(document, resolver.explain(document))


def _cluster_table(document: Document, clusters: Array, sizes: Array) -> Table:
    rows = []
    for number in np.flatnonzero(sizes > 1).tolist():
        own = np.flatnonzero(clusters == number).tolist()
        texts = list(dict.fromkeys(" ".join(document.words(m)) for m in own))
        rows.append(
            (
                number,
                max(texts, key=lambda text: (text[:1].isupper() and len(text) > 3, -len(text))),
                len(own),
                ", ".join(texts[:8]),
            )
        )
    columns = [Column("cluster", True), Column("name"), Column("mentions", True), Column("different texts")]
    return Table(columns, rows, "Clusters of two or more mentions")


def _link_table(document: Document, links: Sequence[Link]) -> Table:
    rows = [
        (
            int(document.clusters[link.mention]),
            " ".join(document.words(link.mention)),
            " ".join(document.words(link.earlier)),
            link.mention - link.earlier,
            "; ".join(f"{text} +{weight:.2g}" for text, weight in link.reasons),
        )
        for link in links
    ]
    columns = [
        Column("cluster", True),
        Column("mention"),
        Column("links to"),
        Column("back", True, "how many mentions before"),
        Column("strongest features", meaning="features with the largest weights"),
    ]
    return Table(columns, rows, "Every link, with the features that speak most for it")


def coloured_text(document: Document) -> Markup:
    """The text with its clusters in colour. Every token is escaped.

    >>> from tacit.text import Document
    >>> print(coloured_text(Document([["<b>", "ran"]], [(0, 1)], [0])))
    <p dir="auto">&lt;b&gt; ran</p>
    """
    clusters = np.asarray(document.clusters)
    sizes = np.bincount(clusters) if clusters.size else np.zeros(0, int)
    opening: dict[int, list[int]] = {}
    for m, (start, _) in enumerate(document.mentions.tolist()):
        if sizes[clusters[m]] > 1:
            opening.setdefault(start, []).append(m)
    parts: list[Markup] = []
    ends = document.mentions[:, 1]
    is_open: list[int] = []
    carried: list[int] = []  # mentions that go on from the sentence before
    position = 0
    for sentence in document.sentences:
        if position >= MAX_TOKENS:
            break
        parts.append(Markup('<p dir="auto">'))
        for i, token in enumerate(sentence):
            # mentions that cross one another are cut, so that tags stay nested
            first = min((n for n, m in enumerate(is_open) if ends[m] <= position), default=len(is_open))
            parts.append(_closing(is_open[first:], clusters, ends, position))
            again = [m for m in is_open[first:] if ends[m] > position]
            is_open = is_open[:first]
            if i and token not in NO_SPACE_BEFORE and sentence[i - 1] not in NO_SPACE_BEHIND:
                parts.append(Markup(" "))
            for m in [*carried, *again, *sorted(opening.get(position, []), key=lambda m: -int(ends[m]))]:
                parts.append(_opening(int(clusters[m])))
                is_open.append(m)
            carried = []
            parts.append(escape(token))
            position += 1
        parts += [_closing(is_open, clusters, ends, position), Markup("</p>")]
        carried, is_open = [m for m in is_open if ends[m] > position], []
    return Markup("").join(parts)


def _opening(number: int) -> Markup:
    hue = round(number * GOLDEN_ANGLE) % 360
    style = f"background:hsl({hue} 70% 50% / .22);border-bottom:2px solid hsl({hue} 70% 45%);border-radius:3px"
    return Markup(f'<span style="{style}">')


def _closing(mentions: Sequence[int], clusters: Array, ends: Array, position: int) -> Markup:
    """Close these spans, the innermost first; a mention that ends shows its number."""
    text = ""
    for m in reversed(mentions):
        text += f"<sub>{int(clusters[m])}</sub></span>" if ends[m] <= position else "</span>"
    return Markup(text)
