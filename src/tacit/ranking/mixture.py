"""The objective of a mixture of rankers, its gradient, and its descent: weights of classes and gate in turn.

    R(q, a) = Σ_g P(g|q) z_g·k_{q,a},   P(g|q) = softmax_g(w_g·x_q),
    ½‖Z‖² + (λ/2)‖W‖² + (C/T) Σ max(0, 1 − R(q, a) + R(q, b)).

With the gate W fixed the rest is convex in Z, and is minimised with a certificate. W then follows the whole gradient:
with ``ε_{q,g} = Σ_{active} z_g·(k_{q,b} − k_{q,a})`` it is ``Σ_q P_g (ε_{q,g} − Σ_g' P_g' ε_{q,g'}) x_q``, the diagonal
of the softmax's derivative and the rest. No step raises the objective.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize as minimise_smoothly

from tacit.data.arrays import Array
from tacit.ranking.oracle import Training, ranking_task
from tacit.runtime import Status
from tacit.runtime.archive import record
from tacit.runtime.checkpoint import stored, stored_codes, stored_number
from tacit.solvers import Bundle, minimise

GATE_STEPS = 15
"""Steps of L-BFGS that the gate takes before the weights of the classes follow."""

MAX_PLANES = 40
"""Planes that the next convex solve starts from, at the most."""


@record
class MixtureStep(NamedTuple):
    """One line of the history: the objective after a step, and the share of queries that changed class."""

    start: int
    iteration: int
    seconds: float
    objective: float
    moved: float


@dataclass(frozen=True)
class Mixture:
    """The objective on some training data.

    Parameters
    ----------
    training : judged rows and triplets
    inputs : (queries, p + 1) standardised query features, the last column ones
    C, gate_penalty : weight of the mean loss, and λ
    """

    training: Training
    inputs: Array
    C: float
    gate_penalty: float

    @property
    def weight(self) -> float:
        """Of one triplet."""
        return self.C / self.training.size

    def value(self, Z: Array, W: Array) -> float:
        """The objective."""
        losses, _ = self.training.oracle().query_slopes(softmax(self.inputs @ W.T) @ Z)
        return self._penalty(Z, W) + self.weight * losses

    def gradient(self, Z: Array, W: Array) -> tuple[Array, Array]:
        """The slopes of the objective in Z and in W."""
        shares = softmax(self.inputs @ W.T)
        _, slopes = self.training.oracle().query_slopes(shares @ Z)
        along_gate = slopes @ Z.T
        return Z + self.weight * shares.T @ slopes, self._gate_slope(W, shares, along_gate)

    def fit_classes(self, W: Array, Z: Array | None, planes: Array | None, tol: float) -> tuple[Array, Array, float]:
        """The best weights of classes under a gate, planes for the next time, and the objective."""
        shares = softmax(self.inputs @ W.T)
        task = ranking_task(self.training.oracle(shares), self.C, self.training.size)
        start = None if Z is None else Z.ravel()
        solution = minimise(task, Bundle(), tol=tol, start=start, planes=planes)
        found = solution.w.reshape(shares.shape[1], -1)
        kept = solution.planes[-MAX_PLANES:]
        return found, kept, solution.objective + 0.5 * self.gate_penalty * float((W * W).sum())

    def improve_gate(self, Z: Array, W: Array) -> Array:
        """A gate that is no worse, by a few steps of L-BFGS on the whole gradient."""
        by_class = self.training.oracle().with_table(np.ascontiguousarray(self.training.features @ Z.T))
        constant = 0.5 * float((Z * Z).sum())

        def value_and_slope(flat: Array) -> tuple[float, Array]:
            gate = flat.reshape(W.shape)
            shares = softmax(self.inputs @ gate.T)
            losses, along_gate = by_class.query_slopes(shares)
            penalty = constant + 0.5 * self.gate_penalty * float(flat @ flat)
            return penalty + self.weight * losses, self._gate_slope(gate, shares, along_gate).ravel()

        before = value_and_slope(W.ravel())[0]
        found = minimise_smoothly(
            value_and_slope, W.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": GATE_STEPS}
        )
        return np.asarray(found.x.reshape(W.shape)) if found.fun < before else W

    def _gate_slope(self, W: Array, shares: Array, along_gate: Array) -> Array:
        centred = along_gate - (shares * along_gate).sum(axis=1, keepdims=True)
        return np.asarray(self.gate_penalty * W + self.weight * (shares * centred).T @ self.inputs)

    def _penalty(self, Z: Array, W: Array) -> float:
        return 0.5 * float((Z * Z).sum()) + 0.5 * self.gate_penalty * float((W * W).sum())


@dataclass(frozen=True)
class Position:
    """Where a descent is: at which start, with which weights, and the best it has seen at any start."""

    start: int
    iteration: int
    W: Array
    Z: Array
    planes: Array
    objective: float
    is_done: bool
    best: tuple[Array, Array, float]
    history: tuple[MixtureStep, ...]


class Descent:
    """Descents from several starts, one after the other, as a `tacit.runtime.Process`.

    Parameters
    ----------
    mixture : the objective
    starts : gates to start from
    tol, max_iter : a start ends when a step lowers the objective by less than this share of it, or after so many
    """

    def __init__(self, mixture: Mixture, starts: list[Array], tol: float, max_iter: int) -> None:
        self.mixture, self.starts = mixture, starts
        self.tol, self.max_iter = tol, max_iter
        self._began = time.perf_counter()

    def begin(self, saved: Mapping[str, Any] | None = None) -> Position:
        """The first position, or the one that a checkpoint holds."""
        return self._enter(0, None, ()) if saved is None else self._restore(saved)

    def step(self, now: Position) -> Position:
        if now.is_done:
            return self._enter(now.start + 1, now.best, now.history)
        W = self.mixture.improve_gate(now.Z, now.W)
        if W is now.W:
            return replace(now, is_done=True)
        Z, planes, objective = self.mixture.fit_classes(W, now.Z, now.planes, self.tol)
        if not objective < now.objective:
            return replace(now, is_done=True)
        moved = float((self._classes(W) != self._classes(now.W)).mean())
        gained = now.objective - objective
        later = now.iteration + 1
        done = gained <= self.tol * objective or later >= self.max_iter
        return self._at(now.start, later, W, Z, planes, objective, done, now.best, now.history, moved)

    def report(self, now: Position) -> MixtureStep:
        return now.history[-1]

    def describe(self, now: Position) -> tuple[int, str]:
        return len(now.history), f"start {now.start + 1} of {len(self.starts)}, objective {now.objective:.5g}"

    def verdict(self, now: Position) -> Status | None:
        if not now.is_done or now.start + 1 < len(self.starts):
            return None
        winner = min(now.history, key=lambda line: line.objective).start
        last = max(line.iteration for line in now.history if line.start == winner)
        return Status.MAX_ITER if last >= self.max_iter else Status.CONVERGED

    def snapshot(self, now: Position) -> dict[str, Any]:
        best_Z, best_W, best = now.best
        return {
            "start": now.start, "iteration": now.iteration, "W": now.W, "Z": now.Z, "planes": now.planes,
            "objective": now.objective, "is_done": now.is_done, "best_Z": best_Z, "best_W": best_W, "best": best,
            "history": np.array(now.history, dtype=np.float64).reshape(-1, len(MixtureStep._fields)),
        }  # fmt: skip

    def _enter(self, start: int, best: Any, history: tuple[MixtureStep, ...]) -> Position:
        W = self.starts[start]
        Z, planes, objective = self.mixture.fit_classes(W, None, None, self.tol)
        done = len(W) == 1  # the gate of one class does nothing
        return self._at(start, 0, W, Z, planes, objective, done, best, history, 1.0)

    def _at(
        self,
        start: int,
        iteration: int,
        W: Array,
        Z: Array,
        planes: Array,
        objective: float,
        done: bool,
        best: Any,
        history: tuple[MixtureStep, ...],
        moved: float,
    ) -> Position:
        line = MixtureStep(start, iteration, time.perf_counter() - self._began, objective, moved)
        best = best if best is not None and best[2] <= objective else (Z, W, objective)
        return Position(start, iteration, W, Z, planes, objective, done, best, (*history, line))

    def _classes(self, W: Array) -> Array:
        return np.asarray((self.mixture.inputs @ W.T).argmax(axis=1))

    def _restore(self, saved: Mapping[str, Any]) -> Position:
        gate = self.starts[0].shape
        weights = (gate[0], self.mixture.training.features.shape[1])
        oracle = self.mixture.training.oracle()
        planes = np.array(stored_codes(saved, "planes", oracle.accepts), dtype=oracle.code_type)
        start = int(stored_number(saved, "start", 0))
        if start >= len(self.starts):
            raise ValueError(f"start {start} is none of {len(self.starts)}")
        history = tuple(MixtureStep(int(s), int(i), float(t), float(f), float(m)) for s, i, t, f, m in saved["history"])
        return Position(
            start,
            int(stored_number(saved, "iteration", 0)),
            stored(saved, "W", gate),
            stored(saved, "Z", weights),
            planes.reshape(-1, int(oracle.code_offsets[-1])),
            stored_number(saved, "objective", 0),
            bool(stored_number(saved, "is_done")),
            (stored(saved, "best_Z", weights), stored(saved, "best_W", gate), stored_number(saved, "best", 0)),
            history,
        )


def softmax(scores: Array) -> Array:
    """Rows as probabilities.

    >>> softmax(np.array([[0.0, 0.0], [1000.0, 0.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def start_gates(mixture: Mixture, n_classes: int, n_init: int, rng: np.random.RandomState) -> list[Array]:
    """Gates to start from: k-means on the features of queries, and on what their triplets prefer, in turn.

    Equal classes are a saddle of the objective, so a start must tell classes apart. Features of queries show classes
    that lie in heaps; preferences, sums of ``k_{q,a} − k_{q,b}`` over the triplets of a query, show those that do not.
    """
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LogisticRegression

    inputs = mixture.inputs
    if n_classes == 1:
        return [np.zeros((1, inputs.shape[1]))]
    _, slopes = mixture.training.oracle().query_slopes(np.zeros((len(inputs), mixture.training.features.shape[1])))
    preferences = -slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300)
    gates = []
    for start in range(n_init):
        table = inputs[:, :-1] if start % 2 == 0 else preferences
        means = KMeans(n_classes, n_init=3, random_state=rng.randint(2**31)).fit(table)
        labels = means.labels_
        gate = np.zeros((n_classes, inputs.shape[1]))
        present = np.unique(labels)
        if present.size > 1:
            model = LogisticRegression(C=1.0, max_iter=200).fit(inputs[:, :-1], labels)
            coef, intercept = model.coef_, model.intercept_
            if present.size == 2:  # one row stands for both
                coef, intercept = np.vstack([-coef / 2, coef / 2]), np.concatenate([-intercept / 2, intercept / 2])
            gate[present, :-1], gate[present, -1] = coef, intercept
        gate += 1e-3 * rng.standard_normal(gate.shape)  # classes that k-means left empty are not the same
        gates.append(gate)
    return gates
