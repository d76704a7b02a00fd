"""Calls of a user's functions, compared with the truth, and the oracle of `PerSample` without a list of outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, span
from tacit.data.parameters import shorten
from tacit.oracle import TARGET, Assignment, CapabilityError, Oracle
from tacit.oracle.cells import one_coef_each
from tacit.oracle.known_hidden import AnyOf
from tacit.problems.per_sample.user_functions import (
    Cost,
    Output,
    OutputTable,
    UserFunctions,
    as_column,
    as_samples,
    is_unknown,
    key_of,
)

ROUNDING = 1e-6
"""How far below the truth's value an answer may be, as a share of ‖w‖·‖Ψ‖: the user may compute in single precision."""

BLOCKS = 32
"""Features are summed in this many blocks of samples, so that a sum does not depend on how many workers share them."""

MAX_PROBED = 20
"""Samples on which functions are tried before a fit."""


class Bound(NamedTuple):
    """Data bound by `PerSample`: what both oracles are built from, as a whole or for a part of the samples."""

    functions: UserFunctions
    samples: list[Any]
    labels: list[Any] | None
    hidden: list[Any] | None
    classes: Array  # empty where labels are not single values
    memory: float
    first: int = 0
    n_labels: int | None = None
    approximate: bool = False

    def part(self, first: int, last: int) -> Bound:
        """The samples from first to last (exclusive)."""

        def cut(values: list[Any] | None) -> Any:
            return None if values is None else values[first:last]

        return self._replace(
            functions=UserFunctions(self.functions.functions, self.functions.hidden, self.functions.n_params),
            samples=self.samples[first:last],
            labels=cut(self.labels),
            hidden=cut(self.hidden),
            memory=self.memory * (last - first) / len(self.samples),
            first=self.first + first,
        )


