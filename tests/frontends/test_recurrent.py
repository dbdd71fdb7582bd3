"""ONNX RNN, GRU, LSTM and control flow on the cpu target against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.core.errors import RunError
from tests.support.compare import agrees, compare
from tests.support.models import model_of, parsed_bytes
from tests.support.oracle import ort_session

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {
    "RNN": ["ScaledTanh"],
    "GRU": ["HardSigmoid", "LeakyRelu"],
    "LSTM": ["HardSigmoid", "Softsign", "ScaledTanh"],
}
ALPHA = {"ScaledTanh": 0.8, "HardSigmoid": 0.3, "LeakyRelu": 0.1}
BETA = {"ScaledTanh": 0.9, "HardSigmoid": 0.4}


def agree(model, *runs):
    """Every run of the model within rounding of onnxruntime."""
    data = model.SerializeToString()
    oracle = ort_session(data)
    program = mgx_mlir.parse_onnx_buffer(
        data, default_dyn_dim_value=mgx_mlir.dynamic_dimension(1, 64)
    )
    program.compile("cpu")
    compare(program, oracle, runs, atol=2e-6)


def network(
    kind, direction, *, lens=False, peepholes=False, dynamic=False, initial=True, **attributes
):
    """A model of one node with every operand, and inputs of some sizes."""
    rng = np.random.default_rng(7)
    d, g, width, hidden = 2 if direction == "bidirectional" else 1, GATES[kind], 4, 6
    steps, batch = ("T", "B") if dynamic else (5, 3)
    dims = {"w": (d, g * hidden, width), "r": (d, g * hidden, hidden), "b": (d, 2 * g * hidden)}
    stored = {n: rng.uniform(-0.5, 0.5, of) for n, of in dims.items()}
    inputs: dict[str, Any] = {"x": [steps, batch, width]}
    names = ["x", "w", "r", "b", "lens" if lens else ""]
    if initial:
        inputs["h"] = [d, batch, hidden]
        names.append("h")
    if kind == "LSTM" and initial:
        inputs["c"] = [d, batch, hidden]
        names += ["c", "p" if peepholes else ""]
        if peepholes:
            stored["p"] = rng.uniform(-0.5, 0.5, (d, 3 * hidden))
    outputs = ["y", "yh", "yc"][: 3 if kind == "LSTM" else 2]
    layer = helper.make_node(
        kind, names, outputs, hidden_size=hidden, direction=direction, **attributes
    )
    lengths = {"lens": (TensorProto.INT32, [batch])} if lens else {}
    model = model_of([layer], inputs | lengths, " ".join(outputs), stored, opset=14, ir_version=8)
    runs = []
    for t, b in ((5, 3), (1, 1), (7, 2)) if dynamic else ((5, 3),):
        sizes = {"T": t, "B": b}
        feeds = {
            n: rng.uniform(-1, 1, [sizes.get(x, x) for x in s]).astype(np.float32)
            for n, s in inputs.items()
        }
        if lens:
            feeds["lens"] = np.array([t, 1, max(t - 2, 1)][:b], np.int32)
        runs.append(feeds)
    return model, *runs


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_networks(kind, direction):
    agree(*network(kind, direction, lens=direction != "forward", peepholes=True))


@pytest.mark.parametrize("kind", GATES)
def test_run_time_steps_and_batch(kind):
    agree(*network(kind, "bidirectional", lens=True, dynamic=True))


@pytest.mark.parametrize("kind", GATES)
def test_sequence_lengths_without_an_initial_state(kind):
    """The state is a broadcast 0, which the loop's body reads from outside."""
    agree(*network(kind, "bidirectional", lens=True, initial=False))


@pytest.mark.parametrize("kind", GATES)
def test_run_time_width(kind):
    """The weights say what the width is."""
    model, *runs = network(kind, "forward", dynamic=True)
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "W"
    agree(model, *runs)


@pytest.mark.parametrize("kind", GATES)
def test_activations_and_clip(kind):
    names = FUNCTIONS[kind]
    agree(
        *network(
            kind,
            "forward",
            activations=names,
            activation_alpha=[ALPHA[n] for n in names if n in ALPHA],
            activation_beta=[BETA[n] for n in names if n in BETA],
            clip=0.7,
        )
    )


def test_variants():
    agree(*network("GRU", "bidirectional", linear_before_reset=1))
    agree(*network("LSTM", "forward", input_forget=1))


def info(name, kind, dims):
    return helper.make_tensor_value_info(name, kind, dims)


def one_node(node, inputs, outputs, stored=()):
    return model_of([node], inputs, outputs, stored, opset=16)


