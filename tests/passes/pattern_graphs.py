"""Property cases of the rewrites: small random programs round the root of one pattern.

    @case("find_dot_add", rtol=1e-5)
    def find_dot_add(g):
        m, k, n = g.dims(3)
        x = g.argument((m, k))
        b, w = g.constant((m, k)), g.constant((k, n))
        return g.b.op("dot", g.maybe_used(g.b.op("add", x, b)), w)

The files in graphs/ hold the cases, a file or folder for each pass; test_patterns.py draws them.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.op import as_value
from mgx_mlir.core.shapes import DYN
from mgx_mlir.programs.build import Builder

Dims = Sequence[int | str]

CASES: list[Case] = []
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0)


@dataclass(frozen=True)
class Case:
    """Draws of programs for the pattern (or pass) `name`, and the properties that must hold.

    `rtol` 0 is bit for bit, NaN and -0.0 included; else as `evaluate.assert_same` has it. It
    must apply in at least the share `fires` of the draws. `special`: one draw out of four has
    NaN, infinities and zeros of both signs in its float arguments. `beside`: other rewrites of
    the pass that are on, where it takes up what they make.
    """

    name: str
    pass_name: str
    draw: Callable[[Graph], Any]
    rtol: float
    fires: float
    special: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    beside: Sequence[str] = ()

    @property
    def id(self) -> str:
        own = self.draw.__name__
        return self.name if own == self.name else f"{self.name}-{own}"


def case(
    name: str,
    *,
    rtol: float = 0.0,
    fires: float = 0.5,
    options: Mapping[str, Any] | None = None,
    special: bool | None = None,
    beside: Sequence[str] = (),
) -> Callable[[Callable[[Graph], Any]], Callable[[Graph], Any]]:
    """Register a draw for a pattern of the pass that the file, or its folder, is named after.

    A name may have several cases. `options` are those of the pass. `special` is on where the
    rewrite is exact, unless it says otherwise.
    """

    def register(draw: Callable[[Graph], Any]) -> Callable[[Graph], Any]:
        own = draw.__module__.split(".")[1]  # graphs.PASS, or a file of that folder
        hostile = rtol == 0 if special is None else special
        CASES.append(
            Case(name, own, draw, rtol, fires, hostile, dict(options or {}), tuple(beside))
        )
        return draw

    return register


def load() -> list[Case]:
    """Every case of the files in graphs/."""
    graphs = importlib.import_module("graphs")
    for found in pkgutil.iter_modules(graphs.__path__):
        importlib.import_module(f"graphs.{found.name}")
    return CASES


def dtype_of(name: str | DType) -> DType:
    return name if isinstance(name, DType) else dtypes.from_name(name)


class Graph:
    """One drawn program: arguments, constants and ops of @main, and arrays to run it on."""

    def __init__(self, draw: Callable[[Graph], Any], seed: int, context: ir.Context) -> None:
        self.seed, self.context = seed, context
        # seed by a text: small integers give similar first draws
        self.random = random.Random(f"{draw.__name__} {seed}")
        self.numbers = np.random.default_rng(seed)
        self.b, self.store = Builder(), WeightStore()
        self.inputs: dict[str, np.ndarray] = {}
        self._extents: dict[str, int] = {}
        self._used: list[ir.Value] = []
        with context, ir.Location.unknown(), self.store.active():
            self.module = ir.Module.create()
            with ir.InsertionPoint(self.module.body):
                main = func.FuncOp("main", ([], []))
            self._block = main.add_entry_block()
            with ir.InsertionPoint(self._block):
                found = draw(self)
                many = isinstance(found, tuple | list)
                results = [as_value(v) for v in (found if many else [found])]
                results += [v for v in self._used if v not in results]
                func.ReturnOp(results)
            signature = ir.FunctionType.get(
                [a.type for a in self._block.arguments], [r.type for r in results]
            )
            main.attributes["function_type"] = ir.TypeAttr.get(signature)

    # ---- chance ----------------------------------------------------------------------------------

    def coin(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def dims(self, n: int, low: int = 1, high: int = 5) -> tuple[int, ...]:
        """`n` random extents, `high` included."""
        return tuple(self.random.randint(low, high) for _ in range(n))

    # ---- values ----------------------------------------------------------------------------------

    def argument(
        self,
        dims: Dims,
        dtype: str | DType = "f32",
        low: float | None = None,
        high: float | None = None,
    ) -> ir.Value:
        """A new argument of @main.

        A dim that is DYN is open, one that is a string too: dims of one name have one extent,
        which is drawn (1 to 5). Without bounds floats are normal, signed integers -5 to 5,
        unsigned ones 0 to 5; integer bounds are included.
        """
        t = dtype_of(dtype)
        extents = [self.extent(d) for d in dims]
        dynamic_dims = [DYN if isinstance(d, str) or d < 0 else d for d in dims]
        kind = ir.RankedTensorType.get(dynamic_dims, t.ir_type())
        value = self._block.add_argument(kind, ir.Location.unknown())
        self.b.probe.argument(value, [d if isinstance(d, str) else None for d in dims])
        self.inputs[f"x{len(self.inputs)}"] = self._array(extents, t, low, high)
        return value

    def extent(self, dim: int | str) -> int:
        """Return the dynamic size of an argument's dim."""
        if isinstance(dim, str):
            return self._extents.setdefault(dim, self.random.randint(1, 5))
        return self.random.randint(1, 5) if dim < 0 else dim

    def constant(
        self,
        dims: Sequence[int],
        dtype: str | DType = "f32",
        low: float | None = None,
        high: float | None = None,
        value: Any = None,
    ) -> ir.Value:
        """A literal of random elements (as of `argument`), or of `value`: a number or an array."""
        t = dtype_of(dtype)
        if value is None:
            return self.b.literal(self._array(dims, t, low, high))
        with np.errstate(all="ignore"):
            return self.b.literal(np.array(np.broadcast_to(value, tuple(dims))).astype(t.np))

    def maybe_used(self, value: Any, chance: float = 0.3) -> ir.Value:
        """`value`, which sometimes is a result of @main too: it then has many uses."""
        return self.used(value) if self.coin(chance) else as_value(value)

    def used(self, value: Any) -> ir.Value:
        """`value`, which is a result of @main too."""
        self._used.append(as_value(value))
        return self._used[-1]

    def _array(
        self, dims: Sequence[int], t: DType, low: float | None, high: float | None
    ) -> np.ndarray:
        if t.is_float:
            if low is None and high is None:
                found = self.numbers.normal(0, 1.5, tuple(dims))
            else:
                found = self.numbers.uniform(
                    -5 if low is None else low, 5 if high is None else high, tuple(dims)
                )
        elif t.is_bool:
            found = self.numbers.integers(0, 2, tuple(dims))
        else:
            least = (0 if t.is_unsigned else -5) if low is None else int(low)
            found = self.numbers.integers(
                least, (5 if high is None else int(high)) + 1, tuple(dims)
            )
        return np.asarray(found).astype(t.np)

    def hostile_inputs(self) -> dict[str, np.ndarray]:
        """The arrays of the arguments with NaN, infinities and zeros among the floats."""
        rng = np.random.default_rng(self.seed)
        out = {}
        for name, array in self.inputs.items():
            out[name] = array
            if dtypes.from_numpy(array.dtype).is_float:
                with np.errstate(all="ignore"):
                    special = rng.choice(SPECIAL, array.shape).astype(array.dtype)
                out[name] = np.where(rng.random(array.shape) < 0.4, special, array)
        return out
