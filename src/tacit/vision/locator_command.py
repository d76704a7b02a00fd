"""``tacit locate``: from a folder of photos, and drawn boxes, to boxes, a model, and a report."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from tacit import load
from tacit.commands import (
    INPUT_FILE,
    INPUT_FILE_OR_FOLDER,
    Choice,
    CommandRun,
    ask_option,
    count_noun,
    examples,
    folder_option,
    number_option,
    run_options,
    write_questions,
)
from tacit.data.arrays import Array
from tacit.report import (
    Column,
    Facts,
    Figure,
    Notice,
    Page,
    Picture,
    Prose,
    Row,
    Section,
    Table,
    histogram,
)
from tacit.vision.box_formats import WRITERS
from tacit.vision.boxes import BoxTable, FoundBoxes, overlap
from tacit.vision.locator import EXTENTS, MAX_TYPES, MIN_BOXES, OBJECTS, Locator
from tacit.vision.photo_folders import Photos, join_drawn_boxes, list_photos, read_photo_folder
from tacit.vision.photos import pillow, read_photo, scale_image
from tacit.vision.several_objects import Detections, largest_boxes, score_detections
from tacit.vision.window_types import mean_type_images

EXAMPLES = examples(
    "tacit locate photos --out found",
    "tacit locate photos --boxes some_boxes.csv --out found",
    "tacit locate photos --extent part --features net.onnx",
    "tacit locate --model found/model.tacit new_photos --out new",
)
SHOWN = 8
"""Photos per section."""
THUMBNAIL = 320
TYPE_SIDE, TYPE_EXAMPLES = 96, 5
"""Pixels of the mean image of a type, and photos shown beside it."""
BLUE, ORANGE, GREY, GREEN = (31, 119, 220), (240, 140, 20), (150, 150, 150), (20, 150, 60)


class FeaturesType(click.ParamType[str]):
    """The name of features, or the path of a network."""

    name = "features"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value as a text; a path must exist."""
        return value if value in ("network", "handmade") else str(INPUT_FILE.convert(value, param, ctx))


