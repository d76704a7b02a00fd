"""The demonstration behind ``tacit demo``: learn digits, certify the optimum, show both."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tacit import plot
from tacit.learners import StructuredSVM
from tacit.problems import Multiclass
from tacit.solvers import Bundle

TOL = 1e-3


def digits(folder: Path) -> str:
    """Fit the digits with the proximal bundle and the textbook cutting plane; write the picture, return the report."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.25, random_state=0, stratify=y)
    StructuredSVM(Multiclass(), C=100).fit(X_train[:100], y_train[:100])  # compiles the kernels
    models: dict[str, Any] = {}
    lines = [
        f"{len(y_train)} handwritten digits to learn from, {len(y_test)} to test on; "
        f"½‖w‖² + (C/n) Σ ξ with C = 100, to a certified gap of {TOL:.1%}",
        "",
        f"{'solver':<24}{'passes':>8}{'seconds':>9}{'objective':>11}{'bound':>9}{'gap':>9}{'test accuracy':>15}",
    ]
    for name, solver in (("proximal bundle", Bundle()), ("textbook cutting plane", Bundle(proximal=False))):
        began = time.perf_counter()
        model = StructuredSVM(Multiclass(), C=100, tol=TOL, solver=solver).fit(X_train, y_train)
        seconds = time.perf_counter() - began
        models[name] = model
        lines.append(
            f"{name:<24}{model.n_iter_:>8}{seconds:>9.3f}{model.objective_:>11.3f}{model.bound_:>9.3f}"
            f"{model.gap_ / model.objective_:>9.2%}{model.score(X_test, y_test):>15.1%}"
        )
    best = models["proximal bundle"]
    lines += [
        "",
        f"The optimum lies between {best.bound_:.4f} and {best.objective_:.4f}: "
        f"no weights can be better by more than {best.gap_ / best.objective_:.2%}.",
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "digits.png"
    _picture(models).savefig(path, dpi=130)
    lines.append(f"Picture: {path}")
    return "\n".join(lines)


def _picture(models: dict[str, Any]) -> Any:
    best = next(iter(models.values()))
    plt = plot.pyplot()
    figure = plt.figure(figsize=(10, 5.6), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[3, 1.15])
    left, right = top.subplots(1, 2)
    plot.convergence(best, left)
    plot.gap(models, TOL, right)
    bottom.suptitle("What it learned: blue pixels speak for the digit, red against it", fontsize=10)
    weights = best.weights_["weights"].reshape(-1, 8, 8)
    plot.images(weights, best.classes_, bottom.subplots(1, len(weights)))
    return figure
