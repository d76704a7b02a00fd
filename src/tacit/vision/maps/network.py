"""Feature maps of a neural network: an ONNX file (needs the extra ``net``), or any function."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from tacit.data.arrays import Array
from tacit.data.parameters import file_path, number, reason, shorten
from tacit.data.reading import find_file, quote
from tacit.data.specs import check_parameters, estimator, parameter, whole

SIDE = 480
MEAN, DEVIATION = 127.0, 128.0
PROBE = 256
"""Pixels of the square image that measures the output of a network."""


@estimator
class NetworkMap(BaseEstimator):  # type: ignore[misc]
    """The output of a network as a feature map, computed by ONNX Runtime on one thread per image.

    The network takes one RGB image (1, 3, height, width) of any size, as (x − mean) / deviation, and returns a map
    (1, d, rows, columns). An example is a network for classification, cut off after its last convolution.

    Parameters
    ----------
    path : the file
    side : pixels of the longest side to which images are scaled, up or down
    mean, deviation : of the input, for values from 0 to 255; None takes them from the metadata of the file, else 127
        and 128
    """

    path: str | os.PathLike[str] = parameter(file_path)
    side: int = parameter(whole(32, 1 << 13), default=SIDE)
    mean: float | None = None
    deviation: float | None = None

    @property
    def cell(self) -> int:
        """Pixels of the input per cell."""
        return int(_open_network(str(self.path)).cell)

    def check(self) -> None:
        """Refuse a file that is not a network, or whose output is not a map."""
        check_parameters(self)
        _open_network(str(self.path))

    def digest(self) -> str:
        """The checksum of the file, and the settings."""
        network = _open_network(str(self.path))
        return f"{network.checksum} {self.side} {self._scale()}"

    def _scale(self) -> tuple[float, float]:
        network = _open_network(str(self.path))
        mean = network.metadata("mean") if self.mean is None else self.mean
        deviation = network.metadata("deviation") if self.deviation is None else self.deviation
        return (
            number("mean", MEAN if mean is None else mean, "a finite number"),
            number("deviation", DEVIATION if deviation is None else deviation, "a number above 0", lambda v: v > 0),
        )

    def __call__(self, pixels: Array) -> Array:
        mean, deviation = self._scale()
        network = _open_network(str(self.path))
        height, width = pixels.shape[:2]
        # whole cells: where a side is odd in some layer, padding would shift the map against the image
        room = [(0, -side % network.cell) for side in (height, width)]
        padded = np.pad(pixels, [*room, (0, 0)], mode="edge").astype(np.float32)
        return network.run(np.ascontiguousarray(((padded - mean) / deviation).transpose(2, 0, 1)[None]))


class _Network:
    """An open file: its session, its checksum, and pixels per cell."""

    def __init__(self, path: str) -> None:
        self.file = find_file(path, "a network in ONNX format")
        content = self.file.read_bytes()
        self.checksum = hashlib.sha256(content).hexdigest()
        runtime = onnx_runtime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # the same bits for any number of jobs
        options.log_severity_level = 4
        try:
            self._session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime has its own exceptions
            raise ValueError(f"{quote(self.file)} is not a network in ONNX format ({reason(error)})") from error
        inputs = self._session.get_inputs()
        shape = inputs[0].shape if len(inputs) == 1 else None
        if shape is None or len(shape) != 4 or shape[1] not in (3, None) or inputs[0].type != "tensor(float)":
            found = "; ".join(f"{one.name} {one.shape} {one.type}" for one in inputs)
            raise ValueError(f"{quote(self.file)} must take one image (1, 3, height, width) of floats, got {found}")
        if any(isinstance(side, int) for side in shape[2:]):
            sides = f"{shape[2]} × {shape[3]}"
            raise ValueError(f"{quote(self.file)} takes only {sides} pixels; export it with dynamic height and width")
        self._input = inputs[0].name
        self._output: str | None = None
        rows = self.run(np.zeros((1, 3, PROBE, PROBE), np.float32)).shape[0]
        self.cell = max(1, round(PROBE / rows))

    def metadata(self, name: str) -> float | None:
        text = self._session.get_modelmeta().custom_metadata_map.get(name)
        try:
            return None if text is None else float(text)
        except ValueError as error:
            raise ValueError(f"{name} in {quote(self.file)} must be a number, got {text[:40]!r}") from error

    def run(self, image: Array) -> Array:
        """(rows, columns, d), float32."""
        try:
            found = self._session.run(None if self._output is None else [self._output], {self._input: image})
        except Exception as error:
            size = f"{image.shape[3]} × {image.shape[2]} pixels"
            raise ValueError(f"{quote(self.file)} fails on an image of {size} ({reason(error)})") from error
        maps = [one for one in found if np.ndim(one) == 4 and one.shape[0] == 1 and min(one.shape) > 0]
        if not maps or maps[0].shape[2] * maps[0].shape[3] == 1:
            shapes = ", ".join(str(np.shape(one)) for one in found)
            raise ValueError(
                f"the output of {quote(self.file)} must be a map (1, d, rows, columns), got shape {shapes}; cut the "
                "network off after its last convolution"
            )
        out = np.ascontiguousarray(maps[0][0].transpose(1, 2, 0), dtype=np.float32)
        if not np.isfinite(out).all():
            raise ValueError(f"{quote(self.file)} returns NaN or infinity; check mean and deviation")
        return out


@functools.lru_cache(maxsize=4)
def _open_version(path: str, size: int, changed: int) -> _Network:
    return _Network(path)


def _open_network(path: str) -> _Network:
    """The open network of a path; a file that has changed is opened again."""
    file = find_file(path, "a network in ONNX format")
    facts = file.stat()
    return _open_version(str(file), facts.st_size, facts.st_mtime_ns)


def onnx_runtime() -> Any:
    """ONNX Runtime, or an error that names the extra."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError('networks need ONNX Runtime: pip install "tacit[net]"') from error
    return onnxruntime


