"""Control flow of version 2: If, Case and While, whose branches and bodies are functions."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.attributes import FunctionRef
from mgx_mlir.frontends.tf.graph import Body
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.regions import branch, choose, truth, while_loop
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import POISON, Held, has_failed
from mgx_mlir.programs.build import Builder


@tf_op("If", "StatelessIf", raw=True)
def if_op(
    b: Builder,
    node: Node,
    cond: Held,
    *inputs: Held,
    then_branch: FunctionRef,
    else_branch: FunctionRef,
) -> list[Held]:
    """Import If: a branch between two functions."""
    return branch(
        b,
        truth(b, cond),
        lambda: node.call(then_branch, inputs, "then/"),
        lambda: node.call(else_branch, inputs, "else/"),
    )


@tf_op("Case", "StatelessCase", raw=True)
def case(
    b: Builder, node: Node, index: Held, *inputs: Held, branches: Sequence[FunctionRef]
) -> list[Held]:
    """Import Case: one of several functions; the last one where the index is out of range."""
    if not branches:
        raise ModelError("attribute 'branches' is empty")
    return choose(
        b,
        index,
        [lambda f=f, i=i: node.call(f, inputs, f"{i}/") for i, f in enumerate(branches)],
    )


@tf_op("While", "StatelessWhile", raw=True)
def while_op(
    b: Builder, node: Node, *inputs: Held, cond: FunctionRef, body: FunctionRef
) -> list[Held]:
    """Import While: carry the values that the body changes; values that it only passes on are
    captured.
    """
    function = node.signature(body)
    kept = _handed_on(function)
    changing = [i for i in range(len(inputs)) if i not in kept]

    def whole(values: Sequence[Held]) -> list[Held]:
        out = list(inputs)
        for i, v in zip(changing, values, strict=True):
            out[i] = v
        return out

    def again(values: Sequence[Held]) -> Held:
        found = node.call(cond, whole(values), "cond/")
        if len(found) != 1:
            raise ModelError(f"the condition gives {len(found)} values, expected 1")
        return found[0]

    def step(values: Sequence[Held]) -> list[Held]:
        found = node.call(body, whole(values), "body/")
        if len(found) != len(inputs):
            raise ModelError(f"the body gives {len(found)} values, expected {len(inputs)}")
        return [found[i] for i in changing]

    found = while_loop(b, [inputs[i] for i in changing], again, step)
    return [POISON] * len(inputs) if has_failed(found) else whole(found)


def _handed_on(function: schema.Function) -> set[int]:
    """Return the indices of arguments that a function returns unchanged."""
    body = Body(function.node_def, function)
    out = set()
    for i, (given, a) in enumerate(
        zip(body.arguments, function.signature.output_arg, strict=False)
    ):
        name = function.ret.get(a.name, "").split(":")[0]
        for _ in range(16):
            proto = body.nodes.get(name)
            if proto is None or proto.op != "Identity" or not proto.input:
                break
            name = proto.input[0].split(":")[0]
        if name == given:
            out.add(i)
    return out
