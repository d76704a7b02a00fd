"""What the contracts promise beyond maxima: penalties, constants, sets of hidden values, distributions, shards."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from tacit import AnyOf, IterativeLatentSVM, LatentSVM, Ragged, SelfPaced, StructuredSVM, path
from tacit.datasets import planted_motif
from tacit.oracle import Task, read_hidden
from tacit.penalties import Quadratic
from tacit.problems import Candidates, Chain, Motif, Multiclass, PerSample
from tacit.runtime import Status, blocks, parallel
from tacit.solvers import Bundle, FrankWolfe, minimise
from tacit.testing import example_task

# penalties and constants


@pytest.mark.parametrize("solver", [Bundle(), FrankWolfe()], ids=repr)
def test_a_metric_is_a_scale_of_the_features(digits, solver):
    X, y = digits[0][:300], digits[1][:300]
    scale = np.linspace(0.5, 2.0, X.shape[1])
    metric = np.tile(scale**2, 10)
    problem = Multiclass(fit_intercept=False)
    one = StructuredSVM(problem, C=10, tol=1e-6, solver=solver, penalty=Quadratic(metric)).fit(X, y)
    other = StructuredSVM(problem, C=10, tol=1e-6, solver=solver).fit(X / scale, y)
    assert one.objective_ == pytest.approx(other.objective_, rel=3e-6)
    np.testing.assert_allclose(one.coef_ * np.sqrt(metric), other.coef_, atol=2e-3)


def test_latent_learners_take_a_penalty(bags):
    X, y, _ = bags
    scale = np.array([1.0, 2.0, 0.5, 1.5])
    problem = Candidates(fit_intercept=False)
    shared = {"C": 20, "tol": 1e-6, "init": np.zeros(40, int), "pace": SelfPaced()}
    one = LatentSVM(problem, penalty=Quadratic(np.tile(scale**2, 3)), **shared).fit(X, y)
    other = LatentSVM(problem, **shared).fit(X.with_values(X.values / scale), y)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-4)


@pytest.mark.parametrize(
    ("penalty", "keyword"),
    [
        (Quadratic(np.ones(3)), "metric"),
        (Quadratic(0.0), "metric"),
        (Quadratic(np.nan), "nan"),
    ],
)
def test_penalties_that_do_not_fit_are_refused(bags, penalty, keyword):
    with pytest.raises(ValueError, match=keyword):
        StructuredSVM(Candidates(), penalty=penalty).fit(bags[0], bags[1], hidden=bags[2])


def test_a_number_as_penalty_is_refused(bags):
    with pytest.raises(TypeError, match="penalty"):
        LatentSVM(Candidates(), penalty=2.0).fit(bags[0], bags[1])


@pytest.mark.parametrize("solver", [Bundle(), FrankWolfe(), FrankWolfe(block_size=2)], ids=repr)
@pytest.mark.parametrize("problem", [Multiclass(), Candidates(), Chain()], ids=lambda p: type(p).__name__)
def test_a_constant_per_sample_moves_the_objective_and_nothing_else(problem, solver):
    task = example_task(problem, seed=2, C=5.0)
    constants = np.linspace(-1.0, 3.0, task.oracle.n_samples)
    moved = Task(task.oracle, task.weights, task.target, Quadratic(), baseline=constants)
    plain, shifted = (minimise(t, solver, tol=1e-7, gap=1e-6, max_iter=20000) for t in (task, moved))
    shift = float(task.weights @ constants)
    assert shifted.status is Status.CONVERGED
    assert shifted.objective == pytest.approx(plain.objective - shift, abs=1e-5)
    assert shifted.bound <= shifted.objective
    np.testing.assert_allclose(moved.slack(plain.w)[0], task.slack(plain.w)[0] - constants)


# known hidden values


def test_sets_are_read_from_lists_masks_and_ragged():
    sizes = np.array([2, 3, 4, 1])
    states, allowed = read_hidden([1, [0, 2], AnyOf([3]), None], sizes)
    assert states.tolist() == [1, -1, 3, -1]
    assert allowed[2:5].tolist() == [True, False, True]
    masks = Ragged(np.array([1, 0, 1, 1, 0, 1, 1, 1, 1, 1], dtype=bool), [0, 2, 5, 9, 10])
    states, allowed = read_hidden(masks, sizes)
    assert states.tolist() == [0, -1, -1, -1]
    assert allowed[2:5].tolist() == [True, True, False]
    states, allowed = read_hidden([{0, 1}, -1, -1, 0], sizes)
    assert states.tolist() == [-1, -1, -1, -1]  # all of two, nothing, nothing, and the only one there is
    assert allowed is None


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        ([0, []], r"hidden\[1\]"),
        ([0, [0, 5]], r"hidden\[1\].*5"),
        ([0, [False, False, False]], r"hidden\[1\]"),
        ([0, [True, False]], r"hidden\[1\].*mask"),
        ([7, [0, 1]], r"hidden\[0\].*7"),
        ([True, [0, 1]], r"hidden\[0\].*True"),
        (["a", [0, 1]], r"hidden\[0\].*'a'"),
        ([[0, 1]], "2 samples"),
        ([0, [0.5, 1]], r"hidden\[1\].*0.5"),
    ],
)
def test_sets_that_cannot_be_are_named(hidden, words):
    with pytest.raises(ValueError, match=words):
        read_hidden(hidden, np.array([2, 3]))


def test_hidden_values_stay_in_their_sets(bags):
    X, y, hidden = bags
    allowed = [[h, (h + 1) % size] for h, size in zip(hidden, X.lengths, strict=True)]
    for start in range(3):
        model = LatentSVM(Candidates(), C=50, random_state=start).fit(X, y, hidden=allowed)
        assert all(h in some for h, some in zip(model.hidden_, allowed, strict=True))
    outside = LatentSVM(Candidates(), C=50).fit(X, y).hidden_
    assert not all(h in some for h, some in zip(outside, allowed, strict=True))


def test_any_of_says_that_a_users_own_hidden_value_is_one_of_a_few():
    outputs = [(label, h) for label in (0, 1) for h in ("left", "right", "middle")]
    place = {"left": 0, "right": 1, "middle": 2}
    problem = PerSample(lambda x, y, h: np.eye(3)[place[h]] * x * (2 * y - 1), outputs=outputs, hidden=True)
    known = [AnyOf(["left", "right"]), "middle", None, AnyOf(["right"])]
    model = LatentSVM(problem, C=10, n_init=3).fit([1.0, 2.0, -1.0, -2.0], [1, 1, 0, 0], hidden=known)
    assert model.hidden_[0] in ("left", "right")
    assert model.hidden_[[1, 3]].tolist() == ["middle", "right"]
    called = PerSample(lambda x, y, h: [x], lambda x, w: (0, 0), hidden=True, blocks={"w": (1,)})
    with pytest.raises(ValueError, match=r"hidden\[0\].*AnyOf"):
        StructuredSVM(called).fit([1.0, 2.0], [1, 0], hidden=[AnyOf(["left", "right"]), 0])


def test_motifs_are_known_to_a_stretch_or_a_strand():
    X, y, start = planted_motif(120, 40, "TGACTCA", seed=0)
    near = [-1 if s < 0 else list(range(max(0, s - 5), min(s + 5, 34))) for s in start]
    model = LatentSVM(Motif(width=7), C=20).fit(X, y, hidden=near)
    assert all(s < 0 or abs(s - found) <= 5 for s, found in zip(start, model.hidden_, strict=True))
    strand = [(-1, -1) if s < 0 else (-1, 0) for s in start]
    both = LatentSVM(Motif(width=7, strands="both"), C=20).fit(X, y, hidden=strand)
    assert (both.hidden_[y == 1, 1] == 0).all()


def test_losses_are_measured_to_the_nearest_allowed_value_or_to_the_mean():
    bags = Ragged.from_list([[[0.0], [1.0], [2.0], [3.0]]] * 2).with_boxes([[[i, 0, i + 4, 4] for i in range(4)]] * 2)
    problem = Candidates(loss="overlap", classes=["x", "y"])
    schema = problem.schema(bags, ["x", "y"])
    oracle = problem.bind(bags, ["x", "y"], schema)
    apart = 1 - np.array([[max(0, 4 - abs(i - j)) / (4 + abs(i - j)) for j in range(4)] for i in range(4)])

    def costs(measured):
        codes = [measured.encode(["x", "y"], [h, h]) for h in range(4)]
        return np.array([measured.loss(code) for code in codes]).T

    near = problem.bind(bags, ["x", "y"], schema, hidden=[[0, 3], -1])
    np.testing.assert_allclose(costs(near), [apart[[0, 3]].min(axis=0), np.zeros(4)], atol=1e-6)
    posterior = np.array([0.5, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0, 1.0])
    mean = oracle.measured_against(posterior=posterior)
    np.testing.assert_allclose(costs(mean), [posterior[:4] @ apart, apart[3]], atol=1e-6)
    called = Candidates(loss=lambda t, h, y, k: float(t != y) or apart[h, k], classes=["x", "y"])
    for one in (called.bind(bags, ["x", "y"], schema, hidden=[[0, 3], -1]), called.bind(bags, ["x", "y"], schema)):
        expected = near if one._allowed is not None else oracle
        np.testing.assert_allclose(costs(one), costs(expected), atol=1e-6)
    np.testing.assert_allclose(
        costs(called.bind(bags, ["x", "y"], schema).measured_against(posterior=posterior)), costs(mean), atol=1e-6
    )
    with pytest.raises(ValueError, match="posterior="):
        oracle.measured_against()


def test_posteriors_are_those_of_the_scores(bags):
    X, y, hidden = bags
    problem = Candidates()
    schema = problem.schema(X, y)
    known = np.where(np.arange(40) % 4 == 0, hidden, -1)
    oracle = problem.bind(X, y, schema, hidden=known)
    w = np.random.default_rng(0).standard_normal(oracle.n_params)
    found = oracle.hidden_posterior(w, power=0.7)
    scores = problem.bind(X, y, schema).scores(w)
    for i, (a, b) in enumerate(itertools.pairwise(X.offsets)):
        row = 0.7 * scores[list(schema.classes).index(y[i]), a:b]
        expected = np.exp(row - logsumexp(row)) if known[i] < 0 else np.arange(b - a) == known[i]
        np.testing.assert_allclose(found[a:b], expected)


def test_sums_over_missing_tags_equal_enumeration():
    rng = np.random.default_rng(0)
    X = Ragged(rng.standard_normal((9, 2)), [0, 3, 4, 9])
    y = [["a", None, "b"], [None], [None, "a", None, None, "b"]]
    problem = Chain(classes=["a", "b", "c"], boundaries=True, forbidden=[("c", "c")])
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema)
    w, coef = rng.standard_normal(oracle.n_params), rng.standard_normal(3)
    found = oracle.expectations(w, free=0.5 * coef, truth=coef)
    assert oracle.expectations(w, free=0.0).features is None
    total = np.zeros(oracle.n_params)
    for i, tags in enumerate(y):
        for kind, share in (("free", 0.5), ("truth", 1.0)):
            options = ["abc" if tag is None or kind == "free" else tag for tag in tags]
            outputs = [o for o in itertools.product(*options) if ("c", "c") not in itertools.pairwise(o)]
            codes = [oracle.encode([list(o)], rows=slice(i, i + 1)) for o in outputs]
            scores = np.array([oracle.score(w, code, slice(i, i + 1))[0] for code in codes])
            assert getattr(found, kind)[i] == pytest.approx(logsumexp(scores))
            for code, p in zip(codes, np.exp(scores - logsumexp(scores)), strict=True):
                total += oracle.features(code, np.array([share * coef[i] * p]), slice(i, i + 1))
    np.testing.assert_allclose(found.features, total, atol=1e-12)


# what is shared, read and asked


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that data for a test are cut into several."""
    monkeypatch.setattr(blocks, "_block_operations", 200_000)


