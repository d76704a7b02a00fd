"""Raw text: words and sentences with their positions, by rules, and stand-off annotation of them."""

from __future__ import annotations

import itertools
import operator
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
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
"""Words with a capital, per letter of the text, up to which it counts as written in lower case: end marks alone end its
sentences."""

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
            r"[A-Za-z]+(?=\s)|[][(){},%$€£&*/|“”„«»]",  # most words and marks, found sooner than by what follows
            r"(?:https?://|www\.)\S*[\w/]",  # addresses
            r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",
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
_LONGEST_CLITIC = 3
_APOSTROPHE = re.compile("['’]")
_LINE_END = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")  # as `str.splitlines` has them
_ENDS = frozenset(".!?…。！？؟۔।")
_CLOSING = frozenset("\"'”’»)]}›“‘") | {"''"}
_UNSPACED_SENTENCE = re.compile(r"\w[。！？]")
_UNSPACED = ("CJK UNIFIED", "HIRAGANA", "KATAKANA", "THAI ", "LAO ", "KHMER ", "MYANMAR ")

_CHUNK = 1 << 20
"""Letters that are looked at together."""

_SPACES = np.array([chr(code).isspace() for code in range(0x3002)])
"""Which of the first codes of Unicode are spaces; all others are none."""


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
    return _split(text)


def _split(text: str, most: int | None = None) -> RawText:
    _refuse_unspaced(text)
    words = _find_words(text, most)
    starts, lengths = _find_starts(text, words)
    words, starts, ends, blocks = _join_full_stops(words, starts, starts + lengths, _block_ends(text, starts, lengths))
    is_near = np.concatenate([[False], starts[1:] == ends[:-1]])
    spans = np.column_stack([starts, ends])
    has_capitals = sum(word[0].isupper() for word in words) > LOWER_CASE * len(text)
    bounds = list(_sentence_bounds(words, is_near, blocks.tolist(), has_capitals))
    return RawText(text, [words[a:b] for a, b in bounds], [spans[a:b] for a, b in bounds])


def read_raw_text(path: str | os.PathLike[str], *, max_bytes: Any = MAX_BYTES) -> RawText:
    """Read a text file in UTF-8 and split it (`split_text`); files that end in ``.gz`` are unpacked.

    Offsets count characters of the decoded text, with line ends as they are in the file. There may be one word or mark
    per 8 bytes of ``max_bytes``.
    """
    file = find_file(path, "a text file")
    try:
        raw = _split(read_text(file, max_bytes), TextReader(file, max_bytes=max_bytes).max_fields)
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
    counts = Counter() if text.isascii() else Counter(text)
    found = [
        letter
        for letter in counts
        if letter > "\u0e00" and letter.isalpha() and unicodedata.name(letter, "").startswith(_UNSPACED)
    ]
    n_found = sum(counts[letter] for letter in found)
    if n_found > sum(n for letter, n in counts.items() if letter.isalpha()) / 2:
        raise ValueError(
            f"the text has {n_found} letters such as {found[0]!r}, of a script without spaces between words; split "
            "it with a tool for its language, and give one word per line"
        )


def _find_words(text: str, most: int | None) -> list[str]:
    """Words and marks, in their order; together they are all of the text but its spaces."""
    found = _TOKEN.finditer(text)
    words = list(map(operator.itemgetter(0), itertools.islice(found, most)))
    if next(found, None) is not None:
        raise ValueError(f"the text has more than {most} words and marks; split it, or raise max_bytes if you trust it")
    if _APOSTROPHE.search(text) is None:
        return words
    return [part for word in words for part in (_split_word(word) if "'" in word or "’" in word else (word,))]


def _split_word(word: str) -> list[str]:
    """Contractions and elisions as words of their own."""
    start, end, last = 0, len(word), []
    while found := _CLITIC.search(word, max(end - _LONGEST_CLITIC, 1), end):
        last.append(word[found.start() : end])
        end = found.start()
    first = []
    while (found := _APOSTROPHE.search(word, start, end - 1)) and word[start : found.start()].lower() in ELISIONS:
        first.append(word[start : found.end()])
        start = found.end()
    return [*first, word[start:end], *reversed(last)]


def _find_starts(text: str, words: list[str]) -> tuple[Array, Array]:
    """Where words start in the text, and how long they are: between them are spaces alone."""
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    ranks = np.cumsum(lengths) - lengths  # of their first letters among all letters
    starts, rank = np.empty_like(ranks), 0
    for at in range(0, len(text), _CHUNK):
        codes = np.frombuffer(text[at : at + _CHUNK].encode("utf-32-le", "surrogatepass"), np.uint32)
        letters = np.flatnonzero(~_SPACES[np.minimum(codes, len(_SPACES) - 1)])
        first, last = np.searchsorted(ranks, [rank, rank + letters.size])
        starts[first:last] = letters[ranks[first:last] - rank] + at
        rank += letters.size
    return starts, lengths


