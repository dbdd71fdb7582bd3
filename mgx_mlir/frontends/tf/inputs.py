"""Inputs and outputs of a program, from the file and the options."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.errors import MgxError, ModelError, UsageError
from mgx_mlir.frontends.dims import Dim
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.dtypes import tensor_dtype
from mgx_mlir.frontends.tf.graph import Body
from mgx_mlir.frontends.tf.importer import Input, Output
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.tensors import MAX_RANK


def graph_outputs(body: Body, names: Sequence[str], name: str) -> list[Output]:
    """Return the nodes that the options name, else those that no other node reads."""
    if not names:
        found = [Output(n, (n, 0)) for n in body.sinks()]
        if not found:
            raise ModelError("the graph has no outputs: every node is read by another, or is an "
                             "input", location=name)  # fmt: skip
        return found
    out = []
    for text in names:
        try:
            ref = body.ref(text)
        except ModelError as e:
            raise UsageError(e.message, location=name) from None
        if ref[0] not in body.nodes:
            sinks = ", ".join(body.sinks()[:8])
            raise UsageError(f"output '{text}' is no node of the graph", location=name,
                             notes=[f"nodes that no other reads: {sinks or 'none'}"])  # fmt: skip
        out.append(Output(text, ref))
    return out


def placeholder(node: schema.Node, name: str, options: TfOptions, where: str) -> Input:
    """Return the input for a Placeholder node named `name`."""
    shape = node.attr["shape"].shape if "shape" in node.attr else None
    kind = node.attr["dtype"].type if "dtype" in node.attr else 0
    return input_of(name, (node.name, 0), kind, shape, options, where)


def input_of(
    name: str,
    ref: tuple[str, int],
    kind: int,
    shape: schema.TensorShape | None,
    options: TfOptions,
    where: str,
) -> Input:
    """Return an input of the program; its dims come from the file and the options."""
    what = f"input '{name}'"
    try:
        dtype = tensor_dtype(kind, what)
        return Input(name, ref, dtype, tuple(_dims(what, name, shape, options)))
    except MgxError as e:
        raise type(e)(e.message, location=where, notes=e.notes) from None


def _dims(what: str, name: str, shape: schema.TensorShape | None, options: TfOptions) -> list[Dim]:
    rank = None if shape is None or shape.unknown_rank else len(shape.dim)
    if rank is not None and rank > MAX_RANK:
        raise ModelError(f"{what} has {rank} dims, expected at most {MAX_RANK}")
    given = options.given_dims(name, rank)
    if given is not None:
        return given
    dims: list[Dim] = []
    for d in () if shape is None else shape.dim:
        if d.size < 0 or (d.size == 0 and options.batch_size is not None and len(dims) == 0):
            dims.append(options.dynamic_dim())
        else:
            dims.append(d.size)
    return dims
