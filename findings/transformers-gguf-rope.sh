#!/usr/bin/env bash
# A .gguf file of Gemma 3 states the scaling of RoPE of its layers without a window (linear, a
# factor of 8 in the models of 4B parameters and more), and Gemma 2's the bounds of its logits.
# transformers' reading of the files has no such keys: the defaults of its config count, without a
# word. So such a model's positions are off by a factor of 8 in each sixth layer.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 torch==2.13.0 \
  transformers==5.24.0 gguf==0.19.0 accelerate==1.15.0
cd "$work"
"$work/venv/bin/python" - 2>/dev/null <<'PY'
import sys
from importlib.metadata import version

import gguf
import transformers

print("transformers", transformers.__version__, "gguf", version("gguf"))


def config(arch, write):
    w = gguf.GGUFWriter(f"{arch}.gguf", arch)
    w.add_context_length(64)
    w.add_embedding_length(64)
    w.add_block_count(6)
    w.add_feed_forward_length(64)
    w.add_head_count(4)
    w.add_head_count_kv(1)
    w.add_key_length(16)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_token_list(["a", "b"])
    write(w)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return transformers.AutoConfig.from_pretrained(".", gguf_file=f"{arch}.gguf")


def scaled(w):
    w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    w.add_rope_scaling_factor(8.0)


def bounded(w):
    w.add_attn_logit_softcapping(20.0)


rope = config("gemma3", scaled).rope_parameters["full_attention"]
bound = config("gemma2", bounded).attn_logit_softcapping
print("the file: linear, 8.0; transformers:", rope["rope_type"], rope.get("factor"))
print("the file: 20.0; transformers:", bound)
if rope["rope_type"] == "linear" or bound == 20:
    sys.exit("the values are read now")
PY
