"""The proteins of Kumar (2013): all windows of a sequence against those that the papers look at."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from benchmarks.uniprobe import EPSILON, ERRORS, PROTEINS, C, spread
from tacit import LatentSVM
from tacit.datasets import uniprobe
from tacit.problems import Motif

WIDTHS = (10, 28)


def run() -> Page:
    page = Page(
        "Motifs: windows of the papers against all windows",
        f'`LatentSVM(Motif(width, features=...), C={C:g}, tol={EPSILON}, init="hidden")`, one random start on each of '
        'five folds, the same for both. `features="literature"` leaves out the last four windows of a sequence, as the '
        'papers do; `"full"`, the default, looks at all. Test error in %, mean ± standard deviation over folds; in '
        "brackets Kumar (2013), table 3.1. Widths are shown, not chosen; test halves were looked at once for this.",
        ["protein", "width", "literature, %", "full, %", "full better on", "seconds per fit, both"],
    )
    folder = real_data() / "uniprobe"
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for protein in PROTEINS:
            for width in WIDTHS:
                errors, seconds = [], []
                for fold in range(1, 6):
                    data = uniprobe(folder, protein, fold)
                    began = time.process_time()
                    errors.append([_error(data, width, features) for features in ("literature", "full")])
                    seconds.append((time.process_time() - began) / 2)
                old, new = np.array(errors).T
                told = f"{spread(old)} [{ERRORS[protein]}]"
                row = (protein, width, told, spread(new), f"{(new < old).sum()} of 5 folds", f"{np.mean(seconds):.1f}")
                page.rows.append(row)
                print(row, flush=True)
    return page


def _error(data, width: int, features: str) -> float:
    problem = Motif(width, features=features)
    model = LatentSVM(problem, C=C, tol=EPSILON, init="hidden", random_state=0, verbose=0)
    return 100 * (1 - model.fit(data.X_train, data.y_train).score(data.X_test, data.y_test))
