#!/usr/bin/env bash
# onnxruntime-genai's model builder leaves out parts of models that it takes, without a word: the scaling
# of RoPE of a Llama unless it is Llama 3's (linear and yarn, as DeepSeek Coder and long Vicunas have it),
# the sliding window of Mistral, and the mean of OLMo's norms, which it makes RMS norms. Logits are
# those of another model, by a tenth and more. Plain Llama is right to seven digits.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 torch==2.13.0 \
  transformers==5.24.0 tokenizers==0.23.3 onnx==1.23.2 onnx-ir==1.1.0 onnxruntime==1.32.0 \
  onnxruntime-genai==0.18.0
cat > "$work/build.py" <<'PY'
import contextlib
import io
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnxruntime
import torch
import transformers
from onnxruntime_genai.models.builder import create_model, parse_extra_options
from tokenizers import Tokenizer, models

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()
onnxruntime.set_default_logger_severity(4)
print("onnxruntime-genai", version("onnxruntime-genai"), "transformers", transformers.__version__)
TOKENS = np.random.default_rng(0).integers(2, 100, (1, 40))


def logits(folder):
    """Return the logits of the model that the builder makes of a folder, in f32."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        args = (None, str(folder), str(folder / "onnx"), "fp32", "cpu", str(folder / "cache"))
        create_model(*args, **parse_extra_options(*args, []))
    session = onnxruntime.InferenceSession(
        str(folder / "onnx/model.onnx"), providers=["CPUExecutionProvider"]
    )
    feeds = {"input_ids": TOKENS, "attention_mask": np.ones_like(TOKENS)}
    for port in session.get_inputs():
        if port.name.startswith("past"):
            feeds[port.name] = np.zeros((1, 2, 0, 16), np.float32)
    return session.run(["logits"], feeds)[0]


def difference(kind, **more):
    """Return how far the builder's logits are from those of transformers, by the largest one."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=100, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=96,
        bos_token_id=0, eos_token_id=1, pad_token_id=1, **more,
    )
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    for weights in model.parameters():
        weights.data *= 3 if weights.ndim == 2 else 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save_pretrained(folder)
        tokenizer = Tokenizer(models.WordLevel({f"t{i}": i for i in range(100)}, unk_token="t0"))
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, bos_token="t0", eos_token="t1"
        ).save_pretrained(folder)
        got = logits(folder)
    with torch.no_grad():
        want = model(torch.tensor(TOKENS)).logits.numpy()
    return float(np.abs(got - want).max() / np.abs(want).max())


def rope(kind, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, "factor": 4.0, **more}}


rows = {
    "Llama": difference("Llama"),
    "Llama, RoPE scaled as in Llama 3": difference("Llama", **rope(
        "llama3", low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)),
    "Llama, linear scaling": difference("Llama", **rope("linear")),
    "Llama, yarn": difference("Llama", **rope("yarn", original_max_position_embeddings=24)),
    "Mistral without a window": difference("Mistral", sliding_window=None),
    "Mistral, window of 8 tokens": difference("Mistral", sliding_window=8),
    "OLMo": difference("Olmo"),
}
for name, off in rows.items():
    print(f"{name}: off by {off:.1e}")
right = [rows["Llama"], rows["Llama, RoPE scaled as in Llama 3"], rows["Mistral without a window"]]
if max(right) > 1e-4 or min(off for off in rows.values() if off not in right) < 1e-2:
    sys.exit("the builder takes other parts now")
PY
"$work/venv/bin/python" "$work/build.py"
