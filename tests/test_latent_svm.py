"""Latent SVM and self-paced learning: reductions, monotone descent, planted hidden values, long runs."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tacit import LatentSVM, Ragged, SelfPaced, StructuredSVM, load
from tacit.datasets import planted_motif
from tacit.oracle.recalling import Recalling
from tacit.problems import Candidates, Chain, Motif, Multiclass
from tacit.solvers import FrankWolfe, Status


@pytest.fixture(scope="module")
def planted():
    """120 bags of 8 candidates, 3 classes, one candidate a bag shifted by its class's prototype."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((120 * 8, 12))
    y, hidden = np.arange(120) % 3, rng.integers(0, 8, 120)
    prototypes = rng.standard_normal((3, 12))
    prototypes *= 6 / np.linalg.norm(prototypes, axis=1, keepdims=True)
    values[np.arange(120) * 8 + hidden] += prototypes[y]
    return Ragged(values / np.sqrt(12), np.arange(121) * 8), y, hidden


def test_with_all_hidden_values_given_it_is_a_structured_svm(planted):
    X, y, hidden = planted
    latent = LatentSVM(Candidates(), C=10, tol=1e-5).fit(X, y, hidden=hidden)
    convex = StructuredSVM(Candidates(), C=10, tol=1e-5).fit(X, y, hidden=hidden)
    assert latent.objective_ == pytest.approx(convex.objective_, rel=1e-4)
    assert np.array_equal(latent.hidden_, hidden)


def test_with_one_candidate_a_bag_it_is_a_structured_svm(digits):
    X, y = digits[0][:300], digits[1][:300]
    single = Ragged(X, np.arange(301))
    latent = LatentSVM(Candidates(fit_intercept=False), C=10, tol=1e-5).fit(single, y)
    plain = LatentSVM(Multiclass(fit_intercept=False), C=10, tol=1e-5).fit(X, y)
    convex = StructuredSVM(Multiclass(fit_intercept=False), C=10, tol=1e-5).fit(X, y)
    assert latent.objective_ == pytest.approx(convex.objective_, rel=1e-4)
    assert plain.objective_ == pytest.approx(convex.objective_, rel=1e-4)


@pytest.mark.parametrize("pace", [None, SelfPaced()], ids=str)
def test_planted_candidates_are_found(planted, pace):
    X, y, hidden = planted
    model = LatentSVM(Candidates(), C=100, pace=pace, n_init=4, random_state=0).fit(X, y)
    assert model.score_hidden(X, y, hidden) > 0.95
    assert model.score(X, y) > 0.95
    assert len(model.runs_) == 4
    assert model.objective_ == min(run.objective for run in model.runs_)
    best, scores = model.predict_hidden(X, k=3)
    assert best.shape == scores.shape == (120, 3)
    assert np.array_equal(best[:, 0], model.predict_hidden(X))
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("solver", ["auto", FrankWolfe()], ids=str)
def test_the_objective_never_rises(planted, rescaling, solver):
    X, y, _ = planted
    for seed in range(3):
        model = LatentSVM(Candidates(), C=20, rescaling=rescaling, solver=solver, random_state=seed).fit(X, y)
        objectives = [line.objective for line in model.history_]
        assert objectives == sorted(objectives, reverse=True)
        assert model.objective_ == objectives[-1]


def test_the_objective_is_that_of_the_definition(planted):
    X, y, _ = planted
    model = LatentSVM(Candidates(fit_intercept=False), C=20, random_state=1).fit(X, y)
    scores = np.stack([X.values @ model.coef_.reshape(3, 12)[k] for k in range(3)]).reshape(3, 120, 8).max(axis=2).T
    rivals = scores + (np.arange(3) != y[:, None])
    slack = rivals.max(axis=1) - scores[np.arange(120), y]
    assert model.objective_ == pytest.approx(0.5 * model.coef_ @ model.coef_ + 20 * slack.mean())


def test_given_hidden_values_stay(planted):
    X, y, hidden = planted
    some = np.where(np.arange(120) % 2, hidden, -1)
    model = LatentSVM(Candidates(), C=20, random_state=0).fit(X, y, hidden=some)
    assert np.array_equal(model.hidden_[1::2], hidden[1::2])
    wrong = np.where(np.arange(120) % 2, (hidden + 1) % 8, -1)
    assert np.array_equal(LatentSVM(Candidates(), C=20).fit(X, y, hidden=wrong).hidden_[1::2], wrong[1::2])


