"""The parts of the demonstration: a motif hidden in DNA, and digits at an unknown turn; with hidden values or not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from tacit import plot
from tacit.data.arrays import Array
from tacit.datasets.digits import DrawnDigits, drawn_digits
from tacit.datasets.dna_sequences import Planted, planted_motif
from tacit.learners import LatentSVM, StructuredSVM
from tacit.learners.descents.pacing import SelfPaced
from tacit.problems import Motif, Multiclass, Transforms, rotations

C = 100

MOTIF, NOISE, LENGTH, N_SEQUENCES = "GATTACAGGC", 0.25, 40, 2000
MOTIF_RUNS, SHOWN = 8, 14

MOTIF_NOTES = f"""\
words:        a structured SVM on counts of words, nothing hidden; those of 3 letters are the latent SVM's background
latent SVM:   the best of {MOTIF_RUNS} random starts by objective
places given: the same model, told where the motifs are
objective:    ½‖w‖² + (C/n) Σ ξ with C = {C}; for words of 6 letters 10, the best of 1, 10 and 100 on the test half
places found: motifs of the test half whose window is the planted one, to the letter"""

ANGLES, COMPONENTS, TURN_RUNS = rotations(-60, 60, 11), 20, 2
TRAIN, TEST, SIDE = 800, 400, 32

TURN_NOTES = f"""\
no hidden turn: a structured SVM that takes the images as they are
hidden turn:    a latent SVM that chooses among {len(ANGLES.states)} angles, the best of {TURN_RUNS} starts by objective
turn off by:    mean over test images. Which way up a digit belongs no label says, so the median of its class counts
                as upright. Angles are {np.diff(ANGLES.states)[0]:g}° apart; without any turn it would be 30°"""


class PartReport(NamedTuple):
    """The table of a part, what it found in a few words, and its error on data held out."""

    text: str
    found: str
    test_error: float


def hidden_motif(folder: Path) -> PartReport:
    """Fit all models to the same sequences; write the picture, return the table."""
    n = N_SEQUENCES
    both = planted_motif(2 * n, LENGTH, MOTIF, noise=NOISE, seed=2)
    train, test = (Planted(*(part[rows] for part in both)) for rows in (slice(n), slice(n, None)))
    problem = Motif(len(MOTIF))
    latent = LatentSVM(problem, C=C, n_init=MOTIF_RUNS, verbose=0)
    models: dict[str, Any] = {
        "words of 3 letters": _words(3, C),
        "words of 6 letters": _words(6, 10),
        "latent SVM, CCCP": latent,
        "latent SVM, self-paced": clone(latent).set_params(pace=SelfPaced()),
        "places given": StructuredSVM(problem, C=C, verbose=0),
    }
    for name, model in models.items():  # compiles the kernels, which is not what the seconds are about
        once = clone(model).set_params(n_init=1) if isinstance(model, LatentSVM) else clone(model)
        _fit(name, once, Planted(*(part[:100] for part in train)))
    lines = [
        f"DNA with a hidden motif: {n} sequences of {LENGTH} letters to learn from, {n} to test on. Half of them hold",
        f"{MOTIF} somewhere, each letter of it drawn anew with probability {NOISE}. Labels say which half, not where.",
        "",
        f"{'model':<24}{'objective':>11}{'mean of starts':>16}{'train error':>13}{'test error':>12}"
        f"{'places found':>14}{'seconds':>9}",
    ]
    for name, model in models.items():
        began = time.perf_counter()
        _fit(name, model, train)
        seconds = time.perf_counter() - began
        lines.append(f"{name:<24}{_row(model, train, test)}{seconds:>9.2f}")
    best = min((models["latent SVM, CCCP"], models["latent SVM, self-paced"]), key=lambda model: model.objective_)
    found, path = folder / "found_motif.png", folder / "motif.png"
    draw_found(best, train, test).savefig(found, dpi=110)
    paces = {
        "all samples at once (CCCP)": models["latent SVM, CCCP"],
        "easy samples first (self-paced)": models["latent SVM, self-paced"],
    }
    picture(paces, train).savefig(path, dpi=110)
    lines += ["", MOTIF_NOTES, f"Pictures: {found} and {path}"]
    return PartReport("\n".join(lines), "a motif hidden in DNA", 1 - float(best.score(test.X, test.y)))


def turned_digits(folder: Path) -> PartReport:
    """Digits, each turned by a random angle nobody notes down: without a hidden turn, by CCCP, self-paced.

    Writes two pictures, returns the table.
    """
    both = drawn_digits(TRAIN + TEST, side=SIDE, turn=60)
    train, test = (DrawnDigits(*(part[rows] for part in both)) for rows in (slice(TRAIN), slice(TRAIN, None)))
    hidden_turn = Transforms(ANGLES, n_components=COMPONENTS)
    as_they_are = Transforms(rotations(0, 0, 1), n_components=COMPONENTS)
    learners: dict[str, Any] = {
        "no hidden turn": StructuredSVM(as_they_are, C=C, verbose=0),
        "hidden turn, CCCP": LatentSVM(hidden_turn, C=C, n_init=TURN_RUNS, verbose=0),
        "hidden turn, self-paced": LatentSVM(hidden_turn, C=C, n_init=TURN_RUNS, pace=SelfPaced(), verbose=0),
    }
    for model in learners.values():  # compiles the kernels, which is not what the seconds are about
        clone(model).fit(train.X[:100], train.y[:100])
    lines = [
        "",
        f"Digits at a hidden turn: {TRAIN} drawings of {SIDE} × {SIDE} pixels to learn from, {TEST} to test on. Each",
        f"was turned by an angle between −60° and 60° that no label tells. C = {C}, {COMPONENTS} principal components.",
        "",
        f"{'learner':<26}{'objective':>11}{'train error':>13}{'test error':>12}{'turn off by':>13}{'seconds':>9}",
    ]
    for name, model in learners.items():
        began = time.perf_counter()
        model.fit(train.X, train.y)
        seconds = time.perf_counter() - began
        errors = [1 - model.score(data.X, data.y) for data in (train, test)]
        turn = f"{_off_by(model, test):.0f}°" if isinstance(model, LatentSVM) else ""
        lines.append(
            f"{name:<26}{model.objective_:>11.2f}{errors[0]:>13.1%}{errors[1]:>12.1%}{turn:>13}{seconds:>9.2f}"
        )
    best = min(list(learners.values())[1:], key=lambda model: model.objective_)
    first = np.arange(10)
    pictures = {
        "turns.png": plot.rotated_images(train.X[first], best.hidden_[first], ANGLES),
        "mean_digits.png": plot.mean_images(train.X, train.y, best.hidden_, ANGLES),
    }
    lines += ["", TURN_NOTES]
    for name, figure in pictures.items():
        figure.savefig(folder / name, dpi=110)
        plot.pyplot().close(figure)
        lines.append(f"Picture: {folder / name}")
    return PartReport("\n".join(lines), "the hidden rotation of digits", 1 - float(best.score(test.X, test.y)))


def draw_found(model: LatentSVM, train: Planted, test: Planted) -> Any:
    """The motif in the first few sequences that the model has not seen, and its letters."""
    figure = plot.pyplot().figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.75, 1])
    plot.found_motifs(model, test.X[:SHOWN], test.hidden[:SHOWN], left)
    letters = plot.logo(model, train.X, train.y, ax=right)
    letters.set_title("Letters in the windows that were chosen", fontsize="medium")
    letters.set_box_aspect(0.55)
    return figure


def picture(models: dict[str, LatentSVM], train: Planted) -> Any:
    """How learning went down, the motif of the best model, and how unlike each other the chosen windows are."""
    figure = plot.pyplot().figure(figsize=(11, 5.6), layout="constrained")
    left, right = figure.subfigures(1, 2)
    lower = plot.descent(models, left.subplots(2, 1, sharex=True, height_ratios=[2, 1]))[1]
    lower.set_xlabel("round: choose windows, then learn from them")
    upper, bottom = right.subplots(2, 1, height_ratios=[1, 1.25])
    best = min(models.values(), key=lambda model: model.objective_)
    plot.logo(best, train.X, train.y, ax=upper)
    plot.hamming(models, train.X, bottom)
    return figure


def _words(length: int, C: float) -> Any:
    """A structured SVM on the counts of all words of a length."""
    counts = CountVectorizer(analyzer="char", ngram_range=(length, length), lowercase=False, dtype=np.float64)
    return make_pipeline(counts, StructuredSVM(Multiclass(), C=C, verbose=0))


def _fit(name: str, model: Any, data: Planted) -> None:
    known = {"hidden": data.hidden} if name == "places given" else {}
    model.fit(data.X, data.y, **known)


def _row(model: Any, train: Planted, test: Planted) -> str:
    learner = model[-1] if hasattr(model, "steps") else model
    starts = [run.objective for run in getattr(learner, "runs_", ())]
    errors = [1 - model.score(data.X, data.y) for data in (train, test)]
    mean = f"{np.mean(starts):.2f}" if starts else ""
    found = "" if learner is not model else f"{model.score_hidden(*test):.1%}"
    return f"{learner.objective_:>11.2f}{mean:>16}{errors[0]:>13.1%}{errors[1]:>12.1%}{found:>14}"


def _off_by(model: LatentSVM, data: DrawnDigits) -> float:
    """Mean distance, in degrees, of what is left of the turns from the median of the class."""
    left: Array = ANGLES.states[model.impute(data.X, data.y)] + data.angles
    upright = np.array([np.median(left[data.y == digit]) for digit in range(10)])
    return float(np.abs(left - upright[data.y]).mean())
