"""The proteins of Kumar (2013) with the features of the motif finder, beside those of the papers."""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from benchmarks.uniprobe import ERRORS, PROTEINS
from tacit.apps import MotifFinder
from tacit.datasets import uniprobe

BEFORE = {"052": 27.6, "108": 26.0, "146": 18.5}
"""Test error of `LatentSVM(Motif(features="literature"))`, five folds: `uniprobe_full.md`."""


def run(full: bool = False) -> Page:
    folds = range(1, 6) if full else range(1, 2)
    page = Page(
        "Motifs: the proteins of Kumar (2013), features of the motif finder",
        f"`MotifFinder(width=10, n_motifs=3, C=3000)` on folds {folds[0]} to {folds[-1]}, trained on the training "
        "half. Test error in %, mean ± standard deviation over folds: of motifs and composition alone, and with words. "
        "Before: the latent SVM with the papers' features and widths up to 28, five folds (`uniprobe_full.md`).",
        ["protein", "Kumar (2013)", "before", "motifs only", "motifs and words", "seconds per fit"],
    )
    folder = real_data() / "uniprobe"
    with threadpool_limits(1, user_api="blas"):
        for protein in PROTEINS:
            alone, both, seconds = [], [], []
            for fold in folds:
                data = uniprobe(folder, protein, fold)
                began = time.process_time()
                finder = MotifFinder(width=10, n_motifs=3, C=3000, verbose=0).fit(data.X_train, data.y_train)
                seconds.append(time.process_time() - began)
                both.append(100 * (1 - finder.score(data.X_test, data.y_test)))
                alone.append(100 * (1 - finder.set_params(motif_only=True).score(data.X_test, data.y_test)))
            shown = [f"{np.mean(errors):.2f} ± {np.std(errors):.2f}" for errors in (alone, both)]
            page.rows.append([protein, ERRORS[protein], BEFORE[protein], *shown, f"{np.mean(seconds):.0f}"])
            print(page.rows[-1], flush=True)
    return page
