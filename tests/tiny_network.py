"""A network of one layer as an ONNX file, and photos that it can tell apart: made on the spot for tests."""

import numpy as np
from PIL import Image

CELL = 8


def stripes(rises, size=CELL, phase=0.0):
    """A hatched patch; its strokes rise or fall."""
    y, x = np.indices((size, size))
    return np.sin((x + (y if rises else -y)) * 2 * np.pi / 8 + phase)


def filters():
    """(4, 3, 8, 8): strokes that rise and fall, in two phases each."""
    kernels = [stripes(rises, phase=phase) for rises in (True, False) for phase in (0.0, np.pi / 2)]
    return np.repeat(np.array(kernels, np.float32)[:, None], 3, axis=1) / 64


def write_network(path, *, is_map=True, side=None, channels=3):
    """|convolution| of stride 8; with ``is_map=False`` its mean over the image."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    kernels = numpy_helper.from_array(filters()[:, :channels].copy(), "kernels")
    nodes = [
        helper.make_node("Conv", ["image", "kernels"], ["raw"], strides=[CELL, CELL], auto_pad="SAME_UPPER"),
        helper.make_node("Abs", ["raw"], ["map" if is_map else "magnitude"]),
    ]
    if not is_map:
        nodes.append(helper.make_node("ReduceMean", ["magnitude"], ["map"], axes=[2, 3], keepdims=0))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, channels, side or "h", side or "w"])
    found = helper.make_tensor_value_info("map", TensorProto.FLOAT, [1, 4, "r", "c"] if is_map else [1, 4])
    graph = helper.make_graph(nodes, "tiny", [image], [found], [kernels])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))
    return path


def photo(rises, seed, width=96, height=72, patch=32):
    """Noise with a hatched patch somewhere, and its box."""
    rng = np.random.default_rng(seed)
    pixels = 0.35 + 0.3 * rng.random((height, width))
    left, top = int(rng.integers(0, width - patch)), int(rng.integers(0, height - patch))
    pixels[top : top + patch, left : left + patch] += 0.35 * stripes(rises, patch)
    grey = np.round(255 * np.clip(pixels, 0, 1)).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2), (left, top, left + patch, top + patch)


def write_photos(folder, n=8, seed=0):
    """Two classes of photos in two subfolders, and the table of their boxes beside them."""
    lines = ["file,class,width,height,xmin,ymin,xmax,ymax"]
    for name in ("falls", "rises"):
        (folder / name).mkdir(parents=True)
        for i in range(n):
            pixels, box = photo(name == "rises", seed + 1000 * (name == "rises") + i)
            Image.fromarray(pixels).save(folder / name / f"{name}_{i}.png")
            lines.append(",".join(map(str, [f"{name}/{name}_{i}.png", name, 96, 72, *box])))
    table = folder.parent / f"{folder.name}.csv"
    table.write_text("\n".join(lines) + "\n")
    return table
