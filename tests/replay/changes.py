"""How one argument is changed: into something alien, in one of its parts, or in the content of a file that it names."""

from __future__ import annotations

import copy
import datetime  # noqa: F401 -- in ALIENS
import decimal
import fractions
import gzip
import inspect
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

HUGE = 2**63 - 1
NUMBERS: list[Any] = [
    0, 1, -1, 2, 3, 7, -HUGE - 1, HUGE, 2**31, 2**64, -(2**70), 10**400, 1e-320, 1e19, 1e154, -1e300, 1.5, -0.5,
    1e308, float("nan"), float("inf"), -float("inf"), True, False, np.uint8(200), np.int8(-3), np.float16(2),
    np.float32(1e-9), np.longdouble(3), 2j, decimal.Decimal("1.1"), fractions.Fraction(1, 3), np.array(2),
    np.array([2]), np.bool_(True), np.datetime64("2020-01-01"), np.timedelta64(3, "D"),
]  # fmt: skip
WORDS: list[Any] = [
    "", " ", "x", "\0", "\ud800", "=1+1", "-", "a" * 100_000, "A\nB", "\u202eabc", "nan", "1e999", "٣", "é", b"bytes",
    "auto", "none", "True", "../x", "/", ".", "/proc/self/mem", "/dev/full", "{}", "%s%n", "<script>", "'\"",
    "\x1b[31m",
]  # fmt: skip
FIELDS: list[str] = [
    "", "nan", "-1", "1e999", "9" * 5000, "9" * 30, "inf", "\0", "\x1b[0m", "=1+1", "((((", "))", "\t\t", ",,,", '"',
    "\ufeff", "\u202e", "a" * 100_000, "-9223372036854775809", "0x10", "1_000", "½", "٣", "null", "{}", "[[[[", "\r",
    "ACGT", "1.5", "../../x", "(", "|||", "1-1", "0-99999999", "#", ">", "@", "+",
]  # fmt: skip
LEAVES: list[Any] = [
    None, True, 0, -1, 1, 3, 2**40, 2**70, -(2**63), 1e308, 1.5, float("nan"), float("inf"), "", "x", [], {}, [1],
    ["a"], [[0]], {"a": 1}, "a" * 1000, "=1", "float64", "<i8", "O",
]  # fmt: skip


class Odd:
    """An object without any of the usual methods."""

    __slots__ = ()


class Pretender:
    """Has a length, and nothing else that goes with one."""

    def __len__(self) -> int:
        return 3


class Endless:
    """Answers every index."""

    def __getitem__(self, index: Any) -> int:
        if isinstance(index, int) and index > 10_000:
            raise IndexError(index)
        return 1


