"""``tacit segment``: from a folder of images, some with masks or boxes, to masks of all of them and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from tacit import ask, commands
from tacit.data.arrays import Array
from tacit.learners.asking import Questions
from tacit.report import Column, Facts, Figure, Notice, Page, Picture, Prose, Row, Section, Table, line_chart
from tacit.vision.photos import pillow, read_image
from tacit.vision.plots import as_png, draw_mask, draw_regions, join_pictures
from tacit.vision.regions.boxed_regions import regions_in_boxes
from tacit.vision.regions.features import EDGE_FEATURES
from tacit.vision.regions.graphs import RegionGraphs, pixels_inside
from tacit.vision.regions.labels import MIN_INSIDE, weak_labels
from tacit.vision.regions.working_size import sample, shrink, working_shape
from tacit.vision.segmentation.class_command import MAX_PICTURES, PICTURE_SIDE, segment_classes, write_classes
from tacit.vision.segmentation.class_folders import ClassImages, number_classes, read_class_folder, read_class_table
from tacit.vision.segmentation.folders import LabelledImages, image_files, read_folder
from tacit.vision.segmentation.segmenter import WORKING_SIDE, Segmenter

EXAMPLES = commands.examples(
    "tacit segment horses --out found",
    "tacit segment horses --predict more_images --out found",
    "tacit segment new_images --model found/model.tacit --out new",
)
MAX_ROUNDS = 6
"""Iterations shown of one image."""


class MaskValues(click.ParamType[list[int]]):
    """Values of pixels, separated by commas."""

    name = "values"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """The values as whole numbers from 0 to 65535."""
        words = value if isinstance(value, list) else str(value).split(",")
        if not all(str(word).strip().isdecimal() and int(word) < 1 << 16 for word in words):
            commands.refuse(value, "whole numbers from 0 to 65535, separated by commas", param, ctx)
        return [int(word) for word in words]


@click.command(epilog=EXAMPLES)
@click.argument("folder", type=commands.INPUT_FOLDER)
@click.option(
    "--predict", "more", type=commands.INPUT_FOLDER, help="Folder of other images; their masks are written instead."
)
@click.option(
    "--masks",
    "masks_folder",
    type=commands.INPUT_FOLDER,
    help="Folder of masks in place of FOLDER/masks, as tacit label writes it.",
)
@click.option(
    "--object",
    "objects",
    type=MaskValues(),
    metavar="VALUES",
    help="Values of masks that mean the object, such as 1 or 1,3; needed where masks have several beside 0.",
)
@click.option(
    "--unknown",
    type=commands.Number(int, 0, 65_535),
    metavar="VALUE",
    help="Value of masks whose pixels have no label, such as 127 in masks of tacit label --single.",
)
@commands.choice_option(
    "--method", ["felzenszwalb", "slic"], "Algorithm that cuts images into regions; slic makes regions of even size."
)
@commands.c_option()
@click.option(
    "--weak",
    type=commands.Number(float, 0),
    metavar="FACTOR",
    help="Importance of all images without a mask, together, relative to those with one; 0 leaves them out.",
)
@commands.number_option(
    "--max-side", WORKING_SIDE, "Longest side, in pixels, at which images are cut into regions.", least=32
)
@click.option(
    "--features",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="With classes.csv, what describes regions beside their colours: network, the path of a network (.onnx), or "
    "none. auto is the network where it is installed.",
)
@commands.folder_option("--cache", "Folder that keeps the regions of images for the next run.")
@commands.model_option("it writes masks of the images in FOLDER, and nothing is learned.")
@commands.ask_option("images to draw a mask of")
@commands.run_options(out="segments")
def segment(
    run: commands.CommandRun,
    folder: Path,
    more: Path | None,
    masks_folder: Path | None,
    objects: list[int] | None,
    unknown: int | None,
    n_asked: int | None,
    features: str,
    model: Path | None,
    **options: Any,
) -> None:
    """Segment images from the masks of a few, and boxes or labels of others.

    FOLDER has images/ and masks/: PNG files named like their images, for some of the images. It may have boxes.csv
    (file,class,width,height,xmin,ymin,xmax,ymax) and labels.csv (file,contains). Writes a mask of every image to
    masks/, report.html, model.tacit and run.json.

    For several classes, FOLDER has classes.csv (name, and value or colour in masks), boxes.csv names classes, and
    labels.csv has file,classes or file,class,contains. Masks are indexed PNG files, with areas.csv.

    With --model, FOLDER has images alone. Masks of classes then count these from 0; with a classes.csv in FOLDER they
    have its values and colours.
    """
    if model is not None:
        apply_model(run, model, folder, {"--predict": more, "--masks": masks_folder}, options["cache"])
        return
    if (folder / "classes.csv").exists():
        if masks_folder is not None or n_asked is not None or unknown is not None:
            raise click.UsageError(
                "--masks, --unknown and --ask are for one object, not for classes.csv; leave them out"
            )
        options["features"] = None if features == "none" else features
        segment_class_folder(run, folder, more, objects, options)
        return
    if features != "auto":
        raise click.UsageError("--features is for several classes (classes.csv); leave it out")
    data = read_folder(folder, objects=objects, masks_folder=masks_folder, unknown=unknown)
    others = None if more is None else image_files(more)
    given = {name: value for name, value in options.items() if value is not None}
    with run.writing(*data.inputs) as out:
        app = Segmenter(**given, **run.settings)
        run.note(f"cutting {len(data.files)} images into regions")
        graphs = app.cut(data.files)
        masks, boxes = app.shrink(graphs, data.files, data.masks, data.boxes)
        small = data._replace(masks=masks, boxes=boxes)
        refuse_small_boxes(data, small.boxes, graphs)
        y = weak_labels(graphs, masks, boxes, data.contains)
        app.fit_regions(graphs, y, masks, boxes)
        if app.is_interrupted:
            run.status = commands.INTERRUPTED
        completed = app.complete(graphs, y, boxes)
        written = []
        if others is None:
            for i, (file, mask) in enumerate(zip(data.files, completed, strict=True)):
                written.append(write_mask(out, file, keep_known(data, i, app.enlarge(file, mask))))
        else:
            for file, mask in zip(others, app.predict_regions(app.cut(others)), strict=True):
                written.append(write_mask(out, file, app.enlarge(file, mask)))
        app.save(out.path("model.tacit"))
        if n_asked is not None:
            asked = ask_for_masks(app, data, graphs, n_asked, run.seed)
            commands.write_questions(out, [data.files[i].name for i in asked.rows], asked.usefulness)
        n_masks = sum(mask is not None for mask in data.masks)
        found = f"{commands.count_noun(len(written), 'mask')}, learned from {n_masks} masks among "
        found += commands.count_noun(len(data.files), "image")
        quality = "held-out quality unknown: too few masks to hold some out"
        if not np.isnan(app.accuracy_):
            quality = f"held-out masks: {app.accuracy_:.1%} of pixels right, IoU {app.iou_:.1%}"
        run.write_report(out, segment_page(app, small, graphs, completed, written), found, quality)
        run.record(
            images=len(data.files),
            with_mask=n_masks,
            masks_written=len(written),
            C=app.C_,
            weak=app.weak_,
            accuracy=None if app.accuracy_ != app.accuracy_ else round(app.accuracy_, 4),
            iou=None if app.iou_ != app.iou_ else round(app.iou_, 4),
        )
    run.finish(found, quality, f"open {run.out / 'report.html'} and check the masks in {run.out / 'masks'}")


def apply_model(run: commands.CommandRun, model: Path, folder: Path, inputs: dict[str, Any], cache: Any) -> None:
    """Write masks of the images of a folder by the model of an earlier run."""
    app = commands.load_model(model, Segmenter, inputs)
    app.set_params(cache=cache, n_jobs=run.jobs, verbose=run.verbose)
    listed = folder / "classes.csv"
    table = (
        None if app.classes is None else read_class_table(listed) if listed.exists() else number_classes(app.classes)
    )
    if table is not None and table.classes.names != tuple(app.classes):
        raise ValueError(
            f"{listed} must have the classes of the model in their order, {', '.join(app.classes)}; correct it, or "
            "leave it out"
        )
    files = image_files(folder)
    with run.writing(model) as out:
        masks = zip(files, app.predict_regions(app.cut(files)), strict=True)
        found = commands.count_noun(len(files), "mask")
        if table is None:
            written = [write_mask(out, file, app.enlarge(file, mask)) for file, mask in masks]
            sections = [Section("Masks", _masks({}, set(), written)), Section("All masks", [_table(written)])]
        else:
            sections = write_classes(out, app, ClassImages([], table, [], [], []), masks)
            found += f" of {len(app.classes)} classes"
        quality = f"quality: see the report beside {model}"
        run.write_report(out, Page("Segmentation", f"{len(files)} images", sections=sections), found, quality)
        run.record(images=len(files), masks_written=len(files))
    run.finish(found, quality, f"open {run.out / 'report.html'} and check the masks in {run.out / 'masks'}")


def segment_class_folder(
    run: commands.CommandRun, folder: Path, more: Path | None, objects: list[int] | None, options: dict[str, Any]
) -> None:
    """``tacit segment`` for a folder with ``classes.csv``."""
    if objects is not None:
        raise click.UsageError("--object is for one object, and classes.csv for several classes; leave one out")
    data, inputs = read_class_folder(folder)
    others = None if more is None else image_files(more)
    given = {name: value for name, value in options.items() if value is not None or name == "features"}
    segment_classes(run, data, others, inputs, given)


def ask_for_masks(app: Segmenter, data: LabelledImages, graphs: RegionGraphs, k: int, seed: int) -> Questions:
    """The images without a mask whose masks would help most."""
    open_ = np.array([i for i, mask in enumerate(data.masks) if mask is None], dtype=np.int64)
    if not open_.size:
        raise ValueError("all images have a mask, so there is nothing to ask; leave --ask out")
    unknown = [np.full(n, -1) for n in graphs.lengths[open_]]
    asked = ask(app.model_, graphs[open_], unknown, k, random_state=seed)
    return asked._replace(rows=open_[asked.rows])


def keep_known(data: LabelledImages, i: int, mask: Array) -> Array:
    """The mask of image i, to the pixel what is known of it: a drawn mask as it was drawn, nothing outside a box.

    Regions lie across both, so labels of regions alone may differ from them by a few pixels.
    """
    drawn, box = data.masks[i], data.boxes[i]
    if drawn is not None:
        return np.where(drawn < 0, mask, drawn > 0)
    return mask if np.isnan(box).any() else mask & pixels_inside(mask.shape, box)


class WrittenMask(NamedTuple):
    """A mask that was written: its image, its share of the pixels, and itself at the size of pictures on the page."""

    file: Path
    share: float
    shown: Array


def write_mask(out: Any, file: Path, mask: Array) -> WrittenMask:
    """Write the mask of an image as PNG; full-size masks of all images together may not fit into memory."""
    picture = pillow().fromarray(np.where(mask, 255, 0).astype(np.uint8))
    picture.save(out.path(f"masks/{file.stem}.png"), format="PNG")
    return WrittenMask(file, float(mask.mean()), sample(mask, working_shape(mask.shape, PICTURE_SIDE)))


def refuse_small_boxes(data: LabelledImages, boxes: Array, graphs: RegionGraphs) -> None:
    """Refuse a box without a region inside, and name its image; ``boxes`` are of the size of the graphs' maps."""
    for file, mask, box, own in zip(data.files, data.masks, data.boxes, graphs.shares_inside(boxes), strict=True):
        if mask is None and not np.isnan(box).any() and own.max() < MIN_INSIDE:
            raise ValueError(
                f"the box {tuple(box.tolist())} of {file.name} contains no region; make it larger, or use --method "
                "slic, which makes regions of even size"
            )


