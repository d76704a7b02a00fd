"""Checks that the functions of a `PerSample` agree with each other, and small problems of its kind for tests."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.oracle import Example, Oracle
from tacit.oracle.contracts import missing_methods
from tacit.problems import PerSample
from tacit.problems.per_sample.user_functions import Output, UserFunctions, as_labels, as_samples, is_unknown, key_of
from tacit.testing.enumeration import assert_that

SCALES = (0.0, 0.01, 0.1, 0.1, 1.0, 1.0, 1.0, 10.0)
"""Lengths of the weight vectors for tests: losses matter most at small ones, scores at large ones."""


def check_functions(problem: PerSample, seeds: int = 5) -> None:
    """Call every function on every example, and compare; an AssertionError names the function and the sample.

    Every output that a function returned at one w is compared at all others. So a wrong argmax is usually found even
    without a list of outputs.

    >>> broken = PerSample(lambda x, y: [x * y], lambda x, w: -1, examples=([1.0, 2.0], [-1, 1]))
    >>> check_functions(broken)
    Traceback (most recent call last):
    ...
    AssertionError: PerSample: argmax of sample 1 returned -1, with score -0.128085; 1 has 0.128085
    """
    try:
        for seed in range(seeds if callable(problem.examples) else 1):
            rng = np.random.default_rng(seed)
            _Check(problem, problem.example(rng)).run(rng)
    except AssertionError:
        raise
    except Exception as error:
        wrong = AssertionError(f"PerSample: {error}")
        for note in getattr(error, "__notes__", ()):
            wrong.add_note(note)
        raise wrong from error


class _Check:
    def __init__(self, problem: PerSample, example: Example) -> None:
        self.samples = as_samples(example.X)
        self.labels, _ = as_labels(example.y, len(self.samples))
        self.hidden = None if example.hidden is None else as_samples(example.hidden, "hidden")
        self.schema = problem.schema(example.X, example.y)
        self.functions: UserFunctions = problem.functions(self.schema.n_params)
        self.oracle = problem.bind(example.X, example.y, self.schema, hidden=example.hidden)
        self.seen: list[dict[Any, Output]] = [{} for _ in self.samples]

    def run(self, rng: np.random.Generator) -> None:
        oracle = self.oracle
        for i, true in enumerate(self.labels):
            if "outputs" in self.functions:
                for output in self.functions.outputs(i, self.samples[i]):
                    self.note(i, output)
            h = None if self.hidden is None else self.hidden[i]
            if not self.functions.hidden or not is_unknown(h):
                self.note(i, (true, h))
                assert_that(
                    self.functions.cost(i, true, true, h) == 0,
                    f"PerSample: loss of sample {i} must be 0 for its true label {true!r}",
                )
        weights = [scale * rng.standard_normal(oracle.n_params) for scale in SCALES]
        for name, (i, true) in itertools.product(("argmax", "augmented", "impute"), enumerate(self.labels)):
            if name in self.functions:
                answers = [self.answer(name, i, true, w) for w in weights]
                for w, output in zip(weights, answers, strict=True):
                    self.compare(name, i, true, w, output)
        self.check_deterministic(weights[-1])
        for w in weights:
            for method in (Oracle.predict, Oracle.predict_augmented, Oracle.impute):
                if not missing_methods(oracle, [method]):
                    name = method.__name__
                    whole, half = getattr(oracle, name)(w), getattr(oracle, name)(w, slice(0, 1))
                    assert_that(
                        np.isclose(whole.value[0], half.value[0]), f"PerSample.{name}: rows= changes the answer"
                    )

    def note(self, i: int, output: Output) -> None:
        """Remember an output, and check its features and its loss."""
        key = key_of(output[0]), key_of(output[1])
        if key not in self.seen[i]:
            first, second = (self.functions.feature(i, self.samples[i], *output) for _ in range(2))
            assert_that(
                np.array_equal(first, second),
                f"PerSample: joint_feature of sample {i} differs between calls for the same output; "
                "it must not draw random numbers, nor change the sample",
            )
            self.functions.cost(i, self.labels[i], *output)
            self.seen[i][key] = output

    def answer(self, name: str, i: int, true: Any, w: Array) -> Output:
        x = self.samples[i]
        before = w.copy()
        if name == "argmax":
            output = self.functions.argmax(i, x, w)
        elif name == "augmented":
            output = self.functions.predict_augmented(i, x, true, w)
        else:
            output = true, self.functions.impute(i, x, true, w)
        assert_that(np.array_equal(before, w), f"PerSample: {name} of sample {i} changed w; work on a copy")
        listed = "outputs" in self.functions
        known = (key_of(output[0]), key_of(output[1])) in self.seen[i]
        assert_that(
            known or not listed,
            f"PerSample: {name} of sample {i} returned {self.functions.name(*output)}, which outputs= does not list",
        )
        self.note(i, output)
        return output

    def compare(self, name: str, i: int, true: Any, w: Array, output: Output) -> None:
        """No output that was seen may have a higher value than the answer."""
        measure = "score plus loss" if name == "augmented" else "score"

        def value(y: Any, h: Any) -> float:
            score = float(w @ self.functions.feature(i, self.samples[i], y, h))
            return score + self.functions.cost(i, true, y, h) if name == "augmented" else score

        rivals = [o for o in self.seen[i].values() if name != "impute" or key_of(o[0]) == key_of(true)]
        best = max(rivals, key=lambda other: value(*other))
        mine, highest = value(*output), value(*best)
        assert_that(
            mine >= highest - 1e-6 * max(1.0, abs(mine), abs(highest)),
            f"PerSample: {name} of sample {i} returned {self.functions.name(*output)}, with {measure} {mine:.6g}; "
            f"{self.functions.name(*best)} has {highest:.6g}",
        )

    def check_deterministic(self, w: Array) -> None:
        for i, true in enumerate(self.labels):
            for name in ("argmax", "augmented", "impute"):
                if name in self.functions:
                    first_answer, again = (self.answer(name, i, true, w) for _ in range(2))
                    assert_that(
                        key_of(first_answer) == key_of(again),
                        f"PerSample: {name} of sample {i} differs between calls at the same w",
                    )


ANIMALS = ["ant", "bee", "cat"]
COSTS: list[list[float]] = [[0, 1, 3], [2, 0, 0.5], [1, 1, 0]]


def animal_feature(x: Array, y: str) -> Array:
    """One block of weights per animal."""
    feature = np.zeros((len(ANIMALS), x.size))
    feature[ANIMALS.index(y)] = x
    return feature.ravel()


def animal_loss(true: str, y: str) -> float:
    """Mistakes cost more or less."""
    return float(COSTS[ANIMALS.index(true)][ANIMALS.index(y)])


def best_animal(x: Array, w: Array) -> str:
    return ANIMALS[int(np.argmax(w.reshape(len(ANIMALS), -1) @ x))]


def worst_mistake(x: Array, true: str, w: Array) -> str:
    return max(ANIMALS, key=lambda y: float(w @ animal_feature(x, y)) + animal_loss(true, y))


def animals(rng: np.random.Generator) -> tuple[Array, Array]:
    """A few random animals, each kind at least once."""
    X = rng.integers(-2, 3, (int(rng.integers(3, 7)), int(rng.integers(1, 4)))).astype(float)
    return X, np.concatenate([ANIMALS, rng.choice(ANIMALS, len(X))])[: len(X)]


def animals_written_out(rng: np.random.Generator) -> Example:
    """The same with their specification: the tests know the outputs, `PerSample` does not."""
    X, y = animals(rng)
    return Example(
        X,
        y,
        None,
        lambda x: [(animal, None) for animal in ANIMALS],
        lambda x, label, h: animal_feature(x, label),
        lambda true, label, h: animal_loss(true, label),
    )


def shift_feature(x: Array, y: int, h: int) -> Array:
    """A signal that label 1 holds at a hidden shift."""
    return np.roll(x, -h) if y == 1 else np.zeros(x.size)


def shift_outputs(x: Array) -> list[tuple[int, int]]:
    """Label 1 has another hidden value for each of the first two x that is positive; label 0 has one."""
    return [(0, 0), *((1, h) for h in range(1 + int(x[0] > 0) + int(x[1] > 0)))]


def shift_loss(true: int, y: int, h: int) -> float:
    return float(true != y) * (2.0 if y == 0 else 1.0)


def best_shift(x: Array, y: int, w: Array) -> int:
    """The hidden value of the highest score under a label."""
    return max((h for label, h in shift_outputs(x) if label == y), key=lambda h: float(w @ shift_feature(x, y, h)))


def best_shifted(x: Array, w: Array) -> tuple[int, int]:
    return max(shift_outputs(x), key=lambda output: float(w @ shift_feature(x, *output)))


def worst_shifted(x: Array, true: int, w: Array) -> tuple[int, int]:
    return max(shift_outputs(x), key=lambda output: float(w @ shift_feature(x, *output)) + shift_loss(true, *output))


def shifts(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """A few random signals with their labels and shifts."""
    X = rng.integers(-2, 3, (5, 3)).astype(float)
    y = np.array([0, 1, *rng.integers(0, 2, 3)])
    hidden = [rng.choice([h for label, h in shift_outputs(x) if label == true]) for x, true in zip(X, y, strict=True)]
    return X, y, np.array(hidden)


def shifts_written_out(rng: np.random.Generator) -> Example:
    """The same with their specification."""
    return Example(*shifts(rng), shift_outputs, shift_feature, shift_loss)


ANIMAL_MAXIMA = {"argmax": best_animal, "loss": animal_loss, "augmented": worst_mistake}
SHIFTS: dict[str, Any] = {"joint_feature": shift_feature, "loss": shift_loss, "hidden": True}
SHIFT_MAXIMA = {"argmax": best_shifted, "augmented": worst_shifted, "impute": best_shift, "blocks": {"signal": (3,)}}
SETTINGS: list[dict[str, Any]] = [
    {"joint_feature": animal_feature, "outputs": ANIMALS, "examples": animals},
    {"joint_feature": animal_feature, **ANIMAL_MAXIMA, "examples": animals_written_out},
    {**SHIFTS, "outputs": shift_outputs, "examples": shifts},
    {**SHIFTS, **SHIFT_MAXIMA, "examples": shifts_written_out},
    {**SHIFTS, **SHIFT_MAXIMA, "outputs": shift_outputs, "memory": 100, "examples": shifts},
]
"""Outputs listed or not, hidden values or none, functions or enumeration, features beyond the memory limit."""


def per_sample_variants() -> list[PerSample]:
    """The settings that the common tests run `PerSample` through."""
    return [PerSample(**settings) for settings in SETTINGS]
