"""Slack rescaling where outputs cannot be listed, against margin rescaling: letters of handwritten words."""

from __future__ import annotations

import time

import numpy as np
from sklearn.model_selection import KFold

from benchmarks.harness import Page, real_data
from tacit import Ragged, StructuredSVM
from tacit.problems import Chain

PER_WORD = {"margin": (0.005, 0.02, 0.1, 0.5), "slack": (0.001, 0.005, 0.02, 0.1)}
"""C per word that are compared. Losses multiply violations in slack rescaling, so it needs smaller ones."""


def run() -> Page:
    page = Page(
        "Slack rescaling by bounds: letters",
        "Taggings cannot be listed: slack rescaling searches over multiples of the loss, and gives bounds. 'Gap' is "
        "that of the certificate, 'left by inference' the part of it that the bounds leave, both as shares of "
        "`objective_`. Fold 1 (704 words) in training, tol 0.01; wrong letters in per cent, of the other folds "
        "('test') and by 5 folds within the training words. CPU seconds of one fit.",
        ["rescaling", "C per word", "steps", "CPU s", "gap", "left by inference", "5 folds", "test"],
    )
    with np.load(real_data() / "letters" / "letters.npz") as data:
        words, tags = Ragged(data["pixels"], data["offsets"]), Ragged(data["letters"], data["offsets"])
        is_train = data["folds"] == 1
    train, test = (words[is_train], tags[is_train]), (words[~is_train], tags[~is_train])
    for rescaling, Cs in PER_WORD.items():
        errors = {}
        for per_word in Cs:
            errors[per_word] = np.mean(_fold_errors(rescaling, per_word, *train))
            began = time.process_time()
            model = _letters(rescaling, per_word, len(train[0])).fit(*train)
            seconds = f"{time.process_time() - began:.1f}"
            gaps = (f"{part / model.objective_:.1%}" for part in (model.gap_, model.inference_gap_))
            wrong = f"{100 * errors[per_word]:.1f}", f"{100 * (1 - model.score(*test)):.1f}"
            page.rows.append((rescaling, f"{per_word:g}", model.n_iter_, seconds, *gaps, *wrong))
        chosen = min(errors, key=lambda C: errors[C])
        page.notes.append(f"rescaling='{rescaling}': the folds choose C = {chosen:g} per word.")
    return page


def _fold_errors(rescaling: str, per_word: float, X: Ragged, y: Ragged) -> list[float]:
    folds = KFold(5, shuffle=True, random_state=0).split(np.arange(len(X)))
    return [
        1 - _letters(rescaling, per_word, len(train)).fit(X[train], y[train]).score(X[test], y[test])
        for train, test in folds
    ]


def _letters(rescaling: str, per_word: float, n: int) -> StructuredSVM:
    return StructuredSVM(Chain(fit_intercept=True), C=per_word * n, rescaling=rescaling, tol=1e-2, n_jobs=1, verbose=0)
