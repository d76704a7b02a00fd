"""``tacit segment``: from images, some with masks or boxes, to masks of all of them and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit.commands import INTERRUPTED, CommandRun, run_options

FOLDER = click.Path(exists=True, file_okay=False, readable=True, path_type=Path)

EXAMPLES = """\b
FOLDER has images/, masks/ (PNG of the same stem, for some of the images), and if you like boxes.csv
(file,class,width,height,xmin,ymin,xmax,ymax) and labels.csv (file,contains).

\b
Examples:
  tacit segment horses --out found
  tacit segment horses --predict more_images --out found
"""


@click.command(epilog=EXAMPLES)
@click.argument("folder", type=FOLDER)
@click.option("--predict", "more", type=FOLDER, help="A folder of other images, whose masks are written instead.")
@click.option("--method", type=click.Choice(["felzenszwalb", "slic"]), default="felzenszwalb", show_default=True)
@click.option("--c", "C", type=click.FloatRange(0, min_open=True), help="Weight of the loss; else by cross-validation.")
@click.option("--weak", type=click.FloatRange(0), help="Weight of all images without a mask beside those with one.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Keep the regions of images here.")
@run_options(out="segments")
def segment(
    run: CommandRun,
    folder: Path,
    more: Path | None,
    method: str,
    C: float | None,
    weak: float | None,
    cache: Path | None,
) -> None:
    """Masks of all images from the masks of a few, boxes and labels of others."""
    from tacit.report import render
    from tacit.vision.regions.weak import weak_labels
    from tacit.vision.segmenter import Segmenter
    from tacit.vision.segmenter.folder import image_files, keep_known, read_folder, refuse_small_boxes, write_mask
    from tacit.vision.segmenter.page import segment_page

    data = read_folder(folder)
    others = None if more is None else image_files(more)
    given: dict[str, Any] = {"method": method, "cache": cache, "random_state": run.seed}
    given |= {} if C is None else {"C": C}
    given |= {} if weak is None else {"weak": weak}
    with run.writing(*data.inputs) as out:
        app = Segmenter(n_jobs=run.jobs, verbose=run.verbose, **given)
        run.note(f"cutting {len(data.files)} images into regions")
        graphs = app.cut(data.files)
        refuse_small_boxes(data, graphs)
        y = weak_labels(graphs, data.masks, data.boxes, data.contains)
        app.fit_regions(graphs, y, data.masks, data.boxes)
        if app.is_interrupted:
            run.status = INTERRUPTED
        completed = keep_known(data, app.complete(graphs, y, data.boxes))
        files, masks = (data.files, completed) if others is None else (others, app.predict(others))
        for file, mask in zip(files, masks, strict=True):
            write_mask(out.path(f"masks/{file.stem}.png"), mask)
        app.save(out.path("model.tacit"))
        out.write_text("report.html", render(segment_page(app, data, graphs, completed, files, masks)))
        n_masks = sum(mask is not None for mask in data.masks)
        run.record(
            images=len(data.files),
            with_mask=n_masks,
            masks_written=len(masks),
            C=app.C_,
            weak=app.weak_,
            accuracy=None if app.accuracy_ != app.accuracy_ else round(app.accuracy_, 4),
            iou=None if app.iou_ != app.iou_ else round(app.iou_, 4),
        )
    run.say(f"{len(masks)} masks, learned from {n_masks} masks among {len(data.files)} images: {run.out}/masks")
    run.say(f"Open {run.out / 'report.html'}")
