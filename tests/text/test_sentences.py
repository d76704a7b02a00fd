"""Documents whose sentences decide: selections against brute force, edge cases, reasons."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

import tacit
from tacit import LatentSVM, Ragged
from tacit.apps import ReasonFinder, Summariser
from tacit.problems import Sentences
from tacit.text import SentenceVectors, reasons
from tacit.text.sentences.vectors import read_document_file


def bound(X, share=0.5, budget="sentences"):
    y = ["a", "b"] * len(X)
    problem = Sentences(share=share, budget=budget)
    return problem.bind(X, y[: len(X)], problem.schema(X, y[: len(X)]))


@pytest.mark.parametrize("seed", range(6))
def test_the_chosen_words_are_the_best_that_fit(seed):
    rng = np.random.default_rng(seed)
    X = [np.column_stack([rng.integers(0, 7, n + 1), rng.standard_normal((n + 1, 2))]) for n in (1, 4, 7)]
    oracle = bound(X, share=0.4, budget="words")
    w = rng.standard_normal(oracle.n_params)
    chosen = oracle.decode(oracle.best_under(w, np.ones(3, int)).code)[1]
    for x, own in zip(X, chosen, strict=True):
        gain = x[1:, 1:] @ (w[:2] + w[2:4])
        room = int(0.4 * x[1:, 0].sum() + 1e-9)
        every = [c for k in range(len(gain) + 1) for c in itertools.combinations(range(len(gain)), k)]
        best = max(gain[list(c)].sum() for c in every if x[1:, 0][list(c)].sum() <= room)
        assert gain[own].sum() == pytest.approx(best)
        assert x[1:, 0][own].sum() <= room


def test_sparse_and_dense_documents_have_the_same_answers():
    rng = np.random.default_rng(0)
    dense = Ragged(rng.integers(0, 2, (40, 5)).astype(float), np.array([0, 1, 12, 40]))
    thin = dense.with_values(sparse.csr_array(dense.values))
    w = rng.standard_normal(16)
    one, two = bound(dense), bound(thin)
    assert np.array_equal(one.predict_augmented(w).code, two.predict_augmented(w).code)
    assert np.allclose(
        one.features(one.predict(w).code, np.arange(3.0)), two.features(two.predict(w).code, np.arange(3.0))
    )


def test_duplicate_sentences_tie_for_the_first():
    X = [np.ones((5, 1)), np.ones((2, 1))]
    oracle = bound(X)
    chosen = oracle.decode(oracle.predict(np.ones(4)).code)[1]
    assert [own.tolist() for own in chosen] == [[0, 1], [0]]


def test_a_document_without_sentences_is_decided_by_its_own_row():
    X = [np.array([[1.0]]), np.array([[-1.0]])]
    model = LatentSVM(Sentences(), C=100, verbose=0).fit(X, ["a", "b"])
    assert model.predict(X).tolist() == ["a", "b"]
    assert [decision.reasons for decision in reasons(model, X)] == [[], []]


@pytest.mark.parametrize(
    ("hidden", "match"),
    [([[0, 1], None], "exactly 1"), ([[5], None], "from 0 to 1"), ([None], "1 entries"), (["x", None], "hidden")],
)
def test_hidden_values_that_do_not_fit_are_refused(hidden, match):
    X = [np.ones((3, 1)), np.ones((2, 1))]
    with pytest.raises(ValueError, match=match):
        LatentSVM(Sentences(share=0.5), verbose=0).fit(X, ["a", "b"], hidden=hidden)


def test_lengths_must_be_whole_numbers():
    with pytest.raises(ValueError, match="row 1"):
        bound([np.array([[1.0, 2.0], [0.5, 1.0]])] * 2, budget="words")


def test_few_sentences_that_carry_the_label_are_found():
    rng = np.random.default_rng(0)
    texts, y, speaking = [], np.where(np.arange(300) % 2, "pos", "neg"), rng.integers(0, 10, 300)
    for label, speaker in zip(y, speaking, strict=True):
        sides = [label if t == speaker else rng.choice(["pos", "neg"]) for t in range(10)]
        texts.append(
            [
                f"{'overall think ' if t == speaker else ''}{side}{rng.integers(3)} plot{rng.integers(9)}"
                for t, side in enumerate(sides)
            ]
        )
    finder = ReasonFinder(share=0.1, verbose=0).fit(texts[:200], y[:200])
    found = finder.reasons(texts[200:])
    assert np.mean([d.reasons[0].position == s for d, s in zip(found, speaking[200:], strict=True)]) > 0.8
    accuracy = np.mean(finder.predict(texts[200:]) == y[200:])
    whole = SentenceVectors().fit(texts[:200])
    from sklearn.svm import LinearSVC

    rows = [whole.transform(part) for part in (texts[:200], texts[200:])]
    rows = [X.values[X.offsets[:-1]] for X in rows]
    assert accuracy > 0.15 + LinearSVC(random_state=0).fit(rows[0], y[:200]).score(rows[1], y[200:])


def test_reasons_add_up_to_the_margin():
    texts = ["Plot. A fine film!", "Plot. A dull film!", "Fine. Plot.", "Dull. Plot.", "Nothing known"]
    finder = ReasonFinder(share=1.0, min_documents=1, verbose=0).fit(texts[:4], [1, 2, 1, 2])
    X = finder._vectors(texts)
    weights = finder.model_.weights_
    whole = X.values[X.offsets[:-1]] @ weights["document"] + weights["intercept"]
    for decision, own in zip(finder.reasons(texts), whole, strict=True):
        sign = 1 if decision.label == 2 else -1
        assert decision.margin == pytest.approx(2 * (sum(r.score for r in decision.reasons) + sign * own), abs=1e-9)


def test_a_finder_survives_a_file(tmp_path):
    texts, y = ["Plot. A fine film!", "Plot. A dull film!", "", "Dull. Plot."], ["+", "-", "+", "-"]
    finder = ReasonFinder(share=0.5, budget="words", min_documents=1, verbose=0).fit(texts, y)
    finder.save(tmp_path / "finder.tacit")
    assert tacit.load(tmp_path / "finder.tacit").reasons(texts) == finder.reasons(texts)


def test_reasons_are_for_models_of_sentences():
    with pytest.raises(TypeError, match="Sentences"):
        reasons(LatentSVM(tacit.problems.Multiclass(), verbose=0).fit([[1.0], [2.0]], [1, 2]), [[1.0]])


def test_rows_are_those_of_scikit_learn():
    texts = ["a b a c. b d!", "b. c c", "d e. a"]
    vectors = SentenceVectors(min_documents=1).fit(texts)
    other = TfidfVectorizer(binary=True, vocabulary=vectors.words_, token_pattern=r"\w+|[^\w\s]+").fit(texts)
    table = vectors.transform(texts)
    assert np.allclose(table.values[table.offsets[:-1]].toarray(), other.transform(texts).toarray())


def test_known_sentences_teach_which_sentences_to_choose():
    rng = np.random.default_rng(0)
    texts, y, known = [], [], []
    for i in range(60):
        own = [f"{rng.choice(['fine', 'dull'])} w{rng.integers(9)}" for _ in range(5)]
        own[i % 5] = f"verdict {['dull', 'fine'][i % 2]} w{rng.integers(9)}"
        texts.append(own)
        y.append(i % 2)
        known.append([i % 5])
    finder = ReasonFinder(share=0.2, min_documents=1, verbose=0)
    hidden = [*known[:20], *[None] * 20]
    taught = finder.fit(texts[:40], y[:40], hidden).reasons(texts[40:])
    right = np.mean([own.reasons[0].position == place[0] for own, place in zip(taught, known[40:], strict=True)])
    assert right > 0.9


def test_sentences_are_chosen_by_an_svm_on_their_mean():
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(12)]
    texts = [[" ".join(rng.choice(words, 4)) for _ in range(rng.integers(1, 5))] for _ in range(30)]
    y = rng.choice(["+", "-"], 30)
    for budget in ("sentences", "words"):
        finder = ReasonFinder(budget=budget, verbose=0).fit(texts, y)
        rows = []
        for text in texts:
            sentences = np.array([[word in own.split() for word in finder.words_] for own in text]) * finder.idf_
            total = (sentences / np.linalg.norm(sentences, axis=1)[:, None]).sum(axis=0)
            rows.append(total / np.linalg.norm(total))
        other = LinearSVC(C=0.3, random_state=0).fit(rows, y).coef_[0]
        own = finder.model_.weights_["polarity"]
        expected = other / np.linalg.norm(other) * np.linalg.norm(own)
        assert np.allclose(finder.selection_, expected, atol=1e-3 * np.abs(own).max())
    finder = ReasonFinder(verbose=0).fit(texts, y)
    table = SentenceVectors().fit(texts).transform(texts)
    for decision, rows in zip(finder.reasons(texts), table, strict=True):
        sign = 1.0 if decision.label == finder.classes_[1] else -1.0
        subjectivity = finder.model_.weights_["subjectivity"]
        longer = np.diff(rows.indptr)[1:] ** 0.25
        wanted = np.argsort(-longer * (rows[1:] @ (sign * finder.selection_ + subjectivity)), kind="stable")
        assert {own.position for own in decision.reasons} == set(wanted[: finder.count_chosen(len(wanted))].tolist())
    assert np.array_equal(finder.predict(texts), finder.model_.predict(table))
    known = ReasonFinder(verbose=0).fit(texts, y, [[0]] * 30)
    assert np.array_equal(known.selection_, known.model_.weights_["polarity"])


@pytest.mark.parametrize("hidden", [[[0]], [[9], None], [[0, 0], None], [0, 1], [[-1], None]])
def test_known_sentences_must_be_of_their_document(hidden):
    with pytest.raises(ValueError, match="hidden"):
        ReasonFinder(min_documents=1, verbose=0).fit(["Fine. Plot.", "Dull. Plot."], ["+", "-"], hidden)


def articles(n):
    """Documents whose summary is the sentence that begins with "so"."""
    rng = np.random.default_rng(1)
    texts = [[f"w{a} w{b} v{c}." for a, b, c in rng.integers(20, size=(6, 3))] for _ in range(n)]
    for i, own in enumerate(texts):
        own[1 + i % 5] = f"so u{i} t{i % 7}."
    return texts, [own[1 + i % 5] for i, own in enumerate(texts)]


def test_a_summariser_learns_which_sentences_summaries_have():
    texts, summaries = articles(60)
    model = Summariser(share=0.2, min_documents=1, verbose=0).fit(texts[:40], [*summaries[:30], *[None] * 10])
    assert model.source_ == "summaries"
    assert model.held_out_["this model"] > model.held_out_["first sentences"]
    assert model.predict(texts[40:]) == [[1 + i % 5] for i in range(40, 60)]
    assert model.describe_gain() == ""


def test_a_summariser_learns_from_labels_where_there_are_no_summaries(tmp_path):
    texts = ["Plot. Plot. A fine film!", "Plot. A dull film! Plot.", "So fine. Plot. Plot.", "Dull. Plot. Plot."]
    y = [1, 0, 1, 0]
    model = Summariser(share=0.5, min_documents=1, verbose=0).fit(texts, y=y)
    model.save(tmp_path / "m.tacit")
    assert tacit.load(tmp_path / "m.tacit").predict(texts) == model.predict(texts)
    assert 2 in model.predict(texts)[0]
    with pytest.raises(ValueError, match="summaries"):
        Summariser(min_documents=1).fit(texts)


def test_documents_of_a_table_are_those_of_json_lines(tmp_path):
    lines, table = tmp_path / "a.jsonl", tmp_path / "a.csv"
    lines.write_text('\ufeff{"id": "x", "text": "Dr. No waits. Fine!", "label": "+"}\r\n{"text": "Dull."}', "utf-8")
    table.write_text('\ufeffid;label;text\r\nx;+;"Dr. No waits. Fine!"\r\ndocument 2;;Dull.', "utf-8")
    found = read_document_file(lines)
    assert found == read_document_file(table)
    assert found.documents == [["Dr. No waits.", "Fine!"], ["Dull."]]
    assert found.spans == [[(0, 13), (14, 19)], [(0, 5)]]
    assert found.labels == ["+", None]
