"""Every problem under every learner and solver, from spoiled parameters and data to spoiled predictions."""

from __future__ import annotations

import functools
import re

import numpy as np
import pandas as pd
from scipy import sparse

import tacit
from tacit import (
    AnyOf,
    DissimilaritySVM,
    GroupNormSVM,
    ImputedLossSVM,
    IterativeLatentSVM,
    LatentSVM,
    Links,
    Ragged,
    SelfPaced,
    StructuredSVM,
    testing,
)
from tacit.data.parameters import is_whole
from tacit.penalties import GroupNorm, Quadratic
from tacit.problems import (
    Alignment,
    Candidates,
    Chain,
    Motif,
    MotifSites,
    Multiclass,
    PerSample,
    Sentences,
    SequenceClass,
    Transcript,
    Transforms,
    Tree,
    rotations,
)
from tacit.problems.rotation import Rotations
from tacit.solvers import Bundle, FrankWolfe, Subgradient, choose, minimise
from tests.fuzz.draws import Draw
from tests.fuzz.registry import target
from tests.fuzz.verdicts import RAW, judge_error

LEARNERS = (StructuredSVM, LatentSVM, IterativeLatentSVM, ImputedLossSVM, DissimilaritySVM, GroupNormSVM)


def multiclass(draw: Draw):
    n, d, k = draw.between(3, 12), draw.between(1, 3), draw.between(2, 3)
    return Multiclass, loss_and_classes(draw, k), draw.table(max(n, k), d), draw.labels(max(n, k), k), None


def loss_and_classes(draw: Draw, k: int):
    parameters = {"loss": draw.pick(["0/1", "0/1", (1 - np.eye(k)) * draw.between(1, 3)])}
    return parameters | {"classes": None, "fit_intercept": draw.chance(0.5)}


