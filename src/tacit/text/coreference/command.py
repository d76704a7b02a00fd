"""``tacit coref``: learn who is who from texts with clusters, and find the clusters of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit.commands import INPUT_FILE, INTERRUPTED, RECORD, CommandRun, run_options

EXAMPLES = """\b
Examples:
  tacit coref train/*.conll --predict new.conll --out who
  tacit coref train/*.conll --predict new/*.conll --out who --learner perceptron
"""

MODEL = "model.tacit"
REPORT = "report.html"


class ManyValues(click.Command):
    """A command whose option ``--predict`` takes all values that follow it, as shells expand ``new/*.conll``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        is_open = False
        for place, argument in enumerate(args):
            if argument == "--":
                spread += args[place:]
                break
            if argument.startswith("-"):
                is_open = argument == "--predict"
                spread += [] if is_open else [argument]
            else:
                spread += ["--predict", argument] if is_open else [argument]
            is_last = place == len(args) - 1
            if is_open and argument == "--predict" and (is_last or args[place + 1].startswith("-")):
                raise click.BadOptionUsage("predict", "Option '--predict' requires an argument: files to resolve.", ctx)
        return super().parse_args(ctx, spread)


@click.command(cls=ManyValues, epilog=EXAMPLES)
@click.argument("train", type=INPUT_FILE, nargs=-1, required=True)
@click.option("--predict", type=INPUT_FILE, multiple=True, required=True, help="Files to resolve, one or more.")
@click.option(
    "--learner",
    type=click.Choice(["crf", "perceptron"]),
    default="crf",
    show_default=True,
    help="By likelihood, or five times as quick and less exact.",
)
@click.option("--candidates", type=click.IntRange(1), default=60, show_default=True, help="Mentions to look back.")
@run_options(out="coref")
def coref(run: CommandRun, train: tuple[Path, ...], predict: tuple[Path, ...], learner: str, candidates: int) -> None:
    """Find which mentions of a text belong together.

    TRAIN are CoNLL-2012 files with clusters in the last column. The files after --predict have mentions there; their
    numbers are not read, and may all differ. Writes one CoNLL-2012 file for each of them, of the same name, with the
    clusters that were found, and report.html, model.tacit and run.json.
    """
    from tacit.report import render
    from tacit.runtime import Status
    from tacit.text import read_conll, write_conll
    from tacit.text.coreference.page import coreference_page
    from tacit.text.coreference.resolver import CoreferenceResolver

    _check_names(predict)
    resolver = CoreferenceResolver(
        learner, candidates=candidates, random_state=run.seed, n_jobs=run.jobs, verbose=run.verbose
    )
    resolver.check_parameters()
    with run.writing(*train, *predict) as folder:
        texts = read_conll(train)
        asked = {path.name: [_without_numbers(text) for text in read_conll(path)] for path in predict}
        run.note(f"{len(texts)} documents to learn from")
        resolver.fit(texts)
        run.status = INTERRUPTED if resolver.status_ is Status.INTERRUPTED else run.status
        found = {}
        for name, parts in asked.items():
            clusters = resolver.predict(parts)
            found[name] = [part.with_clusters(own) for part, own in zip(parts, clusters, strict=True)]
            write_conll(folder.path(name), found[name])
        resolver.save(folder.path(MODEL))
        resolved = [text for parts in found.values() for text in parts]
        told = _told(texts, resolved, learner)
        folder.write_text(REPORT, render(coreference_page(resolver, resolved, told)))
        run.record(held_out=resolver.held_out_, **{name.replace(" ", "_"): value for name, value in told.items()})
    if resolver.held_out_:
        scores = resolver.held_out_
        run.say(f"held-out CoNLL score {100 * scores['conll']:.1f}, pairwise loss {100 * scores['pairwise']:.1f} %")
    run.say(f"{len(found)} files with clusters: open {run.out / REPORT}")


def _check_names(predict: tuple[Path, ...]) -> None:
    """Refuse files whose answers would have one name, or that of another file of the folder."""
    seen: dict[str, Path] = {}
    for path in predict:
        if path.name in seen:
            raise ValueError(f"{seen[path.name]} and {path} have one name, and so would their answers; rename one")
        if path.name in (MODEL, REPORT, RECORD):
            raise ValueError(f"{path}: the output folder has a file {path.name} of its own; rename the input")
        seen[path.name] = path


def _without_numbers(text: Any) -> Any:
    """The text and its mentions alone: what a file to predict says of clusters is never used."""
    return text.with_clusters(None)


def _told(texts: list[Any], resolved: list[Any], learner: str) -> dict[str, Any]:
    return {
        "training documents": len(texts),
        "training mentions": sum(map(len, texts)),
        "documents resolved": len(resolved),
        "mentions resolved": sum(map(len, resolved)),
        "learner": learner,
    }
