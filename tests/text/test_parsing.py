"""Trees: bracketed text, forests against enumeration, fallbacks, the parser and its command."""

import re
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone

import tacit
from tacit import HiddenCRF, LatentSVM, MinEntropySVM, StructuredSVM
from tacit.apps import Parser
from tacit.cli import main
from tacit.problems import Tree
from tacit.solvers import Subgradient
from tacit.text import parse_scores, read_trees, split_path
from tacit.text.parsing.brackets import format_tree, list_spans, parse_tree
from tacit.text.parsing.command import read_sentences
from tacit.text.parsing.problem import _Listing

TREES = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))))",
    "(S (NP (PRP it)) (VP (VBZ sleeps)))",
    "(S (NP (DT the) (JJ old) (NN dog)) (VP (VBZ sleeps)))",
]


def tagged(text):
    return [pair[::-1] for pair in re.findall(r"\((\S+) ([^\s()]+)\)", text)]


X = [tagged(text) for text in TREES]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("(S (NP (N a))", "lacks"),
        ("(S (N a)))", "without"),
        ("(S)", "without a word"),
        ("()", "without a word"),
        ("", "one bracketed tree"),
        ("(S (N a b))", "one word"),
        ("(S (-NONE- *))", "no words"),
        ("(S (@NP (N a) (N b)))", "label"),
        (None, "bracketed text"),
        ("(S " * 500 + "(N a)" + ")" * 500, "brackets"),
        ("(S " + "(N a) " * 300 + ")", "words"),
    ],
)
def test_damaged_trees_are_refused(text, word):
    with pytest.raises(ValueError, match=word):
        parse_tree(text)


def test_functions_empty_elements_and_outer_brackets_are_left_out():
    tree = parse_tree("(TOP (S (NP-SBJ=1 (-NONE- *)) (VP (-LRB- -LRB-) (VB go))))")
    assert format_tree(tree) == "(ROOT (S (VP (-LRB- -LRB-) (VB go))))"


@pytest.mark.parametrize("problem", [Tree(), Tree(vertical=2, horizontal=2), Tree(states=3, prune=0.0)])
def test_imputed_trees_are_the_true_ones(problem):
    oracle = problem.bind(X, TREES, problem.schema(X, TREES))
    code = oracle.impute(np.random.default_rng(0).standard_normal(oracle.n_params)).code
    assert oracle.decode(code)[0].tolist() == [format_tree(parse_tree(text)) for text in TREES]
    assert not oracle.loss(code).any()


def test_scores_follow_evalb():
    true = ["(S (NP (N a) (, ,)) (VP (V b) (. .)))"]
    found = parse_scores(true, ["(S (NP (N a)) (, ,) (VP (V b)) (. .))"])
    assert found.overall[1:] == (3, 3, 3)
    assert found.exact == 1.0


def test_a_sentence_without_a_tree_is_told_in_fragments():
    problem = Tree(spans=False)
    oracle = problem.bind([[("b", "VBZ"), ("it", "PRP"), ("b", "VBZ"), ("x", "NEW")]], None, problem.schema(X, TREES))
    assert oracle.glued == [0]
    tree = oracle.decode(oracle.predict(np.zeros(oracle.n_params)).code)[0][0]
    assert tagged(tree)[-1] == ("x", "NEW")
    assert tree.count("ROOT") == 1


def test_a_tree_outside_the_grammar_has_a_loss_but_no_states():
    problem = Tree(spans=False)
    oracle = problem.bind([X[1]], ["(FRAG (PRP it) (VBZ sleeps))"], problem.schema(X, TREES))
    assert oracle.loss(oracle.predict(np.zeros(oracle.n_params)).code)[0] == 4
    with pytest.raises(ValueError, match="grammar"):
        oracle.impute(np.zeros(oracle.n_params))


def test_a_pass_online_is_subgradient_descent():
    problem = Tree(states=2, min_count=1, prune=0.0)
    oracle = problem.bind(X, TREES, problem.schema(X, TREES))
    rng = np.random.default_rng(1)
    w = expected = rng.standard_normal(oracle.n_params)
    order, steps, decays, shares = np.array([2, 0, 1]), np.array([1.0, 0.5, 0.3]), np.array([0.9, 0.0, 0.7]), np.ones(3)
    total = np.zeros_like(w)
    for i, step, decay in zip(order, steps, decays, strict=True):
        rows = slice(i, i + 1)
        right, wrong = oracle.impute(expected, rows).code, oracle.predict_augmented(expected, rows).code
        change = oracle.features(right, np.ones(1), rows) - oracle.features(wrong, np.ones(1), rows)
        expected = decay * expected + step * change
        total += expected
    found = oracle.learn_online(w, order, steps, decays, shares, margin=1.0)
    np.testing.assert_allclose(found.w, expected, atol=1e-12)
    np.testing.assert_allclose(found.total, total, atol=1e-12)


