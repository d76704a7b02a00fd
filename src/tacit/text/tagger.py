"""`Tagger`: sequence labelling, such as part-of-speech tagging and named-entity recognition."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tacit.data.arrays import Array
from tacit.data.parameters import entries, has_length, plain_array, random_numbers, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import choice, estimator, instance, optional, parameter, positive, whole
from tacit.learners import LatentSVM, StructuredSVM
from tacit.learners.application import Application
from tacit.learners.asking import Questions, ask
from tacit.problems import Chain
from tacit.problems.chain.tags import read_tags
from tacit.runtime import Status
from tacit.runtime.loop import Deadline
from tacit.solvers import Subgradient
from tacit.text.clusters import WordClusters, match_names, read_gazetteers
from tacit.text.entities import (
    OUTSIDE,
    SCHEMES,
    EntityScores,
    convert_tags,
    find_invalid_pairs,
    has_entities,
    score_entities,
)
from tacit.text.steps import StepFeatures, is_numeric
from tacit.text.words import WordFeatures, number_words


def _check_gazetteers(name: str, value: Any) -> Any:
    return read_gazetteers(value)


PREFIXES, SUFFIXES = 5, 6
"""The longest prefixes and suffixes that are features: with a few hundred sentences better than 3 and 4."""

HELD_OUT = 0.1
"""Share of the sentences on which a tagger is tested."""


class TagScores(NamedTuple):
    """Quality of a tagger on held-out sentences.

    Attributes
    ----------
    tags : the tags, sorted
    confusion : (tags, tags) the confusion matrix, true tags as rows and predicted tags as columns
    accuracy, baseline : share of right tags; that of the most frequent tag of every word (of numbers: of a logistic
        regression, each step by itself)
    unknown_accuracy, n_unknown : accuracy on words that are not in the training data, and the number of those
    entities, entity_baseline : scores of whole entities where tags mark entities (see `tacit.text.has_entities`); those
        of the most frequent tag of every word
    """

    tags: list[str]
    confusion: Array
    accuracy: float
    baseline: float
    unknown_accuracy: float
    n_unknown: int
    entities: EntityScores | None = None
    entity_baseline: EntityScores | None = None

    def per_tag(self) -> list[tuple[str, int, float, float, float]]:
        """Tag, number of words with it, precision, recall and F1; NaN where these are undefined."""
        rows = []
        for j, tag in enumerate(self.tags):
            right, true, predicted = self.confusion[j, j], self.confusion[j].sum(), self.confusion[:, j].sum()
            f1 = _share(2 * right, true + predicted)
            rows.append((tag, int(true), _share(right, predicted), _share(right, true), f1))
        return rows


@estimator
class Tagger(Application):
    """Tag words by an averaged structured SVM on a chain, with features of words and their neighbours.

    Parameters
    ----------
    states : hidden states per tag; 1 for none
    C : factor of the loss of a sentence
    epochs : passes over the sentences
    min_count : how often a feature must occur in training to be used
    window : how many words on each side have features
    missed : where tags mark entities (B, I, O and so on), what a token of an entity costs that is tagged "O", relative
        to other wrong tags. Pairs of tags that the scheme rules out are then never predicted
    scheme : "bio" or "iobes" converts the tags of entities before learning, see `tacit.text.convert_tags`; "keep" does
        not
    gazetteers : lists of names by type, such as {"city": ["New York"]}; whether a word is in one is a feature
    n_clusters : number of clusters of the words of ``unlabelled`` text, at the finest of three levels
    time_budget : stop after this many seconds and keep the model so far; None for no limit
    random_state : seed
    verbose : 1 shows progress on a terminal

    Attributes
    ----------
    features_, model_ : the fitted `tacit.text.WordFeatures` (of numbers: `tacit.text.StepFeatures`), and the learner
    words_ : the words of the training data
    clusters_ : the `tacit.text.WordClusters` of the unlabelled text; None without such text
    scores_ : `TagScores` of the held-out test, after `evaluate`
    status_ : INTERRUPTED after Ctrl-C, STOPPED at the time budget, CONVERGED after all epochs

    >>> words = [["the", "dog", "barks"], ["a", "cat", "sleeps"]] * 10
    >>> tagger = Tagger(epochs=3).fit(words, [["D", "N", "V"]] * 20)
    >>> tagger.predict([["the", "cat", "barks"]])[0].tolist()
    ['D', 'N', 'V']
    """

    learned: ClassVar = {
        "model_": instance((LatentSVM, StructuredSVM), "a fitted learner"),
        "features_": instance((WordFeatures, StepFeatures), "fitted WordFeatures or StepFeatures"),
        "clusters_": instance((WordClusters, type(None)), "fitted WordClusters, or None"),
    }

    states: int = parameter(whole(1, 64), default=1)
    C: float = parameter(positive, default=0.1)
    epochs: int = parameter(whole(), default=10)
    min_count: int = parameter(whole(), default=1)
    window: int = parameter(whole(0, 20), default=2)
    missed: float = parameter(positive, default=2.0)
    scheme: str = parameter(choice("keep", *SCHEMES), default="keep")
    gazetteers: dict[str, list[str]] | None = parameter(optional(_check_gazetteers), default=None)
    n_clusters: int = parameter(whole(2, 1 << 16), default=512)
    time_budget: float | None = parameter(lambda name, value: Deadline(value), default=None)
    random_state: Any = 0
    verbose: int = 1

    def fit(self, X: Any, y: Any, unlabelled: Any = None) -> Tagger:
        """Learn from sentences and their tags.

        Parameters
        ----------
        X : sentences, lists of words; or of tuples of a word and more strings, each of which is a feature; or arrays
            (steps, numbers), sequences of numbers
        y : one list of tags per sentence; a missing tag is None
        unlabelled : more sentences, lists of words without tags, from which clusters of words are learned
        """
        self.check_parameters()
        seed = int(random_numbers(self.random_state).randint(2**31))
        features, clusters, table = self._learn_features(X, unlabelled, seed)
        y = self._convert(y)
        tags = read_tags(y, table.lengths)
        is_hidden = self.states > 1 or bool(tags.missing.any())
        is_dense = isinstance(features, StepFeatures)  # few weights: a solver that certifies its gap
        steps: dict[str, Any] = {} if is_dense else {"solver": Subgradient(), "max_iter": self.epochs}
        model = (LatentSVM if is_hidden else StructuredSVM)(
            self._chain(tags.values, tags.missing, table.offsets),
            C=float(self.C) * len(table),
            **steps,
            random_state=seed,
            verbose=self.verbose,
            callbacks=[Deadline(self.time_budget)],
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it runs a given number of epochs
            model.fit(table, y)
        self.features_, self.model_, self.clusters_ = features, model, clusters
        self.words_ = plain_array(sorted({word for sentence in X for word in _plain_words(sentence)}), "X")
        self.status_ = model.status_ if model.status_ in (Status.INTERRUPTED, Status.STOPPED) else Status.CONVERGED
        return self

    def _learn_features(self, X: Any, unlabelled: Any, seed: int) -> tuple[Any, WordClusters | None, Ragged]:
        """Features of words or of numbers, clusters of words, and the table of these sequences."""
        if is_numeric(X):
            if unlabelled is not None or self.gazetteers:
                raise ValueError("unlabelled and gazetteers are for words, but X has numbers; leave them out")
            steps = StepFeatures(window=self.window)
            return steps, None, steps.fit_transform(X)
        clusters = None
        if unlabelled is not None:
            X, more = list(X), entries("unlabelled", unlabelled, "a list of sentences, each a list of words")
            clusters = WordClusters(self.n_clusters, random_state=seed).fit([*map(_plain_words, X), *more])
        tokens, n_extra = self._describe(X, clusters)
        settings = {"window": self.window, "min_count": self.min_count, "extra": n_extra}
        features = WordFeatures(prefixes=PREFIXES, suffixes=SUFFIXES, **settings)
        return features, clusters, features.fit_transform(tokens)

    def _describe(self, X: Any, clusters: WordClusters | None) -> tuple[Any, int]:
        """The tokens with all their columns, and the number of columns beside the word."""
        sentences = entries("X", X, "a list of sentences, each a list of words")
        first = next((sentence[0] for sentence in sentences if has_length(sentence) and len(sentence)), "")
        n_given = len(first) - 1 if isinstance(first, tuple) else 0
        number_words(sentences, n_given)
        words = [_plain_words(sentence) for sentence in sentences]
        parts: list[Any] = [] if clusters is None else [clusters.columns(words)]
        lists = read_gazetteers(self.gazetteers or {}).values()
        parts += [[[(tag,) for tag in own] for own in match_names(words, names)] for names in lists]
        if not parts:
            return sentences, n_given
        found = [
            [
                _join_columns(token, *columns)
                for token, *columns in zip(sentence, *(part[i] for part in parts), strict=True)
            ]
            for i, sentence in enumerate(sentences)
        ]
        return found, n_given + (0 if clusters is None else clusters.codes_.shape[1]) + len(self.gazetteers or {})

    def _table(self, X: Any) -> Ragged:
        if isinstance(self.features_, StepFeatures):
            return self.features_.transform(X)
        tokens, n_extra = self._describe(X, self.clusters_)
        if n_extra != self.features_.extra:
            more = n_extra - int(self.features_.extra)
            found = f"{abs(more)} {'more' if more > 0 else 'fewer'}"
            raise ValueError(f"every word must have as many columns as in training, got {found}; see X in `fit`")
        return cast(Ragged, self.features_.transform(tokens))

    def _chain(self, tags: Array, is_missing: Array, offsets: Array) -> Chain:
        """The problem; where tags mark entities, with their pairs that are not valid, and with `missed`."""
        kinds = np.unique(tags[~is_missing]).tolist()
        if not all(isinstance(kind, str) for kind in kinds) or not has_entities(kinds) or OUTSIDE not in kinds:
            return Chain(states=self.states)
        losses = 1.0 - np.eye(len(kinds))
        losses[np.array(kinds) != OUTSIDE, kinds.index(OUTSIDE)] = float(self.missed)
        known = tags.astype(object)
        known[is_missing] = None
        forbidden = find_invalid_pairs([known[a:b].tolist() for a, b in pairwise(offsets.tolist())])
        return Chain(states=self.states, classes=kinds, loss=losses, forbidden=forbidden or None)

    def predict(self, X: Any) -> Ragged:
        """The tags of sentences."""
        return cast(Ragged, self.model_.predict(self._table(X)))

    def ask(self, X: Any, k: int = 20, *, y: Any = None, parts: bool = False, random_state: Any = 0) -> Questions:
        """The sentences of X whose tags a person should give, per word of them; see `tacit.ask`. O(words of X).

        ``y`` has the tags that are known, None for a missing one. With ``parts`` the questions are single words.
        """
        sentences = [list(own) for own in X]
        table = self._table(sentences)
        known = [[None] * len(own) for own in sentences] if y is None else self._convert(y)
        costs = None if parts else np.array([max(len(own), 1) for own in sentences], dtype=np.float64)
        found = ask(self.model_, table, known, k, parts=parts, cost=costs, random_state=random_state)
        if parts:
            return found._replace(guesses=[str(tag) for tag in found.guesses])
        guesses: Any = self.predict([sentences[i] for i in found.rows]) if found.rows.size else []
        return found._replace(guesses=[[str(tag) for tag in own] for own in guesses])

    def score(self, X: Any, y: Any) -> float:
        """The accuracy, over all words with a known tag."""
        return float(self.model_.score(self._table(X), self._convert(y)))

    def _convert(self, y: Any) -> Any:
        return y if self.scheme == "keep" else [convert_tags(own, self.scheme) for own in y]

    def evaluate(self, X: Any, y: Any, X_test: Any = None, y_test: Any = None, *, unlabelled: Any = None) -> TagScores:
        """Fit another tagger on nine tenths of the sentences and test it on the others, or on given test sentences.

        The scores are kept as `scores_`; a fitted tagger stays as it is.
        """
        X, y = list(X), list(y)
        if X_test is None:
            if len(X) < 2:
                raise ValueError(f"X must have at least 2 sentences to hold one out, got {len(X)}")
            rng = np.random.default_rng(int(random_numbers(self.random_state).randint(2**31)))
            order = rng.permutation(len(X))
            n_test = max(1, int(HELD_OUT * len(X)))
            test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
            X_test, y_test = [X[i] for i in test], [y[i] for i in test]
            X, y = [X[i] for i in train], [y[i] for i in train]
        other = Tagger(**self.get_params()).fit(X, y, unlabelled)
        self.scores_ = measure(other, X, self._convert(y), X_test, self._convert(y_test))
        return self.scores_

    def check_learned(self) -> None:
        super().check_learned()
        if self.model_.n_features_in_ != self.features_.n_columns_:
            columns = shorten(self.features_.n_columns_)
            raise ValueError(f"features_ must have {self.model_.n_features_in_} columns as model_ has, got {columns}")

    def learned_attributes(self) -> dict[str, Any]:
        """What is saved: all but the scores."""
        return {name: value for name, value in super().learned_attributes().items() if name != "scores_"}


def measure(tagger: Tagger, X: Any, y: Any, X_test: Any, y_test: Any) -> TagScores:
    """Test a tagger that was fitted on X and y on other sentences; words with a missing tag are left out."""
    steps, table = X if is_numeric(X) else None, tagger._table(X_test)
    found = cast(Ragged, tagger.model_.predict(table))
    truth = read_tags(y_test, found.lengths)
    known = ~truth.missing
    if not known.any():
        raise ValueError("all tags in y_test are missing; give some to compare with")
    X, X_test = ([_plain_words(sentence) for sentence in part] for part in (X, X_test))
    words = [word for sentence in X_test for word in sentence]
    usual = np.array(_usual_tags(X, y, words)) if steps is None else _tag_steps(steps, y, tagger.features_, table)
    true, guess = truth.values[known], found.values[known]
    tags, codes = np.unique(np.concatenate([true, guess]), return_inverse=True)
    confusion = np.zeros((tags.size, tags.size), dtype=np.int64)
    np.add.at(confusion, (codes[: true.size], codes[true.size :]), 1)
    is_new = ~np.isin(plain_array(words, "X")[known], tagger.words_)
    right = true == guess
    marked: tuple[EntityScores, ...] = ()
    if known.all() and has_entities({*map(str, tags), *map(str, tagger.model_.classes_)}):
        gold = [list(map(str, own)) for own in found.with_values(truth.values)]
        marked = tuple(
            score_entities(gold, [list(map(str, own)) for own in each]) for each in (found, found.with_values(usual))
        )
    return TagScores(
        [str(tag) for tag in tags.tolist()],
        confusion,
        float(right.mean()),
        float(np.mean(usual[known] == true)),
        float(right[is_new].mean()) if is_new.any() else float("nan"),
        int(is_new.sum()),
        *marked,
    )


def _tag_steps(X: Any, y: Any, features: StepFeatures, table: Ragged) -> Array:
    """The tags of time steps by logistic regression, each step by itself."""
    from sklearn.linear_model import LogisticRegression

    known = features.transform(X)
    tags = read_tags(y, known.lengths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=300).fit(known.values[~tags.missing], tags.values[~tags.missing])
    return np.asarray(model.predict(table.values))


def _plain_words(sentence: Any) -> list[str]:
    """The words of a sentence whose tokens are words, or tuples that begin with a word; a step of numbers is empty."""
    found = (token[0] if isinstance(token, tuple) else token for token in sentence)
    return [word if isinstance(word, str) else "" for word in found]


def _join_columns(token: Any, *columns: tuple[str, ...]) -> tuple[str, ...]:
    given = token if isinstance(token, tuple) else (token,)
    return (*given, *(value for column in columns for value in column))


def _usual_tags(X: Any, y: Any, words: list[str]) -> list[str]:
    """The most frequent tag of every word in training, and for other words the most frequent tag of all."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    overall: Counter[str] = Counter()
    for sentence, tags in zip(X, y, strict=True):
        for word, tag in zip(sentence, tags, strict=True):
            if tag is not None:
                counts[word][tag] += 1
                overall[tag] += 1
    return [counts.get(word, overall).most_common(1)[0][0] for word in words]


def _share(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")
