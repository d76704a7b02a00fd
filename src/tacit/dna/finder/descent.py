"""Learn the weights of a model of sites from where they are: logistic loss and L-BFGS, or a latent SVM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.dna.motif.sites import MotifSites
from tacit.learners import LatentSVM
from tacit.oracle.capabilities import ScoresLabels
from tacit.oracle.contracts import require
from tacit.runtime import Status, parallel
from tacit.runtime.loop import Deadline

MEMORY = 20
"""Steps that L-BFGS remembers."""


class Descended(NamedTuple):
    """Where a descent ended: weights, objective ½‖w‖² + C · mean loss, its history, and why it ended."""

    w: Array
    objective: float
    history: list[float]
    status: Status


class _Stop(Exception):
    """Ends a descent from inside of a step."""


def descend(
    oracle: Any,
    is_positive: Array,
    w: Array,
    C: float,
    *,
    max_iter: int = 80,
    deadline: Deadline | None = None,
    n_jobs: int | None = None,
    tell: Callable[[int, float], None] | None = None,
) -> Descended:
    """Minimise ``½‖w‖² + C · mean of log(1 + exp(∓F(x_i)))``, ``F(x) = max_h w·Ψ(x, positive, h)``, from ``w``.

    Both classes have half of the weight. F is a maximum, so the objective has kinks, where sites change; L-BFGS passes
    them. ``tell`` is called with every step and its objective. After Ctrl-C and when the deadline has passed, the best
    weights so far are returned. One pass per evaluation.

    >>> from tacit.datasets import planted_motif
    >>> from tacit.problems import MotifSites
    >>> X, y, _ = planted_motif(200, 30, "TGACTCA", seed=0)
    >>> problem = MotifSites(7)
    >>> oracle = problem.bind(X, y, problem.schema(X, y))
    >>> w = np.zeros(oracle.n_params)
    >>> w[np.arange(7) * 4 + ["ACGT".index(c) for c in "TGACTCA"]] = 0.5
    >>> descend(oracle, y == 1, w, C=100.0).objective < 50
    True
    """
    n = is_positive.size
    sign = np.where(is_positive, 1.0, -1.0)
    share = np.where(is_positive, 0.5 / max(is_positive.sum(), 1), 0.5 / max(n - is_positive.sum(), 1))
    ones = np.ones(n, np.int64)
    best: list[Any] = [w, np.inf]
    history: list[float] = []
    status = Status.CONVERGED

    with parallel(oracle, n_jobs) as shared:
        scored = require("MotifFinder", "Motif", shared, ScoresLabels)

        def evaluate(w: Array) -> tuple[float, Array]:
            answer = scored.best_under(w, ones)
            margin = sign * answer.value
            objective = 0.5 * float(w @ w) + C * float(share @ np.logaddexp(0.0, -margin))
            slope = shared.features(answer.code, -C * share * sign * expit(-margin))
            if objective < best[1]:
                best[:] = [w.copy(), objective]
            if deadline is not None and deadline.has_passed():
                raise _Stop
            return objective, w + slope

        def note(w: Array) -> None:
            history.append(best[1])
            if tell is not None:
                tell(len(history), best[1])

        try:
            options = {"maxiter": max_iter, "maxcor": MEMORY}
            found = minimize(evaluate, w, jac=True, method="L-BFGS-B", callback=note, options=options)
            if found.nit >= max_iter:
                status = Status.MAX_ITER
        except _Stop:
            status = Status.STOPPED
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
    return Descended(best[0], best[1], history, status)


def polish(
    problem: MotifSites, sequences: Ragged, is_positive: Array, found: Descended, C: float, n_jobs: int | None
) -> Descended:
    """The same motifs by a latent SVM that begins at their sites."""
    y = np.where(is_positive, 1, -1)
    oracle = problem.bind(sequences, y, problem.schema(sequences, y))
    hidden = oracle.decode(oracle.impute(found.w).code)[1]
    learner = LatentSVM(problem, C=C, init=hidden, tol=1e-2, n_jobs=n_jobs, verbose=0)
    learner.fit(sequences, y)
    objectives = [line.objective for line in learner.history_]
    return Descended(learner.coef_, learner.objective_, objectives, learner.status_)
