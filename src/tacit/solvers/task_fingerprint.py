"""The fingerprint of a convex task: a checkpoint is resumed only by a task with the same one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.oracle import Task, checksum
from tacit.penalties import Penalty


def fingerprint_task(task: Task) -> dict[str, Any]:
    """What tells this task from others, by name."""
    return {
        "samples": task.oracle.n_samples,
        "weights in w": task.oracle.n_params,
        "rescaling": task.rescaling,
        "labels": checksum(task.target),
        "sample weights and C": checksum(task.weights),
        "penalty": fingerprint_penalty(task.penalty, task.oracle.n_params),
        "features, labels and losses": task.oracle.digest(),
    }


def fingerprint_penalty(penalty: Penalty, n_params: int) -> str:
    """What tells this penalty from others: its class, and its value and minimiser at a test point."""
    probe = np.linspace(0.5, 1.5, n_params)
    if not penalty.is_quadratic:
        penalty = penalty.near(np.zeros(n_params), 1.0)
        probe = 10 * probe
    return f"{type(penalty).__name__} {checksum(penalty.primal(probe), np.array(penalty.value(probe)))}"
