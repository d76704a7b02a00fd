"""`BagClassifier`: labels of bags, and the instances that decide them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from tacit.bags.combination import Combination, held_out_loss, held_out_losses, log_loss
from tacit.bags.reading import BagTable, labels_of_rows, read_bags, read_hidden, read_several
from tacit.bags.samples import Samples
from tacit.bags.whole_bags import KINDS, ForestModel, KernelModel, fit_forest, fit_kernel_model
from tacit.bags.witness_models import CS, KERNELS, Grid, WitnessModel, fit_witness_model
from tacit.data.arrays import Array
from tacit.data.labels import find_labels, kind_of_label, read_classes, read_labels
from tacit.data.parameters import has_length, is_whole, random_numbers, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import choice, either, estimator, instance, parameter, positive, switch
from tacit.learners.application import Application
from tacit.learners.preparation import read_weights, weigh_classes
from tacit.runtime import InterruptedFitError, Status, run

RULES = ("both", "witness", "instances")

PULL = 10.0
"""How strongly the weights of models are pulled to equal weights, beside the sum of the log-losses of held-out bags."""

KNOWN_SHARE, KNOWN_PULL = 0.9, 30.0
"""Where witnesses are known, instances decide: weights are pulled to this share of the models of instances, unless
equal weights are better on held-out bags by more than a standard error."""

MAX_VALUE = float(np.finfo(np.float32).max)

LEAST_WEIGHT = 0.01
"""Models of a smaller weight are left out."""


class ModelLine(NamedTuple):
    """A fitted model: its name, its log-loss and its share of right labels on held-out bags."""

    model: str
    log_loss: float
    accuracy: float


@estimator
class BagClassifier(ClassifierMixin, Application):  # type: ignore[misc]
    """Learn labels of bags, and which instances decide them: multiple-instance learning without choices.

    Features are scaled, and cut at three standard deviations. Several models are fitted, whose settings are chosen on
    held-out bags:

    - models of instances, by the rules of `tacit.problems.Bags`: a hidden CRF, linear or with Nyström features of an
      RBF kernel (`tacit.bags.witness_models`);
    - models of the whole bag: RBF kernels of its statistics, the set kernel, the nearest instances, a random forest on
      statistics (`tacit.bags.whole_bags`).

    Their scores are calibrated on held-out bags, and combined by weights that are also fitted to held-out scores, and
    pulled to equal weights. So a kind of model counts where it helps. Known witnesses pull the weights to the models of
    instances, unless that is worse on held-out bags. Choices are made on at most 1,000 bags; the time is linear in the
    number of bags.

    Parameters
    ----------
    rule : "witness", "instances" or "both" as in `tacit.problems.Bags`; "auto" tries all
    kernel : "linear" or "rbf" for models of instances; "auto" chooses
    C : factor of the loss of models of instances, for features of mean squared norm 1; "auto" chooses
    gamma : of the RBF kernel of scaled instances; "auto" chooses
    combine : whether models of the whole bag take part; without them, the best model of instances decides alone
    background : the class without positive instances; None takes the first class
    bag, label : for data frames with a row per instance: the columns that tell bags apart, and that hold their labels
    class_weight : None, "balanced", or a dict of factors by label
    random_state : seed of folds, landmarks and trees
    n_jobs : number of threads; the result does not depend on it
    verbose : 1 shows progress on a terminal, 2 writes lines
    callbacks : functions called with a `ModelLine` per fitted model; one that returns True ends the fit

    Attributes
    ----------
    classes_ : the labels; a list of them for several labels per bag
    weights_ : the weight of every model that counts, by name
    models_ : those models; ``calibrations_`` and ``combination_`` turn their scores into probabilities
    witness_ : the model of instances behind `instance_scores`, the best on held-out bags
    held_out_ : a `ModelLine` per fitted model, and "combined", whose weights were fitted to the same bags
    columns_ : names of the features, for data frames
    per_label_ : for several labels per bag, a `BagClassifier` per label; otherwise empty
    status_ : whether the fit was interrupted

    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> bags = [rng.standard_normal((rng.integers(2, 6), 3)) for _ in y]
    >>> for i in np.flatnonzero(y):
    ...     bags[i][1, 0] += 6
    >>> model = BagClassifier().fit(bags[:40], y[:40])
    >>> model.score(bags[40:], y[40:])
    1.0
    >>> model.witnesses(bags[40:44])
    array([-1,  1, -1,  1])
    """

    learned: ClassVar = {
        "per_label_": instance(list, "a list of classifiers"),
        "models_": instance(list, "a list of models"),
        "calibrations_": instance(list, "a list of calibrations"),
        "n_features_in_": lambda name, value: _check_whole(name, value),
    }
    _not_saved = ("callbacks", "verbose", "n_jobs")
    classes_: Any

    rule: str = parameter(choice("auto", *RULES), default="auto")
    kernel: str = parameter(choice("auto", *KERNELS), default="auto")
    C: float | str = parameter(either("auto", positive), default="auto")
    gamma: float | str = parameter(either("auto", positive), default="auto")
    combine: bool = parameter(switch, default=True)
    background: Any = None
    bag: Any = None
    label: Any = None
    class_weight: Any = None
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: int = 1
    callbacks: Iterable[Callable[[Any], Any]] | None = None

    def fit(self, X: Any, y: Any = None, *, hidden: Any = None, sample_weight: Any = None) -> BagClassifier:
        """Learn from labelled bags.

        Parameters
        ----------
        X : bags in any form that `tacit.bags.reading.read_bags` reads
        y : one label per bag, in the order in which bags first appear; or a table of zeros and ones, a column per
            label, for several labels per bag. None takes the column ``label`` of a data frame
        hidden : known witnesses: per bag the position of the instance, −1 if it is unknown, or positions that are
            possible. With ``rule="instances"`` a list has all positive instances
        sample_weight : one weight per bag; 0 leaves a bag out
        """
        self.check_parameters()
        if self.gamma != "auto" and self.kernel == "linear":
            raise ValueError(f"gamma needs kernel='rbf' or 'auto', got kernel='linear' and gamma={self.gamma}")
        table = read_bags(X, self.bag, self.label)
        given = table.labels if y is None else labels_of_rows(y, table)
        _check_sizes(table.bags)
        self.columns_, self.n_features_in_ = table.columns, int(table.bags.values.shape[1])
        several = read_several(given, len(table.bags))
        if several is not None:
            return self._fit_several(table.bags, several, hidden, sample_weight)
        samples = self._read_samples(table, given, hidden, sample_weight)
        fitting = Fitting(samples, self._steps(samples))
        found, self.status_ = run(fitting, (), callbacks=self.callbacks, verbose=self.verbose, total=len(fitting.steps))
        if not found:
            raise InterruptedFitError("the fit ended before its first model; fit again")
        self._combine(found, samples)
        return self

    def predict(self, X: Any) -> Array:
        """The label of every bag; for several labels a table of zeros and ones."""
        bags = self._read(X)
        if self.per_label_:
            return np.stack([model.predict(bags) for model in self.per_label_], axis=1)
        return np.asarray(self.classes_[np.argmax(self._log_probabilities(bags), axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """(n, classes) probabilities, calibrated on held-out bags; for several labels the probability of each."""
        bags = self._read(X)
        if self.per_label_:
            return np.stack([model.predict_proba(bags)[:, 1] for model in self.per_label_], axis=1)
        return np.exp(self._log_probabilities(bags))

    def decision_function(self, X: Any) -> Array:
        """Log-probabilities of the classes, (n, classes); for two classes the log-odds of the second, (n,)."""
        bags = self._read(X)
        if self.per_label_:
            return np.stack([model.decision_function(bags) for model in self.per_label_], axis=1)
        found = self._log_probabilities(bags)
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found

    def instance_scores(self, X: Any) -> Ragged:
        """How strongly each instance speaks for a class and against the background: by `witness_`.

        Returns a `tacit.Ragged` with a number per instance for two classes, and a row of numbers otherwise: of the
        classes, those of the background 0, or of the labels.
        """
        bags = self._read(X)
        if self.per_label_:
            columns = [model.instance_scores(bags).values for model in self.per_label_]
            return Ragged(np.stack(columns, axis=1), bags.offsets)
        scores = self.witness_.instance_scores(bags)
        return Ragged(scores[:, 1 - self._background] if len(self.classes_) == 2 else scores, bags.offsets)

    def witnesses(self, X: Any) -> Array:
        """The position of the instance with the highest score for the predicted class; −1 for the background."""
        bags = self._read(X)
        if self.per_label_:
            return np.stack([model.witnesses(bags) for model in self.per_label_], axis=1)
        labels = np.argmax(self._log_probabilities(bags), axis=1)
        scores = self.witness_.instance_scores(bags)
        own = Ragged(scores[np.arange(len(scores)), np.repeat(labels, bags.lengths)], bags.offsets)
        best = np.array([int(np.argmax(each)) for each in own])
        return np.where(labels == self._background, -1, best)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of bags whose labels are right; y may be left out for data frames with a column of labels."""
        check_is_fitted(self)
        table = read_bags(X, self.bag, self.label, self.columns_)
        given = table.labels if y is None else labels_of_rows(y, table)
        if given is None:
            raise ValueError("y must be given, or label= must name the column of a data frame that holds it")
        if not has_length(given) or len(given) != len(table.bags):
            raise ValueError(f"y must have a label for each of {len(table.bags)} bags, got {shorten(given)}")
        return float(super().score(table.bags, given, sample_weight))

    def check_learned(self) -> None:
        super().check_learned()
        if self.per_label_:
            if not all(isinstance(model, BagClassifier) for model in self.per_label_):
                raise ValueError("per_label_ must be a list of classifiers")
            return
        k, m = len(self.classes_), len(self.models_)
        kinds = (KernelModel, ForestModel, WitnessModel)
        if not isinstance(self.witness_, WitnessModel) or not all(isinstance(model, kinds) for model in self.models_):
            raise ValueError("models_ must be models of bags, and witness_ a model of instances")
        if not all(isinstance(one, Combination) for one in (*self.calibrations_, self.combination_)):
            raise ValueError("calibrations_ and combination_ must be combinations of scores")
        if not m or len(self.calibrations_) != m or self.combination_.slopes.size != m:
            raise ValueError(f"models_, calibrations_ and combination_ must fit each other, got {m} models")
        if any(one.intercepts.size != k for one in (*self.calibrations_, self.combination_)):
            raise ValueError(f"calibrations_ must be of {k} classes")
        if any(one.slopes.size != 1 for one in self.calibrations_):
            raise ValueError("calibrations_ must be of one model each")
        for model in (*self.models_, self.witness_):
            model.check()
            if (model.n_features, model.n_classes) != (self.n_features_in_, k):
                raise ValueError(f"the model {model.name!r} must have {self.n_features_in_} features and {k} classes")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = True
        tags.target_tags.required = self.label is None
        return tags

    @property
    def _background(self) -> int:
        return _find_background(self.background, self.classes_)

    def _read(self, X: Any) -> Ragged:
        """New bags, with the features that were learned from."""
        check_is_fitted(self)
        bags = read_bags(X, self.bag, self.label, self.columns_).bags
        if bags.values.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {bags.values.shape[1]} features, but BagClassifier is expecting {self.n_features_in_} features "
                "as input"
            )
        _check_sizes(bags)
        return bags

    def _read_samples(self, table: BagTable, y: Any, hidden: Any, sample_weight: Any) -> Samples:
        n = len(table.bags)
        labels = read_labels(y, n)
        weights = read_weights(sample_weight, n)
        kept = np.flatnonzero(weights > 0)
        self.classes_ = read_classes(None, labels[kept], kept.size)
        _find_background(self.background, self.classes_)
        positions = find_labels(self.classes_, labels)
        counts = np.bincount(positions[kept])
        if counts.min() < 2:
            rare = self.classes_[int(np.argmin(counts))]
            raise ValueError(f"class {shorten(rare.item())} has a single bag; add another, as some are held out")
        if self.class_weight is not None:
            weights = weigh_classes(weights, self.class_weight, self.classes_, positions)
        seed = int(random_numbers(self.random_state).randint(2**31 - 10))
        known = None if hidden is None else read_hidden(hidden, n)
        samples = Samples(table.bags, positions, weights, len(self.classes_), known, seed)
        samples = samples if kept.size == n else samples.take(kept)
        return Samples(**{**vars(samples), "weights": samples.weights / samples.weights.mean()})

    def _steps(self, samples: Samples) -> list[tuple[str, Callable[[], tuple[Any, Array]]]]:
        """The models to fit, by name."""
        grid = Grid(
            KERNELS if self.kernel == "auto" else (self.kernel,),
            CS if self.C == "auto" else (float(self.C),),
            None if self.gamma == "auto" else (float(self.gamma),),
            self._background,
            self.n_jobs,
        )
        rules = RULES if self.rule == "auto" else (self.rule,)
        without = samples.without_sets() if self.rule == "auto" else samples
        given = {"instances": without}
        steps: list[Any] = [(rule, partial(fit_witness_model, rule, given.get(rule, samples), grid)) for rule in rules]
        if self.combine:
            steps += [(kind, partial(fit_kernel_model, kind, samples)) for kind in KINDS]
            steps.append(("forest", partial(fit_forest, samples)))
        return steps

    def _combine(self, found: tuple[Fitted, ...], samples: Samples) -> None:
        """Set what prediction needs: the models that count, and how their scores become probabilities."""
        trial = samples.trial()
        of_instances = [one for one in found if isinstance(one.model, WitnessModel)]
        best = min(of_instances, key=lambda one: one.line.log_loss)
        self.witness_ = best.model
        if not self.combine:
            found = (best,)
        scores = np.stack([one.calibration.log_probabilities(one.held_out[None]) for one in found])
        kept = np.arange(len(found))
        is_of_instances = np.array([isinstance(one.model, WitnessModel) for one in found])
        has_known = bool((samples.known_witnesses(self._background) >= 0).any())
        prior = _choose_prior(scores, trial, is_of_instances, has_known)
        combination = Combination.fit(scores, trial.y, trial.weights, **prior)
        if len(found) > 1:
            kept = np.flatnonzero(combination.slopes >= min(LEAST_WEIGHT, combination.slopes.max()))
            combination = Combination(combination.slopes[kept], combination.intercepts)
        log_p = combination.log_probabilities(scores[kept])
        line = ModelLine("combined", log_loss(log_p, trial.y, trial.weights), _accuracy(log_p, trial.y, trial.weights))
        self.per_label_: list[BagClassifier] = []
        self.models_ = [found[i].model for i in kept]
        self.calibrations_ = [found[i].calibration for i in kept]
        self.combination_ = combination
        self.weights_ = dict(zip([model.name for model in self.models_], combination.slopes.tolist(), strict=True))
        self.held_out_ = [[*one.line] for one in found] + [[*line]]

    def _log_probabilities(self, bags: Ragged) -> Array:
        scores = [
            calibration.log_probabilities(model.scores(bags)[None])
            for model, calibration in zip(self.models_, self.calibrations_, strict=True)
        ]
        return self.combination_.log_probabilities(np.stack(scores))

    def _fit_several(self, bags: Ragged, y: Array, hidden: Any, sample_weight: Any) -> BagClassifier:
        """One classifier per label."""
        if self.background is not None:
            raise ValueError("background must be None for several labels per bag: each has 0 for its background")
        known = None if hidden is None else read_hidden(hidden, len(bags), y.shape[1])
        self.per_label_, self.models_, self.calibrations_ = [], [], []
        for column in range(y.shape[1]):
            own = clone(self).set_params(bag=None, label=None)
            part = None if known is None else known if known.ndim == 1 else known[:, column]
            try:
                self.per_label_.append(own.fit(bags, y[:, column], hidden=part, sample_weight=sample_weight))
            except ValueError as error:
                raise ValueError(f"column {column} of y: {error}") from error
        self.classes_ = [model.classes_ for model in self.per_label_]
        self.status_ = self.per_label_[-1].status_
        return self


