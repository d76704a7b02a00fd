"""Forests of sentences, scored: the best trees of forests and sums over them, which all questions of learners use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array, Rows, locate
from tacit.oracle import Assignment, Schema
from tacit.oracle.parts import Nouns, PartsOracle
from tacit.text.parsing.brackets import Node, list_spans
from tacit.text.parsing.codes import encode_tree, forest_of_codes
from tacit.text.parsing.forests import Forest, ForestBuilder, join_forests
from tacit.text.parsing.grammar import Grammar, binarise
from tacit.text.parsing.inference import Scored, Weights, best_trees, sum_trees
from tacit.text.parsing.known import KnownPart, is_complete, read_known
from tacit.text.parsing.packed import Packed, Tokens, TrueSpans, Vocabulary, add_spans, label_table, pack, score_spans
from tacit.text.parsing.packed import span_classes as find_columns

NODES_AT_A_TIME = 1 << 16
"""Nodes of forests whose scores are kept at a time."""


class ForestOracle(PartsOracle):
    """Best trees and sums over trees, in forests that were built once; a code has a symbol and state per node.

    A tree of n words has 2n − 1 nodes when it is binary. Their order is preorder, and an integer is
    ``2 · (symbol · states + state)``, one more for a leaf.

    Parameters
    ----------
    words, tags : of every sentence
    tokens : the same as numbers
    schema : the blocks of w
    grammar, vocabulary : what forests and their properties are made from
    limits : sub-categories of every symbol
    annotations : vertical and horizontal order
    threshold : of the coarse pass
    trees : the true trees; None when predicting
    """

    nouns = Nouns("Tree", "sentences", "node")

    def __init__(
        self,
        words: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]],
        tokens: Tokens,
        schema: Schema,
        *,
        grammar: Grammar,
        vocabulary: Vocabulary,
        limits: Array,
        annotations: tuple[int, int],
        threshold: float,
        trees: list[Node] | None = None,
    ) -> None:
        offsets = 2 * tokens.offsets - np.arange(tokens.offsets.size)
        self.n_states = schema.blocks["leaf"][1]
        super().__init__(schema, offsets, 2 * grammar.n_symbols * self.n_states)
        self._limits = limits
        self._has_limits = bool((limits < self.n_states).any())
        self.grammar, self.vocabulary, self.tokens = grammar, vocabulary, tokens
        self._words, self._tags, self._annotations = words, tags, annotations
        self._symbols = grammar.symbols.tolist()
        self._columns = find_columns(grammar)[0]
        self._has_spans = "span" in schema.blocks
        self._truth: TrueSpans | None = None
        self._given: Packed | None = None
        self._first_bad = -1
        self._known = np.empty(0, dtype=np.int64)
        self._partial: dict[int, KnownPart] = {}
        builder = ForestBuilder(grammar, threshold)
        true: list[list[Array]] = []
        if trees is not None:
            self._partial = {i: read_known(tree) for i, tree in enumerate(trees) if not is_complete(tree)}
            self.completes_labels = bool(self._partial)
            true = self._build_true(trees, builder)
        self.glued: list[int] = []
        """Sentences that the grammar does not derive."""
        self.new_tags = sorted({tag for own in tags for tag in own} - set(grammar.tags.tolist()))
        """Tags that the grammar does not have."""
        parts = []
        for i in range(self.n_samples):
            own = tokens.tag[tokens.offsets[i] : tokens.offsets[i + 1]]
            found, is_glued = builder.build(own, true[i] if true else None)
            parts.append(found)
            if is_glued:
                self.glued.append(i)
        self._forest = self._pack(join_forests(parts), tokens)

    def _build_true(self, trees: list[Node], builder: ForestBuilder) -> list[list[Array]]:
        """The forests of what is known: one tree where it is complete. Empty where the grammar lacks one."""
        spans = [self._partial[i].spans if i in self._partial else list_spans(tree)[0] for i, tree in enumerate(trees)]
        free = {i: known.is_free for i, known in self._partial.items()}
        self._truth = TrueSpans(spans, *label_table(self.grammar), free)
        offsets, found = self.tokens.offsets, []
        for i, tree in enumerate(trees):
            tags = self.tokens.tag[offsets[i] : offsets[i + 1]]
            if i in self._partial:
                own = builder.build_known(tags, self._partial[i].mask(self.grammar.coarse_symbols.tolist()))
                bad = 0 if not own[0].size else -1
            else:
                code = self._encode_trees([tree])
                one, _, bad = forest_of_codes(code, np.array([0, code.size]), tags, 1, self.grammar)
                own = list(one[1:])
            if bad >= 0:
                self._first_bad = i
                return []
            found.append(own)
        self._given = self._pack(join_forests(found), self.tokens)
        return found

    def _pack(self, forest: Forest, tokens: Tokens) -> Packed:
        return pack(forest, tokens, self.vocabulary, self._columns, self._has_spans)

    def _encode_trees(self, trees: Sequence[Node]) -> Array:
        numbers = {name: i for i, name in enumerate(self._symbols)}
        codes = [encode_tree(binarise(tree, *self._annotations), numbers) for tree in trees]
        return np.concatenate([np.asarray(code, dtype=np.int64) for code in codes])

    def _count(self, rows: Rows) -> int:
        return int(self._starts(rows).size - 1)

    def _true_spans(self) -> TrueSpans:
        if self._truth is None:
            self._true_labels(None)  # which raises
        assert self._truth is not None
        return self._truth

    def _true_forest(self) -> Packed:
        self._true_spans()
        if self._given is None:
            raise ValueError(
                f"y[{self._first_bad}] is a tree that the grammar of the training trees does not have, so its "
                "sub-categories cannot be found; leave it out, or train on it"
            )
        return self._given

    def _truth_losses(self, forest: Forest, rows: Rows) -> Array:
        return self._true_spans().losses(forest, self._numbers(rows))

    def _state_limits(self, forest: Forest, known: Array | None = None, rows: Rows = None) -> Array:
        """For every node of a forest its known state, or minus the number of states that it may have; empty where all
        may have all."""
        known = np.empty(0, dtype=np.int64) if known is None or not known.size else known[self._positions(rows)]
        if not self._has_limits and not known.size:
            return known
        limits = -self._limits[forest.symbol]
        return np.where(known >= 0, known, limits) if known.size else limits

    def _unfold(self, code: Array, rows: Rows) -> tuple[Packed, Array]:
        """The forest of the trees of a code, and the states of its nodes."""
        code, starts, numbers = self._read(code, rows), self._starts(rows), self._numbers(rows)
        sizes = np.diff(self.tokens.offsets)[numbers]
        where = self.tokens.offsets[:-1][numbers]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        at = np.repeat(where - offsets[:-1], sizes) + np.arange(offsets[-1])
        tokens = Tokens(self.tokens.word[at], self.tokens.tag[at], offsets)
        forest, states, bad = forest_of_codes(code, starts, tokens.tag, self.n_states, self.grammar)
        if bad >= 0:
            raise ValueError(f"the code of sentence {bad} is not a tree of its words; take codes from this oracle")
        wrong = np.flatnonzero(states >= self._limits[forest.symbol])
        if wrong.size:
            i, name = locate(forest.offsets, wrong[0])[0], self._symbols[forest.symbol[wrong[0]]]
            raise ValueError(f"the code of sentence {i} has state {states[wrong[0]]} of {name}, which has fewer states")
        return self._pack(forest, tokens), states

    def _parts(self, packed: Packed, rows: Rows) -> Any:
        """Slices of the answer and rows, a bounded number of nodes at a time."""
        numbers, first = self._numbers(rows), 0
        is_slice = rows is None or isinstance(rows, slice)
        ends = np.cumsum(np.diff(packed.forest.offsets)[numbers])
        while first < numbers.size:
            before = ends[first - 1] if first else 0
            stop = max(first + 1, int(np.searchsorted(ends, before + NODES_AT_A_TIME, side="right")))
            part = slice(int(numbers[first]), int(numbers[stop - 1]) + 1) if is_slice else numbers[first:stop]
            yield slice(first, stop), part
            first = stop

    def _weights(self, w: Array) -> Weights:
        views, none = self._views(w), np.zeros((0, 1, 1))
        given = views["rule"], views.get("left", none), views.get("right", none), views["leaf"]
        return Weights(*given, views.get("word", np.zeros((0, self.n_states))), views["root"])

    def _span_scores(self, w: Array, packed: Packed) -> tuple[Array, Array]:
        node, pair = np.zeros(packed.forest.symbol.size), np.zeros(packed.forest.rule.size)
        if self._has_spans:
            views = self._views(w)
            given = packed.forest, packed.span, packed.split, packed.column
            score_spans(*given, views["span"], views["split"], node, pair)
        return node, pair

    def _score_parts(self, w: Array, packed: Packed) -> Scored:
        return Scored(*self._span_scores(w, packed), packed.word)

    def score(self, w: Array, code: Array, rows: Rows = None) -> Array:
        packed, states = self._unfold(code, rows)
        value, out = np.empty(self._count(rows)), np.empty(int(self._starts(rows)[-1]), dtype=np.int64)
        scored = self._score_parts(w, packed)
        best_trees(packed.forest, scored, self._weights(w), 1.0, states, out, self._starts(rows), value)
        return value

    def loss(self, code: Array, rows: Rows = None) -> Array:
        packed, _ = self._unfold(code, rows)
        return self._sum_losses(packed.forest, rows)

    def _sum_losses(self, forest: Forest, rows: Rows) -> Array:
        truth, numbers = self._true_spans(), self._numbers(rows)
        return np.asarray(np.add.reduceat(truth.losses(forest, numbers), forest.offsets[:-1]) + truth.sizes[numbers])

    def _best(
        self, w: Array, packed: Packed, rows: Rows, known: Array | None = None, factor: Array | None = None
    ) -> Assignment:
        """The best trees; with factors, by score plus loss times its factor."""
        starts = self._starts(rows)
        code, value = np.empty(int(starts[-1]), dtype=np.int64), np.empty(starts.size - 1)
        weights = self._weights(np.ascontiguousarray(w, dtype=np.float64))
        for out, part in self._parts(packed, rows):
            own = packed.take(part)
            cuts = starts[out.start : out.stop + 1]
            scored = self._score_parts(w, own)
            if factor is not None:
                scale = np.repeat(factor[out], np.diff(own.forest.offsets))
                scored.node[:] += scale * self._truth_losses(own.forest, part)
            states = self._state_limits(own.forest, known, part)
            into = code[cuts[0] : cuts[-1]]
            best_trees(own.forest, scored, weights, 1.0, states, into, cuts - cuts[0], value[out])
            if factor is not None:
                value[out] += factor[out] * self._true_spans().sizes[self._numbers(part)]
        return Assignment(code.astype(self._code_type), value)

    def _add_expected(
        self,
        w: Array,
        packed: Packed,
        coef: Array,
        power: float,
        out: Array,
        *,
        known: Array,
        extra: Array | None = None,
    ) -> Array:
        """Log-sums over these forests; expected features times the coefficients are added to ``out``."""
        logs, nodes, pairs = self._sum_trees(w, packed, coef, power, out, known=known, extra=extra)
        if self._has_spans and coef.any():
            views, forest = self._views(out), packed.forest
            add_spans(forest, packed.span, packed.split, packed.column, nodes, pairs, views["span"], views["split"])
        return logs

    def _sum_trees(
        self,
        w: Array,
        packed: Packed,
        coef: Array,
        power: float,
        out: Array,
        *,
        known: Array,
        extra: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        """Log-sums over these forests, and the probabilities of nodes and of pairs of children times the coefficients;
        expected features of the blocks with states are added to ``out``."""
        forest = packed.forest
        node, pair = (
            self._span_scores(w, packed) if power else (np.zeros(forest.symbol.size), np.zeros(forest.rule.size))
        )
        node += 0.0 if extra is None else extra
        node *= power
        pair *= power
        logs, nodes, pairs = np.empty(coef.size), np.zeros(node.size), np.zeros(pair.size)
        given = forest, Scored(node, pair, packed.word), self._weights(w), power, known, coef, bool(coef.any())
        sum_trees(*given, logs, nodes, pairs, self._weights(out))
        return logs, nodes, pairs


def reverse_each(offsets: Array) -> Array:
    """Positions that turn every sample's part around: preorder to the order of `forest_of_codes`, and back."""
    sizes = np.diff(offsets)
    return np.asarray(np.repeat(offsets[1:] + offsets[:-1] - 1, sizes) - np.arange(offsets[-1]))