def bags_of(draw: Draw, sizes, d: int):
    """Rows of samples in one of the forms that users have them in."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scale = draw.pick([1, 1, 1, 1, 1e3, 1e20, 0])
    values = (draw.rng.standard_normal((offsets[-1], d)) * scale).astype(draw.pick(["f8", "f4", "i8"]))
    bags = Ragged(values, offsets)
    form = draw.between(0, 5)
    if form == 0:
        return [part.tolist() for part in bags]
    if form == 1:
        return list(bags)
    if form == 2:
        return pd.Series(list(bags))
    if form == 3:
        return Ragged(sparse.csr_array(values.astype(np.float64)), offsets)
    if form == 4:
        left = draw.rng.random((offsets[-1], 2))
        return bags.with_boxes(np.hstack([left, left + 1]))
    return bags


def candidates(draw: Draw):
    n, k = draw.between(3, 8), draw.between(2, 3)
    sizes = draw.rng.integers(1, 4, max(n, k))
    bags = bags_of(draw, sizes, draw.between(1, 2))
    has_boxes = isinstance(bags, Ragged) and bags.boxes is not None
    losses = [{}, {"loss": "exact"}, {"loss": costs}, *([{"loss": "overlap"}] if has_boxes else [])]
    parameters = loss_and_classes(draw, k) | draw.pick(losses)
    hidden = [draw.pick([-1, int(h), [int(h)], AnyOf([int(h)]), None]) for h in draw.rng.integers(sizes)]
    hidden = draw.pick([None, hidden, draw.rng.integers(sizes), draw.rng.integers(sizes)])
    return Candidates, parameters, bags, draw.labels(max(n, k), k), hidden


def costs(true, h, label, other):
    return float(true != label) + float(h != other)


def chain(draw: Draw):
    lengths = draw.rng.integers(1, 4, draw.between(2, 6))
    tags = draw.pick([[0, 1], ["a", "b"], [0, 1, 2]])
    gaps = draw.pick([[], [None, -1]])
    y = [[draw.pick([*tags, *tags, *gaps]) for _ in range(length)] for length in lengths]
    parameters = {
        "loss": draw.pick(["hamming", 1 - np.eye(len(tags))]),
        "classes": draw.pick([tags, tags, None]),
        "fit_intercept": draw.chance(0.5),
        "boundaries": draw.chance(0.5),
        "forbidden": draw.pick([None, None, [(tags[0], tags[1])]]),
    }
    return Chain, parameters, bags_of(draw, lengths, draw.between(1, 2)), y, None


def sequence_class(draw: Draw):
    lengths = draw.rng.integers(2, 5, draw.between(2, 6))
    y = draw.labels(lengths.size, 2)
    topology = draw.pick(["ergodic", "left-to-right"])
    parameters = {
        "states": draw.pick([1, 2, 3]),
        "topology": topology,
        "skips": draw.pick([0, 1]) if topology == "left-to-right" else 0,
        "tied": draw.chance(0.5),
        "boundaries": draw.chance(0.5),
    }
    hidden = draw.pick([None, None, [None] * lengths.size])
    return SequenceClass, parameters, bags_of(draw, lengths, draw.between(1, 2)), y, hidden


def transcript(draw: Draw):
    lengths = draw.rng.integers(4, 8, draw.between(2, 5))
    names = draw.pick([["a", "b"], [3, 5]])
    y = [[names[int(one)] for one in draw.rng.integers(0, 2, draw.between(1, 2))] for _ in lengths]
    parameters = {
        "states": draw.pick([1, 2]),
        "skips": draw.pick([0, 1]),
        "silence": draw.chance(0.7),
        "lexicon": draw.pick([None, None, [[names[0]], names, names[::-1], [names[1]]]]),
        "max_edits": draw.pick([1, 2]),
        "classes": draw.pick([None, names]),
        "fit_intercept": draw.chance(0.5),
    }
    hidden = draw.pick([None, None, [None] * lengths.size, [[None] * len(own) for own in y]])
    return Transcript, parameters, bags_of(draw, lengths, draw.between(1, 2)), y, hidden


def tree(draw: Draw):
    pool = ["(S (NP (D a) (N b)) (V b))", "(NP (D a) (N a) (N b))", "(S (V a))", "(S (NP (N a)) (VP (V b)))"]
    y = [draw.pick(pool) for _ in range(draw.between(2, 5))]
    X = [[pair[::-1] for pair in re.findall(r"\((\w) (\w)\)", text)] for text in y]
    parameters = {
        "states": draw.pick([1, 2]),
        "vertical": draw.pick([1, 2]),
        "horizontal": draw.pick([0, 1]),
        "spans": draw.chance(0.5),
        "words": draw.chance(0.5),
        "min_count": draw.pick([1, 2]),
        "prune": draw.pick([0.0, 1e-3]),
    }
    return Tree, parameters, X, y, None


def motif(draw: Draw):
    n = draw.between(3, 8)
    parameters = {
        "width": draw.whole(1, 6),
        "background": draw.whole(1, 4),
        "strands": draw.pick(["one", "both"]),
        "features": draw.pick(["full", "literature"]),
        "loss": draw.pick(["0/1", [[0, 2], [1, 0]]]),
        "classes": None,
    }
    X = ["".join(draw.pick("ACGTacgtNu") for _ in range(draw.between(12, 15))) for _ in range(n)]
    X = draw.pick([X, np.array(X), np.array(X, dtype=bytes), pd.Series(X), [x.encode() for x in X]])
    y = np.arange(n) % 2
    hidden = None
    if draw.chance(0.4):
        hidden = np.where(y == 1, draw.rng.integers(0, 2, n), -1)
        hidden = hidden if parameters["strands"] == "one" else np.column_stack([hidden, np.minimum(hidden, 0)])
    return Motif, parameters, X, y, hidden


def motif_sites(draw: Draw):
    _, parameters, X, y, hidden = motif(draw)
    del parameters["features"]
    parameters |= {"composition": parameters.pop("background"), "n_motifs": draw.whole(1, 3), "overhang": 0}
    return MotifSites, parameters, X, y, hidden if parameters["n_motifs"] == 1 else None


def mirror(X):
    return X[..., ::-1]


def identity(X):
    return X


def transforms(draw: Draw):
    n, k = draw.between(3, 8), draw.between(2, 3)
    turns = draw.pick([rotations(-20, 20, 3), Rotations((0.0, 90.0)), [identity, mirror]])
    parameters = loss_and_classes(draw, k) | {"transforms": turns, "n_components": draw.pick([None, draw.whole(1, 2)])}
    parameters["blocks"] = draw.pick(["class", "class and state"])
    shape = draw.pick([(3, 3), (3, 3), (4,), (2, 3, 2)])
    X = draw.rng.random((max(n, k), *shape)).astype(draw.pick(["f8", "f4"]))
    hidden = draw.pick([None, np.zeros(len(X), int)])
    return Transforms, parameters, X, draw.labels(len(X), k), hidden


def vector(x):
    """Two numbers of whatever a sample has become: a function of the user's fails by its own fault, never here."""
    try:
        return np.resize(np.nan_to_num(np.append(np.asarray(x, dtype=np.float64).ravel(), 0.0)), 2)
    except (TypeError, ValueError, OverflowError):
        return np.zeros(2)


