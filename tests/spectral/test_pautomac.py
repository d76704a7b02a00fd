"""The reader of PAutomaC: what it reads, and what it refuses with the file's name."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from tacit.datasets import pautomac, read_pautomac
from tacit.spectral import SpectralAutomaton

DATA = Path(os.environ.get("TACIT_DATA", "nowhere"))
TRAIN, TEST, SOLUTION = "4 3\n2 0 1\n0\n3 2 2 1\n1 0\n", "2 3\n1 1\n0\n", "2\n0.125\n2.5e-1\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "7.pautomac.train.gz").write_bytes(gzip.compress(TRAIN.encode()))
    (tmp_path / "7.pautomac.test").write_text(TEST)
    (tmp_path / "7.pautomac_solution.txt").write_text(SOLUTION)
    return tmp_path


def test_a_problem_is_read_packed_or_not(folder, monkeypatch):
    data = pautomac(7, folder)
    assert [row.tolist() for row in data.train] == [[0, 1], [], [2, 2, 1], [0]]
    assert [row.tolist() for row in data.test] == [[1], []]
    assert data.solution.tolist() == [0.125, 0.25]
    assert data.n_symbols == 3
    (folder / "pautomac").mkdir()
    for file in folder.glob("7.*"):
        file.rename(folder / "pautomac" / file.name)
    monkeypatch.setenv("TACIT_DATA", str(folder))
    assert pautomac(7).n_symbols == 3


def test_it_is_what_the_estimators_take(folder):
    data = pautomac(7, folder)
    model = SpectralAutomaton(1, alphabet=range(data.n_symbols), verbose=0).fit(data.train)
    assert np.isfinite(model.score_samples(data.test)).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("4\n", "line 1"),
        ("1 0\n0\n", "line 1"),
        ("four 3\n", "'four 3'"),
        ("3 2\n1 0\n1 1\n", "2 strings"),
        ("1 2\n1 0\n1 1\n", "2 strings"),
        ("2 2\n1 0\n3 1 1\n", "line 3"),
        ("1 2\n\n", "line 2"),
        ("1 2\n-1\n", "line 2"),
        ("1 2\n2 0 2\n", "symbol 2"),
        ("1 2\n2 0 -1\n", "symbol -1"),
        ("1 2\n2 0 0.5\n", "'2 0 0.5'"),
    ],
)
def test_broken_files_of_strings_are_refused_by_name(tmp_path, text, words):
    (tmp_path / "bad").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_pautomac(tmp_path / "bad")


def test_what_is_no_text_or_no_gzip_is_refused_by_name(tmp_path):
    packed = gzip.compress(TRAIN.encode() * 100)
    for name, content in (
        ("cut.gz", packed[: len(packed) // 2]),
        ("plain.gz", TRAIN.encode()),
        ("binary", b"\xff\xfe\x00"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=name):
            read_pautomac(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="gone"):
        read_pautomac(tmp_path / "gone")


def test_packed_files_that_grow_beyond_the_limit_are_not_kept(tmp_path):
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"9999 2\n" + b"1 0\n" * 9999))
    with pytest.raises(ValueError, match="5000"):
        read_pautomac(tmp_path / "bomb.gz", max_bytes=5000)


def test_solutions_must_fit_the_test_strings(folder):
    for text, words in (
        ("2\n0.5\n", "1 probabilities"),
        ("1\n0.5\n", "test strings"),
        ("2\n0.5\n1.5\n", "line 3"),
        ("2\n0.5\nnan\n", "line 3"),
        ("2\nhalf\n0.5\n", "half"),
        ("", "probabilities"),
    ):
        (folder / "7.pautomac_solution.txt").write_text(text)
        with pytest.raises(ValueError, match=words):
            pautomac(7, folder)


def test_a_missing_problem_says_which_there_are(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"8\.pautomac\.train.* 7"):
        pautomac(8, folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"8\.pautomac\.train"):
        pautomac(8, tmp_path / "empty")


@pytest.mark.skipif(not (DATA / "pautomac").is_dir(), reason="TACIT_DATA does not name a folder with 'pautomac'")
def test_the_first_problem_is_all_there():
    data = pautomac(1)
    assert len(data.train) == 20_000
    assert len(data.test) == len(data.solution) == 1000
    assert data.n_symbols == 8
    assert data.train.values.max() == data.test.values.max() == 7
