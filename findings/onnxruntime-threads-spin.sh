#!/usr/bin/env bash
# onnxruntime's pool threads wait in a loop for the next run. After session.run returns they keep
# their cores busy for milliseconds, on the clock of the process that called it. Whatever the process
# does next competes with them: two engines that are timed call by call in one process are not
# compared, one of them also carries the other's waiting. session.intra_op.allow_spinning=0 ends it.
# The output has milliseconds of CPU time that the process used while its only Python thread slept.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

weights = numpy_helper.from_array(np.ones((512, 512), np.float32), "w")
ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [512, 512]) for n in ("x", "y")]
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weights]
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
x = np.ones((512, 512), np.float32)


def used_asleep(spinning, seconds=0.05):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.add_session_config_entry("session.intra_op.allow_spinning", spinning)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found = []
    for _ in range(5):
        session.run(None, {"x": x})
        start = time.process_time()
        time.sleep(seconds)
        found.append((time.process_time() - start) * 1e3)
    return sorted(found)[2]


print("onnxruntime", onnxruntime.__version__)
default, asleep = used_asleep("1"), used_asleep("0")
print(f"allow_spinning=1 (the default): {default:6.2f} ms of CPU in 50 ms of sleep")
print(f"allow_spinning=0              : {asleep:6.2f} ms")
if default < 2 or asleep > 1:
    sys.exit("the threads do not spin any more")
PY
