"""Samples without a label: is self-training better than throwing them away?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import Page, real_data
from benchmarks.localisation import interval
from benchmarks.partly_known import digit_bags
from tacit import HiddenCRF, LatentSVM, Ragged, SelfPaced
from tacit.datasets import planted_motif
from tacit.problems import Candidates, Chain, Motif

BAGS, TEST_BAGS, DRAWS = 300, 600, 4
PER_CLASS = (2, 4, 10, 20)
SEQUENCES = 400
WORDS, POOL = (20, 50), 300


def run() -> Page:
    page = Page(
        "Samples without a label",
        f"Right labels of new samples. {BAGS} bags of four digits, one of which, from 0 to 4, is the label, and "
        f"{TEST_BAGS} test bags; {SEQUENCES} DNA sequences of 40 letters, half of them with a planted motif, and as "
        f"many test sequences. Some samples of every class are labelled. Handwritten words (128 pixels per "
        f"letter): {POOL} of one fold, some of them with their letters, and all words of the next fold to test; the "
        f"share of right letters. {DRAWS} draws; ± half of a 95 % interval. "
        "'Labelled alone' throws the others away. 'Self-trained' gives None for their labels: the default pace takes "
        "certain labels first, 'at once' takes all of them in the first round. 'Gain' is the default minus labelled "
        "alone, draw by draw. C = 100 and all other parameters are defaults, but letters have an intercept; nothing "
        "was chosen on test data.",
        [
            *("data", "learner", "labelled", "labelled alone", "self-trained, at once", "self-trained", "gain"),
            "all labels",
        ],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for count in PER_CLASS:
            _add_row(page, "bags of digits", count, _digits, LatentSVM(Candidates(), C=100.0, init="hidden", verbose=0))
        for count in PER_CLASS:
            _add_row(page, "bags of digits", count, _digits, HiddenCRF(Candidates(), C=100.0, verbose=0))
        for count in (20, 50):
            _add_row(
                page,
                "planted motif",
                count,
                _motif,
                LatentSVM(Motif(width=8), C=100.0, n_init=4, init="proposed", verbose=0),
            )
        chain = Chain(classes=list(range(26)), fit_intercept=True)
        for count in WORDS:
            _add_row(page, "letters", count, _letters, LatentSVM(chain, C=100.0, verbose=0))
        for count in WORDS:
            _add_row(page, "letters", count, _letters, HiddenCRF(chain, C=100.0, verbose=0))
    return page


def _digits(draw: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(draw)
    (X, y, _), (new, y_new, _) = digit_bags(BAGS, rng), digit_bags(TEST_BAGS, rng)
    return X, y, new, y_new


def _motif(draw: int) -> tuple[Any, ...]:
    X, y, _ = planted_motif(2 * SEQUENCES, 40, "GATTACAG", noise=0.1, seed=draw)
    return X[:SEQUENCES], y[:SEQUENCES], X[SEQUENCES:], y[SEQUENCES:]


def _letters(draw: int) -> tuple[Any, ...]:
    with np.load(real_data() / "letters" / "letters.npz") as data:
        words, letters = Ragged(data["pixels"], data["offsets"]), Ragged(data["letters"], data["offsets"])
        pool, new = (np.flatnonzero(data["folds"] == fold) for fold in (draw + 1, draw + 2))
    pool = np.sort(np.random.default_rng(draw).permutation(pool)[:POOL])
    return words[pool], letters[pool], words[new], letters[new]


def _choose(y: Any, count: int, rng: np.random.Generator) -> Any:
    """The samples that keep their labels: some of every class, or some sequences."""
    if isinstance(y, Ragged):
        return np.sort(rng.permutation(len(y))[:count])
    return np.sort(np.concatenate([rng.permutation(np.flatnonzero(y == label))[:count] for label in np.unique(y)]))


def _add_row(page: Page, name: str, count: int, draw_samples: Any, model: Any) -> None:
    scores: dict[str, list[float]] = {"alone": [], "at once": [], "paced": [], "all": []}
    for draw in range(DRAWS):
        X, y, new, y_new = draw_samples(draw)
        rng = np.random.default_rng(draw)
        some = _choose(y, count, rng)
        partly = [label if i in set(some.tolist()) else None for i, label in enumerate(y)]
        scores["alone"].append(model.fit(X[some], y[some]).score(new, y_new))
        scores["paced"].append(model.fit(X, partly).score(new, y_new))
        if hasattr(model, "pace"):
            paced = model.set_params(pace=SelfPaced(start=1.0)).fit(X, partly)
            scores["at once"].append(paced.score(new, y_new))
            model.set_params(pace=None)
        scores["all"].append(model.fit(X, y).score(new, y_new))
    gain = interval(np.array(scores["paced"]) - np.array(scores["alone"]), 3)
    cells = {key: interval(np.array(found), 3) if found else "" for key, found in scores.items()}
    of_what = "words" if name == "letters" else "per class"
    row = (name, type(model).__name__, f"{count} {of_what}", cells["alone"], cells["at once"], cells["paced"])
    page.rows.append((*row, gain, cells["all"]))
    print(page.rows[-1], flush=True)
