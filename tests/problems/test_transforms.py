"""Hidden turns: SciPy's numbers, plain multiclass when there is one turn, planted turns found."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from tacit import IterativeLatentSVM, LatentSVM, StructuredSVM, load
from tacit.demo.parts import rotated_digits
from tacit.problems import Multiclass, Transforms, rotations
from tacit.problems.rotation import Rotations
from tacit.problems.views import principal_components
from tacit.testing import Enumeration, check_problem


@settings(max_examples=60)
@given(
    angle=st.one_of(st.floats(-400, 400), st.sampled_from([-180.0, -90.0, -45.0, 0.0, 30.0, 45.0, 60.0, 90.0, 270.0])),
    height=st.integers(1, 20),
    width=st.integers(1, 20),
    seed=st.integers(0, 99),
)
def test_a_turn_is_that_of_scipy(angle, height, width, seed):
    images = np.random.default_rng(seed).random((3, height, width))
    found = Rotations((angle,)).rotate(images)[:, 0]
    expected = [ndimage.rotate(image, angle, reshape=False, order=1) for image in images]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["u1", "f4", "f8"])
def test_colours_and_integers_turn_like_floats(kind):
    images = np.random.default_rng(0).integers(0, 256, (3, 9, 6, 3)).astype(kind)
    found = rotations(-50, 70, 4).rotate(images)
    for h, angle in enumerate(np.linspace(-50, 70, 4)):
        expected = [ndimage.rotate(image.astype(float), angle, reshape=False, order=1) for image in images]
        np.testing.assert_allclose(found[:, h], expected, atol=1e-3 if kind == "f4" else 1e-9)


def test_grey_images_in_colour_are_learned_as_they_are(pair):
    images, y = pair
    colours = np.stack([images, images, images], axis=3) / np.sqrt(3)  # of the same length, hence the same model
    problem = Transforms(rotations(-20, 20, 3), n_components=5)
    turns = np.arange(len(y)) % 3  # given, so that there is one optimum
    grey, colour = (StructuredSVM(problem, C=20, tol=1e-6).fit(X, y, hidden=turns) for X in (images, colours))
    assert colour.objective_ == pytest.approx(grey.objective_, rel=2e-6)
    assert np.array_equal(colour.predict(colours), colour.predict(colours.reshape(len(y), -1)))


@pytest.fixture(scope="module")
def pair():
    """Sevens and ones of scikit-learn's digits, pixels in [0, 1]."""
    digits = load_digits()
    chosen = np.isin(digits.target, (1, 7))
    return digits.images[chosen] / 16, digits.target[chosen]


def test_views_are_turned_images_in_principal_components(pair):
    """φ(x, h) is the projection of SciPy's turned image onto the components of the untransformed training images."""
    images, y = pair
    angles = rotations(-40, 40, 5)
    problem = Transforms(angles, n_components=6)
    schema = problem.schema(images, y)
    oracle = problem.bind(images, y, schema)
    pca = PCA(6).fit(images.reshape(len(images), -1))
    w = np.random.default_rng(0).standard_normal(oracle.n_params)
    parts = schema.views(w)
    for i in (0, 5, 17):
        for h, angle in enumerate(angles.states):
            turned = ndimage.rotate(images[i], angle, reshape=False, order=1)
            features = pca.transform(turned.reshape(1, -1))[0]
            code = oracle.encode(np.repeat(7, len(y)), np.full(len(y), h))
            expected = parts["weights"][1] @ features + parts["intercept"][1]
            assert oracle.score(w, code)[i] == pytest.approx(expected, abs=1e-6)
    np.testing.assert_array_equal(schema.facts["states"], [-40, -20, 0, 20, 40])


@pytest.mark.parametrize("blocks", ["class", "class and state"])
@pytest.mark.parametrize("components", [None, 8])
def test_turning_by_nothing_is_plain_multiclass(pair, blocks, components):
    images, y = pair
    flat = images.reshape(len(images), -1)
    plain = flat if components is None else PCA(components).fit_transform(flat)
    convex = StructuredSVM(Multiclass(), C=50, tol=1e-6).fit(plain, y)
    problem = Transforms(rotations(0, 0, 1), n_components=components, blocks=blocks)
    for learner in (StructuredSVM, LatentSVM, IterativeLatentSVM):
        model = learner(problem, C=50, tol=1e-6).fit(images, y)
        assert model.objective_ == pytest.approx(convex.objective_, abs=50 * 1e-6)  # C · tol
        assert np.mean(model.predict(images) == convex.predict(plain)) > 0.99


