"""The latent SVM: for outputs of which a part, the hidden value, is not labelled (weak supervision)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from tacit.data.arrays import Array, checksum
from tacit.data.labels import find_missing
from tacit.data.parameters import random_numbers, shorten
from tacit.data.specs import choice, either, estimator, parameter, positive, share, switch, whole
from tacit.learners.descents.descent import Descent, Iteration
from tacit.learners.descents.halving import Halving
from tacit.learners.descents.multistart import MAX_STARTS, Ended, MultiStart, Run, RunTable, warn_unless_converged
from tacit.learners.descents.pacing import SelfPaced, optional_pace
from tacit.learners.descents.smoothing import draw_weights, is_smooth, takes_path, warn_unless_smooth, why_not_smooth
from tacit.learners.descents.starts import OnlineDescent, digest_init, find_beginning, given_weights
from tacit.learners.descents.unlabelled import self_train
from tacit.learners.learner import Learner, Traits
from tacit.learners.preparation import (
    LEARNED,
    MARGIN_LEARNED,
    Prepared,
    check_margin,
    given_solver,
    has_hidden_states,
    prepare,
)
from tacit.oracle import (
    KnownHidden,
    Oracle,
    capability,
    completes_labels,
    has_long_codes,
    hidden_values,
    loss_needs_hidden,
    require,
)
from tacit.oracle.capabilities import DrawsHidden, KnownPart, KnowsPart, LearnsOnline, SplitsCodes, WeighsSamples
from tacit.penalties import Penalty, without_bounds
from tacit.runtime import parallel, run
from tacit.runtime.blocks import cache_answers
from tacit.runtime.checkpoint import Checkpoint
from tacit.solvers import Solver, Subgradient, choose
from tacit.solvers.bundle import MAX_PLANE_NUMBERS
from tacit.solvers.loop import fingerprint_penalty

__all__ = ["Iteration", "LatentSVM", "Run", "RunTable"]

INITS = ("auto", "smooth", "known", "proposed", "hidden", "weights", "warm", "k-means")

_COMPARED = (
    *("problem", "C", "solver", "pace", "n_init", "tol", "max_inner", "rescaling", "escape", "shift", "halving"),
    "unknown_weight",
)
"""Parameters that must be the same in a resumed fit as in the one that was stopped."""

UNKNOWN_WEIGHTS = (0.0, 0.1, 1.0)
"""Factors that are compared for samples with unknown hidden values."""

FOLDS = 3

CLEAR_GAIN = 2.0
"""Standard errors by which a factor must beat 0. With one, factors were chosen that lost up to .03 of the IoU."""


@estimator
class LatentSVM(Learner):
    """Latent SVM by the concave–convex procedure (CCCP), on all samples at once or self-paced.

    Minimises ``½‖w‖² + (C/n) Σ_i ξ_i``, ``ξ_i = max_{y,h} [Δ(y_i, y, h) + w·Ψ(x_i, y, h)] − max_h w·Ψ(x_i, y_i, h)``.
    An iteration fixes the hidden values, solves a structured SVM, and imputes the hidden values again. A run ends when
    that decreases the objective by less than ``C · tol``. The objective never rises, except while a pace still leaves
    samples out. It is not convex, so another start may end lower: the best of `n_init` starts is kept.

    Source: Yu & Joachims (2009); Kumar (2013), "Weakly Supervised Learning for Structured Output Prediction", algorithm
    3, and algorithm 4 for self-paced learning.

    Parameters
    ----------
    problem : what is predicted, such as `tacit.problems.Candidates()`
    C : coefficient of the mean loss against ½‖w‖²
    solver : how the convex tasks are solved: "auto", "bundle", "frank-wolfe", "subgradient", or a solver with its own
        settings such as `tacit.solvers.Bundle()`. For sequences, "subgradient" imputes hidden values at every visit of
        a sample instead, one averaged pass per iteration; "auto" does so for chains with states and more than a
        million weights
    pace : None for all samples at once, or `tacit.SelfPaced()`
    n_init : number of starts; the one with the lowest objective is kept, all are in `runs_`. There is only one start if
        `init` gives the hidden values
    init : where a start begins. "smooth" begins at w = 0 and minimises soft objectives, whose maxima are log-sums of
        rising power; each is an iteration of `max_iter`. The first start needs no random numbers. Without sums over
        outputs it is "auto", with a warning. The first start of "auto" is "smooth" for bags, motifs, transforms
        and coreference by left links, where that was measured to end lower; but not with a pace, slack rescaling, or
        `max_iter` below 7. Others are "proposed": hidden values that the problem proposes, and random ones after the
        last proposal. (A `Motif` proposes the positions of k-mers that positives have more often.) "hidden"
        draws hidden values at random; "weights" draws w and imputes. An array gives the hidden values; a dict of
        weights, such as ``weights_`` of a fitted model, imputes with those. Where some hidden values or tags are known,
        the first start of "auto" is "known": a structured SVM on the known part imputes the others. For chains with
        states, "auto" is "warm": ten averaged stochastic passes; "k-means" groups the tokens of every tag
    unknown_weight : factor for the weight of samples whose hidden value is unknown, where others are known: from 0,
        which learns from the known part alone, to 1. "auto" holds out samples, and takes the factor that predicts known
        hidden values best among those that predict labels as well as 1 does. It is 1 with fewer than six known values,
        for sequences with missing tags, and where nothing is known; a warning says when it is 0
    tol : stop when an iteration decreases the objective by less than C · tol; convex tasks are solved to that gap
    max_iter : outer iterations per start
    max_inner : steps per convex solve
    rescaling : "margin" or "slack"; see `StructuredSVM`
    class_weight : None, "balanced", or a factor for C by label
    penalty : Ω; None for ½‖w‖², or a `tacit.penalties.Penalty`
    warm_start : the first start begins at the present `coef_`, the others as `init` says
    escape : if a convex task ends at w = 0, as can happen with random hidden values, impute from the minimiser of its
        cutting-plane model instead
    shift : when a start has ended, try to move all hidden values at once, and go on from a move that is better. Only
        for problems that know such moves: a `Motif` shifts all windows by up to three letters
    halving : whether `n_init` starts go on by successive halving: after two iterations of each, and again after every
        one, seven of ten go on, until one is left, which goes to its end. Ten starts take about the time of three. The
        others are "stopped" in `runs_`. Not with a pace: objectives may rise then
    checkpoint, resume, n_jobs, random_state, verbose : as in `StructuredSVM`
    callbacks : functions called with every `Iteration`; one that returns True ends the fit

    Attributes
    ----------
    coef_, weights_ : the weights, flat and by name
    hidden_ : the hidden value of every training sample, given or imputed
    objective_ : the true objective
    inner_gap_ : how far the last convex task, with its hidden values fixed, may be from its optimum; infinite if that
        task did not hold all samples.
    inference_gap_ : how far `objective_` may be above the true objective; see `StructuredSVM`
    bound_, gap_ : a lower bound on the objective, and the distance to it, if every hidden value was given; otherwise
        −inf and inf, because the objective is not convex
    history_ : one `Iteration` per outer iteration of the best start
    runs_ : all starts, one `Run` each; printed, a table of where they ended
    status_, n_iter_ : why it stopped, and after how many outer iterations of the best start

    >>> from tacit.problems import Candidates
    >>> bags = [[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]], [[0.2, 5.0], [0.0, 0.0]]]
    >>> model = LatentSVM(Candidates(), C=100, n_init=5, random_state=0).fit(bags, ["x", "y", "x", "y"])
    >>> model.predict(bags), model.hidden_
    (array(['x', 'y', 'x', 'y'], dtype='<U1'), array([1, 0, 0, 0]))
    """

    traits = Traits(has_objective=True, is_convex=True, is_certified=True)
    learned = {
        **MARGIN_LEARNED,
        **{name: LEARNED[name] for name in ("runs_", "inner_gap_", "inference_gap_")},
        "unknown_weight_": share,
    }
    _also_compared: tuple[str, ...] = ()

    C: float = parameter(positive, default=100.0)
    solver: Solver | str | None = "auto"
    pace: SelfPaced | None = parameter(optional_pace, default=None)
    n_init: int = parameter(whole(1, MAX_STARTS), default=1)
    init: Any = "auto"
    tol: float = parameter(positive, default=1e-3)
    max_iter: int = parameter(whole(), default=100)
    max_inner: int = parameter(whole(), default=1000)
    unknown_weight: float | str = parameter(either("auto", share), default="auto")
    rescaling: str = parameter(choice("margin", "slack"), default="margin")
    penalty: Penalty | None = None
    class_weight: Any = None
    warm_start: bool = parameter(switch, default=False)
    escape: bool = parameter(switch, default=True)
    shift: bool = parameter(switch, default=True)
    halving: bool = parameter(switch, default=False)

    def fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> LatentSVM:
        """Learn from labelled samples.

        Parameters
        ----------
        X, y : samples and labels, in the form that the problem takes; a label that is missing is None, if it is one of
            the classes or a sequence of tags
        hidden : what is known of the hidden values, per sample: the value, −1 if it is unknown, or the values that are
            allowed (a list or a mask). Known values are never changed
        sample_weight : a weight of 2 is the sample twice, 0 leaves it out
        """
        if (is_missing := find_missing(y, getattr(self.problem, "has_marginals", False))).any():
            return self_train(self, X, y, is_missing, hidden, sample_weight)
        self._check_parameters()
        prepared = prepare(self, X, y, hidden, sample_weight)
        schema, oracle = prepared.schema, prepared.oracle
        self._check_loss(oracle)
        n_starts = 1 if self._is_fixed(oracle) else int(self.n_init)
        seed = int(random_numbers(self.random_state).randint(2**31))
        self.unknown_weight_ = self._choose_unknown_weight(prepared, seed)
        if self.unknown_weight_ != 1.0:
            factor = np.ones(oracle.n_samples)
            factor[oracle.hidden_unknown()] = self.unknown_weight_
            prepared = prepared._replace(weights=rescale_weights(prepared.weights, factor))
        if not self.unknown_weight_ and isinstance(self.unknown_weight, str):
            warnings.warn(
                f"{type(self).__name__} sets {oracle.hidden_unknown().size} of {oracle.n_samples} samples aside, whose "
                "hidden value is unknown: with them, held-out hidden values were not predicted clearly better. Give "
                "unknown_weight=1 to learn from all, or unknown_weight=0 to agree",
                stacklevel=2,
            )
        weigher = capability(oracle, WeighsSamples)
        if weigher is not None:
            prepared = prepared._replace(weights=rescale_weights(prepared.weights, weigher.sample_factors()))
        previous = self._previous_weights(schema)
        if isinstance(self.init, Mapping):
            previous = given_weights(self.init, schema, without_bounds(prepared.penalty)[1])
        checkpoint = self._checkpoint(prepared, seed)
        with parallel(oracle, self.n_jobs) as shards:
            descent = self._descent(cache_answers(shards), prepared)
            warn_unless_smooth(self, descent)
            kind: Any = Halving if self.halving and n_starts > 1 else MultiStart
            starts = kind(
                descent,
                lambda seed, start: self._begin(descent, shards, y, previous, seed=seed, start=start),
                n_starts,
                int(self.max_iter),
                checkpoint,
            )
            record = starts.begin(seed)
            end = run(starts, record, callbacks=self.callbacks, verbose=self.verbose, checkpoint=checkpoint)
            ended = starts.conclude(*end)
            self.inference_gap_ = descent.inference_gap(ended.state.w, ended.state.target)
        self._keep(ended, schema, oracle)
        stalled = "the last convex task did not reach its gap; raise max_inner or tol"
        warn_unless_converged(self, ended, stalled)
        return self

    def _keep(self, ended: Ended, schema: Any, oracle: Oracle) -> None:
        """Set the learned attributes."""
        state = ended.state
        self._keep_runs(ended, schema)
        self.coef_, self.objective_ = state.w, ended.runs.best.objective
        self.hidden_ = hidden_values(oracle, state.target)
        self.inner_gap_ = max(state.gap, 0.0) if state.is_in.all() else np.inf
        self.bound_ = -np.inf if oracle.hidden_unknown().size else self.objective_ - self.inner_gap_

    def _check_loss(self, oracle: Oracle) -> None:
        """Refuse a loss that depends on a true hidden value which is unknown: CCCP cannot evaluate it."""
        if not loss_needs_hidden(oracle):
            return
        unknown = oracle.hidden_unknown()
        if unknown.size:
            raise ValueError(
                f"the loss of {type(self.problem).__name__} needs the true hidden value, which is unknown for "
                f"{unknown.size} samples (the first is sample {unknown[0]}). Give all of them with fit(X, y, "
                "hidden=...), use a loss of labels alone (loss='0/1'), or use tacit.IterativeLatentSVM"
            )

    def _descent(self, oracle: Oracle, prepared: Prepared) -> Descent:
        """How a start proceeds: by convex tasks, or by stochastic passes; see the parameter ``solver``."""
        kind = OnlineDescent if self._is_online(oracle, prepared.penalty) else Descent
        return kind(
            oracle,
            prepared.weights,
            prepared.penalty,
            lambda task: given_solver(self) or choose(task, float(self.tol)),
            tol=float(self.tol),
            max_inner=int(self.max_inner),
            rescaling=self.rescaling,
            pace=self.pace,
            escape=self.escape,
            shift=self.shift,
        )

    def _choose_unknown_weight(self, prepared: Prepared, seed: int) -> float:
        """The factor for samples whose hidden value is unknown; see the parameter."""
        knower = capability(prepared.oracle, KnowsPart)
        has_part = knower is not None and not has_long_codes(prepared.oracle) and knower.known_part() is not None
        if not has_part or not isinstance(self.unknown_weight, str):
            return float(self.unknown_weight) if has_part else 1.0

        def learn(oracle: Oracle, weights: Array) -> Array:
            descent = self._descent(cache_answers(oracle), prepared._replace(weights=weights))
            part = cast(KnowsPart, oracle).known_part()
            assert part is not None  # some known values are not held out
            w = descent.solve_known(part)
            if not weights[oracle.hidden_unknown()].any():
                return w
            state = descent.begin(oracle.impute(w).code, w, seed=seed)
            while not state.is_done and state.iteration < self.max_iter:
                state = descent.step(state)
            return np.asarray(state.w)

        with parallel(prepared.oracle, self.n_jobs):  # one BLAS thread, so that the choice has the same bits everywhere
            return choose_unknown_weight(prepared.oracle, prepared.weights, learn, np.random.default_rng(seed))

    def _is_online(self, oracle: Oracle, penalty: Penalty) -> bool:
        """Whether hidden values are imputed at every visit of a sample instead of between convex tasks."""
        is_plain = penalty.is_plain and self.rescaling == "margin" and self.pace is None
        if not is_plain or not oracle.hidden_unknown().size or capability(oracle, LearnsOnline) is None:
            return False
        solver = given_solver(self)
        if isinstance(solver, Subgradient):
            return solver.batch_size is None
        return solver is None and has_hidden_states(oracle) and oracle.n_params > MAX_PLANE_NUMBERS

    def _checkpoint(self, prepared: Prepared, seed: int) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        fingerprint = {
            "features, labels and losses": prepared.oracle.digest(),
            "sample weights and C": checksum(prepared.weights),
            "penalty": fingerprint_penalty(prepared.penalty, prepared.oracle.n_params),
            "classes": repr(prepared.schema.classes.tolist()),
            "seed": seed if self.random_state is not None else "any",
            **{name: repr(getattr(self, name)) for name in (*_COMPARED, *self._also_compared)},
            "init": digest_init(self.init),
        }
        return Checkpoint(self.checkpoint, fingerprint, self.resume, every_step=True)

    def _is_fixed(self, oracle: Oracle) -> bool:
        """Whether every start would be the same: the first hidden values are given, or all are known."""
        return not isinstance(self.init, str) or not oracle.hidden_unknown().size

    def _begin(self, descent: Descent, oracle: Oracle, y: Any, previous: Array | None, *, seed: int, start: int) -> Any:
        """The first state of a start."""
        key: dict[str, Any] = {"seed": seed, "start": start}
        zero, rng = np.zeros(oracle.n_params), descent.state(**key).rng("start")
        is_named = isinstance(self.init, str)
        init = "auto" if is_smooth(self.init) else self.init
        if not oracle.hidden_unknown().size:
            return descent.begin(oracle.impute(zero).code, **key)
        if previous is not None and start == 0:
            return descent.begin(oracle.impute(previous).code, previous, **key)
        if isinstance(descent, OnlineDescent) and is_named:
            return descent.begin(oracle.impute(zero).code, **key)
        has_path = takes_path(self, descent)
        if (has_path and start == 0) or (is_smooth(self.init) and not why_not_smooth(descent)):
            w, n_powers = draw_weights(descent, rng, start)
            return replace(descent.begin(oracle.impute(w).code, **key), w=w, n_powers=n_powers)
        part = self._known_part(oracle) if start == 0 else None
        if part is not None:
            w = descent.solve_known(part, **key)
            return descent.begin(oracle.impute(w).code, w, **key)
        if not is_named:
            return descent.begin(oracle.impute(zero, prefer=self._encode_init(oracle, y)).code, **key)
        if self.init == "weights":
            lower = without_bounds(descent.penalty)[1]
            w = np.maximum(rng.standard_normal(oracle.n_params), -np.inf if lower is None else lower)
            return descent.begin(oracle.impute(w).code, **key)
        found = find_beginning(self, oracle, descent.weights, start - has_path, rng, init)
        if found.w is not None:
            return descent.begin(oracle.impute(found.w).code, found.w, **key)
        if found.code is not None:
            return descent.begin(found.code, **key)
        who = f"{type(self).__name__}(init={self.init!r})"
        drawer = require(who, self.problem, oracle, DrawsHidden, "use init='weights'")
        return descent.begin(drawer.draw(rng), **key)

    def _encode_init(self, oracle: Oracle, y: Any) -> Array:
        """The code of hidden values that `init` gives."""
        try:
            code: Array = oracle.encode(self.init) if completes_labels(oracle) else oracle.encode(y, self.init)
        except (ValueError, TypeError) as error:
            what = "all tags of every sequence" if completes_labels(oracle) else "a hidden value for every sample"
            raise ValueError(f"init as an array must hold {what}: {error}") from error
        return code

    def _known_part(self, oracle: Oracle) -> KnownPart | None:
        """What the first start learns from, where it begins with what is known."""
        if not isinstance(self.init, str) or self.init not in ("auto", "known", "smooth"):
            return None
        knower = capability(oracle, KnowsPart)
        return None if knower is None else knower.known_part()

    def _summary(self) -> str:
        """The final objectives of the starts; they are not certified, because the objective is not convex."""
        ends = sorted(run.objective for run in self.runs_)
        if math.isfinite(self.bound_) or not ends:
            return super()._summary()  # every hidden value was given, or a file has no starts
        factor = f"; samples with unknown hidden values count by a factor of {self.unknown_weight_:g} (unknown_weight_)"
        factor = factor if self.unknown_weight_ < 1 else ""
        if len(ends) == 1:
            once = f"objective {ends[0]:.6g} of one start; it is not convex, so other starts (n_init) may end lower"
            return once + factor
        near = sum(end <= ends[0] + self.tol * self.C for end in ends)
        return (
            f"objective {ends[0]:.6g}, the lowest of {len(ends)} starts; the highest is {ends[-1]:.6g}, and {near} are "
            f"at the lowest{factor}"
        )

    def _check_parameters(self) -> None:
        check_margin(self)
        if self.halving and self.pace is not None:
            raise ValueError(
                "halving=True needs pace=None, because it compares objectives, which may rise while a pace leaves "
                f"samples out; got pace={self.pace!r}"
            )
        if self.init is None or (isinstance(self.init, str) and self.init not in INITS):
            names = ", ".join(map(repr, INITS))
            raise ValueError(f"init must be {names}, a dict of weights or hidden values, got {shorten(self.init)}")


def choose_unknown_weight(
    oracle: Oracle, weights: Array, learn: Callable[[Any, Array], Array], rng: np.random.Generator
) -> float:
    """The one of `UNKNOWN_WEIGHTS` with the lowest error on held-out hidden values, among those that labels permit.

    Wrong imputed values can harm a model of the known part, so some known hidden values are held out to decide. The
    answer is 0 if that is permitted, else 1, unless another factor is better by more than `CLEAR_GAIN` standard errors.
    The labels of the other samples are knowledge too. So some of these are held out as well, and a factor is permitted
    if it predicts labels as well as 1 does, within a standard error. The factor 0 must also keep every class: each
    needs known hidden values outside of every fold. With fewer than two known values per fold the answer is 1.

    Parameters
    ----------
    oracle : samples some of whose hidden values are known (an `EnumerableOracle`)
    weights : (n,) the c_i
    learn : the weights w that an oracle and its c_i lead to
    rng : draws the folds
    """
    unknown = oracle.hidden_unknown()
    known = np.setdiff1d(np.arange(oracle.n_samples), unknown)
    informative = np.intersect1d(known, oracle.with_hidden(None).hidden_unknown())
    if informative.size < 2 * FOLDS:
        return UNKNOWN_WEIGHTS[-1]
    folds = np.array_split(rng.permutation(informative), FOLDS)
    others = np.array_split(rng.permutation(unknown[weights[unknown] > 0]), FOLDS)
    labels, states = cast(SplitsCodes, oracle).split(oracle.impute(np.zeros(oracle.n_params)).code)
    permitted = _keeps_classes(labels, weights, known, folds)
    errors: dict[float, list[Array]] = {factor: [] for factor in permitted}
    mistakes: dict[float, list[Array]] = {factor: [] for factor in permitted}
    for fold, other in zip(folds, others, strict=True):
        given = np.full(oracle.n_samples, -1)
        given[known] = states[known]
        given[fold] = -1
        train = oracle.with_hidden(KnownHidden(given))
        for unknown_factor in permitted:
            factor = np.ones(oracle.n_samples)
            factor[unknown] = unknown_factor
            factor[fold] = factor[other] = 0.0
            w = learn(train, rescale_weights(weights, factor))
            errors[unknown_factor].append(_errors(oracle, train, w, np.sort(fold), states))
            mistakes[unknown_factor].append(_mistakes(oracle, w, np.sort(np.append(fold, other)), labels))
    wrong, missed = ({k: np.concatenate(parts) for k, parts in found.items()} for found in (errors, mistakes))
    every = missed[UNKNOWN_WEIGHTS[-1]]
    permitted = tuple(factor for factor in permitted if not _is_clear(missed[factor] - every, 1.0))
    first = 0.0 if 0.0 in permitted else UNKNOWN_WEIGHTS[-1]
    best = min(permitted, key=lambda factor: float(wrong[factor].mean()))
    return best if _is_clear(wrong[first] - wrong[best], CLEAR_GAIN) else first


def _keeps_classes(labels: Array, weights: Array, known: Array, folds: list[Array]) -> tuple[float, ...]:
    """`UNKNOWN_WEIGHTS`, without 0 if some class has no known hidden value left while a fold is held out."""
    classes = np.unique(labels[weights > 0])
    parts = [np.setdiff1d(known[weights[known] > 0], fold) for fold in folds]
    is_kept = all(np.isin(classes, labels[part]).all() for part in parts)
    return UNKNOWN_WEIGHTS if is_kept else UNKNOWN_WEIGHTS[1:]


def _is_clear(gain: Array, errors: float) -> bool:
    """Whether the mean of a gain is above zero by more than so many standard errors."""
    return bool(gain.mean() > errors * gain.std(ddof=1) / np.sqrt(gain.size))


def rescale_weights(weights: Array, factor: Array) -> Array:
    """Weights times a factor each, with the same sum as before; a factor of 0 leaves a sample out."""
    changed = weights * factor
    return np.asarray(changed * (float(weights.sum()) / max(float(changed.sum()), 1e-300)))


def _errors(oracle: Oracle, train: Any, w: Array, rows: Array, states: Array) -> Array:
    """The losses of predictions on held-out rows; where they count labels alone, plus 1 per wrong hidden value."""
    loss: Array = oracle.loss(oracle.predict(w, rows).code, rows)
    if loss_needs_hidden(oracle):
        return loss
    found = cast(SplitsCodes, oracle).split(train.impute(w, rows).code, rows)[1]
    return np.asarray(loss + (found != states[rows]))


def _mistakes(oracle: Oracle, w: Array, rows: Array, labels: Array) -> Array:
    """The losses of labels that are predicted for held-out rows; 1 per wrong label if the loss needs hidden values."""
    code = oracle.predict(w, rows).code
    if loss_needs_hidden(oracle):
        return np.asarray(cast(SplitsCodes, oracle).split(code, rows)[0] != labels[rows], dtype=float)
    return oracle.loss(code, rows)
