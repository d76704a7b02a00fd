"""`Locator`: object localisation from photos with a class each, and from boxes drawn in some of them."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tacit import StructuredSVM
from tacit.data.arrays import Array, is_table
from tacit.data.labels import find_labels, read_labels
from tacit.data.parameters import number, numbers, shape_of, shorten, whole_number
from tacit.data.specs import choice, estimator, instance, optional, parameter, positive, table, whole
from tacit.learners.application import Application
from tacit.oracle import Schema
from tacit.problems import Multiclass
from tacit.runtime import Status
from tacit.vision.boxes import FoundBoxes, overlap
from tacit.vision.detection import Detection
from tacit.vision.detectors import (
    LABEL_WINDOWS,
    MIN_DRAWN,
    SHARED_C,
    Recipe,
    choose_detector,
    hold_out_scores,
)
from tacit.vision.maps.photo_features import PhotoFeatures
from tacit.vision.maps.photo_maps import MapShards
from tacit.vision.maps.window_maps import (
    SAME,
    WindowMaps,
    best_types,
    boxes_of,
    expected_boxes,
    measure_temperature,
    window_scores,
)
from tacit.vision.several_objects import (
    FACTS,
    Detections,
    largest_boxes,
    learn_objects,
    leave_out_other_objects,
    probabilities,
    propose_boxes,
    read_truths,
)
from tacit.vision.whole_objects import N_MAPS, find_whole_objects, learn_maps

LABEL_C = (10.0, 100.0, 1000.0)
"""Values of C of the classifier of whole photos; cross-validation chooses one."""
MIN_BOXES = 2
"""Least number of drawn boxes to learn a detector from them."""
MAX_TYPES = 50
"""Limit of hidden types of the object: each needs its own drawn boxes, so more is almost certainly a typo."""
HANDMADE_PARTS = 4
"""Pieces of a window across, and down, with hand-made features, which do not encode the layout."""
BACKGROUND = ("background", "negatives", "none")
"""Classes of photos without an object: they teach what the other classes are not, and get no box."""
EXTENTS = ("auto", "part", "whole")
OBJECTS = ("auto", "one", "several")
WHOLE_SIDE = 640
"""Longest side of photos for boxes around whole objects, in pixels: their maps must be finer than those of windows."""


@estimator
class Locator(Application):
    """Weakly supervised object localisation: from the classes of photos alone, or with boxes drawn in some of them.

    Labels do not say whether the object or its most typical part is meant: see ``extent``. The label comes from the
    mean of the feature map, by a linear classifier, so that the search for boxes never costs accuracy. Boxes around
    whole objects come from three maps of each class, see `tacit.vision.whole_objects`. Otherwise the window is the one
    of the highest score (u + v_y)·φ: v_y by class from labels, u shared by all classes
    from drawn boxes. How these are learned is chosen automatically: see ``method_``.

    Parameters
    ----------
    features : "network" (EfficientNet-Lite0, of the extra ``net``), the path of a network in ONNX format, "handmade"
        (gradients, textures, colours and visual words), or a map of `tacit.vision.maps`
    n_components : principal components of the cells that windows see
    parts : pieces of a window across, and down, each with its own weights, where boxes are drawn; None for 4 with
        hand-made features, which do not encode the layout, and 1 with others. From labels alone it is 1
    types : hidden types of the object, each with its own weights: kinds that look different, learned from drawn boxes.
        One detector with types is then shared by all classes
    extent : what boxes of labels alone enclose: "whole" for the whole object, "part" for the part that separates the
        classes best, such as heads. "auto" prefers the whole object; with drawn boxes these show the extent
    objects : how many objects a photo has: "one", "several" (their number is learned from drawn boxes of at least four
        photos), or "auto": several where a photo has several drawn boxes. See `detect`
    cache : a folder that keeps feature maps
    spool : a folder for temporary files with all feature maps; only their principal components are then in memory.
        The result is the same
    random_state : seed
    n_jobs : threads
    verbose : 1 shows progress on a terminal

    Attributes
    ----------
    classes_ : the labels
    method_ : how boxes are found. From labels: "whole" (three maps of the class), "agreed"
        (a detector learned from boxes on which two methods agree), "latent", or "agreed and latent" (the latter for
        classes in which they disagree). From drawn boxes: "shared",
        "shared and latent", or "types"
    found_ : the boxes of the training photos, given their labels, and the confidence of each
    found_types_ : (n,) the types of the objects in them, from 0
    evidence_ : the numbers behind the choice: mean IoU of held-out boxes by method, agreement of methods
    advice_ : one sentence on the quality, and on what would help
    accuracy_ : share of correct labels in cross-validation on the training photos
    least_sure_ : the training photos without a drawn box, the least confident first: where a box would help most
    """

    _not_saved = ("callbacks", "checkpoint", "resume", "verbose", "cache", "spool", "n_jobs")

    learned: ClassVar = {
        "schema_": instance(Schema, "a schema"),
        "coef_": table(None),
        "temperature_": positive,
        "labeller_": optional(instance(StructuredSVM, "a fitted StructuredSVM, or None", problem=Multiclass)),
        "mean_": table(None),
        "scale_": table(None),
        "found_boxes_": table(None, 4),
        "found_scores_": table(None),
    }

    features: Any = "handmade"
    n_components: int = parameter(whole(), default=96)
    parts: int | None = parameter(optional(whole(1, 8)), default=None)
    types: int = parameter(whole(1, MAX_TYPES), default=1)
    extent: str = parameter(choice(*EXTENTS), default="auto")
    objects: str = parameter(choice(*OBJECTS), default="auto")
    cache: str | os.PathLike[str] | None = None
    spool: str | os.PathLike[str] | None = None
    random_state: int = parameter(whole(0, 2**32 - 1), default=0)
    n_jobs: int | None = parameter(optional(whole(1, 1024)), default=None)
    verbose: int = 1

    def check_parameters(self) -> None:
        super().check_parameters()
        self._photo_features.check()

    def check(self) -> None:
        """As of every application, but without the network, which is needed only to describe photos."""
        if not isinstance(self.features, str):
            raise ValueError("features in a model file must be 'handmade', 'network' or the path of a network")
        super().check_parameters()
        self.check_learned()

    def check_learned(self) -> None:
        super().check_learned()
        self._problem().check_schema(self.schema_)
        if self.labeller_ is None:
            if self._only_classes() is None:
                raise ValueError("labeller_ may only be None for one class, only_class_")
        elif not np.array_equal(self.labeller_.schema_.classes, self.schema_.classes):
            raise ValueError("classes of labeller_ and schema_ must be the same")
        n_params, n_features = self.schema_.n_params, self.schema_.n_features
        for name, size in (("coef_", n_params), ("mean_", n_features), ("scale_", n_features)):
            if len(getattr(self, name)) != size:
                raise ValueError(f"{name} must have {size} numbers, as schema_, got {len(getattr(self, name))}")
        is_whole: Any = getattr(self, "is_whole_", None)
        weights: Any = getattr(self, "map_weights_", None)
        if not isinstance(is_whole, bool):
            raise ValueError(f"is_whole_ must be True or False, got {shorten(is_whole)}")
        shape = (N_MAPS * len(self.classes_), whole_number("n_components_", getattr(self, "n_components_", None)) + 1)
        if is_whole and not (is_table(weights, 2, "f") and weights.shape == shape and np.isfinite(weights).all()):
            raise ValueError(f"map_weights_ must be finite numbers of shape {shape}, got {shorten(weights)}")
        self._check_objects()
        n = len(self.found_boxes_)
        labels, kinds = getattr(self, "found_labels_", None), getattr(self, "found_types_", None)
        if not isinstance(labels, np.ndarray) or labels.shape != (n,) or len(self.found_scores_) != n:
            raise ValueError(f"found_labels_ and found_scores_ must have {n} entries, one per box of found_boxes_")
        if (find_labels(self.classes_, labels) < 0).any():
            raise ValueError("found_labels_ must be classes of schema_")
        if kinds is not None and (not is_table(kinds, 1, "iu") or kinds.shape != (n,)):
            raise ValueError(f"found_types_ must be {n} whole numbers, got {shorten(kinds)}")

    def _check_objects(self) -> None:
        only: Any = getattr(self, "only_class_", None)
        if only is not None and (not isinstance(only, np.ndarray) or only.shape != (1,)):
            raise ValueError(f"only_class_ must be None or an array of one class, got {shorten(only)}")
        if not isinstance(getattr(self, "is_several_", None), bool):
            raise ValueError("is_several_ must be True or False")
        if not self.is_several_:
            return
        table(len(FACTS) + 1)("object_weights_", getattr(self, "object_weights_", None))
        positive("object_threshold_", getattr(self, "object_threshold_", None))
        boxes: Any = getattr(self, "detected_boxes_", None)
        table(None, 4)("detected_boxes_", boxes)
        table(len(boxes))("detected_scores_", getattr(self, "detected_scores_", None))
        owners: Any = getattr(self, "detected_owners_", None)
        n = len(self.found_boxes_)
        if (
            not is_table(owners, 1, "iu")
            or len(owners) != len(boxes)
            or (owners.size and not 0 <= owners.min() <= owners.max() < n)
        ):
            raise ValueError(f"detected_owners_ must be photos from 0 to {n - 1}, one per box, got {shorten(owners)}")

    @property
    def classes_(self) -> Array:
        """The labels."""
        return self.schema_.classes

    def fit(self, photos: Any, y: Any, boxes: Any = None) -> Locator:
        """Learn from photos and their classes.

        Parameters
        ----------
        photos : paths or arrays; or the `WindowMaps` or `MapShards` of photos, whose windows are replaced
        y : (n,) classes
        boxes : (n, 4) drawn boxes in the order of the photos, in pixels; a row of NaN for a photo without a box. Or per
            photo a table (k, 4) of all its boxes, or None

        One class is enough where boxes are drawn.
        """
        self.check_parameters()
        truths = None
        if isinstance(boxes, list | tuple) and any(own is None or len(shape_of(own) or ()) == 2 for own in boxes):
            truths = read_truths(boxes, len(boxes))
            boxes = largest_boxes(truths)
        drawn = None if boxes is None else numbers("boxes", boxes)
        count = 0 if drawn is None or drawn.ndim != 2 else int(np.sum(~np.isnan(drawn).any(axis=1)))
        self.has_boxes_ = count >= MIN_BOXES
        if self.has_boxes_ and self.extent != "auto":
            raise ValueError(
                f"extent={self.extent!r} is for labels alone, but {count} boxes are drawn, which show the extent; set "
                "extent='auto', or leave the boxes out"
            )
        self.is_whole_ = not self.has_boxes_ and self.extent != "part"
        has_several = truths is not None and any(len(own) > 1 for own in truths)
        self.is_several_ = self.objects == "several" or (self.objects == "auto" and has_several and count >= MIN_DRAWN)
        if self.is_several_ and (count < MIN_DRAWN or self.types > 1):
            why = f"boxes in at least {MIN_DRAWN} photos, got {count}" if count < MIN_DRAWN else "types=1"
            raise ValueError(f"several objects per photo need {why}; draw more, or set objects='one' (--objects one)")
        maps, self.words_, self.network_ = self._photo_features.fit(photos)
        y = read_labels(y, len(maps))
        found = np.unique(y)
        self.only_class_ = found if found.size == 1 and self.has_boxes_ else None
        drawn = np.full((len(maps), 4), np.nan) if drawn is None else drawn
        if drawn.shape != (len(maps), 4):
            raise ValueError(f"boxes must have shape {(len(maps), 4)}, NaN for no box, got {drawn.shape}")
        if self.types > 1 and count < max(int(self.types), MIN_BOXES):
            raise ValueError(f"types={self.types} needs a drawn box per type, got {count}; draw more, or set types=1")
        usual = HANDMADE_PARTS if self._photo_features.is_handmade else 1
        self.parts_ = int(usual if self.parts is None else self.parts) if self.has_boxes_ else 1
        maps = self._place_windows(maps)
        self.status_ = Status.CONVERGED
        kept = min(int(self.n_components), *maps.values.shape)
        self.n_components_ = kept
        problem = self._problem()
        self.schema_ = problem.schema(maps, y)
        self._fit_labeller(maps, y)
        reduced = maps.with_values(problem.reduce(maps.values, self.schema_))
        if self.is_whole_:
            self._fit_whole(reduced, y)
            return self
        settings = {"verbose": self.verbose, "n_jobs": self.n_jobs, "random_state": int(self.random_state)}
        settings["parts"] = self.parts_
        tries_latent = not self.is_several_ and self.only_class_ is None
        truths = read_truths(drawn, len(maps)) if truths is None else truths
        training = leave_out_other_objects(reduced, truths) if self.is_several_ else reduced
        recipe = choose_detector(training, y, self.classes_, drawn, settings, int(self.types), tries_latent)
        self._keep_recipe(recipe, training, y, drawn)
        if self.is_several_:
            self._fit_objects(reduced, training, y, truths, recipe.evidence, settings)
        return self

    def _fit_objects(
        self,
        reduced: WindowMaps,
        training: WindowMaps,
        y: Array,
        truths: list[Array],
        evidence: dict[str, Any],
        settings: dict[str, Any],
    ) -> None:
        """Learn which windows are objects, from photos with boxes and photos without an object."""
        C = float(evidence.get("C of the shared detector", SHARED_C[1]))
        drawn = largest_boxes(truths)
        empty = np.flatnonzero(self.is_background(y) & np.isnan(drawn).any(axis=1))
        rows, scores = hold_out_scores(reduced, training, drawn, C, empty, **settings | {"verbose": 0})
        proposals = propose_boxes(reduced[rows], scores, measure_temperature(reduced[rows], scores))
        model = learn_objects(proposals, [truths[i] for i in rows])
        self.object_weights_, self.object_threshold_ = model.weights, model.threshold
        kept = {name: value for name, value in evidence.items() if not name.startswith("held-out")}
        self.evidence_ = {**kept, **model.evidence}
        recall, precision = (model.evidence[f"held-out {name}"] for name in ("recall", "precision"))
        self.advice_ = (
            f"learned from {sum(map(len, truths))} boxes in {int(np.sum(~np.isnan(drawn).any(axis=1)))} photos; of "
            f"held-out objects {recall:.0%} are found, and {precision:.0%} of the boxes found are right"
        )
        found = self._detect(reduced, y)
        self.detected_owners_, _, self.detected_boxes_, self.detected_scores_ = found
        _, self.found_boxes_, self.found_scores_ = self._best_detection(reduced, y)
        self._order_open(np.asarray(np.isnan(drawn).any(axis=1)))

    def _detect(self, reduced: WindowMaps, y: Array, min_score: float | None = None) -> Detections:
        """The objects of photos with these labels: none in the background, else at least one if classes show that."""
        found = self._rate_boxes(reduced, y)
        is_first = np.diff(found.owners, prepend=-1) > 0
        keep = found.scores >= (self.object_threshold_ if min_score is None else min_score)
        if min_score is None and self.is_background(self.classes_).any():
            keep |= is_first
        return found.take(keep & ~self.is_background(found.y))

    def _best_detection(self, reduced: WindowMaps, y: Array) -> FoundBoxes:
        """The most confident box of every photo."""
        found = self._rate_boxes(reduced, y)
        best = found.take(np.diff(found.owners, prepend=-1) > 0)
        return FoundBoxes(best.y, best.boxes, best.scores)

    def _rate_boxes(self, reduced: WindowMaps, y: Array) -> Detections:
        """All proposed boxes of photos with these labels, by photo, the most confident first."""
        scores = self._score_types(reduced, find_labels(self.classes_, y)).max(axis=1)
        proposals = propose_boxes(reduced, scores, measure_temperature(reduced, scores))
        found = probabilities(proposals.facts, self.object_weights_)
        order = np.lexsort((-found, proposals.owners))
        owners = proposals.owners[order]
        return Detections(owners, y[owners], proposals.boxes[order], found[order])

    def _keep_recipe(self, recipe: Recipe, reduced: WindowMaps, y: Array, drawn: Array) -> None:
        self.coef_ = np.zeros(self.schema_.n_params)
        parts = self.schema_.views(self.coef_)
        parts["window"][:] = recipe.own.reshape(parts["window"].shape)
        parts["shared"][:] = recipe.shared.reshape(parts["shared"].shape)
        self.method_, self.advice_ = recipe.method, recipe.advice
        self.evidence_ = recipe.evidence
        if recipe.is_interrupted:
            self.status_ = Status.INTERRUPTED
        labels = find_labels(self.classes_, y)
        by_type = self._score_types(reduced, labels)
        scores = by_type.max(axis=1)
        self.temperature_ = measure_temperature(reduced, scores)
        self.found_boxes_, self.found_scores_ = expected_boxes(reduced, scores, self.temperature_)
        self.found_labels_ = y
        self.found_types_ = best_types(reduced, by_type)
        self.steps_ = {name: boxes_of(reduced, windows) for name, windows in recipe.steps.items()}
        self.other_boxes_ = {name: boxes_of(reduced, windows) for name, windows in recipe.others.items()}
        self._order_open(np.asarray(np.isnan(drawn).any(axis=1)))

    def _fit_whole(self, reduced: WindowMaps, y: Array) -> None:
        labels, k = find_labels(self.classes_, y), len(self.classes_)
        weights = learn_maps(reduced, labels, k, ~self.is_background(self.classes_))
        self.map_weights_ = weights.reshape(N_MAPS * k, -1)
        self.coef_, self.temperature_ = np.zeros(self.schema_.n_params), 1.0
        found = find_whole_objects(reduced, labels, weights)
        self.found_boxes_, self.found_scores_, self.found_labels_ = found.boxes, found.scores, y
        self.found_types_, self.steps_ = np.zeros(len(y), dtype=np.int64), {}
        self.other_boxes_ = {"component": found.by_component, "activation map": found.by_activation}
        is_object = ~self.is_background(y)
        same = overlap(found.by_component, found.by_activation)[is_object] >= SAME
        self.method_ = "whole"
        self.evidence_ = {
            "component and activation map find the same box": float(same.mean()) if same.size else 0.0,
            "mean confidence": float(found.scores[is_object].mean()) if same.size else 0.0,
        }
        self.advice_ = (
            f"boxes around whole objects, learned from labels alone; mean confidence "
            f"{self.evidence_['mean confidence']:.2f}. Labels do not say how much of the object is meant: look at the "
            "boxes, choose the extent 'part' for its most typical part, or draw boxes in a dozen of the photos listed"
        )
        self._order_open(np.ones(len(y), dtype=bool))

    def _order_open(self, is_open: Array) -> None:
        """The photos where a box would help, the least confident first; photos without an object need none."""
        order = np.argsort(self.found_scores_, kind="stable")
        self.least_sure_ = order[(is_open & ~self.is_background(self.found_labels_))[order]]

    @staticmethod
    def is_background(y: Any) -> Array:
        """Whether photos of these classes have no object, by the name of the class: `BACKGROUND`."""
        return np.isin(np.char.lower(np.asarray(y).astype(np.str_)), BACKGROUND)

    @property
    def found_(self) -> FoundBoxes:
        """The boxes of the training photos."""
        return FoundBoxes(self.found_labels_, self.found_boxes_, self.found_scores_)

    @property
    def detections_(self) -> Detections:
        """All objects of the training photos."""
        if not self.is_several_:
            return _one_each(self.found_, self.is_background(self.found_labels_))
        owners = self.detected_owners_
        return Detections(owners, self.found_labels_[owners], self.detected_boxes_, self.detected_scores_)

    def detect(self, photos: Any, y: Any = None, min_score: float | None = None) -> Detections:
        """All objects of new photos, with the confidence of each, from 0 to 1.

        If the model was fitted to one object per photo, that is one box for each photo, and none for photos of the
        background. ``y`` has the labels of the photos where they are known. Boxes of less confidence than ``min_score``
        are left out; None takes the threshold that was learned from drawn boxes.
        """
        check_is_fitted(self)
        least = None if min_score is None else number("min_score", min_score, "a number from 0 to 1", _is_share)
        maps = self._maps(photos)
        labels = self._predict_labels(maps) if y is None else read_labels(y, len(maps))
        if not self.is_several_:
            found = _one_each(self._locate(maps, labels), self.is_background(labels))
            return found if least is None else found.take(found.scores >= least)
        self._check_features(maps, labels)
        return self._detect(maps.with_values(self._problem().reduce(maps.values, self.schema_)), labels, least)

    def predict(self, photos: Any) -> FoundBoxes:
        """The label and the box of new photos, and the confidence of the box, from 0 to 1."""
        check_is_fitted(self)
        maps = self._maps(photos)
        return self._locate(maps, self._predict_labels(maps))

    def locate(self, photos: Any, y: Any) -> FoundBoxes:
        """The box of photos whose labels are known."""
        check_is_fitted(self)
        maps = self._maps(photos)
        return self._locate(maps, read_labels(y, len(maps)))

    def _check_features(self, maps: WindowMaps | MapShards, y: Array) -> Array:
        """The numbers of labels, if these and the features are those of the fit."""
        if maps.values.shape[1] != self.schema_.n_features:
            raise ValueError(
                f"maps must have the {self.schema_.n_features} features of the fit, got {maps.values.shape[1]}; use "
                "the same network"
            )
        labels = find_labels(self.classes_, y)
        if (labels < 0).any():
            raise ValueError(f"{shorten(str(y[int(np.argmin(labels))]))} is not a class of the training photos")
        return labels

    def _locate(self, maps: WindowMaps | MapShards, y: Array) -> FoundBoxes:
        labels = self._check_features(maps, y)
        reduced = maps.with_values(self._problem().reduce(maps.values, self.schema_))
        if self.is_whole_:
            weights = self.map_weights_.reshape(len(self.classes_), N_MAPS, -1)
            return FoundBoxes(y, *find_whole_objects(reduced, labels, weights)[:2])
        if self.is_several_:
            return self._best_detection(reduced, y)
        scores = self._score_types(reduced, labels).max(axis=1)
        return FoundBoxes(y, *expected_boxes(reduced, scores, self.temperature_))

    def _score_types(self, reduced: WindowMaps, labels: Array) -> Array:
        """(m, T) the score of every window for every type."""
        parts = self.schema_.views(self.coef_)
        weights = (parts["window"] + parts["shared"]).reshape(*parts["window"].shape[:2], -1)
        return np.column_stack([window_scores(reduced, weights[labels, t]) for t in range(weights.shape[1])])

    def _fit_labeller(self, maps: WindowMaps | MapShards, y: Array) -> None:
        from sklearn.base import clone
        from sklearn.model_selection import StratifiedKFold, cross_val_predict

        means = maps.means().astype(np.float64)
        self.mean_, self.scale_ = means.mean(axis=0), np.full(means.shape[1], max(float(means.std()), 1e-12))
        rows = self._standardise_means(maps)
        model = StructuredSVM(Multiclass(), C=LABEL_C[1], verbose=0, n_jobs=self.n_jobs)
        self.held_out_labels_, self.accuracy_ = np.full(len(y), ""), float("nan")
        if self.only_class_ is not None:
            self.labeller_ = None
            return
        folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if folds >= 2:
                cuts = StratifiedKFold(folds, shuffle=True, random_state=int(self.random_state))
                said = {C: cross_val_predict(clone(model).set_params(C=C), rows, y, cv=cuts) for C in LABEL_C}
                best = max(LABEL_C, key=lambda C: (float(np.mean(said[C] == y)), -C))
                model.set_params(C=best)
                self.held_out_labels_, self.accuracy_ = said[best], float(np.mean(said[best] == y))
            self.labeller_ = model.fit(rows, y)
        if model.status_ is Status.INTERRUPTED:
            self.status_ = Status.INTERRUPTED

    def _predict_labels(self, maps: WindowMaps | MapShards) -> Array:
        if self.labeller_ is None:
            return np.repeat(self.classes_, len(maps))
        return np.asarray(self.labeller_.predict(self._standardise_means(maps)))

    def _standardise_means(self, maps: WindowMaps | MapShards) -> Array:
        return np.asarray((maps.means() - self.mean_) / self.scale_ / np.sqrt(self.mean_.size))

    def _problem(self) -> Detection:
        kept = getattr(self, "n_components_", None)
        parts = whole_number("parts_", getattr(self, "parts_", 1), 1, 8)
        settings: dict[str, Any] = {"types": int(self.types), "shared": True, "fit_intercept": False}
        return Detection(parts=parts, n_components=kept, classes=self._only_classes(), **settings)

    def _only_classes(self) -> list[Any] | None:
        """The one class of all photos, or None for those of the labels."""
        only = getattr(self, "only_class_", None)
        return None if only is None else np.asarray(only).tolist()

    @property
    def _photo_features(self) -> PhotoFeatures:
        settings = {"cache": self.cache, "n_jobs": self.n_jobs, "verbose": self.verbose}
        side = WHOLE_SIDE if getattr(self, "is_whole_", False) else None
        return PhotoFeatures(self.features, int(self.random_state), side, self.spool, settings)

    def _place_windows(self, maps: WindowMaps | MapShards) -> WindowMaps | MapShards:
        """The maps with the windows to search: other shapes with drawn boxes than without."""
        return maps.with_windows(**({} if self.has_boxes_ else LABEL_WINDOWS))

    def _maps(self, photos: Any) -> WindowMaps | MapShards:
        """The maps of new photos, by the same features."""
        return self._place_windows(self._photo_features.describe(photos, self.words_, self.network_))

    def use_network(self, path: str | os.PathLike[str]) -> None:
        """Read the network from another path; it must be the same file."""
        self.features = str(Path(path))


def _is_share(value: float) -> bool:
    return 0 <= value <= 1


def _one_each(found: FoundBoxes, is_background: Array) -> Detections:
    owners = np.flatnonzero(~is_background)
    return Detections(owners, found.y[owners], found.boxes[owners], found.scores[owners])
