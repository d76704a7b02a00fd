"""``tacit coref``: CoNLL in and out, numbers of clusters to predict unread, a report that no text can break."""

import json
import re

import numpy as np
import pytest

import tacit
from tacit.apps import CoreferenceResolver
from tacit.cli import main
from tacit.text import Document, coreference_scores, read_conll, write_conll
from tacit.text.coreference.command import coloured_text
from tacit.text.coreference.detector import MentionFinder, drop_singletons, score_mentions
from tests.chromium import needs_chromium, open_page
from tests.closing import check_closing

PEOPLE = [("Alice", "She", "her"), ("Bob", "He", "him"), ("Emma", "She", "her"), ("Tom", "He", "him")]
HOSTILE = "<script>alert('x')</script>"


def tell(rng, name):
    """A tale of a man and a woman, by names and pronouns."""
    one, other = PEOPLE[rng.choice([0, 2])], PEOPLE[rng.choice([1, 3])]
    sentences, clusters = [[one[0], "met", other[0], "."]], [0, 1]
    for _ in range(3):
        a, b = (0, 1) if rng.random() < 0.5 else (1, 0)
        sentences.append([(one, other)[a][1], "greeted", (one, other)[b][2], "."])
        clusters += [a, b]
    spans = [(4 * s + place, 4 * s + place + 1) for s in range(4) for place in (0, 2)]
    return Document(sentences, spans, clusters, name=name)


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    train = []
    for i in range(6):
        train.append(tmp_path / f"train{i}.conll")
        write_conll(train[-1], [tell(rng, f"tale {i}.{k}") for k in range(2)])
    new = []
    for i in range(2):
        new.append(tmp_path / f"new{i}.conll")
        write_conll(new[-1], [tell(rng, f"new {i}.{k}") for k in range(2)])
    return [str(path) for path in train], new


def test_one_file_of_clusters_per_file_to_predict(files, tmp_path, capsys):
    train, new = files
    out = tmp_path / "out"
    assert main(["coref", *train, "--predict", *map(str, new), "--out", str(out), "--seed", "3"]) == 0
    assert "held-out CoNLL score" in check_closing(capsys.readouterr().out, out)
    for path in new:
        gold, found = read_conll(path), read_conll(out / path.name)
        assert [a.mentions.tolist() for a in gold] == [b.mentions.tolist() for b in found]
        assert [a.tokens for a in gold] == [b.tokens for b in found]
        assert coreference_scores(gold, found).conll == 1.0
    record = json.loads((out / "run.json").read_text())
    assert record["training_documents"] == 12
    assert record["mentions_resolved"] == 32
    assert sorted(p.name for p in out.iterdir()) == [
        "model.tacit",
        "new0.conll",
        "new1.conll",
        "report.html",
        "run.json",
    ]
    resolver = tacit.load(out / "model.tacit")
    assert [c.tolist() for c in resolver.predict(gold)] == [text.clusters.tolist() for text in found]


def test_numbers_of_clusters_to_predict_are_never_read(files, tmp_path):
    train, new = files
    texts = read_conll(new[0])
    apart = tmp_path / "apart" / new[0].name
    apart.parent.mkdir()
    write_conll(apart, [text.with_clusters(np.arange(len(text))) for text in texts])
    for name, path in (("a", new[0]), ("b", apart)):
        assert main(["coref", *train, "--predict", str(path), "--out", str(tmp_path / name), "--quiet"]) == 0
    answers = [(tmp_path / name / new[0].name).read_bytes() for name in ("a", "b")]
    assert answers[0] == answers[1]


def test_the_same_seed_gives_the_same_files_for_any_number_of_jobs(files, tmp_path):
    train, new = files
    for name, jobs in (("a", "1"), ("b", "2")):
        arguments = ["--out", str(tmp_path / name), "--quiet", "--seed", "5", "--jobs", jobs]
        assert main(["coref", *train, "--predict", str(new[0]), *arguments]) == 0
    assert (tmp_path / "a" / new[0].name).read_bytes() == (tmp_path / "b" / new[0].name).read_bytes()


@pytest.mark.parametrize("learner", ["perceptron", "crf"])
def test_both_learners_resolve_and_explain(files, learner):
    texts = [text for path in files[0] for text in read_conll(path)]
    resolver = CoreferenceResolver(learner, verbose=0).fit(texts)
    assert resolver.held_out_["conll"] == 1.0
    links = resolver.explain(texts[0])
    clusters = resolver.predict(texts[:1])[0]
    assert len(links) == len(clusters) - len(set(clusters.tolist()))
    assert all(clusters[link.mention] == clusters[link.earlier] and link.reasons for link in links)
    assert all(weight > 0 for link in links for _, weight in link.reasons)


