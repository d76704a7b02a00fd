"""The objective of a mixture of rankers, its gradient, and its descent: weights of classes and gate in turn.

The ranker and its objective are::

    R(q, a) = Σ_g P(g|q) z_g·k_{q,a},   P(g|q) = softmax_g(w_g·x_q).

    ½‖Z‖² + (λ/2)‖W‖² + (C/T) Σ max(0, 1 − R(q, a) + R(q, b)).

With the gate W fixed the objective is convex in Z, and is minimised with a certificate. W then follows the gradient:
with ``ε_{q,g} = Σ_{active} z_g·(k_{q,b} − k_{q,a})`` it is ``Σ_q P_g (ε_{q,g} − Σ_g' P_g' ε_{q,g'}) x_q``, the diagonal
of the softmax's derivative and its other entries. No step raises the objective.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize as minimise_smoothly

from tacit.data.arrays import Array
from tacit.data.parameters import shorten
from tacit.learners.descents.multistart import DescentState, Mask, Method, Numbers, Planes, Sizes
from tacit.learners.descents.pacing import SelfPaced
from tacit.ranking.oracle import Training, ranking_task
from tacit.runtime.archive import record
from tacit.solvers import Bundle, minimise

GATE_STEPS = 15
"""Steps of L-BFGS that the gate takes before the weights of the classes follow."""

MAX_PLANES = 40
"""Planes that the next convex solve starts from, at most."""


@record
class MixtureStep(NamedTuple):
    """One line of the history: the objective after a step, and the share of queries that changed class (``moved``).

    ``samples_in`` is the number of queries that the step learned from: all, unless a pace leaves some out.
    """

    start: int
    iteration: int
    seconds: float
    objective: float
    moved: float
    samples_in: int


@dataclass(frozen=True)
class Mixture:
    """The objective on some training data.

    Parameters
    ----------
    training : judged rows and triplets
    inputs : (queries, p + 1) standardised query features, the last column ones
    C, gate_penalty : factor of the mean loss, and λ
    """

    training: Training
    inputs: Array
    C: float
    gate_penalty: float

    @property
    def weight(self) -> float:
        """The factor of one triplet."""
        return self.C / self.training.weight

    def value(self, Z: Array, W: Array) -> float:
        """The objective."""
        losses, _ = self.training.oracle().query_slopes(softmax(self.inputs @ W.T) @ Z)
        return self._penalty(Z, W) + self.weight * losses

    def query_terms(self, Z: Array, W: Array) -> Array:
        """(queries,) the mean hinge of the triplets of every query."""
        oracle = self.training.oracle(softmax(self.inputs @ W.T))
        return oracle.predict_augmented(Z.ravel()).value / self.training.triplets.per_query

    def take(self, queries: Array) -> Mixture:
        """The objective of some queries; a triplet has the same factor as in that of all."""
        part = Mixture(self.training.take(queries), self.inputs[queries], 1.0, self.gate_penalty)
        return replace(part, C=self.weight / part.weight)

    def gradient(self, Z: Array, W: Array) -> tuple[Array, Array]:
        """The slopes of the objective in Z and in W."""
        shares = softmax(self.inputs @ W.T)
        _, slopes = self.training.oracle().query_slopes(shares @ Z)
        along_gate = slopes @ Z.T
        return Z + self.weight * shares.T @ slopes, self._gate_slope(W, shares, along_gate)

    def fit_classes(self, W: Array, Z: Array | None, planes: Array | None, tol: float) -> tuple[Array, Array, float]:
        """The best weights of classes under a gate, planes for the next time, and the objective."""
        shares = softmax(self.inputs @ W.T)
        task = ranking_task(self.training.oracle(shares), self.C, self.training.weight)
        start = None if Z is None else Z.ravel()
        solution = minimise(task, Bundle(), tol=tol, start=start, planes=planes, raise_interrupt=True)
        found = solution.w.reshape(shares.shape[1], -1)
        kept = solution.planes[-MAX_PLANES:]
        return found, kept, solution.objective + 0.5 * self.gate_penalty * float((W * W).sum())

    def improve_gate(self, Z: Array, W: Array) -> Array:
        """A gate with a lower objective by a few steps of L-BFGS, or the same gate."""
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
class MixtureState(DescentState):
    """Where a start is: its gate and the best weights of classes under it. ``iteration`` counts the convex solves."""

    start: int = 0
    W: Numbers = field(default_factory=lambda: np.empty((0, 0)))
    Z: Numbers = field(default_factory=lambda: np.empty((0, 0)))
    planes: Planes = field(default_factory=lambda: np.empty((0, 0), np.int64))
    moved: float = 1.0
    threshold: float = np.inf  # 1/K of the pace: a query is in while (C/T) · its mean hinge is at most this
    is_in: Mask = field(default_factory=lambda: np.empty(0, bool))

    def as_result(self) -> MixtureState:
        """The same without its planes, which only the next step needs."""
        return replace(self, planes=self.planes[:0])


@dataclass(frozen=True)
class MixtureDescent(Method[MixtureState]):
    """Weights of classes under the gate of a start, then gate and weights in turn.

    Parameters
    ----------
    mixture : the objective
    gates : to start from
    tol, max_iter : a start ends when a step lowers the objective by less than this share of it, or after so many
    pace : None for all queries at once. Otherwise steps after the warm-up are on the queries that are easy, until all
        were in; the objective may rise then
    """

    mixture: Mixture
    gates: list[Array]
    tol: float
    max_iter: int
    pace: SelfPaced | None = None

    state: ClassVar[Any] = MixtureState
    line_type: ClassVar[Any] = MixtureStep

    @property
    def sizes(self) -> Sizes:
        return self.mixture.training.oracle()

    def begin(self, start: int) -> MixtureState:
        """The first state of a start, before its first solve."""
        W, oracle = self.gates[start], self.mixture.training.oracle()
        planes = np.empty((0, int(oracle.code_offsets[-1])), oracle.code_type)
        everyone = np.ones(oracle.n_samples, dtype=bool)
        return MixtureState(start=start, W=W, Z=np.zeros((len(W), oracle.n_params)), planes=planes, is_in=everyone)

    def step(self, now: MixtureState) -> MixtureState:
        if now.iteration == 0:
            Z, planes, objective = self.mixture.fit_classes(now.W, None, None, self.tol)
            has_gate = len(now.W) > 1  # the gate of one class does nothing
            return replace(now, Z=Z, planes=planes, objective=objective, iteration=1, is_done=not has_gate)
        has_paced = bool(now.is_in.all() and np.isfinite(now.threshold))
        if self.pace is not None and now.iteration >= self.pace.warmup and not has_paced:
            return self._step_easy(now, self.pace)
        W = self.mixture.improve_gate(now.Z, now.W)
        is_warming = self.pace is not None and not np.isfinite(now.threshold)
        if is_warming and W is now.W:
            return replace(now, moved=0.0, iteration=now.iteration + 1)
        if W is now.W:
            return replace(now, is_done=True)
        Z, planes, objective = self.mixture.fit_classes(W, now.Z, now.planes, self.tol)
        if not objective < now.objective:
            return replace(now, is_done=not is_warming, iteration=now.iteration + is_warming)
        is_last = now.iteration == self.max_iter  # such a start ends as MAX_ITER, however little it gained
        is_done = now.objective - objective <= self.tol * objective and not is_last and not is_warming
        moved = float((self._classes(W) != self._classes(now.W)).mean())
        following = replace(now, W=W, Z=Z, planes=planes, objective=objective)
        return replace(following, moved=moved, iteration=now.iteration + 1, is_done=is_done)

    def _step_easy(self, now: MixtureState, pace: SelfPaced) -> MixtureState:
        """Alternate between the queries that are easy and the gate and weights that are best for them."""
        mixture, Z, W = self.mixture, now.Z, now.W
        sizes = mixture.training.triplets.per_query.astype(np.float64)
        risk = mixture.weight * mixture.query_terms(Z, W)
        last = now.is_in if np.isfinite(now.threshold) else None
        threshold = pace.next_threshold(risk, now.threshold, last, sizes)
        is_in = np.zeros_like(now.is_in)
        for _ in range(pace.max_rounds):
            chosen = pace.choose(risk, threshold)
            if np.array_equal(chosen, is_in) or not chosen.any():
                break
            is_in = chosen
            part = mixture.take(np.flatnonzero(chosen))
            W = part.improve_gate(Z, W)
            Z = part.fit_classes(W, Z, None, self.tol)[0]
            risk = mixture.weight * mixture.query_terms(Z, W)
        moved = float((self._classes(W) != self._classes(now.W)).mean())
        following = replace(now, W=W, Z=Z, planes=now.planes[:0], objective=mixture.value(Z, W), threshold=threshold)
        return replace(following, moved=moved, iteration=now.iteration + 1, is_in=is_in)

    def better(self, best: MixtureState | None, now: MixtureState) -> MixtureState:
        return now if best is None or now.objective < best.objective else best

    def line(self, now: MixtureState, seconds: float) -> MixtureStep:
        return MixtureStep(now.start, now.iteration - 1, seconds, now.objective, now.moved, int(now.is_in.sum()))

    def check(self, state: MixtureState) -> None:
        first = self.begin(0)
        if state.start >= len(self.gates):
            raise ValueError(f"start must be below {len(self.gates)}, got {state.start}")
        for name in ("W", "Z"):
            values, shape = getattr(state, name), getattr(first, name).shape
            if values.shape != shape:
                raise ValueError(f"{name} must be finite numbers of shape {shape}, got {shorten(values)}")
        if state.planes.shape[1] != first.planes.shape[1]:
            raise ValueError(f"planes must have {first.planes.shape[1]} counts each, got {state.planes.shape[1]}")

    def _classes(self, W: Array) -> Array:
        return np.asarray((self.mixture.inputs @ W.T).argmax(axis=1))


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

    Equal classes are a saddle point of the objective, so classes of a start must differ. Features of queries show
    classes that are clusters. Preferences, sums of ``k_{q,a} − k_{q,b}`` over the triplets of a query, show others.
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
        gate += 1e-3 * rng.standard_normal(gate.shape)  # so that classes that k-means left empty differ
        gates.append(gate)
    return gates
