#!/usr/bin/env bash
# onnx.compose joins two models, and gives one of them a prefix so that their names do not meet. The prefix is not given
# to names that a branch of If or the body of a Loop takes from outside: they stay as they are, and mean the other
# model's tensor of that name. Detector and classifier that both have a `scale` become one model that checks,
# runs and multiplies by the wrong scale. Where the other model has no such name, the joined model is refused.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import compose, parser

print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
first = parser.parse_model(HEAD + """first (float[2] x) => (float[2] y) <float[1] scale = {10}> {
    y = Mul(x, scale)
}""")  # fmt: skip
BRANCHED = """second (float[2] a, bool flag) => (float[2] b) <float[1] NAME = {2}> {
    b = If (flag) <
        then_branch = yes () => (float[2] z) { z = Mul(a, NAME) },
        else_branch = no () => (float[2] z) { z = Neg(a) }
    >
}"""
PLAIN = "second (float[2] a, bool flag) => (float[2] b) <float[1] NAME = {2}> { b = Mul(a, NAME) }"


def run(text, name):
    """Return 1, 3 through first and then the second model, which has a constant of 2 by this name."""
    second = parser.parse_model(HEAD + text.replace("NAME", name))
    onnx.checker.check_model(second, full_check=True)
    model = compose.merge_models(first, second, io_map=[("y", "a")], prefix2="second_")
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"x": np.array([1, 3], np.float32), session.get_inputs()[1].name: np.array(True)}
    return session.run(None, feeds)[0].tolist()


found = {}
for title, text, name in (
    ("no branch, scale", PLAIN, "scale"),
    ("a branch, scale", BRANCHED, "scale"),
    ("a branch, factor", BRANCHED, "factor"),
):
    try:
        found[title] = run(text, name)
    except Exception as refused:
        found[title] = f"{type(refused).__name__}: {str(refused).splitlines()[0][:90]}"
    print(f"{title}: (1, 3) * 10 * 2 is {found[title]}")
if found["no branch, scale"] != [20, 60]:
    sys.exit("models without branches are joined otherwise now")
if found["a branch, scale"] == [20, 60]:
    sys.exit("names in branches have the prefix now")
PY