def segment_page(
    app: Segmenter,
    data: LabelledImages,
    graphs: RegionGraphs,
    completed: list[Array],
    written: list[WrittenMask],
) -> Page:
    """The page of a run of ``tacit segment``; ``data`` has masks and boxes of the size of the graphs' maps."""
    return Page(
        "Segmentation",
        f"{len(written)} masks from {sum(mask is not None for mask in data.masks)} drawn ones",
        banner="Interrupted: these are the best masks so far." if app.is_interrupted else "",
        sections=[
            Section("How good it is", _quality(app, data)),
            Section("Masks", _masks(_boxes(data, graphs), _find_drawn(data), written)),
            Section("How it was learned", _learning(app, data, graphs, completed)),
            Section("All masks", [_table(written)]),
        ],
    )


def _quality(app: Segmenter, data: LabelledImages) -> list[Any]:
    facts: list[tuple[str, Any]] = [(f"images with {name}", n) for name, n in _kinds(data).items() if n]
    facts += [("factor of the loss, C", app.C_), ("factor of all weak images relative to masks", round(app.weak_, 2))]
    blocks: list[Any] = [Facts(facts)]
    if np.isnan(app.accuracy_):
        blocks.append(Notice("Too few masks to hold some out: the quality of the result is unknown.", "warning"))
    else:
        blocks.append(
            Prose(
                f"Held-out masks: pixel accuracy {app.accuracy_:.1%}, intersection over union {app.iou_:.1%}, by "
                f"models of masks alone. With weak labels the result is usually better. The best possible labels of "
                f"regions have {app.ceiling_[0]:.1%} and {app.ceiling_[1]:.1%}."
            )
        )
    return blocks


