"""Losses on the hidden value: against plain formulas, in every learner, and the learner made for them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import IterativeLatentSVM, LatentSVM, Ragged, SelfPaced, StructuredSVM, load
from tacit.oracle import EnumerableOracle
from tacit.problems import Candidates, Multiclass
from tacit.solvers import FrankWolfe
from tacit.testing import check_learner, check_problem
from tacit.vision.boxes import overlap

SIDE = 3


def plain_overlap(a, b):
    """Intersection over union as one would write it down for two boxes."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = width * height if width > 0 and height > 0 else 0.0
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


boxes_ = st.tuples(st.floats(0, 50), st.floats(0, 50), st.floats(0.5, 40), st.floats(0.5, 40)).map(
    lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])
)


@given(st.lists(boxes_, min_size=1, max_size=5), st.lists(boxes_, min_size=1, max_size=5))
def test_overlap_is_the_plain_formula(first, second):
    found = overlap(np.array(first)[:, None], np.array(second)[None])
    expected = [[plain_overlap(a, b) for b in second] for a in first]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert (found >= 0).all()
    assert (found <= 1).all()


def test_boxes_without_area_share_nothing():
    point, line, box = [1, 1, 1, 1], [0, 1, 5, 1], [0, 0, 2, 2]
    found = overlap(np.array([point, line, box])[:, None], np.array([point, line, box])[None])
    np.testing.assert_array_equal(found, [[0, 0, 0], [0, 0, 0], [0, 0, 1]])


@pytest.fixture(scope="module")
def placed():
    """60 bags of the nine windows of a 3 × 3 grid, or of four, three classes, the carrier at a planted place."""
    rng = np.random.default_rng(3)
    grid = np.array([(x, y, x + 4, y + 4) for y in range(0, 2 * SIDE, 2) for x in range(0, 2 * SIDE, 2)], float)
    bags, boxes, hidden = [], [], []
    y = np.arange(60) % 3
    prototypes = 4 * np.eye(3, 6)
    for i in range(60):
        own = grid if i % 4 else grid[[0, 1, 3, 4]]
        place = int(rng.integers(len(own)))
        shared = np.array([plain_overlap(own[place], box) for box in own])
        rows = rng.standard_normal((len(own), 6)) + shared[:, None] * prototypes[y[i]]
        bags.append(rows)
        boxes.append(own)
        hidden.append(place)
    return Ragged.from_list(bags).with_boxes(boxes), y, np.array(hidden)


@pytest.mark.parametrize("loss", ["exact", "overlap"])
def test_tables_of_losses_are_the_plain_formula(placed, loss):
    X, y, hidden = placed
    some = np.where(np.arange(60) % 5, hidden, -1)
    problem = Candidates(loss=loss)
    oracle = problem.bind(X, y, problem.schema(X, y), hidden=some)
    rng = np.random.default_rng(0)
    for _ in range(20):
        label, state = rng.integers(0, 3, 60), rng.integers(X.lengths)
        found = oracle.loss(oracle.encode(label, state))
        for i in range(60):
            own = X.boxes[X.offsets[i] : X.offsets[i + 1]]
            if label[i] != y[i]:
                expected = 1.0
            elif some[i] < 0:
                expected = 0.0
            elif loss == "exact":
                expected = float(state[i] != some[i])
            else:
                expected = 1 - plain_overlap(own[some[i]], own[state[i]])
            assert found[i] == pytest.approx(expected, abs=1e-6)


def test_bags_of_one_shape_share_one_table(placed):
    X, y, hidden = placed
    problem = Candidates(loss="overlap")
    oracle = problem.bind(X, y, problem.schema(X, y), hidden=hidden)
    assert len(oracle._hidden_loss.starts) - 1 == 2
    assert oracle._hidden_loss.of(1).shape == (9, 9)
    assert oracle._hidden_loss.of(0).shape == (4, 4)


def test_augmented_outputs_are_those_of_enumeration(placed):
    X, y, hidden = placed
    problem = Candidates(loss="overlap")
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema).measured_against(problem.bind(X, y, schema).encode(y, hidden))
    w = np.random.default_rng(1).standard_normal(oracle.n_params)
    weights, intercept = schema.views(w)["weights"], schema.views(w)["intercept"]
    found = oracle.predict_augmented(w).value
    for i in range(60):
        own = X.boxes[X.offsets[i] : X.offsets[i + 1]]
        best = max(
            weights[k] @ row + intercept[k] + (1 if k != y[i] else 1 - plain_overlap(own[hidden[i]], box))
            for k in range(3)
            for row, box in zip(X[i], own, strict=True)
        )
        assert found[i] == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("loss", ["exact", "overlap"])
