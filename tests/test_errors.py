"""Bad input: the error names the cause, the place and the remedy, before any work starts."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tacit import HiddenCRF, LatentPerceptron, LatentSVM, Ragged, StructuredSVM, path, windows
from tacit.datasets import BoxTable, boxes_voc, join_boxes, write_idx
from tacit.oracle import CapabilityError
from tacit.problems import Candidates, Chain, Motif, Multiclass, PerSample, Transforms, rotations
from tacit.solvers import Bundle, FrankWolfe
from tacit.spectral import SpectralAutomaton, SpectralHMM, WeightedAutomaton
from tacit.vision.boxes import overlap

X = np.arange(12.0).reshape(6, 2)
Y = [0, 1, 2, 0, 1, 2]
FRAME = pd.DataFrame({"id": [0, 0, 1], "x": [1.0, 2.0, 3.0]})
BAGS = [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]], [[6.0, 7.0]]]


def hole(value, dtype=float):
    table = X.astype(dtype)
    table[4, 1] = value
    return table


@pytest.mark.parametrize(
    ("problem", "data", "labels", "words"),
    [
        (Multiclass(), hole(np.nan), Y, "NaN or infinity: nan in row 4, column 1; drop the row"),
        (Multiclass(), hole(np.inf), Y, "inf in row 4, column 1"),
        (Multiclass(), hole(np.nan, np.float32), Y, "row 4, column 1"),
        (Multiclass(), X, Y[:5], "X has 6 samples, y has 5 labels"),
        (Multiclass(), X, None, "y to be passed"),
        (Multiclass(), X, [0] * 6, "only one class"),
        (Multiclass(), sparse.csr_matrix(hole(np.nan)), Y, "nan in row 4, column 1"),
        (Multiclass(), X, [1, "a", 2.5, 1, "a", 2.5], r"y mixes kinds: y\[0\] is 1, y\[1\] is 'a'"),
        (Multiclass(loss=[[0, 1], [1]]), X, Y, "rows of equal length"),
        (Multiclass(), X, [0, 1, None, 0, 1, 2], r"y\[2\]"),
        (Multiclass(), X, [0, 1, np.nan, 0, 1, 2], r"y\[2\]"),
        (Multiclass(), X, np.linspace(0, 1, 6), "Unknown label type"),
        (Multiclass(classes=[0, 1]), X, Y, r"y\[2\]"),
        (Multiclass(classes=[0, 0]), X, Y, "classes"),
        (Multiclass(classes=["0", "1", "2"]), X, Y, r"y\[0\]"),
        (Multiclass(loss="hinge"), X, Y, "hinge"),
        (Multiclass(loss=[[0, 1], [1, 0]]), X, Y, r"\(2, 2\)"),
        (Multiclass(loss=[[0, 1, 1], [1, 0, -1], [1, 1, 0]]), X, Y, r"loss\[1, 2\]"),
        (Multiclass(loss=[[0, 1, 1], [1, 2, 1], [1, 1, 0]]), X, Y, r"loss\[1, 1\]"),
        (Multiclass(), [[1, 2], [3]], [0, 1], "X.*row 1"),
        (Multiclass(), np.array([[1, 2], [3]], dtype=object), [0, 1], "row 1"),
        (Multiclass(), [[1, 2], 3], [0, 1], "row 1"),
        (Multiclass(), [[1, 2], [3, [4]]], [0, 1], r"\[4\]"),
        (Multiclass(), X[:2], [[0, 1], [0]], "entry 1"),
        (Transforms([]), [np.ones((2, 2)), np.ones((3, 2))], [0, 1], r"\(3, 2\)"),
        (Transforms([]), [5, [1.0, 2.0]], [0, 1], r"\(2,\)"),
        (Transforms([]), [[[1.0], [2.0, 3.0]]] * 2, [0, 1], "input 0"),
        (Candidates(), [[[1, 2], [3]]], [0], "bag 0"),
        (Candidates(), [], [], "no samples"),
        (Candidates(), [*BAGS[:2], np.empty((0, 2))], [0, 1, 1], "bag 2 has 0 candidates; drop it or give it one"),
        (Candidates(), [*BAGS[:2], []], [0, 1, 1], "bag 2 has 0 candidates"),
        (Candidates(), [*BAGS[:2], [[1.0]]], [0, 1, 1], "bag 2 has rows of 1 numbers, bag 0 has rows of 2"),
        (Candidates(), [*BAGS[:2], [[1.0, np.nan]]], [0, 1, 1], "nan in bag 2, candidate 0, feature 1"),
        (Candidates(), [[1.0], [2.0]], [0, 1], "candidate must be a vector"),
        (Candidates(), BAGS, [0, 1], "X has 3 samples, y has 2 labels"),
        (Candidates(), BAGS, [0, 1, 0], "hidden"),
    ],
)
def test_bad_data(problem, data, labels, words):
    with pytest.raises(ValueError, match=words) as raised:
        StructuredSVM(problem).fit(data, labels)
    assert "inhomogeneous" not in str(raised.value)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"C": 0}, "C=0"),
        ({"C": -1.0}, "C=-1.0"),
        ({"C": np.nan}, "C=nan"),
        ({"C": np.inf}, "C=inf"),
        ({"C": "1"}, "C='1'"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"max_iter": 1.5}, "max_iter=1.5"),
        ({"class_weight": {9: 1.0}}, r"class_weight.*9"),
        ({"class_weight": {0: -1.0}}, r"class_weight\[0\]=-1.0"),
        ({"class_weight": "even"}, "even"),
        ({"class_weight": np.ones(3)}, "class_weight"),
        ({"class_weight": {0: "a"}}, r"class_weight\[0\]='a'"),
        ({"class_weight": {0: 0, 1: 0, 2: 0}}, "class_weight"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"resume": True}, "checkpoint"),
        ({"checkpoint": "no/such/folder/file"}, "no/such/folder"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(ValueError, match=words):
        StructuredSVM(Multiclass(), **parameters).fit(X, Y)


def test_bad_objects():
    with pytest.raises(TypeError, match="problem"):
        StructuredSVM(Multiclass).fit(X, Y)
    with pytest.raises(TypeError, match="problem"):
        StructuredSVM("multiclass").fit(X, Y)
    with pytest.raises(TypeError, match="callbacks"):
        StructuredSVM(Multiclass(), callbacks=print).fit(X, Y)
    with pytest.raises(TypeError, match="solver"):
        StructuredSVM(Multiclass(), solver=Bundle).fit(X, Y)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1.0, -1.0, 1, 1, 1, 1], "-1.0"),
        ([1.0, np.nan, 1, 1, 1, 1], "nan"),
        ([1.0], "sample_weight"),
        (np.zeros(6), "sample_weight"),
        (np.ones((6, 2)), "1D array"),
    ],
)
def test_bad_sample_weights(weight, words):
    with pytest.raises(ValueError, match=words):
        StructuredSVM(Multiclass()).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        ([2, 0, 0], r"hidden\[0\]"),
        ([-2, 0, 0], r"hidden\[0\]"),
        ([0, 0], "hidden"),
        ([0.5, 0, 0], "hidden"),
        (["a", "b", "c"], "hidden"),
        ([-1, 0, 0], "hidden"),
        ([None, 0, 0], "hidden"),
    ],
)
def test_bad_hidden_values(hidden, words):
    with pytest.raises(ValueError, match=words):
        StructuredSVM(Candidates()).fit(BAGS, [0, 1, 0], hidden=hidden)


def test_multiclass_has_nothing_hidden():
    with pytest.raises(ValueError, match="hidden="):
        StructuredSVM(Multiclass()).fit(X, Y, hidden=[0] * 6)


def test_bad_input_at_prediction():
    model = StructuredSVM(Multiclass(), C=1).fit(X, Y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match="row 4"):
        model.predict(hole(np.nan))
    bags = StructuredSVM(Candidates(), C=1).fit(BAGS, [0, 1, 0], hidden=[0, 0, 0])
    with pytest.raises(ValueError, match="3 features"):
        bags.predict([[[1.0, 2.0, 3.0]]])
    with pytest.raises(ValueError, match="sample 1"):
        bags.impute(BAGS, [0, 9, 1])
    for weight, words in (
        ([1.0], "sample_weight"),
        (np.zeros(6), "sample_weight"),
        ([-1.0] * 6, "-1.0"),
    ):
        with pytest.raises(ValueError, match=words):
            model.score(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match="sample 2"):
        bags.set_params(n_jobs=2).impute(BAGS, [0, 1, 9])
    with pytest.raises(ValueError, match=r"\[bag\]"):
        bags.predict(np.array(BAGS[0]))
    costly = StructuredSVM(Multiclass(loss=1 - np.eye(3)), C=1).fit(X, Y)
    with pytest.raises(ValueError, match=r"y\[5\]"):
        costly.score(X, [0, 1, 2, 0, 1, 7])


def test_extreme_weights_have_a_defined_result():
    plain = StructuredSVM(Multiclass()).fit(X, Y)
    for size in (1e308, 1e-310):
        scaled = StructuredSVM(Multiclass()).fit(X, Y, sample_weight=np.full(6, size))
        assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-3)
    gone = StructuredSVM(Multiclass(), class_weight="balanced").fit(X, Y, sample_weight=[1e9, 1e9, 0, 1e9, 1e9, 0])
    assert np.isfinite(gone.coef_).all()


def test_overflow_is_an_error_not_a_nan():
    huge = np.where(np.arange(12).reshape(6, 2) % 2, 1e200, -1e200)
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="scale the features"):
        StructuredSVM(Multiclass(), C=1e200).fit(huge, Y)


def test_a_problem_without_the_needed_method_is_named():
    class Mute(Multiclass):
        def bind(self, X, y, schema, *, hidden=None):
            class Oracle:
                n_samples, n_params = 6, 9

                def exact(self): ...
                def decode(self): ...
                def hidden_unknown(self): ...
                def impute(self): ...
                def loss(self): ...
                def accepts(self): ...

            return Oracle()

    with pytest.raises(CapabilityError, match="`predict_augmented` and `features`"):
        StructuredSVM(Mute()).fit(X, Y)


def test_values_at_the_edge_have_a_defined_result():
    one_each = StructuredSVM(Multiclass(), C=1).fit(X[:3], Y[:3])
    assert set(one_each.predict(X)) <= {0, 1, 2}
    zeros = StructuredSVM(Multiclass(), C=1).fit(np.zeros((3, 2)), Y[:3])
    assert zeros.objective_ == pytest.approx(1.0)
    assert np.isfinite(zeros.coef_).all()
    integers = StructuredSVM(Candidates(), C=1).fit(Ragged(np.arange(3)[:, None], [0, 1, 3]), ["a", "b"], hidden=[0, 1])
    assert integers.predict([[[0]]]).tolist() == ["a"]
    free = StructuredSVM(Multiclass(loss=np.zeros((3, 3))), C=1).fit(X, Y)
    assert free.objective_ == 0
    assert free.score(X, Y) == 1


def test_what_pandas_writes_for_a_missing_value_is_missing():
    """NA is neither equal to itself nor not: every comparison with it is an error of its own."""
    with pytest.raises(ValueError, match=r"y\[2\]"):
        StructuredSVM(Multiclass()).fit(X, [0, 1, pd.NA, 0, 1, 2])
    with pytest.raises(ValueError, match=r"y\[1\]"):
        StructuredSVM(Multiclass()).fit(X, pd.Series([0, None, 2, 0, 1, 2], dtype="Int64"))
    with pytest.raises(ValueError, match=r"y\[1\]"):
        StructuredSVM(Multiclass()).fit(X, pd.Series(["a", None, "b", "a", "b", "a"], dtype="string"))
    tokens = X.reshape(3, 2, 2)
    for gap in (None, pd.NA, np.nan, pd.NaT, -1):
        tagged = LatentSVM(Chain(), C=1).fit(tokens, [["a", "b"], ["b", gap], ["a", "a"]])
        assert tagged.hidden_[1].tolist() == ["b", tagged.hidden_[1][1]]
        known = LatentSVM(Candidates(), C=1).fit(tokens, [0, 1, 0], hidden=[1, gap, 0])
        assert known.hidden_[[0, 2]].tolist() == [1, 0]
        assert 0 <= known.score_hidden(tokens, [0, 1, 0], [1, gap, 0]) <= 1
    series = pd.Series([1, None, 0], dtype="Int64")
    assert LatentSVM(Candidates(), C=1).fit(tokens, [0, 1, 0], hidden=series).hidden_[0] == 1
    sequences = ["ACGTACGTAC"] * 4
    starts = StructuredSVM(Motif(3), C=1).fit(sequences, [0, 1, 0, 1], hidden=[pd.NA, 1, None, 2]).hidden_
    assert starts.tolist() == [-1, 1, -1, 2]
    both = [[pd.NA, pd.NA], [1, 0], [-1, -1], [2, 1]]
    pairs = StructuredSVM(Motif(3, strands="both"), C=1).fit(sequences, [0, 1, 0, 1], hidden=both).hidden_
    assert pairs.tolist() == [[-1, -1], [1, 0], [-1, -1], [2, 1]]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: Ragged.of(3), TypeError, "bags"),
        (lambda: Ragged.of(None), TypeError, "bags"),
        (lambda: Ragged([[1], [2, 3]], [0, 2]), ValueError, "row 1"),
        (lambda: Ragged([1, 2], [[0], [1, 2]]), ValueError, "offsets"),
        (lambda: Ragged.from_frame([1, 2], "a"), TypeError, "pandas"),
        (lambda: Ragged.concatenate(Ragged([1], [0, 1])), TypeError, r"first, second"),
        (
            lambda: StructuredSVM(Chain()).fit(X.reshape(3, 2, 2), 3.0),
            ValueError,
            r"\by\b.*3\.0",
        ),
        (lambda: StructuredSVM(Candidates()).fit(BAGS, [0, 1, 0], hidden=[0, [1], 0]), ValueError, "hidden"),
        (lambda: StructuredSVM(Candidates()).fit(BAGS, [0, 1, 0], hidden=[0, [[1], [2, 3]], 0]), ValueError, "hidden"),
        (lambda: StructuredSVM(Multiclass(), checkpoint=3.5).fit(X, Y), TypeError, "checkpoint"),
        (
            lambda: StructuredSVM(Multiclass(classes=[None, 0, 1, 2])).fit(X, Y),
            ValueError,
            "classes",
        ),
        (lambda: StructuredSVM(Multiclass(classes=3)).fit(X, Y), ValueError, "classes"),
        (
            lambda: StructuredSVM(Chain(classes=[None, "a"])).fit(X.reshape(3, 2, 2), [["a", "a"]] * 3),
            ValueError,
            "classes",
        ),
        (
            lambda: StructuredSVM(Chain(forbidden=[(None, 1)])).fit(X.reshape(3, 2, 2), [[0, 1]] * 3),
            ValueError,
            r"forbidden.*\(None, 1\)",
        ),
        (
            lambda: StructuredSVM(Chain(forbidden=[([1], 1)])).fit(X.reshape(3, 2, 2), [[0, 1]] * 3),
            ValueError,
            r"forbidden.*\(\[1\], 1\)",
        ),
        (lambda: StructuredSVM(Multiclass()).fit(X, Y, sample_weight=["a"] * 6), ValueError, "sample_weight"),
        (
            lambda: StructuredSVM(Multiclass()).fit(X, Y, sample_weight=[[1], [2, 3]]),
            ValueError,
            "sample_weight",
        ),
        (lambda: StructuredSVM(Multiclass()).fit(X, [[0], [1, 2], 0, 0, 1, 1]), ValueError, "one label per sample"),
        (lambda: SpectralHMM(1).fit([["b", [], "b"]]), ValueError, "sequences"),
        (
            lambda: SpectralHMM(1).fit(["ab", "ba"], sample_weight=[1.7e308, 1.0]),
            ValueError,
            "sample_weight",
        ),
        (lambda: WeightedAutomaton([1.0], {}, [1.0], ["a"]), ValueError, "transitions must be an array of numbers"),
        (lambda: WeightedAutomaton([1.0], [[[0.5]]], [1.0], [None]), ValueError, "sequence 0"),
        (lambda: rotations(0, 1, 10**30), ValueError, "count must be a whole number from 1 to 10000"),
        (lambda: rotations("low", 1, 3), ValueError, "low must be an angle in degrees"),
        (lambda: overlap([0, 0, 1], [0, 0, 1, 1]), ValueError, r"first has shape \(3,\)"),
        (lambda: write_idx("digits.idx", [1, [2, 3]]), ValueError, r"array must have rows of one length, got \[1, \["),
        (lambda: Ragged.from_list([[[10**400]]]), ValueError, "bag 0 is not a table of numbers"),
        (lambda: Ragged.from_list(BAGS).map(float), TypeError, "map needs a transformer with .* got <class"),
        (lambda: StructuredSVM(Multiclass()).fit([[10**400], [1]], [0, 1]), ValueError, r"\bX\b"),
        (lambda: SpectralAutomaton(1, scaling=2**63).fit(["ab"]), ValueError, "scaling"),
        (lambda: windows("x" * 5000, [(4, 4)], stride=2), OSError, "xxx...xxx"),
        (lambda: boxes_voc("x" * 5000), FileNotFoundError, "VOC"),
        (lambda: Ragged.from_frame(FRAME, np.timedelta64(3)), ValueError, "column"),
        (
            lambda: path(StructuredSVM(Multiclass()), X, Y, [1], cv="x" * 9999),
            ValueError,
            "cv must be .* got 'x{1,50}\\.",
        ),
        (
            lambda: StructuredSVM(Multiclass(), random_state="x" * 9999).fit(X, Y),
            ValueError,
            "random_state must be .* got 'x{1,50}\\.",
        ),
        (
            lambda: StructuredSVM(Multiclass(), solver=FrankWolfe(cache=2**64)).fit(X, Y),
            ValueError,
            "cache=18446744073709551616",
        ),
        (lambda: fit_functions(joint_feature=lambda x, y: [10**400]), ValueError, "joint_feature"),
        (lambda: fit_functions(loss=lambda true, y: 10**400), ValueError, "loss"),
    ],
)
def test_what_cannot_be_is_said_in_our_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


NOTHING = np.array(3.0)
"""An array without dimensions: it has a method to go through its entries, which raises."""


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: (
                StructuredSVM(Candidates())
                .fit(BAGS, [0, 1, 1], hidden=[0, 0, 0])
                .score_hidden(BAGS, [0, 1, 1], NOTHING)
            ),
            "hidden",
        ),
        (lambda: StructuredSVM(Multiclass(), callbacks=NOTHING).fit(X, Y), "callbacks"),
        (lambda: StructuredSVM(Multiclass(classes=NOTHING)).fit(X, Y), "classes"),
        (
            lambda: StructuredSVM(Chain(forbidden=NOTHING)).fit(X.reshape(3, 2, 2), [[0, 1]] * 3),
            "forbidden",
        ),
        (lambda: LatentSVM(Motif(2, strands="both")).fit(["ACGT"] * 2, [0, 1], hidden=NOTHING), "hidden"),
        (lambda: fit_functions(outputs=NOTHING), "outputs"),
        (lambda: path(StructuredSVM(Multiclass()), X, Y, [1], cv=NOTHING), "cv must be a number of folds"),
        (lambda: windows(NOTHING, [(4, 4)], stride=2), "height"),
        (
            lambda: join_boxes(BoxTable(["a"], ["b"], [[0, 0, 1, 1]], [[5, 5]]), ["a"], NOTHING),
            "class",
        ),
        (lambda: SpectralAutomaton(NOTHING).fit(["ab", "ba"]), "n_states"),
        (lambda: Ragged.from_list(NOTHING), "list of bags"),
    ],
)
def test_an_array_without_dimensions_is_no_list(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def fitted_bags():
    return StructuredSVM(Candidates()).fit(BAGS, [0, 1, 1], hidden=[0, 0, 0])


def fit_functions(**functions):
    given = {"joint_feature": lambda x, y: [x * (y == 1)], "outputs": [0, 1]} | functions
    return StructuredSVM(PerSample(**given)).fit([1.0, 2.0], [0, 1])


def test_a_hidden_value_that_cannot_be_compared_is_a_wrong_one():
    truth = [0, [np.float16(1), [2, 3]], 0]
    assert fitted_bags().score_hidden(BAGS, [0, 1, 1], truth) == pytest.approx(2 / 3)


@pytest.mark.parametrize("parameters", [{"solver": slice(3)}, {"solver": range(3)}, {"penalty": Bundle()}])
def test_what_has_one_method_of_a_part_is_not_that_part(parameters):
    with pytest.raises(TypeError, match=next(iter(parameters))):
        StructuredSVM(Multiclass(), **parameters).fit(X, Y)


def test_codes_to_prefer_are_one_per_sample():
    problem = PerSample(
        lambda x, y, h: [x * (y == h)],
        argmax=lambda x, w: (0, 0),
        impute=lambda x, y, w: 0,
        hidden=True,
        blocks={"w": (1,)},
    )
    oracle = problem.bind([1.0, 2.0], [0, 1], problem.schema([1.0, 2.0], [0, 1]))
    with pytest.raises(ValueError, match=r"prefer.*\(1,\)"):
        oracle.impute(np.zeros(1), prefer=np.zeros(1, int))


def test_boxes_come_in_one_table_or_in_one_per_sample():
    """With as many rows as samples, a list of boxes and a list of tables have the same length."""
    one_each = Ragged([[1.0], [2.0]], [0, 1, 2])
    boxes = [[0, 0, 1, 1], [2, 2, 5, 5]]
    for form in (boxes, tuple(boxes), np.array(boxes), [np.array(box) for box in boxes], [[box] for box in boxes]):
        assert one_each.with_boxes(form).boxes.tolist() == boxes
    with_empty = Ragged([[1.0], [2.0]], [0, 2, 2])
    for form in (boxes, [boxes, []], [np.array(boxes), np.empty((0, 4))]):
        assert with_empty.with_boxes(form).boxes.tolist() == boxes
    for form, words in (
        ([[boxes[0]], boxes], "sample 1"),
        ([[boxes[0]]], "2 samples"),
        ([[boxes[0]], [[1, 2], [3]]], "sample 1"),
        (boxes[:1], "shape"),
        ("boxes", "four numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            one_each.with_boxes(form)


@pytest.mark.parametrize("learner", [LatentSVM, HiddenCRF, LatentPerceptron])
def test_more_starts_than_can_be_kept_are_refused(learner):
    with pytest.raises(ValueError, match="n_init"):
        learner(Candidates(), n_init=10**500).fit([[[0.0], [1.0]], [[1.0], [2.0]]], [0, 1])
