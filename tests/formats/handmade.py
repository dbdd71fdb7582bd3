"""Files made by hand after MIGraphX's layout, with encoders that are not the project's own."""

from __future__ import annotations

import json
from typing import Any

import msgpack

Tree = Any


def shape(kind: str = "float", lens: Any = (2,), strides: Any = None) -> Tree:
    """A shape object, row-major unless `strides` says otherwise; {1}, {0} for lens ()."""
    dims = list(lens)
    if strides is None:
        strides = [0] if not dims else []
        step = 1
        for d in reversed(dims):
            strides.insert(0, step)
            step *= d
    return {"type": f"{kind}_type", "sub_shapes": [], "lens": dims or [1],
            "strides": list(strides), "dynamic_dimensions": [], "dyn_strides": []}  # fmt: skip


def ranges(kind: str, *dims: Any) -> Tree:
    """A shape with dims as (min, max, optimals...)."""
    listed = [{"range": {"min": d[0], "max": d[1]}, "optimals": list(d[2:]), "sym": None}
              for d in dims]  # fmt: skip
    return dynamic_shape(kind, listed)


def dynamic_shape(kind: str, dims: list[Tree]) -> Tree:
    """A shape with these objects as dims."""
    return {**shape(kind), "lens": [], "strides": [], "dynamic_dimensions": dims}


def several(*parts: Tree) -> Tree:
    return {**shape("tuple"), "sub_shapes": list(parts), "lens": [], "strides": []}


def node(output: str, name: str, made: Tree, inputs: Any = (), **operator: Any) -> Tree:
    return {"output": output, "name": name, "shape": made, "normalized": False,
            "operator": operator, "inputs": list(inputs)}  # fmt: skip


def parameter(name: str, made: Tree, prefix: str = "") -> Tree:
    return node(prefix + name, "@param", made, parameter=name)


def literal(output: str, made: Tree, data: bytes) -> Tree:
    found = node(output, "@literal", made)
    return {k: v for k, v in found.items() if k not in ("operator", "inputs")} | {
        "literal": {"shape": made, "data": data}, "operator": {}, "inputs": [],
    }  # fmt: skip


def calling(found: Tree, *modules: str) -> Tree:
    return {**found, "module_inputs": list(modules)}


def file_of(*nodes: Tree, **modules: list[Tree]) -> Tree:
    listed = {"main": list(nodes), **modules}
    return {"version": 8, "migraphx_version": "2.16.0", "targets": [], "contexts": [],
            "modules": {k: {"name": k, "nodes": v} for k, v in listed.items()}}  # fmt: skip


def as_msgpack(tree: Tree) -> bytes:
    """The rules of section msgpack of docs/formats.md, by the msgpack package."""

    def convert(v: Tree) -> Tree:
        if isinstance(v, dict):
            return {k: convert(x) for k, x in v.items()} or []
        if isinstance(v, bytes):
            return [v]
        return [convert(x) for x in v] if isinstance(v, list) else v

    return msgpack.packb(convert(tree))  # type: ignore[return-value]


def as_json(tree: Tree) -> bytes:
    """The rules of section JSON of docs/formats.md, by Python's json."""
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False,
                      default=lambda data: {"bytes": list(data)})  # fmt: skip
    return text.encode()


ENCODERS = {"msgpack": as_msgpack, "json": as_json}
