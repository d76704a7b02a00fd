"""What ``tacit segment`` does in folders with ``classes.csv``: masks of several classes, tables and a report."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from tacit import commands
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
    confusion_chart,
)
from tacit.vision.photos import pillow, read_image
from tacit.vision.plots import as_png, draw_classes
from tacit.vision.regions.working_size import sample, shrink, working_shape
from tacit.vision.segmentation.class_folders import ClassImages, ClassTable
from tacit.vision.segmentation.class_segmenter import keep_drawn, label_classes, score_classes
from tacit.vision.segmentation.segmenter import Segmenter

MAX_PICTURES = 24
"""Masks shown on the page; all are in the folder."""
PICTURE_SIDE = 480
"""Longest side of pictures on the page, in pixels."""


def segment_classes(run: Any, data: ClassImages, others: list[Path] | None, inputs: list[Path], given: Any) -> None:
    """Learn classes from a folder, and write masks of its images or of others."""
    classes = data.table.classes
    members = {name: [classes.names[c] for c in own] for name, own in classes.generic.items()}
    with run.writing(*inputs) as out:
        app = Segmenter(**given, classes=list(classes.names), generic=members or None, **run.settings)
        run.note(f"cutting {len(data.files)} images into regions")
        app.fit(data.files, data.masks, data.boxes, data.contains)
        if app.is_interrupted:
            run.status = commands.INTERRUPTED
        files = data.files if others is None else others
        graphs = app.cut(files)
        if others is None:
            small, boxes = app.shrink(graphs, files, data.masks, data.boxes)
            y = label_classes(graphs, small, boxes, data.contains, classes)[2]
            found, drawn = app.complete(graphs, y), data.masks
        else:
            found, drawn = app.predict_regions(graphs), [None] * len(files)
        written = []
        for file, own, known in zip(files, found, drawn, strict=True):
            mask = keep_drawn(app.enlarge(file, own), known, classes)
            written.append(write_class_mask(out.path(f"masks/{file.stem}.png"), file, mask, data.table))
        app.save(out.path("model.tacit"))
        out.write_text("areas.csv", areas_csv(written, classes.names))
        n_masks = sum(mask is not None for mask in data.masks)
        accuracy, iou = (None if value != value else round(value, 4) for value in (app.accuracy_, app.iou_))
        run.record(
            images=len(data.files), with_mask=n_masks, masks_written=len(written), classes=classes.size, C=app.C_,
            weak=app.weak_, accuracy=accuracy, iou=iou,
        )  # fmt: skip
        summary = (
            f"{commands.count_noun(len(written), 'mask')} of {classes.size} classes, learned from {n_masks} masks "
        )
        summary += f"among {commands.count_noun(len(data.files), 'image')}"
        quality = "held-out quality unknown: too few masks to hold some out"
        if accuracy is not None:
            shares = app.confusion_.sum(axis=1) / app.confusion_.sum()
            quality = f"held-out masks: {app.accuracy_:.1%} of pixels right ({shares.max():.1%} if all were "
            quality += f"{classes.names[int(shares.argmax())]}), mean IoU {app.iou_:.1%}"
        run.write_report(out, classes_page(app, data, written), summary, quality)
    run.finish(summary, quality, f"open {run.out / 'report.html'} and check the masks in {run.out / 'masks'}")


def write_classes(out: Any, app: Segmenter, data: ClassImages, masks: Iterable[tuple[Path, Array]]) -> list[Section]:
    """Write the masks of files, from labels at the working size, and areas.csv; return what the page shows of them."""
    table = data.table
    written = [
        write_class_mask(out.path(f"masks/{file.stem}.png"), file, app.enlarge(file, own), table) for file, own in masks
    ]
    out.write_text("areas.csv", areas_csv(written, table.classes.names))
    return [Section("What was found", _pictures(data, written)), Section("All masks", [_areas(app, written)])]


class WrittenClasses(NamedTuple):
    """A mask that was written: its image, the share of every class, and itself at the size of pictures on the page."""

    file: Path
    shares: Array
    shown: Array


def write_class_mask(path: Path, file: Path, mask: Array, table: ClassTable) -> WrittenClasses:
    """Write an indexed PNG, with the values and colours of the classes."""
    palette = np.zeros((256, 3), dtype=np.uint8)
    palette[table.values] = table.colours
    picture = pillow().fromarray(table.values[mask].astype(np.uint8))
    picture.putpalette(palette.ravel().tolist())
    picture.save(path, format="PNG")
    shares = np.bincount(mask.ravel(), minlength=table.classes.size) / mask.size
    return WrittenClasses(file, shares, sample(mask, working_shape(mask.shape, PICTURE_SIDE)))


def areas_csv(written: list[WrittenClasses], names: tuple[str, ...]) -> str:
    """A row per image and class that occurs in its mask: the share of the pixels."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["file", "class", "share"])
    for file, shares, _ in written:
        writer.writerows([file.name, names[c], f"{shares[c]:.4f}"] for c in np.flatnonzero(shares))
    return text.getvalue()


