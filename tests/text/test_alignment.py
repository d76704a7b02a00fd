"""Word alignment: matchings against brute force, gold links, cross-fitted tables, readers and measures."""

import itertools

import numpy as np
import pytest

import tacit
from tacit import LatentSVM, Links, Ragged, StructuredSVM
from tacit.apps import WordAligner
from tacit.cli import main
from tacit.problems import Alignment
from tacit.text import (
    IBM1,
    WordPairs,
    alignment_scores,
    format_links,
    read_links,
    read_parallel,
    symmetrise,
    write_links,
)
from tacit.text.alignment import aligner as aligner_module
from tacit.text.alignment import counts as counts_module
from tacit.text.alignment.corpus import number_text

WORDS = {f"s{k}": f"t{k}" for k in range(30)}


def parallel_text(n, seed=0, swaps=0.3):
    """Sentences of a language of which every word has one translation, some neighbours swapped."""
    rng = np.random.default_rng(seed)
    source, target, gold = [], [], []
    often = 1 / np.arange(1, 31)
    often /= often.sum()
    for _ in range(n):
        words = [f"s{k}" for k in rng.choice(30, rng.integers(3, 8), replace=False, p=often)]
        order = list(range(len(words)))
        for i in range(len(order) - 1):
            if rng.random() < swaps:
                order[i], order[i + 1] = order[i + 1], order[i]
        source.append(words)
        target.append([WORDS[words[i]] for i in order])
        gold.append(Links([(i, j) for j, i in enumerate(order)]))
    return source, target, gold


