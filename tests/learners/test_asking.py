"""Which hidden values to ask for: rules against enumeration, batches, refusals."""

import numpy as np
import pytest
from scipy.special import logsumexp

import tacit
from tacit import LatentSVM, StructuredSVM, ask
from tacit.learners.asking import RULES
from tacit.oracle import CapabilityError
from tacit.problems import Candidates, Chain, Regions, Sentences

RNG = np.random.default_rng(0)
BAGS = [RNG.standard_normal((size, 3)) for size in (2, 3, 4, 5, 1, 3, 3, 2, 4, 5, 3, 2)]
LABELS = [0, 1] * 6


@pytest.fixture(scope="module")
def model():
    return LatentSVM(Candidates(), C=10.0, n_init=3, verbose=0).fit(BAGS, LABELS)


def scores_of(model, i):
    return BAGS[i] @ model.weights_["weights"][LABELS[i]][:3]  # an intercept is the same for all instances


def expected(rule, scores):
    p = np.exp(scores - logsumexp(scores))
    ordered = np.sort(p)
    return {
        "entropy": -(p * np.log(p)).sum(),
        "margin": 1 - (ordered[-1] - ordered[-2]),
        "objective": scores.max() - p @ scores,
    }[rule]


@pytest.mark.parametrize("rule", ["entropy", "margin", "objective"])
def test_usefulness_is_that_of_the_listed_posterior(model, rule):
    found = ask(model, BAGS, LABELS, k=11, rule=rule, diverse=False)
    assert 4 not in found.rows  # a bag of one instance has nothing to ask
    truth = [expected(rule, scores_of(model, i)) for i in found.rows]
    np.testing.assert_allclose(found.usefulness, truth, atol=1e-4)
    assert (np.diff(found.usefulness) <= 0).all()


def test_the_change_is_the_distance_from_imputed_to_expected_features(model):
    found = ask(model, BAGS, LABELS, k=11, rule="change", diverse=False)
    for i, useful in zip(found.rows, found.usefulness, strict=True):
        scores = scores_of(model, i)
        p = np.exp(scores - logsumexp(scores))
        assert useful == pytest.approx(np.linalg.norm(p @ BAGS[i] - BAGS[i][np.argmax(scores)]), abs=1e-8)


@pytest.mark.parametrize("rule", ["auto", "random", *RULES])
@pytest.mark.parametrize("diverse", [False, True])
def test_the_same_seed_gives_the_same_questions(model, rule, diverse):
    first, second = (ask(model, BAGS, LABELS, k=5, rule=rule, diverse=diverse, random_state=3) for _ in range(2))
    assert first.rows.tolist() == second.rows.tolist()
    assert len(set(first.rows.tolist())) == 5
    assert first.guesses == [model.impute(BAGS, LABELS)[i] for i in first.rows]


def test_known_and_skipped_samples_are_not_asked_for(model):
    hidden = [0] * 6 + [-1] * 6
    found = ask(model, BAGS, LABELS, k=99, hidden=hidden, skip=[7, 8])
    assert sorted(found.rows) == [6, 9, 10, 11]


def test_a_batch_does_not_repeat_one_sample():
    rng = np.random.default_rng(1)
    bags = [rng.standard_normal((3, 4)) for _ in range(10)]
    y = [0, 1] * 5
    model = LatentSVM(Candidates(), C=10.0, verbose=0).fit(bags, y)
    best = int(ask(model, bags, y, k=1, rule="entropy").rows[0])
    copies, labels = [*bags, *[bags[best]] * 5], [*y, *[y[best]] * 5]
    alike = {best, *range(10, 15)}
    plain = ask(model, copies, labels, k=4, rule="entropy", diverse=False)
    spread = ask(model, copies, labels, k=4, rule="entropy")
    assert alike.issuperset(plain.rows.tolist())
    assert len(alike.intersection(spread.rows.tolist())) == 1


def test_usefulness_is_divided_by_cost(model):
    plain = ask(model, BAGS, LABELS, k=11, rule="entropy", diverse=False)
    cost = np.ones(12)
    cost[plain.rows[0]] = 1e6
    assert ask(model, BAGS, LABELS, k=11, rule="entropy", diverse=False, cost=cost).rows[-1] == plain.rows[0]


def test_answers_go_back_and_a_warm_fit_keeps_them(model):
    questions = ask(model, BAGS, LABELS, k=3)
    hidden = np.full(12, -1)
    hidden[questions.rows] = [len(BAGS[i]) - 1 for i in questions.rows]
    warm = LatentSVM(Candidates(), C=10.0, warm_start=True, verbose=0).fit(BAGS, LABELS)
    warm.fit(BAGS, LABELS, hidden=hidden)
    assert (warm.hidden_[questions.rows] == hidden[questions.rows]).all()


def test_missing_tags_are_asked_for():
    X = [RNG.standard_normal((3, 2)) for _ in range(6)]
    y = [[0, 1, 0], [1, 0, 1], [0, 0, 1], [None] * 3, [None, 1, 0], [None] * 3]
    chain = LatentSVM(Chain(classes=[0, 1]), C=1.0, verbose=0).fit(X, y)
    for rule in ("entropy", "margin", "perturbed"):
        assert sorted(ask(chain, X, y, rule=rule).rows) == [3, 4, 5]


