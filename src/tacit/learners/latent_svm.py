"""The latent SVM: part of the answer is never labelled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tacit.arrays import Array
from tacit.learners.latent.descent import Descent, Iteration, Position
from tacit.learners.latent.runs import Record, Run, Runs
from tacit.learners.learner import Learner, Traits
from tacit.learners.loaded_facts import MARGIN_FACTS, check_facts
from tacit.learners.preparation import Prepared, check_margin, prepare
from tacit.oracle import Problem, completes_labels, hidden_values, loss_needs_hidden, offered, require
from tacit.oracle.capabilities import ProposesStarts
from tacit.oracle.digests import checksum
from tacit.oracle.recalling import Recalling
from tacit.pacing import SelfPaced
from tacit.parameters import random_numbers, shorten, switch, whole_number
from tacit.penalties import Penalty
from tacit.ragged import Ragged
from tacit.running import Progress, Status, run
from tacit.scale import sharded
from tacit.solvers import Bundle, Solver, choose
from tacit.solvers.checkpoint import Checkpoint, describe_penalty

__all__ = ["Iteration", "LatentSVM", "Run"]

_COMPARED = ("problem", "C", "solver", "pace", "n_init", "tol", "max_inner", "rescaling", "escape", "shift")
"""What a resumed fit must agree on with the one that was stopped."""


class LatentSVM(Learner):
    """Latent SVM by CCCP (Yu & Joachims 2009; thesis, algorithm 3), all samples at once or self-paced (algorithm 4).

    Minimises ``½‖w‖² + (C/n) Σ_i ξ_i``, ``ξ_i = max_{y,h} [Δ(y_i, y, h) + w·Ψ(x_i, y, h)] − max_h w·Ψ(x_i, y_i, h)``:
    fix the hidden values, solve a structured SVM, impute them anew, until that gains less than ``C · tol``. The
    objective never rises: should rounding say so, the point before stays. (While a pace is on, it may.) It is not
    convex: other starts may end lower, so `n_init` of them keep the best.

    Parameters
    ----------
    problem : what is predicted, such as `tacit.problems.Candidates()`
    C : weight of the mean loss against ½‖w‖²; a sample's weight is C/n
    solver : of the convex tasks: "auto", or a solver
    pace : None for all samples at once, or `tacit.SelfPaced()`
    n_init : starts; the best by objective is kept, all are in `runs_`; one if `init` gives where to begin
    init : "auto" begins at hidden values that the problem proposes (for a `Motif`, where words stand that positives
        have more often than negatives), and draws them where it has none, or no more; "hidden" draws them, "weights"
        draws w and imputes; or hidden values to begin with
    tol : stop when an iteration gains less than C · tol; convex tasks are solved to that gap
    max_iter : outer iterations per start
    max_inner : steps of one convex solve
    rescaling : "margin" or "slack"
    class_weight : None, "balanced", or a factor for C by label
    penalty : Ω; None for ½‖w‖², or a `tacit.penalties.Penalty`
    warm_start : the first start begins at the present `coef_`, the others as `init` says
    escape : if a convex task ends at w = 0, as drawn hidden values can make it, impute from the minimiser of its
        cutting-plane model instead
    shift : when a start has ended, try moves of all hidden values at once, and go on from one that is better; where the
        problem knows such moves: those of a `Motif` are up to three letters
    checkpoint, resume, n_jobs, random_state, verbose : as in `StructuredSVM`
    callbacks : functions called with every `Iteration`; one that returns True ends the fit

    Attributes
    ----------
    coef_, weights_ : the weights, flat and by name
    hidden_ : the hidden value of every training sample, given or imputed
    objective_ : the true objective
    inner_gap_ : how far the last convex task may be from its own optimum, its hidden values fixed; infinite if that
        task did not hold all samples. It says nothing of other hidden values
    bound_, gap_ : a lower bound on what is minimised, and the distance to it: −inf and inf, because the objective is
        not convex, unless every hidden value was given
    history_ : one `Iteration` for every outer iteration of the best start
    runs_ : all starts
    status_, n_iter_ : why it stopped, and after how many outer iterations of the best start

    >>> from tacit.problems import Candidates
    >>> bags = [[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]], [[0.2, 5.0], [0.0, 0.0]]]
    >>> model = LatentSVM(Candidates(), C=100, n_init=5, random_state=0).fit(bags, ["x", "y", "x", "y"])
    >>> model.predict(bags), model.hidden_
    (array(['x', 'y', 'x', 'y'], dtype='<U1'), array([1, 0, 0, 0]))
    """

    traits = Traits(has_objective=True, is_convex=True, is_certified=True)
    status_: Status

    def __init__(
        self,
        problem: Problem,
        C: float = 100.0,
        solver: Solver | str | None = "auto",
        pace: SelfPaced | None = None,
        n_init: int = 1,
        init: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
        max_inner: int = 1000,
        rescaling: str = "margin",
        penalty: Penalty | None = None,
        class_weight: Any = None,
        warm_start: bool = False,
        escape: bool = True,
        shift: bool = True,
        checkpoint: Any = None,
        resume: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 1,
        callbacks: Iterable[Callable[[Iteration], Any]] | None = None,
    ) -> None:
        self.problem = problem
        self.C = C
        self.solver = solver
        self.pace = pace
        self.n_init = n_init
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.max_inner = max_inner
        self.rescaling = rescaling
        self.penalty = penalty
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.escape = escape
        self.shift = shift
        self.checkpoint = checkpoint
        self.resume = resume
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> LatentSVM:
        """Learn from labelled samples.

        Parameters
        ----------
        X, y : samples and labels, in the form that the problem takes
        hidden : what is known of hidden values, per sample: the value, −1 for nothing, or those that are allowed (a
            list or a mask); what is known is never changed
        sample_weight : a weight of 2 is the sample twice, 0 leaves it out
        """
        self._check()
        prepared = prepare(self, X, y, hidden, sample_weight)
        schema, oracle = prepared.schema, prepared.oracle
        self._check_loss(oracle)
        n_starts = 1 if self._is_fixed(oracle) else int(self.n_init)
        seed = int(random_numbers(self.random_state).randint(2**31))
        checkpoint = self._checkpoint(prepared, seed)
        with sharded(oracle, self.n_jobs) as shards:
            one = self._one_run(self._descent(Recalling(shards), prepared))
            old = self._old_weights(schema)
            runs = Runs(
                one, lambda one: self._first(one, oracle, y, old), n_starts, int(self.max_iter), checkpoint is not None
            )
            record, status = run(
                runs,
                _begin(runs, seed, checkpoint),
                callbacks=self.callbacks or (),
                progress=Progress(self.verbose, None),
                checkpoint=checkpoint,
            )
        self._keep(_closed(runs, record, status), schema, oracle)
        if status is not Status.CONVERGED:  # cut short: stopped or interrupted
            self.status_ = status
        if self.status_ is not Status.CONVERGED:
            message = _advice(self.status_, self.objective_, len(self.runs_), n_starts, record.n_iterations)
            warnings.warn(f"{type(self).__name__}: {message}", ConvergenceWarning, stacklevel=2)
        return self

    def _keep(self, record: Record, schema: Any, oracle: Any) -> None:
        """What was learned."""
        position = record.best
        assert position is not None
        best = min(record.runs, key=lambda run: run.objective)
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        self.coef_ = position.w
        self.hidden_ = hidden_values(oracle, position.target)
        self.objective_ = best.objective
        self.inner_gap_ = max(position.gap, 0.0) if position.is_in.all() else np.inf
        self.bound_ = -np.inf if oracle.hidden_unknown().size else best.objective - self.inner_gap_
        self.status_, self.history_ = best.status, best.history
        self.n_iter_ = len(best.history)
        self.runs_ = list(record.runs)

    def _check_loss(self, oracle: Any) -> None:
        """CCCP needs ℓ_i before it starts; a loss against a true hidden value that nobody knows has none."""
        if not loss_needs_hidden(oracle):
            return
        unknown = oracle.hidden_unknown()
        if unknown.size:
            raise ValueError(
                f"the loss of {type(self.problem).__name__} compares with the true hidden value, which is unknown for "
                f"{unknown.size} samples (the first is sample {unknown[0]}): give them all with fit(X, y, hidden=...), "
                "use a loss on labels alone (loss='0/1'), or a learner for such losses: tacit.IterativeLatentSVM"
            )

    def _descent(self, oracle: Any, prepared: Prepared) -> Descent:
        return Descent(
            oracle,
            prepared.weights,
            prepared.penalty,
            lambda task: choose(task, float(self.tol)) if isinstance(self.solver, str) else self.solver or Bundle(),
            tol=float(self.tol),
            max_inner=int(self.max_inner),
            rescaling=self.rescaling,
            pace=self.pace,
            escape=self.escape,
            shift=self.shift,
        )

    def _one_run(self, descent: Descent) -> Any:
        """What one start does."""
        return descent

    def _checkpoint(self, prepared: Prepared, seed: int) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        facts = {
            "features, labels and losses": prepared.oracle.digest(),
            "sample weights and C": checksum(prepared.weights),
            "penalty": describe_penalty(prepared.penalty, prepared.oracle.n_params),
            "classes": repr(prepared.schema.classes.tolist()),
            "seed": seed if self.random_state is not None else "any",
            **{name: repr(getattr(self, name)) for name in _COMPARED},
            "init": repr(self.init) if isinstance(self.init, str) else "hidden values " + _mark(self.init),
        }
        return Checkpoint(self.checkpoint, facts, self.resume, every_step=True)

    def _is_fixed(self, oracle: Any) -> bool:
        """Whether every start would be the same: hidden values to begin with are given, or all are known."""
        return not isinstance(self.init, str) or not oracle.hidden_unknown().size

    def _old_weights(self, schema: Any) -> Array | None:
        """The present weights, if a warm start is asked for and they are weights of the same things."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        same = self.coef_.size == schema.n_params and np.array_equal(self.schema_.classes, schema.classes)
        return self.coef_ if same else None

    def _first(self, one: Any, oracle: Any, y: Any, old: Array | None) -> Position:
        """Where a run begins."""
        descent: Descent = getattr(one, "descent", one)
        zero = np.zeros(oracle.n_params)
        if not oracle.hidden_unknown().size:
            return self._begun(one, oracle.impute(zero).code)
        if old is not None and descent.start == 0:
            return self._begun(one, oracle.impute(old).code, old)
        rng = descent.rng("start")
        if isinstance(self.init, str) and self.init == "weights":
            return self._begun(one, oracle.impute(rng.standard_normal(oracle.n_params)).code)
        if isinstance(self.init, str) and self.init == "auto":
            proposed = self._proposals(oracle)
            if descent.start < len(proposed):
                return self._begun(one, proposed[descent.start])
        if isinstance(self.init, str):
            require(f"{type(self).__name__}(init={self.init!r})", self.problem, oracle, ["draw"], "use init='weights'")
            return self._begun(one, oracle.draw(rng))
        try:
            prefer = oracle.encode(self.init) if completes_labels(oracle) else oracle.encode(y, self.init)
        except (ValueError, TypeError) as error:
            what = "all tags of every sequence" if completes_labels(oracle) else "a hidden value for every sample"
            raise ValueError(f"init as an array holds {what} to begin with: {error}") from error
        return self._begun(one, oracle.impute(zero, prefer=prefer).code)

    def _proposals(self, oracle: Any) -> list[Array]:
        proposer = offered(oracle, ProposesStarts)
        return [] if proposer is None else proposer.proposals(int(self.n_init))

    @staticmethod
    def _begun(one: Any, target: Array, w: Array | None = None) -> Position:
        position: Position = one.begin(target, w)
        return position

    def _summary(self) -> str:
        """Where the starts ended: what is minimised is not convex, so that is all that is known."""
        ends = sorted(run.objective for run in self.runs_)
        if np.isfinite(self.bound_):
            return super()._summary()  # every hidden value was given
        if len(ends) == 1:
            return f"objective {ends[0]:.6g}, one start; it is not convex, so other starts (n_init) may end lower"
        near = sum(end <= ends[0] + self.tol * self.C for end in ends)
        return (
            f"objective {ends[0]:.6g}, the lowest of {len(ends)} starts, which ended between {ends[0]:.6g} and "
            f"{ends[-1]:.6g}; {near} of them there"
        )

    def check(self) -> None:
        self._check()
        check_margin(self)
        check_facts(self, (*MARGIN_FACTS, "runs_", "inner_gap_"))

    def _check(self) -> None:
        whole_number("n_init", self.n_init)
        whole_number("max_inner", self.max_inner)
        for name in ("escape", "shift", "warm_start"):
            switch(name, getattr(self, name))
        if self.init is None or (isinstance(self.init, str) and self.init not in ("auto", "hidden", "weights")):
            raise ValueError(f"init must be 'auto', 'hidden', 'weights' or hidden values, got {shorten(self.init)}")
        if self.pace is not None:
            if not isinstance(self.pace, SelfPaced):
                raise TypeError(f"pace must be None or tacit.SelfPaced(), got {shorten(self.pace)}")
            self.pace.check()


