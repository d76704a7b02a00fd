"""Small problems written as functions of one sample: what the common tests run `PerSample` through."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.oracle import Example
from tacit.problems import PerSample

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
    """The same with their specification: `PerSample` is not told the outputs, the tests are."""
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
    """Label 1 has one hidden value more for every sign of x; label 0 has one only."""
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


SETTINGS: list[dict[str, Any]] = [
    {"joint_feature": animal_feature, "outputs": ANIMALS, "examples": animals},
    {
        "joint_feature": animal_feature,
        "argmax": best_animal,
        "loss": animal_loss,
        "augmented": worst_mistake,
        "examples": animals_written_out,
    },
    {
        "joint_feature": shift_feature,
        "loss": shift_loss,
        "outputs": shift_outputs,
        "hidden": True,
        "examples": shifts,
    },
    {
        "joint_feature": shift_feature,
        "argmax": best_shifted,
        "loss": shift_loss,
        "augmented": worst_shifted,
        "impute": best_shift,
        "hidden": True,
        "blocks": {"signal": (3,)},
        "examples": shifts_written_out,
    },
    {
        "joint_feature": shift_feature,
        "argmax": best_shifted,
        "loss": shift_loss,
        "augmented": worst_shifted,
        "impute": best_shift,
        "outputs": shift_outputs,
        "hidden": True,
        "blocks": {"signal": (3,)},
        "memory": 100,
        "examples": shifts,
    },
]
"""Outputs listed or not, hidden values or none, functions or enumeration, features beyond the memory limit."""


def per_sample_variants() -> list[PerSample]:
    """The settings that the common tests run `PerSample` through."""
    return [PerSample(**settings) for settings in SETTINGS]
