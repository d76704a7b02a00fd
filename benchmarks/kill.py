"""Fits that are killed, at random moments and inside the writing of their own checkpoints, and resumed."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.harness import Page, Skipped
from tacit import (
    DissimilaritySVM,
    GroupNormSVM,
    HiddenCRF,
    ImputedLossSVM,
    IterativeLatentSVM,
    LatentLogistic,
    LatentPerceptron,
    LatentSVM,
    MinEntropySVM,
    Ragged,
    SelfPaced,
    StructuredSVM,
)
from tacit.apps import MotifFinder
from tacit.datasets import planted_motif
from tacit.oracle import CapabilityError
from tacit.problems import Candidates, Chain, Motif, Multiclass, PerSample
from tacit.ranking import GlobalRanker, MixtureRanker
from tacit.solvers import Bundle, FrankWolfe, Subgradient
from tacit.testing import problems
from tacit.testing.learner_checks import make_samples

KILLS = 1000
"""Kills after which the benchmark ends."""

MAX_SECONDS = 2400
"""Seconds after which it ends with fewer."""

STAGES = ("while its parts are written", "before it reaches the disk", "before it takes its place", "after that")
"""Where inside the writing of a checkpoint a process is killed."""

PAUSE = 0.004
"""Seconds that a fit waits after every step, so that there is time to kill it."""

RUNS_AT_THE_MOST = 40
"""Starts of one fit: a kill needs a step to come first, so that the fit ends at last."""

KILLS_PER_FIT = 10
"""Kills of one fit before it may end, if it has the steps for that; half of them inside the writing."""

LEARNERS = (LatentSVM, HiddenCRF, StructuredSVM)
"""Of these, the first two that can learn a problem are killed on it: a descent, a smooth fit, a convex one."""


def digits() -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16, y[:300]


def bags() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    values = rng.standard_normal((60, 4, 5))
    values[np.arange(60), rng.integers(0, 4, 60), y] += 2
    boxes = np.tile([[0, 0, 4, 4], [2, 0, 6, 4], [0, 2, 4, 6], [5, 5, 9, 9]], (60, 1))
    return Ragged.of(values).with_boxes(boxes), y


def sentences() -> tuple[Any, Any]:
    X, y = digits()
    return X.reshape(60, 5, -1), y.reshape(60, 5)


def sequences() -> tuple[Any, Any]:
    X, y, _ = planted_motif(120, 30, "TGACTCA", noise=0.1, seed=1)
    return X, y


def joint_feature(x: Any, y: Any) -> Any:
    return np.outer(np.eye(3)[int(y)], x).ravel()


def signals() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    return rng.standard_normal((45, 3)) + np.eye(3)[y], y


def rankings() -> tuple[Any, Any]:
    """Ten queries of twelve items each, with a relevance of 0 or 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    return X, (X[:, 0] + X[:, 1] * (np.arange(120) // 12 % 2) > 0.5).astype(int)


def structured(problem: Any, solver: Any, **settings: Any) -> Callable[..., Any]:
    return lambda **keeping: StructuredSVM(problem, solver=solver, tol=1e-4, verbose=0, **settings, **keeping)


FITS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, Any]]]] = {
    "StructuredSVM, Bundle": (structured(Multiclass(), Bundle()), digits),
    "StructuredSVM, FrankWolfe": (structured(Multiclass(), FrankWolfe(gap_sampling=True), C=10), digits),
    "StructuredSVM, FrankWolfe on planes": (structured(Multiclass(), FrankWolfe(block_size=20), C=1), digits),
    "StructuredSVM, FrankWolfe on chains": (structured(Chain(), FrankWolfe(), C=10), sentences),
    "StructuredSVM, Subgradient": (structured(Multiclass(), Subgradient(), C=1, max_iter=60), digits),
    "StructuredSVM of functions": (structured(PerSample(joint_feature, outputs=[0, 1, 2]), Bundle()), signals),
    "LatentSVM, motifs": (
        lambda **keeping: LatentSVM(Motif(7), C=20, n_init=2, random_state=0, verbose=0, **keeping),
        sequences,
    ),
    "LatentSVM, self-paced": (
        lambda **keeping: LatentSVM(Candidates(), C=20, pace=SelfPaced(), n_init=2, verbose=0, **keeping),
        bags,
    ),
    "IterativeLatentSVM": (
        lambda **keeping: IterativeLatentSVM(Candidates(loss="overlap"), C=20, n_init=2, verbose=0, **keeping),
        bags,
    ),
    "ImputedLossSVM": (
        lambda **keeping: ImputedLossSVM(Candidates(loss="overlap"), C=20, n_init=2, verbose=0, **keeping),
        bags,
    ),
    "MinEntropySVM": (lambda **keeping: MinEntropySVM(Candidates(), C=20, verbose=0, **keeping), bags),
    "GroupNormSVM": (
        lambda **keeping: GroupNormSVM(Candidates(), C=20, groups="feature", n_init=2, verbose=0, **keeping),
        bags,
    ),
    "DissimilaritySVM": (lambda **keeping: DissimilaritySVM(Candidates(), C=20, verbose=0, **keeping), bags),
    "HiddenCRF": (lambda **keeping: HiddenCRF(Candidates(), C=20, n_init=3, tol=1e-8, verbose=0, **keeping), bags),
    "LatentLogistic": (
        lambda **keeping: LatentLogistic(Motif(7), C=20, n_init=2, tol=1e-8, verbose=0, **keeping),
        sequences,
    ),
    "LatentPerceptron": (lambda **keeping: LatentPerceptron(Candidates(), verbose=0, **keeping), bags),
    "GlobalRanker": (lambda **keeping: GlobalRanker(tol=1e-6, verbose=0, **keeping), rankings),
    "MixtureRanker": (lambda **keeping: MixtureRanker(C=10.0, n_init=2, verbose=0, **keeping), rankings),
    "MotifFinder": (lambda **keeping: MotifFinder(width=7, n_motifs=2, verbose=0, **_silent(keeping)), sequences),
}


