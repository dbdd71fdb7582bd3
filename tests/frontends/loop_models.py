"""Random ONNX models of loops, scans and branches, chained and nested, with dynamic dims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 3
STATE = ("N", WIDTH)  # dims of carried values; scan outputs stack their rows


def info(name: str, dims: Sequence[Any] | None, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, dims)


@dataclass
class Scope:
    """One graph being made: its nodes, and the values that it sees."""

    outer: Scope | None = None
    nodes: list[Any] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    stacks: list[str] = field(default_factory=list)

    def seen(self, kind: str) -> list[str]:
        outer = self.outer.seen(kind) if self.outer else []
        return [*outer, *getattr(self, kind)]


class Model:
    """Draws one model from a seed. `dynamic_rows`: the stacks of the inputs have a run-time
    length."""

    def __init__(self, seed: int, *, dynamic_batch: bool = True, dynamic_rows: bool = True) -> None:
        self.rng = np.random.default_rng(seed)
        self.names = 0
        self.scope = Scope()
        self.batch: Any = "N" if dynamic_batch else 3
        self.rows: Any = "K" if dynamic_rows else 5
        self.stored: list[Any] = []
        self.proto = self._draw()

    # ---- pieces ------------------------------------------------------------------------------

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        made = [self.name() for _ in range(outputs)]
        self.scope.nodes.append(helper.make_node(kind, inputs, made, **attributes))
        return made[0] if outputs == 1 else made

    def constant(self, value: Any) -> str:
        name = self.name()
        self.stored.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def choice(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def weight(self) -> str:
        return self.constant(self.rng.uniform(-0.7, 0.7, (WIDTH, WIDTH)).astype(np.float32))

    def state(self) -> str:
        return self.choice(self.scope.seen("states"))

    def mixed(self, *values: str) -> str:
        """A state made of states."""
        found = values[0]
        for other in values[1:]:
            found = self.node(self.choice(("Add", "Sub", "Mul", "Max")), found, other)
        if self.chance(0.5):
            found = self.node("MatMul", found, self.weight())
        if self.chance(0.3):
            column = self.node("ReduceSum", found, self.constant(np.array([1])), keepdims=1)
            found = self.node("Sub", found, column)
        return self.node(self.choice(("Tanh", "Sigmoid", "Sin")), found)

    def stacked(self, stack: str) -> str:
        """A stack made of one."""
        kind = self.choice(("Neg", "Tanh", "scale", "Identity", "twice"))
        if kind == "scale":
            return self.node("Mul", stack, self.constant(np.float32(self.rng.uniform(-1, 1))))
        if kind == "twice":
            return self.node("Concat", stack, stack, axis=0)
        return self.node(kind, stack)

    def length(self, stack: str) -> str:
        """The number of rows, as a number."""
        return self.node("Squeeze", self.node("Shape", stack, start=0, end=1))

    # ---- control flow ------------------------------------------------------------------------

    def loop(self, depth: int) -> None:
        """A Loop over the rows of a stack, forward or backward; it may end early."""
        stack = self.choice(self.scope.seen("stacks"))
        count = self.length(stack)
        trips = count
        if self.chance(0.4):
            trips = self.node("Min", count, self.choice(("trips", self.constant(np.int64(2)))))
        backward, early, states = self.chance(0.4), self.chance(0.3), self.choice((1, 1, 2))
        starts = [self.state() for _ in range(states)]
        body = Scope(self.scope)
        self.scope = body
        number, going = self.name(), self.name()
        own = [self.name() for _ in starts]
        body.states += own
        at = number
        if backward:
            last = self.node("Sub", count, self.constant(np.int64(1)))
            at = self.node("Sub", last, number)
        row = self.node("Gather", stack, at, axis=0)
        body.states.append(row)
        if depth and self.chance(0.5):
            self.part(depth - 1, number)
        following = [self.mixed(v, self.state()) for v in own]
        following[0] = self.mixed(following[0], row)
        again = self.node("Identity", going)
        if early:
            again = self.node("Less", number, self.constant(np.int64(self.rng.integers(4))))
        scans = [self.node("Identity", self.choice([*following, *own, row])) for _ in range(
            self.choice((1, 1, 2)))]  # fmt: skip
        # a graph's outputs are made in it, each once
        carried = [self.node("Identity", v) for v in following]
        graph = helper.make_graph(
            body.nodes,
            self.name(),
            [
                info(number, [], TensorProto.INT64),
                info(going, [], TensorProto.BOOL),
                *(info(v, self.dims(STATE)) for v in own),
            ],
            [
                info(again, [], TensorProto.BOOL),
                *(info(v, self.dims(STATE)) for v in (*carried, *scans)),
            ],
        )
        self.scope = body.outer or body
        made = self.node(
            "Loop",
            trips,
            # onnxruntime takes the body's value as the default, ONNX does not
            self.constant(np.array(True)) if early or self.chance(0.5) else "",
            *starts,
            outputs=len(starts) + len(scans),
            body=graph,
        )
        self.scope.states += made[: len(starts)]
        self.scope.stacks += made[len(starts) :]

    def scan(self, depth: int) -> None:
        """A Scan over one or two stacks of one length, each in its direction."""
        stack = self.choice(self.scope.seen("stacks"))
        sources = [stack, *([self.node("Neg", stack)] if self.chance(0.4) else [])]
        start = self.state()
        body = Scope(self.scope)
        self.scope = body
        own, rows = self.name(), [self.name() for _ in sources]
        body.states += [own, *rows]
        if depth and self.chance(0.4):
            self.part(depth - 1, None)
        following = self.mixed(own, *rows)
        scans = [self.node("Identity", self.choice([following, own])) for _ in range(
            self.choice((1, 2)))]  # fmt: skip
        carried = self.node("Identity", following)
        graph = helper.make_graph(
            body.nodes,
            self.name(),
            [info(v, self.dims(STATE)) for v in (own, *rows)],
            [info(v, self.dims(STATE)) for v in (carried, *scans)],
        )
        self.scope = body.outer or body
        made = self.node(
            "Scan",
            start,
            *sources,
            outputs=1 + len(scans),
            body=graph,
            num_scan_inputs=len(sources),
            scan_input_directions=[int(self.chance(0.5)) for _ in sources],
            scan_output_directions=[int(self.chance(0.5)) for _ in scans],
        )
        self.scope.states.append(made[0])
        self.scope.stacks += made[1:]

    def branch(self, depth: int, number: str | None) -> None:
        """An If of a number of an iteration, or of what was computed."""
        if number is not None and self.chance(0.6):
            odd = self.node("Mod", number, self.constant(np.int64(2)))
            cond = self.node("Cast", odd, to=TensorProto.BOOL)
        else:
            total = self.node("ReduceSum", self.state(), keepdims=0)
            cond = self.node("Greater", total, self.constant(np.float32(0.0371)))
        outer, graphs = self.scope, []
        inner = [self.state(), self.state()]
        for v in inner:
            self.scope = Scope(outer)
            if depth and self.chance(0.4):
                self.part(depth - 1, number)
            made = self.mixed(v, self.state()) if self.chance(0.7) else self.node("Identity", v)
            graphs.append(
                helper.make_graph(self.scope.nodes, self.name(), [], [info(made, self.dims(STATE))])
            )
        self.scope = outer
        made = self.node("If", cond, then_branch=graphs[0], else_branch=graphs[1])
        self.scope.states.append(made)

    def part(self, depth: int, number: str | None) -> None:
        kind = self.choice(("loop", "loop", "scan", "branch", "stacked"))
        if kind == "loop":
            self.loop(depth)
        elif kind == "scan":
            self.scan(depth)
        elif kind == "branch":
            self.branch(depth, number)
        else:
            self.scope.stacks.append(self.stacked(self.choice(self.scope.seen("stacks"))))

    def stated(self, v: str) -> list[Any]:
        return self.dims(STATE if v in self.scope.states else (None, *STATE))

    # ---- the model ---------------------------------------------------------------------------

    def dims(self, dims: Sequence[Any]) -> list[Any]:
        return [self.batch if d == "N" else d for d in dims]

    def _draw(self) -> onnx.ModelProto:
        self.scope.states.append("state")
        self.scope.stacks.append("rows")
        for _ in range(int(self.rng.integers(2, 5))):
            # a chain reads what was made last
            self.part(2, None)
            self.scope.stacks = self.scope.stacks[-2:]
        outputs = [*self.scope.states[-2:], *self.scope.stacks[-2:]]
        outputs = {v: self.node("Identity", v) for v in outputs}
        graph = helper.make_graph(
            self.scope.nodes,
            "loops",
            [
                info("rows", [self.rows, *self.dims(STATE)]),
                info("state", self.dims(STATE)),
                info("trips", [], TensorProto.INT64),
            ],
            [info(out, self.stated(v)) for v, out in outputs.items()],
            self.stored,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model)
        return model

    def feeds(self) -> list[dict[str, np.ndarray]]:
        """Inputs of two sizes and more, one of no rows where their number is dynamic."""
        sizes = [(2, 5, 9), (4, 3, 2)]
        if self.rows == "K":
            sizes += [(3, 0, 3), (1, 1, 0)]
        else:
            sizes += [(1, 5, 0)]
        found = []
        for n, k, trips in sizes:
            n = n if self.batch == "N" else self.batch
            k = k if self.rows == "K" else self.rows
            found.append({
                "rows": self.rng.uniform(-1, 1, (k, n, WIDTH)).astype(np.float32),
                "state": self.rng.uniform(-1, 1, (n, WIDTH)).astype(np.float32),
                "trips": np.array(trips),
            })  # fmt: skip
        return found
