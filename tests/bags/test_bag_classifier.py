"""BagClassifier: labels of bags and their witnesses, from all forms of bags, and what estimators promise."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tacit
from tacit import BagClassifier, Ragged
from tacit.bags.combination import Combination, held_out_loss, held_out_losses, log_loss
from tacit.bags.features import STATISTICS, Scaler, bag_statistics, cut_blocks
from tacit.bags.samples import Samples
from tacit.bags.whole_bags import fit_forest, fit_kernel_model
from tacit.runtime import InterruptedFitError, Status
from tacit.runtime.archive import StorageError

FAST = {"rule": "witness", "kernel": "linear", "C": 100.0, "combine": False}


def planted(n=40, shift=5.0, seed=0, classes=2):
    """Bags of noise; an instance of a bag of class k > 0 is shifted in column k − 1."""
    rng = np.random.default_rng(seed)
    y, sizes = np.arange(n) % classes, rng.integers(2, 6, n)
    bags = [rng.standard_normal((size, 4)) for size in sizes]
    witness = np.array([rng.integers(size) for size in sizes])
    for i in np.flatnonzero(y):
        bags[i][witness[i], y[i] - 1] += shift
    return Ragged.from_list(bags), y, np.where(y > 0, witness, -1)


@pytest.fixture(scope="module")
def fitted():
    bags, y, _ = planted()
    return BagClassifier(verbose=0).fit(bags, np.array(["no", "yes"])[y])


def test_labels_probabilities_and_witnesses_of_new_bags(fitted):
    bags, y, witness = planted(60, seed=1)
    names = np.array(["no", "yes"])[y]
    assert fitted.score(bags, names) >= 0.95
    proba = fitted.predict_proba(bags)
    assert np.allclose(proba.sum(axis=1), 1)
    assert (fitted.classes_[proba.argmax(axis=1)] == fitted.predict(bags)).all()
    assert np.allclose(fitted.decision_function(bags), np.log(proba[:, 1] / proba[:, 0]))
    right = fitted.predict(bags) == names
    assert (fitted.witnesses(bags)[right] == witness[right]).mean() >= 0.95
    scores = fitted.instance_scores(bags)
    assert np.array_equal(scores.offsets, bags.offsets)
    assert all(np.argmax(scores[i]) == witness[i] for i in np.flatnonzero(right & (y == 1))[:5])


def test_models_of_whole_bags_count_where_no_instance_decides():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.standard_normal((80, 20, 5)) + 0.35 * (2 * y - 1)[:, None, None] * np.eye(5)[0]
    model = BagClassifier(verbose=0).fit(X[:60], y[:60])
    alone = BagClassifier(**FAST, verbose=0).fit(X[:60], y[:60])
    assert model.score(X[60:], y[60:]) >= alone.score(X[60:], y[60:])
    assert sum(model.weights_.get(name, 0) for name in ("statistics", "set", "forest", "extremes", "nearest")) > 0.3


def test_several_classes():
    bags, y, witness = planted(90, shift=7, classes=3)
    model = BagClassifier(verbose=0).fit(bags[:60], y[:60])
    assert model.score(bags[60:], y[60:]) >= 0.9
    assert model.instance_scores(bags[60:]).values.shape[1] == 3
    right = model.predict(bags[60:]) == y[60:]
    assert (model.witnesses(bags[60:])[right] == witness[60:][right]).mean() >= 0.9


def test_several_labels_per_bag(tmp_path):
    bags, y, _ = planted(60, shift=7, classes=3)
    table = np.stack([y == 1, y == 2], axis=1).astype(int)
    model = BagClassifier(**FAST, verbose=0).fit(bags[:40], table[:40])
    found = model.predict(bags[40:])
    assert found.shape == (20, 2)
    assert (found == table[40:]).mean() >= 0.9
    assert model.witnesses(bags[40:]).shape == model.predict_proba(bags[40:]).shape == (20, 2)
    assert model.instance_scores(bags).values.shape == (bags.values.shape[0], 2)
    model.save(tmp_path / "model")
    assert np.array_equal(tacit.load(tmp_path / "model").predict_proba(bags), model.predict_proba(bags))
    with pytest.raises(ValueError, match="column 1"):
        BagClassifier(**FAST).fit(bags, np.stack([y == 1, y == 9], axis=1).astype(int))


@pytest.mark.parametrize("rule", ["witness", "instances", "both"])
def test_the_background_may_be_any_class(rule):
    bags, y, witness = planted(shift=7)
    names = np.array(["zinc", "active"])[y]
    model = BagClassifier(**{**FAST, "rule": rule}, background="zinc", verbose=0).fit(bags, names)
    assert (model.witnesses(bags) == witness).mean() >= 0.95
    scores = model.instance_scores(bags)
    assert all(np.argmax(scores[i]) == witness[i] for i in np.flatnonzero(y)[:5])
    with pytest.raises(ValueError, match="background"):
        BagClassifier(background="lead").fit(bags, names)


def test_known_witnesses_help():
    rates = []
    for hidden_known in (False, True):
        own = []
        for seed in range(3):
            bags, y, witness = planted(120, 2.0, seed)
            hidden = np.where(np.arange(120) % 3 > 0, witness, -1) if hidden_known else None
            model = BagClassifier(**FAST, verbose=0).fit(bags, y, hidden=hidden)
            own.append(model.score(*planted(300, 2.0, 50 + seed)[:2]))
        rates.append(np.mean(own))
    assert rates[1] > rates[0]
    sets = [[0, 1] if label else -1 for label in y]
    BagClassifier(**FAST, verbose=0).fit(bags, y, hidden=sets)
    with pytest.raises(ValueError, match="hidden"):
        BagClassifier(**FAST).fit(bags, y, hidden=witness[:5])


@pytest.mark.parametrize("rule", ["witness", "instances", "both"])
def test_the_known_witness_of_a_bag_of_one_instance_changes_nothing(rule):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    bags = [rng.standard_normal((1 if i % 4 == 1 else 5, 3)) + (i % 4 == 1) for i in range(40)]
    hidden = np.where(np.arange(40) % 4 == 1, 0, -1)
    model = BagClassifier(**{**FAST, "rule": rule}, verbose=0)
    expected = model.fit(bags, y).decision_function(bags)
    assert np.allclose(model.fit(bags, y, hidden=hidden).decision_function(bags), expected)


def test_known_witnesses_pull_the_weights_to_models_of_instances(fitted):
    bags, y, witness = planted()
    model = BagClassifier(verbose=0).fit(bags, y, hidden=witness)

    def share(weights):
        return sum(weights.get(rule, 0) for rule in ("both", "witness", "instances")) / sum(weights.values())

    assert share(model.weights_) > share(fitted.weights_)


def test_known_witnesses_do_not_pull_where_whole_bags_decide():
    """The deviation of a bag decides, and the named instances are no better than others."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.standard_normal((80, 12, 3)) * np.where(y == 1, 2.0, 1.0)[:, None, None]
    hidden = np.where(y == 1, rng.integers(12, size=80), -1)
    model = BagClassifier(kernel="linear", C=100.0, verbose=0).fit(X, y, hidden=hidden)
    alone = sum(model.weights_.get(rule, 0) for rule in ("both", "witness", "instances"))
    assert alone < 0.5 * sum(model.weights_.values())


