"""`SpectralTagger`: sequence tagging by a weighted automaton over pairs (x, y), learned in one pass over the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from tacit.data.arrays import Array, locate
from tacit.data.labels import find_labels
from tacit.data.parameters import one_of, random_numbers, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.specs import choice, either, estimator, not_negative, optional, parameter, table, whole
from tacit.learners.application import Application
from tacit.runtime import Status
from tacit.spectral.em import EMStep, check_steps
from tacit.spectral.symbols import read_sequences
from tacit.spectral.tagger.em import first_model, improve_pairs
from tacit.spectral.tagger.estimate import Estimate, PairedAutomaton, estimate
from tacit.spectral.tagger.inference import PairModel

RANKS = (2, 4, 8, 12, 16, 20, 24, 32)
"""Ranks that "auto" compares."""

STRENGTHS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Smoothing that "auto" compares."""

HELD_OUT = 0.1
"""Share of the sequences that is held out of many data."""

MAX_FOLDED, FOLDS = 50_000, 5
"""Up to this many tokens every sequence is held out once, in one of this many folds: a tenth of few data is noisy."""

MAX_COUNTED = 10_000
"""Training tokens in which corrected probabilities are counted: all would take longer than learning."""

MAX_COMPARED = 100_000
"""Training tokens by which EM's model is compared with its start."""

MAX_EM_SMOOTHING = 10.0
"""The largest smoothing of EM, in visits of the average state: EM cannot back off to tags."""


class Setting(NamedTuple):
    """Rank, smoothing and kind of contexts."""

    rank: int
    smoothing: float
    context: str


def _check_rank(name: str, value: Any) -> None:
    if isinstance(value, str):
        one_of(name, value, ("auto",))
        return
    for rank in value if isinstance(value, (list, tuple)) else [value]:
        whole_number(name, rank, 1, 1000)
    if isinstance(value, (list, tuple)) and not value:
        raise ValueError(f"{name} must not be an empty list; give at least one rank")


def _check_conditional(name: str, value: Any) -> None:
    if not isinstance(value, bool) and not (isinstance(value, str) and value == "markov"):
        raise ValueError(f"{name} must be False, True or 'markov', got {shorten(value)}")


def _check_vocabulary(name: str, value: Any) -> None:
    if not (hasattr(value, "fit") and hasattr(value, "transform")):
        raise TypeError(f"{name} must have fit and transform, as RareWords() has, got {shorten(value)}")


def _check_fitted_vocabulary(name: str, value: Any) -> None:
    """A vocabulary that can transform: those of tacit check what they learned, too."""
    _check_vocabulary(name, value)
    for part in ("check", "check_learned"):
        if hasattr(value, part):
            getattr(value, part)()
    check_is_fitted(value)


