"""Words and tags: readers, feature templates, the tagger and its command."""

import gzip
import json
import os
import re

import numpy as np
import pytest

import tacit
from tacit.apps import Tagger
from tacit.cli import main
from tacit.datasets import ewt, read_conllu, read_tagged, read_two_columns, write_two_columns
from tacit.text import StepFeatures, WordFeatures

WORDS = [["the", "dog", "barks"], ["A", "cat", "sleeps"], ["the", "cat", "barks", "loudly"], ["a", "dog", "sleeps"]] * 6
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["D", "N", "V", "R"], ["D", "N", "V"]] * 6

CONLLU = """# sent_id = 1
1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tghost\tghost\tX\tX\t_\t_\t_\t_\t_

1\tHi\thi\t_\tUH\t_\t0\troot\t_\t_
"""


@pytest.fixture
def files(tmp_path):
    """Tagged sentences and words to tag, in files."""
    write_two_columns(tmp_path / "train.tsv", WORDS, TAGS)
    (tmp_path / "new.txt").write_text("the\ncat\nsleeps\n\na\ndog\n")
    return tmp_path


def test_what_is_written_is_read_again(tmp_path):
    tags = [list(own) for own in TAGS]
    tags[0][1] = None
    write_two_columns(tmp_path / "a.tsv", WORDS, tags)
    assert read_two_columns(tmp_path / "a.tsv") == (WORDS, tags)


def test_two_columns_may_be_cut_by_spaces_packed_and_end_anyhow(tmp_path):
    text = "\ufeffNew York\tPLACE\r\nis\tV\r\n\r\n\r\nbig x ADJ"
    (tmp_path / "a.txt").write_bytes(text.encode())
    with gzip.open(tmp_path / "a.txt.gz", "wb") as file:
        file.write(text.encode())
    expected = [["New York", "is"], ["big"]], [["PLACE", "V"], ["ADJ"]]
    assert read_two_columns(tmp_path / "a.txt") == expected == read_tagged(tmp_path / "a.txt.gz")


def test_conllu_leaves_out_ranges_and_empty_nodes(tmp_path):
    (tmp_path / "a.conllu").write_text(CONLLU)
    read = read_tagged(tmp_path / "a.conllu")
    assert read.words == [["Dogs", "do", "n't"], ["Hi"]]
    assert read.tags == [["NOUN", "AUX", "PART"], [None]]
    assert read_conllu(tmp_path / "a.conllu", tag="xpos").tags == [["NNS", "VBP", "RB"], ["UH"]]


@pytest.mark.parametrize(
    ("name", "text", "keyword"),
    [("a.tsv", "\n\n", "words"), ("a.tsv", "\tX\n", "line 1"), ("a.conllu", "Dogs\tNOUN\n", "10 columns")],
)
def test_files_that_hold_something_else_are_refused(tmp_path, name, text, keyword):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=keyword):
        read_tagged(tmp_path / name)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.tsv"):
        read_tagged(tmp_path / "none.tsv")


def plain_features(sentence, t, features):
    """The specification, word by word."""
    found = []
    for far in range(-features.window, features.window + 1):
        at = t + far
        word = "<s>" if at < 0 else "</s>" if at >= len(sentence) else sentence[at]
        is_word = 0 <= at < len(sentence)
        found.append(f"lower[{far}]={word.lower() if is_word else word}")
        if far == 0:
            found.append(f"word[0]={word}")
            for size in range(1, features.prefixes + 1):
                found += [f"prefix {size}[0]={word[:size].lower()}"] if len(word) > size else []
            for size in range(1, features.suffixes + 1):
                found += [f"suffix {size}[0]={word[-size:].lower()}"] if len(word) > size else []
        if abs(far) == 1:
            ending = (word[-3:].lower() if len(word) > 3 else None) if is_word else word
            found += [f"suffix 3[{far}]={ending}"] if ending else []
    return {name for name in found if not name.startswith("shape")}


def test_features_are_those_of_their_specification():
    features = WordFeatures()
    table = features.fit_transform(WORDS)
    names = features.get_feature_names_out()
    flat = [(sentence, t) for sentence in WORDS for t in range(len(sentence))]
    for row, (sentence, t) in enumerate(flat):
        columns = table.values.indices[table.values.indptr[row] : table.values.indptr[row + 1]]
        found = {name for name in names[columns] if not name.startswith("shape")}
        assert found == plain_features(sentence, t, features)


def test_unseen_features_get_no_column():
    features = WordFeatures(window=0).fit([["dog"]])
    assert features.transform([["QQ9"]]).values.nnz == 0
    assert features.transform([["dog"]]).values.nnz == features.n_columns_


