"""Text files that are damaged, or small on the disk and large in memory: refused in one line, within bounded memory."""

import contextlib
import gzip
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tacit.data.text_files import TextReader, parse_json, read_csv
from tacit.datasets import boxes_coco, boxes_csv, read_pautomac
from tacit.dna.files import iterate_sequences, read_motifs, read_sequence_table, read_sequences_file
from tacit.ranking import Triplets
from tacit.text import read_conll, read_json, read_links, read_parallel
from tacit.text.sentences.vectors import read_document_file
from tacit.text.tagged_words import read_two_columns
from tests.fuzz.verdicts import CLEAN, CLEAR, judge

SIZE = 1 << 19
TIMES = 16
"""Bytes of memory per byte that is read: 256 MiB, the limit by default, then take 4 GiB at the most."""

CONLL = b"#begin document (a); part 0\n"
CORNERS = b"file,xmin,ymin,xmax,ymax\n"
MEME = b"MOTIF a\nletter-probability matrix: w= 3\n"
BOMBS = {
    "tagged words, a sentence each": (read_two_columns, ".tsv.gz", b"", b"a\n\n"),
    "tagged words": (read_two_columns, ".tsv.gz", b"", b"ab cd\n"),
    "tagged words in one line": (read_two_columns, ".tsv.gz", b"", b"ab "),
    "a table of sequences": (read_sequence_table, ".tsv.gz", b"", b"AC\t1\n"),
    "a table of two letters": (read_sequence_table, ".tsv.gz", b"ACGT\t1\n", b"\n\n"),
    "a table of many columns": (read_sequence_table, ".tsv.gz", b"AC", b"\tAC"),
    "sequences": (read_sequences_file, ".fa.gz", b"", b">a\nAC\n"),
    "a sequence in short lines": (read_sequences_file, ".fa.gz", b">a\n", b"AC\n"),
    "MEME": (read_motifs, ".meme.gz", MEME, b"1 0 0 0\n"),
    "MEME of blank lines": (read_motifs, ".meme.gz", b"", b" \n"),
    "JASPAR": (read_motifs, ".jaspar.gz", b">a\nA", b" 1"),
    "JASPAR of blanks": (read_motifs, ".jaspar.gz", b">a\nx", b"  "),
    "JASPAR of names": (read_motifs, ".jaspar.gz", b"", b">\n1\n1\n1\n1\n"),
    "documents": (read_document_file, ".jsonl.gz", b"", b'{"text":""}\n'),
    "a document of short sentences": (read_document_file, ".jsonl.gz", b'{"text":"', b"a. "),
    "JSON of lists": (read_json, ".json.gz", b"[", b"[],"),
    "JSON of mappings": (read_json, ".json.gz", b"[", b'{"a":1},'),
    "JSON lines": (read_json, ".json.gz", b"", b"{}\n"),
    "COCO": (boxes_coco, ".json.gz", b'{"images":[', b"{},"),
    "boxes": (boxes_csv, ".csv.gz", CORNERS, b"a,1,1,2,2\n"),
    "boxes of blank lines": (boxes_csv, ".csv.gz", CORNERS, b"\n"),
    "boxes in one line": (boxes_csv, ".csv.gz", CORNERS, b"ab,"),
    "strings of symbols": (read_pautomac, ".gz", b"100000 2000\n", b"1 999\n"),
    "a string of symbols": (read_pautomac, ".gz", b"1 2000\n", b"999 "),
    "parallel text": (read_parallel, ".gz", b"", b"|||\n"),
    "a parallel sentence": (read_parallel, ".gz", b"", b"ab "),
    "links": (read_links, ".gz", b"", b"1-1\n"),
    "no links": (read_links, ".gz", b"", b"\n"),
    "CoNLL": (read_conll, ".conll.gz", CONLL, b"a\t0\t0\tb\t-\t-\n"),
    "CoNLL of blank lines": (read_conll, ".conll.gz", CONLL, b"\n"),
    "svmlight": (Triplets.from_svmlight, ".gz", b"", b"1 qid:1 1:1\n"),
    "svmlight in one line": (Triplets.from_svmlight, ".gz", b"1 qid:1", b" 1:1"),
}


