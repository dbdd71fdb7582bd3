#!/usr/bin/env bash
# LiteRT's own kernels know no infinity behind an operator with a fused activation, also when that is NONE: they clip
# to the largest finite number. 5 / 0 is 3.4e38, and the largest of two minus infinities is -3.4e38. With the default
# delegate (XNNPACK) both are infinite. Whether a mask of minus infinities holds depends on which kernels take an
# operator, and a file does not tell.
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
VERSIONS = {}
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
window = S.Pool2DOptionsT()
window.filterHeight, window.filterWidth, window.strideH, window.strideW = 1, 2, 1, 2
window.padding = S.Padding.VALID
single = (np.float32, None, None)
division = model("DIV", S.DivOptionsT(), [("x", [1, 3], *single), ("y", [1, 3], *single), ("z", [1, 3], *single)])
pool = model("MAX_POOL_2D", window, [("x", [1, 1, 4, 1], *single), ("y", [1, 1, 2, 1], *single)])
x, y = np.array([[5, -5, 6]], np.float32), np.array([[0, 0, 2]], np.float32)
masked = np.array([-np.inf, -np.inf, 1, -np.inf], np.float32).reshape(1, 1, 4, 1)
print("5 / 0, -5 / 0, 6 / 2, and the largest of windows (-inf, -inf) and (1, -inf)")
found = {}
for name, resolver in RESOLVERS.items():
    found[name] = run(division, resolver, x, y) + run(pool, resolver, masked)
    print(f"{name:18}", *found[name])
most = float(np.finfo(np.float32).max)
if found["default (XNNPACK)"] != [np.inf, -np.inf, 3, -np.inf, 1]:
    sys.exit("the default kernels are others now")
if found["reference"] != [most, -most, 3, -most, 1]:
    sys.exit("LiteRT's own kernels have infinities now")
PY
