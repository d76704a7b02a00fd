"""Lists that are none: numbers, arrays without dimensions and sparse tables are refused in words, wherever lists go."""

import numpy as np
import pytest
from scipy import sparse

from tacit import (
    HiddenCRF,
    LatentPerceptron,
    LatentSVM,
    MinEntropySVM,
    Ragged,
    RegionGraphs,
    RegionLabels,
    StructuredSVM,
    path,
    weak_labels,
)
from tacit.apps import MotifFinder, WordAligner
from tacit.data.parameters import entries, has_length
from tacit.datasets import BoxTable, join_boxes, write_two_columns
from tacit.learners.path import one_each
from tacit.problems import Alignment, Candidates, Chain, Motif, Multiclass, PerSample, Sentences, Transforms, rotations
from tacit.problems.per_sample.user_functions import is_scalar, key_of
from tacit.ranking import Relevances, Triplets
from tacit.spectral import SpectralAutomaton
from tacit.testing.discovery import problems
from tacit.text import IBM1, Document, SentenceVectors, coreference_scores, mention_pairs
from tacit.text.coreference.pairs import read_pairs
from tacit.text.words import number_words
from tacit.vision.window_types import read_windows_and_types

GRAPHS = RegionGraphs([[[1.0], [2.0]]], edges=[[0, 1]], maps=[[[0, 1]]])
BOXES = BoxTable(np.array(["a.jpg"]), np.array([""]), np.array([[0, 0, 1.0, 1]]), [])
WORDS = [["a", "b"], ["c"], ["d"], ["a"]]

READERS = {
    "edge_offsets": (lambda odd: RegionGraphs([[[1.0], [2.0]]], edges=[[0, 1]], edge_offsets=odd), "edge_offsets must"),
    "graphs": (RegionGraphs.from_list, "a list of graphs"),
    "masks": (GRAPHS.mark, "masks"),
    "painted labels": (GRAPHS.paint, "a list of labels for each of 1 images"),
    "maps": (lambda odd: RegionGraphs([[[1.0]]], maps=odd), "one table of regions"),
    "labels of regions": (RegionLabels, "a list with the labels of every image"),
    "labels of one image": (lambda odd: RegionLabels([[0, 1], odd]), r"labels\[1\]"),
    "gold links": (lambda odd: WordAligner(verbose=0).fit(WORDS, WORDS, odd), "gold must be Links or None"),
    "sentences": (lambda odd: Document(odd, []), "sentences"),
    "tokens": (lambda odd: Document([odd], []), "tokens"),
    "mentions": (lambda odd: Document(WORDS, odd), "mentions"),
    "documents": (mention_pairs, "documents"),
    "clusters": (lambda odd: coreference_scores(odd, [[0, 0]]), "gold"),
    "tagged words": (lambda odd: write_two_columns("words.tsv", odd, [["N"]]), "a list of sentences"),
    "words": (number_words, "a list of sentences, each a list of words"),
    "basis": (
        lambda odd: SpectralAutomaton(1, basis=(odd, ["", "a"])).fit(["ab", "ba"]),
        "prefixes",
    ),
    "chosen sentences": (
        lambda odd: StructuredSVM(Sentences()).fit(np.ones((2, 2, 1)), [0, 1], hidden=odd),
        "hidden",
    ),
}


