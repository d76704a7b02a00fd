"""CPU seconds of importing tacit and of a first fit, beyond NumPy, SciPy and scikit-learn."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np

from benchmarks.harness import Page

LIBRARIES = "import numpy, scipy.sparse, scipy.optimize, sklearn.base, sklearn.utils.estimator_checks, sklearn.svm\n"
IMPORT = "import tacit\n"
NAMES = "from tacit import StructuredSVM, Ragged, load; from tacit.problems import Multiclass; import tacit.solvers\n"
FIT = "X = numpy.eye(3); StructuredSVM(Multiclass()).fit(X, [0, 1, 2])\n"


def run() -> Page:
    page = Page(
        "Import and first fit",
        "CPU seconds in a new process, median of seven, kernels compiled before (Numba's cache is warm). Must reach: "
        "at most 0.3 s for the import, 1.5 s for the first fit.",
        ["what", "CPU seconds beyond the line above"],
    )
    stages = {
        "NumPy, SciPy, scikit-learn": LIBRARIES,
        "import tacit": IMPORT,
        "every public name": NAMES,
        "a first fit": FIT,
    }
    programs = dict(zip(stages, itertools.accumulate(stages.values()), strict=True))
    _measure(programs["a first fit"])
    rounds = [{name: _measure(code) for name, code in programs.items()} for _ in range(7)]
    before = 0.0
    for name in stages:
        total = float(np.median([one[name] for one in rounds]))
        page.rows.append((name, f"{total - before:.3f}"))
        before = total
    return page


def _measure(code: str) -> float:
    program = "import time; began = time.process_time()\n" + code + "print(time.process_time() - began)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
