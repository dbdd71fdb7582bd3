"""Lists to which a Loop's body appends one element: read as scan outputs."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from mgx_mlir.frontends.onnx.graph import readers


def appended(body: onnx.GraphProto, states: Sequence[int]) -> dict[int, str]:
    """Return the carried lists, of `states`, to which the body only appends.

    Each comes with the name of the appended value.
    """
    found: dict[int, str] = {}
    for i in states:
        name, result = body.input[2 + i].name, body.output[1 + i].name
        read_by = readers(body.node, name)
        if len(read_by) != 1 or read_by[0].op_type != "SequenceInsert":
            continue
        insert = read_by[0]
        at_end = len(insert.input) == 2 or not insert.input[2]
        if insert.input[0] != name or insert.input[1] == name or not at_end:
            continue
        given = insert.output[0]
        while given != result:
            after = readers(body.node, given)
            if len(after) != 1 or after[0].op_type != "Identity":
                break
            given = after[0].output[0]
        if given == result and not readers(body.node, result):
            found[i] = insert.input[1]
    return found


def without(body: onnx.GraphProto, lists: dict[int, str]) -> onnx.GraphProto:
    """Return the body with the appended values as additional scan outputs."""
    made = onnx.GraphProto()
    made.CopyFrom(body)
    names = {body.input[2 + i].name for i in lists}
    gone = set(names)
    del made.node[:]
    for node in body.node:  # the insert, and identities after it
        if node.input and node.input[0] in gone:
            gone.add(node.output[0])
        else:
            made.node.append(node)
    del made.input[:], made.output[:]
    made.input.extend(v for v in body.input if v.name not in names)
    made.output.extend(v for i, v in enumerate(body.output) if i - 1 not in lists)
    made.output.extend(onnx.ValueInfoProto(name=name) for name in lists.values())
    return made