class Fitted(NamedTuple):
    """A model, its held-out scores, and what follows from them."""

    model: Any
    held_out: Array
    calibration: Combination
    line: ModelLine


@dataclass(frozen=True)
class Fitting:
    """The fit as a process of the common loop: a model per step. Ctrl-C keeps the models that are finished."""

    samples: Samples
    steps: list[tuple[str, Callable[[], tuple[Any, Array]]]]

    def step(self, state: tuple[Fitted, ...]) -> tuple[Fitted, ...]:
        name, fit = self.steps[len(state)]
        trial = self.samples.trial()
        model, held_out = fit()
        loss, calibration = held_out_loss(held_out, trial.y, trial.weights)
        log_p = calibration.log_probabilities(held_out[None])
        line = ModelLine(name, loss, _accuracy(log_p, trial.y, trial.weights))
        return (*state, Fitted(model, held_out, calibration, line))

    def report(self, state: tuple[Fitted, ...]) -> Any:
        return state[-1].line if state else None

    def describe(self, state: tuple[Fitted, ...]) -> tuple[int, str]:
        return len(state), f"log-loss {state[-1].line.log_loss:.3f} of {state[-1].line.model}" if state else "begins"

    def verdict(self, state: tuple[Fitted, ...]) -> Status | None:
        return Status.CONVERGED if len(state) == len(self.steps) else None

    def snapshot(self, state: tuple[Fitted, ...]) -> dict[str, Any]:
        return {}