def test_flat_rows_are_images_too(pair):
    images, y = pair
    flat = images.reshape(len(images), -1)
    model = LatentSVM(Transforms(rotations(-20, 20, 3), 5), C=20).fit(images, y)
    assert np.array_equal(model.coef_, LatentSVM(Transforms(rotations(-20, 20, 3), 5), C=20).fit(flat, y).coef_)
    assert np.array_equal(model.predict(flat), model.predict(images))
    tall = images[:, :, :4]
    problem = Transforms(rotations(-20, 20, 3, shape=(8, 4)), 5)
    assert np.array_equal(
        LatentSVM(problem, C=20).fit(tall.reshape(len(tall), -1), y).coef_, LatentSVM(problem, C=20).fit(tall, y).coef_
    )


def test_planted_turns_are_found():
    """Bars turned by a known angle: the right turn brings every bar to one direction, up to a common one."""
    rng = np.random.default_rng(0)
    bar, ring = np.zeros((17, 17)), np.zeros((17, 17))
    bar[7:10, 2:15] = 1
    bar[4:7, 12:15] = 1
    ring[5:12, 5:12] = 1
    angles = rotations(-60, 60, 5)
    turns = rng.integers(0, 5, 80)
    y = np.arange(80) % 2
    shapes = np.array([bar, ring])[y]
    back = zip(shapes, -angles.states[turns], strict=True)
    images = np.stack([ndimage.rotate(shape, angle, reshape=False, order=1) for shape, angle in back])
    images += 0.05 * rng.standard_normal(images.shape)
    model = LatentSVM(Transforms(angles, n_components=12), C=100, n_init=6).fit(images, y)
    assert model.score(images, y) == 1
    off = (model.hidden_ - turns)[y == 0]
    assert np.mean(off == np.median(off)) > 0.5
    given = StructuredSVM(Transforms(angles, n_components=12), C=100).fit(images, y, hidden=turns)
    assert np.mean(given.predict_hidden(images)[y == 0] == turns[y == 0]) > 0.8


@pytest.mark.parametrize("blocks", ["class", "class and state"])
def test_common_checks_hold_with_functions_and_other_losses(blocks):
    flips = [_same, _flip]
    check_problem(Transforms(flips, blocks=blocks), seeds=10)
    check_problem(Transforms(rotations(0, 90, 2), blocks=blocks, loss="exact"), seeds=5)
    costs = [[0, 1, 3], [2, 0, 0.5], [1, 1, 0]]
    check_problem(Transforms(rotations(0, 180, 3), blocks=blocks, loss=costs, classes=["q", "d", "p"]), seeds=5)
    example = Transforms(flips, blocks=blocks).example(np.random.default_rng(0))
    assert len(Enumeration(example).outputs[0]) == 6


def _same(X):
    return X


def _flip(X):
    return X[:, :, ::-1]