@click.command(epilog=EXAMPLES)
@click.argument("images", nargs=-1, required=True, type=INPUT_FILE_OR_FOLDER)
@click.option(
    "--boxes",
    type=INPUT_FILE_OR_FOLDER,
    help="Boxes drawn in some or all photos, to learn from: a CSV, COCO or CVAT file, or a folder of VOC, LabelMe or "
    "YOLO files.",
)
@click.option(
    "--evaluate", type=INPUT_FILE_OR_FOLDER, help="Drawn boxes to measure the result with; they are not learned from."
)
@click.option(
    "--features",
    type=FeaturesType(),
    default="network",
    metavar="NET.onnx|network|handmade",
    help="Features of photos: a neural network in ONNX format, tacit's own network, or hand-made features.",
)
@click.option(
    "--extent",
    type=Choice(EXTENTS),
    default="auto",
    help="What boxes from labels alone enclose: the whole object (auto prefers it), or its most typical part.",
)
@click.option(
    "--objects",
    type=Choice(OBJECTS),
    default="auto",
    help="Objects per photo: one, or several, whose number is learned from --boxes; auto is several where boxes are.",
)
@click.option(
    "--format",
    "formats",
    type=Choice([name for name in WRITERS if name not in ("csv", "coco")]),
    multiple=True,
    help="Further format of the boxes that are written, beside CSV and COCO; may be given several times.",
)
@number_option(
    "--types", 1, "Number of hidden types of the object (views, breeds), learned from --boxes.", most=MAX_TYPES
)
@click.option("--model", type=INPUT_FILE, help="The model.tacit of an earlier run; it labels and locates new photos.")
@folder_option("--cache", "Folder that keeps feature maps for the next run.")
@folder_option("--spool", "Folder for feature maps that do not fit into memory; they are deleted at the end.")
@ask_option("photos to draw a box in")
@run_options(out="located")
def locate(
    run: CommandRun,
    images: tuple[Path, ...],
    boxes: Path | None,
    evaluate: Path | None,
    features: str,
    extent: str,
    objects: str,
    formats: tuple[str, ...],
    types: int,
    model: Path | None,
    n_asked: int | None,
    **keeping: Path | None,
) -> None:
    """Locate the object in every photo, from labels and a few boxes.

    IMAGES is a folder with one subfolder of photos (jpg, png, ...) per class; photos in none/ show no object. With
    --boxes, one class is enough, in a subfolder or not. With --model it may be any photos and folders.

    Learns from the labels, and from the boxes of --boxes. Writes boxes.json (COCO), boxes.csv, report.html, model.tacit
    and run.json.
    """
    folders: dict[str, Any] = {name: None if path is None else str(path) for name, path in keeping.items()}
    if model is not None:
        if boxes is not None:
            raise click.UsageError("--boxes and --model exclude each other; leave one of them out")
        if n_asked is not None:
            raise click.UsageError("--ask and --model exclude each other; leave one of them out")
        _locate_new(run, images, evaluate, features, model, folders, formats)
        return
    if extent != "auto" and boxes is not None:
        raise click.UsageError(
            "--extent is for labels alone: drawn boxes show the extent; leave --extent or --boxes out"
        )
    if types > 1 and boxes is None:
        raise click.UsageError("--types above 1 needs drawn boxes to learn from; give --boxes too")
    if len(images) > 1:
        raise click.UsageError(f"IMAGES must be one folder without --model, got {len(images)} paths; put them into one")
    locator = Locator(features, types=types, extent=extent, objects=objects, **folders, **run.settings)
    locator.check_parameters()  # it reads the network, so an error may be about a file
    with run.writing(*_files(boxes, evaluate, Path(features))) as folder:
        photos = read_photo_folder(images[0], has_boxes=boxes is not None)
        drawn = None if boxes is None else _join(run, boxes, photos)
        truth = None if evaluate is None else _join(run, evaluate, photos)
        if drawn is not None and (n_drawn := sum(len(own) > 0 for own in drawn)) < MIN_BOXES:
            photos_boxed = count_noun(n_drawn, "photo")
            run.say(f"boxes in {photos_boxed} are too few to learn from; draw some in {MIN_BOXES} or more")
        run.note(f"{len(photos.files)} photos of {len(set(photos.y.tolist()))} classes")
        locator.fit(photos.files, photos.y, boxes=drawn)
        run.note_status(locator.status_)
        result = Result(photos, locator.found_, locator.detections_, truth, drawn)
        locator.save(folder.path("model.tacit"))
        if n_asked is not None:
            found, asked = result.found, locator.least_sure_[:n_asked]
            guesses = [" ".join(f"{corner:.0f}" for corner in found.boxes[i]) for i in asked]
            write_questions(folder, [photos.names[i] for i in asked], -found.scores[asked], guesses)
        _write(run, folder, locator, result, formats)
    run.say(locator.advice_)
    predict = f"tacit locate --model {run.out / 'model.tacit'} PHOTOS"
    _finish(run, locator, result, f"; label and locate new photos with: {predict}")


def _locate_new(
    run: CommandRun,
    images: tuple[Path, ...],
    evaluate: Path | None,
    features: str,
    model: Path,
    folders: dict[str, Any],
    formats: tuple[str, ...],
) -> None:
    locator = load(model)
    if not isinstance(locator, Locator):
        raise ValueError(f"{model} must be a model of tacit locate, got a {type(locator).__name__}")
    locator.set_params(**folders, n_jobs=run.jobs, verbose=run.verbose)
    if features not in ("network", "handmade"):
        locator.use_network(features)
    with run.writing(*_files(model, evaluate, Path(features))) as folder:
        photos = list_photos(images)
        truth = None if evaluate is None else _join(run, evaluate, photos)
        found = locator.predict(photos.files)
        detections = locator.detect(photos.files, found.y)
        result = Result(photos, found, detections, truth, None)
        _write(run, folder, locator, result, formats)
    _finish(run, locator, result)


def _join(run: CommandRun, table: Path, photos: Photos) -> list[Array]:
    """The boxes of photos; what is left out is said."""
    drawn = join_drawn_boxes(table, photos)
    for note in drawn.notes:
        run.say(note)
    return drawn.boxes