def _choose_prior(scores: Array, trial: Samples, is_of_instances: Array, has_known: bool) -> dict[str, Any]:
    """What weights are pulled to: models of instances where witnesses are known and no harm shows, else all equally."""
    equal = {"pull": PULL, "centre": np.full(len(scores), 1 / len(scores))}
    if not has_known or is_of_instances.all():
        return equal
    shares = np.where(
        is_of_instances, KNOWN_SHARE / is_of_instances.sum(), (1 - KNOWN_SHARE) / (~is_of_instances).sum()
    )
    trusting = {"pull": KNOWN_PULL, "centre": shares}
    losses = [held_out_losses(scores, trial.y, trial.weights, trial.folds(), **prior) for prior in (trusting, equal)]
    harm = trial.weights * (losses[0] - losses[1])
    return equal if harm.mean() > harm.std(ddof=1) / np.sqrt(harm.size) else trusting


def _accuracy(log_probabilities: Array, y: Array, weights: Array) -> float:
    return float(weights @ (np.argmax(log_probabilities, axis=1) == y) / weights.sum())


def _find_background(background: Any, classes: Array) -> int:
    if background is None:
        return 0
    found = int(find_labels(classes, np.array([background]))[0]) if kind_of_label(background) else -1
    if found < 0:
        raise ValueError(
            f"background must be one of the classes {shorten(classes.tolist())}, got {shorten(background)}"
        )
    return found


def _check_sizes(bags: Ragged) -> None:
    """Refuse values that single precision cannot hold: trees compare in it."""
    values = bags.values.data if hasattr(bags.values, "nnz") else bags.values
    top = max(float(values.max()), -float(values.min())) if values.size else 0.0
    if top > MAX_VALUE:
        raise ValueError(f"X must have values below {MAX_VALUE:.1e}, got {top:.1e}; divide its columns")


def _check_whole(name: str, value: Any) -> None:
    if not is_whole(value) or value < 1:
        raise ValueError(f"{name} must be a whole number above 0, got {shorten(value)}")
