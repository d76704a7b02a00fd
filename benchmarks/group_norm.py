"""Pairs of MNIST digits at an unknown turn: how many of 22 states are worth having (Chen et al. 2011)?"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks.harness import Page, real_data
from tacit import GroupNormSVM, LatentSVM, group_norm_path
from tacit.datasets import mnist
from tacit.problems import Transforms, rotations

PAIRS = {(1, 7): (5, 3), (2, 7): (8, 4), (3, 8): (7, 3), (8, 9): (9, 4)}
"""States kept of 22, and angles per digit that match the accuracy of 11, in Chen et al. (2011)."""
ANGLES, COMPONENTS = rotations(-60, 60, 11), 10
PATH_CS, FULL_CS, GROUP_C, REFIT_C = (10.0, 30.0, 100.0), (300.0, 1000.0, 3000.0), 100.0, 1000.0
MOST_REFITTED, FEWEST, FOLDS, FOLD_STARTS, STARTS = 10, 2, 3, 2, 4
DRAWS, WITHIN = 10, 0.002


class Digits(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def is_right(self, model: Any) -> np.ndarray:
        """Which test digits a model tells right: one look at them."""
        return np.asarray(model.predict(self.X_test) == self.y_test, dtype=np.float64)


class Held(NamedTuple):
    """Which training digits models classify correctly that were fitted without them, by C, and by number of states."""

    by_C: dict[float, np.ndarray]
    by_states: dict[int, np.ndarray]
    by_path: list[tuple[float, int, int, float]]


def run() -> Page:
    page = Page(
        "MNIST pairs: which hidden turns are worth having",
        "All training digits of a pair, all test digits; pixels / 255; 11 angles from −60° to 60°; "
        f"{COMPONENTS} principal components of the pair's untransformed training digits, not scaled; a block of "
        "weights for every pair of digit and angle, 22 groups, λ = 1. `all states`: `LatentSVM` (½‖w‖²), its C one of "
        f"{', '.join(f'{C:g}' for C in FULL_CS)}. `fewer states`: from `GroupNormSVM(problem, 'label-state', "
        f"C={GROUP_C:g})` states leave one at a time, `model.budget(k, X, y, per_label=False)`; from {MOST_REFITTED} "
        f"states on a latent SVM is fitted to those that are left, `LatentSVM(small.problem, C={REFIT_C:g}, "
        "init=small.weights_)`; of several starts the one with the lowest objective "
        f"is kept for each number of states. Both have {FOLD_STARTS} starts in each of {FOLDS} folds of the training "
        f"digits and {STARTS} on all of them. The folds choose C of `all states`, and the number of "
        f"states: the fewest whose accuracy, less one standard error, is at most {100 * WITHIN:.1f} points below that "
        "of all states on the same held digits, or the most accurate if none is. Which states, all training "
        "digits say, by the objective. `as many as the paper` has the number of Chen et al. (2011), where that "
        "is another. `group norm`: `group_norm_path` on the first fold. Differences from all states have a "
        "standard error: the deviation of the differences by digit over √n. "
        f"`random`: as many angles per digit, drawn {DRAWS} times: taken from the model with all states, as in the "
        "paper, or fitted to all training digits. In brackets Chen et al. (2011), C = 1 at an unknown scale of "
        "features. Prediction: CPU milliseconds for all test digits, from images to labels, least of 15.",
        [
            "pair",
            "model",
            "C",
            "states of 22",
            "angles per digit, at most",
            "held accuracy, %",
            "test accuracy, %",
            "prediction, ms (angles computed)",
        ],
    )
    real_data()
    began = time.process_time()
    with threadpool_limits(1, user_api="blas"):
        for pair in PAIRS:
            _measure(page, pair)
    page.notes.append(
        "Prediction time is a fixed part, for reading the images, and a part in proportion to the angles that are "
        "computed; states of both digits at one angle share it."
    )
    page.notes.append(
        "The aim was as few states as Chen et al. (2011), 5, 8, 7 and 9, at a test accuracy within 0.2 points of all "
        "22. The chosen numbers reach it on 1-7 (4 states), 2-7 (7) and 8-9 (8), and miss it on 3-8, where the folds "
        "choose 10. Seven states on 3-8 are within 0.2 points on the test digits, but on the six times as many held "
        "digits they are 0.46 ± 0.14 points below all states: the test digits are kind to them. On 3-8 and 8-9 no "
        "number is near enough for the rule, and 10 and 8 are the most accurate. On 1-7, 5 states are 0.28 "
        "below and 4 states 0.09: with standard errors of 0.13 to 0.34 points on 2,000 test digits, 0.2 "
        "points decide little."
    )
    page.notes.append(
        "The way to choose was settled on training digits of 8-9 alone, three splits of 80 to 20: with 9 states by the "
        "budget of the group norm, refitted, 0.1 points below all states with C = 1000 and four starts; by the norms "
        "of latent SVMs, 0.4 below; C = 3000 in place of 1000 for the refit, 0.2 below. All states with one start in "
        "place of four: 0.25 below. This page looked at the test digits once per row; earlier pages, which chose on "
        "one held fifth, had looked at them three or four times per pair."
    )
    page.notes.append(f"The page took {(time.process_time() - began) / 60:.0f} CPU minutes.")
    return page


def _measure(page: Page, pair: tuple[int, int]) -> None:
    X, y = mnist(part="train", digits=pair)
    X_test, y_test = mnist(part="test", digits=pair)
    data = Digits(X / 255, y, X_test / 255, y_test)
    problem = Transforms(ANGLES, COMPONENTS, blocks="class and state")
    name, first = f"{pair[0]}-{pair[1]}", len(page.rows)

    held = _cross_validate(problem, data.X, data.y)
    C = max(FULL_CS, key=lambda C: float(held.by_C[C].mean()))
    count = _fewest_states(held.by_states, held.by_C[C])
    full = LatentSVM(problem, C=C, n_init=STARTS, init="hidden").fit(data.X, data.y)
    small = _fewer_states(problem, data.X, data.y, STARTS)
    is_right = data.is_right(full)
    full_ms = least_ms(full, data.X_test)
    cells = as_percent(held.by_C[C].mean()), as_percent(is_right.mean()), f"{full_ms:.1f} (11)"
    page.rows.append((name, "all states", f"{C:g}", 22, 11, *cells))
    for path_C, states, angles, score in held.by_path:
        page.rows.append((name, "group norm", f"{path_C:g}", states, angles, as_percent(score), "–", "–"))
    wanted = {"fewer states": count, "as many as the paper": PAIRS[pair][0]}
    for what, states in wanted.items():
        if what == "fewer states" or states != count:
            model = small[states]
            ms = least_ms(model, data.X_test)
            page.rows.append(
                (
                    name,
                    what,
                    f"{REFIT_C:g}",
                    f"{states} [{PAIRS[pair][0]}]",
                    f"{model.problem.kept.sum(axis=1).max()} [{PAIRS[pair][1]}]",
                    compare(held.by_states[states], held.by_C[C]),
                    compare(data.is_right(model), is_right),
                    f"{ms:.1f} ({model.problem.kept.shape[1]})",
                )
            )
    page.notes.append(
        f"{name}: held accuracy by the number of states, and its difference from that of all: "
        + ", ".join(f"{k}: {compare(right, held.by_C[C])}" for k, right in sorted(held.by_states.items())[::-1])
        + f". Objective on all training digits at C = {REFIT_C:g}: "
        + ", ".join(f"{k}: {small[k].objective_:.1f}" for k in sorted(small)[::-1])
        + "."
    )
    for row in _random_rows(name, full, small[count].problem.kept, REFIT_C, data):
        page.rows.append(row)
    print(*page.rows[first:], page.notes[-1], sep="\n", flush=True)


def _cross_validate(problem: Any, X: np.ndarray, y: np.ndarray) -> Held:
    by_C = {C: np.zeros(len(y)) for C in FULL_CS}
    by_states = {states: np.full(len(y), np.nan) for states in range(FEWEST, MOST_REFITTED + 1)}
    by_path: list[tuple[float, int, int, float]] = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        for C in FULL_CS:
            model = LatentSVM(problem, C=C, n_init=FOLD_STARTS, init="hidden").fit(X[train], y[train])
            by_C[C][test] = model.predict(X[test]) == y[test]
        for states, model in _fewer_states(problem, X[train], y[train], FOLD_STARTS).items():
            by_states[states][test] = model.predict(X[test]) == y[test]
        if not by_path:
            for model in group_norm_path(
                GroupNormSVM(problem, "label-state", init="hidden"), X[train], y[train], PATH_CS
            ):
                kept, score = model.selected_states_, float(model.score(X[test], y[test]))
                by_path.append((model.C, int(kept.sum()), int(kept.sum(axis=1).max()), score))
    complete = {states: right for states, right in by_states.items() if not np.isnan(right).any()}
    return Held(by_C, complete, by_path)


def _fewest_states(by_states: dict[int, np.ndarray], full: np.ndarray) -> int:
    """The fewest whose accuracy, less a standard error, is near enough to that of all; else the most accurate."""
    differences = {states: right - full for states, right in by_states.items()}
    near = [states for states, each in differences.items() if each.mean() - _standard_error(each) >= -WITHIN]
    return min(near) if near else max(differences, key=lambda states: float(differences[states].mean()))


def _fewer_states(problem: Any, X: np.ndarray, y: np.ndarray, starts: int) -> dict[int, Any]:
    """Latent SVMs with fewer and fewer states: for each number of them that of the lowest objective of some starts."""
    best: dict[int, Any] = {}
    for start in range(starts):
        model = GroupNormSVM(problem, "label-state", C=GROUP_C, init="hidden", random_state=start).fit(X, y)
        while (states := int(model.selected_states_.sum())) >= FEWEST:
            if states <= MOST_REFITTED:
                small = model.prune(drop_null=True)
                fit = LatentSVM(small.problem, C=REFIT_C, init=small.weights_).fit(X, y)
                count = int(fit.problem.kept.sum())
                best[count] = min(best.get(count, fit), fit, key=lambda one: float(one.objective_))
            if states == FEWEST:
                break
            model = model.budget(states - 1, X, y, per_label=False)
    return best


def _standard_error(differences: np.ndarray) -> float:
    return float(differences.std(ddof=1) / np.sqrt(differences.size))


def compare(is_right: np.ndarray, base: np.ndarray) -> str:
    each = is_right - base
    return f"{as_percent(is_right.mean())} ({100 * each.mean():+.2f} ± {100 * _standard_error(each):.2f})"


def _random_rows(name: str, full: Any, kept: np.ndarray, C: float, data: Digits) -> list[tuple[Any, ...]]:
    """Accuracy with angles drawn at random, as many per digit: from the model with all, and fitted again."""
    rng, taken, fitted = np.random.default_rng(0), [], []
    for _ in range(DRAWS):
        twin = take_states(full, draw_states(rng, kept.sum(axis=1)))
        taken.append(100 * data.is_right(twin).mean())
        again = LatentSVM(twin.problem, C=C, init=twin.weights_).fit(data.X, data.y)
        fitted.append(100 * data.is_right(again).mean())
    shape = (int(kept.sum()), int(kept.sum(axis=1).max()))
    return [
        (name, what, "–", *shape, "–", f"{np.mean(found):.2f} ± {np.std(found, ddof=1):.2f}", "–")
        for what, found in (("random angles of all states", taken), ("random angles, fitted again", fitted))
    ]


def draw_states(rng: np.random.Generator, counts: Any) -> np.ndarray:
    """(2, 11) so many angles per digit, at random."""
    drawn = np.zeros((2, 11), dtype=bool)
    for row, count in zip(drawn, counts, strict=True):
        row[rng.choice(11, count, replace=False)] = True
    return drawn


def take_states(model: Any, kept: np.ndarray) -> Any:
    """The same model with only these states, not fitted again."""
    problem, schema, w = model.problem.with_states(model.schema_, model.coef_, kept, False)
    twin = model.copy_fitted().set_params(problem=problem)
    twin.schema_, twin.coef_ = schema, w
    return twin


def as_percent(share: float) -> str:
    return f"{100 * share:.2f}"


def least_ms(model: Any, X: np.ndarray) -> float:
    times = []
    for _ in range(15):
        began = time.process_time()
        model.predict(X)
        times.append(time.process_time() - began)
    return 1e3 * min(times)
