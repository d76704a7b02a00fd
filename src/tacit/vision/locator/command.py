"""``tacit locate``: from a folder of photos to boxes, a model, and a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from tacit.commands import INPUT_FILE, INTERRUPTED, CommandRun, run_options

EXAMPLES = """\b
Examples:
  tacit locate photos --features net.onnx --out found
  tacit locate photos --features net.onnx --boxes some_boxes.csv
  tacit locate --model found/model.tacit new_photos --out new
"""

ANYTHING = click.Path(exists=True, path_type=Path)


@click.command(epilog=EXAMPLES)
@click.argument("images", nargs=-1, required=True, type=ANYTHING)
@click.option("--boxes", type=ANYTHING, help="Drawn boxes to learn from, for some or all photos: CSV, COCO, VOC.")
@click.option("--evaluate", type=ANYTHING, help="Drawn boxes to compare with, and not to learn from.")
@click.option("--features", type=INPUT_FILE, metavar="NET.onnx", help="A network whose output is a map.")
@click.option("--types", default=1, show_default=True, help="Hidden types of the object, learned from --boxes.")
@click.option("--model", type=INPUT_FILE, help="A model.tacit of a former run: label and locate new photos.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Folder that keeps feature maps.")
@click.option(
    "--spool",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for feature maps that are too many for memory; they go at the end.",
)
@run_options(out="located")
def locate(
    run: CommandRun,
    images: tuple[Path, ...],
    boxes: Path | None,
    evaluate: Path | None,
    features: Path | None,
    types: int,
    model: Path | None,
    cache: Path | None,
    spool: Path | None,
) -> None:
    """Find the object in every photo, from labels and a few boxes.

    IMAGES is a folder with one subfolder of photos (jpg, png, ...) per class; with --model any photos and folders.
    Learns from the labels, and from drawn boxes where there are some. Writes boxes.json (COCO), boxes.csv, report.html,
    model.tacit and run.json.
    """
    folders: dict[str, Any] = {
        name: None if path is None else str(path) for name, path in (("cache", cache), ("spool", spool))
    }
    if model is not None:
        if boxes is not None:
            raise click.UsageError("--boxes is for learning, and --model has learned: leave one of them out")
        _locate_new(run, images, evaluate, features, model, folders)
        return
    if types > 1 and boxes is None:
        raise click.UsageError("--types are learned from drawn boxes: give --boxes too")
    if len(images) > 1:
        raise click.UsageError("one folder of photos, with a subfolder per class; several IMAGES only with --model")
    from tacit.runtime import Status
    from tacit.vision.locator import Locator
    from tacit.vision.locator.inputs import join_drawn_boxes, read_photo_folder

    locator = Locator(
        features="handmade" if features is None else str(features),
        types=types,
        **folders,
        random_state=run.seed,
        n_jobs=run.jobs,
        verbose=run.verbose,
    )
    locator.check_parameters()
    with run.writing(*_files(boxes, evaluate, features)) as folder:
        photos = read_photo_folder(images[0])
        drawn = None if boxes is None else join_drawn_boxes(boxes, photos)
        truth = None if evaluate is None else join_drawn_boxes(evaluate, photos)
        run.note(f"{len(photos.files)} photos of {len(set(photos.y.tolist()))} classes")
        locator.fit(photos.files, photos.y, boxes=drawn)
        if locator.status_ is Status.INTERRUPTED:
            run.status = INTERRUPTED
        found = locator.found_
        locator.save(folder.path("model.tacit"))
        _write(run, folder, locator, photos, found, truth, drawn)
    run.say(f"{len(photos.files)} photos, {locator.advice_}")
    _say_end(run, photos)


def _locate_new(
    run: CommandRun,
    images: tuple[Path, ...],
    evaluate: Path | None,
    features: Path | None,
    model: Path,
    folders: dict[str, Any],
) -> None:
    from tacit import load
    from tacit.vision.locator import Locator
    from tacit.vision.locator.inputs import join_drawn_boxes, list_photos

    locator = load(model)
    if not isinstance(locator, Locator):
        raise ValueError(f"{model} holds a {type(locator).__name__}, not a model of tacit locate")
    locator.set_params(**folders, n_jobs=run.jobs, verbose=run.verbose)
    if features is not None:
        locator.use_network(features)
    with run.writing(*_files(model, evaluate, features)) as folder:
        photos = list_photos(images)
        truth = None if evaluate is None else join_drawn_boxes(evaluate, photos)
        found = locator.predict(photos.files)
        _write(run, folder, locator, photos, found, truth, None)
    run.say(f"{len(photos.files)} photos labelled and located")
    _say_end(run, photos)


def _files(*paths: Path | None) -> list[Path]:
    return [path for path in paths if path is not None and path.is_file()]


def _write(run: CommandRun, folder: Any, locator: Any, photos: Any, found: Any, truth: Any, drawn: Any) -> None:
    from tacit.report import render
    from tacit.vision.box_files import BoxTable
    from tacit.vision.box_writers import write_boxes_coco, write_boxes_csv
    from tacit.vision.locator.page import locator_page, score_boxes

    table = BoxTable(_strings(photos.names), _strings(found.y), found.boxes, photos.sizes)
    write_boxes_coco(folder.path("boxes.json"), table, scores=found.scores)
    write_boxes_csv(folder.path("boxes.csv"), table, scores=found.scores)
    command = ["tacit", *sys.argv[1:]] if Path(sys.argv[0]).stem in ("tacit", "__main__") else []
    page = locator_page(locator, photos, found, truth=truth, drawn=drawn, command=command, was_cut=run.status)
    folder.write_text("report.html", render(page))
    facts = {"photos": len(photos.files), "left_out": photos.left_out, "method": locator.method_}
    if truth is not None:
        facts["evaluation"] = score_boxes(found.boxes, truth)
    run.record(**facts, evidence=locator.evidence_)


def _strings(values: Any) -> Any:
    import numpy as np

    return np.array([str(value) for value in values])


def _say_end(run: CommandRun, photos: Any) -> None:
    if photos.left_out:
        run.say(f"{len(photos.left_out)} files could not be read and were left out")
    run.say(f"open {run.out / 'report.html'}")
