"""Writes data/op_defs.json: operands, outputs and attributes as TensorFlow defines them.

Needs TensorFlow (`pip install tensorflow-cpu`), in an environment of its own, and the names of our
operators (`mgx-driver tf --list > names.txt`):

    python zoo/tf_cases/make_op_defs.py names.txt
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from tensorflow.python.framework import op_def_registry

TARGET = Path(__file__).resolve().parents[2] / "tests/frontends/tf/data/op_defs.json"


def default_of(a: Any) -> Any:
    """An attribute's default as JSON; "required" where it has none."""
    if not a.HasField("default_value"):
        return "required"
    kind = a.default_value.WhichOneof("value")
    value = getattr(a.default_value, kind)
    if kind == "s":
        return {"text": value.decode()}
    if kind == "list":
        return [x for field, values in value.ListFields() for x in values if field.name != "s"]
    return value if kind in ("i", "f", "b", "type") else {"other": kind}


def main(names: list[str]) -> None:
    found = {}
    for name in sorted(names):
        op = op_def_registry.get(name)
        many = any(a.number_attr or a.type_list_attr for a in op.input_arg)
        found[name] = {
            "inputs": None if many else len(op.input_arg),
            "outputs": [a.name for a in op.output_arg],
            "attributes": {a.name: [a.type, default_of(a)] for a in op.attr},
        }
    rows = [f"{json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in found.items()]
    TARGET.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    print(f"{len(found)} operators")


if __name__ == "__main__":
    main(Path(sys.argv[1]).read_text().split())