class Result(NamedTuple):
    """What a run found, and what it is compared with: per photo the best box, all boxes, true and drawn boxes."""

    photos: Photos
    found: FoundBoxes
    detections: Detections
    truth: list[Array] | None
    drawn: list[Array] | None

    def boxes(self) -> tuple[Detections, list[str]]:
        """All boxes, and whether each was drawn or found: drawn boxes replace those that were found in their photos."""
        own = self.detections
        if self.drawn is None:
            return own, ["found"] * len(own.owners)
        counts = np.array([len(boxes) for boxes in self.drawn])
        owners = np.repeat(np.arange(len(counts)), counts)
        drawn = Detections(owners, self.found.y[owners], np.concatenate(self.drawn), np.ones(len(owners)))
        rest = own.take(counts[own.owners] == 0)
        joined = Detections(*(np.concatenate(pair) for pair in zip(drawn, rest, strict=True)))
        order = np.argsort(joined.owners, kind="stable")
        sources = np.array(["drawn"] * len(owners) + ["found"] * len(rest.owners), dtype=np.str_)
        return joined.take(order), sources[order].tolist()

    def evaluation(self) -> dict[str, float]:
        """Scores by photo, and those of all boxes where photos have several. Photos without a true box count for
        precision only if they are of the background."""
        assert self.truth is not None
        scores = score_boxes(self.found.boxes, largest_boxes(self.truth))
        if any(len(own) > 1 for own in self.truth) or len(self.detections.owners) > len(self.truth):
            counts = np.array([len(own) for own in self.truth]) > 0
            counts |= Locator.is_background(self.photos.y)
            own = self.detections.take(counts[self.detections.owners])
            scores |= score_detections(own.owners, own.boxes, own.scores, self.truth)
        return scores


def _files(*paths: Path | None) -> list[Path]:
    return [path for path in paths if path is not None and path.is_file()]


def _write(run: CommandRun, folder: Any, locator: Locator, result: Result, formats: tuple[str, ...]) -> None:
    photos = result.photos
    boxes, sources = result.boxes()
    names = np.array([photos.names[i] for i in boxes.owners], dtype=np.str_)
    table = BoxTable(names, boxes.y.astype(np.str_), boxes.boxes, photos.sizes[boxes.owners])
    for name in ("coco", "csv", *formats):
        file, write = WRITERS[name]
        write(folder.path(file), table, boxes.scores, **({"sources": sources} if name == "csv" else {}))
    run.write_report(folder, locator_page(locator, result, was_cut=run.status), *_describe(locator, result))
    facts = {"photos": len(photos.files), "left_out": photos.left_out, "method": locator.method_}
    facts["boxes"] = {name: sources.count(name) for name in ("drawn", "found")}
    if result.truth is not None:
        facts["evaluation"] = result.evaluation()
    run.record(**facts, evidence=locator.evidence_)


def _finish(run: CommandRun, locator: Locator, result: Result, then: str = "") -> None:
    photos = result.photos
    if photos.left_out:
        run.say(f"{count_noun(len(photos.left_out), 'file')} could not be read; the report lists what was left out")
    run.finish(*_describe(locator, result), f"open {run.out / 'report.html'}{then}")


def _describe(locator: Locator, result: Result) -> tuple[str, str]:
    """What was found, and how good it is."""
    iou = locator.evidence_.get("held-out mean IoU")
    scores = {} if result.truth is None else result.evaluation()
    parts = [f"held-out mean IoU {iou:.2f}" if iou is not None else "IoU unknown: too few drawn boxes to hold some out"]
    if locator.is_several_:
        recall, precision = (locator.evidence_[f"held-out {name}"] for name in ("recall", "precision"))
        parts = [f"held-out recall {recall:.0%} and precision {precision:.0%}"]
    accuracy = getattr(locator, "accuracy_", np.nan)
    parts += [f"held-out label accuracy {accuracy:.1%}"] if np.isfinite(accuracy) else []
    parts += [f"mean IoU with the boxes of --evaluate {scores['mean IoU']:.2f}"] if "mean IoU" in scores else []
    n_boxes = len(result.boxes()[1])
    boxes = f"{n_boxes:,} {'box' if n_boxes == 1 else 'boxes'} in {count_noun(len(result.photos.files), 'photo')}"
    return boxes, ", ".join(parts)


def score_boxes(found: Array, truth: Array) -> dict[str, float]:
    """How well boxes were found, where they are known.

    >>> score_boxes(np.array([[0, 0, 2, 2.0]]), np.array([[0, 0, 2, 2.0]]))
    {'photos with a box': 1, 'mean IoU': 1.0, 'IoU of 0.5 or more': 1.0}
    """
    shared = _overlaps(found, truth)
    if not shared.size:
        return {"photos with a box": 0}
    return {
        "photos with a box": shared.size,
        "mean IoU": float(shared.mean()),
        "IoU of 0.5 or more": float(np.mean(shared >= 0.5)),
    }


def _overlaps(found: Array, truth: Array) -> Array:
    """Intersection over union of the photos with a drawn box."""
    known = ~np.isnan(truth).any(axis=1)
    return overlap(found[known], truth[known])


