"""The container: indexing, conversions, and life inside scikit-learn."""

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit import Ragged, StructuredSVM
from tacit.problems import Candidates

LISTS = [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0]]]


def same(a, b):
    return np.array_equal(a.values, b.values) and np.array_equal(a.offsets, b.offsets)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.data())
def test_indexing_equals_a_list_of_arrays(sizes, data):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    ragged = Ragged(np.arange(offsets[-1] * 2.0).reshape(-1, 2), offsets)
    plain = [ragged.values[a:b] for a, b in itertools.pairwise(offsets)]
    n = len(plain)
    assert ragged.shape == (n,)
    assert ragged.ndim == 1
    assert all(np.array_equal(a, b) for a, b in zip(ragged, plain, strict=True))
    i = data.draw(st.integers(-n, n - 1))
    assert np.array_equal(ragged[i], plain[i])
    key = data.draw(st.slices(n))
    assert all(np.array_equal(a, b) for a, b in zip(ragged[key], plain[key], strict=True))
    index = data.draw(st.lists(st.integers(-n, n - 1), max_size=6))
    for form in (index, np.array(index, dtype=int), (np.array(index, dtype=int), ...)):
        assert all(np.array_equal(a, plain[j]) for a, j in zip(ragged[form], index, strict=True))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assert len(ragged[mask]) == mask.sum()


def test_slices_and_samples_share_memory():
    ragged = Ragged.from_list(LISTS)
    assert np.shares_memory(ragged[1:].values, ragged.values)
    assert np.shares_memory(ragged[1], ragged.values)
    assert ragged[...] is ragged


def test_every_form_of_bags_is_the_same():
    expected = Ragged.from_list(LISTS)
    arrays = [np.array(bag) for bag in LISTS]
    objects = np.empty(3, dtype=object)
    objects[:] = arrays
    column = pa.array(LISTS)
    fixed = pa.array(LISTS, type=pa.list_(pa.list_(pa.float64(), 2)))
    for form in (
        arrays,
        objects,
        pd.Series(arrays, index=[5, 3, 1]),
        pd.Series(LISTS),
        pd.Series(LISTS, dtype=pd.ArrowDtype(column.type)),
        column,
        fixed,
        pa.chunked_array([column[:1], column[1:]]),
        column.slice(0, 3),
        expected,
    ):
        assert same(Ragged.of(form), expected), type(form)
    assert same(Ragged.of(column.slice(1)), expected[1:])
    assert Ragged.of(expected) is expected


def test_equal_bags_stay_bags():
    equal = [np.ones((2, 3)), np.zeros((2, 3))]
    for form in (equal, np.array(equal)):
        assert Ragged.of(form).shape == (2,)
        assert Ragged.of(form).values.shape == (4, 3)


def test_sparse_bags():
    parts = [sparse.csr_matrix(bag) for bag in LISTS]
    ragged = Ragged.from_list(parts)
    assert sparse.issparse(ragged.values)
    np.testing.assert_array_equal(ragged[[2, 1]][1].toarray(), LISTS[1])
    np.testing.assert_array_equal(Ragged.concatenate([ragged, ragged]).values.toarray()[:4], np.vstack(LISTS))
    assert "sparse" in repr(ragged)


def test_from_frame_keeps_the_order_of_first_appearance():
    frame = pd.DataFrame({"id": ["b", "a", "b", "c"], "u": [1.0, 2.0, 3.0, 4.0], "v": [1, 2, 3, 4]})
    ragged = Ragged.from_frame(frame, bag="id")
    assert len(ragged) == 3
    np.testing.assert_array_equal(ragged[0], [[1, 1], [3, 3]])
    np.testing.assert_array_equal(ragged.lengths, [2, 1, 1])
    with pytest.raises(ValueError, match="'bag'"):
        Ragged.from_frame(frame, bag="bag")
    with pytest.raises(ValueError, match="'w'"):
        Ragged.from_frame(frame.assign(w=list("wxyz")), bag="id")
    with pytest.raises(ValueError, match="row 1"):
        Ragged.from_frame(frame.assign(id=["b", None, "b", "c"]), bag="id")


