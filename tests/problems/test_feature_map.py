"""New features of the rows of a problem: what they approximate, what they learn, files and bad input."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

import tacit
from tacit import HiddenCRF, LatentSVM, Ragged, StructuredSVM
from tacit.problems import Bags, Candidates, Chain, FeatureMap, Multiclass
from tacit.problems.feature_map import read_features


def learn(X, **settings):
    return read_features(FeatureMap(Multiclass(), **settings).schema(X, np.arange(len(X)) % 2))


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(60, 4))


def test_products_of_nystroem_features_are_the_kernel_where_all_rows_are_landmarks(rows):
    new = learn(rows, gamma=0.3, scale=False)(rows)
    np.testing.assert_allclose(new @ new.T, rbf_kernel(rows, gamma=0.3), atol=1e-5)


def test_products_of_features_agree_with_scikit_learn(rows):
    other = Nystroem(gamma=0.3, n_components=60, random_state=0).fit_transform(rows)
    new = learn(rows, gamma=0.3, scale=False)(rows)
    np.testing.assert_allclose(new @ new.T, other @ other.T, atol=1e-5)


def test_products_of_fourier_features_are_near_the_kernel(rows):
    new = learn(rows, kernel="fourier", gamma=0.3, n_components=20_000, scale=False)(rows)
    np.testing.assert_allclose(new @ new.T, rbf_kernel(rows, gamma=0.3), atol=0.05)


def test_principal_components_keep_products_up_to_a_factor(rows):
    new = learn(rows, kernel="linear", scale=False)(rows)
    centred = rows - rows.mean(axis=0)
    np.testing.assert_allclose(
        new @ new.T, centred @ centred.T * (new @ new.T)[0, 0] / (centred[0] @ centred[0]), atol=1e-5
    )


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_features_of_a_smaller_number_are_the_first_of_a_larger(rows, kernel):
    few, many = (learn(rows, kernel=kernel, n_components=n)(rows) for n in (2, 4))
    np.testing.assert_array_equal(few, many[:, :2])


def test_copies_and_the_order_of_samples_change_nothing(rows):
    order = np.random.default_rng(1).permutation(60)
    for other in (rows[order], np.concatenate([rows, rows[:7]])):
        np.testing.assert_allclose(learn(other)(rows), learn(rows)(rows), atol=1e-6)


def test_auto_gamma_is_one_over_the_median_squared_distance(rows):
    distances = ((rows[:, None] - rows) ** 2).sum(axis=2)[np.triu_indices(60, 1)]
    assert learn(rows, scale=False).gamma == pytest.approx(1 / np.median(distances))


def make_ring(n=80, seed=0):
    """Bags with an instance near the middle, or without: no linear model can tell them apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    values = rng.normal(size=(n, 5, 2))
    values *= (1.5 + rng.random((n, 5, 1))) / np.linalg.norm(values, axis=2, keepdims=True)
    where = rng.integers(5, size=n)
    values[y == 1, where[y == 1]] *= 0.1
    return values, y, where


@pytest.mark.parametrize("learner", [LatentSVM, HiddenCRF])
def test_a_kernel_learns_what_a_linear_model_cannot(learner):
    X, y, where = make_ring()
    test_X, test_y, _ = make_ring(seed=1)
    model = learner(FeatureMap(Bags(), gamma=1.0), C=100, verbose=0).fit(X, y)
    assert model.score(test_X, test_y) > 0.95 > learner(Bags(), C=100, verbose=0).fit(X, y).score(test_X, test_y)
    assert (np.asarray(model.hidden_)[y == 1] == where[y == 1]).mean() > 0.95
    assert model.n_features_in_ == 2


def test_files_keep_the_features(tmp_path):
    X, y, _ = make_ring()
    model = LatentSVM(FeatureMap(Candidates(), n_components=20), C=10, verbose=0).fit(X, y)
    model.save(tmp_path / "model.tacit")
    loaded = tacit.load(tmp_path / "model.tacit")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_constant_columns_and_single_precision():
    X = np.ones((6, 2), np.float32)
    X[:3, 0] = 0
    model = StructuredSVM(FeatureMap(Multiclass()), C=10, verbose=0).fit(X, [0, 0, 0, 1, 1, 1])
    assert model.score(X, [0, 0, 0, 1, 1, 1]) == 1
    same = StructuredSVM(FeatureMap(Multiclass()), C=10, verbose=0).fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert np.isfinite(same.coef_).all()


def test_bad_input_is_refused(rows):
    y = np.arange(60) % 2
    with pytest.raises(ValueError, match="dense"):
        StructuredSVM(FeatureMap(Multiclass())).fit(sparse.csr_array(rows), y)
    with pytest.raises(ValueError, match="problem"):
        StructuredSVM(FeatureMap(Multiclass)).fit(rows, y)
    with pytest.raises(ValueError, match="gamma"):
        StructuredSVM(FeatureMap(Multiclass(), gamma=-1)).fit(rows, y)
    model = StructuredSVM(FeatureMap(Multiclass()), verbose=0).fit(rows, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(rows[:, :3])
    words = Ragged(rows, np.array([0, 30, 60]))
    chain = StructuredSVM(FeatureMap(Chain(), n_components=5), C=1, verbose=0).fit(words, Ragged(y, words.offsets))
    assert chain.weights_["emission"].shape == (2, 5)
