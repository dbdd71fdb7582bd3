#!/usr/bin/env bash
# mnnconvert, the command that MNN's wheel installs to convert a model, runs `pip install -U aliyun-log-python-sdk` when
# that package is missing, with the pip that comes first on PATH, which need not be its own environment's. With
# the package it sends a record of each conversion to its makers: options, sizes, and an identifier of the machine. A
# build in a container changes its Python by it, and waits for a network. The wheel's module _tools converts
# without either. Here a stand-in for pip notes what it is asked for, and installs nothing.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 MNN==3.6.1
mkdir "$work/bin"
cat >"$work/bin/pip" <<EOF2
#!/bin/sh
echo "pip \$*" >>"$work/asked"
exit 1
EOF2
chmod +x "$work/bin/pip"
cd "$work"
"$work/venv/bin/python" - <<'PY'

import onnx
from onnx import TensorProto, helper

ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy"]
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), "m.onnx")
PY
options="-f ONNX --modelFile m.onnx --bizCode x --MNNModel"
PATH="$work/bin:$PATH" "$work/venv/bin/mnnconvert" $options command.mnn >command.txt 2>&1
touch asked
echo "$("$work/venv/bin/pip" list 2>/dev/null | grep -i '^mnn ')"
echo "mnnconvert asked for: $(sort -u asked)"
grep -n 'mnn_logger.put_log\|_get_machine_id(os' "$work"/venv/lib/python3*/site-packages/MNN/tools/mnnconvert.py \
  "$work"/venv/lib/python3*/site-packages/MNN/tools/utils/log.py | sed 's/.*site-packages.//'
mv asked before
PATH="$work/bin:$PATH" "$work/venv/bin/python" -c \
  "import _tools, sys; _tools.mnnconvert(['', *sys.argv[1:]])" $options module.mnn >module.txt 2>&1
test -s command.mnn && test -s module.mnn || { echo "a conversion failed"; exit 1; }
test ! -e asked || { echo "the module asks for packages too now"; exit 1; }
echo "module _tools asked for: nothing"
grep -q '^pip install -U aliyun-log-python-sdk$' before || { echo "nothing is installed now"; exit 1; }
