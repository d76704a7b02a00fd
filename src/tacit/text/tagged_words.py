"""Sentences with a tag per word: two-column text and CoNLL-U."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.parameters import entries, file_path, one_of, shorten
from tacit.data.reading import MAX_BYTES, find_file, named, read_text

CONLLU_COLUMNS = {"form": 1, "lemma": 2, "upos": 3, "xpos": 4}
"""Columns of CoNLL-U (https://universaldependencies.org/format.html) that can be read."""


class TaggedWords(NamedTuple):
    """Sentences: ``words[i]`` and ``tags[i]`` are lists of the same length, a missing tag is None."""

    words: list[list[str]]
    tags: list[list[str | None]]


def read_two_columns(path: str | os.PathLike[str], *, max_bytes: Any = MAX_BYTES) -> TaggedWords:
    """Sentences of a file with a word and its tag per line, and an empty line after each sentence.

    The columns are cut by tabs, or by spaces where a line has no tab. Of more than two columns the first is the word
    and the last the tag. A line without a second column, or with ``_`` there, is a word without a tag. Files that end
    in ``.gz`` are unpacked.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "text.tsv"
    ...     _ = place.write_text("Dogs\\tNOUN\\nbark\\tVERB\\n\\nCats\\tNOUN\\npurr\\t_\\n")
    ...     read_two_columns(place)
    TaggedWords(words=[['Dogs', 'bark'], ['Cats', 'purr']], tags=[['NOUN', 'VERB'], ['NOUN', None]])
    """
    place = find_file(path, "a file of words and tags")

    def read_line(line: str, where: str) -> tuple[str, str | None]:
        columns = line.split("\t") if "\t" in line else line.split()
        if not columns[0].strip():
            raise ValueError(f"{where}: there is no word before the tab, {shorten(line)}")
        tag = columns[-1].strip() if len(columns) > 1 else ""
        return columns[0], None if tag in ("", "_") else tag

    return _read_lines(place, max_bytes, read_line)


def read_conllu(
    path: str | os.PathLike[str], *, word: str = "form", tag: str = "upos", max_bytes: Any = MAX_BYTES
) -> TaggedWords:
    """Sentences of a CoNLL-U file: words and tags of its columns "form", "lemma", "upos" or "xpos".

    Lines of several words (``3-4``) and empty nodes (``5.1``) are left out, comments too; a tag ``_`` is missing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "text.conllu"
    ...     row = "1\\tDogs\\tdog\\tNOUN\\tNNS\\t_\\t0\\troot\\t_\\t_\\n"
    ...     _ = place.write_text("# text = Dogs\\n" + row)
    ...     read_conllu(place, tag="xpos")
    TaggedWords(words=[['Dogs']], tags=[['NNS']])
    """
    place = find_file(path, "a CoNLL-U file")
    first, second = (CONLLU_COLUMNS[one_of(n, v, CONLLU_COLUMNS)] for n, v in (("word", word), ("tag", tag)))

    def read_line(line: str, where: str) -> tuple[str, str | None] | None:
        if line.startswith("#"):
            return None
        columns = line.split("\t")
        if len(columns) != 10:
            raise ValueError(
                f"{where}: CoNLL-U has ten columns cut by tabs, this line has {len(columns)}; read files of two "
                "columns with read_two_columns"
            )
        if "-" in columns[0] or "." in columns[0]:
            return None
        return columns[first], None if columns[second] == "_" else columns[second]

    return _read_lines(place, max_bytes, read_line)


def read_tagged(path: str | os.PathLike[str], *, max_bytes: Any = MAX_BYTES) -> TaggedWords:
    """`read_conllu` for files that end in ``.conllu`` or ``.conllu.gz``, `read_two_columns` for all others."""
    place = find_file(path, "a file of words and tags")
    is_conllu = place.name.removesuffix(".gz").endswith(".conllu")
    return (read_conllu if is_conllu else read_two_columns)(place, max_bytes=max_bytes)


def write_two_columns(path: str | os.PathLike[str], words: Sequence[Any], tags: Sequence[Any]) -> None:
    """Write a word and its tag per line, and an empty line after each sentence; a missing tag is written ``_``."""
    place, text = file_path("path", path), two_columns(words, tags)
    try:
        place.write_text(text, encoding="utf-8", errors="surrogatepass")
    except OSError as error:
        raise OSError(error.errno, f"{named(place)} could not be written: {error.strerror or error}") from error


def two_columns(words: Sequence[Any], tags: Sequence[Any]) -> str:
    """The text that `write_two_columns` writes.

    >>> two_columns([["Dogs", "bark"]], [["NOUN", None]])
    'Dogs\\tNOUN\\nbark\\t_\\n\\n'
    """
    words, tags = (_sentences(name, given) for name, given in (("words", words), ("tags", tags)))
    if len(words) != len(tags):
        raise ValueError(f"there are {len(words)} sentences of words and {len(tags)} of tags; give one of each")
    parts: list[str] = []
    for i, (sentence, own) in enumerate(zip(words, tags, strict=True)):
        if len(sentence) != len(own):
            raise ValueError(f"sentence {i} has {len(sentence)} words and {len(own)} tags; give one tag per word")
        for word, tag in zip(sentence, own, strict=True):
            if any(c in str(word) for c in "\t\n\r"):
                raise ValueError(f"sentence {i} has the word {shorten(word)}; words hold no tabs or line ends")
            parts.append(f"{word}\t{'_' if tag is None else tag}\n")
        parts.append("\n")
    return "".join(parts)


def _sentences(name: str, given: Any) -> list[list[Any]]:
    """Lists of lists, or what can be one: a Ragged, arrays."""
    sentences = entries(name, given, "a list of sentences, each a list")
    for i, sentence in enumerate(sentences):
        is_list = isinstance(sentence, list | tuple) or (isinstance(sentence, np.ndarray) and sentence.ndim == 1)
        if not is_list:
            raise ValueError(f"{name}[{i}] is {shorten(sentence)}; a sentence is a list")
    return [list(sentence) for sentence in sentences]


LineReader = Callable[[str, str], tuple[str, str | None] | None]
"""From a line and its place, for errors, to a word and its tag; None for a line without a word."""


def _read_lines(place: Path, max_bytes: Any, read_line: LineReader) -> TaggedWords:
    """The sentences of a file, cut at empty lines."""
    words: list[list[str]] = [[]]
    tags: list[list[str | None]] = [[]]
    # line ends alone cut: `str.splitlines` would also cut at rarer signs, which words may hold
    lines = read_text(place, max_bytes=max_bytes).removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            found = read_line(line, f"{named(place)}, line {number}")
            if found is not None:
                words[-1].append(found[0])
                tags[-1].append(found[1])
        elif words[-1]:
            words.append([])
            tags.append([])
    if not words[-1]:
        del words[-1], tags[-1]
    if not words:
        raise ValueError(f"{named(place)} holds no word; it has one word per line, and an empty line per sentence")
    return TaggedWords(words, tags)
