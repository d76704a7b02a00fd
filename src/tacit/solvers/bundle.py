"""Cutting planes on the 1-slack form, with a proximal term whose weight adapts itself."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.specs import estimator, parameter, switch, whole
from tacit.oracle import TARGET, Plane, Task, capability, has_long_codes, runs_python
from tacit.oracle.capabilities import KeepsDual
from tacit.penalties import GroupNorm, Penalty
from tacit.runtime.archive import storable
from tacit.runtime.checkpoint import stored_array, stored_codes, stored_number
from tacit.solvers.loop import MIN_PROGRESS, Solver, State, WarmStart
from tacit.solvers.norm_dual import maximise_norm_dual
from tacit.solvers.simplex_qp import maximise_on_simplex, maximise_with_bounds

MODEL_LEVEL = 0.5
"""Where the model's value at the next point should lie: 0 is the lower bound, 1 the best objective."""

PROXIMAL_FACTOR = 1.5
"""By how much the proximal weight grows or shrinks per step, to keep the model's value at `MODEL_LEVEL`.

On the digits this takes half the passes of the plain algorithm for every C from 1 to 10⁴, which no fixed weight does.
Every other step the model without the proximal term raises the bound too: one more small program, a tenth fewer
passes."""

MIN_DROPPED = 5
"""Planes are dropped only when this many can go: dropping one costs as much as dropping five."""

MIN_PLANES, MAX_PLANES = 20, 1000
"""Limits of the number of planes: above, the half with less weight α is dropped. Most tasks need a few dozen. With many
samples the limit is lower, but not below the first number."""

MAX_PLANE_CODES = 1_000_000_000
"""Maximum number of entries in the codes of all planes, one or two bytes each: at 10⁷ samples a hundred planes."""

QP_TOLERANCE = 0.1
"""The small quadratic program of a step is solved to this share of the gap."""

NORM_FACTOR = 2.0
"""By how much the dual of a norm is solved less precisely than a quadratic program. While the gap does not shrink it is
solved more precisely from step to step: otherwise the same step could repeat for ever."""

FIRST_NORM_WEIGHT = 0.03
"""The first proximal weight of norms, as a share of the one with which a step could decrease the whole objective to the
floor. Few optima are further away, and a weight that is too large takes ten passes to shrink."""

MIN_NORM_WEIGHT = 1e-3
"""The least proximal weight of norms, as a share of the same: where the optimum is w = 0 no step needs less, and the
dual becomes a linear program, which Newton's method does not solve."""

ZERO_MARGIN, MAX_TIDY_SHARE = 1e-3, 0.1
"""At the end, groups whose dual norm is below λ by this share are set to zero, as they are at the optimum, unless that
raises the objective by more than this share of the gap."""

BOUND_PULL = 1e-2
"""The share of the proximal weight with which norms raise the bound as long as w = 0: without any, a minimiser need not
exist."""


