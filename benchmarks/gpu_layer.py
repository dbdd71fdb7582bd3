"""A Llama-7B-shaped layer on AMD GPUs: the bound of each kernel, beside those of Triton's.

    python benchmarks/gpu_layer.py [--arch gfx942] [--type f16] [--length 2048 1] [--triton] [-o F]

The layer: RMS norm, queries, keys and values of 32 heads of 128, rotary embedding, causal attention
(for one row, attention over a cache of 2,048), output, norm, SwiGLU of 11,008, residuals. Bounds
are computed from compiled code (`targets/kernel_time.py`); nothing is run. `--triton` compiles
Triton's kernels of the same matmuls and the same attention (`benchmarks/triton_bounds.py`), and
compares the sums. Matmuls that are one kernel in ours are two or three of Triton's, or one,
whichever is less.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.hardware.chips import CHIPS, LAUNCH_US
from mgx_mlir.targets.child import CompileOutput, shared_compiler
from mgx_mlir.targets.kernel_bounds import Launch, compile_with_bounds

WIDTH, HEADS, DEPTH, INNER, CACHE = 4096, 32, 128, 11008, 2048
KINDS = {
    "f16": (TensorProto.FLOAT16, np.float16),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
}
# dots of a layer by columns and depth; in Triton those of one line are one or several kernels
DOTS = (((3 * WIDTH, WIDTH), 3), ((WIDTH, WIDTH), 1), ((2 * INNER, WIDTH), 2), ((WIDTH, INNER), 1))
_PRODUCT = re.compile(r"_matmul|_matvec|_dot|_contract|_\d+x\d+x\d+_b?f16xb?f16xf32")


class _Taken(Exception):
    """The module that the compiler was to get."""

    def __init__(self, source: bytes) -> None:
        super().__init__("a module")
        self.source = source


class Layer:
    """The graph of a layer; weights repeat a million random numbers."""

    def __init__(self, kind: str) -> None:
        self.element, self.dtype = KINDS[kind]
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.drawn = np.random.default_rng(0).standard_normal(1 << 20)

    def op(self, name: str, *inputs: str, **attributes: Any) -> str:
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(name, list(inputs), [out], **attributes))
        return out

    def const(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        made = helper.make_tensor(name, kind, value.shape, value.tobytes(), raw=True)
        self.constants.append(made)
        return name

    def floats(self, value: Any) -> str:
        return self.const(np.asarray(value).astype(self.dtype))

    def ints(self, *values: int) -> str:
        return self.const(np.asarray(values, np.int64))

    def weight(self, rows: int, columns: int) -> str:
        turned = np.roll(self.drawn, len(self.constants))  # makes all weights different
        return self.floats(np.resize(turned / rows**0.5, (rows, columns)))

    def linear(self, x: str, rows: int, columns: int) -> str:
        return self.op("MatMul", x, self.weight(rows, columns))

    def norm(self, x: str) -> str:
        wide = self.op("Cast", x, to=TensorProto.FLOAT)
        mean = self.op("ReduceMean", self.op("Mul", wide, wide), self.ints(-1), keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.const(np.array(1e-6, np.float32))))
        y = self.op("Cast", self.op("Div", wide, root), to=self.element)
        return self.op("Mul", y, self.floats(np.ones(WIDTH)))

    def split(self, x: str) -> str:
        x = self.op("Reshape", x, self.ints(1, -1, HEADS, DEPTH))
        return self.op("Transpose", x, perm=[0, 2, 1, 3])

    def rope(self, x: str, places: np.ndarray) -> str:
        angle = places[:, None] * 10000.0 ** -(np.arange(0, DEPTH, 2) / DEPTH)
        angle = np.concatenate([angle, angle], -1)
        half = self.ints(DEPTH // 2)
        one = self.op("Slice", x, self.ints(0), half, self.ints(3))
        two = self.op("Slice", x, half, self.ints(DEPTH), self.ints(3))
        turned = self.op("Concat", self.op("Neg", two), one, axis=-1)
        kept = self.op("Mul", x, self.floats(np.cos(angle)))
        return self.op("Add", kept, self.op("Mul", turned, self.floats(np.sin(angle))))


def layer(length: int, kind: str) -> onnx.ModelProto:
    """Return the model: of one row the keys and values of a cache are inputs, and those of the row
    results."""
    g = Layer(kind)
    cached = length == 1
    inputs = {"x": [1, length, WIDTH]}
    y = g.norm("x")
    q, k, v = (g.split(g.linear(y, WIDTH, WIDTH)) for _ in range(3))
    places = np.arange(length) + (CACHE - 1 if cached else 0)
    q, k = g.rope(q, places), g.rope(k, places)
    results = {"k": k, "v": v} if cached else {}
    if cached:
        k, v = "keys", "values"
        inputs |= {n: [1, HEADS, CACHE, DEPTH] for n in (k, v)}
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.op("Mul", scores, g.floats(DEPTH**-0.5))
    if not cached:
        mask = np.where(np.tri(length, dtype=bool), 0, -np.inf)
        scores = g.op("Add", scores, g.floats(mask[None, None]))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(1, -1, WIDTH))
    x = g.op("Add", "x", g.linear(y, WIDTH, WIDTH))
    y = g.norm(x)
    gate, up = (g.linear(y, WIDTH, INNER) for _ in range(2))
    y = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)
    results["y"] = g.op("Add", x, g.linear(y, INNER, WIDTH))
    shapes = {"y": [1, length, WIDTH]}
    for name, value in results.items():
        g.nodes.append(helper.make_node("Identity", [value], [name]))

    def ports(found: dict[str, list[int]]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(n, g.element, s) for n, s in found.items()]

    outs = {n: shapes.get(n, [1, HEADS, 1, DEPTH]) for n in results}
    graph = helper.make_graph(g.nodes, "layer", ports(inputs), ports(outs), g.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def kernels(model: onnx.ModelProto, arch: str) -> Sequence[Launch]:
    """Return what a call launches."""
    compiler = shared_compiler()

    def run(source: bytes, flags: Sequence[str], **_: Any) -> CompileOutput:
        raise _Taken(source)

    compiler.run = run
    try:
        mgx_mlir.compile(model, target="gpu", arch=arch, cache=False)
    except _Taken as taken:
        source = taken.source
    else:
        raise SystemExit("the compiler was not called")
    finally:
        del compiler.run
    _, found = compile_with_bounds(source, arch)
    return found.get("main") or next(iter(found.values()))


def is_peer(one: Launch) -> bool:
    """Return whether a kernel has a peer in Triton: a matmul or attention, by its matrix
    instructions or its name."""
    name, time = one.kernel.name, one.time
    matrix = time is not None and time.busy.get("matrix", 0) > 0
    return matrix or "attention" in name or _PRODUCT.search(name) is not None


def by_triton(length: int, arch: str, kind: str, most: int) -> dict[str, float]:
    """Return the best bounds of Triton's kernels; several launches cost what launches cost."""
    from benchmarks.triton_bounds import ranked

    def best(spec: str) -> float:
        return ranked(spec, arch, kind, most)[0][0].us

    def dot(n: int, k: int) -> float:
        return best(f"row:{n},{k}" if length == 1 else f"dot:{length},{n},{k}")

    found: dict[str, float] = {}
    for (n, k), parts in DOTS:
        one = dot(n, k)
        if parts > 1:
            one = min(one, parts * dot(n // parts, k))
        found[f"{length} x {n} x {k}"] = one
    causal = f"attention:{HEADS},{length},{DEPTH},causal"
    found["attention"] = best(causal if length > 1 else f"decode:{HEADS},{CACHE},{DEPTH}")
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--arch", nargs="+", default=["gfx942"], choices=sorted(CHIPS))
    parser.add_argument("--type", nargs="+", default=["f16"], choices=sorted(KINDS))
    parser.add_argument("--length", nargs="+", type=int, default=[2048, 1])
    parser.add_argument("--triton", action="store_true")
    parser.add_argument("--most", type=int, default=24, help="configurations of each of Triton's")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(argv)
    warnings.filterwarnings("ignore")
    rows: list[dict[str, Any]] = []
    for length in options.length:
        for kind in options.type:
            model = layer(length, kind)
            for arch in options.arch:
                found = kernels(model, arch)
                print(f"{length} rows, {kind}, {arch}")
                total = peers = 0.0
                for one in found:
                    us = one.time.us if one.time else float("nan")
                    by, exact = (one.time.bound_by, one.time.exact) if one.time else ("", False)
                    total += us
                    peers += us if is_peer(one) else 0
                    note = "" if exact else "  trips not known"
                    mark = "*" if is_peer(one) else " "
                    print(
                        f"  {us:>9.2f} {mark} {by:<8}{one.workgroups!s:>7}  {one.kernel.name}{note}"
                    )
                launches = LAUNCH_US * (len(found) - 1)
                print(f"  {total:>9.2f}   of {len(found)} kernels, and {launches:.0f} of launches")
                print(f"  {peers:>9.2f} * matmuls and attention", flush=True)
                row: dict[str, Any] = {"length": length, "type": kind, "arch": arch,
                                       "all": total, "peers": peers}  # fmt: skip
                if options.triton:
                    row["triton"] = by_triton(length, arch, kind, options.most)
                    for name, us in row["triton"].items():
                        print(f"  {us:>9.2f}   Triton's {name}")
                    print(f"  {sum(row['triton'].values()):>9.2f}   Triton's", flush=True)
                rows.append(row)
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
