#!/usr/bin/env bash
# xgrammar follows `minimum`, `minLength`, `maxItems` and others only beside `type`. Alone, beside `$ref`
# (allowed since draft 2019-09, and what pydantic writes), `anyOf` or `enum` they are dropped without a word,
# and 3 is generated where at least 5 was asked for. Of `allOf` with two members it follows neither. In
# JSON Schema each keyword holds by itself.
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


integer = {"type": "integer"}


def part(name):
    return {"type": "object", "properties": {name: integer}, "required": [name]}


cases = [
    ({"minimum": 5}, "3"),
    ({"minLength": 3}, '"a"'),
    ({"maxItems": 1}, "[1,2]"),
    ({"$defs": {"n": integer}, "$ref": "#/$defs/n", "minimum": 5}, "3"),
    ({"anyOf": [integer], "minimum": 5}, "3"),
    ({"type": "string", "enum": ["a", "b"], "pattern": "^b$"}, '"a"'),
    ({"allOf": [part("a"), part("b")]}, '{"a":1}'),
    ({"type": "array", "items": integer, "uniqueItems": True}, "[1,1]"),
]
for schema, text in cases:
    found = accepts(schema, text)
    print(json.dumps(schema), text, "valid:", valid(schema, text), "xgrammar:", found)
    if valid(schema, text) or not found:
        sys.exit("such a keyword is followed now")
control = {"type": "integer", "minimum": 5}
print(json.dumps(control), "3", "valid:", valid(control, "3"), "xgrammar:", accepts(control, "3"))
if accepts(control, "3"):
    sys.exit("minimum is no longer followed beside type either")
PY