def _kinds(data: LabelledImages) -> dict[str, int]:
    kinds = {"a mask": 0, "a box": 0, "an image label": 0, "nothing": 0}
    for mask, box, word in zip(data.masks, data.boxes, data.contains, strict=True):
        has = (mask is not None, not np.isnan(box).any(), word is not None, True)
        kinds[list(kinds)[has.index(True)]] += 1
    return kinds


def _boxes(data: LabelledImages, graphs: RegionGraphs) -> dict[Path, Any]:
    """The given box of every image, and the shape of its map, in whose pixels it counts."""
    assert graphs.maps is not None
    return {file: (box, own.shape) for file, box, own in zip(data.files, data.boxes, graphs.maps, strict=True)}


def _find_drawn(data: LabelledImages) -> set[Path]:
    return {file for file, mask in zip(data.files, data.masks, strict=True) if mask is not None}


def _masks(boxes: dict[Path, Any], drawn: set[Path], written: list[WrittenMask]) -> list[Any]:
    pictures = []
    for own in sorted(written, key=lambda own: own.file in drawn)[:MAX_PICTURES]:
        box = None
        if own.file in boxes:
            box, (height, width) = boxes[own.file]
            box = box * np.tile([own.shown.shape[1] / width, own.shown.shape[0] / height], 2)
        overlay = draw_mask(shrink(read_image(own.file), PICTURE_SIDE), own.shown, box)
        words = f"{own.file.name}, as it was drawn" if own.file in drawn else own.file.name
        pictures.append(Picture(as_png(overlay), f"the mask of {own.file.name}", words))
    is_short = len(written) > len(pictures)
    left = f" {len(written)} masks are in the folder; those that were drawn are shown last." if is_short else ""
    return [
        Prose(f"The contour of the object in magenta, its background darker, a given box in blue.{left}"),
        Row(pictures),
    ]


