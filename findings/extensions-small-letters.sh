#!/usr/bin/env bash
# onnxruntime-extensions puts a tokenizer into a model. Its StringLower, and BasicTokenizer with do_lower_case, know
# small letters of western Latin and of a part of the others: of Greek a few, of Cyrillic А to Я without Ё and Ї, of
# Polish, Czech and Turkish none. StringUpper knows ASCII alone. ÉTÉ, the first test, is right; ŁÓDŹ becomes ŁóDŹ,
# which no vocabulary of small letters holds.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0 onnxruntime_extensions==0.15.2
"$work/venv/bin/python" - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
import onnxruntime_extensions
from onnx import TensorProto, helper

print("onnxruntime_extensions", onnxruntime_extensions.__version__, "onnxruntime", onnxruntime.__version__)
DOMAIN = "ai.onnx.contrib"


def run(kind, texts, **attributes):
    """Return the texts that an operator of strings makes."""
    graph = helper.make_graph(
        [helper.make_node(kind, ["x"], ["y"], domain=DOMAIN, **attributes)], "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [len(texts)])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
    text, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(text, options, providers=providers)
    return session.run(None, {"x": np.array(texts, object)})[0].tolist()


words = ["ÉTÉ", "МИР", "ŁÓDŹ", "ČAPEK", "ĞÜL", "ΓΗ", "ЁЖ", "ЇЖА"]
lower, upper = run("StringLower", words), run("StringUpper", [word.lower() for word in words])
print("words          ", *words, "\nPython's lower ", *(word.lower() for word in words), "\nStringLower    ", *lower)
print("StringUpper    ", *upper)
print("BasicTokenizer ", *run("BasicTokenizer", ["ŁÓDŹ ÉTÉ"], do_lower_case=1))
letters = [chr(i) for i in range(0x80, 0x530) if chr(i).lower() != chr(i) and len(chr(i).lower()) == 1]
left = [letter for letter, small in zip(letters, run("StringLower", letters), strict=True) if small == letter]
print(f"of {len(letters)} capitals of Latin, Greek and Cyrillic beyond ASCII {len(left)} stay")
small = [ours == word.lower() for ours, word in zip(lower, words, strict=True)]
if small != [True, True] + [False] * 6:
    sys.exit("other letters are made small now")
if upper[0] != "éTé" or len(left) < 300:
    sys.exit("more letters are known now")
PY
