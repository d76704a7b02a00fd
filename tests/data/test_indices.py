"""Indices that kernels follow: whoever takes them from a user or a file refuses those outside of the data."""

import numpy as np
import pytest
from scipy import sparse

import tacit
from tacit import LatentSVM, Ragged, StructuredSVM
from tacit.data.arrays import as_csr
from tacit.oracle.losses import HiddenLoss, Reference
from tacit.penalties import GroupNorm
from tacit.problems import Candidates, Chain, Multiclass
from tacit.runtime.archive import StorageError, read_archive, write_archive
from tacit.vision.maps.window_maps import WindowMaps

FAR = 2**63 - 1
BAGS = Ragged(np.random.default_rng(0).standard_normal((8, 2)), np.arange(5) * 2)


def csr(indptr=(0, 2, 3), indices=(0, 1, 1)):
    matrix = sparse.csr_array((np.ones(3), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    matrix.indptr, matrix.indices = np.array(indptr), np.array(indices)
    return matrix


DAMAGED = {
    "indptr that wraps around": lambda: csr(indptr=(0, FAR, -2, 3)),
    "indptr that wraps around in a matrix of three rows": lambda: sparse.csr_array(
        (np.ones(3), np.array([0, 1, 1]), np.array([0, FAR, -2, 3])), shape=(3, 2)
    ),
    "columns outside": lambda: csr(indices=(0, 1, FAR)),
    "columns below 0": lambda: csr(indices=(0, 1, -(2**62))),
    "rows of a csc matrix outside": lambda: _change(csr().tocsc(), "indices", np.array([0, 1, 10**12])),
    "indptr of a csc matrix": lambda: _change(csr().tocsc(), "indptr", np.array([0, FAR, -2, 3])[[0, 1, 3]]),
    "coordinates outside": lambda: _change(csr().tocoo(), "coords", (np.array([0, 0, 10**12]), np.array([0, 1, 1]))),
    "blocks outside": lambda: _change(csr().tobsr((1, 1)), "indices", np.array([0, 1, 10**9])),
}


def _change(matrix, name, value):
    setattr(matrix, name, value)
    return matrix


@pytest.mark.parametrize("kind", DAMAGED)
def test_sparse_matrices_with_indices_outside_are_refused(kind):
    with pytest.raises(ValueError, match="damaged"):
        as_csr(DAMAGED[kind]())
    with pytest.raises(ValueError, match=r"damaged|sparse"):
        StructuredSVM(Multiclass()).fit(DAMAGED[kind](), [0, 1, 0][: DAMAGED[kind]().shape[0]])


@pytest.mark.parametrize("kind", ["f2", ">f8", ">f4", ">i8"])
def test_sparse_numbers_of_any_layout_are_read_as_the_same_numbers(kind):
    matrix = sparse.csr_array((np.array([1, 2, 3]).astype(kind), [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    assert np.array_equal(as_csr(matrix).toarray(), [[1, 2], [0, 3]])
    assert matrix.dtype == kind  # the caller's object is left alone
    X = sparse.csr_array((np.arange(1, 9).astype(kind), np.arange(8) % 2, np.arange(9)), shape=(8, 2))
    y = np.arange(8) % 2
    plain = sparse.csr_array((X.data.astype(float), X.indices, X.indptr), shape=X.shape).toarray()
    first, second = (StructuredSVM(Multiclass(), C=1).fit(own, y).coef_ for own in (X, plain))
    assert np.allclose(first, second, atol=1e-3)


@pytest.mark.parametrize("where", ["hidden_", "history_", "runs_"])
def test_hidden_values_in_model_files_must_be_cut_by_right_offsets(tmp_path, where):
    tokens = BAGS.values.reshape(4, 2, 2)
    model = LatentSVM(Chain(states=2), C=1).fit(tokens, [[0, 1]] * 4)
    model.save(tmp_path / "model")
    header, arrays = read_archive(tmp_path / "model", "model")
    names = [name for name in arrays if name.startswith(f"fact.{where}") and name.endswith("offsets")]
    assert names
    arrays[names[-1]] = np.array([0, FAR, -2, 6, 8])
    parts = {name: header[name] for name in ("learner", "params", "facts")}
    write_archive(tmp_path / "forged", "model", parts, arrays)
    with pytest.raises(StorageError, match="fall"):
        tacit.load(tmp_path / "forged")


def test_oracles_refuse_offsets_and_labels_that_kernels_cannot_follow():
    problem = Candidates()
    schema = problem.schema(BAGS, np.array([0, 1, 0, 1]))
    oracle = problem.bind(BAGS, np.array([0, 1, 0, 1]), schema)
    kind = type(oracle).__mro__[-1 - [c.__name__ for c in type(oracle).__mro__[::-1]].index("EnumerableOracle")]
    with pytest.raises(ValueError, match="fall"):
        kind.__init__(oracle, schema.classes, np.array([0, FAR, -2, 8]), 6)
    for labels in ([0, 1, 0, 3], [0, 1, 0, -1], [0, 1, 0], [0.0, 1.0, 0.0, 1.0]):
        with pytest.raises(ValueError, match="labels"):
            kind.__init__(oracle, schema.classes, BAGS.offsets, 6, labels=np.array(labels))


def test_tables_of_a_loss_must_fit_the_samples():
    reference = Reference(np.zeros(2, int))
    with pytest.raises(ValueError, match="kinds"):
        HiddenLoss(np.array([0, -1]), [np.zeros((2, 2))]).table(2, np.array([0, 2, 4]), np.zeros(2, int), reference)
    loss = HiddenLoss(np.zeros(2, int), lambda kind: np.zeros((1, 1)), sizes=np.array([2]))
    with pytest.raises(ValueError, match="table"):
        loss.table(2, np.array([0, 2, 4]), np.zeros(2, int), reference)


def test_grids_of_maps_whose_product_wraps_around_are_refused():
    inverse = pow(3, -1, 2**64)
    n, far = next((n, n * inverse % 2**64) for n in (13, 14, 16, 17) if n * inverse % 2**64 < 2**63)
    assert (np.array([3]) * np.array([far]))[0] == n  # in 64 bits
    with pytest.raises(ValueError, match="grid"):
        WindowMaps(np.ones((n, 2)), [0, n], [[3, far]], [[far, 3]], 1, [[0, 0, far, 3]], [0, 1])
    for grids, sizes in (([["a", "b"]], [[4, 3]]), ([[3, 4]], [[np.nan, 3]]), ([[3, 4]], [[[1]]]), ([3, 4, 5], [4, 3])):
        with pytest.raises(ValueError, match=r"grids|sizes"):
            WindowMaps(np.ones((12, 2)), [0, 12], grids, sizes, 1, [[0, 0, 4, 3]], [0, 1])


@pytest.mark.parametrize(
    "groups", [[0, 0, -1], [0, 0, 2], [0, 0, 2**62], [0.5, 0, 1], np.ma.masked_array([0, 0, 1], 1)]
)
def test_group_norms_refuse_groups_outside_before_they_are_followed(groups):
    for use in (lambda norm: norm.value(np.ones(3)), lambda norm: norm.steepness(np.ones(3))):
        with pytest.raises(ValueError, match="groups"):
            use(GroupNorm(groups))


@pytest.mark.parametrize("w", [np.ones(100_000), np.ones(2), np.ones((3, 1)), ["a"], np.ma.masked_array(np.ones(3), 1)])
def test_group_norms_refuse_vectors_of_another_size(w):
    norm = GroupNorm([0, 0, 1])
    for use in (norm.value, norm.norms, norm.primal, norm.steepness, norm.near(np.zeros(3), 1.0).primal):
        with pytest.raises(ValueError, match=r"numbers|masked"):
            use(w)
    with pytest.raises(ValueError, match=r"numbers|masked"):
        norm.near(w, 1.0).primal(np.zeros(3))
    assert norm.value([3, 4, 1]) == 6.0
