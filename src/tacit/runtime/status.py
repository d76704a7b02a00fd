"""Why something iterative stopped."""

from __future__ import annotations

import enum


class Status(enum.Enum):
    """Why a solver or a learner stopped."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    STALLED = "stalled"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