@pytest.mark.parametrize("solver", ["auto", FrankWolfe()], ids=str)
def test_with_given_boxes_it_is_a_structured_svm(placed, loss, solver):
    X, y, hidden = placed
    settings = {"C": 20, "tol": 1e-5, "solver": solver}
    convex = StructuredSVM(Candidates(loss=loss), **settings).fit(X, y, hidden=hidden)
    for learner in (LatentSVM, IterativeLatentSVM):
        model = learner(Candidates(loss=loss), **settings).fit(X, y, hidden=hidden)
        assert model.objective_ == pytest.approx(convex.objective_, abs=20 * 1e-5)  # C · tol
        assert np.array_equal(model.hidden_, hidden)


def test_given_boxes_are_kept(placed):
    X, y, hidden = placed
    wrong = np.where(np.arange(60) % 2, (hidden + 1) % X.lengths, -1)
    model = IterativeLatentSVM(Candidates(loss="overlap"), C=20).fit(X, y, hidden=wrong)
    assert np.array_equal(model.hidden_[1::2], wrong[1::2])


@pytest.mark.parametrize("pace", [None, SelfPaced()], ids=str)
def test_a_loss_without_the_hidden_value_gives_the_latent_svm(placed, pace):
    X, y, _ = placed
    costs = [[0, 1, 2], [1, 0, 1], [3, 1, 0]]
    for problem in (Candidates(), Candidates(loss=costs)):
        settings = {"C": 20, "pace": pace, "n_init": 2, "random_state": 5}
        plain = LatentSVM(problem, **settings).fit(X, y)
        iterated = IterativeLatentSVM(problem, **settings).fit(X, y)
        assert np.array_equal(plain.coef_, iterated.coef_)
        assert [line.objective for line in plain.history_] == [line.objective for line in iterated.history_]
    values = X.values[X.offsets[:-1]]
    plain, iterated = (kind(Multiclass(), C=20).fit(values, y) for kind in (LatentSVM, IterativeLatentSVM))
    assert np.array_equal(plain.coef_, iterated.coef_)


@pytest.mark.parametrize("loss", ["exact", "overlap"])
def test_planted_windows_are_found_and_the_objective_is_that_of_its_own_hidden_values(placed, loss):
    X, y, hidden = placed
    model = IterativeLatentSVM(Candidates(loss=loss), C=50, n_init=4).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.score_hidden(X, y, hidden) > 0.7
    w, intercept = model.weights_["weights"], model.weights_["intercept"]
    total = 0.0
    for i in range(60):
        scores = X[i] @ w.T + intercept
        own = X.boxes[X.offsets[i] : X.offsets[i + 1]]
        truth = model.hidden_[i]
        assert scores[truth, y[i]] == pytest.approx(scores[:, y[i]].max())
        loss_of = np.ones_like(scores)
        for h in range(len(own)):
            loss_of[h, y[i]] = 1 - plain_overlap(own[truth], own[h]) if loss == "overlap" else float(h != truth)
        total += (scores + loss_of).max() - scores[truth, y[i]]
    assert model.objective_ == pytest.approx(0.5 * model.coef_ @ model.coef_ + 50 / 60 * total, rel=1e-5)


def test_the_score_looks_at_true_boxes_when_they_are_given(placed):
    X, y, hidden = placed
    model = StructuredSVM(Candidates(loss="overlap"), C=20).fit(X, y, hidden=hidden)
    predicted, where = model.predict(X), model.predict_hidden(X)
    shared = [
        plain_overlap(X.boxes[X.offsets[i] + hidden[i]], X.boxes[X.offsets[i] + where[i]]) * (predicted[i] == y[i])
        for i in range(60)
    ]
    assert model.score(X, y, hidden=hidden) == pytest.approx(np.mean(shared), abs=1e-6)
    assert model.score(X, y) == pytest.approx(np.mean(predicted == y))