def label(y):
    return int(y) % 2 if isinstance(y, int | np.integer) else 0


def side_feature(x, y):
    return np.outer(np.eye(2)[label(y)], vector(x)).ravel()


def side(x, w):
    return int(np.argmax(np.resize(w, (2, 2)) @ vector(x)))


def wrong_side(x, true, w):
    return int(np.argmax(np.resize(w, (2, 2)) @ vector(x) + 1 - np.eye(2)[label(true)]))


def place_feature(x, y, h):
    return np.outer(np.eye(2)[label(y)], [vector(x)[label(h)], 1.0]).ravel()


def per_sample(draw: Draw):
    n = draw.between(2, 6)
    X, y = draw.rng.standard_normal((n, 2)), np.arange(n) % 2
    if draw.chance(0.3):
        listed = [(label, h) for label in (0, 1) for h in (0, 1)]
        return PerSample, {"joint_feature": place_feature, "outputs": listed, "hidden": True}, X, y, None
    parameters = draw.pick([{"outputs": [0, 1]}, {"argmax": side, "augmented": wrong_side}])
    parameters = parameters | draw.pick([{}, {"blocks": {"weights": (draw.whole(2, 2), draw.whole(2, 2))}}])
    return PerSample, {"joint_feature": side_feature, "memory": draw.pick([2**20, 0]), **parameters}, X, y, None


def alignment(draw: Draw):
    n = draw.between(2, 6)
    shapes = draw.rng.integers(1, 4, (n, 2))
    X = [draw.rng.standard_normal((*shape, 2)).astype(draw.pick(["f8", "f4"])) for shape in shapes]
    y = [1, -1, *(draw.pick([1, -1, Links([(0, 0)])]) for _ in range(n - 2))]
    hidden = draw.pick([None, [None if isinstance(own, Links) or own == -1 else [(0, 0)] for own in y]])
    return Alignment, {"wrong_link": draw.real(0, 1)}, X, y, hidden


def sentences(draw: Draw):
    sizes = draw.rng.integers(1, 5, draw.between(2, 6))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = np.column_stack([draw.rng.integers(0, 4, offsets[-1]), draw.rng.standard_normal((offsets[-1], 2))])
    X = Ragged(draw.pick([values, sparse.csr_array(values)]), offsets)
    parameters = {"share": draw.real(0.1, 0.9), "budget": draw.pick(["sentences", "words"]), "loss": "0/1"}
    hidden = draw.pick([None, [None] * len(sizes), [[] if size == 1 else None for size in sizes]])
    return Sentences, parameters | {"classes": None}, X, np.arange(len(sizes)) % 2, hidden


PROBLEMS = (
    multiclass,
    candidates,
    chain,
    sequence_class,
    transcript,
    motif,
    motif_sites,
    transforms,
    per_sample,
    alignment,
    sentences,
)


THEMES = ("nothing", "nothing", "problem", "learner", "solver", "pace", "data", "known", "asked")
"""What of a fit is spoiled: one thing at a time, so that the others are reached."""


MAX_PASSES_RUN = 2_000
"""Passes of Frank–Wolfe, where an odd number asks for more: its gap falls as one over their number."""


def solver(draw: Draw, share: float = 0.0):
    """A solver of any kind, its parameters spoiled at times."""
    kinds = {
        Bundle: {"proximal": draw.chance(0.5), "drop_after": draw.whole(1, 9)},
        FrankWolfe: {
            "block_size": draw.pick([None, draw.whole(1, 100)]),
            "gap_sampling": draw.chance(0.5),
            "cache": draw.pick([None, draw.whole(0, 9)]),
            "sweeps": draw.whole(1, 5),
        },
        Subgradient: {"batch_size": draw.whole(1, 100)},
    }
    kind = draw.pick(kinds)
    return kind(**draw.spoil_some(kinds[kind], share))