def test_missing_tags_are_learned_around():
    rng = np.random.default_rng(2)
    lengths = rng.integers(2, 7, 60)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.standard_normal((offsets[-1], 3))
    tags = (values[:, 0] + 0.2 * values[:, 1] > 0).astype(int)
    gaps = np.where(rng.random(tags.size) < 0.4, -1, tags)
    model = LatentSVM(Chain(fit_intercept=True), C=50, random_state=0).fit(
        Ragged(values, offsets), Ragged(gaps, offsets)
    )
    assert model.score(Ragged(values, offsets), Ragged(tags, offsets)) > 0.9
    known = gaps >= 0
    assert np.array_equal(model.hidden_.values[known], tags[known])


def test_missing_tags_can_begin_anywhere():
    X, offsets = np.eye(2)[[0, 1, 0, 1, 0, 1]], np.array([0, 2, 4, 6])
    y = Ragged(np.array([0, -1, 0, 1, -1, 1]), offsets)
    begin = Ragged(np.array([0, 1, 0, 1, 0, 1]), offsets)
    model = LatentSVM(Chain(), C=10, init=begin).fit(Ragged(X, offsets), y)
    assert model.hidden_.values.tolist() == [0, 1, 0, 1, 0, 1]
    with pytest.raises(ValueError, match="init as an array holds all tags of every sequence"):
        LatentSVM(Chain(), init=y).fit(Ragged(X, offsets), y)


def test_the_choice_of_samples_is_the_formula():
    """v_i = 1 ⇔ c_i ξ_i ≤ 1/K; K_0 lets a share of `start` in."""
    risk = np.random.default_rng(0).exponential(size=101)
    for start in (0.1, 0.55, 1.0):
        pace = SelfPaced(start=start)
        chosen = pace.choose(risk, pace.first_ease(risk))
        assert chosen.sum() == np.ceil(start * 101)
        assert risk[chosen].max() <= np.sort(risk)[chosen.sum() - 1]


def test_a_tiny_K_is_plain_cccp(planted):
    """start = 1 lets all samples in at once: after the warm-up it takes the same steps, to other gaps at first."""
    X, y, hidden = planted
    for k in range(3):
        begin = np.where(np.arange(120) % 4 == k, (hidden + 1) % 8, hidden)
        plain = LatentSVM(Candidates(), C=20, init=begin, tol=1e-4).fit(X, y)
        paced = LatentSVM(Candidates(), C=20, init=begin, tol=1e-4, pace=SelfPaced(start=1.0)).fit(X, y)
        assert paced.objective_ == pytest.approx(plain.objective_, rel=1e-4)
        assert {line.samples_in for line in paced.history_} == {120}


def test_self_pacing_starts_with_some_and_ends_with_all(planted):
    X, y, _ = planted
    model = LatentSVM(Candidates(), C=100, pace=SelfPaced(start=0.55), random_state=1).fit(X, y)
    counts = [line.samples_in for line in model.history_]
    assert counts[:2] == [120, 120]
    assert min(counts) < 120
    assert counts[-1] == 120
    assert model.status_ is Status.CONVERGED
    assert counts == [line.is_in.sum() for line in model.history_]


def test_the_history_has_the_hidden_values(planted):
    X, y, _ = planted
    model = LatentSVM(Candidates(), C=100, random_state=1).fit(X, y)
    hidden = np.array([line.hidden for line in model.history_])
    assert np.array_equal(hidden[-1], model.hidden_)
    assert (hidden[1:] != hidden[:-1]).sum(axis=1).tolist() == [line.changed for line in model.history_[1:]]


def test_a_pace_goes_on_to_the_next_selection():
    """Where nothing more is learned from a selection, K falls until another sample is in."""
    pace, risk = SelfPaced(mu=2.0), np.array([1.0, 2.0, 100.0])
    assert pace.next_ease(risk, 2.5) == 5.0
    assert pace.next_ease(risk, 2.5, np.array([True, False, False])) == 5.0
    assert pace.next_ease(risk, 2.5, np.array([True, True, False])) == 160.0
    assert pace.first_ease(np.array([0.0, 0.0, 0.0, 3.0, 2.0])) == 2.0


