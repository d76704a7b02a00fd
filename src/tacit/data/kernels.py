"""Compiled kernels: plain functions on flat arrays, compiled by Numba at their first call, never at import.

Numba takes 0.4 s to import, so ``@kernel`` waits until somebody calls. Compiled code releases the interpreter
lock and is cached on disk.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class kernel(Generic[P, R]):
    """Compile the decorated function with ``numba.njit(nogil=True, cache=True)`` when it is first called.

    >>> @kernel
    ... def double(x: float) -> float:
    ...     return 2 * x
    >>> double.plain(2.0)
    4.0
    """

    def __init__(self, plain: Callable[P, R]) -> None:
        functools.update_wrapper(self, plain)
        self.plain = plain
        self._compiled: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        compiled = self._compiled or self.compile()
        return compiled(*args, **kwargs)

    def compile(self) -> Callable[P, R]:
        """The compiled function."""
        if self._compiled is None:
            import numba

            self._compiled = numba.njit(nogil=True, cache=True)(self.plain)
        return self._compiled
