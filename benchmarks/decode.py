"""Times a step of decoding on the cpu target against onnxruntime: Llama-shaped, drawn weights.

    python benchmarks/decode.py                                  # 100M, f32, int8, int4; 1 thread
    python benchmarks/decode.py --size 1b --weights int4 --threads 2 --past 1024
    python benchmarks/decode.py --in-place --past 4095           # caches that both engines share

A step takes the embedding of one token and the keys and values of earlier tokens, and returns
logits and the extended cache. With `--in-place` the caches have a row for the new token and are
updated in place. Weights of few bits are MatMulNBits in blocks of 32, with accuracy_level 0, or 4
as `int4-rounded`: onnxruntime then rounds activations to 8 bits, which the cpu target does not.
Both engines run in one process, in blocks between which it rests; with one thread CPU time is
compared, else wall clock; a figure is the median over blocks. With one thread the sum of an array
in large pages is timed too: the last figure is a step's bytes (weights and caches) per second, as a
share of that sum's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.measure import write_json  # noqa: E402
from benchmarks.oracle import session  # noqa: E402
from mgx_mlir.debug.engine_times import time_engines  # noqa: E402

MS = "com.microsoft"
BLOCK = 32


@dataclass(frozen=True)
class Shape:
    """The extents of a model."""

    hidden: int
    layers: int
    heads: int
    shared: int  # heads of keys and values
    inner: int
    words: int = 32000

    @property
    def head(self) -> int:
        return self.hidden // self.heads


SHAPES = {
    "tiny": Shape(256, 2, 4, 2, 512, 1000),
    "100m": Shape(768, 12, 12, 4, 2048),
    "1b": Shape(2048, 22, 32, 4, 5632),
}
_SUMMED = 64 << 20  # numbers, of four bytes: more than any cache holds
BITS = {"f32": 0, "int8": 8, "int4": 4, "int4-rounded": 4}


class Decoder:
    """Builds the model of one step."""

    def __init__(self, shape: Shape, weights: str, past: int, *, in_place: bool = False) -> None:
        self.shape, self.past = shape, past
        self.rows = past + 1 if in_place else past  # rows of the input caches
        self.bits, self.level = BITS[weights], 4 if weights == "int4-rounded" else 0
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs = [self.info("x", [1, 1, shape.hidden])]
        self.outputs = [self.info("logits", [1, 1, shape.words])]
        self.random = np.random.default_rng(0)

    def info(self, name: str, dims: Sequence[int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

    def constant(self, name: str, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, inputs: Sequence[str], *outputs: str, **attributes: Any) -> str:
        domain = MS if kind in ("MatMulNBits", "GroupQueryAttention") else ""
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def product(self, x: str, depth: int, columns: int, name: str) -> str:
        """Multiply by a drawn matrix."""
        if not self.bits:
            w = self.random.standard_normal((depth, columns), np.float32)
            return self.node("MatMul", [x, self.constant(f"{name}.w", w * depth**-0.5)], name)
        dims = (columns, depth // BLOCK, BLOCK * self.bits // 8)
        w = self.constant(f"{name}.w", self.random.integers(0, 256, dims, np.uint8))
        spread = 0.29 * 2**self.bits  # standard deviation of uniform codes
        scales = self.random.uniform(0.5, 1.5, columns * dims[1]).astype(np.float32)
        s = self.constant(f"{name}.s", (scales * depth**-0.5 / spread).astype(np.float32))
        form = {"K": depth, "N": columns, "bits": self.bits, "block_size": BLOCK}
        return self.node("MatMulNBits", [x, w, s], name, accuracy_level=self.level, **form)

    def norm(self, x: str, name: str) -> str:
        scale = self.constant(f"{name}.s", np.ones(self.shape.hidden, np.float32))
        return self.node("SimplifiedLayerNormalization", [x, scale], name, epsilon=1e-5)

    def layer(self, x: str, n: str) -> str:
        s = self.shape
        y = self.norm(x, f"{n}.n1")
        narrow = s.shared * s.head
        wide = (("q", s.hidden), ("k", narrow), ("v", narrow))
        qkv = [self.product(y, s.hidden, c, f"{n}.{part}") for part, c in wide]
        cache = [f"{n}.past_k", f"{n}.past_v"]
        grown = [f"{n}.present_k", f"{n}.present_v"]
        for name in cache:
            self.inputs.append(self.info(name, [1, s.shared, self.rows, s.head]))
        for name in grown:
            self.outputs.append(self.info(name, [1, s.shared, self.past + 1, s.head]))
        y = self.node(
            "GroupQueryAttention", [*qkv, *cache, "last", "total", "cos", "sin"], f"{n}.a", *grown,
            num_heads=s.heads, kv_num_heads=s.shared, do_rotary=1,
        )  # fmt: skip
        x = self.node("Add", [x, self.product(y, s.hidden, s.hidden, f"{n}.o")], f"{n}.r1")
        y = self.norm(x, f"{n}.n2")
        gate = self.product(y, s.hidden, s.inner, f"{n}.gate")
        gate = self.node("Mul", [gate, self.node("Sigmoid", [gate], f"{n}.sg")], f"{n}.g")
        up = self.product(y, s.hidden, s.inner, f"{n}.up")
        down = self.node("Mul", [gate, up], f"{n}.m")
        return self.node("Add", [x, self.product(down, s.inner, s.hidden, f"{n}.d")], f"{n}.r2")

    def build(self) -> onnx.ModelProto:
        s = self.shape
        self.constant("last", np.array([self.past], np.int32))
        self.constant("total", np.array(self.past + 1, np.int32))
        turns = np.outer(np.arange(self.past + 1), 1e4 ** -np.linspace(0, 1, s.head // 2))
        self.constant("cos", np.cos(turns).astype(np.float32))
        self.constant("sin", np.sin(turns).astype(np.float32))
        x = "x"
        for i in range(s.layers):
            x = self.layer(x, f"l{i}")
        y = self.product(self.norm(x, "norm"), s.hidden, s.words, "head")
        self.node("Identity", [y], "logits")
        graph = helper.make_graph(self.nodes, "step", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def bound(peer: Any, feeds: dict[str, np.ndarray], present: dict[str, str]) -> Any:
    """Return a binding of onnxruntime in which a cache is input and result in the same memory."""
    import onnxruntime  # the oracle, which readers of the models do not need

    binding = peer.io_binding()
    for name, array in feeds.items():
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        binding.bind_ortvalue_input(name, value)
        if name in present:
            binding.bind_ortvalue_output(present[name], value)
    binding.bind_output("logits")
    return binding


def measure(
    size: str, weights: str, threads: int, past: int, rounds: int | None, *, in_place: bool = False
) -> dict[str, Any]:
    """Return the figures of one model."""
    import mgx_mlir as migraphx

    shape = SHAPES[size]
    decoder = Decoder(shape, weights, past, in_place=in_place)
    data = decoder.build().SerializeToString()
    rng = np.random.default_rng(1)
    feeds = {
        i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim], np.float32)
        for i in decoder.inputs
    }
    program: Any = migraphx.compile(data, target="cpu", threads=threads)
    peer = session(data, threads)
    want = peer.run(None, feeds)
    present = {n: n.replace("past", "present") for n in feeds if "past" in n}
    calls = {"ort": lambda: peer.run(None, feeds), "mgx": lambda: program.run(feeds)}
    if in_place:
        binding, out = bound(peer, feeds, present), {p: feeds[n] for n, p in present.items()}
        calls = {
            "ort": lambda: peer.run_with_iobinding(binding),
            "mgx": lambda: program.run(feeds, out=out),
        }
    array = np.ones(_SUMMED, np.float32)
    if threads == 1:
        calls["sum"] = lambda: array.sum()
    got = calls["mgx"]()
    error = max(
        float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(want, got, strict=True)
    )
    clock = "cpu" if threads == 1 else "wall"
    times = time_engines(calls, clock=clock, rounds=rounds, block=0.3)
    read = sum(a.nbytes for a in program.params.values()) + sum(feeds[n].nbytes for n in present)
    part = None
    if threads == 1:
        part = times.ratio("sum", "mgx").value * read / array.nbytes
    ratio = times.ratio("mgx", "ort")
    return {
        "size": size, "weights": weights, "threads": threads, "past": past, "in_place": in_place,
        "onnxruntime_tokens_s": 1 / times.seconds("ort"), "tokens_s": 1 / times.seconds("mgx"),
        "ratio": ratio.value, "low": ratio.low, "high": ratio.high, "too_busy": times.too_busy,
        "error": error, "valid_rounds": len(times.rounds), "bytes": len(data), "read": read,
        "of_bandwidth": part,
    }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--size", choices=SHAPES, default="100m")
    parser.add_argument("--weights", nargs="*", choices=BITS, default=list(BITS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--past", type=int, default=255, help="tokens in the cache")
    parser.add_argument("--in-place", action="store_true", help="one memory for past and present")
    parser.add_argument("--rounds", type=int, help="default: until the ratios are known")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    for weights in given.weights:
        row = measure(
            given.size, weights, given.threads, given.past, given.rounds, in_place=given.in_place
        )
        rows.append(row)
        part = row["of_bandwidth"]
        told = "" if part is None else f", {part:.2f} of the bandwidth"
        print(
            f"{row['size']} {weights:12} {row['threads']} threads: {row['tokens_s']:8.1f} tokens/s,"
            f" onnxruntime {row['onnxruntime_tokens_s']:8.1f}, time {row['ratio']:.2f} of its"
            f" ({row['low']:.2f} to {row['high']:.2f}), error {row['error']:.1e}{told}",
            flush=True,
        )
    if given.json:
        write_json(given.json, rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
