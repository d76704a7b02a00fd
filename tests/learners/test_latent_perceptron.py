"""The latent perceptron: batches, averages, and learning from more samples."""

import itertools

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import tacit
from tacit import LatentPerceptron, Ragged
from tacit.problems import Candidates, Chain, Multiclass
from tacit.runtime import Status


def test_it_is_the_perceptron_one_sample_at_a_time(digits):
    """Against the textbook loop over samples (Collins 2002), which the batches of one sample must be."""
    X, y = digits[0][:60], digits[1][:60]
    model = LatentPerceptron(
        Multiclass(fit_intercept=False), epochs=3, batch_size=1, shuffle=False, average=True
    ).fit(X, y)  # fmt: skip
    W, total, steps = np.zeros((10, X.shape[1])), np.zeros((10, X.shape[1])), 0
    for _ in range(3):
        for x, label in zip(X, y, strict=True):
            found = int(np.argmax(W @ x))
            if found != label:
                W[label] += x
                W[found] -= x
            total, steps = total + W, steps + 1
    np.testing.assert_allclose(model.weights_["weights"], total / steps, atol=1e-9)
    np.testing.assert_allclose(model.last_coef_, W.ravel(), atol=1e-9)


def test_it_stops_when_nothing_is_wrong(bags):
    X, y, _ = bags
    model = LatentPerceptron(Multiclass(), epochs=50).fit(np.eye(3).repeat(5, axis=0), np.repeat([0, 1, 2], 5))
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ < 50
    assert model.history_[-1].samples_in == 0
    assert LatentPerceptron(Candidates(), epochs=2).fit(X, y).status_ is Status.MAX_ITER


def test_it_learns_hidden_values(bags):
    X, y, hidden = bags
    model = LatentPerceptron(Candidates(), epochs=50, n_init=3).fit(X, y)
    assert model.score(X, y) > 0.9
    assert (model.hidden_ == hidden).mean() > 0.7
    assert len(model.runs_) == 3
    assert (LatentPerceptron(Candidates()).fit(X, y, hidden=hidden).hidden_ == hidden).all()


def test_it_learns_from_sequences_with_gaps():
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 101, 5)
    values = rng.standard_normal((100, 3))
    tags = [list(row) for row in Ragged(np.argmax(values, axis=1), offsets)]
    for row in tags:
        row[2] = None
    model = LatentPerceptron(Chain(), epochs=30).fit(Ragged(values, offsets), tags)
    assert (model.predict(Ragged(values, offsets)).values == np.argmax(values, axis=1)).mean() > 0.9


def test_more_samples_can_be_learned_from_later(bags, tmp_path):
    X, y, _ = bags
    parts = [np.arange(0, 20), np.arange(20, 40)]
    model = LatentPerceptron(Candidates(), batch_size=1, shuffle=False)
    for _ in range(3):
        for part in parts:
            model.partial_fit(X[part], y[part])
    whole = LatentPerceptron(Candidates(), batch_size=1, shuffle=False, epochs=3).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_)
    assert model.n_averaged_ == 120
    model.save(tmp_path / "model")
    loaded = tacit.load(tmp_path / "model")
    assert np.array_equal(loaded.partial_fit(X, y).coef_, model.partial_fit(X, y).coef_)
    with pytest.raises(ValueError, match="label"):
        model.partial_fit(X[:1], ["unicorn"])


def test_it_resumes_to_the_same_bits(bags, tmp_path):
    X, y, _ = bags
    settings = {"epochs": 6, "n_init": 2}
    whole = LatentPerceptron(Candidates(), **settings).fit(X, y)
    keeping = {"checkpoint": tmp_path / "state", "resume": True}
    count = itertools.count()
    with pytest.warns(ConvergenceWarning, match="callback"):
        LatentPerceptron(Candidates(), **settings, **keeping, callbacks=[lambda line: next(count) == 8]).fit(X, y)
    resumed = LatentPerceptron(Candidates(), **settings, **keeping).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_)


def test_a_weight_of_zero_leaves_a_sample_out(bags):
    X, y, _ = bags
    weight = (np.arange(len(y)) < 30).astype(float)
    model = LatentPerceptron(Candidates(), batch_size=1, shuffle=False, epochs=2).fit(X, y, sample_weight=weight)
    alone = LatentPerceptron(Candidates(), batch_size=1, shuffle=False, epochs=2).fit(X[:30], y[:30])
    np.testing.assert_allclose(model.last_coef_, alone.last_coef_)


def test_it_goes_through_a_grid_search(bags):
    X, y, _ = bags
    search = GridSearchCV(LatentPerceptron(Candidates()), {"epochs": [1, 20], "average": [True, False]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.5


def test_bad_parameters_are_refused(bags):
    X, y, _ = bags
    for params, keyword in (
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"average": "yes"}, "average"),
        ({"n_init": 0.5}, "n_init"),
    ):
        with pytest.raises(ValueError, match=keyword):
            LatentPerceptron(Candidates(), **params).fit(X, y)
