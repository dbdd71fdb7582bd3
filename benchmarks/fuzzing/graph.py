"""A random ONNX graph that grows node by node, each evaluated as it is added.

Everything is drawn from a seed. A graph has one to three worlds: sizes for its dynamic dims. Every
value has its array in each world, so that added nodes are valid in all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.fuzzing import special
from benchmarks.fuzzing.oracle import Evaluator, Refusal, captured, kind_of, wrapped

LARGEST = 1 << 14  # elements of a value
TAME = 1e5  # the largest magnitude of a float
FLOATS = (np.float16, np.float32, np.float64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
INTEGERS = (*SIGNED, *UNSIGNED)
NEWEST = onnx.defs.onnx_opset_version()


class Rejected(Exception):
    """Raised when a grower's node does not fit; the node is left out."""


@dataclass
class Value:
    """A tensor: its array in each world.

    `exact`: any correct implementation has these bits. `fixed`: it is an initializer.
    """

    name: str
    arrays: list[np.ndarray]
    exact: bool = False
    fixed: bool = False

    @property
    def dtype(self) -> np.dtype:
        return self.arrays[0].dtype

    @property
    def rank(self) -> int:
        return self.arrays[0].ndim

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f" or self.dtype == ml_dtypes.bfloat16

    @property
    def dims(self) -> list[tuple[int, ...]]:
        return [a.shape for a in self.arrays]

    @property
    def static(self) -> bool:
        """Return whether the dims are the same in all worlds."""
        return len(set(self.dims)) == 1

    def extent(self, axis: int) -> int | None:
        """The extent of an axis, None where the worlds differ."""
        found = {d[axis] for d in self.dims}
        return found.pop() if len(found) == 1 else None

    @property
    def smallest(self) -> tuple[int, ...]:
        """The smallest extent of each axis over the worlds."""
        return tuple(min(d) for d in zip(*self.dims, strict=True))

    def all(self, test: Callable[[np.ndarray], Any]) -> bool:
        return all(bool(np.all(test(a))) for a in self.arrays)


@dataclass
class Step:
    """A node with what is needed to evaluate it again."""

    node: onnx.NodeProto
    reference: bool
    exact: bool


@dataclass
class Scope:
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)


