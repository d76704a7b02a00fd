"""Learners that sum over hidden values, and the perceptron: spoiled parameters, data and questions."""

from __future__ import annotations

import math

import numpy as np

from tacit import HiddenCRF, LatentLogistic, LatentPerceptron, MinEntropySVM, SelfPaced
from tests.fuzz.draws import Draw
from tests.fuzz.fits import PROBLEMS, THEMES, answers
from tests.fuzz.registry import target


def settings(draw: Draw, kind):
    """Parameters of a learner that are right."""
    shared = {
        "n_init": draw.whole(1, 2),
        "n_jobs": draw.pick([None, 1, 2]),
        "random_state": draw.pick([0, None, draw.whole(0, 100)]),
    }
    if kind is LatentPerceptron:
        own = {"epochs": draw.whole(1, 4), "average": draw.chance(0.5), "shuffle": draw.chance(0.5)}
        return shared | own | {"batch_size": draw.pick([None, draw.whole(1, 9)])}
    shared |= {
        "C": draw.pick([1.0, 10, draw.real(0.1, 100)]),
        "tol": draw.pick([1e-3, 0.1]),
        "max_iter": draw.whole(1, 15),
        "init": draw.pick(["auto", "zero", "hidden", "weights"]),
        "warm_start": draw.chance(0.2),
    }
    if kind is HiddenCRF:
        return shared | {"method": draw.pick(["lbfgs", "em", "hard-em"]), "rule": draw.pick(["sum", "max"])}
    if kind is LatentLogistic:
        return shared
    pace = SelfPaced(max_rounds=2) if draw.chance(0.2) else None
    solver = "auto" if pace is not None else draw.pick(["auto", "lbfgs", "trust-region", "cccp"])
    return shared | {
        "alpha": draw.pick(
            [0.25, 1.0, 2.0, math.inf, "cv", "learn", {"start": 2.0}, {"strand": 1.0, "start": math.inf}]
        ),
        "alphas": draw.pick([[0.5, math.inf], [0.5, 2.0], {"strand": 1.0, "start": 2.0}]),
        "cv": 2,
        "solver": solver,
        "pace": pace,
    }


@target("HiddenCRF", "LatentLogistic", "LatentPerceptron", "MinEntropySVM")
def uncertain_learners(draw: Draw):
    """Fit, then ask for everything: what is learned must be finite, what is answered no NaN."""
    theme = draw.pick([theme for theme in THEMES if theme not in ("solver", "pace")])
    kind, parameters, X, y, hidden = draw.pick(PROBLEMS)(draw)
    problem = kind(**draw.spoil_some(parameters, float(theme == "problem")))
    learner = draw.pick([HiddenCRF, LatentLogistic, LatentPerceptron, MinEntropySVM])
    model = learner(problem, **draw.spoil_some(settings(draw, learner), float(theme == "learner")), verbose=0)
    data = draw.spoil_some({"X": X, "y": y}, float(theme == "data"))
    known = {"hidden": hidden, "sample_weight": draw.pick([None, np.ones(len(y))])}
    model.fit(data["X"], data["y"], **draw.spoil_some(known, float(theme == "known")))
    other = draw.spoil_some(data, float(theme == "asked"))
    questions = [
        lambda: model.predict(other["X"]),
        lambda: model.decision_function(other["X"]),
        lambda: model.score(other["X"], other["y"]),
        lambda: model.impute(other["X"], other["y"]),
    ]
    if learner is LatentPerceptron:
        questions.append(lambda: model.partial_fit(other["X"], other["y"]).coef_)
    else:
        questions += [lambda: model.hidden_proba(other["X"]), lambda: model.hidden_proba(other["X"], other["y"])]
    if learner is HiddenCRF:
        questions.append(lambda: model.predict_proba(other["X"]))
    if learner is MinEntropySVM:
        questions += [lambda: model.label_entropy(other["X"]), lambda: model.label_proba(other["X"])]
    return [model.coef_, *answers(questions)]
