"""For the page `optima`: which path was chosen, and what a path does for learners beside the latent SVM."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.harness import real_data
from benchmarks.starts import _planted_bags
from tacit import DissimilaritySVM, GroupNormSVM, IterativeLatentSVM, LatentSVM, MinEntropySVM, Ragged
from tacit.data.arrays import Array
from tacit.learners.descents.entropy import EntropyMargins
from tacit.learners.descents.smoothing import MAX_STEPS, PATIENCE, POWERS, STATIONARY, SoftObjective
from tacit.penalties import Quadratic
from tacit.problems import Candidates
from tacit.solvers.quasi_newton import begin, step

TOL = 1e-3
LEARNERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "MinEntropySVM, α = ∞": (MinEntropySVM, {"alpha": np.inf}),
    "IterativeLatentSVM, exact loss": (IterativeLatentSVM, {"problem": Candidates(loss="exact")}),
    "DissimilaritySVM, exact loss": (DissimilaritySVM, {"problem": Candidates(loss="exact")}),
    "GroupNormSVM": (GroupNormSVM, {}),
}


class ImputingSide:
    """The soft objective with the temperature on the imputing side alone: the loss-augmented maximum stays."""

    def __init__(self, oracle: Any, weights: Array, power: float) -> None:
        self.oracle, self.weights, self.power = oracle, weights, power

    def __call__(self, w: Array) -> tuple[float, Array]:
        best = self.oracle.predict_augmented(w)
        soft = self.oracle.expectations(w, truth=-self.weights, power=self.power)
        slack = best.value - soft.truth / self.power
        slope = w + self.oracle.features(best.code, self.weights) + soft.features
        return 0.5 * float(w @ w) + float(self.weights @ slack), slope


def both(oracle: Any, weights: Array, power: float) -> Any:
    return SoftObjective(oracle, weights, Quadratic(), power)


def renyi(oracle: Any, weights: Array, alpha: float) -> Any:
    return EntropyMargins(oracle, weights, alpha)


FACTOR_4 = [4.0**k for k in range(6)]
VARIANTS: dict[str, tuple[Callable[..., Any], Sequence[float]]] = {
    f"both maxima soft, powers {', '.join(f'{power:g}' for power in POWERS)} (taken)": (both, POWERS),
    "1 to 1024 by factors of 4": (both, FACTOR_4),
    "1 to 256 by factors of 4": (both, FACTOR_4[:-1]),
    "by factors of 2": (both, [2.0**k for k in range(11)]),
    "by factors of 8": (both, [1.0, 8.0, 64.0, 512.0]),
    "from .25 by factors of 4": (both, [0.25, *FACTOR_4]),
    "from 4 by factors of 4": (both, FACTOR_4[1:]),
    "from 16 by factors of 4": (both, FACTOR_4[2:]),
    "1024 alone": (both, FACTOR_4[-1:]),
    "imputing side alone soft, 1 to 1024 by factors of 4": (ImputingSide, FACTOR_4),
    "Rényi scores, α = 2, 8, 32, 128, 1000": (renyi, [2.0, 8.0, 32.0, 128.0, 1000.0]),
    "Rényi scores, α = 1000 alone": (renyi, [1000.0]),
}


def training_sets() -> list[tuple[str, Any, Array, float]]:
    """Six planted sets and three real ones, all samples to learn from."""
    sets = []
    for distance in (2.0, 3.0):
        for seed in range(3):
            X, y, *_ = _planted_bags(seed, distance)
            sets.append((f"planted {distance:g}", X, y, 10.0))
    for name in ("musk1", "elephant", "tiger"):
        with np.load(real_data() / "bags" / f"{name}.npz") as file:
            values, offsets, y = file["values"].astype(np.float64), file["offsets"], file["labels"]
        values = (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-9) / np.sqrt(values.shape[1])
        sets.append((name, Ragged(values, offsets), y, 100.0))
    return sets


def follow(make: Callable[..., Any], powers: Sequence[float], oracle: Any, weights: Array) -> Array:
    """The end of a path, as `tacit.learners.descents.smoothing` follows it; others are precise at every power."""
    w, significant = np.zeros(oracle.n_params), TOL * float(weights.sum())
    shares = STATIONARY if powers is POWERS else [STATIONARY[-1]] * len(powers)
    for power, stationary in zip(powers, shares, strict=True):
        function = make(oracle, weights, power)
        point = begin(function, w)
        values = [point.value]
        for _ in range(MAX_STEPS):
            point = step(function, point)
            values.append(point.value)
            has_gained = len(values) <= PATIENCE or values[-1 - PATIENCE] - values[-1] > significant
            if point.is_stuck or not has_gained or 0.5 * point.slope**2 <= stationary * abs(point.value):
                break
        w = point.w
    return w


def measure_paths() -> dict[str, list[tuple[float, float]]]:
    """The objective after path and CCCP, in units of C · tol, and CPU seconds, per variant and data set."""
    problem, found = Candidates(), {}
    for _, X, y, C in training_sets():
        schema = problem.schema(X, y)
        oracle = problem.bind(X, y, schema).exact()
        weights = np.full(oracle.n_samples, C / oracle.n_samples)
        for name, (make, powers) in VARIANTS.items():
            if not found.get(name):  # compiles
                make(oracle, weights, powers[0])(np.zeros(oracle.n_params))
            began = time.process_time()
            w = follow(make, powers, oracle, weights)
            model = LatentSVM(problem, C=C, tol=TOL, init=dict(schema.views(w)), verbose=0).fit(X, y)
            found.setdefault(name, []).append((model.objective_ / (C * TOL), time.process_time() - began))
        print({name: round(values[-1][0], 2) for name, values in found.items()}, flush=True)
    return found


def measure_learners() -> dict[str, list[tuple[float, float, float, float]]]:
    """Objectives and CPU seconds of each learner with its default start and with a path, on planted bags."""
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for seed in range(5):
        X, y, *_ = _planted_bags(seed, 2.0)
        for name, (kind, own) in LEARNERS.items():
            row = []
            for init in ("auto" if kind is DissimilaritySVM else "hidden", "smooth"):
                settings = {"problem": Candidates(), "C": 10.0, "random_state": seed, "verbose": 0, "init": init, **own}
                began = time.process_time()
                row += [kind(**settings).fit(X, y).objective_, time.process_time() - began]
            found.setdefault(name, []).append(tuple(row))
    return found


def _quietly(measure: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return measure()


def describe_paths() -> list[str]:
    found = {name: np.array(values) for name, values in _quietly(measure_paths).items()}
    taken, *others = found
    parts = []
    for name in others:
        gain = found[name][:, 0] - found[taken][:, 0]
        wins, losses = int((gain < -1).sum()), int((gain > 1).sum())
        parts.append(f"{name}: {gain.mean():+.1f} ({wins} lower, {losses} higher, {found[name][:, 1].mean():.2f} s)")
    return [
        "The path was chosen by the objective on training data: six planted sets of bags, and Musk1, Elephant and "
        f"Tiger with all samples. Taken: {taken.removesuffix(' (taken)')} ({found[taken][:, 1].mean():.2f} CPU s with "
        "CCCP). "
        "Others, mean objective relative to it in units of C·tol, and on how many of the nine sets they end lower or "
        "higher by more than one unit: " + "; ".join(parts) + "."
    ]


def describe_learners() -> list[str]:
    parts = []
    for name, rows in _quietly(measure_learners).items():
        table = np.array(rows)
        plain, plain_seconds, smooth, seconds = table.mean(axis=0)
        wins = int((table[:, 2] < table[:, 0]).sum())
        parts.append(
            f"{name}: {plain:.3f} by CCCP ({plain_seconds:.2f} s), {smooth:.3f} with the path ({seconds:.2f} s), "
            f"lower on {wins} of {len(table)}"
        )
    return [
        "Other learners, objectives on five planted sets of bags, one start each (CCCP from random hidden values, "
        "`DissimilaritySVM` from mean features): " + "; ".join(parts) + "."
    ]
