"""`LatentLogistic`: the objective is what it says, known hidden values stay, and others are refused."""

import numpy as np
import pytest

import tacit
from tacit import HiddenCRF, LatentLogistic, StructuredSVM
from tacit.datasets import planted_motif
from tacit.oracle import CapabilityError
from tacit.problems import Candidates, Chain, Motif, MotifSites, Multiclass
from tacit.solvers import Status


@pytest.fixture(scope="module")
def planted():
    return planted_motif(120, 25, "TGACTCA", noise=0.05, seed=0)


def objective(model, problem, X, y, C):
    """½‖w‖² + C · mean loss, both classes with half of the weight, from the scores of the classes alone."""
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    share = np.where(y == 1, 0.5 / (y == 1).sum(), 0.5 / (y != 1).sum())
    return 0.5 * model.coef_ @ model.coef_ + C * share @ np.logaddexp(0.0, -margin)


@pytest.mark.parametrize("problem", [MotifSites(7, strands="both", n_motifs=2, overhang=1), Motif(7, background=2)])
def test_the_objective_is_what_it_says_and_never_rises(planted, problem):
    model = LatentLogistic(problem, C=50, class_weight="balanced", verbose=0).fit(planted.X, planted.y)
    np.testing.assert_allclose(model.objective_, objective(model, problem, planted.X, planted.y, 50), rtol=1e-12)
    objectives = [line.objective for line in model.history_]
    assert (np.diff(objectives) <= 1e-9).all()
    assert model.status_ is Status.CONVERGED
    assert model.score(planted.X, planted.y) > 0.9


def test_the_gradient_is_that_of_the_objective(planted):
    from tacit.learners.latent_logistic import LogisticLoss

    problem = MotifSites(5, strands="both", n_motifs=2, overhang=1)
    schema = problem.schema(planted.X, planted.y)
    oracle = problem.bind(planted.X, planted.y, schema)
    for is_free in (True, False):  # nothing is known: both ways to ask agree
        loss = LogisticLoss(oracle, np.full(oracle.n_samples, 0.1), is_free)
        rng = np.random.default_rng(0)
        w, direction = rng.standard_normal((2, schema.n_params))
        step = 1e-6 * direction
        rise = (loss(w + step)[0] - loss(w - step)[0]) / 2e-6
        np.testing.assert_allclose(loss(w)[1] @ direction, rise, rtol=1e-5)


def test_known_hidden_values_stay(planted):
    y, start = planted.y, planted.hidden
    wrong = np.where(start >= 0, (start + 9) % 18, -1)
    model = LatentLogistic(MotifSites(7), C=50, verbose=0).fit(planted.X, y, hidden=wrong)
    np.testing.assert_array_equal(model.hidden_, wrong)
    free = LatentLogistic(MotifSites(7), C=50, verbose=0).fit(planted.X, y)
    assert np.mean(free.hidden_[y == 1] == start[y == 1]) > 0.9


def test_a_list_of_weights_is_one_start_per_entry(planted):
    first = StructuredSVM(MotifSites(7), C=10, verbose=0).fit(planted.X, planted.y, hidden=planted.hidden)
    zero = {name: np.zeros_like(part) for name, part in first.weights_.items()}
    model = LatentLogistic(MotifSites(7), C=50, init=[zero, first.weights_], verbose=0).fit(planted.X, planted.y)
    assert len(model.runs_) == 2
    assert model.objective_ == model.runs_.best.objective
    alone = LatentLogistic(MotifSites(7), C=50, init=first.weights_, verbose=0).fit(planted.X, planted.y)
    np.testing.assert_array_equal(alone.coef_, model.coef_)
    with pytest.raises(ValueError, match="init"):
        LatentLogistic(MotifSites(7), init=[]).fit(planted.X, planted.y)


def test_a_resumed_fit_ends_at_the_same_bits_and_a_file_keeps_it(planted, tmp_path):
    settings = {"C": 50, "verbose": 0, "checkpoint": tmp_path / "state"}
    whole = LatentLogistic(MotifSites(7), C=50, verbose=0).fit(planted.X, planted.y)
    seen = []
    with pytest.warns(match="callback"):
        LatentLogistic(MotifSites(7), **settings, callbacks=[lambda line: seen.append(1) or len(seen) == 5]).fit(
            planted.X, planted.y
        )
    resumed = LatentLogistic(MotifSites(7), **settings, resume=True).fit(planted.X, planted.y)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    resumed.save(tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    np.testing.assert_array_equal(again.decision_function(planted.X), whole.decision_function(planted.X))


def test_other_problems_are_refused_with_the_way_out():
    X = np.random.default_rng(0).standard_normal((12, 2))
    with pytest.raises(CapabilityError, match="HiddenCRF"):
        LatentLogistic(Candidates()).fit([[x, -x] for x in X], np.arange(12) % 3)
    with pytest.raises(CapabilityError, match="Multiclass"):
        LatentLogistic(Multiclass()).fit(X, np.arange(12) % 2)
    with pytest.raises(CapabilityError, match="best_under"):
        LatentLogistic(Chain()).fit([x[None] for x in X], [[i % 2] for i in range(12)])


def test_where_one_hidden_value_is_left_it_is_the_hidden_crf():
    """A bag of one row: nothing is hidden, and both are logistic regression, but for how far they descend."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 1, 3))
    y = (X[:, 0, 0] + rng.standard_normal(40) > 0).astype(int)
    one = LatentLogistic(Candidates(), C=5, tol=1e-9, verbose=0).fit(list(X), y)
    other = HiddenCRF(Candidates(), C=5, tol=1e-9, verbose=0).fit(list(X), y)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
