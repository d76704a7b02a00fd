"""The application: images, some with masks, some with boxes or less; masks come out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.parameters import is_list, number, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import (
    choice,
    either,
    estimator,
    instance,
    not_negative,
    optional,
    parameter,
    positive,
    table,
    whole,
)
from tacit.learners import IterativeLatentSVM, StructuredSVM
from tacit.learners.application import Application
from tacit.runtime import Status
from tacit.vision.regions.boxed_regions import FilledBoxes, boxed_images, fill_boxes, fill_more_boxes
from tacit.vision.regions.features import REGION_SCALES
from tacit.vision.regions.graphs import RegionGraphs, read_image_boxes
from tacit.vision.regions.labels import OBJECT_LABELS, RegionLabels, weak_labels
from tacit.vision.regions.problem import Regions
from tacit.vision.regions.superpixels import regions

CHOICES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Values of C that are compared."""
FOLDS = 5
MIN_MASKS = 3
"""With fewer nothing is compared."""


def _number_or_nan(name: str, value: Any) -> float:
    return number(name, value, "a number, or NaN where there were too few masks", lambda value: not np.isinf(value))


@estimator
class Segmenter(Application):
    """Learn to find an object's pixels from images of which a few have masks, others a box, a word, or nothing.

    Images are cut into regions (`tacit.regions`), weak labels become constraints on the labels of the regions
    (`tacit.weak_labels`), and `IterativeLatentSVM` learns from both, beginning with a model of the masks alone. Boxes
    are filled in before that, by a model that sees them (`tacit.vision.segmenter.fill_boxes`).

    Parameters
    ----------
    method : how images are cut: "felzenszwalb" or "slic"
    C : weight of the loss; "auto" takes as much as there are images with masks if these are one or two; from three on
        the nearest of 1, 3, 10, 30, 100, 300 and 1000, or the one of these that cross-validation on them finds better
        by more than chance; then, where boxes are filled in, the geometric mean of that and of how many images have a
        mask or a box. A number is taken as it is
    weak : how much all images without a mask weigh together, beside those with one; "auto" is the square root of how
        many there are of them per image with a mask; 0 leaves them out
    random_state : of the folds of the cross-validation
    cache : a folder that keeps the regions of images, for the next fit
    n_jobs, verbose : as in `tacit.LatentSVM`

    Attributes
    ----------
    model_ : the fitted learner, a `StructuredSVM` where no image was left open
    box_model_ : the learner that filled in boxes; None where there are none
    box_limits_, box_images_ : which shares of a box it allows, and which images it learned from
    C_, weak_ : what was chosen
    accuracy_, iou_ : means over the images with masks, each predicted by a model of the other folds' masks alone; NaN
        where there are too few
    ceiling_ : (accuracy, IoU) that the best labels of regions would have on the images with masks
    shares_ : the share of the image that the object covers in each of them

    >>> rng = np.random.default_rng(0)
    >>> images, masks = [], []
    >>> for i in range(8):
    ...     image, mask = rng.random((40, 50, 3)) * 0.2, np.zeros((40, 50), bool)
    ...     mask[8:30, 10 + i : 30 + i] = True
    ...     image[mask] += 0.6
    ...     images.append(image)
    ...     masks.append(mask if i < 4 else None)
    >>> model = Segmenter(verbose=0).fit(images, masks)
    >>> found = model.predict(images[:1])[0]
    >>> bool((found == masks[0]).mean() > 0.95)
    True
    """

    learned: ClassVar = {
        "model_": instance((StructuredSVM, IterativeLatentSVM), "a fitted model of regions", problem=Regions),
        "box_model_": optional(instance(IterativeLatentSVM, "a fitted model of regions, or None", problem=Regions)),
        "box_limits_": table(None),
        "C_": _number_or_nan,
        "weak_": _number_or_nan,
        "accuracy_": _number_or_nan,
        "iou_": _number_or_nan,
    }

    method: str = parameter(choice("felzenszwalb", "slic"), default="felzenszwalb")
    C: float | str = parameter(either("auto", positive), default="auto")
    weak: float | str = parameter(either("auto", not_negative), default="auto")
    random_state: int = parameter(whole(0, 2**32 - 1), default=0)
    cache: Any = None
    n_jobs: int | None = None
    verbose: int = 1

    def check_learned(self) -> None:
        super().check_learned()
        for name in ("model_", "box_model_"):
            model = getattr(self, name)
            if model is not None and tuple(np.asarray(model.classes_).tolist()) != OBJECT_LABELS:
                raise ValueError(f"{name} has the labels {shorten(model.classes_)}; those of a Segmenter are 0 and 1")
        limits = self.box_limits_
        if self.box_model_ is not None and (limits.shape != (2,) or not 0 <= limits[0] <= limits[1] <= 1):
            raise ValueError(f"box_limits_ are {shorten(limits)}; they are two shares of a box, the lower one first")

    def fit(self, images: Any, masks: Any, boxes: Any = None, contains: Any = None) -> Segmenter:
        """Learn from images.

        Parameters
        ----------
        images : a list of paths or arrays
        masks : per image a table (height, width), 1 (or True) for the object and 0 elsewhere, −1 where it is unknown;
            or None
        boxes : (n, 4) x_min, y_min, x_max, y_max around the object, NaN for none
        contains : per image True or False, whether the object is there, or None
        """
        self.check_parameters()
        masks = _check_masks(images, masks)
        graphs = self.cut(images)
        y = weak_labels(graphs, masks, boxes, contains)
        return self.fit_regions(graphs, y, masks, boxes)

    def cut(self, images: Any) -> RegionGraphs:
        """The regions of images, as `fit` and `predict` use them."""
        verbose = int(self.verbose)
        return regions(images, self.method, cache=self.cache, n_jobs=self.n_jobs, verbose=verbose)

    def fit_regions(self, graphs: RegionGraphs, y: Any, masks: Sequence[Any], boxes: Any = None) -> Segmenter:
        """`fit` from regions and what is known of them, for those who cut images themselves.

        ``y`` is what `tacit.weak_labels` makes of masks, boxes and words. With the boxes themselves given, too, they
        are filled in first (`tacit.vision.segmenter.fill_boxes`); without, they count by what y says of their regions.
        """
        self.check_parameters()
        table = read_image_boxes(boxes, len(graphs))
        y = RegionLabels.of(y)
        if not len(graphs) == len(y) == len(masks):
            raise ValueError(f"{len(graphs)} images, labels of {len(y)} and {len(masks)} masks; give one each")
        known = np.array([i for i, own in enumerate(y) if (np.asarray(own) >= 0).all() and masks[i] is not None])
        if not known.size:
            raise ValueError("no image has a complete mask, and a few are needed to know what to look for: draw one")
        labels = np.concatenate([np.asarray(y[i]) for i in known])
        if labels.min() == labels.max():
            what = "empty" if labels.max() == 0 else "full"
            raise ValueError(
                f"all {known.size} masks are {what} at the size of regions: there is nothing to tell apart"
            )
        truths = [np.asarray(masks[i]) > 0 for i in known]
        chosen, held_out = choose_C(self, graphs[known], y[known], truths)
        self.C_, (self.accuracy_, self.iou_) = float(chosen), (float(share) for share in held_out)
        painted = graphs[known].paint([np.asarray(y[i]) for i in known])
        self.ceiling_ = np.array(accuracy_and_iou([own == 1 for own in painted], truths))
        self.shares_ = np.array([truth.mean() for truth in truths])
        n_weak = len(graphs) - known.size
        self.weak_ = float(np.sqrt(n_weak / known.size) if isinstance(self.weak, str) else self.weak)
        n_filled = int(boxed_images(masks, table).sum()) if self.weak_ else 0
        if isinstance(self.C, str):
            self.C_ = C_with_filled_boxes(self.C_, known.size, n_filled)
        self.model_, filled = learn_regions(
            graphs, y, masks, table, self.C_, self.weak_, self.n_jobs, int(self.verbose)
        )
        self.box_model_ = None if filled is None else filled.model
        self.box_limits_ = np.empty(0) if filled is None else filled.limits
        self.box_images_ = np.empty(0, dtype=np.int64) if filled is None else filled.images
        return self

    def predict(self, images: Any) -> list[Array]:
        """The mask of every image, a boolean table each."""
        check_is_fitted(self)
        return self.predict_regions(self.cut(images))

    def predict_regions(self, graphs: RegionGraphs) -> list[Array]:
        """The masks of images that are cut into regions already."""
        return [own == 1 for own in graphs.paint(self.model_.predict(graphs))]

    def complete(self, graphs: RegionGraphs, y: Any, boxes: Any = None) -> list[Array]:
        """The masks of images, what is known of them kept: within their boxes, equal to what was drawn.

        With ``boxes`` given, those of which y knows no region inside are filled in by ``box_model_``, where that was
        learned: it sees the box, and so finds more than ``model_``.
        """
        check_is_fitted(self)
        if boxes is not None and self.box_model_ is not None:
            y = fill_more_boxes(self.box_model_, self.box_limits_, graphs, RegionLabels.of(y), boxes)
        labels: Ragged = self.model_.impute(graphs, y)
        return [own == 1 for own in graphs.paint(labels)]

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended the fit of one of the models; what was found until then is kept."""
        check_is_fitted(self)
        models = [self.model_, self.box_model_]
        return any(model is not None and model.status_ is Status.INTERRUPTED for model in models)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _check_masks(images: Any, masks: Any) -> list[Any]:
    if not is_list(masks) or isinstance(masks, np.ndarray):
        raise TypeError(f"masks is a list with a mask or None per image, got {shorten(masks)}")
    own = list(masks)
    if isinstance(images, list | tuple) and len(images) != len(own):
        raise ValueError(f"{len(images)} images and {len(own)} masks; give one each, None where there is none")
    return own


def learn_regions(
    graphs: RegionGraphs,
    y: RegionLabels,
    masks: Sequence[Any],
    boxes: Array | None,
    C: float,
    weak: float,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> tuple[StructuredSVM | IterativeLatentSVM, FilledBoxes | None]:
    """The model of a Segmenter, and the boxes that were filled in for it, None where there are none.

    ``C`` is the weight of the loss on images with complete masks, ``weak`` how much all others weigh together beside
    them.
    """
    shared: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose, "tol": 1e-2}
    is_known = np.array(
        [mask is not None and bool((np.asarray(own) >= 0).all()) for own, mask in zip(y, masks, strict=True)]
    )
    if is_known.all() or not weak:
        known = np.flatnonzero(is_known)
        return StructuredSVM(region_problem(graphs), C=C, **shared).fit(graphs[known], y[known]), None
    if boxes is None or not boxed_images(masks, boxes).any():
        total = C * (1 + weak)  # so that masks weigh as much as they do alone
        return IterativeLatentSVM(region_problem(graphs, weak), C=total, **shared).fit(graphs, y), None
    filled = fill_boxes(graphs, y, masks, boxes, n_jobs=n_jobs, verbose=verbose)
    each = weak * is_known.sum() / (~is_known).sum()
    weights = np.where(boxed_images(masks, boxes), each, 1.0)
    is_open = np.array([bool((np.asarray(own) < 0).any()) for own in filled.y])
    weak_of_open = each * is_open.sum() / (~is_open).sum()  # so that each of them has the weight of a filled box
    total = C * float(np.where(is_open, each, weights).sum()) / int(is_known.sum())
    problem = region_problem(graphs, weak_of_open)
    learner = IterativeLatentSVM if is_open.any() else StructuredSVM
    return learner(problem, C=total, **shared).fit(graphs, filled.y, sample_weight=weights), filled


def region_problem(graphs: RegionGraphs, weak: float = 1.0) -> Regions:
    """What a Segmenter learns: background and object, the features of `tacit.regions` at their scales, others at 1."""
    is_ours = graphs.nodes.values.shape[1] == len(REGION_SCALES)
    return Regions(labels=OBJECT_LABELS, weak=weak, scales=REGION_SCALES if is_ours else None)


def choose_C(app: Any, graphs: RegionGraphs, y: Any, truths: Sequence[Array]) -> tuple[float, tuple[float, float]]:
    """The C for these masks, and the accuracy and IoU that it had on masks that were held out.

    With fewer than `MIN_MASKS` masks ``C`` is as much as there are masks, so that each weighs 1. With more it is one of
    `CHOICES`: of all whose IoU in cross-validation is within one standard error of the best, the nearest to the number
    of masks, by their ratio (see `nearest_good`). A number is taken as it is.
    """
    n = len(graphs)
    candidates = CHOICES if isinstance(app.C, str) else (float(app.C),)
    if n < MIN_MASKS:
        return (float(n) if isinstance(app.C, str) else float(app.C)), (np.nan, np.nan)
    folds = np.array_split(np.random.default_rng(app.random_state).permutation(n), min(FOLDS, n))
    scores = np.empty((len(candidates), n, 2))
    for C, own in zip(candidates, scores, strict=True):
        for fold in folds:
            rest = np.setdiff1d(np.arange(n), fold)
            model = StructuredSVM(region_problem(graphs), C=C, tol=1e-2, verbose=0, n_jobs=app.n_jobs)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a poor C may not converge, and is not chosen
                model.fit(graphs[rest], y[rest])
            for i, found in zip(fold, graphs[fold].paint(model.predict(graphs[fold])), strict=True):
                own[i] = accuracy_and_iou([found == 1], [truths[i]])
    best = nearest_good(np.log(candidates), scores[:, :, 1], float(np.log(n)))
    accuracy, iou = scores[best].mean(axis=0)
    return candidates[best], (float(accuracy), float(iou))


def C_with_filled_boxes(C: float, n_masks: int, n_filled: int) -> float:
    """The C for masks and filled boxes, from the one that `choose_C` found for the masks alone.

    It is the geometric mean of that and of how many images there are of both kinds. C grows with the number of images
    that are learned from: for masks alone it is near to their number. A filled box is an image more, though not as good
    as a mask: so half of the way, by ratios. Boxes that fewer than `MIN_MASKS` masks filled are too rough to count.

    >>> C_with_filled_boxes(3.0, 5, 22), C_with_filled_boxes(2.0, 2, 25)
    (9.0, 2.0)
    """
    return float(np.sqrt(C * (n_masks + n_filled))) if n_masks >= MIN_MASKS and n_filled else C


def nearest_good(values: Any, scores: Array, wished: float) -> int:
    """Which of the values is nearest to the wished one among those that are as good as the best.

    ``scores`` has a row per value and a column per image. As good is one whose mean falls short of the best by no more
    than the standard error of the difference, image by image: on five masks chance decides the rest.

    >>> nearest_good([0, 1, 2], np.array([[0.1, 0.2, 0.1], [0.8, 0.6, 0.9], [0.8, 0.7, 0.9]]), 0.9)
    1
    """
    best = int(np.argmax(scores.mean(axis=1)))
    short = scores[best] - scores
    error = short.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    good = np.flatnonzero(short.mean(axis=1) <= error)
    return int(good[np.argmin(np.abs(np.asarray(values)[good] - wished))])


def accuracy_and_iou(found: Sequence[Array], truths: Sequence[Array]) -> tuple[float, float]:
    """Mean share of right pixels, and mean intersection over union (1 where both masks are empty).

    >>> accuracy_and_iou([np.array([[True, False]])], [np.array([[True, True]])])
    (0.5, 0.5)
    """
    accuracy = [float((own == truth).mean()) for own, truth in zip(found, truths, strict=True)]
    iou = [
        float((own & truth).sum() / either) if (either := int((own | truth).sum())) else 1.0
        for own, truth in zip(found, truths, strict=True)
    ]
    return float(np.mean(accuracy)), float(np.mean(iou))