def test_unknown_boxes_are_refused_by_learners_that_need_them(placed):
    X, y, _ = placed
    with pytest.raises(ValueError, match="IterativeLatentSVM"):
        LatentSVM(Candidates(loss="overlap")).fit(X, y)
    with pytest.raises(ValueError, match="hidden"):
        StructuredSVM(Candidates(loss="exact")).fit(X, y)
    bare = Ragged(X.values, X.offsets)
    with pytest.raises(ValueError, match="boxes"):
        IterativeLatentSVM(Candidates(loss="overlap")).fit(bare, y)
    with pytest.raises(ValueError, match="overlap"):
        IterativeLatentSVM(Candidates(loss="iou")).fit(X, y)
    with pytest.raises(ValueError, match="cost matrix"):
        StructuredSVM(Multiclass(loss="exact")).fit(X.values, np.repeat(y, X.lengths))


def far(true, true_h, label, h):
    """A loss in which label and place speak together: wrong places cost more under some labels than others."""
    return 0.0 if (true, true_h) == (label, h) else 1 + (true != label) * (2 + true) + 0.1 * abs(true_h - h)


def test_a_function_is_a_loss(placed, tmp_path):
    X, y, hidden = placed
    problem = Candidates(loss=far)
    oracle = problem.bind(X, y, problem.schema(X, y), hidden=hidden)
    rng = np.random.default_rng(0)
    label, state = rng.integers(0, 3, 60), rng.integers(X.lengths)
    expected = [far(*outputs) for outputs in zip(y, hidden, label, state, strict=True)]
    np.testing.assert_allclose(oracle.loss(oracle.encode(label, state)), expected)
    same = Candidates(loss=lambda true, true_h, label, h: float((true, true_h) != (label, h)))
    called = IterativeLatentSVM(same, C=50).fit(X, y)
    assert np.array_equal(called.coef_, IterativeLatentSVM(Candidates(loss="exact"), C=50).fit(X, y).coef_)
    model = IterativeLatentSVM(problem, C=50).fit(X, y)
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model", problem=problem).predict(X), model.predict(X))
    for wrong, why in ((lambda *_: 1.0, "truth must cost nothing"), (lambda *_: -1, "from 0")):
        with pytest.raises(ValueError, match=why):
            StructuredSVM(Candidates(loss=wrong)).fit(X, y, hidden=hidden)


def test_common_checks_hold_for_losses_on_the_hidden_value():
    check_problem(Candidates(loss="exact"), seeds=10)
    check_learner(IterativeLatentSVM(Candidates(loss="exact")))


def test_a_stopped_fit_goes_on_to_the_same_end(placed, tmp_path):
    X, y, _ = placed
    settings = {"problem": Candidates(loss="overlap"), "C": 50, "n_init": 2}
    whole = IterativeLatentSVM(**settings).fit(X, y)
    path = tmp_path / "state"
    stops = iter([False] * 3 + [True] * 1000)
    with pytest.warns(UserWarning, match="stopped"):
        IterativeLatentSVM(**settings, checkpoint=path, callbacks=[lambda line: next(stops)]).fit(X, y)
    resumed = IterativeLatentSVM(**settings, checkpoint=path, resume=True).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert resumed.objective_ == whole.objective_
    assert [run.objective for run in resumed.runs_] == [run.objective for run in whole.runs_]
    whole.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_hidden(X), whole.predict_hidden(X))


@pytest.fixture(scope="module")
def uninterrupted(placed):
    return IterativeLatentSVM(Candidates(loss="overlap"), C=50, n_init=2, init="hidden").fit(*placed[:2])


@pytest.mark.parametrize("call", [1, 3, 60, 150])
def test_a_fit_interrupted_inside_a_solve_goes_on_to_the_same_end(placed, uninterrupted, tmp_path, monkeypatch, call):
    X, y, _ = placed
    whole, settings = uninterrupted, {"problem": Candidates(loss="overlap"), "C": 50, "n_init": 2, "init": "hidden"}
    calls = itertools.count(1)
    augmented = EnumerableOracle.predict_augmented

    def interrupted(oracle, *arguments, **options):
        if next(calls) == call:
            raise KeyboardInterrupt
        return augmented(oracle, *arguments, **options)

    path = tmp_path / "state"
    with monkeypatch.context() as patch:
        patch.setattr(EnumerableOracle, "predict_augmented", interrupted)
        if call < 10:  # nothing is there to be kept
            with pytest.raises(KeyboardInterrupt):
                IterativeLatentSVM(**settings, checkpoint=path).fit(X, y)
        else:
            with pytest.warns(UserWarning, match="interrupted"):
                IterativeLatentSVM(**settings, checkpoint=path).fit(X, y)
    resumed = IterativeLatentSVM(**settings, checkpoint=path, resume=True).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert [run.objective for run in resumed.runs_] == [run.objective for run in whole.runs_]


