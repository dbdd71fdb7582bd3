"""Re-draws the weights of the onnx package's light models, which as shipped are constants.

    python zoo/redraw.py --out DIR [NAME ...]

A shipped light model fills each weight with one repeated number, so every output element is the
same and most mistakes leave it unchanged. Here each `ConstantOfShape` weight becomes an initializer
drawn for the part it plays (He-scaled for convolution and Gemm, positive variance for batch norm),
from a fixed seed. Beside each model lies `NAME.inputs.npz`.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, numpy_helper

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
NAMES = tuple(sorted(path.stem.removeprefix("light_") for path in LIGHT.glob("light_*.onnx")))
SEED = 11
LOGIT_SPREAD = 2.0  # standard deviation wanted of what goes into the last softmax


def load(name: str) -> ModelProto:
    """The light model `name` ("resnet50", ...) as the onnx package ships it."""
    return onnx.load(LIGHT / f"light_{name}.onnx")


def roles(model: ModelProto) -> dict[str, tuple[str, int]]:
    """Weight name -> (op type, operand number) of its first use, looking through shape changes."""
    found: dict[str, tuple[str, int]] = {}
    seen_through = {
        node.input[0]: node.output[0]
        for node in model.graph.node
        if node.op_type in ("Unsqueeze", "Reshape")
    }
    uses: dict[str, tuple[str, int]] = {}
    for node in model.graph.node:
        for number, name in enumerate(node.input):
            uses.setdefault(name, (node.op_type, number))
    for node in filled_by_constant(model):
        name = node.output[0]
        found[name] = uses[seen_through.get(name, name)]
    return found


def filled_by_constant(model: ModelProto) -> list[NodeProto]:
    shapes = {tensor.name for tensor in model.graph.initializer}
    return [
        node
        for node in model.graph.node
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes
    ]


def draw(rng: np.random.Generator, dims: tuple[int, ...], role: tuple[str, int]) -> np.ndarray:
    """One float32 weight of shape `dims` for its role.

    A role that nobody thought of is an error: a weight of the wrong scale makes a useless model.
    """
    match role:
        case ("Conv", 1):
            scale = np.sqrt(2 / np.prod(dims[1:]))
            return (rng.standard_normal(dims, np.float32) * scale).astype(np.float32)
        case ("Gemm", 1):  # every light Gemm has transB = 1: (out, in)
            scale = np.sqrt(2 / dims[-1])
            return (rng.standard_normal(dims, np.float32) * scale).astype(np.float32)
        case ("BatchNormalization", 1 | 4) | ("Mul", _):
            return rng.uniform(0.5, 1.5, dims).astype(np.float32)
        case ("Conv" | "Gemm", 2) | ("BatchNormalization", 2 | 3) | ("Add", _):
            return (0.1 * rng.standard_normal(dims)).astype(np.float32)
    raise ValueError(f"no rule to draw the weight of {role[0]} operand {role[1]}")


def redraw(model: ModelProto, seed: int = SEED) -> ModelProto:
    """A copy of a light model with every weight drawn anew from `seed`."""
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    role_of = roles(model)
    rng = np.random.default_rng(seed)
    result = ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    for node in model.graph.node:
        name = node.output[0]
        if name not in role_of:
            result.graph.node.append(node)
            continue
        dims = tuple(int(d) for d in shapes[node.input[0]])
        weight = draw(rng, dims, role_of[name])
        tensor = numpy_helper.from_array(weight, name)
        result.graph.initializer.append(tensor)
        result.graph.input.append(  # the models are of IR version 3: every weight is an input too
            onnx.helper.make_tensor_value_info(name, tensor.data_type, dims)
        )
    dead = {node.input[0] for node in filled_by_constant(model)} - {
        name for node in result.graph.node for name in node.input
    }
    remove_named(result.graph.initializer, dead)
    remove_named(result.graph.input, dead)
    name_layers(result)
    scale_logits(result)
    onnx.checker.check_model(result)
    return result


def name_layers(model: ModelProto) -> None:
    """Name nodes by residual block, operator and number: `block3.conv2`, where they have numbers.

    A block ends with the Relu behind an addition; ahead of the first and behind the last, names
    have no block.
    """
    adds = sum(node.op_type in ("Add", "Sum") for node in model.graph.node)
    block, added, counts = 0, False, Counter[tuple[int, str]]()
    for node in model.graph.node:
        op = {"BatchNormalization": "bn"}.get(node.op_type, node.op_type.lower())
        if block == 0 and adds and op == "maxpool":
            inside, block = 0, 1  # the stem ends with its pooling
        else:
            inside = block if block <= adds else 0
        counts[inside, op] += 1
        if re.fullmatch(r"n\d+", node.name):
            node.name = f"block{inside}." * (inside > 0) + f"{op}{counts[inside, op]}"
        block += op == "relu" and added
        added = op in ("add", "sum")


def remove_named(field, names: set[str]) -> None:  # a protobuf repeated field of named messages
    for index in range(len(field) - 1, -1, -1):
        if field[index].name in names:
            del field[index]


def scale_logits(model: ModelProto) -> None:
    """Scale the last Gemm or Conv by a power of two so that the softmax does not saturate.

    Residual sums and unnormalised variances let activations grow: a softmax of them would be one
    1 among zeros, which hides errors as well as a constant does.
    """
    last = [node for node in model.graph.node if node.op_type in ("Gemm", "Conv")][-1]
    probe = ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(onnx.helper.make_empty_tensor_value_info(last.output[0]))
    spread = float(run_onnxruntime(probe, inputs_of(model))[0].std())
    factor = np.float32(2.0 ** np.round(np.log2(LOGIT_SPREAD / spread)))
    names = set(last.input[1:])
    names |= {node.input[0] for node in model.graph.node if node.output[0] in names}
    for tensor in model.graph.initializer:
        if tensor.name in names and tensor.data_type == onnx.TensorProto.FLOAT:
            scaled = numpy_helper.to_array(tensor) * factor
            tensor.CopyFrom(numpy_helper.from_array(scaled, tensor.name))


def inputs_of(model: ModelProto, seed: int = SEED) -> dict[str, np.ndarray]:
    """Standard normal float32 inputs for a light model (each has one static image input)."""
    weights = {tensor.name for tensor in model.graph.initializer}
    rng = np.random.default_rng(seed + 1)
    result = {}
    for value in model.graph.input:
        if value.name not in weights:
            dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
            result[value.name] = rng.standard_normal(dims, np.float32)
    return result


def run_onnxruntime(model: ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return onnxruntime's results: the oracle."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)


def redrawn(names: tuple[str, ...] = NAMES) -> Iterator[tuple[str, ModelProto]]:
    """Each light model with new weights, one at a time (VGG alone is 0.6 GB)."""
    for name in names:
        yield name, redraw(load(name))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(argv)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no light model named {', '.join(unknown)}; there are {', '.join(NAMES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    flat = 0
    for name, model in redrawn(tuple(options.names) or NAMES):
        path = options.out / f"light_{name}.onnx"
        temporary = path.with_suffix(".tmp")
        onnx.save(model, temporary)
        os.replace(temporary, path)
        inputs = inputs_of(model)
        partial = path.with_suffix(".tmp.npz")
        np.savez(partial, **inputs)
        os.replace(partial, path.with_suffix(".inputs.npz"))
        output = run_onnxruntime(model, inputs)[0]
        spread = float(output.std() / np.abs(output).max())
        flat += not spread > 0.01
        print(f"{path.name}  {path.stat().st_size / 1e6:.0f} MB  std/max {spread:.3f}", flush=True)
    if flat:
        print(f"error: {flat} models have an output std under 1 % of the maximum", file=sys.stderr)
    return 1 if flat else 0


if __name__ == "__main__":
    raise SystemExit(main())