def matchings(rows, columns):
    for size in range(min(rows, columns) + 1):
        for source in itertools.combinations(range(rows), size):
            for target in itertools.permutations(range(columns), size):
                yield list(zip(source, target, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_gold_links_enter_target_and_loss_as_brute_force_says(seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 4, 2)
    x = rng.integers(-3, 4, (rows, columns, 2)).astype(float)
    cells = list(itertools.product(range(rows), range(columns)))
    chosen = [cell for cell in cells if rng.random() < 0.5]
    possible = [cell for cell in cells if rng.random() < 0.3]
    problem = Alignment(wrong_link=0.25)
    y = [Links(chosen, possible)]
    oracle = problem.bind([x], y, problem.schema([x], y))
    w = rng.integers(-2, 3, 3).astype(float)
    scale = 1 / np.sqrt(rows * columns)
    every = list(matchings(rows, columns))
    score = {tuple(m): scale * sum(float(x[cell] @ w[:2]) for cell in m) + w[2] for m in every}
    most = max(sum(link in chosen for link in m) for m in every)
    inside = [m for m in every if len(m) == most and all(link in chosen for link in m)]
    assert oracle.impute(w).value[0] == pytest.approx(max(score[tuple(m)] for m in inside))
    loss = {
        tuple(m): scale
        * (most - sum(link in chosen for link in m) + 0.25 * sum(link not in chosen + possible for link in m))
        for m in every
    }
    expected = max(max(score[m] + loss[m] for m in loss), scale * most)
    found = oracle.predict_augmented(w)
    assert found.value[0] == pytest.approx(expected)
    labels, links = oracle.decode(found.code)
    own = tuple(map(tuple, links[0].tolist()))
    assert oracle.loss(found.code)[0] == pytest.approx(loss[own] if labels[0] == 1 else scale * most)


def test_unaligned_is_a_code_of_its_own():
    problem, x = Alignment(), -np.ones((2, 3, 1))
    oracle = problem.bind([x], [1], problem.schema([x], [1]))
    code = oracle.impute(np.array([1.0, 0.0])).code
    assert code.tolist() == [1, 0, 0]  # parallel, and no word has a partner: every score is negative
    assert oracle.decode(code)[1][0].shape == (0, 2)
    assert oracle.accepts(np.full(3, -1, dtype=np.int8))  # −1 is the target as a whole, never one word
    assert not oracle.accepts(np.array([1, -1, 0], dtype=np.int8))
    assert not oracle.accepts(np.array([1, 2, 2], dtype=np.int8))  # two words with one partner


def test_pairs_of_one_word_are_learned_from():
    X = [np.array([[[1.0]]]), np.array([[[0.9]]]), np.array([[[0.1]]]), np.array([[[0.0]]])]
    model = LatentSVM(Alignment(), C=1000, verbose=0).fit(X, [1, 1, -1, -1])
    assert model.predict(X).tolist() == [1, 1, -1, -1]
    assert [len(links) for links in model.predict_hidden(X)] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("X", "y", "hidden", "match"),
    [
        ([np.zeros((0, 2, 1)), np.ones((1, 1, 1))], [1, 1], None, "word pairs"),
        ([np.ones((1, 1, 1))], [2], None, "y\\[0\\]"),
        ([np.ones((1, 1, 1))], [-1], None, "y is -1"),
        ([np.ones((1, 1, 1))] * 2, [-1, 1], [[(0, 0)], None], r"y\[0\]"),
        ([np.ones((1, 1, 1))], [1], [[(0, 4)]], r"hidden\[0\]"),
        ([np.ones((1, 1, 1))], [Links([(0, 0)])], [[(0, 0)]], r"hidden\[0\]"),
        ([np.array([[0, 0, 1.0], [0, 0, 2.0]])], [1], None, "twice"),
        ([np.array([[0.5, 0, 1.0]])], [1], None, "positions"),
        ([np.array([[0.0, 0.0]])], [1], None, "features"),
    ],
)
def test_what_cannot_be_used_is_refused(X, y, hidden, match):
    with pytest.raises(ValueError, match=match):
        LatentSVM(Alignment(), verbose=0).fit(X, y, hidden=hidden)


def test_hidden_alignments_are_learned_from_labels_alone():
    source, target, gold = parallel_text(120)
    pairs = WordPairs(folds=5)
    X = pairs.fit_transform(source, target)
    wrong, chosen = pairs.transform_mismatched()
    assert (pairs.groups_[chosen[:, 0]] != pairs.groups_[chosen[:, 1]]).all()
    data = Ragged.concatenate([X, wrong])
    y = np.concatenate([np.ones(len(X)), -np.ones(len(wrong))])
    model = LatentSVM(Alignment(), C=100, verbose=0).fit(data, y)
    found = list(model.impute(X, np.ones(len(X))))
    diagonal = [[(i, i) for i in range(len(words))] for words in source]
    error = alignment_scores(found, gold).error_rate
    assert error < 0.1
    assert error < 0.5 * alignment_scores(diagonal, gold).error_rate


def test_gold_and_labels_mix_in_one_fit():
    source, target, gold = parallel_text(40)
    pairs = WordPairs(folds=4)
    X = pairs.fit_transform(source, target)
    wrong = pairs.transform_mismatched()[0]
    y = [*gold[:10], *[1] * 30, *[-1] * len(wrong)]
    model = LatentSVM(Alignment(), C=100, verbose=0).fit(Ragged.concatenate([X, wrong]), y)
    assert [model.hidden_[i].tolist() for i in range(10)] == [links.sure.tolist() for links in gold[:10]]
    assert all(len(model.hidden_[40 + i]) == 0 for i in range(len(wrong)))
    certified = StructuredSVM(Alignment(), C=10, verbose=0).fit(X, gold)
    assert certified.bound_ <= certified.objective_


def test_tables_that_saw_a_sentence_pair_leak_that_it_is_parallel():
    """Random words are parallel to nothing: only a table that saw the pairs can tell them apart."""
    rng = np.random.default_rng(0)
    source, target = ([[f"{side}{k}" for k in rng.integers(0, 300, 6)] for _ in range(60)] for side in "st")
    gaps = {}
    for folds in (0, 10):
        pairs = WordPairs(folds=folds)
        X = pairs.fit_transform(source, target)
        wrong = pairs.transform_mismatched()[0]
        column = 2 + pairs.feature_names_.index("both ways")
        best = [np.mean([pair[:, column].max() for pair in side]) for side in (X, wrong)]
        gaps[folds] = best[0] - best[1]
    assert gaps[0] > 0.3
    assert abs(gaps[10]) < 0.05


def test_model_1_agrees_with_a_plain_loop():
    source, target, _ = parallel_text(6, seed=3)
    model = IBM1(diagonal=2.0, null=0.2, alpha=1e-9, n_iter=3).fit(source, target)
    t = {(s, w): 1.0 for words in source for s in words for others in target for w in others}
    size = len({w for words in target for w in words})
    t = dict.fromkeys(t, 1.0 / size)
    alone = dict.fromkeys({w for words in target for w in words}, 1.0 / size)

    def shares(s, words, j):
        near = np.exp([-2.0 * abs((i + 0.5) / len(s) - (j + 0.5) / len(words)) for i in range(len(s))])
        joint = 0.8 * near / near.sum() * np.array([t[e, words[j]] for e in s])
        nothing = 0.2 * alone[words[j]]
        return joint / (joint.sum() + nothing), nothing / (joint.sum() + nothing)

    for _ in range(3):
        counts, none = dict.fromkeys(t, 0.0), dict.fromkeys(alone, 0.0)
        for s, words in zip(source, target, strict=True):
            for j in range(len(words)):
                own, rest = shares(s, words, j)
                none[words[j]] += rest
                for e, share in zip(s, own, strict=True):
                    counts[e, words[j]] += share
        from scipy.special import digamma

        totals = {e: sum(c for (a, _), c in counts.items() if a == e) for e, _ in counts}
        t = {k: np.exp(digamma(c + 1e-9) - digamma(totals[k[0]] + 1e-9 * size)) for k, c in counts.items()}
        whole = sum(none.values())
        alone = {w: np.exp(digamma(c + 1e-9) - digamma(whole + 1e-9 * size)) for w, c in none.items()}
    for s, words, found in zip(source, target, model.posteriors(source, target), strict=True):
        expected = np.column_stack([shares(s, words, j)[0] for j in range(len(words))])
        assert np.allclose(found, expected, atol=1e-6)


def test_symmetrisations_lie_between_intersection_and_union():
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, two = ({(int(i), int(j)) for i, j in rng.integers(0, 5, (6, 2))} for _ in range(2))
        for method in ("grow-diag", "grow-diag-final", "grow-diag-final-and"):
            found = set(map(tuple, symmetrise(one, two, method).tolist()))
            assert one & two <= found <= one | two
    assert symmetrise([(0, 0), (1, 1)], [(0, 0), (1, 2)], "grow-diag").tolist() == [[0, 0], [1, 1], [1, 2]]


def test_links_survive_a_file(tmp_path):
    path = tmp_path / "links"
    path.write_text("1-1 2p3\n\n", encoding="utf-8")
    gold = read_links(path)
    assert gold == [Links([(0, 0)], [(1, 2)]), Links([])]
    write_links(path, [own.sure for own in gold])
    assert path.read_text() == "1-1\n\n" == format_links([[(0, 0)], []])
    for text in ("0-1", "1-x", "1:2", "-1-2", "9999999-1"):
        path.write_text(text)
        with pytest.raises(ValueError, match="line 1"):
            read_links(path)
    path.write_text("a b ||| c\nno bars\n")
    with pytest.raises(ValueError, match="line 2"):
        read_parallel(path)


def test_an_aligner_aligns_new_text_and_survives_a_file(tmp_path):
    source, target, gold = parallel_text(60)
    aligner = WordAligner(folds=4, verbose=0).fit([*source, []], [*target, ["x"]], [*gold[:30], *[None] * 31])
    assert len(aligner.links_) == 61
    assert len(aligner.links_[60]) == 0  # a sentence without words
    assert aligner.held_out_["error_rate"] < 0.15
    assert (aligner.scores_.values > 0).all()
    aligner.save(tmp_path / "aligner.tacit")
    again = tacit.load(tmp_path / "aligner.tacit")
    new = ["s0 s1 unheard", ""], ["t0 t1 of", "t3"]
    found = again.predict(*new)
    assert [links.tolist() for links in found] == [links.tolist() for links in aligner.predict(*new)]
    assert found[0][:2].tolist() == [[0, 0], [1, 1]]


def test_an_aligner_refuses_what_it_cannot_learn_from():
    with pytest.raises(ValueError, match="4"):
        WordAligner(verbose=0).fit(["a b"], ["c d"])
    with pytest.raises(ValueError, match="mismatched"):
        WordAligner(verbose=0).fit(["a b"] * 8, ["c d"] * 8)
    with pytest.raises(ValueError, match="target"):
        WordAligner(verbose=0).fit(["a b"] * 8, ["c d"] * 7)


def test_a_long_text_is_aligned_as_well_from_a_sample(monkeypatch):
    rng = np.random.default_rng(0)
    words = [rng.choice(40, rng.integers(3, 7), replace=False) for _ in range(400)]
    source, target = ([[f"{side}{k}" for k in own] for own in words] for side in "st")
    monkeypatch.setattr(aligner_module, "MAX_CELLS", 6400)
    monkeypatch.setattr(counts_module, "BLOCK_CELLS", 500)
    for name, most in (("MAX_COUNTED", 1200), ("MAX_KEPT", 100)):
        monkeypatch.setattr(counts_module, name, most)
    found = [WordAligner(n_jobs=jobs, verbose=0).fit(source, target) for jobs in (1, 2)]
    gold = [[(i, i) for i in range(len(own))] for own in words]
    assert alignment_scores(list(found[0].links_), gold).error_rate < 0.02
    np.testing.assert_array_equal(found[0].scores_.values, found[1].scores_.values)


def test_repeated_sentence_pairs_of_a_long_text_count_once(monkeypatch):
    source, target, gold = parallel_text(60)
    once = WordAligner(folds=4, verbose=0).fit(source, target)
    monkeypatch.setattr(aligner_module, "MAX_CELLS", 6400)
    many = WordAligner(folds=4, verbose=0).fit(source * 10, target * 10)
    assert len(many.links_) == 600
    assert alignment_scores(list(many.links_), gold * 10).error_rate < 0.15
    np.testing.assert_array_equal(many.model_.coef_, once.model_.coef_)
    monkeypatch.setattr(aligner_module, "MAX_CELLS", 100)
    with pytest.raises(ValueError, match="share"):  # every sentence pair has the source sentence of the sample
        WordAligner(verbose=0).fit([["s1"]] * 40, [[f"t{k}"] for k in range(40)])


def test_the_sample_of_a_long_text_has_the_sentence_pairs_with_links(monkeypatch):
    monkeypatch.setattr(aligner_module, "MAX_CELLS", 160)
    gold = [Links([(0, 1), (1, 0)]) if 100 <= k < 105 else None for k in range(200)]
    rows = WordAligner(verbose=0)._sample(np.full(200, 4), gold)
    assert {100, 101, 102, 103, 104} <= set(rows.tolist())
    assert rows.size == 9


def test_word_pairs_of_a_text_are_counted_by_sentence_pair(monkeypatch):
    monkeypatch.setattr(counts_module, "BLOCK_CELLS", 3)
    types = {"a": 0, "b": 1}, {"x": 0, "y": 1}
    text = number_text([["a", "b"], ["b", "b"]], [["x"], ["y", "x", "x"]], *types)
    index, counts = counts_module.count_word_pairs(text, 2, 2)
    assert index.keys.tolist() == [0, 2, 3]
    assert index.find(np.array([0, 0, 1, 1, -1]), np.array([0, 1, 0, 1, 1])).tolist() == [0, -1, 1, 2, -1]
    assert [own.tolist() for own in counts] == [[1, 2], [2, 1], [1, 2, 1]]
    swapped, order = index.swap()
    assert swapped.keys.tolist() == [0, 1, 3]
    assert index.keys[order].tolist() == [0, 2, 3]


def test_word_pairs_of_a_long_text_are_those_that_may_be_translations(monkeypatch):
    source, target, _ = parallel_text(200)
    types = ({word: k for k, word in enumerate(WORDS)}, {word: k for k, word in enumerate(WORDS.values())})
    text = number_text(source, target, *types)
    index, counts = counts_module.count_word_pairs(text, 30, 30)
    for name, most in (("BLOCK_CELLS", 300), ("MAX_COUNTED", 500), ("MAX_KEPT", 0), ("MIN_ASSOCIATION", 0.6)):
        monkeypatch.setattr(counts_module, name, most)
    few, own = counts_module.count_word_pairs(text, 30, 30)
    assert (index.keys.size, few.keys.size) > (500, 30)
    position = index.find(*np.divmod(few.keys, 30))
    assert (own.together <= counts.together[position]).all()  # those that were dropped on the way begin anew
    both = np.arange(30), np.arange(30)
    translations = index.find(*both)
    is_frequent = counts.source >= 20
    np.testing.assert_array_equal(
        own.together[few.find(*both)[is_frequent]], counts.together[translations[is_frequent]]
    )
    source_words, target_words = np.divmod(few.keys, 30)
    assert (own.together >= 0.6 * np.sqrt(own.source[source_words] * own.target[target_words])).all()


def test_equal_words_of_a_file_are_one_object(tmp_path):
    (tmp_path / "text").write_text("la maison ||| the house\nla fleur ||| the house\n")
    source, target = read_parallel(tmp_path / "text")
    assert source[0][0] is source[1][0]
    assert target[0][1] is target[1][1]


def test_sentence_pairs_may_have_a_tab_or_be_empty(tmp_path):
    (tmp_path / "text").write_text("\ufeffla maison\tthe house\r\n\r\nla fleur ||| the flower\r\n", "utf-8")
    assert read_parallel(tmp_path / "text")[0] == [["la", "maison"], [], ["la", "fleur"]]


def test_wrong_gold_links_are_named_as_the_file_counts(tmp_path, capsys):
    (tmp_path / "text").write_text("a b ||| c d\n" * 8)
    (tmp_path / "gold").write_text("0-5\n")
    given = ["align", str(tmp_path / "text"), "--gold", str(tmp_path / "gold"), "--pharaoh", "--out"]
    assert main([*given, str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert str(tmp_path / "gold") in message
    assert "word 5, counted from 0" in message


def test_pharaoh_files_count_from_0(tmp_path):
    (tmp_path / "text").write_text("".join(f"s{k} s{k + 1} ||| t{k} t{k + 1}\n" for k in range(12)))
    (tmp_path / "gold").write_text("0-0 1-1\n" * 3)
    given = ["align", str(tmp_path / "text"), "--gold", str(tmp_path / "gold"), "-q"]
    assert main([*given, "--pharaoh", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "links.txt").read_text().splitlines()[0] == "0-0 1-1"
    assert main([*given, "--out", str(tmp_path / "other")]) == 1
