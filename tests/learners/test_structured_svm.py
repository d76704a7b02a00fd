"""The estimator as a scikit-learn user meets it."""

import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info

from tacit import LatentSVM, Ragged, StructuredSVM
from tacit.problems import Candidates, Multiclass
from tacit.solvers import Bundle, FrankWolfe, Status, Subgradient

OPTIMUM = 25.2932  # liblinear, tol 1e-6


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def primal(w, X, y, c):
    """½‖W‖² + Σ c_i ξ_i with 0/1 loss, in plain NumPy."""
    scores = X @ w.reshape(-1, X.shape[1]).T
    truth = scores[np.arange(len(y)), y]
    margins = scores + 1 - truth[:, None]
    margins[np.arange(len(y)), y] = 0
    return 0.5 * w @ w + np.sum(c * margins.max(axis=1))


def test_digits_are_certified(digits):
    X, y = digits
    model = StructuredSVM(Multiclass(fit_intercept=False), C=100).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert OPTIMUM - 5e-5 <= model.objective_ <= 1.001 * OPTIMUM
    assert model.bound_ <= OPTIMUM + 5e-5
    assert model.gap_ == model.objective_ - model.bound_
    assert model.objective_ == pytest.approx(primal(model.coef_, X, y, 100 / len(y)), rel=1e-12)
    # an intercept is the weight of a constant feature
    other = StructuredSVM(Multiclass(), C=100, tol=1e-5).fit(X[:, :-1], y)
    assert other.objective_ == pytest.approx(OPTIMUM, rel=2e-5)
    assert other.weights_["weights"].shape == (10, 64)
    assert other.weights_["intercept"].shape == (10,)
    assert other.n_features_in_ == 64


@pytest.mark.filterwarnings("ignore:Skipping check")
def test_scikit_learns_own_checks():
    # weighted and repeated samples agree to tol (tested below); to 1e-7 only where rounding breaks all ties alike
    ties = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]
    results = check_estimator(StructuredSVM(Multiclass()), on_fail=None)
    failed = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"}
    assert set(failed) <= set(ties), failed
    assert sum(r["status"] == "passed" for r in results) > 50


def test_it_is_a_classifier_for_bags_too():
    assert is_classifier(StructuredSVM(Multiclass()))
    assert is_classifier(StructuredSVM(Candidates()))


def test_nested_parameters_and_search(iris):
    X, y = iris
    model = StructuredSVM(Multiclass(), solver=Bundle())
    model.set_params(problem__fit_intercept=False, solver__proximal=False, C=3.0)
    assert not model.problem.fit_intercept
    assert not clone(model).solver.proximal
    pipeline = make_pipeline(StandardScaler(), StructuredSVM(Multiclass()))
    search = GridSearchCV(
        pipeline, {"structuredsvm__C": [0.1, 100.0], "structuredsvm__problem__fit_intercept": [True, False]}, n_jobs=2
    ).fit(X, y)
    assert search.best_score_ > 0.94
    assert cross_val_score(pipeline, X, y).mean() > 0.93


@pytest.mark.parametrize(
    ("name", "solver"), [("bundle", Bundle), ("frank-wolfe", FrankWolfe), ("subgradient", Subgradient)]
)
def test_solvers_have_names(iris, name, solver):
    by_name, by_object = (
        StructuredSVM(Multiclass(), solver=s, C=1, tol=0.5, random_state=0).fit(*iris) for s in (name, solver())
    )
    assert isinstance(by_name.solver_, solver)
    np.testing.assert_array_equal(by_name.coef_, by_object.coef_)
    with pytest.raises(TypeError, match="frank-wolfe"):
        StructuredSVM(Multiclass(), solver="cutting-plane").fit(*iris)


def test_sparse_equals_dense(digits):
    X, y = digits
    dense = StructuredSVM(Multiclass(), C=10).fit(X, y)
    for form in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix):
        thin = StructuredSVM(Multiclass(), C=10).fit(form(X), y)
        assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-3)
        assert (thin.predict(form(X)) == dense.predict(X)).mean() > 0.99


