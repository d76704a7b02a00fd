"""The oracle of `PerSample` without a list of outputs: it knows what the user's functions return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, Rows
from tacit.data.parameters import shorten
from tacit.oracle import TARGET, Assignment, CapabilityError, Oracle
from tacit.oracle.known_hidden import AnyOf
from tacit.problems.per_sample.function_calls import (
    Bound,
    FunctionCalls,
    columns_of,
    pairs_of,
    refuse_costly_truth,
    unknown,
)
from tacit.problems.per_sample.output_table import OutputTable
from tacit.problems.per_sample.user_functions import Output, key_of

PROBED = 20
"""Samples on which functions are tried before a fit."""


class News(NamedTuple):
    """An output that a process met for the first time: its sample, code and loss."""

    sample: int
    code: int
    output: Output
    loss: float | None


class CalledOracle(FunctionCalls):
    """Outputs as the user's functions return them, numbered for each sample in the order in which they are seen.

    O(n) calls of a user's function per pass, and one of `joint_feature` for every output that was never seen.
    """

    rescalings: tuple[str, ...] = ("margin",)

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self.n_samples = len(bound.samples)
        self.n_params = bound.functions.n_params or 0
        self._table = OutputTable(bound.functions, bound.samples, bound.labels, bound.memory, bound.first)
        self._codes: list[dict[Any, int]] = [{} for _ in range(self.n_samples)]
        self._seen: list[list[int]] = [[] for _ in range(self.n_samples)]
        self._truth = np.full(self.n_samples, -1, np.int32)
        for i, label in enumerate(bound.labels or ()):
            h = None if bound.hidden is None else bound.hidden[i]
            if isinstance(h, AnyOf):
                raise ValueError(
                    f"hidden[{bound.first + i}] is {shorten(h)}, and a function cannot be told to choose among a few "
                    "hidden values: give PerSample outputs=, the list of all, or -1 for unknown"
                )
            if not bound.functions.hidden or not unknown(h):
                self._truth[i] = self._code("y", i, (label, h))
        refuse_costly_truth(self, np.flatnonzero(self._truth >= 0))

    @property
    def remedy(self) -> str:
        """What to give for what is missing."""
        own = [f"{method.__name__}=" for method in self.lacks]
        return f"give PerSample {' and '.join(own)}{', or ' if own else ''}outputs=, and it is found by enumeration"

    @property
    def lacks(self) -> list[Callable[..., Any]]:
        """`augmented` is offered where the user gave the function; `impute` also where there is nothing to impute."""
        functions = self._bound.functions
        is_open = self._bound.labels is not None and self.hidden_unknown().size > 0
        lacks: list[Callable[..., Any]] = [] if "augmented" in functions else [Oracle.augmented]
        return [*lacks, Oracle.impute] if is_open and "impute" not in functions else lacks

    def impute(self, w: Array, rows: Rows = None, prefer: Array | None = None) -> Assignment:
        if Oracle.impute in self.lacks:
            raise CapabilityError(
                "PerSample cannot impute hidden values: give impute=, outputs= to derive it, or all hidden values"
            )
        return self._call_impute(w, rows, prefer)

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._call_argmax(w, rows)

    def augmented(
        self,
        w: Array,
        rows: Rows = None,
        *,
        target: Array | None = None,
        rescaling: str = "margin",
        rivals: bool = False,
    ) -> Assignment:
        if "augmented" not in self._bound.functions:
            raise CapabilityError("PerSample knows no loss-augmented argmax: give augmented=, or outputs= to derive it")
        if rescaling != "margin" or rivals:
            what = "leaving out the true label" if rivals else f"rescaling={shorten(rescaling)}"
            raise ValueError(f"{what} needs the list of outputs: give PerSample outputs=")
        return self._call_augmented(w, rows)

    def probe(self) -> None:
        """Try the user's functions on a few samples at a few small weights, before a fit relies on them.

        What a function returned for one w competes at all others, so an `augmented` that forgets the loss, or returns
        anything but the best, is found out. Small weights, because there losses count.
        """
        if self._bound.approximate or self._bound.labels is None or Oracle.augmented in self.lacks:
            return
        rows = np.unique(np.linspace(0, self.n_samples - 1, min(PROBED, self.n_samples)).astype(np.int64))
        rows = rows[self._truth[rows] >= 0]
        if not rows.size:
            return
        size = max(float(self._table.norms(self._entries(self._truth[rows], rows)).mean()), 1e-300)
        rng = np.random.default_rng(0)
        trials = [scale / size * rng.standard_normal(self.n_params) for scale in (0.0, 0.01, 0.1, 1.0, 1.0)]
        answers = [self._call_augmented(w, rows).code for w in trials]
        others = [*answers, *(self._call_argmax(w, rows).code for w in trials)]
        for w, code in zip(trials, answers, strict=True):
            value = self.score(w, code, rows) + self.loss(code, rows)
            for other in others:
                wanted = self.score(w, other, rows) + self.loss(other, rows)
                self._refuse("augmented", w, code, value, other, wanted, rows, "an output that it could have returned")

    def accepts(self, code: Array) -> bool:
        code = np.asarray(code)
        if code.shape != (self.n_samples,) or code.dtype.kind != "i":
            return False
        return bool(((code >= TARGET) & (code < [len(seen) for seen in self._seen])).all())

    def with_hidden(self, hidden: Any) -> CalledOracle:
        """The same data with these hidden values given (None: unknown); outputs are numbered anew."""
        return CalledOracle(self._bound._replace(hidden=None if hidden is None else list(hidden)))

    def hidden_unknown(self) -> Array:
        return np.flatnonzero(self._truth < 0) if self._bound.functions.hidden else np.zeros(0, np.int64)

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        return np.array([self._code("encode", *pair) for pair in pairs_of(self, labels, hidden, rows)], dtype=np.int32)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array | None]:
        return columns_of(self._table, self._entries(np.asarray(code), rows), self._bound.functions.hidden)

    def news(self, since: int) -> tuple[list[News], int]:
        """Outputs first seen after the first ``since``, and how many there are now."""
        table = self._table
        with table.lock:
            owners, outputs = table.owners[since:], table.outputs[since:]
            losses = (
                table.losses(np.arange(since, len(table.owners))).tolist() if table.labels else [None] * len(owners)
            )
            told = zip(owners, outputs, losses, strict=True)
            return [News(i, self._code("news", i, output), output, loss) for i, output, loss in told], len(table.owners)

    def learn(self, news: Sequence[News], shift: int = 0) -> None:
        """Number outputs that another process saw first, as it did."""
        for i, code, output, loss in news:
            if self._code("learn", i + shift, output, loss) != code:
                raise RuntimeError(f"processes number the outputs of sample {i + shift} differently; use n_jobs=1")

    def recipe(self, first: int, last: int) -> Any:
        """How another process builds the same oracle for some of the samples."""
        return partial(CalledOracle, self._bound.part(first, last))

    runs_python = True
    """Passes call Python functions, which hold the interpreter lock: processes, not threads."""

    def _code(self, name: str, i: int, output: Output, loss: float | None = None) -> int:
        key = (key_of(output[0]), key_of(output[1]))
        code = self._codes[i].get(key)
        if code is not None:
            return code
        with self._table.lock:
            if key not in self._codes[i]:
                self._seen[i].append(self._table.add(i, [output], None if loss is None else [loss]))
                self._codes[i][key] = len(self._seen[i]) - 1
            return self._codes[i][key]

    def _entries(self, code: Array, rows: Rows) -> Array:
        seen = self._seen
        if code.size and code.min() < 0:
            raise ValueError(f"code[{np.argmin(code)}] is {code.min()}: replace TARGET by the target's own code")
        indices = self._indices(rows)
        if code.shape != indices.shape or any(
            c >= len(seen[i]) for i, c in zip(indices.tolist(), code.tolist(), strict=True)
        ):
            raise ValueError(f"a code of shape {code.shape} for {indices.size} samples, or of outputs never seen")
        pairs = zip(indices.tolist(), code.tolist(), strict=True)
        return np.array([seen[i][c] for i, c in pairs], dtype=np.int64)
