"""Model files and checkpoints: damaged bytes, and headers and arrays that were changed and sealed again."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from pathlib import Path

import numpy as np

import tacit
from tacit import (
    DissimilaritySVM,
    GroupNormSVM,
    HiddenCRF,
    IterativeLatentSVM,
    LatentPerceptron,
    LatentSVM,
    MinEntropySVM,
    Ragged,
    SelfPaced,
    StructuredSVM,
)
from tacit.datasets import planted_motif
from tacit.penalties import GroupNorm
from tacit.problems import Candidates, Chain, Motif, Multiclass, Transforms, rotations
from tacit.ranking import GlobalRanker, TransductiveRanker
from tacit.runtime.archive import read_archive, write_archive
from tacit.solvers import Bundle, FrankWolfe, Subgradient
from tacit.spectral import SpectralAutomaton, SpectralHMM, SpectralTagger, WeightedAutomaton
from tacit.text.symbols import RareWords
from tests.fuzz.draws import HUGE, Draw
from tests.fuzz.registry import target

X = np.random.default_rng(0).standard_normal((24, 2))
Y = np.arange(24) % 3
BAGS = Ragged(X, np.arange(9) * 3).with_boxes(np.tile([[0, 0, 2, 2], [1, 0, 3, 2], [5, 5, 6, 6]], (8, 1)))
LABELS = np.arange(8) % 2
TOKENS, TAGS = X.reshape(8, 3, 2), Y.reshape(8, 3)
DNA, BOUND, _ = planted_motif(12, 14, "ACGT", seed=0)
IMAGES = np.random.default_rng(0).random((12, 3, 3))
TURNS = Transforms(rotations(-9, 9, 2), n_components=2, blocks="class and state")
SENTENCES, WORD_TAGS = [["the", "dog", "barks"], ["a", "cat"]] * 8, [["D", "N", "V"], ["D", "N"]] * 8
ROWS, GRADES, GROUP = X[:20], np.arange(20) % 3, [4] * 5
WORDS = [list("ab") * k + ["c"] for k in (0, 1, 1, 2)] * 5

MODELS = {
    "Multiclass": (lambda: StructuredSVM(Multiclass(), C=1).fit(X, Y), X),
    "costs": (lambda: StructuredSVM(Multiclass(loss=2 - 2 * np.eye(3)), C=1, class_weight={0: 2.0}).fit(X, Y), X),
    "Candidates": (lambda: LatentSVM(Candidates(), C=1, n_init=2, pace=SelfPaced()).fit(BAGS, LABELS), BAGS),
    "overlap": (lambda: IterativeLatentSVM(Candidates(loss="overlap"), C=1).fit(BAGS, LABELS), BAGS),
    "HiddenCRF": (lambda: HiddenCRF(Candidates(), C=1, n_init=2).fit(BAGS, LABELS), BAGS),
    "MinEntropySVM": (lambda: MinEntropySVM(Candidates(), alpha="cv", alphas=[1, 2], cv=2).fit(BAGS, LABELS), BAGS),
    "LatentPerceptron": (lambda: LatentPerceptron(Candidates()).fit(BAGS, LABELS), BAGS),
    "dissimilarity": (lambda: DissimilaritySVM(Candidates(loss="overlap"), C=1).fit(BAGS, LABELS), BAGS),
    "group norm": (lambda: GroupNormSVM(TURNS, C=5).fit(IMAGES, np.arange(12) % 2).prune(), IMAGES),
    "Chain": (lambda: StructuredSVM(Chain(boundaries=True), C=1).fit(TOKENS, TAGS), TOKENS),
    "Motif": (lambda: LatentSVM(Motif(3, background=2, strands="both"), C=1).fit(DNA, BOUND), DNA),
    "Transforms": (
        lambda: LatentSVM(Transforms(rotations(-9, 9, 2), n_components=2), C=1).fit(IMAGES, np.arange(12) % 2),
        IMAGES,
    ),
    "SpectralAutomaton": (lambda: SpectralAutomaton(2, refine="em", max_iter=3).fit(WORDS), WORDS),
    "ngram": (lambda: SpectralAutomaton(2).fit(WORDS), WORDS),
    "SpectralHMM": (lambda: SpectralHMM(2, max_iter=3).fit(WORDS), WORDS),
    "SpectralTagger": (lambda: SpectralTagger(2, vocabulary=RareWords()).fit(SENTENCES, WORD_TAGS), SENTENCES),
    "pairs": (lambda: SpectralTagger(2, conditional=True).fit(SENTENCES, WORD_TAGS), SENTENCES),
    "TransductiveRanker": (lambda: TransductiveRanker(n_neighbors=3).fit(ROWS, GRADES, group=GROUP), ROWS),
    "GlobalRanker": (lambda: GlobalRanker().fit(ROWS, GRADES, group=GROUP), ROWS),
    "WeightedAutomaton": (lambda: WeightedAutomaton([1.0], [[[0.3]], [[0.5]]], [0.2], ["a", "b"]), WORDS),
}


@functools.cache
def saved_model(name: str) -> tuple[bytes, dict, dict]:
    """Bytes, header and arrays of a model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        MODELS[name][0]().save(path)
        return path.read_bytes(), *read_archive(path, "model")


