"""The path along C against separate fits: oracle passes and time."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

import tacit
from benchmarks.harness import Page, interleave, milliseconds, ratio
from benchmarks.passes import planted
from tacit import StructuredSVM
from tacit.problems import Candidates, Multiclass


def run() -> Page:
    page = Page(
        "A path along C",
        "`tacit.path` against one fit for each C, to the same certified 0.1 %.",
        ["data", "values of C", "passes, path", "passes, separate", "ms, path", "ms, separate", "path / separate"],
    )
    X, y = load_digits(return_X_y=True)
    bags, labels, hidden = planted(500, 20, 50, 5)
    for name, problem, data, known in (
        ("digits", Multiclass(), (X / 16, y), {}),
        ("bags", Candidates(), (bags, labels), {"hidden": hidden}),
    ):
        for count in (4, 10, 20):
            Cs = np.logspace(0, 3, count)
            found: dict[str, list[StructuredSVM]] = {}

            def along(Cs=Cs, problem=problem, data=data, known=known, found=found) -> None:
                found["path"] = list(tacit.path(StructuredSVM(problem), *data, Cs, **known))

            def alone(Cs=Cs, problem=problem, data=data, known=known, found=found) -> None:
                found["alone"] = [StructuredSVM(problem, C=C).fit(*data, **known) for C in Cs]

            seconds = interleave({"path": along, "alone": alone}, rounds=3)
            passes = {key: sum(model.n_iter_ for model in models) for key, models in found.items()}
            times = [milliseconds(seconds[key]) for key in ("path", "alone")]
            share = f"{ratio(seconds, 'path', 'alone'):.2f}"
            page.rows.append((name, f"{count}, 1 to 1000", passes["path"], passes["alone"], *times, share))
    return page
