"""Damages graphs at random, in their structure and in their bytes: input for tests of readers.

    python tests/frontends/tf/mutations.py SEED COUNT

reads COUNT damaged forms of the stored graphs and prints what is no MgxError, with the seed of it.
"""

from __future__ import annotations

import collections
import json
import random
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.core.errors import MgxError
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf_buffer

DATA = Path(__file__).resolve().parent / "data"
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    -2,
    7,
    1 << 31,
    (1 << 31) - 1,
    1 << 62,
    (1 << 63) - 1,
    -(1 << 63),
    1 << 40,
)
TYPES = (*range(26), 29, 30, 101, 103, 999, -1)
SMALL = 60  # nodes of a graph that is taken whole
LONGEST = 20  # seconds that reading may take

Mutation = Callable[[random.Random, Any, Any, Any], None]  # (r, graph, the nodes of a body, a node)


def stored_graphs() -> dict[str, Any]:
    """The stored graphs of operators and of control flow, by name."""
    found = {p.stem: schema.Graph.FromString(p.read_bytes()) for p in DATA.glob("ops/*.pb")}
    for path in DATA.glob("control/*.npz"):
        with np.load(path) as arrays:
            for form in json.loads(bytes(arrays["meta"])):
                found[f"{path.stem}_{form}"] = schema.Graph.FromString(bytes(arrays[form]))
    return dict(sorted(found.items()))


def damaged(r: random.Random, graph: Any) -> bytes:
    """A part of a graph with one to six mutations, and now and then damaged bytes."""
    made = _part(r, graph)
    for _ in range(r.choice((1, 1, 1, 2, 3, 6))):
        functions = [f.node_def for f in made.library.function if f.node_def]
        bodies = [b for b in (made.node, made.node, *functions) if b]
        if bodies:
            body = r.choice(bodies)
            r.choice(MUTATIONS)(r, made, body, r.choice(body))
    data = made.SerializeToString()
    return _bytes(r, data) if data and r.random() < 0.15 else data


def _part(r: random.Random, graph: Any) -> Any:
    """Return a few nodes of a large graph and their inputs; a small graph unchanged."""
    nodes = {n.name: n for n in graph.node}
    kept = set(nodes)
    if len(nodes) > SMALL:
        todo, kept = r.sample(sorted(nodes), 6), set()
        while todo:
            name = todo.pop()
            if name in nodes and name not in kept:
                kept.add(name)
                todo += [i.lstrip("^").split(":")[0] for i in nodes[name].input]
    out = schema.Graph()
    out.library.CopyFrom(graph.library)
    out.node.extend(n for n in graph.node if n.name in kept)
    return out


