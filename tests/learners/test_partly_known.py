"""Hidden values that are known for some samples: the descent begins from what they teach."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tacit import IterativeLatentSVM, LatentSVM, Ragged, StructuredSVM
from tacit.problems import Candidates, Chain, Motif, Multiclass


@pytest.fixture(scope="module")
def photos():
    """Bags of ten candidates, one of which carries the class in noise that hides it: (bags, y, carrier)."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((240, 10, 12))
    y, carrier = np.arange(240) % 3, rng.integers(0, 10, 240)
    values[np.arange(240), carrier, y] += 3.0
    return Ragged(values.reshape(-1, 12), 10 * np.arange(241)), y, carrier


def test_what_is_known_is_the_start(photos):
    X, y, carrier = photos
    hidden = np.where(np.arange(240) < 60, carrier, -1)
    alone = StructuredSVM(Candidates(), C=100).fit(X[:60], y[:60], hidden=carrier[:60])
    default = LatentSVM(Candidates(), C=100, random_state=0).fit(X, y, hidden=hidden)
    rest = slice(60, None)
    assert default.score_hidden(X[rest], y[rest], carrier[rest]) >= alone.score_hidden(X[rest], y[rest], carrier[rest])
    assert (default.hidden_[:60] == carrier[:60]).all()
    assert default.unknown_weight_ in (0.0, 0.1, 1.0)


@pytest.mark.parametrize("kind", [LatentSVM, IterativeLatentSVM])
def test_a_weight_of_zero_is_the_known_part_alone(photos, kind):
    X, y, carrier = photos
    hidden = np.where(np.arange(240) < 60, carrier, -1)
    alone = StructuredSVM(Candidates(), C=100, tol=1e-6).fit(X[:60], y[:60], hidden=carrier[:60])
    model = kind(Candidates(), C=100, tol=1e-6, unknown_weight=0.0).fit(X, y, hidden=hidden)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-4)


def test_the_unknown_part_counts_only_where_that_helps(photos):
    X, y, carrier = photos
    misled = y.copy()
    misled[60:] = np.random.default_rng(1).permutation(misled[60:])  # labels of the unknown part that say nothing
    hidden = np.where(np.arange(240) < 60, carrier, -1)
    with pytest.warns(UserWarning, match="180 of 240 samples aside"):
        model = LatentSVM(Candidates(), C=100).fit(X, misled, hidden=hidden)
    assert model.unknown_weight_ == 0.0
    assert "factor of 0 (unknown_weight_)" in model._summary()


@pytest.mark.parametrize("n_known", [5, 12])
def test_a_few_known_values_do_not_cost_labels(n_known):
    """Bags of digits with one from 0 to 4; the known part alone has between .3 and .8 of the labels right."""
    digits, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    y, carrier = rng.integers(0, 5, 600), rng.integers(0, 4, 600)
    rows = rng.choice(np.flatnonzero(digit >= 5), (600, 4))
    rows[np.arange(600), carrier] = [rng.choice(np.flatnonzero(digit == label)) for label in y]
    X, train, test = Ragged(digits[rows.ravel()] / 16, 4 * np.arange(601)), slice(200), slice(200, None)
    hidden = np.where(np.arange(200) < n_known, carrier[train], -1)
    models = {
        weight: LatentSVM(Candidates(), unknown_weight=weight).fit(X[train], y[train], hidden=hidden)
        for weight in ("auto", 0.0, 1.0)
    }
    score = {weight: model.score(X[test], y[test]) for weight, model in models.items()}
    assert score[0.0] < 0.8 < 0.9 < score[1.0]
    assert score["auto"] >= score[1.0] - 0.01
    assert "unknown_weight_" not in models[1.0]._summary()


def test_a_class_without_known_values_is_kept(photos):
    X, y, carrier = photos
    misled = y.copy()
    misled[60:] = np.random.default_rng(1).permutation(misled[60:])
    hidden = np.where((np.arange(240) < 60) & (y != 2), carrier, -1)  # as above, where 0 was chosen, but for class 2
    model = LatentSVM(Candidates(), C=100, tol=1e-2).fit(X, misled, hidden=hidden)
    assert model.unknown_weight_ > 0


def test_nothing_known_leaves_every_weight_as_it_is(photos):
    X, y, _ = photos
    assert LatentSVM(Candidates(), C=100).fit(X, y).unknown_weight_ == 1.0


def test_missing_tags_start_from_the_known_ones():
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 9, 80)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tags = rng.integers(0, 6, offsets[-1])
    values = np.eye(6)[tags] + 0.7 * rng.standard_normal((offsets[-1], 6))
    X, known = Ragged(values, offsets), rng.random(offsets[-1]) < 0.2
    y = Ragged(np.where(known, tags, -1), offsets)
    shared = {"C": 20.0, "tol": 1e-2}
    problem = Chain(classes=list(range(6)))
    start, drawn = (LatentSVM(problem, init=init, **shared).fit(X, y) for init in ("auto", "hidden"))
    right = [np.mean(model.hidden_.values[~known] == tags[~known]) for model in (start, drawn)]
    assert right[0] > right[1]
    assert (start.hidden_.values[known] == tags[known]).all()


def test_the_known_part_of_chains_are_runs_of_known_tags():
    X = Ragged(np.arange(8.0)[:, None], [0, 5, 8])
    y = [["a", None, "b", "b", None], [None, "a", "b"]]
    problem = Chain(boundaries=True)
    schema = problem.schema(X, y)
    part = problem.bind(X, y, schema).known_part()
    assert part.oracle.offsets.tolist() == [0, 1, 3, 5]
    assert part.owner.tolist() == [0, 0, 1]
    assert part.oracle.table[:, 0].tolist() == [0, 2, 3, 6, 7]
    assert part.oracle.hidden_unknown().size == 0
    assert problem.bind(X, [["a"] * 5, ["b"] * 3], schema).known_part() is None
    assert problem.bind(X, [[None] * 5, [None] * 3], schema).known_part() is None


def test_negatives_alone_are_no_known_part():
    X, y = ["ACGTACGTAC", "TTTTGACTCA", "CCTGACTCAC"], [0, 1, 1]
    problem = Motif(width=4)
    schema = problem.schema(X, y)
    assert problem.bind(X, y, schema).known_part() is None
    assert problem.bind(X, y, schema, hidden=[-1, 3, -1]).known_part().owner.tolist() == [0, 1, -1]


@pytest.mark.parametrize("weight", [-0.1, 1.5, "some", None, np.nan])
def test_weights_that_cannot_be_are_refused(photos, weight):
    X, y, _ = photos
    with pytest.raises((ValueError, TypeError), match="unknown_weight"):
        LatentSVM(Candidates(), unknown_weight=weight).fit(X, y)


def test_a_problem_without_hidden_values_takes_it_too():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    assert LatentSVM(Multiclass()).fit(X, y).predict(X).tolist() == y
