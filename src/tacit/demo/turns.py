"""Digits at an unknown turn: without a hidden value, with CCCP, self-paced."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from tacit import plot
from tacit.data.arrays import Array
from tacit.datasets.drawn import DrawnDigits, drawn_digits
from tacit.learners import LatentSVM, StructuredSVM
from tacit.learners.pacing import SelfPaced
from tacit.problems import Transforms, rotations

ANGLES, COMPONENTS, C, STARTS = rotations(-60, 60, 11), 20, 100, 2
TRAIN, TEST, SIDE = 800, 400, 32

NOTES = f"""\
no hidden turn: a structured SVM that takes the images as they are
hidden turn:    a latent SVM that chooses among {len(ANGLES.states)} angles, the best of {STARTS} starts by objective
turn off by:    mean over test images. Which way up a digit belongs no label says, so the median of its class counts
                as upright. Angles are {np.diff(ANGLES.states)[0]:g}° apart; without any turn it would be 30°"""


def turned_digits(folder: Path) -> str:
    """Digits, each turned by a random angle nobody notes down: without a hidden turn, by CCCP, self-paced.

    Writes two pictures, returns the table.
    """
    both = drawn_digits(TRAIN + TEST, side=SIDE, turn=60)
    train, test = (DrawnDigits(*(part[rows] for part in both)) for rows in (slice(TRAIN), slice(TRAIN, None)))
    hidden_turn = Transforms(ANGLES, n_components=COMPONENTS)
    as_they_are = Transforms(rotations(0, 0, 1), n_components=COMPONENTS)
    learners: dict[str, Any] = {
        "no hidden turn": StructuredSVM(as_they_are, C=C, verbose=0),
        "hidden turn, CCCP": LatentSVM(hidden_turn, C=C, n_init=STARTS, verbose=0),
        "hidden turn, self-paced": LatentSVM(hidden_turn, C=C, n_init=STARTS, pace=SelfPaced(), verbose=0),
    }
    for model in learners.values():  # compiles the kernels, which is not what the seconds are about
        clone(model).fit(train.X[:100], train.y[:100])
    lines = [
        "",
        f"Digits at a hidden turn: {TRAIN} drawings of {SIDE} × {SIDE} pixels to learn from, {TEST} to test on. Each",
        f"was turned by an angle between −60° and 60° that no label tells. C = {C}, {COMPONENTS} principal components.",
        "",
        f"{'learner':<26}{'objective':>11}{'train error':>13}{'test error':>12}{'turn off by':>13}{'seconds':>9}",
    ]
    for name, model in learners.items():
        began = time.perf_counter()
        model.fit(train.X, train.y)
        seconds = time.perf_counter() - began
        errors = [1 - model.score(data.X, data.y) for data in (train, test)]
        turn = f"{_off_by(model, test):.0f}°" if isinstance(model, LatentSVM) else ""
        lines.append(
            f"{name:<26}{model.objective_:>11.2f}{errors[0]:>13.1%}{errors[1]:>12.1%}{turn:>13}{seconds:>9.2f}"
        )
    best = min(list(learners.values())[1:], key=lambda model: model.objective_)
    first = np.arange(10)
    pictures = {
        "turns.png": plot.turned_images(train.X[first], best.hidden_[first], ANGLES),
        "mean_digits.png": plot.mean_images(train.X, train.y, best.hidden_, ANGLES),
    }
    lines += ["", NOTES]
    for name, figure in pictures.items():
        figure.savefig(folder / name, dpi=110)
        plot.pyplot().close(figure)
        lines.append(f"Picture: {folder / name}")
    return "\n".join(lines)


def _off_by(model: LatentSVM, data: DrawnDigits) -> float:
    """Mean distance, in degrees, of what is left of the turns from the median of the class."""
    left: Array = ANGLES.states[model.impute(data.X, data.y)] + data.angles
    upright = np.array([np.median(left[data.y == digit]) for digit in range(10)])
    return float(np.abs(left - upright[data.y]).mean())