@estimator
class CalledMap(BaseEstimator):  # type: ignore[misc]
    """Your own function as a feature map.

    Parameters
    ----------
    function : from pixels (height, width, 3), uint8, to an array (rows, columns, d)
    cell : pixels per cell
    side : pixels of the longest side to which images are scaled
    name : of the function and its version, for caches; maps are cached only with a name

    >>> CalledMap(lambda pixels: pixels[::4, ::4] / 255, cell=4, side=64)(np.zeros((48, 64, 3), np.uint8)).shape
    (12, 16, 3)
    """

    holds_functions = True

    function: Callable[[Array], Any]
    cell: int = parameter(whole())
    side: int = parameter(whole(4, 1 << 14))
    name: str = ""

    def check(self) -> None:
        """Refuse invalid parameters."""
        if not callable(self.function):
            raise TypeError("function must be a function of pixels (height, width, 3)")
        check_parameters(self)

    def digest(self) -> str:
        """The name; empty where there is none, so that nothing is cached."""
        return f"{self.name} {self.cell} {self.side}" if self.name else ""

    def __call__(self, pixels: Array) -> Array:
        found = np.asarray(self.function(pixels))
        if found.ndim != 3 or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
            got = f"{found.dtype} of shape {found.shape}"
            raise ValueError(f"function must return finite numbers (rows, columns, d), got {got}")
        return found.astype(np.float32)


def read_features(features: Any) -> Any:
    """A checked map maker, from the path of a network or a map maker."""
    is_path = isinstance(features, str | os.PathLike) and str(features).lower().endswith(".onnx")
    maker = NetworkMap(file_path("features", features)) if is_path else features
    if not all(hasattr(maker, name) for name in ("side", "cell", "digest", "check")) or isinstance(maker, type):
        remedy = "; wrap your function in tacit.vision.maps.CalledMap" if callable(features) else ""
        raise TypeError(
            f"features must be the path of a network (.onnx) or a map of tacit.vision.maps, got {shorten(features)}"
            f"{remedy}"
        )
    maker.check()
    return maker