def test_held_out_losses_are_of_combinations_that_did_not_see_the_sample():
    rng = np.random.default_rng(0)
    scores, y = rng.standard_normal((2, 30, 2)), np.arange(30) % 2
    folds = [(np.arange(10, 30), np.arange(10)), (np.arange(10), np.arange(10, 30))]
    found = held_out_losses(scores, y, np.ones(30), folds, pull=1.0, centre=0.5)
    for train, test in folds:
        own = Combination.fit(scores[:, train], y[train], np.ones(train.size), pull=1.0, centre=0.5)
        assert found[test].mean() == pytest.approx(
            log_loss(own.log_probabilities(scores[:, test]), y[test], np.ones(test.size))
        )


def test_a_set_of_possible_witnesses_is_not_a_list_of_positive_instances():
    bags, y, _ = planted(6)
    hidden = np.array([-1, [0, 1], -1, 1, -1, [0]], dtype=object)
    samples = Samples(bags, y, np.ones(6), 2, hidden, 0)
    assert samples.without_sets().hidden.tolist() == [-1, -1, -1, 1, -1, -1]


def long_table(bags, y):
    frame = pd.DataFrame(bags.values, columns=list("abcd"))
    frame.insert(0, "id", np.repeat([f"bag {i}" for i in range(len(bags))], bags.lengths))
    return frame.assign(y=np.repeat(y, bags.lengths))