def learner(draw: Draw, kind, problem, theme: str):
    """A learner of the problem, its parameters or those of its parts spoiled if that is the theme."""
    is_class = not isinstance(problem, Alignment | Chain | PerSample | Sentences)
    penalty = {"metric": 2.0, "pull": 0.0, "centre": None}
    parameters = {
        "C": draw.pick([1.0, 10, draw.real(0.1, 100)]),
        "tol": draw.pick([1e-3, 0.1, draw.real(1e-3, 0.5)]),
        "max_iter": draw.whole(1, 20),
        "solver": solver(draw, 1.0) if theme == "solver" else draw.pick(["auto", None, solver(draw)]),
        "rescaling": "margin" if isinstance(problem, PerSample) else draw.pick(["margin", "margin", "slack"]),
        "penalty": draw.pick([None, None, None, Quadratic(**draw.spoil_some(penalty, float(theme == "pace")))])
        if draw.chance(0.8)
        else GroupNorm(**draw.spoil_some({"groups": "auto", "weights": 1.0}, float(theme == "pace"))),
        "class_weight": draw.pick([None, None, "balanced"]) if is_class else None,
        "warm_start": draw.chance(0.2),
        "n_jobs": draw.pick([None, 1, 2]),
        "random_state": draw.pick([0, None, draw.whole(0, 100)]),
    }
    if kind is not StructuredSVM:
        pace = {"mu": draw.real(1.1, 3), "start": 0.5, "warmup": draw.whole(1, 2), "max_rounds": draw.whole(1, 3)}
        parameters |= {
            "pace": draw.pick([None, SelfPaced(**draw.spoil_some(pace, float(theme == "pace")))]),
            "n_init": draw.whole(1, 2),
            "init": draw.pick(["auto", "smooth", "hidden", "weights"]),
            "max_inner": draw.whole(1, 50),
            "escape": draw.chance(0.5),
            "shift": draw.chance(0.5),
            "halving": draw.chance(0.2),
        }
    if kind is DissimilaritySVM:
        parameters |= {"J": draw.real(0.01, 1), "beta": draw.real(0, 0.9), "theta_step": draw.pick(["joint", "text"])}
        parameters |= {"conditional": draw.pick([None, None, "delta"]), "rescaling": "margin"}
        norms = (None, None, Quadratic(2.0), Quadratic(lower=0.0), GroupNorm("weight"), GroupNorm("feature"))
        parameters |= {"theta_penalty": draw.pick(norms) if parameters["conditional"] is None else None}
    if kind is GroupNormSVM:
        del parameters["penalty"]
        parameters |= {"groups": draw.pick(["auto", "auto", "label-state", "state", "feature", "weight", [0, 0, 1]])}
        parameters |= {"weights": draw.pick([1.0, draw.real(0.1, 2)]), "solver": draw.pick(["auto", "subgradient"])}
        parameters |= {"stop": "relative" if parameters["solver"] == "subgradient" and draw.chance(0.5) else "decrease"}
    return kind(problem, **draw.spoil_some(parameters, float(theme == "learner")), verbose=0)


def fit_one(draw: Draw, make):
    """Fit, then predict, score and impute: what is learned must be finite, what is answered no NaN."""
    theme = draw.pick(THEMES)
    kind, parameters, X, y, hidden = make(draw)
    problem = kind(**draw.spoil_some(parameters, float(theme == "problem")))
    kinds = LEARNERS if hidden is not None or make in (multiclass, chain) else LEARNERS[1:]
    model = learner(draw, draw.pick(kinds), problem, theme)
    data = draw.spoil_some({"X": X, "y": y}, float(theme == "data"))
    known = {"hidden": hidden, "sample_weight": draw.pick([None, np.ones(len(y))])}
    if isinstance(model, DissimilaritySVM):
        known |= {"theta_X": None if isinstance(model.conditional, str) else draw.pick([None, X])}
    model.fit(data["X"], data["y"], **draw.spoil_some(known, float(theme == "known")))
    other = draw.spoil_some(data, float(theme == "asked"))
    k = draw.spoil(2) if theme == "asked" and draw.chance(0.3) else 2
    truth = draw.spoil(hidden) if theme == "asked" else hidden
    questions = (
        lambda: model.predict(other["X"]),
        lambda: model.predict_hidden(other["X"], k=k),
        lambda: model.decision_function(other["X"]),
        lambda: model.score(other["X"], other["y"]),
        lambda: model.impute(other["X"], other["y"]),
        lambda: model.score_hidden(other["X"], other["y"], truth),
        lambda: model.predict_best(other["X"], k=k),
        *([lambda: model.predict_proba(other["X"])] if make is chain else []),
    )
    if isinstance(model, DissimilaritySVM):
        own = {} if known["theta_X"] is None else {"theta_X": other["X"]}
        questions += (lambda: model.conditional_proba(other["X"], other["y"], **own).values,)
    if isinstance(model, GroupNormSVM):
        questions += (lambda: model.prune().predict(X), lambda: model.budget(k, X, y).predict(X))
    return [model.coef_, model.objective_, model.bound_, *answers(questions)]


