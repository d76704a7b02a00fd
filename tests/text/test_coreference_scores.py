"""Measures of coreference, against the published examples of the reference scorer (Pradhan et al. 2014)."""

import numpy as np
import pytest

from tacit.text import Document, coreference_scores

A = "a bc def"
D = "12345 67 89ABC"
EXAMPLES = [
    # key, response, then recall and precision by measure
    (A, "a bc def", {"muc": (1, 1), "b3": (1, 1), "ceafe": (1, 1), "lea": (1, 1)}),
    (A, "a de", {"muc": (1 / 3, 1), "b3": (7 / 18, 1), "ceafe": (0.6, 0.9), "lea": (2 / 6, 1)}),
    (A, "a bcx defy z", {"muc": (1, 3 / 5), "b3": (1, 55 / 108), "ceafe": (0.88571, 0.66429), "lea": (1, 4 / 9)}),
    (A, "a bcx dy z", {"muc": (1 / 3, 1 / 3), "b3": (5 / 9, 17 / 42), "ceafe": (0.73333, 0.55), "lea": (0.5, 2 / 7)}),
    (
        A,
        "a bcxB dy z",
        {"muc": (1 / 3, 1 / 4), "b3": (5 / 9, 5 / 16), "ceafe": (0.68889, 0.51667), "lea": (0.5, 5 / 24)},
    ),
    (A, "a bcx dy Bz", {"muc": (1 / 3, 1 / 4), "b3": (5 / 9, 17 / 48), "ceafe": (0.73333, 0.55), "lea": (0.5, 1 / 4)}),
    # a mention that the response has twice counts once, where it stands first
    (A, "a bcxb dy z", {"muc": (1 / 3, 1 / 3), "b3": (5 / 9, 17 / 42), "ceafe": (0.73333, 0.55), "lea": (0.5, 2 / 7)}),
    (A, "a bcx dy bz", {"muc": (1 / 3, 1 / 3), "b3": (5 / 9, 17 / 42), "ceafe": (0.73333, 0.55), "lea": (0.5, 2 / 7)}),
    (A, "a b c d e f", {"muc": (0, 0), "b3": (1 / 2, 1), "lea": (1 / 6, 1 / 6)}),
    (A, "abcdef", {"muc": (1, 3 / 5), "b3": (1, 7 / 18), "lea": (5 / 6, 4 / 15)}),
    (A, "a x y c d e z", {"muc": (0, 0), "b3": (13 / 36, 4 / 7), "lea": (1 / 6, 1 / 7)}),
    (A, "axycdez", {"muc": (1 / 3, 1 / 6), "b3": (17 / 36, 6 / 49), "lea": (1 / 6, 1 / 21)}),
    ("ab cde", "bcx de", {"lea": (1 / 5, 2 / 5)}),
    ("ab cde fg", "bcx de fg", {"lea": (3 / 7, 4 / 7)}),
    (D, "12345 6789ABC", {"muc": (1, 9 / 10), "b3": (1, 16 / 21), "lea": (1, (5 + 7 * 11 / 21) / 12)}),
    (D, "1234589ABC 67", {"muc": (1, 9 / 10), "b3": (1, 7 / 12), "lea": (1, (10 * 20 / 45 + 2) / 12)}),
    ("ABCD", "AB CD", {"muc": (2 / 3, 1), "lea": (1 / 3, 1)}),
    ("AB CD", "ABCD", {"muc": (1, 2 / 3), "lea": (1, 1 / 3)}),
    ("ABC", "AC", {"muc": (1 / 2, 1), "lea": (1 / 3, 1)}),
    ("BCDEGHJ", "ABC DEF GHI", {"muc": (3 / 6, 3 / 6), "lea": (3 / 21, 3 / 9)}),
    ("ABC DEFG", "AB CD FGH", {"muc": (2 / 5, 2 / 4), "lea": ((1 + 4 / 6) / 7, 3 / 7)}),
    ("abcdef", "abcdef", {"muc": (1, 1), "b3": (1, 1), "ceafe": (1, 1), "lea": (1, 1)}),
    ("abcdef", "ab cde f", {"lea": (4 / 15, 5 / 6)}),
    ("abcdef", "abcxyz", {"lea": (1 / 5, 1 / 5)}),
    ("a b c d e f", "a b c d e f", {"muc": (0, 0), "b3": (1, 1), "ceafe": (1, 1), "lea": (1, 1)}),
    ("a b c d e f", "ab cde f", {"lea": (1 / 6, 1 / 6)}),
    ("a b c d e f", "a b c x y z", {"muc": (0, 0), "lea": (1 / 2, 1 / 2)}),
]


