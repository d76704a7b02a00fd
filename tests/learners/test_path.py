"""The path along C: the same models as separate fits, for less work."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tacit
from tacit import LatentSVM, StructuredSVM
from tacit.problems import Candidates, Chain, Multiclass
from tacit.solvers import FrankWolfe, Status

CS = [30.0, 1.0, 3.0, 10.0]


@pytest.mark.parametrize("solver", ["auto", FrankWolfe()], ids=str)
def test_the_path_equals_separate_fits_with_fewer_passes(digits, solver):
    X, y = digits
    models = tacit.path(StructuredSVM(Multiclass(), solver=solver, tol=1e-4), X, y, CS)
    alone = [StructuredSVM(Multiclass(), C=C, solver=solver, tol=1e-4).fit(X, y) for C in CS]
    assert [model.C for model in models] == CS
    for one, other in zip(models, alone, strict=True):
        assert one.objective_ == pytest.approx(other.objective_, rel=1e-4)
        assert one.bound_ <= other.objective_
        assert other.bound_ <= one.objective_
    assert sum(model.n_iter_ for model in models) < sum(model.n_iter_ for model in alone)


def test_models_of_a_path_are_their_own(bags):
    X, y, hidden = bags
    estimator = StructuredSVM(Candidates())
    models = tacit.path(estimator, X, y, [1, 100], hidden=hidden)
    assert not hasattr(estimator, "coef_")
    assert not models[0].warm_start
    assert not np.array_equal(models[0].coef_, models[1].coef_)
    assert models.score(X, y).shape == (2,)
    with pytest.raises(ValueError, match="cv=5"):
        _ = models.best


def test_folds_choose_C(digits):
    X, y = digits
    models = tacit.path(StructuredSVM(Multiclass()), X[:600], y[:600], [0.01, 10, 100], cv=3)
    assert models.scores.shape == (3, 3)
    assert models.best.C > 0.01
    assert models.best.score(X[600:], y[600:]) > 0.85


def test_sequences_can_be_cross_validated():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, 2)) for n in rng.integers(1, 5, 30)]
    y = [["neg" if v < 0 else "pos" for v in x[:, 0]] for x in X]
    models = tacit.path(StructuredSVM(Chain(fit_intercept=True)), X, y, [0.1, 100], cv=3)
    assert models.best.C == 100
    assert models.scores[1].min() > 0.8


@pytest.mark.parametrize(
    ("Cs", "keyword"),
    [([1, -2], "-2.0"), ([], "Cs"), ([np.nan], "nan")],
)
def test_values_of_C_that_cannot_be_are_refused(Cs, keyword):
    with pytest.raises(ValueError, match=keyword):
        tacit.path(StructuredSVM(Multiclass()), np.eye(3), [0, 1, 2], Cs)


def test_an_estimator_without_C_is_refused():
    with pytest.raises(TypeError, match="warm_start"):
        tacit.path(make_pipeline(StandardScaler(), StructuredSVM(Multiclass())), np.eye(3), [0, 1, 2], [1])


def test_folds_keep_the_shares_of_labels_of_any_kind():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    for labels in (names, names.tolist(), names.astype(str)):
        assert tacit.path(StructuredSVM(Multiclass()), X, labels, [100], cv=3).scores.mean() > 0.9
    assert tacit.path(StructuredSVM(Multiclass()), X.tolist(), y.tolist(), [100], cv=3).scores.mean() > 0.9


@pytest.mark.parametrize(
    ("change", "kind", "keyword"),
    [
        ({"Cs": None}, ValueError, "Cs"),
        ({"Cs": "abc"}, ValueError, "abc"),
        ({"estimator": StructuredSVM}, TypeError, "StructuredSVM"),
        ({"sample_weight": 2.0, "cv": 3}, ValueError, "sample_weight"),
        ({"estimator": StructuredSVM(Multiclass(), checkpoint="state")}, ValueError, "checkpoint"),
    ],
)
def test_what_a_path_cannot_take_is_said(change, kind, keyword):
    settings = {"estimator": StructuredSVM(Multiclass()), "Cs": [1.0], **change}
    with pytest.raises(kind, match=keyword):
        tacit.path(X=np.eye(6), y=[0, 1, 2, 0, 1, 2], **settings)


def test_a_latent_path_starts_from_the_hidden_values_of_the_last_fit(bags):
    X, y, _ = bags
    models = tacit.path(LatentSVM(Candidates(), n_init=1), X, y, [1, 10, 100])
    alone = LatentSVM(Candidates(), C=100).fit(X, y)
    assert [model.C for model in models] == [1, 10, 100]
    assert models[2].status_ is Status.CONVERGED
    again = LatentSVM(Candidates(), C=100, init=models[1].hidden_).fit(X, y)
    assert models[2].objective_ <= max(again.objective_, alone.objective_) + 100 * 1e-3
    assert not models[0].warm_start
