"""`SpectralHMM`: hidden Markov models from counts of short substrings, refined by Baum–Welch."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from tacit.data.arrays import Array
from tacit.data.parameters import random_numbers
from tacit.data.ragged import Ragged
from tacit.data.specs import any_number, between, choice, estimator, not_negative, parameter, switch, table, whole
from tacit.problems.chain.forward_backward import forward_backward
from tacit.problems.chain.viterbi import viterbi
from tacit.spectral.automaton import WeightedAutomaton
from tacit.spectral.em import Expected, Fit, Parameters, expect, improve
from tacit.spectral.hidden_markov import HiddenMarkovModel, build_automaton, check_distributions, sum_moves
from tacit.spectral.moments import Counting, Moments
from tacit.spectral.prefix_tree import PrefixTree, find, grow
from tacit.spectral.recovery import Recovered, Windows, count_windows, is_small, match, recover
from tacit.spectral.spectral_automaton import StringDensity, read_strings
from tacit.spectral.symbols import UNSEEN, encode

SCALINGS = (0.5, 0.35)
"""Powers of frequencies that contexts are divided by; the likelihood selects one."""
MAX_RIVALS, RIVAL_STEPS = 2, 5
"""Recovered HMMs that are matched to the counts (one without EM) and compared, and EM steps before that."""


@estimator
class SpectralHMM(StringDensity):
    """A hidden Markov model (HMM) of sequences that end, learned by the method of moments and then by EM.

    Linear algebra finds transitions and emissions from counts of substrings (`tacit.spectral.recovery`); rows become
    the nearest distributions. Least squares then fits the best of them to the counts of short windows (`match`), up to
    about 16 states and 20 symbols. The likelihood of the strings selects one. ``refine="em"`` continues with
    Baum–Welch, which from here rarely ends in a poor optimum. The model is `HiddenMarkovModel`: a state emits, then the
    string ends or moves on. Hsu, Kakade & Zhang 2009; Anandkumar, Hsu & Kakade 2012.

    Parameters
    ----------
    n_states : number of hidden states
    length, size : contexts are the ``size`` most frequent strings of up to ``length`` symbols; with length 1 only
        bigrams and trigrams are counted
    refine : "em", or None for the result without EM
    max_iter, tol : of EM: steps at most, and the least rise of the log-likelihood per symbol
    smoothing : pseudo-count per state, divided among its transitions and stop, and among its emissions
    alphabet : the symbols to expect; None for those that occur
    random_state : of the decomposition's starts
    verbose : 1 shows progress on a terminal or in a notebook, 2 writes plain lines

    Attributes
    ----------
    startprob_, transmat_, emissionprob_ : as in hmmlearn's CategoricalHMM, which can start from them. States are in the
        order of their visits by the training strings
    stopprob_, empty_ : probability to end after a symbol of each state, and of the empty sequence
    automaton_ : the same as a `WeightedAutomaton`, with one state more for the start
    spectral_ : the spectral automaton of the counts, before any projection
    n_corrected_ : number of training strings whose value under ``spectral_`` is not a probability
    recovery_error_ : relative distance of the counts from those of an HMM of this size
    converged_, history_ : of EM
    symbols_ : the alphabet, the most frequent symbol first; the columns of ``emissionprob_``

    >>> rng = np.random.default_rng(0)
    >>> words = [["sun"] * rng.integers(1, 9) + ["rain"] * rng.integers(1, 4) for _ in range(500)]
    >>> model = SpectralHMM(2).fit(words)
    >>> model.predict_next([["sun"], ["sun", "rain"]])
    ['sun', 'rain']
    >>> model.emissionprob_.max(axis=1).round(2)
    array([1., 1.])
    >>> states = model.predict([["sun", "sun", "rain"]])[0]
    >>> bool(states[0] == states[1] != states[2])
    True
    """

    n_states: int = parameter(whole())
    _: KW_ONLY
    length: int = parameter(whole(), default=3)
    size: int = parameter(whole(), default=1000)
    refine: str | None = parameter(choice("em", None), default="em")
    max_iter: int = parameter(whole(), default=100)
    tol: float = parameter(not_negative, default=1e-6)
    smoothing: float = parameter(not_negative, default=0.01)
    alphabet: Any = None
    random_state: Any = 0
    verbose: int = 1
    learned: ClassVar = {
        "startprob_": table(None),
        "transmat_": table(None, None),
        "emissionprob_": table(None, None),
        "stopprob_": table(None),
        "empty_": between("a probability", 0, 1),
        "recovery_error_": any_number,
        "converged_": switch,
    }

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SpectralHMM:
        """Learn from sequences: lists of symbols, words, arrays, or a Ragged; y is ignored."""
        self.check_parameters()
        strings, symbols, weights = read_strings(X, self.alphabet, sample_weight)
        if strings.values.size == 0:
            raise ValueError(f"all {len(strings)} sequences are empty; add others, or use SpectralAutomaton")
        rng = random_numbers(self.random_state)
        counting = Counting("substring", int(self.length), int(self.size), None, SCALINGS[0])
        with threadpool_limits(1):
            moments = Moments(strings, symbols, weights, counting, int(self.n_states), 0)
            tree = moments.tree
            start, error, fit = self._start(moments, rng)
            if fit is not None:
                if not fit.interrupted:
                    fit = self._improve(tree, start, int(self.max_iter), self.verbose)
                start = _maximise(fit.counts, float(self.smoothing))
            counts = fit.counts if fit is not None else expect(tree, start)
            self._keep(moments, _most_visited_first(start, counts), error)
        self.history_ = fit.history if fit else []
        self.converged_ = bool(fit and fit.converged)
        if fit and fit.interrupted:
            warnings.warn("interrupted: the best model so far is kept; fit again for a better one", stacklevel=2)
        return self

    def predict(self, X: Any) -> Ragged:
        """The most probable path of hidden states of every sequence: one whole number per symbol.

        A state is a row of ``emissionprob_`` and ``transmat_``. Another fit may number the same states otherwise.
        """
        return self.decode(X)[1]

    def decode(self, X: Any) -> tuple[Array, Ragged]:
        """The log-probability of every sequence together with its most probable path, and the paths (Viterbi).

        A symbol that training never saw does not constrain its state, and makes the log-probability −inf.
        """
        check_is_fitted(self)
        return best_paths(self._model(), encode(X, self.symbols_))

    def predict_proba(self, X: Any) -> Ragged:
        """The probability of each hidden state at each symbol, given the whole sequence: (symbols, states) each.

        The most probable state of each symbol may differ from `predict`, the most probable path as a whole.
        """
        check_is_fitted(self)
        return state_proba(self._model(), encode(X, self.symbols_))

    def _model(self) -> HiddenMarkovModel:
        return HiddenMarkovModel(self.startprob_, self.transmat_, self.emissionprob_, self.stopprob_, self.empty_)

    def _start(self, moments: Moments, rng: np.random.RandomState) -> tuple[Parameters, float, Fit | None]:
        """The recovered HMM of the highest likelihood, after a few steps of EM if refined, its error, and that EM."""
        strings, k = moments.strings, len(moments.symbols)
        hankel, tree = moments.hankel, moments.tree
        first = grow(strings, moments.weights, longest=int(self.length))
        nodes = find(first, hankel.suffixes[1:])
        beginnings = np.where(nodes >= 0, first.passing[nodes], 0.0) / first.passing[0]
        seen = np.bincount(tree.symbol[1:], tree.passing[1:], minlength=k)
        empty = float(tree.ending[0] / tree.passing[0])
        found = [
            one
            for scaling in SCALINGS
            for one in recover(hankel, beginnings, seen / seen.sum(), int(self.n_states), scaling, rng)
        ]
        starts = [(_nearest_hmm(one, empty), one.error) for one in found]
        best = _by_likelihood(tree, starts)
        if is_small(int(self.n_states), k):
            windows = count_windows(strings, k, int(self.n_states), moments.weights)
            rivals = best[: 1 if self.refine is None else MAX_RIVALS]
            matched = [(_match(windows, start, empty), error) for start, error in rivals]
            best = _by_likelihood(tree, matched + rivals)
        if self.refine is None:
            return *best[0], None
        steps = min(RIVAL_STEPS, int(self.max_iter))
        fits: list[Fit] = []
        for start, _ in best[:MAX_RIVALS]:
            fits.append(self._improve(tree, start, steps))
            if fits[-1].interrupted:
                break
        winner = int(np.argmax([fit.counts.log_likelihood for fit in fits]))
        fit = fits[winner]._replace(interrupted=fits[-1].interrupted)
        return fit.parameters, best[winner][1], fit

    def _improve(self, tree: PrefixTree, start: Parameters, steps: int, verbose: int = 0) -> Fit:
        return improve(tree, start, step=_maximise, max_iter=steps, tol=float(self.tol), verbose=verbose)

    def _keep(self, moments: Moments, parameters: Parameters, error: float) -> None:
        self.symbols_ = moments.symbols
        self.automaton_ = WeightedAutomaton(*parameters, moments.symbols)
        self.distribution_ = None
        model = self.automaton_.to_hmm()
        self.startprob_, self.transmat_, self.emissionprob_, self.stopprob_, self.empty_ = model
        self.spectral_ = moments.automaton(int(self.n_states))
        self.n_corrected_ = self.spectral_.count_improper_codes(moments.strings)
        self.singular_values_ = moments.factors.singular_values
        self.recovery_error_ = error

    def check_learned(self) -> None:
        super().check_learned()
        n, k = len(self.startprob_), len(self.symbols_)
        shapes = {"transmat_": (n, n), "emissionprob_": (n, k), "stopprob_": (n,)}
        for name, shape in shapes.items():
            table(*shape)(name, getattr(self, name))
        check_distributions(startprob=self.startprob_[None], transmat=self.transmat_, emissionprob=self.emissionprob_)


def _maximise(counts: Expected, extra: float = 0.0) -> Parameters:
    """The M step of an HMM, from the counts of its automaton; ``extra`` is added in equal shares to each row."""
    moves, emission = sum_moves(counts.moves)
    emission = emission + (extra / len(counts.moves) + 1e-300)
    leaving = np.hstack([moves, counts.final[:, None]])
    leaving[1:] += extra / leaving.shape[1] + 1e-300
    leaving /= leaving.sum(axis=1, keepdims=True)
    return Parameters(*build_automaton(leaving, (emission / emission.sum(axis=0)).T))


def _most_visited_first(parameters: Parameters, counts: Expected) -> Parameters:
    """The same HMM with its states in the order of their visits; the order of recovery depends on rounding."""
    visits = counts.moves.sum(axis=(0, 1))[1:]
    order = np.concatenate([[0], 1 + np.argsort(-visits, kind="stable")])
    return Parameters(parameters.initial[order], parameters.moves[:, order[:, None], order], parameters.final[order])


def _by_likelihood(tree: PrefixTree, starts: list[tuple[Parameters, float]]) -> list[tuple[Parameters, float]]:
    """The HMMs, by falling likelihood of the strings."""
    values = [expect(tree, start, counting=False).log_likelihood for start, _ in starts]
    return [starts[i] for i in np.argsort(values, kind="stable")[::-1]]


def _match(windows: Windows, start: Parameters, empty: float) -> Parameters:
    """The nearby HMM that fits the windows; the share of empty strings stays."""
    moves, emission = sum_moves(start.moves)
    leaving = np.hstack([moves, start.final[:, None]])
    leaving, emission = match(windows, leaving, (emission / emission.sum(axis=0)).T)
    leaving[0] = np.append((1 - empty) * leaving[0, :-1] / leaving[0, :-1].sum(), empty)
    return Parameters(*build_automaton(leaving, emission))


def _nearest_hmm(found: Recovered, empty: float, floor: float = 1e-3) -> Parameters:
    """The nearest HMM: every row becomes the nearest distribution, mixed with a little of the uniform one."""
    start = np.append((1 - empty) * _nearest_rows(found.start[None], floor)[0], empty)
    leaving = _nearest_rows(np.hstack([found.moves, 1 - found.moves.sum(axis=1, keepdims=True)]), floor)
    return Parameters(*build_automaton(np.vstack([start, leaving]), _nearest_rows(found.emission, floor)))


def _nearest_rows(rows: Array, floor: float) -> Array:
    """The distribution nearest to every row (Duchi et al. 2008), mixed with this share of the uniform one."""
    falling = -np.sort(-rows, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    last = (falling > excess).sum(axis=1) - 1
    projected = np.maximum(rows - excess[np.arange(len(rows)), last][:, None], 0.0)
    projected /= projected.sum(axis=1, keepdims=True)
    return np.asarray((1 - floor) * projected + floor / rows.shape[1])


def best_paths(model: HiddenMarkovModel, strings: Ragged) -> tuple[Array, Ragged]:
    """The most probable path of states of every string, by Viterbi, and the log-probability of both together.

    O(symbols · n²). An unknown symbol does not constrain its state; a string with one has log-probability −inf. Of
    paths that tie, the first is taken.

    >>> moves, stop = np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([0.0, 0.5])
    >>> model = HiddenMarkovModel(np.array([1.0, 0.0]), moves, np.eye(2), stop, 0.0)
    >>> log_prob, paths = best_paths(model, Ragged(np.array([0, 0, 1]), [0, 3]))
    >>> paths[0], np.exp(log_prob).round(6)
    (array([0, 0, 1]), array([0.125]))
    """
    unary, transition, filled = _scores(model, strings)
    states, value = np.zeros(len(unary), dtype=np.int64), np.empty(filled.size - 1)
    free, column = np.zeros((1, len(transition))), np.zeros(len(unary), np.int64)
    nothing = np.empty(0, np.int64), np.zeros((0, len(transition)), dtype=bool)
    if states.size:
        viterbi(unary, filled, transition, free, column, *nothing, states, value)
    return _insert_empty(model, strings, value), Ragged(states, strings.offsets)


def state_proba(model: HiddenMarkovModel, strings: Ragged) -> Ragged:
    """The probability of each state at each symbol, given the whole string, by forward–backward; O(symbols · n²).

    Rows of a string of probability zero are zero.

    >>> model = HiddenMarkovModel(np.array([0.5, 0.5]), np.eye(2), np.array([[0.9, 0.1], [0.1, 0.9]]), np.ones(2), 0.0)
    >>> state_proba(model, Ragged(np.array([0]), [0, 1]))[0].round(6)
    array([[0.9, 0.1]])
    """
    unary, transition, filled = _scores(model, strings)
    nodes = np.zeros(unary.shape)
    if len(nodes):
        no_edges, no_sums = np.empty((0, 1, 1)), (np.zeros(0), np.zeros(transition.shape))
        forward_backward(unary, filled, transition, np.empty(filled.size - 1), nodes, no_edges, *no_sums)
    return Ragged(nodes, strings.offsets)


def _scores(model: HiddenMarkovModel, strings: Ragged) -> tuple[Array, Array, Array]:
    """Log-probabilities for the kernels of chains: of states at symbols, of moves; and where nonempty strings begin."""
    filled = np.append(strings.offsets[:-1][strings.lengths > 0], strings.offsets[-1])
    with np.errstate(divide="ignore"):
        emission, start, stop = (np.log(part) for part in (model.emissionprob.T, model.startprob, model.stopprob))
        transition = np.log((1 - model.stopprob)[:, None] * model.transmat)
        start += np.log(1 - model.empty)
    codes = strings.values
    unary = np.where((codes == UNSEEN)[:, None], 0.0, emission[codes])
    unary[filled[:-1]] += start
    unary[filled[1:] - 1] += stop
    return np.ascontiguousarray(unary), np.ascontiguousarray(transition), filled


def _insert_empty(model: HiddenMarkovModel, strings: Ragged, value: Array) -> Array:
    """Log-probabilities of all strings, from those of the nonempty ones."""
    with np.errstate(divide="ignore"):
        out = np.full(len(strings), np.log(model.empty))
    out[strings.lengths > 0] = value
    unseen = np.concatenate([[0], np.cumsum(strings.values == UNSEEN)])
    return np.where(np.diff(unseen[strings.offsets]) > 0, -np.inf, out)
