"""Questions about hidden values, from spoiled arguments."""

from __future__ import annotations

import functools

import numpy as np

from tacit import LatentSVM, Questions, ask
from tacit.problems import Candidates, Chain
from tests.fuzz.draws import Draw
from tests.fuzz.registry import target


@functools.cache
def fitted():
    rng = np.random.default_rng(0)
    bags = [rng.standard_normal((3, 2)) for _ in range(8)]
    y = [0, 1] * 4
    return LatentSVM(Candidates(), C=1.0, n_init=2, max_iter=3, verbose=0).fit(bags, y), bags, y


@functools.cache
def tagged():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((3, 2)) for _ in range(8)]
    y = [[0, 1, 0], [1, 0, 1]] * 2 + [[None, 0, 1], [None] * 3] * 2
    return LatentSVM(Chain(classes=[0, 1]), C=1.0, max_iter=3, verbose=0).fit(X, y), X, y


@target("ask", "Questions")
def asking(draw: Draw):
    parts = draw.chance(0.3)
    model, X, y = tagged() if parts else fitted()
    rules = ["entropy", "change", "starts", "paced"]
    arguments = {
        "X": X,
        "y": y,
        "k": draw.between(1, 10),
        "hidden": None if parts else draw.pick([None, [-1] * 7 + [0]]),
        "rule": draw.pick(["auto", "random", "mixed", "margin", "perturbed", *([] if parts else rules)]),
        "parts": parts,
        "diverse": draw.chance(0.5),
        "cost": draw.pick([None, np.arange(1.0, 9.0)]),
        "skip": draw.pick([None, [0, 1]]),
        "random_state": draw.between(0, 5),
    }
    found = ask(model, **draw.spoil_some(arguments))
    assert isinstance(found, Questions)
