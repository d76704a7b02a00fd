"""Slack rescaling where outputs cannot be listed, against enumeration: `tacit.oracle.slack_search`."""

import numpy as np
import pytest

import tacit
from tacit import LatentSVM, StructuredSVM, testing
from tacit.oracle import CapabilityError
from tacit.oracle.slack_search import common_unit
from tacit.problems import Alignment, Chain, Coreference, Regions, Sentences
from tacit.runtime import parallel
from tacit.runtime.blocks import smallest_blocks
from tacit.solvers import Bundle, FrankWolfe, Subgradient, minimise
from tacit.testing.enumeration import Enumeration, bracket_optimum
from tacit.testing.problem_checks import lower_bounds

COSTS = [[0, 1, 3], [2, 0, 0.5], [1, 1, 0]]
PROBLEMS = [
    Chain(classes=["ant", "bee", "cat"]),
    Chain(classes=["cat", "ant", "bee"], loss=COSTS, fit_intercept=True),
    Chain(classes=["ant", "bee"], states=2, forbidden=[("ant", "bee")]),
    Regions(labels=["ground", "horse"]),
    Regions(labels=[3, 1, 2], pairwise=False, loss="overlap"),
    Coreference(),
    Coreference(links="forest"),
    Alignment(wrong_link=0.3),
    Sentences(),
]
WHOLE = [PROBLEMS[0], PROBLEMS[5], Coreference(links="forest", r=1.0)]
"""Problems whose losses have a common unit, and how much it is."""


class Case:
    """An example of a problem with all its outputs, and its slack-rescaled task."""

    def __init__(self, problem, seed):
        self.rng = np.random.default_rng(seed)
        self.task = testing.example_task(problem, seed, C=5.0, rescaling="slack")
        example = problem.example(np.random.default_rng(seed))
        self.table, schema = Enumeration(example), problem.schema(example.X, example.y)
        self.lower = lower_bounds(problem, schema)

    def weights(self, scale):
        return np.maximum(scale * self.rng.standard_normal(self.task.oracle.n_params), self.lower)

    def points(self, i, w):
        """The losses and violations of all outputs of a sample."""
        scores = self.table.features[i] @ w
        return self.table.losses[i], 1 + scores - scores[self.table.target(i)]

    def products(self, w):
        return np.array([np.multiply(*self.points(i, w)).max() for i in range(self.table.n)])


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_largest_product_is_between_what_is_found_and_the_bound(problem):
    closed = total = 0
    for seed in range(8):
        case = Case(problem, seed)
        oracle, target = case.task.oracle.exact(), case.task.target
        for scale in (0.0, 0.3, 2.0):
            w = case.weights(scale)
            code, bound = oracle.predict_augmented(w, target=target, rescaling="slack")
            found = oracle.loss(code) * (1 + oracle.score(w, code) - oracle.score(w, target))
            exact = case.products(w)
            assert (found <= exact + 1e-9).all()
            assert (exact <= bound + 1e-9).all()
            assert (found >= 0).all()
            closed += np.count_nonzero(bound - found < 1e-8)
            total += bound.size
    assert closed > 0.7 * total  # of the rest, the largest product on the hull is not that of an output


@pytest.mark.parametrize("problem", WHOLE, ids=str)
def test_the_bound_is_the_largest_product_on_the_concave_hull(problem):
    """The hull at a loss is the least over λ of max [v + λ ℓ] − λ · loss; it bends where two outputs tie."""
    for seed in range(6):
        case = Case(problem, seed)
        oracle = case.task.oracle.exact()
        w = case.weights(1.0)
        bound = oracle.predict_augmented(w, target=case.task.target, rescaling="slack").value
        levels = oracle.loss_levels()
        for i in range(case.table.n):
            losses, violations = case.points(i, w)
            gaps = losses[:, None] - losses
            slopes = (violations - violations[:, None])[gaps > 0] / gaps[gaps > 0]
            factors = np.append(slopes[slopes > 0], [0.0, 1e9])
            tops = (violations + factors[:, None] * losses).max(axis=1)
            largest = 0.0
            for loss in np.arange(levels.unit[i], losses.max() + 1e-9, levels.unit[i]):
                if loss >= losses[losses > 0].min() - 1e-9:
                    largest = max(largest, loss * (tops - factors * loss).min())
            assert bound[i] == pytest.approx(largest, abs=1e-6), (seed, i)