def write_sealed(path: Path, kind: str, header: dict, arrays: dict) -> None:
    """A file with a right checksum, whatever is in it."""
    write_archive(path, kind, {k: v for k, v in header.items() if k not in ("format", "kind", "tacit")}, arrays)


def spoiled_arrays(draw: Draw, arrays: dict) -> dict:
    out = dict(arrays)
    for _ in range(draw.between(1, 2)):
        if not out:
            break
        name = draw.pick(out)
        if draw.chance(0.1):
            del out[name]
            continue
        other = draw.spoil(out[name]) if draw.chance(0.8) else out[draw.pick(out)]
        other = np.asarray(other if isinstance(other, np.ndarray) else draw.odd_array())
        out[name] = other if other.dtype.kind in "biufUS" and other.size < HUGE else np.zeros(3)
    return out


def ask(model, data):
    """What a model from a file answers."""
    if isinstance(model, WeightedAutomaton):
        return model.log_prob(data), model.value(data)
    if hasattr(model, "filter_proba"):
        return model.predict_proba(data), model.filter_proba(data), model.log_likelihood(data[:2], WORD_TAGS[:2])
    if hasattr(model, "query_weights"):
        return model.decision_function(data, group=GROUP), model.rank(data, 2, group=GROUP)
    if hasattr(model, "score_samples"):
        return (
            model.score_samples(data),
            model.next_symbol_proba(data),
            model.sample(2, random_state=0, max_length=99) and 0,
        )
    answers = [model.coef_, model.predict(data), model._html_repr() and None]
    if model.traits.has_objective:
        answers += [model.objective_, model.gap_]
    with contextlib.suppress(tacit.oracle.CapabilityError):
        answers.append(model.decision_function(data))
    return answers


@target("load")
def load(draw: Draw):
    name = draw.pick(MODELS)
    content, header, arrays = saved_model(name)
    path = draw.folder / "model"
    way = draw.between(0, 4)
    if way == 0:
        path.write_bytes(draw.corrupt(content))
    elif way == 1:
        write_sealed(path, "model", header, spoiled_arrays(draw, arrays))
    elif way == 2:
        write_sealed(path, "model", {**header, **draw.corrupt_tree({"facts": header["facts"]})}, arrays)
    elif way == 3:
        write_sealed(path, "model", {**header, **draw.corrupt_tree({"params": header["params"]})}, arrays)
    else:
        other = saved_model(draw.pick(MODELS))
        write_sealed(
            path, "model", {**header, draw.pick(["facts", "params", "learner"]): other[1]["facts"]}, arrays | other[2]
        )
    if draw.chance(0.05):
        path = draw.pick([draw.odd(), "x" * 5000, draw.folder])
    problem = draw.odd() if draw.chance(0.05) else None
    return ask(tacit.load(path, problem), MODELS[name][1])