def test_learners_fit_and_save(tmp_path):
    for kind, states in ((StructuredSVM, 1), (LatentSVM, 2)):
        model = kind(Tree(states=states), C=10.0, solver=Subgradient(), max_iter=100, tol=0.1, verbose=0).fit(X, TREES)
        assert model.score(X, TREES) == 1.0
        model.save(tmp_path / "m.tacit")
        assert tacit.load(tmp_path / "m.tacit").predict(X).tolist() == model.predict(X).tolist()


def test_command(tmp_path, capsys):
    train = tmp_path / "train.ptb"
    train.write_text("\n".join(TREES * 5), encoding="utf-8")
    (tmp_path / "new.txt").write_text("the\ncat\nsleeps\n", encoding="utf-8")
    out = tmp_path / "out"
    assert (
        main(["parse", str(train), "--predict", str(tmp_path / "new.txt"), "--max-iter", "5", "--out", str(out)]) == 0
    )
    assert len(read_trees(out / "trees.ptb")) == 1
    assert "<svg" in (out / "report.html").read_text(encoding="utf-8") or "no mistakes" in (
        out / "report.html"
    ).read_text(encoding="utf-8")
    again = ["parse", "--model", str(out / "model.tacit"), "--predict", str(train), "--out", str(tmp_path / "more")]
    assert main(again) == 0
    assert len(read_trees(tmp_path / "more" / "trees.ptb")) == 15


def test_parser_refuses_bad_input():
    with pytest.raises(ValueError, match="trees"):
        Parser(verbose=0).fit(5)
    with pytest.raises(ValueError, match="prune"):
        Parser(prune=2.0, verbose=0).fit(TREES)


def test_unseen_flat_rules_are_derived():
    for horizontal in (0, 1, 2):
        problem = Tree(spans=False, horizontal=horizontal)
        oracle = problem.bind(
            [tagged("(DT the) (JJ old) (JJ old) (NN dog) (VBZ sleeps)")], None, problem.schema(X, TREES)
        )
        assert not oracle.glued
        code = oracle.predict(np.zeros(oracle.n_params)).code
        want = "(ROOT (S (NP (DT the) (JJ old) (JJ old) (NN dog)) (VP (VBZ sleeps))))"
        assert oracle.decode(code)[0].tolist() == [want]


MARKED = [
    "(S (NP (NP (N a)) (N b)) (V b))",
    "(S (NP (N a) (N b)) (V b))",
    "(S (NP (N a)) (VP (NP (N b)) (V b)))",
    "(S (N a) (VP (N b) (V b)))",
]
PARTIAL = [
    "(? (N a) (N b) (V b))",
    "(S? (NP? (N a) (N b)) (V b))",
    "(? (NP? (N a)) (N b) (V b))",
    "(S (NP? (N a) (N b)) (V b))",
    "(? (? (N a) (N b)) (V b))",
]


def fits(tree, partial):
    """Whether a tree agrees with what is known, by its definition: known brackets are there, and any other one is
    directly inside a bracket that is open."""
    spans = Counter(list_spans(parse_tree(tree))[0])
    known = [(label.rstrip("?"), label.endswith("?"), i, j) for label, i, j in list_spans(parse_tree(partial))[0]]
    if Counter((label, i, j) for label, _, i, j in known if label) - spans:
        return False
    if any(not any((i, j) == own[1:] for own in spans) for _, _, i, j in known if j - i > 1):
        return False
    for _, i, j in (spans - Counter((label, i, j) for label, _, i, j in known)).elements():
        around = [own for own in known if own[2] <= i and j <= own[3]]
        if any(a < i < b < j or i < a < j < b for _, _, a, b in known):
            return False
        innermost = min(b - a for _, _, a, b in around)
        same = [own for own in around if own[3] - own[2] == innermost]
        outside = [own for own in around if own[3] - own[2] > innermost]
        is_same_span = innermost == j - i
        is_open = any(own[1] for own in same) if is_same_span else same[-1][1]
        if is_same_span and outside:
            is_open |= min(outside, key=lambda own: own[3] - own[2])[1]
        if not is_open:
            return False
    return True


