"""Nearest enlargement by whole factors: elements repeated side by side, rows above each other."""

from __future__ import annotations

import numpy as np
import onnx.helper
import onnx.parser
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import mgx_mlir
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

TYPES = {"float": np.float32, "float16": np.float16, "int8": np.int8, "int64": np.int64}
Case = tuple[str, int, int, int, int, int]  # type, channels, height, width, factors

cases = st.tuples(
    st.sampled_from(sorted(TYPES)),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 70),
    st.integers(1, 3),
    st.integers(2, 4),
)
KNOWN: list[Case] = [
    ("float", 2, 3, 16, 2, 2),
    ("float", 1, 1, 1, 1, 2),
    ("float", 3, 2, 33, 3, 4),
    ("float16", 2, 2, 65, 2, 3),
    ("int8", 1, 4, 63, 1, 2),
    ("int64", 2, 1, 17, 2, 4),
]


def _model(drawn: list[Case], batch: str) -> onnx.ModelProto:
    inputs, outputs, nodes = [], [], []
    for i, (kind, c, h, w, f, g) in enumerate(drawn):
        inputs.append(f"{kind}[{batch},{c},{h},{w}] x{i}")
        outputs.append(f"{kind}[{batch},{c},{h * f},{w * g}] y{i}")
        nodes.append(f"""s{i} = Constant <value_floats = [1.0, 1.0, {f}.0, {g}.0]> ()
            y{i} = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric",
                nearest_mode = "floor"> (x{i}, , s{i})""")
    text = f"g ({', '.join(inputs)}) => ({', '.join(outputs)}) {{ {' '.join(nodes)} }}"
    opsets = [onnx.helper.make_opsetid("", 18)]
    graph = onnx.parser.parse_graph(text)
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("batch", ["2", "b"])
@settings(max_examples=1, deadline=None, derandomize=True,
          phases=(Phase.explicit, Phase.generate))  # fmt: skip
@given(st.lists(cases, min_size=4, max_size=6))
@example(KNOWN)
def test_repeated(batch: str, drawn: list[Case]) -> None:
    model = _model(drawn, batch).SerializeToString()
    program = mgx_mlir.compile(model, "cpu", cache=False)
    assert not program.executable.fallbacks
    rng = np.random.default_rng(0)
    for n in [2] if batch == "2" else [1, 3, 0]:
        given = {
            f"x{i}": (50 * rng.standard_normal((n, c, h, w))).astype(TYPES[kind])
            for i, (kind, c, h, w, _, _) in enumerate(drawn)
        }
        if n and drawn[0][0] == "float":
            given["x0"].flat[0] = np.nan
        for (*_, f, g), x, y in zip(drawn, given.values(), program.run(given), strict=True):
            np.testing.assert_array_equal(y, x.repeat(f, 2).repeat(g, 3))
