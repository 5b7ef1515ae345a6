"""A policy as an ONNX graph: concatenation, layers with ReLU, tanh of the means, the action's box.

Needs the extra `onnx` (the library that writes such files; none is needed to read ours elsewhere).
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from rollin.arrays import Float
from rollin.errors import RollinError

OPSET = 17  # of 2022: Gemm, Relu, Tanh and Clip have not changed since


def onnx_bytes(layers: Sequence[Float], low: Float, high: Float, sizes: dict[str, int]) -> bytes:
    """The mode of a policy, as the bytes of an ONNX file.

    layers: (inputs + 1, outputs) each, the bias as last row; low, high: (A,) of the action's box;
    sizes: of observation and context.
    """
    try:
        onnx: Any = import_module("onnx")
        numpy_helper: Any = import_module("onnx.numpy_helper")
    except ImportError as error:
        raise RollinError(
            "Writing ONNX needs the extra onnx: pip install 'rollin[onnx]'."
        ) from error
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    size = len(low)
    constants, nodes = {}, []

    def node(kind: str, inputs: list[str], output: str, **more: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **more))
        return output

    inputs = [name for name, width in sizes.items() if width]
    seen = node("Concat", inputs, "seen", axis=1)
    last = len(layers) - 1
    for i, layer in enumerate(layers):
        columns = layer if i < last else layer[:, :size]  # of the last the means alone
        constants |= {f"weight{i}": columns[:-1], f"bias{i}": columns[-1]}
        seen = node("Gemm", [seen, f"weight{i}", f"bias{i}"], f"layer{i}")
        seen = node("Relu", [seen], f"hidden{i}") if i < last else node("Tanh", [seen], "squashed")
    constants |= {"half": (high - low) / 2, "middle": (high + low) / 2}
    constants |= {"low": low, "high": high}
    scaled = node("Add", [node("Mul", [seen, "half"], "spread"), "middle"], "scaled")
    node("Min", [node("Max", [scaled, "low"], "bounded"), "high"], "action")
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info(name, number, ["N", sizes[name]]) for name in inputs],
        [helper.make_tensor_value_info("action", number, ["N", size])],
        [
            numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name)
            for name, value in constants.items()
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="rollin"
    )
    model.ir_version = 8  # which goes with that opset, so that older readers take it
    onnx.checker.check_model(model)
    return model.SerializeToString()
