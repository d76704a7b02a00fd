"""The structured SVM: for outputs that are completely known in training."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tacit.data.parameters import random_numbers
from tacit.data.specs import choice, estimator, parameter, positive, switch, whole
from tacit.learners.learner import Learner, Traits
from tacit.learners.preparation import LEARNED, MARGIN_LEARNED, check_margin, given_solver, prepare, require_hidden
from tacit.oracle import Task
from tacit.penalties import Penalty
from tacit.runtime import parallel
from tacit.runtime.checkpoint import Checkpoint
from tacit.solvers import Solver, Status, WarmStart, choose, minimise
from tacit.solvers.loop import fingerprint_task


@estimator
class StructuredSVM(Learner):
    """Structured SVM (Tsochantaridis et al. 2005; 1-slack form: Joachims, Finley & Yu 2009).

    Minimises ``½‖w‖² + (C/n) Σ_i ξ_i`` with ``ξ_i = max_a [Δ(y_i, a) + w·Ψ(x_i, a)] − w·Ψ(x_i, y_i)``, and certifies
    how far it is from the optimum, which lies between `bound_` and `objective_`. With ``rescaling="slack"`` the loss
    scales the violation instead of the margin: ``ξ_i = max_a Δ(y_i, a) · [1 + w·Ψ(x_i, a) − w·Ψ(x_i, y_i)]``.

    Parameters
    ----------
    problem : what is predicted, such as `tacit.problems.Multiclass()`
    C : coefficient of the mean loss against ½‖w‖²
    solver : "auto" picks by the size of the task (`tacit.solvers.choose`); "bundle", "frank-wolfe" or "subgradient"; or
        a solver with its own settings such as `tacit.solvers.FrankWolfe(sweeps=5)`; None for "bundle"
    rescaling : "margin" or "slack"; with a cost matrix as loss of classes, "slack" usually ends at lower costs. Where
        outputs cannot be listed (tags, links, regions), ``objective_`` is then an upper bound: see `inference_gap_`
    penalty : Ω; None for ½‖w‖², or a `tacit.penalties.Penalty` such as ``Quadratic(metric)``
    tol : relative gap to reach; see `tacit.solvers.minimise`
    max_iter : maximum number of steps
    class_weight : None, "balanced", or a factor for C by label
    warm_start : start from the present `coef_` (and its planes and dual point, if the samples are the same)
    checkpoint : a file in which the run state of a long fit is kept
    resume : go on from that file if it exists
    n_jobs : threads that share the samples; None for as many as BLAS would use. The result has the same bits
    random_state : seed of solvers that draw samples: the same seed gives the same result. None for another each time
    verbose : 1 shows progress on a terminal or in a notebook when a fit takes longer than a second, 2 writes a
        plain line every five seconds, 0 shows nothing
    callbacks : functions called with every `tacit.solvers.Step`; one that returns True ends the fit. Ctrl-C ends it
        too, with a warning, and keeps the best model; twice raises. In a search of scikit-learn a fit that Ctrl-C ended
        is not scored (NaN), and Ctrl-C twice ends the search

    Attributes
    ----------
    coef_, weights_ : the weights, flat and by name
    hidden_ : the hidden value of every training sample, None for a problem without any
    objective_, bound_, gap_, status_, n_iter_, history_ : the certificate and how it was reached
    inference_gap_ : the part of `gap_` that inference leaves open, since slack rescaling of outputs that cannot be
        listed finds bounds of the slacks; 0 where inference is exact, infinite where it is approximate
    solver_ : the solver that was used
    dual_ : the dual variables α, with ``coef_ = Σ_i Σ_a α_i(a) (Ψ(x_i, y_i) − Ψ(x_i, a))``: a dict of arrays if
        `FrankWolfe` was the solver and its best point has them, else None. ``dual_["alpha"][state, label]`` where
        outputs can be listed (a state is a sample if nothing is hidden); ``dual_["vertices"][token, m]`` and
        ``dual_["shares"][i, m]`` in chains

    >>> from sklearn.datasets import load_digits
    >>> from tacit.problems import Multiclass
    >>> X, y = load_digits(return_X_y=True)
    >>> model = StructuredSVM(Multiclass(), C=100).fit(X / 16, y)
    >>> model.status_.name, bool(model.gap_ <= 1e-3 * model.objective_), round(model.objective_, 1)
    ('CONVERGED', True, 25.3)
    """

    traits = Traits(has_objective=True, is_convex=True, is_certified=True, needs_hidden=True)
    learned = {**MARGIN_LEARNED, "inference_gap_": LEARNED["inference_gap_"]}

    C: float = parameter(positive, default=100.0)
    solver: Solver | str | None = "auto"
    rescaling: str = parameter(choice("margin", "slack"), default="margin")
    penalty: Penalty | None = None
    tol: float = parameter(positive, default=1e-3)
    max_iter: int = parameter(whole(), default=1000)
    class_weight: Any = None
    warm_start: bool = parameter(switch, default=False)

    def fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> StructuredSVM:
        """Learn from labelled samples.

        Parameters
        ----------
        X, y : samples and labels, in the form that the problem takes
        hidden : the hidden value of every sample, for problems that have one
        sample_weight : a weight of 2 is the sample twice, 0 leaves it out
        """
        schema, oracle, weights, penalty = prepare(self, X, y, hidden, sample_weight)
        require_hidden(self, oracle)
        target = oracle.impute(np.zeros(oracle.n_params)).code
        previous = self._previous_solution(schema)
        seed = int(random_numbers(self.random_state).randint(2**31))
        with parallel(oracle, self.n_jobs) as shards:
            task = Task(shards, weights, target, penalty, self.rescaling)
            solver = given_solver(self) or choose(task, float(self.tol))
            solution = minimise(
                task,
                solver,
                tol=float(self.tol),
                max_iter=int(self.max_iter),
                start=previous.w,
                planes=previous.planes,
                dual=previous.dual,
                callbacks=self.callbacks or (),
                verbose=self.verbose,
                checkpoint=self._checkpoint(task, solver, seed),
                rng=np.random.default_rng(seed),
            )
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        self.coef_ = solution.w
        self.hidden_ = oracle.decode(target)[1]
        self.objective_, self.bound_ = solution.objective, solution.bound
        self.inference_gap_ = solution.inference_gap
        self.status_, self.history_ = solution.status, solution.history
        self.n_iter_ = max(solution.history[-1].iteration, 1)
        self.solver_, self.dual_ = solver, solution.variables
        if self.warm_start:
            self._warmth = WarmStart(solution.w, solution.planes, solution.dual)
        if solution.status is not Status.CONVERGED:
            warnings.warn(f"{type(self).__name__}: {solution.advice()}", ConvergenceWarning, stacklevel=2)
        return self

    def _check_parameters(self) -> None:
        check_margin(self)

    def _previous_solution(self, schema: Any) -> WarmStart:
        w = self._previous_weights(schema)
        return WarmStart() if w is None else getattr(self, "_warmth", WarmStart())._replace(w=w)

    def _checkpoint(self, task: Task, solver: Any, seed: int) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        settings = {"C": repr(self.C), "problem": repr(self.problem), "solver": repr(solver)}
        settings["seed"] = str(seed) if self.random_state is not None else "any"
        return Checkpoint(self.checkpoint, {**fingerprint_task(task), **settings}, self.resume)