def test_a_weight_of_two_is_the_sample_twice(iris):
    X, y = iris
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    model = StructuredSVM(Multiclass(), C=10, tol=1e-6)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=3e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=0.02)
    assert weighted.score(X, y, sample_weight=weight) == pytest.approx(repeated.score(X[rows], y[rows]), abs=0.01)


def test_class_weights_scale_C_by_class(iris):
    X, y = iris
    model = StructuredSVM(Multiclass(), C=10, tol=1e-6)
    plain = clone(model).fit(X, y)
    by_class = clone(model).set_params(class_weight={0: 3.0, 1: 0.5}).fit(X, y)
    w, b = by_class.weights_["weights"], by_class.weights_["intercept"]
    flat = np.hstack([w, b[:, None]]).ravel()
    factors = np.choose(y, [3.0, 0.5, 1.0])
    expected = primal(flat, np.hstack([X, np.ones((len(y), 1))]), y, 10 / len(y) * factors)
    assert by_class.objective_ == pytest.approx(expected, rel=1e-9)
    balanced = clone(model).set_params(class_weight="balanced").fit(X, y)
    assert balanced.objective_ == pytest.approx(plain.objective_, rel=3e-6)  # iris is balanced
    rare = np.concatenate([np.arange(60), np.arange(100, 110)])
    lopsided = clone(model).set_params(class_weight="balanced").fit(X[rare], y[rare])
    manual = clone(model).set_params(class_weight={0: 70 / 150, 1: 70 / 30, 2: 70 / 30}).fit(X[rare], y[rare])
    assert lopsided.objective_ == pytest.approx(manual.objective_, rel=3e-6)


def test_score_is_one_minus_the_mean_loss(iris):
    X, y = iris
    costs = np.array([[0, 1, 4], [2, 0, 1], [3, 1, 0]], dtype=float)
    model = StructuredSVM(Multiclass(loss=costs), C=1).fit(X, y)
    assert model.score(X, y) == pytest.approx(1 - costs[y, model.predict(X)].mean())
    accuracy = StructuredSVM(Multiclass(), C=1).fit(X, y)
    assert accuracy.score(X, y) == pytest.approx((accuracy.predict(X) == y).mean())


@pytest.mark.parametrize("learner", [StructuredSVM, LatentSVM])
def test_costs_of_a_large_spread_call_for_slack_rescaling(learner):
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 3
    far = [[0, 1, 9], [1, 0, 1], [9, 1, 0]]
    with pytest.warns(UserWarning, match="slack"):
        learner(Multiclass(loss=far), tol=0.1).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner(Multiclass(loss=far), tol=0.1, rescaling="slack").fit(X, y)
        learner(Multiclass(loss=[[0, 1, 2], [1, 0, 1], [2, 1, 0]]), tol=0.1).fit(X, y)


def test_decision_function_agrees_with_predict(iris, bags):
    X, y = iris
    model = StructuredSVM(Multiclass(), C=10).fit(X, y)
    assert model.decision_function(X).shape == (150, 3)
    np.testing.assert_array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X))
    two = StructuredSVM(Multiclass(), C=10).fit(X[:100], y[:100])
    np.testing.assert_array_equal(two.decision_function(X) > 0, two.predict(X) == 1)
    B, labels, hidden = bags
    model = StructuredSVM(Candidates(), C=10).fit(B, labels, hidden=hidden)
    np.testing.assert_array_equal(model.classes_[model.decision_function(B).argmax(axis=1)], model.predict(B))