def test_from_frame_takes_every_kind_of_number():
    frame = pd.DataFrame({"id": [1, 1, 2], "flag": [True, False, True], "x": [0.5, 1.5, 2.5]})
    frame["nullable"] = pd.array([1, 2, 3], dtype="Int64")
    frame["arrow"] = pd.array([1.0, 2.0, 3.0], dtype=pd.ArrowDtype(pa.float64()))
    ragged = Ragged.from_frame(frame, bag="id")
    assert ragged.dtype == np.float64
    np.testing.assert_array_equal(ragged[1], [[1, 2.5, 3, 3]])
    gap = frame.assign(nullable=pd.array([1, None, 3], dtype="Int64"))
    with pytest.raises(ValueError, match="'nullable'"):
        Ragged.from_frame(gap, bag="id")
    with pytest.raises(ValueError, match="'x'"):
        Ragged.from_frame(pd.concat([frame, frame[["x"]]], axis=1), bag="id")


def test_concatenate_and_map():
    ragged = Ragged.from_list(LISTS)
    both = Ragged.concatenate([ragged, ragged[:1]])
    assert len(both) == 4
    np.testing.assert_array_equal(both[3], LISTS[0])
    scaled = ragged.map(StandardScaler())
    np.testing.assert_allclose(scaled.values.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_array_equal(scaled.offsets, ragged.offsets)
    np.testing.assert_array_equal(ragged.map(np.negative).values, -ragged.values)
    fitted = PCA(1).fit(ragged.values)
    np.testing.assert_array_equal(ragged.map(fitted).values, fitted.transform(ragged.values))
    with pytest.raises(ValueError, match="map"):
        ragged.map(lambda rows: rows[:1])
    with pytest.raises(TypeError, match="transformer"):
        ragged.map(3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Ragged([1.0, 2.0], [0, 1]), "offsets"),
        (lambda: Ragged([1.0, 2.0], [0, 3, 2]), "sample 1"),
        (lambda: Ragged([1.0], [0.0, 1.0]), "integers"),
        (lambda: Ragged(1.0, [0, 1]), "dimension"),
        (lambda: Ragged.from_list([]), "samples"),
        (lambda: Ragged.from_list([[[1.0, 2.0]], [[1.0]]]), "bag 1"),
        (lambda: Ragged.from_list([[[1.0, 2.0], [1.0]]]), "bag 0"),
        (lambda: Ragged.from_list([["a"]]), "bag 0"),
        (lambda: Ragged.from_list([["the", "dog"]]), "WordFeatures"),
        (lambda: Ragged.from_list([1.0]), "1.0"),
        (lambda: Ragged.of(pa.array([[[1.0]], None])), "bag 1"),
        (lambda: Ragged.of(pa.array([[[1.0, 2.0]], [[1.0]]])), "bag 1"),
        (lambda: Ragged.of(pa.array([[[1.0]], [[2.0], None]])), "row"),
        (lambda: Ragged.of(pa.array([[[1.0]], [[2.0], [None]]])), "number"),
        (lambda: Ragged.of(pa.array([[["a"]]])), "numbers"),
        (lambda: Ragged.concatenate([]), "concatenate"),
    ],
)
def test_bad_bags_are_refused_with_place_and_remedy(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_bad_indices_are_refused():
    ragged = Ragged.from_list(LISTS)
    for key, words in (
        ([5], "sample 5"),
        (np.array([True]), "mask"),
        (np.array([0.5]), "integers"),
        ((0, 1), "dimension"),
    ):
        with pytest.raises(IndexError, match=words):
            ragged[key]
    with pytest.raises(IndexError):
        ragged[3]
    with pytest.raises(TypeError, match="column"):
        Ragged.of(pa.table({"x": [[1.0]]}))
    with pytest.raises(TypeError, match="bags"):
        Ragged.of(pd.DataFrame({"x": [1.0]}))


def test_train_test_split_keeps_it_whole(bags):
    X, y, hidden = bags
    parts = train_test_split(X, y, hidden, test_size=0.25, random_state=0)
    assert isinstance(parts[0], Ragged)
    assert len(parts[0]) == len(parts[2]) == 30


def test_cross_validation_grid_search_and_pipelines(bags):
    X, y, hidden = bags
    # one candidate a bag: nothing is hidden
    chosen = Ragged(X.values[X.offsets[:-1] + hidden], np.arange(len(y) + 1))
    pipeline = make_pipeline(Ragged.map(StandardScaler()), StructuredSVM(Candidates(), C=10))
    assert cross_val_score(pipeline, chosen, y, cv=3).min() > 0.8
    search = GridSearchCV(
        pipeline,
        {"structuredsvm__C": [0.1, 10.0], "structuredsvm__problem__fit_intercept": [True, False]},
        cv=2,
        n_jobs=2,
    ).fit(chosen, y)
    assert search.best_score_ > 0.8
    lists = [np.array(bag) for bag in chosen]
    assert cross_val_score(StructuredSVM(Candidates(), C=10), lists, y, cv=3).min() > 0.8


def test_hidden_values_reach_grid_search(bags):
    X, y, hidden = bags
    search = GridSearchCV(StructuredSVM(Candidates()), {"C": [1.0, 30.0]}, cv=2, n_jobs=2).fit(X, y, hidden=hidden)
    assert search.best_score_ > 0.8


def test_printing():
    assert repr(Ragged.from_list(LISTS)) == "Ragged(3 samples, 1–2 rows each; 4 × 2 float64)"
    assert np.asarray(Ragged.from_list(LISTS)).shape == (3,)
    tags = Ragged(np.array(["a", "b", "<b>", *["c"] * 20, "d"]), np.array([0, 2, 3, 23, 24]))
    assert "['a', 'b'], ['<b>'], ['c', " in repr(tags)
    assert "'d'" not in repr(tags)
    shown = tags._repr_html_()
    assert shown.count("<tr>") == 4
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


FAR = 2**63 - 1


@pytest.mark.parametrize(
    "offsets",
    [[0, FAR, -2, 4], [0, -(2**63), 4], [0, FAR, 4], np.array([0, 2**64 - 2, 4], dtype=np.uint64)],
)
def test_offsets_whose_differences_wrap_around_are_refused(offsets):
    """The difference of two int64 may wrap to a harmless number; a kernel would read foreign memory."""
    with pytest.raises(ValueError, match="fall"):
        Ragged(np.zeros((4, 1)), offsets)


def test_wrapping_offsets_are_refused_by_every_container(tmp_path):
    from tacit.ranking import Triplets
    from tacit.vision.maps.window_maps import WindowMaps

    with pytest.raises(ValueError, match="fall"):
        Triplets(np.array([0, FAR, -2, 4]), np.arange(4), np.zeros(4, dtype=np.int64)).check()
    boxes = np.tile([0.0, 0.0, 4.0, 4.0], (4, 1))
    with pytest.raises(ValueError, match="fall"):
        WindowMaps(np.zeros((3, 1)), [0, 1, 2, 3], [[1, 1]] * 3, [[4, 4]] * 3, [4.0] * 3, boxes, [0, FAR, -2, 4])
    Ragged(np.zeros((4, 1)), [0, 1, 2, 4]).to_shards(tmp_path / "bags", shards=1)
    file = next((tmp_path / "bags").glob("*offsets*"))
    np.save(file, np.array([0, FAR, -2, 4]))
    from tacit import Shards

    with pytest.raises(ValueError, match="damaged"):
        Shards(tmp_path / "bags")