def spans(text):
    """Clusters of letters as clusters of spans."""
    return [[(ord(letter), ord(letter) + 1) for letter in cluster] for cluster in text.split()]


@pytest.mark.parametrize(
    ("key", "response", "expected"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_published_examples(key, response, expected):
    scores = coreference_scores([spans(key)], [spans(response)])
    for name, (recall, precision) in expected.items():
        assert scores[name].recall == pytest.approx(recall, abs=1e-4)
        assert scores[name].precision == pytest.approx(precision, abs=1e-4)
        f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
        assert scores[name] == pytest.approx(f1, abs=1e-4)
    assert scores["conll"] == pytest.approx((scores.muc + scores.b3 + scores.ceafe) / 3)


def test_counts_are_added_over_documents_before_they_are_divided():
    one, two = (A, "a de"), ("AB CD", "ABCD")
    scores = coreference_scores([spans(one[0]), spans(two[0])], [spans(one[1]), spans(two[1])])
    assert scores.muc.recall == pytest.approx((1 + 2) / (3 + 2))
    assert scores.muc.precision == pytest.approx((1 + 2) / (1 + 3))


def test_pairwise_is_the_share_of_wrong_pairs():
    from sklearn.metrics import rand_score

    rng = np.random.default_rng(0)
    gold, predicted = ([rng.integers(0, 4, n) for n in (5, 9, 30)] for _ in range(2))
    expected = np.mean([1 - rand_score(a, b) for a, b in zip(gold, predicted, strict=True)])
    assert coreference_scores(gold, predicted)["pairwise"] == pytest.approx(expected)


def test_all_ways_to_write_clusters_agree():
    gold, predicted = [0, 1, 1, 2, 2, 2], [0, 1, 1, 2, 2, 1]
    text = Document([list("abcdef")], [(i, i + 1) for i in range(6)])
    ways = [
        (gold, predicted),
        ([gold], [predicted]),
        (np.array(gold), np.array([7, 3, 3, 5, 5, 3])),
        ([{"a"}, {"b", "c"}, {"d", "e", "f"}], [{"a"}, {"b", "c", "f"}, {"d", "e"}]),
        (text.with_clusters(gold), text.with_clusters(predicted)),
    ]
    first, *others = (dict(coreference_scores(*way)) for way in ways)
    assert list(first) == ["muc", "b3", "ceafe", "conll", "lea", "pairwise"]
    assert all(other == pytest.approx(first) for other in others)


def test_a_perfect_answer_and_a_single_mention():
    scores = coreference_scores([[0, 1, 0], [0]], [[5, 2, 5], [9]])
    assert scores["conll"] == scores["lea"] == 1
    assert scores["pairwise"] == 0


@pytest.mark.parametrize(
    ("gold", "predicted", "keyword"),
    [
        ([[0, 1]], [[0, 1], [0]], "1 documents"),
        ([[0, 1]], [[0, 1, 2]], "2 mentions"),
        ([], [], "empty"),
        ([[0.5, 1]], [[0, 1]], "gold"),
        ([0, 1], [{"a"}, {"b"}], "document 0"),
        (Document([["a"]], [(0, 1)]), Document([["a"]], [(0, 1)]), "clusters"),
    ],
)
def test_bad_clusters_are_refused(gold, predicted, keyword):
    with pytest.raises(ValueError, match=keyword):
        coreference_scores(gold, predicted)