@pytest.mark.parametrize("states", [1, 2])
@pytest.mark.parametrize("partial", PARTIAL)
def test_known_parts_of_trees_are_what_enumeration_finds(partial, states):
    problem = Tree(states=states, spans=False, prune=0.0, min_count=1)
    y = [*MARKED, partial]
    sentences = [tagged(text) for text in y]
    schema = problem.schema(sentences, y)
    oracle = problem.bind(sentences, y, schema)
    w = np.random.default_rng(2).standard_normal(oracle.n_params)
    listing = _Listing(problem, schema)
    every = [(t, float(listing.joint_feature(sentences[-1], t, h) @ w)) for t, h in listing.outputs(sentences[-1])]
    good = [(t, v) for t, v in every if fits(str(t), partial)]
    assert 0 < len(good) < len(every) or partial.startswith("(? (N")
    found = oracle.expectations(w, truth=1.0)
    np.testing.assert_allclose(found.truth[-1], np.logaddexp.reduce([v for _, v in good]), atol=1e-10)
    best = oracle.impute(w)
    np.testing.assert_allclose(best.value[-1], max(v for _, v in good), atol=1e-10)
    assert oracle.loss(best.code)[-1] == 0
    again = oracle.impute(np.zeros(oracle.n_params), prefer=best.code)
    np.testing.assert_array_equal(again.code, best.code)
    for tree, _ in good:
        assert fits(str(tree), partial)
    wrong = next((t for t, _ in every if not fits(str(t), partial)), None)
    if wrong is not None and states == 1:
        code = np.concatenate([best.code[: oracle.offsets[-2]], oracle.encode([wrong], rows=np.array([4]))])
        assert oracle.loss(code)[-1] > 0
        kept = oracle.impute(np.zeros(oracle.n_params), prefer=code).code
        assert fits(oracle.decode(kept)[0][-1], partial)


def test_learners_complete_trees():
    y = [*TREES, "(? (NP (DT the) (NN cat)) (VBZ sees) (DT the) (JJ old) (NN dog))"]
    sentences = [tagged(text) for text in y]
    want = "(ROOT (S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP (DT the) (JJ old) (NN dog)))))"
    for kind, states in ((LatentSVM, 1), (LatentSVM, 2), (HiddenCRF, 2)):
        model = kind(Tree(states=states, spans=False), C=10.0, verbose=0).fit(sentences, y)
        assert model.predict(sentences)[3] == want
    with pytest.raises(ValueError, match="LatentSVM"):
        StructuredSVM(Tree(spans=False), verbose=0).fit(sentences, y)
    with pytest.raises(ValueError, match="complete"):
        Tree().schema(sentences[3:], y[3:])


@pytest.mark.parametrize("problem", [Tree(min_count=1, prune=0.0), *Tree.variants()[1:]])
def test_the_best_few_trees_are_those_of_enumeration(problem):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        example = problem.example(rng)
        oracle = problem.bind(example.X, None, problem.schema(example.X, example.y))
        w = rng.standard_normal(oracle.n_params)
        code, value = oracle.best_outputs(w, 3)
        columns = [oracle.decode(np.where(one < 0, code[:, 0], one))[0] for one in code.T]
        for i, x in enumerate(example.X):
            best = {}
            for tree, h in example.outputs(x):
                best[tree] = max(best.get(tree, -np.inf), float(example.joint_feature(x, tree, h) @ w))
            want = sorted(best.items(), key=lambda pair: -pair[1])[:3]
            finite = np.isfinite(value[i])
            np.testing.assert_allclose(value[i, finite], [v for _, v in want])
            assert [columns[k][i] for k in np.flatnonzero(finite)] == [tree for tree, _ in want]


@pytest.mark.parametrize("alpha", [0.5, 1.0, np.inf])
def test_min_entropy_learns_trees(alpha):
    model = MinEntropySVM(Tree(states=2, spans=False), alpha=alpha, C=10, tol=0.05, verbose=0).fit(X * 2, TREES * 2)
    assert [text[6:-1] for text in model.predict(X)] == TREES
    assert model.inference_gap_ <= 1e-9
    alone = tagged("(S (NP (PRP it)) (VP (VBZ sleeps)))")
    oracle = model.problem.bind([alone, X[0]], [TREES[1], TREES[0]], model.schema_)
    assert np.isfinite(oracle.renyi_slacks(model.coef_, np.ones(2), alpha).value).all()


