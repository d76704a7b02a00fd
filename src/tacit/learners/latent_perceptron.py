"""The latent perceptron: online learning with hidden values, by maxima alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array
from tacit.data.labels import find_missing
from tacit.data.parameters import random_numbers
from tacit.data.specs import estimator, not_negative, optional, parameter, switch, table, whole
from tacit.learners.descents.multistart import MAX_STARTS, Method, MultiStart, Weights
from tacit.learners.descents.pacing import SelfPaced, optional_pace
from tacit.learners.descents.starts import propose
from tacit.learners.descents.unlabelled import self_train
from tacit.learners.learner import Learner, Traits
from tacit.learners.preparation import LEARNED, bind_samples, has_hidden_states, open_checkpoint, read_weights
from tacit.learners.smooth_learner import SmoothState, SmoothStep
from tacit.oracle import Oracle, Schema, capability, code_offsets, hidden_values, require
from tacit.oracle.capabilities import DrawsHidden, LearnsOnline
from tacit.penalties import Quadratic
from tacit.runtime import Status, parallel, run

NEEDS = (Oracle.predict, Oracle.impute, Oracle.loss, Oracle.features, Oracle.decode)
MAX_EPOCHS = 10_000
"""Maximum number of passes over the samples: samples that cannot be separated take all of them."""

MAX_BATCHES = 100
"""Batches per epoch where `batch_size` is None: updates are then frequent, and passes still few."""


INIT_SCALE = 0.01
"""Standard deviation of the first weights where hidden states are alike at w = 0: far below what a mistake moves."""


@estimator
class LatentPerceptron(Learner):
    """Structured perceptron with hidden values (Sun, Matsuzaki, Okanohara & Tsujii 2009; Collins 2002).

    Wherever the prediction is wrong, the weights move towards the best output with the right label and away from what
    was predicted: ``w ← w + Ψ(x_i, y_i, h*) − Ψ(x_i, ŷ, ĥ)``. It has neither an objective nor a C. Samples are read in
    batches, with one call of the oracle each: O(epochs · a pass).

    Parameters
    ----------
    problem : what is predicted; any problem will do, since only maxima are needed
    epochs : passes over the samples, at most 10,000; a pass without a mistake is the last
    average : predict with the mean of the weights after every batch, which is far less noisy than the last ones
    shuffle : read the samples of every epoch in another order
    batch_size : samples per update; None for a hundredth of the samples, and for sequences (problems that learn
        online) for one, which is then as fast
    margin : how much a loss of 1 is added to the scores while learning, so that the truth must win by it; 0 for the
        plain perceptron. Only for problems that learn online, one sample at a time
    n_init : number of starts; the one with the lowest loss in its last epoch is kept. The first begins with w = 0, or
        hidden values that the problem proposes, the others with random hidden values
    pace : None for all samples at once, or `tacit.SelfPaced()`: after its warm-up, epochs read the samples that are
        easy. Their term is by how much the best output beats the best one with the right label. It has no scale, since
        there is no C: their share grows from ``start`` by the factor ``mu`` per epoch, until all are in
    checkpoint, resume, n_jobs, random_state, verbose : as in `StructuredSVM`
    callbacks : functions called with every `SmoothStep`, one per epoch; one that returns True ends the fit

    Attributes
    ----------
    coef_, weights_ : the weights, flat and by name
    last_coef_, n_averaged_ : the weights after the last batch, and the number of batches that `coef_` is a mean of
    hidden_ : the best hidden value of every training sample
    history_ : one `SmoothStep` per epoch of the best start; its ``objective`` is the mean loss of predictions before
        their samples were learned from, ``samples_in`` the number of mistakes, or with a pace of the samples read
    runs_ : all starts
    status_, n_iter_ : CONVERGED after an epoch without a mistake, else MAX_ITER; and the epochs of the best start

    >>> from tacit.problems import Candidates
    >>> bags = [[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]], [[0.2, 5.0], [0.0, 0.0]]]
    >>> LatentPerceptron(Candidates()).fit(bags, ["x", "y", "x", "y"]).predict(bags)
    array(['x', 'y', 'x', 'y'], dtype='<U1')
    """

    asks_for_rows = True
    traits = Traits()
    learned = {
        **{name: LEARNED[name] for name in ("hidden_", "status_", "history_", "runs_", "n_iter_")},
        **{"last_coef_": table(None), "n_averaged_": whole(0)},
    }
    status_: Status

    epochs: int = parameter(whole(1, MAX_EPOCHS, remedy="more passes do not separate the samples"), default=20)
    average: bool = parameter(switch, default=True)
    shuffle: bool = parameter(switch, default=True)
    batch_size: int | None = parameter(optional(whole()), default=None)
    margin: float = parameter(not_negative, default=0.0)
    n_init: int = parameter(whole(1, MAX_STARTS), default=1)
    pace: SelfPaced | None = parameter(optional_pace, default=None)

    def fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> LatentPerceptron:
        """Learn from labelled samples.

        Parameters
        ----------
        X, y : samples and labels, in the form that the problem takes; a label that is missing is None, if it is one of
            the classes or a sequence of tags
        hidden : what is known of the hidden values, as in `LatentSVM`
        sample_weight : how far a mistake moves the weights, relative to the others; 0 leaves a sample out
        """
        if (is_missing := find_missing(y, getattr(self.problem, "has_marginals", False))).any():
            return self_train(self, X, y, is_missing, hidden, sample_weight)
        self._check_parameters()
        schema, oracle = bind_samples(self, X, y, hidden, NEEDS)
        weights = read_weights(sample_weight, oracle.n_samples)
        seed = int(random_numbers(self.random_state).randint(2**31))
        n_starts = int(self.n_init) if oracle.hidden_unknown().size else 1
        checkpoint = open_checkpoint(self, oracle)
        with parallel(oracle, self.n_jobs) as shards:
            epochs = self._epochs(shards, weights, seed, schema)
            starts = MultiStart(
                epochs,
                lambda seed, start: epochs.begin(_first_weights(shards, start, seed)),
                n_starts,
                int(self.epochs),
                checkpoint,
            )
            record = starts.begin(seed)
            end = run(starts, record, callbacks=self.callbacks, verbose=self.verbose, checkpoint=checkpoint)
            ended = starts.conclude(*end)
            best = ended.runs.best
            self.schema_, self.n_features_in_ = schema, schema.n_features
            self._keep(ended.state)
            self.hidden_ = hidden_values(oracle, shards.impute(self.coef_).code)
        self.status_, self.history_, self.runs_ = ended.status, best.history, list(ended.runs)
        self.n_iter_ = len(best.history)
        if ended.status in (Status.STOPPED, Status.INTERRUPTED):
            how = "stopped by a callback" if ended.status is Status.STOPPED else "interrupted"
            warnings.warn(f"{type(self).__name__}: {how} after {self.n_iter_} epochs", ConvergenceWarning, stacklevel=2)
        return self

    def partial_fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> LatentPerceptron:
        """Learn from more samples, in one pass in their order; the first call sets classes and dimensions.

        Labels that were not in the first call are an error: give all of them to the problem (``classes=``), or in the
        first call.
        """
        self._check_parameters()
        if self.pace is not None:
            raise ValueError("partial_fit reads every sample once, so that none can come later; use pace=None, or fit")
        if hasattr(self, "coef_"):
            oracle = self._bind(X, y, hidden)
            require(type(self).__name__, self.problem, oracle, NEEDS)
        else:
            self.schema_, oracle = bind_samples(self, X, y, hidden, NEEDS)
            self.n_features_in_ = self.schema_.n_features
        weights = read_weights(sample_weight, oracle.n_samples)
        seed = int(random_numbers(self.random_state).randint(2**31))
        with parallel(oracle, self.n_jobs) as shards:
            epochs = self._epochs(shards, weights, seed, self.schema_)
            state = epochs.begin(getattr(self, "last_coef_", np.zeros(oracle.n_params)))
            if hasattr(self, "coef_"):
                state = replace(state, w=self.coef_, last=self.last_coef_, count=self.n_averaged_)
            state = epochs.step(state)
            self._keep(state)
            self.hidden_ = hidden_values(oracle, shards.impute(self.coef_).code)
        self.history_ = [*getattr(self, "history_", []), epochs.line(state, 0.0)]
        self.runs_, self.n_iter_ = [], len(self.history_)
        self.status_ = Status.CONVERGED if state.is_done else Status.MAX_ITER
        return self

    def _epochs(self, oracle: Oracle, weights: Array, seed: int, schema: Schema) -> OnlineEpochs:
        settings = weights, bool(self.average), bool(self.shuffle), seed
        if capability(oracle, LearnsOnline) is not None and self.batch_size in (None, 1):
            return OnlineEpochs(oracle, *settings, float(self.margin), self.pace)
        if self.margin:
            require(f"LatentPerceptron(margin={self.margin})", self.problem, oracle, LearnsOnline, "use margin=0")
        size = -(-oracle.n_samples // MAX_BATCHES) if self.batch_size is None else int(self.batch_size)
        lower = Quadratic().in_blocks(schema, self.problem.lower_bounds(schema)).lower
        return Epochs(oracle, *settings, pace=self.pace, batch_size=size, lower=lower)

    def _keep(self, state: EpochState) -> None:
        self.coef_, self.last_coef_, self.n_averaged_ = state.w, state.last, state.count

    def check(self) -> None:
        super().check()
        table(self.coef_.size)("last_coef_", self.last_coef_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.margin and self.batch_size not in (None, 1):
            raise ValueError(f"margin={self.margin} needs batch_size=None or 1, got batch_size={self.batch_size}")
        if self.pace is None:
            return
        if self.pace.K is not None:
            raise ValueError(f"K={self.pace.K} needs an objective, which a perceptron lacks; use SelfPaced(start=...)")
        needed = int(self.pace.warmup) + self.pace.n_shares + 1
        if needed > self.epochs:
            raise ValueError(
                f"{self.pace} lets all samples in at epoch {needed}, but epochs={self.epochs}; raise epochs or mu"
            )


@dataclass(frozen=True)
class EpochState(SmoothState):
    """The state of the perceptron: ``w`` is the mean of the weights so far, ``last`` the present ones, and ``count``
    the number that the mean is of."""

    last: Weights = field(default_factory=lambda: np.empty(0))
    count: int = 0


@dataclass(frozen=True)
class OnlineEpochs(Method[EpochState]):
    """Epochs of one sample after the other, by an oracle that learns online: memory is a few vectors as long as w."""

    oracle: Oracle
    weights: Array
    average: bool
    shuffle: bool
    seed: int
    margin: float = 0.0
    pace: SelfPaced | None = None

    state: ClassVar[Any] = EpochState
    line_type: ClassVar[Any] = SmoothStep

    def begin(self, w: Array) -> EpochState:
        return EpochState(w=w, last=w)

    def step(self, now: EpochState) -> EpochState:
        is_in, count = self._choose(now), now.count
        order = self._order(now.iteration) if self.shuffle else np.arange(self.oracle.n_samples)
        order = order[is_in[order]]
        n = order.size
        weights, ones = self.weights[order], np.ones(n)
        online = cast(LearnsOnline, self.oracle)
        found = online.learn_online(now.last, order, weights, ones, ones / (count + n), margin=self.margin)
        mean = now.w * (count / (count + n)) + found.total if self.average else found.w
        lost = float((weights * found.lost).sum())
        return self._after(now, mean, found.w, lost, found.mistakes, n, is_in)

    def _choose(self, now: EpochState) -> Array:
        """The mask of the samples of the next epoch: the easy ones of the pace."""
        is_in = np.ones(self.oracle.n_samples, dtype=bool)
        n_rounds = -1 if self.pace is None else now.iteration - int(self.pace.warmup)
        if self.pace is None or not 0 <= n_rounds < self.pace.n_shares:
            return is_in
        paced = self.pace.can_leave_out(self.oracle)
        term = self.oracle.predict(now.w).value - self.oracle.impute(now.w).value
        is_in[paced] = self.pace.choose_share(term[paced], n_rounds, self.weights[paced])
        return is_in

    def _order(self, epoch: int) -> Array:
        return np.random.default_rng((self.seed, epoch)).permutation(self.oracle.n_samples)

    def _after(
        self, now: EpochState, mean: Array, w: Array, lost: float, mistakes: int, batches: int, is_in: Array
    ) -> EpochState:
        n_read = mistakes if self.pace is None else int(is_in.sum())
        numbers = mean, np.inf, now.evaluations + batches, n_read, w, now.count + batches
        loss, is_done = lost / float(self.weights[is_in].sum()), mistakes == 0 and bool(is_in.all())
        return EpochState(loss, now.iteration + 1, is_done, True, *numbers)


@dataclass(frozen=True)
class Epochs(OnlineEpochs):
    """Epochs of the perceptron, batch by batch. ``lower`` are least values of the weights, or None."""

    _: KW_ONLY
    batch_size: int
    lower: Array | None

    def begin(self, w: Array) -> EpochState:
        return super().begin(w if self.lower is None else np.maximum(w, self.lower))

    def step(self, now: EpochState) -> EpochState:
        mean, w, count = now.w, now.last, now.count
        lost, mistakes, is_in = 0.0, 0, self._choose(now)
        for rows in self._batches(now.iteration, is_in):
            predicted = self.oracle.predict(w, rows).code
            loss, weights = self.oracle.loss(predicted, rows), self.weights[rows]
            coef = weights * (loss > 0)
            lost += float((weights * loss).sum())
            mistakes += int(np.count_nonzero(coef))
            if coef.any():
                w = w + self._move(w, predicted, coef, rows)
                w = w if self.lower is None else np.maximum(w, self.lower)
            count += 1
            mean = mean + (w - mean) / count if self.average else w
        return self._after(now, mean, w, lost, mistakes, count - now.count, is_in)

    def _move(self, w: Array, predicted: Array, coef: Array, rows: Any) -> Array:
        """Σ coef_i [Ψ(x_i, y_i, h*) − Ψ(x_i, ŷ, ĥ)] over the mistakes."""
        wrong = np.flatnonzero(coef)
        samples = np.arange(self.oracle.n_samples)[rows]
        chosen = samples[wrong]
        right = self.oracle.impute(w, chosen).code
        offsets = code_offsets(self.oracle)
        if offsets is not None:
            predicted = predicted[np.repeat(coef != 0, np.diff(offsets)[samples])]
        else:
            predicted = predicted[wrong]
        towards: Array = self.oracle.features(right, coef[wrong], chosen)
        away: Array = self.oracle.features(predicted, coef[wrong], chosen)
        return towards - away

    def _batches(self, epoch: int, is_in: Array) -> Iterator[Any]:
        n, size = self.oracle.n_samples, self.batch_size
        if not self.shuffle and is_in.all():
            yield from (slice(first, min(first + size, n)) for first in range(0, n, size))
            return
        order = self._order(epoch) if self.shuffle else np.arange(n)
        order = order[is_in[order]]
        yield from (np.sort(order[first : first + size]) for first in range(0, order.size, size))


def _first_weights(oracle: Oracle, start: int, seed: int) -> Array:
    """Zero for the first start, unless the problem proposes hidden values; for others one step to random ones."""
    zero = np.zeros(oracle.n_params)
    proposed = propose(oracle, start + 1) if oracle.hidden_unknown().size else []
    if start < len(proposed):
        code = proposed[start]
    elif has_hidden_states(oracle):
        return INIT_SCALE * np.random.default_rng((seed, start)).standard_normal(zero.size)
    elif start == 0:
        return zero
    else:
        drawer = capability(oracle, DrawsHidden)
        rng = np.random.default_rng((seed, start))
        if drawer is None:
            return np.asarray(rng.standard_normal(zero.size))
        code = drawer.draw(rng)
    predicted = oracle.predict(zero).code
    each = np.full(oracle.n_samples, 1.0 / oracle.n_samples)
    return np.asarray(oracle.features(code, each) - oracle.features(predicted, each))
