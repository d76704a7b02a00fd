"""Samples without a label: missing labels are imputed, by self-training with a pace."""

import itertools

import numpy as np
import pytest

from tacit import (
    DissimilaritySVM,
    GroupNormSVM,
    HiddenCRF,
    IterativeLatentSVM,
    LatentLogistic,
    LatentPerceptron,
    LatentSVM,
    MinEntropySVM,
    Ragged,
    SelfPaced,
    StructuredSVM,
    load,
)
from tacit.learners.descents.unlabelled import _impute_labels
from tacit.problems import Candidates, Chain, Multiclass


@pytest.fixture(scope="module")
def bags():
    """Bags of three instances, one of which carries one of two classes: (bags, y, y with six labels)."""
    rng = np.random.default_rng(0)
    y, carrier = np.arange(60) % 2, rng.integers(0, 3, 60)
    values = rng.standard_normal((60, 3, 6))
    values[np.arange(60), carrier, y] += 4.0
    names = np.array(["cat", "dog"])[y]
    return Ragged(values.reshape(-1, 6), 3 * np.arange(61)), names, [*names[:6], *[None] * 54]


KINDS = (LatentSVM, IterativeLatentSVM, DissimilaritySVM, HiddenCRF, LatentLogistic, MinEntropySVM, LatentPerceptron)


@pytest.mark.parametrize("kind", KINDS)
def test_every_latent_learner_imputes_labels(bags, kind, tmp_path):
    X, y, some = bags
    model = kind(Candidates(), verbose=0).fit(X, some)
    assert (model.labels_[:6] == y[:6]).all()  # given labels stay
    assert len(model.hidden_) == 60
    assert np.mean(model.labels_ == y) > 0.8
    assert (model.predict(X)[6:] == model.labels_[6:]).all()  # no imputed label would change
    model.save(tmp_path / "model.tacit")
    assert (load(tmp_path / "model.tacit").labels_ == model.labels_).all()
    assert not hasattr(model.fit(X, y), "labels_")


def test_parameters_are_as_before(bags):
    X, _, some = bags
    model = LatentSVM(Candidates(), n_init=2, verbose=0)
    before = model.get_params()
    assert model.fit(X, some).get_params() == before


def test_the_fit_is_that_of_the_imputed_labels(bags):
    """Whatever the rounds did: from its weights, a fit to its labels and weights stays where it is."""
    X, _, some = bags
    model = LatentSVM(Candidates(), tol=1e-6, verbose=0).fit(X, some)
    weight = np.where(np.arange(60) < 6, 1.0, 6 / 54)
    again = LatentSVM(Candidates(), tol=1e-6, init=dict(model.weights_), verbose=0)
    assert again.fit(X, model.labels_, sample_weight=weight).objective_ == pytest.approx(model.objective_, rel=1e-4)


def test_a_pace_takes_certain_samples_first(bags):
    X, _, some = bags
    sizes = []

    class Watched(LatentSVM):
        def fit(self, X, y, **known):
            if all(label is not None for label in y):
                sizes.append(len(y))
            return super().fit(X, y, **known)

    Watched(Candidates(), pace=SelfPaced(start=0.2, mu=2.0), verbose=0).fit(X, some)
    assert sizes[:4] == [6, 17, 28, 50]  # 6 labels; then shares .2, .4, .8 and 1 of the 54 others
    assert set(sizes[4:]) == {60}


def test_what_cannot_be_imputed_is_refused(bags, tmp_path):
    X, y, some = bags
    for model, labels, keyword in (
        (LatentSVM(Candidates()), [None] * 60, "missing"),
        (LatentSVM(Candidates(), checkpoint=tmp_path / "state"), some, "checkpoint"),
        (LatentSVM(Candidates(), init=np.zeros(60, int)), some, "init"),
        (LatentSVM(Candidates()), [*y[:59], np.nan], "missing"),
        (LatentSVM(Candidates()), some[:50], "50 labels"),
    ):
        with pytest.raises(ValueError, match=keyword):
            model.fit(X, labels)
    with pytest.raises(ValueError, match="LatentSVM"):
        StructuredSVM(Multiclass()).fit(np.eye(3), ["a", "b", None])
    assert issubclass(GroupNormSVM, LatentSVM)  # which needs hidden states, and has the same fit


@pytest.fixture(scope="module")
def sequences():
    """Sequences of three tags that follow each other in a circle; 8 of 60 have tags."""
    rng = np.random.default_rng(1)
    names, centres = np.array(["a", "b", "c"]), 1.5 * np.eye(3)
    y = [names[(rng.integers(3) + np.arange(rng.integers(2, 6))) % 3] for _ in range(60)]
    X = [centres[np.searchsorted(names, tags)] + rng.standard_normal((len(tags), 3)) for tags in y]
    return X, y, [tags if i < 8 else None for i, tags in enumerate(y)]


@pytest.mark.parametrize("kind", [LatentSVM, HiddenCRF, LatentPerceptron])
def test_whole_sequences_may_lack_their_tags(sequences, kind, tmp_path):
    X, y, some = sequences
    model = kind(Chain(), verbose=0).fit(X, some)
    assert [model.labels_[i].tolist() for i in range(8)] == [tags.tolist() for tags in y[:8]]  # given tags stay
    assert model.labels_.lengths.tolist() == [len(tags) for tags in y]
    assert np.mean(model.labels_.values == np.concatenate(y)) > 0.8
    model.save(tmp_path / "model.tacit")
    assert (load(tmp_path / "model.tacit").labels_.values == model.labels_.values).all()
    assert not hasattr(model.fit(X, y), "labels_")


def test_margins_of_sequences_agree_with_enumeration(sequences):
    X, y, _ = sequences
    model = LatentSVM(Chain(), verbose=0).fit(X[:8], y[:8])
    tags, margins = _impute_labels(model, X[8:20], True)
    emission, transition = model.weights_["emission"], model.weights_["transition"]
    best, gaps = [], []
    for table in X[8:20]:
        paths = np.array(list(itertools.product(range(3), repeat=len(table))))
        scores = (table @ emission.T)[np.arange(len(table)), paths].sum(axis=1)
        scores += transition[paths[:, :-1], paths[:, 1:]].sum(axis=1)
        first, second = np.argsort(-scores)[:2]
        best.append(paths[first])
        gaps.append(scores[first] - scores[second])
    assert (tags == model.classes_[np.concatenate(best)]).all()
    assert np.allclose(margins, gaps)


def test_a_gap_beside_a_sequence_without_tags_is_refused(sequences):
    X, y, some = sequences
    with pytest.raises(ValueError, match=r"y\[2\]\[1\] is missing"):
        LatentSVM(Chain()).fit(X, [*y[:2], [y[2][0], None, *y[2][2:]], *some[3:]])
    with pytest.raises(ValueError, match=r"y\[3\] has 1 tag"):
        LatentSVM(Chain()).fit(X, [*y[:3], ["a"], *some[4:]])
