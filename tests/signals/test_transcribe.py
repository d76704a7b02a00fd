"""``tacit transcribe``: words and times of recordings, files that other tools read, a model reused, bad input."""

import json

import numpy as np
import pytest
from scipy.io import wavfile

from tacit import load
from tacit.apps import Transcriber
from tacit.cli import main
from tacit.signals import Word, format_ctm, format_textgrid
from tacit.signals.command import read_recordings

RATE = 8000
TONES = {"low": 300, "mid": 800, "high": 2000}


def speak(words, rng):
    """Tones of 0.2 to 0.4 s with silence between; and where each is."""
    parts, times, now = [], [], 0.0
    for word in (*words, None):
        parts.append(0.001 * rng.standard_normal(int(rng.uniform(0.1, 0.2) * RATE)))
        now += parts[-1].size / RATE
        if word is not None:
            size = int(rng.uniform(0.2, 0.4) * RATE)
            parts.append(0.5 * np.sin(2 * np.pi * TONES[word] * np.arange(size) / RATE))
            times.append((now, now + size / RATE))
            now += size / RATE
    return np.concatenate(parts), np.array(times)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sixteen recordings, twelve with a transcript; and the truth."""
    path, rng = tmp_path_factory.mktemp("recordings"), np.random.default_rng(0)
    truth, lines = {}, ["file\ttranscript"]
    for i in range(16):
        words = rng.choice(list(TONES), int(rng.integers(1, 4))).tolist()
        signal, times = speak(words, rng)
        wavfile.write(path / f"r{i:02}.wav", RATE, (32000 * signal).astype(np.int16))
        truth[f"r{i:02}.wav"] = words, times
        if i < 12:
            lines.append(f"r{i:02}.wav\t{' '.join(words)}")
    table = tmp_path_factory.mktemp("table") / "table.tsv"
    table.write_text("\n".join(lines) + "\n")
    return path, table, truth


@pytest.fixture(scope="module")
def out(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "out"
    assert (
        main(["transcribe", str(folder[0]), "--transcripts", str(folder[1]), "--states", "3", "-o", str(place), "-q"])
        == 0
    )
    return place


def test_words_and_times_are_found(folder, out):
    found = {one["file"]: one for one in json.loads((out / "words.json").read_text())}
    errors = []
    for name, (words, times) in folder[2].items():
        assert [word["name"] for word in found[name]["words"]] == words
        edges = np.array([(word["start"], word["stop"]) for word in found[name]["words"]])
        errors += np.abs(edges - times).ravel().tolist()
    assert np.median(errors) < 0.04
    record = json.loads((out / "run.json").read_text())
    assert record["with_transcript"] == 12
    assert record["held_out_word_error"] <= 0.2
    assert (out / "transcripts.tsv").read_text().splitlines()[13].endswith("\tno")


def test_files_agree_with_each_other(out):
    words = [word for one in json.loads((out / "words.json").read_text()) for word in one["words"]]
    lines = (out / "words.ctm").read_text().splitlines()
    assert [line.split()[4] for line in lines] == [word["name"] for word in words]
    grid = (out / "textgrids" / "r00.TextGrid").read_text()
    numbers = [float(line.split("=")[1]) for line in grid.splitlines() if "xmin" in line or "xmax" in line][4:]
    assert numbers[1:-1:2] == numbers[2::2]  # every interval begins where the one before ends
    page = (out / "report.html").read_text()
    assert "data:image/png" in page
    assert "Recordings that were held out" in page


def test_a_model_is_used_again(folder, out, tmp_path):
    code = main(
        ["transcribe", str(folder[0]), "--model", str(out / "model.tacit"), "-o", str(tmp_path / "again"), "-q"]
    )
    assert code == 0
    first, again = (json.loads((place / "words.json").read_text()) for place in (out, tmp_path / "again"))
    assert [one["words"] for one in first[12:]] == [one["words"] for one in again[12:]]
    app = load(out / "model.tacit")
    with pytest.raises(ValueError, match="samples per second"):
        app.transcribe([np.zeros(RATE)], 16000)


def test_timings_are_what_other_tools_read():
    words = [Word('say "a"', 0.1, 0.5), Word("b", 0.5, 0.7)]
    assert format_ctm("my file", words).splitlines()[0] == 'my_file 1 0.100 0.400 say_"a"'
    grid = format_textgrid(words, 1.0)
    assert 'text = "say ""a"""' in grid
    assert "intervals: size = 4" in grid


