"""`Parser`: phrase-structure trees of sentences, learned from bracketed trees."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tacit.data.parameters import entries, random_numbers
from tacit.data.specs import estimator, instance, parameter, positive, switch, whole
from tacit.learners import HiddenCRF
from tacit.learners.application import Application
from tacit.runtime import Status
from tacit.runtime.loop import Deadline
from tacit.text.parsing.brackets import escape, list_leaves, parse_tree
from tacit.text.parsing.problem import Tree
from tacit.text.parsing.scores import ParseScores, parse_scores
from tacit.text.tagger import Tagger

HELD_OUT = 0.1
"""Share of the trees on which a parser is tested."""


class HeldOutTrees(NamedTuple):
    """What held-out trees show: true and predicted ones, their scores, and the share of true spans that the grammar and
    the coarse pass leave within reach, given the true tags."""

    true: list[str]
    predicted: list[str]
    scores: ParseScores
    reachable: float


class Parses(NamedTuple):
    """Trees of sentences, and where they needed a fallback.

    Attributes
    ----------
    trees : one per sentence
    fragments : positions of sentences that the grammar does not cover: their trees are rows of fragments
    new_tags : tags that training did not have, which are read as its most frequent one
    """

    trees: list[str]
    fragments: list[int]
    new_tags: list[str]


@estimator
class Parser(Application):
    """Parse sentences by a hidden CRF of trees (`tacit.problems.Tree`), with features of spans.

    It sums over hidden sub-categories, and predicts the tree of the highest expected F1. Words without tags get them
    from a `tacit.Tagger` that is learned from the same trees.

    Parameters
    ----------
    states : hidden sub-categories per symbol; 1 for none
    C : factor of the log-loss of a sentence
    max_iter : steps of L-BFGS, each about one pass over the sentences
    vertical, horizontal, spans, min_count : as in `tacit.problems.Tree`
    prune : as in `tacit.problems.Tree`
    time_budget : stop after this many seconds and keep the model so far; None for no limit
    random_state : seed
    verbose : 1 shows progress on a terminal

    Attributes
    ----------
    model_, tagger_ : the fitted learner, and the tagger for words without tags
    status_ : INTERRUPTED after Ctrl-C, STOPPED at the time budget, CONVERGED after all steps

    >>> trees = ["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "(S (NP (PRP it)) (VP (VBZ sleeps)))"] * 5
    >>> parser = Parser(verbose=0).fit(trees)
    >>> parser.predict([[("the", "DT"), ("cat", "NN"), ("sleeps", "VBZ")], ["it", "barks"]])
    ['(ROOT (S (NP (DT the) (NN cat)) (VP (VBZ sleeps))))', '(ROOT (S (NP (PRP it)) (VP (VBZ barks))))']
    """

    learned: ClassVar = {
        "model_": instance(HiddenCRF, "a fitted HiddenCRF"),
        "tagger_": instance(Tagger, "a fitted Tagger"),
    }

    states: int = parameter(whole(1, 64), default=2)
    C: float = parameter(positive, default=0.3)
    max_iter: int = parameter(whole(), default=40)
    vertical: int = parameter(whole(1, 4), default=1)
    horizontal: int = parameter(whole(0, 8), default=0)
    spans: bool = parameter(switch, default=True)
    min_count: int = parameter(whole(), default=2)
    prune: float = 1e-3
    time_budget: float | None = parameter(lambda name, value: Deadline(value), default=None)
    random_state: Any = 0
    verbose: int = 1

    def fit(self, trees: Any) -> Parser:
        """Learn from bracketed trees, one text each."""
        self.check_parameters()
        texts = entries("trees", trees, "a list of bracketed trees")
        sentences = [read_leaves(text, f"trees[{i}]") for i, text in enumerate(texts)]
        seed = int(random_numbers(self.random_state).randint(2**31))
        problem = Tree(
            states=self.states,
            vertical=self.vertical,
            horizontal=self.horizontal,
            spans=self.spans,
            min_count=self.min_count,
            prune=self.prune,
        )
        problem.check()
        model = HiddenCRF(
            problem,
            C=float(self.C) * max(len(texts), 1),
            max_iter=self.max_iter,
            random_state=seed,
            verbose=self.verbose,
            callbacks=[Deadline(self.time_budget)],
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it takes a given number of steps
            model.fit(sentences, texts)
        words, tags = ([[pair[k] for pair in own] for own in sentences] for k in (0, 1))
        if len({tag for own in tags for tag in own}) < 2:
            raise ValueError("trees must have at least two different tags; check that leaves are written (TAG word)")
        self.tagger_ = Tagger(epochs=5, random_state=seed, verbose=0).fit(words, tags)
        self.model_ = model
        self.status_ = model.status_ if model.status_ in (Status.INTERRUPTED, Status.STOPPED) else Status.CONVERGED
        return self

    def predict(self, X: Any) -> list[str]:
        """The trees of sentences: lists of words, or of pairs (word, tag)."""
        return self.parse(X).trees

    def parse(self, X: Any) -> Parses:
        """As `predict`, and which sentences needed a fallback."""
        check_is_fitted(self)
        oracle: Any = self.model_.problem.bind(self._tag(X), None, self.model_.schema_)
        trees = oracle.decode(oracle.likeliest_parts(self.model_.coef_).code)[0].tolist()
        return Parses(trees, oracle.glued, oracle.new_tags)

    def score(self, trees: Any) -> float:
        """Labelled F1 of trees that are predicted from the words and tags of these."""
        texts = entries("trees", trees, "a list of bracketed trees")
        found = self.predict([read_leaves(text, f"trees[{i}]") for i, text in enumerate(texts)])
        return parse_scores(texts, found).overall.f1

    def evaluate(self, trees: Any) -> HeldOutTrees:
        """Fit another parser on nine tenths of the trees and test it on the words of the others. A fitted parser stays
        as it is."""
        texts = entries("trees", trees, "a list of bracketed trees")
        if len(texts) < 2:
            raise ValueError(f"trees must have at least 2 trees to hold one out, got {len(texts)}")
        rng = np.random.default_rng(int(random_numbers(self.random_state).randint(2**31)))
        order, n_test = rng.permutation(len(texts)), max(1, int(HELD_OUT * len(texts)))
        test, train = ([texts[i] for i in np.sort(own)] for own in (order[:n_test], order[n_test:]))
        return Parser(**self.get_params()).fit(train).compare(test)

    def compare(self, trees: Any) -> HeldOutTrees:
        """Parse the words of these trees, which were not trained on, and compare; the tagger's tags are used."""
        check_is_fitted(self)
        texts = [str(text) for text in entries("trees", trees, "a list of bracketed trees")]
        tagged = [read_leaves(text, f"trees[{i}]") for i, text in enumerate(texts)]
        found = self.predict([[word for word, _ in own] for own in tagged])
        oracle: Any = self.model_.problem.bind(tagged, None, self.model_.schema_)
        return HeldOutTrees(texts, found, parse_scores(texts, found), oracle.reachable(texts))

    def _tag(self, X: Any) -> list[list[tuple[str, str]]]:
        """Sentences as pairs of word and tag; those without tags are tagged."""
        sentences = [
            entries(f"X[{i}]", own, "a sentence") if isinstance(own, list | tuple | np.ndarray) else own
            for i, own in enumerate(entries("X", X, "a list of sentences"))
        ]
        bare = [
            i
            for i, own in enumerate(sentences)
            if isinstance(own, list) and own and all(isinstance(word, str) for word in own)
        ]
        if bare:
            tags = self.tagger_.predict([[escape(word) for word in sentences[i]] for i in bare])
            for i, own in zip(bare, tags, strict=True):
                sentences[i] = list(zip(sentences[i], map(str, own), strict=True))
        return sentences


def read_leaves(text: Any, name: str) -> list[tuple[str, str]]:
    """Pairs of word and tag of a bracketed tree."""
    return [(str(leaf.word), leaf.label) for leaf in list_leaves(parse_tree(text, name))]