def test_same_seed_same_result_and_starts_differ(planted):
    X, y, _ = planted
    first, again = (LatentSVM(Candidates(), C=20, n_init=2, random_state=5).fit(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, again.coef_)
    assert not np.array_equal(first.runs_[0].history[0].hidden, first.runs_[1].history[0].hidden)


@pytest.mark.parametrize("pace", [None, SelfPaced()], ids=str)
def test_where_nothing_can_be_learned_it_ends_at_zero(pace):
    X = Ragged(np.zeros((60, 3)), np.arange(21) * 3)
    model = LatentSVM(Candidates(fit_intercept=False), C=10, pace=pace).fit(X, np.arange(20) % 2)
    assert model.status_ is Status.CONVERGED
    assert not model.coef_.any()
    assert model.objective_ == pytest.approx(10)


def test_the_escape_leaves_a_start_that_is_stuck():
    """Two random starts in DNA end at w = 0 without it: the mean of random windows says nothing (design, trap 11)."""
    X, y, _ = planted_motif(400, 40, "TGACTCAG", noise=0.1, seed=0)
    stuck = LatentSVM(Motif(8), C=3, escape=False, n_init=2).fit(X, y)
    assert not stuck.coef_.any()
    free = LatentSVM(Motif(8), C=3, n_init=2).fit(X, y)
    assert max(run.objective for run in free.runs_) < 0.8 * stuck.objective_


@pytest.mark.parametrize("init", ["hidden", "weights", "array"])
def test_every_way_to_begin_works(planted, init):
    X, y, hidden = planted
    model = LatentSVM(Candidates(), C=100, init=hidden if init == "array" else init, random_state=0).fit(X, y)
    assert model.status_ is Status.CONVERGED
    if init == "array":
        assert model.score_hidden(X, y, hidden) > 0.95


def test_a_model_is_saved_with_its_runs(planted, tmp_path):
    X, y, _ = planted
    model = LatentSVM(Candidates(), C=20, pace=SelfPaced(), n_init=2, random_state=0).fit(X, y)
    model.save(tmp_path / "m.tacit")
    loaded = load(tmp_path / "m.tacit")
    assert np.array_equal(loaded.predict_hidden(X), model.predict_hidden(X))
    assert loaded.history_ == model.history_
    assert loaded.runs_[1].objective == model.runs_[1].objective


@pytest.mark.parametrize("pace", [None, SelfPaced()], ids=str)
@pytest.mark.parametrize("stop", [1, 4])
def test_a_stopped_fit_resumes_to_the_same_result(planted, tmp_path, pace, stop):
    X, y, _ = planted
    settings = {"problem": Candidates(), "C": 50.0, "pace": pace, "n_init": 2, "random_state": 0, "verbose": 0}
    whole = LatentSVM(**settings).fit(X, y)
    seen = []

    def interrupt(line):
        seen.append(line)
        if len(seen) == stop:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        LatentSVM(**settings, checkpoint=tmp_path / "state", callbacks=[interrupt]).fit(X, y)
    resumed = LatentSVM(**settings, checkpoint=tmp_path / "state", resume=True).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert [run.objective for run in resumed.runs_] == [run.objective for run in whole.runs_]
    other = clone(resumed).set_params(C=51.0)
    with pytest.raises(ValueError, match=r"is of another run; what differs: sample weights and C.*50.0 then, 51.0 now"):
        other.fit(X, y)


def test_a_paced_run_that_is_cut_short_gives_its_best_model(planted):
    X, y, _ = planted
    for limit in (4, 6, 8):
        with pytest.warns(ConvergenceWarning, match="not converged"):
            model = LatentSVM(Candidates(), C=100, pace=SelfPaced(), max_iter=limit, random_state=1).fit(X, y)
        objectives = [line.objective for line in model.history_]
        assert model.objective_ == min(objectives)
        scores = model.decision_function(X)
        slack = (scores + (np.arange(3) != y[:, None])).max(axis=1) - scores[np.arange(120), y]
        assert 0.5 * model.coef_ @ model.coef_ + 100 * slack.mean() == pytest.approx(min(objectives))
    assert objectives[-1] > min(objectives)


KILLED = """
import sys, numpy as np
from tacit import LatentSVM, Ragged
from tacit.problems import Candidates
rng = np.random.default_rng(0)
X = Ragged(rng.standard_normal((400 * 30, 40)), np.arange(401) * 30)
y = np.arange(400) % 4
model = LatentSVM(Candidates(), C=100, n_init=2, random_state=0, checkpoint=sys.argv[1], resume=True, verbose=0,
                  max_iter=8)
import warnings
warnings.simplefilter("ignore")
print(repr(model.fit(X, y).coef_.tobytes().hex()[:64]), model.objective_, len(model.runs_))
"""


def test_a_killed_fit_resumes_to_the_same_result(tmp_path):
    """kill -9 at random moments, again and again, then let it end."""
    script = tmp_path / "fit.py"
    script.write_text(KILLED)
    run = [sys.executable, str(script)]
    whole = subprocess.run([*run, str(tmp_path / "whole")], capture_output=True, text=True, check=True).stdout
    rng = np.random.default_rng(int.from_bytes(os.urandom(4), "little"))
    for _ in range(3):
        process = subprocess.Popen([*run, str(tmp_path / "state")], stdout=subprocess.PIPE)
        time.sleep(float(rng.uniform(1.0, 4.0)))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    resumed = subprocess.run([*run, str(tmp_path / "state")], capture_output=True, text=True, check=True).stdout
    assert resumed == whole


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"n_init": 0}, ValueError, "n_init must be a whole number from 1, got n_init=0"),
        ({"init": "middle"}, ValueError, "init must be 'hidden', 'weights' or hidden values, got 'middle'"),
        ({"pace": "slow"}, TypeError, r"pace must be None or tacit.SelfPaced\(\), got 'slow'"),
        ({"pace": SelfPaced(mu=1.0)}, ValueError, "mu must be larger than 1, got 1.0"),
        ({"pace": SelfPaced(start=0.0)}, ValueError, "start is a share of the samples"),
        ({"pace": SelfPaced(warmup="two")}, ValueError, "warmup must be a whole number from 1, got warmup='two'"),
        (
            {"init": np.full(120, 8)},
            ValueError,
            r"init as an array holds .* hidden\[0\] is 8, sample 0 has values 0 to 7",
        ),
        ({"init": np.full(120, -1)}, ValueError, r"init as an array holds a hidden value for every sample"),
        ({"max_inner": 0}, ValueError, "max_inner must be a whole number from 1"),
    ],
)
def test_parameters_that_cannot_be_are_refused(planted, change, kind, message):
    X, y, _ = planted
    with pytest.raises(kind, match=message):
        LatentSVM(Candidates(), **change).fit(X, y)