def _bytes(r: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(r.randrange(1, 5)):
        at = r.randrange(len(out)) if out else 0
        kind = r.randrange(4)
        if kind == 0 and out:
            out[at] ^= 1 << r.randrange(8)
        elif kind == 1:
            del out[at:]
        elif kind == 2:
            out[at:at] = b"\xff" * r.randrange(1, 11)  # a number that does not end
        else:
            del out[at : at + r.randrange(1, 30)]
    return bytes(out)


# ---- mutations -----------------------------------------------------------------------------------


def _operator(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    node.op = r.choice(body).op


def _input(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    ends = ("", ":0", ":1", ":2", ":-1", ":x", ":output:0", ":y:0", ":9" * 3, ":" + "9" * 30)
    text = r.choice(body).name + r.choice(ends)
    if node.input and r.random() < 0.6:
        node.input[r.randrange(len(node.input))] = text
    else:
        node.input.append(r.choice(("", "^")) + text)


def _inputs(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    if node.input:
        at = r.randrange(len(node.input))
        if r.random() < 0.6:
            del node.input[at]
        else:
            node.input[0], node.input[at] = node.input[at], node.input[0]


def _cycle(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    if node.input:
        node.input[0] = node.name


def _name(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    node.name = r.choice(("", "^", "a:b", "x" * 10000, "\u00e9", ":", r.choice(body).name))


def _node(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    if r.random() < 0.5:
        body.add().CopyFrom(node)
    else:
        del body[r.randrange(len(body))]


def _attributes(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    other = r.choice(body)
    if node.attr:
        key = r.choice(sorted(node.attr))
        if r.random() < 0.4 or not other.attr:
            del node.attr[key]
        else:
            node.attr[key].CopyFrom(other.attr[r.choice(sorted(other.attr))])


def _attribute(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    """Another value of the kind that an attribute has."""
    if not node.attr:
        return
    a = node.attr[r.choice(sorted(node.attr))]
    kind = a.WhichOneof("value")
    if kind == "i":
        a.i = r.choice(NUMBERS)
    elif kind == "f":
        a.f = r.choice((0.0, -1.0, float("nan"), float("inf"), 1e38, 1e-40))
    elif kind == "b":
        a.b = not a.b
    elif kind == "s":
        a.s = r.choice((b"", b"SAME", b"VALID", b"\xff\xfe", b"NCHW", b"EXPLICIT", b"x" * 1000))
    elif kind == "type":
        a.type = r.choice(TYPES)
    elif kind == "shape":
        _shape(r, a.shape)
    elif kind == "func":
        a.func.name = r.choice([f.signature.name for f in graph.library.function] or ["x"])
    elif kind == "list":
        for values, choices in ((a.list.i, NUMBERS), (a.list.type, TYPES)):
            if values:
                values[r.randrange(len(values))] = r.choice(choices)
        if a.list.i and r.random() < 0.3:
            a.list.i.append(r.choice(NUMBERS))


def _shape(r: random.Random, shape: Any) -> None:
    if r.random() < 0.15:
        shape.unknown_rank = True
    elif r.random() < 0.2:
        for _ in range(r.choice((1, 2, 10, 300))):
            shape.dim.add(size=r.choice((0, 1, 2)))
    elif shape.dim:
        r.choice(shape.dim).size = r.choice(NUMBERS)
    else:
        shape.dim.add(size=r.choice(NUMBERS))


def _types(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    for a in node.attr.values():
        if a.WhichOneof("value") == "type":
            a.type = r.choice(TYPES)


def _unbound(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    if node.attr:
        key = r.choice(sorted(node.attr))
        node.attr[key].placeholder = r.choice(("T", key))
    node.attr["strange"].i = 3


def _tensor(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    """A constant of another type, of other dims, or with other bytes."""
    found = [n.attr["value"].tensor for n in body if n.op == "Const" and "value" in n.attr]
    if not found:
        return
    t = r.choice(found)
    kind = r.randrange(5)
    if kind == 0:
        t.dtype = r.choice(TYPES)
    elif kind == 1:
        t.tensor_content = t.tensor_content[: r.randrange(len(t.tensor_content) + 1)]
    elif kind == 2:
        _shape(r, t.tensor_shape)
    elif kind == 3:
        t.float_val.extend([1.0] * r.randrange(1, 5))
    elif t.dtype == 3 and t.tensor_content and len(t.tensor_content) % 4 == 0:
        values = np.frombuffer(t.tensor_content, np.int32).copy()
        values[r.randrange(len(values))] = r.choice((0, -1, 1, 2**31 - 1, -(2**31), 1000, 7))
        t.tensor_content = values.tobytes()
    elif t.int_val:
        t.int_val[0] = r.choice((0, -1, 1, 2**31 - 1, -(2**31), 1000, 7))


def _placeholder(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    for n in body:
        if n.op == "Placeholder":
            if r.random() < 0.3:
                n.attr["dtype"].type = r.choice(TYPES)
            else:
                _shape(r, n.attr["shape"].shape)


def _function(r: random.Random, graph: Any, body: Any, node: Any) -> None:
    """Functions of other names, arguments or results; calls of each other."""
    if not graph.library.function:
        return
    f, other = r.choice(graph.library.function), r.choice(graph.library.function)
    kind = r.randrange(6)
    if kind == 0:
        f.signature.name = other.signature.name
    elif kind == 1 and f.ret and f.node_def:
        f.ret[r.choice(sorted(f.ret))] = r.choice(f.node_def).name + r.choice((":0", ":y:0", ""))
    elif kind == 2 and f.ret:
        del f.ret[r.choice(sorted(f.ret))]
    elif kind == 3:
        f.signature.input_arg.add(name="extra", type=1)
    elif kind == 4 and f.signature.output_arg:
        del f.signature.output_arg[-1]
    else:
        for n in f.node_def:
            for a in n.attr.values():
                if a.WhichOneof("value") == "func":
                    a.func.name = other.signature.name


MUTATIONS: tuple[Mutation, ...] = (
    _operator, _input, _inputs, _cycle, _name, _node, _attributes, _attribute, _attribute, _types,
    _unbound, _tensor, _tensor, _placeholder, _function,
)  # fmt: skip


# ---- reading them --------------------------------------------------------------------------------


class Hang(BaseException):
    """Reading took longer than LONGEST."""


def _ring(*_: Any) -> None:
    raise Hang


def failures(seeds: Iterable[int]) -> Iterator[tuple[int, str]]:
    """(seed, traceback) of every damaged graph that is neither read nor refused in time."""
    graphs = stored_graphs()
    before = signal.signal(signal.SIGALRM, _ring)
    try:
        for seed in seeds:
            r = random.Random(seed)
            data = damaged(r, graphs[r.choice(list(graphs))])
            options = TfOptions(
                batch_size=r.choice((1, None, 3)),
                is_nhwc=r.random() < 0.8,
                migraphx_layout=r.random() < 0.1,
                skip_unknown_operators=r.random() < 0.2,
            )
            signal.alarm(LONGEST)
            try:
                parse_tf_buffer(data, options)
            except MgxError:
                pass
            except (Exception, Hang):
                yield seed, traceback.format_exc()
            finally:
                signal.alarm(0)
    finally:
        signal.signal(signal.SIGALRM, before)


def main(first: int, count: int) -> int:
    found: collections.Counter[str] = collections.Counter()
    for seed, text in failures(range(first, first + count)):
        lines = text.strip().splitlines()
        place = [line.strip() for line in lines if "mgx_mlir" in line or "/passes" in line][-1]
        found[place] += 1
        if found[place] == 1:
            print(f"seed {seed}: {lines[-1]}\n    {place}", flush=True)
    print(f"{count} graphs, {sum(found.values())} failures")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