def test_bags_with_known_candidates(bags):
    X, y, hidden = bags
    model = StructuredSVM(Candidates(), C=30).fit(X, y, hidden=hidden)
    assert model.score(X, y) > 0.9
    np.testing.assert_array_equal(model.hidden_, hidden)
    assert (model.predict_hidden(X) == hidden).mean() > 0.8
    assert (model.impute(X, y) == hidden).mean() > 0.8
    arrays = [np.array(bag) for bag in X]
    objects = np.empty(len(arrays), dtype=object)
    objects[:] = arrays
    column = pa.array([bag.tolist() for bag in arrays])
    for form in (arrays, objects, pd.Series(arrays), column, pa.chunked_array([column])):
        other = StructuredSVM(Candidates(), C=30).fit(form, y, hidden=hidden)
        np.testing.assert_array_equal(other.coef_, model.coef_)
        np.testing.assert_array_equal(model.predict(form), model.predict(X))
    thin = Ragged(sparse.csr_matrix(X.values), X.offsets)
    assert StructuredSVM(Candidates(), C=30, tol=1e-5).fit(thin, y, hidden=hidden).objective_ == pytest.approx(
        StructuredSVM(Candidates(), C=30, tol=1e-5).fit(X, y, hidden=hidden).objective_, rel=3e-5
    )


def test_one_candidate_bags_equal_multiclass(iris):
    X, y = iris
    flat = StructuredSVM(Multiclass(), C=10, tol=1e-6).fit(X, y)
    bags = StructuredSVM(Candidates(), C=10, tol=1e-6).fit(X[:, None, :], y)
    assert bags.objective_ == pytest.approx(flat.objective_, rel=3e-6)
    assert flat.predict_hidden(X) is None


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads_do_not_change_the_result(digits, n_jobs):
    X, y = digits
    alone = StructuredSVM(Multiclass(), C=10, tol=1e-4).fit(X, y)
    shards = StructuredSVM(Multiclass(), C=10, tol=1e-4, n_jobs=n_jobs).fit(X, y)
    assert shards.objective_ == pytest.approx(alone.objective_, rel=2e-4)
    assert shards.bound_ <= alone.objective_
    assert alone.bound_ <= shards.objective_
    again = StructuredSVM(Multiclass(), C=10, tol=1e-4, n_jobs=n_jobs).fit(X, y)
    np.testing.assert_array_equal(shards.coef_, again.coef_)
    np.testing.assert_array_equal(shards.predict(X), shards.set_params(n_jobs=None).predict(X))


def test_more_threads_than_samples():
    X, y = np.eye(3), [0, 1, 2]
    model = StructuredSVM(Multiclass(), C=10, n_jobs=8).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)


def test_float32_features_reach_the_same_optimum(digits):
    X, y = digits
    single = StructuredSVM(Multiclass(fit_intercept=False), C=100, tol=1e-4).fit(X.astype(np.float32), y)
    assert single.objective_ == pytest.approx(OPTIMUM, rel=2e-4)
    assert single.coef_.dtype == np.float64


def test_warm_start_goes_on_from_the_last_fit(digits):
    X, y = digits
    model = StructuredSVM(Multiclass(), C=10, warm_start=True).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold / 3
    model.set_params(C=20).fit(X, y)
    other = StructuredSVM(Multiclass(), C=20).fit(X, y)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-3)
    assert model.n_iter_ < other.n_iter_
    # other samples, other classes: still right
    assert model.fit(X[:50], y[:50]).status_ is Status.CONVERGED
    assert model.fit(X[y < 5], y[y < 5]).status_ is Status.CONVERGED


def test_warm_start_keeps_planes(digits):
    """At an unchanged optimum the kept planes certify it at once; the point alone cannot."""
    X, y = digits
    model = StructuredSVM(Multiclass(), C=10, warm_start=True).fit(X, y)
    with_planes = clone(model).fit(X, y)
    del with_planes._warmth
    assert model.fit(X, y).n_iter_ < with_planes.fit(X, y).n_iter_ / 2


def test_balanced_classes_count_sample_weights(iris):
    X, y = iris
    weight = np.where(y == 0, 3, 1)
    rows = np.repeat(np.arange(len(y)), weight)
    model = StructuredSVM(Multiclass(), C=10, tol=1e-6, class_weight="balanced")
    weighted = clone(model).fit(X, y, sample_weight=weight)
    assert weighted.objective_ == pytest.approx(clone(model).fit(X[rows], y[rows]).objective_, rel=3e-6)


