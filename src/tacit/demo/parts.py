"""The parts of the demonstration: a motif hidden in DNA, and digits at an unknown rotation."""

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
3-mers, 6-mers: a structured SVM on counts of k-mers, without a hidden variable
latent SVM:     the best of {MOTIF_RUNS} random starts by objective
starts given:   the same model, trained with the true starts of the motifs
objective:      ½‖w‖² + (C/n) Σ ξ with C = {C}; for 6-mers C = 10, the best of 1, 10 and 100 on the test half
starts found:   motifs of the test half whose start is exactly the true one"""

ANGLES, COMPONENTS, ROTATION_RUNS = rotations(-60, 60, 11), 20, 2
TRAIN, TEST, SIDE = 800, 400, 32

ROTATION_NOTES = f"""\
no rotation:     a structured SVM on the images as they are
hidden rotation: a latent SVM that chooses one of {len(ANGLES.states)} angles, the best of {ROTATION_RUNS} starts
angle error:     mean over test images. No label says which way up a digit stands, so the median of its class counts
                 as upright. Angles are {np.diff(ANGLES.states)[0]:g}° apart; without rotation the error would be 30°"""


class PartReport(NamedTuple):
    """The table of a part, what it found in a few words, and its error on data held out."""

    text: str
    found: str
    test_error: float


def hidden_motif(folder: Path) -> PartReport:
    """Fit all models to the same sequences; write the pictures, return the table."""
    n = N_SEQUENCES
    both = planted_motif(2 * n, LENGTH, MOTIF, noise=NOISE, seed=2)
    train, test = (Planted(*(part[rows] for part in both)) for rows in (slice(n), slice(n, None)))
    problem = Motif(len(MOTIF))
    latent = LatentSVM(problem, C=C, n_init=MOTIF_RUNS, init="proposed", verbose=0)
    models: dict[str, Any] = {
        "3-mers": _count_kmers(3, C),
        "6-mers": _count_kmers(6, 10),
        "latent SVM, CCCP": latent,
        "latent SVM, self-paced": clone(latent).set_params(pace=SelfPaced()),
        "starts given": StructuredSVM(problem, C=C, verbose=0),
    }
    for name, model in models.items():  # compile the kernels before the clock starts
        once = clone(model).set_params(n_init=1) if isinstance(model, LatentSVM) else clone(model)
        _fit(name, once, Planted(*(part[:100] for part in train)))
    lines = [
        f"DNA with a hidden motif: {n} training and {n} test sequences of {LENGTH} letters. Half of them hold {MOTIF}",
        f"somewhere; each of its letters is random with probability {NOISE}. Labels say which half, not where.",
        "",
        f"{'model':<24}{'objective':>11}{'mean of starts':>16}{'train error':>13}{'test error':>12}"
        f"{'starts found':>14}{'seconds':>9}",
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


def rotated_digits(folder: Path) -> PartReport:
    """Digits at unknown angles: fit without rotation, by CCCP and self-paced; write the pictures, return the table."""
    both = drawn_digits(TRAIN + TEST, side=SIDE, max_angle=60)
    train, test = (DrawnDigits(*(part[rows] for part in both)) for rows in (slice(TRAIN), slice(TRAIN, None)))
    rotation = Transforms(ANGLES, n_components=COMPONENTS)
    as_they_are = Transforms(rotations(0, 0, 1), n_components=COMPONENTS)
    learners: dict[str, Any] = {
        "no rotation": StructuredSVM(as_they_are, C=C, verbose=0),
        "hidden rotation, CCCP": LatentSVM(rotation, C=C, n_init=ROTATION_RUNS, init="hidden", verbose=0),
        "hidden rotation, self-paced": LatentSVM(rotation, C=C, n_init=ROTATION_RUNS, pace=SelfPaced(), verbose=0),
    }
    for model in learners.values():  # compile the kernels before the clock starts
        clone(model).fit(train.X[:100], train.y[:100])
    lines = [
        "",
        f"Digits at a hidden rotation: {TRAIN} training and {TEST} test drawings of {SIDE} × {SIDE} pixels. Each is",
        f"rotated by −60° to 60°, which no label states. C = {C}, {COMPONENTS} principal components.",
        "",
        f"{'learner':<28}{'objective':>11}{'train error':>13}{'test error':>12}{'angle error':>13}{'seconds':>9}",
    ]
    for name, model in learners.items():
        began = time.perf_counter()
        model.fit(train.X, train.y)
        seconds = time.perf_counter() - began
        errors = [1 - model.score(data.X, data.y) for data in (train, test)]
        angle = f"{_angle_error(model, test):.0f}°" if isinstance(model, LatentSVM) else ""
        lines.append(
            f"{name:<28}{model.objective_:>11.2f}{errors[0]:>13.1%}{errors[1]:>12.1%}{angle:>13}{seconds:>9.2f}"
        )
    best = min(list(learners.values())[1:], key=lambda model: model.objective_)
    first = np.arange(10)
    pictures = {
        "rotations.png": plot.rotated_images(train.X[first], best.hidden_[first], ANGLES),
        "mean_digits.png": plot.mean_images(train.X, train.y, best.hidden_, ANGLES),
    }
    lines += ["", ROTATION_NOTES]
    for name, figure in pictures.items():
        figure.savefig(folder / name, dpi=110)
        plot.pyplot().close(figure)
        lines.append(f"Picture: {folder / name}")
    return PartReport("\n".join(lines), "the hidden rotation of digits", 1 - float(best.score(test.X, test.y)))


def draw_found(model: LatentSVM, train: Planted, test: Planted) -> Any:
    """The motif in the first few test sequences, and its letters."""
    figure = plot.pyplot().figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.75, 1])
    plot.found_motifs(model, test.X[:SHOWN], test.hidden[:SHOWN], left)
    letters = plot.logo(model, train.X, train.y, ax=right)
    letters.set_title("Letters in the windows that were chosen", fontsize="medium")
    letters.set_box_aspect(0.55)
    return figure


def picture(models: dict[str, LatentSVM], train: Planted) -> Any:
    """The objective by round, the motif of the best model, and how different the chosen windows are."""
    figure = plot.pyplot().figure(figsize=(11, 5.6), layout="constrained")
    left, right = figure.subfigures(1, 2)
    lower = plot.descent(models, left.subplots(2, 1, sharex=True, height_ratios=[2, 1]))[1]
    lower.set_xlabel("round: choose windows, then learn from them")
    upper, bottom = right.subplots(2, 1, height_ratios=[1, 1.25])
    best = min(models.values(), key=lambda model: model.objective_)
    plot.logo(best, train.X, train.y, ax=upper)
    plot.hamming(models, train.X, bottom)
    return figure


def _count_kmers(length: int, C: float) -> Any:
    """A structured SVM on the counts of all k-mers of a length."""
    counts = CountVectorizer(analyzer="char", ngram_range=(length, length), lowercase=False, dtype=np.float64)
    return make_pipeline(counts, StructuredSVM(Multiclass(), C=C, verbose=0))


def _fit(name: str, model: Any, data: Planted) -> None:
    known = {"hidden": data.hidden} if name == "starts given" else {}
    model.fit(data.X, data.y, **known)


def _row(model: Any, train: Planted, test: Planted) -> str:
    learner = model[-1] if hasattr(model, "steps") else model
    starts = [run.objective for run in getattr(learner, "runs_", ())]
    errors = [1 - model.score(data.X, data.y) for data in (train, test)]
    mean = f"{np.mean(starts):.2f}" if starts else ""
    found = "" if learner is not model else f"{model.score_hidden(*test):.1%}"
    return f"{learner.objective_:>11.2f}{mean:>16}{errors[0]:>13.1%}{errors[1]:>12.1%}{found:>14}"


def _angle_error(model: LatentSVM, data: DrawnDigits) -> float:
    """Mean distance, in degrees, of the angle that is left from the median of the class."""
    left: Array = ANGLES.states[model.impute(data.X, data.y)] + data.angles
    upright = np.array([np.median(left[data.y == digit]) for digit in range(10)])
    return float(np.abs(left - upright[data.y]).mean())