def locator_page(locator: Locator, result: Result, was_cut: str = "done") -> Page:
    """The page of a run.

    Parameters
    ----------
    locator : fitted
    result : photos, what was found in them, and what is known
    was_cut : how the run ended
    """
    photos, found, truth, drawn = result.photos, result.found, result.truth, result.drawn
    is_training = bool(photos.y.size and photos.y[0] != "")
    steps = locator.steps_ if is_training and not locator.is_several_ else {}
    show = _Gallery(photos, found, steps, truth if truth is not None else drawn, result.detections)
    sections = [_summary(locator, photos, is_training), *_evaluation(result)]
    order = np.argsort(-found.scores, kind="stable")
    order = order[~locator.is_background(found.y)[order]]
    legend = "Blue is the box that was found"
    if steps:
        legend += ", grey the start, orange an iteration in the middle"
    if truth is not None or drawn is not None:
        legend += ", green a drawn box"
    sections.append(Section("Most confident boxes", [Prose(f"{legend}."), show(order[:SHOWN])]))
    sections.append(Section("Least confident boxes", [show(order[::-1][:SHOWN])]))
    if is_training:
        sections += [
            *_types(locator, photos, found, show),
            *_next_boxes(locator, photos, show),
            *_disagreement(locator, photos),
            *_confusion(locator),
        ]
    if photos.left_out:
        sections.append(Section("Left out", [Table([Column("file"), Column("why")], photos.left_out)]))
    banner = "" if was_cut == "done" else f"This run was {was_cut}: these are the best results until then."
    return Page("Objects located", f"{len(photos.files)} photos", banner, sections)


def _summary(locator: Locator, photos: Photos, is_training: bool) -> Section:
    names = {
        "whole": "three maps of the whole object: its principal component, a classifier of the labels, and the centre",
        "latent": "a latent SVM on the labels",
        "agreed": "one detector for all classes, from boxes on which two methods agree",
        "agreed and latent": "one detector from boxes on which two methods agree, a latent SVM for the other classes",
        "shared": "one detector for all classes, from drawn boxes",
        "shared and latent": "a detector from drawn boxes, refined by a latent SVM on the labels",
        "types": f"a detector of {locator.types} hidden types of the object, from drawn boxes",
    }
    pairs: list[tuple[str, Any]] = [("photos", len(photos.files)), ("classes", ", ".join(map(str, locator.classes_)))]
    pairs.append(("boxes by", names[locator.method_]))
    if is_training:
        if np.isfinite(locator.accuracy_):
            pairs.append(("right labels, in cross-validation", f"{locator.accuracy_:.1%}"))
        pairs += locator.evidence_.items()
    blocks: list[Any] = [Facts(pairs)]
    if is_training:
        blocks.append(Notice(locator.advice_[:1].upper() + locator.advice_[1:] + ".", "plain"))
    if locator.words_ is not None and not locator.has_boxes_:
        warning = (
            "Hand-made features separate classes, but from labels alone they rarely find the "
            "object: leave --features out, or draw boxes (--boxes)."
        )
        blocks.append(Notice(warning, "warning"))
    return Section("What was found", blocks)


def _evaluation(result: Result) -> list[Section]:
    if result.truth is None:
        return []
    found, truth, scores = result.found, largest_boxes(result.truth), result.evaluation()
    if not scores["photos with a box"]:
        return [Section("Compared with drawn boxes", [Notice("None of the photos has a drawn box.", "warning")])]
    shared = _overlaps(found.boxes, truth)
    chart = Figure(histogram({"photos": shared}, "IoU", bins=20), "Intersection over union with the drawn boxes.")
    return [Section("Compared with drawn boxes", [Row([Facts(list(scores.items())), chart])])]


def _types(locator: Locator, photos: Photos, found: FoundBoxes, show: _Gallery) -> list[Section]:
    """The looks of each hidden type of the object: the mean of its boxes, and its most confident photos."""
    if locator.types == 1:
        return []
    k, kinds = int(locator.types), locator.found_types_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        pixels = (read_photo(file) for file in photos.files)  # one at a time: all of them may not fit into memory
        means = mean_type_images(pixels, found.boxes, kinds, k, side=TYPE_SIDE)
    order = np.argsort(-found.scores, kind="stable")
    blocks: list[Any] = [
        Prose("The mean of the boxes of each type, cut out and scaled, and its most confident photos.")
    ]
    for kind in range(k):
        own = order[kinds[order] == kind]
        names, counts = np.unique(found.y[own], return_counts=True)
        photos_by_class = ", ".join(f"{n} {name}" for name, n in zip(names, counts, strict=True)) or "no photo"
        caption = f"type {kind + 1}: {photos_by_class}"
        mean = Picture(encode_jpeg(means[kind]), f"mean of type {kind + 1}", caption, "image/jpeg")
        blocks.append(Row([mean, *show(own[:TYPE_EXAMPLES]).blocks]))
    return [Section("Types of the object", blocks)]