@storable
@estimator
class Bundle(Solver):
    """Proximal bundle method on the 1-slack form (Joachims, Finley & Yu 2009, algorithm 3, plus a proximal term).

    Every step finds the most violated assignment at the present point (loss-augmented inference). It adds the plane of
    that assignment, a cutting plane, to a model that lies below the objective, and minimises the model. The model's
    minimum is a lower bound on the optimum, so the gap is certified at every step. With ``proximal=True`` the next
    point stays near the best one so far, which halves the number of oracle passes at large C; ``proximal=False`` is the
    textbook algorithm.

    Cost per step: one oracle pass and one or two small quadratic programs. Memory: O(planes · (n + d)).

    Parameters
    ----------
    proximal : stay near the best point
    drop_after : drop a plane that was inactive for this many steps; later while the gap does not shrink

    >>> from tacit import problems, testing
    >>> from tacit.solvers import minimise
    >>> task = testing.example_task(problems.Candidates(), seed=1)
    >>> minimise(task, Bundle(proximal=False), tol=1e-6).status.name
    'CONVERGED'
    """

    takes_norms = True

    proximal: bool = parameter(switch, default=True)
    drop_after: int = parameter(whole(), default=5)

    def init(self, task: Task, warm: WarmStart, rng: np.random.Generator) -> BundleState:
        self.check()
        if not task.penalty.is_quadratic and not self.proximal:
            raise ValueError(f"{type(task.penalty).__name__} needs proximal steps; use Bundle(proximal=True)")
        state = BundleState(task.oracle.n_params, task.floor)
        usable = () if warm.planes is None else [code for code in warm.planes if task.oracle.accepts(code)]
        codes = [np.full_like(task.target, TARGET), *usable]
        for code, plane in zip(codes, task.planes(codes), strict=True):
            state.add_if_new(code, plane, task.penalty)
        zero = np.zeros(task.oracle.n_params)
        state.add_plane(task, zero, task.penalty.value(zero), *task.origin)
        if warm.w is not None:
            state.evaluate(task, warm.w)
        if not task.penalty.is_quadratic:  # a step that could bring the whole objective down to the floor
            steepness, gain = float(state.gram.diagonal().max()), state.best[1] - state.floor
            state.proximal_weight = FIRST_NORM_WEIGHT * steepness / (2 * gain) if gain > 0 and steepness > 0 else 1.0
            state.min_weight = MIN_NORM_WEIGHT * steepness / max(2 * (task.trivial - state.floor), 2 * gain, 1e-300)
        state.raise_bound(state.solve_model_dual(task.penalty), task.penalty)
        return state

    def step(self, task: Task, state: BundleState) -> BundleState:
        before, state = state, copy.copy(state)
        penalty = task.penalty
        if self.proximal:
            penalty = penalty.near(state.best[0], state.proximal_weight)
            if not state.just_raised:
                state.raise_bound(state.solve_model_dual(task.penalty), task.penalty)
            state.just_raised = not state.just_raised
        alpha = state.solve_model_dual(penalty)
        w = penalty.primal(state.raise_bound(alpha, task.penalty))
        if not penalty.is_quadratic and (w == state.best[0]).all():  # nothing new there: look further away
            w = state.minimiser(task.penalty)
        value = task.penalty.value(w)
        state.adapt_proximal_weight(w, value, is_exact=penalty.is_quadratic)
        state.drop(alpha, min(int(self.drop_after), 1 << 40) + state.idle)  # kernels take 64 bits
        state.add_plane(task, w, value, *task.tangent(w))
        state.note_progress(not task.penalty.is_quadratic or state.differs_from(before))
        return state

    def finish(self, task: Task, state: BundleState) -> BundleState:
        if not isinstance(task.penalty, GroupNorm) or state.slope is None:
            return state
        w, objective = state.best
        is_zero = task.penalty.norms(state.slope) < (1 - ZERO_MARGIN) * task.penalty.each_weight
        tidy = np.where(task.penalty.of_groups(is_zero), 0.0, w)
        if np.array_equal(tidy, w):
            return state
        state = copy.copy(state)
        plane = task.plane_at(tidy)[1]
        lower = task.penalty.value(tidy) + plane.value(tidy)
        if lower <= objective + MAX_TIDY_SHARE * max(objective - state.bound, 0.0):
            state.best, state.excess = (tidy, lower), plane.excess
            state.proven = tidy, lower + plane.excess
        return state

    def restore(self, task: Task, snapshot: Mapping[str, Any]) -> BundleState:
        d = task.oracle.n_params
        state = BundleState(d, task.floor)
        for code in stored_codes(snapshot, "codes", task.oracle.accepts):
            state.append(code, task.plane(code), task.penalty)
        state.restore_fields(task, snapshot)
        for name in ("proximal_weight", "min_weight"):
            stored_number(snapshot, name, least=0)
        m = len(state.codes)
        state.gram[:] = stored_array(snapshot, "gram", (m, m))
        if not task.penalty.is_quadratic:
            state.slope = stored_array(snapshot, "slope", (d,))
            first, second = ((name, (min(np.size(snapshot[name]), m),)) for name in ("alpha", "bound_alpha"))
            state.alphas = stored_array(snapshot, *first), stored_array(snapshot, *second)
        return state


def overflow_error() -> FloatingPointError:
    """The error of every solver for features whose squares overflow double precision."""
    return FloatingPointError("the sum of features overflows; scale the features (StandardScaler) or lower C")