def test_split_and_merge_ends_with_fewer_states():
    y = ["(S (NP (NP (N a)) (N b)) (V b))", "(S (NP (N a) (N b)) (V b))", "(S (NP (N b)) (VP (V b) (NP (N a))))"] * 2
    sentences = [tagged(text) for text in y]
    learner = HiddenCRF(Tree(spans=False, min_count=1), C=10.0, max_iter=20, verbose=0)
    path = split_path(learner, sentences, y, rounds=2)
    assert [max([1, *step.states.values()]) for step in path] == sorted({1, 2, max(path[2].states.values())})
    assert all(norm >= 0 for step in path for own in step.norms.values() for norm in own)
    one = split_path(learner, sentences, y, rounds=1, share=1.0)[1]
    assert one.states == {}
    with pytest.raises(ValueError, match="learner"):
        split_path(StructuredSVM(Tree()), sentences, y)


def test_pairs_that_differ_keep_their_states():
    step = split_path(HiddenCRF(Tree(spans=False), C=10.0, max_iter=20, verbose=0), X * 2, TREES * 2, rounds=1)[1]
    kept = [step.norms[name][0] for name in step.states]
    merged = [norm[0] for name, norm in step.norms.items() if name not in step.states]
    assert min(kept, default=np.inf) >= max(merged, default=-np.inf)


@pytest.mark.filterwarnings("ignore:HiddenCRF")
def test_threads_give_the_same_bits():
    sentences, y = [tagged(text) for text in MARKED] * 5, MARKED * 5
    model = HiddenCRF(Tree(states=2), C=10.0, max_iter=5, verbose=0)
    one, two = (clone(model).set_params(n_jobs=jobs).fit(sentences, y).coef_ for jobs in (1, 2))
    assert one.any()
    np.testing.assert_array_equal(one, two)


def test_long_sentences_are_parsed_and_longer_ones_refused():
    parser = Parser(max_iter=3, verbose=0).fit(TREES)
    sentence = [("old", "JJ")] * 196 + [("dog", "NN"), ("sees", "VBZ"), ("a", "DT"), ("cat", "NN")]
    assert parser.predict([[("the", "DT"), *sentence]])[0].count("(JJ old)") == 196
    with pytest.raises(ValueError, match="250"):
        parser.predict([[("the", "DT")] * 251])


def test_a_long_sentence_without_a_tree_takes_bounded_memory(monkeypatch):
    monkeypatch.setattr("tacit.text.parsing.forests.MAX_PAIRS", 1 << 16)
    problem = Tree(spans=False)
    words = [("sleeps", "VBZ"), ("the", "DT"), ("old", "JJ"), ("dog", "NN")] * 50
    oracle = problem.bind([words], None, problem.schema(X, TREES))
    assert oracle.glued == [0]
    tree = oracle.decode(oracle.predict(np.zeros(oracle.n_params)).code)[0][0]
    assert tagged(tree) == words


def test_words_that_are_brackets():
    trees = ["(S (-LRB- -LRB-) (NP (PRP it)) (-RRB- -RRB-))", "(S (NP (PRP it)) (VP (VBZ sleeps)))"] * 5
    found = Parser(verbose=0).fit(trees).predict([["(", "it", ")"]])
    assert found == ["(ROOT (S (-LRB- -LRB-) (NP (PRP it)) (-RRB- -RRB-)))"]


def test_scores_of_a_case_counted_by_hand():
    # true: S(0,5) NP(0,2) VP(2,5) NP(3,5); predicted: S(0,5) NP(0,2) VP(2,4) NP(3,4) ADVP(4,5); the comma is no word
    true = "(S (NP (DT a) (NN b)) (, ,) (VP (VB c) (NP (DT d) (NN e))))"
    found = "(S (NP (DT a) (NN b)) (, ,) (VP (VB c) (NP (DT d))) (PRT (NN e)))"
    scores = parse_scores([true], [found])
    assert scores.overall[1:] == (4, 5, 2)
    assert (scores.overall.precision, scores.overall.recall, scores.overall.f1) == (2 / 5, 2 / 4, 4 / 9)
    assert {own.label: own[1:] for own in scores.by_label} == {
        "NP": (2, 2, 1),
        "S": (1, 1, 1),
        "VP": (1, 1, 0),
        "ADVP": (0, 1, 0),
    }


