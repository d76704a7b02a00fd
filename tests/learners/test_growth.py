"""Models that grow: what carries over, when growth ends, bad input."""

import numpy as np
import pytest

from tacit import HiddenCRF, LatentPerceptron, LatentSVM, grow_model
from tacit.learners.growth import pad_weights
from tacit.problems import Bags, FeatureMap, Multiclass
from tests.problems.test_feature_map import make_ring


@pytest.fixture(scope="module")
def ring():
    return make_ring()[:2]


def learner(kind=LatentSVM, **more):
    return kind(FeatureMap(Bags(), gamma=1.0), C=100, verbose=0, **more)


@pytest.mark.parametrize("kind", [LatentSVM, HiddenCRF])
def test_a_model_grows_to_what_held_out_bags_need(ring, kind):
    grown = grow_model(learner(kind), *ring, [1, 4, 16, 64], patience=4)
    assert len(grown.scores) == len(grown.seconds) == 4
    assert grown.size == [1, 4, 16, 64][int(np.argmax(grown.scores))] > 1
    assert grown.model.weights_["weights"].shape[1] == grown.size
    assert grown.model.score(*make_ring(seed=1)[:2]) > 0.9


def test_growth_ends_where_it_does_not_pay(ring):
    grown = grow_model(learner(), *ring, [16, 17, 18, 19, 20], patience=1)
    assert len(grown.scores) < 5
    assert grown.sizes == [16, 17, 18, 19, 20][: len(grown.scores)]


def test_a_larger_model_begins_not_above_the_smaller_one(ring):
    X, y = ring
    small = learner().set_params(problem__n_components=8).fit(X, y)
    large = learner().set_params(problem__n_components=16)
    schema = large.problem.schema(X, y)
    large.set_params(init=pad_weights(small.weights_, schema.blocks)).fit(X, y)
    assert large.objective_ <= small.objective_ + 1e-9


def test_the_same_seed_gives_the_same_bits(ring):
    one, two = (grow_model(learner(n_jobs=jobs), *ring, [2, 8]) for jobs in (1, 2))
    np.testing.assert_array_equal(one.model.coef_, two.model.coef_)
    np.testing.assert_array_equal(one.scores, two.scores)


def test_the_estimator_is_not_changed(ring):
    estimator = learner()
    before = repr(estimator.get_params())
    grow_model(estimator, *ring, [2, 4])
    assert repr(estimator.get_params()) == before


@pytest.mark.parametrize(
    ("sizes", "more", "word"),
    [
        ([], {}, "sizes"),
        ([4, 2], {}, "increasing"),
        ([2], {"validation": 1.5}, "validation"),
        ([2], {"parameter": "x"}, "parameter"),
    ],
)
def test_bad_settings_are_refused(ring, sizes, more, word):
    with pytest.raises(ValueError, match=word):
        grow_model(learner(), *ring, sizes, **more)


def test_learners_without_first_weights_are_refused(ring):
    with pytest.raises(ValueError, match="init"):
        grow_model(LatentPerceptron(FeatureMap(Bags())), *ring, [2])
    with pytest.raises(TypeError, match="learner"):
        grow_model(Multiclass(), *ring, [2])
