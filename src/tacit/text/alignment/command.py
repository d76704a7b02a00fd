"""``tacit align``: from parallel text to word links."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from tacit.commands import INPUT_FILE, INTERRUPTED, CommandRun, run_options

EXAMPLES = """\b
Examples:
  tacit align text.en-fr --out links.txt
  tacit align text.en text.fr --out links.txt --gold some.gold
"""


@click.command(epilog=EXAMPLES)
@click.argument("source", metavar="FILE", type=INPUT_FILE)
@click.argument("target", type=INPUT_FILE, required=False)
@click.option(
    "--out",
    "links",
    type=click.Path(dir_okay=False, path_type=Path),
    default="links.txt",
    show_default=True,
    metavar="LINKS",
    help="File for the links, a line per sentence pair.",
)
@click.option("--gold", type=INPUT_FILE, metavar="LINKS", help="Known links; an empty or missing line is unknown.")
@click.option(
    "--c", "C", type=click.FloatRange(0, min_open=True), default=100.0, show_default=True, help="Weight of the loss."
)
@click.option(
    "--weak-weight",
    type=click.FloatRange(0),
    default=15.0,
    show_default=True,
    help="How many pairs with gold links the others are worth.",
)
@click.option("--model", type=click.Path(dir_okay=False, path_type=Path), help="Also write the model to this file.")
@run_options(out="LINKS.report", option="--report", overwrites=True)
def align(
    run: CommandRun,
    source: Path,
    target: Path | None,
    links: Path,
    gold: Path | None,
    model: Path | None,
    **options: Any,
) -> None:
    """Align the words of parallel sentences.

    FILE has lines 'source ||| target', or the source sentences alone if TARGET has their translations line by line;
    words stand between spaces. LINKS gets a line of links i-j per sentence pair, words counted from 1. Without --gold
    only the text is learned from: sentences that belong together against sentences paired anew. A gold file has lines
    of i-j (sure) and ipj (possible). The folder of --report gets report.html and run.json.
    """
    from tacit.report import render
    from tacit.runtime import Status
    from tacit.text import format_links, read_links, read_parallel
    from tacit.text.alignment.aligner import WordAligner
    from tacit.text.alignment.page import align_page

    if str(run.out) == "LINKS.report":
        run.out = links.with_name(links.name + ".report")
    _refuse_other_files(links, run.force_given)
    aligner = WordAligner(**options, random_state=run.seed, n_jobs=run.jobs, verbose=run.verbose)
    aligner.check_parameters()
    with run.writing(source, target, gold) as folder:
        sources, targets = read_parallel(source, target)
        known = None if gold is None else _fill(read_links(gold), len(sources), gold)
        run.note(f"{len(sources)} sentence pairs: learning")
        aligner.fit(sources, targets, known)
        if aligner.status_ is Status.INTERRUPTED:
            run.status = INTERRUPTED
        command = ["tacit", *sys.argv[1:]] if Path(sys.argv[0]).stem in ("tacit", "__main__") else []
        page = align_page(aligner, sources, targets, known, command=command)
        folder.write_text("report.html", render(page))
        text = format_links(aligner.links_)
        _write_whole(links, text)
        if model is not None:
            aligner.save(model)
        run.record(
            links=len(aligner.links_.values),
            sentence_pairs=len(sources),
            accuracy=aligner.accuracy_,
            held_out=aligner.held_out_,
            links_file=str(links),
        )
    run.say(f"{len(aligner.links_.values)} links of {len(sources)} sentence pairs: {links}")
    if aligner.held_out_ is not None:
        run.say(f"alignment error rate on held-out gold links: {aligner.held_out_['error_rate']:.3f}")
    run.say(f"open {run.out / 'report.html'}")


def _fill(links: list[Any], n: int, path: Path) -> list[Any]:
    """Gold links of all sentence pairs, None where a line is empty or missing."""
    if len(links) > n:
        raise ValueError(f"{path} has {len(links)} lines of links for {n} sentence pairs; give at most one each")
    return [own if len(own.possible) else None for own in links] + [None] * (n - len(links))


def _refuse_other_files(path: Path, force: bool) -> None:
    """Links of a former run are replaced; any other file only with --force."""
    from tacit.commands import OutputError
    from tacit.text import read_links

    if force or not path.exists():
        return
    try:
        read_links(path)
    except ValueError as error:
        raise OutputError(
            f"{path} exists, and holds no links; choose another --out, or replace it with --force"
        ) from error


def _write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all."""
    from tacit.commands import OutputError

    part = path.with_name(f".{path.name}.part")
    try:
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}; choose another --out") from error
