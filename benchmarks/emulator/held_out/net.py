"""The form of a held-out model: a graph whose named extents are fixed, or dynamic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper

from zoo.made import FLOAT, INT64, Dims, Graph

OPSET = 21
I32 = TensorProto.INT32
DOMAINS = {"": OPSET, "com.microsoft": 1}
# configurations of onnxruntime: default; 8-bit sums that do not saturate; without optimisations;
# f32 in place of 16-bit floats
Oracle = Literal["default", "exact", "plain", "wide"]
Fill = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


@dataclass(frozen=True)
class Held:
    """A model's builder, the sizes that it is run at, and what is to be known of its result."""

    build: Callable[[Net], None]
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    second: dict[str, int] = field(default_factory=dict[str, int])  # another call with dynamic dims
    oracle: Oracle = "default"
    limit: float = 1e-5  # limit of the error by norm, for f32
    narrow: bool = True  # f16 makes sense of it: nothing that jumps hangs on a last bit

    def net(self, *, is_dynamic: bool = False) -> Net:
        made = Net(self.sizes, is_dynamic=is_dynamic)
        self.build(made)
        return made


class Net(Graph):
    """A graph that knows how its inputs are drawn."""

    def __init__(self, sizes: dict[str, int], *, is_dynamic: bool, prefix: str = "") -> None:
        super().__init__(7)
        self.sizes, self.is_dynamic, self.prefix = sizes, is_dynamic, prefix
        self.fills: dict[str, Fill] = {}

    def size(self, name: str) -> int | str:
        """Return a named extent: its number, or its name where it is dynamic."""
        return name if self.is_dynamic else self.sizes[name]

    def floats(self, name: str, *dims: int | str) -> str:
        self.fills[name] = lambda rng, shape: rng.standard_normal(shape).astype(np.float32)
        return self.input(name, self._dims(dims))

    def integers(self, name: str, below: int, *dims: int | str, kind: int = INT64) -> str:
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        self.fills[name] = lambda rng, shape: rng.integers(0, below, shape).astype(dtype)
        return self.input(name, self._dims(dims), kind)

    def filled(self, name: str, fill: Fill, *dims: int | str, kind: int = FLOAT) -> str:
        self.fills[name] = fill
        return self.input(name, self._dims(dims), kind)

    def result(self, value: str, rank: int, kind: int = FLOAT) -> None:
        number = len(self.outputs)
        self.output(value, f"y{number}", [f"y{number}_{i}" for i in range(rank)], kind)

    def const(self, array: Any, dtype: Any = np.float32) -> str:
        name = super().const(array, dtype)
        self.weights[-1].name = self.prefix + name
        return self.prefix + name

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        super().op(kind, *inputs, outputs=outputs, **attributes)
        made = self.nodes[-1].output
        made[:] = [self.prefix + name for name in made]
        return made[0] if outputs == 1 else list(made)

    def typed(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node of com.microsoft."""
        made = self.op(kind, *inputs, outputs=outputs, **attributes)
        self.nodes[-1].domain = "com.microsoft"
        return made

    def act(self, x: str, kind: str) -> str:
        if kind == "HardSwish":
            gate = self.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)
            return self.op("Mul", x, gate)
        return self.silu(x) if kind == "Silu" else self.op(kind, x)

    def conv(self, x: str, cin: int, cout: int, *kernel: int, **attributes: Any) -> str:
        """A convolution with a bias; `kernel` are its extents, borders keep the image's size."""
        group = attributes.get("group", 1)
        fan_in = cin // group * int(np.prod(kernel))
        dilations = attributes.get("dilations", [1] * len(kernel))
        pads = [d * (k // 2) for d, k in zip(dilations, kernel, strict=True)] * 2
        w = self.weight(cout, cin // group, *kernel, fan_in=fan_in)
        options = {"kernel_shape": list(kernel), "pads": pads, **attributes}
        return self.op("Conv", x, w, self.vector(cout), **options)

    def norm(self, x: str, width: int) -> str:
        scale, shift = self.vector(width, 0.5, 1.5), self.vector(width)
        return self.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    def attend(self, q: str, k: str, v: str, size: int, mask: str = "") -> str:
        """softmax(q k^T / sqrt(size) + mask) v of [batch, head, row, size], heads side by side."""
        s = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        s = self.op("Mul", s, self.const(size**-0.5))
        p = self.op("Softmax", self.op("Add", s, mask) if mask else s, axis=-1)
        y = self.op("Transpose", self.op("MatMul", p, v), perm=[0, 2, 1, 3])
        return self.op("Reshape", y, self.ints(0, 0, -1))

    def split_heads(self, x: str, heads: int, size: int) -> str:
        return self.heads(x, [0, 0, heads, size])

    def subgraph(self, body: Callable[[Net], None], name: str) -> onnx.GraphProto:
        """A graph for If, Loop or Scan, whose weights are its own."""
        inner = Net(self.sizes, is_dynamic=self.is_dynamic, prefix=f"{name}_")
        inner.rng = self.rng
        body(inner)
        return helper.make_graph(inner.nodes, name, inner.inputs, inner.outputs, inner.weights)

    def made(self) -> ModelProto:
        graph = helper.make_graph(self.nodes, "held", self.inputs, self.outputs, self.weights)
        imports = [helper.make_opsetid(d, v) for d, v in DOMAINS.items()]
        return helper.make_model(graph, opset_imports=imports, ir_version=9)

    def arrays(self, seed: int = 0, **sizes: int) -> dict[str, np.ndarray]:
        """Inputs of a call, at other sizes than its own where they are given."""
        rng, used = np.random.default_rng(seed), {**self.sizes, **sizes}
        found: dict[str, np.ndarray] = {}
        for value in self.inputs:
            dims = value.type.tensor_type.shape.dim
            shape = tuple(used[d.dim_param] if d.dim_param else d.dim_value for d in dims)
            found[value.name] = self.fills[value.name](rng, shape)
        return found

    def _dims(self, dims: Dims) -> Dims:
        return [d if isinstance(d, int) else self.size(d) for d in dims]


HELD: dict[str, Held] = {}


def held(
    second: dict[str, int] | None = None, *, oracle: Oracle = "default",
    limit: float = 1e-5, narrow: bool = True, **sizes: int,
) -> Callable[[Callable[[Net], None]], Callable[[Net], None]]:  # fmt: skip
    """Register a model under its function's name."""

    def add(build: Callable[[Net], None]) -> Callable[[Net], None]:
        HELD[build.__name__] = Held(build, sizes, second or {}, oracle, limit, narrow)
        return build

    return add
