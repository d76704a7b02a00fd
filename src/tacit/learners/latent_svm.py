"""The latent SVM: part of the answer is never labelled."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from tacit.arrays import Array, narrow
from tacit.learners.cccp import Descent, Iteration, Position
from tacit.learners.learner import Learner
from tacit.learners.preparation import prepare
from tacit.oracle import Problem, require
from tacit.oracle.enumerable import checksum
from tacit.oracle.recalling import Recalling
from tacit.pacing import SelfPaced
from tacit.scale import sharded
from tacit.solvers import Bundle, Solver, Status, choose
from tacit.solvers.checkpoint import Checkpoint
from tacit.solvers.loop import Progress

__all__ = ["Iteration", "LatentSVM", "Run"]

_COMPARED = ("problem", "C", "solver", "pace", "n_init", "init", "tol", "max_inner", "rescaling", "escape")
"""What a resumed fit must agree on with the one that was stopped."""


class Run(NamedTuple):
    """One start of a latent SVM: how it ended, and its history."""

    objective: float
    status: Status
    history: list[Iteration]


class LatentSVM(Learner):
    """Latent SVM by CCCP (Yu & Joachims 2009; thesis, algorithm 3), all samples at once or self-paced (algorithm 4).

    Minimises ``½‖w‖² + (C/n) Σ_i ξ_i``, ``ξ_i = max_{y,h} [Δ(y_i, y, h) + w·Ψ(x_i, y, h)] − max_h w·Ψ(x_i, y_i, h)``:
    fix the hidden values, solve a structured SVM, impute them anew, until that gains less than ``C · tol``. The
    objective never rises. It is not convex: other starts may end lower, so `n_init` of them keep the best.

    Parameters
    ----------
    problem : what is predicted, such as `tacit.problems.Candidates()`
    C : weight of the mean loss against ½‖w‖²; a sample's weight is C/n
    solver : of the convex tasks: "auto", or a solver
    pace : None for all samples at once, or `tacit.SelfPaced()`
    n_init : starts; the best by objective is kept, all are in `runs_`
    init : "hidden" draws hidden values, "weights" draws w and imputes; or hidden values to begin with
    tol : stop when an iteration gains less than C · tol; convex tasks are solved to that gap
    max_iter : outer iterations a start
    max_inner : steps of one convex solve
    rescaling : "margin" or "slack"
    class_weight : None, "balanced", or a factor for C by label
    escape : leave an optimum of w = 0, which drawn hidden values can lead to, by the way its model points
    checkpoint, resume, n_jobs, random_state, verbose : as in `StructuredSVM`
    callbacks : functions called with every `Iteration`; one that returns True ends the fit

    Attributes
    ----------
    coef_, weights_ : the weights, flat and by name
    hidden_ : the hidden value of every training sample, given or imputed
    objective_ : the true objective
    gap_, bound_ : the certificate of the last convex task: its optimum is at most `gap_` below `objective_`
    history_ : one `Iteration` for every outer iteration of the best start
    runs_ : all starts
    status_, n_iter_ : why it stopped, and after how many outer iterations

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
            log = _Log(descent, self._checkpoint(descent))
            if not log.resume():
                log.open(self._start(descent, oracle, y, np.random.default_rng((seed, 0))))
            position, runs = self._runs(log, oracle, y)
        run = min(runs, key=lambda run: run.objective)
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        self.coef_ = position.w
        labels, found = oracle.decode(position.target)
        self.hidden_ = found if getattr(oracle, "code_offsets", None) is None else labels
        self.objective_ = run.objective
        self.bound_ = run.objective - max(position.gap, 0.0)
        self.status_, self.history_ = run.status, run.history
        self.n_iter_ = len(run.history)
        self.runs_ = runs
        if run.status is not Status.CONVERGED:
            warnings.warn(f"{type(self).__name__}: {_advice(run)}", ConvergenceWarning, stacklevel=2)
        return self

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
        settings = (self._solver, self.tol, self.max_inner, self.rescaling, self.pace, self.escape)
        return Descent(oracle, weights, *settings, seed)

    def _runs(self, log: _Log, oracle: Any, y: Any) -> tuple[Position, list[Run]]:
        """All starts from where the log is; the best position and all of them."""
        progress = Progress(self.verbose, self.n_init * self.max_iter)
        try:
            while len(log.runs) < self.n_init:
                status = self._status(log)
                if status is not None:
                    log.close(status)
                    if len(log.runs) < self.n_init:
                        rng = np.random.default_rng((log.descent.seed, len(log.runs)))
                        log.open(self._start(log.descent, oracle, y, rng))
                    continue
                log.advance()
                line = log.history[-1]
                text = f"objective {line.objective:.5g}, {line.samples_in} samples in"
                progress.show(line.seconds, line.iteration, text)
                answers = [callback(line) for callback in self.callbacks or ()]
                if any(answer is True for answer in answers):
                    log.write()
                    log.close(Status.STOPPED)
                    return log.result()
                log.write()
        except KeyboardInterrupt:
            log.write()
            if not log.runs and not log.history:
                raise
            if log.history:
                log.close(Status.INTERRUPTED)
        finally:
            progress.close()
        return log.result()

    def _status(self, log: _Log) -> Status | None:
        if log.position.is_done:
            return Status.CONVERGED if log.position.is_solved else Status.STALLED
        return Status.MAX_ITER if len(log.history) >= self.max_iter else None

    def _checkpoint(self, descent: Descent) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        facts = {
            "features, labels and losses": descent.oracle.digest(),
            "sample weights and C": checksum(descent.weights),
            "seed": descent.seed if self.random_state is not None else "any",
            **{name: repr(getattr(self, name)) for name in _COMPARED},
        }
        return Checkpoint(self.checkpoint, facts, self.resume)

    def _start(self, descent: Descent, oracle: Any, y: Any, rng: np.random.Generator) -> Position:
        if not oracle.hidden_unknown().size:
            return descent.begin(oracle.impute(np.zeros(oracle.n_params)).code)
        if isinstance(self.init, str) and self.init == "weights":
            w = rng.standard_normal(oracle.n_params)
            return descent.begin(oracle.impute(w).code)
        if isinstance(self.init, str):
            require(f"{type(self).__name__}(init='hidden')", self.problem, oracle, ["draw"], "use init='weights'")
            return descent.begin(oracle.draw(rng))
        is_sequence = getattr(oracle, "code_offsets", None) is not None
        try:
            prefer = oracle.encode(self.init) if is_sequence else oracle.encode(y, self.init)
        except (ValueError, TypeError) as error:
            what = "all tags of every sequence" if is_sequence else "a hidden value for every sample"
            raise ValueError(f"init as an array holds {what} to begin with: {error}") from error
        return descent.begin(oracle.impute(np.zeros(oracle.n_params), prefer=prefer).code)

    def _solver(self, task: Any) -> Solver:
        return choose(task, self.tol) if isinstance(self.solver, str) else self.solver or Bundle()

    def _check(self) -> None:
        for name in ("n_init", "max_inner"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be a whole number from 1, got {name}={value!r}")
        if isinstance(self.init, str) and self.init not in ("hidden", "weights"):
            raise ValueError(f"init must be 'hidden', 'weights' or hidden values, got {self.init!r}")
        if self.pace is not None:
            if not isinstance(self.pace, SelfPaced):
                raise TypeError(f"pace must be None or tacit.SelfPaced(), got {self.pace!r}")
            self.pace.check()


class _Log:
    """Where a fit is: the runs that ended and the best of them, the present run, its best position and its history.

    While a pace is on, the objective may rise: a run that is cut short gives its best position, not its last.
    """

    def __init__(self, descent: Descent, checkpoint: Checkpoint | None) -> None:
        self.descent = descent
        self.checkpoint = checkpoint
        self.runs: list[Run] = []
        self.best: Position | None = None
        self.lowest: Position | None = None
        self.history: list[Iteration] = []
        self._targets: list[Array] = []  # of every iteration of every run, to know their hidden values again

    def open(self, position: Position) -> None:
        self.position, self.lowest, self.history = position, None, []
        self._clock = time.perf_counter()

    def advance(self) -> None:
        now = self.descent.step(self.position)
        line = self.descent.line(now, time.perf_counter() - self._clock)
        self.position, self.history = now, [*self.history, line]
        self.lowest = _bare(self.descent.better(self.lowest, now))
        if self.checkpoint is not None:
            self._targets = [*self._targets, narrow(now.target)]

    def close(self, status: Status) -> None:
        """The present run has ended."""
        is_cut = status in (Status.MAX_ITER, Status.STOPPED, Status.INTERRUPTED)
        end = self.lowest if is_cut and self.lowest is not None else self.position
        self.runs.append(Run(end.objective, status, self.history))
        if self.best is None or end.objective < self.best.objective:
            self.best = _bare(end)
        self.history = []

    def result(self) -> tuple[Position, list[Run]]:
        assert self.best is not None
        return self.best, self.runs

    def write(self) -> None:
        """Keep all of this in the checkpoint, if there is one."""
        if self.checkpoint is not None:
            self.checkpoint.write(self.snapshot())

    def snapshot(self) -> dict[str, Any]:
        histories = [*(run.history for run in self.runs), self.history]
        lines = [line for history in histories for line in history]
        parts = {f"now.{name}": value for name, value in vars(self.position).items()}
        for prefix, position in (("best.", self.best), ("lowest.", self.lowest)):
            if position is not None:
                parts |= {prefix + name: value for name, value in vars(position).items()}
        return {
            **parts,
            "objectives": np.array([run.objective for run in self.runs]),
            "seed": self.descent.seed,
            "statuses": np.array([run.status.name for run in self.runs], dtype="U12"),
            "owners": np.repeat(np.arange(len(histories)), [len(history) for history in histories]),
            "lines": np.array([line[:-2] for line in lines], dtype=np.float64).reshape(len(lines), -1),
            "is_in": np.array([line.is_in for line in lines]),
            "targets": np.array(self._targets),
        }

    def resume(self) -> bool:
        """Go back to where a checkpoint is; False if there is none."""
        saved = None if self.checkpoint is None else self.checkpoint.read()
        if saved is None:
            return False
        self.descent = replace(self.descent, seed=int(saved["seed"]))
        self.position = self._position(saved, "now.")
        self.best = self._position(saved, "best.") if "best.w" in saved else None
        self.lowest = self._position(saved, "lowest.") if "lowest.w" in saved else None
        self._targets = list(saved["targets"])
        histories: list[list[Iteration]] = [[] for _ in range(len(saved["statuses"]) + 1)]
        for owner, *row in zip(saved["owners"], saved["lines"], saved["is_in"], saved["targets"], strict=True):
            histories[owner].append(self._line(*row))
        ends = zip(saved["objectives"].tolist(), saved["statuses"].tolist(), histories, strict=False)
        self.runs = [Run(objective, Status[name], lines) for objective, name, lines in ends]
        self.history = histories[-1]
        self._clock = time.perf_counter() - (self.history[-1].seconds if self.history else 0.0)
        return True

    def _position(self, saved: dict[str, Any], prefix: str) -> Position:
        parts = {name.removeprefix(prefix): value for name, value in saved.items() if name.startswith(prefix)}
        return self.descent.restored({name: value if value.ndim else value.item() for name, value in parts.items()})

    def _line(self, numbers: Array, is_in: Array, target: Array) -> Iteration:
        i, seconds, objective, gap, changed, _ = numbers.tolist()
        then = replace(
            self.position,
            target=target.astype(self.position.target.dtype),
            is_in=is_in,
            objective=objective,
            gap=gap,
            changed=int(changed),
            iteration=int(i),
        )
        return self.descent.line(then, seconds)


def _bare(position: Position) -> Position:
    """Without its planes, which only the next step needs."""
    return replace(position, planes=position.planes[:0])


def _advice(run: Run) -> str:
    n = len(run.history)
    last = f"objective {run.objective:.6g} after {n} iterations"
    return {
        Status.MAX_ITER: f"not converged: {last}; raise max_iter or tol",
        Status.STALLED: f"the last convex task did not reach its gap: {last}; raise max_inner or tol",
        Status.STOPPED: f"stopped by a callback: {last}",
        Status.INTERRUPTED: f"interrupted: {last}; the best model so far is kept",
    }[run.status]
