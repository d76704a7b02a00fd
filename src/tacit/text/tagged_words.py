"""Tagged sentences (part-of-speech tags, named entities, ...): two-column text and CoNLL-U."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.parameters import entries, file_path, is_whole, one_of, shorten, whole_number
from tacit.data.reading import MAX_BYTES, find_file, quote
from tacit.data.text_files import TextReader

CONLLU_COLUMNS = {"form": 1, "lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "deprel": 7, "misc": 9}
"""Columns of CoNLL-U (https://universaldependencies.org/format.html) that can be read by name."""

DOCUMENT_START = "-DOCSTART-"
"""The word of a line that begins a document, in files of the CoNLL-2003 shared task."""

COMMENT = re.compile(r"#\s*[\w.:]+\s*=\s")
MAX_COLUMN = 1000


class TaggedWords(NamedTuple):
    """Sentences: ``words[i]`` and ``tags[i]`` are lists of the same length; a missing tag is None.

    Where more columns were read, every word is a tuple: the word, and its entries in these columns.
    """

    words: list[list[Any]]
    tags: list[list[str | None]]


def read_two_columns(
    path: str | os.PathLike[str],
    *,
    token: int = 1,
    tag: int = -1,
    extra: Sequence[int] = (),
    max_bytes: Any = MAX_BYTES,
) -> TaggedWords:
    """Read a file with a word and its tag per line, and an empty line after each sentence.

    Columns are separated by tabs, or by spaces in lines without a tab. A word without a second column, or with ``_``
    there, has a missing tag. Lines of ``-DOCSTART-`` separate documents and are left out, as are comments of the form
    ``# name = value``. Files that end in ``.gz`` are unpacked.

    Parameters
    ----------
    path : the file
    token, tag : columns of the word and of the tag, counted from 1; −1 is the last column
    extra : more columns; words are then tuples
    max_bytes : bytes that are read at the most

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "text.tsv"
    ...     _ = path.write_text("Dogs\\tNOUN\\nbark\\tVERB\\n\\nCats\\tNOUN\\npurr\\t_\\n")
    ...     read_two_columns(path)
    TaggedWords(words=[['Dogs', 'bark'], ['Cats', 'purr']], tags=[['NOUN', 'VERB'], ['NOUN', None]])
    """
    first, last = _column("token", token), _column("tag", tag)
    more = [_column("extra", column) for column in entries("extra", extra, "a list of columns")]

    def read_line(line: str, where: str) -> tuple[Any, str | None] | None:
        if COMMENT.match(line) and "\t" not in line:
            return None
        columns = line.split("\t") if "\t" in line else line.split()
        for name, column in (("token", first), *(("extra", column) for column in more)):
            if not -len(columns) <= column < len(columns):
                raise ValueError(
                    f"{where} has {len(columns)} columns, but {name}={column + (column >= 0)} was asked for; give "
                    "another column, or add it to the line"
                )
        if not columns[first].strip():
            raise ValueError(f"{where} must begin with a word, got {shorten(line)}")
        has_tag = -len(columns) <= last < len(columns) and last % len(columns) != first % len(columns)
        found = columns[last].strip() if has_tag else ""
        word = (columns[first], *(columns[column].strip() for column in more)) if more else columns[first]
        return word, None if found in ("", "_") else found

    return _read_lines(find_file(path, "a file of words and tags"), max_bytes, read_line)


def read_conllu(
    path: str | os.PathLike[str],
    *,
    word: str | int = "form",
    tag: str | int = "upos",
    extra: Sequence[str | int] = (),
    max_bytes: Any = MAX_BYTES,
) -> TaggedWords:
    """Read words and tags from columns of a CoNLL-U file.

    A column is one of "form", "lemma", "upos", "xpos", "feats", "deprel" and "misc", or a number from 1 to 10. The
    columns ``extra`` make every word a tuple. Multiword tokens (``3-4``), empty nodes (``5.1``) and comments are left
    out; a tag ``_`` is missing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "text.conllu"
    ...     row = "1\\tDogs\\tdog\\tNOUN\\tNNS\\t_\\t0\\troot\\t_\\t_\\n"
    ...     _ = path.write_text("# text = Dogs\\n" + row)
    ...     read_conllu(path, tag="xpos")
    TaggedWords(words=[['Dogs']], tags=[['NNS']])
    """
    file = find_file(path, "a CoNLL-U file")
    first, second = _conllu_column("word", word), _conllu_column("tag", tag)
    more = [_conllu_column("extra", column) for column in entries("extra", extra, "a list of columns")]

    def read_line(line: str, where: str) -> tuple[Any, str | None] | None:
        if line.startswith("#"):
            return None
        columns = line.split("\t")
        if len(columns) != 10:
            raise ValueError(f"{where} must have the 10 columns of CoNLL-U, separated by tabs, got {len(columns)}")
        if "-" in columns[0] or "." in columns[0]:
            return None
        if not columns[first].strip():
            raise ValueError(f"{where} must have a word in its column {word!r}, got {shorten(line)}")
        found = columns[second].strip()
        own = (columns[first], *(columns[column].strip() for column in more)) if more else columns[first]
        return own, None if found in ("", "_") else found

    return _read_lines(file, max_bytes, read_line)


def read_tagged(
    path: str | os.PathLike[str], *, token: Any = None, tag: Any = None, extra: Any = (), max_bytes: Any = MAX_BYTES
) -> TaggedWords:
    """`read_conllu` for files that end in ``.conllu`` or ``.conllu.gz``, `read_two_columns` for all others.

    ``token``, ``tag`` and ``extra`` name columns as these do; None for their defaults.
    """
    file = find_file(path, "a file of words and tags")
    is_conllu = file.name.removesuffix(".gz").endswith(".conllu")
    names = {"word" if is_conllu else "token": token, "tag": tag}
    chosen: dict[str, Any] = {name: column for name, column in names.items() if column is not None}
    reader: Callable[..., TaggedWords] = read_conllu if is_conllu else read_two_columns
    return reader(file, **chosen, extra=extra, max_bytes=max_bytes)


def _column(name: str, value: Any) -> int:
    """The index of a column that is counted from 1, or from −1 at the end."""
    if not is_whole(value) or not value or abs(value) > MAX_COLUMN:
        raise ValueError(f"{name} must be a column, counted from 1, or from -1 at the end; got {name}={shorten(value)}")
    column = int(value)
    return column - 1 if column > 0 else column


def _conllu_column(name: str, value: Any) -> int:
    if is_whole(value):
        return int(whole_number(name, value, 1, 10)) - 1
    return CONLLU_COLUMNS[one_of(name, value, CONLLU_COLUMNS)]


def write_two_columns(path: str | os.PathLike[str], words: Sequence[Any], tags: Sequence[Any]) -> None:
    """Write a word and its tag per line, and an empty line after each sentence; a missing tag is written ``_``."""
    file, text = file_path("path", path), two_columns(words, tags)
    try:
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OSError(error.errno, f"{quote(file)} could not be written: {error.strerror or error}") from error


def two_columns(words: Sequence[Any], tags: Sequence[Any]) -> str:
    """The text that `write_two_columns` writes.

    >>> two_columns([["Dogs", "bark"]], [["NOUN", None]])
    'Dogs\\tNOUN\\nbark\\t_\\n\\n'
    """
    words, tags = (_sentences(name, given) for name, given in (("words", words), ("tags", tags)))
    if len(words) != len(tags):
        raise ValueError(f"words has {len(words)} sentences, but tags has {len(tags)}; give as many of each")
    parts: list[str] = []
    for i, (sentence, own) in enumerate(zip(words, tags, strict=True)):
        if len(sentence) != len(own):
            raise ValueError(f"sentence {i} has {len(sentence)} words, but {len(own)} tags; give one tag per word")
        for word, tag in zip(sentence, own, strict=True):
            if not _survives(f"{word}", "") or (not parts and str(word).startswith("\ufeff")):
                raise ValueError(
                    f"sentence {i} has the word {shorten(word)}, which would be read as another; words must not be "
                    "blank or have tabs and line ends"
                )
            if tag is not None and (not _survives(f"{tag}", "_") or str(tag) != str(tag).strip()):
                raise ValueError(
                    f"sentence {i} has the tag {shorten(tag)}, which would be read as another; tags must not be blank "
                    "or '_' (a missing one is None), or have tabs and line ends"
                )
            parts.append(f"{word}\t{'_' if tag is None else tag}\n")
        parts.append("\n")
    return "".join(parts)


def _survives(text: str, other: str) -> bool:
    """Whether a word or tag is read as it was written."""
    is_plain = text.isprintable() or not ({"\t", "\n"} & set(text) or any("\ud800" <= c < "\ue000" for c in text))
    return is_plain and bool(text.strip()) and text != other


def _sentences(name: str, given: Any) -> list[list[Any]]:
    """Read a list of lists from lists, a Ragged or arrays."""
    sentences = entries(name, given, "a list of sentences, each a list")
    for i, sentence in enumerate(sentences):
        is_list = isinstance(sentence, list | tuple) or (isinstance(sentence, np.ndarray) and sentence.ndim == 1)
        if not is_list:
            raise ValueError(f"{name}[{i}] must be a list, got {shorten(sentence)}")
    return [list(sentence) for sentence in sentences]


LineReader = Callable[[str, str], tuple[Any, str | None] | None]
"""Takes a line and its name in errors, and returns a word and its tag; None for a line without a word."""


def _read_lines(file: Path, max_bytes: Any, read_line: LineReader) -> TaggedWords:
    """Read the sentences of a file, which are separated by empty lines."""
    words: list[list[Any]] = [[]]
    tags: list[list[str | None]] = [[]]
    reader = TextReader(file, max_bytes=max_bytes)
    # only at line feeds: `str.splitlines` also splits at rarer characters that words may have
    for number, line in reader.lines():
        if line.strip() and not line.startswith(DOCUMENT_START):
            found = read_line(line, f"{quote(file)}, line {number}")
            if found is not None:
                reader.count_fields(2 if isinstance(found[0], str) else 2 + len(found[0]))
                words[-1].append(found[0])
                tags[-1].append(found[1])
        elif words[-1]:
            words.append([])
            tags.append([])
    if not words[-1]:
        del words[-1], tags[-1]
    if not words:
        raise ValueError(f"{quote(file)} is without words; give one per line, and an empty line after each sentence")
    return TaggedWords(words, tags)
