"""What all learners share: prediction, scores, files, and a summary of the fit."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.data.arrays import Array
from tacit.data.labels import is_missing, kind_of_label
from tacit.data.parameters import is_list, switch, whole_number
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.specs import Spec, check_parameters, estimator
from tacit.learners.descents.multistart import Ended
from tacit.learners.preparation import check_fitted, read_weights
from tacit.learners.rules import BestOutput, Rule
from tacit.oracle import Oracle, Problem, Read, Schema, capability, hidden_values, require
from tacit.oracle.capabilities import CountsUnits, GivesTagPosteriors, RanksHidden, RanksOutputs, ScoresLabels
from tacit.problems.per_sample.user_functions import key_of
from tacit.runtime import Status, parallel, storage
from tacit.runtime.archive import Stored

_PARTS = ("problem", "solver", "pace", "penalty")
"""Parameters that are objects of their own."""


@dataclass(frozen=True)
class Traits:
    """What a learner promises beyond `fit` and `predict`; `tacit.testing.check_learner` tests what is promised.

    Parameters
    ----------
    has_objective : it minimises something, and has `objective_` (one number) and its `history_`
    is_convex : once every hidden value is known, the objective is convex: every fit ends at the same value, whatever
        the order or precision of the samples, and a weight of 2 is the sample twice
    is_certified : once every hidden value is known, `bound_` is a lower bound on the objective, `gap_` the distance
    needs_hidden : it learns only from complete outputs, with every hidden value known
    """

    has_objective: bool = False
    is_convex: bool = False
    is_certified: bool = False
    needs_hidden: bool = False


def _has_marginals(learner: Any) -> bool:
    if not getattr(learner.problem, "has_marginals", False):
        raise AttributeError(
            f"predict_proba needs a problem whose outputs have parts, such as Chain; for "
            f"{type(learner.problem).__name__} use decision_function"
        )
    return True


@estimator
class LearnerParameters:
    """What every learner of tacit takes: its problem, and how a long fit is run."""

    problem: Problem
    _: KW_ONLY
    checkpoint: Any = None
    resume: bool = False
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 1
    callbacks: Iterable[Callable[[Any], Any]] | None = None


class Learner(Stored, LearnerParameters, BaseEstimator):  # type: ignore[misc]
    """Base of all learners. `fit` of a subclass sets `schema_` and `coef_`; everything here follows from them.

    A subclass declares its `traits`, and overrides `rule` if it does not answer with the output of the highest score.
    """

    traits: ClassVar[Traits] = Traits()
    learned: ClassVar[dict[str, Spec]] = {}
    """Specs of attributes that `fit` sets, checked when a model is saved or loaded."""
    asks_for_rows: ClassVar[bool] = False
    """Whether `fit` asks the oracle for single samples, or for features: the rows must then be on this machine."""

    coef_: Array
    schema_: Schema
    objective_: float
    bound_: float
    status_: Status
    runs_: list[Any]
    dual_: Any = None

    _not_saved = ("callbacks", "checkpoint", "resume")

    @property
    def rule(self) -> Rule:
        """How scores become an answer, in `predict`, `score`, `predict_hidden` and `decision_function`."""
        return BestOutput()

    def _rule(self) -> Rule:
        """The `rule`; a learner that has a parameter of this name says here which rule that is."""
        return self.rule

    @property
    def classes_(self) -> Array:
        """The labels, in the order of `decision_function`'s columns."""
        check_is_fitted(self)
        return self.schema_.classes

    @property
    def weights_(self) -> dict[str, Array]:
        """The named parts of `coef_`, as views."""
        check_is_fitted(self)
        return self.schema_.views(self.coef_)

    @property
    def gap_(self) -> float:
        """How far `objective_` may be from the optimum; infinite where no bound is known."""
        check_is_fitted(self)
        return max(self.objective_ - self.bound_, 0.0)

    def predict(self, X: Any) -> Any:
        """The label of every sample."""
        return self._best(X)[0]

    def predict_hidden(self, X: Any, k: int = 1) -> Any:
        """The hidden value that goes with every predicted label; None for a problem without any.

        With ``k`` above one the best k of them and their scores, (n, k) each, the best first; −1 and −inf where a
        sample has fewer.
        """
        k = whole_number("k", k, 1, 10_000)
        if k == 1:
            return self._best(X)[1]
        user = f"{type(self).__name__}.predict_hidden(k={k})"
        with parallel(self._bind(X), self.n_jobs) as oracle:
            ranking = require(user, self.problem, oracle, RanksHidden, "use k=1")
            codes, scores = ranking.best_hidden(self.coef_, self._answer(oracle), k)
        columns = [oracle.decode(np.where(column < 0, codes[:, 0], column))[1] for column in codes.T]
        if columns[0] is None:
            return None
        values = np.stack(columns, axis=1)
        values[codes < 0] = -1
        return values, scores

    def predict_best(self, X: Any, k: int = 3) -> tuple[list[Array], list[Array]]:
        """The best k taggings of every sequence, trees of every sentence or transcripts of every recording, and scores.

        Returns two lists with an entry per sample: its outputs and their scores, the best first; fewer than k where a
        sample has fewer. Taggings are the rows of a table.
        """
        k = whole_number("k", k, 1, 10_000)
        oracle = self._bind(X)
        way_out = "it is for sequences, trees and transcripts; predict_hidden(k=...) ranks hidden values"
        require(f"{type(self).__name__}.predict_best", self.problem, oracle, RanksOutputs, way_out)
        codes, scores = self._compute_scores(
            oracle, lambda shards: shards.best_outputs(self.coef_, k), lambda found: ~np.isfinite(found[1][:, 0])
        )
        counts = np.isfinite(scores).sum(axis=1)
        ranks = [oracle.decode(np.where(column < 0, codes[:, 0], column))[0] for column in codes.T]
        outputs = [_stack(own[:count]) for own, count in zip(zip(*ranks, strict=True), counts, strict=True)]
        return outputs, [row[:count] for row, count in zip(scores, counts, strict=True)]

    @available_if(_has_marginals)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Ragged:
        """For sequences: the probability of each tag at each token, (tokens, tags) per sequence, as in `classes_`.

        These are the marginals of the Gibbs distribution ``p(y) ∝ exp s(y)`` over all taggings, by forward–backward. A
        margin learner does not fit that distribution: the numbers order tags by how sure the model is, but they are not
        calibrated.
        """
        return self._posteriors(self._bind(X), lambda shards: shards.tag_posterior(self.coef_))

    @available_if(_has_marginals)  # type: ignore[untyped-decorator]
    def predict_marginals(self, X: Any) -> list[list[dict[Any, float]]]:
        """`predict_proba` as crfsuite writes it: per sequence a list with a dict per token, from tag to probability."""
        tags = self.classes_.tolist()
        tables = self.predict_proba(X)
        return [[dict(zip(tags, row, strict=True)) for row in table.tolist()] for table in tables]

    def score_hidden(self, X: Any, y: Any, hidden: Any) -> float:
        """The share of hidden values that `impute` gets right, of those that are known (not −1 or None)."""
        found = self.impute(X, y)
        if found is None:
            raise ValueError(f"score_hidden needs a problem with hidden values, got {type(self.problem).__name__}")
        truth = list(hidden) if is_list(hidden) else []
        if len(truth) != len(found):
            raise ValueError(f"hidden must hold one value per sample ({len(found)}), -1 if unknown, got {len(truth)}")
        known = [i for i, h in enumerate(truth) if _is_known(h)]
        if not known:
            raise ValueError("hidden must hold at least one known value to score")
        return float(np.mean([_is_same(found[i], truth[i]) for i in known]))

    def impute(self, X: Any, y: Any) -> Any:
        """The hidden value of every sample given its label; for sequences with gaps in y, the completed tags."""
        oracle = self._bind(X, y)
        require(type(self).__name__, self.problem, oracle, [Oracle.impute, Oracle.decode])
        with parallel(oracle, self.n_jobs) as shards:
            return hidden_values(oracle, shards.impute(self.coef_).code)

    def decision_function(self, X: Any) -> Array:
        """The score of each label, (n, classes): the highest over the hidden values, unless the learner's `rule` sums
        over them. For two classes (n,): the score of the second minus that of the first."""
        oracle = self._bind(X)
        user = f"{type(self).__name__}.decision_function"
        way_out = "it is for problems with one label per sample; use predict"
        require(user, self.problem, oracle, [ScoresLabels.label_scores], way_out)
        rule = self._rule()
        scores: Array = self._compute_scores(oracle, lambda shards: rule.label_scores(shards, self.coef_), overflows)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _compute_scores(self, oracle: Oracle, question: Callable[[Any], Any], overflows: Callable[[Any], Array]) -> Any:
        """Scores or probabilities from the oracle, in double precision where they overflow in single precision."""
        with parallel(oracle, self.n_jobs) as shards, np.errstate(over="ignore", invalid="ignore"):
            answer = question(shards)
        if not overflows(answer).any():
            return answer
        with parallel(oracle.exact(), self.n_jobs) as shards, np.errstate(over="ignore", invalid="ignore"):
            answer = question(shards)
        lost = np.flatnonzero(overflows(answer))
        if lost.size:
            raise FloatingPointError(
                f"the scores of sample {lost[0]} overflow double precision; scale the features (StandardScaler)"
            )
        return answer

    def _posteriors(self, oracle: Oracle, question: Callable[[Any], Array]) -> Ragged:
        """Probabilities of every sample; an error where its scores overflow double precision."""
        offsets = cast(GivesTagPosteriors, oracle).offsets
        return Ragged(self._compute_scores(oracle, question, lambda found: have_nan(found, offsets)), offsets)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, hidden: Any = None) -> float:
        """1 − the mean loss of the predictions, per sample or per known tag: the accuracy where the loss is 0/1.

        ``hidden`` holds the true hidden values, −1 where unknown, for losses that look at them.
        """
        oracle = self._bind(X, y, hidden)
        with parallel(oracle, self.n_jobs) as shards:
            losses = oracle.loss(self._answer(shards))
        weights = read_weights(sample_weight, oracle.n_samples)
        return float(1 - weights @ losses / (weights @ _units(oracle)))

    def save(self, path: str | os.PathLike[str], history: bool = True) -> None:
        """Write the fitted model to a file that `tacit.load` reads: arrays and JSON, no pickle.

        ``history=False`` leaves out how it was learned, which can be much larger than the model: the lines of
        `history_` and those of each of `runs_`. A model from such a file has empty lists in their place.
        """
        check_is_fitted(self)
        switch("history", history)
        attributes = self.learned_attributes()
        storage.save(path, self, attributes if history else without_history(attributes))

    def learned_attributes(self) -> dict[str, Any]:
        """What goes into a file beside the parameters: everything that `fit` learned, by name."""
        attributes = {name: value for name, value in vars(self).items() if name.endswith("_") and name[0] != "_"}
        attributes.pop("dual_", None)  # as large as the training data, and prediction does without
        return attributes

    def check(self) -> None:
        """Refuse invalid parameters and learned attributes: `tacit.load` calls it on a model from a file."""
        self._check_parameters()
        check_fitted(self)

    def _check_parameters(self) -> None:
        check_parameters(self)

    def copy_fitted(self, **params: Any) -> Any:
        """A copy of the fitted model with other parameters, without the planes that only the next warm start needs."""
        twin = copy.copy(self)
        twin.__dict__.pop("_warmth", None)
        own = {name: clone(value, safe=False) for name, value in self.get_params(deep=False).items() if name in _PARTS}
        return twin.set_params(**own, **params)

    def _keep_runs(self, ended: Ended, schema: Schema) -> None:
        """Set the learned attributes that follow from the starts of a fit."""
        best = ended.runs.best
        self.schema_, self.n_features_in_ = schema, schema.n_features
        self.status_, self.history_, self.runs_ = ended.status, best.history, ended.runs
        self.n_iter_ = len(best.history)

    def _best(self, X: Any) -> tuple[Any, Any]:
        oracle = self._bind(X)
        with parallel(oracle, self.n_jobs) as shards:
            labels, hidden = oracle.decode(self._answer(shards))
        return labels, hidden

    def _previous_weights(self, schema: Schema) -> Array | None:
        """The present weights, if a warm start is asked for and they are weights of the same things."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "coef_"):
            return None
        same = self.coef_.size == schema.n_params and np.array_equal(self.schema_.classes, schema.classes)
        return self.coef_ if same else None

    def _answer(self, oracle: Oracle) -> Array:
        """The code of what is predicted."""
        require(type(self).__name__, self.problem, oracle, self._rule().needs)
        return self._rule().answer(oracle, self.coef_)

    def _bind(self, X: Any, y: Any = None, hidden: Any = None) -> Any:
        check_is_fitted(self)
        return self.problem.bind(self._read(X), y, self.schema_, hidden=hidden)

    def _read(self, X: Any, reset: bool = False) -> Any:
        """Check the input once. For a plain table, also remember its feature names and count, or compare with them."""
        if isinstance(X, Shards) and not self.problem.takes_shards:
            self.problem.refuse_shards("load the samples: shards.in_memory()")
        checked = self.problem.read(X)
        table = X if hasattr(X, "shape") else checked
        # a user's problem of bags or sequences need not say that its samples are not rows of a table
        if get_tags(self).input_tags.two_d_array and len(getattr(table, "shape", ())) == 2:
            validate_data(self, table, reset=reset, skip_check_array=True)
        elif reset and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return Read(checked) if self.problem.reads_once else checked

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        """A learner takes the input that its problem takes."""
        tags = get_tags(self.problem) if isinstance(self.problem, BaseEstimator) else super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _html_repr(self) -> str:
        """scikit-learn's diagram, and under it the certificate of a fitted model."""
        diagram: str = super()._html_repr()
        if not hasattr(self, "objective_"):
            return diagram
        return diagram + f"<p><small>{self._summary()}</small></p>"

    def _summary(self) -> str:
        """One line about the fit."""
        if not self.traits.is_certified:
            return f"objective {self.objective_:.6g}"
        share = self.gap_ / max(abs(self.objective_), 1e-300)
        return (
            f"objective {self.objective_:.6g}, lower bound {self.bound_:.6g}: "
            f"at most {share:.2g} of the objective above the optimum"
        )