class FunctionCalls:
    """What both oracles share: calls of the user's functions, row by row, and a comparison with the truth.

    A subclass knows codes: `_code(name, i, output)` and `_entries(code, rows)`, and has ``_truth``, the code of every
    true output, −1 where its hidden value is unknown.
    """

    code_offsets: Array | None = None
    completes_labels = False
    n_samples: int
    n_params: int
    _bound: Bound
    _table: OutputTable
    _truth: Array
    _code_type: Any

    def _code(self, name: str, i: int, output: Output) -> int:
        raise NotImplementedError

    def _entries(self, code: Array, rows: Rows) -> Array:
        raise NotImplementedError

    def costs(self) -> dict[str, Cost]:
        """Calls of each of the user's functions so far in this process, and microseconds per call."""
        return self._bound.functions.costs()

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        return self._table.scores(w, self._entries(code, rows))

    def loss(self, code: Array, rows: Rows = None) -> Array:
        return self._table.losses(self._entries(code, rows))

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        entries = self._entries(code, rows)
        return self._table.sum(entries, one_coef_each(coef, entries.size))

    def exact(self) -> Self:
        return self

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        """The code of outputs as the user writes them."""
        indices = self._indices(rows).tolist()
        labels = as_samples(labels, "labels")
        values = [None] * len(labels) if hidden is None else as_samples(hidden, "hidden")
        if len(labels) != len(indices) or len(values) != len(indices):
            found = f"{len(labels)} labels and {len(values)} hidden values"
            raise ValueError(f"{len(indices)} samples need as many labels and hidden values, got {found}")
        has_hidden = self._bound.functions.hidden
        if has_hidden and any(h is None for h in values):
            raise ValueError(
                f"only complete outputs have a code: hidden[{values.index(None)}] is unknown; give hidden="
            )
        outputs = [(y, h if has_hidden else None) for y, h in zip(labels, values, strict=True)]
        codes = [self._code("encode", i, output) for i, output in zip(indices, outputs, strict=True)]
        return np.array(codes, dtype=self._code_type)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Array | None]:
        outputs = [self._table.outputs[e] for e in self._entries(np.asarray(code), rows).tolist()]
        hidden = as_column([h for _, h in outputs]) if self._bound.functions.hidden else None
        return as_column([y for y, _ in outputs]), hidden

    def block_starts(self) -> Array:
        """Where the blocks begin in which features are summed, and where the last ends."""
        return np.unique(np.linspace(0, self.n_samples, BLOCKS + 1).astype(np.int64))

    def _indices(self, rows: Rows) -> Array:
        if rows is None or isinstance(rows, slice):
            return np.arange(*span(rows or slice(None), self.n_samples))
        return np.asarray(rows)

    def _read_only(self, w: Array) -> Array:
        """A view of w for the user's functions, in which writing is an error."""
        if np.shape(w) != (self.n_params,):
            raise ValueError(f"w must have the shape ({self.n_params},) of joint features, got {np.shape(w)}")
        view = np.asarray(w, dtype=np.float64).view()
        view.flags.writeable = False
        return view

    def _known_truth(self) -> list[Any]:
        if self._bound.labels is None:
            raise ValueError("imputing and comparing need labels: call bind(X, y, ...) with y")
        return self._bound.labels

    def _call_argmax(self, w: Array, rows: Rows) -> Assignment:
        functions, samples, first, w = self._bound.functions, self._bound.samples, self._bound.first, self._read_only(w)
        rows_ = self._indices(rows)
        code = [self._code("argmax", i, functions.argmax(first + i, samples[i], w)) for i in rows_.tolist()]
        return self._check_answer("argmax", w, np.array(code, np.int32), rows, augmented=False)

    def _call_augmented(self, w: Array, rows: Rows) -> Assignment:
        functions, samples, first, w = self._bound.functions, self._bound.samples, self._bound.first, self._read_only(w)
        truth = self._known_truth()
        rows_ = self._indices(rows)
        answers = ((i, functions.predict_augmented(first + i, samples[i], truth[i], w)) for i in rows_.tolist())
        code = [self._code("augmented", i, output) for i, output in answers]
        return self._check_answer("augmented", w, np.array(code, np.int32), rows, augmented=True)

    def _call_impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        functions, samples, first, w = self._bound.functions, self._bound.samples, self._bound.first, self._read_only(w)
        truth = self._known_truth()
        rows_ = self._indices(rows)
        code = self._truth[rows_].astype(np.int32)
        for k in np.flatnonzero(code < 0):
            i = int(rows_[k])
            h = functions.impute(first + i, samples[i], truth[i], w)
            code[k] = self._code("impute", i, (truth[i], h))
        value = self.score(w, code, rows)
        if prefer is None:
            return Assignment(code, value)
        preferred = self._valid_preferences(np.asarray(prefer), code, rows_)
        wanted = self.score(w, preferred, rows)
        self._refuse_worse("impute", w, code, value, preferred, wanted, rows, "the previous hidden value")
        kept = wanted >= value
        return Assignment(np.where(kept, preferred, code), np.where(kept, wanted, value))

    def _valid_preferences(self, prefer: Array, code: Array, rows: Array) -> Array:
        """The preferred codes where they have the true label and its hidden value is unknown, else ``code``."""
        truth = self._known_truth()
        if prefer.shape != code.shape:
            raise ValueError(f"prefer must have one code per sample, {code.size} in all, got the shape {prefer.shape}")
        usable = np.where(prefer == TARGET, code, prefer)
        entries = self._entries(usable, rows).tolist()
        outputs = self._table.outputs
        own = [key_of(outputs[e][0]) == key_of(truth[i]) for e, i in zip(entries, rows.tolist(), strict=True)]
        return np.where(np.array(own, bool) & (self._truth[rows] < 0), usable, code).astype(np.int32)

    def _check_answer(self, name: str, w: Array, code: Array, rows: Rows, augmented: bool) -> Assignment:
        """The answer with its value; refused if the truth has a higher one."""
        value = self.score(w, code, rows)
        if augmented:
            value = value + self.loss(code, rows)
        truth = self._truth[self._indices(rows)]
        if (truth >= 0).any():
            usable = np.where(truth >= 0, truth, code)
            wanted = np.where(truth >= 0, self.score(w, usable, rows), -np.inf)  # the loss of the truth is 0
            self._refuse_worse(name, w, code, value, usable, wanted, rows, "the truth")
        return Assignment(code, value)

    def _refuse_worse(
        self, name: str, w: Array, code: Array, value: Array, other: Array, wanted: Array, rows: Rows, what: str
    ) -> None:
        worse = np.flatnonzero(value < wanted)
        if not worse.size:
            return
        mine, theirs = self._entries(code, rows), self._entries(other, rows)
        room = ROUNDING * np.linalg.norm(w) * (self._table.norms(mine[worse]) + self._table.norms(theirs[worse]))
        worse = worse[value[worse] < wanted[worse] - room]
        if not worse.size:
            return
        k = int(worse[0])
        returned, better = (self._bound.functions.name(*self._table.outputs[e]) for e in (mine[k], theirs[k]))
        measure = "score plus loss" if name == "augmented" else "score"
        raise ValueError(
            f"{name} of sample {self._bound.first + int(self._indices(rows)[k])} returned {returned}, whose {measure} "
            f"{value[k]:.6g} is below the {wanted[k]:.6g} of {what}, {better}; {name} must return an output of the "
            f"highest {measure}, where the score is w @ joint_feature(...)"
        )

    def _refuse_costly_truth(self) -> None:
        """Refuse a loss of the truth that is not 0."""
        known, bound = np.flatnonzero(self._truth >= 0), self._bound
        losses = self.loss(self._truth[known], known) if known.size else np.zeros(0)
        wrong = np.flatnonzero(losses != 0)
        if wrong.size:
            i = int(known[wrong[0]])
            h = None if bound.hidden is None else bound.hidden[i]
            name = bound.functions.name(self._known_truth()[i], h)
            raise ValueError(
                f"loss of sample {bound.first + i} is {losses[wrong[0]]:g} for its true label {name}, not 0"
            )


class NewOutput(NamedTuple):
    """An output that a process saw for the first time: its sample, code and loss."""

    sample: int
    code: int
    output: Output
    loss: float | None


