#!/usr/bin/env bash
# onnxruntime-extensions reads the tokenizer.json of a model for onnxruntime-genai, and leaves out parts of it:
# normalizers of a BPE (Lowercase, Strip, Replace) do nothing, add_prefix_space of ByteLevel neither, and a Split at a
# semicolon is taken for GPT-2's splits. No error: text is cut to other tokens than those that the model was trained on.
# A plain ByteLevel is right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnxruntime-extensions==0.15.2 onnxruntime==1.32.0 tokenizers==0.23.3
cd "$work"
"$work/venv/bin/python" - <<'PY'
import json
import os
import sys
from importlib.metadata import version

from onnxruntime_extensions.pp_api import Tokenizer as Extensions
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

print(*(f"{p} {version(p)}" for p in ("onnxruntime-extensions", "tokenizers")))
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
pairs = [("a", "b"), ("Ġ", "ab"), ("ab", ","), ("ab,", "ab")]
vocabulary = {piece: i for i, piece in enumerate([*alphabet, *("".join(p) for p in pairs)])}


def run(text, pre_tokenizer, normalizer=None):
    """Return the tokens of a text by tokenizers and by onnxruntime-extensions."""
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    os.makedirs("model", exist_ok=True)
    tokenizer.save("model/tokenizer.json")
    with open("model/tokenizer_config.json", "w") as file:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast"}, file)
    other = [int(i) for i in Extensions("model").tokenize(text)]
    return tokenizer.encode(text).tokens, [tokenizer.id_to_token(i) for i in other]


plain = pre_tokenizers.ByteLevel(add_prefix_space=False)
comma = pre_tokenizers.Sequence(
    [pre_tokenizers.Split(";", "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
)
cases = {
    "plain": (run("ab ab", plain), True),
    "Lowercase": (run("AB ab", plain, normalizers.Lowercase()), False),
    "Strip": (run(" ab ", plain, normalizers.Strip()), False),
    "Replace": (run("xb", plain, normalizers.Replace("x", "a")), False),
    "add_prefix_space": (run("ab ab", pre_tokenizers.ByteLevel(add_prefix_space=True)), False),
    "Split at a semicolon": (run("ab,ab", comma), False),
}
changed = []
for name, ((library, extensions), same) in cases.items():
    print(f"{name:21} tokenizers {library}  onnxruntime-extensions {extensions}")
    if (library == extensions) != same:
        changed.append(name)
if changed:
    sys.exit(f"read otherwise now: {changed}")
PY
