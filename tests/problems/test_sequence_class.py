"""One label over a hidden path of states: sums and entropies against enumeration, starts, known states, bad input."""

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer
from sklearn.pipeline import make_pipeline

from tacit import HiddenCRF, LatentSVM, MinEntropySVM, Ragged, SelfPaced, load
from tacit.problems import SequenceClass
from tacit.testing import check_problem, enumeration
from tacit.testing.problem_checks import _labels, _slack


def rising_and_falling(n: int, seed: int = 0, noise: float = 0.3) -> tuple[list[np.ndarray], np.ndarray]:
    """Steps up or down at a random time: the mean of a sequence says little, the order of its values everything."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        size, cut = 12, int(rng.integers(3, 10))
        step = np.r_[np.zeros(cut), np.ones(size - cut)]
        y.append("up" if i % 2 else "down")
        X.append(((step if i % 2 else 1 - step) + noise * rng.standard_normal(size))[:, None])
    return X, np.array(y)


@pytest.mark.parametrize("problem", SequenceClass.variants(), ids=str)
def test_check_problem(problem):
    check_problem(problem, 3)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.004, 2.0, np.inf])
@pytest.mark.parametrize("problem", SequenceClass.variants(), ids=str)
def test_entropies_agree_with_enumeration(problem, alpha):
    rng = np.random.default_rng(7)
    example = problem.example(rng)
    oracle = problem.bind(example.X, example.y, problem.schema(example.X, example.y)).exact()
    table = enumeration.Enumeration(example)
    coef = rng.random(table.n)
    direction = rng.standard_normal(oracle.n_params)
    for scale in (1.0, 30.0):
        w = scale * direction
        expected = [_slack(_labels(table, i), table.features[i].astype(float) @ w, alpha) for i in range(table.n)]
        assert oracle.renyi_slacks(w, coef, alpha).value / scale == pytest.approx(np.array(expected) / scale, abs=1e-9)
    step = 1e-6 * rng.standard_normal(oracle.n_params)
    for known in (None, oracle.draw(rng)):
        view = oracle.with_hidden(known)
        ahead, behind = (coef @ view.renyi_slacks(direction + sign * step, coef, alpha).value for sign in (1, -1))
        slope = view.renyi_slacks(direction, coef, alpha).features @ step
        assert (ahead - behind) / 2 == pytest.approx(slope, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(
    "learner",
    [
        LatentSVM(None, C=100),
        LatentSVM(None, C=100, pace=SelfPaced()),
        HiddenCRF(None, C=10),
        MinEntropySVM(None, alpha=2.0, C=30),
    ],
    ids=str,
)
def test_learners_find_the_step(learner, tmp_path):
    X, y = rising_and_falling(60)
    X_new, y_new = rising_and_falling(60, seed=1)
    model = learner.set_params(problem=SequenceClass(topology="left-to-right")).fit(X, y)
    assert model.score(X_new, y_new) > 0.9
    found = model.predict_hidden(X_new)
    cuts = np.array([np.argmax(path) for path in found])
    truth = np.array(
        [
            np.argmax(x[:, 0] > 0.5) if label == "up" else np.argmax(x[:, 0] < 0.5)
            for x, label in zip(X_new, y_new, strict=True)
        ]
    )
    assert np.mean(np.abs(cuts - truth) <= 2) > 0.7
    model.save(tmp_path / "model.npz")
    assert np.array_equal(load(tmp_path / "model.npz").predict(X_new), model.predict(X_new))


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_order_infinity_minimises_the_objective_of_best_paths(rescaling):
    X, y = rising_and_falling(40)
    model = MinEntropySVM(SequenceClass(topology="left-to-right"), alpha=np.inf, C=30, rescaling=rescaling).fit(X, y)
    oracle = model.problem.bind(X, y, model.schema_)
    slacks = oracle.renyi_slacks(model.coef_, np.ones(40), np.inf, rescaling=rescaling).value
    assert model.objective_ == pytest.approx(0.5 * model.coef_ @ model.coef_ + 30 * slacks.mean())
    assert model.score(X, y) > 0.9
    if rescaling == "margin":
        latent = LatentSVM(model.problem, C=30).fit(X, y)
        assert model.objective_ == pytest.approx(latent.objective_, rel=0.1)


def test_probabilities_of_states_add_up_and_respect_known_ones():
    X, y = rising_and_falling(20)
    model = HiddenCRF(SequenceClass(topology="left-to-right"), C=10).fit(X, y)
    proba = model.hidden_proba(X, y)
    assert proba.values.shape == (20 * 12, 2)
    assert proba.values.sum(axis=1) == pytest.approx(1)
    assert proba[0][0].tolist() == [1, 0]
    assert proba[0][-1].tolist() == [0, 1]
    labels = model.predict_proba(X)
    assert labels.shape == (20, 2)
    assert labels.sum(axis=1) == pytest.approx(1)


def test_known_states_are_kept():
    X, y = rising_and_falling(20)
    hidden = [None] * 20
    hidden[3] = [0] * 6 + [1] * 6
    model = LatentSVM(SequenceClass(topology="left-to-right"), C=100).fit(X, y, hidden=hidden)
    assert model.hidden_[3].tolist() == hidden[3]


def test_same_bits_for_threads_and_shards(tmp_path):

    X, y = rising_and_falling(40)
    problem = SequenceClass(topology="left-to-right")
    one = LatentSVM(problem, C=10).fit(X, y)
    two = LatentSVM(problem, C=10, n_jobs=2).fit(X, y)
    assert np.array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize(
    ("problem", "X", "hidden", "keyword"),
    [
        (SequenceClass(states=4, topology="left-to-right"), [np.zeros((2, 1))] * 2, None, "at least 4"),
        (SequenceClass(skips=1), [np.zeros((2, 1))] * 2, None, "left-to-right"),
        (SequenceClass(), [np.array([[np.nan]])] * 2, None, "NaN"),
        (SequenceClass(), [np.zeros((2, 1))] * 2, [[0, 5], None], "from 0 to 1"),
        (SequenceClass(), [np.zeros((2, 1))] * 2, [[0], None], "one state per token"),
        (SequenceClass(), [np.zeros((2, 1))] * 2, [np.zeros(2, "V8"), [0, 1]], "whole numbers"),
        (SequenceClass(topology="left-to-right"), [np.zeros((2, 1))] * 2, [[1, 0], None], "no path"),
    ],
)
def test_bad_input_is_refused(problem, X, hidden, keyword):
    with pytest.raises(ValueError, match=keyword):
        LatentSVM(problem).fit(X, ["a", "b"], hidden=hidden)


def test_paths_may_be_counted_only_by_going_through_them():
    X, y = rising_and_falling(4)
    paths = [np.zeros(12, dtype=int)] * 4
    model = LatentSVM(SequenceClass(2), verbose=0).fit(X, y, hidden=iter(paths))
    assert [own.tolist() for own in model.hidden_] == [own.tolist() for own in paths]
    with pytest.raises(ValueError, match="hidden"):
        LatentSVM(SequenceClass(2), verbose=0).fit(X, y, hidden=iter(paths[:3]))


def test_other_entropies_are_refused():
    X, y = rising_and_falling(10)
    with pytest.raises(TypeError, match="Rényi"):
        MinEntropySVM(SequenceClass(), entropy="havrda-charvat").fit(X, y)


def test_numbers_of_states_of_few_bits_do_not_overflow():
    X, y = rising_and_falling(4)
    X = [np.tile(x, (3, 1)) for x in X]
    for states in (np.int8(23), np.uint8(23)):
        problem = SequenceClass(states=states, topology="left-to-right", skips=np.int8(1))
        assert problem.schema(X, y).blocks["transition"] == (2, 23, 23)
        assert LatentSVM(problem, C=1, tol=0.1, verbose=0).fit(X, y).predict_hidden(X)[0][-1] == 22


@pytest.mark.parametrize("learner", [LatentSVM, HiddenCRF])
def test_words_as_dicts(learner):
    """The first word says the label of one sentence, the last one that of the other; dicts become sparse rows."""
    sentences = ["open the door", "close the door", "please open it", "please close it", "open it now", "close it now"]
    tokens = [[{"word": word} for word in sentence.split()] for sentence in 3 * sentences]
    model = make_pipeline(Ragged.map(DictVectorizer()), learner(SequenceClass(), C=10, verbose=0))
    model.fit(tokens, ["open", "close"] * 9)
    assert model.predict([[{"word": word} for word in ["now", "close", "the", "window"]]]) == ["close"]


def test_ragged_input_and_single_state():
    X, y = rising_and_falling(30)
    model = LatentSVM(SequenceClass(states=1), C=10).fit(Ragged.from_list(X), y)
    assert model.predict(X).shape == (30,)
