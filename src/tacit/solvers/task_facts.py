"""What tells a convex task from another: a checkpoint of one is refused by the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.oracle import Task, checksum
from tacit.penalties import Penalty


def describe(task: Task) -> dict[str, Any]:
    """What tells a convex task from another."""
    return {
        "samples": task.oracle.n_samples,
        "weights in w": task.oracle.n_params,
        "rescaling": task.rescaling,
        "labels": checksum(task.target),
        "sample weights and C": checksum(task.weights),
        "penalty": describe_penalty(task.penalty, task.oracle.n_params),
        "features, labels and losses": task.oracle.digest(),
    }


def describe_penalty(penalty: Penalty, n_params: int) -> str:
    """What tells a penalty from another: its kind, and where it leads."""
    probe = np.linspace(0.5, 1.5, n_params)
    return f"{type(penalty).__name__} {checksum(penalty.primal(probe), np.array(penalty.value(probe)))}"
