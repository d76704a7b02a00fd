"""Inference for trees: the best one, the best sub-categories of a given one, the best by score plus loss; sums."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array, Codes, Rows, checksum, locate
from tacit.data.ragged import Ragged
from tacit.oracle import Assignment
from tacit.oracle.capabilities import Expectations, OnlinePass
from tacit.oracle.cells import one_coef_each
from tacit.oracle.slack_search import LossLevels
from tacit.text.parsing.brackets import format_tree, list_spans
from tacit.text.parsing.codes import decode_tree
from tacit.text.parsing.forest_oracle import reverse_each
from tacit.text.parsing.forests import Forest
from tacit.text.parsing.inference import Scored, best_trees
from tacit.text.parsing.known import is_complete, read_states, read_true_trees
from tacit.text.parsing.packed import Packed, TrueSpans, label_table
from tacit.text.parsing.ranking import RankedTrees

MIN_FACTOR = 1e-6
"""The common factor of weights that are learned online is multiplied in when it gets smaller than this."""


class TreeOracle(RankedTrees):
    """Best trees and sums over trees, and what else learners ask for. Parameters are those of `ForestOracle`."""

    # What every learner asks for

    def predict(self, w: Array, rows: Rows = None) -> Assignment:
        return self._best(w, self._forest, rows)

    def _predict_augmented(self, w: Array, rows: Rows, factor: Array | None = None) -> Assignment:
        return self._best(w, self._forest, rows, factor=np.ones(self._count(rows)) if factor is None else factor)

    def impute(self, w: Array, rows: Rows = None, prefer: Codes = None) -> Assignment:
        best = self._best(w, self._true_forest(), rows, known=self._known)
        if prefer is None:
            return best
        prefer = np.asarray(prefer)
        self._read(np.maximum(prefer, 0), rows)  # which checks the code
        given = np.logical_and.reduceat(prefer >= 0, self._starts(rows)[:-1])
        own = self._pick(given, prefer, best.code, rows)
        value = self.score(w, own, rows)
        fits = given & self._agrees(own, rows) & (value >= best.value)
        return Assignment(self._pick(fits, own, best.code, rows), best.value)

    def _agrees(self, code: Array, rows: Rows) -> Array:
        """Which rows of a code have the true tree, or one that fits what is known of it, and the known states."""
        fits = self._is_true_label(code, rows)
        if self._known.size:
            starts = self._starts(rows)
            own = self._known[self._positions(rows)][reverse_each(starts)]
            fits &= np.logical_and.reduceat((own < 0) | ((code >> 1) % self.n_states == own), starts[:-1])
        return fits

    def _is_true_label(self, labels: Array, rows: Rows) -> Array:
        best = self._best(np.zeros(self.n_params), self._true_forest(), rows).code  # of whole trees the only one
        same = ((labels >> 1) // self.n_states == (best >> 1) // self.n_states) & (labels % 2 == best % 2)
        fits = np.asarray(np.logical_and.reduceat(same, self._starts(rows)[:-1]))
        is_partial = [r for r, i in enumerate(self._numbers(rows).tolist()) if i in self._partial]
        if is_partial:
            forest = self._unfold(labels, rows)[0].forest
            for r in is_partial:
                mask = self._partial[int(self._numbers(rows)[r])].mask(self.grammar.coarse_symbols.tolist())
                own = slice(forest.offsets[r], forest.offsets[r + 1])
                fits[r] = mask[forest.first[own], forest.last[own], self.grammar.coarse[forest.symbol[own]]].all()
        return fits

    def features(self, code: Array, coef: Array, rows: Rows = None) -> Array:
        packed, states = self._unfold(code, rows)
        coef = one_coef_each(coef, self._count(rows))
        out = np.zeros(self.n_params)
        self._add_expected(np.zeros(self.n_params), packed, coef, 1.0, out, known=states)
        return out

    def loss_levels(self, rows: Rows = None) -> LossLevels:
        """See `tacit.oracle.capabilities.ScalesLoss`."""
        sizes = self._true_spans().sizes[self._numbers(rows)]
        longest = int(max(1, label_table(self.grammar)[2].sum(axis=1).max()))
        ones = np.ones(sizes.size)
        return LossLevels(ones, sizes + longest * np.diff(self._starts(rows)).astype(np.float64), ones)

    # Sums over trees and states

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
        n, out = self._count(rows), np.zeros(self.n_params)
        logs: list[Array | None] = [None, None, None]
        has_features = False
        for which, given in enumerate((free, label, truth)):
            if given is None:
                continue
            coef = np.ascontiguousarray(np.broadcast_to(np.asarray(given, dtype=np.float64), n))
            has_features |= bool(coef.any())
            packed = self._forest if which == 0 else self._true_forest()
            known = self._known if which == 2 else np.empty(0, dtype=np.int64)
            log = np.empty(n)
            for out_rows, part in self._parts(packed, rows):
                own = packed.take(part)
                states = self._state_limits(own.forest, known, part)
                extra = self._truth_losses(own.forest, part) if augmented and which == 0 else None
                added = self._add_expected(w, own, coef[out_rows], power, out, known=states, extra=extra)
                if extra is not None:
                    added = added + power * self._true_spans().sizes[self._numbers(part)]
                log[out_rows] = added
            logs[which] = log
        return Expectations(logs[0], logs[1], logs[2], out if has_features else None)

    def reachable(self, y: Any) -> float:
        """The share of the labelled spans of trees that some tree of the forests has. The grammar lacks the others, or
        the coarse pass removed them. Sentences must be bound without y: training never removes a true span."""
        spans = [list_spans(tree)[0] for tree in read_true_trees(y, self._words, self._tags)]
        truth = TrueSpans(spans, *label_table(self.grammar), {})
        return truth.count_reachable(self._forest.forest, np.arange(self.n_samples)) / max(int(truth.sizes.sum()), 1)

    def log_partition(self, w: Array, rows: Rows = None) -> Array:
        """log Σ exp s over all trees and states."""
        found = self.expectations(w, rows, free=0.0).free
        assert found is not None
        return found

    # Learning online

    def learn_online(
        self, w: Array, order: Array, steps: Array, decays: Array, shares: Array, *, margin: float, target: Any = None
    ) -> OnlinePass:
        """See `tacit.oracle.capabilities.LearnsOnline`."""
        now, lacking = np.array(w, dtype=np.float64), np.zeros(self.n_params)
        factor, total = 1.0, 0.0
        lost, mistakes = np.zeros(order.size), 0
        truth = self._true_spans()
        for visit, i in enumerate(order.tolist()):
            rows = slice(i, i + 1)
            change: tuple[Packed, Array] | None = None
            if steps[visit] != 0.0:
                packed = self._forest.take(rows)
                node, pair = self._span_scores(now, packed)
                node *= factor
                pair *= factor
                own = truth.losses(packed.forest, np.array([i])) if margin else None
                if own is not None:
                    node += margin * own
                code, value = np.empty(int(self.offsets[i + 1] - self.offsets[i]), dtype=np.int64), np.empty(1)
                free, starts = self._state_limits(packed.forest), self._starts(rows)
                weights = self._weights(now)
                best_trees(packed.forest, Scored(node, pair, packed.word), weights, factor, free, code, starts, value)
                found = self._unfold(code, rows)
                lost[visit] = float(self._sum_losses(found[0].forest, rows)[0])
                if margin or lost[visit] > 0:
                    change = found
            if change is not None and target is None:
                given = self._true_forest().take(rows)
                node, pair = self._span_scores(now, given)
                scored = Scored(factor * node, factor * pair, given.word)
                right, known = np.empty_like(code), self._state_limits(given.forest, self._known, rows)
                best_trees(given.forest, scored, self._weights(now), factor, known, right, starts, value)
            elif change is not None:
                right = np.asarray(target)[self._positions(rows)].astype(np.int64)
            factor *= decays[visit]
            if factor < MIN_FACTOR:
                lacking -= total * now
                now *= factor
                total, factor = 0.0, 1.0
            if change is not None and not np.array_equal(code, right):
                mistakes += 1
                size = steps[visit] / factor
                for (part, states), sign in ((self._unfold(right, rows), size), (change, -size)):
                    self._add_tree(part, states, sign, now)
                    if total:
                        self._add_tree(part, states, total * sign, lacking)
            total += shares[visit] * factor
        return OnlinePass(factor * now, total * now - lacking, lost, mistakes)

    def _add_tree(self, packed: Packed, states: Array, coef: float, out: Array) -> None:
        """Add the features of one tree, times a number."""
        self._add_expected(out, packed, np.array([coef]), 0.0, out, known=states)

    # Where to start

    def draw(self, rng: np.random.Generator) -> Array:
        """A code with the true trees and states at random; known ones stay. Unknown parts of trees are random, too."""
        w = rng.standard_normal(self.n_params) if self._partial else np.zeros(self.n_params)
        return self._complete(self._one_tree(w), rng.integers(0, self.n_states, int(self.offsets[-1])))

    def proposals(self, most: int) -> list[Array]:
        """States by the context of a node: its parent's symbol, and whether it is a left or a right child.

        Contexts are given to the states of a symbol in the order of their counts, each to the state with the fewest
        nodes so far: what vertical markovisation would tell apart begins in different states.
        """
        forest = self._one_tree(np.zeros(self.n_params))
        parent = np.repeat(np.arange(forest.symbol.size), np.diff(forest.edges))
        shift = np.repeat(forest.offsets[:-1], np.diff(forest.edges[forest.offsets]))
        context = np.full(forest.symbol.size, 2 * self.grammar.n_symbols)
        context[forest.left + shift] = 2 * forest.symbol[parent]
        context[forest.right + shift] = 2 * forest.symbol[parent] + 1
        kinds, which, counts = np.unique(
            forest.symbol * np.int64(2 * self.grammar.n_symbols + 1) + context, return_inverse=True, return_counts=True
        )
        load = np.where(np.arange(self.n_states) < self._limits[:, None], 0.0, np.inf)
        state = np.zeros(kinds.size, dtype=np.int64)
        for kind in np.argsort(-counts, kind="stable").tolist():
            own = load[kinds[kind] // (2 * self.grammar.n_symbols + 1)]
            state[kind] = np.argmin(own)
            own[state[kind]] += counts[kind]
        return [self._complete(forest, state[which])]

    def _one_tree(self, w: Array) -> Forest:
        """Forests of one true tree per sentence: the best where some are not wholly known."""
        given = self._true_forest()
        return self._unfold(self._best(w, given, None).code, None)[0].forest if self._partial else given.forest

    def _complete(self, forest: Forest, states: Array) -> Array:
        """The code of trees with these states, by node of their forests; known states stay."""
        states = states % self._limits[forest.symbol]
        states = np.where(self._known >= 0, self._known, states) if self._known.size else states
        values = 2 * (forest.symbol * np.int64(self.n_states) + states) + (forest.leaf >= 0)
        return np.asarray(values[reverse_each(self.offsets)].astype(self._code_type))

    # Codes

    def encode(self, labels: Any, hidden: Any = None, rows: Rows = None) -> Array:
        starts, numbers = self._starts(rows), self._numbers(rows)
        trees = read_true_trees(labels, [self._words[i] for i in numbers], [self._tags[i] for i in numbers])
        gaps = [i for i, tree in enumerate(trees) if not is_complete(tree)]
        if gaps:
            raise ValueError(f"only complete outputs have a code: labels[{gaps[0]}] has brackets that are not known")
        plain = self._encode_trees(trees)
        if (plain < 0).any():
            i = int(np.searchsorted(starts, int(np.argmin(plain)), side="right")) - 1
            raise ValueError(f"labels[{i}] is a tree that the grammar of the training trees does not have")
        states = np.zeros(plain.size, dtype=np.int64)
        if self.n_states > 1:
            if hidden is None:
                raise ValueError("only complete outputs have a code: give hidden=, one state per node")
            states = read_states(hidden, starts, self.n_states)
            if (states < 0).any():
                raise ValueError("only complete outputs have a code: hidden has unknown states")
            self._check_states(states, plain >> 1, starts)
        code = 2 * ((plain >> 1) * self.n_states + states) + plain % 2
        self._unfold(code, rows)
        return np.asarray(code.astype(self._code_type))

    def decode(self, code: Array, rows: Rows = None) -> tuple[Array, Ragged | None]:
        code, starts = self._read(code, rows), self._starts(rows)
        plain = 2 * ((code >> 1) // self.n_states) + code % 2
        trees = []
        for k, i in enumerate(self._numbers(rows).tolist()):
            own = plain[starts[k] : starts[k + 1]].tolist()
            trees.append(format_tree(decode_tree(own, self._symbols, self._words[i], self._tags[i])))
        hidden = Ragged((code >> 1) % self.n_states, starts) if self.n_states > 1 else None
        return np.array(trees, dtype=np.str_), hidden

    def _has_outputs(self, code: Array, rows: Rows) -> bool:
        self._unfold(code, rows)
        return True

    # Views

    def with_hidden(self, hidden: Array | None) -> Self:
        """The same data with the states of this code known; None leaves them as they are."""
        if hidden is None:
            return self._with()
        given, states = self._unfold(hidden, None)
        if self._known.size:
            states = np.where(self._known >= 0, self._known, states)
        return self._with(_known=states, _given=given, _partial={}, completes_labels=False)

    def with_states(self, states: Array) -> Self:
        """The same data with these states known, in preorder, −1 elsewhere."""
        if self._partial:
            raise ValueError(f"hidden needs complete trees, and y[{min(self._partial)}] has unknown brackets")
        states = states[reverse_each(self.offsets)]
        symbol = self._true_forest().forest.symbol
        self._check_states(states, symbol, self.offsets)
        return self._with(_known=states)

    def _check_states(self, states: Array, symbol: Array, starts: Array) -> None:
        is_bad = states >= self._limits[symbol]
        if is_bad.any():
            at = int(np.argmax(is_bad))
            i, name, most = locate(starts, at)[0], self._symbols[symbol[at]], self._limits[symbol[at]]
            raise ValueError(f"hidden[{i}] has state {states[at]} of {name}, which has {most} states")

    def with_loss(self, losses: Any) -> Self:
        raise ValueError("losses of Tree are wrong labelled spans, and cannot be replaced; leave them out")

    def hidden_unknown(self) -> Array:
        if self.n_states == 1:
            return np.array(sorted(self._partial), dtype=np.int64)
        if not self._known.size:
            return np.arange(self.n_samples)
        return np.flatnonzero(np.logical_or.reduceat(self._known < 0, self.offsets[:-1]))

    @property
    def operations(self) -> float:
        """Multiplications of one pass, roughly."""
        forest = self._forest.forest
        return float(forest.rule.size * (4 + 2 * self.n_states**2) + 13 * forest.symbol.size)

    def units(self) -> Array:
        """Twice the number of true spans: one minus the mean loss is then F1, if as many spans are predicted."""
        return np.asarray(np.maximum(2.0 * self._true_spans().sizes, 1.0))

    def digest(self) -> str:
        forest, truth = self._forest, () if self._truth is None else self._truth.digest_parts()
        given = () if self._given is None else self._given.forest
        parts = *forest.forest, *forest[1:], *truth, *given, self._known
        return checksum(self.offsets, *parts, self._limits)