def test_true_tags_say_what_punctuation_is():
    true = ["(S (NP (N a)) (, ,) (VP (V b) (NP (N c))))"]
    assert parse_scores(true, ["(S (NP (N a)) (N ,) (VP (V b) (NP (N c))))"]).overall.f1 == 1.0


def test_states_of_symbols_that_do_not_occur():
    y = ["(S (NP (NP (N a)) (N b)) (V b))", "(S (NP (N a) (N b)) (V b))"]
    sentences = [tagged(text) for text in y]
    problem = Tree(states={"NP": 2, "XP": 3}, spans=False, min_count=1)
    schema = problem.schema(sentences, y)
    oracle, listing = problem.bind(sentences, y, schema), _Listing(problem, schema)
    w = np.random.default_rng(0).standard_normal(oracle.n_params)
    every = [float(listing.joint_feature(sentences[0], t, h) @ w) for t, h in listing.outputs(sentences[0])]
    np.testing.assert_allclose(oracle.predict(w).value[0], max(every))
    with pytest.raises(ValueError, match="states"):
        HiddenCRF(Tree(states={"XP": 3}), verbose=0).fit(sentences, y)
    with pytest.raises(ValueError, match="hidden"):
        problem.bind(sentences[:1], y[:1], schema).encode(y[:1], [np.full(5, 1)])


def test_what_is_known_is_among_all_trees():
    y = ["(S (NP (D a) (N b)) (V c))", "(S (D a) (NP (D a) (N b)) (V c))", "(S (NP? (D a) (D a) (N b)) (V c))"]
    sentences = [tagged(text) for text in y]
    problem = Tree(spans=False)  # the last needs a longer rule, but the rules of the others derive its words, too
    oracle = problem.bind(sentences, y, problem.schema(sentences, y))
    sums = oracle.expectations(np.zeros(oracle.n_params), free=0.0, truth=0.0)
    np.testing.assert_allclose(sums.free[2], np.log(2))
    np.testing.assert_allclose(sums.truth, 0.0, atol=1e-12)


