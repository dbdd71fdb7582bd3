"""Control flow of version 1: loops and branches made of Enter, Switch and Merge nodes.

A loop is a frame. Enter brings a value in, and Merge joins it with the last iteration's
(NextIteration). Switch passes it on, or out (Exit), by LoopCond. A branch starts at Switch nodes of
one condition and ends at Merge nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.graph import Body, Ref
from mgx_mlir.frontends.tf.regions import branch, choose, truth, while_loop
from mgx_mlir.frontends.values import POISON, Failed, Held, has_failed

if TYPE_CHECKING:
    from mgx_mlir.frontends.tf.importer import Importer
    from mgx_mlir.frontends.tf.node import Scope

_ENTER, _EXIT = {"Enter", "RefEnter"}, {"Exit", "RefExit"}
_NEXT, _MERGE = {"NextIteration", "RefNextIteration"}, {"Merge", "RefMerge"}
_SWITCH = {"Switch", "RefSwitch", "_SwitchN"}
_ANY = _ENTER | _EXIT | _NEXT | _MERGE | _SWITCH | {"LoopCond"}

Side = tuple[Ref, int]  # a condition, and the output index of its Switch nodes
Context = tuple[Side, ...]  # branches around a value, outermost first


@dataclass
class _Variable:
    """Nodes of a loop-carried value."""

    enter: str
    merge: str
    next: Ref
    switch: str | None = None
    exit: str | None = None


@dataclass
class _Frame:
    """A loop."""

    name: str
    constants: list[str] = field(default_factory=list)  # Enter nodes of loop-invariant values
    variables: list[_Variable] = field(default_factory=list)
    condition: Ref | None = None  # node that LoopCond reads


class Flow:
    """Loops and branches of a body, found on demand."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self._active = any(n.op in _ANY for n in body.nodes.values())
        self._frames: dict[str, _Frame] | None = None
        self._of_exit: dict[str, _Frame] = {}
        self._loop_merges: set[str] = set()
        self._loop_switches: set[str] = set()
        self._contexts: dict[Ref, Context] = {}
        self._outside: dict[str, list[str]] = {}

    def reads(self, name: str, scope: Scope) -> list[str]:
        """Return the nodes that must be imported before `name`."""
        if self._active:
            op = self.body.nodes[name].op
            if op in _EXIT:
                frame = self._frame(name)
                enters = [*frame.constants, *(v.enter for v in frame.variables)]
                return [self.body.refs(e)[0][0] for e in enters]
            if op in _MERGE and self._is_branch(name):
                return self._reads_of_branch(name)
        return [n for n, _ in self.body.refs(name)]

    def build(
        self, importer: Importer, name: str, scope: Scope
    ) -> Sequence[Held | None] | Failed | None:
        """Return the outputs of a control-flow node; None for any other."""
        if not self._active:
            return None
        op = self.body.nodes[name].op
        if op in _EXIT:
            self._build_loop(importer, self._frame(name), scope)
            return scope.values[name]
        if op in _MERGE:
            if not self._is_branch(name):
                raise ModelError("the node is read from outside of its loop")
            return self._build_branch(importer, name, scope)
        if op in _SWITCH:
            return self._switch(importer, name, scope)
        if op in _ENTER | _NEXT or op == "LoopCond":
            raise ModelError("the node is read from outside of its loop")
        return None

    # ---- loops ---------------------------------------------------------------------------------

    def _find_frames(self) -> dict[str, _Frame]:
        if self._frames is not None:
            return self._frames
        body = self.body
        frames: dict[str, _Frame] = {}
        frame_of: dict[str, _Frame] = {}  # frames of Enter nodes
        for name, node in body.nodes.items():
            if node.op in _ENTER:
                key = node.attr["frame_name"].s.decode(errors="replace")
                frame = frame_of[name] = frames.setdefault(key, _Frame(key))
                if node.attr["is_constant"].b:
                    frame.constants.append(name)
        entered = dict(frame_of)
        merges: dict[str, tuple[_Frame, _Variable]] = {}
        for name, node in body.nodes.items():
            if node.op not in _MERGE:
                continue
            refs = body.refs(name)
            enter = next((n for n, _ in refs if n in frame_of), None)
            back = next((n for n, _ in refs if self._op(n) in _NEXT), None)
            if enter is None or back is None:
                continue
            frame = frame_of[enter]
            variable = _Variable(enter, name, body.refs(back)[0])
            frame.variables.append(variable)
            entered.pop(enter)
            merges[name] = frame, variable
            self._loop_merges.add(name)
        for name, frame in entered.items():  # without a Merge a value is loop-invariant
            if name not in frame.constants:
                frame.constants.append(name)
        switches: dict[str, tuple[_Frame, _Variable]] = {}
        for name, node in body.nodes.items():
            if node.op not in _SWITCH:
                continue
            data, cond = body.refs(name)[:2]
            if data[0] in merges and self._op(cond[0]) == "LoopCond":
                frame, variable = switches[name] = merges[data[0]]
                variable.switch = name
                frame.condition = body.refs(cond[0])[0]
                self._loop_switches.add(name)
        for name, node in body.nodes.items():
            if node.op in _EXIT:
                source = body.refs(name)[0][0]
                if source in switches:
                    self._of_exit[name] = switches[source][0]
                    switches[source][1].exit = name
        self._frames = frames
        return frames

    def _op(self, name: str) -> str:
        node = self.body.nodes.get(name)
        return "" if node is None else node.op

    def _frame(self, exit_name: str) -> _Frame:
        self._find_frames()
        found = self._of_exit.get(exit_name)
        if found is None:
            raise ModelError("the exit belongs to no loop")
        if found.condition is None:
            raise ModelError(f"the loop '{found.name}' has no condition")
        return found

    def _build_loop(self, importer: Importer, frame: _Frame, scope: Scope) -> None:
        """Import a whole loop, and set the values of its Exit nodes."""
        body = self.body
        variables = frame.variables
        constants = {e: importer.value(body.refs(e)[0], scope) for e in frame.constants}
        initial = [importer.value(body.refs(v.enter)[0], scope) for v in variables]
        exits = [v.exit for v in variables if v.exit is not None]
        if has_failed([*constants.values(), *initial]):
            scope.values.update(dict.fromkeys(exits, POISON))
            return
        assert frame.condition is not None
        condition = frame.condition

        def region(values: Sequence[Held]) -> Scope:
            inner = scope.inner()
            inner.values |= {e: (v,) for e, v in constants.items()}
            for variable, v in zip(variables, values, strict=True):
                inner.values[variable.merge] = (v,)
                if variable.switch is not None:
                    inner.values[variable.switch] = (None, v)
            return inner

        def again(values: Sequence[Held]) -> Held:
            [found] = importer.values([condition], region(values))
            return found

        def step(values: Sequence[Held]) -> list[Held]:
            return importer.values([v.next for v in variables], region(values))

        found = while_loop(importer.builder, initial, again, step)
        for variable, v in zip(variables, found, strict=False):
            if variable.exit is not None:
                scope.values[variable.exit] = (v,)
        if has_failed(found):
            scope.values.update(dict.fromkeys(exits, POISON))

    # ---- branches ------------------------------------------------------------------------------

    def _is_branch(self, merge: str) -> bool:
        self._find_frames()
        return merge not in self._loop_merges

    def _condition(self, name: str) -> Ref:
        """Return the condition of a Switch, through nodes that only pass it on."""
        ref = self.body.refs(name)[1]
        for _ in range(32):
            node = self.body.nodes.get(ref[0])
            if node is None or node.op != "Identity":
                break
            ref = self.body.refs(ref[0])[0]
        return ref

    def _needs(self, name: str) -> list[Ref]:
        """Return the nodes that determine a node's context: its operands, and control inputs."""
        if name not in self.body.nodes:
            return []
        if name in self._loop_merges:
            return self.body.refs(name)[:1]
        controls = [(c, 0) for c in self.body.controls(name) if c in self.body.nodes]
        return [*self.body.refs(name), *controls]

    def context(self, ref: Ref) -> Context:
        """Return the branches around a value."""
        self._find_frames()
        todo = [ref[0]]
        busy: set[str] = set()
        while todo:
            name = todo[-1]
            if (name, -1) in self._contexts:
                todo.pop()
                continue
            missing = [n for n, _ in self._needs(name) if (n, -1) not in self._contexts]
            if missing and name not in busy:
                busy.add(name)
                todo += missing
                continue
            self._contexts[name, -1] = self._own_context(name)
            todo.pop()
        return self._output_context(ref)

    def _output_context(self, ref: Ref) -> Context:
        own = self._contexts.get((ref[0], -1), ())
        node = self.body.nodes.get(ref[0])
        if node is not None and node.op in _SWITCH and ref[0] not in self._loop_switches:
            side = (self._condition(ref[0]), ref[1])
            return own if side in own else (*own, side)
        return own

    def _own_context(self, name: str) -> Context:
        found: Context = ()
        for r in self._needs(name):
            c = self._output_context(r)
            if len(c) > len(found):
                found = c
        if self._op(name) in _MERGE and name not in self._loop_merges:
            return found[:-1]
        return found

    def _sides(self, merge: str) -> tuple[Ref, Context, dict[int, Ref]]:
        """Return the condition of a Merge, the context around it, and its input for each side."""
        sides: dict[int, Ref] = {}
        condition: Ref | None = None
        around: Context = ()
        for ref in self.body.refs(merge):
            found = self.context(ref)
            if not found:
                raise NotSupported("a Merge of values that come from no Switch")
            where, side = found[-1]
            if condition not in (None, where):
                raise NotSupported("a Merge with more than one condition")
            condition, around = where, found[:-1]
            if side in sides:
                raise NotSupported("a Merge of two values of one branch")
            sides[side] = ref
        if condition is None:
            raise ModelError("the Merge has no inputs")
        return condition, around, sides

    def _reads_of_branch(self, merge: str) -> list[str]:
        """Return the outer values that both branches read: the condition and the Switch
        operands.
        """
        known = self._outside.get(merge)
        if known is not None:
            return known
        condition, _, sides = self._sides(merge)
        out, seen = [condition[0]], set()
        todo = list(sides.values())
        while todo:
            ref = todo.pop()
            if ref in seen:
                continue
            seen.add(ref)
            if not any(where == condition for where, _ in self.context(ref)):
                out.append(ref[0])
                continue
            node = self.body.nodes[ref[0]]
            if node.op in _EXIT:
                frame = self._frame(ref[0])
                enters = [*frame.constants, *(v.enter for v in frame.variables)]
                todo += [self.body.refs(e)[0] for e in enters]
            else:
                todo += self.body.refs(ref[0])
        self._outside[merge] = out
        return out

    def _group(self, merge: str, condition: Ref, around: Context) -> list[str]:
        """Return the Merge nodes of one branch: the same condition, and none depends on another."""
        found = [merge]
        for name, node in self.body.nodes.items():
            if node.op not in _MERGE or name == merge or not self._is_branch(name):
                continue
            try:
                where, outer, _ = self._sides(name)
            except ModelError:
                continue
            if (where, outer) == (condition, around) and self.body.used((name, 0)):
                found.append(name)
        if len(found) > 1:
            reached = {n: self.body.reached(r for r in self._reads_of_branch(n)) for n in found}
            if any(a in reached[c] for a in found for c in found if a != c):
                return [merge]
        return found

    def _build_branch(
        self, importer: Importer, merge: str, scope: Scope
    ) -> Sequence[Held | None] | Failed:
        condition, around, _ = self._sides(merge)
        b = importer.builder
        taken = dict(scope.sides)
        group = self._group(merge, condition, around)
        group = [m for m in group if scope.find(m) is None]
        missing = [n for m in group for n in self._reads_of_branch(m)]
        importer.demand(missing, scope)
        cond = importer.value(condition, scope)
        if cond is POISON:
            return POISON
        ways = {m: self._sides(m)[2] for m in group}
        count = 1 + max(side for found in ways.values() for side in found)
        wants_index = {m for m in group if self.body.used((m, 1))}

        def build(side: int) -> list[Held]:
            inner = scope.inner()
            inner.sides = {**taken, condition: side}
            out: list[Held] = []
            for m in group:
                ref = ways[m].get(side)
                if ref is None:
                    raise NotSupported(f"a Merge without a value for side {side}")
                [found] = importer.values([ref], inner)
                out.append(found)
                if m in wants_index:
                    number = self.body.refs(m).index(ref)
                    out.append(b.literal(np.int32(number)))
            return out

        indexed = any(
            self._op(n) == "_SwitchN" and self._condition(n) == condition for n in self.body.nodes
        )
        if indexed:
            found = choose(b, cond, [lambda i=i: build(i) for i in range(count)])
        else:
            found = branch(b, truth(b, cond), lambda: build(1), lambda: build(0))
        if has_failed(found):
            return POISON
        values = iter(found)
        rows = {m: (next(values), next(values) if m in wants_index else None) for m in group}
        for m in group:
            if m != merge:
                scope.values[m] = rows[m]
        return rows[merge]

    def _switch(
        self, importer: Importer, name: str, scope: Scope
    ) -> Sequence[Held | None] | Failed:
        """Pass a Switch's data to the side of its condition that the branch is on."""
        condition = self._condition(name)
        data = importer.value(self.body.refs(name)[0], scope)
        if data is POISON:
            return POISON
        side = scope.sides.get(condition)
        if side is None:
            known = importer.value(self.body.refs(name)[1], scope)
            found = importer.builder.const(known) if isinstance(known, ir.Value) else None
            if found is None:
                raise NotSupported("a Switch whose branches no Merge joins")
            side = int(found.reshape(-1)[0])
        return tuple([None] * side + [data])