def without_history(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Learned attributes, the lines of their histories left out."""
    kept = dict(attributes)
    if "history_" in kept:
        kept["history_"] = []
    if "runs_" in kept:
        kept["runs_"] = type(kept["runs_"])(run._replace(history=[]) for run in kept["runs_"])
    return kept


def overflows(scores: Array) -> Array:
    """Which samples have a score that overflows; −inf is the score of a label that a sample cannot have."""
    return np.asarray(~(scores < np.inf).all(axis=1) | (scores == -np.inf).all(axis=1))


def have_nan(values: Array, offsets: Array) -> Array:
    """Which samples have NaN among their rows.

    >>> have_nan(np.array([1.0, np.nan, 1.0]), np.array([0, 2, 3]))
    array([ True, False])
    """
    return np.asarray(np.logical_or.reduceat(np.isnan(values.reshape(len(values), -1)).any(axis=1), offsets[:-1]))


def _is_same(found: Any, truth: Any) -> bool:
    """Whether two hidden values are equal; values that cannot be compared are not."""
    try:
        answer = key_of(found) == key_of(truth)
    except ValueError:  # NumPy cannot make an array of what it is compared with
        return False
    return isinstance(answer, bool | np.bool_) and bool(answer)


def _stack(outputs: Sequence[Any]) -> Array:
    """An array with one output per row; of objects, where these have different lengths."""
    if len({np.shape(output) for output in outputs}) == 1:
        return np.array(outputs)
    stacked = np.empty(len(outputs), dtype=object)
    stacked[:] = outputs
    return stacked


def _is_known(h: Any) -> bool:
    """Whether a hidden value is known: not −1, and without missing entries."""
    entries = list(h) if is_list(h) and not isinstance(h, str | bytes | dict) else [h]
    is_open = all(kind_of_label(entry) == "number" and entry == -1 for entry in entries)
    return not is_open and not any(is_missing(entry) for entry in entries)


def _units(oracle: Oracle) -> Array:
    """How many parts of each sample can be right or wrong: one, or its known tags. `score` is a mean over them."""
    counter = capability(oracle, CountsUnits)
    if counter is None:
        return np.ones(oracle.n_samples)
    units = counter.units()
    if not units.any():
        raise ValueError("y must hold at least one known tag to score")
    return units