def test_other_boxes_and_other_functions_are_another_fit(placed, tmp_path):
    X, y, _ = placed
    moved = X.boxes.copy()
    small, other = slice(X.offsets[4], X.offsets[5]), slice(X.offsets[8], X.offsets[9])
    moved[small] = moved[other] = moved[small] + [0, 0, 1, 1]
    again = moved.copy()
    again[other] = X.boxes[other]
    problem = Candidates(loss="overlap")
    marks = [problem.bind(Z, y, problem.schema(Z, y)).digest() for Z in (X, X.with_boxes(moved), X.with_boxes(again))]
    assert len(set(marks)) == 3

    def stopped(loss, **how):
        return IterativeLatentSVM(Candidates(loss=loss), C=50, checkpoint=tmp_path / "state", max_iter=2, **how)

    def same(factor):
        return lambda true, true_h, label, h: factor * float((true, true_h) != (label, h))

    with pytest.warns(UserWarning, match="max_iter"):
        stopped(same(1)).fit(X, y)
    with pytest.warns(UserWarning, match="max_iter"):  # another object at another place in memory, the same loss
        stopped(same(1), resume=True).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        stopped(same(2), resume=True).fit(X, y)


def test_a_fit_cut_short_is_measured_against_its_own_hidden_values(placed):
    """In the first round labels alone count; what is kept of it must compare with fits that got further."""
    X, y, _ = placed
    with pytest.warns(UserWarning, match="max_iter"):
        model = IterativeLatentSVM(Candidates(loss="exact"), C=50, max_iter=4).fit(X, y)
    problem = model.problem
    oracle = problem.bind(X, y, model.schema_, hidden=model.hidden_)
    w = model.coef_
    slack = oracle.predict_augmented(w).value - oracle.impute(w).value
    assert model.objective_ == pytest.approx(0.5 * w @ w + 50 * slack.mean())
    assert model.objective_ > model.history_[-1].objective


def test_a_paced_fit_cut_short_is_that_of_the_latent_svm():
    """Noise, on which the objective rises while the pace is on: the lowest position is kept, not the last."""
    X, y = Ragged(np.random.default_rng(0).standard_normal((160, 6)), np.arange(41) * 4), np.arange(40) % 2
    settings = {"C": 20, "pace": SelfPaced(), "max_iter": 6}
    with pytest.warns(UserWarning, match="max_iter"):
        plain, iterated = (kind(Candidates(), **settings).fit(X, y) for kind in (LatentSVM, IterativeLatentSVM))
    assert plain.objective_ < plain.history_[-1].objective
    assert iterated.objective_ == plain.objective_
    assert np.array_equal(plain.coef_, iterated.coef_)


def test_a_fit_cut_short_keeps_its_best_round(placed):
    X, y, _ = placed
    whole = IterativeLatentSVM(Candidates(loss="exact"), C=50).fit(X, y)
    with pytest.warns(UserWarning, match="max_iter"):
        short = IterativeLatentSVM(Candidates(loss="exact"), C=50, max_iter=len(whole.history_) - 1).fit(X, y)
    assert short.objective_ >= whole.objective_
    assert short.score(X, y) > 0.8


def test_boxes_go_where_their_rows_go(placed):
    X, _, _ = placed
    for part, rows in ((X[3:7], range(3, 7)), (X[[5, 0]], (5, 0)), (X[np.arange(60) == 9], (9,))):
        expected = [X.boxes[X.offsets[i] : X.offsets[i + 1]] for i in rows]
        np.testing.assert_array_equal(part.boxes, np.concatenate(expected))
    np.testing.assert_array_equal(X.map(lambda rows: 2 * rows).boxes, X.boxes)
    np.testing.assert_array_equal(Ragged.concatenate([X[:20], X[20:]]).boxes, X.boxes)
    with pytest.raises(ValueError, match="boxes"):
        Ragged.concatenate([X, Ragged(X.values, X.offsets)])
    with pytest.raises(ValueError, match="four"):
        X.with_boxes(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="sample 1, row 0"):
        Ragged([1.0, 2.0], [0, 1, 2], boxes=[[0, 0, 1, 1], [0, 0, 0, 1]])
    with pytest.raises(ValueError, match="sample 1"):
        Ragged([1.0, 2.0], [0, 1, 2]).with_boxes([[[0, 0, 1, 1]], []])