def add_problems() -> None:
    """All problems of tacit in their plain form, each with two learners, on samples that a model of them labels."""
    for problem in {type(problem): problem for problem in reversed(problems())}.values():
        added = 0
        for learner in LEARNERS:
            samples = functools.cache(functools.partial(_labelled_samples, problem))
            make = functools.partial(learner, problem, C=5.0, tol=1e-6, random_state=0, verbose=0)
            try:
                make().fit(*samples())
            except (CapabilityError, ValueError):  # it lacks a method, or has hidden values
                continue
            FITS[f"{learner.__name__}, {type(problem).__name__}"] = (make, samples)
            added += 1
            if added == 2:
                break


def _labelled_samples(problem: Any) -> tuple[Any, Any]:
    X, y, _ = make_samples(problem)
    return X, y


def _silent(keeping: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a fit that calls nobody."""
    return {name: value for name, value in keeping.items() if name != "callbacks"}


def _fit_here(name: str) -> Any:
    """What a fit that nobody kills ends with."""
    make, data = FITS[name]
    model, (X, y) = make(), data()
    return learned_numbers(model.fit(X, y, **_groups(name)), X)


def _groups(name: str) -> dict[str, Any]:
    return {"group": [12] * 10} if name.endswith("Ranker") else {}


def learned_numbers(model: Any, X: Any) -> Any:
    """All numbers that a fit ends with, but for times."""
    names = sorted(name for name in vars(model) if name.endswith("_") and not name.startswith("_"))
    values = [getattr(model, name) for name in names]
    parts = [np.ravel(value) for value in values if isinstance(value, int | float | np.ndarray)]
    parts = [part.astype(float) for part in parts if part.dtype.kind in "biuf"]
    if isinstance(model, MotifFinder):
        parts.append(np.ravel(model.decision_function(X)))
    else:
        parts.append(np.array([line.objective for line in getattr(model, "history_", [])]))
    return np.concatenate(parts)


def fit(name: str, folder: str, result: str, stage: str | None, number: int, connection: Any) -> None:
    """In a process of its own: resume a fit, tell of every step, and die while writing a checkpoint if asked to."""
    import warnings

    warnings.simplefilter("ignore")
    if stage is not None:
        _die_while_writing(STAGES.index(stage), number)

    def tell(step: Any) -> None:
        connection.send(step.iteration)
        time.sleep(PAUSE)

    make, data = FITS[name]
    model, (X, y) = make(checkpoint=Path(folder) / "state", resume=True, callbacks=[tell]), data()
    np.save(result, learned_numbers(model.fit(X, y, **_groups(name)), X))


def _die_while_writing(stage: int, number: int) -> None:
    """Replace a function that the writing of archives calls by one that kills this process at its n-th call."""
    calls = 0

    def dying(function: Callable[..., Any], is_after: bool = False) -> Callable[..., Any]:
        def call(*positional: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            answer = function(*positional, **named) if is_after or calls < number else None
            if calls >= number:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return call

    if stage == 0:
        number *= 5  # an archive has several parts
        zipfile.ZipFile.writestr = dying(zipfile.ZipFile.writestr)  # type: ignore[method-assign]
    elif stage == 1:
        os.fsync = dying(os.fsync)
    else:
        os.replace = dying(os.replace, is_after=stage == 3)


class Trial:
    """One fit that is killed now and then until it ends."""

    def __init__(self, context: Any, name: str, rng: np.random.Generator) -> None:
        self.context, self.name, self.rng = context, name, rng
        self.kills = {"moment": 0, "writing": 0}

    def run(self, kinds: list[str], folder: str) -> Any:
        """What the fit ends with, killed once for every kind that there is time for."""
        result = Path(folder) / "result.npy"
        for start in range(RUNS_AT_THE_MOST):
            kind = kinds[start] if start < len(kinds) else None
            stage = str(self.rng.choice(STAGES)) if kind == "writing" else None
            ours, theirs = self.context.Pipe()
            arguments = (self.name, folder, str(result), stage, int(self.rng.integers(1, 6)), theirs)
            process = self.context.Process(target=fit, args=arguments)
            process.start()
            theirs.close()
            if kind == "moment":
                self._wait_for_a_step(ours, Path(folder) / "state")
                time.sleep(float(self.rng.uniform(0, 0.12)))
                process.kill()
            self._listen(ours)
            process.join()
            if process.exitcode == 0:
                break
            if process.exitcode != -signal.SIGKILL:
                raise RuntimeError(f"{self.name} ended by itself with exit code {process.exitcode}")
            self.kills[str(kind)] += 1
        return np.load(result)

    @staticmethod
    def _wait_for_a_step(connection: Any, state: Path) -> None:
        """Until a step is told, or until the checkpoint of a fit that tells nothing is new."""
        before = state.stat().st_mtime_ns if state.exists() else 0
        while not connection.poll(0.02):
            if state.exists() and state.stat().st_mtime_ns != before:
                return
        try:
            connection.recv()
        except EOFError:
            return

    @staticmethod
    def _listen(connection: Any) -> None:
        try:
            while True:
                connection.recv()
        except (EOFError, ConnectionResetError):
            return


def run() -> Page:
    if os.name != "posix":
        raise Skipped("there is no SIGKILL here")
    page = Page(
        "Killed and resumed",
        "SIGKILL at a random moment after the first step, or inside the writing of a checkpoint "
        f"({', '.join(STAGES)}). After each the same fit is started with resume=True. Must reach: all numbers that a "
        "fit that nobody killed has learned (weights, objective, bound, number of steps), and its objective after "
        "every step, bit by bit. These are all learners, rankers and applications that have a checkpoint.",
        ["fit", "killed at a moment", "killed while writing", "resumed to the same bits", "files left behind"],
    )
    context = multiprocessing.get_context("fork")
    add_problems()
    rng = np.random.default_rng(0)
    expected = {name: _fit_here(name) for name in FITS}  # so the kernels are loaded: a fork does without that
    rows = {name: [0, 0, 0, 0] for name in FITS}
    total, began = 0, time.monotonic()
    while total < KILLS and time.monotonic() - began < MAX_SECONDS:
        for name in FITS:
            if total >= KILLS or time.monotonic() - began > MAX_SECONDS:
                break
            with tempfile.TemporaryDirectory() as folder:
                trial = Trial(context, name, rng)
                kinds = ["moment", "writing"] * (KILLS_PER_FIT // 2)
                ended = trial.run(kinds[: KILLS - total], folder)
                left = len(list(Path(folder).glob(".tacit-*")))
            count = sum(trial.kills.values())
            is_same = np.array_equal(ended, expected[name])
            for column, value in enumerate((*trial.kills.values(), count * is_same, left)):
                rows[name][column] += value
            total += count
    page.rows = [(name, *counts) for name, counts in rows.items()]
    sums = np.sum(list(rows.values()), axis=0).tolist()
    page.rows.append(("all", *sums))
    if total < KILLS:
        page.notes.append(f"Fewer than {KILLS} kills: the benchmark ends after {MAX_SECONDS} seconds.")
    page.notes.append(
        f"{sums[2]} of {total} kills were resumed to the same bits. Files left behind are those of kills inside the "
        "writing; the next fit, save or cache in the folder removes them when they are ten minutes old."
    )
    return page
