"""Latent SVM and self-paced learning: reductions, monotone descent, planted hidden values, long runs."""

import operator
import os
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tacit import LatentSVM, Ragged, SelfPaced, StructuredSVM, load
from tacit.datasets import planted_motif
from tacit.problems import Candidates, Chain, Motif, Multiclass
from tacit.runtime.blocks import CachedOracle
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
    assert latent.objective_ == pytest.approx(convex.objective_, abs=10 * 1e-5)  # C · tol, the larger gap of the two
    assert np.array_equal(latent.hidden_, hidden)


def test_with_one_candidate_a_bag_it_is_a_structured_svm(digits):
    X, y = digits[0][:300], digits[1][:300]
    single = Ragged(X, np.arange(301))
    latent = LatentSVM(Candidates(fit_intercept=False), C=10, tol=1e-5).fit(single, y)
    plain = LatentSVM(Multiclass(fit_intercept=False), C=10, tol=1e-5).fit(X, y)
    convex = StructuredSVM(Multiclass(fit_intercept=False), C=10, tol=1e-5).fit(X, y)
    for model in (latent, plain):
        assert model.objective_ == pytest.approx(convex.objective_, abs=10 * 1e-5)  # C · tol


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
    model = LatentSVM(Candidates(), C=20, unknown_weight=1, random_state=0).fit(X, y, hidden=some)
    assert np.array_equal(model.hidden_[1::2], hidden[1::2])
    wrong = np.where(np.arange(120) % 2, (hidden + 1) % 8, -1)
    assert np.array_equal(
        LatentSVM(Candidates(), C=20, unknown_weight=1).fit(X, y, hidden=wrong).hidden_[1::2], wrong[1::2]
    )


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
    with pytest.raises(ValueError, match="init"):
        LatentSVM(Chain(), init=y).fit(Ragged(X, offsets), y)


def test_the_choice_of_samples_is_the_formula():
    """v_i = 1 ⇔ c_i ξ_i ≤ 1/K; K_0 lets a share of `start` in."""
    risk = np.random.default_rng(0).exponential(size=101)
    for start in (0.1, 0.55, 1.0):
        pace = SelfPaced(start=start)
        chosen = pace.choose(risk, pace.first_threshold(risk))
        assert chosen.sum() == np.ceil(start * 101)
        assert risk[chosen].max() <= np.sort(risk)[chosen.sum() - 1]


def test_a_tiny_K_is_plain_cccp(planted):
    """It lets all samples in at once, and solves the same convex tasks, to other gaps at first: it ends at the same."""
    X, y, hidden = planted
    for k in range(3):
        begin = np.where(np.arange(120) % 4 == k, (hidden + 1) % 8, hidden)
        plain = LatentSVM(Candidates(), C=20, init=begin, tol=1e-6).fit(X, y)
        paced = LatentSVM(Candidates(), C=20, init=begin, tol=1e-6, pace=SelfPaced(K=1e-9)).fit(X, y)
        assert np.array_equal(paced.hidden_, plain.hidden_)
        assert paced.objective_ == pytest.approx(plain.objective_, abs=20 * 1e-6)  # C · tol, the gap that was asked for
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
    assert pace.next_threshold(risk, 2.5) == 5.0
    assert pace.next_threshold(risk, 2.5, np.array([True, False, False])) == 5.0
    assert pace.next_threshold(risk, 2.5, np.array([True, True, False])) == 160.0
    assert pace.first_threshold(np.array([0.0, 0.0, 0.0, 3.0, 2.0])) == 2.0


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
    stuck = LatentSVM(Motif(8), C=3, init="hidden", escape=False, n_init=2).fit(X, y)
    assert not stuck.coef_.any()
    free = LatentSVM(Motif(8), C=3, init="hidden", n_init=2).fit(X, y)
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
    with pytest.raises(ValueError, match=r"50\.0.*51\.0"):
        other.fit(X, y)


