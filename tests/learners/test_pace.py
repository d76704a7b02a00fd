"""Self-paced learning in every learner that has a pace: which samples are left out, and that all are in at the end."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from tacit import GroupNormSVM, HiddenCRF, LatentLogistic, LatentPerceptron, LatentSVM, MinEntropySVM, Ragged, SelfPaced
from tacit.datasets import planted_motif
from tacit.problems import Candidates, Chain, Motif, MotifSites
from tacit.runtime import Status


@pytest.fixture(scope="module")
def bags():
    """Forty bags of four candidates, one of which carries the label."""
    rng = np.random.default_rng(1)
    values, y = rng.standard_normal((160, 5)), np.arange(40) % 2
    values[np.arange(40) * 4 + rng.integers(0, 4, 40), y] += 2.0
    return Ragged(values, np.arange(41) * 4), y


@pytest.fixture(scope="module")
def motif():
    X, y, _ = planted_motif(120, 25, "TGACTCA", noise=0.2, seed=2)
    return X, y


LEARNERS = {
    "LatentSVM": lambda **more: LatentSVM(Motif(7), C=50, init="hidden", random_state=0, **more),
    "alpha inf": lambda **more: MinEntropySVM(Motif(7), np.inf, C=50, init="hidden", random_state=0, **more),
    "alpha 2": lambda **more: MinEntropySVM(Motif(7), 2.0, C=50, init="hidden", random_state=0, **more),
    "HiddenCRF": lambda **more: HiddenCRF(Motif(7), C=50, init="hidden", random_state=0, **more),
    "EM": lambda **more: HiddenCRF(Motif(7), C=50, method="em", init="hidden", random_state=0, **more),
    "hard EM": lambda **more: HiddenCRF(Motif(7), C=50, method="hard-em", init="hidden", random_state=0, **more),
    "LatentLogistic": lambda **more: LatentLogistic(MotifSites(7), C=50, init="hidden", random_state=0, **more),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_negatives_are_left_out_only_if_all_samples_are_paced(motif, name):
    """Negatives have no site to find: their hidden value is known."""
    X, y = motif
    is_negative = y == y.min()
    counts = {}
    for paces in ("hidden", "all"):
        model = LEARNERS[name](pace=SelfPaced(paces=paces, start=0.3, max_rounds=1)).fit(X, y)
        counts[paces] = [line.samples_in for line in model.history_]
        assert counts[paces][-1] == len(y)
        assert model.status_ is Status.CONVERGED
        if hasattr(model.history_[0], "is_in"):
            assert all(line.is_in[is_negative].all() for line in model.history_) == (paces == "hidden")
    assert is_negative.sum() <= min(counts["hidden"]) < len(y)
    assert min(counts["all"]) < min(counts["hidden"])


def test_where_every_hidden_value_is_unknown_both_paces_are_the_same(bags):
    fits = [LatentSVM(Candidates(), C=20, pace=SelfPaced(paces=paces), random_state=0) for paces in ("hidden", "all")]
    first, second = (model.fit(*bags) for model in fits)
    assert np.array_equal(first.coef_, second.coef_)


@pytest.mark.parametrize("method", ["lbfgs", "em", "hard-em"])
def test_terms_of_a_hidden_crf_are_those_of_enumeration(bags, method):
    """Samples in the first selection are the share ``start`` of the lowest terms at the weights of the warm-up."""
    X, y = bags
    model = HiddenCRF(Candidates(fit_intercept=False), C=30, method=method, init="hidden", random_state=0).fit(X, y)
    W = model.weights_["weights"]
    scores = np.array([x @ W.T for x in X])  # sample, candidate, class
    own = scores[np.arange(40), :, y]
    best = own.max(axis=1) if method == "hard-em" else logsumexp(own, axis=1)
    oracle = model.problem.bind(X, y, model.schema_)
    weights = np.full(40, 30 / 40)
    terms = model._objective(oracle, weights).slack(model.coef_)
    np.testing.assert_allclose(terms, logsumexp(scores, axis=(1, 2)) - best, atol=1e-10)


def test_a_paced_hidden_crf_without_hidden_values_ends_at_the_optimum(bags):
    """Convex: whatever came in first, all samples are in at the end."""
    X, y = bags
    known = np.zeros(40, dtype=int)
    plain, paced = (
        HiddenCRF(Candidates(), C=10, tol=1e-9, pace=pace).fit(X, y, hidden=known) for pace in (None, SelfPaced())
    )
    assert min(line.samples_in for line in paced.history_) < 40
    assert paced.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    assert paced.bound_ <= plain.objective_


def test_a_paced_fit_is_the_same_for_any_number_of_jobs(bags):
    settings = {"C": 50, "pace": SelfPaced(start=0.4), "n_init": 2, "init": "hidden", "random_state": 0}
    one, two = (HiddenCRF(Candidates(), **settings, n_jobs=jobs).fit(*bags) for jobs in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("method", ["lbfgs", "em", "hard-em"])
@pytest.mark.parametrize("stop", [1, 3])
def test_a_stopped_paced_hidden_crf_resumes_to_the_same_bits(bags, tmp_path, method, stop):
    check_resumes(HiddenCRF, bags, tmp_path / "state", stop, method=method, C=50)


def check_resumes(kind, data, path, stop, **more):
    """A fit that Ctrl-C ended continues to the same weights, with the same history."""
    settings = {"problem": Candidates(), "pace": SelfPaced(start=0.4), "random_state": 0, "n_init": 2, **more}
    whole, seen = kind(**settings).fit(*data), []

    def interrupt(line):
        seen.append(line)
        if len(seen) == stop:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        kind(**settings, checkpoint=path, callbacks=[interrupt]).fit(*data)
    resumed = kind(**settings, checkpoint=path, resume=True).fit(*data)
    assert np.array_equal(resumed.coef_, whole.coef_)
    assert [line.samples_in for line in resumed.history_] == [line.samples_in for line in whole.history_]


@pytest.mark.parametrize("kind", [HiddenCRF, LatentLogistic])
def test_a_pace_that_never_lets_all_in_is_refused(bags, kind):
    for pace, word in ((SelfPaced(mu=1.0), "mu"), (SelfPaced(paces="some"), "paces"), ("slow", "SelfPaced")):
        with pytest.raises((ValueError, TypeError), match=word):
            kind(Candidates(), pace=pace).fit(*bags)


@pytest.mark.parametrize("solver", ["auto", "subgradient"])
def test_a_paced_group_norm_ends_with_all_samples(bags, solver):
    model = GroupNormSVM(Candidates(), C=20, solver=solver, pace=SelfPaced(start=0.4), random_state=0).fit(*bags)
    counts = [line.samples_in for line in model.history_]
    assert min(counts) < counts[-1] == 40
    slack = np.maximum(0, 1 - (2 * bags[1] - 1) * model.decision_function(bags[0]))
    assert model.objective_ == pytest.approx(model.group_norms_.sum() + 20 * slack.mean())


def test_a_stopped_paced_subgradient_resumes_to_the_same_bits(bags, tmp_path):
    check_resumes(GroupNormSVM, bags, tmp_path / "state", 4, solver="subgradient", C=20)


@pytest.mark.parametrize("shuffle", [True, False])
def test_epochs_of_a_paced_perceptron_read_the_easy_samples(bags, shuffle):
    """A share 0.3 · 1.3^k of the samples, and those that tie: samples in order have the term 0."""
    model = LatentPerceptron(
        Candidates(), epochs=10, shuffle=shuffle, pace=SelfPaced(start=0.3, warmup=1), random_state=0
    ).fit(*bags)
    counts = [line.samples_in for line in model.history_]
    least = [40, *(int(np.ceil(40 * min(1.0, 0.3 * 1.3**k))) for k in range(9))]
    assert all(count >= number for count, number in zip(counts, least, strict=False))
    assert min(counts) < 40
    assert set(counts[6:]) <= {40}  # 0.3 · 1.3^5 > 1


def test_a_paced_perceptron_of_sequences_leaves_some_out():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((5, 3)) for _ in range(30)]
    y = [(x[:, 0] + rng.standard_normal(5) > 0).astype(int) for x in X]
    model = LatentPerceptron(Chain(), epochs=10, pace=SelfPaced(start=0.3), random_state=0).fit(X, y)
    counts = [line.samples_in for line in model.history_]
    assert counts[:2] == [30, 30]
    assert min(counts) < counts[-1] == 30


def test_a_stopped_paced_perceptron_resumes_to_the_same_bits(bags, tmp_path):
    check_resumes(LatentPerceptron, bags, tmp_path / "state", 4, epochs=12)


def test_a_perceptron_refuses_a_pace_that_does_not_let_all_in(bags):
    for pace, word in ((SelfPaced(mu=1.001), "epochs=20"), (SelfPaced(warmup=20), "epochs"), (SelfPaced(K=1.0), "K=1")):
        with pytest.raises(ValueError, match=word):
            LatentPerceptron(Candidates(), pace=pace).fit(*bags)
    with pytest.raises(ValueError, match="partial_fit"):
        LatentPerceptron(Candidates(), pace=SelfPaced()).partial_fit(*bags)
