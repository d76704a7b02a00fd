"""``tacit locate``: from a folder of photos, and drawn boxes, to boxes, a model, and a report."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from tacit import load
from tacit.commands import INPUT_FILE, CommandRun, run_options
from tacit.data.arrays import Array
from tacit.data.parameters import reason
from tacit.data.reading import find_folder, find_place, named
from tacit.report import render
from tacit.vision.box_files import read_table, write_boxes_coco, write_boxes_csv
from tacit.vision.boxes import BoxTable, match_rows, place_boxes
from tacit.vision.locator import Locator
from tacit.vision.locator_page import locator_page, score_boxes
from tacit.vision.photos import ENDINGS, image_folder, is_image, read_photo

EXAMPLES = """\b
Examples:
  tacit locate photos --features net.onnx --out found
  tacit locate photos --features net.onnx --boxes some_boxes.csv
  tacit locate --model found/model.tacit new_photos --out new
"""
ANYTHING = click.Path(exists=True, path_type=Path)
MIN_SIDE = 16
"""Pixels that a photo has either way at the least: smaller ones show nothing."""


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
        run.note_status(locator.status_)
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

    table = BoxTable(_strings(photos.names), _strings(found.y), found.boxes, photos.sizes)
    write_boxes_coco(folder.path("boxes.json"), table, scores=found.scores)
    write_boxes_csv(folder.path("boxes.csv"), table, scores=found.scores)
    page = locator_page(locator, photos, found, truth=truth, drawn=drawn, command=run.command_line, was_cut=run.status)
    folder.write_text("report.html", render(page))
    facts = {"photos": len(photos.files), "left_out": photos.left_out, "method": locator.method_}
    if truth is not None:
        facts["evaluation"] = score_boxes(found.boxes, truth)
    run.record(**facts, evidence=locator.evidence_)


def _strings(values: Any) -> Any:

    return np.array([str(value) for value in values])


def _say_end(run: CommandRun, photos: Any) -> None:
    if photos.left_out:
        run.say(f"{len(photos.left_out)} files could not be read and were left out")
    run.say(f"open {run.out / 'report.html'}")


class Photos(NamedTuple):
    """Photos that can be read, and what is known of them.

    Attributes
    ----------
    files : their paths
    names : as exports call them: relative to the folder
    y : (n,) their classes; empty strings for new photos
    sizes : (n, 2) width and height as people see them
    left_out : (path, why) of those that cannot be read
    """

    files: list[Path]
    names: list[str]
    y: Array
    sizes: Array
    left_out: list[tuple[str, str]]


def read_photo_folder(folder: str | os.PathLike[str]) -> Photos:
    """The photos of a folder that has one subfolder per class; those that cannot be read are left out, with a warning.

    A folder with photos of one class alone is refused: there is nothing to tell apart.
    """
    place = find_folder(folder, "photos")
    files, y = image_folder(place)
    photos = _readable(files, [file.relative_to(place).as_posix() for file in files], y)
    found = np.unique(photos.y)
    if found.size < 2:
        raise ValueError(
            f"{named(place)} holds photos of one class, {str(found[0])!r}; there is nothing to tell apart: add a "
            "subfolder with photos of something else"
        )
    return photos


def list_photos(sources: Sequence[str | os.PathLike[str]]) -> Photos:
    """New photos: files, and all photos in folders and their subfolders."""
    files: list[Path] = []
    names: list[str] = []
    for source in sources:
        place = find_place(source)
        if os.path.isdir(place):
            inside = sorted(file for file in place.rglob("*") if is_image(file) and file.is_file())
            files += inside
            names += [file.relative_to(place).as_posix() for file in inside]
        elif os.path.isfile(place):
            files.append(place)
            names.append(place.name)
        else:
            raise FileNotFoundError(f"there is no photo {named(place)}")
    if not files:
        raise FileNotFoundError(f"{named(sources[0])} holds no photos, which are {' '.join(ENDINGS)}")
    if len(set(names)) < len(names):
        names = [str(file) for file in files]
    return _readable(files, names, np.full(len(files), ""))


def _readable(files: list[Path], names: list[str], y: Array) -> Photos:
    kept: list[int] = []
    sizes: list[tuple[int, int]] = []
    left_out: list[tuple[str, str]] = []
    for i, file in enumerate(files):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # notes on EXIF come when the photo is described
                height, width = read_photo(file).shape[:2]
            if min(width, height) < MIN_SIDE:
                raise ValueError(f"{named(file)} has {width} × {height} pixels, and {MIN_SIDE} either way are needed")
        except (ValueError, OSError) as error:
            left_out.append((names[i], reason(error)))
            warnings.warn(f"left out: {reason(error)}", RuntimeWarning, stacklevel=3)
            continue
        kept.append(i)
        sizes.append((width, height))
    if not kept:
        raise ValueError(f"none of {len(files)} photos can be read; the first: {left_out[0][1]}")
    return Photos([files[i] for i in kept], [names[i] for i in kept], y[kept], np.array(sizes), left_out)


def join_drawn_boxes(table: Any, photos: Photos) -> Array:
    """(n, 4) the drawn boxes of photos, NaN where there is none, joined by file name.

    Parameters
    ----------
    table : the path of a CSV file, a COCO file (.json), a VOC file (.xml) or a folder of those
    photos : what the boxes belong to; of several boxes in one photo the largest counts
    """
    boxes = read_table(table)
    names = [*photos.names, *(name for name, _ in photos.left_out)]
    rows = match_rows(boxes, names, several="largest")[: len(photos.files)]
    drawn = place_boxes(boxes, rows, photos.names, lambda i: tuple(photos.sizes[i].tolist()))
    limits = np.tile(photos.sizes, 2).astype(np.float64)
    return np.asarray(np.clip(drawn, 0.0, limits))
