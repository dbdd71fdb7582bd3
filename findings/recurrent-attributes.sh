#!/usr/bin/env bash
# Attributes of LSTM and GRU in ONNX that readers leave out without a word. input_forget=1 couples the gates of an LSTM
# (one is 1 minus the other): OpenVINO, tract and onnx.reference compute it without. `clip` bounds what goes into
# activations, `activations` names them: tract and onnx.reference take neither, and onnx.reference runs padding too, as
# sequence_lens are not read. All give the right shapes. onnxruntime follows each.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1 tract==0.23.9
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import openvino
import tract
from onnx import helper
from onnx.reference import ReferenceEvaluator

print(*(f"{p} {version(p)}" for p in ("onnx", "onnxruntime", "openvino", "tract")))
core = openvino.Core()


def run(op, lengths=None, **attributes):
    """Return the last states of each reader; None where it refuses the node."""
    gates = {"LSTM": 4, "GRU": 3}[op]
    random = np.random.default_rng(0)
    given = {n: random.standard_normal(dims).astype(np.float32)
             for n, dims in (("x", (4, 2, 3)), ("w", (1, gates * 5, 3)), ("r", (1, gates * 5, 5)))}
    names = list(given)
    if lengths is not None:
        given["n"], names = np.array(lengths, np.int32), [*names, "", "n"]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["", "h"], hidden_size=5, **attributes)], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
         for n, a in given.items()],
        [helper.make_tensor_value_info("h", 1, [1, 2, 5])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model)
    data = model.SerializeToString()

    def in_tract():
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            onnx.save(model, file.name)
            read = tract.onnx().load(file.name)
            for i, array in enumerate(given.values()):
                read.set_input_fact(i, ",".join([*map(str, array.shape), "i32" if array.ndim == 1 else "f32"]))
            return read.into_model().into_runnable().run(list(given.values()))[0].to_numpy()

    found = {}
    for name, call in (
        ("onnxruntime", lambda: onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
         .run(None, given)[0]),
        ("OpenVINO", lambda: core.compile_model(core.read_model(data), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
         (given)[0]),
        ("tract", in_tract),
        ("onnx.reference", lambda: ReferenceEvaluator(model).run(None, given)[0]),
    ):
        try:
            found[name] = call()
        except Exception:
            found[name] = None
    return found


plain = {op: run(op)["onnxruntime"] for op in ("LSTM", "GRU")}
changed = []
for title, op, more, leave_out in (
    ("LSTM, input_forget", "LSTM", {"input_forget": 1}, {"OpenVINO", "tract", "onnx.reference"}),
    ("LSTM, clip", "LSTM", {"clip": 0.3}, {"tract", "onnx.reference"}),
    ("GRU, activations", "GRU", {"activations": ["Sigmoid", "Relu"]}, {"tract", "onnx.reference"}),
    ("GRU, sequence_lens", "GRU", {"lengths": [2, 4]}, {"onnx.reference"}),
):
    found = run(op, **more)
    for name, state in found.items():
        if state is None:
            word = "refused"
        elif np.allclose(state, found["onnxruntime"], atol=1e-5):
            word = "followed"
        else:
            word = "left out" if np.allclose(state, plain[op], atol=1e-5) else "other"
        print(f"{title:20} {name:15} {word:9}", "" if state is None else state.ravel()[:3].round(4))
        if (word == "left out") != (name in leave_out):
            changed.append((title, name))
if changed:
    sys.exit(f"treated otherwise now: {changed}")
PY
