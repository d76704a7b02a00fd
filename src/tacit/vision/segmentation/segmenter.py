"""`Segmenter`: weakly supervised segmentation, from images of which some have masks, some boxes or less."""

from __future__ import annotations

import importlib.util
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
from tacit.vision.maps.lite0 import default_network, find_weights
from tacit.vision.maps.network import read_features
from tacit.vision.photos import MAX_PIXELS, image_sources, read_image
from tacit.vision.regions.boxed_regions import FilledBoxes, boxed_images, fill_boxes, fill_more_boxes
from tacit.vision.regions.class_labels import read_class_names
from tacit.vision.regions.features import REGION_FEATURES, REGION_SCALES
from tacit.vision.regions.graphs import RegionGraphs, read_image_boxes
from tacit.vision.regions.labels import OBJECT_LABELS, RegionLabels, weak_labels
from tacit.vision.regions.problem import Regions
from tacit.vision.regions.superpixels import MAX_REGION_PIXELS, add_components, learn_components, regions
from tacit.vision.regions.working_size import enlarge_labels, image_shapes, shrink_labels
from tacit.vision.segmentation.class_segmenter import fit_classes

CHOICES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Values of C that are compared."""
FOLDS = 5
MIN_MASKS = 3
"""With fewer masks, values of C are not compared."""
WORKING_SIDE = 256
"""Longest side at which images are cut into regions, in pixels; masks are enlarged along the edges of the image."""


NO_COMPONENTS = np.zeros((0, 0))


def _is_auto(features: Any) -> bool:
    return isinstance(features, str) and features == "auto"


def _number_or_nan(name: str, value: Any) -> float:
    return number(name, value, "a number, or NaN where there were too few masks", lambda value: not np.isinf(value))


@estimator
class Segmenter(Application):
    """Weakly supervised segmentation: a few images have masks, others a box, an image label, or nothing.

    Images are cut into regions (`tacit.regions`), weak labels become constraints on the labels of the regions
    (`tacit.weak_labels`), and `IterativeLatentSVM` learns from both, beginning with a model of the masks alone. Boxes
    are filled in before that, by a model of regions in boxes (`tacit.vision.segmentation.segmenter.fill_boxes`).

    Parameters
    ----------
    method : how images are cut: "felzenszwalb" or "slic"
    C : factor of the loss. With classes, "auto" is 0.1, 0.3 or 1 times the number of complete masks, by
        cross-validation from six of them on, else their number. Without classes, it is the number of masks if that is
        one or two. From three on it is the nearest to that number of 1, 3, 10, 30, 100, 300 and 1000 that is within a
        standard error of the best in cross-validation. Where boxes are filled in, it is then the geometric mean of
        that and of the number of masks and boxes
    weak : factor of the loss of all images without a mask together, relative to those with one. "auto" is the square
        root of the ratio of their numbers; with classes it is the ratio itself, where images of which nothing is known
        do not count. 0 leaves them out
    random_state : of the folds of the cross-validation
    cache : a folder that keeps the regions of images, for the next fit
    n_jobs, verbose : as in `tacit.LatentSVM`
    classes : names of classes, where there are more than background and object; None for these two
    generic : names that mean one of several classes: a dict from name to a list of classes (`tacit.weak_labels`)
    features : with classes, what describes regions beside their colours, textures and places: "network", tacit's
        network (extra ``net``); the path of your own (``.onnx``); a map of `tacit.vision.maps`; None for nothing. Its
        map is averaged over regions, in principal components; model files do not keep it, so set it after loading.
        "auto" is the network where it is installed. Without classes, "auto" or None
    loss : with classes, "area" or "overlap", see `tacit.problems.Regions`. Rare classes count more with "overlap"
    max_side : larger images are shrunk to this longest side, and their masks enlarged again along the edges of the
        full-size image; so time does not depend on the resolution. None cuts images at full size

    Attributes
    ----------
    model_ : the fitted learner, a `StructuredSVM` where all labels were known
    box_model_ : the learner that filled in boxes, or None
    box_limits_, box_images_ : the least and largest share of a box that it allows, and the images that it learned from
    C_, weak_ : the chosen values
    accuracy_, iou_ : means over the images with masks in cross-validation with masks alone; NaN for too few masks. With
        classes, the accuracy is over all pixels, and the IoU a mean over classes
    confusion_ : (K, K) with classes, counts of pixels by true and found class in that cross-validation
    ceiling_ : (accuracy, IoU) of the best possible labels of regions on the images with masks
    network_ : the checksum of the features, None for none
    components_ : (c, d + 1) with features, principal components of their maps, and last that of the mean
    shares_ : the share of the image that the object covers in each of them; with classes, the share of every class

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
        "components_": table(None, None),
        "network_": optional(instance(str, "a checksum, or None")),
    }

    method: str = parameter(choice("felzenszwalb", "slic"), default="felzenszwalb")
    C: float | str = parameter(either("auto", positive), default="auto")
    weak: float | str = parameter(either("auto", not_negative), default="auto")
    random_state: int = parameter(whole(0, 2**32 - 1), default=0)
    cache: Any = None
    n_jobs: int | None = None
    verbose: int = 1
    classes: Any = None
    generic: Any = None
    loss: str = parameter(choice("area", "overlap"), default="area")
    max_side: int | None = parameter(optional(whole(32, 1 << 31)), default=WORKING_SIDE)
    features: Any = "auto"

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.classes is not None:
            read_class_names(self.classes, self.generic)
            return
        given = {"generic": self.generic is not None, "loss": self.loss != "area"}
        given["features"] = self.features is not None and not _is_auto(self.features)
        for name in (name for name, is_given in given.items() if is_given):
            raise ValueError(f"{name} needs classes; list their names with classes=")

    def check_learned(self) -> None:
        super().check_learned()
        if self.classes is not None:
            k = read_class_names(self.classes, self.generic).size
            if np.asarray(self.model_.classes_).tolist() != list(range(k)) or self.box_model_ is not None:
                raise ValueError(f"the labels of model_ must be 0 to {k - 1}, got {shorten(self.model_.classes_)}")
            table(k, k, kinds="i")("confusion_", getattr(self, "confusion_", None))
            wanted, found = len(REGION_FEATURES) + len(self.components_), self.model_.schema_.n_features
            if found != wanted:
                raise ValueError(f"model_ must have {wanted} features, as many as components_ add up to, got {found}")
            return
        for name in ("model_", "box_model_"):
            model = getattr(self, name)
            if model is not None and tuple(np.asarray(model.classes_).tolist()) != OBJECT_LABELS:
                raise ValueError(f"the labels of {name} must be 0 and 1, got {shorten(model.classes_)}")
        limits = self.box_limits_
        if self.box_model_ is not None and (limits.shape != (2,) or not 0 <= limits[0] <= limits[1] <= 1):
            raise ValueError(f"box_limits_ must be two shares of a box, the lower one first, got {shorten(limits)}")

    def fit(self, images: Any, masks: Any, boxes: Any = None, contains: Any = None) -> Segmenter:
        """Learn from images.

        Parameters
        ----------
        images : a list of paths or arrays
        masks : per image None or a table (height, width), 1 (or True) for the object, 0 for the background, −1 for
            unknown
        boxes : (n, 4) x_min, y_min, x_max, y_max around the object, NaN for none
        contains : per image, whether the object is in it: True, False or None (unknown)

        With classes, masks have the numbers of classes, −1 for unknown and −2 for void. Boxes and contains are dicts
        per image, see `tacit.weak_labels`.
        """
        self.check_parameters()
        masks = _check_masks(images, masks)
        self._learn_features(images)
        graphs = self.cut(images)
        masks, boxes = self.shrink(graphs, images, masks, boxes)
        if self.classes is not None:
            fit_classes(self, graphs, masks, boxes, contains)
            return self
        y = weak_labels(graphs, masks, boxes, contains)
        return self.fit_regions(graphs, y, masks, boxes)

    def cut(self, images: Any) -> RegionGraphs:
        """The regions of images, as `fit` and `predict` use them; their maps are of the working size."""
        settings: dict[str, Any] = {"cache": self.cache, "n_jobs": self.n_jobs, "verbose": int(self.verbose or 0)}
        graphs = regions(images, self.method, max_side=self.max_side, max_pixels=self._max_pixels, **settings)
        components = getattr(self, "components_", NO_COMPONENTS)
        if not components.size:
            return graphs
        maker = self._feature_map()
        if maker is None or maker.digest() != self.network_:
            raise ValueError(
                f"features must be those of the fit, with the checksum {shorten(self.network_)}; set them, or install "
                "tacit[net] where they are the network"
            )
        return add_components(graphs, images, maker, components, max_pixels=MAX_PIXELS, **settings)

    def _learn_features(self, images: Any) -> None:
        """Learn the principal components of the maps of images, where there are features."""
        maker = self._feature_map()
        self.components_, self.network_ = NO_COMPONENTS, None
        if maker is not None:
            settings: dict[str, Any] = {"cache": self.cache, "n_jobs": self.n_jobs, "verbose": int(self.verbose or 0)}
            self.components_ = learn_components(images, maker, max_pixels=MAX_PIXELS, **settings)
            self.network_ = maker.digest()

    def _feature_map(self) -> Any:
        """The checked map maker of ``features``; None for none."""
        features = self.features
        if features is None or self.classes is None:
            return None
        if _is_auto(features):
            if find_weights() is None or importlib.util.find_spec("onnxruntime") is None:
                return None
            features = "network"
        return read_features(default_network() if isinstance(features, str) and features == "network" else features)

    def shrink(self, graphs: RegionGraphs, images: Any, masks: Any, boxes: Any = None) -> tuple[list[Any], Any]:
        """Masks and boxes of images, at the working size of their regions, as `fit_regions` and `complete` need."""
        return shrink_labels(graphs, image_shapes(images, self._max_pixels), list(masks), boxes)

    def enlarge(self, image: Any, labels: Array) -> Array:
        """The mask of an image (a path or an array) at full size, from one at the working size."""
        pixels = image if isinstance(image, np.ndarray) else read_image(image, self._max_pixels)
        return enlarge_labels(pixels, labels)

    @property
    def _max_pixels(self) -> int:
        return MAX_REGION_PIXELS if self.max_side is None else MAX_PIXELS

    def fit_regions(self, graphs: RegionGraphs, y: Any, masks: Sequence[Any], boxes: Any = None) -> Segmenter:
        """`fit` from regions and their weak labels, if you cut images yourself.

        ``y`` comes from `tacit.weak_labels`; masks and boxes are of the size of the graphs' maps. Boxes are filled in
        first (`fill_boxes`); without them only y counts. For background and object, not for classes.
        """
        self.check_parameters()
        if self.classes is not None:
            raise ValueError("fit_regions is for background and object; with classes, call fit")
        self.components_, self.network_ = NO_COMPONENTS, None
        table = read_image_boxes(boxes, len(graphs))
        y = RegionLabels.of(y)
        if not len(graphs) == len(y) == len(masks):
            raise ValueError(f"{len(graphs)} images need as many y and masks, got {len(y)} and {len(masks)}")
        known = np.array([i for i, own in enumerate(y) if (np.asarray(own) >= 0).all() and masks[i] is not None])
        if not known.size:
            raise ValueError("masks must have at least one complete mask; draw one")
        labels = np.concatenate([np.asarray(y[i]) for i in known])
        if labels.min() == labels.max():
            what = "empty" if labels.max() == 0 else "full"
            raise ValueError(f"all {known.size} masks are {what} at the size of regions; draw one with both labels")
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
            graphs, y, masks, table, self.C_, self.weak_, self.n_jobs, int(self.verbose or 0)
        )
        self.box_model_ = None if filled is None else filled.model
        self.box_limits_ = np.empty(0) if filled is None else filled.limits
        self.box_images_ = np.empty(0, dtype=np.int64) if filled is None else filled.images
        return self

    def predict(self, images: Any) -> list[Array]:
        """The mask of every image, a boolean array each; with classes, the number of the class of every pixel."""
        check_is_fitted(self)
        masks = self.predict_regions(self.cut(images))
        return [self.enlarge(image, mask) for image, mask in zip(image_sources(images), masks, strict=True)]

    def predict_regions(self, graphs: RegionGraphs) -> list[Array]:
        """The masks of images that are already cut into regions, at the size of their maps."""
        return self._as_masks(graphs.paint(self.model_.predict(graphs)))

    def _as_masks(self, painted: list[Array]) -> list[Array]:
        return [own == 1 for own in painted] if self.classes is None else painted

    def complete(self, graphs: RegionGraphs, y: Any, boxes: Any = None) -> list[Array]:
        """The masks of images, consistent with their weak labels: within boxes, equal to drawn regions. Masks and boxes
        are of the size of the graphs' maps.

        ``boxes`` without a known region inside are filled in by ``box_model_``, if there is one: with features of the
        box, it is more accurate than ``model_``.
        """
        check_is_fitted(self)
        if boxes is not None and self.classes is None and self.box_model_ is not None:
            y = fill_more_boxes(self.box_model_, self.box_limits_, graphs, RegionLabels.of(y), boxes)
        labels: Ragged = self.model_.impute(graphs, y)
        return self._as_masks(graphs.paint(labels))

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C stopped the fit of one of the models; the best model so far is kept."""
        check_is_fitted(self)
        models = [self.model_, self.box_model_]
        return any(model is not None and model.status_ is Status.INTERRUPTED for model in models)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _check_masks(images: Any, masks: Any) -> list[Any]:
    if not is_list(masks) or isinstance(masks, np.ndarray):
        raise TypeError(f"masks must be a list with a mask or None per image, got {shorten(masks)}")
    own = list(masks)
    if isinstance(images, list | tuple) and len(images) != len(own):
        raise ValueError(f"masks must have {len(images)} entries, one per image (or None), got {len(own)}")
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
    """The model of a Segmenter, and the boxes that were filled in for it, if any.

    ``C`` is the factor of the loss on images with complete masks, ``weak`` that of all others relative to them.
    """
    shared: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose, "tol": 1e-2}
    pairs = zip(y, masks, strict=True)
    is_known = np.array([mask is not None and bool((np.asarray(own) >= 0).all()) for own, mask in pairs])
    if is_known.all() or not weak:
        known = np.flatnonzero(is_known)
        return StructuredSVM(region_problem(graphs), C=C, **shared).fit(graphs[known], y[known]), None
    if boxes is None or not boxed_images(masks, boxes).any():
        total = C * (1 + weak)  # so that masks have the factor that they have alone
        return IterativeLatentSVM(region_problem(graphs, weak), C=total, **shared).fit(graphs, y), None
    filled = fill_boxes(graphs, y, masks, boxes, n_jobs=n_jobs, verbose=verbose)
    each = weak * is_known.sum() / (~is_known).sum()
    weights = np.where(boxed_images(masks, boxes), each, 1.0)
    is_open = np.array([bool((np.asarray(own) < 0).any()) for own in filled.y])
    weak_of_open = each * is_open.sum() / (~is_open).sum()  # so that each of them has the factor of a filled box
    total = C * float(np.where(is_open, each, weights).sum()) / int(is_known.sum())
    problem = region_problem(graphs, weak_of_open)
    learner = IterativeLatentSVM if is_open.any() else StructuredSVM
    return learner(problem, C=total, **shared).fit(graphs, filled.y, sample_weight=weights), filled


def region_problem(graphs: RegionGraphs, weak: float = 1.0) -> Regions:
    """The problem of a Segmenter: background and object, features of `tacit.regions` at their scales, others at 1."""
    is_ours = graphs.nodes.values.shape[1] == len(REGION_SCALES)
    return Regions(labels=OBJECT_LABELS, weak=weak, scales=REGION_SCALES if is_ours else None)


def choose_C(app: Any, graphs: RegionGraphs, y: Any, truths: Sequence[Array]) -> tuple[float, tuple[float, float]]:
    """The C for these masks, and its accuracy and IoU on held-out masks.

    With fewer than `MIN_MASKS` masks ``C`` is the number of masks, so that each has the factor 1. With more it is one
    of `CHOICES`: of all whose IoU in cross-validation is within one standard error of the best, the nearest to the
    number of masks by ratio (see `nearest_good`). A number is not changed.
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

    C grows with the number of training images: for masks alone it is near to their number. A filled box is another
    image, but not as good as a mask, so the result is the geometric mean of C and the number of both. Boxes that were
    filled from fewer than `MIN_MASKS` masks are too inaccurate to count.

    >>> C_with_filled_boxes(3.0, 5, 22), C_with_filled_boxes(2.0, 2, 25)
    (9.0, 2.0)
    """
    return float(np.sqrt(C * (n_masks + n_filled))) if n_masks >= MIN_MASKS and n_filled else C


def nearest_good(values: Any, scores: Array, wished: float) -> int:
    """The position of the value nearest to the wished one, among those that are as good as the best.

    ``scores`` has a row per value and a column per image. A value is as good if its mean is below the best by at most
    the standard error of the difference, image by image: with five masks, smaller differences are chance.

    >>> nearest_good([0, 1, 2], np.array([[0.1, 0.2, 0.1], [0.8, 0.6, 0.9], [0.8, 0.7, 0.9]]), 0.9)
    1
    """
    best = int(np.argmax(scores.mean(axis=1)))
    short = scores[best] - scores
    error = short.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    good = np.flatnonzero(short.mean(axis=1) <= error)
    return int(good[np.argmin(np.abs(np.asarray(values)[good] - wished))])


def accuracy_and_iou(found: Sequence[Array], truths: Sequence[Array]) -> tuple[float, float]:
    """Mean pixel accuracy, and mean intersection over union (1 where both masks are empty).

    >>> accuracy_and_iou([np.array([[True, False]])], [np.array([[True, True]])])
    (0.5, 0.5)
    """
    accuracy = [float((own == truth).mean()) for own, truth in zip(found, truths, strict=True)]
    iou = [
        float((own & truth).sum() / either) if (either := int((own | truth).sum())) else 1.0
        for own, truth in zip(found, truths, strict=True)
    ]
    return float(np.mean(accuracy)), float(np.mean(iou))