def answers(questions):
    """What is answered to several questions; a clear error is an answer too, a raw one is not."""
    found = []
    for ask in questions:
        try:
            found.append(ask())
        except Exception as error:
            if judge_error(error).kind == RAW:
                raise
    return found


def _enter(make):
    @target(
        *("StructuredSVM", "LatentSVM", "IterativeLatentSVM", "DissimilaritySVM", "GroupNormSVM", "SelfPaced"),
        *("ImputedLossSVM", "Quadratic", "GroupNorm", "AnyOf", "Links"),
    )
    @functools.wraps(make)
    def fit(draw: Draw):
        return fit_one(draw, make)

    return fit


for _make in PROBLEMS:
    _enter(_make)


@target(
    *(
        "Alignment",
        "Multiclass",
        "Candidates",
        "Chain",
        "SequenceClass",
        "Transcript",
        "Motif",
        "MotifSites",
        "Transforms",
        "PerSample",
        "Sentences",
        "Tree",
    ),
    *("Bundle", "FrankWolfe", "Subgradient"),
)
def constructors(draw: Draw):
    """Constructors only store: whatever they are given, they, their `repr` and their clones do not fail."""
    kind, parameters, *_ = draw.pick(PROBLEMS)(draw)
    thing = kind(**{name: draw.odd() if draw.chance(0.5) else value for name, value in parameters.items()})
    solver(draw, 1.0)
    learner(draw, draw.pick(LEARNERS), thing, draw.pick(THEMES))
    return thing.get_params(deep=False) and None


@target("path")
def path(draw: Draw):
    kind, parameters, X, y, hidden = draw.pick(PROBLEMS[:3])(draw)
    arguments = {"X": X, "y": y, "Cs": [1.0, 10], "hidden": hidden, "sample_weight": None, "cv": draw.pick([None, 2])}
    estimator = StructuredSVM(kind(**parameters), max_iter=20, verbose=0)
    arguments = draw.spoil_some({"estimator": estimator, **arguments})
    models = tacit.path(**arguments)
    return [models.scores, *(model.coef_ for model in models)]


@target("group_norm_path")
def states_path(draw: Draw):
    X, y = np.random.default_rng(draw.between(0, 9)).random((12, 3, 3)), np.arange(12) % 2
    problem = Transforms(rotations(-20, 20, 3), n_components=2, blocks="class and state")
    estimator = GroupNormSVM(problem, max_iter=5, verbose=0)
    arguments = {"X": X, "y": y, "Cs": [1.0, 10], "hidden": None, "sample_weight": None, "cv": draw.pick([None, 2])}
    models = tacit.group_norm_path(**draw.spoil_some({"estimator": estimator, **arguments}))
    return [models.scores, models.n_states, *(model.coef_ for model in models)]


@target("rotations")
def turns(draw: Draw):
    arguments = {"low": -20.0, "high": draw.real(0, 20), "count": draw.whole(2, 5), "shape": draw.pick([None, (2, 3)])}
    found = rotations(**draw.spoil_some(arguments))
    return found.rotate(np.ones((2, 2, 3)))


@target("minimise", "choose")
def solves(draw: Draw):
    task = testing.example_task(
        draw.pick([Multiclass(), Candidates(), Chain(classes=["a", "b"])]), seed=draw.between(0, 9)
    )
    arguments = {
        "tol": draw.real(1e-3, 0.1),
        "gap": 0.0,
        "max_iter": draw.whole(1, 30),
        "start": np.zeros(task.oracle.n_params),
        "planes": task.target[None],
        "rng": np.random.default_rng(0),
    }
    names = ("tol", "gap", "max_iter")
    arguments |= draw.spoil_some({name: arguments[name] for name in names})
    choose(task, 0.1)
    used = solver(draw, 0.2)
    if isinstance(used, FrankWolfe) and is_whole(arguments["max_iter"]):
        arguments["max_iter"] = min(arguments["max_iter"], MAX_PASSES_RUN)
    solution = minimise(task, used, **arguments)
    return solution.w, solution.objective, solution.bound
