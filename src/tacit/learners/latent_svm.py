"""The latent SVM: part of the answer is never labelled."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from tacit.arrays import Array
from tacit.learners.cccp import Descent, Iteration, Position
from tacit.learners.learner import Learner
from tacit.learners.preparation import prepare
from tacit.learners.run_log import Record, Run, RunLog
from tacit.oracle import Problem, hidden_values, is_sequence, require
from tacit.oracle.enumerable import checksum
from tacit.oracle.recalling import Recalling
from tacit.pacing import SelfPaced
from tacit.parameters import whole_number
from tacit.ragged import Ragged
from tacit.scale import sharded
from tacit.solvers import Bundle, Solver, Status, choose
from tacit.solvers.checkpoint import Checkpoint
from tacit.solvers.loop import Progress

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
    init : "hidden" draws hidden values, "weights" draws w and imputes; or hidden values to begin with
    tol : stop when an iteration gains less than C · tol; convex tasks are solved to that gap
    max_iter : outer iterations a start
    max_inner : steps of one convex solve
    rescaling : "margin" or "slack"
    class_weight : None, "balanced", or a factor for C by label
    escape : leave an optimum of w = 0, which drawn hidden values can lead to, by the way its model points
    shift : when a start has ended, try its hidden values all moved together, and go on from there if that is better;
        where the problem knows such moves: those of a `Motif` are up to three letters
    checkpoint, resume, n_jobs, random_state, verbose : as in `StructuredSVM`
    callbacks : functions called with every `Iteration`; one that returns True ends the fit

    Attributes
    ----------
    coef_, weights_ : the weights, flat and by name
    hidden_ : the hidden value of every training sample, given or imputed
    objective_ : the true objective
    gap_, bound_ : the certificate of the last convex task: its optimum is at most `gap_` below `objective_`; infinite
        if that task did not hold all samples
    history_ : one `Iteration` for every outer iteration of the best start
    runs_ : all starts
    status_, n_iter_ : why it stopped, and after how many outer iterations of the best start

    >>> from tacit.problems import Candidates
    >>> bags = [[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [1.0, 1.0]], [[6.0, 0.0], [1.0, 1.0]], [[0.2, 5.0], [0.0, 0.0]]]
    >>> model = LatentSVM(Candidates(), C=100, n_init=5, random_state=0).fit(bags, ["x", "y", "x", "y"])
    >>> model.predict(bags), model.hidden_
    (array(['x', 'y', 'x', 'y'], dtype='<U1'), array([1, 0, 0, 0]))
    """

    def __init__(
        self,
        problem: Problem,
        C: float = 100.0,
        solver: Solver | str | None = "auto",
        pace: SelfPaced | None = None,
        n_init: int = 1,
        init: Any = "hidden",
        tol: float = 1e-3,
        max_iter: int = 100,
        max_inner: int = 1000,
        rescaling: str = "margin",
        class_weight: Any = None,
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
        self.class_weight = class_weight
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
        hidden : hidden values that are known, −1 where they are not; known ones are never changed
        sample_weight : a weight of 2 is the sample twice, 0 leaves it out
        """
        self._check()
        schema, oracle, weights = prepare(self, X, y, hidden, sample_weight)
        self._check_loss(oracle)
        seed = int(check_random_state(self.random_state).randint(2**31))
        with sharded(oracle, self.n_jobs) as shards:
            descent = self._descent(Recalling(shards), weights, seed)
            log = RunLog(descent, self._checkpoint(descent, schema))
            if not log.resume():
                log.open(self._start(descent, oracle, y))
            n_starts = 1 if self._is_fixed(oracle) else int(self.n_init)
            cut = self._runs(log, n_starts, oracle, y)
        self._keep(log.record, schema, oracle)
        if cut is not None:
            self.status_ = cut
        if self.status_ is not Status.CONVERGED:
            message = _advice(self.status_, self.objective_, len(log.record.runs), n_starts, log.record.n_iterations)
            warnings.warn(f"{type(self).__name__}: {message}", ConvergenceWarning, stacklevel=2)
        return self

    def _keep(self, record: Record, schema: Any, oracle: Any) -> None:
        """What was learned."""
        position = record.best
        assert position is not None
        run = min(record.runs, key=lambda run: run.objective)
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        self.coef_ = position.w
        self.hidden_ = hidden_values(oracle, position.target)
        self.objective_ = run.objective
        self.bound_ = run.objective - max(position.gap, 0.0) if position.is_in.all() else -np.inf
        self.status_, self.history_ = run.status, run.history
        self.n_iter_ = len(run.history)
        self.runs_ = list(record.runs)

    def _check_loss(self, oracle: Any) -> None:
        """CCCP needs ℓ_i before it starts; a loss against a true hidden value that nobody knows has none."""
        if not getattr(oracle, "loss_needs_hidden", False):
            return
        unknown = oracle.hidden_unknown()
        if unknown.size:
            raise ValueError(
                f"the loss of {type(self.problem).__name__} compares with the true hidden value, which is unknown for "
                f"{unknown.size} samples (the first is sample {unknown[0]}): give them all with fit(X, y, hidden=...), "
                "use a loss on labels alone (loss='0/1'), or a learner for such losses: tacit.IterativeLatentSVM"
            )

    def _descent(self, oracle: Any, weights: Array, seed: int) -> Descent:
        settings = (
            self._solver,
            float(self.tol),
            int(self.max_inner),
            self.rescaling,
            self.pace,
            self.escape,
            self.shift,
        )
        return Descent(oracle, weights, *settings, seed)

    def _runs(self, log: RunLog, n_starts: int, oracle: Any, y: Any) -> Status | None:
        """All starts, from where the log is; why it ended early, if it did."""
        progress = Progress(self.verbose, n_starts * int(self.max_iter))
        clock = time.perf_counter()
        try:
            while log.start < n_starts:
                status = self._status(log.record)
                if status is not None:
                    following = replace(log.descent, start=log.start + 1)
                    log.turn(status, self._start(following, oracle, y) if following.start < n_starts else None)
                    continue
                line = log.advance()
                text = f"objective {line.objective:.5g}, {line.samples_in} samples in"
                progress.show(time.perf_counter() - clock, log.record.n_iterations, text)
                answers = [callback(line) for callback in self.callbacks or ()]
                log.write()
                if any(answer is True for answer in answers):
                    log.turn(Status.STOPPED)
                    return Status.STOPPED
        except KeyboardInterrupt:
            log.write()
            if not log.record.runs and not log.record.history:
                raise
            if log.record.history:
                log.turn(self._status(log.record) or Status.INTERRUPTED)
            return Status.INTERRUPTED
        finally:
            progress.close()
        return None

    def _status(self, record: Record) -> Status | None:
        if record.position.is_done:
            return Status.CONVERGED if record.position.is_solved else Status.STALLED
        return Status.MAX_ITER if len(record.history) >= self.max_iter else None

    def _checkpoint(self, descent: Descent, schema: Any) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        facts = {
            "features, labels and losses": descent.oracle.digest(),
            "sample weights and C": checksum(descent.weights),
            "classes": repr(schema.classes.tolist()),
            "seed": descent.seed if self.random_state is not None else "any",
            **{name: repr(getattr(self, name)) for name in _COMPARED},
            "init": repr(self.init) if isinstance(self.init, str) else "hidden values " + _mark(self.init),
        }
        return Checkpoint(self.checkpoint, facts, self.resume)

    def _is_fixed(self, oracle: Any) -> bool:
        """Whether every start would be the same: hidden values to begin with are given, or all are known."""
        return not isinstance(self.init, str) or not oracle.hidden_unknown().size

    def _start(self, descent: Descent, oracle: Any, y: Any) -> Position:
        rng = descent.rng("start")
        if not oracle.hidden_unknown().size:
            return descent.begin(oracle.impute(np.zeros(oracle.n_params)).code)
        if isinstance(self.init, str) and self.init == "weights":
            w = rng.standard_normal(oracle.n_params)
            return descent.begin(oracle.impute(w).code)
        if isinstance(self.init, str):
            require(f"{type(self).__name__}(init='hidden')", self.problem, oracle, ["draw"], "use init='weights'")
            return descent.begin(oracle.draw(rng))
        try:
            prefer = oracle.encode(self.init) if is_sequence(oracle) else oracle.encode(y, self.init)
        except (ValueError, TypeError) as error:
            what = "all tags of every sequence" if is_sequence(oracle) else "a hidden value for every sample"
            raise ValueError(f"init as an array holds {what} to begin with: {error}") from error
        return descent.begin(oracle.impute(np.zeros(oracle.n_params), prefer=prefer).code)

    def _solver(self, task: Any) -> Solver:
        return choose(task, float(self.tol)) if isinstance(self.solver, str) else self.solver or Bundle()

    def check(self) -> None:
        self._check()
        super().check()

    def _check(self) -> None:
        whole_number("n_init", self.n_init)
        whole_number("max_inner", self.max_inner)
        if self.init is None or (isinstance(self.init, str) and self.init not in ("hidden", "weights")):
            raise ValueError(f"init must be 'hidden', 'weights' or hidden values, got {self.init!r}")
        if self.pace is not None:
            if not isinstance(self.pace, SelfPaced):
                raise TypeError(f"pace must be None or tacit.SelfPaced(), got {self.pace!r}")
            self.pace.check()


def _mark(values: Any) -> str:
    """What tells hidden values from others."""
    if isinstance(values, Ragged):
        return checksum(values.values, values.offsets)
    values = np.asarray(values)
    if values.dtype == object:
        values = np.array([repr(value) for value in values.tolist()])
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