@target()
def save(draw: Draw):
    """A fitted model whose attributes were tampered with, and paths that are none."""
    name = draw.pick(MODELS)
    model = MODELS[name][0]() if draw.chance(0.05) else fit_model(name)
    path = draw.folder / "model"
    if draw.chance(0.3):
        path = draw.pick([draw.odd(), str(path) + "\0", draw.folder / "no" / "model", draw.folder])
    model.save(path)
    return ask(tacit.load(path), MODELS[name][1])


@functools.cache
def fit_model(name: str):
    return MODELS[name][0]()


FITS = {
    "Bundle": lambda **s: (StructuredSVM(Multiclass(), solver=Bundle(), **s), X, Y),
    "FrankWolfe": lambda **s: (StructuredSVM(Multiclass(), solver=FrankWolfe(), **s), X, Y),
    "planes": lambda **s: (StructuredSVM(Multiclass(), solver=FrankWolfe(block_size=9), **s), X, Y),
    "chains": lambda **s: (StructuredSVM(Chain(), solver=FrankWolfe(), **s), TOKENS, TAGS),
    "Subgradient": lambda **s: (StructuredSVM(Multiclass(), solver=Subgradient(), **s), X, Y),
    "LatentSVM": lambda **s: (LatentSVM(Candidates(), n_init=2, **s), BAGS, LABELS),
    "rounds": lambda **s: (IterativeLatentSVM(Candidates(loss="overlap"), **s), BAGS, LABELS),
    "HiddenCRF": lambda **s: (HiddenCRF(Candidates(), n_init=2, **s), BAGS, LABELS),
    "MinEntropySVM": lambda **s: (MinEntropySVM(Candidates(), alpha=2.0, n_init=2, **s), BAGS, LABELS),
    "infinite order": lambda **s: (MinEntropySVM(Candidates(), alpha=np.inf, n_init=2, **s), BAGS, LABELS),
    "motifs": lambda **s: (LatentSVM(Motif(3, background=1), **s), DNA, BOUND),
    "dissimilarity": lambda **s: (DissimilaritySVM(Candidates(loss="overlap"), **s), BAGS, LABELS),
    "group norm": lambda **s: (GroupNormSVM(Candidates(), **s), BAGS, LABELS),
    "group norm, subgradient": lambda **s: (GroupNormSVM(Candidates(), solver="subgradient", **s), BAGS, LABELS),
    "norms": lambda **s: (StructuredSVM(Multiclass(), penalty=GroupNorm(), **s), X, Y),
}


@functools.cache
def stopped_checkpoint(name: str) -> tuple[bytes, dict, dict]:
    """Bytes, header and arrays of the checkpoint of a fit that was stopped early."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        learner, data, labels = FITS[name](checkpoint=path, max_iter=2, C=1.0, verbose=0)
        learner.fit(data, labels)
        return path.read_bytes(), *read_archive(path, "checkpoint")


@target()
def checkpoints(draw: Draw):
    name = draw.pick(FITS)
    content, header, arrays = stopped_checkpoint(name)
    path = draw.folder / "state"
    way = draw.between(0, 3)
    if way == 0:
        path.write_bytes(draw.corrupt(content))
    elif way == 1:
        write_sealed(path, "checkpoint", draw.corrupt_tree(header), arrays)
    else:
        write_sealed(path, "checkpoint", header, spoiled_arrays(draw, arrays))
    if draw.chance(0.05):
        path = draw.pick([draw.odd(), str(path) + "\0", draw.folder, draw.folder / "no" / "state"])
    learner, data, labels = FITS[name](checkpoint=path, resume=True, max_iter=20, C=1.0, verbose=0)
    learner.fit(data, labels)
    return learner.coef_, learner.objective_
