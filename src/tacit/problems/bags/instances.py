"""A hidden label per instance: the oracle of mi-SVM and of the noisy-or model.

A code has one integer per instance: 0 for the background, or the position of the bag's class among the classes. So a
code without a positive instance is a bag of the background.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, logsumexp

from tacit.data.arrays import Array, Codes, Rows, checksum
from tacit.data.kernels import kernel
from tacit.data.labels import find_labels, is_missing
from tacit.data.parameters import entries, even_table, is_list, is_whole, shorten
from tacit.oracle import Assignment, LossTable, Schema
from tacit.oracle.capabilities import Expectations, GivesEntropySlacks, KnownPart, SumsOutputs
from tacit.oracle.cells import label_positions, one_coef_each, spread_coefficients
from tacit.oracle.listed_labels import ListsLabels
from tacit.oracle.losses import check_losses
from tacit.oracle.parts import Nouns
from tacit.problems.bags.witness import foreground


class Bounds(NamedTuple):
    """The least and the largest number of positive instances of every bag that is not background."""

    low: Array
    high: Array


class InstancesOracle(ListsLabels):
    """``s(y, h) = Σ_{j ∈ h} (w_y·x_j + b_y)`` over the positive instances h; the background has none, and score 0.

    The best h of a class are the instances of positive score, found by sorting where their number is bounded. Without
    bounds the sum over all h but the empty set has a closed form, ``Π_j (1 + exp s_j) − 1``. O(rows·K·d) per pass.

    Parameters
    ----------
    table, offsets : the instances, dense, CSR or a `Table`, and how they are cut into bags
    schema : classes, the background first, and a weight block for each of the others
    bounds : of the number of positive instances
    labels : (n,) positions of the true labels, the number of classes for one never seen; None when predicting
    losses : by label
    known : (rows,) 1 for instances known to be positive, 0 for those known not to be, −1 for others
    """

    nouns = Nouns("Bags", "bags", "instance")
    labels_parts = False

    def __init__(
        self,
        table: Any,
        schema: Schema,
        offsets: Array,
        *,
        bounds: Bounds,
        labels: Array | None = None,
        losses: LossTable | None = None,
        known: Array | None = None,
    ) -> None:
        self._foreground = foreground(table, schema, offsets)
        n, k = offsets.size - 1, len(schema.classes)
        checked = None if losses is None else check_losses(losses, k, n, n)
        super().__init__(schema, offsets, k, labels=labels, losses=checked, precision=self._foreground._precision)
        self.n_states = k
        self.bounds = bounds
        self._known = np.full(int(offsets[-1]), -1, dtype=np.int8) if known is None else known

    @property
    def table(self) -> Any:
        """The instances, dense or CSR."""
        return self._foreground.table

    @property
    def lacks(self) -> tuple[type, ...]:
        """Capabilities that are missing: sums, where the number of positive instances is bounded."""
        return super().lacks if self._has_sums else (*super().lacks, SumsOutputs, GivesEntropySlacks)

    @property
    def remedy(self) -> str:
        """What to use where sums are missing."""
        return "leave out min_share and max_share, or use tacit.LatentSVM, which needs maxima alone"

    @property
    def _has_sums(self) -> bool:
        return bool((self.bounds.low == 1).all() and (self.bounds.high == np.diff(self.offsets)).all())

    # maximise

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        scores, labels, starts = self._scores(w, rows), self._true_labels(rows), self._starts(rows)
        own = self._of_label(scores, labels, starts)
        known = self._known[self._positions(rows)]
        chosen, value = self._choose(own, known, rows)
        each = np.repeat(labels, np.diff(starts))
        code, value = np.where(chosen == 1, each, 0), np.where(labels == 0, 0.0, value)
        if prefer is not None:
            wished = self._read(np.maximum(np.asarray(prefer), 0), rows)
            agrees = (np.asarray(prefer) >= 0) & ((wished == 0) | (wished == each))
            agrees &= (known < 0) | ((wished > 0) == (known == 1)) | (each == 0)
            fits = np.logical_and.reduceat(agrees, starts[:-1]) & self._fits(wished, labels, rows)
            fits &= np.add.reduceat(np.where(wished > 0, own, 0.0), starts[:-1]) >= value
            code = np.where(np.repeat(fits, np.diff(starts)), wished, code)
        return Assignment(code.astype(self._code_type), value)

    def best_under(self, w: Array, labels: Array, rows: Rows = None) -> Assignment:
        scores, choose = self._search(w, rows)
        positions = label_positions(labels, len(scores), self.n_labels)
        return Assignment(choose(positions), scores[np.arange(len(scores)), positions])

    def draw(self, rng: np.random.Generator) -> Array:
        """The true labels with random instances; known ones stay."""
        chosen, _ = self._choose(rng.standard_normal(int(self.offsets[-1])), self._known, None)
        labels: Array = np.repeat(self._true_labels(None), np.diff(self.offsets))
        return np.asarray((chosen * labels).astype(self._code_type))

    # sum

    def expectations(
        self,
        w: Array,
        rows: Rows = None,
        *,
        free: Any = None,
        label: Any = None,
        truth: Any = None,
        power: float = 1.0,
        augmented: bool = False,
    ) -> Expectations:
        """See `tacit.oracle.capabilities.SumsOutputs`."""
        starts = self._starts(rows)
        n, sizes = starts.size - 1, np.diff(starts)
        coefs, has_features = spread_coefficients(n, free, label, truth)
        scores = power * self._scores(w, rows)
        sums = self._sums(scores, None, rows)
        V = np.zeros(scores.shape)
        logs: list[Array | None] = [None, None, None]
        if coefs[0] is not None:
            table = np.stack([np.zeros(n), *(log for log, _ in sums)])
            if augmented:
                table = table + power * self._label_losses(rows).T
            logs[0] = total = logsumexp(table, axis=0)
            for k, (_, share) in enumerate(sums):
                V[k] += np.repeat(coefs[0] * np.exp(table[k + 1] - total), sizes) * share
        if coefs[1] is not None or coefs[2] is not None:
            labels = self._true_labels(rows)
            known = self._take_known(rows)
            given = sums if coefs[2] is None or known is None else self._sums(scores, known, rows)
            for which, found in ((1, sums), (2, given)):
                coef = coefs[which]
                if coef is None:
                    continue
                total = np.zeros(n)
                for k, (log, share) in enumerate(found):
                    own = labels == k + 1
                    total = np.where(own, log, total)
                    V[k] += np.repeat(np.where(own, coef, 0.0), sizes) * share
                logs[which] = total
        features = self._adjoint(V, rows) if has_features else None
        return Expectations(logs[0], logs[1], logs[2], features)

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ exp s over all outputs of every row."""
        return np.asarray(self.expectations(w, rows, free=0.0).free)

    def _sums(self, scores: Array, known: Array | None, rows: Rows) -> list[tuple[Array, Array]]:
        """`_sum` of every class but the background."""
        return [self._sum(own, known, rows) for own in scores]

    def _sum(self, s: Array, known: Array | None, rows: Rows) -> tuple[Array, Array]:
        """``log Σ_h exp s(h)`` per bag, h not empty, and the probability that an instance is in h."""
        firsts, sizes = self._starts(rows)[:-1], np.diff(self._starts(rows))
        is_open = np.ones(s.size, dtype=bool) if known is None else known < 0
        soft = np.where(is_open, np.logaddexp(0.0, s), 0.0)
        given = np.zeros_like(s) if known is None else np.where(known == 1, s, 0.0)
        total = np.add.reduceat(soft, firsts)
        with np.errstate(divide="ignore"):
            # log log(1 + exp s) is s where exp s is below rounding
            fine = np.where(s < -30, s, np.log(np.logaddexp(0.0, np.maximum(s, -30.0))))
        fine = np.where(is_open, fine, -np.inf)
        top = np.maximum.reduceat(fine, firsts)
        top = np.where(np.isfinite(top), top, 0.0)
        log_total = top + np.log(np.add.reduceat(np.exp(fine - np.repeat(top, sizes)), firsts).clip(1e-300))
        with np.errstate(divide="ignore"):
            not_empty = np.where(total < 1e-8, log_total, np.log(-np.expm1(-np.maximum(total, 1e-8))))
        if known is not None:  # with an instance that is known to be positive, h is never empty
            not_empty = np.where(np.logical_or.reduceat(known == 1, firsts), 0.0, not_empty)
        log_share = -np.logaddexp(0.0, -s) - np.repeat(not_empty, sizes)
        share = np.exp(np.minimum(log_share, 0.0))
        if known is not None:
            share = np.where(is_open, share, known == 1)
        return total + not_empty + np.add.reduceat(given, firsts), share

    def _scores_by_label(
        self, w: Array, rows: Rows, known: Array | None, power: float = np.inf, is_mean: bool = False
    ) -> Array:
        if not np.isinf(power) and not self._has_sums:
            raise ValueError(f"choices of instances cannot be summed over with bounds; {self.remedy}")
        firsts = self._starts(rows)[:-1]
        columns = [np.zeros(firsts.size)]
        for s, given in zip(self._scores(w, rows), self._known_by_class(known, rows), strict=True):
            if np.isinf(power):
                columns.append(self._choose(s, given, rows)[1])
                continue
            log, share = self._sum(power * s, given, rows)
            columns.append(np.add.reduceat(share * s, firsts) if is_mean else log)
        return np.stack(columns, axis=1)

    def _slopes(
        self, w: Array, rows: Rows, weights: Array, power: float, known: Array | None, is_mean: bool = False
    ) -> Array:
        scores, sizes = self._scores(w, rows), np.diff(self._starts(rows))
        V = np.zeros(scores.shape)
        for k, (s, given) in enumerate(zip(scores, self._known_by_class(known, rows), strict=True)):
            if np.isinf(power):
                share: Array = self._choose(s, given, rows)[0]
            else:
                share = self._sum(power * s, given, rows)[1]
            if is_mean:
                share = share + power * self._covariances(s, share, given, power, rows)
            V[k] = np.repeat(weights[:, k + 1], sizes) * share
        return self._adjoint(V, rows)

    def _covariances(self, s: Array, share: Array, known: Array, power: float, rows: Rows) -> Array:
        """The covariance of every instance being in h and of the score of h, under ``p ∝ exp(power · s)``.

        Without the condition that h is not empty, instances are independent.
        """
        firsts, sizes = self._starts(rows)[:-1], np.diff(self._starts(rows))
        is_open = known < 0
        mean = np.add.reduceat(share * s, firsts)
        empty = np.exp(-np.add.reduceat(np.where(is_open, np.logaddexp(0.0, power * s), 0.0), firsts))
        empty = np.where(np.logical_or.reduceat(known == 1, firsts), 0.0, empty)
        return np.where(is_open, share * (s * expit(-power * s) - np.repeat(mean * empty, sizes)), 0.0)

    def _known_by_class(self, known: Array | None, rows: Rows) -> Array:
        """(classes without the background, instances): what is known holds under the true label."""
        starts = self._starts(rows)
        if known is None:
            return np.full((self.n_labels - 1, int(starts[-1])), -1, dtype=np.int8)
        each = np.repeat(self._true_labels(rows), np.diff(starts))
        return np.where(each == np.arange(1, self.n_labels)[:, None], known, -1).astype(np.int8)

    def _take_known(self, rows: Rows) -> Array | None:
        known = self._known[self._positions(rows)]
        return known if (known >= 0).any() else None

    # measure

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        code, starts = self._read(code, rows), self._starts(rows)
        scores = np.concatenate([np.zeros((1, code.size)), self._scores(w, rows)])
        return np.add.reduceat(scores[code, np.arange(code.size)], starts[:-1])

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        code, starts = self._read(code, rows), self._starts(rows)
        each = np.repeat(one_coef_each(coef, starts.size - 1), np.diff(starts))
        return self._adjoint(np.where(code == np.arange(1, self.n_labels)[:, None], each, 0.0), rows)

    # views

    def with_hidden(self, hidden: Any) -> Self:
        return self._with(_known=self.read_known(hidden))

    def with_loss(self, losses: LossTable) -> Self:
        return self._with(_losses=check_losses(losses, self.n_labels, self.n_samples, self.n_samples))

    def exact(self) -> Self:
        view = super().exact()
        return view if view is self else view._with(_foreground=self._foreground.exact())

    def hidden_unknown(self) -> Array:
        is_open = np.logical_or.reduceat(self._known < 0, self.offsets[:-1]) & (self._true_labels(None) > 0)
        return np.flatnonzero(is_open & (np.diff(self.offsets) > self.bounds.low))

    def known_part(self) -> KnownPart | None:
        """See `tacit.oracle.capabilities.KnowsPart`: the bags all of whose instances are known."""
        is_open = np.isin(np.arange(self.n_samples), self.hidden_unknown())
        if not is_open.any() or not (self._known >= 0).any() or is_open[self._true_labels(None) > 0].all():
            return None
        return KnownPart(self, np.where(is_open, -1, np.arange(self.n_samples)))

    def digest(self) -> str:
        losses = self._losses or (None, None)
        return checksum(self.table, self.offsets, *self.bounds, self._labels, self._known, *losses)

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly."""
        return float(self.offsets[-1]) * self.n_params

    # codes

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        starts = self._starts(rows)
        found = find_labels(self.classes, np.asarray(labels))
        if found.shape != (starts.size - 1,) or (found < 0).any():
            raise ValueError(f"labels must be one of {self.classes.tolist()} per bag, got {shorten(labels)}")
        known = self.read_known(hidden, rows)
        each = np.repeat(found, np.diff(starts))
        if (np.logical_or.reduceat(known < 0, starts[:-1]) & (found > 0)).any():
            raise ValueError("hidden must list the positive instances of every bag that is not background")
        code = np.where(known == 1, each, 0)
        if not (self._labels_of(code, rows) == found).all():
            raise ValueError("hidden must list at least one positive instance of every bag that is not background")
        return code.astype(self._code_type)

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Any]:
        code, starts = self._read(code, rows), self._starts(rows)
        hidden = np.empty(starts.size - 1, dtype=object)
        for i, own in enumerate(np.split(code, starts[1:-1])):
            hidden[i] = np.flatnonzero(own).tolist()
        return self.classes[self._labels_of(code, rows)], hidden

    def read_known(self, hidden: Any, rows: Rows = None) -> Array:
        """Read known instances as 1, 0 or −1 per row.

        An entry is a list of all positive instances, one instance that is known to be positive, or −1 (None). A code
        of these rows is read too.
        """
        starts = self._starts(rows)
        out = np.full(int(starts[-1]), -1, dtype=np.int8)
        if hidden is None:
            return out
        if isinstance(hidden, np.ndarray) and hidden.shape == out.shape and hidden.dtype == self._code_type:
            return (hidden > 0).astype(np.int8)
        wish = "the positive instances of every bag: a list, one that is known, or -1 for unknown"
        given = entries("hidden", hidden, wish)
        if len(given) != starts.size - 1:
            raise ValueError(f"hidden has {len(given)} entries for {starts.size - 1} bags; give one each")
        for i, entry in enumerate(given):
            if not is_list(entry) and (is_missing(entry) or (is_whole(entry) and entry == -1)):
                continue
            size, is_all = int(starts[i + 1] - starts[i]), is_list(entry)
            positions = even_table(f"hidden[{i}]", entry if is_all else [entry])
            positions = np.zeros(0, np.int64) if positions.shape == (0,) else positions
            if (
                positions.ndim != 1
                or positions.dtype.kind not in "iu"
                or not ((positions >= 0) & (positions < size)).all()
            ):
                raise ValueError(f"hidden[{i}] must be {wish}; instances are 0 to {size - 1}, got {shorten(entry)}")
            if is_all:
                out[starts[i] : starts[i + 1]] = 0
            out[starts[i] + positions] = 1
        return out

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        code = self._read(code, rows)
        labels = self._labels_of(code, rows)
        is_pure = (code == 0) | (code == np.repeat(labels, np.diff(self._starts(rows))))
        return bool(is_pure.all() and self._fits(code, labels, rows).all())

    def split(self, code: Array, rows: Rows = None) -> tuple[Array, Array]:
        """See `tacit.oracle.capabilities.SplitsCodes`; what is hidden is 1 for positive instances."""
        code = self._read(code, rows)
        return self._labels_of(code, rows), (code > 0).astype(np.int64)

    def _labels_of(self, code: Array, rows: Rows) -> Array:
        return np.asarray(np.maximum.reduceat(code, self._starts(rows)[:-1]))

    def _fits(self, code: Array, labels: Array, rows: Rows) -> Array:
        """Which bags have as many positive instances as their label allows."""
        count = np.add.reduceat((code > 0).astype(np.int64), self._starts(rows)[:-1])
        low, high = self._bounds(rows)
        return np.where(labels == 0, count == 0, (count >= low) & (count <= high))

    # parts

    def _bounds(self, rows: Rows) -> Bounds:
        chosen: Any = slice(None) if rows is None else rows
        return Bounds(self.bounds.low[chosen], self.bounds.high[chosen])

    def _scores(self, w: Array, rows: Rows) -> Array:
        """(classes without the background, instances of the rows)."""
        parts = [self._foreground.scores(w, part) for _, _, part, _ in self._blocks(rows)]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def _adjoint(self, V: Array, rows: Rows) -> Array:
        total = np.zeros(self.n_params)
        for _, own, part, _ in self._blocks(rows):
            total += self._foreground.adjoint(np.ascontiguousarray(V[:, own]), part)
        return total

    def _search(self, w: Array, rows: Rows) -> tuple[Array, Callable[[Array], Array]]:
        starts = self._starts(rows)
        nothing = np.full(int(starts[-1]), -1, dtype=np.int8)
        found = [self._choose(scores, nothing, rows) for scores in self._scores(w, rows)]
        chosen = np.stack([np.zeros_like(nothing), *(marks for marks, _ in found)])

        def choose(labels: Array) -> Array:
            each = np.repeat(labels, np.diff(starts))
            return np.where(chosen[each, np.arange(each.size)] == 1, each, 0).astype(self._code_type)

        return np.stack([np.zeros(starts.size - 1), *(value for _, value in found)], axis=1), choose

    def _choose(self, scores: Array, known: Array, rows: Rows) -> tuple[Array, Array]:
        starts = self._starts(rows)
        chosen, value = np.zeros(scores.size, dtype=np.int8), np.empty(starts.size - 1)
        choose_instances(np.ascontiguousarray(scores), known, starts, *self._bounds(rows), chosen, value)
        return chosen, value

    def _of_label(self, scores: Array, labels: Array, starts: Array) -> Array:
        """The score of every instance under the label of its bag; 0 under the background."""
        each = np.repeat(labels, np.diff(starts))
        return np.where(each == 0, 0.0, scores[np.maximum(each - 1, 0), np.arange(each.size)])

    def _label_losses(self, rows: Rows) -> Array:
        table, column = self._loss_table()
        chosen: Any = slice(None) if rows is None else rows
        return np.ascontiguousarray((table if column is None else table[:, column])[:, chosen].T)


@kernel
def choose_instances(
    scores: Array, known: Array, offsets: Array, low: Array, high: Array, chosen: Array, value: Array
) -> None:
    """Mark the instances of positive score of every bag, at least ``low[i]`` and at most ``high[i]`` of the highest.

    Those with ``known`` 1 are marked first, those with 0 never. Ties go to the first. ``value`` gets the sums.
    """
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i + 1]
        total = 0.0
        count = 0
        for t in range(first, last):
            chosen[t] = 0
            if known[t] == 1:
                chosen[t] = 1
                count += 1
                total += scores[t]
        order = np.argsort(-scores[first:last], kind="mergesort")
        for p in range(last - first):
            t = first + order[p]
            if known[t] >= 0:
                continue
            if count >= low[i] and (scores[t] <= 0.0 or count >= high[i]):
                break
            chosen[t] = 1
            count += 1
            total += scores[t]
        value[i] = total
