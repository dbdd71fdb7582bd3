"""Dynamic dims give the results of static ones: the stored cases with dynamic inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import mgx_mlir
from mgx_mlir.core.errors import MgxError, RunError
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf_buffer
from tests.frontends.tf import stored_ops
from tests.frontends.tf.test_ops import faults

# operands whose dims a model states: filters, and vectors whose length is a rank; by their axes
ALL = None
KEPT: dict[tuple[str, int], tuple[int, ...] | None] = {
    **{(f"Conv{n}", 1): ALL for n in ("2D", "3D", "2DBackpropInput", "3DBackpropInputV2")},
    **{(f"DepthwiseConv2dNative{n}", 1): ALL for n in ("", "BackpropInput")},
    **{(f"TensorScatter{n}", 1): ALL for n in ("Add", "Sub", "Max", "Min", "Update")},
    **{("StridedSlice", i): ALL for i in (1, 2, 3)},
    **{("ScatterNd", i): ALL for i in (0, 2)},
    ("Conv2DBackpropInput", 0): ALL,
    ("Dilation2D", 1): ALL,
    ("_FusedConv2D", 1): ALL,
    ("_FusedDepthwiseConv2dNative", 1): ALL,
    ("GatherNd", 1): ALL,
    ("ScatterNdNonAliasingAdd", 1): ALL,
    ("SparseToDense", 0): ALL,
    ("SplitV", 1): ALL,
    ("BroadcastTo", 1): ALL,
    ("Tile", 1): ALL,
    ("Fill", 0): ALL,
    ("DataFormatVecPermute", 0): ALL,
    ("CombinedNonMaxSuppression", 0): (2,),  # one set of boxes, or one for each class
    ("Bitcast", 0): (-1,),  # the dim that becomes part of the element
}
# operators and outputs of nodes that are refused, and what the error says
REFUSED = {
    "BlockLSTM": "a number of steps that is known at run time only",
    "BlockLSTMV2": "a number of steps that is known at run time only",
    "MatrixDiagV2": "diagonals of unknown length",
    "MatrixDiagV3": "diagonals of unknown length",
    "MatrixDiagPartV2": "matrices of unknown dims",
    "MatrixDiagPartV3": "matrices of unknown dims",
    "MatrixSetDiagV2": "matrices of unknown dims",
    "MatrixSetDiagV3_1:0": "matrices of unknown dims",
    "Squeeze:0": "dynamic dims without axes",
    "TensorListLength_2:0": "a list whose length changes at run time",
    "TensorListLength_3:0": "a list whose length changes at run time",
    "TensorListStack_1:0": "a list whose length changes at run time",
    "TensorListStack_2:0": "a list whose length changes at run time",
}
# errors that are known only at run time: operands that do not broadcast, groups of dynamic channels
FAILING = {
    "Equal_2": ("binary_f32", "broadcast"),
    "NotEqual_2": ("binary_f32", "broadcast"),
    "BroadcastArgs_1": ("joining", "broadcast"),
    "Conv2D_7": ("convolutions", "an input of extent 2 along dim 1"),
}


def _opened(case: stored_ops.Group) -> bytes:
    graph = schema.Graph.FromString(case.graph)
    kept: dict[str, tuple[int, ...] | None] = {}
    for node in graph.node:
        for i, name in enumerate(node.input):
            if (node.op, i) in KEPT:
                axes = KEPT[node.op, i]
                found = kept.get(name.split(":")[0], set())
                kept[name.split(":")[0]] = (
                    None if axes is None or found is None else found | {*axes}
                )
    for node in graph.node:
        if node.op == "Placeholder":
            dims = node.attr["shape"].shape.dim
            axes = kept.get(node.name, ())
            for i, d in enumerate(dims):
                if axes is not None and i not in axes and i - len(dims) not in axes:
                    d.size = -1
    return graph.SerializeToString()


def _refusal(entry: dict[str, str]) -> str | None:
    if entry["name"].split(":")[0] in FAILING:
        return ""
    return REFUSED.get(entry["name"], REFUSED.get(entry["op"]))


CASES = [name for name in stored_ops.groups() if not name.startswith("open_")]  # dynamic already


@pytest.mark.parametrize("name", CASES)
def test_dynamic_dims(name: str) -> None:
    case = stored_ops.load(name)
    taken = [(e, v) for e, v in case.outputs if _refusal(e) is None]
    found = faults(replace(case, graph=_opened(case), outputs=taken), "ref")
    assert not found, "\n".join(found)


def _refused() -> Iterator[tuple[str, str, str]]:
    for name in CASES:
        for entry, _ in stored_ops.load(name).outputs:
            if told := _refusal(entry):
                yield name, entry["name"], told


@pytest.mark.parametrize(("name", "output", "told"), list(_refused()))
def test_what_needs_known_dims_says_so(name: str, output: str, told: str) -> None:
    options = TfOptions(output_names=[output], batch_size=None)
    with pytest.raises(MgxError, match=told):
        parse_tf_buffer(_opened(stored_ops.load(name)), options=options)


@pytest.mark.parametrize("node", FAILING)
def test_what_the_run_tells(node: str) -> None:
    group, told = FAILING[node]
    case = stored_ops.load(group)
    options = TfOptions(output_names=[node], batch_size=None)
    program = parse_tf_buffer(_opened(case), options=options)
    compiled = mgx_mlir.compile(program, "ref", cache=False)
    inputs = {k: v for k, v in case.inputs.items() if k in compiled.input_names}
    with pytest.raises(RunError, match=told):
        compiled.run(inputs)
