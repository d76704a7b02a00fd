"""Handwritten digits at an unknown turn: without a hidden value, with CCCP, self-paced."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tacit import plot
from tacit.arrays import Array
from tacit.learners import LatentSVM, StructuredSVM
from tacit.pacing import SelfPaced
from tacit.problems import Transforms, rotations

ANGLES, COMPONENTS, C, SHOWN = rotations(-60, 60, 11), 20, 100, 10


def turned_digits(folder: Path) -> str:
    """Digits, each turned by a random angle nobody notes down: without a hidden turn, by CCCP, self-paced.

    Writes two pictures, returns the table.
    """
    images, y = _turned()
    train, test, y_train, y_test = train_test_split(images, y, test_size=0.4, random_state=0, stratify=y)
    hidden_turn = Transforms(ANGLES, n_components=COMPONENTS)
    learners: dict[str, Any] = {
        "no hidden turn": StructuredSVM(Transforms(rotations(0, 0, 1), n_components=COMPONENTS), C=C),
        "hidden turn, CCCP": LatentSVM(hidden_turn, C=C, n_init=2),
        "hidden turn, self-paced": LatentSVM(hidden_turn, C=C, n_init=2, pace=SelfPaced()),
    }
    lines = [
        "",
        f"Digits at a hidden turn: {len(y_train)} to learn from, {len(y_test)} to test on. Each was turned by an angle",
        f"between −60° and 60° that nobody noted down. C = {C}, {len(ANGLES.states)} angles to choose from, "
        f"{COMPONENTS} principal components.",
        "",
        f"{'learner':<26}{'seconds':>9}{'objective':>11}{'training accuracy':>19}{'test accuracy':>15}",
    ]
    for name, model in learners.items():
        began = time.perf_counter()
        model.fit(train, y_train)
        seconds = time.perf_counter() - began
        lines.append(
            f"{name:<26}{seconds:>9.2f}{model.objective_:>11.2f}{model.score(train, y_train):>19.1%}"
            f"{model.score(test, y_test):>15.1%}"
        )
    best = learners["hidden turn, self-paced"]
    chosen = [int(np.flatnonzero(y_train == digit)[0]) for digit in range(SHOWN)]
    pictures = {
        "turns.png": plot.turned_images(train[chosen], best.hidden_[chosen], ANGLES),
        "mean_digits.png": plot.mean_images(train, y_train, best.hidden_, ANGLES),
    }
    lines.append("")
    for name, figure in pictures.items():
        figure.savefig(folder / name, dpi=130)
        plot.pyplot().close(figure)
        lines.append(f"Picture: {folder / name}")
    return "\n".join(lines)


def _turned() -> tuple[Array, Array]:
    digits = load_digits()
    angles = np.random.default_rng(0).uniform(-60, 60, len(digits.target))
    images = [rotate(image / 16, a, reshape=False, order=1) for image, a in zip(digits.images, angles, strict=True)]
    return np.array(images), digits.target