def large_bags():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((600, 8, 60)).astype(np.float32)
    y = np.arange(600) % 4
    values[np.arange(600), rng.integers(0, 8, 600), y] += 4
    return Ragged(values.reshape(-1, 60), np.arange(601) * 8), y


def large_motifs():
    X, y, _ = planted_motif(1500, 60, "GATTACA", noise=0.3, seed=0)
    return X, y


def large_chains():
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 20, 200)
    values = rng.standard_normal((lengths.sum(), 30))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Ragged(values, offsets), Ragged(values[:, :12].argmax(axis=1), offsets)


@pytest.mark.parametrize(
    ("make", "learner"),
    [
        (large_bags, LatentSVM(Candidates(), C=10, max_iter=4, tol=0.05)),
        (large_motifs, LatentSVM(Motif(width=7), C=10, max_iter=3, tol=0.05)),
        (large_chains, StructuredSVM(Chain(), C=5, tol=0.05)),
        (large_chains, StructuredSVM(Chain(), C=5, tol=0.1, solver=FrankWolfe())),
    ],
    ids=["bags", "motifs", "chains", "chains by Frank-Wolfe"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_number_of_threads_gives_the_same_bits(make, learner, small_blocks):
    X, y = make()
    problem = learner.problem
    oracle = problem.bind(X, y, problem.schema(X, y))
    assert len(blocks.block_cuts(oracle, oracle.n_samples)) > 3, "too small to be shared: this would test nothing"
    one, *others = (learner.set_params(n_jobs=n).fit(X, y).coef_.copy() for n in (1, None, 2, 3))
    assert one.any()
    assert all(np.array_equal(one, other) for other in others)


def test_blocks_of_any_call_agree_with_the_whole(small_blocks):
    X, y = large_bags()
    problem = Candidates()
    oracle = problem.bind(X, y, problem.schema(X, y))
    w = np.random.default_rng(1).standard_normal(oracle.n_params)
    coef = np.random.default_rng(2).standard_normal(600)
    with parallel(oracle, 2) as shards:
        for rows in (None, slice(100, 600), np.arange(0, 600, 2)):
            own = coef if rows is None else coef[rows]
            code = shards.predict_augmented(w, rows).code
            assert np.array_equal(code, oracle.predict_augmented(w, rows).code)
            assert np.array_equal(shards.best_hidden(w, code, 2, rows).code, oracle.best_hidden(w, code, 2, rows).code)
            np.testing.assert_allclose(shards.label_scores(w, rows), oracle.label_scores(w, rows), rtol=1e-4)
            for found, expected in (
                (shards.features(code, own, rows), oracle.features(code, own, rows)),
                (shards.expectations(w, rows, free=own, label=0.5).features,
                 oracle.expectations(w, rows, free=own, label=0.5).features),
            ):  # fmt: skip
                np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("learner", [StructuredSVM, LatentSVM])
def test_input_is_read_once(learner, bags, monkeypatch):
    X, y, hidden = bags
    calls = []
    read = Candidates.read
    monkeypatch.setattr(Candidates, "read", lambda self, X: calls.append(1) or read(self, X))
    model = learner(Candidates()).fit(X, y, hidden=hidden)
    assert len(calls) == 1
    model.predict(X)
    assert len(calls) == 2


@pytest.mark.parametrize("problem", [Candidates(), Motif(2, background=1)], ids=lambda p: type(p).__name__)
def test_asking_which_values_exist_scores_nothing(problem, monkeypatch):
    example = problem.example(np.random.default_rng(0))
    oracle = problem.bind(example.X, example.y, problem.schema(example.X, example.y))
    monkeypatch.setattr(type(oracle), "scores", lambda *args: pytest.fail("scored"))
    oracle.hidden_unknown()
    oracle.draw(np.random.default_rng(0))


# what a latent fit certifies


def test_a_latent_fit_promises_no_bound_it_does_not_have(bags):
    X, y, hidden = bags
    model = LatentSVM(Candidates(), C=50, n_init=4).fit(X, y)
    assert (model.bound_, model.gap_) == (-np.inf, np.inf)
    assert 0 <= model.inner_gap_ <= 50 * 1e-3
    ends = [run.objective for run in model.runs_]
    assert all(part in model._repr_html_() for part in ("4 starts", f"{min(ends):.6g}", f"{max(ends):.6g}"))
    assert "above the optimum" not in model._repr_html_()
    known = LatentSVM(Candidates(), C=50).fit(X, y, hidden=hidden)
    optimum = StructuredSVM(Candidates(), C=50, tol=1e-7).fit(X, y, hidden=hidden).objective_
    assert known.bound_ <= optimum <= known.objective_ + 1e-9
    assert "above the optimum" in known._repr_html_()
    alone = IterativeLatentSVM(Candidates(), C=50).fit(X, y)
    assert "other starts (n_init) may end lower" in alone._repr_html_()


def test_a_path_of_latent_fits_starts_from_the_last_one(bags):
    X, y, _ = bags
    models = path(LatentSVM(Candidates(), n_init=1), X, y, [100.0, 1.0, 10.0], cv=2)
    assert [model.C for model in models] == [100.0, 1.0, 10.0]
    assert models.scores.shape == (3, 2)
    again = LatentSVM(Candidates(), C=100.0, init=models[2].impute(X, y)).fit(X, y)
    assert models[0].objective_ <= again.objective_ + 0.1
    assert not models[0].warm_start


def test_a_warm_start_begins_at_the_present_weights(bags):
    X, y, _ = bags
    model = LatentSVM(Candidates(), C=50, n_init=5, warm_start=True).fit(X, y)
    before, steps = model.objective_, model.n_iter_
    model.set_params(n_init=1).fit(X, y)
    assert model.objective_ <= before + 50 * 1e-3
    assert model.n_iter_ < steps