def test_all_forms_of_bags_give_the_same_model():
    bags, y, _ = planted(24)
    expected = BagClassifier(**FAST, verbose=0).fit(bags, y).predict_proba(bags)
    frame = long_table(bags, y)
    for X, parameters in [
        (list(bags), {}),
        (pd.Series(list(bags)), {}),
        (pa.array([bag.tolist() for bag in bags]), {}),
        (frame.drop(columns="y"), {"bag": "id"}),
    ]:
        model = BagClassifier(**FAST, **parameters, verbose=0).fit(X, y)
        assert np.array_equal(model.predict_proba(X), expected)
    for table in (frame, pa.Table.from_pandas(frame)):
        model = BagClassifier(**FAST, bag="id", label="y", verbose=0).fit(table)
        assert np.array_equal(model.predict_proba(table), expected)
        assert model.score(table) == np.mean(model.predict(table) == y)
    shuffled = frame[["c", "id", "b", "a", "d"]].assign(other="text")
    assert np.array_equal(model.predict_proba(shuffled), expected)
    rows = BagClassifier(**FAST, bag="id", verbose=0).fit(frame.drop(columns="y"), frame["y"])
    assert np.array_equal(rows.predict_proba(frame), expected)


def test_bad_tables_are_refused():
    bags, y, _ = planted(24)
    frame = long_table(bags, y)
    with pytest.raises(ValueError, match="bag="):
        BagClassifier(**FAST).fit(frame, y)
    with pytest.raises(ValueError, match="nothing"):
        BagClassifier(**FAST, bag="nothing").fit(frame)
    nameless = frame.copy()
    nameless.loc[3, "id"] = None
    with pytest.raises(ValueError, match="missing"):
        BagClassifier(**FAST, bag="id", label="y").fit(nameless)
    uneven = frame.copy()
    uneven.loc[0, "y"] = 1
    with pytest.raises(ValueError, match="several labels"):
        BagClassifier(**FAST, bag="id", label="y").fit(uneven)
    model = BagClassifier(**FAST, bag="id", label="y", verbose=0).fit(frame)
    with pytest.raises(ValueError, match="'a'"):
        model.predict(frame.drop(columns="a"))
    with pytest.raises(ValueError, match="features"):
        model.predict([[[1.0, 2.0]]])


def test_sparse_instances():
    bags, y, _ = planted(40, shift=9)
    values = np.where(np.abs(bags.values) > 1, bags.values, 0.0)
    thick, thin = bags.with_values(values), bags.with_values(sparse.csr_array(values))
    for names in (["mean"], ["min", "max"], ["deviation"], STATISTICS):
        assert np.allclose(bag_statistics(thin, names).toarray(), bag_statistics(thick, names))
    model = BagClassifier(verbose=0).fit(thin, y)
    assert model.score(thin, y) >= 0.9
    assert np.allclose(model.predict_proba(thin), model.predict_proba(thick))


@pytest.mark.parametrize("thin", [False, True])
def test_values_whose_squares_overflow_are_refused(fitted, thin):
    bags, y, _ = planted(10)
    values = bags.values * np.array([1e200, 1, 1, 1])
    large = bags.with_values(sparse.csr_array(values) if thin else values)
    with pytest.raises(ValueError, match="below"):
        BagClassifier().fit(large, y)
    with pytest.raises(ValueError, match="below"):
        fitted.predict(large)


