#!/usr/bin/env bash
# IREE's way from ONNX takes LSTM and GRU and leaves out a part of them without a word: sequence_lens, by which the last
# state of a short sequence is that behind its padding, and what belongs to an activation's name: LeakyRelu of 0.3 is
# Relu. HardSigmoid in a GRU, Keras's old default, is Relu too, and states grow to 38. Plain nodes are right; clip and
# input_forget are refused.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import iree.compiler as compiler
import iree.runtime as runtime
import numpy as np
import onnx
import onnxruntime
from iree.compiler import ir
from iree.compiler.extras import onnx_importer
from onnx import helper, numpy_helper

print("iree", version("iree-base-compiler"), "onnxruntime", onnxruntime.__version__)


def run(op, lengths=None, engine="iree", **attributes):
    """Return the last state of two sequences of four steps."""
    gates = {"LSTM": 4, "GRU": 3}[op]
    random = np.random.default_rng(0)
    x, w, r = (random.standard_normal(s).astype(np.float32) for s in ((4, 2, 3), (1, gates * 5, 3), (1, gates * 5, 5)))
    constants, names = {"w": w, "r": r}, ["x", "w", "r"]
    if lengths is not None:
        constants["n"], names = np.array(lengths, np.int32), [*names, "", "n"]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y", "h"], hidden_size=5, **attributes)], "g",
        [helper.make_tensor_value_info("x", 1, x.shape)], [helper.make_tensor_value_info("h", 1, [1, 2, 5])],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model)
    if engine == "onnxruntime":
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, {"x": x})[0]
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(model))
    module = info.create_module(context=ir.Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    flags = ["--iree-llvmcpu-target-cpu=generic"]
    code = compiler.compile_str(str(module), input_type="onnx", target_backends=["llvm-cpu"], extra_args=flags)
    context = runtime.SystemContext(config=runtime.Config("local-sync"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
    return np.asarray(context.modules.module["g"](x))


def near(a, b):
    return a.shape == b.shape and np.allclose(a, b, atol=1e-4)


leaky = {"activations": ["Sigmoid", "LeakyRelu", "Tanh"], "activation_alpha": [0.3]}
for op, title, more, taken_for in (
    ("LSTM", "plain", {}, {}),
    ("LSTM", "sequence_lens 2, 4", {"lengths": [2, 4]}, {}),
    ("LSTM", "LeakyRelu of 0.3", leaky, {"activations": ["Sigmoid", "Relu", "Tanh"]}),
    ("GRU", "HardSigmoid", {"activations": ["HardSigmoid", "Tanh"]}, {"activations": ["Relu", "Tanh"]}),
):
    right, found = run(op, engine="onnxruntime", **more), run(op, **more)
    other = run(op, engine="onnxruntime", **taken_for)
    word = "right" if near(found, right) else "taken for the plain one" if near(found, other) else "another"
    print(f"{op:4} {title:18} onnxruntime {right.ravel()[:3].round(3)} IREE {found.ravel()[:3].round(3)} {word}")
    if word != ("right" if title == "plain" else "taken for the plain one"):
        sys.exit("treated otherwise now")
PY
