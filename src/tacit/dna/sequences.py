"""DNA: letters and their codes, sequences as users write them, the other strand, flanks, shuffles."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array, locate
from tacit.data.kernels import kernel
from tacit.data.parameters import is_list, list_entries, plain_array, shorten
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.table import Table

UNKNOWN = 255
"""The code of a byte that is not a letter of the alphabet."""


class Alphabet(NamedTuple):
    """The letters of sequences. A letter's code is its position in ``meaning``: plain letters first, "any" last.

    Parameters
    ----------
    name : "dna", "rna" or "protein"
    letters : the plain ones
    meaning : what every letter stands for
    codes : (256,) the code of every byte, `UNKNOWN` for others
    shares : (codes, letters) probabilities of plain letters, all that a letter stands for equally likely
    complement : (codes,) the code on the other strand; empty where sequences have one strand
    """

    name: str
    letters: str
    meaning: dict[str, str]
    codes: Array
    shares: Array
    complement: Array

    @property
    def size(self) -> int:
        """The number of plain letters."""
        return len(self.letters)

    @property
    def any_code(self) -> int:
        """The code of the letter that stands for all."""
        return len(self.meaning) - 1

    @property
    def has_complement(self) -> bool:
        """Whether sequences have another strand."""
        return self.complement.size > 0

    def letters_of(self, codes: Array) -> Array:
        """The ASCII letters of codes, in upper case.

        >>> DNA.letters_of(np.array([0, 3, 14])).tobytes()
        b'ATN'
        """
        return np.frombuffer("".join(self.meaning).encode(), np.uint8)[codes]

    def refuse(self) -> str:
        """Why another letter is refused, and the remedy."""
        also = {"dna": " or U", "rna": " or T", "protein": ", U or O"}[self.name]
        kind = {"dna": "a DNA", "rna": "an RNA", "protein": "an amino acid"}[self.name]
        what = "residues" if self.name == "protein" else "bases"
        return (
            f"is not {kind} letter ({''.join(self.meaning)}{also}, in either case); drop the sequence or write "
            f"{list(self.meaning)[-1]} for unknown {what}"
        )


def _make_alphabet(
    name: str, letters: str, mixed: dict[str, str], same: dict[str, str], pairs: dict[str, str]
) -> Alphabet:
    """An alphabet with letters that stand for several, letters that are read as others, and pairs of both strands."""
    meaning = {**{letter: letter for letter in letters}, **mixed}
    codes = np.full(256, UNKNOWN, np.uint8)
    for letter in [*meaning, *same]:
        code = list(meaning).index(same.get(letter, letter))
        codes[[ord(letter), ord(letter.lower())]] = code
    shares = np.array([[(plain in stands) / len(stands) for plain in letters] for stands in meaning.values()])
    complement = np.zeros(0, np.uint8)
    if pairs:
        opposite = [frozenset(pairs[plain] for plain in stands) for stands in meaning.values()]
        complement = np.array([list(map(frozenset, meaning.values())).index(one) for one in opposite], np.uint8)
    return Alphabet(name, letters, meaning, codes, shares, complement)


_MIXED_BASES = {
    **{"R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC"},
    **{"B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT"},
}

_AMINO = "ACDEFGHIKLMNPQRSTVWY"

DNA = _make_alphabet("dna", "ACGT", _MIXED_BASES, {"U": "T"}, {"A": "T", "C": "G", "G": "C", "T": "A"})

RNA = _make_alphabet(
    "rna", "ACGU", {key: bases.replace("T", "U") for key, bases in _MIXED_BASES.items()}, {"T": "U"}, {}
)

PROTEIN = _make_alphabet("protein", _AMINO, {"B": "DN", "Z": "EQ", "J": "IL", "X": _AMINO}, {"U": "C", "O": "K"}, {})

ALPHABETS = {alphabet.name: alphabet for alphabet in (DNA, RNA, PROTEIN)}

LETTERS_AT_A_TIME = 1 << 22
"""Letters of a table that are read at a time."""


def read_sequences(X: Any, alphabet: Alphabet = DNA) -> Ragged:
    """Letter codes of all sequences, one byte per letter; the error names sequence, position and letter.

    Takes a list, tuple, pandas or Arrow column of str or bytes, or a `Ragged` of ASCII bytes. A NumPy array of
    fixed-width strings ('S' or 'U') is read through its buffer, without a Python object per sequence. Case does not
    matter, and U is T. What comes back can be read again.

    >>> read_sequences(["ACGT", b"nu"]).values
    array([ 0,  1,  2,  3, 14,  3], dtype=uint8)
    """
    if isinstance(X, Ragged):
        if X.values.dtype != np.uint8 or X.values.ndim != 1:
            raise ValueError(f"a Ragged of sequences must hold one byte (uint8) per letter, got {X!r}")
        if X.values.size and X.values.max() < len(alphabet.meaning):
            return X
        letters, offsets = X.values, X.offsets
    else:
        X = _plain(X)
        letters, lengths = _read_buffer(X) if isinstance(X, np.ndarray) else _join_strings(X)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
    if offsets.size == 1:
        raise ValueError("X holds 0 samples; a minimum of 1 is required")
    return Ragged(known_codes(letters, offsets, X, alphabet), offsets)


def known_codes(letters: Array, offsets: Array, X: Any, alphabet: Alphabet = DNA) -> Array:
    """The codes of ASCII letters; a byte that is not a DNA letter is refused, as it is written in ``X``.

    Parameters
    ----------
    letters : (m,) bytes of all sequences
    offsets : where sequences begin
    X : the sequences as the user gave them

    >>> known_codes(np.frombuffer(b"ACg", np.uint8), np.array([0, 3]), ["ACg"])
    array([0, 1, 2], dtype=uint8)
    """
    codes = alphabet.codes[letters]
    if codes.max(initial=0) == UNKNOWN:
        i, position = locate(offsets, int(np.argmax(codes == UNKNOWN)))
        letter = X[i][position]
        letter = letter if isinstance(letter, str) else chr(letter)
        raise ValueError(f"sequence {i}: {letter!r} at position {position} {alphabet.refuse()}")
    return codes


def _plain(X: Any) -> Any:
    """A list of str or bytes, or a 1-D array of fixed-width strings."""
    if isinstance(X, (str, bytes)):
        raise ValueError(f"X is a single string, {X[:20]!r}; for one sequence pass [sequence]")
    if type(X).__module__.split(".")[0] == "pyarrow":
        return X.to_pylist()
    if isinstance(X, dict | set) or not is_list(X):
        raise TypeError(f"X must be a list of sequences, got {shorten(X)}")
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if isinstance(X, np.ndarray):
        X = plain_array(X, "X")
        if X.ndim != 1:
            raise ValueError(f"X has shape {X.shape}; give one string per sequence: pass X[:, 0] for a column")
        return X if X.dtype.kind in "SU" else X.tolist()
    return list_entries("X", X)


def _read_buffer(X: Array) -> tuple[Array, Array]:
    """Bytes and lengths of fixed-width strings, through their buffer."""
    lengths = np.strings.str_len(X).astype(np.int64)
    width = X.dtype.itemsize // (4 if X.dtype.kind == "U" else 1)
    if X.size == 0 or width == 0:
        return np.zeros(0, np.uint8), lengths
    X = np.ascontiguousarray(X, dtype=X.dtype.newbyteorder("="))
    if X.dtype.kind == "U":
        points = X.view(np.uint32).reshape(X.size, width)
        letters = np.minimum(points, UNKNOWN).astype(np.uint8)
    else:
        letters = X.view(np.uint8).reshape(X.size, width)
    if (lengths == width).all():
        return letters.reshape(-1), lengths
    return letters[np.arange(width) < lengths[:, None]], lengths


def _join_strings(X: list[Any]) -> tuple[Array, Array]:
    """Bytes and lengths of a list of strings."""
    if not all(isinstance(sequence, (str, bytes)) for sequence in X):
        i = next(i for i, sequence in enumerate(X) if not isinstance(sequence, (str, bytes)))
        raise ValueError(f"X[{i}] must be a string of letters, got {shorten(X[i])}; drop it or write it as a string")
    lengths = np.fromiter(map(len, X), np.int64, len(X))
    if all(isinstance(sequence, str) for sequence in X):
        text = "".join(X).encode("latin-1", "replace")
    else:
        text = b"".join(s.encode("latin-1", "replace") if isinstance(s, str) else s for s in X)
    return np.frombuffer(text, np.uint8), lengths


def check_shard_letters(shards: Any) -> None:
    """Refuse shards with a byte that is not a DNA letter; the error names the shard."""
    found = _find_unknown(shards.values, shards.offsets)
    if found:
        i, where = found
        raise ValueError(f"{shards.name_of(i)}: {where} of sequence {i} {DNA.refuse()}, and write the shards again")


def check_letters(table: Any, offsets: Array) -> None:
    """Refuse empty sequences, and bytes that are not DNA letters, in a table of letters."""
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if empty.size:
        raise ValueError(f"has 0 letters in its sequence {empty[0]}; drop it ({empty.size} are empty)")
    found = _find_unknown(table, offsets)
    if found:
        raise ValueError(f"has {found[1]} of its sequence {found[0]}, which {DNA.refuse()}")


def _find_unknown(table: Any, offsets: Array) -> tuple[int, str] | None:
    """The sequence of the first byte that is not a letter, and its letter and position as text."""
    before = 0
    for rows in table.chunks():
        wrong = np.flatnonzero(DNA.codes[rows.ravel()] == UNKNOWN)
        if wrong.size:
            i, position = locate(offsets, before + int(wrong[0]))
            return i, f"{chr(rows.ravel()[wrong[0]])!r} at position {position}"
        before += len(rows)
    return None


def load_letters(shards: Shards) -> Ragged:
    """The letters of shards of sequences; their checksums are verified first."""
    if shards.manifest.kind != "letters":
        raise ValueError(f"{shards!r} holds numbers; motifs need shards of sequences: Shards.write(folder, X)")
    shards.verify()
    letters: Ragged = shards.in_memory()
    return letters


def write_letters(sequences: Ragged, alphabet: Alphabet = DNA) -> list[str]:
    """Letter codes as text.

    >>> write_letters(read_sequences(["acgu", "NN"]))
    ['ACGT', 'NN']
    """
    letters = alphabet.letters_of(sequences.values).tobytes().decode("ascii")
    return [letters[a:b] for a, b in pairwise(sequences.offsets.tolist())]


def append_flank(sequences: Ragged, flank: str, alphabet: Alphabet = DNA) -> Ragged:
    """Every sequence, followed by the flank.

    >>> write_letters(append_flank(read_sequences(["AC", "G"]), "TT"))
    ['ACTT', 'GTT']
    """
    if not flank:
        return sequences
    codes = read_sequences([flank], alphabet).values
    offsets = sequences.offsets + codes.size * np.arange(len(sequences) + 1)
    values = np.empty(int(offsets[-1]), np.uint8)
    is_flank = np.zeros(values.size, dtype=bool)
    is_flank[(offsets[1:, None] - codes.size + np.arange(codes.size)).ravel()] = True
    values[~is_flank] = sequences.values
    values[is_flank] = np.tile(codes, len(sequences))
    return Ragged(values, offsets)


def orient(sequences: Ragged) -> tuple[Ragged, Array]:
    """Each sequence or its reverse complement, whichever comes first in the alphabet; and which were replaced.

    A sequence and its reverse complement are then the same data: all that is computed from them has the same bits.
    """
    values, offsets = sequences.values, sequences.offsets
    positions, mirrored = np.arange(values.size), _mirror(sequences)
    first = np.minimum.reduceat(np.where(values != mirrored, positions, values.size), offsets[:-1])
    at = np.minimum(first, values.size - 1)
    is_flipped = (first < offsets[1:]) & (mirrored[at] < values[at])
    return sequences.with_values(np.where(np.repeat(is_flipped, sequences.lengths), mirrored, values)), is_flipped


def find_flipped(table: Table, offsets: Array) -> Array:
    """Which sequences of a table `orient` replaces by their reverse complement; some letters are read at a time."""
    at_once = np.searchsorted(offsets, np.arange(0, int(offsets[-1]), LETTERS_AT_A_TIME))
    cuts = np.unique(np.append(at_once, [0, offsets.size - 1])).tolist()
    found = [np.zeros(0, dtype=bool)]
    for first, last in pairwise(cuts):
        letters = slice(int(offsets[first]), int(offsets[last]))
        found.append(orient(lend_sequences(table, letters, offsets[first : last + 1] - offsets[first]))[1])
    return np.concatenate(found)


def lend_sequences(table: Table, letters: Any, offsets: Array) -> Ragged:
    """The codes of some letters of a table, whose pages are then released; ``offsets`` cut them into sequences."""
    with table.lend(letters) as rows:
        return Ragged(DNA.codes[rows.ravel()], offsets)


def reverse_complement(sequences: Ragged, which: Array) -> Ragged:
    """These sequences, some of them replaced by their reverse complements."""
    return sequences.with_values(np.where(np.repeat(which, sequences.lengths), _mirror(sequences), sequences.values))


def _mirror(sequences: Ragged) -> Array:
    """The letters of the reverse complement of every sequence."""
    values, offsets = sequences.values, sequences.offsets
    positions = np.repeat(offsets[:-1] + offsets[1:] - 1, sequences.lengths) - np.arange(values.size)
    return np.asarray(DNA.complement[values[positions]])


def shuffle_pairs(sequences: Ragged, seed: int = 0) -> Ragged:
    """Every sequence in a random order of its letters, with the same first and last letter and the same dinucleotides.

    All such orders are equally likely (Altschul & Erickson 1985). A random spanning tree into the last letter is drawn
    by the walk of Wilson (1996), then a random Eulerian path that leaves each letter by its tree edge last. O(letters).

    >>> codes = np.array([0, 0, 1, 1, 0, 2, 0, 1, 3], np.uint8)
    >>> shuffled = shuffle_pairs(Ragged(codes, np.array([0, 9])), seed=1).values
    >>> pairs = lambda codes: sorted(zip(codes[:-1].tolist(), codes[1:].tolist()))
    >>> pairs(shuffled) == pairs(codes)
    True
    """
    values = np.ascontiguousarray(sequences.values)
    out = values.copy()
    rng = np.random.default_rng(seed)
    _shuffle(values, sequences.offsets, rng.random(values.size + 1), int(rng.integers(1, 2**62)), out)
    return sequences.with_values(out)


def shuffle_letters(sequences: Ragged, seed: int = 0) -> Ragged:
    """Every sequence in a random order of its letters.

    Proteins are shuffled like this: they are short beside the 400 pairs of their letters, so an order with the same
    pairs is nearly the same sequence.

    >>> shuffled = shuffle_letters(Ragged(np.arange(9, dtype=np.uint8), np.array([0, 4, 9])), seed=1)
    >>> [sorted(part.tolist()) for part in shuffled]
    [[0, 1, 2, 3], [4, 5, 6, 7, 8]]
    """
    owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
    order = np.lexsort((np.random.default_rng(seed).random(owner.size), owner))
    return sequences.with_values(sequences.values[order])


def shuffle(sequences: Ragged, seed: int = 0, alphabet: Alphabet = DNA) -> Ragged:
    """Shuffles as negatives: pairs of letters stay the same, and for protein letters alone."""
    return shuffle_letters(sequences, seed) if alphabet.name == "protein" else shuffle_pairs(sequences, seed)


@kernel
def _shuffle(values: Array, offsets: Array, draws: Array, state: int, out: Array) -> None:
    """One sequence after the other; ``draws`` has a random number per letter, ``state`` seeds those of the walks."""
    letters = 32
    order = np.empty(values.size, np.int64)
    begin = np.empty(letters + 1, np.int64)
    tree = np.empty(letters, np.int64)
    is_in = np.empty(letters, np.bool_)
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i + 1]
        n = last - first - 1
        if n < 2:
            continue
        begin[:] = 0
        for p in range(first, last - 1):
            begin[values[p] + 1] += 1
        for c in range(letters):
            begin[c + 1] += begin[c]
        fill = begin[:letters].copy()
        for p in range(first, last - 1):
            order[fill[values[p]]] = values[p + 1]
            fill[values[p]] += 1
        end = values[last - 1]
        is_in[:] = False
        is_in[end] = True
        for c in range(letters):
            if begin[c + 1] == begin[c]:
                is_in[c] = True
        for c in range(letters):  # loop-erased random walks into the tree
            at = c
            while not is_in[at]:
                state = (state * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
                size = begin[at + 1] - begin[at]
                tree[at] = begin[at] + (state >> 20) % size
                at = order[tree[at]]
            at = c
            while not is_in[at]:
                is_in[at] = True
                at = order[tree[at]]
        for c in range(letters):
            low, high = begin[c], begin[c + 1]
            if high - low < 1:
                continue
            if c != end:  # the edge of the tree is the last that leaves the letter
                order[tree[c]], order[high - 1] = order[high - 1], order[tree[c]]
                high -= 1
            for k in range(high - 1, low, -1):
                j = low + int(draws[first + k] * (k - low + 1))
                order[k], order[j] = order[j], order[k]
        fill = begin[:letters].copy()
        at = values[first]
        out[first] = at
        for p in range(first + 1, last):
            following = order[fill[at]]
            fill[at] += 1
            out[p] = following
            at = following


class DnaText:
    """Sequences in shards: see `tacit.data.shard_folder.TextKind`."""

    check = staticmethod(known_codes)

    @staticmethod
    def plain(letters: Array) -> Array:
        """Letters in upper case, and T for U: as sequences are compared."""
        upper = np.where((letters >= ord("a")) & (letters <= ord("z")), letters - 32, letters).astype(np.uint8)
        return np.where(upper == ord("U"), np.uint8(ord("T")), upper)


DNA_TEXT = DnaText()