def test_min_count_drops_rare_features():
    many, few = WordFeatures().fit(WORDS), WordFeatures(min_count=10).fit(WORDS)
    assert few.n_columns_ < many.n_columns_
    assert "word[0]=loudly" not in set(few.get_feature_names_out())


def test_hashed_features_need_no_training_words():
    features = WordFeatures(columns=64).fit([["dog"]])
    table = features.transform([["zebra", "runs"]]).values
    assert table.shape == (2, 64)
    assert np.array_equal(
        table.toarray(), WordFeatures(columns=64).fit([["x"]]).transform([["zebra", "runs"]]).values.toarray()
    )


@pytest.mark.parametrize(("X", "keyword"), [("abc", "X"), ([], "empty"), ([[]], r"X\[0\]"), ([[1]], r"X\[0\]")])
def test_what_is_no_sentence_is_refused(X, keyword):
    with pytest.raises(ValueError, match=keyword):
        WordFeatures().fit(X)


@pytest.mark.parametrize("states", [1, 2])
def test_tagger_learns_and_comes_back_from_its_file(tmp_path, states):
    tagger = Tagger(states=states, verbose=0).fit(WORDS, TAGS)
    assert tagger.score(WORDS, TAGS) == 1.0
    tagger.save(tmp_path / "tagger.tacit")
    again = tacit.load(tmp_path / "tagger.tacit")
    assert again.predict(WORDS).values.tolist() == tagger.predict(WORDS).values.tolist()


def test_tagger_learns_from_gaps():
    gaps = [[None if (i + t) % 3 == 0 else tag for t, tag in enumerate(tags)] for i, tags in enumerate(TAGS)]
    assert Tagger(verbose=0).fit(WORDS, gaps).score(WORDS, TAGS) == 1.0


def test_scores_are_those_of_scikit_learn():
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    rng = np.random.default_rng(0)
    tags = [[tag if rng.random() < 0.8 else "N" for tag in own] for own in TAGS]
    tagger = Tagger(verbose=0)
    scores = tagger.evaluate(WORDS, tags, WORDS, TAGS)
    found = Tagger(verbose=0).fit(WORDS, tags).predict(WORDS).values
    truth = np.concatenate(TAGS)
    assert np.array_equal(scores.confusion, confusion_matrix(truth, found, labels=scores.tags))
    parts = precision_recall_fscore_support(truth, found, labels=scores.tags, zero_division=np.nan)
    for place, (_, count, precision, recall, f1) in enumerate(scores.per_tag()):
        assert np.allclose([precision, recall, f1], [part[place] for part in parts[:3]], equal_nan=True)
        assert count == parts[3][place]


def test_command_tags_files_and_reports(files, capsys):
    out = files / "out"
    arguments = [
        "tag",
        str(files / "train.tsv"),
        "--predict",
        str(files / "new.txt"),
        "--out",
        str(out),
        "--epochs",
        "5",
    ]
    assert main(arguments) == 0
    assert read_two_columns(out / "predictions.tsv") == (
        [["the", "cat", "sleeps"], ["a", "dog"]],
        [["D", "N", "V"], ["D", "N"]],
    )
    assert {"model.tacit", "report.html", "run.json", "scores.tsv", "predictions.tsv"} <= set(os.listdir(out))
    page = (out / "report.html").read_text()
    assert "true \\ predicted" in page
    assert re.search(r"D predicted as D: \d+ of \d+", page)
    assert json.loads((out / "run.json").read_text())["accuracy"] > 0.9
    assert tacit.load(out / "model.tacit").predict([["the", "dog"]]).values.tolist() == ["D", "N"]


def test_command_tests_on_a_file_of_its_own(files):
    out = files / "out"
    train = str(files / "train.tsv")
    assert main(["tag", train, "--test", train, "--states", "2", "--out", str(out), "--quiet"]) == 0
    assert (out / "scores.tsv").read_text().startswith("tag\tcount\tprecision")
    assert not (out / "predictions.tsv").exists()


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("the\ncat\n\na\ndog\n", "4 words"),
        ("the X\ncat X\n\na X\n", " X,"),
        ("the D\ncat N\n", "one sentence"),
    ],
)
def test_command_says_what_a_file_lacks(files, capsys, text, keyword):
    (files / "few.tsv").write_text(text)
    assert main(["tag", str(files / "few.tsv"), "--out", str(files / "out")]) == 1
    assert keyword in capsys.readouterr().err
    assert not (files / "out").exists()


