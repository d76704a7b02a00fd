"""Densities over strings and automata: spoiled parameters, sequences and parts."""

from __future__ import annotations

import numpy as np

from tacit import Ragged
from tacit.spectral import HiddenMarkovModel, NextSymbol, SpectralAutomaton, SpectralHMM, WeightedAutomaton
from tacit.spectral.next_symbol import Conditional, constant_weights
from tacit.spectral.ngram import NGram, count_ngrams
from tests.fuzz.draws import Draw
from tests.fuzz.fits import answers
from tests.fuzz.registry import target


def sequences(draw: Draw):
    symbols = draw.pick([["a", "b"], [0, 1], ["go", "left", "é"]])
    words = [[draw.pick(symbols) for _ in range(draw.between(0, 5))] for _ in range(draw.between(4, 20))]
    form = draw.between(0, 3)
    if form == 0 and isinstance(symbols[0], int):
        offsets = np.concatenate([[0], np.cumsum([len(word) for word in words])])
        return Ragged(np.array([s for word in words for s in word], dtype=np.int64), offsets)
    if form == 1 and symbols == ["a", "b"]:
        return ["".join(word) for word in words]
    return words


def ask(draw: Draw, model, words):
    """What a fitted density answers; log-probabilities may be −inf, and nothing is NaN."""
    drawn = draw.spoil_some({"n_samples": 3, "random_state": 0, "max_length": 500}, 0.3)
    questions = [
        lambda: model.score_samples(words),
        lambda: model.next_symbol_proba(words),
        lambda: model.predict_next(words) and None,
        lambda: float(len(model.sample(**drawn))),
    ]
    if hasattr(model, "decode"):
        questions += [lambda: model.decode(words)[0], lambda: model.predict_proba(words)]
    return answers(questions)


def fit_density(draw: Draw, kind, parameters):
    """Fit to strings, parameters or strings spoiled, or what is asked."""
    theme = draw.pick(["nothing", "parameters", "data", "asked"])
    words = sequences(draw)
    model = kind(**draw.spoil_some(parameters, float(theme == "parameters")), verbose=0)
    data = {"X": words, "sample_weight": draw.pick([None, np.ones(len(words))])}
    model.fit(**draw.spoil_some(data, float(theme == "data")))
    return ask(draw, model, draw.spoil(words) if theme == "asked" else words)


@target("SpectralAutomaton")
def spectral_automata(draw: Draw):
    parameters = {
        "n_states": draw.pick([2, draw.whole(1, 3), [1, 2], "auto"]),
        "basis": draw.pick(["frequent", "all", "frequent", (["", "a"], ["", "b"])]),
        "length": draw.whole(1, 4),
        "size": draw.whole(5, 100),
        "statistics": draw.pick(["string", "prefix", "substring"]),
        "scaling": draw.real(0, 0.5),
        "smoothing": draw.pick(["ngram", "normalise", "project"]),
        "refine": draw.pick([None, "em"]),
        "max_iter": draw.whole(1, 5),
        "tol": 1e-3,
        "n_models": draw.whole(1, 3),
        "validation": draw.real(0.1, 0.5),
        "alphabet": draw.pick([None, None, None, ["a", "b", "z"]]),
        "random_state": 0,
    }
    return fit_density(draw, SpectralAutomaton, parameters)


@target("SpectralHMM")
def spectral_hmms(draw: Draw):
    parameters = {
        "n_states": draw.whole(1, 2),
        "length": draw.whole(1, 3),
        "size": draw.whole(5, 100),
        "refine": draw.pick([None, "em"]),
        "max_iter": draw.whole(1, 5),
        "tol": 1e-3,
        "smoothing": draw.real(0, 1),
        "alphabet": None,
        "random_state": 0,
    }
    return fit_density(draw, SpectralHMM, parameters)


def parts(draw: Draw, n: int, k: int):
    moves = draw.rng.random((k, n, n)) / (2 * k * n)
    return {
        "initial": np.full(n, 1 / n),
        "transitions": moves,
        "final": 1 - moves.sum(axis=(0, 2)),
        "symbols": draw.pick([None, ["a", "b", "c"][:k]]),
        "statistics": draw.pick(["string", "prefix", "substring"]),
    }


@target("WeightedAutomaton", "HiddenMarkovModel")
def weighted_automata(draw: Draw):
    n, k = draw.between(1, 3), draw.between(1, 3)
    model = WeightedAutomaton(**draw.spoil_some(parts(draw, n, k), share=0.6))
    words = [[draw.pick([*model.symbols.tolist(), "z"][:k]) for _ in range(draw.between(0, 4))] for _ in range(3)]
    words = draw.spoil(words) if draw.chance(0.3) else words
    of = draw.spoil("string") if draw.chance(0.2) else draw.pick([None, "string", "prefix", "substring"])
    calls = (
        lambda: model.log_prob(words, of),
        lambda: model.prob(words, of),
        lambda: model.value(words, of),
        lambda: model.perplexity(words) and None,
        lambda: model.minimise().initial,
        lambda: float(model.equivalent(model)),
        lambda: model.next_symbol_proba(words[0] if isinstance(words, list) and words else words),
        lambda: float(len(model.sample(**draw.spoil_some({"n_samples": 2, "random_state": 0, "max_length": 200})))),
        lambda: model.to_hmm().startprob,
        lambda: model.hankel(draw.spoil(["", "a"]), ["", "a"]).block.toarray(),
        lambda: model.to_prefix().to_substring().to_string().final,
    )
    return draw.pick(calls)()


@target()
def hidden_markov_models(draw: Draw):
    n, k = draw.between(1, 3), draw.between(1, 3)
    given = {
        "startprob": np.full(n, 1 / n),
        "transmat": np.full((n, n), 1 / n),
        "emissionprob": np.full((n, k), 1 / k),
        "stopprob": np.full(n, 0.5),
        "empty": 0.1,
        "symbols": None,
    }
    model = WeightedAutomaton.from_hmm(**draw.spoil_some(given))
    assert isinstance(model.to_hmm(), HiddenMarkovModel)
    return model.log_prob([[model.symbols[0].item()]])


@target("NextSymbol")
def next_symbols(draw: Draw):
    n, k = draw.between(1, 3), draw.between(1, 3)
    given = {
        "initial": np.ones(n) / n,
        "transitions": np.full((k, n, n), 1 / (2 * n * k)),
        "ahead": np.full((k + 1, n), 1.0),
        "going_on": np.ones(n),
        "fresh": np.full((k + 1, n), 1 / n),
    }
    learned = Ragged(draw.rng.integers(0, k, 6).astype(np.int32), [0, 0, 2, 6])
    ngram = count_ngrams(learned, k, draw.between(1, 4))
    if draw.chance(0.5):
        ngram = NGram(**draw.spoil_some(ngram._asdict()))
    parts = (Conditional(**draw.spoil_some(given)),)
    model = NextSymbol(**draw.spoil_some({"automata": parts, "ngram": ngram, "weights": constant_weights(1, 0.5)}))
    model.check()
    codes = draw.rng.integers(-1, k + draw.pick([0, 0, 1]), 6)
    return model.log_prob(Ragged(codes, [0, 2, 6])), model.next_proba(Ragged(codes, [0, 2, 6]))
