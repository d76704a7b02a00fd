"""``tacit label``: answer the questions that help most, on a page of this machine."""

from __future__ import annotations

import contextlib
import webbrowser
from pathlib import Path
from typing import Any

import click

from tacit import commands
from tacit.label.server import LabelServer
from tacit.label.session import Session, Task

EXAMPLES = commands.examples(
    "tacit label photos --for locate --out boxes",
    "tacit locate photos --boxes boxes/boxes.csv",
    "tacit label words.tsv --for tag --tags N,V,D --out tags",
    "tacit label horses --for segment --out drawn",
    "tacit segment horses --masks drawn/masks",
)


@click.command(epilog=EXAMPLES)
@click.argument("source", metavar="FILE_OR_FOLDER", type=commands.INPUT_FILE_OR_FOLDER)
@click.option(
    "--for",
    "aim",
    type=commands.Choice(["locate", "segment", "motif", "tag", "reasons", "coref"]),
    required=True,
    help="Command that the answers are for: boxes (locate) or masks (segment) in photos, sites in DNA (motif), tags of "
    "words (tag), decisive sentences (reasons), or mentions that mean the same (coref).",
)
@click.option(
    "--tags", default="", metavar="A,B,...", help="All tags, with commas; those in the file need not be named."
)
@click.option(
    "--single", is_flag=True, help="Ask for single words (tag) or regions (segment), not for whole sentences or photos."
)
@commands.number_option("--width", 10, "Letters of a site, for --for motif.", most=100)
@click.option(
    "--share",
    type=commands.Number(float, 0, 1, is_open=True),
    metavar="SHARE",
    default=0.3,
    help="Share of the sentences of a document that is chosen, for --for reasons.",
)
@commands.choice_option("--features", ["handmade", "network"], "Features of photos; the network is slower and better.")
@commands.number_option("--batch", 10, "Number of answers after which the model is fitted again.", most=10_000)
@commands.number_option("--port", 0, "Port of the page; 0 takes a free one.", least=0, most=65_535)
@commands.number_option("--seed", 0, "Seed of all random numbers.", least=0, most=2**32 - 1)
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser, or only print its address.")
@click.option(
    "--out",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    default="labelled",
    metavar="FOLDER",
    help="Folder for the answers; one with answers for the same input is continued.",
)
def label(source: Path, aim: str, out: Path, port: int, batch: int, browser: bool, **options: Any) -> int:
    """Answer the questions that help most, on a page of this machine.

    FILE_OR_FOLDER is what 'tacit locate', 'segment', 'motif', 'tag', 'reasons' or 'coref' reads. The page shows the
    next questions with the model's guess: accept it, correct it, or skip. Answers are on disk at once, in
    answers.jsonl. The model is fitted again in the background, and the most useful questions come first. Ctrl-C ends
    it; the same command goes on.

    Writes what the commands read: boxes.csv and boxes.json, masks/, sites.tsv and motifs.meme, tagged.tsv,
    documents.jsonl, or resolved.conll.
    """
    task = make_task(source, aim, out, **options)
    out.mkdir(parents=True, exist_ok=True)
    session = Session(task, out, batch)
    with LabelServer(session, port) as server:
        session.refit(always=True)
        click.echo(f"Open {server.address} in a browser; Ctrl-C ends.")
        if browser:
            webbrowser.open(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.2)
    answers, closed = session.answers()
    names = session.export()
    found = f"{commands.count_noun(len(answers), 'answer')}, {len(closed)} without one"
    click.echo(f"Found: {found}\nFiles: {out}/ ({', '.join(['answers.jsonl', *names])})")
    return 0


def make_task(source: Path, aim: str, out: Path, *, seed: int, **options: Any) -> Task:
    """What is asked; modules of a domain are loaded when they are needed. Options of other tasks are refused."""
    used = {
        "locate": ["features"],
        "motif": ["width"],
        "tag": ["tags", "single"],
        "segment": ["single"],
        "reasons": ["share"],
    }.get(aim, [])
    context = click.get_current_context(silent=True)
    for name in options:
        is_given = context is not None and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if is_given and name not in used:
            raise click.UsageError(f"--{name} is not for --for {aim}; leave it out")
    own: dict[str, Any] = {name: options[name] for name in used if name in options}
    kind = "folder" if aim in ("segment", "locate") else "file"
    if source.is_dir() != (kind == "folder"):
        raise click.UsageError(f"FILE_OR_FOLDER must be a {kind} with --for {aim}, got {str(source)!r}")
    if aim == "locate":
        from tacit.label.boxes import Boxes

        return Boxes(source, cache=out / "cache", seed=seed, **own)
    if aim == "segment":
        from tacit.label.masks import Masks

        return Masks(source, cache=out / "cache", seed=seed, **own)
    if aim == "motif":
        from tacit.label.sites import Sites

        return Sites(source, seed=seed, **own)
    if aim == "reasons":
        from tacit.label.sentences import DecisiveSentences

        return DecisiveSentences(source, seed=seed, **own)
    if aim == "coref":
        from tacit.label.clusters import Clusters

        return Clusters(source, seed=seed)
    from tacit.label.tags import Tags

    names = [name.strip() for name in own.pop("tags", "").split(",") if name.strip()]
    return Tags(source, tags=names, seed=seed, **own)