@pytest.mark.parametrize("odd", [3, np.array(3), sparse.coo_array(np.eye(2))], ids=["number", "array", "sparse"])
@pytest.mark.parametrize("name", READERS)
def test_what_cannot_be_gone_through_is_no_list(name, odd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    read, words = READERS[name]
    with pytest.raises(ValueError, match=words):
        read(odd)


def test_entries_are_counted():
    assert entries("gold", iter([1, 2]), "two numbers", 2) == [1, 2]
    assert not has_length(iter([1, 2]))
    with pytest.raises(ValueError, match="gold"):
        entries("gold", [1], "two numbers", 2)
    with pytest.raises(ValueError, match="gold"):
        entries("gold", "ab", "two numbers", 2)


def test_rows_of_several_lengths_are_refused_in_words():
    uneven = [[0, 1], [0, [1]]]
    with pytest.raises(ValueError, match="edges"):
        RegionGraphs([[[1.0], [2.0]]], edges=uneven)
    with pytest.raises(ValueError, match="edges"):
        RegionGraphs.from_list([([[1.0], [2.0]], None, np.datetime64("NaT"), [])])
    with pytest.raises(ValueError, match="hidden"):
        StructuredSVM(Sentences()).fit(np.ones((2, 3, 1)), [0, 1], hidden=[None, uneven])
    for odd in ({"a": 1}, [1, (1, 2), "x"], [0, [1], [2, 3]]):
        with pytest.raises(ValueError, match="hidden"):
            read_windows_and_types(odd, np.array([4, 4, 4]), 2)


def test_numbers_that_ask_for_too_much_are_refused():
    with pytest.raises(ValueError, match="clusters"):
        Document(WORDS, [(0, 1)], [10**30])
    with pytest.raises(ValueError, match="n_iter"):
        IBM1(n_iter=10**30).fit(WORDS, WORDS)
    with pytest.raises(ValueError, match="epochs"):
        LatentPerceptron(Candidates(), epochs=10**30).fit(np.ones((2, 2, 1)), [0, 1])
    for triplets, n_queries in (([[2**30, 0, 1]], None), ([[0, 1, 2]], 2**63)):
        with pytest.raises(ValueError, match="n_queries"):
            Triplets.from_array(triplets, n_queries)


OTHERS = [problem for problem in problems() if not isinstance(problem, PerSample)]


@pytest.mark.parametrize("problem", OTHERS, ids=repr)
def test_labels_weights_and_wishes_that_do_not_fit_are_refused_by_every_oracle(problem):
    X, y = problem.example(np.random.default_rng(0))[:2]
    oracle = problem.bind(X, y, problem.schema(X, y))
    w = np.zeros(oracle.n_params)
    code = oracle.predict(w).code
    for short in (w[:-1], w[:0], np.append(w, 0.0)):
        for call in (oracle.predict, lambda w: oracle.score(w, code)):
            with pytest.raises(ValueError, match=r"\bw\b"):
                call(short)
    for wish in (code[:-1], np.append(code, 0), code[:0]):
        with pytest.raises(ValueError, match="shape"):
            oracle.impute(w, prefer=wish)
    if hasattr(oracle, "best_under"):
        n = oracle.n_samples
        for labels in (np.zeros(n + 1, int), np.full(n, 9), np.full(n, -1), ["a"] * n, np.zeros(n)):
            with pytest.raises(ValueError, match="labels"):
                oracle.best_under(w, labels)
    with pytest.raises((ValueError, TypeError), match="losses"):
        oracle.with_loss("free")


def test_a_wrong_link_costs_a_number():
    problem = next(problem for problem in problems() if type(problem).__name__ == "Alignment")
    X, y = problem.example(np.random.default_rng(0))[:2]
    oracle = problem.bind(X, y, problem.schema(X, y))
    assert oracle.with_loss(np.float16(0.5)).wrong_link == 0.5
    for odd in (-1.0, np.nan, None, [0.5]):
        with pytest.raises(ValueError, match="losses"):
            oracle.with_loss(odd)


def test_functions_are_called_with_as_many_weights_as_they_have_features():
    problem = PerSample(lambda x, y: [x * y, 1.0], argmax=lambda x, w: int(w @ [x, 0.0] > 0), blocks={"w": (2,)})
    oracle = problem.bind([1.0, 2.0], [0, 1], problem.schema([1.0, 2.0], [0, 1]))
    with pytest.raises(ValueError, match=r"\bw\b.*\(3,\)"):
        oracle.predict(np.zeros(3))
    with pytest.raises(ValueError, match="1 labels"):
        oracle.encode([0])


def test_scores_beyond_single_precision_are_computed_in_double():
    """Scores of 4e38 are infinite in single precision, and the difference of two infinite ones is no number."""
    X = np.array([[[2e20, 1e20]], [[-2e20, 1e20]]], dtype=np.float32)
    model = StructuredSVM(Candidates(fit_intercept=False), C=1).fit(X / 1e20, [0, 1])
    model.coef_ = np.array([2e18, 1e19, 1e18, 1e19])
    assert model.decision_function(X) == pytest.approx([-2e38, 2e38], rel=1e-6)
    model.coef_ = np.full(4, 1e300)
    with np.errstate(over="ignore"), pytest.raises(FloatingPointError, match="sample 0"):
        model.decision_function(X)


def test_taggings_beyond_single_precision_are_found_in_double():
    X = np.array([[[2e20], [1e20]], [[-2e20], [1e20]]], dtype=np.float32)
    model = StructuredSVM(Chain(fit_intercept=False, boundaries=False), C=1).fit(X / 1e20, [["a", "b"], ["b", "a"]])
    model.coef_ = np.where(np.arange(model.coef_.size) < 2, 1e19 * np.sign(model.coef_), 0.0)
    assert np.isfinite(model.predict_proba(X).values).all()
    assert [len(tags) for tags in model.predict_best(X, k=2)[0]] == [2, 2]


def test_parameters_are_checked_before_they_are_compared():
    odd = sparse.eye_array(3, format="csr")
    for call, message in (
        (lambda: StructuredSVM(Motif(2, features=odd)).fit(["ACGT"] * 2, [0, 1]), "features"),
        (lambda: MotifFinder(n_motifs=odd).fit(["ACGT"] * 2, [0, 1]), "n_motifs"),
        (lambda: MotifFinder(C=odd).fit(["ACGT"] * 2, [0, 1]), "C"),
        (
            lambda: StructuredSVM(Transforms(rotations(-5, 5, 3), null=[True, [False]])).fit(
                np.ones((2, 3, 3)), [0, 1]
            ),
            "null",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_a_loss_that_cannot_be_called_so_is_named():
    for function in (len, int, lambda true, h: 0.0):
        with pytest.raises(TypeError, match="loss"):
            StructuredSVM(Candidates(loss=function)).fit(np.ones((2, 2, 1)), [0, 1], hidden=[0, 1])


def test_choosing_an_order_needs_one_value_per_sample():
    X, model = np.arange(8.0).reshape(4, 2, 1), MinEntropySVM(Candidates(), alpha="cv", alphas=[0.5, 2.0], cv=2)
    for given, keyword in (
        ({"hidden": np.array(3)}, "hidden"),
        ({"sample_weight": [1.0]}, "sample_weight"),
        ({"sample_weight": np.array(3)}, "sample_weight"),
    ):
        with pytest.raises(ValueError, match=keyword):
            model.fit(X, [0, 1, 0, 1], **given)


def test_columns_and_folds_that_are_none_are_refused():
    for columns in ([0, [1]], [10**30], 10**30):
        with pytest.raises(ValueError, match="queries"):
            Relevances(families={"left": columns}).table(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="cv"):
        path(StructuredSVM(Candidates()), np.ones((2, 1, 1)), [0, 1], [1.0], cv=sparse.eye_array(3, format="csr"))


def test_records_are_labels_as_their_tuples_are():
    record = np.array([(1, 2.0)], dtype=[("a", int), ("b", float)])[0]
    assert key_of(record) == key_of((1, 2.0))
    assert not is_scalar(record)


def test_sparse_pairs_of_mentions_are_refused():
    with pytest.raises(TypeError, match="toarray"):
        read_pairs(Ragged(sparse.csr_array(np.ones((2, 3))), [0, 2]))


def test_values_without_order_are_not_one_per_sample():
    with pytest.raises(ValueError, match="hidden"):
        one_each("hidden", {0, 1}, 2)


def test_a_label_that_cannot_be_looked_up_is_refused():
    problem = PerSample(joint_feature=lambda x, y: np.ones(1), outputs=[np.timedelta64(5), 1])
    with pytest.raises(ValueError, match="timedelta64"):
        StructuredSVM(problem, verbose=0).fit([0.0, 1.0], [1, 1])


def test_families_that_cannot_be_looked_up_are_refused():
    with pytest.raises(ValueError, match="families"):
        Relevances(families=["left", []]).read({"left": [[1.0]]})


@pytest.mark.parametrize("odd", [3, np.array("a.jpg"), sparse.csr_array(np.eye(2))])
def test_files_of_boxes_that_are_no_list_are_refused(odd):
    with pytest.raises(TypeError, match="files"):
        join_boxes(BOXES, odd)


ONCE = {
    "callbacks": lambda: LatentPerceptron(Multiclass(), callbacks=iter([print]), verbose=0).fit([[0.0], [1.0]], [0, 1]),
    "outputs": lambda: PerSample(lambda x, y: x, outputs=iter([0, 1])).schema([[1.0], [2.0]], [0, 1]),
    "forbidden": lambda: Chain(forbidden=iter([("a", "b")])).schema([[[1.0], [2.0]]], [["a", "b"]]),
    "a list of words": lambda: IBM1().fit([iter(["la", "maison"])], [["the", "house"]]),
    "a list of sentences": lambda: SentenceVectors().fit([iter(["One.", "Two."])]),
}


@pytest.mark.parametrize("name", ONCE)
def test_what_can_be_gone_through_only_once_is_refused_where_it_is_needed_again(name):
    with pytest.raises((TypeError, ValueError), match=name):
        ONCE[name]()


def test_quantiles_and_words_of_weak_labels_may_come_from_an_iterator():
    found = weak_labels(GRAPHS, contains=iter([True]), quantiles=iter([0.1, 0.9]))
    assert len(found) == 1
    with pytest.raises(ValueError, match="quantiles"):
        weak_labels(GRAPHS, contains=[True], quantiles=[0.1])


def test_scores_of_links_that_overflow_are_refused():
    X = [np.full((2, 2, 1), 1e300), np.full((2, 2, 1), 1e300)]
    problem = Alignment()
    oracle = problem.bind(X, [1, -1], problem.schema(X, [1, -1]))
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="scores of links"):
        oracle.predict(np.full(oracle.n_params, 1e300))


def test_a_bound_of_many_digits_is_described():
    """A file may hold a whole number there that NumPy has no type for."""
    model = LatentSVM(Multiclass(), max_iter=1, tol=1.0, verbose=0).fit([[0.0], [1.0]], [0, 1])
    model.bound_ = -(10**30)
    assert "lower bound -1e+30" in model._summary()


def test_long_labels_are_shortened_in_messages():
    long = "x" * 20_000
    model = LatentSVM(PerSample(lambda x, y: x, outputs=["a", "b"]), max_iter=1, verbose=0)
    with pytest.raises(ValueError, match="outputs=") as error:
        model.fit([[1.0], [2.0]], ["a", long])
    assert len(str(error.value)) < 500


def test_probabilities_and_entropies_of_scores_that_overflow_are_refused():
    X, y, huge = [[-1.0], [1.0], [-2.0], [2.0]], [0, 1, 0, 1], [[1.0], [1.7e308]]
    for model in (MinEntropySVM(Multiclass(), alpha=2.0, verbose=0), HiddenCRF(Multiclass(), verbose=0)):
        model.fit(X, y)
        model.coef_ = 100 * model.coef_
        is_entropy = isinstance(model, MinEntropySVM)
        questions = (model.label_entropy, model.label_proba) if is_entropy else (model.predict_proba,)
        for ask in questions:
            with pytest.raises(FloatingPointError, match="sample 1"):
                ask(huge)


def test_a_sparse_table_is_no_start_of_a_motif():
    model = LatentSVM(Motif(width=3, strands="both"), max_iter=1, verbose=0)
    with pytest.raises(ValueError, match=r"hidden\[1\]"):
        model.fit(["ACGTA", "CCGTA"], [0, 1], hidden=[[0, 0], sparse.csr_array(np.eye(2))])