class BundleState(State):
    """The planes of a task, their inner products, the best point and the bound.

    A step works on a shallow copy. It replaces what it changes, and writes into shared buffers only behind the old
    planes, so an interrupted step does not damage the old state.
    """

    unsaved = ("floor", "alphas", "slope")

    def __init__(self, d: int, floor: float = 0.0) -> None:
        super().__init__(np.zeros(d), bound=floor)
        self.floor = floor  # the objective is never below this
        self._slopes = np.empty((32, d))
        self._offsets = np.empty(32)
        self._gram = np.empty((32, 32))
        self.ages = np.zeros(0, dtype=np.int64)
        self.proximal_weight, self.min_weight = 1.0, 1e-6
        self.just_raised = True
        self.alphas = np.zeros(0), np.zeros(0)  # where the dual of a norm begins: for steps, and for bounds
        self.slope: Array | None = None  # of the best lower bound, for norms

    def __copy__(self) -> BundleState:  # a step makes one: the general way takes five times as long
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    @property
    def slopes(self) -> Array:
        return self._slopes[: len(self.codes)]

    @property
    def offsets(self) -> Array:
        return self._offsets[: len(self.codes)]

    @property
    def gram(self) -> Array:
        m = len(self.codes)
        return self._gram[:m, :m]

    def variables(self) -> Mapping[str, Array] | None:
        return None if self.slope is None else {"slope": self.slope}

    def snapshot(self) -> Mapping[str, Any]:
        kept = {**super().snapshot(), "gram": self.gram}
        if self.slope is None:
            return kept
        return {**kept, "slope": self.slope, "alpha": self.alphas[0], "bound_alpha": self.alphas[1]}

    def differs_from(self, before: BundleState) -> bool:
        """Whether a step led to another model, a better point or a higher bound."""
        is_same_model = len(self.codes) == len(before.codes) and all(map(operator.is_, self.codes, before.codes))
        return not is_same_model or self.best is not before.best or self.bound != before.bound

    def evaluate(self, task: Task, w: Array) -> None:
        """Call the oracle at ``w``: a new plane, and perhaps a better point."""
        self.add_plane(task, w, task.penalty.value(w), *task.tangent(w))

    def add_plane(self, task: Task, w: Array, penalty: float, code: Array, plane: Plane) -> None:
        """Add the plane that is tangent to the risk at ``w``; keep ``w`` if its objective is the best so far.

        ``penalty`` is Ω(w).
        """
        self.add_if_new(code, plane, task.penalty)
        self.record(w, penalty + plane.value(w), plane.excess)

    def add_if_new(self, code: Array, plane: Plane, penalty: Penalty) -> None:
        """Append a plane unless the model has the same one already."""
        alike = (self.offsets == plane.offset).nonzero()[0]
        if not any((self._slopes[i] == plane.gradient).all() for i in alike):
            self.append(code, plane, penalty)

    def append(self, code: Array, plane: Plane, penalty: Penalty) -> None:
        m = len(self.codes)
        if m == len(self._offsets):
            self._keep_planes(np.arange(m), 2 * m)
        self._slopes[m] = plane.gradient
        self._offsets[m] = plane.offset
        self._gram[m, : m + 1] = self._gram[: m + 1, m] = penalty.products(self._slopes[: m + 1], plane.gradient)
        if not math.isfinite(self._gram[m, m]):
            raise overflow_error()
        ages, self.ages = self.ages, np.zeros(m + 1, dtype=np.int64)
        self.ages[:m] = ages
        self.codes = (*self.codes, code)

    def solve_model_dual(self, penalty: Penalty) -> Array:
        """The weights α of the planes that maximise the dual of the cutting-plane model under this penalty."""
        tolerance = QP_TOLERANCE * (self.best[1] - self.bound)
        if isinstance(penalty, GroupNorm):
            tolerance *= NORM_FACTOR / (1 + self.idle)
            kind = int(not penalty.pull)
            near: GroupNorm = penalty if penalty.pull else self._nearly_free(penalty)
            last, size = self.alphas[kind], self.best[1] - self.floor
            start = np.zeros(len(self.codes))
            start[: last.size] = last
            alpha = maximise_norm_dual(self.slopes, self.offsets - self.floor, near, start, size, tolerance)
            self.alphas = (self.alphas[0], alpha) if kind else (alpha, self.alphas[1])
            return alpha
        if getattr(penalty, "lower", None) is not None:
            return maximise_with_bounds(self.slopes, self.offsets, penalty, self.floor, self.best[1], tolerance)
        gains = penalty.dual_offsets(self.slopes, self.offsets) - self.floor
        gram, size = self.gram / penalty.stiffness, self.best[1] - self.floor
        return maximise_on_simplex(self.slopes, penalty.dual_scale, gram, gains, size, tolerance)

    def raise_bound(self, alpha: Array, penalty: Penalty) -> Array:
        """Weighted planes lie below the objective, so their minimum with the plain penalty is a lower bound.

        Returns the weighted slope.
        """
        slope = alpha @ self.slopes
        bound = penalty.least(slope, float(alpha @ self.offsets), self.floor)
        if isinstance(penalty, GroupNorm) and (bound > self.bound or self.slope is None):
            self.slope = np.asarray(slope / max(penalty.steepness(slope), 1.0))
        self.bound = max(self.bound, bound)
        return np.asarray(slope)

    def minimiser(self, penalty: Penalty) -> Array:
        """Where the cutting-plane model with this penalty is lowest; for a norm, not far from the best point."""
        alpha = self.solve_model_dual(penalty)
        if not penalty.is_quadratic:
            penalty = self._nearly_free(penalty)
        return np.asarray(penalty.primal(alpha @ self.slopes))

    def _nearly_free(self, penalty: Any) -> Any:
        """A norm with so small a proximal term that moving by ‖w‖ costs half of the gap: bounds need some."""
        w, objective = self.best
        size = float(w @ w)
        gap = max(objective - self.bound, MIN_PROGRESS * abs(objective))
        return penalty.near(w, gap / size if size > 0 and gap > 0 else BOUND_PULL * self.proximal_weight)

    def adapt_proximal_weight(self, w: Array, penalty: float, is_exact: bool) -> None:
        """Raise or lower the proximal weight, so that the model's value at the next point nears `MODEL_LEVEL`.

        ``penalty`` is Ω(w). If the model there is above the best objective by more than the gap, the dual of a norm was
        not solved, as happens with a tiny proximal weight. Unless the dual ``is_exact``, the weight is then raised.
        """
        model = penalty + float((self.slopes @ w + self.offsets).max())
        level = self.bound + MODEL_LEVEL * (self.best[1] - self.bound)
        is_high = model > level and (is_exact or model <= 2 * self.best[1] - self.bound)
        factor = 1 / PROXIMAL_FACTOR if is_high else PROXIMAL_FACTOR
        self.proximal_weight = min(max(self.proximal_weight * factor, self.min_weight), 1e9)

    def drop(self, alpha: Array, after: int) -> None:
        """Drop planes that were inactive for ``after`` steps, several at a time.

        The first one stays: it is the plane of the true outputs, and the risk is never below it. A model without it is
        far below the bound wherever w separates the data, and then the bound does not rise for hundreds of steps.
        """
        self.ages = self.ages.copy()
        if age_planes(alpha, self.ages, after) >= MIN_DROPPED:
            self._keep_planes(np.flatnonzero(self.ages < after), len(self._offsets))
            return
        most = min(MAX_PLANES, max(MIN_PLANES, MAX_PLANE_CODES // max(1, self.codes[0].size)))
        if len(self.codes) >= most:
            share = alpha * np.sqrt(self.gram.diagonal())
            share[0] = np.inf
            self._keep_planes(np.sort(np.argsort(-share, kind="stable")[: most // 2]), len(self._offsets))

    def _kept_weights(self, alpha: Array, keep: Array) -> Array:
        """The weights α of the planes that are kept, scaled to sum one; empty if their sum is 0."""
        kept = np.append(alpha, np.zeros(len(self.codes) - alpha.size))[keep]
        return kept / kept.sum() if kept.sum() > 0 else np.zeros(0)

    def _keep_planes(self, keep: Array, capacity: int) -> None:
        """Copy the planes to keep into new buffers."""
        m, d = keep.size, self._slopes.shape[1]
        slopes, offsets, gram = np.empty((capacity, d)), np.empty(capacity), np.empty((capacity, capacity))
        np.take(self._slopes, keep, axis=0, out=slopes[:m], mode="clip")  # the mode that needs no second copy
        offsets[:m], gram[:m, :m] = self._offsets[keep], self._gram.take(keep, axis=0).take(keep, axis=1)
        self._slopes, self._offsets, self._gram = slopes, offsets, gram
        self.ages = self.ages[keep]
        self.alphas = self._kept_weights(self.alphas[0], keep), self._kept_weights(self.alphas[1], keep)
        self.codes = tuple(self.codes[i] for i in keep)


@kernel
def age_planes(alpha: Array, ages: Array, after: int) -> int:
    """Age the planes with weight α = 0, except the first; reset the others. Returns how many are old."""
    n_old = 0
    for m in range(ages.size):
        ages[m] = 0 if m == 0 or alpha[m] > 1e-14 else ages[m] + 1
        n_old += ages[m] >= after
    return n_old


# which solver: the rule of solver="auto", from measurements (benchmarks/which_solver.py)

MIN_SEQUENCES = 2000
"""From this many sequences on `FrankWolfe` beats `Bundle`: at 700 they tie, at 3000 it takes 0.5 to 0.9 of the time."""

MAX_MEAN_LENGTH = 50
"""Mean number of tokens per sequence up to which `FrankWolfe` is chosen. Words of 8 letters were measured; the limit
leaves a margin."""

MAX_INFLUENCE = 1.0
"""The `sample_influence` up to which `FrankWolfe` is chosen. At ten times that, it takes twice as long as `Bundle`."""

MAX_PLANE_NUMBERS = 1_000_000
"""Weights of sequences from which on `FrankWolfe` is chosen whatever C is. It keeps a few vectors of the length of w
and 8 taggings per sequence at first; `Bundle` keeps up to a hundred planes as long as w, 0.8 GB at this length."""

MIN_TOLERANCE = 3e-3
"""From this tolerance on `FrankWolfe` needs 0.4 to 0.6 of the calls of an oracle in Python. Below it the saving shrinks
and its updates, some 0.1 ms each, grow in number: functions that take less time are better off with `Bundle`."""


SOLVER_NAMES = ("bundle", "frank-wolfe", "subgradient")
"""Names that stand for solvers with their default settings."""


def solver_by_name(name: str) -> Solver:
    """The solver with this name, with its default settings.

    >>> solver_by_name("frank-wolfe")
    FrankWolfe()
    """
    from tacit.solvers.frank_wolfe import FrankWolfe  # which imports this module
    from tacit.solvers.subgradient import Subgradient

    return (Bundle, FrankWolfe, Subgradient)[SOLVER_NAMES.index(name)]()


def choose(task: Task, tol: float) -> Solver:
    """The solver that is usually fastest to a relative gap of ``tol``; the same for the same task, on any machine.

    `FrankWolfe` is chosen in three cases. First, where every call of the oracle is a user's Python function, C is small
    and the tolerance loose: it needs the fewest calls. Second, for many short sequences at small C. Third, for
    sequences with a million weights or more, where `Bundle` would hold gigabytes of planes. In all other cases it is
    `Bundle`: its passes are matrix products, and their number grows the least with C.

    >>> from tacit import problems, testing
    >>> choose(testing.example_task(problems.Multiclass()), tol=1e-3)
    Bundle()
    """
    from tacit.solvers.frank_wolfe import FrankWolfe  # which imports this module

    oracle = task.oracle
    if not task.penalty.is_quadratic:
        return Bundle()
    has_dual = capability(oracle, KeepsDual) is not None
    if runs_python(oracle) and not has_dual:
        return FrankWolfe() if tol >= MIN_TOLERANCE and _is_small(task) else Bundle()
    if task.rescaling != "margin":  # dual variables are for margin rescaling
        return Bundle()
    if has_long_codes(oracle) and has_dual and oracle.n_params > MAX_PLANE_NUMBERS:
        return FrankWolfe()
    if has_long_codes(oracle) and has_dual and oracle.n_samples >= MIN_SEQUENCES and _is_small(task):
        return FrankWolfe() if task.target.size <= MAX_MEAN_LENGTH * oracle.n_samples else Bundle()
    return Bundle()


def _is_small(task: Task) -> bool:
    return sample_influence(task) <= MAX_INFLUENCE


def sample_influence(task: Task) -> float:
    """How far one sample moves w away from 0: ‖g‖² / (R(0) · n), with the risk R, its slope g at 0, and n samples.

    It is proportional to C and does not depend on the units of the features: features ten times as large, with a
    hundredth of the C, have the same influence.

    >>> from tacit import problems, testing
    >>> small, large = (sample_influence(testing.example_task(problems.Multiclass(), C=C)) for C in (1.0, 10.0))
    >>> round(large / small, 6)
    10.0
    """
    plane = task.origin[1]
    if not plane.offset > 0:
        return 0.0
    return float(plane.gradient @ plane.gradient) / (plane.offset * task.oracle.n_samples)
