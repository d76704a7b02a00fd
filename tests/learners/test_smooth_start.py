"""Starts with a smooth path: soft objectives are right, and every learner that follows the path ends well."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from tacit import (
    DissimilaritySVM,
    GroupNormSVM,
    HiddenCRF,
    IterativeLatentSVM,
    LatentSVM,
    MinEntropySVM,
    Ragged,
    SelfPaced,
)
from tacit.datasets import planted_motif
from tacit.learners.descents.smoothing import POWERS, SoftObjective
from tacit.learners.iterative_latent_svm import ImputedLossSVM
from tacit.penalties import GroupNorm, Prior, Quadratic
from tacit.problems import Candidates, Chain, Coreference, Motif, MotifSites, Sentences
from tacit.runtime import Status
from tacit.testing.enumeration import Enumeration


def make_bags(seed, distance=2.0, n=100):
    """Bags of 10 candidates, two classes; one candidate per bag is shifted by the prototype of its class."""
    rng = np.random.default_rng(seed)
    values, y, places = rng.standard_normal((n * 10, 10)), rng.integers(2, size=n), rng.integers(10, size=n)
    centres = rng.standard_normal((2, 10))
    values[np.arange(n) * 10 + places] += (distance * centres / np.linalg.norm(centres, axis=1, keepdims=True))[y]
    return Ragged(values, np.arange(n + 1) * 10), y


@pytest.fixture(scope="module")
def bags():
    return make_bags(0)


def fit(kind=LatentSVM, data=None, problem=None, **more):
    X, y = data
    settings = {"C": 10.0, "random_state": 0, "verbose": 0, **more}
    return kind(problem or Candidates(), **settings).fit(X, y)


@pytest.mark.parametrize(
    "problem", [Candidates(), Chain(states=2), Coreference(), Motif(3), MotifSites(2)], ids=lambda p: type(p).__name__
)
@pytest.mark.parametrize("power", [1.0, 30.0])
def test_soft_objectives_equal_enumeration(problem, power):
    example = problem.example(np.random.default_rng(0))
    table = Enumeration(example)
    oracle = problem.bind(example.X, example.y, problem.schema(example.X, example.y)).exact()
    rng = np.random.default_rng(1)
    w, step, c = rng.standard_normal(oracle.n_params), 1e-5 * rng.standard_normal(oracle.n_params), rng.random(table.n)
    soft = SoftObjective(oracle, c, Quadratic(), power)
    expected = 0.5 * w @ w
    for i, (psi, loss, is_true) in enumerate(zip(table.features, table.losses, table.is_true, strict=True)):
        scores = power * (psi @ w)
        expected += c[i] * (logsumexp(scores + power * loss) - logsumexp(scores[is_true.astype(bool)])) / power
    value, gradient = soft(w)
    assert value == pytest.approx(expected, rel=1e-9)
    assert gradient @ step == pytest.approx((soft(w + step)[0] - soft(w - step)[0]) / 2, rel=1e-4)


@pytest.mark.parametrize(
    "penalty", [Prior(np.ones(22), metric=2.0), Quadratic(3.0, pull=2.0, centre=np.ones(22)), Quadratic(lower=0.0)]
)
def test_the_slope_of_every_quadratic_penalty(bags, penalty):
    problem = Candidates()
    oracle = problem.bind(*bags, problem.schema(*bags))
    w, step = np.linspace(-1, 1, 22), np.full(22, 1e-5)
    soft = SoftObjective(oracle, np.full(100, 0.1), penalty, 2.0)
    assert soft(w)[1] @ step == pytest.approx((soft(w + step)[0] - soft(w - step)[0]) / 2, rel=1e-6)


def test_a_high_power_is_the_latent_objective(bags):
    model = fit(data=bags)
    oracle = model.problem.bind(*bags, model.schema_)
    soft = SoftObjective(oracle, np.full(100, 0.1), Quadratic(), 1e6)
    assert soft(model.coef_)[0] == pytest.approx(model.objective_, abs=1e-4)


def test_the_path_ends_below_the_best_of_four_random_starts():
    """Of five data sets at least four, and on average clearly."""
    gains = []
    for seed in range(5):
        data = make_bags(seed)
        random, smooth = fit(data=data, n_init=4, init="hidden"), fit(data=data)
        assert smooth.status_ is Status.CONVERGED
        assert np.isfinite(smooth.inner_gap_)
        gains.append(random.objective_ - smooth.objective_)
    assert sum(gain > -0.01 for gain in gains) >= 4
    assert np.mean(gains) > 0.05


def test_objectives_fall_along_the_path_and_in_cccp(bags):
    model = fit(data=bags, init="smooth")
    values = [line.objective for line in model.history_]
    assert len(values) > len(POWERS)
    assert np.all(np.diff(values) <= 1e-9)
    assert [line.gap for line in model.history_[: len(POWERS)]] == [np.inf] * len(POWERS)


def test_the_first_start_needs_no_random_numbers(bags):
    first, second = (fit(data=bags, init="smooth", random_state=seed) for seed in (1, 2))
    assert np.array_equal(first.coef_, second.coef_)
    assert len(fit(data=bags, init="smooth", n_init=3).runs_) == 3


def test_threads_and_shards_change_no_bit(bags, tmp_path):
    one, two = fit(data=bags, init="smooth", n_jobs=1), fit(data=bags, init="smooth", n_jobs=2)
    assert np.array_equal(one.coef_, two.coef_)
    shards = bags[0].to_shards(tmp_path / "bags", 3)
    assert np.array_equal(fit(data=(shards, bags[1]), init="smooth").coef_, one.coef_)


@pytest.mark.parametrize("stop", [1, 3, 7])
@pytest.mark.parametrize("pace", [None, SelfPaced()])
def test_a_stopped_fit_keeps_the_best_so_far_and_resumes_to_the_same_bits(bags, tmp_path, stop, pace):
    whole, seen = fit(data=bags, init="smooth", n_init=2, pace=pace), []

    def interrupt(line):
        seen.append(line)
        if len(seen) == stop:
            raise KeyboardInterrupt

    state = {"checkpoint": tmp_path / "state"}
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        part = fit(data=bags, init="smooth", n_init=2, pace=pace, callbacks=[interrupt], **state)
    assert part.objective_ == min(line.objective for line in seen)
    resumed = fit(data=bags, init="smooth", n_init=2, pace=pace, resume=True, **state)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert [run.objective for run in resumed.runs_] == [run.objective for run in whole.runs_]


def test_known_hidden_values_stay(bags):
    given = np.where(np.arange(100) % 2, 3, -1)
    model = LatentSVM(Candidates(), C=10, init="smooth", unknown_weight=1.0).fit(*bags, hidden=given)
    assert (model.hidden_[given >= 0] == 3).all()


def test_bounds_and_other_penalties(bags):
    model = fit(data=bags, init="smooth", penalty=Quadratic(lower=0.0))
    assert model.coef_.min() >= 0
    assert fit(GroupNormSVM, bags, init="smooth", C=3.0).penalty == GroupNorm("auto", 1.0)


def test_without_sums_it_says_so_and_takes_cccp():
    problem = Sentences()
    example = problem.example(np.random.default_rng(0))
    with pytest.warns(UserWarning, match="sums over outputs"):
        model = fit(data=(example.X, example.y), problem=problem, init="smooth")
    assert np.array_equal(model.coef_, fit(data=(example.X, example.y), problem=problem).coef_)


def test_slack_rescaling_says_so_and_takes_cccp(bags):
    with pytest.warns(UserWarning, match="rescaling='margin'"):
        model = fit(data=bags, init="smooth", rescaling="slack", max_iter=50)
    assert np.array_equal(model.coef_, fit(data=bags, rescaling="slack", max_iter=50).coef_)


def test_infinite_order_ends_where_the_latent_svm_does(bags):
    model = fit(MinEntropySVM, bags, alpha=np.inf, init="smooth")
    assert model.objective_ == pytest.approx(fit(data=bags, init="smooth").objective_, abs=0.02)
    assert model.objective_ < fit(MinEntropySVM, bags, alpha=np.inf, init="hidden").objective_ + 0.01
    assert np.array_equal(model.coef_, fit(MinEntropySVM, bags, alpha=np.inf).coef_)
    for wrong in ({"alpha": 2.0}, {"alpha": "cv"}, {"alpha": np.inf, "solver": "lbfgs"}):
        with pytest.raises(ValueError, match="alpha=inf"):
            fit(MinEntropySVM, bags, init="smooth", **wrong)
    with pytest.raises(ValueError, match="init"):
        fit(HiddenCRF, bags, init="smooth")


@pytest.mark.parametrize("kind", [IterativeLatentSVM, DissimilaritySVM, ImputedLossSVM])
def test_losses_on_hidden_values(bags, kind, tmp_path):
    problem = Candidates(loss="exact")
    whole = fit(kind, bags, problem, init="smooth", max_iter=60)
    assert len(whole.history_) > len(POWERS)
    assert np.isfinite(whole.objective_)
    state = {"checkpoint": tmp_path / "state"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit(kind, bags, problem, init="smooth", max_iter=60, callbacks=[lambda line: line.iteration == 2], **state)
    resumed = fit(kind, bags, problem, init="smooth", max_iter=60, resume=True, **state)
    assert np.array_equal(resumed.coef_, whole.coef_)


@pytest.mark.parametrize("solver", ["auto", "subgradient"])
def test_group_norms_follow_the_path_under_the_quadratic_penalty(bags, solver):
    model = fit(GroupNormSVM, bags, init="smooth", solver=solver, C=20.0)
    assert len(model.history_) > len(POWERS)
    assert model.objective_ <= min(line.objective for line in model.history_) + 1e-9


def test_chains_with_states_separate_them():
    rng = np.random.default_rng(0)
    offsets = np.arange(31) * 5
    tags, state = rng.integers(2, size=150), rng.integers(2, size=150)
    centres = 4 * rng.standard_normal((2, 2, 6))
    X = Ragged(centres[tags, state] + rng.standard_normal((150, 6)), offsets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit(data=(X, Ragged(tags, offsets)), problem=Chain(states=2), init="smooth", max_iter=20)
    emission = model.weights_["emission"]
    assert np.abs(emission[0] - emission[1]).max() > 0.1


# the default


def test_by_default_the_first_start_follows_the_path(bags):
    model = fit(data=bags, n_init=3)
    smooth, proposed = fit(data=bags, init="smooth"), fit(data=bags, init="proposed", n_init=3)
    assert [line.objective for line in model.runs_[0].history] == [line.objective for line in smooth.history_]
    assert [len(run.history) for run in model.runs_[1:]] == [len(run.history) for run in proposed.runs_[1:]]
    assert np.array_equal(fit(data=bags).coef_, smooth.coef_)


@pytest.mark.parametrize(
    "more", [{"pace": SelfPaced()}, {"rescaling": "slack", "max_iter": 30}, {"max_iter": len(POWERS)}], ids=str
)
def test_by_default_there_is_no_path_where_it_does_not_apply(bags, more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.array_equal(fit(data=bags, **more).coef_, fit(data=bags, init="proposed", **more).coef_)


def test_by_default_known_hidden_values_come_first(bags):
    given = np.where(np.arange(100) % 2, 3, -1)
    settings = {"C": 10, "unknown_weight": 1.0, "random_state": 0, "verbose": 0}
    default, known = (
        LatentSVM(Candidates(), init=init, **settings).fit(*bags, hidden=given) for init in ("auto", "known")
    )
    assert np.array_equal(default.coef_, known.coef_)


def test_proposals_of_a_motif_follow_the_path():
    X, y, _ = planted_motif(80, 20, "GATTACA", seed=0)
    default, proposed = (fit(data=(X, y), problem=Motif(7), init=init, n_init=2) for init in ("auto", "proposed"))
    assert default.runs_[1].objective == proposed.runs_[0].objective


def test_hidden_values_that_tie_at_zero_separate():
    """Two motifs with the same features would stay equal on a path from w = 0."""
    X, y, _ = planted_motif(60, 20, "GATTACA", seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit(data=(X, y), problem=MotifSites(4, n_motifs=2), init="smooth", max_iter=9, C=300.0)
        default = fit(data=(X, y), problem=MotifSites(4, n_motifs=2), max_iter=9)
    motifs = model.weights_["motif"]
    assert np.abs(motifs[0] - motifs[1]).max() > 1e-3
    assert np.isfinite(default.history_[0].gap)


def test_a_penalty_that_switches_groups_off_takes_cccp(bags):
    weights = np.ones(22)
    weights[5] = np.inf
    with pytest.warns(UserWarning, match="finite penalty"):
        model = fit(GroupNormSVM, bags, init="smooth", groups="weight", weights=weights)
    assert model.coef_[5] == 0
    assert np.array_equal(model.coef_, fit(GroupNormSVM, bags, groups="weight", weights=weights).coef_)


FOLLOWERS = {
    "MinEntropySVM": lambda **more: MinEntropySVM(Candidates(), alpha=np.inf, **more),
    "IterativeLatentSVM": lambda **more: IterativeLatentSVM(Candidates(loss="exact"), **more),
    "DissimilaritySVM": lambda **more: DissimilaritySVM(Candidates(loss="exact"), init="smooth", **more),
    "GroupNormSVM": lambda **more: GroupNormSVM(Candidates(), **more),
}


@pytest.mark.parametrize("name", FOLLOWERS)
@pytest.mark.parametrize("stop", [2, len(POWERS) + 1])
def test_other_learners_have_the_same_bits_on_threads_and_shards_and_after_ctrl_c(bags, name, stop, tmp_path):
    settings = {"C": 10.0, "random_state": 0, "verbose": 0}
    whole = FOLLOWERS[name](**settings, n_jobs=1).fit(*bags)
    assert len(whole.history_) > len(POWERS)
    assert np.array_equal(FOLLOWERS[name](**settings, n_jobs=2).fit(*bags).coef_, whole.coef_)
    shards = bags[0].to_shards(tmp_path / "bags", 3)
    assert np.array_equal(FOLLOWERS[name](**settings).fit(shards, bags[1]).coef_, whole.coef_)
    seen, state = [], {"checkpoint": tmp_path / "state"}

    def interrupt(line):
        seen.append(line)
        if len(seen) == stop:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        FOLLOWERS[name](**settings, **state, callbacks=[interrupt]).fit(*bags)
    assert np.array_equal(FOLLOWERS[name](**settings, **state, resume=True).fit(*bags).coef_, whole.coef_)
