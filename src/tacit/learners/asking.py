"""Which hidden values to ask a person for: active learning for samples whose hidden values are unknown.

A rule says how useful it would be to know the hidden value of a sample. Most follow from the posterior of the hidden
value given the label, ``p(h) ∝ exp s(y_i, h)``, over the values that are still possible. Let ``L(t) = log Σ exp(t·s)``.
Then the entropy is ``L(1) − L'(1)`` and the mean score ``L'(1)``: exact wherever an oracle sums over outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.spatial.distance import cdist

from tacit.data.arrays import Array
from tacit.data.parameters import list_entries, numbers, one_of, random_numbers, shorten, switch, whole_number
from tacit.learners.learner import Learner, _is_same
from tacit.learners.preparation import has_hidden_states
from tacit.oracle import (
    Oracle,
    capability,
    code_offsets,
    completes_labels,
    hidden_values,
    loss_needs_hidden,
    require,
    take_code,
)
from tacit.oracle.capabilities import (
    GivesPosteriors,
    GivesTagPosteriors,
    HasHiddenStates,
    HasOpenParts,
    ListsOutputs,
    SumsOutputs,
)
from tacit.penalties import Quadratic
from tacit.runtime import parallel

STEP = 1e-3
"""Step of the central difference that takes the derivative of L(t) at 1; its error is of order 10⁻⁶."""

SHORTLIST = 10
"""Samples per question whose features are looked at: for batches that differ, and for rules that need features."""

MAX_SHORTLIST = 500

SKETCH = 256
"""Numbers that describe the features of a sample: a random projection (count sketch) of them."""

DRAWS, NOISE = 8, 0.5
"""Perturbed weights of the rule "perturbed", and the norm of the noise relative to that of the weights."""


class Questions(NamedTuple):
    """The samples to ask about, the most useful first.

    ``rows`` has their positions in X, ``usefulness`` what the rule says of them (per unit of cost, where costs were
    given), and ``guesses`` the hidden value that the model would impute: most answers confirm it. ``rule`` is the rule.
    ``parts`` has the position within the sample, where single parts are asked for, else None.
    """

    rows: Array
    usefulness: Array
    guesses: list[Any]
    rule: str
    parts: Array | None = None


def ask(
    model: Learner,
    X: Any,
    y: Any,
    k: int = 20,
    *,
    hidden: Any = None,
    rule: str = "auto",
    parts: bool = False,
    diverse: bool = True,
    cost: Any = None,
    skip: Any = None,
    random_state: Any = 0,
) -> Questions:
    """Choose the samples whose hidden values a person should be asked for.

    Give the answers to the next fit as ``hidden=`` (for sequences with missing tags, in y). A learner with
    ``warm_start=True`` then goes on from its present weights.

    Parameters
    ----------
    model : a fitted learner
    X, y : samples and labels, as for `fit`
    k : number of questions; fewer are returned if fewer hidden values are unknown
    hidden : what is known already, as for `fit`; samples whose hidden value is known are not asked for
    rule : how useful an answer is.

        - "random": all the same, for comparison.
        - "entropy": the entropy of the hidden value.
        - "margin": the best hidden value is hardly better than the second.
        - "objective": how much the loss is expected to rise when the true hidden value replaces the imputed one.
        - "change": how far the features of the imputed value are from their expectation (expected model change).
        - "starts": how many starts in ``model.runs_`` ended with another hidden value; X must be that of the fit.
        - "perturbed": how often the imputed value (or its parts, added up) changes when noise is added to the weights.
          Needs only `impute`.
        - "mixed": "perturbed" and "random" in turn. Uncertain samples are often outliers, above all under a weak model;
          random ones keep the answers representative.
        - "paced": hard but representative: a large loss, which a pace would leave out, near many other samples.
        - "auto": "change" where hidden values can be listed and summed, such as instances, places and boxes; for parts
          "margin" where there are probabilities; else "mixed".
    parts : ask for single missing parts of y, not for all of a sample: the tag of one word, the label of one region.
        Most parts of a sample are certain, so that the same number of answers teaches more. Rules are "perturbed",
        "margin", "mixed" and "random"
    diverse : spread the questions over samples with different features: the most useful ones, weighted by the distance
        to those chosen before (k-centre). Not for "random" and single parts
    cost : (n,) what an answer costs per sample, such as seconds; usefulness is divided by it
    skip : positions of samples that are not asked for, such as those without an answer so far
    random_state : seed of ties, noise and the random rule; the same seed gives the same questions

    >>> from tacit import LatentSVM
    >>> from tacit.problems import Candidates
    >>> bags = [[[0.0, 1.0], [5.0, 0.0]], [[0.0, 4.0], [0.1, 3.9]], [[6.0, 0.0], [1.0, 1.0]], [[0.2, 5.0], [0.0, 0.0]]]
    >>> y = ["x", "y", "x", "y"]
    >>> model = LatentSVM(Candidates(), random_state=0).fit(bags, y)
    >>> questions = ask(model, bags, y, k=1, rule="entropy")
    >>> questions.rows, questions.guesses
    (array([1]), [np.int64(0)])
    """
    if not isinstance(model, Learner):
        raise TypeError(f"model must be a fitted learner of tacit, such as LatentSVM, got {shorten(model)}")
    k = whole_number("k", k)
    switch("parts", parts)
    one_of("rule", rule, ("auto", "random", "mixed", *(PART_RULES if parts else RULES)))
    switch("diverse", diverse)
    oracle = model._bind(X, y, hidden)
    require("ask", model.problem, oracle, [Oracle.hidden_unknown, Oracle.impute, Oracle.decode])
    costs = _read_costs(cost, oracle.n_samples)
    unknown = np.setdiff1d(oracle.hidden_unknown(), _read_skipped(skip, oracle.n_samples))
    seed = int(random_numbers(random_state).randint(2**31))
    with parallel(oracle.exact(), model.n_jobs) as shards:
        asked = _Asked(model, shards, unknown, shards.impute(model.coef_).code, seed, k)
        rule = _choose_rule(asked.oracle, parts) if rule == "auto" else rule
        if parts:
            return _ask_parts(asked, oracle, rule, costs)
        if rule == "random" or not unknown.size:
            chosen = np.random.default_rng(seed).permutation(unknown)[:k]
            useful = np.ones(chosen.size)
        else:
            useful = _check_values(RULES["perturbed" if rule == "mixed" else rule](asked)) / costs[unknown]
            picked = _choose_diverse(asked, useful) if diverse and k > 1 else _best_first(asked, useful)[:k]
            if rule == "mixed":
                picked = _alternate(picked, np.random.default_rng((seed, 3)).permutation(unknown.size))[:k]
            chosen, useful = unknown[picked], useful[picked]
        imputed = hidden_values(oracle, asked.code)
    return Questions(chosen, useful, [None if imputed is None else imputed[i] for i in chosen.tolist()], rule)


def _choose_rule(oracle: Any, parts: bool) -> str:
    if parts:
        return "mixed" if capability(oracle, GivesTagPosteriors) is None else "margin"
    has_sums = capability(oracle, SumsOutputs) is not None and code_offsets(oracle) is None
    return "change" if has_sums else "mixed"


def _ask_parts(asked: _Asked, oracle: Any, rule: str, costs: Array) -> Questions:
    """The parts whose labels are missing, the most useful first."""
    require("ask(parts=True)", asked.model.problem, oracle, HasOpenParts, "leave out parts=True")
    offsets = oracle.offsets
    owner = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    places = oracle.open_parts()
    places = places[np.isin(owner[places], asked.rows)]
    shuffled = np.random.default_rng((asked.seed, 3)).permutation(places.size)
    useful = np.ones(places.size)
    if rule == "random" or not places.size:
        picked = shuffled[: asked.k]
    else:
        useful = _check_values(PART_RULES["perturbed" if rule == "mixed" else rule](asked))[places]
        useful = useful / costs[owner[places]]
        picked = _best_first(asked, useful)[: asked.k]
        picked = _alternate(picked, shuffled)[: asked.k] if rule == "mixed" else picked
    chosen = places[picked]
    labels = np.asarray(oracle.decode(asked.code)[0].values)
    return Questions(owner[chosen], useful[picked], labels[chosen].tolist(), rule, chosen - offsets[owner[chosen]])


@dataclass
class _Asked:
    """What rules look at: the model, the oracle, the samples that may be asked for, and their imputed outputs."""

    model: Learner
    oracle: Any
    rows: Array
    code: Array
    seed: int
    k: int

    @property
    def w(self) -> Array:
        return self.model.coef_

    def require(self, rule: str, needs: Any, way_out: str = "use rule='perturbed'") -> Any:
        return require(f"ask(rule={rule!r})", self.model.problem, self.oracle, needs, way_out)

    def shortlist(self, useful: Array) -> Array:
        """Positions among the rows of the most useful ones."""
        return _best_first(self, useful)[: min(SHORTLIST * self.k, max(MAX_SHORTLIST, self.k))]

    def features(self, row: int) -> Array:
        """Ψ of the imputed output of one sample."""
        rows = slice(row, row + 1)
        return cast(Array, self.oracle.features(take_code(self.oracle, self.code, rows), np.ones(1), rows))


# rules: one number per sample that may be asked for


def _log_sums(asked: _Asked, power: float) -> Array:
    return cast(Array, asked.oracle.expectations(asked.w, asked.rows, truth=0.0, power=power).truth)


def _mean_scores(asked: _Asked) -> Array:
    """The mean score under the posterior: the derivative of the log-sum by its power."""
    return np.asarray((_log_sums(asked, 1 + STEP) - _log_sums(asked, 1 - STEP)) / (2 * STEP))


def _entropy(asked: _Asked) -> Array:
    asked.require("entropy", SumsOutputs)
    return np.asarray(np.maximum(_log_sums(asked, 1.0) - _mean_scores(asked), 0.0))


def _objective(asked: _Asked) -> Array:
    asked.require("objective", SumsOutputs)
    best = asked.oracle.impute(asked.w, asked.rows).value
    return np.asarray(np.maximum(best - _mean_scores(asked), 0.0))


def _margin(asked: _Asked) -> Array:
    """One minus the difference of the two highest probabilities, added up over parts."""
    if capability(asked.oracle, GivesPosteriors) is not None and capability(asked.oracle, ListsOutputs) is not None:
        sizes = np.diff(asked.oracle.offsets)[asked.rows]
        return 1 - _gaps(asked.oracle.hidden_posterior(asked.w, asked.rows), sizes)
    return np.asarray(np.add.reduceat(_part_margins(asked), asked.oracle.offsets[:-1])[asked.rows])


def _part_margins(asked: _Asked) -> Array:
    """One minus the difference of the two highest probabilities, for every part of all samples."""
    if has_hidden_states(asked.oracle) or not completes_labels(asked.oracle):
        table = asked.require("margin", HasHiddenStates).state_posterior(asked.w, is_given=True)
    else:
        table = asked.require("margin", GivesTagPosteriors).tag_posterior(asked.w, is_given=True)
    ordered = np.sort(table, axis=1)
    return np.asarray(1 - (ordered[:, -1] - ordered[:, -2] if table.shape[1] > 1 else ordered[:, -1]))


def _gaps(probabilities: Array, sizes: Array) -> Array:
    """The difference of the two highest numbers of every segment.

    >>> _gaps(np.array([0.5, 0.25, 0.25, 1.0]), np.array([3, 1]))
    array([0.25, 1.  ])
    """
    starts, owner = np.cumsum(sizes) - sizes, np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((-probabilities, owner))
    ordered = probabilities[order]
    second = np.where(sizes > 1, ordered[np.minimum(starts + 1, ordered.size - 1)], 0.0)
    return np.asarray(ordered[starts] - second)


def _change(asked: _Asked) -> Array:
    """Features are looked at sample by sample, so only for those with the highest entropies; others have none."""
    asked.require("change", SumsOutputs)
    entropies = _entropy(asked)
    change = np.zeros(entropies.size)
    for position in asked.shortlist(entropies).tolist():
        row = int(asked.rows[position])
        mean = asked.oracle.expectations(asked.w, slice(row, row + 1), truth=1.0).features
        change[position] = np.linalg.norm(mean - asked.features(row))
    return change


def _starts(asked: _Asked) -> Array:
    runs = [run for run in getattr(asked.model, "runs_", []) if run.history]
    values: list[Any] = [getattr(run.history[-1], "hidden", None) for run in runs]
    if len(values) < 2 or any(own is None for own in values):
        raise ValueError(
            f"rule='starts' needs a model whose runs_ has two or more starts with hidden values, got {len(values)}; "
            "set n_init=5 and fit again, or use rule='perturbed'"
        )
    if any(len(own) != asked.oracle.n_samples for own in values):
        raise ValueError(
            f"rule='starts' needs the X of the fit ({len(values[0])} samples), got {asked.oracle.n_samples}; give "
            "that X, or use rule='perturbed'"
        )
    best = min(range(len(runs)), key=lambda r: runs[r].objective)
    others = [own for r, own in enumerate(values) if r != best]
    return np.array([np.mean([not _is_same(own[i], values[best][i]) for own in others]) for i in asked.rows.tolist()])


def _count_changes(asked: _Asked) -> Array:
    return _count_parts(asked.oracle, _part_changes(asked))[asked.rows]


def _part_changes(asked: _Asked) -> Array:
    """How often each number of the imputed code changes with noise on the weights."""
    rng = np.random.default_rng(asked.seed)
    scale = NOISE * float(np.linalg.norm(asked.w)) / np.sqrt(asked.w.size)
    schema = asked.model.schema_
    lower = Quadratic().in_blocks(schema, asked.model.problem.lower_bounds(schema)).lower
    changed = np.zeros(asked.code.size)
    for _ in range(DRAWS):
        noisy = asked.w + scale * rng.standard_normal(asked.w.size)
        noisy = noisy if lower is None else np.maximum(noisy, lower)
        changed += asked.oracle.impute(noisy).code != asked.code
    return np.asarray(changed / DRAWS)


def _count_parts(oracle: Oracle, differs: Array) -> Array:
    """The sum over the parts of every sample; a sample without parts is one."""
    offsets = code_offsets(oracle)
    if offsets is None:
        return differs
    sums = np.concatenate([[0.0], np.cumsum(differs, dtype=np.float64)])
    return np.asarray(np.diff(sums[offsets]))


def _rank_slacks(asked: _Asked) -> Array:
    """Ranks of the slack, times the mean similarity to the others among the hardest; others have none."""
    oracle = asked.oracle
    best = oracle.predict(asked.w) if loss_needs_hidden(oracle) else oracle.predict_augmented(asked.w)
    slack = np.maximum(best.value - oracle.impute(asked.w).value, 0.0)[asked.rows]
    found = np.zeros(slack.size)
    hardest = asked.shortlist(slack)
    table = _describe(asked, hardest)
    similarity = 1 - cdist(table, table) / 2
    ranks = np.linspace(1.0, 0.5, hardest.size)
    found[hardest] = ranks * similarity.mean(axis=1)
    return found


RULES: Mapping[str, Callable[[_Asked], Array]] = {
    "entropy": _entropy,
    "margin": _margin,
    "objective": _objective,
    "change": _change,
    "starts": _starts,
    "perturbed": _count_changes,
    "paced": _rank_slacks,
}

PART_RULES: Mapping[str, Callable[[_Asked], Array]] = {"margin": _part_margins, "perturbed": _part_changes}


# from usefulness to a batch


def _best_first(asked: _Asked, useful: Array) -> Array:
    """Positions, the most useful first, ties at random."""
    ties = np.random.default_rng((asked.seed, 1)).permutation(useful.size)
    return np.lexsort((ties, -useful))


def _describe(asked: _Asked, positions: Array) -> Array:
    """Random projections of the features of the imputed outputs, of norm 1: similar samples have similar ones."""
    rng = np.random.default_rng((asked.seed, 2))
    bucket, sign = rng.integers(SKETCH, size=asked.w.size), rng.choice([-1.0, 1.0], size=asked.w.size)
    rows = asked.rows[positions].tolist()
    table = np.array([np.bincount(bucket, sign * asked.features(row), SKETCH) for row in rows]).reshape(-1, SKETCH)
    return np.asarray(table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300))


def _alternate(first: Array, second: Array) -> Array:
    """The entries of two lists in turn, each once.

    >>> _alternate(np.array([7, 5]), np.array([5, 1, 2]))
    array([7, 5, 1, 2])
    """
    turns = [*range(0, 2 * first.size, 2), *range(1, 2 * second.size, 2)]
    both = np.concatenate([first, second])[np.argsort(turns, kind="stable")]
    return np.asarray(both[np.sort(np.unique(both, return_index=True)[1])])


def _choose_diverse(asked: _Asked, useful: Array) -> Array:
    """The most useful sample, then again and again the one with the highest usefulness times the distance to the
    chosen ones, among the `SHORTLIST` most useful per question."""
    listed = asked.shortlist(useful)
    if listed.size <= 1 or not useful[listed[0]] > 0:
        return listed[: asked.k]
    table, worth = _describe(asked, listed), useful[listed] / useful[listed[0]]
    chosen = [0]
    nearest = np.linalg.norm(table - table[0], axis=1)
    is_open = np.ones(listed.size, dtype=bool)
    is_open[0] = False
    while len(chosen) < min(asked.k, listed.size):
        gain = np.where(is_open, worth * nearest, -1.0)
        best = int(np.argmax(gain))
        chosen.append(best)
        is_open[best] = False
        nearest = np.minimum(nearest, np.linalg.norm(table - table[best], axis=1))
    return listed[chosen]


# what users give


def _check_values(useful: Array) -> Array:
    if not np.isfinite(useful).all():
        raise FloatingPointError(
            "the scores of a sample overflow, so that its usefulness is not a number; scale the features "
            "(StandardScaler), or use rule='random'"
        )
    return useful


def _read_costs(cost: Any, n: int) -> Array:
    costs = np.ones(n) if cost is None else numbers("cost", cost)
    if costs.shape != (n,) or not (costs > 0).all() or not np.isfinite(costs).all():
        raise ValueError(f"cost must hold one number above 0 per sample ({n}), got {shorten(cost)}")
    return costs


def _read_skipped(skip: Any, n: int) -> Array:
    entries: Iterable[Any] = [] if skip is None else list_entries("skip", skip)
    return np.array([whole_number("skip", entry, 0, n - 1) for entry in entries], dtype=np.int64)
