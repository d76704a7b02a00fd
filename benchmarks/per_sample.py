"""A user's Python functions on the digits against `Multiclass`: the same optimum, and what a call costs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, interleave, milliseconds, ratio
from tacit import StructuredSVM
from tacit.problems import Multiclass, PerSample
from tacit.runtime import Processes

C = 100
CLASSES, WIDTH = 10, 65


def joint_feature(x: Any, y: int) -> Any:
    feature = np.zeros((CLASSES, WIDTH))
    feature[y] = x
    return feature.ravel()


def argmax(x: Any, w: Any) -> int:
    return int(np.argmax(w.reshape(CLASSES, WIDTH) @ x))


def augmented(x: Any, true: int, w: Any) -> int:
    scores = w.reshape(CLASSES, WIDTH) @ x + 1
    scores[true] -= 1
    return int(np.argmax(scores))


class Slow:
    """`augmented`, but busy for some microseconds more."""

    def __init__(self, microseconds: float) -> None:
        self.seconds = 1e-6 * microseconds

    def __call__(self, x: Any, true: int, w: Any) -> int:
        until = time.perf_counter() + self.seconds
        while time.perf_counter() < until:
            pass
        return augmented(x, true, w)


def run() -> Page:
    X, y = load_digits(return_X_y=True)
    X = np.hstack([X / 16, np.ones((len(X), 1))])
    problems = {
        "Multiclass": Multiclass(fit_intercept=False),
        "PerSample, outputs listed": PerSample(joint_feature, outputs=range(CLASSES)),
        "PerSample, argmax and augmented": PerSample(joint_feature, argmax, augmented=augmented),
    }
    page = Page(
        "Functions of one sample: what they cost",
        f"`load_digits()/16` with a column of ones, ½‖W‖² + ({C}/1797) Σ ξ to 0.1 %. Three functions of one to four "
        "lines of NumPy, called once per sample and pass. Must reach: the optimum of Multiclass.",
        ["problem", "fit, ms (lowest / median)", "× Multiclass", "passes", "objective", "bound", "µs per call"],
    )
    models = {name: StructuredSVM(problem, C=C) for name, problem in problems.items()}
    with threadpool_limits(1):
        seconds = interleave({name: lambda m=model: m.fit(X, y) for name, model in models.items()}, rounds=5)
        for name, model in models.items():
            page.rows.append(
                (
                    name,
                    milliseconds(seconds[name]),
                    f"{ratio(seconds, name, 'Multiclass'):.0f}",
                    model.n_iter_,
                    f"{model.objective_:.4f}",
                    f"{model.bound_:.4f}",
                    _costs(problems[name], X, y),
                )
            )
        for microseconds in (0, 50, 500):
            page.notes.append(_processes(X, y, microseconds))
    page.notes.append(
        "Workers start only when a fit has worked for about as long as starting them takes, and calls of less than "
        "10 ms stay where they are; the result is the same bit by bit."
    )
    return page


def _costs(problem: Any, X: Any, y: Any) -> str:
    if not isinstance(problem, PerSample):
        return "–"
    return ", ".join(f"{name} {cost.microseconds:.1f}" for name, cost in problem.costs(X, y).items())


def _processes(X: Any, y: Any, microseconds: float) -> str:
    problem = PerSample(joint_feature, argmax, augmented=Slow(microseconds))
    oracle = problem.bind(X, y, problem.schema(X, y))
    w = np.random.default_rng(0).standard_normal(oracle.n_params)
    oracle.predict_augmented(w)
    shards = Processes(oracle, 2, start_after=0, least_work=0)
    began = time.perf_counter()
    try:
        shards.predict_augmented(w)
        start = time.perf_counter() - began
        calls = {"one": lambda: oracle.predict_augmented(w), "two": lambda: shards.predict_augmented(w)}
        seconds = interleave(calls, rounds=5)
    finally:
        shards.close()
    return (
        f"A pass with {microseconds} µs more in every call: {milliseconds(seconds['one'])} ms in one process, "
        f"{milliseconds(seconds['two'])} ms on two ({ratio(seconds, 'two', 'one'):.2f} ×; {start:.1f} s to start them)."
    )