class AgainstHidden(Candidates):
    """A loss that looks at the true candidate, as far as a learner can tell."""

    def bind(self, X, y, schema, *, hidden=None):
        oracle = super().bind(X, y, schema, hidden=hidden)
        oracle.loss_needs_hidden = True
        return oracle


def test_a_loss_on_the_true_hidden_value_needs_all_of_them(planted):
    X, y, hidden = planted
    with pytest.raises(ValueError, match=r"unknown for 119 samples \(the first is sample 1\).*IterativeLatentSVM"):
        LatentSVM(AgainstHidden(), C=10).fit(X, y, hidden=np.where(np.arange(120) == 0, hidden, -1))
    assert np.array_equal(LatentSVM(AgainstHidden(), C=10).fit(X, y, hidden=hidden).hidden_, hidden)


def test_a_class_with_one_sample_is_learned(planted):
    X, y, _ = planted
    y = y.copy()
    y[0] = 9
    model = LatentSVM(Candidates(), C=100, random_state=0).fit(X, y)
    assert 9 in model.classes_


def test_a_recalled_answer_is_the_oracles(planted):
    X, y, _ = planted
    problem = Candidates()
    X = Ragged(X.values.astype(np.float32), X.offsets)
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema)
    recalling = Recalling(oracle)
    rng = np.random.default_rng(0)
    points = [np.zeros(oracle.n_params), *rng.standard_normal((5, oracle.n_params))]
    for k in [0, 1, 1, 2, 0, 3, 4, 5, 1, 0, 5]:
        for ours, plain in ((recalling, oracle), (recalling.exact(), oracle.exact())):
            answer, expected = ours.augmented(points[k]), plain.augmented(points[k])
            assert np.array_equal(answer.code, expected.code)
            assert np.array_equal(answer.value, expected.value)
    assert recalling.augmented(points[5]) is recalling.augmented(points[5])
    part = recalling.augmented(points[5], slice(0, 3), rivals=True)
    assert np.array_equal(part.code, oracle.augmented(points[5], slice(0, 3), rivals=True).code)
