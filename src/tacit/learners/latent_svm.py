"""The latent SVM: part of the answer is never labelled."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from tacit.learners.cccp import Descent, Iteration, Position
from tacit.learners.learner import Learner
from tacit.learners.preparation import prepare
from tacit.oracle import Problem, require
from tacit.pacing import SelfPaced
from tacit.scale import sharded
from tacit.solvers import Bundle, Solver, Status, choose


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
    escape : leave a first optimum of w = 0, which drawn hidden values can lead to, by the way its model points
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
    >>> model = LatentSVM(Candidates(), C=100, random_state=0).fit(bags, ["x", "y", "x", "y"])
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
        random_state: Any = None,
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
        seed = int(check_random_state(self.random_state).randint(2**31))
        with sharded(oracle, self.n_jobs) as shards:
            descent = Descent(
                shards,
                weights,
                self._solver,
                self.tol,
                self.max_inner,
                self.rescaling,
                self.pace,
                self.escape,
                seed,
            )
            runs: list[Run] = []
            best: tuple[Run, Position] | None = None
            for start in range(self.n_init):
                begin = self._start(descent, oracle, y, np.random.default_rng((seed, start)))
                run, position = self._run(descent, begin)
                runs.append(run)
                if best is None or run.objective < best[0].objective:
                    best = run, position
                if run.status in (Status.INTERRUPTED, Status.STOPPED):
                    break
        assert best is not None
        run, position = best
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

    def _run(self, descent: Descent, position: Position) -> tuple[Run, Position]:
        """One start, to its end."""
        began = time.perf_counter()
        history: list[Iteration] = []
        status = Status.MAX_ITER
        try:
            while len(history) < self.max_iter:
                position = descent.step(position)
                line = Iteration(
                    position.iteration,
                    time.perf_counter() - began,
                    position.objective,
                    position.gap,
                    position.changed,
                    int(position.is_in.sum()),
                )
                history.append(line)
                answers = [callback(line) for callback in self.callbacks or ()]
                if any(answer is True for answer in answers):
                    status = Status.STOPPED
                    break
                if position.is_done:
                    status = Status.CONVERGED
                    break
        except KeyboardInterrupt:
            if not history:
                raise
            status = Status.INTERRUPTED
        return Run(position.objective, status, history), position

    def _start(self, descent: Descent, oracle: Any, y: Any, rng: np.random.Generator) -> Position:
        if not oracle.hidden_unknown().size:
            return descent.begin(oracle.impute(np.zeros(oracle.n_params)).code)
        if isinstance(self.init, str) and self.init == "weights":
            w = rng.standard_normal(oracle.n_params)
            return descent.begin(oracle.impute(w).code)
        if isinstance(self.init, str):
            require(f"{type(self).__name__}(init='hidden')", self.problem, oracle, ["draw"], "use init='weights'")
            return descent.begin(oracle.draw(rng))
        prefer = oracle.encode(y, self.init)
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


def _advice(run: Run) -> str:
    n = len(run.history)
    last = f"objective {run.objective:.6g} after {n} iterations"
    return {
        Status.MAX_ITER: f"not converged: {last}; raise max_iter or tol",
        Status.STOPPED: f"stopped by a callback: {last}",
        Status.INTERRUPTED: f"interrupted: {last}; the best model so far is kept",
    }[run.status]
