"""Structured SVMs of graphs: seconds until an objective, tacit beside pystruct on the same graphs."""

from __future__ import annotations

import os
import pickle
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import tacit
from benchmarks.graphs import crosses, potts_grid, snakes, snakes_with_ends, stripes
from benchmarks.harness import Page, Skipped
from tacit.problems import Graph

VARIABLE = "TACIT_PYSTRUCT"
TOL = 1e-2
"""Gap of tacit; an objective counts as reached when it is at most this share above that of tacit."""
LIMIT = 10.0, 21.0
"""CPU seconds of a fit of pystruct: at least the first number, and as many times those of tacit as the second."""
BOTH = ("one slack", "Frank–Wolfe")
TASKS = (
    ("directional grid", "directional", stripes, 20, BOTH),
    ("crosses with a centre", "symmetric", crosses, 5000, BOTH),
    ("Potts grid, all pairs symmetric", "symmetric", potts_grid, 100, BOTH),
    ("snakes, directional", "directional", snakes, 10, BOTH),
    ("snakes, edges with features of both ends", "directional", snakes_with_ends, 10, BOTH),
)


def run() -> Page:
    interpreter = os.environ.get(VARIABLE)
    if not interpreter:
        raise Skipped(f"{VARIABLE} is not set: the path of a Python that can import pystruct")
    page = Page(
        "Graphs: tacit and pystruct on the same tasks",
        "The generated graphs of `graphs`, the same objective (no intercept), one thread, CPU seconds of one fit. "
        f"tacit: `StructuredSVM(Graph(...), tol={TOL})`. pystruct 0.3.2: its two usual learners, `OneSlackSSVM` "
        "with a cache of 50 and `FrankWolfeSSVM`, tol 1e-3, inference by max-product, since AD3 and QPBO do not build. "
        f"Its fits end by themselves, or after {LIMIT[0]:g} s or {LIMIT[1]:g} times the seconds of tacit, whichever is "
        "more. Objectives are ½‖w‖² + C/n Σ (score + loss of the best labels that are found − score of the truth) of "
        "the weights after every iteration, by inference of tacit for both; of tacit the upper bound, of pystruct the "
        "score of labels, which is lower. 'Reached' is the CPU time after which the objective of pystruct is at most "
        f"{TOL:.0%} above that of tacit. Accuracy of nodes on the test graphs (training graphs for the directional "
        "grid and the crosses).",
        ["task", "learner", "objective", "accuracy", "CPU s", "ended", "reached, CPU s", "times tacit"],
    )
    with threadpool_limits(1):
        for name, pairs, data, C, learners in TASKS:
            page.rows += _compare(interpreter, name, pairs, *data(), C, learners)
    page.notes.append(
        "pystruct 0.3.2 does not install on Python 3.11. It ran in an environment of its own from its source, in which "
        "`sklearn.externals.joblib` became `joblib`, the aliases `np.int`, `np.bool` and `np.float` became the types "
        "of Python, and its two compiled modules were built again from Cython: loss augmentation, and Viterbi on "
        "chains. Its messages on graphs with cycles are plain Python."
    )
    page.notes.append(
        "Where pystruct ends by itself, max-product finds no labels that violate its constraints by more than its "
        "tolerance, while better inference does."
    )
    return page


def _compare(
    interpreter: str, name: str, pairs: str, train: Any, test: Any, C: float, learners: Any
) -> list[tuple[Any, ...]]:
    X, y = train
    model = tacit.StructuredSVM(Graph(pairs, fit_intercept=False), C=C, tol=TOL, n_jobs=1, verbose=0)
    model.fit(X[:3], y[:3])  # compiles
    began = time.process_time()
    model.fit(X, y)
    ours = time.process_time() - began
    oracle = model.problem.bind(X, y, model.schema_)
    truth = np.concatenate([np.asarray(own) for own in test[1]])
    accuracy = _accuracy(model, test[0], truth, model.coef_)
    rows = [(name, "tacit", f"{model.objective_:.4g}", f"{accuracy:.3f}", f"{ours:.2f}", "by itself", "–", "1")]
    limit = max(LIMIT[0], LIMIT[1] * ours)
    for learner in learners:
        found = _fit_pystruct(interpreter, X, y, pairs == "directional", learner, C / len(X), limit)
        objectives = np.array([_objective(oracle, y, _in_order(w, model), C / len(X)) for w in found["weights"]])
        reached = np.flatnonzero(objectives <= (1 + TOL) * model.objective_)
        least = int(objectives.argmin())
        accuracy = _accuracy(model, test[0], truth, _in_order(found["weights"][least], model))
        seconds = found["seconds"]
        when, ratio = f"not in {seconds[-1]:.0f}", f"> {seconds[-1] / ours:.0f}"
        if reached.size:
            when, ratio = f"{seconds[reached[0]]:.1f}", f"{seconds[reached[0]] / ours:.0f}"
        own = f"pystruct, {learner}", f"{objectives[least]:.4g}", f"{accuracy:.3f}", f"{seconds[-1]:.1f}"
        rows.append((name, *own, found["ended"], when, ratio))
        print(*rows[-1], flush=True)
    return rows


def _fit_pystruct(
    interpreter: str, X: Any, y: Any, is_directional: bool, learner: str, C: float, limit: float
) -> dict[str, Any]:
    graphs = [(np.array(x.values), np.array(x.edges), np.array(x.edge_values, dtype=float)) for x in X]
    labels = [np.asarray(own, dtype=np.int64) for own in y]
    arguments = {"graphs": graphs, "labels": labels, "is_directional": is_directional, "learner": learner, "C": C}
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "data", Path(folder) / "found"
        data.write_bytes(pickle.dumps({**arguments, "limit": limit}))
        script = Path(__file__).with_name("pystruct_fit.py")
        subprocess.run([interpreter, str(script), str(data), str(out)], check=True, env={"OMP_NUM_THREADS": "1"})
        return dict(pickle.loads(out.read_bytes()))


def _in_order(w: np.ndarray, model: Any) -> np.ndarray:
    """Weights of pystruct in the order of tacit, which lists unordered pairs by rows of the upper triangle."""
    k = len(model.schema_.classes)
    if model.problem.pairs == "directional":
        return w
    rows, columns = np.tril_indices(k)
    size = len(rows)
    return np.concatenate([w[:-size], w[-size:][np.lexsort((rows, columns))]])


def _objective(oracle: Any, y: Any, w: np.ndarray, weight: float) -> float:
    code = oracle.predict_augmented(w).code
    slack = oracle.score(w, code) + oracle.loss(code) - oracle.score(w, oracle.encode(y))
    return float(0.5 * w @ w + weight * np.maximum(slack, 0.0).sum())


def _accuracy(model: Any, X: Any, truth: np.ndarray, w: np.ndarray) -> float:
    oracle = model.problem.bind(X, None, model.schema_)
    return float(np.mean(oracle.decode(oracle.predict(w).code)[0].values == truth))