@pytest.fixture(scope="module")
def tagged():
    """Five sequences, of which the last three have missing tags, and the model of all."""
    X = [RNG.standard_normal((n, 2)) for n in (3, 4, 5, 4, 6)]
    y = [[0, 1, 0], [1, 0, 1, 0], [None, 0, 1, None, None], [None] * 4, [1, None, 0, 0, None, 1]]
    return LatentSVM(Chain(classes=[0, 1]), C=1.0, verbose=0).fit(X, y), X, y


@pytest.mark.parametrize("rule", ["auto", "random", "mixed", "margin", "perturbed"])
def test_parts_that_are_missing_are_asked_for_one_by_one(tagged, rule):
    model, X, y = tagged
    found = ask(model, X, y, k=99, rule=rule, parts=True)
    missing = [(i, t) for i, own in enumerate(y) for t, tag in enumerate(own) if tag is None]
    assert sorted(zip(found.rows.tolist(), found.parts.tolist(), strict=True)) == missing
    imputed = model.impute(X, y)
    assert found.guesses == [imputed[i][t] for i, t in zip(found.rows, found.parts, strict=True)]
    assert ask(model, X, y, parts=True, rule=rule, skip=[3, 4]).rows.tolist() == [2] * 3
    assert ask(model, X[:2], y[:2], parts=True, rule=rule).guesses == []


def test_the_margin_of_a_part_is_that_of_its_posterior(tagged):
    model, X, y = tagged
    found = ask(model, X, y, k=99, rule="margin", parts=True)
    table = np.sort(model._bind(X, y).tag_posterior(model.coef_, is_given=True), axis=1)
    starts = np.cumsum([0, *map(len, X)])
    gaps = 1 - (table[:, -1] - table[:, -2])
    np.testing.assert_allclose(found.usefulness, gaps[starts[found.rows] + found.parts])
    assert (np.diff(found.usefulness) <= 0).all()


def test_regions_have_parts_and_bags_do_not(model):
    example = Regions().example(np.random.default_rng(0))
    regions = StructuredSVM(Regions(), C=1.0, verbose=0).fit(example.X, example.y)
    unknown = [np.full(len(own), -1) for own in example.y]
    assert len(ask(regions, example.X, unknown, k=3, parts=True).parts) == 3
    with pytest.raises(CapabilityError, match="parts"):
        ask(model, BAGS, LABELS, parts=True)
    with pytest.raises(ValueError, match="rule"):
        ask(model, BAGS, LABELS, rule="entropy", parts=True)


def test_a_rule_that_a_problem_cannot_have_is_refused_with_the_reason():
    example = Sentences().example(np.random.default_rng(0))
    model = LatentSVM(Sentences(), C=1.0, verbose=0).fit(example.X, example.y)
    with pytest.raises(CapabilityError, match="perturbed"):
        ask(model, example.X, example.y, rule="entropy")
    assert ask(model, example.X, example.y).rule == "mixed"


def test_auto_takes_the_change_of_listed_values_the_margin_of_tags_and_mixed_elsewhere(model, tagged):
    assert ask(model, BAGS, LABELS).rule == "change"
    assert ask(*tagged).rule == "mixed"
    assert ask(*tagged, parts=True).rule == "margin"


def test_mixed_takes_perturbed_and_random_questions_in_turn(model):
    best = ask(model, BAGS, LABELS, k=6, rule="perturbed", random_state=2).rows.tolist()
    mixed = ask(model, BAGS, LABELS, k=6, rule="mixed", random_state=2).rows.tolist()
    assert mixed[0] == best[0]
    assert len(set(mixed)) == 6
    certain = np.argmin(ask(model, BAGS, LABELS, k=12, rule="entropy", diverse=False).usefulness)
    assert certain == 10  # eleven are open, the least useful last
    rows = ask(model, BAGS, LABELS, k=12, rule="entropy", diverse=False).rows
    asked = [ask(model, BAGS, LABELS, k=6, rule="mixed", random_state=seed).rows.tolist() for seed in range(20)]
    assert any(rows[-1] in own for own in asked)


def test_noise_keeps_weights_within_their_bounds():
    """Costs of pairs of regions must not be negative, or minimum cuts refuse them."""
    example = Regions().example(np.random.default_rng(0))
    model = StructuredSVM(Regions(), C=1.0, verbose=0).fit(example.X, example.y)
    unknown = [np.full(len(own), -1) for own in example.y]
    assert len(ask(model, example.X, unknown, k=2).rows) == 2


def test_bad_arguments_are_refused(model):
    with pytest.raises(TypeError, match="fitted learner"):
        ask("model", BAGS, LABELS)
    for wrong in ({"k": 0}, {"rule": "best"}, {"cost": [1.0]}, {"cost": [0.0] * 12}, {"skip": [99]}):
        with pytest.raises((ValueError, TypeError)):
            ask(model, BAGS, LABELS, **wrong)
    with pytest.raises(ValueError, match="X of the fit"):
        ask(model, BAGS[:5], LABELS[:5], rule="starts")
    single = LatentSVM(Candidates(), C=10.0, verbose=0).fit(BAGS, LABELS)
    with pytest.raises(ValueError, match="n_init"):
        ask(single, BAGS, LABELS, rule="starts")


def test_it_is_exported():
    assert tacit.ask is ask
