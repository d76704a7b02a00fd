"""Learners that descend by gradients, or online."""

from __future__ import annotations

from tests.fuzz.draws import Draw
from tests.fuzz.fits import answers, candidates, chain, multiclass
from tests.fuzz.registry import target

from tacit import HiddenCRF, LatentPerceptron


def fit_one(draw: Draw, learner, parameters):
    kind, given, X, y, hidden = draw.pick([multiclass, candidates, chain])(draw)
    theme = draw.pick(["learner", "data", "known", "asked"])
    parameters |= {
        "n_init": draw.whole(1, 2),
        "n_jobs": draw.pick([None, 1, 2]),
        "random_state": draw.pick([0, None, 7]),
    }
    model = learner(kind(**given), **draw.spoil_some(parameters, float(theme == "learner")), verbose=0)
    data = draw.spoil_some({"X": X, "y": y}, float(theme == "data"))
    model.fit(data["X"], data["y"], **draw.spoil_some({"hidden": hidden}, float(theme == "known")))
    other = draw.spoil_some(data, float(theme == "asked"))
    questions = [
        lambda: model.predict(other["X"]),
        lambda: model.score(other["X"], other["y"]),
        lambda: model.impute(other["X"], other["y"]),
    ]
    if learner is HiddenCRF:
        questions.append(lambda: model.predict_proba(other["X"]))
    return [model.coef_, *answers(questions)]


@target("HiddenCRF")
def hidden_crf(draw: Draw):
    parameters = {
        "C": draw.real(0.1, 10),
        "method": draw.pick(["lbfgs", "em"]),
        "rule": draw.pick(["sum", "max"]),
        "init": draw.pick(["auto", "hidden", "weights"]),
        "tol": draw.real(1e-4, 1e-1),
        "max_iter": draw.whole(1, 20),
        "class_weight": None,
        "warm_start": draw.chance(0.2),
    }
    return fit_one(draw, HiddenCRF, parameters)


@target("LatentPerceptron")
def latent_perceptron(draw: Draw):
    parameters = {
        "epochs": draw.whole(1, 5),
        "average": draw.chance(0.5),
        "shuffle": draw.chance(0.5),
        "batch_size": draw.pick([None, draw.whole(1, 4)]),
    }
    return fit_one(draw, LatentPerceptron, parameters)