def test_files_hold_no_pickle_and_give_the_same_bits(fitted, tmp_path):
    bags, _, _ = planted(10, seed=3)
    fitted.save(tmp_path / "model")
    again = tacit.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(bags), fitted.predict_proba(bags))
    assert np.array_equal(again.instance_scores(bags).values, fitted.instance_scores(bags).values)
    broken = clone(again)
    vars(broken).update(vars(again), n_features_in_=7)
    with pytest.raises(ValueError, match="features"):
        broken.save(tmp_path / "broken")
    with pytest.raises(StorageError):
        tacit.load(__file__)


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads():
    bags, y, _ = planted(30)
    found = [BagClassifier(n_jobs=n, random_state=3, verbose=0).fit(bags, y).predict_proba(bags) for n in (1, 2)]
    assert np.array_equal(*found)


def test_searches_pipelines_and_clones():
    bags, y, _ = planted(30)
    model = BagClassifier(**FAST, verbose=0)
    assert is_classifier(model)
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(model, bags, y, cv=3).mean() >= 0.9
    pipeline = make_pipeline(Ragged.map(StandardScaler()), model)
    search = GridSearchCV(pipeline, {"bagclassifier__C": [1.0, 100.0]}, cv=3).fit(bags, y)
    assert search.best_score_ >= 0.9


def test_weights_of_samples_and_classes():
    bags, y, _ = planted(60, shift=1.5)
    model = BagClassifier(**FAST, verbose=0)
    kept = np.arange(60) % 5 > 0
    some = clone(model).fit(bags, y, sample_weight=kept.astype(float)).predict_proba(bags)
    assert np.array_equal(some, clone(model).fit(bags[kept], y[kept]).predict_proba(bags))
    heavy = clone(model).set_params(class_weight={0: 1, 1: 9}).fit(bags, y)
    assert heavy.predict_proba(bags)[:, 1].mean() > clone(model).fit(bags, y).predict_proba(bags)[:, 1].mean()


@pytest.mark.parametrize(
    ("parameters", "keyword"),
    [
        ({"rule": "one"}, "rule"),
        ({"C": -1}, "C"),
        ({"gamma": 0}, "gamma"),
        ({"kernel": "linear", "gamma": 1.0}, "gamma"),
    ],
)
def test_bad_parameters_are_refused(parameters, keyword):
    bags, y, _ = planted(10)
    with pytest.raises(ValueError, match=keyword):
        BagClassifier(**parameters).fit(bags, y)


def test_bad_labels_are_refused():
    bags, y, _ = planted(10)
    with pytest.raises(ValueError, match="one class"):
        BagClassifier().fit(bags, np.zeros(10))
    with pytest.raises(ValueError, match="single bag"):
        BagClassifier().fit(bags, np.arange(10) == 0)
    with pytest.raises(ValueError, match="bags"):
        BagClassifier().fit(bags, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="y"):
        BagClassifier(**FAST, verbose=0).fit(bags, y).score(bags)


def test_a_callback_or_ctrl_c_keeps_the_models_so_far():
    bags, y, _ = planted(20)
    model = BagClassifier(verbose=0, callbacks=[lambda line: line.model == "witness"]).fit(bags, y)
    assert model.status_ is Status.STOPPED
    assert [line[0] for line in model.held_out_] == ["both", "witness", "combined"]

    def press(line):
        raise KeyboardInterrupt

    model = BagClassifier(verbose=0, callbacks=[press])
    with pytest.raises(InterruptedFitError):
        cross_val_score(model, bags, y, cv=2, error_score="raise")


def test_probabilities_are_calibrated():
    bags, y, _ = planted(200, shift=2.0)
    new, truth, _ = planted(1000, shift=2.0, seed=9)
    model = BagClassifier(verbose=0).fit(bags, y)
    p = model.predict_proba(new)[:, 1]
    for low, high in [(0.0, 0.3), (0.3, 0.7), (0.7, 1.0)]:
        own = (p >= low) & (p < high)
        assert abs(truth[own].mean() - p[own].mean()) < 0.12


