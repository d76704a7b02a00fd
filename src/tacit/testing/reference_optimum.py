"""The optimum of a tiny task, between two certified numbers, computed without tacit's oracles and solvers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from tacit.data.arrays import Array

MAX_STEPS = 200
"""Interior-point steps before the reference gives up; tasks of a few dozen outputs take ten to sixty."""
MAX_SHARE_TO_BOUNDARY = 0.95
"""How much of the way to the nearest α = 0 or z = 0 a step may go."""
NEXT_PRODUCT = 0.1
"""What a step aims to multiply the mean product α z by; at the optimum all are zero."""


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
    method. How well it works does not matter for the proof: any w gives an upper bound, F(w), any feasible α a lower
    one, and both are computed anew at every step from w and α alone. An ArithmeticError says if they do not meet.

    Parameters
    ----------
    differences : for each sample (outputs, d), the δ_i(a) = Ψ(x_i, t_i) − Ψ(x_i, a)
    losses : for each sample (outputs,), the ℓ_i(a)
    weights : (n,) the c_i, not negative; zero leaves a sample out
    precision : the largest gap, as a share of the objective
    lower : (d,) the least values of w, −inf for none; each finite one has a dual variable β ≥ 0 of its own, and
        w = Σ α δ + β

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
        except np.linalg.LinAlgError:  # as near to the optimum as numbers go
            break
        d_alpha, d_multiplier = np.split(step, [alpha.size])
        d_z = aim / alpha - z - z / alpha * d_alpha
        nearest = max(np.max(-d_alpha / alpha), np.max(-d_z / z))
        length = 1 / max(1.0, float(nearest) / MAX_SHARE_TO_BOUNDARY)
        alpha, multiplier, z = alpha + length * d_alpha, multiplier + length * d_multiplier, z + length * d_z
        best = min(best, certify(alpha), key=lambda found: abs(found.gap))
    raise ArithmeticError(
        f"the optimum is only known to lie between {best.bound} and {best.objective}: a gap of {best.gap:.2g}, more "
        f"than {precision:g} of it; bring the features to size 1, or ask for less precision"
    )