def test_a_paced_run_that_is_cut_short_gives_its_best_model(planted):
    X, y, _ = planted
    for limit in (4, 6, 8):
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            model = LatentSVM(Candidates(), C=100, pace=SelfPaced(), max_iter=limit, random_state=1).fit(X, y)
        objectives = [line.objective for line in model.history_]
        assert model.objective_ == min(objectives)
        scores = model.decision_function(X)
        slack = (scores + (np.arange(3) != y[:, None])).max(axis=1) - scores[np.arange(120), y]
        assert 0.5 * model.coef_ @ model.coef_ + 100 * slack.mean() == pytest.approx(min(objectives))
        in_best = model.history_[int(np.argmin(objectives))].is_in.all()
        assert np.isfinite(model.inner_gap_) == in_best
        assert (model.bound_, model.gap_) == (-np.inf, np.inf)  # nothing is known of other hidden values
    assert objectives[-1] > min(objectives)


KILLED = """
import hashlib
from pathlib import Path
import numpy as np
from tacit import LatentSVM, Ragged, SelfPaced
from tacit.datasets import planted_motif
from tacit.problems import Candidates, Motif

if kind == "bags":
    rng = np.random.default_rng(0)
    values, y, hidden = rng.standard_normal((400 * 30, 40)), np.arange(400) % 4, rng.integers(0, 30, 400)
    values[np.arange(400) * 30 + hidden, y] += 3
    X, problem, pace = Ragged(values, np.arange(401) * 30), Candidates(), None
else:
    X, y, _ = planted_motif(600, 40, "TGACTCAG", noise=0.1, strands="both")
    problem, pace = Motif(8, strands="both"), SelfPaced()
model = LatentSVM(problem, C=100, pace=pace, n_init=2, checkpoint=state, resume=True, verbose=0).fit(X, y)
assert model.coef_.any()
mark = hashlib.sha256(model.coef_.tobytes() + np.ascontiguousarray(model.hidden_).tobytes())
for run in model.runs_:
    for line in run.history:
        mark.update(repr((line.objective, line.gap, line.changed)).encode())
        mark.update(np.packbits(line.is_in).tobytes() + np.ascontiguousarray(line.hidden).tobytes())
Path(result).write_text(f"{mark.hexdigest()} {model.objective_} {[len(run.history) for run in model.runs_]}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
@pytest.mark.long
@pytest.mark.parametrize("kind", ["bags", "motif"])
def test_a_killed_fit_resumes_to_the_same_result(tmp_path, start_process, kind):
    """kill -9 a random moment after a state was written, again and again, then let it end."""
    whole, resumed, state = tmp_path / "whole", tmp_path / "resumed", tmp_path / "state"
    exec(KILLED, {"kind": kind, "state": tmp_path / "other state", "result": whole})
    rng = np.random.default_rng(int.from_bytes(os.urandom(4), "little"))
    for _ in range(3):
        before = state.stat().st_mtime_ns if state.exists() else 0
        process = start_process(KILLED, kind=kind, state=state, result=resumed)
        while process.is_alive() and (not state.exists() or state.stat().st_mtime_ns == before):
            time.sleep(0.002)
        time.sleep(float(rng.exponential(0.03)))
        process.kill()
        process.join()
    process = start_process(KILLED, kind=kind, state=state, result=resumed)
    process.join(300)
    assert process.exitcode == 0
    assert resumed.read_text() == whole.read_text()


class Interrupting(Candidates):
    """Raises KeyboardInterrupt at a call of the oracle, once."""

    def __init__(self, when=None, method="predict_augmented"):
        super().__init__()
        self.when = when
        self.method = method

    def bind(self, X, y, schema, *, hidden=None):
        oracle = super().bind(X, y, schema, hidden=hidden)
        if y is not None and self.when is not None:
            asked, count = getattr(oracle, self.method), [0]

            def answer(*args, **settings):
                count[0] += 1
                if count[0] == self.when:
                    raise KeyboardInterrupt
                return asked(*args, **settings)

            setattr(oracle, self.method, answer)
        return oracle

    def __repr__(self, N_CHAR_MAX=700):  # the same problem, to a checkpoint
        return "Interrupting()"


@pytest.mark.parametrize(
    ("method", "when"), [("predict_augmented", 30), ("predict_augmented", 70), ("impute", 5), ("draw", 2)]
)
def test_an_interrupt_at_any_moment_loses_nothing(planted, tmp_path, method, when):
    X, y, _ = planted
    settings = {"C": 50.0, "n_init": 3, "random_state": 0, "verbose": 0}
    whole = LatentSVM(Interrupting(), **settings).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        part = LatentSVM(Interrupting(when, method), **settings, checkpoint=tmp_path / "state").fit(X, y)
    assert part.status_ is Status.INTERRUPTED
    assert len(part.runs_) < 3 or part.runs_[-1].status is Status.INTERRUPTED
    resumed = LatentSVM(Interrupting(), **settings, checkpoint=tmp_path / "state", resume=True).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert [len(run.history) for run in resumed.runs_] == [len(run.history) for run in whole.runs_]
    assert [run.objective for run in resumed.runs_] == [run.objective for run in whole.runs_]


def test_a_checkpoint_of_other_hidden_values_to_begin_with_is_refused(tmp_path):
    """Long arrays, which print alike."""
    rng = np.random.default_rng(0)
    X, y = Ragged(rng.standard_normal((2400, 2)), np.arange(1201) * 2), np.arange(1200) % 2
    settings = {"problem": Candidates(), "C": 1.0, "checkpoint": tmp_path / "state"}
    LatentSVM(**settings, init=np.zeros(1200, int)).fit(X, y)
    other = np.where(np.abs(np.arange(1200) - 600) < 500, 1, 0)
    with pytest.raises(ValueError, match="init"):
        LatentSVM(**settings, init=other, resume=True).fit(X, y)


def test_a_stopping_callback_in_a_later_start_is_said(planted):
    X, y, _ = planted
    seen = []
    stop = [lambda line: seen.append(line.iteration) or seen.count(1) == 2]
    with pytest.warns(ConvergenceWarning, match="2 of 3 starts"):
        model = LatentSVM(Candidates(), C=20, n_init=3, callbacks=stop).fit(X, y)
    assert model.status_ is Status.STOPPED


def test_starts_that_begin_at_given_values_are_one(planted):
    X, y, hidden = planted
    assert len(LatentSVM(Candidates(), C=20, n_init=4, init=hidden).fit(X, y).runs_) == 1
    assert len(LatentSVM(Candidates(), C=20, n_init=4).fit(X, y, hidden=hidden).runs_) == 1


@pytest.mark.parametrize("pace", [None, SelfPaced(), SelfPaced(start=0.3, warmup=1)], ids=str)
def test_a_weight_is_a_repetition(planted, pace):
    """Also for the pace: a sample of weight 2 comes in when two copies would, one of weight 0 is not there."""
    X, y, hidden = planted
    weights = np.random.default_rng(1).integers(0, 3, 120)
    begin = np.where(np.arange(120) % 3 == 0, (hidden + 1) % 8, hidden)
    rows = np.repeat(np.arange(120), weights)
    model = LatentSVM(Candidates(), C=30, pace=pace, init=begin, tol=1e-6).fit(X, y, sample_weight=weights)
    other = LatentSVM(Candidates(), C=30, pace=pace, init=begin[rows], tol=1e-6).fit(X[rows], y[rows])
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-4)
    counts = [(weights * line.is_in).sum() for line in model.history_]
    assert counts[:3] == [line.samples_in for line in other.history_][:3]


def test_redraws_differ_between_starts():
    """At w = 0 with nothing to learn, every iteration draws hidden values anew."""
    X = Ragged(np.zeros((600, 2)), np.arange(61) * 10)
    model = LatentSVM(Candidates(), C=1, n_init=2).fit(X, np.arange(60) % 2)
    first, second = ({line.hidden.tobytes() for line in run.history} for run in model.runs_)
    assert len(first) > 2
    assert not first & second


@pytest.mark.parametrize("strands", ["one", "both"])
@pytest.mark.parametrize("pace", [None, SelfPaced()], ids=str)
def test_a_planted_motif_is_found(strands, pace):
    X, y, hidden = planted_motif(800, 40, "TGACTCAG", noise=0.1, strands=strands, seed=1)
    model = LatentSVM(Motif(8, strands=strands), C=50, pace=pace, n_init=4).fit(X, y)
    assert model.score(X, y) > 0.9
    found = model.impute(X, y)
    if strands == "both":  # which of the two is called the motif, and which its reverse complement, is anybody's guess
        found = np.where((found[:, 1:] >= 0) & [False, (found != hidden)[y == 1, 1].mean() > 0.5], 1 - found, found)
    assert (found == hidden)[y == 1].mean() > 0.8


@pytest.mark.parametrize("strands", ["one", "both"])
@pytest.mark.parametrize("pace", [None, SelfPaced()], ids=str)
def test_a_motif_found_beside_its_place_is_shifted(strands, pace):
    """Beginning two letters off, no single sample gains by moving: only all together do."""
    X, y, hidden = planted_motif(600, 40, "TGACTCAGCA", noise=0.1, strands=strands, seed=3)
    way = np.array([2]) if strands == "one" else np.column_stack([2 - 4 * hidden[:, 1], 0 * hidden[:, 1]])
    begin = np.where(hidden >= 0, np.clip(hidden + way, 0, 26), -1)
    settings = {"problem": Motif(10, strands=strands), "C": 50.0, "pace": pace, "init": begin}
    beside = LatentSVM(**settings, shift=False).fit(X, y)
    found = LatentSVM(**settings).fit(X, y)
    assert beside.score_hidden(X, y, hidden) < 0.1
    assert found.score_hidden(X, y, hidden) > 0.9
    assert found.objective_ < beside.objective_
    assert found.status_ is Status.CONVERGED
    if pace is None:
        objectives = [line.objective for line in found.history_]
        assert objectives == sorted(objectives, reverse=True)


@pytest.mark.parametrize("strands", ["one", "both"])
def test_given_starts_of_motifs_stay(strands):
    X, y, hidden = planted_motif(200, 30, "TGACTC", strands=strands, seed=2)
    wrong = np.where(hidden >= 0, 0, -1)
    some = np.where((np.arange(200) % 3 == 0).reshape(-1, *[1] * (hidden.ndim - 1)), wrong, -1)
    model = LatentSVM(Motif(6, strands=strands), C=20).fit(X, y, hidden=some)
    for line in model.history_:
        assert np.array_equal(line.hidden[::3], wrong[::3])


def test_what_is_unknown_does_not_count_as_found():
    X, y, hidden = planted_motif(60, 30, "TGACTC", strands="both", seed=2)
    model = LatentSVM(Motif(6, strands="both"), C=20).fit(X, y)
    with pytest.raises(ValueError, match="known"):
        model.score_hidden(X, y, np.full_like(hidden, -1))
    shifted = np.where(hidden[:, :1] >= 0, np.add(hidden, [1, 0]) % [20, 2], -1)
    assert model.score_hidden(X, y, shifted) < 0.5


def test_a_problem_that_changed_after_the_fit_is_refused():
    X, y, _ = planted_motif(60, 30, "TGACTC", seed=2)
    model = LatentSVM(Motif(6), C=20).fit(X, y)
    with pytest.raises(ValueError, match="width=4"):
        model.set_params(problem__width=4).predict(X)


def test_lines_of_a_history_compare(planted):
    X, y, _ = planted
    first, again = (LatentSVM(Candidates(), C=20).fit(X, y).history_ for _ in range(2))
    pairs = [(a._replace(seconds=0.0), b._replace(seconds=0.0)) for a, b in zip(first, again, strict=True)]
    assert all(a == b for a, b in pairs)
    assert not any(operator.ne(a, b) for a, b in pairs)
    assert first[0] != first[-1]


@pytest.mark.parametrize(
    ("change", "kind", "keyword"),
    [
        ({"n_init": 0}, ValueError, "n_init=0"),
        ({"init": "middle"}, ValueError, "middle"),
        ({"pace": "slow"}, TypeError, "slow"),
        ({"pace": SelfPaced(mu=1.0)}, ValueError, "mu=1.0"),
        ({"pace": SelfPaced(start=0.0)}, ValueError, "start=0.0"),
        ({"pace": SelfPaced(start="half")}, ValueError, "half"),
        ({"pace": SelfPaced(K=0)}, ValueError, "K=0"),
        ({"init": None}, ValueError, "init"),
        ({"escape": "no"}, ValueError, "escape"),
        ({"n_init": True}, ValueError, "n_init=True"),
        ({"pace": SelfPaced(warmup="two")}, ValueError, "warmup"),
        ({"init": np.full(120, 8)}, ValueError, r"init.*hidden\[0\]"),
        ({"init": np.full(120, -1)}, ValueError, "init"),
        ({"max_inner": 0}, ValueError, "max_inner"),
    ],
)
def test_parameters_that_cannot_be_are_refused(planted, change, kind, keyword):
    X, y, _ = planted
    with pytest.raises(kind, match=keyword):
        LatentSVM(Candidates(), **change).fit(X, y)


class AgainstHidden(Candidates):
    """A loss that looks at the true candidate, as far as a learner can tell."""

    def bind(self, X, y, schema, *, hidden=None):
        oracle = super().bind(X, y, schema, hidden=hidden)
        oracle.loss_needs_hidden = True
        return oracle


def test_a_loss_on_the_true_hidden_value_needs_all_of_them(planted):
    X, y, hidden = planted
    with pytest.raises(ValueError, match="119"):
        LatentSVM(AgainstHidden(), C=10).fit(X, y, hidden=np.where(np.arange(120) == 0, hidden, -1))
    assert np.array_equal(LatentSVM(AgainstHidden(), C=10).fit(X, y, hidden=hidden).hidden_, hidden)


def test_a_class_with_one_sample_is_learned(planted):
    X, y, _ = planted
    y = y.copy()
    y[0] = 9
    model = LatentSVM(Candidates(), C=100, random_state=0).fit(X, y)
    assert 9 in model.classes_


def test_a_cached_answer_is_the_oracles(planted):
    X, y, _ = planted
    problem = Candidates()
    X = Ragged(X.values.astype(np.float32), X.offsets)
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema)
    cached = CachedOracle(oracle)
    rng = np.random.default_rng(0)
    points = [np.zeros(oracle.n_params), *rng.standard_normal((5, oracle.n_params))]
    for k in [0, 1, 1, 2, 0, 3, 4, 5, 1, 0, 5]:
        for ours, plain in ((cached, oracle), (cached.exact(), oracle.exact())):
            answer, expected = ours.predict_augmented(points[k]), plain.predict_augmented(points[k])
            assert np.array_equal(answer.code, expected.code)
            assert np.array_equal(answer.value, expected.value)
    assert cached.predict_augmented(points[5]) is cached.predict_augmented(points[5])
    part = cached.predict_augmented(points[5], slice(0, 3), rivals=True)
    assert np.array_equal(part.code, oracle.predict_augmented(points[5], slice(0, 3), rivals=True).code)


def test_printing_runs_shows_a_table_and_no_arrays(planted, tmp_path):
    X, y, _ = planted
    model = LatentSVM(Candidates(), C=10, n_init=3).fit(X, y)
    lines = repr(model.runs_).splitlines()
    assert lines[0].startswith("3 starts, the lowest objective is that of start ")
    assert lines[1].split() == ["start", "objective", "status", "iterations", "seconds"]
    assert [float(line.split()[1]) for line in lines[2:]] == pytest.approx([r.objective for r in model.runs_], rel=1e-5)
    one = repr(model.runs_[0]).splitlines()
    assert len(one) == 2 + len(model.runs_[0].history)
    assert one[1].split()[:3] == ["iteration", "seconds", "objective"]
    assert "array" not in repr(model.history_) + repr(model.runs_[0])
    model.save(tmp_path / "model.tacit")
    assert repr(load(tmp_path / "model.tacit").runs_) == repr(model.runs_)


def test_a_file_can_leave_the_history_out(planted, tmp_path):
    X, y, _ = planted
    model = LatentSVM(Candidates(), C=10, n_init=3).fit(X, y)
    whole, short = tmp_path / "whole.tacit", tmp_path / "short.tacit"
    model.save(whole)
    model.save(short, history=False)
    assert short.stat().st_size < whole.stat().st_size / 3
    loaded = load(short)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.history_ == []
    assert [(run.objective, run.history) for run in loaded.runs_] == [(run.objective, []) for run in model.runs_]
    assert load(whole).history_ == model.history_
    assert model.history_
    loaded.save(short)  # and again
    with pytest.raises(ValueError, match="history"):
        model.save(short, history="no")