def test_held_out_words_need_enough_recordings():
    signals = [np.zeros(RATE)] * 2
    assert Transcriber().evaluate(signals, [["a"], ["b"]], RATE) is None


@pytest.mark.parametrize(
    ("table", "keyword"),
    [
        ("name\ttext\n", "columns"),
        ("file\ttranscript\nnone.wav\tlow\n", "not in the folder"),
        ("file\ttranscript\nr00.wav\t\n", "empty transcript"),
        ("file\ttranscript\nr00.wav\tlow\nr00.wav\tlow\n", "second time"),
        ("file\ttranscript\nr00.wav\tlow\nr01.wav\tlow\n", "two different words"),
        ("file\ttranscript\nr00.wav\t" + "low mid " * 60 + "\n", "frames"),
        ("file\ttranscript\tspeaker\nr00.wav\tlow mid\tanna\n", "no speaker"),
    ],
)
def test_bad_tables_are_refused(folder, tmp_path, capsys, table, keyword):
    (tmp_path / "bad.tsv").write_text(table)
    code = main(["transcribe", str(folder[0]), "--transcripts", str(tmp_path / "bad.tsv"), "-o", str(tmp_path / "out")])
    assert code == 1
    assert keyword in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("rate", "channels", "keyword"), [(16000, 1, "samples per second"), (RATE, 2, "channels")])
def test_other_rates_and_stereo_are_refused(folder, tmp_path, capsys, rate, channels, keyword):
    wavfile.write(tmp_path / "a.wav", RATE, np.zeros(RATE, dtype=np.int16))
    wavfile.write(tmp_path / "b.wav", rate, np.zeros((rate, channels) if channels > 1 else rate, dtype=np.int16))
    (tmp_path / "t.tsv").write_text("file\ttranscript\na.wav\tlow mid\n")
    assert (
        main(["transcribe", str(tmp_path), "--transcripts", str(tmp_path / "t.tsv"), "-o", str(tmp_path / "out")]) == 1
    )
    assert keyword in capsys.readouterr().err


@pytest.mark.parametrize("size", [0, 100, 400])
def test_recordings_that_are_too_short_are_refused_by_name(folder, out, tmp_path, capsys, size):
    (tmp_path / "in").mkdir()
    wavfile.write(tmp_path / "in" / "a.wav", RATE, np.zeros(RATE, dtype=np.int16))
    wavfile.write(tmp_path / "in" / "b.wav", RATE, np.zeros(size, dtype=np.int16))
    (tmp_path / "t.tsv").write_text("file\ttranscript\na.wav\tlow mid\n")
    sources = ["--transcripts", str(tmp_path / "t.tsv"), "--states", "6"], ["--model", str(out / "model.tacit")]
    for source in sources if size < 400 else sources[:1]:
        assert main(["transcribe", str(tmp_path / "in"), *source, "-o", str(tmp_path / "out")]) == 1
        assert "b.wav" in capsys.readouterr().err


def test_learning_needs_a_table_or_a_model(folder, tmp_path, capsys):
    assert main(["transcribe", str(folder[0]), "-o", str(tmp_path / "out")]) == 2
    assert "--transcripts" in capsys.readouterr().err


def test_new_voices_learn_from_copies_with_other_frequencies():
    rng = np.random.default_rng(1)
    y = [rng.choice(list(TONES), 2).tolist() for _ in range(8)]
    signals = [speak(words, rng)[0] for words in y]
    plain, more = (Transcriber(states=2, C=100, new_voices=new, verbose=0) for new in (False, True))
    assert len(more.fit(signals, y, RATE).model_.hidden_) == 3 * len(plain.fit(signals, y, RATE).model_.hidden_)
    found = more.transcribe(signals, RATE)
    assert sum([word.name for word in own] == words for own, words in zip(found, y, strict=True)) >= 7
    with pytest.raises((TypeError, ValueError), match="one for each"):
        more.fit(signals, y[:3], RATE)


def test_a_table_begins_with_a_byte_order_mark_or_is_refused_for_its_encoding(tmp_path):
    wavfile.write(tmp_path / "a.wav", RATE, np.zeros(RATE, dtype=np.int16))
    table = tmp_path / "t.tsv"
    table.write_bytes("\ufefffile\ttranscript\na.wav\tcafé\n".encode())
    assert read_recordings(tmp_path, table).words == [["café"]]
    table.write_bytes("file\ttranscript\na.wav\tcafé\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"UTF-8$"):
        read_recordings(tmp_path, table)