class Graph:
    """Draws one graph. `worlds`: the sizes of the dynamic dims in each run.

    `special`: NaN and infinities among the elements of its inputs.
    """

    def __init__(self, seed: int, special: bool = False) -> None:
        self.seed, self.special = seed, special
        self.rng = np.random.default_rng([seed, 0])
        self.opset = self.size(7, NEWEST) if self.coin(0.6) else self.pick(13, 17, 18, 20, 21, 23)
        self.open = self.coin(0.55)
        self.worlds = self._worlds()
        self.evaluate = Evaluator(self.opset)
        self.scopes = [Scope()]
        self.every: dict[str, Value] = {}
        self.inputs: dict[str, tuple[Value, list[Any]]] = {}
        self.fixed: dict[str, np.ndarray] = {}
        self.steps: list[Step] = []
        self.refusals: Counter[str] = Counter()
        self.tried = 0
        self.names = 0
        self.wide = self.coin(0.15)  # larger extents

    def _worlds(self) -> list[dict[str, int]]:
        if not self.open:
            return [{}]
        names = "NMK"[: self.size(1, 3)]
        worlds = [
            {n: self.pick(1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17) for n in names}
            for _ in range(self.size(2, 3))
        ]
        if self.coin(0.12):
            worlds[-1][self.pick(*names)] = 0
        return worlds

    # ---- chance ----------------------------------------------------------------------------------

    def coin(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, *choices: Any) -> Any:
        if not choices:
            raise Rejected("nothing to choose from")
        return choices[int(self.rng.integers(len(choices)))]

    def size(self, low: int, high: int) -> int:
        """Return an integer drawn from [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def some(self, items: Sequence[Any], low: int = 0) -> list[Any]:
        """A random subset in random order."""
        n = self.size(low, len(items))
        return [items[int(i)] for i in self.rng.permutation(len(items))[:n]]

    def extent(self) -> int:
        if self.wide:
            return self.pick(1, 8, 16, 17, 32, 33, 40)
        return self.pick(1, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9)

    def numbers(
        self, dims: Sequence[int], dtype: Any = np.float32, low: Any = None, high: Any = None
    ) -> np.ndarray:
        """Random elements: normal floats, small integers; of [low, high] where given."""
        kind = np.dtype(dtype)
        if kind == np.bool_:
            return np.asarray(self.rng.random(dims) < 0.5)
        if kind.kind in "iu":
            least = low if low is not None else 0 if kind.kind == "u" else -5
            most = high if high is not None else 9
            return np.asarray(self.rng.integers(least, most + 1, dims)).astype(kind)
        if low is not None:
            return np.asarray(self.rng.uniform(low, high, dims)).astype(kind)
        if self.coin(0.15):
            return np.asarray(self.rng.integers(-4, 5, dims)).astype(kind)
        return np.asarray(self.rng.normal(0, 1, dims)).astype(kind)

    # ---- values ----------------------------------------------------------------------------------

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    @property
    def seen(self) -> list[Value]:
        return [v for s in self.scopes for v in s.values]

    def has(self, op: str, domain: str = "") -> bool:
        """Return whether this opset has the operator."""
        if domain:
            return True
        try:
            return not onnx.defs.get_schema(op, self.opset, domain).deprecated
        except onnx.defs.SchemaError:
            return False

    def add(self, value: Value) -> Value:
        self.scope.values.append(value)
        self.every[value.name] = value
        return value

    def input(self, dims: Sequence[Any], dtype: Any = np.float32, **bounds: Any) -> Value:
        """A new input of the graph; strings are dynamic dims. Inside a body an initializer."""
        if len(self.scopes) > 1:
            first = [self.worlds[0].get(d, d) for d in dims]
            if any(isinstance(d, str) for d in dims) and self.open:
                raise Rejected("a dynamic input inside of a body")
            return self.const(self.numbers(first, dtype, **bounds))
        arrays = [self.numbers([w.get(d, d) for d in dims], dtype, **bounds) for w in self.worlds]
        if self.special and not bounds:
            arrays = [special.sprinkled(a, self.rng) for a in arrays]
        value = Value(self.name(), arrays, exact=True)
        self.inputs[value.name] = (value, list(dims))
        return self.add(value)

    def const(self, array: Any) -> Value:
        """An initializer."""
        array = np.asarray(array)
        value = Value(self.name(), [array] * len(self.worlds), exact=True, fixed=True)
        self.fixed[value.name] = array
        self.every[value.name] = value
        return value

    def operand(self, array: np.ndarray) -> Value:
        """An array that is the same in all worlds: an initializer, or an input of fixed dims."""
        if self.coin(0.75) or len(self.scopes) > 1:
            return self.const(array)
        value = Value(self.name(), [array] * len(self.worlds), exact=True)
        self.inputs[value.name] = (value, list(array.shape))
        return self.add(value)

    def numbers_of(self, values: Sequence[int], dtype: Any = np.int64) -> Value:
        """Numbers that an operator takes as an input: an initializer, a Constant or computed."""
        array = np.asarray(values, dtype)
        if self.coin(0.15):
            return self.node("Constant", value=numpy_helper.from_array(array), exact=True)
        if array.ndim == 1 and array.size and array.dtype == np.int64 and self.coin(0.1):
            other = self.numbers(array.shape, np.int64, low=0, high=3)
            return self.node("Sub", self.const(array + other), self.const(other), exact=True)
        return self.const(array)

    def dims(self, rank: int) -> list[Any]:
        """Dims of a new input: numbers, and dynamic ones where the graph has them."""
        names = sorted(self.worlds[0])
        if len(self.scopes) > 1:
            names = []
        return [
            self.pick(*names) if names and self.coin(0.4) else self.extent() for _ in range(rank)
        ]

    def value(
        self,
        test: Callable[[Value], Any] | None = None,
        *,
        kinds: Sequence[Any] = (np.float32,),
        low: int = 0,
        high: int = 5,
        make: Callable[[], Value] | None = None,
        fresh: float = 0.2,
    ) -> Value:
        """A value of these element types and ranks that passes the test; a new one else."""
        kinds = tuple(np.dtype(k) for k in kinds)
        fits = [
            v
            for v in self.seen
            if v.dtype in kinds and low <= v.rank <= high and (test is None or test(v))
        ]
        if fits and not self.coin(fresh):
            return self.pick(*(fits[-4:] if self.coin(0.6) else fits))
        if make is not None:
            return make()
        for _ in range(6):
            made = self.input(self.dims(self.size(low, high)), self.pick(*kinds))
            if test is None or test(made):
                return made
        raise Rejected("no value fits")

    def floats(self, **more: Any) -> Value:
        """A value of any float type, f32 mostly."""
        kinds = self.pick(*([(np.float32,)] * 8), (np.float16,), (np.float64,), FLOATS)
        return self.value(kinds=kinds, **more)

    # ---- nodes -----------------------------------------------------------------------------------

    def node(
        self,
        op: str,
        *inputs: Value | None,
        outputs: int | Sequence[int] = 1,
        domain: str = "",
        exact: bool = False,
        reference: bool = False,
        tame: bool = True,
        **attributes: Any,
    ) -> Any:
        """Add a node; the value, or the list of values, that it makes.

        Rejected where the oracle refuses it, or gives what is empty of meaning (NaN, too large).
        `exact`: the result has the same bits wherever its inputs have.
        """
        if not self.has(op, domain):
            raise Rejected(f"no {op} in opset {self.opset}")
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        wanted = list(range(outputs)) if isinstance(outputs, int) else list(outputs)
        names = [self.name() if i in wanted else "" for i in range(max(wanted) + 1)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        node = helper.make_node(
            op, ["" if v is None else v.name for v in given], names, domain=domain, **attributes
        )
        self._check_special(node)
        made = self._evaluated(node, reference)
        arrays = list(zip(*made, strict=True))
        values = []
        sources = [self.every[n] for n in captured(node)]
        exact = exact and all(v.exact for v in sources)
        for name, found in zip((n for n in names if n), arrays, strict=True):
            self._check(found, tame, op)
            values.append(Value(name, list(found), exact=exact))
        self.scope.nodes.append(node)
        self.steps.append(Step(node, reference, exact))
        for v in values:
            self.add(v)
        return values[0] if len(values) == 1 and isinstance(outputs, int) else values

    def _evaluated(self, node: onnx.NodeProto, reference: bool) -> list[list[np.ndarray]]:
        self.tried += 1
        needed = captured(node)
        found: list[list[np.ndarray]] = []
        fixed = frozenset(n for n in needed if self.every[n].fixed)
        try:
            for w in range(len(self.worlds)):
                feeds = {n: self.every[n].arrays[w] for n in needed}
                found.append(self.evaluate(node, feeds, fixed=fixed, reference=reference))
        except Refusal as error:
            self.refusals[f"{node.op_type}({self.opset}): {error}"] += 1
            raise Rejected(str(error)) from None
        return found

    def _check_special(self, node: onnx.NodeProto) -> None:
        """Reject an operator on what docs/special-values.md leaves open for it."""
        if not self.special or node.op_type not in special.contested():
            return
        if special.holds([a for n in captured(node) for a in self.every[n].arrays]):
            raise Rejected(f"{node.op_type} of special values")

    def _check(self, arrays: Sequence[np.ndarray], tame: bool, op: str) -> None:
        for a in arrays:
            if not isinstance(a, np.ndarray):
                raise Rejected("no tensor")
            if a.size > LARGEST or a.ndim > 7:
                raise Rejected(f"{op}: too large")
            if tame and a.dtype.kind == "f":
                wide = np.abs(a.astype(np.float64))
                limit = 2e3 if a.dtype == np.float16 else TAME
                given = ~np.isfinite(wide) if self.special else False
                if not ((wide <= limit) | given).all():
                    raise Rejected(f"{op}: not tame")
        if len({(a.ndim, a.dtype) for a in arrays}) != 1:
            raise Rejected("its rank depends on sizes")

    @contextmanager
    def body(self) -> Iterator[Scope]:
        """A scope for the nodes of a subgraph; what is made in it is not seen outside."""
        scope, steps = Scope(), len(self.steps)
        self.scopes.append(scope)
        try:
            yield scope
        finally:
            self.scopes.pop()
            del self.steps[steps:]

    # ---- the model -------------------------------------------------------------------------------

    def symbol(self, extents: tuple[int, ...]) -> Any:
        """Return the dim of a type for these extents: a number, or one name for all equal dims."""
        if len(set(extents)) == 1:
            return extents[0]
        for name in self.worlds[0]:
            if tuple(w[name] for w in self.worlds) == extents:
                return name
        return "d" + "_".join(map(str, extents))

    def stated(self, value: Value) -> list[Any]:
        return [self.symbol(d) for d in zip(*value.dims, strict=True)]


@dataclass
class Case:
    """A graph to judge: its nodes in order, its values, and the outputs that are compared."""

    seed: int
    opset: int
    worlds: int
    steps: list[Step]
    values: dict[str, Value]
    outputs: list[str]
    declared: dict[str, list[Any]]  # dims of inputs
    symbol: Callable[[tuple[int, ...]], Any]
    special: bool = False

    def sources(self) -> list[str]:
        """The values that the nodes read and none of them makes."""
        made = {o for s in self.steps for o in s.node.output}
        return list(dict.fromkeys(n for s in self.steps for n in captured(s.node) if n not in made))

    def with_steps(self, steps: list[Step], outputs: list[str] | None = None) -> Case:
        """The case of some of the nodes; what they read of the others becomes an input."""
        made = {o for s in steps for o in s.node.output if o}
        read = {n for s in steps for n in captured(s.node)}
        if outputs is None:
            outputs = [o for o in self.outputs if o in made]
            lost = [o for s in steps for o in s.node.output if o and o not in read]
            outputs = list(dict.fromkeys([*outputs, *lost]))
        return Case(
            self.seed, self.opset, self.worlds, steps, self.values,
            [o for o in outputs if o in made], self.declared, self.symbol, self.special,
        )  # fmt: skip

    def with_worlds(self, kept: Sequence[int]) -> Case:
        """The case of some of the sizes; what they agree in is fixed."""
        values = {
            k: Value(k, [v.arrays[i] for i in kept], v.exact, v.fixed)
            for k, v in self.values.items()
        }
        return Case(
            self.seed, self.opset, len(kept), self.steps, values, self.outputs, {},
            lambda d: d[0] if len(set(d)) == 1 else "d" + "_".join(map(str, d)), self.special,
        )  # fmt: skip

    def model(self) -> onnx.ModelProto:
        infos, weights = [], []
        for name in self.sources():
            v = self.values[name]
            if v.fixed:
                weights.append(numpy_helper.from_array(v.arrays[0], name))
                continue
            dims = self.declared.get(name)
            if dims is None:
                dims = [self.symbol(d) for d in zip(*v.dims, strict=True)]
            infos.append(helper.make_tensor_value_info(name, kind_of(v.arrays[0]), dims))
        outputs = [
            helper.make_tensor_value_info(
                o, kind_of(self.values[o].arrays[0]), [None] * self.values[o].rank
            )
            for o in self.outputs
        ]
        graph = helper.make_graph(
            [s.node for s in self.steps], f"seed{self.seed}", infos, outputs, weights
        )
        return wrapped(graph, self.opset)

    def feeds(self, world: int) -> dict[str, np.ndarray]:
        return {n: self.values[n].arrays[world] for n in self.sources() if not self.values[n].fixed}

    def wants(self, world: int) -> list[np.ndarray]:
        return [self.values[o].arrays[world] for o in self.outputs]

    def ops(self) -> list[str]:
        return [s.node.op_type for s in self.steps]


def finished(g: Graph) -> Case:
    """The case of a graph: all that nobody reads is an output, and a share of the rest."""
    read = {n for s in g.steps for n in captured(s.node)}
    made = [o for s in g.steps for o in s.node.output if o]
    outputs = [o for o in made if o not in read or g.coin(0.1)]
    return Case(
        g.seed, g.opset, len(g.worlds), list(g.steps), g.every, outputs,
        {n: dims for n, (_, dims) in g.inputs.items()}, g.symbol, g.special,
    )  # fmt: skip