def classes_page(app: Segmenter, data: ClassImages, written: list[WrittenClasses]) -> Page:
    """The page of a run with classes."""
    n_drawn = sum(mask is not None for mask in data.masks)
    return Page(
        "Segmentation into classes",
        f"{len(written)} masks of {len(app.classes)} classes from {n_drawn} drawn ones",
        banner="Interrupted: these are the best masks so far." if app.is_interrupted else "",
        trust=_quality(app, data),
        sections=[
            Section("What was found", _pictures(data, written)),
            Section("All masks", [_areas(app, written)]),
        ],
    )


def _quality(app: Segmenter, data: ClassImages) -> list[Any]:
    parts: dict[str, list[Any]] = {"a mask": data.masks, "boxes": data.boxes, "image labels": data.contains}
    facts: list[tuple[str, Any]] = [
        (f"images with {name}", sum(own is not None for own in each)) for name, each in parts.items()
    ]
    facts += [("factor of the loss, C", app.C_), ("factor of all weak images relative to masks", round(app.weak_, 2))]
    blocks: list[Any] = [Facts(facts)]
    if np.isnan(app.accuracy_):
        return [*blocks, Notice("Too few masks to hold some out: the quality of the result is unknown.", "warning")]
    scores = score_classes(app.confusion_)
    words = (
        f"Held-out masks: pixel accuracy {app.accuracy_:.1%}, mean intersection over union {app.iou_:.1%}, by models "
    )
    words += "of masks alone. With weak labels the result is usually better. The best possible labels of regions have "
    words += f"{app.ceiling_[0]:.1%} and {app.ceiling_[1]:.1%}."
    columns = [
        Column("class"),
        *(
            Column(name, is_number=True, meaning=f"{name} on held-out masks, in percent")
            for name in ("IoU", "accuracy")
        ),
        Column("share of pixels", is_number=True, meaning="in given masks, in percent"),
    ]
    rows = [
        (
            name,
            *("–" if np.isnan(value) else round(100 * float(value), 1) for value in (iou, share)),
            round(100 * float(area), 1),
        )
        for name, iou, share, area in zip(app.classes, scores.iou, scores.class_accuracy, app.shares_, strict=True)
    ]
    chart = confusion_chart(list(app.classes), app.confusion_)
    undrawn = [name for name, area in zip(app.classes, app.shares_, strict=True) if not area]
    if undrawn:
        without = (
            f"No complete mask has {', '.join(undrawn)}: draw some, or these classes are found by weak labels alone."
        )
        blocks.append(Notice(without, "warning"))
    return [
        *blocks,
        Prose(words),
        Table(columns, rows),
        Figure(chart, "Pixels of held-out masks by true class (rows) and found class."),
    ]


def _pictures(data: ClassImages, written: list[WrittenClasses]) -> list[Any]:
    drawn = {file for file, mask in zip(data.files, data.masks, strict=True) if mask is not None}
    names, pictures = data.table.classes.names, []
    for file, shares, shown in sorted(written, key=lambda own: own.file in drawn)[:MAX_PICTURES]:
        overlay = as_png(draw_classes(shrink(read_image(file), PICTURE_SIDE), shown, data.table.colours))
        present = ", ".join(names[c] for c in np.flatnonzero(shares))
        note = " (a mask was given)" if file in drawn else ""
        pictures.append(Picture(overlay, f"the classes of {file.name}", f"{file.name}{note}: {present}"))
    caption = f"Masks lie over the images in these colours, with contours; {len(pictures)} of {len(written)} are shown."
    return [Figure(_legend(names, data.table.colours), caption), Row(pictures)]


def _legend(names: tuple[str, ...], colours: Array) -> Markup:
    """A square of its colour before every name, four per line."""
    parts, height = [], 24 * -(-len(names) // 4)
    for c, (name, (red, green, blue)) in enumerate(zip(names, colours.tolist(), strict=True)):
        x, y = 170 * (c % 4), 24 * (c // 4)
        parts.append(f'<rect x="{x}" y="{y + 3}" width="14" height="14" fill="rgb({red},{green},{blue})"/>')
        parts.append(f'<text x="{x + 20}" y="{y + 14}">{escape(name[:20])}</text>')
    size = f'viewBox="0 0 680 {height}" width="680" style="max-width: 680px"'
    return Markup(f'<svg class="chart" {size} role="img" aria-label="colours of classes">{"".join(parts)}</svg>')


def _areas(app: Segmenter, written: list[WrittenClasses]) -> Table:
    columns = [Column("image"), Column("classes"), Column("largest", is_number=True, meaning="its share, in percent")]
    rows = []
    for file, shares, _ in written:
        order = [c for c in np.argsort(-shares, kind="stable") if shares[c]]
        rows.append((file.name, ", ".join(app.classes[c] for c in order), round(100 * float(shares[order[0]]), 1)))
    return Table(columns, rows)