def test_held_out_scores_are_of_models_that_did_not_see_the_bag():
    """Labels that are noise cannot be predicted: whoever sees them gets them right."""
    rng = np.random.default_rng(0)
    bags = Ragged(rng.standard_normal((600, 4)), np.arange(201) * 3)
    y = rng.integers(0, 2, 200)
    samples = Samples(bags, y, np.ones(200), 2, None, 0)
    for _, scores in (fit_kernel_model("extremes", samples), fit_forest(samples)):
        assert abs(np.mean(scores.argmax(axis=1) == y) - 0.5) < 0.15


def test_large_data_are_fitted_in_blocks(monkeypatch):
    bags, y, _ = planted(60)
    samples = Samples(bags, y, np.ones(60), 2, None, 0)
    whole = fit_kernel_model("nearest", samples)[0].scores(bags)
    monkeypatch.setattr("tacit.bags.features.BLOCK_CELLS", 2000)
    assert len(list(cut_blocks(bags, 200))) > 5
    assert np.allclose(fit_kernel_model("nearest", samples)[0].scores(bags), whole)
    monkeypatch.setattr("tacit.bags.samples.MAX_CHOICE", 30)
    assert len(samples.trial().y) == 30
    assert BagClassifier(verbose=0).fit(bags, y).score(bags, y) >= 0.9


def test_nonlinear_models_of_very_large_bags_are_not_tried_beside_linear_ones(monkeypatch):
    bags, y, _ = planted(30)
    monkeypatch.setattr("tacit.bags.witness_models.MAX_FEATURES", 1000)
    for kernel, expected in (("auto", "linear"), ("rbf", "rbf")):
        model = BagClassifier(rule="both", kernel=kernel, C=10.0, combine=False, verbose=0).fit(bags, y)
        assert model.witness_.kernel == expected


def test_the_forest_as_arrays_predicts_as_scikit_learn():
    from sklearn.ensemble import RandomForestClassifier

    bags, y, _ = planted(50, shift=2.0)
    new = planted(30, shift=2.0, seed=4)[0]
    model = fit_forest(Samples(bags, y, np.ones(50), 2, None, 5))[0]
    forest = RandomForestClassifier(200, random_state=5)
    forest.fit(bag_statistics(bags), y, sample_weight=np.ones(50))
    assert np.allclose(np.exp(model.scores(new)) - 0.01, forest.predict_proba(bag_statistics(new)))


def test_scaling_and_combination():
    scaler = Scaler.fit(np.array([[1.0, 5.0], [3.0, 5.0]]))
    assert np.array_equal(scaler(np.array([[4.0, 5.0], [900.0, 5.0]])), [[2, 0], [3, 0]])
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    good, noise = rng.standard_normal((2, 300, 3))
    good[np.arange(300), y] += 2
    both = Combination.fit(np.stack([good, noise]), y, np.ones(300), pull=0.1)
    assert both.slopes[0] > 10 * both.slopes[1]
    assert (
        log_loss(both.log_probabilities(np.stack([good, noise])), y, np.ones(300))
        < held_out_loss(noise, y, np.ones(300))[0]
    )


@pytest.mark.parametrize("name", [["y"], {"y"}, np.ma.masked])
def test_a_column_is_given_by_its_name(name):
    table = pd.DataFrame({"id": [0, 0, 1, 1], "x": [1.0, 2.0, 3.0, 4.0], "y": [1, 1, 0, 0]})
    with pytest.raises(TypeError, match="name"):
        BagClassifier(bag="id", label=name).fit(table)


def test_a_column_whose_name_has_no_hash_is_refused():
    frame = pd.DataFrame({"id": [0, 1], "x": [1.0, 2.0]})
    with pytest.raises(TypeError, match="column"):
        BagClassifier(bag="id", label=np.timedelta64(1), verbose=0).fit(frame, [0, 1])