def _learning(app: Segmenter, data: LabelledImages, graphs: RegionGraphs, completed: list[Array]) -> list[Any]:
    blocks: list[Any] = []
    example = next((i for i, mask in enumerate(data.masks) if mask is None), 0)
    assert graphs.maps is not None
    image = shrink(read_image(data.files[example]), max(graphs.maps[example].shape))
    cut = as_png(draw_regions(image, graphs.maps[example]))
    mask = as_png(draw_mask(image, completed[example], data.boxes[example]))
    words = f"{data.files[example].name}: {graphs.lengths[example]} regions"
    blocks.append(
        Row([Picture(cut, "an image cut into regions", words), Picture(mask, "its mask", "the regions of the object")])
    )
    is_boxed = example in app.box_images_
    model: Any = app.box_model_ if is_boxed else app.model_
    lines: list[Any] = [line for line in model.history_ if hasattr(line, "hidden")]
    if lines:
        shown = [lines[int(k)] for k in np.unique(np.linspace(0, len(lines) - 1, min(MAX_ROUNDS, len(lines))))]
        one = graphs[[example]]
        if is_boxed:
            boxed, i = regions_in_boxes(one, data.boxes[[example]]), int(np.searchsorted(app.box_images_, example))
            labels = [boxed.label_all_regions([np.asarray(line.hidden[i])], one.lengths)[0] for line in shown]
        else:
            labels = [np.asarray(line.hidden[example]) for line in shown]
        steps = [draw_mask(image, one.paint([own])[0] == 1) for own in labels]
        words = "The mask that was imputed for this image, from the first iteration to the last."
        blocks.append(Picture(as_png(join_pictures(steps)), "imputed masks by iteration", words))
        chart = line_chart(
            {"images whose mask changed": ([line.iteration for line in lines], [line.changed for line in lines])},
            "iteration",
            "images whose mask changed",
        )
        blocks.append(Figure(chart, "The fit ends when no mask changes, or the objective stays the same."))
    weights = app.model_.weights_["pairwise"]
    names = EDGE_FEATURES if len(weights) == len(EDGE_FEATURES) else [f"feature {k}" for k in range(len(weights))]
    facts = [(name, round(float(weight), 3)) for name, weight in zip(names, weights, strict=True)]
    blocks += [Prose("Cost of different labels of two neighbours, by feature of the pair:"), Facts(facts)]
    return blocks


def _table(written: list[WrittenMask]) -> Table:
    columns = [Column("image"), Column("object", is_number=True, meaning="share of the pixels, in percent")]
    return Table(columns, [(own.file.name, round(100 * own.share, 1)) for own in written])
