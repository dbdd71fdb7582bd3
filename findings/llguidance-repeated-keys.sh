#!/usr/bin/env bash
# An object of JSON with a key twice has one property, for Python, JavaScript and nearly every reader, which keep the
# last. llguidance counts the pairs it lets through: {"a":1,"a":2} has the two properties that minProperties: 2 asks
# for, and is one too many for maxProperties: 1. Keys that the schema names are allowed once, others as often as a model
# likes. Each text passes the grammar, and fails the validator behind it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  llguidance==1.9.1 jsonschema==4.26.0
"$work/venv/bin/python" - <<'PY'
import json
import sys
from importlib.metadata import version

import jsonschema
import llguidance
from llguidance import LLMatcher, LLTokenizer

print("llguidance", version("llguidance"), "jsonschema", version("jsonschema"))


class Bytes:
    """A vocabulary of 256 bytes and an end."""

    eos_token_id, bos_token_id, special_token_ids = 256, None, [256]
    tokens = [bytes([b]) for b in range(256)] + [b"<end>"]

    def __call__(self, text):
        return list(text if isinstance(text, bytes) else text.encode())


tokenizer = LLTokenizer(llguidance.TokenizerWrapper(Bytes()))


def accepts(schema, text):
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(json.dumps(schema)))
    if matcher.is_error():
        sys.exit(matcher.get_error())
    return matcher.try_consume_tokens(list(text.encode())) == len(text) and matcher.is_accepting()


numbers = {"type": "object", "additionalProperties": {"type": "integer"}}
cases = [
    (numbers | {"minProperties": 2}, '{"a":1,"b":2}', (True, True)),
    (numbers | {"minProperties": 2}, '{"a":1}', (False, False)),
    (numbers | {"minProperties": 2}, '{"a":1,"a":2}', (False, True)),
    (numbers | {"maxProperties": 1}, '{"a":1,"a":2}', (True, False)),
    (numbers | {"properties": {"a": {"type": "integer"}}}, '{"a":1,"a":2}', (True, False)),
]
changed = []
for schema, text, expected in cases:
    found = jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)), accepts(schema, text)
    more = {k: v for k, v in schema.items() if k not in ("type", "additionalProperties")}
    print(f"{more!s:46} {text:14} read as {json.loads(text)!s:18} valid: {found[0]!s:6} llguidance: {found[1]}")
    if found != expected:
        changed.append(text)
if changed:
    sys.exit(f"repeated keys are treated otherwise now: {changed}")
PY
