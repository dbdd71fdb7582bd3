#!/usr/bin/env bash
# LiteRT (TensorFlow Lite) has three sets of kernels for an int8 operator, and they round ties in three ways. A fully
# connected layer that makes -0.5 and 0.5 gives 0 and 0 by default, and -1 and 1 with the reference kernels; QUANTIZE
# of 0.5, 1.5, 2.5 gives 0, 2, 2 and 1, 2, 3. LiteRT's text of 8-bit quantization allows that hardware is not bit-exact;
# these are kernels of one package on one CPU. The built-in QUANTIZE, neither default nor reference, even rounds one
# number in two ways, by its place: the vector loop to even, the last elements away from zero.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 flatbuffers==25.12.19 \
  ai-edge-litert==2.3.0
"$work/venv/bin/python" -W ignore - <<'PY'
import sys
from importlib.metadata import version

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as S
from ai_edge_litert.interpreter import Interpreter, OpResolverType

print("ai-edge-litert", version("ai-edge-litert"))
VERSIONS = {"FULLY_CONNECTED": 4}
TYPES = {"float32": S.TensorType.FLOAT32, "int8": S.TensorType.INT8, "int32": S.TensorType.INT32}


def model(kind, options, tensors):
    """Return a .tflite file of one operator, whose last tensor is its result."""
    made, graph, operator = S.ModelT(), S.SubGraphT(), S.OperatorT()
    made.version, made.buffers, made.subgraphs = 3, [S.BufferT()], [graph]
    made.operatorCodes = [S.OperatorCodeT()]
    code = getattr(S.BuiltinOperator, kind)
    made.operatorCodes[0].builtinCode = code
    made.operatorCodes[0].deprecatedBuiltinCode = min(code, 127)
    made.operatorCodes[0].version = VERSIONS.get(kind, 1)
    graph.tensors, graph.operators = [], [operator]
    for name, shape, dtype, quantization, value in tensors:
        tensor = S.TensorT()
        tensor.name, tensor.shape, tensor.type, tensor.buffer = name, shape, TYPES[np.dtype(dtype).name], 0
        if quantization is not None:
            tensor.quantization = S.QuantizationParametersT()
            tensor.quantization.scale, tensor.quantization.zeroPoint = ([v] for v in quantization)
        if value is not None:
            buffer = S.BufferT()
            buffer.data = np.frombuffer(np.asarray(value, dtype).tobytes(), np.uint8)
            tensor.buffer = len(made.buffers)
            made.buffers.append(buffer)
        graph.tensors.append(tensor)
    last = len(tensors) - 1
    operator.opcodeIndex, operator.inputs, operator.outputs = 0, list(range(last)), [last]
    operator.builtinOptions = options
    operator.builtinOptionsType = getattr(S.BuiltinOptions, type(options).__name__[:-1])
    graph.inputs = [i for i in range(last) if tensors[i][4] is None]
    graph.outputs = [last]
    builder = flatbuffers.Builder()
    builder.Finish(made.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run(content, resolver, *arrays):
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver, num_threads=1)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).ravel().tolist()


RESOLVERS = {
    "default (XNNPACK)": OpResolverType.AUTO,
    "built-in": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "reference": OpResolverType.BUILTIN_REF,
}
layer = model("FULLY_CONNECTED", S.FullyConnectedOptionsT(), [
    ("x", [5, 1], np.int8, (0.5, 0), None), ("w", [1, 1], np.int8, (1.0, 0), [[1]]),
    ("b", [1], np.int32, (0.5, 0), [0]), ("y", [5, 1], np.int8, (1.0, 0), None),
])  # fmt: skip
quantize = model("QUANTIZE", S.QuantizeOptionsT(), [
    ("x", [1, 4], np.float32, None, None), ("y", [1, 4], np.int8, (1.0, 0), None),
])  # fmt: skip
halves = np.array([[-2], [-1], [0], [1], [2]], np.int8)
floats = np.array([[-0.5, 0.5, 1.5, 2.5]], np.float32)
many = np.full((1, 11), 2.5, np.float32)
by_place = model("QUANTIZE", S.QuantizeOptionsT(), [
    ("x", [1, 11], np.float32, None, None), ("y", [1, 11], np.int8, (1.0, 0), None),
])  # fmt: skip
print("layer:    real results", (halves.ravel() / 2).tolist(), " QUANTIZE: numbers", floats.ravel().tolist())
found = {}
for name, resolver in RESOLVERS.items():
    found[name] = run(layer, resolver, halves), run(quantize, resolver, floats)
    print(f"{name:18} layer {found[name][0]}  QUANTIZE {found[name][1]}", end="")
    print("  eleven times 2.5:", run(by_place, resolver, many))
if found["default (XNNPACK)"] != ([-1, 0, 0, 0, 1], [0, 0, 2, 2]):
    sys.exit("the default kernels round otherwise now")
if found["reference"] != ([-1, -1, 0, 1, 1], [-1, 1, 2, 3]):
    sys.exit("the reference kernels round otherwise now")
PY