def _block_ends(text: str, starts: Array, lengths: Array) -> Array:
    """How many words there are up to each end of a line that ends a sentence."""
    line_ends = np.fromiter((found.end() for found in _LINE_END.finditer(text)), np.int64)
    lines = np.searchsorted(line_ends, starts, side="right")
    last = np.append(np.flatnonzero(np.diff(lines)), starts.size - 1) if starts.size else np.empty(0, np.int64)
    first = np.concatenate([[0], last[:-1] + 1])[: last.size]
    width = starts[last] + lengths[last] - starts[first]
    is_wrapped = (SOFT_WRAP[0] <= width) & (width <= SOFT_WRAP[1]) & (np.diff(lines[last], append=-1) == 1)
    return np.asarray(last[~is_wrapped] + 1)


def _join_full_stops(
    words: list[str], starts: Array, ends: Array, blocks: Array
) -> tuple[list[str], Array, Array, Array]:
    """Abbreviations and initials with their full stop as one word."""
    dots = [i for i, word in enumerate(words) if word == "." and i and starts[i] == ends[i - 1]]
    is_last = np.zeros(len(words) + 1, dtype=bool)
    is_last[blocks - 1] = True
    joined = []
    for i in dots:
        word = words[i - 1]
        has_number = not is_last[i] and words[i + 1][0].isdigit()
        is_short = word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I")
        if is_short or (has_number and (word.lower() in BEFORE_NUMBERS or word.lower().endswith("str"))):
            words[i - 1] = f"{word}."
            joined.append(i)
    is_kept = np.ones(len(words), dtype=bool)
    is_kept[joined] = False
    blocks = blocks - np.searchsorted(np.array(joined, dtype=np.int64), blocks)
    ends = np.delete(ends, np.array(joined, dtype=np.int64) - 1)
    return list(itertools.compress(words, is_kept)), starts[is_kept], ends, blocks


def _sentence_bounds(
    words: list[str], is_near: Array, blocks: list[int], has_capitals: bool
) -> Iterator[tuple[int, int]]:
    """First and last word (not included) of every sentence; ``is_near`` says which follow another without a space."""
    stops = iter([i for i, word in enumerate(words) if word[-1] in _ENDS] + [len(words)])
    at, start = next(stops), 0
    for end in blocks:
        first = position = start
        while at < end:
            if at >= position:
                mark, position = words[at], at + 1
                is_end = _is_end(mark)
                is_dotted = len(mark) > 2 and mark[-1] == "." and not is_end
                is_dotted = is_dotted and mark.lower()[:-1] not in ABBREVIATIONS
                if is_end or is_dotted:
                    while position < end and (_is_end(words[position]) or _closes(words, is_near, position)):
                        position += 1
                    before = words[position - 2] if position - 2 >= start else ""
                    follows = words[position : min(position + 2, end)]
                    is_joined = bool(follows) and bool(is_near[position])
                    if not _goes_on(before, mark, is_dotted, follows, is_joined, has_capitals):
                        yield first, position
                        first = position
            at = next(stops)
        if first < end:
            yield first, end
        start = end


def _is_end(word: str) -> bool:
    return word[-1] in _ENDS and all(letter in _ENDS for letter in word)


def _closes(words: list[str], is_near: Array, i: int) -> bool:
    """Whether a word is an emoji, or a closing mark right after the word before that is not before a letter."""
    is_free = i + 1 >= len(words) or not is_near[i + 1] or not words[i + 1][0].isalnum()
    return (words[i] in _CLOSING and bool(is_near[i]) and is_free) or "\U0001f300" <= words[i][0] <= "\U0001faff"


def _goes_on(before: str, mark: str, is_dotted: bool, following: list[str], is_near: bool, has_capitals: bool) -> bool:
    """Whether a sentence goes on after an end mark: the words ``following`` it, the first without a space or not."""
    if not following:
        return False
    follows = following[0]
    if is_dotted:
        return not has_capitals or follows.lower() not in STARTERS or not follows[0].isupper()
    if mark == "." and is_near:  # no space: example.com, or a list of numbers
        return True
    if mark == "." and before.isdigit() and len(before) < 3 and follows.lower() in MONTHS:
        return True
    first = next((letter for letter in follows if letter.isalnum()), "")
    if not first and len(following) > 1:  # a quotation begins, or a mark follows
        first = following[1][0]
        return follows in ",;:-–—" or (has_capitals and first.islower() and follows not in '“"«„(')
    return has_capitals and first.islower()