def test_loop_that_grows_and_ends_early():
    """An outer value and an initializer are captured; the carried dims change."""
    f, i, b = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    body = helper.make_graph(
        [
            helper.make_node("Concat", ["v", "x"], ["longer"], axis=0),
            helper.make_node("ReduceSum", ["longer"], ["sum"], keepdims=0),
            helper.make_node("Less", ["sum", "limit"], ["more"]),
            helper.make_node("Mul", ["sum", "x"], ["row"]),
        ],
        "body",
        [info("n", i, []), info("go", b, []), info("v", f, None)],
        [info("more", b, []), info("longer", f, None), info("row", f, [2])],
    )
    node = helper.make_node("Loop", ["trips", "", "x"], ["last", "rows"], body=body)
    guarded = helper.make_node("Loop", ["trips", "cond", "x"], ["last", "rows"], body=body)
    outputs = [info("last", f, None), info("rows", f, None)]
    stored = [numpy_helper.from_array(np.float32(20), "limit")]
    x = np.array([1, 2], np.float32)
    feeds = [{"trips": np.array(n), "x": x, "cond": np.array(True)} for n in (0, 1, 4, 30)]
    inputs = [info("trips", i, []), info("x", f, [2]), info("cond", b, [])]
    agree(one_node(guarded, inputs, outputs, stored), *feeds)
    agree(
        one_node(node, inputs[:2], outputs, stored),
        *({k: v for k, v in f.items() if k != "cond"} for f in feeds[:3]),
    )


def test_if_of_other_dims_and_a_reversed_scan():
    f, b = TensorProto.FLOAT, TensorProto.BOOL
    then = helper.make_graph([helper.make_node("Neg", ["x"], ["t"])], "t", [], [info("t", f, None)])
    other = helper.make_graph(
        [helper.make_node("Concat", ["x", "x"], ["e"], axis=0)], "e", [], [info("e", f, None)]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    model = one_node(node, [info("c", b, []), info("x", f, ["n", 2])], [info("y", f, None)])
    agree(model, *({"c": np.array(c), "x": x} for c in (True, False)))
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "r"], ["s2"]),
            helper.make_node("Mul", ["s2", "r"], ["out"]),
        ],
        "body",
        [info("s", f, [3]), info("r", f, [3])],
        [info("s2", f, [3]), info("out", f, [3])],
    )
    node = helper.make_node(
        "Scan", ["s0", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_axes=[1],
        scan_input_directions=[1], scan_output_axes=[1], scan_output_directions=[1],
    )  # fmt: skip
    outputs = [info("last", f, None), info("all", f, None)]
    model = one_node(node, [info("s0", f, [3]), info("x", f, [3, "n"])], outputs)
    agree(model, *({"s0": np.ones(3, np.float32), "x": np.ones((3, n), "f") * n} for n in (1, 4)))


def test_a_dynamic_batch_is_that_of_the_first_state() -> None:
    """A squeeze of every dim of 1 then knows the batch."""
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal((1, 9, k)) for n, k in (("w", 2), ("r", 3))}
    data = parsed_bytes(
        """(float[t,b,2] x, float[1,1,3] h) => (float[m] y)
        { y0, last = GRU <hidden_size = 3> (x, w, r, , , h) y = Squeeze (last) }""",
        weights,
        opset=12,
    )
    for target in ("cpu", "ref"):
        calls = [
            {"x": rng.standard_normal((length, 1, 2)).astype(np.float32),
             "h": rng.standard_normal((1, 1, 3)).astype(np.float32)}
            for length in (1, 5)
        ]  # fmt: skip
        program = agrees(data, calls, target, atol=1e-6)
        with pytest.raises(RunError):
            program.run(x=np.zeros((5, 2, 2), np.float32), h=calls[0]["h"])


@pytest.mark.parametrize("known", ["x", "lens", "h"])
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_a_batch_that_one_operand_states(known: str, target: str) -> None:
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal((2, 9, k)) for n, k in (("w", 2), ("r", 3))}
    of = {n: "2" if n == known else f"b{n}" for n in ("x", "lens", "h")}
    data = parsed_bytes(
        f"""(float[t,{of["x"]},2] x, int32[{of["lens"]}] lens, float[d,{of["h"]},k] h)
        => (float[t,n,m,k] y, float[n,m,k] last)
        {{ y, last = GRU <hidden_size = 3, direction = "bidirectional"> (x, w, r, , lens, h) }}""",
        weights,
        opset=14,
    )
    call = {
        "x": rng.standard_normal((4, 2, 2)).astype(np.float32),
        "lens": np.array([1, 4], np.int32),
        "h": rng.standard_normal((2, 2, 3)).astype(np.float32),
    }
    program = agrees(data, [call], target, atol=1e-6)
    with pytest.raises(RunError):
        program.run(call | {"x": np.zeros((4, 3, 2), np.float32), "lens": np.ones(3, np.int32)})
