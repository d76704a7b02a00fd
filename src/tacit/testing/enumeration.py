"""Brute force: all outputs of a tiny example, written out, and its optimum between two certified numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from tacit.data.arrays import Array
from tacit.data.ragged import Ragged
from tacit.oracle import Example, Problem, Task
from tacit.penalties import Quadratic

MAX_STEPS = 200
"""Interior-point steps before the reference gives up; tasks of a few dozen outputs take ten to sixty."""
MAX_SHARE_TO_BOUNDARY = 0.95
"""The share of the way to the nearest α = 0 or z = 0 that a step may go."""
NEXT_PRODUCT = 0.1
"""The factor by which a step aims to change the mean product α z, which is zero at the optimum."""


class Enumeration:
    """All outputs of all samples of an example, their features and losses: what every oracle must agree with.

    >>> from tacit.problems import Multiclass
    >>> table = Enumeration(Multiclass().example(np.random.default_rng(0)))
    >>> len(table.outputs[0]) == len(table.features[0]) == 3
    True
    """

    def __init__(self, example: Example) -> None:
        self.example = example
        self.n = len(example.y)
        xs = [example.X[i] for i in range(self.n)]
        self.outputs = [example.outputs(x) for x in xs]
        samples = list(zip(xs, example.y, self.outputs, strict=True))
        self.features = [np.array([example.joint_feature(x, *one) for one in outputs]) for x, _, outputs in samples]
        self.losses = [np.array([example.loss(true, *one) for one in outputs]) for _, true, outputs in samples]
        self.is_true = [np.array([same(label, true) for label, _ in outputs]) for _, true, outputs in samples]

    def target(self, i: int) -> int:
        """The number of the true output among those of sample i."""
        hidden = None if self.example.hidden is None else self.example.hidden[i]
        true = self.example.y[i]
        matches = [same(label, true) and same(h, hidden) for label, h in self.outputs[i]]
        return matches.index(True)

    def optimum(self, weights: Array, precision: float = 1e-9, lower: Array | None = None) -> Optimum:
        """The optimum of ½‖w‖² + Σ c_i ξ_i with every constraint written out, between two certified numbers.

        ``bound`` ≤ optimum ≤ ``objective``, the value at ``w``; see `bracket_optimum`. Neither oracles nor solvers of
        tacit take part. Raises an ArithmeticError if the gap is larger than ``precision`` times the objective.

        >>> from tacit.problems import Multiclass
        >>> table = Enumeration(Multiclass().example(np.random.default_rng(0)))
        >>> optimum = table.optimum(np.full(table.n, 0.5))
        >>> optimum.bound <= optimum.objective <= (1 + 1e-9) * optimum.bound
        True
        """
        differences = [psi[self.target(i)] - psi for i, psi in enumerate(self.features)]
        return bracket_optimum(differences, self.losses, weights, precision, lower)


def example_task(problem: Problem, seed: int = 0, C: float = 3.0, rescaling: str = "margin") -> Task:
    """A small task of the problem, its hidden values known.

    >>> from tacit.problems import Candidates
    >>> round(float(example_task(Candidates(), C=3.0).weights.sum()), 12)
    3.0
    """
    example = problem.example(np.random.default_rng(seed))
    schema = problem.schema(example.X, example.y)
    known = problem.bind(example.X, example.y, schema, hidden=example.hidden)
    target = known.impute(np.zeros(known.n_params)).code
    free = problem.bind(example.X, example.y, schema)
    oracle = free if free.accepts(target) else known  # where a loss counts known hidden values
    n = oracle.n_samples
    penalty = Quadratic().in_blocks(schema, problem.lower_bounds(schema))
    return Task(oracle, np.full(n, C / n), target, penalty, rescaling)


def assert_that(holds: Any, message: str) -> None:
    """Raise an AssertionError with this message unless the condition holds."""
    if not holds:
        raise AssertionError(message)


def same(a: Any, b: Any) -> bool:
    """Whether two labels or hidden values, or two Ragged of them, are the same, None and arrays included."""
    if isinstance(a, Ragged) and isinstance(b, Ragged):
        return same(a.values, b.values) and same(a.offsets, b.offsets)
    return bool(np.array_equal(a, b)) if a is not None and b is not None else a is b


class Optimum(NamedTuple):
    """Two certified numbers: ``bound`` ≤ min F ≤ ``objective``, the second the value of F at ``w``."""

    bound: float
    objective: float
    w: Array

    @property
    def gap(self) -> float:
        return self.objective - self.bound


def bracket_optimum(
    differences: list[Array], losses: list[Array], weights: Array, precision: float, lower: Array | None = None
) -> Optimum:
    """The optimum of F(w) = ½‖w‖² + Σ_i c_i max_a [ℓ_i(a) − w·δ_i(a)], every output a written out.

    The dual, max_α Σ ℓ α − ½‖Σ α δ‖² over α_i ≥ 0 with Σ_a α_i(a) = c_i, is solved by a primal-dual interior-point
    method. The proof does not depend on how well it works: any w gives an upper bound, F(w), and any feasible α a lower
    one. Both are computed at every step from w and α only. Raises an ArithmeticError if they do not meet.

    Parameters
    ----------
    differences : for each sample (outputs, d), the δ_i(a) = Ψ(x_i, t_i) − Ψ(x_i, a)
    losses : for each sample (outputs,), the ℓ_i(a)
    weights : (n,) the c_i, not negative; zero leaves a sample out
    precision : the largest gap, as a share of the objective
    lower : (d,) lower bounds on w, −inf for none; each finite one has a dual variable β ≥ 0, and w = Σ α δ + β

    >>> found = bracket_optimum([np.array([[0.0], [2.0]])], [np.array([0.0, 1.0])], np.array([5.0]), precision=1e-9)
    >>> round(found.bound, 6), round(found.objective, 6), found.w.round(4).tolist()
    (0.125, 0.125, [0.5])
    """
    used = np.flatnonzero(weights)
    c, sizes = weights[used], np.array([len(losses[i]) for i in used])
    rows = np.concatenate([differences[i] for i in used])
    loss = np.concatenate([losses[i] for i in used])
    begins = np.cumsum(sizes) - sizes
    n_outputs, least = len(rows), np.full(rows.shape[1], -np.inf) if lower is None else np.asarray(lower)
    bounded = np.flatnonzero(np.isfinite(least))
    own_rows, own_loss = rows, loss
    rows = np.vstack([rows, np.eye(rows.shape[1])[bounded]])
    loss = np.append(loss, least[bounded])

    def certify(alpha: Array) -> Optimum:
        alpha = np.maximum(alpha[:n_outputs], 0)
        alpha *= np.repeat(c / np.add.reduceat(alpha, begins), sizes)
        free = alpha @ own_rows
        w = np.maximum(free, least)
        raised = float((w - free)[bounded] @ least[bounded])
        slack = np.maximum.reduceat(own_loss - own_rows @ w, begins)
        return Optimum(float(alpha @ own_loss + raised - 0.5 * w @ w), float(0.5 * w @ w + c @ slack), w)

    hessian = rows @ rows.T
    totals = block_diag(*(np.ones((1, size)) for size in sizes))  # totals @ α are the Σ_a α_i(a)
    totals = np.hstack([totals, np.zeros((c.size, bounded.size))])
    alpha = np.append(np.repeat(c / sizes, sizes), np.ones(bounded.size))
    slope = hessian @ alpha - loss
    multiplier = np.minimum.reduceat(slope[:n_outputs], begins) - max(1.0, float(np.ptp(slope)))
    z = np.append((slope - multiplier @ totals)[:n_outputs], np.ones(bounded.size))
    best = certify(alpha)
    for _ in range(MAX_STEPS):
        if abs(best.gap) <= precision * abs(best.objective):  # below zero, it is the size of the rounding
            return best
        # Newton's equations: hessian dα − totalsᵀ dλ − dz = residual, totals dα = c − totals α, z dα + α dz = aim − α z
        aim = NEXT_PRODUCT * (alpha @ z) / alpha.size
        residual = loss + multiplier @ totals + z - hessian @ alpha
        matrix = np.block([[hessian + np.diag(z / alpha), -totals.T], [totals, np.zeros((c.size, c.size))]])
        try:
            step = np.linalg.solve(matrix, np.concatenate([residual + aim / alpha - z, c - totals @ alpha]))
        except np.linalg.LinAlgError:  # the limit of rounding
            break
        d_alpha, d_multiplier = np.split(step, [alpha.size])
        d_z = aim / alpha - z - z / alpha * d_alpha
        nearest = max(np.max(-d_alpha / alpha), np.max(-d_z / z))
        length = 1 / max(1.0, float(nearest) / MAX_SHARE_TO_BOUNDARY)
        alpha, multiplier, z = alpha + length * d_alpha, multiplier + length * d_multiplier, z + length * d_z
        best = min(best, certify(alpha), key=lambda found: abs(found.gap))
    raise ArithmeticError(
        f"the optimum is between {best.bound} and {best.objective}: the gap {best.gap:.2g} is more than {precision:g} "
        "of it; scale the features to size 1, or raise precision"
    )