def test_a_code_with_a_state_that_its_category_does_not_have_is_refused():
    problem = Tree(states={"NP": 2}, spans=False)
    schema = problem.schema(X, TREES)
    oracle = problem.bind(X, TREES, schema)
    code = oracle.predict(np.zeros(oracle.n_params)).code.astype(np.int64)
    assert oracle.accepts(code)
    names = schema.facts["symbols"][code // 4]
    accepted = [oracle.accepts(code + 2 * (np.arange(code.size) == i)) for i in range(code.size)]  # state 1, not 0
    assert accepted == [name == "NP" for name in names]


def test_what_the_grammar_lacks_is_not_within_reach():
    problem = Tree(spans=False)
    oracle = problem.bind([X[1]], None, problem.schema(X, TREES))
    assert oracle.reachable([TREES[1]]) == 1.0
    assert oracle.reachable(["(S (NP (PRP it)) (NP (VBZ sleeps)))"]) == 2 / 3


def test_parses_tell_their_fallbacks():
    parser = Parser(max_iter=3, verbose=0).fit(TREES)
    found = parser.parse([X[1], [("b", "VBZ"), ("it", "PRP"), ("b", "VBZ")], [("it", "PRP"), ("x", "NEW")]])
    assert found.trees[0] == format_tree(parse_tree(TREES[1]))
    assert (found.fragments[0], found.new_tags) == (1, ["NEW"])


def test_files_of_running_text_and_of_columns(tmp_path):
    for text in ("The dog sleeps. It sees a cat.\n", "The\ndog\nsleeps\n.\n\nIt\nsees\na\ncat\n.\n"):
        (tmp_path / "new.txt").write_text(text, encoding="utf-8")
        assert read_sentences(tmp_path / "new.txt") == [["The", "dog", "sleeps", "."], ["It", "sees", "a", "cat", "."]]
    row = "1\tdog\tdog\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "new.conllu").write_text(row, encoding="utf-8")
    assert read_sentences(tmp_path / "new.conllu") == [[("dog", "NN")]]


def test_a_file_is_named_whose_sentence_is_too_long(tmp_path):
    for name, text in (("new.tsv", "it\n\n" + "dog\tNN\n" * 251), ("new.txt", "It rains. Then " + "dog " * 250)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=r"new.*sentence 2.*251 words"):
            read_sentences(tmp_path / name)


def random_tree(rng, words):
    """A bracketed tree of these words with two tags and three categories."""
    if len(words) == 1:
        tree = f"({rng.choice(['N', 'V'])} {words[0]})"
        return f"({rng.choice(['NP', 'VP'])} {tree})" if rng.random() < 0.4 else tree
    cuts = np.sort(rng.choice(np.arange(1, len(words)), rng.integers(1, min(len(words), 3)), replace=False))
    parts = [random_tree(rng, part) for part in np.split(np.array(words), cuts)]
    tree = f"({rng.choice(['S', 'NP', 'VP'])} {' '.join(parts)})"
    return f"(S {tree})" if rng.random() < 0.2 else tree


def open_brackets(rng, node, is_open=True):
    """The tree with some labels unknown or open, and some brackets inside of those left out, as text."""
    if node.word is not None:
        return format_tree(node)[6:-1]
    draw = rng.random()
    inside = " ".join(open_brackets(rng, child, draw < 0.6) for child in node.children)
    if is_open and draw < 0.2:
        return inside
    return f"({'?' if draw < 0.4 else node.label + '?' * (draw < 0.6)} {inside})"


@pytest.mark.parametrize("seed", range(20))
def test_sums_and_the_best_trees_are_those_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    y = [format_tree(parse_tree(random_tree(rng, ["a", "b", "a", "b"][: rng.integers(1, 5)]))) for _ in range(3)]
    partial = f"(? {open_brackets(rng, parse_tree(y[0]))})"
    y.append(partial)
    sentences = [tagged(text) for text in y]
    problem = Tree(
        states=[1, 2, {"NP": 3, "S": 2, "/N": 2, "/V": 2}][seed % 3],
        vertical=int(rng.integers(1, 4)),
        horizontal=int(rng.integers(0, 3)),
        spans=seed % 2 == 0,
        min_count=1,
        prune=0.0,
    )
    schema = problem.schema(sentences, y)
    oracle, listing = problem.bind(sentences, y, schema), _Listing(problem, schema)
    w = rng.standard_normal(oracle.n_params)
    sums = {power: oracle.expectations(w, free=1.0, truth=1.0, power=power) for power in (0.5, 2.0)}
    found, few, safe = oracle.predict(w), oracle.best_outputs(w, 3), oracle.likeliest_parts(w)
    trees, values = oracle.decode(safe.code)[0], oracle.score(w, safe.code)
    for rows in (slice(1, 3), np.array([3, 1])):
        part = oracle.likeliest_parts(w, rows)
        assert oracle.decode(part.code, rows)[0].tolist() == trees[rows].tolist()
        np.testing.assert_array_equal(part.value, safe.value[rows])
    for i, x in enumerate(sentences):
        every = [(str(t), float(listing.joint_feature(x, t, h) @ w)) for t, h in listing.outputs(x)]
        right = [v for t, v in every if (fits(t, partial) if i == 3 else t == y[i])]
        np.testing.assert_allclose(found.value[i], max(v for _, v in every), atol=1e-10)
        for power, own in sums.items():
            np.testing.assert_allclose(own.free[i], np.logaddexp.reduce([power * v for _, v in every]), atol=1e-9)
            np.testing.assert_allclose(own.truth[i], np.logaddexp.reduce([power * v for v in right]), atol=1e-9)
        best = {tree: max(v for t, v in every if t == tree) for tree, _ in every}
        want = sorted(best.values(), reverse=True)[:3]
        np.testing.assert_allclose(few.value[i][: len(want)], want, atol=1e-10)
        p, spans = {}, {tree: Counter(list_spans(parse_tree(tree))[0]) for tree in best}
        whole = np.logaddexp.reduce([v for _, v in every])
        for tree in best:
            p[tree] = np.exp(np.logaddexp.reduce([v for t, v in every if t == tree]) - whole)
        n_true = sum(p[tree] * spans[tree].total() for tree in best)
        f1 = {
            tree: 2
            * sum(p[other] * (spans[tree] & spans[other]).total() for other in best)
            / max(n_true + spans[tree].total(), 1e-9)
            for tree in best
        }
        np.testing.assert_allclose(f1[trees[i]], max(f1.values()), atol=1e-9)
        np.testing.assert_allclose([safe.value[i], values[i]], [np.log(p[trees[i]]), best[trees[i]]], atol=1e-9)