def test_command_says_if_a_test_file_has_no_tags(files, capsys):
    train, new = str(files / "train.tsv"), str(files / "new.txt")
    assert main(["tag", train, "--test", new, "--out", str(files / "out")]) == 1
    assert "new.txt" in capsys.readouterr().err


def test_a_report_without_mistakes_says_so(files):
    out = files / "out"
    assert (
        main(["tag", str(files / "train.tsv"), "--test", str(files / "train.tsv"), "--out", str(out), "--quiet"]) == 0
    )
    page = (out / "report.html").read_text()
    assert "no mistakes" in page
    assert "nan" not in re.sub(r"<style.*?</style>|<script.*?</script>", "", page, flags=re.DOTALL)


@pytest.mark.skipif("TACIT_DATA" not in os.environ, reason="TACIT_DATA is not set")
def test_web_treebank_is_read():
    dev = ewt("dev")
    assert len(dev.words) == 2001
    assert len({tag for tags in dev.tags for tag in tags}) == 17


HARD = ["a", "_", "a b", " a", "a\rb", "\x0b", "\u2028", "\ufeffa", "", " ", "\t", "a\n", "\ud800", "#", "\x85", "a\r"]


@pytest.mark.parametrize("word", HARD)
@pytest.mark.parametrize("tag", [*HARD, None])
def test_what_is_written_is_read_again_or_refused(tmp_path, word, tag):
    words, tags = [["x", word], [word]], [["X", tag], [tag]]
    try:
        write_two_columns(tmp_path / "a.tsv", words, tags)
    except ValueError as error:
        assert "would be read as another" in str(error)  # noqa: PT017
    else:
        assert read_two_columns(tmp_path / "a.tsv") == (words, tags)


def make_steps(rng, n=12):
    """Two signals; the tag is which of them is high, and a high step is followed by two of its kind."""
    tags = [np.repeat(rng.integers(0, 2, 8), 3) for _ in range(n)]
    steps = [np.column_stack([own, 1 - own]) + 0.2 * rng.standard_normal((own.size, 2)) for own in tags]
    return steps, [["up" if tag else "down" for tag in own] for own in tags]


def write_steps(path, steps, tags=None):
    lines = ["run,x,y" + (",tag" if tags else "")]
    for i, own in enumerate(steps):
        lines += [f"r{i},{a},{b}" + (f",{tags[i][t]}" if tags else "") for t, (a, b) in enumerate(own.tolist())]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_steps_have_the_numbers_of_their_neighbours():
    table = StepFeatures(window=1).fit([[[0.0], [2.0]]]).transform([[[0.0], [2.0], [4.0]], [[2.0]]])
    assert table[0].tolist() == [[-1, -1, 1, 1], [-1, 1, 3, 1], [1, 3, 3, 1]]
    assert table[1].tolist() == [[1, 1, 1, 1]]


def test_a_command_tags_time_steps(tmp_path):
    rng = np.random.default_rng(0)
    train, new = make_steps(rng), make_steps(rng, 3)
    out, again = tmp_path / "out", tmp_path / "again"
    files = [write_steps(tmp_path / "a.csv", *train), write_steps(tmp_path / "b.csv", new[0])]
    given = ["--sequence", "run", "--predict", str(files[1]), "-q", "--out"]
    assert main(["tag", str(files[0]), *given, str(out)]) == 0
    rows = [line.split("\t") for line in (out / "predictions.tsv").read_text().splitlines()[1:]]
    assert [row[2] for row in rows] == [tag for own in new[1] for tag in own]
    assert [row[:2] for row in rows[23:25]] == [["r0", "24"], ["r1", "1"]]
    assert main(["tag", "--model", str(out / "model.tacit"), *given, str(again)]) == 0
    assert (again / "predictions.tsv").read_bytes() == (out / "predictions.tsv").read_bytes()


@pytest.mark.parametrize(
    ("content", "options", "keyword"),
    [
        ("run,x,tag\na,1,u\na,oops,v\n", [], "line 3"),
        ("run,x,y\na,1,u\n", [], "tag"),
        ("run,x,tag\na,1,u\na,2,v\n", [], "one sentence|one sequence"),
        ("x,tag\n1,u\n", ["--sequence", "run"], "run"),
        ("x,tag\n1,u\n", ["--gazetteer", "a=b.txt"], "gazetteer"),
    ],
)
def test_a_command_says_what_a_table_of_steps_lacks(content, options, keyword, tmp_path, capsys):
    (tmp_path / "a.csv").write_text(content)
    sequence = [] if options or "run" not in content else ["--sequence", "run"]
    assert main(["tag", str(tmp_path / "a.csv"), *sequence, *options, "--out", str(tmp_path / "out")]) in (1, 2)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(keyword, error)
