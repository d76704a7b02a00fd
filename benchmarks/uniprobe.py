"""Motifs of the proteins of Kumar (2013): test error, objective, stuck runs; CCCP against self-paced learning."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from tacit import LatentSVM, SelfPaced
from tacit.datasets import uniprobe
from tacit.datasets.dna_sequences import Halves
from tacit.problems import Motif

C, EPSILON, STARTS = 150.0, 1e-3, 4
WIDTHS = (6, 8, 10, 12, 14, 17, 20, 24, 28)
PROTEINS = ("052", "108", "146")
ERRORS = {"052": 29.2, "108": 27.1, "146": 22.5}
"""Test error of the latent SVM: Kumar (2013), table 3.1."""
OBJECTIVES = {
    **{("108", "CCCP"): 94.0, ("108", "self-paced, all"): 93.5},
    **{("146", "CCCP"): 75.5, ("146", "self-paced, all"): 74.2},
}
LEARNERS = {"CCCP": None, "self-paced, hidden": SelfPaced(), "self-paced, all": SelfPaced(paces="all")}
"""Kumar (2013) leaves out any sample, as ``paces="all"`` does."""


class Start(NamedTuple):
    """One random start on one fold."""

    objective: float
    error: float
    is_stuck: bool
    seconds: float


def run(full: bool = False) -> Page:
    folds = range(1, 6) if full else range(1, 3)
    page = Page(
        "Motifs: the proteins of Kumar (2013)",
        f'`LatentSVM(Motif(width, features="literature"), C={C:g}, tol={EPSILON}, init="hidden")`, '
        f"background words of 3 letters, one strand, {STARTS} random starts on each of folds {folds[0]} to "
        f"{folds[-1]}, the same for both learners, the best by objective kept. Width: lowest loss of CCCP by 3-fold "
        "cross-validation inside the training half of fold 1, then fixed. Mean ± standard deviation over folds; in "
        "brackets what Kumar (2013) reports (table 3.1 for errors).",
        [
            "protein",
            "width",
            "learner",
            "test error, %",
            "objective, best of 4",
            "objective, all starts",
            "stuck runs",
            "without the escape",
            "so, width 10",
            "seconds per start",
        ],
    )
    folder = real_data() / "uniprobe"
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for protein in PROTEINS:
            measure(page, folder, protein, folds)
    page.notes.append(
        "A run is stuck if it ends with a training error above 45 % (Kumar 2013: 18 of 100 runs of CCCP, 1 of "
        f"self-paced learning). Ties: within C·ε = {C * EPSILON:g}. The held-out loss still falls at the largest "
        "width tried."
    )
    page.notes.append(
        "Test errors here are below those of the thesis because the width, chosen on training data, is 28. At width 10 "
        "the held-out losses are about the errors of the thesis, 29.2, 27.1 and 22.5; it takes the width from UniProbe "
        "and does not print it."
    )
    page.notes.append(
        "Objectives in brackets are the third and fifth columns of table 2.1 of Kumar (2013), whose columns have no "
        "names: that these are 108 and 146, the third and fifth proteins of table 3.1, is a guess. The CCCP test "
        "errors of table 2.1, 27.1 and 20.3 in these columns, agree with table 3.1 for 108 (27.1) but not for 146 "
        "(22.5)."
    )
    return page


def measure(page: Page, folder: Path, protein: str, folds: Any) -> None:
    losses = {width: held_out(folder, protein, width) for width in WIDTHS}
    width = min(losses, key=lambda width: losses[width])
    found: dict[str, list[list[Start]]] = {name: [] for name in LEARNERS}
    stuck = dict.fromkeys(LEARNERS, 0)
    narrow = dict.fromkeys(LEARNERS, 0)
    for fold in folds:
        data = uniprobe(folder, protein, fold)
        for name, pace in LEARNERS.items():
            seeds = range(STARTS)
            found[name].append([start(data, width, pace, seed) for seed in seeds])
            stuck[name] += sum(start(data, width, pace, seed, escape=False).is_stuck for seed in seeds)
            narrow[name] += sum(start(data, 10, pace, seed, escape=False).is_stuck for seed in seeds)
    for name, runs in found.items():
        best = [min(starts, key=lambda end: end.objective) for starts in runs]
        every = [end for starts in runs for end in starts]
        paper = OBJECTIVES.get((protein, name))
        page.rows.append(
            (
                protein,
                width,
                name,
                f"{spread([end.error for end in best])} ({ERRORS[protein]})",
                spread([end.objective for end in best]) + (f" ({paper})" if paper else ""),
                spread([end.objective for end in every]),
                f"{sum(end.is_stuck for end in every)} of {len(every)}",
                f"{stuck[name]} of {len(every)}",
                f"{narrow[name]} of {len(every)}",
                f"{np.mean([end.seconds for end in every]):.1f}",
            )
        )
    page.notes.append(
        f"{protein}: against CCCP over all starts: {compare(found)}. Held-out loss by width: "
        + ", ".join(f"{width}: {100 * loss:.1f} %" for width, loss in losses.items())
        + "."
    )


def compare(found: dict[str, list[list[Start]]]) -> str:
    """Wins, ties and losses of self-paced learning, by the objective of the same start."""
    ends = {name: np.array([end.objective for starts in runs for end in starts]) for name, runs in found.items()}
    words = []
    for name in list(ends)[1:]:
        gains = ends["CCCP"] - ends[name]
        wins, losses = (gains > C * EPSILON).sum(), (gains < -C * EPSILON).sum()
        ties = gains.size - wins - losses
        words.append(f"{name}: mean gain {gains.mean():.2f}, {wins} wins, {ties} ties, {losses} losses")
    return "; ".join(words)


def held_out(folder: Path, protein: str, width: int) -> float:
    data = uniprobe(folder, protein, 1)
    problem = Motif(width, features="literature")
    model = LatentSVM(problem, C=C, tol=EPSILON, n_init=STARTS, init="hidden", verbose=0)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return 1 - float(cross_val_score(model, data.X_train, data.y_train, cv=folds).mean())


def start(data: Halves, width: int, pace: Any, seed: int, escape: bool = True) -> Start:
    settings = {"tol": EPSILON, "pace": pace, "escape": escape, "random_state": seed, "init": "hidden", "verbose": 0}
    model = LatentSVM(Motif(width, features="literature"), C=C, **settings)
    began = time.perf_counter()
    model.fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - began
    is_stuck = model.score(data.X_train, data.y_train) < 0.55
    error = 100 * (1 - model.score(data.X_test, data.y_test))
    return Start(model.objective_, error, is_stuck, seconds)


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"
