"""The nodes of a graph or of a function: names, what each reads, order, cycles."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.registry import find

Ref = tuple[str, int]  # a node (or a function argument) and an output index

# ops with effects that an inference graph does not need
IGNORED = {
    "NoOp", "Assert", "Abort", "CheckNumerics", "Print", "PrintV2", "AudioSummary",
    "HistogramSummary", "ImageSummary", "MergeSummary", "ScalarSummary", "TensorSummary",
    "WriteSummary",
}  # fmt: skip
# ops that change a variable: a program keeps no state between runs
ASSIGNS = {
    "Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp",
    "AssignSubVariableOp", "ResourceScatterUpdate", "ResourceScatterAdd", "ResourceScatterSub",
    "ResourceScatterNdUpdate", "ResourceScatterNdAdd", "ResourceStridedSliceAssign",
    "ScatterUpdate", "ScatterAdd", "ScatterSub",
}  # fmt: skip
PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
# least input counts of nodes that are examined before import
_LEAST = {
    **dict.fromkeys(("Switch", "RefSwitch", "_SwitchN", "Assign", "AssignVariableOp"), 2),
    **dict.fromkeys(
        ("Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "Merge",
         "RefMerge", "LoopCond", "Identity"), 1,
    ),
}  # fmt: skip


class Body:
    """The nodes of a graph, or of a function with its arguments."""

    def __init__(
        self,
        nodes: Sequence[Any],
        function: schema.Function | None = None,
        outputs_of: Callable[[str], Sequence[str]] = lambda op: (),
    ) -> None:
        self.function = function
        self.nodes: dict[str, Any] = {}
        self.position: dict[str, int] = {}
        self._outputs_of = outputs_of  # output names of operators that are functions of the file
        self.arguments = [a.name for a in function.signature.input_arg] if function else []
        for i, node in enumerate(nodes):
            if not node.name:
                raise ModelError(f"node {i} ({node.op or 'no operator'}) has no name")
            if node.name in self.nodes or node.name in self.arguments:
                raise ModelError(f"name '{node.name}' is given twice")
            self.nodes[node.name] = node
            self.position[node.name] = i
        self._refs: dict[str, list[Ref]] = {}
        self._used: set[Ref] | None = None

    def refs(self, name: str) -> list[Ref]:
        """Return the data inputs of a node. ModelError for a malformed one, or too few."""
        found = self._refs.get(name)
        if found is None:
            node = self.nodes[name]
            found = [self.ref(x) for x in node.input if not x.startswith("^")]
            least = _LEAST.get(node.op, 0)
            if len(found) < least:
                raise ModelError(
                    f"node '{name}' ({node.op}) expected {least} inputs, got {len(found)}"
                )
            self._refs[name] = found
        return found

    def controls(self, name: str) -> list[str]:
        """Return the control inputs of a node: it runs after them without reading a value."""
        return [x[1:] for x in self.nodes[name].input if x.startswith("^")]

    def ref(self, text: str) -> Ref:
        """Parse `node`, `node:1`; in functions `argument`, `node:output:1`."""
        name, *rest = text.split(":")
        try:
            if not rest:
                return name, 0
            if len(rest) == 1 and rest[0].isdecimal():
                return name, int(rest[0])
            number = rest[1] if len(rest) == 2 else "0"
            if len(rest) <= 2 and self.function is not None and number.isdecimal():
                return name, self._first(name, rest[0]) + int(number)
        except ValueError:
            pass
        raise ModelError(f"'{text[:80]}' names no output of a node")

    def _first(self, name: str, output: str) -> int:
        """Return the index of a node's named output."""
        node = self.nodes.get(name)
        if node is None:
            return 0
        op = find(node.op)
        names = op.outputs if op is not None else self._outputs_of(node.op)
        if names and output not in names:
            raise ModelError(f"node '{name}' ({node.op}) has no output '{output}', expected one of "
                             f"{', '.join(names)}")  # fmt: skip
        return names.index(output) if names else 0

    def used(self, ref: Ref) -> bool:
        """Return whether a node reads this output, or the function returns it."""
        if self._used is None:
            self._used = {r for name in self.nodes for r in self._known_refs(name)}
            if self.function is not None:
                self._used |= {self.ref(text) for text in self.function.ret.values()}
        return ref in self._used

    def _known_refs(self, name: str) -> list[Ref]:
        try:
            return self.refs(name)
        except ModelError:
            return []

    def sinks(self) -> list[str]:
        """Return the nodes without readers and control successors, in file order."""
        read = {n for name in self.nodes for n, _ in self._known_refs(name)}
        read |= {n for name in self.nodes for n in self.controls(name)}
        return [
            name
            for name, node in self.nodes.items()
            if name not in read
            and node.op not in IGNORED | ASSIGNS
            and node.op not in (*PLACEHOLDERS, "Const", "VarHandleOp", "VariableV2", "Variable")
        ]

    def reached(self, names: Iterable[str], controls: bool = True) -> set[str]:
        """Return every node that must run for these, including control inputs."""
        todo, seen = [n for n in names if n in self.nodes], set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            todo += [n for n, _ in self._known_refs(name) if n in self.nodes]
            if controls:
                todo += [n for n in self.controls(name) if n in self.nodes]
        return seen


def ordered(
    names: Iterable[str],
    reads: Callable[[str], Collection[str]],
    have: Callable[[str], bool],
    position: Mapping[str, int],
) -> list[str]:
    """Return the nodes that `names` depend on and that are not imported yet, producers first.

    Nodes keep the file's order where possible. Raises ModelError for a cycle.
    """
    needs: dict[str, set[str]] = {}
    todo = [n for n in names if not have(n)]
    while todo:
        name = todo.pop()
        if name in needs:
            continue
        needs[name] = {n for n in reads(name) if not have(n)}
        todo += needs[name]
    order = sorted(needs, key=lambda n: position.get(n, -1))
    rank = {n: i for i, n in enumerate(order)}
    if all(rank[p] < i for i, n in enumerate(order) for p in needs[n]):
        return order
    users: dict[str, list[str]] = {n: [] for n in needs}
    missing = {n: len(p) for n, p in needs.items()}
    for name, producers in needs.items():
        for p in producers:
            users[p].append(name)
    ready = [rank[n] for n, count in missing.items() if count == 0]
    heapq.heapify(ready)
    out: list[str] = []
    while ready:
        name = order[heapq.heappop(ready)]
        out.append(name)
        for user in users[name]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, rank[user])
    if len(out) < len(needs):
        raise ModelError(f"the graph has a cycle: {_cycle(needs, missing, rank)}")
    return out


def _cycle(needs: dict[str, set[str]], missing: dict[str, int], rank: dict[str, int]) -> str:
    stuck = {n for n, count in missing.items() if count > 0}
    at, path = min(stuck, key=rank.__getitem__), []
    seen: set[str] = set()
    while at not in seen:
        path.append(at)
        seen.add(at)
        at = min(needs[at] & stuck, key=rank.__getitem__)
    names = [f"'{n}'" for n in [*path[path.index(at) :], at][::-1]]
    return " -> ".join(names if len(names) < 12 else [*names[:10], "...", names[-1]])