def _begin(runs: Runs, seed: int, checkpoint: Checkpoint | None) -> Record:
    """The first record, or the one that a checkpoint holds."""
    saved = None if checkpoint is None else checkpoint.read()
    if saved is None or checkpoint is None:
        return runs.begin(seed)
    with checkpoint.restoring():
        return runs.begin(seed, saved)


def _closed(runs: Runs, record: Record, status: Status) -> Record:
    """The record of a fit that ended; a run that was cut short counts as far as it came."""
    if status not in (Status.STOPPED, Status.INTERRUPTED) or not record.history:
        if not record.runs:
            raise KeyboardInterrupt  # nothing was learned yet
        return record
    return record.ended((runs.status(record) if status is Status.INTERRUPTED else None) or status)


def _mark(values: Any) -> str:
    """What tells hidden values from others."""
    if isinstance(values, Ragged):
        return checksum(values.values, values.offsets)
    try:
        values = np.asarray(values)
    except ValueError:  # entries of several lengths
        values = np.array([repr(value) for value in values])
    if values.dtype == object:
        values = np.array([repr(value) for value in np.ravel(values).tolist()])
    return checksum(values)


def _advice(status: Status, objective: float, n_runs: int, n_starts: int, n_iterations: int) -> str:
    starts = f" in {n_runs} of {n_starts} starts" if n_starts > 1 else ""
    last = f"objective {objective:.6g} after {n_iterations} iterations{starts}"
    return {
        Status.MAX_ITER: f"not converged: {last}; raise max_iter or tol",
        Status.STALLED: f"the last convex task did not reach its gap: {last}; raise max_inner or tol",
        Status.STOPPED: f"stopped by a callback: {last}",
        Status.INTERRUPTED: f"interrupted: {last}; the best model so far is kept",
    }[status]