class CalledOracle(FunctionCalls):
    """Outputs as the user's functions return them, numbered for each sample in the order in which they are seen.

    O(n) calls of a user's function per pass, and one of `joint_feature` for every output that was never seen.
    """

    rescalings: tuple[str, ...] = ("margin",)
    slack_obstacle = "its function augmented= cannot scale the loss; give PerSample outputs= for enumeration"
    _code_type = np.int32

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
                    f"hidden[{bound.first + i}] is {shorten(h)}: a set of hidden values needs PerSample(outputs=...); "
                    "list all outputs, or give -1 for unknown"
                )
            if not bound.functions.hidden or not is_unknown(h):
                self._truth[i] = self._code("y", i, (label, h))
        self._refuse_costly_truth()

    @property
    def remedy(self) -> str:
        """Which parameters provide what is missing."""
        own = [f"{method.__name__.removeprefix('predict_')}=" for method in self.lacks]
        return f"give PerSample {' and '.join(own)}{', or ' if own else ''}outputs= for enumeration"

    @property
    def lacks(self) -> list[Callable[..., Any]]:
        """`augmented` is offered where the user gave the function; `impute` also where there is nothing to impute."""
        functions = self._bound.functions
        is_open = self._bound.labels is not None and self.hidden_unknown().size > 0
        lacks: list[Callable[..., Any]] = [] if "augmented" in functions else [Oracle.predict_augmented]
        return [*lacks, Oracle.impute] if is_open and "impute" not in functions else lacks

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        if Oracle.impute in self.lacks:
            raise CapabilityError("PerSample cannot impute hidden values: give impute=, outputs=, or all hidden values")
        return self._call_impute(w, rows, prefer)

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._call_argmax(w, rows)

    def predict_augmented(
        self, w: Array, rows: Rows = None, *, target: Codes = None, rescaling: str = "margin", rivals: bool = False
    ) -> Assignment:
        if "augmented" not in self._bound.functions:
            raise CapabilityError("PerSample lacks loss-augmented inference: give augmented= or outputs=")
        if rescaling != "margin" or rivals:
            what = "leaving out the true label" if rivals else f"rescaling={shorten(rescaling)}"
            raise ValueError(f"{what} needs the list of outputs: give PerSample outputs=")
        return self._call_augmented(w, rows)

    def probe(self) -> None:
        """Try the user's functions on a few samples at a few small weights, before a fit relies on them.

        Outputs returned at one w are compared at all others, which finds an `augmented` that forgets the loss or does
        not maximise. Weights are small, so that losses matter.
        """
        if self._bound.approximate or self._bound.labels is None or Oracle.predict_augmented in self.lacks:
            return
        rows = np.unique(np.linspace(0, self.n_samples - 1, min(MAX_PROBED, self.n_samples)).astype(np.int64))
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
                self._refuse_worse("augmented", w, code, value, other, wanted, rows, "another output")

    def accepts(self, code: Array) -> bool:
        code = np.asarray(code)
        if code.shape != (self.n_samples,) or code.dtype.kind != "i":
            return False
        return bool(((code >= TARGET) & (code < [len(seen) for seen in self._seen])).all())

    def with_hidden(self, hidden: Any) -> CalledOracle:
        """The same data with these hidden values given (None: unknown); outputs get new numbers."""
        return CalledOracle(self._bound._replace(hidden=None if hidden is None else list(hidden)))

    def hidden_unknown(self) -> Array:
        return np.flatnonzero(self._truth < 0) if self._bound.functions.hidden else np.zeros(0, np.int64)

    def outputs_since(self, since: int) -> tuple[list[NewOutput], int]:
        """Outputs first seen after the first ``since``, and how many there are now."""
        table = self._table
        with table.lock:
            owners, outputs = table.owners[since:], table.outputs[since:]
            new = np.arange(since, len(table.owners))
            losses = table.losses(new).tolist() if table.labels else [None] * len(owners)
            entries = zip(owners, outputs, losses, strict=True)
            found = [NewOutput(i, self._code("outputs_since", i, output), output, loss) for i, output, loss in entries]
            return found, len(table.owners)

    def register_outputs(self, found: Sequence[NewOutput], shift: int = 0) -> None:
        """Give outputs that another process saw first the same numbers as there."""
        for i, code, output, loss in found:
            if self._code("register_outputs", i + shift, output, loss) != code:
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
        seen, indices = self._seen, self._indices(rows)
        if code.size and code.min() < 0:
            raise ValueError(f"code[{np.argmin(code)}] is {code.min()}: replace TARGET by the target's own code")
        if code.shape != indices.shape:
            raise ValueError(f"code must have one entry per sample, {indices.size} in all, got the shape {code.shape}")
        pairs = list(zip(indices.tolist(), code.tolist(), strict=True))
        if any(c >= len(seen[i]) for i, c in pairs):
            raise ValueError("code has an output that this oracle has not seen; encode it with this oracle")
        return np.array([seen[i][c] for i, c in pairs], dtype=np.int64)