class Swelling:
    """Is another array each time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.asked += 1
        return np.arange(self.asked % 4, dtype=dtype)


def ring() -> list[Any]:
    """A list that contains itself."""
    values: list[Any] = [1]
    values.append(values)
    return values


ALIENS: list[str] = [
    "None", "()", "[]", "{}", "set()", "frozenset({1, 2})", '{"a": 1}', "Odd()", "Odd", "Pretender()", "Endless()",
    "Swelling()", "ring()", "len", "(i for i in range(3))", "iter([])", "map(str, [1, 2])", "range(10**9)",
    "range(3)", "Ellipsis", "NotImplemented", "np", "datetime.date(2020, 1, 1)", 'memoryview(b"abc")',
    'bytearray(b"ACGT")', 'Path("nowhere")', 'Path(".")', "np.array([])", "np.array(None)", "np.zeros((0, 3))",
    "np.zeros((3, 0))", 'np.array([1, "a", None], object)', "np.arange(4)", 'np.array(["a", "b"])',
    'np.array(["2020-01-01"], "M8[D]")', "np.ma.masked_array([1, 2, 3], [0, 1, 0])", "np.ma.masked",
    'np.zeros(3, [("a", int), ("b", float)])', "np.rec.array([(1, 2.0)])", "np.matrix([[1, 2], [3, 4]])",
    "sp.csr_matrix(np.eye(3))", "sp.coo_array(np.ones(4))", "sp.csr_matrix(np.eye(2)).T",
    "np.broadcast_to(np.int64(1), 2**31)", "np.broadcast_to(1.0, (2**31, 3))", 'np.broadcast_to("a", 2**31)',
    "[[1, 2], [3]]", "[[]]", "[None]", '[float("nan")] * 3', '["a", 1, None]', "[np.zeros((2, 2)), np.zeros((3, 2))]",
    "[np.zeros((2, 2)), np.zeros((2, 3))]", "[Odd()]", "[[[1]], [2]]", '"abc"', 'b""', "3", "-1", 'float("nan")',
    "None", "True", "np.random.default_rng(0)", 'ValueError("x")', "slice(None)",
]  # fmt: skip


def frames() -> list[Any]:
    """Tables of pandas, where it is installed."""
    try:
        import pandas as pd
    except ImportError:
        return []
    table = pd.DataFrame({"a": [1, 2, None], "b": ["x", None, "z"]})
    return [table, table["a"], table["b"].astype("category"), table.iloc[:0], pd.Series([pd.NA, 1]), pd.NaT]


class Changer:
    """Draws one change of a value; `told` says which."""

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        self.rng, self.folder, self.told = rng, folder, ""

    def pick(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def tell(self, what: str, value: Any) -> Any:
        self.told = f"{what} > {self.told}" if self.told else what
        return value

    def alien(self) -> Any:
        kind = self.rng.integers(8)
        if kind == 0:
            value = self.pick(NUMBERS)
        elif kind == 1:
            value = self.pick(WORDS)
        elif kind == 2 and frames():
            value = self.pick(frames())
        else:
            value = eval(self.pick(ALIENS))
        return self.tell(f"alien {_show(value)}", value)

    def change(self, value: Any, depth: int = 0) -> Any:
        """Another value in place of this one, most often of its own kind."""
        if depth > 4 or self.chance(0.12):
            return self.alien()
        if isinstance(value, np.ndarray) and value.ndim:
            return self.array(value)
        if sp.issparse(value):
            return self.sparse(value)
        if isinstance(value, str | Path) and 0 < len(str(value)) < 500 and os.path.exists(value):
            return self.file(value)
        if isinstance(value, bool | np.bool_ | int | float | complex | np.number) or value is None:
            return self.number(value)
        if isinstance(value, str | bytes):
            return self.word(value)
        if isinstance(value, list | tuple):
            return self.items(value, depth)
        if isinstance(value, dict) and value:
            return self.mapping(value, depth)
        if type(value).__module__.startswith("tacit") and not isinstance(value, type):
            return self.rebuilt(value, depth)
        return self.alien()

    def number(self, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool) and self.chance(0.4):
            return self.tell("near", value + self.pick([-2, -1, 1, 2, 10, -value, -2 * value]))
        new = self.pick(NUMBERS)
        return self.tell(f"number {_show(new)}", new)

    def word(self, value: Any) -> Any:
        if value and self.chance(0.5):
            at = int(self.rng.integers(len(value)))
            other = self.pick([w for w in WORDS if type(w) is type(value)] or [b"\xff\x00"])
            return self.tell(f"word with {_show(other)} at {at}", value[:at] + other + value[at + 1 :])
        new = self.pick(WORDS)
        return self.tell(f"word {_show(new)}", new)

    def items(self, value: Any, depth: int) -> Any:
        kind, items = type(value), list(value)
        act = self.pick(
            ["iterator", "drop", "repeat", "item", "item", "item", "reverse", "empty", "object", "set", "nest"]
        )
        at = int(self.rng.integers(len(items))) if items else 0
        if act == "item" and items:
            items[at] = self.change(items[at], depth + 1)
        elif act == "drop" and items:
            del items[at]
        elif act == "repeat" and items:
            items = items * 2 if self.chance(0.5) else [*items, items[at]]
        elif act == "reverse":
            items.reverse()
        elif act == "empty":
            items = []
        elif act == "iterator":
            return self.tell("an iterator", iter(items))
        elif act == "object":
            boxed = np.empty(len(items), object)
            boxed[:] = items
            return self.tell("array of objects", boxed)
        elif act == "set":
            return self.tell("dict of items", dict(enumerate(items)))
        elif act == "nest":
            items = [items]
        made: Any = items
        if isinstance(value, tuple):
            made = kind(*items) if hasattr(value, "_fields") and len(items) == len(value) else tuple(items)
        return self.tell(f"{act} at {at}", made)

    def mapping(self, value: Any, depth: int) -> Any:
        new, key = dict(value), self.pick(list(value))
        act = self.pick(["value", "value", "drop", "add"])
        if act == "value":
            new[key] = self.change(new[key], depth + 1)
        elif act == "drop":
            del new[key]
        else:
            new[self.pick(["new", 3, None, (1,)])] = self.alien()
        return self.tell(f"{act} of {_show(key)}", new)

    def array(self, value: np.ndarray) -> Any:
        """An array with other numbers, another type, shape or layout."""
        act = self.pick(
            ["entry", "entry", "entry", "entries", "type", "type", "shape", "shape", "layout", "mask", "kind"]
        )
        if value.size and act in ("entry", "entries"):
            new = value.copy()
            count = 1 if act == "entry" else 1 + int(self.rng.integers(min(4, value.size)))
            for at in self.rng.integers(0, value.size, count):
                _put(new, int(at), self.pick(WORDS if new.dtype.kind in "US" else NUMBERS))
            return self.tell(act, new)
        if act == "type":
            dtype = self.pick(
                ["f2", ">f8", "f4", "g", "i1", "u1", ">i4", "u8", "?", "c16", "O", "U5", "S3", "M8[s]", "V8"]
            )
            try:
                with np.errstate(all="ignore"):
                    return self.tell(f"type {dtype}", value.astype(dtype))
            except (ValueError, TypeError, OverflowError):
                return self.alien()
        if act == "shape":
            shapes = {
                "shorter": lambda: value[:-1],
                "longer": lambda: np.concatenate([value, value[:1]]),
                "flat": value.ravel,
                "deeper": lambda: value[None],
                "wider": lambda: value[..., None],
                "turned": lambda: value.T,
                "narrow": lambda: value[..., :-1],
                "none": lambda: value[:0],
                "one": lambda: value[:1],
                "twice": lambda: np.concatenate([value, value]),
                "0-d": lambda: value.ravel()[:1].reshape(()) if value.size else value,
            }
            name = self.pick(sorted(shapes))
            return self.tell(name, shapes[name]())
        if act == "layout":
            layouts = {
                "fortran": lambda: np.asfortranarray(value),
                "reversed": lambda: value[::-1],
                "frozen": lambda: _frozen(value),
                "strided": lambda: np.repeat(value, 2, axis=0)[::2],
                "repeated": lambda: np.broadcast_to(value[:1], (2**31, *value.shape[1:])),
                "list": value.tolist,
                "rows": lambda: list(value),
                "matrix": lambda: np.matrix(value) if value.ndim < 3 else value,
                "same row": lambda: np.broadcast_to(value[:1], value.shape),
                "unaligned": lambda: _unaligned(value),
            }
            name = self.pick(sorted(layouts))
            return self.tell(name, layouts[name]() if len(value) else value)
        if act == "mask":
            return self.tell("masked", np.ma.masked_array(value, self.rng.random(value.shape) < 0.3))
        if act == "kind" and value.ndim <= 2 and value.dtype.kind in "biuf":
            return self.tell("sparse", self.sparse(sp.csr_matrix(value)) if self.chance(0.5) else sp.csc_matrix(value))
        return self.alien()

    def sparse(self, value: Any) -> Any:
        new = sp.csr_matrix(value).copy() if self.chance(0.7) else sp.coo_array(value)
        act = self.pick(["indices", "indptr", "data", "type", "format"])
        if new.format == "csr" and act in ("indices", "indptr") and len(getattr(new, act)):
            part = getattr(new, act)
            part[int(self.rng.integers(len(part)))] = self.pick([-1, 2**31 - 1, 5, 0, -(2**31)])
        elif act == "data" and new.nnz:
            new = new.astype(float)
            new.data[int(self.rng.integers(new.nnz))] = self.pick([np.nan, np.inf, 1e300, -1e300])
        elif act == "type":
            new = new.astype(self.pick(["f4", "i8", "?", "c16", "u1"]))
        else:
            new = getattr(new, self.pick(["tocsc", "tocoo", "tolil", "todok", "tobsr", "todia"]))()
        return self.tell(f"sparse {act}", new)

    def rebuilt(self, value: Any, depth: int) -> Any:
        """The same object from its constructor, with one argument changed; or another's copy with an alien part."""
        try:
            names = [n for n in inspect.signature(type(value)).parameters if hasattr(value, n)]
        except (ValueError, TypeError):
            names = []
        if not names or self.chance(0.2):
            return self.alien()
        name = self.pick(names)
        given = {n: getattr(value, n) for n in names}
        given[name] = self.change(copy.copy(given[name]), depth + 1)
        self.told = f"{type(value).__name__}.{name}: {self.told}"
        return type(value)(**given)

    # ------------------------------------------------------------------ files

    def file(self, value: Any) -> Any:
        """A path to a changed copy of a file, or of a folder with one file changed."""
        path = Path(value)
        if self.chance(0.08):
            new = self.pick([".", "nowhere", "/dev/null", "/proc/self/maps", "a" * 5000])
            return self.tell(f"path {_show(new)}", type(value)(new))
        target = self.folder / "changed" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
            files = sorted(p for p in target.rglob("*") if p.is_file())
            if files:
                own = self.pick(files)
                own.write_bytes(self.content(own.read_bytes(), own))
        elif path.is_file() and path.stat().st_size < 2**24:
            content = path.read_bytes()
            target.write_bytes(self.content(content, path))
        return type(value)(target) if isinstance(value, Path) else str(target)

    def content(self, old: bytes, path: Path) -> bytes:
        if old[:2] == b"PK" and self.chance(0.9):
            return self.archive(path)
        if self.chance(0.5):
            changed = self.text(old)
            if changed is not None:
                return changed
        act = self.pick(["cut", "flip", "insert", "repeat", "empty", "noise", "bomb", "zero", "header", "u16", "swap"])
        at = int(self.rng.integers(len(old) + 1))
        some = self.rng.bytes(int(self.rng.integers(1, 40)))
        if act == "cut":
            new = old[:at]
        elif act == "flip":
            new = bytearray(old)
            for spot in self.rng.integers(0, max(len(old), 1), 1 + int(self.rng.integers(8))) if old else ():
                new[spot] ^= 1 << int(self.rng.integers(8))
            new = bytes(new)
        elif act == "insert":
            new = old[:at] + some + old[at:]
        elif act == "repeat":
            new = old * 3 if len(old) < 2**20 else old + old
        elif act == "noise":
            new = old[:at] + some + old[at + len(some) :]
        elif act == "zero":
            new = old[:at] + bytes(min(len(old) - at, 64)) + old[at + 64 :]
        elif act == "header":  # sizes in the first hundred bytes become huge, or negative
            spot = int(self.rng.integers(0, min(100, max(1, len(old)))))
            new = (
                old[:spot]
                + struct.pack(self.pick(["<i", ">i", "<q", ">H"]), self.pick([-1, 0, 32767]))
                + old[spot + 4 :]
            )
        elif act == "u16":
            new = old.decode("latin-1").encode("utf-16")
        elif act == "swap":
            half = len(old) // 2
            new = old[half:] + old[:half]
        elif act == "bomb":
            piece = self.pick(
                [b"A", b"\n", b"a\tb\n", b"(", b"[", b"0", b" ", b'{"a":', b"1 2 3\n", b">x\n", b"\0", b"x,"]
            )
            new = old[:at] + piece * ((1 << int(self.rng.integers(20, 25))) // len(piece)) + old[at:]
        else:
            new = b""
        if self.chance(0.1) and not path.name.endswith(".gz"):
            new, act = gzip.compress(new, 1), f"{act}, packed"
        elif path.name.endswith(".gz"):
            new = (
                gzip.compress(self.text(gzip.decompress(old)) or b"", 1)
                if self.chance(0.5) and old[:2] == b"\x1f\x8b"
                else new
            )
        return self.tell(f"{path.name}: {act} at {at}", new)

    def text(self, old: bytes) -> bytes | None:
        """Another text: one field of one line is replaced, or lines are exchanged."""
        try:
            lines = old.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            return None
        at = int(self.rng.integers(len(lines)))
        act = self.pick(["field", "field", "field", "line", "double", "delete", "blank"])
        if act == "field":
            seps = [s for s in ("\t", ",", " ", "/", '"', ":", "(", "=") if s in lines[at]] or [" "]
            sep = self.pick(seps)
            parts = lines[at].split(sep)
            parts[int(self.rng.integers(len(parts)))] = self.pick(FIELDS)
            lines[at] = sep.join(parts)
        elif act == "line":
            lines[at] = self.pick(FIELDS)
        elif act == "double":
            lines.insert(at, lines[int(self.rng.integers(len(lines)))])
        elif act == "delete":
            del lines[at]
        else:
            lines.insert(at, "")
        return self.tell(
            f"text {act} line {at}: {_show(lines[at] if at < len(lines) else '')}", "\n".join(lines).encode()
        )

    def archive(self, path: Path) -> bytes:
        """A model file or checkpoint with another array or another leaf of its header, and the right checksum."""
        from tacit.runtime.archive import kind_of, read_archive, write_archive

        kind = kind_of(path)
        if kind is None:
            return path.read_bytes()[:-7]
        header, arrays = read_archive(path, kind)
        if arrays and self.chance(0.5):
            name = self.pick(sorted(arrays))
            new = self.array(arrays[name]) if arrays[name].ndim else self.number(0)
            if sp.issparse(new) or not isinstance(new, np.ndarray):  # changed into what no archive holds
                new = arrays[name][:0] if arrays[name].ndim else np.array(-1)
            new = np.ma.getdata(new)
            if new.dtype.hasobject or new.size > 10**6:
                new = arrays[name][:0]
            arrays[name] = new
            self.told = f"array {name}: {self.told}"
        else:
            parts = [name for name in header if name not in ("format", "kind", "tacit")]
            if parts:
                name = self.pick(parts)
                header[name] = self.leaf(header[name])
                self.told = f"header {name}: {self.told}"
        own = self.folder / "archive"
        header = {name: value for name, value in header.items() if name not in ("format", "kind", "tacit")}
        write_archive(own, kind, header, arrays)
        return own.read_bytes()

    def leaf(self, value: Any) -> Any:
        """JSON with one leaf changed, somewhere."""
        if isinstance(value, dict) and value and self.chance(0.95):
            key = self.pick(sorted(value))
            self.told = f"{key}: {self.told}" if self.told else key
            return {**value, key: self.leaf(value[key])}
        if isinstance(value, list) and value and self.chance(0.95):
            at = int(self.rng.integers(len(value)))
            if self.chance(0.1):
                return value[:at] + value[at + 1 :]
            return [*value[:at], self.leaf(value[at]), *value[at + 1 :]]
        new = self.pick(LEAVES)
        return self.tell(f"leaf {_show(new)} for {_show(value)}", new)


def _put(array: np.ndarray, at: int, value: Any) -> None:
    """Write an entry where it fits; else the next one that does."""
    for own in (value, -1, HUGE, 0):
        try:
            with np.errstate(all="ignore"):
                array.flat[at] = own
            return
        except (ValueError, TypeError, OverflowError):
            continue


def _frozen(value: np.ndarray) -> np.ndarray:
    new = value.copy()
    new.setflags(write=False)
    return new


def _unaligned(value: np.ndarray) -> np.ndarray:
    if value.dtype.hasobject:
        return value
    raw = np.zeros(value.nbytes + 1, np.uint8)
    new = raw[1:].view(value.dtype).reshape(value.shape)
    new[...] = value
    return new


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 100:
        return f"array {value.shape} {value.dtype}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**50:
        return "10**400"
    try:
        return repr(value)[:60]
    except Exception:
        return type(value).__name__