def bomb(folder, name, size):
    reader, end, start, part = BOMBS[name]
    path = Path(folder) / f"bomb{end}"
    path.write_bytes(gzip.compress(start + part * ((size - len(start)) // len(part)), 1))
    return reader, path


@pytest.mark.parametrize("name", BOMBS)
def test_memory_stays_in_proportion_to_the_limit(tmp_path, name):
    reader, path = bomb(tmp_path, name, SIZE)
    tracemalloc.start()
    try:
        with contextlib.suppress(ValueError):
            reader(path, max_bytes=SIZE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < TIMES * SIZE


@pytest.mark.parametrize("name", BOMBS)
def test_more_bytes_than_the_limit_are_refused_before_they_are_read(tmp_path, name):
    reader, path = bomb(tmp_path, name, 50_000)
    with pytest.raises(ValueError, match=r"max_bytes|line 1|letters|record|neither|not a"):
        reader(path, max_bytes=1000)


def test_names_and_records_of_sequences_are_limited(tmp_path, monkeypatch):
    path = tmp_path / "a.fa.gz"
    path.write_bytes(gzip.compress(b">" + b"x" * 100_000 + b"\nACGT\n"))
    with pytest.raises(ValueError, match="name of 100000"):
        list(iterate_sequences(path))
    monkeypatch.setattr("tacit.dna.files.MAX_SEQUENCE", 1 << 20)
    path.write_bytes(gzip.compress(b">a\n" + b"AC\n" * 100_000))
    with pytest.raises(ValueError, match="record of more than"):
        list(iterate_sequences(path))
    path.write_bytes(gzip.compress(b">a\nAC\n" * 100_000))  # many records are not one
    assert sum(1 for _ in iterate_sequences(path)) == 100_000
    path.write_bytes(gzip.compress(b"@a\nAC\n+\nII\n" * 200_000))
    assert sum(1 for _ in iterate_sequences(path)) == 200_000


def test_features_of_svmlight_files_are_limited(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1 2000000000:1\n2 qid:1 1:1\n")
    with pytest.raises(ValueError, match="numbers"):
        Triplets.from_svmlight(path)


def test_damaged_documents_end_in_an_error_of_one_line(tmp_path):
    whole = gzip.compress(b'{"text": "Good. Bad.", "label": "a"}\n' * 50)
    rng = np.random.default_rng(0)
    for k in range(64):
        content = bytearray(whole)
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        path = tmp_path / f"{k}.jsonl.gz"
        path.write_bytes(bytes(content) if k % 2 else whole[: len(whole) - k - 1])
        found = judge(lambda path=path: len(read_document_file(path).documents))
        assert found.kind in (CLEAN, CLEAR), found.text


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000, "1e400"])
def test_numbers_beyond_any_type_in_json_are_refused(tmp_path, number):
    path = tmp_path / "a.json"
    path.write_text(f'{{"sentences": [["a"]], "clusters": [[[0, {number}]]]}}')
    with pytest.raises(ValueError, match=r"mention|JSON"):
        read_json(path)
    note = f'{{"image_id": 1, "category_id": 1, "bbox": [1, 1, {number}, 2]}}'
    path.write_text(f'{{"images": [{{"id": 1, "file_name": "a"}}], "categories": [], "annotations": [{note}]}}')
    with pytest.raises(ValueError, match=r"annotation|JSON"):
        boxes_coco(path)
    path.write_text(f'{{"text": "a.", "label": {number}}}')
    found = judge(lambda: len(read_document_file(path).labels))
    assert found.kind in (CLEAN, CLEAR), found.text


def test_an_empty_name_of_a_motif_is_its_number(tmp_path):
    path = tmp_path / "a.jaspar"
    path.write_text(">\nA [ 1 ]\nC [ 1 ]\nG [ 1 ]\nT [ 1 ]\n")
    assert read_motifs(path)[0].name == "motif 1"
    path.write_text(path.read_text() + ">")
    with pytest.raises(ValueError, match="motif 2"):
        read_motifs(path)


def test_an_empty_table_lacks_its_columns(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="lacks the column 'file'"):
        read_csv(path, ("file", "contains"))


def test_lines_end_where_the_format_ends_them(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffa\x0bb\r\nc\rd\n\ne".encode())
    assert [line for _, line in TextReader(path).lines()] == ["a\x0bb", "c\rd", "", "e"]
    assert list(TextReader(path).lines(rare_ends=True)) == [
        (1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, ""), (6, "e"),
    ]  # fmt: skip
    path.write_bytes(b'a,b\r"x\ny",2\rz,3')
    assert [row for _, row in read_csv(path, ("a", "b")).rows] == [["x\ny", "2"], ["z", "3"]]


def test_json_of_ordinary_size_is_read_whatever_the_limit(tmp_path):
    assert len(parse_json(json.dumps(list(range(16_000))), "it", max_bytes=1)) == 16_000


def test_lines_of_svmlight_files_are_limited(tmp_path):
    path = tmp_path / "short.gz"
    path.write_bytes(gzip.compress(b"1 qid:1 1:1\n" * 20_000))
    with pytest.raises(ValueError, match="lines"):
        Triplets.from_svmlight(path, max_bytes=1 << 18)
    assert len(Triplets.from_svmlight(path)[0]) == 20_000
