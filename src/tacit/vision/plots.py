"""Figures of images: windows and their probabilities, boxes, rotated images, regions, masks."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import entries, even_table, has_length, is_whole, numbers, shorten
from tacit.data.ragged import Ragged
from tacit.plot.canvas import BLUE, GREEN, INK, ORANGE, axes_grid, history_of, plain_axes, pyplot
from tacit.problems.rotation import Rotations
from tacit.vision.boxes import FoundBoxes
from tacit.vision.photos import as_colours, pillow, read_image

CONTOUR_COLOUR = (1.0, 0.0, 0.8)
BOX_COLOUR = (0.1, 0.45, 1.0)
MAX_SIDE = 480
"""Pictures for a page have at most this height, in pixels."""


def found_windows(
    images: Sequence[Any], bags: Ragged, models: Mapping[str, Any], samples: Sequence[int], truth: Any = None
) -> Any:
    """Photos with the window that a fit found at its first, a middle and its last iteration (self-paced learning).

    One row for every sample and model. A window is blue where the convex task included the sample, and orange where it
    left the sample out; a true box is dotted. The middle is the iteration that left out most samples, or halfway if all
    were included. (Kumar, Packer & Koller 2010, figure 4.)

    Parameters
    ----------
    images : one image per sample, as matplotlib shows them
    bags : their candidates, with boxes
    models : fitted learners by name
    samples : which images to show
    truth : (n, 4) true boxes, if there are any

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit import LatentSVM
    >>> from tacit.problems import Candidates
    >>> bags = Ragged.from_list([[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]]])
    >>> bags = bags.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]] * 2)
    >>> model = LatentSVM(Candidates(), C=10).fit(bags, [0, 1])
    >>> figure = found_windows(np.zeros((2, 6, 6)), bags, {"CCCP": model}, [0, 1])
    >>> len(figure.axes)
    6
    """
    boxes = _boxes_of(bags)
    if not isinstance(models, Mapping) or not models:
        raise ValueError(f"models must be a dict of at least one fitted learner, got {shorten(models)}")
    samples = _read_samples(samples, len(bags))
    rows = [(i, name) for i in samples for name in models]
    heights = [0.25 + 2.3 * np.shape(images[i])[0] / np.shape(images[i])[1] for i, _ in rows]
    figure, axes = axes_grid(len(rows), 3, (7.2, sum(heights)), height_ratios=heights)
    for (i, name), line in zip(rows, axes, strict=True):
        history = history_of(models[name], "is_in", "it is for learners of hidden values, such as LatentSVM")
        for step, ax in zip((history[0], _middle(history), history[-1]), line, strict=True):
            show_image(ax, images[i])
            is_in = bool(step.is_in[i])
            outlines = [(boxes[bags.offsets[i] + int(step.hidden[i])], BLUE if is_in else ORANGE, "-")]
            outline(ax, outlines + _true_box(truth, i))
            ax.set_title(f"{name}, iteration {step.iteration}" + ("" if is_in else ": out"), fontsize=9, color=INK)
    return figure


def window_chances(
    images: Sequence[Any],
    bags: Ragged,
    chances: Ragged,
    samples: Sequence[int],
    predicted: Any = None,
    truth: Any = None,
) -> Any:
    """Photos with P_θ over their windows: the probability of every pixel to lie in the hidden window.

    Beside each photo is a map of it, from white (0) to blue (1). The likeliest window is blue, a predicted one orange,
    a true box dotted green.

    Parameters
    ----------
    images : one image per sample, as matplotlib shows them
    bags : their candidates, with boxes
    chances : one probability per candidate, such as those of `tacit.DissimilaritySVM.conditional_proba`
    samples : which images to show
    predicted : (n,) the predicted candidate, such as that of `predict_hidden`
    truth : (n, 4) true boxes, if there are any

    >>> import matplotlib; matplotlib.use("Agg")
    >>> bags = Ragged.from_list([[[0.0], [5.0]]]).with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]])
    >>> figure = window_chances(np.zeros((1, 4, 6)), bags, Ragged(np.array([0.2, 0.8]), [0, 2]), [0])
    >>> len(figure.axes)
    2
    """
    windows = _boxes_of(bags)
    if not isinstance(chances, Ragged) or not np.array_equal(chances.offsets, bags.offsets):
        raise ValueError("chances must have one probability for every candidate of the bags")
    samples = _read_samples(samples, len(bags))
    heights = [0.25 + 2.6 * np.shape(images[i])[0] / np.shape(images[i])[1] for i in samples]
    figure, axes = axes_grid(len(samples), 2, (5.6, sum(heights)), height_ratios=heights)
    for i, (left, right) in zip(samples, axes, strict=True):
        own = slice(int(bags.offsets[i]), int(bags.offsets[i + 1]))
        boxes, shares = windows[own], np.asarray(chances.values[own], dtype=np.float64)
        outlines = [(boxes[int(np.argmax(shares))], BLUE, "-")]
        if predicted is not None and int(predicted[i]) >= 0:
            outlines.append((boxes[int(predicted[i])], ORANGE, "-"))
        show_image(left, images[i])
        outline(left, outlines + _true_box(truth, i))
        covered = pixel_chances(np.shape(images[i])[:2], boxes, shares)
        height, width = covered.shape
        right.imshow(covered, cmap="Blues", vmin=0, vmax=1, extent=(0, width, height, 0))
        right.set_axis_off()
        right.set_title(f"likeliest window: {shares.max():.0%}", fontsize=9, color=INK)
    return figure


def _boxes_of(bags: Ragged) -> Array:
    if not isinstance(bags, Ragged):
        raise TypeError(f"bags must be a tacit.Ragged with boxes, got {shorten(bags)}")
    if bags.boxes is None:
        raise ValueError("bags must have boxes; add them with bags.with_boxes(...)")
    return bags.boxes


def _read_samples(samples: Any, n: int) -> list[Any]:
    listed = entries("samples", samples, f"a list of numbers from 0 to {n - 1}")
    if not listed or not all(is_whole(i) and 0 <= i < n for i in listed):
        raise ValueError(f"samples must be at least one of 0 to {n - 1}, got {shorten(listed)}")
    return listed


def _count(values: Any) -> str:
    """The number of entries, for errors; the value itself where it has no length."""
    return str(len(values)) if has_length(values) else shorten(values)


def _true_box(truth: Any, i: int) -> list[tuple[Array, str, str]]:
    """The outline of the true box of an image, if there is one."""
    return [(np.asarray(truth[i]), GREEN, ":")] if truth is not None and np.isfinite(truth[i]).all() else []


def pixel_chances(shape: tuple[int, ...], boxes: Array, shares: Array) -> Array:
    """(height, width) the probability of every pixel to lie in a box that is sampled with these probabilities.

    >>> pixel_chances((1, 3), np.array([[0, 0, 2, 1], [1, 0, 3, 1]]), np.array([0.25, 0.75]))
    array([[0.25, 1.  , 0.75]])
    """
    total = np.zeros(shape)
    for (x0, y0, x1, y1), share in zip(np.round(boxes).astype(int).tolist(), shares.tolist(), strict=True):
        total[max(y0, 0) : y1, max(x0, 0) : x1] += share
    return total


def predicted_boxes(
    images: Sequence[Any], found: FoundBoxes, y: Any = None, truth: Any = None, columns: int = 4
) -> Any:
    """Images with the box and the label that a model predicts for each.

    Box and title are blue where the label is right, orange where it is wrong (all blue without y); a drawn box is
    dotted green. The number after the label is the margin of its best window over that of any other label.

    Parameters
    ----------
    images : one per box, as matplotlib shows them, or paths
    found : of `tacit.vision.boxes.predict_boxes`
    y : the true labels, if they are known
    truth : (n, 4) drawn boxes, if there are any; NaN for images without a box
    columns : images side by side

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.vision.boxes import FoundBoxes
    >>> found = FoundBoxes(np.array(["cat", "dog"]), np.array([[0, 0, 4, 4.0], [2, 0, 6, 4]]), np.array([1.5, 0.2]))
    >>> figure = predicted_boxes(np.zeros((2, 6, 6)), found)
    >>> [ax.get_title() for ax in figure.axes]
    ['cat (1.5)', 'dog (0.2)']
    """
    if not isinstance(found, FoundBoxes):
        raise TypeError(f"found must be what tacit.vision.boxes.predict_boxes returns, got {shorten(found)}")
    n = len(found.boxes)
    if not has_length(images) or len(images) != n or n == 0:
        raise ValueError(f"images must be one per box and at least one, got {_count(images)} for {n} boxes")
    if y is not None and (not has_length(y) or len(y) != n):
        raise ValueError(f"y must have {n} labels, one per image, got {_count(y)}")
    if truth is not None and numbers("truth", truth).shape != (n, 4):
        raise ValueError(f"truth must have shape {(n, 4)}, one box per image, got {np.shape(truth)}")
    pixels = [read_image(image) if isinstance(image, (str, os.PathLike)) else image for image in images]
    across = min(columns, n)
    down = -(-n // across)
    height = 2.4 * float(np.mean([np.shape(image)[0] / np.shape(image)[1] for image in pixels])) + 0.35
    figure, axes = axes_grid(down, across, (2.4 * across, height * down + 0.3))
    for ax in axes.ravel()[n:]:
        ax.remove()
    has_truth = False
    for i, (ax, image) in enumerate(zip(axes.ravel()[:n], pixels, strict=True)):
        colour = BLUE if y is None or found.y[i] == y[i] else ORANGE
        drawn = _true_box(truth, i)
        has_truth |= bool(drawn)
        show_image(ax, image)
        outline(ax, [(found.boxes[i], colour, "-"), *drawn])
        ax.set_title(f"{found.y[i]} ({found.scores[i]:.2g})", fontsize=10, color=colour if y is not None else INK)
    _name_lines(figure, y is not None, has_truth)
    return figure


def _name_lines(figure: Any, has_labels: bool, has_truth: bool) -> None:
    """A legend of the colours and lines of `predicted_boxes`."""
    from matplotlib.lines import Line2D

    meanings = {"found, label right": (BLUE, "-"), "found, label wrong": (ORANGE, "-")}
    if not has_labels:
        meanings = {"found": (BLUE, "-")}
    if has_truth:
        meanings["drawn by hand"] = (GREEN, ":")
    lines = [Line2D([], [], color=colour, ls=style, lw=1.8) for colour, style in meanings.values()]
    figure.legend(lines, list(meanings), loc="outside lower center", ncols=len(lines), frameon=False, fontsize=9)


def rotated_images(images: Array, hidden: Array, rotations: Rotations, titles: Sequence[Any] | None = None) -> Any:
    """Images as they are (above), and rotated back by the angle that was found for each (below).

    Parameters
    ----------
    images : (n, height, width), or (n, height, width, channels) as matplotlib shows them
    hidden : (n,) the hidden value of each: the position of its angle
    rotations : the angles, `tacit.problems.rotations(...)`
    titles : one per image; None for the angles

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.problems import rotations
    >>> figure = rotated_images(np.eye(5)[None].repeat(3, axis=0), [0, 1, 2], rotations(-45, 45, 3))
    >>> len(figure.axes)
    6
    """
    images, hidden = _as_shown(images), even_table("hidden", hidden)
    after = _rotate_back(images, hidden, rotations)
    figure, axes = axes_grid(2, len(images), (max(3.0, 1.05 * len(images)), 2.7))
    if titles is None:
        titles = [f"{rotations.states[h]:.0f}°" for h in hidden]
    titles = entries("titles", titles, f"{len(images)} titles, one per image", len(images))
    for pair, before, then, title in zip(axes.T, images, after, titles, strict=True):
        show_image(pair[0], before)
        show_image(pair[1], then)
        pair[1].set_title(str(title), fontsize=10, color=INK)
    _name_rows(axes)
    return figure


def mean_images(images: Array, y: Any, hidden: Array, rotations: Rotations) -> Any:
    """The mean image of every class before (above) and after (below) the images are rotated back: sharper is better.

    Parameters
    ----------
    images : (n, height, width), or (n, height, width, channels) as matplotlib shows them
    y : (n,) labels
    hidden : (n,) the hidden value of each image: the position of its angle
    rotations : the angles, `tacit.problems.rotations(...)`

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.problems import rotations
    >>> figure = mean_images(np.eye(5)[None].repeat(4, axis=0), [0, 0, 1, 1], [0, 1, 2, 1], rotations(-45, 45, 3))
    >>> [ax.get_title() for ax in figure.axes[:2]]
    ['0', '1']
    """
    images, y, hidden = _as_shown(images), np.asarray(y), np.asarray(hidden)
    after = _rotate_back(images, hidden, rotations)
    classes = np.unique(y)
    figure, axes = axes_grid(2, len(classes), (max(3.6, 1.05 * len(classes)), 2.7))
    for column, label in zip(axes.T, classes, strict=True):
        for ax, table in zip(column, (images, after), strict=True):
            show_image(ax, table[y == label].mean(axis=0))
        column[0].set_title(str(label), fontsize=10, color=INK)
    _name_rows(axes)
    return figure


def box_statistics(boxes: Array, sizes: Array) -> Any:
    """The sizes and locations of boxes: width and height, and how often each location of an image is covered.

    Parameters
    ----------
    boxes : (n, 4) x_min, y_min, x_max, y_max, one per image
    sizes : (n, 2) width and height of the images

    >>> import matplotlib; matplotlib.use("Agg")
    >>> figure = box_statistics([[0, 0, 5, 5], [2, 2, 9, 8]], [[10, 10], [10, 10]])
    >>> [ax.get_xlabel() for ax in figure.axes[:2]]
    ['width, share of the image', 'x, share of the image']
    """
    boxes, sizes = numbers("boxes", boxes), numbers("sizes", sizes)
    if boxes.ndim != 2 or boxes.shape[1] != 4 or sizes.shape != (len(boxes), 2) or not len(boxes):
        raise ValueError(f"boxes must be (n, 4) and sizes (n, 2), got shapes {boxes.shape} and {sizes.shape}")
    if not (sizes > 0).all():
        raise ValueError(f"sizes must be positive; the size of image {int(np.argmin(sizes.min(axis=1)))} is unknown")
    share = boxes / np.tile(sizes, 2)
    width, height = share[:, 2] - share[:, 0], share[:, 3] - share[:, 1]
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(8.2, 3.6), layout="constrained")
    left.scatter(width, height, s=10, color=BLUE, alpha=0.5, lw=0)
    left.axvline(np.median(width), color=ORANGE, lw=1)
    left.axhline(np.median(height), color=ORANGE, lw=1)
    left.set(xlim=(0, 1), ylim=(0, 1), xlabel="width, share of the image", ylabel="height, share of the image")
    left.set_title(
        f"{len(boxes)} boxes, median {np.median(width):.0%} × {np.median(height):.0%}", fontsize=10, color=INK
    )
    plain_axes(left)
    shown = right.imshow(coverage(share), extent=(0, 1, 1, 0), cmap="Blues", vmin=0, vmax=1)
    right.set(xlabel="x, share of the image", ylabel="y, share of the image")
    right.set_title("share of the boxes that cover a location", fontsize=10, color=INK)
    figure.colorbar(shown, ax=right, shrink=0.85)
    return figure


def coverage(share: Array, side: int = 64) -> Array:
    """(side, side): the share of boxes, given relative to their images, that cover each location.

    >>> coverage(np.array([[0.0, 0.0, 0.5, 1.0]]), 2)
    array([[1., 0.],
           [1., 0.]])
    """
    middle = (np.arange(side) + 0.5) / side
    across = (share[:, :1] <= middle) & (middle < share[:, 2:3])
    down = (share[:, 1:2] <= middle) & (middle < share[:, 3:4])
    return np.asarray(np.einsum("ny,nx->yx", down.astype(float), across.astype(float)) / len(share))


def _name_rows(axes: Array) -> None:
    for ax, name in zip(axes[:, 0], ("as they are", "rotated back"), strict=True):
        ax.text(-0.14, 0.5, name, transform=ax.transAxes, rotation=90, va="center", ha="center", fontsize=10, color=INK)


def _as_shown(images: Any) -> Array:
    """Colours from 0 to 255, scaled to 0 … 1: rotated and mean images are floats, which matplotlib cuts at 1."""
    table = even_table("images", images)
    if table.dtype.kind not in "biuf":
        raise ValueError(f"images must be numbers, (n, height, width), got {table.dtype}")
    return np.asarray(table / 255) if table.ndim == 4 and table.dtype == np.uint8 else table


def _rotate_back(images: Array, hidden: Array, rotations: Rotations) -> Array:
    if images.ndim not in (3, 4) or hidden.shape != (len(images),) or not len(images):
        shapes = f"{images.shape} and {hidden.shape}"
        raise ValueError(f"images must be (n, height, width) and hidden (n,), got {shapes}")
    if not isinstance(rotations, Rotations) or hidden.dtype.kind not in "iu":
        what = f"{hidden.dtype} and {shorten(rotations)}"
        raise ValueError(f"hidden must be whole numbers and rotations those of tacit.problems.rotations, got {what}")
    rotations.check()
    count = len(rotations.states)
    wrong = np.flatnonzero((hidden < 0) | (hidden >= count))
    if wrong.size:
        raise ValueError(f"hidden[{wrong[0]}] is {hidden[wrong[0]]}; it must be the position of one of {count} angles")
    out = np.empty(images.shape)
    for h, rotation in enumerate(rotations.maps(images.shape[1:])):
        own = hidden == h
        flat = images[own].reshape(np.count_nonzero(own), rotation.shape[0])
        out[own] = np.asarray(flat @ rotation).reshape(-1, *images.shape[1:])
    return out


def _middle(history: Any) -> Any:
    fewest = min(step.samples_in for step in history)
    is_paced = fewest < max(step.samples_in for step in history)
    return next(s for s in history if s.samples_in == fewest) if is_paced else history[len(history) // 2]


def show_image(ax: Any, image: Any) -> None:
    """Show an image without axes; coordinates are pixels from the upper left corner."""
    shown = even_table("image", image)
    is_grey = shown.ndim == 2
    if shown.dtype.kind not in "biuf" or not (is_grey or (shown.ndim == 3 and shown.shape[2] in (3, 4))):
        raise ValueError(f"images must be numbers, (height, width) or (height, width, 3), got {shorten(shown)}")
    height, width = shown.shape[:2]
    ax.imshow(shown, cmap="gray" if is_grey else None, extent=(0, width, height, 0))
    ax.set_axis_off()


def outline(ax: Any, outlines: Sequence[tuple[Array, str, str]]) -> None:
    """Draw boxes by colour and style, all on white lines that are visible on any photo."""
    corners = [((x0, x1, x1, x0, x0), (y0, y0, y1, y1, y0)) for (x0, y0, x1, y1), _, _ in outlines]
    for x, y in corners:
        ax.plot(x, y, "-", color="white", lw=3.0, clip_on=False)
    for (x, y), (_, colour, style) in zip(corners, outlines, strict=True):
        ax.plot(x, y, style, color=colour, lw=1.8, clip_on=False)


def draw_regions(image: Array, regions: Array) -> Array:
    """The image with the borders of its regions drawn in, (height, width, 3) uint8.

    >>> draw_regions(np.zeros((2, 4)), np.array([[0, 0, 1, 1]] * 2))[0, :, 0].tolist()
    [0, 255, 0, 0]
    """
    colours, cut = as_colours(np.asarray(image)), np.asarray(regions)
    _check_size(colours, cut, "regions")
    borders = np.zeros(cut.shape, dtype=bool)
    borders[:, :-1] |= cut[:, 1:] != cut[:, :-1]
    borders[:-1] |= cut[1:] != cut[:-1]
    return _as_bytes(np.where(borders[:, :, None], (1.0, 0.9, 0.2), colours))


def draw_mask(image: Array, mask: Array, box: Any = None) -> Array:
    """The image with the contour of a mask, darker outside of it, and a box where it was given, (height, width, 3)
    uint8.

    >>> draw_mask(np.ones((1, 4)), np.array([[True, True, True, False]]))[0].tolist()
    [[255, 255, 255], [255, 255, 255], [255, 0, 204], [115, 115, 115]]
    """
    colours, taken = as_colours(np.asarray(image)), np.asarray(mask, dtype=bool)
    _check_size(colours, taken, "mask")
    beside = np.zeros_like(taken)
    for one, other in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        beside[one] |= ~taken[other]
        beside[other] |= ~taken[one]
    colours = np.where(taken[:, :, None], colours, 0.45 * colours)
    colours[taken & beside] = CONTOUR_COLOUR
    if box is not None and not np.isnan(np.asarray(box, dtype=float)).any():
        left, top, right, bottom = (round(float(side)) for side in box)
        height, width = taken.shape
        rows, columns = (slice(max(a, 0), max(b, a + 1)) for a, b in ((top, bottom), (left, right)))
        for x in (left, right - 1):
            colours[rows, min(max(x, 0), width - 1)] = BOX_COLOUR
        for y in (top, bottom - 1):
            colours[min(max(y, 0), height - 1), columns] = BOX_COLOUR
    return _as_bytes(colours)


def draw_classes(image: Array, labels: Array, colours: Array) -> Array:
    """The image with its classes laid over it, and contours in their colours, (height, width, 3) uint8.

    ``labels`` has the number of the class of every pixel, ``colours`` (K, 3) the colours of classes as bytes.

    >>> draw_classes(np.zeros((1, 4)), np.array([[0, 0, 0, 1]]), np.array([[200, 0, 0], [0, 200, 0]]))[0].tolist()
    [[60, 0, 0], [60, 0, 0], [200, 0, 0], [0, 200, 0]]
    """
    pixels, own = as_colours(np.asarray(image)), np.asarray(labels)
    _check_size(pixels, own, "labels")
    contours = np.zeros(own.shape, dtype=bool)
    for one, other in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        apart = own[one] != own[other]
        contours[one] |= apart
        contours[other] |= apart
    of_class = np.asarray(colours, dtype=np.float64)[own] / 255
    return _as_bytes(np.where(contours[:, :, None], of_class, 0.7 * pixels + 0.3 * of_class))


def join_pictures(pictures: Sequence[Array], gap: int = 4) -> Array:
    """Pictures side by side, on white."""
    if not pictures:
        raise ValueError("pictures must have at least one picture")
    height = max(len(picture) for picture in pictures)
    padding = [((0, height - len(picture)), (0, gap), (0, 0)) for picture in pictures]
    parts = [np.pad(*both, constant_values=255) for both in zip(pictures, padding, strict=True)]
    return np.hstack(parts)[:, : -gap or None]


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


def _check_size(colours: Array, other: Array, name: str) -> None:
    if other.shape != colours.shape[:2]:
        raise ValueError(f"{name} must have the {colours.shape[:2]} pixels of the image, got {shorten(other.shape)}")