def test_documents_without_mentions_pass_through(files, tmp_path):
    empty = tmp_path / "empty.conll"
    write_conll(empty, Document([["Nobody", "here"]], [], [], name="empty"))
    assert main(["coref", *files[0], "--predict", str(empty), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert read_conll(tmp_path / "out" / "empty.conll")[0].tokens == ["Nobody", "here"]


def test_errors_of_command_lines_and_files_have_one_line(files, tmp_path, capsys):
    train, new = files
    same = tmp_path / "other" / new[0].name
    same.parent.mkdir()
    same.write_bytes(new[0].read_bytes())
    broken = tmp_path / "broken.conll"
    broken.write_text("#begin document (x); part 0\nx 0 0 a _ (1\n\n#end document\n")
    for arguments, code, keyword in (
        ([*train, "--predict", str(new[0]), str(same)], 1, new[0].name),
        ([*train, "--predict"], 2, "--predict"),
        ([*train], 2, "--predict"),
        (["--predict", str(new[0])], 2, "TRAIN"),
        ([str(broken), "--predict", str(new[0])], 1, "line 2"),
    ):
        assert main(["coref", *arguments, "--out", str(tmp_path / "out")]) == code
        line = capsys.readouterr().err
        assert keyword in line
        assert line.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_nothing_to_learn_is_refused():
    alone = Document([["Alice", "Bob"]], [(0, 1), (1, 2)], [0, 1])
    with pytest.raises(ValueError, match="cluster"):
        CoreferenceResolver(verbose=0).fit([alone])
    with pytest.raises(ValueError, match="document 0"):
        CoreferenceResolver(verbose=0).fit([Document([["Alice"]], [(0, 1)])])


def test_coloured_text_stays_nested_whatever_crosses():
    text = Document([list("abcdef"), list("gh")], [(0, 3), (1, 4), (1, 2), (5, 7), (6, 8)], [0, 1, 0, 1, 1])
    html = str(coloured_text(text))
    depth = 0
    for tag in re.findall(r"<(/?)(?:span|p)\b", html):
        depth += -1 if tag else 1
        assert depth >= 0
    assert depth == 0
    assert html.count("<sub>") == 5
    opened = []
    for closing, name in re.findall(r"<(/?)(span|p|sub)\b", html):
        if not closing:
            opened.append(name)
        else:
            assert opened.pop() == name


@needs_chromium
def test_hostile_text_is_harmless_in_the_report(files, tmp_path):
    evil = Document(
        [[HOSTILE, "met", '"onmouseover="alert(1)', "&", "he"], ["</p></figure><img", "src=x", "onerror=alert(2)>"]],
        [(0, 1), (2, 3), (4, 5), (5, 8)],
        [0, 1, 0, 1],
        name="evil<b>name</b>",
    )
    path = tmp_path / "evil.conll"
    write_conll(path, evil)
    assert main(["coref", *files[0], "--predict", str(path), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    page, console, asked = open_page(tmp_path / "out" / "report.html", tmp_path)
    assert console == []
    assert asked == []
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<b>name" not in page


def test_mentions_are_found_in_raw_text(files, tmp_path, capsys):
    train, new = files
    (tmp_path / "tale.txt").write_text("Alice met Bob. She greeted him.\n")
    out = tmp_path / "out"
    given = ["--predict", str(tmp_path / "tale.txt"), str(new[0]), "--out", str(out), "--mentions", "auto"]
    assert main(["coref", *train, *given]) == 0
    assert "F1 of mentions" in capsys.readouterr().out
    found = read_conll(out / "tale.conll")[0]
    assert [found.words(m) for m in range(len(found))] == [["Alice"], ["Bob"], ["She"], ["him"]]
    assert found.clusters.tolist() == [0, 1, 0, 1]
    lines = (out / "tale.ann").read_text().splitlines()
    assert lines[0] == "T1\tmention 0 5\tAlice"
    assert lines[-1] == "*\tCoreference T2 T4"
    assert coreference_scores(read_conll(new[0]), read_conll(out / new[0].name)).conll == 1.0
    again = ["--predict", str(tmp_path / "tale.txt"), "--out", str(tmp_path / "again"), "-q"]
    assert main(["coref", "--model", str(out / "model.tacit"), *again]) == 0
    assert (tmp_path / "again" / "tale.ann").read_text().splitlines() == lines


def test_raw_text_needs_a_model_that_finds_mentions(files, tmp_path, capsys):
    train, new = files
    (tmp_path / "tale.txt").write_text("Alice met Bob.\n")
    assert main(["coref", *train, "--predict", str(tmp_path / "tale.txt"), "--out", str(tmp_path / "a")]) == 1
    assert "--mentions auto" in capsys.readouterr().err
    assert main(["coref", *train, "--predict", str(new[0]), "--out", str(tmp_path / "b"), "-q"]) == 0
    model = ["coref", "--model", str(tmp_path / "b" / "model.tacit"), "--mentions", "auto"]
    assert main([*model, "--predict", str(new[0]), "--out", str(tmp_path / "c")]) == 1
    assert "learn it again" in capsys.readouterr().err


def test_singletons_are_dropped_and_mentions_counted():
    text = Document([["a", "b", "c", "d"]], [(0, 2), (0, 1), (2, 3), (3, 4)], [0, 1, 0, 2])
    assert drop_singletons(text).mentions.tolist() == [[0, 2], [2, 3]]
    assert tuple(score_mentions([text], [drop_singletons(text)])) == (4, 2, 2)
    finder = MentionFinder(verbose=0).fit([text] * 25)
    assert finder.predict([text])[0].mentions.tolist() == text.mentions.tolist()
    with pytest.raises(ValueError, match="mentions"):
        MentionFinder(verbose=0).fit([Document([["a"]], [])])