def _next_boxes(locator: Locator, photos: Photos, show: _Gallery) -> list[Section]:
    worst = locator.least_sure_[:SHOWN]
    if not len(worst):
        return []
    why = Prose("Drawing boxes in these photos would help most: the boxes found in them are the least confident.")
    names = Table(
        [Column("photo"), Column("confidence", True)], [(photos.names[i], show.found.scores[i]) for i in worst]
    )
    return [Section("Draw boxes here next", [why, names])]


def _disagreement(locator: Locator, photos: Photos) -> list[Section]:
    if not locator.other_boxes_:
        return []
    (name, boxes), *rest = locator.other_boxes_.items()
    against, other = rest[0] if rest else ("the boxes found", locator.found_boxes_)
    shared = overlap(boxes, other)
    worst = np.argsort(shared, kind="stable")
    worst = worst[~locator.is_background(locator.found_labels_)[worst]][:SHOWN]
    gallery = _Gallery(photos, locator.found_, {"other": boxes, "first": other}, None)
    legend = (
        f"Photos in which two methods find different boxes ({name} orange, {against} grey, the final box blue): "
        "check these first."
    )
    return [Section("Where methods disagree", [Prose(legend), gallery(worst[shared[worst] < 0.5])])]


def _confusion(locator: Locator) -> list[Section]:
    true, said, classes = locator.found_labels_, locator.held_out_labels_, locator.classes_
    if not np.isfinite(locator.accuracy_):
        return []
    rows = []
    for name in classes:
        own = said[true == name]
        rows.append((str(name), *(int(np.sum(own == other)) for other in classes), float(np.mean(own == name))))
    columns = [Column("class"), *(Column(f"predicted {name}", True) for name in classes), Column("accuracy", True)]
    return [Section("Labels", [Table(columns, rows, "Predictions of cross-validation on held-out photos.")])]


class _Gallery:
    """Photos with their boxes, as pictures that the page holds."""

    def __init__(
        self,
        photos: Photos,
        found: FoundBoxes,
        steps: dict[str, Array],
        truth: list[Array] | None,
        detections: Detections | None = None,
    ) -> None:
        self.photos, self.found, self.steps, self.truth, self.detections = photos, found, steps, truth, detections

    def __call__(self, index: Array) -> Row:
        return Row([self._picture(int(i)) for i in index])

    def _picture(self, i: int) -> Picture:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            pixels = read_photo(self.photos.files[i])
        own = self.found.boxes[[i]]
        if self.detections is not None:
            own = self.detections.boxes[self.detections.owners == i]
        boxes = [(box, BLUE, 3) for box in own]
        if self.truth is not None:
            boxes = [*((box, GREEN, 2) for box in self.truth[i]), *boxes]
        for name, colour in (("other", ORANGE), ("middle", ORANGE), ("first", GREY)):
            if name in self.steps:
                boxes.insert(0, (self.steps[name][i], colour, 2))
        label = str(self.found.y[i])
        caption = f"{self.photos.names[i]}: {label}, {self.found.scores[i]:.2f}"
        return Picture(draw_boxes(pixels, boxes), f"{label} with a box", caption, "image/jpeg")


def draw_boxes(pixels: Array, boxes: Sequence[tuple[Array, tuple[int, int, int], int]]) -> bytes:
    """A small JPEG of a photo with boxes: (box, colour, line width) each, the last on top."""
    from PIL import ImageDraw

    small = scale_image(pixels, THUMBNAIL)
    factor = THUMBNAIL / max(pixels.shape[:2])
    image = pillow().fromarray(np.ascontiguousarray(small))
    draw = ImageDraw.Draw(image)
    limit = np.array([small.shape[1], small.shape[0]] * 2) - 1
    for box, colour, width in boxes:
        corners = np.clip(np.asarray(box) * factor, 0, limit)
        draw.rectangle(corners.tolist(), outline=colour, width=width)
    return encode_jpeg(np.asarray(image))


def encode_jpeg(pixels: Array) -> bytes:
    """A JPEG of pixels (height, width, 3)."""
    stream = io.BytesIO()
    pillow().fromarray(np.ascontiguousarray(pixels)).save(stream, "JPEG", quality=80)
    return stream.getvalue()
