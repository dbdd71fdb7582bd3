#!/usr/bin/env bash
# openvino-tokenizers makes an OpenVINO model of a Hugging Face tokenizer, as openvino-genai runs it. Its pre-tokenizers
# cut other pieces than the library's: Split with merged_with_next loses a separator that follows another ("a!!b" comes
# back as "a!b"), WhitespaceSplit cuts at punctuation too, so that a word "dog." is never found, and Metaspace drops all
# but one of several spaces in a row, as code is indented. No error, and other tokens.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  openvino==2026.4.1 openvino-tokenizers==2026.4.1.0 transformers==5.24.0 tokenizers==0.23.3
"$work/venv/bin/python" - 2>/dev/null <<'PY'
import sys
from importlib.metadata import version

import openvino
from openvino_tokenizers import convert_tokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

names = ("openvino", "openvino-tokenizers", "transformers", "tokenizers")
print(*(f"{p} {version(p)}" for p in names))


def run(model, pre_tokenizer, decoder, text):
    """Return the tokens of a text by the library and by the converted model."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoder
    tokenizer.add_special_tokens(["<pad>"])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>")
    converted = openvino.compile_model(convert_tokenizer(fast), "CPU")
    ids = fast(text)["input_ids"], converted([text])["input_ids"][0].tolist()
    return tuple([tokenizer.id_to_token(i) for i in row] for row in ids)


alphabet = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
letters = models.BPE(alphabet | {"zz": len(alphabet)}, [("z", "z")])
byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
words = models.WordPiece(
    {w: i for i, w in enumerate(["[UNK]", "dog.", "dog", ".", "it's", "it", "'", "s"])}, unk_token="[UNK]"
)
spaces = models.Unigram([("<unk>", 0.0), ("▁", -1.0), ("▁a", -1.0), ("▁b", -1.0)], 0, False)
merging = pre_tokenizers.Sequence([pre_tokenizers.Split("!", "merged_with_next"), byte_level])
cases = {
    "Split, merged_with_next": (
        run(letters, merging, decoders.ByteLevel(), "a!!b"), ["a", "!", "!", "b"], ["a", "!", "b"]
    ),
    "WhitespaceSplit": (
        run(words, pre_tokenizers.WhitespaceSplit(), decoders.WordPiece(), "dog. it's"),
        ["dog.", "it's"], ["dog", ".", "it", "'", "s"],
    ),
    "Metaspace": (
        run(spaces, pre_tokenizers.Metaspace(), decoders.Metaspace(), "a   b"),
        ["▁a", "▁", "▁", "▁b"], ["▁a", "▁b"],
    ),
    "Metaspace, one space": (
        run(spaces, pre_tokenizers.Metaspace(), decoders.Metaspace(), "a b"), ["▁a", "▁b"], ["▁a", "▁b"]
    ),
}
changed = []
for name, (found, library, openvinos) in cases.items():
    print(f"{name:24} tokenizers {found[0]}  openvino-tokenizers {found[1]}")
    if found != (library, openvinos):
        changed.append(name)
if changed:
    sys.exit(f"cut otherwise now: {changed}")
PY
