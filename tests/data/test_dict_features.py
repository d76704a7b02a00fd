"""Tokens as dicts of named features, through scikit-learn's vectorisers, into chains and bags."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from tacit import LatentSVM, Ragged, StructuredSVM
from tacit.problems import Candidates, Chain

WORDS = {"the": "DET", "a": "DET", "dog": "NOUN", "cat": "NOUN", "sees": "VERB", "hears": "VERB", "old": "ADJ"}


def describe(words):
    return [
        {"word": word, "suffix": word[-1:], "first": t == 0, "length": len(word) / 5} for t, word in enumerate(words)
    ]


@pytest.fixture(scope="module")
def sentences():
    rng = np.random.default_rng(0)
    words = [list(rng.choice(list(WORDS), size=int(rng.integers(1, 7)))) for _ in range(60)]
    return [describe(part) for part in words], [[WORDS[word] for word in part] for part in words]


@pytest.mark.parametrize("vectorizer", [DictVectorizer(), DictVectorizer(dtype=np.float32), FeatureHasher(64)])
def test_dicts_become_sparse_rows(sentences, vectorizer):
    X, _ = sentences
    flat = [token for sentence in X for token in sentence]
    expected = clone(vectorizer).fit_transform(flat)
    rows = Ragged.map(vectorizer)
    made = rows.fit_transform(X)
    assert sparse.issparse(made.values)
    assert made.values.dtype == expected.dtype
    assert made.lengths.tolist() == [len(sentence) for sentence in X]
    assert (made.values != expected).nnz == 0
    for again in (rows.transform(X), clone(rows).fit(X).transform(X), Ragged.of(X).map(vectorizer)):
        assert (again.values != expected).nnz == 0
    assert (pickle.loads(pickle.dumps(rows)).transform(X).values != expected).nnz == 0


def test_a_chain_learns_from_dicts_in_a_pipeline(sentences):
    X, y = sentences
    model = make_pipeline(Ragged.map(DictVectorizer()), StructuredSVM(Chain(), C=100)).fit(X, y)
    assert model.score(X, y) == 1
    assert model.predict([describe(["a", "cat", "barks"])])[0][:2].tolist() == ["DET", "NOUN"]
    by_hand = StructuredSVM(Chain(), C=100).fit(Ragged.map(DictVectorizer()).fit_transform(X), y)
    assert by_hand.objective_ == pytest.approx(model[-1].objective_, rel=1e-3)
    names = model[0].transformer_.get_feature_names_out()
    emission = model[-1].weights_["emission"]
    assert emission[list(model.classes_).index("NOUN"), list(names).index("word=dog")] > 0


def test_searches_and_folds_take_lists_of_dicts(sentences):
    X, y = sentences
    model = make_pipeline(Ragged.map(DictVectorizer()), StructuredSVM(Chain(), C=10))
    assert cross_val_score(model, X, np.array(y, dtype=object), cv=3).min() > 0.9
    search = GridSearchCV(model, {"maprows__transformer__sparse": [True, False], "structuredsvm__C": [1, 10]}, cv=2)
    assert search.fit(X, np.array(y, dtype=object)).best_score_ > 0.9


def test_missing_tags_are_learned_around(sentences):
    X, y = sentences
    partly = [[tag if t % 2 == 0 else None for t, tag in enumerate(tags)] for tags in y]
    model = make_pipeline(Ragged.map(FeatureHasher(64)), LatentSVM(Chain(), C=100)).fit(X, partly)
    assert model.score(X, y) > 0.9


def test_candidates_may_be_dicts_too():
    bags = [[{"says": "good"}, {"says": "the"}], [{"says": "bad"}], [{"says": "the"}, {"says": "good"}]]
    model = make_pipeline(Ragged.map(DictVectorizer()), StructuredSVM(Candidates(), C=100))
    model.fit(bags, ["+", "-", "+"], structuredsvm__hidden=[0, 0, 1])
    assert model.predict(bags).tolist() == ["+", "-", "+"]


def test_what_is_no_dict_is_named(sentences):
    X, y = sentences
    with pytest.raises(ValueError, match="DictVectorizer"):
        StructuredSVM(Chain()).fit(X, y)
    with pytest.raises(ValueError, match="'dog'"):
        Ragged.map(DictVectorizer()).fit([X[0], [{"word": "a"}, "dog"]])
    model = make_pipeline(Ragged.map(DictVectorizer()), StructuredSVM(Chain()))
    with pytest.raises(ValueError, match="sequence 1"):
        model.fit([X[0], []], [y[0], []])


def test_a_transformer_without_fit_transform_is_fitted_and_applied():
    class Centre(BaseEstimator):
        def fit(self, X):
            self.mean_ = X.mean(axis=0)
            return self

        def transform(self, X):
            return X - self.mean_

    bags = Ragged.from_list([[[1.0], [2.0]], [[6.0]]])
    assert Ragged.map(Centre()).fit_transform(bags).values.ravel().tolist() == [-2, -1, 3]
