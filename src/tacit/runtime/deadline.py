"""A limit of time for fits: a callback that says stop when it has passed."""

from __future__ import annotations

import time
from typing import Any

from tacit.data.parameters import is_positive, number


class Deadline:
    """A callback of any learner that ends the fit when its seconds have passed; the best model so far is kept.

    The seconds begin when it is made. Several fits may share one: what is left of the time is theirs together.

    Parameters
    ----------
    seconds : how long; None for ever

    >>> Deadline(None)("a line of a history"), Deadline(1e-9).has_passed()
    (False, True)
    """

    def __init__(self, seconds: float | None) -> None:
        limit = None if seconds is None else number("time_budget", seconds, "a number of seconds above 0", is_positive)
        self._end = None if limit is None else time.monotonic() + limit

    def has_passed(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def __call__(self, line: Any) -> bool:
        """True, which stops a fit, when the time has passed."""
        return self.has_passed()
