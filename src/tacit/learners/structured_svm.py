"""The structured SVM: all of the answer is known in training."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from tacit.arrays import Array
from tacit.labels import find_labels, read_labels
from tacit.learners.learner import Learner, read_weights
from tacit.oracle import CapabilityError, Oracle, Problem, Task, require
from tacit.scale import sharded
from tacit.solvers import Bundle, Solver, Status, Step, Warm, choose, minimise
from tacit.solvers.checkpoint import Checkpoint


class StructuredSVM(Learner):
    """Structured SVM (Tsochantaridis et al. 2005; 1-slack form: Joachims, Finley & Yu 2009).

    Minimises ``½‖w‖² + (C/n) Σ_i ξ_i``, ``ξ_i = max_a [Δ(y_i, a) + w·Ψ(x_i, a)] − w·Ψ(x_i, y_i)``, and certifies how
    far it is from the optimum: the optimum lies between `bound_` and `objective_`. With ``rescaling="slack"`` the loss
    weighs the margin instead of widening it, ``ξ_i = max_a Δ(y_i, a) · [1 + w·Ψ(x_i, a) − w·Ψ(x_i, y_i)]``.

    Parameters
    ----------
    problem : what is predicted, such as `tacit.problems.Multiclass()`
    C : weight of the mean loss against ½‖w‖²; a sample's weight is C/n
    solver : "auto" picks by the size of the task (`tacit.solvers.choose`), or a solver such as
        `tacit.solvers.FrankWolfe()`; None for `tacit.solvers.Bundle()`
    rescaling : "margin", or "slack" for problems whose outputs can be listed
    tol : relative gap to reach; see `tacit.solvers.minimise`
    max_iter : steps at the most
    class_weight : None, "balanced", or a factor for C by label
    warm_start : start from the present `coef_` (and its planes and dual point, if the samples are the same)
    checkpoint : a file in which the state of a long fit is kept
    resume : go on from that file if it exists
    n_jobs : threads over shards of the samples; None for one (BLAS may use its own)
    random_state : for solvers that draw samples
    verbose : 1 shows progress on a terminal when a fit takes longer than a second
    callbacks : functions called with every `tacit.solvers.Step`; one that returns True ends the fit. Ctrl-C ends it
        too, with a warning, and keeps the best model; in a search it ends the fit under way, not the search

    Attributes
    ----------
    coef_, weights_ : the weights, flat and by name
    hidden_ : the hidden value of every training sample, None for a problem without any
    objective_, bound_, gap_, status_, n_iter_, history_ : the certificate and how it was reached
    solver_ : the solver that was used
    dual_ : the dual variables α whose sum `coef_` is, ``Σ_i Σ_a α_i(a) (Ψ(x_i, y_i) − Ψ(x_i, a))``: a dict of arrays
        from `FrankWolfe` if its best point is one, else None. ``dual_["alpha"][state, label]`` where outputs can be
        listed (a state is a sample if nothing is hidden); ``dual_["vertices"][token, m]``, ``dual_["shares"][i, m]``
        in chains

    >>> from sklearn.datasets import load_digits
    >>> from tacit.problems import Multiclass
    >>> X, y = load_digits(return_X_y=True)
    >>> model = StructuredSVM(Multiclass(), C=100).fit(X / 16, y)
    >>> model.status_.name, bool(model.gap_ <= 1e-3 * model.objective_), round(model.objective_, 1)
    ('CONVERGED', True, 25.3)
    """

    def __init__(
        self,
        problem: Problem,
        C: float = 100.0,
        solver: Solver | str | None = "auto",
        rescaling: str = "margin",
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        resume: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 1,
        callbacks: Iterable[Callable[[Step], Any]] | None = None,
    ) -> None:
        self.problem = problem
        self.C = C
        self.solver = solver
        self.rescaling = rescaling
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.resume = resume
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None) -> StructuredSVM:
        """Learn from labelled samples.

        Parameters
        ----------
        X, y : samples and labels, in the form that the problem takes
        hidden : the hidden value of every sample, for problems that have one
        sample_weight : a weight of 2 is the sample twice, 0 leaves it out
        """
        self._check_parameters()
        X = self._read(X, reset=True)
        schema = self.problem.schema(X, y)
        oracle = self.problem.bind(X, y, schema, hidden=hidden)
        require(type(self).__name__, self.problem, oracle, ["impute", "decode", "hidden_unknown", "exact"])
        self._check_rescaling(oracle)
        if self.checkpoint is not None:
            require("a checkpoint", self.problem, oracle, ["digest"])
        solver = Bundle() if self.solver is None or isinstance(self.solver, str) else self.solver
        require(type(solver).__name__, self.problem, oracle, solver.needs)
        _require_hidden(self, oracle)
        if self.class_weight is not None and getattr(oracle, "code_offsets", None) is not None:
            raise ValueError("class_weight needs one label a sample; for sequences put the weights into a cost matrix")
        weights = self._sample_weights(y, schema.classes, oracle.n_samples, sample_weight)
        target = oracle.impute(np.zeros(oracle.n_params)).code
        old = self._warm(schema) if self.warm_start else Warm()
        with sharded(oracle, self.n_jobs) as shards:
            task = Task(shards, weights, target, rescaling=self.rescaling)
            if self.solver == "auto":
                solver = choose(task, self.tol)
            solution = minimise(
                task,
                solver,
                tol=self.tol,
                max_iter=self.max_iter,
                start=old.w,
                planes=old.planes,
                dual=old.dual,
                callbacks=self.callbacks or (),
                verbose=self.verbose,
                checkpoint=self._checkpoint(task, solver),
                rng=np.random.default_rng(check_random_state(self.random_state).randint(2**31)),
            )
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        self.coef_ = solution.w
        self.hidden_ = oracle.decode(target)[1]
        self.objective_, self.bound_ = solution.objective, solution.bound
        self.status_, self.history_ = solution.status, solution.history
        self.n_iter_ = max(solution.history[-1].iteration, 1)
        self.solver_, self.dual_ = solver, solution.variables
        if self.warm_start:
            self._warmth = Warm(solution.w, solution.planes, solution.dual)
        if solution.status is not Status.CONVERGED:
            warnings.warn(f"{type(self).__name__}: {solution.advice()}", ConvergenceWarning, stacklevel=2)
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.problem, Problem):
            raise TypeError(
                f"problem must be a problem such as tacit.problems.Multiclass(), got {self.problem!r}"
                + ("; call the class: add ()" if isinstance(self.problem, type) else "")
            )
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
                raise ValueError(
                    f"{name} must be a positive number, got {name}={value!r}; try {name}={1 if name == 'C' else 1e-3}"
                )
        if not isinstance(self.max_iter, Integral) or self.max_iter < 1:
            raise ValueError(f"max_iter must be a whole number from 1, got max_iter={self.max_iter!r}")
        if self.resume and self.checkpoint is None:
            raise ValueError("resume=True needs checkpoint=path: there is no file to resume from")
        if self.callbacks is not None and not (
            isinstance(self.callbacks, Iterable) and all(callable(callback) for callback in self.callbacks)
        ):
            raise TypeError(f"callbacks must be a list of functions, got {self.callbacks!r}; write [function]")
        if isinstance(self.solver, type) or (isinstance(self.solver, str) and self.solver != "auto"):
            raise TypeError(f"solver must be 'auto' or a solver such as tacit.solvers.Bundle(), got {self.solver!r}")
        if self.rescaling not in ("margin", "slack"):
            raise ValueError(f"rescaling must be 'margin' or 'slack', got {self.rescaling!r}")

    def _check_rescaling(self, oracle: Oracle) -> None:
        offered = getattr(oracle, "rescalings", ("margin",))
        if self.rescaling not in offered:
            raise CapabilityError(
                f"rescaling={self.rescaling!r} needs outputs that can be listed, and {type(self.problem).__name__} "
                f"offers only {' and '.join(map(repr, offered))}; use rescaling='margin'"
            )

    def _sample_weights(self, y: Any, classes: Array, n: int, sample_weight: Any) -> Array:
        """c_i = C · weight_i / Σ weights, times the factor of the class."""
        given = read_weights(sample_weight, n)
        total = float(given.sum())
        weights = self.C / total * given
        if self.class_weight is None:
            return np.asarray(weights)
        if not len(classes):
            raise ValueError(
                "class_weight needs labels that are single values, not arrays or tuples; use sample_weight"
            )
        place = find_labels(classes, read_labels(y, n))
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            counts = np.bincount(place, given, minlength=len(classes))
            factors = np.where(counts > 0, total / np.count_nonzero(counts) / np.where(counts > 0, counts, 1.0), 0.0)
        elif isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in classes.tolist()]
            if unknown:
                raise ValueError(f"class_weight names {unknown[0]!r}, which is none of the classes {classes.tolist()}")
            wrong = [v for v in self.class_weight.values() if not isinstance(v, Real) or not 0 <= float(v) < np.inf]
            if wrong:
                raise ValueError(f"class weights must be finite and not negative, got {wrong[0]!r}")
            factors = np.array([float(self.class_weight.get(label, 1.0)) for label in classes.tolist()])
        else:
            raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {self.class_weight!r}")
        weights = weights * factors[place]
        if not weights.any():
            raise ValueError(
                "sample weights and class weights leave nothing to learn from: their products are all zero"
            )
        return np.asarray(weights)

    def _warm(self, schema: Any) -> Warm:
        if not hasattr(self, "coef_"):
            return Warm()
        same = self.coef_.size == schema.n_params and np.array_equal(self.schema_.classes, schema.classes)
        return getattr(self, "_warmth", Warm(self.coef_))._replace(w=self.coef_) if same else Warm()

    def _checkpoint(self, task: Task, solver: Any) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        settings = {"C": repr(self.C), "problem": repr(self.problem), "solver": repr(solver)}
        return Checkpoint(self.checkpoint, task, self.resume, settings)


def _require_hidden(learner: Learner, oracle: Oracle) -> None:
    """A structured SVM needs the whole answer: say which hidden value is missing."""
    unknown = oracle.hidden_unknown()
    if unknown.size:
        raise ValueError(
            f"{type(learner).__name__} needs the hidden value of every sample, and {unknown.size} are unknown "
            f"(the first is sample {unknown[0]}); give them with fit(X, y, hidden=...), "
            "or use a learner for hidden values"
        )
