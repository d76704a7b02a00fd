"""Documents and their files: CoNLL-2012 and JSON, there and back."""

import numpy as np
import pytest

from tacit.text import Document, read_conll, read_json, write_conll, write_json

LINES = """#begin document (a tale); part 003
tale\t3\t0\tAlice\t_\t(12|(5)
tale\t3\t1\tLiddell\t_\t12)
tale\t3\t2\tsaw\t_\t
tale\t3\t3\ther\t_\t(7|(12)
tale\t3\t4\tsister\t_\t7)

tale\t3\t0\tShe\t_\t(7)
tale\t3\t1\tsmiled\t_\t

#end document
"""


def test_conll_is_read_and_written_back_the_same(tmp_path):
    source, target = tmp_path / "tale.conll", tmp_path / "copy.conll"
    source.write_text(LINES)
    (tale,) = read_conll(source)
    assert (tale.name, tale.part, tale.tokens[:2]) == ("a tale", "003", ["Alice", "Liddell"])
    assert tale.mentions.tolist() == [[0, 2], [0, 1], [3, 5], [3, 4], [5, 6]]
    assert tale.clusters.tolist() == [0, 1, 2, 0, 2]
    assert [len(sentence) for sentence in tale.sentences] == [5, 2]
    write_conll(target, [tale.with_clusters([4, 3, 9, 4, 9])])
    assert target.read_text() == LINES.replace("(12|(5)", "(0|(1)").replace("12)", "0)").replace("(7", "(2").replace(
        "7)", "2)"
    )
    assert read_conll(target)[0].clusters.tolist() == tale.clusters.tolist()


def test_numbers_of_clusters_do_not_change_the_mentions(tmp_path):
    import re

    numbers = iter(range(100, 200))
    path = tmp_path / "one.conll"
    opened = []

    def renumber(match):
        if match[0].startswith("("):
            number = next(numbers)
            if not match[0].endswith(")"):
                opened.append(number)
            return match[0].replace(match[1], str(number))
        return f"{opened.pop()})"

    path.write_text(
        re.sub(r"\(?(\d+)\)?(?=[|\n])", lambda m: renumber(m) if "(" in m[0] or ")" in m[0] else m[0], LINES)
    )
    (tale,) = read_conll(path)
    assert tale.mentions.tolist() == [[0, 2], [0, 1], [3, 5], [3, 4], [5, 6]]
    assert len(set(tale.clusters.tolist())) == 5


def random_document(rng):
    n = int(rng.integers(1, 30))
    starts = np.sort(rng.integers(0, n, int(rng.integers(0, 12))))
    spans = [(int(s), int(rng.integers(s + 1, n + 1))) for s in starts]
    spans = sorted(set(spans), key=lambda span: (span[0], -span[1]))
    # mentions of one cluster that cross each other cannot be distinguished in CoNLL: each has a cluster of its own
    return Document([[f"w{i}" for i in range(n)]], spans, list(range(len(spans))), name="drawn")


def test_any_document_survives_both_formats(tmp_path):
    rng = np.random.default_rng(0)
    documents = [random_document(rng) for _ in range(40)]
    write_conll(tmp_path / "d.conll", documents)
    write_json(tmp_path / "d.json", documents)
    for copies in (read_conll(tmp_path / "d.conll"), read_json(tmp_path / "d.json")):
        for before, after in zip(documents, copies, strict=True):
            assert after.mentions.tolist() == before.mentions.tolist()
            assert after.clusters.tolist() == before.clusters.tolist()
            assert after.tokens == before.tokens


def test_a_mention_may_close_where_one_of_its_cluster_opens(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("#begin document (x); part 0\nx 0 0 a _ (1\nx 0 1 b _ (1|1)\nx 0 2 c _ 1)\n\n#end document\n")
    assert read_conll(path)[0].mentions.tolist() == [[0, 2], [1, 3]]


def test_blanks_may_separate_columns(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("#begin document (x); part 000\nx  0  0  a  NN  -  (1)\nx  0  1  b  NN  -  -\n\n#end document\n")
    (tale,) = read_conll(str(path))
    write_conll(path, tale)
    assert path.read_text().splitlines()[1:3] == ["x  0  0  a  NN  -  (0)", "x  0  1  b  NN  -  -"]


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("", "#begin document"),
        ("x 0 0 a _ -\n", "line 1"),
        ("#begin document (x); part 0\nx 0 0 a _ (1\n\n#end document\n", "line 2"),
        ("#begin document (x); part 0\nx 0 0 a _ 1)\n\n#end document\n", "bracket"),
        ("#begin document (x); part 0\nx 0 0 a _ what\n", "#end document"),
        ("#begin document (x); part 0\nx 0 0 a _ what\n#end document\n", "brackets"),
        ("#begin document (x); part 0\nx 0 a\n#end document\n", "columns"),
        ("#begin document x\n#end document\n", "line 1"),
    ],
)
def test_damaged_conll_is_refused_with_its_line(tmp_path, text, keyword):
    path = tmp_path / "x.conll"
    path.write_text(text)
    with pytest.raises(ValueError, match=keyword):
        read_conll(path)


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("{", "JSON"),
        ("[]", "empty"),
        ('{"clusters": []}', "sentences"),
        ('{"sentences": [["a"]]}', "mentions"),
        ('{"sentences": [["a"]], "clusters": [[[0]]]}', "mention"),
        ('{"sentences": [["a"]], "clusters": [[[0, 7]]]}', "mention 0"),
    ],
)
def test_damaged_json_is_refused(tmp_path, text, keyword):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=keyword):
        read_json(path)


@pytest.mark.parametrize(
    ("sentences", "mentions", "clusters", "keyword"),
    [
        (["a b"], [(0, 1)], None, "tokens"),
        ([["a", 3]], [(0, 1)], None, "tokens"),
        ([["a"]], [(0, 2)], None, "mention 0"),
        ([["a"]], [(0, 0)], None, "mention 0"),
        ([["a", "b"]], [(1, 2), (0, 1)], None, "mention 1"),
        ([["a"]], [0], None, "pairs"),
        ([["a"]], [(0, 1)], [0, 1], "clusters"),
    ],
)
def test_bad_documents_are_refused(sentences, mentions, clusters, keyword):
    with pytest.raises(ValueError, match=keyword):
        Document(sentences, mentions, clusters)