def _check_sorted(name: str, value: Any) -> None:
    """Different symbols or tags in ascending order."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or not value.size or value.dtype.kind not in "biufUS":
        raise ValueError(f"{name} must be an array of strings or whole numbers, got {shorten(value)}")
    if not np.array_equal(np.unique(value), value):
        raise ValueError(f"{name} must be different and in ascending order, got {shorten(value)}")


@estimator
class SpectralTagger(Application):
    """Tag sequences (part-of-speech tags, ...) by a weighted automaton over pairs of a symbol and its tag.

    ``P(x, y) = α_1ᵀ A_{x_1}^{y_1} … A_{x_m}^{y_m} α_∞``: counts of three neighbouring pairs and one SVD give all
    operators (`tacit.spectral.tagger.estimate`), without iterations. A tag is the likeliest given all symbols of its
    sequence, ``P(y_t = τ | x) ∝ F_{t−1} A_{x_t}^τ B_{t+1}``. O(tokens · rank²) time, O(pairs · rank²) memory.
    Quattoni, Balle, Carreras & Globerson (2014).

    The joint model learns how symbols follow each other as well, and is right for any hidden Markov model of pairs. The
    conditional one learns ``P(y | x)`` from tags alone; it is right only where symbols are independent over time.
    ``conditional="markov"`` weights the windows so that a Markov chain of symbols looks independent.

    Parameters
    ----------
    rank : number of hidden dimensions; "auto", or a list, takes the one with the fewest errors on sequences that are
        held out: a tenth, or each once in five folds where there are few; before EM
    conditional : False for the joint model, True for the conditional one, "markov" for its reweighted form
    context : the contexts before and after a pair: "pairs" (the most frequent pairs that occur ten times or more,
        others by their tag), "tags", which need fewer data, or "symbols", in which hidden states must show. "auto"
        selects pairs or tags, like the rank. The conditional model always uses tags
    size : number of pairs, or symbols, that are separate contexts
    smoothing : visits that are added to the data, to every pair as its tag behaves, and to every tag as in a chain of
        tags; "auto" is selected like the rank. Few data need hundreds (`tacit.spectral.tagger.estimate`)
    decoding : "marginal" takes the likeliest tag of each token, "viterbi" the best sequence under the probabilities of
        neighbouring tags
    refine : None, or "em" to continue with Baum–Welch (joint model). EM may end in a poor optimum: its model is used
        only if it tags the training sequences at least as well
    max_iter, tol : of EM: steps at most, and the least rise of the log-likelihood per token
    vocabulary : None for symbols as they are (strings or integers), or a transformer of sequences into symbols:
        `RareWords()`, `FeatureClusters()`, `HashedSymbols()`, or any with ``fit`` and ``transform``
    random_state : of the SVD and of EM's start
    verbose : 1 shows progress on a terminal

    Attributes
    ----------
    classes_ : the tags
    symbols_ : the symbols of training; others count as a rare one
    rank_ : the rank; smaller than `rank` if that of the counts is
    automaton_ : `PairedAutomaton`
    smoothing_, context_ : those that were given or selected
    held_out_ : share of errors by rank, each with its best smoothing and context, if any was selected
    n_corrected_ : number of the first 10,000 training tokens whose negative probabilities were corrected
    history_, status_ : of EM

    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"], ["a", "dog", "sleeps"]] * 5
    >>> y = [["D", "N", "V"]] * 20
    >>> model = SpectralTagger(3).fit(X, y)
    >>> model.predict([["a", "dog", "barks"], ["the", "bird"]])[0].tolist()
    ['D', 'N', 'V']
    """

    symbols_: Array
    classes_: Array
    pairs_: Array
    automaton_: PairedAutomaton
    history_: list[EMStep]
    status_: Status
    vocabulary_: Any

    _not_saved = ()

    rank: Any = parameter(_check_rank, default=20)
    _: KW_ONLY
    conditional: Any = parameter(_check_conditional, default=False)
    context: str = parameter(choice("pairs", "tags", "symbols", "auto"), default="pairs")
    size: int = parameter(whole(), default=2000)
    smoothing: Any = parameter(either("auto", not_negative), default=100.0)
    decoding: str = parameter(choice("marginal", "viterbi"), default="marginal")
    refine: str | None = parameter(choice(None, "em"), default=None)
    max_iter: int = parameter(whole(), default=100)
    tol: float = parameter(not_negative, default=1e-5)
    vocabulary: Any = parameter(optional(_check_vocabulary), default=None)
    random_state: Any = 0
    verbose: int = 1
    learned: ClassVar = {
        "pairs_": table(None, 3, kinds="i"),
        "history_": check_steps,
        "symbols_": _check_sorted,
        "classes_": _check_sorted,
        "vocabulary_": optional(_check_fitted_vocabulary),
    }

    def fit(self, X: Any, y: Any) -> SpectralTagger:
        """Learn from sequences of symbols and their tags, one per symbol."""
        self.check_parameters()
        self.vocabulary_ = None if self.vocabulary is None else clone(self.vocabulary).fit(X)
        symbols, tags = _read_pair(self._symbols_of(X), y)
        seed = int(random_numbers(self.random_state).randint(2**31))
        self.symbols_, self.classes_ = np.unique(symbols.values), np.unique(tags)
        codes = find_labels(self.symbols_, symbols.values).astype(np.int64)
        labels = find_labels(self.classes_, tags).astype(np.int64)
        with threadpool_limits(1):  # the same bits for any number of threads
            choice, self.held_out_ = self._choose(codes, labels, symbols.offsets, seed)
            found = self._estimate(codes, labels, symbols.offsets, choice.rank, choice.context, seed)
            self.automaton_, self.history_, self.status_ = found.smooth(choice.smoothing), [], Status.CONVERGED
            if self.refine is not None:
                self._refine(found, codes, labels, symbols.offsets, choice, seed)
        self.smoothing_, self.context_ = choice.smoothing, choice.context
        self.pairs_, self.singular_values_ = found.counts.table(), found.singular_values
        self.rank_ = self.automaton_.rank
        few = int(np.searchsorted(symbols.offsets, MAX_COUNTED, side="right")) - 1
        shown = symbols.offsets[: max(few, 1) + 1]
        self.n_corrected_ = int(self._model().posteriors(codes[: shown[-1]], shown)[1])
        if self.status_ is Status.INTERRUPTED:
            message = "SpectralTagger: EM was interrupted; its best model is kept"
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X: Any) -> Ragged:
        """The tags of every sequence."""
        check_is_fitted(self)
        codes, offsets = self._encode(X)
        model = self._model()
        best = model.best_tags(codes, offsets) if self.decoding == "viterbi" else model.likeliest_tags(codes, offsets)
        return Ragged(self.classes_[best], offsets)

    def predict_proba(self, X: Any) -> Ragged:
        """The probability of every tag of every token: a table per sequence, columns as in `classes_`."""
        check_is_fitted(self)
        codes, offsets = self._encode(X)
        return Ragged(self._model().posteriors(codes, offsets)[0], offsets)

    def filter_proba(self, X: Any) -> Ragged:
        """P(y_t | x_1 … x_t): as `predict_proba`, but for each token from the symbols up to it, as they arrive.

        >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"]] * 5
        >>> model = SpectralTagger(3).fit(X, [["D", "N", "V"]] * 10)
        >>> whole, part = model.filter_proba([["a", "dog", "barks"]]), model.filter_proba([["a", "dog"]])
        >>> bool(np.allclose(whole[0][:2], part[0]))
        True
        """
        check_is_fitted(self)
        codes, offsets = self._encode(X)
        return Ragged(self._model().posteriors(codes, offsets, is_filter=True)[0], offsets)

    def score(self, X: Any, y: Any) -> float:
        """The share of correct tags (accuracy)."""
        found = self.predict(X)
        return float(np.mean(found.values == _read_pair(found, y)[1]))

    def log_likelihood(self, X: Any, y: Any) -> Array:
        """log P(x, y) of every sequence under the joint model, log P(y | x) under the conditional one.

        A symbol or tag that training never saw has probability zero in the joint model: −inf.
        """
        check_is_fitted(self)
        symbols, tags = _read_pair(self._symbols_of(X), y)
        codes, labels = find_labels(self.symbols_, symbols.values), find_labels(self.classes_, tags)
        if self.conditional is False:
            return self._model().joint_log_likelihoods(codes, labels, symbols.offsets)
        if labels.min() < 0:
            raise ValueError(f"y has a tag that training never saw; the tags are {shorten(self.classes_.tolist())}")
        return self._model().conditional_log_likelihoods(codes, labels, symbols.offsets)

    def learned_attributes(self) -> dict[str, Any]:
        return {**super().learned_attributes(), "automaton_": dict(self.automaton_._asdict())}

    def check_learned(self) -> None:
        super().check_learned()
        if isinstance(self.automaton_, dict):
            self.automaton_ = PairedAutomaton(**self.automaton_)
        n, (pairs, known) = self.automaton_.rank, (len(self.pairs_), len(self.symbols_))
        k = len(self.classes_)
        shapes = {"initial": (n,), "operators": (pairs + k, n, n), "final": (n,), "middle": (n,)}
        for name, shape in shapes.items():
            table(*shape)(f"{name} of automaton_", getattr(self.automaton_, name))
        if (self.vocabulary is None) != (self.vocabulary_ is None):
            raise ValueError("vocabulary_ must be the fitted vocabulary, or None where there is none")
        if not pairs or self.pairs_.min() < 0 or (self.pairs_[:, :2].max(axis=0) >= (known, k)).any():
            raise ValueError(f"pairs_ must be pairs of {known} symbols and {k} tags, got {shorten(self.pairs_)}")
        counts = self.pairs_[:, 2]
        if counts.min() < 1 or float(counts.astype(np.float64).sum()) > 2.0**53:
            raise ValueError(f"pairs_ must count each pair once or more, got counts from {counts.min()}")

    def _model(self) -> PairModel:
        return PairModel(self.automaton_, self.pairs_, len(self.symbols_), len(self.classes_))

    def _symbols_of(self, X: Any) -> Ragged:
        sequences = read_sequences(X if self.vocabulary_ is None else self.vocabulary_.transform(X))
        empty = np.flatnonzero(sequences.lengths == 0)
        if empty.size:
            raise ValueError(f"X[{empty[0]}] is empty; drop sequences without symbols")
        return sequences

    def _encode(self, X: Any) -> tuple[Array, Array]:
        symbols = self._symbols_of(X)
        codes = find_labels(self.symbols_, symbols.values)
        return np.where(codes < 0, len(self.symbols_), codes).astype(np.int64), symbols.offsets

    def _choose(self, codes: Array, labels: Array, offsets: Array, seed: int) -> tuple[Setting, dict[int, float]]:
        """Rank, smoothing and context: the given ones, or the best on held-out sequences."""
        ranks = self.rank if isinstance(self.rank, (list, tuple)) else RANKS if self.rank == "auto" else [self.rank]
        strengths = STRENGTHS if self.smoothing == "auto" else [self.smoothing]
        contexts = ["tags"] if self.conditional else ["pairs", "tags"] if self.context == "auto" else [self.context]
        if len(ranks) == len(strengths) == len(contexts) == 1:
            return Setting(int(ranks[0]), float(strengths[0]), contexts[0]), {}
        n_tags = len(self.classes_)
        n_pairs, n_symbols = len(np.unique(codes * n_tags + labels)), len(self.symbols_)
        most = {"tags": n_tags, "pairs": n_pairs, "symbols": n_symbols}
        settings = [
            Setting(rank, float(strength), context)
            for context in contexts
            for rank in sorted({min(int(rank), most[context]) for rank in ranks})
            for strength in strengths
        ]
        sizes = np.diff(offsets)

        def count(held: Array) -> list[float]:
            of_token = np.repeat(held, sizes)
            cuts = [np.concatenate([[0], np.cumsum(sizes[part])]) for part in (~held, held)]
            is_seen = np.bincount(codes[~of_token], minlength=len(self.symbols_)) > 0
            shown = np.where(is_seen[codes[of_token]], codes[of_token], len(self.symbols_))
            highest = max(setting.rank for setting in settings)
            found = {
                context: self._estimate(codes[~of_token], labels[~of_token], cuts[0], highest, context, seed)
                for context in contexts
            }
            parts = [found[setting.context].cut(setting.rank) for setting in settings]
            return [
                _model_of(part, part.smooth(setting.smoothing)).measure_error(shown, labels[of_token], cuts[1])
                for part, setting in zip(parts, settings, strict=True)
            ]

        return _select(settings, count, _hold_out(sizes, seed))

    def _estimate(self, codes: Array, labels: Array, offsets: Array, rank: int, context: str, seed: int) -> Estimate:
        options: dict[str, Any] = {"context": context, "size": int(self.size), "conditional": self.conditional}
        return estimate(codes, labels, offsets, len(self.symbols_), len(self.classes_), rank, seed, **options)

    def _refine(self, found: Estimate, codes: Array, labels: Array, offsets: Array, choice: Setting, seed: int) -> None:
        """Continue with EM; its model is used if it tags the first training sequences at least as well."""
        counts, rng = found.counts, np.random.default_rng(seed)
        visits = min(choice.smoothing, MAX_EM_SMOOTHING)
        start = first_model(self.automaton_, counts.pair, counts.n_pairs, offsets, visits, rng)
        limits: dict[str, Any] = {"max_iter": int(self.max_iter), "tol": float(self.tol), "verbose": self.verbose}
        model, self.history_, self.status_ = improve_pairs(start, counts.pair, offsets, smoothing=visits, **limits)
        candidate = counts.with_unknown(model.automaton(counts.n_pairs), False)
        shown = offsets[: max(int(np.searchsorted(offsets, MAX_COMPARED, side="right")), 2)]
        before, after = (
            _model_of(found, automaton).measure_error(codes[: shown[-1]], labels[: shown[-1]], shown)
            for automaton in (self.automaton_, candidate)
        )
        if after <= before:
            self.automaton_ = candidate

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.refine and self.conditional:
            raise ValueError("refine='em' needs conditional=False: EM maximises P(x, y)")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "automaton_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


def _model_of(found: Estimate, automaton: PairedAutomaton) -> PairModel:
    return PairModel(automaton, found.counts.table(), found.counts.n_symbols, found.counts.n_tags)


def _read_pair(symbols: Ragged, y: Any) -> tuple[Ragged, Array]:
    """Symbols, and their tags one after the other; none may be missing."""
    from tacit.problems.chain.tags import read_tags

    tags = read_tags(y, symbols.lengths)
    if tags.missing.any():
        i, t = locate(symbols.offsets, int(np.argmax(tags.missing)))
        raise ValueError(
            f"y[{i}][{t}] is missing, but SpectralTagger needs all tags; drop the sequence, or use "
            "tacit.HiddenCRF(tacit.problems.Chain())"
        )
    return symbols, tags.values


def _select(
    settings: Sequence[Setting], count: Callable[[Array], list[float]], parts: list[Array]
) -> tuple[Setting, dict[int, float]]:
    """The setting with the fewest errors, the smaller rank among equals, and the share of wrong tags by rank.

    ``count(held)`` is the share of errors of every setting on held-out sequences.

    >>> settings = [Setting(2, 1.0, "tags"), Setting(4, 1.0, "tags")]
    >>> _select(settings, lambda held: [0.5, 0.25], [np.array([True, False])])
    (Setting(rank=4, smoothing=1.0, context='tags'), {2: 0.5, 4: 0.25})
    """
    errors = np.mean([count(held) for held in parts], axis=0)
    best = settings[min(range(len(settings)), key=lambda i: (errors[i], settings[i]))]
    by_rank: dict[int, float] = {}
    for setting, error in zip(settings, errors.tolist(), strict=True):
        by_rank[setting.rank] = min(error, by_rank.get(setting.rank, np.inf))
    return best, dict(sorted(by_rank.items()))


def _hold_out(sizes: Array, seed: int) -> list[Array]:
    """Masks of held-out sequences, from their sizes: one tenth, or folds of few data.

    >>> [part.sum() for part in _hold_out(np.array([3, 4, 5, 3, 3, 4]), 0)]
    [np.int64(2), np.int64(1), np.int64(1), np.int64(1), np.int64(1)]
    """
    n = sizes.size
    if n < 2:
        raise ValueError("one sequence is too few to select by; give rank and smoothing as numbers, and a context")
    order = np.random.default_rng(seed).permutation(n)
    few = [order[: max(1, int(HELD_OUT * n))]]
    chosen = few if sizes.sum() > MAX_FOLDED else np.array_split(order, min(FOLDS, n))
    return [np.isin(np.arange(n), part) for part in chosen]
