"""Left links: every mention links to one earlier mention, or is new. Each oracle is an argmax per mention."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tacit.data.arrays import Array, Rows, locate
from tacit.oracle import Assignment
from tacit.oracle.capabilities import Expectations
from tacit.oracle.enumerable import one_coef_each
from tacit.runtime.blocks import Batch, join_arrays, join_tuples
from tacit.text.coreference import left_kernels
from tacit.text.coreference.oracle import LinkOracle

NOTHING = np.zeros(0, dtype=np.int64)


class LeftOracle(LinkOracle):
    """Inference over left links; a code is the slot of the chosen row among those of its mention, 0 for "new"."""

    link_kind = "left"
    batches: ClassVar[dict[str, Batch]] = {
        "link_posterior": Batch(join_arrays, ("w", "rows")),
        "likeliest_clusters": Batch(join_tuples, ("w", "rows")),
    }

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._best(w, rows, np.zeros(4), limit=self.packed.limit)

    def impute(self, w: Array, rows: Rows = None, prefer: Array | None = None) -> Assignment:
        self._clusters()
        bonus = np.array([0.0, -np.inf, -np.inf, -np.inf])
        wished = NOTHING if prefer is None else self.read_wishes(prefer, rows)
        return self._best(w, rows, bonus, known=self._known_links, prefer=wished)

    def _augmented(self, w: Array, rows: Rows) -> Assignment:
        self._clusters()
        return self._best(w, rows, self._kind_losses())

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        value = np.empty(self.documents(rows).size)
        code = self._read(code, rows)
        left_kernels.sum_chosen(*self.layout(rows), self.packed.table, self.base, self.padded(w), code, value)
        return value

    def loss(self, code: Array, rows: Rows = None) -> Array:
        self._clusters()
        chosen = self.packed.starts[self._places(rows)] + self._read(code, rows)
        return np.add.reduceat(self._kind_losses()[self.kind[chosen]], self._starts(rows)[:-1])

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        coef = one_coef_each(coef, self.documents(rows).size)
        out = np.zeros(self._weight_places[-1] + 1)
        code = self._read(code, rows)
        left_kernels.add_chosen(*self.layout(rows), self.packed.table, self.base, code, coef, out)
        return self.unpadded(out)

    def expectations(
        self,
        w: Array,
        rows: Rows = None,
        *,
        free: Any = None,
        label: Any = None,
        truth: Any = None,
        power: float = 1.0,
    ) -> Expectations:
        """See `tacit.oracle.capabilities.SumsOutputs`: a softmax per mention."""
        n = self.documents(rows).size
        asked = (free, label, truth)
        if label is not None or truth is not None:
            self._clusters()
        coef = np.array([np.broadcast_to(0.0 if c is None else np.asarray(c, dtype=float), n) for c in asked])
        out = np.zeros(self._weight_places[-1] + 1 if coef.any() else 0)
        log, scores = np.empty((3, n)), np.empty(int(self._full.max()))
        left_kernels.sum_rows(
            *self.layout(rows), self.packed.table, self.base, self.padded(w), self.kind, self._known_links,
            float(power), coef, log, out, scores,
        )  # fmt: skip
        free_log, label_log, truth_log = (None if c is None else own for c, own in zip(asked, log, strict=True))
        return Expectations(free_log, label_log, truth_log, self.unpadded(out) if out.size else None)

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ exp s over all left links of every document."""
        found = self.expectations(w, rows, free=0.0).free
        assert found is not None
        return found

    def link_posterior(self, w: Array, rows: Rows = None) -> Array:
        """The probability of every row of the documents: of each link, and of "new", under ``p ∝ exp s``."""
        size = int(np.sum(self._full[self._places(rows)]))
        out = np.empty(size)
        left_kernels.row_posteriors(
            *self.layout(rows), self.packed.limit, self.packed.table, self.base, self.padded(w), out
        )
        return out

    def likeliest_clusters(self, w: Array, rows: Rows = None) -> Assignment:
        """See `tacit.oracle.capabilities.SumsParts`: each mention in turn joins the cluster that is likeliest, the
        probabilities of its links to that cluster added up; the best of them is the link."""
        code, value = np.empty(self._starts(rows)[-1], np.int64), np.empty(self.documents(rows).size)
        left_kernels.likeliest_rows(
            *self.layout(rows), self.packed.limit, self.packed.table, self.base, self.padded(w),
            np.empty(int(self._full.max())), code, value,
        )  # fmt: skip
        return Assignment(code.astype(self._code_type), value)

    def draw(self, rng: np.random.Generator) -> Array:
        """Right links at random; those that are known stay."""
        self._clusters()
        chance = np.where(self.kind == 0, rng.random(self.kind.size), -1.0)
        return self._with_known(self._first_at(chance, np.maximum.reduceat(chance, self.packed.starts[:-1])))

    def proposals(self, most: int) -> list[Array]:
        """One start: every mention links to the closest mention of its cluster."""
        self._clusters()
        near = np.where(self.kind == 0, self.packed.table[:, 1].astype(np.int64), -1)
        return [self._with_known(self._first_at(near, np.maximum.reduceat(near, self.packed.starts[:-1])))][:most]

    def _first_at(self, values: Array, tops: Array) -> Array:
        """The first slot of every mention that has its top value."""
        hits = np.flatnonzero(values == np.repeat(tops, self._full))
        owner = np.repeat(np.arange(tops.size), self._full)[hits]
        first = np.unique(owner, return_index=True)[1]
        return np.asarray(hits[first] - self.packed.starts[:-1])

    def _best(
        self,
        w: Array,
        rows: Rows,
        bonus: Array,
        *,
        limit: Array | None = None,
        known: Array = NOTHING,
        prefer: Array = NOTHING,
    ) -> Assignment:
        code, value = np.empty(self._starts(rows)[-1], np.int64), np.empty(self.documents(rows).size)
        left_kernels.best_rows(
            *self.layout(rows), self._full if limit is None else limit, self.packed.table, self.base, self.padded(w),
            self.kind, bonus, known, prefer, code, value,
        )  # fmt: skip
        return Assignment(code.astype(self._code_type), value)

    def _kind_losses(self) -> Array:
        """The loss by kind of row."""
        return np.array([0.0, *self.costs])

    def _count_values(self) -> int:
        return int(self._full.max())

    def _most(self, rows: Rows) -> Array:
        return np.asarray(self._full[self._places(rows)])

    def _parents(self, code: Array, rows: Rows) -> Array:
        rows_chosen = self.packed.starts[self._places(rows)] + code
        return np.asarray(self.packed.table[rows_chosen, 1], dtype=np.int64)

    def _code(self, parents: Array, rows: Rows) -> Array:
        slots = self.slots_of(self._own(rows), parents, rows)
        wrong = np.flatnonzero(slots < 0)
        if wrong.size:
            i, m = locate(self._starts(rows), int(wrong[0]))
            raise ValueError(
                f"mention {m} of document {i} cannot link to {parents[wrong[0]]}: left links go to an earlier mention "
                "that is among the candidates, or to the mention itself if it is new"
            )
        return slots.astype(self._code_type)

    def _read_known(self, links: Array | None) -> Array:
        if links is None or not (links >= 0).any():
            return NOTHING
        slots = np.where(links >= 0, self._code(np.where(links < 0, self._own(None), links), None), -1)
        chosen = self.packed.starts[:-1] + np.maximum(slots, 0)
        wrong = np.flatnonzero((slots >= 0) & (self.kind[chosen] != 0))
        if wrong.size and self._labels is not None:
            i, m = locate(self.offsets, int(wrong[0]))
            raise ValueError(
                f"hidden[{i}][{m}] is {links[wrong[0]]}, which contradicts the clusters y[{i}]; correct one"
            )
        return slots
