"""``tacit transcribe``: from recordings and some transcripts to transcripts and times of all of them."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from markupsafe import Markup, escape

from tacit.commands import (
    INPUT_FILE,
    INPUT_FOLDER,
    CommandRun,
    c_option,
    count_noun,
    examples,
    load_model,
    model_option,
    number_option,
    run_options,
)
from tacit.data.arrays import Array
from tacit.data.lines import one_line
from tacit.data.parameters import shorten
from tacit.data.reading import quote
from tacit.data.text_files import TextReader
from tacit.report import (
    Column,
    Facts,
    Figure,
    Page,
    Prose,
    Section,
    Table,
    confusion_chart,
    encode_png,
)

EXAMPLES = examples(
    "tacit transcribe recordings --transcripts table.tsv --out out",
    "tacit transcribe more --model out/model.tacit --out more_out",
)

SHOWN = 6
"""Recordings whose spectrogram is on the page."""

MAX_NAMES = 40
"""Words in the picture of mistakes, the most frequent ones."""

MAX_ROWS = 300
"""Recordings in the table of the page; all are in the files."""


class Recordings(NamedTuple):
    """Recordings of a folder in the order of their names, with what the table says of each."""

    files: list[Path]
    signals: list[Array]
    rate: int
    words: list[list[str] | None]
    speakers: list[str] | None


@click.command(epilog=EXAMPLES)
@click.argument("recordings", type=INPUT_FOLDER)
@click.option(
    "--transcripts",
    type=INPUT_FILE,
    help="Table with the columns file and transcript, and speaker if known; fields are separated by tabs.",
)
@model_option("it transcribes RECORDINGS, aligns transcripts that are given, and learns nothing.")
@number_option("--states", 8, "Number of states per word, from 1 to 64.", most=64)
@number_option("--step", 0.02, "Seconds from one frame to the next, from 0.001 to 1.", 0.001, 1)
@c_option(1000.0)
@click.option(
    "--new-voices",
    is_flag=True,
    help="Learn from copies with other frequencies as well, for speakers without a transcript; takes longer.",
)
@run_options(out="transcripts")
def transcribe(
    run: CommandRun,
    recordings: Path,
    transcripts: Path | None,
    model: Path | None,
    states: int,
    step: float,
    C: float,
    new_voices: bool,
) -> None:
    """Transcribe recordings, and find the times of their words.

    RECORDINGS is a folder of wav files of one channel and one sample rate. Some of them have a transcript in the table:
    words separated by spaces, without times. The model learns words and their times from those, and transcribes the
    others. With --model nothing is learned. Writes transcripts.tsv, words.ctm, a TextGrid per recording, words.json,
    model.tacit, report.html and run.json.
    """
    from tacit.signals.files import format_ctm, format_textgrid
    from tacit.signals.transcriber import Transcriber

    if transcripts is None and model is None:
        raise click.UsageError("give --transcripts to learn from, or --model of an earlier run")
    options = {"states": states, "step": step, "C": C, "new_voices": new_voices, **run.settings}
    app = Transcriber(**options) if model is None else load_model(model, Transcriber, {})
    run.check_options(app)
    with run.writing(transcripts, model) as folder:
        data = read_recordings(recordings, transcripts)
        _refuse_short(app, data)
        known = [i for i, own in enumerate(data.words) if own is not None]
        held_out = None
        if model is None:
            held_out = _learn(run, app, data, known, str(transcripts))
            app.save(folder.path("model.tacit"))
        words = app.transcribe(data.signals, data.rate, data.speakers)
        if known:
            given = [data.signals[i] for i in known], [data.words[i] for i in known], data.rate
            groups = None if data.speakers is None else [data.speakers[i] for i in known]
            _refuse_unknown(app, data, known)
            for i, own in zip(known, app.align(*given, groups), strict=True):
                words[i] = own
        for file, own, signal in zip(data.files, words, data.signals, strict=True):
            text = format_textgrid(own, signal.size / data.rate)
            folder.write_text(f"textgrids/{file.stem}.TextGrid", text)
        folder.write_text("words.ctm", "".join(format_ctm(f.stem, w) for f, w in zip(data.files, words, strict=True)))
        folder.write_text("transcripts.tsv", _lines(data, words))
        folder.write_text("words.json", _json(data, words))
        found = f"{count_noun(sum(map(len, words)), 'word')} in {count_noun(len(data.files), 'recording')}"
        quality = "word error unknown: no recordings were held out"
        if held_out is not None:
            quality = f"held-out word error {held_out.error_rate:.1%} of {count_noun(held_out.n_words, 'word')} "
            quality += f"({held_out.usual_error_rate:.1%} with the most frequent transcript for all)"
        run.write_report(folder, transcript_page(app, data, words, held_out), found, quality)
        run.record(
            recordings=len(data.files),
            with_transcript=len(known),
            words=sum(map(len, words)),
            held_out_word_error=None if held_out is None else round(held_out.error_rate, 4),
        )
    run.finish(found, quality, f"open {run.out / 'report.html'}; times are in {run.out / 'textgrids'}")


def _learn(run: CommandRun, app: Any, data: Recordings, known: list[int], table: str) -> Any:
    if len({word for i in known for word in data.words[i] or ()}) < 2:
        raise ValueError(
            f"{table} has transcripts of {len(known)} recordings with fewer than two different words; add more"
        )
    given = [data.signals[i] for i in known], [data.words[i] for i in known], data.rate
    groups = None if data.speakers is None else [data.speakers[i] for i in known]
    run.note(f"learning from {len(known)} recordings")
    held_out = app.evaluate(*given, groups)
    app.fit(*given, groups)
    run.note_status(app.status_)
    return held_out


def _refuse_short(app: Any, data: Recordings) -> None:
    """Refuse recordings with fewer frames than their words take, or than one word takes, by the name of the file."""
    from tacit.signals.transcriber import WINDOW

    least = 1 + -(-(app.states - 1) // 2)
    window, hop = round(WINDOW * data.rate), round(app.step * data.rate)
    for file, signal, words in zip(data.files, data.signals, data.words, strict=True):
        frames, size = max(0, (signal.size - window) // max(hop, 1) + 1), len(words or [""])
        if frames < least * size:
            raise ValueError(
                f"{quote(file)} lasts {signal.size / data.rate:.3g} s and has {count_noun(frames, 'frame')}, but "
                f"{count_noun(size, 'word')} with {app.states} states each take {least * size}; lower --states or "
                "--step, correct the transcript, or leave the recording out"
            )


def _refuse_unknown(app: Any, data: Recordings, known: list[int]) -> None:
    names = set(app.model_.classes_.tolist())
    for i in known:
        unknown = [word for word in data.words[i] or () if word not in names]
        if unknown:
            raise ValueError(
                f"the transcript of {quote(data.files[i])} has the word {shorten(unknown[0])}, which the model never "
                "saw; learn without --model, or leave the row out of the table"
            )


def read_recordings(folder: Path, table: Path | None = None) -> Recordings:
    """Read all wav files of a folder, and transcripts and speakers from a table with tabs between its fields."""
    from tacit.signals.files import read_wav

    files = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".wav")
    if not files:
        raise ValueError(f"{quote(folder)} has no wav files; give a folder of recordings")
    words: dict[str, list[str]] = {}
    speakers: dict[str, str] = {}
    if table is not None:
        words, speakers = _read_table(table, {file.name for file in files})
    found = [read_wav(file) for file in files]
    rates = [one.rate for one in found]
    if len(set(rates)) > 1:
        other = int(np.argmax(np.array(rates) != rates[0]))
        raise ValueError(
            f"{quote(files[other])} has {rates[other]} samples per second, {quote(files[0])} has {rates[0]}; resample "
            "one of them, for example with sox"
        )
    named = [speakers.get(file.name, "") for file in files]
    lacking = [file for file, name in zip(files, named, strict=True) if not name]
    if speakers and lacking:
        raise ValueError(
            f"{quote(lacking[0])} has no speaker in the table, but others have; add a row with its "
            "speaker (its transcript may be empty), or leave out the column"
        )
    own = [words.get(file.name) for file in files]
    return Recordings(files, [one.samples for one in found], rates[0], own, named if speakers else None)


def _read_table(table: Path, names: set[str]) -> tuple[dict[str, list[str]], dict[str, str]]:
    reader = TextReader(table)
    lines = reader.lines(rare_ends=True)
    columns = next(lines, (0, ""))[1].split("\t")
    if "file" not in columns or "transcript" not in columns:
        raise ValueError(
            f"{quote(table)} must have the columns file and transcript in its first line, got {shorten(columns)}"
        )
    words: dict[str, list[str]] = {}
    speakers: dict[str, str] = {}
    for number, line in lines:
        if not line.strip():
            continue
        row = dict(zip(columns, reader.split(line, "\t"), strict=False))
        name = row.get("file", "")
        name = name if name in names else f"{name}.wav"
        if name not in names:
            raise ValueError(
                f"line {number} of {quote(table)} names {shorten(row.get('file', ''))}, which is not in the folder"
            )
        if name in words or name in speakers:
            raise ValueError(
                f"line {number} of {quote(table)} names {shorten(name)} for the second time; leave one out"
            )
        if row.get("transcript", "").split():
            words[name] = row["transcript"].split()
        if row.get("speaker", "").strip():
            speakers[name] = row["speaker"].strip()
        if name not in words and name not in speakers:
            raise ValueError(
                f"line {number} of {quote(table)} has an empty transcript; write its words, or leave the line out"
            )
    return words, speakers


def _lines(data: Recordings, words: list[Any]) -> str:
    rows = ["file\ttranscript\tgiven\n"]
    for file, own, given in zip(data.files, words, data.words, strict=True):
        text = " ".join(one_line(word.name) for word in own)
        rows.append(f"{one_line(file.name)}\t{text}\t{'no' if given is None else 'yes'}\n")
    return "".join(rows)


def _json(data: Recordings, words: list[Any]) -> str:
    content = [
        {"file": file.name, "given": given is not None, "words": [_round_times(word) for word in own]}
        for file, own, given in zip(data.files, words, data.words, strict=True)
    ]
    return json.dumps(content, indent=1) + "\n"


def _round_times(word: Any) -> dict[str, Any]:
    return {"name": word.name, "start": round(word.start, 4), "stop": round(word.stop, 4)}


def transcript_page(app: Any, data: Recordings, words: list[Any], held_out: Any) -> Page:
    """The whole page."""
    facts: list[tuple[str, Any]] = [
        ("recordings", len(data.files)),
        ("with a transcript", sum(own is not None for own in data.words)),
        ("words", sum(map(len, words))),
        ("different words", len(app.model_.classes_)),
    ]
    if held_out is not None:
        facts.append(("word error, held out", f"{held_out.error_rate:.1%} of {held_out.n_words} words"))
    trust = [Prose("Too few recordings have a transcript to hold some out: the quality is unknown.")]
    sections = [
        Section("What was found", [Facts(facts)]),
        Section("Words below spectrograms", _spectrograms(data, words)),
        Section("Transcripts", [_table(data, words)]),
    ]
    trust = trust if held_out is None else _confusion(held_out)
    return Page("Transcripts", f"{len(data.files)} recordings", "", sections, trust=trust)


def _confusion(held_out: Any) -> list[Any]:
    counts = Counter(held_out.pairs)
    often = Counter(name for pair in held_out.pairs for name in pair if name)
    names = sorted(name for name, _ in often.most_common(MAX_NAMES))
    names = [*names, ""]
    shown = [*names[:-1], "(none)"]
    table = [[counts[true, found] if true or found else 0 for found in names] for true in names]
    text = "Recordings that were held out, aligned word by word; (none) stands for words that are left out or put in."
    return [Prose(text), Figure(confusion_chart(shown, table), "True words by row, found words by column.")]


def _table(data: Recordings, words: list[Any]) -> Table:
    rows = [
        (file.name, " ".join(word.name for word in own), "no" if given is None else "yes")
        for file, own, given in zip(data.files[:MAX_ROWS], words, data.words, strict=False)
    ]
    return Table([Column("recording"), Column("words"), Column("given")], rows, f"{len(rows)} of {len(data.files)}.")


PICTURE_WIDTH = 840
"""Pixels of a spectrogram, of 40 bands of three pixels each; long and short recordings have the same."""


def _spectrograms(data: Recordings, words: list[Any]) -> list[Any]:
    """Pictures of a few recordings from all over the folder."""
    from tacit.signals.frames import cut_frames

    found: list[Any] = []
    for i in np.unique(np.linspace(0, len(data.files) - 1, SHOWN).astype(int)).tolist():
        bands = cut_frames([data.signals[i]], data.rate, kind="log-mel", n_mels=40, deltas=0, normalise="speech")[0]
        shade = np.clip(0.5 - bands.T[::-1] / 5, 0, 1)
        columns = np.arange(PICTURE_WIDTH) * shade.shape[1] // PICTURE_WIDTH
        picture = np.repeat(np.round(255 * shade[:, columns]).astype(np.uint8), 3, axis=0)
        seconds = data.signals[i].size / data.rate
        caption = f"{data.files[i].name}, {seconds:.2f} s: {' '.join(word.name for word in words[i])}"
        found.append(Figure(words_svg(words[i], seconds, picture), caption))
    return found


def words_svg(words: list[Any], seconds: float, picture: Array) -> Markup:
    """The spectrogram of a recording with its words below, by time; all text is escaped.

    >>> from tacit.signals.files import Word
    >>> svg = words_svg([Word("<b>", 0.1, 0.4)], 1.0, np.zeros((4, 100), np.uint8))
    >>> "<b>" in svg, "&lt;b&gt;" in svg
    (False, True)
    """
    high, wide = picture.shape
    title = escape(f"{len(words)} words in {seconds:.2f} s")
    data = base64.b64encode(encode_png(picture)).decode()
    parts = [
        f'<svg viewBox="0 0 {wide} {high + 34}" width="{wide}" role="img" aria-label="{title}"><title>{title}</title>'
        f'<image href="data:image/png;base64,{data}" width="{wide}" height="{high}" preserveAspectRatio="none"/>'
    ]
    for word in words:
        x, span = wide * word.start / seconds, wide * max(word.stop - word.start, 0.0) / seconds
        label = escape(f"{word.name}: {word.start:.2f} to {word.stop:.2f} s")
        parts.append(
            f'<rect x="{x:.1f}" y="{high + 2}" width="{span:.1f}" height="12" rx="2" fill="#2563eb" fill-opacity=".5">'
            f"<title>{label}</title></rect>"
            f'<text x="{x + span / 2:.1f}" y="{high + 28}" font-size="13" text-anchor="middle" fill="currentColor">'
            f"{escape(word.name[:16])}</text>"
        )
    return Markup("".join(parts) + "</svg>")