def test_feature_names_do_not_outlive_their_table(iris, bags):
    X, y = iris
    model = StructuredSVM(Multiclass()).fit(pd.DataFrame(X, columns=list("abcd")), y)
    model.fit(X.tolist(), y)
    assert not hasattr(model, "feature_names_in_")


def test_overlapping_threaded_fits_leave_blas_as_it_was(digits):
    X, y = digits
    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    jobs = [
        threading.Thread(target=StructuredSVM(Multiclass(), n_jobs=2).fit, args=(X[: 200 * k], y[: 200 * k]))
        for k in (2, 4, 8)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"] == before


def test_warm_start_on_smaller_bags_never_reads_beyond_them(bags):
    X, y, hidden = bags
    model = StructuredSVM(Candidates(), C=10, warm_start=True).fit(X, y, hidden=hidden)
    first = Ragged(X.values[X.offsets[:-1]], np.arange(len(y) + 1))
    warm = model.fit(first, y)
    cold = StructuredSVM(Candidates(), C=10).fit(first, y)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-3)


def test_labels_of_any_kind(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for labels in (names, names.astype(object), pd.Series(names), pd.Categorical(names), names.tolist()):
        model = StructuredSVM(Multiclass(), C=10).fit(X, labels)
        assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
        assert model.score(X, labels) > 0.9
    model = StructuredSVM(Multiclass(), C=10).fit(X, y == 1)
    assert model.predict(X).dtype == bool
    listed = StructuredSVM(Multiclass(classes=["virginica", "setosa", "versicolor", "unseen"]), C=10).fit(X, names)
    assert listed.classes_.tolist() == ["virginica", "setosa", "versicolor", "unseen"]
    assert listed.score(X, names) > 0.9


def test_a_class_missing_from_a_fold_counts_as_an_error(iris):
    X, y = iris
    model = StructuredSVM(Multiclass(), C=10).fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) == 0
    assert model.score(X, y) == pytest.approx((model.predict(X) == y).mean())


def test_data_frames_keep_their_feature_names(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = StructuredSVM(Multiclass(), C=10).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("dcba")])


def test_html_shows_the_certificate(iris):
    X, y = iris
    model = StructuredSVM(Multiclass())
    assert "Multiclass" in model._repr_html_()
    assert "lower bound" not in model._repr_html_()
    assert "lower bound" in model.fit(X, y)._repr_html_()


def test_not_fitted_is_said(iris):
    with pytest.raises(NotFittedError):
        StructuredSVM(Multiclass()).predict(iris[0])


def test_the_problem_is_never_written_to(iris):
    problem = Multiclass()
    before = dict(vars(problem))
    StructuredSVM(problem).fit(*iris)
    assert vars(problem) == before


def test_stopping_early_warns_and_keeps_the_model(iris):
    X, y = iris
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = StructuredSVM(Multiclass(), C=100, max_iter=2).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ == 2
    assert model.objective_ > model.bound_
    with pytest.warns(ConvergenceWarning, match="callback"):
        model = StructuredSVM(Multiclass(), C=100, callbacks=[lambda step: step.iteration >= 4]).fit(X, y)
    assert model.n_iter_ == 4


def test_history_is_a_table(iris):
    model = StructuredSVM(Multiclass()).fit(*iris)
    frame = pd.DataFrame(model.history_)
    assert list(frame.columns) == ["iteration", "seconds", "objective", "bound", "planes"]
    assert frame.objective.is_monotonic_decreasing
    assert frame.bound.is_monotonic_increasing
    assert frame.seconds.is_monotonic_increasing


def test_pickles_work_within_a_session(iris):
    model = StructuredSVM(Multiclass(), warm_start=True).fit(*iris)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).coef_, model.coef_)


def test_a_shell_does_not_complete_attributes_that_serve_tacit():
    names = dir(StructuredSVM(Multiclass()))
    assert {"fit", "predict", "impute", "C"} <= set(names)
    assert not {"check", "learned", "learned_attributes", "traits"} & set(names)
