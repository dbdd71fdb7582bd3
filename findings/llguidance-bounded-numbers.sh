#!/usr/bin/env bash
# A JSON number may be written 1e-5. llguidance generates it for a schema of type number, and with any bound, such as
# pydantic's gt=0, it allows no exponent: 1e-5, 1e3 and 2E6 are valid and refused. A model that starts to write 1e-5 is
# held to "1" and what may follow it, and so says another number. outlines-core allows the exponent. With
# a bound a schema's text should ask for decimals.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  llguidance==1.9.1 jsonschema==4.26.0 outlines-core==0.2.14
"$work/venv/bin/python" - <<'PY'
import json
import re
import sys
from importlib.metadata import version

import jsonschema
from llguidance import LLMatcher, LLTokenizer
from outlines_core.json_schema import build_regex_from_schema

print("llguidance", version("llguidance"), "outlines-core", version("outlines-core"))
tokenizer = LLTokenizer("byte")


def accepts(schema, text):
    """Return whether a model may generate the text under the schema in llguidance."""
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(schema))
    tokens = tokenizer.tokenize_str(text)
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


found = {}
for schema in ({"type": "number"}, {"type": "number", "exclusiveMinimum": 0}, {"type": "number", "maximum": 1e9}):
    outlines = re.compile(build_regex_from_schema(json.dumps(schema)))
    for text in ("0.00001", "1e-5", "1e3", "2.5E+6"):
        valid = jsonschema.Draft202012Validator(schema).is_valid(json.loads(text))
        found[len(schema), text] = accepts(schema, text)
        print(f"{schema} {text:8} valid: {valid}  llguidance: {found[len(schema), text]}", end="  ")
        print("outlines-core:", bool(outlines.fullmatch(text)))
        if not valid:
            sys.exit("the example is no valid one")
if any(allowed != (bounds == 1 or text == "0.00001") for (bounds, text), allowed in found.items()):
    sys.exit("exponents are allowed now, or refused without a bound too")
PY
