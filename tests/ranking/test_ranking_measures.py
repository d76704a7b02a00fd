"""Measures of rankings: those of scikit-learn where it has them, brute force where it has not."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from tacit.ranking.measures import (
    average_precision,
    compare,
    estimate,
    ndcg,
    precision_at,
    precision_recall,
    recall_at,
    search_length,
)


@pytest.fixture
def judged():
    """Scores without ties, grades, and the ranking that the scores make."""
    rng = np.random.default_rng(0)
    scores, relevance = rng.random((12, 25)), rng.integers(0, 4, (12, 25)) * (rng.random((12, 25)) < 0.4)
    relevance[:, 0] = 1
    return scores, relevance, np.argsort(-scores, axis=1)


def test_average_precision_and_ndcg_are_those_of_scikit_learn(judged):
    scores, relevance, ranking = judged
    for q, value in enumerate(average_precision(ranking, relevance)):
        assert np.isclose(value, average_precision_score(relevance[q] > 0, scores[q]))
    for k in (1, 5, 25, 40):
        for q, value in enumerate(ndcg(ranking, relevance, k)):
            assert np.isclose(value, ndcg_score(relevance[[q]], scores[[q]], k=k))
    powers = ndcg(ranking, relevance, 5, gain="exponential")
    assert np.allclose(powers, ndcg(ranking, 2.0**relevance - 1, 5))


def test_precision_recall_and_browsing_are_counts(judged):
    _, relevance, ranking = judged
    for q in range(12):
        hits = [relevance[q, item] > 0 for item in ranking[q]]
        assert precision_at(ranking, relevance, 7)[q] == sum(hits[:7]) / 7
        assert recall_at(ranking, relevance, 7)[q] == sum(hits[:7]) / sum(hits)
        assert search_length(ranking, relevance, 3)[q] == next(n for n in range(26) if sum(hits[:n]) == 3)
    precision, recall = precision_recall(ranking, relevance)
    assert np.isclose(precision[6], precision_at(ranking, relevance, 7).mean())
    assert np.isclose(recall[6], recall_at(ranking, relevance, 7).mean())


def test_judged_rows_are_measured_within_their_query():
    y, group = np.array([0, 1, 2, 0, 3]), [3, 2]
    ranking = np.array([[2, 1, 0], [3, 4, -1]])
    table = np.array([[0, 1, 2], [0, 3, np.nan]])
    local = np.array([[2, 1, 0], [0, 1, -1]])
    assert np.allclose(ndcg(ranking, y, 2, group=group), ndcg(local, table, 2))
    assert np.allclose(ndcg(ranking, y, 2, group=group), [1, 1 / np.log2(3)])


def test_queries_without_relevant_items_have_no_value():
    ranking, relevance = [[0, 1], [1, 0]], [[0, 0], [0, 1]]
    for values in (
        precision_at(ranking, relevance, 1),
        average_precision(ranking, relevance),
        ndcg(ranking, relevance),
        search_length(ranking, relevance, 1),
    ):
        assert np.isnan(values[0])
        assert values[1] == 1
    assert estimate(search_length(ranking, relevance, 1)).n == 1


def test_a_ranking_too_short_to_browse_is_an_error():
    with pytest.raises(ValueError, match="query 0"):
        search_length([[0]], [[0, 1]], 1)
    assert np.isnan(search_length([[0]], [[0, 1]], 2)[0])


def test_intervals_hold_the_mean_and_shrink_with_queries():
    rng = np.random.default_rng(1)
    few, many = (estimate(rng.random(n)) for n in (30, 3000))
    assert few.low < few.mean < few.high
    assert many.high - many.low < (few.high - few.low) / 5
    assert np.isclose(many.high - many.low, 2 * 1.96 * np.sqrt(1 / 12 / 3000), rtol=0.1)


def test_a_paired_test_sees_what_single_intervals_do_not():
    rng = np.random.default_rng(2)
    hard = 100 * rng.random(200)
    found = compare(hard + 1 + rng.normal(0, 0.5, 200), hard)
    assert 0.8 < found.low < found.mean < found.high < 1.2
    assert found.p < 1e-10
    assert compare(hard, hard).p == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: precision_at([[0, 0]], [[1, 0]], 1), "twice"),
        (lambda: precision_at([[0, 5]], [[1, 0]], 1), "5"),
        (lambda: precision_at([[0.5]], [[1, 0]], 1), "ranking"),
        (lambda: precision_at([[0]], [[1, 0], [1, 0]], 1), "relevance"),
        (lambda: precision_at([[0]], [[1, 0]], 0), "k=0"),
        (lambda: ndcg([[0]], [[-1, 0]]), "NDCG"),
        (lambda: ndcg([[0]], [[1, 0]], gain="cubic"), "gain"),
        (lambda: estimate([np.nan]), "values"),
        (lambda: compare([1.0], [1.0, 2.0]), "others"),
    ],
)
def test_measures_refuse_what_they_cannot_measure(call, message):
    with pytest.raises(ValueError, match=message):
        call()
