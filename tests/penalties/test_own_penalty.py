"""A penalty from outside of the package: that of the page docs/own_solver.md."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tacit import LatentSVM, StructuredSVM
from tacit.penalties import Quadratic
from tacit.problems import Candidates, Multiclass
from tacit.solvers import Bundle, FrankWolfe
from tests.pages import run_block

X, Y = load_iris(return_X_y=True)
PRICES = np.tile([1.0, 1.0, 5.0, 5.0, 1.0], 3)


@pytest.fixture(scope="module")
def prices():
    page = run_block("own_solver.md", 2, {"StructuredSVM": StructuredSVM, "Multiclass": Multiclass, "X": X, "y": Y})
    return page["Prices"]


@pytest.mark.parametrize("solver", [Bundle(), Bundle(proximal=False), FrankWolfe()])
def test_it_ends_where_the_same_metric_of_tacit_does(prices, solver):
    own = StructuredSVM(Multiclass(), C=1, penalty=prices(PRICES), solver=solver).fit(X, Y)
    known = StructuredSVM(Multiclass(), C=1, penalty=Quadratic(PRICES), solver=solver).fit(X, Y)
    assert own.bound_ <= known.objective_ * (1 + 1e-9)
    assert known.bound_ <= own.objective_ * (1 + 1e-9)


def test_a_latent_learner_takes_it(prices):
    example = Candidates().example(np.random.default_rng(0))
    plain = LatentSVM(Candidates(), C=1, verbose=0).fit(example.X, example.y)
    model = LatentSVM(Candidates(), C=1, penalty=prices(np.full(plain.coef_.size, 2.0)), verbose=0)
    assert np.isfinite(model.fit(example.X, example.y).objective_)


def test_its_own_check_is_asked(prices):
    with pytest.raises(ValueError, match="prices"):
        StructuredSVM(Multiclass(), penalty=prices(np.ones(3))).fit(X, Y)
