#!/usr/bin/env bash
# xgrammar in its default mode takes `required` for the properties that the schema also describes, and
# allows no others: of {"type": "object", "required": ["a"]} it generates {} alone, which is invalid, and
# refuses every object that is valid. The text of `required` says that all its names must be there.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  torch==2.13.0 xgrammar==0.2.9 jsonschema==4.26.0
"$work/venv/bin/python" - <<'PY'
import json
import sys
from importlib.metadata import version

import jsonschema
import xgrammar

print("xgrammar", version("xgrammar"), "jsonschema", version("jsonschema"))
END = 256
tokens = [bytes([b]) for b in range(256)] + [b"<end>"]
info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[END])
compiler = xgrammar.GrammarCompiler(info)


def accepts(schema, text, **options):
    grammar = compiler.compile_json_schema(json.dumps(schema), **options)
    matcher = xgrammar.GrammarMatcher(grammar)
    return all(matcher.accept_token(b) for b in (*text.encode(), END))


def valid(schema, text):
    return jsonschema.Draft202012Validator(schema).is_valid(json.loads(text))


cases = [
    ({"type": "object", "required": ["a"]}, "{}"),
    ({"type": "object", "required": ["a"]}, '{"a":1}'),
    ({"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}, '{"a":1}'),
    ({"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}, '{"a":1,"b":2}'),
]
for schema, text in cases:
    found = accepts(schema, text)
    print(json.dumps(schema), text, "valid:", valid(schema, text), "xgrammar:", found)
    if found == valid(schema, text):
        sys.exit("such a schema is followed now")
PY