@pytest.mark.parametrize("blocks", ["class", "class and state"])
def test_the_components_are_in_the_file(pair, tmp_path, blocks):
    images, y = pair
    problem = Transforms(rotations(-20, 20, 3), n_components=5, blocks=blocks)
    model = LatentSVM(problem, C=20).fit(images, y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert np.array_equal(loaded.predict(images), model.predict(images))
    assert np.array_equal(loaded.predict_hidden(images), model.predict_hidden(images))
    assert model.weights_["weights"].shape == ((2, 5) if blocks == "class" else (2, 3, 5))
    own = Transforms([_same, _flip], 5)
    model = LatentSVM(own, C=20).fit(images, y)
    model.save(tmp_path / "own")
    with pytest.raises(ValueError, match="problem="):
        load(tmp_path / "own")
    assert np.array_equal(load(tmp_path / "own", problem=own).predict(images), model.predict(images))


@pytest.mark.long
def test_the_demonstration_rotates_digits_back(tmp_path):
    plt.close("all")
    text = rotated_digits(tmp_path).text
    lines = [line for line in text.splitlines() if "%" in line]
    rows = {line[:28].strip(): [cell.rstrip("%°") for cell in line[28:].split()] for line in lines}
    wrong = {name: float(row[2]) for name, row in rows.items()}  # of the test images, in %
    for name in ("hidden rotation, CCCP", "hidden rotation, self-paced"):
        assert wrong[name] < 0.5 * wrong["no rotation"]
        assert float(rows[name][3]) < 20  # degrees; 30 without rotation
    for name in ("rotations.png", "mean_digits.png"):
        assert name in text
        assert plt.imread(tmp_path / name).std() > 0.1
    assert not plt.get_fignums()


def test_wrong_settings_and_inputs_are_named(pair):
    images, y = pair
    good = rotations(-20, 20, 3)
    for problem, X, error, why in (
        (Transforms("turn"), images, TypeError, "rotations"),
        (Transforms([]), images, TypeError, "rotations"),
        (Transforms([_same, 3]), images, TypeError, "rotations"),
        (Transforms(good, blocks="state"), images, ValueError, "'class and state'"),
        (Transforms(good, n_components=65), images, ValueError, "n_components=65"),
        (Transforms(good, n_components=0), images, ValueError, "n_components=0"),
        (Transforms(good, n_components=0.9), images, ValueError, "n_components=0.9"),
        (Transforms(good, n_components="mle"), images, ValueError, "n_components='mle'"),
        (Transforms(Rotations((np.nan,))), images, ValueError, "angles"),
        (Transforms(Rotations(())), images, ValueError, "angles"),
        (Transforms(Rotations(5.0)), images, ValueError, "angles"),
        (Transforms(Rotations((5.0,), shape=8)), images, ValueError, "shape"),
        (Transforms(good), images[:, None, None], ValueError, "images"),
        (Transforms(good, loss="overlap"), images, ValueError, "'exact'"),
        (Transforms(good), images[:, :5].reshape(len(y), -1), ValueError, "40 pixels"),
        (Transforms(rotations(0, 9, 2, shape=(4, 16))), images, ValueError, "shape="),
        (Transforms(good), np.full_like(images, np.nan), ValueError, "sample 0"),
        (Transforms(good), images[0, 0], ValueError, "shape"),
        (Transforms(good), images[:0], ValueError, "0 samples"),
        (Transforms([_same, lambda X: X[:, :2]]), images, ValueError, "transformation 1"),
        (Transforms([_same, lambda X: X[:2]]), images, ValueError, "transformation 1"),
        (Transforms([lambda X: X[:, :2]], 5), images, ValueError, "n_components=None"),
        (Transforms([lambda X: X / 0], 5), images, ValueError, "NaN"),
    ):
        with pytest.raises(error, match=why), np.errstate(all="ignore"):
            LatentSVM(problem).fit(X, y)
    model = LatentSVM(Transforms(good, 5)).fit(images, y)
    with pytest.raises(ValueError, match="64 features"):
        model.predict(images[:, :7])
    assert rotations(0, 10, np.int64(2)).angles == (0.0, 10.0)
    for arguments, why in (
        ((0, 10, 0), "count"),
        ((0, 0, True), "count"),
        ((10, 0, 3), "low="),
        ((0, 10, 1), "count"),
    ):
        with pytest.raises(ValueError, match=why):
            rotations(*arguments)
    with pytest.raises(ValueError, match=r"hidden\[0\] is 3"):
        LatentSVM(Transforms(good, 5)).fit(images, y, hidden=np.full(len(y), 3))


def test_views_have_the_same_bits_for_any_threads_of_blas_and_any_order_in_memory():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 144)), np.arange(3000) % 2
    problem = Transforms(rotations(-20, 20, 3, shape=(12, 12)), n_components=20)
    found = []
    for threads, table in ((1, X), (2, X), (1, np.asfortranarray(X))):
        with threadpool_limits(threads, user_api="blas"):
            schema = problem.schema(table, y)
            found.append((schema.facts["components"], problem.bind(table, y, schema).scores(np.ones(schema.n_params))))
    for components, scores in found[1:]:
        assert (components == found[0][0]).all()
        assert (scores == found[0][1]).all()


def test_an_error_of_a_transformation_names_the_sample():
    X, y = np.zeros((1500, 2)), np.arange(1500) % 2
    X[1400] = 1.0

    def odd(rows):
        return np.where(rows > 0, np.nan, rows)

    problem = Transforms([lambda rows: rows, odd])
    schema = problem.schema(X[:10], y[:10])
    with pytest.raises(ValueError, match="sample 1400"):
        problem.bind(X, y, schema)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_components_are_those_of_scikit_learn_however_far_from_zero(offset):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 20)) * np.linspace(1, 3, 20) + offset
    mean, components = principal_components(X, 3)
    reference = PCA(3, svd_solver="full").fit(X)
    assert mean == pytest.approx(reference.mean_, rel=1e-12, abs=1e-12)
    assert np.abs((components * reference.components_).sum(axis=1)) == pytest.approx(1, abs=1e-6)
