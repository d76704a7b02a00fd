"""Raw text: words and sentences with their positions, by rules, and stand-off annotation of them."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import entries, is_whole, shorten
from tacit.data.reading import MAX_BYTES, find_file, quote, read_text
from tacit.data.text_files import TextReader

_EN = """mr mrs ms messrs mme mlle dr prof rev hon gen col maj capt lt sgt cmdr gov sen rep pres st ste mt ft jr sr esq
vs viz cf al etc approx dept est fig figs vol vols pp ed eds corp inc ltd co bros univ jan feb aug sept oct nov dec"""
_DE = "bzw ca dipl evtl fr frl ggf hr hrn inkl ing nr sog str tel usw vgl zzgl abs allg bd geb gest jh mio mrd"
_OTHERS = """mm av env chap sra srta ud uds avda pág núm sig sigg dott ecc exmo exma dra blz bijv dhr mevr mw enz jhr
esim ks milj ym yms jne vrt cad mah sok bkz örn"""

ABBREVIATIONS = frozenset(f"{_EN} {_DE} {_OTHERS}".split())
"""Words before a full stop that belongs to them and does not end a sentence, in lower case."""

BEFORE_NUMBERS = frozenset(["no", "nos", "nr", "n", "nro", "kl", "klo", "s", "p", "c", "núm", "№", "art", "par"])
"""Words before a full stop that belongs to them where a number follows: "No. 5"."""

_MONTHS = "januar februar märz april mai juni juli august september oktober november dezember"
MONTHS = frozenset(_MONTHS.split())
"""After a number with a full stop: German dates such as "3. Mai"."""

_STARTERS = """the a an he she it they we i you this that these those there but and in on at if when while as for so his
her its their our my what why how who der die das ein eine er sie es wir ich und aber le la les il elle el los un una"""
STARTERS = frozenset(_STARTERS.split())
"""Words with a capital that begin a new sentence after an abbreviation of single letters, such as "U.S."."""

_ELISIONS = "l d j m n s t c qu jusqu lorsqu puisqu quoiqu dell all nell sull dall un quest quell"
ELISIONS = frozenset(_ELISIONS.split())
"""French and Italian words that end in an apostrophe, which begins the next word: l'eau, dell'arte."""

LOWER_CASE = 0.005
"""Share of capitals up to which a text counts as written in lower case: end marks alone end its sentences."""

SOFT_WRAP = (50, 100)
"""Characters of a line whose end does not end a sentence, as in text that is wrapped at a width."""

_WORD = r"[^\W\d_]"
_LETTER = (
    r"[\w\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0df3\u200c\u200d]"
)
"""Letters, digits, and marks that belong to the letter before (Latin, Hebrew, Arabic, Indic)."""
_EMOJI = r"[\u2190-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]*"
_TOKEN = re.compile(
    "|".join(
        (
            r"(?:https?://|www\.)\S*[\w/]",  # addresses
            r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
            r"[@#]\w+",  # names and topics of messages
            rf"{_EMOJI}(?:\u200d{_EMOJI})*|[\U0001f1e6-\U0001f1ff]{{2}}",  # signs of several letters, flags
            r"[:;=8][-o*']?[)(\]\[DPp/\\|3](?!\w)|<3",  # emoticons
            rf"(?:{_WORD}\.){{2,}}|(?:[A-Z]{{2}}\.){{2,}}",  # U.S., e.g., EE.UU.
            r"\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th|s)?(?!\w)(?:(?:['’]|:(?=[^\W\d]))\w+)?",  # 5'te, 10:een
            r"[A-ZÅÄÖ]+:[a-zåäö]{1,4}(?!\w)",  # EU:n
            r"[\u05d0-\u05ea]+[\"״][\u05d0-\u05ea](?![\u05d0-\u05ea])",  # initials with gershayim
            rf"\w{_LETTER}*(?:[-'’‑·]\w{_LETTER}*)*",  # words, with hyphens and apostrophes
            r"['’](?:s|S|ll|LL|re|RE|ve|VE|d|D|m|M|em|tis|twas)(?!\w)",
            r"\.{2,}|…+|[!?]{2,}|-{2,}|—|``|''|<<+|>>+",
            r"\S",
        )
    )
)
_CLITIC = re.compile(r"(?<=\w)(?:n['’]t|['’](?:s|ll|re|ve|d|m))$", re.IGNORECASE)
_ENDS = frozenset(".!?…。！？؟۔।")
_CLOSING = frozenset("\"'”’»)]}›“‘") | {"''"}
_UNSPACED_SENTENCE = re.compile(r"\w[。！？]")
_UNSPACED = ("CJK UNIFIED", "HIRAGANA", "KATAKANA", "THAI ", "LAO ", "KHMER ", "MYANMAR ")


class RawText(NamedTuple):
    """A text, and its words sentence by sentence.

    Attributes
    ----------
    text : the text as it was given
    words : one list of words per sentence
    spans : per sentence an array of shape (words, 2): the word ``words[i][j]`` is ``text[start:end]``
    """

    text: str
    words: list[list[str]]
    spans: list[Array]


def split_text(text: str) -> RawText:
    """Split a text into sentences and words; every word keeps its position in the text.

    Rules are for languages that separate words by spaces and end sentences with ``. ! ? …`` or their Greek, Arabic and
    Indic counterparts. Contractions are split as in the Penn Treebank (``do n't``, ``she 's``), elisions after their
    apostrophe (``l' eau``). Abbreviations are known for English and German, and a few for French, Spanish, Italian,
    Portuguese, Dutch, Finnish and Turkish. An empty line ends a sentence. So does the end of a line, unless the line
    has the width of wrapped text, 50 to 100 characters. Chinese, Japanese, Thai, Lao, Khmer and Burmese are refused.

    >>> raw = split_text("Dr. Grey didn't wait. She left at 5 p.m.!")
    >>> raw.words
    [['Dr.', 'Grey', 'did', "n't", 'wait', '.'], ['She', 'left', 'at', '5', 'p.m.', '!']]
    >>> start, end = raw.spans[1][0]
    >>> raw.text[start:end]
    'She'
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {shorten(text)}")
    _refuse_unspaced(text)
    has_capitals = sum(map(str.isupper, text)) > LOWER_CASE * len(text)
    words: list[list[str]] = []
    spans: list[Array] = []
    for block in _blocks(text):
        tokens = [span for found in _TOKEN.finditer(text, *block) for span in _split_token(text, *found.span())]
        tokens = _join_full_stops(text, tokens)
        for first, last in _sentence_bounds(text, tokens, has_capitals):
            own = tokens[first:last]
            words.append([text[a:b] for a, b in own])
            spans.append(np.array(own, dtype=np.int64))
    return RawText(text, words, spans)


def read_raw_text(path: str | os.PathLike[str], *, max_bytes: Any = MAX_BYTES) -> RawText:
    """Read a text file in UTF-8 and split it (`split_text`); files that end in ``.gz`` are unpacked.

    Offsets count characters of the decoded text, with line ends as they are in the file.
    """
    file = find_file(path, "a text file")
    try:
        raw = split_text(read_text(file, max_bytes))
    except TypeError:
        raise
    except ValueError as error:
        raise ValueError(str(error) if quote(file) in str(error) else f"{quote(file)}: {error}") from error
    if not raw.words:
        raise ValueError(f"{quote(file)} is without words; give some text")
    return raw


def is_raw_text(path: Any) -> bool:
    """Whether a path is named as raw text: it ends in ``.txt`` or ``.txt.gz``."""
    return str(path).removesuffix(".gz").endswith(".txt")


def has_columns(path: str | os.PathLike[str]) -> bool:
    """Whether a text file has columns: every line has a tab, or none has two words.

    A line with a word before a full stop of Chinese or Japanese is a sentence that is written without spaces.
    """
    lines = [line.strip() for _, line in TextReader(find_file(path, "a text file")).lines() if line.strip()]
    has_words = all(len(line.split()) < 2 and not _UNSPACED_SENTENCE.search(line) for line in lines)
    return all("\t" in line for line in lines) or has_words


def stand_off(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """Spans of characters with their types in the stand-off format of brat: number, type and offsets, and the text.

    >>> stand_off("Ada met Bob", [(0, 3, "person"), (8, 11, "person")])
    'T1\\tperson 0 3\\tAda\\nT2\\tperson 8 11\\tBob\\n'
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {shorten(text)}")
    lines = []
    for number, span in enumerate(entries("spans", spans, "a list of (start, end, type)"), 1):
        is_triple = isinstance(span, tuple | list) and len(span) == 3 and isinstance(span[2], str)
        if not (is_triple and is_whole(span[0]) and is_whole(span[1]) and 0 <= span[0] <= span[1] <= len(text)):
            raise ValueError(
                f"spans[{number - 1}] must be (start, end, type) with 0 <= start <= end <= {len(text)}, the characters "
                f"of the text; got {shorten(span)}"
            )
        start, end, kind = span
        name = re.sub(r"\s+", "_", kind)
        lines.append(f"T{number}\t{name} {start} {end}\t{' '.join(text[start:end].split())}\n")
    return "".join(lines)


def _refuse_unspaced(text: str) -> None:
    """Refuse a text most of whose letters are of a script without spaces between words."""
    if text.isascii():
        return
    letters = [letter for letter in text if letter > "\u0e00" and letter.isalpha()]
    found = [letter for letter in letters if unicodedata.name(letter, "").startswith(_UNSPACED)]
    if len(found) > sum(map(str.isalpha, text)) / 2:
        raise ValueError(
            f"the text has {len(found)} letters such as {found[0]!r}, of a script without spaces between words; split "
            "it with a tool for its language, and give one word per line"
        )


def _blocks(text: str) -> Iterable[tuple[int, int]]:
    """Parts of a text between ends of lines that end a sentence."""
    start = position = 0
    for line in text.splitlines(keepends=True):
        position += len(line)
        plain = line.strip()
        if not SOFT_WRAP[0] <= len(plain) <= SOFT_WRAP[1]:
            yield start, position
            start = position
    if start < len(text):
        yield start, len(text)


def _split_token(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Contractions and elisions as two tokens."""
    token = text[start:end]
    if "'" not in token and "’" not in token:
        return [(start, end)]
    if found := _CLITIC.search(token):
        cut = start + found.start()
        return [*_split_token(text, start, cut), (cut, end)] if found.start() else [(start, end)]
    for position, letter in enumerate(token):
        if letter in "'’" and token[:position].lower() in ELISIONS and position + 1 < len(token):
            cut = start + position + 1
            return [(start, cut), *_split_token(text, cut, end)]
    return [(start, end)]


def _join_full_stops(text: str, tokens: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Abbreviations and initials with their full stop as one token."""
    joined: list[tuple[int, int]] = []
    for position, (start, end) in enumerate(tokens):
        if joined and text[start:end] == "." and joined[-1][1] == start:
            word = text[joined[-1][0] : start]
            has_number = position + 1 < len(tokens) and text[tokens[position + 1][0]].isdigit()
            is_short = word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I")
            if is_short or (has_number and (word.lower() in BEFORE_NUMBERS or word.lower().endswith("str"))):
                joined[-1] = (joined[-1][0], end)
                continue
        joined.append((start, end))
    return joined


def _sentence_bounds(text: str, tokens: list[tuple[int, int]], has_capitals: bool) -> Iterable[tuple[int, int]]:
    """First and last token (not included) of every sentence."""
    first = position = 0
    n = len(tokens)
    while position < n:
        start, end = tokens[position]
        token = text[start:end]
        position += 1
        is_dotted = (
            len(token) > 2 and token[-1] == "." and not _is_end(token) and token.lower()[:-1] not in ABBREVIATIONS
        )
        if not _is_end(token) and not is_dotted:
            continue
        while position < n and (_is_end(text[slice(*tokens[position])]) or _closes(text, tokens, position)):
            position += 1
        follows = text[slice(*tokens[position])] if position < n else ""
        if _goes_on(text, tokens, position, token, follows, is_dotted, has_capitals):
            continue
        yield first, position
        first = position
    if first < n:
        yield first, n


def _is_end(token: str) -> bool:
    return token[-1] in _ENDS and all(letter in _ENDS for letter in token)


def _closes(text: str, tokens: list[tuple[int, int]], position: int) -> bool:
    """Whether a token is an emoji, or a closing mark right after the token before that is not before a letter."""
    start, end = tokens[position]
    is_near = start == tokens[position - 1][1]
    is_free = end >= len(text) or not text[end].isalnum()
    return (text[start:end] in _CLOSING and is_near and is_free) or "\U0001f300" <= text[start] <= "\U0001faff"


def _goes_on(
    text: str,
    tokens: list[tuple[int, int]],
    position: int,
    mark: str,
    follows: str,
    is_dotted: bool,
    has_capitals: bool,
) -> bool:
    """Whether a sentence goes on after an end mark."""
    if not follows:
        return False
    if is_dotted:
        return not has_capitals or follows.lower() not in STARTERS or not follows[0].isupper()
    behind = tokens[position][0] - tokens[position - 1][1]
    if mark == "." and not behind:  # no space: example.com, or a list of numbers
        return True
    before = text[slice(*tokens[position - 2])] if position > 1 else ""
    if mark == "." and before.isdigit() and len(before) < 3 and follows.lower() in MONTHS:
        return True
    first = next((letter for letter in follows if letter.isalnum()), "")
    if not first and position + 1 < len(tokens):  # a quotation begins, or a mark follows
        first = text[tokens[position + 1][0]]
        return follows in ",;:-–—" or (has_capitals and first.islower() and follows not in '“"«„(')
    return has_capitals and first.islower()
