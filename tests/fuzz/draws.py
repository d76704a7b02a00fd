"""Seeded values: right ones in all the types that users have them in, odd ones, and right ones that were spoiled."""

from __future__ import annotations

import copy
import os
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from tacit.data.parameters import is_whole

INTEGERS = (int, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
FLOATS = (float, np.float16, np.float32, np.float64, np.longdouble)
TABLES = (np.float64, np.float64, np.float32, np.float16, np.int64, bool)
LONG = "x" * 20_000
HUGE = 1 << 31
"""Rows of an array that takes eight bytes, and sixteen gigabytes once it is copied."""


class Silent:
    """An object whose methods raise what they like."""

    def __repr__(self):
        raise RuntimeError("no words for it")

    __str__ = __repr__


class Unarrayed(Silent):
    """The same, for NumPy."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")

    def __len__(self):
        raise RuntimeError("no length")


HOSTILE = (Silent(), Unarrayed(), np.broadcast_to(np.int64(1), HUGE))
"""Objects that raise where nothing should, and arrays larger than the memory: docs/safety.md does not promise words."""


def is_hostile() -> bool:
    """Whether such objects are among the inputs: ``python -m tests.fuzz --hostile``."""
    return os.environ.get("TACIT_FUZZ_HOSTILE") == "1"


MAX_STARTS_RUN = 5
"""Starts of a fit, where an odd number asks for more: they are allowed, and each takes its time."""


class Draw:
    """Random choices of one case, and a folder for its files.

    Parameters
    ----------
    target, seed : of the case
    folder : where it may write
    """

    def __init__(self, target: str, seed: int, folder: Path) -> None:
        self.rng = np.random.default_rng((seed, zlib.crc32(target.encode())))
        self.folder = folder

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, options):
        options = list(options)
        return options[int(self.rng.integers(len(options)))]

    def between(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def whole(self, low: int, high: int):
        """A whole number in any type that holds it."""
        value = self.between(low, high)
        kind = self.pick(INTEGERS)
        return kind(value) if kind is int or np.iinfo(kind).min <= value <= np.iinfo(kind).max else value

    def real(self, low: float, high: float):
        return self.pick(FLOATS)(self.rng.uniform(low, high))

    def odd(self, depth: int = 0):
        """An unexpected value."""
        makers = [
            lambda: self.pick([None, True, False, np.True_, Ellipsis, NotImplemented, pd.NA, pd.NaT]),
            lambda: self.pick([0, -1, 1, 2, -(2**63), 2**63, 2**64, 10**30, 10**400, 127, 128, 255, 256]),
            lambda: self.pick(INTEGERS[1:])(self.between(0, 127)),
            lambda: self.pick([np.nan, np.inf, -np.inf, 0.5, 1e308, -1e-308, 1e154, np.float32(1e38), np.float16(6e4)]),
            lambda: self.pick(["", "a", "auto", "0/1", "é", "\x00", "\ud800", "1", LONG, b"", b"\xff", bytearray(3)]),
            lambda: self.pick([1j, np.complex64(1), np.datetime64("2020-01-01"), np.timedelta64(1), np.void(b"ab")]),
            lambda: self.pick([int, len, object(), type, Path("x"), range(3), slice(None), iter([1, 2]), {1, 2}]),
            lambda: self.odd_array(),
            lambda: self.pick([np.ma.masked, *(HOSTILE if is_hostile() else ())]),
            lambda: self.pick([{}, {"a": 1}, {1: [2]}, pd.DataFrame({"a": [1, None]}), pd.Series(["a", None])]),
            lambda: self.pick([sparse.eye_array(3, format="csr"), sparse.coo_array(([1], ([0], [1])), shape=(2, 2))]),
        ]
        if depth < 2:
            makers.append(lambda: [self.odd(depth + 1) for _ in range(self.between(0, 4))])
            makers.append(lambda: tuple(self.odd(depth + 1) for _ in range(self.between(0, 3))))
        return self.pick(makers)()

    def odd_array(self):
        shape = self.pick([(), (0,), (1,), (3,), (2, 2), (0, 4), (4, 0), (2, 3, 1), (1, 1, 1, 1)])
        kind = self.pick(["f8", "f4", "f2", "i8", "u1", "i1", "?", "U3", "S2", "O", "c16", "M8[D]", ">f8", "V4"])
        values = np.zeros(shape, dtype=kind)
        if values.size and values.dtype.kind == "f" and self.chance(0.5):
            values.flat[0] = self.pick([np.nan, np.inf, 1e300, -1])
        return values

    def spoil(self, value, depth: int = 0):
        """A value that was right, changed in one place."""
        ways = [lambda: self.odd()]
        if isinstance(value, np.ndarray) and value.ndim and value.size < HUGE:
            ways += [lambda: self._spoil_array(value)] * 4
        if isinstance(value, list | tuple) and len(value):
            ways += [lambda: self._spoil_list(value, depth)] * 4
        if isinstance(value, dict) and value:
            ways += [lambda: {**value, self.pick(value): self.odd()}, lambda: dict(list(value.items())[1:])]
        if isinstance(value, str) and value:
            ways += [
                lambda: value[: len(value) // 2],
                lambda: value + "\x00",
                lambda: value.upper(),
                lambda: value * 99,
            ]
        return self.pick(ways)()

    def _spoil_array(self, value):
        out = value.copy()
        where = tuple(self.between(0, size - 1) for size in value.shape) if value.size else None
        ways = [
            lambda: out[:-1],
            lambda: out[None],
            lambda: out.ravel(),
            lambda: np.concatenate([out, out]),
            lambda: out[:0],
            lambda: out.astype(object),
            lambda: out.astype("U5") if out.dtype.kind not in "VmM" else out,
            lambda: out.tolist(),
            lambda: out.astype(out.dtype.newbyteorder(">")),
            lambda: np.ma.masked_array(out, np.arange(out.size).reshape(out.shape) % 2 == 0),
            lambda: np.broadcast_to(out[:1], (HUGE, *out.shape[1:])) if out.size and is_hostile() else out,
            lambda: np.asfortranarray(out)[::-1],
            lambda: out.astype(self.pick(["f4", "f2", "i1", "u1", "?", "c16"])) if out.dtype.kind in "biuf" else out,
        ]
        if where is not None and value.dtype.kind in "fO":
            ways += [lambda: self._put(out, where, self.pick([np.nan, np.inf, -np.inf, 1e300, -1e300, 0.5]))] * 3
        if where is not None and value.dtype.kind in "iu":
            ways += [lambda: self._put(out, where, self.pick([-1, -2, 100, 0, np.iinfo(out.dtype).max]))] * 3
            ways.append(lambda: self._wrap(out))
        if where is not None and value.dtype == object:
            ways += [lambda: self._put(out, where, self.odd())] * 3
        with np.errstate(all="ignore"):
            return self.pick(ways)()

    def _wrap(self, out):
        """Neighbours whose difference does not fit their type, and so looks harmless."""
        if out.ndim != 1 or out.size < 3:
            return out
        place, low = self.between(0, out.size - 2), np.iinfo(out.dtype).min
        return np.concatenate([out[: place + 1], [np.iinfo(out.dtype).max, low + 1 if low else 1], out[place + 1 :]])

    @staticmethod
    def _put(out, where, value):
        if out.dtype.kind == "u":
            value = abs(int(value))
        out[where] = value
        return out

    def _spoil_list(self, value, depth):
        out = list(value)
        place = self.between(0, len(out) - 1)
        way = self.between(0, 5)
        if way == 0:
            out.pop(place)
        elif way == 1:
            out.append(self.odd())
        elif way == 2 and depth < 2:
            out[place] = self.spoil(out[place], depth + 1)
        elif way == 3:
            out = out * 2
        else:
            out[place] = self.odd()
        return tuple(out) if isinstance(value, tuple) and self.chance(0.5) else out

    def spoil_some(self, arguments: dict, share: float = 0.75, most: int = 2) -> dict:
        """Arguments by name, one or a few of them spoiled; at times none."""
        out = dict(arguments)
        if out and self.chance(share):
            for _ in range(self.between(1, most)):
                name = self.pick(out)
                out[name] = self.spoil(out[name])
        if is_whole(out.get("n_init")) and MAX_STARTS_RUN < out["n_init"] < 10**4:
            out["n_init"] = MAX_STARTS_RUN
        return out

    def table(self, n: int, d: int):
        """A table of numbers as users have it."""
        values = self.rng.standard_normal((n, d)) * self.pick([1, 1, 1, 1, 1, 1e-3, 1e3, 1e-200, 1e20, 0])
        with np.errstate(all="ignore"):
            values = values.astype(self.pick(TABLES))
        form = self.between(0, 6)
        if form == 0:
            return values.tolist()
        if form == 1 and values.dtype != np.float16:
            table = sparse.csr_array(values)
            if self.chance(0.1):
                table.data = table.data.astype(self.pick([np.float16, table.dtype.newbyteorder(">")]))
            return table
        if form == 2:
            return pd.DataFrame(values)
        if form == 3:
            return np.asfortranarray(values)
        return values

    def labels(self, n: int, k: int):
        """One of k labels for each of n samples, every one of them if there is room."""
        codes = self.rng.permutation(np.arange(n) % k)
        names = self.pick(
            [np.arange(k), np.array(["ant", "bee", "cat"])[:k], np.array([-1, 1, 7])[:k], np.arange(k) > 0]
        )
        labels = names[codes]
        form = self.between(0, 4)
        if form == 0:
            return labels.tolist()
        if form == 1:
            return pd.Series(labels)
        return labels.astype(object) if form == 2 else labels

    def corrupt(self, content: bytes) -> bytes:
        """The bytes of a file, damaged."""
        blob = bytearray(content)
        for _ in range(self.between(1, 3)):
            place = self.between(0, max(len(blob) - 1, 0))
            way = self.between(0, 6)
            if way == 0:
                del blob[place:]
            elif way == 1 and blob:
                blob[place] ^= 1 << self.between(0, 7)
            elif way == 2:
                blob[place:place] = self.rng.bytes(self.between(1, 9))
            elif way == 3:
                blob[place : place + self.between(1, 9)] = b""
            elif way == 4:
                blob[place : place + 4] = self.pick([b"\xff" * 4, bytes(4), b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00"])
            elif way == 5:
                blob = blob + blob[place:]
            else:
                blob[place:place] = self.pick([b"\n", b"\t", b",", b'"', b"\x00", b"9" * 400, b"-1", b"nan", b"\xe9"])
        return bytes(blob)

    def corrupt_tree(self, tree):
        """JSON, changed in one or a few places."""
        out = copy.deepcopy(tree)
        for _ in range(self.between(1, 2)):
            places = list(_positions(out))
            if not places:
                return out
            holder, key = self.pick(places)
            way = self.between(0, 4)
            if way == 0 and isinstance(holder, dict):
                del holder[key]
            elif way == 1:
                other, name = self.pick(places)
                holder[key] = copy.deepcopy(other[name]) if name in other or isinstance(other, list) else None
            else:
                odd = [
                    None,
                    True,
                    0,
                    -1,
                    1,
                    10**30,
                    1e400,
                    -1e400,
                    float("nan"),
                    "",
                    "x",
                    LONG,
                    [],
                    [[]],
                    {},
                    {"$array": "x"},
                ]
                odd += [{"$tuple": []}, {"$object": "Bundle", "parts": {}}, {"$foreign": "Mine"}, {"$pairs": [[[], 1]]}]
                holder[key] = self.pick(odd)
        return out


def _positions(tree):
    """Every (container, key) of nested dicts and lists."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(pairs):
        yield tree, key
        yield from _positions(value)
