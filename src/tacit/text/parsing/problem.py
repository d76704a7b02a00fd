"""Parsing: a labelled bracketing of a sentence, whose categories have hidden sub-categories."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import entries, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.specs import between, estimator, parameter, switch, whole
from tacit.oracle import Example, Problem, Schema
from tacit.text.parsing.brackets import MAX_WORDS, Node, escape, format_tree, list_leaves, list_spans, parse_tree
from tacit.text.parsing.codes import decode_tree, encode_tree, forest_of_codes
from tacit.text.parsing.grammar import Binary, Grammar, binarise, check_grammar, read_grammar
from tacit.text.parsing.known import UNKNOWN, complete_parts, is_complete, read_states, read_true_trees
from tacit.text.parsing.oracle import TreeOracle
from tacit.text.parsing.packed import OTHER, Tokens, Vocabulary, learn_vocabulary, number_words, pack, span_classes

MAX_STATES = 64
"""Sub-categories per symbol."""


class TaggedSentences(list[tuple[list[str], list[str]]]):
    """Checked sentences: words and tags of each."""


@estimator
class Tree(Problem):
    """A tree per sentence: ``s(y, h) = Σ w_rule + w_span``, over its rules and spans, sub-categories of nodes hidden.

    For phrase-structure parsing. ``X`` holds sentences: lists of pairs (word, tag), or strings such as
    "the/DT dog/NN barks/VBZ". ``y`` holds one bracketed tree each, as text: "(S (NP (DT the) (NN dog)) (VBZ barks))".
    The grammar is read from the training trees, made binary: unary chains are one symbol, longer rules are cut into
    parts. With `states` above 1, every node has one of so many sub-categories, which no tree shows; a hidden value is a
    state per node of the binary tree, in preorder.

    The loss is the number of labelled spans that are predicted and wrong, or true and missed. Inference is exact within
    forests: a coarse pass without states, markovisation and weights removes what is improbable (`prune`). A sentence
    that the rules of the trees do not derive may use longer rules, which repeat children. If that does not help, it
    gets the fewest fragments, side by side. A tag that training never saw is read as the most frequent one.

    Trees may be partly known: "(? ...)" is a bracket of unknown category, and "(NP? ...)" an NP, inside which other
    brackets may be missing. Learners for hidden values complete them; what cannot be wrong adds nothing to the loss.

    Parameters
    ----------
    states : sub-categories per symbol; or a dict from symbols ("NP", "@NP" for parts of cut rules, "/NN" for tags) to
        numbers, 1 for those that it does not have
    vertical : how many labels a symbol has, from that of its node upwards; 2 adds the parent's (Klein & Manning 2003)
    horizontal : how many siblings before it the part of a cut rule knows
    spans : whether spans and their splits have weights for the words and tags at their ends, beside them, and for their
        lengths (Hall, Durrett & Klein 2014)
    words : whether leaves have weights for their words
    min_count : how often a word must occur in training to have weights
    prune : posterior probability of a symbol over a span below which the coarse pass removes it; 0 keeps everything

    >>> from tacit import StructuredSVM
    >>> X = ["the/DT dog/NN barks/VBZ", "the/DT old/JJ dog/NN barks/VBZ"]
    >>> y = ["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "(S (NP (DT the) (JJ old) (NN dog)) (VP (VBZ barks)))"]
    >>> model = StructuredSVM(Tree(spans=False), C=10).fit(X, y)
    >>> print(model.predict(["the/DT old/JJ cat/NN sleeps/VBZ"])[0])
    (ROOT (S (NP (DT the) (JJ old) (NN cat)) (VP (VBZ sleeps))))
    """

    takes_table = False

    states: Any = parameter(lambda name, value: read_limits(value), default=1)
    vertical: int = parameter(whole(1, 4), default=1)
    horizontal: int = parameter(whole(0, 8), default=0)
    spans: bool = parameter(switch, default=True)
    words: bool = parameter(switch, default=True)
    min_count: int = parameter(whole(1, 1 << 30), default=2)
    prune: float = parameter(between("a probability from 0 to 0.1", 0, 0.1), default=1e-4)

    def read(self, X: Any) -> TaggedSentences:
        if isinstance(X, TaggedSentences):
            return X
        given = entries("X", X, "a list of sentences, each a list of pairs (word, tag)")
        if not given:
            raise ValueError("X must have at least one sentence, got 0")
        return TaggedSentences(_read_sentence(one, f"X[{i}]") for i, one in enumerate(given))

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        sentences = self.ensure_read(X)
        words, tags = [own for own, _ in sentences], [own for _, own in sentences]
        trees = read_true_trees(_tree_texts(y), words, tags)
        parts = self._known_parts(trees)
        binary = [binarise(part, int(self.vertical), int(self.horizontal)) for part, _ in parts]
        own_tags = [[leaf.label for leaf in list_leaves(part)] for part, _ in parts]
        every_tag = {tag for own in tags for tag in own}
        grammar = read_grammar(binary, own_tags, [is_root for _, is_root in parts], every_tag, int(self.horizontal))
        given = grammar.tags.size, int(self.min_count), bool(self.spans), bool(self.words)
        leaf_words = [str(leaf.word) for part, _ in parts for leaf in list_leaves(part)]
        flat = list(itertools.chain.from_iterable(words))
        vocabulary = learn_vocabulary(flat, leaf_words, _leaf_rules(binary, own_tags, grammar), *given)
        usual = Counter(tag for own in tags for tag in own).most_common(1)[0][0]
        facts: dict[str, Any] = dict(grammar._asdict())
        facts |= {"words": vocabulary.words, "word_pairs": vocabulary.pairs, "usual_tag": usual}
        return Schema(np.empty(0, dtype=np.str_), 2, self._blocks(grammar, vocabulary), facts)

    @property
    def n_states(self) -> int:
        """The most sub-categories that a symbol has."""
        return max([1, *read_limits(self.states).values()]) if isinstance(self.states, Mapping) else int(self.states)

    def _limits(self, grammar: Grammar) -> Array:
        """How many sub-categories every symbol has."""
        if not isinstance(self.states, Mapping):
            return np.full(grammar.n_symbols, int(self.states))
        limits, names = read_limits(self.states), grammar.symbols.tolist()
        if limits and not limits.keys() & set(names):
            raise ValueError(
                f"states must name symbols of the training trees ({shorten(names)}), got {shorten(limits)}"
            )
        return np.array([limits.get(name, 1) for name in names])

    def _known_parts(self, trees: list[Node]) -> list[tuple[Node, bool]]:
        """Trees whose rules a grammar may have, and whether each is a whole one: complete trees, and complete parts of
        others. Where symbols have ancestors, parts are left out: they do not show them."""
        whole = [(tree, True) for tree in trees if is_complete(tree)]
        if not whole:
            raise ValueError(f"y must have at least one complete tree, but all have unknown parts ({UNKNOWN!r})")
        if self.vertical > 1:
            return whole
        return whole + [(part, False) for tree in trees if not is_complete(tree) for part in complete_parts(tree)]

    def _blocks(self, grammar: Grammar, vocabulary: Vocabulary) -> dict[str, tuple[int, ...]]:
        k, n_rules = self.n_states, grammar.n_rows
        blocks: dict[str, tuple[int, ...]] = {"rule": (n_rules,)}
        if k > 1:
            blocks |= {"left": (n_rules, k, k), "right": (n_rules, k, k)}
        blocks |= {"leaf": (len(grammar.leaves), k), "root": (grammar.n_symbols, k)}
        if vocabulary.pairs.size:
            blocks["word"] = (vocabulary.pairs.size, k)
        if self.spans:
            columns = span_classes(grammar)[1]
            blocks |= {"span": (vocabulary.n_span_rows, columns), "split": (vocabulary.n_split_rows, columns)}
        return blocks

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        grammar, vocabulary = read_facts(schema)
        if dict(schema.blocks) != self._blocks(grammar, vocabulary):
            raise ValueError(f"the blocks of the schema are not those of its grammar: {shorten(dict(schema.blocks))}")

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> TreeOracle:
        sentences = self.ensure_read(X)
        self.check_schema(schema)
        grammar, vocabulary = read_facts(schema)
        words, tags = [own for own, _ in sentences], [own for _, own in sentences]
        number = {tag: i for i, tag in enumerate(grammar.tags.tolist())}
        usual = number[str(schema.facts["usual_tag"])]
        tokens = Tokens(
            number_words(vocabulary.words.tolist(), list(itertools.chain.from_iterable(words))),
            np.array([number.get(tag, usual) for own in tags for tag in own], dtype=np.int64),
            np.concatenate([[0], np.cumsum([len(own) for own in words])]).astype(np.int64),
        )
        if y is None and hidden is not None:
            raise ValueError("hidden needs y: sub-categories are those of a tree")
        trees = None if y is None else read_true_trees(_tree_texts(y), words, tags)
        oracle = TreeOracle(
            words,
            tags,
            tokens,
            schema,
            grammar=grammar,
            vocabulary=vocabulary,
            limits=self._limits(grammar),
            annotations=(int(self.vertical), int(self.horizontal)),
            threshold=float(self.prune),
            trees=trees,
        )
        if hidden is None:
            return oracle
        return oracle.with_states(read_states(hidden, oracle.offsets, self.n_states))

    def example(self, rng: np.random.Generator) -> Example:
        words = ["a", "b"]
        pool = [
            "(S (NP (D a) (N b)) (V b))",
            "(S (NP (N a)) (VP (V b) (NP (N b))))",
            "(NP (D a) (N a) (N b))",
            "(S (V a))",
        ]
        ambiguous = ["(S (NP (NP (N a)) (N b)) (V b))", "(S (NP (N a) (N b)) (V b))"]  # same tags: something to learn
        chosen = [*ambiguous, pool[int(rng.integers(len(pool)))]]
        drawn, other = rng.integers(2, size=(2, 3)).tolist()
        own = drawn, [1 - k for k in drawn], other  # words that tell the ambiguous ones apart
        trees = [
            _with_words(parse_tree(chosen[i]), [words[k] for k in own[i]])
            for i in rng.permutation(len(chosen)).tolist()
        ]
        texts = [format_tree(tree) for tree in trees]
        X = np.array([" ".join(f"{leaf.word}/{leaf.label}" for leaf in list_leaves(tree)) for tree in trees])
        y = np.array(texts)
        schema = self.schema(X, y)
        listing = _Listing(self, schema)
        hidden = None
        if self.n_states > 1:
            drawn = [rng.integers(0, listing.state_limits(tree)) for tree in trees]
            sizes = [own.size for own in drawn]
            hidden = Ragged(np.concatenate(drawn), np.concatenate([[0], np.cumsum(sizes)]))
        return Example(X, y, hidden, listing.outputs, listing.joint_feature, _count_wrong)

    @classmethod
    def variants(cls) -> list[Self]:
        return [
            cls(spans=False, prune=0.0, min_count=1),
            cls(states=2, vertical=2, horizontal=1, words=False, prune=0.0, min_count=1),
            cls(states={"NP": 3, "S": 2, "/N": 2}, spans=False, prune=0.0, min_count=1),
        ]


class _Listing:
    """All trees of a short sentence, by their definition."""

    def __init__(self, problem: Tree, schema: Schema) -> None:
        self.problem, self.schema = problem, schema
        self.grammar, self.vocabulary = read_facts(schema)
        self.symbols = self.grammar.symbols.tolist()
        self.limits = problem._limits(self.grammar)

    def outputs(self, x: Any) -> list[tuple[Any, Any]]:
        words, tags = _read_sentence(x, "x")
        grammar = self.grammar
        number = {tag: i for i, tag in enumerate(grammar.tags.tolist())}
        tops = set(grammar.tops.tolist())

        def derive(i: int, j: int, rules: list[list[int]]) -> list[tuple[int, list[int]]]:
            if j == i + 1:
                return [(int(s), [2 * int(s) + 1]) for s, tag in grammar.leaves if tag == number[tags[i]]]
            found = []
            for m in range(i + 1, j):
                for (left, one), (right, two) in itertools.product(derive(i, m, rules), derive(m, j, rules)):
                    for parent, a, b in rules:
                        if (a, b) == (left, right):
                            found.append((parent, [2 * parent, *one, *two]))
            return found

        codes: list[list[int]] = []
        for rules in (grammar.rules[grammar.is_seen], grammar.rules):
            codes = codes or [code for top, code in derive(0, len(words), rules.tolist()) if top in tops]
        found: list[tuple[Any, Any]] = []
        for code in codes:
            tree = np.str_(format_tree(decode_tree(code, self.symbols, words, tags)))
            if self.problem.n_states == 1:
                found.append((tree, None))
                continue
            every = itertools.product(*(range(self.limits[value >> 1]) for value in code))
            found += [(tree, np.array(states)) for states in every]
        return found

    def state_limits(self, tree: Node) -> Array:
        """How many states every node has, in preorder."""
        numbers = {name: i for i, name in enumerate(self.symbols)}
        code = encode_tree(binarise(tree, self.problem.vertical, self.problem.horizontal), numbers)
        return np.asarray(self.limits[np.array(code) >> 1])

    def joint_feature(self, x: Any, label: Any, h: Any) -> Array:
        """Counts by block, from the rows of one tree."""
        problem, grammar = self.problem, self.grammar
        words, tags = _read_sentence(x, "x")
        out = np.zeros(self.schema.n_params)
        views = self.schema.views(out)
        tree = binarise(parse_tree(str(label)), problem.vertical, problem.horizontal)
        number = {name: i for i, name in enumerate(self.symbols)}
        states = iter([0] * (2 * len(words) - 1) if h is None else [int(one) for one in h])
        rules = {tuple(rule): row for rule, row in zip(grammar.rules.tolist(), grammar.rows.tolist(), strict=True)}
        leaves = {tuple(leaf): i for i, leaf in enumerate(grammar.leaves.tolist())}
        tag_number = {tag: i for i, tag in enumerate(grammar.tags.tolist())}
        word_numbers = number_words(self.vocabulary.words.tolist(), words)
        pairs = {key: i for i, key in enumerate(self.vocabulary.pairs.tolist())}

        def visit(node: Binary) -> tuple[int, int]:
            own, state = number[node.symbol], next(states)
            if not node.children:
                leaf = leaves[own, tag_number[tags[node.position]]]
                views["leaf"][leaf, state] += 1
                key = leaf * self.vocabulary.n_words + int(word_numbers[node.position])
                if word_numbers[node.position] != OTHER and key in pairs:
                    views["word"][pairs[key], state] += 1
                return own, state
            (left, one), (right, two) = visit(node.children[0]), visit(node.children[1])
            rule = rules[own, left, right]
            views["rule"][rule] += 1
            if "left" in views:
                views["left"][rule, state, one] += 1
                views["right"][rule, state, two] += 1
            return own, state

        top, state = visit(tree)
        views["root"][top, state] += 1
        if "span" in views:
            code = np.array(encode_tree(tree, number))
            offsets = np.array([0, code.size])
            tokens = Tokens(word_numbers, np.array([tag_number[tag] for tag in tags]), np.array([0, len(words)]))
            forest = forest_of_codes(code, offsets, tokens.tag, 1, grammar)[0]
            packed = pack(forest, tokens, self.vocabulary, span_classes(grammar)[0], True)
            for a in np.flatnonzero(packed.column >= 0):
                views["span"][packed.span[a], packed.column[a]] += 1
                for e in range(forest.edges[a], forest.edges[a + 1]):
                    views["split"][packed.split[e], packed.column[a]] += 1
        return out


def read_limits(states: Any) -> dict[str, int]:
    """Numbers of sub-categories by symbol, checked; empty where one number is for all."""
    if not isinstance(states, Mapping):
        whole(1, MAX_STATES)("states", states)
        return {}
    return {str(name): whole_number(f"states[{name!r}]", number, 1, MAX_STATES) for name, number in states.items()}


def read_facts(schema: Schema) -> tuple[Grammar, Vocabulary]:
    """The grammar and the vocabulary of a schema, checked: kernels go where they say."""
    facts = schema.facts
    missing = [name for name in (*Grammar._fields, "words", "word_pairs", "usual_tag") if name not in facts]
    if missing:
        raise ValueError(f"the schema lacks {missing[0]!r}; take one from Tree.schema")
    grammar = Grammar(**{name: facts[name] for name in Grammar._fields})
    check_grammar(grammar)
    if str(facts["usual_tag"]) not in grammar.tags.tolist():
        raise ValueError(f"usual_tag must be a tag of the grammar, got {shorten(facts['usual_tag'])}")
    words, pairs = np.asarray(facts["words"]), np.asarray(facts["word_pairs"])
    if words.ndim != 1 or words.dtype.kind != "U" or pairs.ndim != 1 or pairs.dtype.kind != "i":
        raise ValueError("words and word_pairs of the schema must be vectors of strings and of whole numbers")
    return grammar, Vocabulary(words, pairs, int(grammar.tags.size))


def _read_sentence(given: Any, name: str) -> tuple[list[str], list[str]]:
    """Words and tags of a sentence."""
    if isinstance(given, str):
        given = [piece.rpartition("/")[::2] for piece in given.split()]
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, list | tuple) or not given:
        raise ValueError(f"{name} must be a list of pairs (word, tag) with at least one, got {shorten(given)}")
    if len(given) > MAX_WORDS:
        raise ValueError(f"{name} has {len(given)} words, and at most {MAX_WORDS} can be parsed; split the sentence")
    words, tags = [], []
    for k, pair in enumerate(given):
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(one, str) for one in pair):
            raise ValueError(f"{name}, word {k}, must be a pair of strings (word, tag), got {shorten(pair)}")
        word, tag = (escape("".join(one.split())) for one in pair)
        if not word or not tag:
            raise ValueError(f"{name}, word {k}, must have a word and a tag, got {shorten(pair)}")
        words.append(word)
        tags.append(tag)
    return words, tags


def _tree_texts(y: Any) -> list[Any]:
    return entries("y", y, "a list of bracketed trees")


def _leaf_rules(trees: list[Binary], tags: list[list[str]], grammar: Grammar) -> Array:
    """The leaf rule of every word."""
    symbols = {name: i for i, name in enumerate(grammar.symbols.tolist())}
    numbers = {tag: i for i, tag in enumerate(grammar.tags.tolist())}
    rules = {tuple(leaf): i for i, leaf in enumerate(grammar.leaves.tolist())}
    found: list[int] = []
    for tree, own in zip(trees, tags, strict=True):
        todo = [tree]
        while todo:
            node = todo.pop()
            todo += reversed(node.children)
            if not node.children:
                found.append(rules[symbols[node.symbol], numbers[own[node.position]]])
    return np.array(found, dtype=np.int64)


def _count_wrong(true: Any, label: Any, h: Any) -> float:
    """Wrong and missed labelled spans, by definition."""
    one, two = (Counter(list_spans(parse_tree(str(text)))[0]) for text in (true, label))
    return float(((one - two) + (two - one)).total())


def _with_words(node: Node, words: list[str]) -> Node:
    """The same tree with other words; they are used up from the end."""
    if node.word is not None:
        return node._replace(word=words.pop())
    return node._replace(children=tuple(_with_words(child, words) for child in node.children))
