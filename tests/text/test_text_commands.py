"""`tacit align` and `tacit reasons`: from files to results, with hostile text and broken inputs."""

import json
import re

import pytest

import tacit
from tacit.cli import main
from tacit.text import alignment_scores, read_links
from tacit.text.sentences.command import compare_held_out
from tests.chromium import needs_chromium, open_page
from tests.closing import check_closing
from tests.text.test_alignment import parallel_text

HOSTILE = '<script>document.title="taken"</script>'


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Parallel text with a hostile sentence and an empty one, and gold links."""
    folder = tmp_path_factory.mktemp("text")
    source, target, gold = parallel_text(60)
    lines = [f"{' '.join(s)} ||| {' '.join(t)}" for s, t in zip(source, target, strict=True)]
    lines += [f"s0 {HOSTILE} s1 ||| t0 {HOSTILE} t1", " ||| t1"]
    (folder / "text").write_text("\n".join(lines) + "\n", encoding="utf-8")
    links = "".join(" ".join(f"{i + 1}-{j + 1}" for i, j in own.sure.tolist()) + "\n" for own in gold)
    (folder / "gold").write_text(links, encoding="utf-8")
    return folder / "text", folder / "gold", gold


@pytest.fixture(scope="module")
def aligned(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("aligned") / "links"
    assert main(["align", str(text[0]), "--out", str(out), "--seed", "1"]) == 0
    return out


def test_align_writes_a_line_of_links_per_sentence_pair(text, aligned):
    found = read_links(aligned / "links.txt")
    assert len(found) == 62
    assert len(found[61].sure) == 0
    assert alignment_scores([own.sure for own in found[:60]], text[2]).error_rate < 0.15
    record = json.loads((aligned / "run.json").read_text())
    assert record["files"] == ["links.txt", "model.tacit", "report.html", "run.json"]
    assert record["links"] == sum(len(own.sure) for own in found)
    assert record["status"] == "done"


def test_align_gives_the_same_links_for_the_same_seed(text, aligned, tmp_path):
    again = tmp_path / "again"
    assert main(["align", str(text[0]), "-o", str(again), "--seed", "1", "-q", "-j", "2"]) == 0
    assert (again / "links.txt").read_bytes() == (aligned / "links.txt").read_bytes()


def test_align_learns_from_gold_links_of_some(text, tmp_path, capsys):
    out = tmp_path / "links"
    assert main(["align", str(text[0]), "--out", str(out), "--gold", str(text[1])]) == 0
    assert "held-out" in check_closing(capsys.readouterr().out, out)
    links = [own.sure for own in read_links(out / "links.txt")[:60]]
    assert alignment_scores(links, text[2]).error_rate < 0.1
    assert len(tacit.load(out / "model.tacit").predict(["s0"], ["t0"])[0]) == 1


def test_align_replaces_neither_a_file_nor_a_full_folder(text, tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("my only novel")
    for out in (precious, tmp_path):
        assert main(["align", str(text[0]), "--out", str(out)]) == 3
    assert precious.read_text() == "my only novel"


@pytest.mark.parametrize(
    ("content", "gold", "keyword"),
    [
        (b"no bars\n", b"", "line 1"),
        (b"", b"", "empty"),
        (b"a ||| b\n", b"", "4"),
        (b"\xff\xfe ||| b\n", b"", "UTF-8"),
        (b"a b ||| c d\n" * 6, b"7-1\n", "word 7"),
        (b"a b ||| c d\n" * 6, b"1-1\n" * 7, "7 lines"),
        (b"a b ||| c d\n" * 6, b"1=1\n", "line 1"),
    ],
)
def test_align_says_in_one_line_what_is_wrong(content, gold, keyword, tmp_path, capsys):
    (tmp_path / "text").write_bytes(content)
    (tmp_path / "gold").write_bytes(gold)
    out = tmp_path / "links"
    given = ["--gold", str(tmp_path / "gold")] if gold else []
    assert main(["align", str(tmp_path / "text"), "--out", str(out), *given]) == 1
    error = capsys.readouterr().err
    assert keyword in error
    assert error.count("\n") == 1
    assert not out.exists()


@needs_chromium
def test_hostile_words_are_harmless_in_the_report(aligned, tmp_path):
    document, console, asked = open_page(aligned / "report.html", tmp_path)
    assert (console, asked) == ([], [])
    assert "<title>Word alignment" in document


@pytest.fixture(scope="module")
def reasoned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reasons")
    documents = [
        {"id": f"{i}", "label": "good" if i % 2 else "bad", "text": f"Plot {i}. {'Fine' if i % 2 else 'Dull'} film!"}
        for i in range(30)
    ]
    documents += [{"sentences": [HOSTILE, "So fine."], "id": HOSTILE}, {"text": "", "label": "good"}]
    path = folder / "reviews.jsonl"
    path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    assert main(["reasons", str(path), "--share", "0.5", "--out", str(folder / "out")]) == 0
    return folder / "out"


def test_reasons_writes_the_decisive_sentences(reasoned):
    lines = [json.loads(line) for line in (reasoned / "reasons.jsonl").read_text().splitlines()]
    assert len(lines) == 32
    assert all(line["reasons"][0]["text"].endswith("film!") for line in lines[:30])
    assert lines[30]["predicted"] == "good"
    assert lines[30]["label"] is None
    assert lines[31]["reasons"] == []
    held_out = json.loads((reasoned / "run.json").read_text())["held_out"]
    assert compare_held_out(held_out) in (reasoned / "report.html").read_text()
    assert tacit.load(reasoned / "model.tacit").predict(["How dull!"]).tolist() == ["bad"]


@needs_chromium
def test_hostile_documents_are_harmless_in_the_report(reasoned, tmp_path):
    document, console, asked = open_page(reasoned / "report.html", tmp_path)
    assert (console, asked) == ([], [])
    assert "<title>Reasons" in document


@pytest.mark.parametrize(
    ("content", "keyword"),
    [
        ("", "JSON"),
        ("{", "JSON"),
        ("[1]", "line 1"),
        ('{"text": 3, "label": "a"}', "line 1"),
        ('{"text": "a b"}', "label"),
        ('{"text": "a b", "label": "x"}\n{"text": "a b", "label": "x"}', "class"),
        ('{"text": "a b", "label": [1]}', "label"),
    ],
)
def test_reasons_says_in_one_line_what_is_wrong(content, keyword, tmp_path, capsys):
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    assert main(["reasons", str(path), "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert keyword in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_reasons_show_wrong_labels_first_and_whole_sentences(tmp_path):
    long = "The staff were wonderful " + "and kind " * 30 + "to all of us."
    lines = [
        {"id": f"d{i}", "sentences": ["A room.", long if i % 2 else "It was awful."], "label": "+-"[i % 2 == 0]}
        for i in range(20)
    ]
    lines[7]["label"] = "-"
    (tmp_path / "reviews.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(["reasons", str(tmp_path / "reviews.jsonl"), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    captions = re.findall(r"(d\d+): . by [^<]*", page)
    assert captions[0] == "d7"
    assert "labelled -; wrong" in page
    assert page.count(long) >= 2


def test_reasons_of_raw_text_are_at_their_characters(reasoned, tmp_path):
    text = "Mr. Grey wrote it. Fine film!\n"
    (tmp_path / "new.txt").write_text(text)
    given = ["reasons", str(tmp_path / "new.txt"), "--model", str(reasoned / "model.tacit")]
    assert main([*given, "--out", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "out" / "reasons.jsonl").read_text())["reasons"][0]
    assert text[found["start"] : found["end"]] == found["text"] == "Fine film!"
    assert main(["reasons", str(tmp_path / "new.txt"), "--out", str(tmp_path / "other")]) == 1
