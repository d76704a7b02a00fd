"""The report of a segmentation: what was learned from, how good it is, and pictures of regions and masks."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.report import Column, Facts, Figure, Notice, Page, Picture, Prose, Row, Section, Table, line_chart
from tacit.vision.photos import as_colours, pillow, read_image
from tacit.vision.regions.boxed_regions import regions_in_boxes
from tacit.vision.regions.features import EDGE_FEATURES
from tacit.vision.regions.graphs import RegionGraphs
from tacit.vision.segmenter import Segmenter

if TYPE_CHECKING:
    from tacit.vision.segmenter_command import LabelledImages

MAX_PICTURES = 24
"""Masks shown on the page; all are in the folder."""
MAX_ROUNDS = 6
"""Iterations shown of one image."""
OBJECT_COLOUR = (1.0, 0.35, 0.1)
BOX_COLOUR = (0.1, 0.45, 1.0)
MAX_SIDE = 480
"""Pictures for a page are not larger than this."""


def segment_page(
    app: Segmenter,
    data: LabelledImages,
    graphs: RegionGraphs,
    completed: list[Array],
    files: list[Path],
    masks: list[Array],
) -> Page:
    """The page of a run of ``tacit segment``."""
    return Page(
        "Segmentation",
        f"{len(files)} masks from {sum(mask is not None for mask in data.masks)} drawn ones",
        banner="Interrupted: these are the best masks so far." if app.is_interrupted else "",
        sections=[
            Section("How good it is", _quality(app, data)),
            Section("Masks", _masks(data, files, masks)),
            Section("How it was learned", _learning(app, data, graphs, completed)),
            Section("All masks", [_table(files, masks)]),
        ],
    )


def _quality(app: Segmenter, data: LabelledImages) -> list[Any]:
    kinds = _kinds(data)
    facts: list[tuple[str, Any]] = [
        (f"images with {name}" if name != "nothing" else "images with nothing", n) for name, n in kinds.items() if n
    ]
    facts += [("weight of the loss, C", app.C_), ("weight of all weak images beside the masks", round(app.weak_, 2))]
    blocks: list[Any] = [Facts(facts)]
    if np.isnan(app.accuracy_):
        blocks.append(Notice("Too few masks to hold some back: how good the result is cannot be said.", "warning"))
    else:
        blocks.append(
            Prose(
                f"Masks that were held back were predicted by models of the others: {app.accuracy_:.1%} of pixels "
                f"right, intersection over union {app.iou_:.1%}. These models had masks alone, so with weak labels the "
                f"result is usually better. No labels of regions could exceed {app.ceiling_[0]:.1%} and "
                f"{app.ceiling_[1]:.1%}."
            )
        )
    return blocks


def _kinds(data: LabelledImages) -> dict[str, int]:
    kinds = {"a mask": 0, "a box": 0, "a word": 0, "nothing": 0}
    for mask, box, word in zip(data.masks, data.boxes, data.contains, strict=True):
        has = (mask is not None, not np.isnan(box).any(), word is not None, True)
        kinds[list(kinds)[has.index(True)]] += 1
    return kinds


def _masks(data: LabelledImages, files: list[Path], masks: list[Array]) -> list[Any]:
    boxes = dict(zip(data.files, data.boxes, strict=True))
    drawn = {file for file, mask in zip(data.files, data.masks, strict=True) if mask is not None}
    chosen = sorted(range(len(files)), key=lambda i: files[i] in drawn)
    pictures = []
    for i in chosen[:MAX_PICTURES]:
        overlay = draw_mask(read_image(files[i]), masks[i], boxes.get(files[i]))
        words = f"{files[i].name}, as it was drawn" if files[i] in drawn else files[i].name
        pictures.append(Picture(as_png(overlay), f"the mask of {files[i].name}", words))
    is_short = len(files) > len(pictures)
    left = f" {len(files)} masks are in the folder; those that were drawn are shown last." if is_short else ""
    return [Prose(f"The object in orange, a given box in blue.{left}"), Row(pictures)]


def _learning(app: Segmenter, data: LabelledImages, graphs: RegionGraphs, completed: list[Array]) -> list[Any]:
    blocks: list[Any] = []
    example = next((i for i, mask in enumerate(data.masks) if mask is None), 0)
    image = read_image(data.files[example])
    assert graphs.maps is not None
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
            boxed, place = regions_in_boxes(one, data.boxes[[example]]), int(np.searchsorted(app.box_images_, example))
            labels = [boxed.spread([np.asarray(line.hidden[place])], one.lengths)[0] for line in shown]
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
        blocks.append(Figure(chart, "The fit ends when no mask changes, or nothing is gained."))
    weights = app.model_.weights_["pairwise"]
    names = EDGE_FEATURES if len(weights) == len(EDGE_FEATURES) else [f"feature {k}" for k in range(len(weights))]
    facts = [(name, round(float(weight), 3)) for name, weight in zip(names, weights, strict=True)]
    blocks += [Prose("What it costs to cut between two neighbours, by what they are:"), Facts(facts)]
    return blocks


def _table(files: list[Path], masks: list[Array]) -> Table:
    columns = [Column("image"), Column("object", is_number=True, meaning="share of the pixels, in percent")]
    return Table(
        columns, [(file.name, round(100 * float(mask.mean()), 1)) for file, mask in zip(files, masks, strict=True)]
    )


def draw_regions(image: Array, regions: Array) -> Array:
    """The image with the borders of its regions drawn in, (height, width, 3) uint8.

    >>> draw_regions(np.zeros((2, 4)), np.array([[0, 0, 1, 1]] * 2))[0, :, 0].tolist()
    [0, 255, 0, 0]
    """
    colours, cut = as_colours(np.asarray(image)), np.asarray(regions)
    _same_size(colours, cut, "regions")
    borders = np.zeros(cut.shape, dtype=bool)
    borders[:, :-1] |= cut[:, 1:] != cut[:, :-1]
    borders[:-1] |= cut[1:] != cut[:-1]
    return _as_bytes(np.where(borders[:, :, None], (1.0, 0.9, 0.2), colours))


def draw_mask(image: Array, mask: Array, box: Any = None) -> Array:
    """The image with a mask laid over it, and a box drawn around where it was given, (height, width, 3) uint8.

    >>> draw_mask(np.zeros((2, 2)), np.array([[True, False]] * 2))[0].tolist()
    [[140, 49, 14], [0, 0, 0]]
    """
    colours, taken = as_colours(np.asarray(image)), np.asarray(mask, dtype=bool)
    _same_size(colours, taken, "mask")
    colours = np.where(taken[:, :, None], 0.45 * colours + 0.55 * np.array(OBJECT_COLOUR), colours)
    if box is not None and not np.isnan(np.asarray(box, dtype=float)).any():
        left, top, right, bottom = (round(float(side)) for side in box)
        height, width = taken.shape
        rows, columns = (slice(max(a, 0), max(b, a + 1)) for a, b in ((top, bottom), (left, right)))
        for x in (left, right - 1):
            colours[rows, min(max(x, 0), width - 1)] = BOX_COLOUR
        for y in (top, bottom - 1):
            colours[min(max(y, 0), height - 1), columns] = BOX_COLOUR
    return _as_bytes(colours)


def join_pictures(pictures: Sequence[Array], gap: int = 4) -> Array:
    """Pictures side by side, on white."""
    if not pictures:
        raise ValueError("no pictures to join")
    height = max(picture.shape[0] for picture in pictures)
    parts: list[Array] = []
    for picture in pictures:
        padded = np.full((height, picture.shape[1], 3), 255, dtype=np.uint8)
        padded[: picture.shape[0]] = picture
        parts += [padded, np.full((height, gap, 3), 255, dtype=np.uint8)]
    return np.hstack(parts[:-1])


def as_png(picture: Array) -> bytes:
    """A picture as the content of a PNG file, shrunk where it is taller than `MAX_SIDE`."""
    image = pillow().fromarray(picture)
    if image.height > MAX_SIDE:
        image = image.resize((max(1, image.width * MAX_SIDE // image.height), MAX_SIDE))
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()


def _as_bytes(colours: Array) -> Array:
    return np.asarray(np.round(255 * np.clip(colours, 0, 1)).astype(np.uint8))


def _same_size(colours: Array, other: Array, name: str) -> None:
    if other.shape != colours.shape[:2]:
        raise ValueError(
            f"the image has {colours.shape[:2]} pixels, the {name} {shorten(other.shape)}; they must be the same"
        )
