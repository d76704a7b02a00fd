"""A user's plain functions for one sample become a problem that every learner works on."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tacit
from tacit import Ragged, StructuredSVM
from tacit.oracle import CapabilityError, Task
from tacit.penalties import Quadratic
from tacit.problems import Multiclass, PerSample
from tacit.runtime import Processes, parallel, processes
from tacit.runtime.archive import StorageError
from tacit.solvers import Bundle, Status, minimise
from tacit.testing import check_learner, check_problem
from tacit.testing.per_sample import (
    SETTINGS,
    best_shift,
    best_shifted,
    shift_feature,
    shift_loss,
    shift_outputs,
    worst_shifted,
)

WIDTH = 65


def joint_feature(x, y):
    feature = np.zeros((10, WIDTH))
    feature[y] = x
    return feature.ravel()


def argmax(x, w):
    return int(np.argmax(w.reshape(10, WIDTH) @ x))


def augmented(x, true, w):
    return int(np.argmax(w.reshape(10, WIDTH) @ x + (np.arange(10) != true)))


LISTED = PerSample(joint_feature, outputs=range(10))
CALLED = PerSample(joint_feature, argmax, augmented=augmented)


@pytest.mark.parametrize("problem", [LISTED, CALLED, PerSample(joint_feature, argmax, outputs=lambda x: range(10))])
def test_digits_have_the_optimum_of_multiclass(digits, problem):
    X, y = digits[0][:500], digits[1][:500]
    ours = StructuredSVM(problem, tol=1e-4).fit(X, y)
    theirs = StructuredSVM(Multiclass(fit_intercept=False), tol=1e-4).fit(X, y)
    assert ours.status_ is Status.CONVERGED
    assert ours.bound_ <= theirs.objective_
    assert theirs.bound_ <= ours.objective_
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-4)
    assert (ours.predict(digits[0][500:]) == theirs.predict(digits[0][500:])).mean() > 0.99
    assert ours.classes_.tolist() == list(range(10))


def test_listed_outputs_give_scores_of_all_labels(digits):
    X, y = digits[0][:100], digits[1][:100]
    model = StructuredSVM(LISTED).fit(X, y)
    assert (model.decision_function(X).argmax(axis=1) == model.predict(X)).all()


def test_slack_rescaling_needs_listed_outputs(digits):
    X, y = digits[0][:60], digits[1][:60]
    tasks = []
    for problem in (LISTED, Multiclass(fit_intercept=False)):
        oracle = problem.bind(X, y, problem.schema(X, y))
        assert "slack" in oracle.rescalings
        target = oracle.impute(np.zeros(oracle.n_params)).code
        tasks.append(Task(oracle, np.full(60, 0.5), target, Quadratic(), rescaling="slack"))
    ours, theirs = (minimise(task, Bundle(), tol=1e-4) for task in tasks)
    assert ours.objective == pytest.approx(theirs.objective, rel=2e-4)
    called = CALLED.bind(X, y, CALLED.schema(X, y))
    assert called.rescalings == ("margin",)
    with pytest.raises(ValueError, match="outputs="):
        called.predict_augmented(np.zeros(650), target=target, rescaling="slack")


def test_the_cost_of_every_function_is_reported(digits):
    costs = CALLED.costs(digits[0][:50], digits[1][:50])
    assert costs["argmax"].calls == costs["augmented"].calls == 50
    assert all(cost.microseconds > 0 for cost in costs.values())


# what a function returns is checked


def wrong(sample, value, function):
    """The function, but with a wrong answer for one sample (known by its first number)."""
    return lambda x, *rest: value(x, *rest) if x[0] == sample else function(x, *rest)


SIGNALS = np.array([[i, (-1) ** i, 1.0] for i in range(6)])
SIDES = np.array([1, -1] * 3)


def side_feature(x, y):
    return y * x[1:]


def side(x, w):
    return 1 if w @ x[1:] >= 0 else -1


def wrong_side(x, true, w):
    return max((-1, 1), key=lambda y: w @ side_feature(x, y) + (y != true))


def fit(joint_feature=side_feature, argmax=side, augmented=wrong_side, **options):
    return StructuredSVM(PerSample(joint_feature, argmax, augmented=augmented, **options)).fit(SIGNALS, SIDES)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"joint_feature": wrong(3, lambda x, y: [1.0], side_feature)}, r"sample 3.*\(1,\)"),
        ({"joint_feature": wrong(3, lambda x, y: [[1.0, 2]], side_feature)}, r"sample 3.*\(1, 2\)"),
        ({"joint_feature": wrong(3, lambda x, y: "no", side_feature)}, "sample 3.*'no'"),
        ({"joint_feature": wrong(3, lambda x, y: [np.nan, y], side_feature)}, "sample 3.*nan.*entry 0"),
        ({"joint_feature": wrong(3, lambda x, y: [1, np.inf], side_feature)}, "sample 3.*inf.*entry 1"),
        (
            {"augmented": wrong(3, lambda x, t, w: -1 if x[1:] @ w > -1 and t == -1 else t, wrong_side)}
            | {"loss": lambda t, y: 0.0 if t == y else np.nan},
            "loss.*sample 0.*nan",
        ),
        ({"loss": lambda t, y: -1.0 if t != y else 0.0}, "loss.*sample 0.*-1.0"),
        ({"loss": lambda t, y: 0.5 if t == y == -1 else t != y}, "loss.*sample 1.*0.5"),
        ({"loss": lambda t, y: "far"}, "loss.*sample 0.*'far'"),
        ({"augmented": wrong(3, lambda x, t, w: None, wrong_side)}, "augmented.*sample 3.*None"),
        (
            {"outputs": [-1, 1], "augmented": wrong(3, lambda x, t, w: 7, wrong_side)},
            "augmented.*sample 3.*7",
        ),
        ({"outputs": lambda x: [] if x[0] == 3 else [-1, 1]}, "outputs.*sample 3"),
        ({"outputs": lambda x: 5 if x[0] == 3 else [-1, 1]}, "outputs.*sample 3.*5"),
        ({"outputs": lambda x: [1, 1, -1] if x[0] == 3 else [-1, 1]}, "outputs.*sample 3.*1 twice"),
        ({"outputs": lambda x: [1] if x[0] == 3 else [-1, 1]}, r"y\[3\].*outputs"),
    ],
)
def test_a_wrong_answer_is_reported_with_its_sample(changes, words):
    with pytest.raises(ValueError, match=words):
        fit(**changes)


def test_an_argmax_below_the_truth_is_reported_with_its_sample():
    model = fit()
    model.problem = PerSample(side_feature, wrong(4, lambda x, w: -side(x, w), side))
    assert model.predict(SIGNALS)[4] == -1  # without labels nobody can know
    with pytest.raises(ValueError, match=r"argmax.*sample 4.*-1"):
        model.score(SIGNALS, SIDES)


def test_an_augmented_argmax_below_the_truth_is_reported_with_its_sample():
    problem = PerSample(side_feature, side, augmented=wrong(3, lambda x, true, w: -true, wrong_side))
    oracle = problem.bind(SIGNALS, SIDES, problem.schema(SIGNALS, SIDES))
    with pytest.raises(ValueError, match=r"augmented.*sample 3.*-4"):
        oracle.predict_augmented(np.array([5.0, 0.0]))


def test_an_exception_in_a_function_names_the_sample():
    with pytest.raises(ZeroDivisionError) as caught:
        fit(wrong(2, lambda x, y: 1 / 0, side_feature))
    assert "sample 2" in caught.value.__notes__[0]


def test_weights_cannot_be_changed_by_a_function():
    def greedy(x, true, w):
        w[0] = 0

    with pytest.raises(ValueError, match="read-only"):
        fit(augmented=greedy)


def test_rounding_is_not_taken_for_a_mistake():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 40)).astype(np.float32) * 1e3
    y = np.where(X[:, 0] > 0, 1, -1)

    def single(x, true, w):
        scores = [np.float32(x) @ w.astype(np.float32) * label + (label != true) for label in (-1, 1)]
        return (-1, 1)[int(np.argmax(scores))]

    problem = PerSample(lambda x, y: x * y, lambda x, w: 1 if x @ w > 0 else -1, augmented=single)
    assert StructuredSVM(problem, tol=1e-2, solver=Bundle()).fit(X, y).score(X, y) == 1


# what is missing is named before any work


def test_missing_functions_are_named():
    with pytest.raises(TypeError, match="argmax="):
        fit(argmax=None)
    with pytest.raises(CapabilityError, match="augmented="):
        fit(augmented=None)
    with pytest.raises(TypeError, match=r"loss.*'0/1'"):
        fit(loss="0/1")
    with pytest.raises(TypeError, match="impute="):
        fit(impute=side)


def test_checkpoints_need_listed_outputs(tmp_path):
    model = StructuredSVM(PerSample(side_feature, side, augmented=wrong_side), checkpoint=tmp_path / "state")
    with pytest.raises(CapabilityError, match=r"digest.*outputs="):
        model.fit(SIGNALS, SIDES)
    assert not (tmp_path / "state").exists()


def test_a_fit_goes_on_from_its_checkpoint(tmp_path, digits):
    X, y = digits[0][:200], digits[1][:200]
    path = tmp_path / "state"
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        StructuredSVM(LISTED, max_iter=5, checkpoint=path).fit(X, y)
    model = StructuredSVM(LISTED, checkpoint=path, resume=True).fit(X, y)
    assert model.history_[5].iteration == 5
    with pytest.raises(ValueError, match="state"):
        StructuredSVM(LISTED, checkpoint=path, resume=True).fit(X + 1e-9, y)
    assert "object at 0x" not in repr(LISTED)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([], [], r"\bX\b"),
        ("abc", [1, 2, 3], "X.*str"),
        (SIGNALS, SIDES[:-1], "6.*y.*5"),
        (SIGNALS, [(1,)] * 5, "6.*y.*5"),
        (SIGNALS, [(1,)] * 5 + [None], r"y\[5\]"),
        (SIGNALS, None, r"\by\b"),
        (SIGNALS, [1] * 6, "one label"),
    ],
)
def test_bad_data_are_refused(X, y, words):
    with pytest.raises(ValueError, match=words):
        StructuredSVM(PerSample(side_feature, side, augmented=wrong_side)).fit(X, y)


def test_a_frame_is_refused_with_a_remedy():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"X\.to_numpy\(\)"):
        StructuredSVM(PerSample(side_feature, outputs=[-1, 1])).fit(pandas.DataFrame(SIGNALS), SIDES)


# labels and samples of any kind


def order_feature(x, order):
    """Items in their order: early places count more."""
    return np.sum([x[item] / (1 + place) for place, item in enumerate(order)], axis=0)


def best_order(x, w):
    return tuple(np.argsort(-(x @ w), kind="stable").tolist())


def rankings(kind):
    rng = np.random.default_rng(3)
    X = [rng.standard_normal((int(rng.integers(2, 5)), 3)) for _ in range(30)]
    return X, [kind(best_order(x, np.array([2.0, -1, 0.5]))) for x in X]


def all_orders(x):
    from itertools import permutations

    return list(permutations(range(len(x))))


@pytest.mark.parametrize("kind", [tuple, list, np.array])
@pytest.mark.parametrize("container", [list, Ragged.from_list])
def test_labels_may_be_tuples_lists_or_arrays(kind, container):
    X, y = rankings(kind)
    model = StructuredSVM(PerSample(order_feature, outputs=all_orders)).fit(container(X), y)
    assert model.score(container(X), y) > 0.9
    assert model.predict(X).shape == (30,)
    assert sorted(model.predict(X)[0]) == list(range(len(X[0])))
    assert model.classes_.size == 0


def test_labels_that_are_no_single_values_need_no_list():
    X, y = rankings(np.array)

    def most_violated(x, true, w):
        return max(all_orders(x), key=lambda order: w @ order_feature(x, order) + (order != tuple(true)))

    called = StructuredSVM(PerSample(order_feature, best_order, augmented=most_violated)).fit(X, y)
    listed = StructuredSVM(PerSample(order_feature, outputs=all_orders)).fit(X, y)
    assert called.objective_ == pytest.approx(listed.objective_, rel=1e-3)
    with pytest.raises(ValueError, match="class_weight"):
        StructuredSVM(PerSample(order_feature, outputs=all_orders), class_weight="balanced").fit(X, y)


def test_an_answer_that_its_function_changes_later_is_kept_as_it_was():
    buffer = np.zeros(2, int)

    def reusing(x, true, w):
        buffer[:] = max([(0, 1), (1, 0)], key=lambda order: w @ order_feature(x, order) + (order != tuple(true)))
        return buffer

    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 2, 3))
    y = [best_order(x, np.array([1.0, 1, 0])) for x in X]
    model = StructuredSVM(PerSample(order_feature, best_order, augmented=reusing)).fit(X, y)
    assert model.score(X, y) == 1


def test_series_of_samples_keep_their_order():
    pandas = pytest.importorskip("pandas")
    X = pandas.Series(list(SIGNALS), index=[5, 4, 3, 2, 1, 0])
    y = pandas.Series(SIDES, index=[5, 4, 3, 2, 1, 0])
    assert (StructuredSVM(PerSample(side_feature, outputs=[-1, 1])).fit(X, y).predict(X) == SIDES).all()


# hidden values


def signals(n=60):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 3))
    oracle = HIDDEN.bind(X, None, HIDDEN.schema(X, np.arange(n) % 2))
    return X, *oracle.decode(oracle.predict(np.array([2.0, -1.0, 0.5])).code)


HIDDEN = PerSample(shift_feature, loss=shift_loss, outputs=shift_outputs, hidden=True)


def test_hidden_values_are_used_and_found():
    X, y, hidden = signals()
    model = StructuredSVM(HIDDEN).fit(X, y, hidden=hidden)
    assert (model.hidden_ == hidden).all()
    assert model.score(X, y) > 0.9
    assert (model.impute(X, y) == hidden).mean() > 0.9
    assert (model.predict_hidden(X) == hidden).mean() > 0.8


def test_an_unknown_hidden_value_is_refused_by_a_learner_that_needs_it():
    X, y, hidden = signals()
    hidden = hidden.tolist()
    open_one = next(i for i in range(60) if y[i] == 1 and len(shift_outputs(X[i])) > 2)
    hidden[open_one] = None
    with pytest.raises(ValueError, match=f"sample {open_one}"):
        StructuredSVM(HIDDEN).fit(X, y, hidden=hidden)
    with pytest.raises(ValueError, match=r"hidden\[0\].*9"):
        StructuredSVM(HIDDEN).fit(X, y, hidden=[9, *hidden[1:]])
    with pytest.raises(ValueError, match="hidden="):
        StructuredSVM(PerSample(side_feature, outputs=[-1, 1])).fit(SIGNALS, SIDES, hidden=[0] * 6)


def test_an_impute_below_what_was_held_is_reported_with_its_sample():
    X, y, _ = signals()
    i = next(i for i in range(60) if y[i] == 1 and len(shift_outputs(X[i])) == 4)

    def worst(x, y, w):
        return min((h for label, h in shift_outputs(x) if label == y), key=lambda h: w @ shift_feature(x, y, h))

    problem = PerSample(shift_feature, best_shifted, impute=worst, hidden=True, blocks={"signal": (3,)})
    oracle = problem.bind(X[i : i + 1], [1], problem.schema(X, y))
    w = np.array([2.0, -1.0, 0.5])
    good = oracle.encode([1], [best_shift(X[i], 1, w)])
    with pytest.raises(ValueError, match=r"impute.*sample 0"):
        oracle.impute(w, prefer=good)


def test_named_blocks_must_fit():
    with pytest.raises(ValueError, match=r"blocks.*4.*2"):
        fit(blocks={"left": (2, 2)})
    assert fit(blocks={"left": (1,), "right": (1,)}).weights_["right"].shape == (1,)
    with pytest.raises(ValueError, match="blocks="):
        StructuredSVM(PerSample(shift_feature, best_shifted, hidden=True)).fit(SIGNALS, [0, 1] * 3)


# files


def test_a_model_is_loaded_with_its_functions(tmp_path):
    X, y = rankings(tuple)
    problem = PerSample(order_feature, outputs=all_orders)
    model = StructuredSVM(problem).fit(X, y)
    model.save(tmp_path / "model")
    with pytest.raises(StorageError, match="PerSample"):
        tacit.load(tmp_path / "model")
    loaded = tacit.load(tmp_path / "model", problem=problem)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


def test_hidden_values_of_any_kind_are_saved(tmp_path):
    problem = PerSample(
        lambda x, y, h: y * x * h[1], outputs=[(y, ("at", h)) for y in (-1, 1) for h in (0, 1)], hidden=True
    )
    X = np.random.default_rng(0).standard_normal((10, 2))
    model = StructuredSVM(problem).fit(X, np.where(X[:, 0] > 0, 1, -1), hidden=[("at", 1)] * 10)
    model.save(tmp_path / "model")
    assert tacit.load(tmp_path / "model", problem=problem).hidden_[3] == ("at", 1)


# processes


@pytest.fixture
def eager(monkeypatch):
    """Workers at once, for calls of any size."""
    monkeypatch.setattr(processes, "START_AFTER", 0.0)
    monkeypatch.setattr(processes, "LEAST_WORK", 0.0)


@pytest.mark.parametrize("listed", [pytest.param(False, marks=pytest.mark.long), True])
def test_processes_give_the_same_result_bit_by_bit(digits, eager, listed):
    X, y = digits[0][:60], digits[1][:60]
    problem = PerSample(
        lambda x, y: joint_feature(x, y),
        lambda x, w: argmax(x, w),
        augmented=lambda x, true, w: augmented(x, true, w),
        outputs=(lambda x: range(10)) if listed else None,
    )
    one, two = (StructuredSVM(problem, C=1, n_jobs=n).fit(X, y) for n in (None, 2))
    assert np.array_equal(one.coef_, two.coef_)
    assert one.objective_ == two.objective_


@pytest.mark.long
def test_processes_give_the_same_predictions(digits, eager):
    X, y = digits[0][:60], digits[1][:60]
    model = StructuredSVM(PerSample(joint_feature, argmax, augmented=augmented), C=1).fit(X, y)
    expected = model.predict(digits[0][60:110])
    assert np.array_equal(model.set_params(n_jobs=2).predict(digits[0][60:110]), expected)


@pytest.mark.long
def test_processes_agree_on_rows_and_hidden_values():
    X, y, _ = signals()
    problem = PerSample(
        shift_feature, best_shifted, shift_loss, augmented=worst_shifted, impute=best_shift, hidden=True,
        blocks={"signal": (3,)},
    )  # fmt: skip
    rng = np.random.default_rng(0)
    alone = Processes(problem.bind(X, y, problem.schema(X, y)), 1)
    oracle = problem.bind(X, y, problem.schema(X, y))
    with parallel(oracle, 2) as waiting:
        assert isinstance(waiting, Processes)
    shards = Processes(oracle, 3, start_after=0, least_work=0)
    try:
        for rows in (None, slice(10, 50), np.array([0, 1, 30, 59]), slice(5, 5)):
            w = rng.standard_normal(3)
            coef = rng.standard_normal(oracle._indices(rows).size)
            for method in ("predict", "predict_augmented", "impute"):
                expected, found = getattr(alone, method)(w, rows), getattr(shards, method)(w, rows)
                assert np.array_equal(expected.code, found.code)
                assert np.array_equal(expected.value, found.value)
                assert np.array_equal(alone.score(w, found.code, rows), shards.score(w, found.code, rows))
                assert np.array_equal(alone.loss(found.code, rows), shards.loss(found.code, rows))
                assert np.array_equal(alone.features(found.code, coef, rows), shards.features(found.code, coef, rows))
                assert oracle.decode(found.code, rows)[1].tolist() == alone.decode(found.code, rows)[1].tolist()
            w = rng.standard_normal(3)
            oracle.predict(w), alone.predict(w)  # outputs that the workers have to be told of
    finally:
        shards.close()


def test_an_error_in_a_worker_names_the_sample_of_the_whole(eager):
    changed = wrong(4, lambda x, t, w: 1 / 0 if w.any() else -t, wrong_side)
    with pytest.raises(ZeroDivisionError) as caught:
        StructuredSVM(PerSample(side_feature, side, augmented=changed), n_jobs=2).fit(SIGNALS, SIDES)
    assert "sample 4" in caught.value.__notes__[0]


def test_functions_that_cannot_be_sent_stay_here(eager):
    lock = threading.Lock()

    def call_locked(x, true, w):
        with lock:
            return wrong_side(x, true, w)

    with pytest.warns(RuntimeWarning, match="process"):
        model = StructuredSVM(PerSample(side_feature, side, augmented=call_locked), n_jobs=2).fit(SIGNALS, SIDES)
    assert model.status_ is Status.CONVERGED


@pytest.mark.long
def test_a_lost_worker_costs_a_warning(eager):
    here = os.getpid()

    def deadly(x, true, w):
        if os.getpid() != here and w.any():
            os._exit(1)
        return wrong_side(x, true, w)

    with pytest.warns(RuntimeWarning, match="worker"):
        model = StructuredSVM(PerSample(side_feature, side, augmented=deadly), n_jobs=2).fit(SIGNALS, SIDES)
    assert model.status_ is Status.CONVERGED


@pytest.mark.skipif(signal.getsignal(signal.SIGINT) is signal.SIG_IGN, reason="Ctrl-C is ignored here: nohup, or &")
def test_an_interruption_ends_the_workers_and_keeps_the_model(eager):
    here = os.getpid()

    def slow(x, true, w):
        if os.getpid() != here and w.any():
            if x[0] == 3:  # once is enough
                os.kill(here, signal.SIGINT)
            time.sleep(60)
        return wrong_side(x, true, w)

    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = StructuredSVM(PerSample(side_feature, side, augmented=slow), n_jobs=2).fit(SIGNALS[3:5], SIDES[3:5])
    assert model.status_ is Status.INTERRUPTED
    assert time.perf_counter() - began < 60


# what check_problem says


EXAMPLES = (SIGNALS, SIDES)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"argmax": wrong(3, lambda x, w: 1, side)}, "argmax.*sample 3.*1"),
        ({"augmented": lambda x, t, w: side(x, w)}, "augmented.*sample 0"),
        ({"joint_feature": wrong(2, lambda x, y: [np.nan, 1], side_feature)}, "joint_feature.*sample 2.*nan"),
        ({"joint_feature": lambda x, y: y * x[1:] + np.random.default_rng().random()}, "joint_feature.*random"),
        ({"loss": lambda t, y: 1.0}, "loss.*sample 0.*1"),
        ({"argmax": lambda x, w: w.fill(0) or 1}, "argmax.*changed w"),
        ({"outputs": [-1, 1], "argmax": lambda x, w: 5}, "argmax.*sample 0.*5"),
        ({"argmax": lambda x, w: x["a"]}, "only integers"),
        ({"examples": None}, "examples="),
    ],
)
def test_check_problem_says_what_is_wrong(changes, words):
    functions = {"joint_feature": side_feature, "argmax": side, "augmented": wrong_side, "examples": EXAMPLES}
    with pytest.raises(AssertionError, match=words):
        check_problem(PerSample(**functions | changes))


def test_check_problem_is_content_with_sound_functions():
    check_problem(PerSample(side_feature, side, augmented=wrong_side, examples=EXAMPLES))
    check_problem(PerSample(lambda x, y: side_feature(x, y), outputs=[-1, 1], examples=EXAMPLES))
    check_learner(StructuredSVM(PerSample(**SETTINGS[0])))


def test_check_problem_finds_a_wrong_impute():
    settings = {**SETTINGS[-1], "impute": lambda x, y, w: 0}
    with pytest.raises(AssertionError, match="impute"):
        check_problem(PerSample(**settings))


@pytest.mark.parametrize(
    "augmented",
    [
        lambda x, true, w: true,
        lambda x, true, w: min((0, 1, 2), key=lambda y: w @ (np.eye(3)[y] * x) + (y != true)),
        lambda x, true, w: max((0, 1, 2), key=lambda y: w @ (np.eye(3)[y] * x)),
    ],
    ids=["the truth", "the least", "without the loss"],
)
def test_an_augmented_that_is_no_maximum_is_found_before_the_fit(augmented):
    """Found by review: it returned the truth, and the fit said that it had converged to zero."""

    def feature(x, y):
        return np.eye(3)[y] * x

    def argmax(x, w):
        return max((0, 1, 2), key=lambda y: w @ feature(x, y))

    X, y = np.random.default_rng(0).standard_normal(30), np.arange(30) % 3
    problem = PerSample(feature, argmax, augmented=augmented)
    with pytest.raises(ValueError, match=r"augmented.*sample"):
        StructuredSVM(problem).fit(X, y)
    loose = PerSample(feature, argmax, augmented=augmented, approximate=True)
    assert StructuredSVM(loose, max_iter=5, tol=0.5, verbose=0).get_params()["problem__approximate"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blocks": {"a": 9}}, r"blocks.*\{'a': 9\}"),
        ({"blocks": [3]}, r"blocks.*\[3\]"),
        ({"memory": "1G"}, "memory='1G'"),
    ],
)
def test_sizes_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(PerSample(lambda x, y: [x * y], outputs=[-1, 1], **change)).fit([1.0, 2.0], [-1, 1])