@pytest.mark.parametrize("problem", PROBLEMS[:1] + PROBLEMS[3:4] + PROBLEMS[5:7], ids=str)
def test_rows_and_blocks_have_the_same_answer(problem):
    case = Case(problem, 1)
    oracle, target, w = case.task.oracle, case.task.target, case.weights(1.0)
    whole = oracle.predict_augmented(w, target=target, rescaling="slack")
    with smallest_blocks(), parallel(oracle, 2) as shards:
        shared = shards.predict_augmented(w, target=target, rescaling="slack")
    np.testing.assert_array_equal(shared.code, whole.code)
    np.testing.assert_array_equal(shared.value, whole.value)
    own = slice(int(oracle.offsets[1]), int(oracle.offsets[3]))
    for rows in (slice(1, 3), np.array([1, 2])):
        part = oracle.predict_augmented(w, rows, target=target[own], rescaling="slack")
        np.testing.assert_array_equal(part.code, whole.code[own])
        np.testing.assert_array_equal(part.value, whole.value[1:3])


@pytest.mark.parametrize("solver", [Bundle(), FrankWolfe(), Subgradient()], ids=str)
@pytest.mark.parametrize("problem", [PROBLEMS[1], PROBLEMS[5]], ids=str)
def test_certificates_hold_the_true_optimum(problem, solver):
    for seed in range(3):
        case = Case(problem, seed)
        task, table = case.task, case.table
        solution = minimise(task, solver, tol=0.05, max_iter=300)
        rows = [
            loss[:, None] * (psi[table.target(i)] - psi)
            for i, (psi, loss) in enumerate(zip(table.features, table.losses, strict=True))
        ]
        optimum = bracket_optimum(rows, table.losses, task.weights, 1e-6)
        assert solution.bound <= optimum.objective + 1e-6
        true = 0.5 * solution.w @ solution.w + task.weights @ np.maximum(case.products(solution.w), 0)
        assert solution.objective - solution.inference_gap - 1e-6 <= true <= solution.objective + 1e-6
        assert true >= optimum.bound - 1e-6
        assert 0 <= solution.inference_gap <= solution.gap


def test_learners_tell_what_inference_leaves_open(tmp_path):
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, 4) for _ in range(30)]
    X = [np.eye(3)[tags] + rng.standard_normal((4, 3)) for tags in y]
    models = [StructuredSVM(Chain(), C=10, rescaling=how, tol=0.2).fit(X, y) for how in ("margin", "slack")]
    margin, slack = models
    assert margin.inference_gap_ == 0.0 < slack.inference_gap_ <= slack.gap_
    assert slack.score(X, y) > 0.6
    slack.save(tmp_path / "model")
    assert tacit.load(tmp_path / "model").inference_gap_ == slack.inference_gap_
    missing = [np.where(rng.random(4) < 0.3, -1, tags) for tags in y]
    latent = LatentSVM(Chain(), C=10, rescaling="slack", tol=0.05, random_state=0).fit(X, missing)
    assert 0 < latent.inference_gap_ < latent.objective_
    assert np.isinf(latent.gap_)


def test_a_resumed_fit_is_the_same(tmp_path):
    rng = np.random.default_rng(1)
    y = [rng.integers(0, 3, 5) for _ in range(20)]
    X = [np.eye(3)[tags] + rng.standard_normal((5, 3)) for tags in y]
    model = StructuredSVM(Chain(), C=10, rescaling="slack", tol=0.2)
    whole = model.fit(X, y)
    model = StructuredSVM(Chain(), C=10, rescaling="slack", tol=0.2, checkpoint=tmp_path / "run")
    model.set_params(callbacks=[lambda step: step.iteration == 8])
    with pytest.warns(UserWarning, match="callback"):
        model.fit(X, y)
    model.set_params(callbacks=None, resume=True).fit(X, y)
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    assert model.inference_gap_ == whole.inference_gap_


def test_what_is_impossible_is_refused_with_the_reason():
    three = Regions(labels=[1, 2, 3])
    example = three.example(np.random.default_rng(0))
    with pytest.raises(CapabilityError, match="exact"):
        StructuredSVM(three, rescaling="slack").fit(example.X, example.y)
    oracle = three.bind(example.X, example.y, three.schema(example.X, example.y))
    with pytest.raises(ValueError, match="exact"):
        oracle.predict_augmented(np.zeros(oracle.n_params), rescaling="slack")
    assert oracle.rescalings == ("margin",)


def test_units_of_losses():
    assert common_unit(np.array([0.0, 0.1, 0.25])) == pytest.approx(0.05)
    assert common_unit(np.random.default_rng(0).random(20)) == 0.0
