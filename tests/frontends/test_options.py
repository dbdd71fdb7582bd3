"""The options of reading an ONNX model, and what the importer says of a model's problems."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from mgx_mlir.core.errors import ModelError, UnsupportedModel, UsageError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.dims import DynamicDim
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.frontends.onnx.options import OnnxOptions
from mgx_mlir.frontends.program import DEBUG_SYMBOLS
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.program_ir import DIMS, ProgramIR, argument_attributes, argument_types

ADD = """<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 3] x, float[batch, n] y) => (float[batch, 3] z) { z = Relu(x) w = Neg(y) }"""
LOCAL = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (float[2] x) => (float[2] y) { y = local.f0(x) }"""


def parsed(text: str, **options: object) -> ProgramIR:
    data = onnx.parser.parse_model(text).SerializeToString()
    return parse_onnx_buffer(data, OnnxOptions(**options))  # type: ignore[arg-type]


def dims(program: ProgramIR) -> list[tuple[int, ...]]:
    return [t.dims for t in argument_types(program.main())]


def test_dynamic_dims_are_dynamic_with_their_symbol() -> None:
    program = parsed(ADD)
    assert dims(program) == [(DYN, 3), (DYN, DYN)]
    with program.ctx:
        attributes = [str(d[DIMS]) for d in argument_attributes(program.main())]
    assert attributes == [
        '[{min = 0 : i64, symbol = "batch"}, 3]',
        '[{min = 0 : i64, symbol = "batch"}, {min = 0 : i64, symbol = "n"}]',
    ]


@pytest.mark.parametrize("name", ["?", "-1", "_", "2"])
def test_signs_of_dynamic_dims_are_no_symbols(name: str) -> None:
    """Exporters put them where they know no name; dims of one sign have sizes of their own."""
    model = onnx.parser.parse_model(ADD)
    for graph_input in model.graph.input:
        for d in graph_input.type.tensor_type.shape.dim:
            if d.HasField("dim_param"):
                d.dim_param = name
    program = parse_onnx_buffer(model.SerializeToString(), OnnxOptions())
    with program.ctx:
        attributes = [str(d[DIMS]) for d in argument_attributes(program.main())]
    assert not any("symbol" in a for a in attributes)
    fixed = parse_onnx_buffer(model.SerializeToString(), OnnxOptions(dim_params={name: 4}))
    assert dims(fixed) == [(4, 3), (4, 4)]


def test_default_dim_value() -> None:
    assert dims(parsed(ADD, default_dim_value=5)) == [(5, 3), (5, 5)]


def test_default_dyn_dim_value() -> None:
    program = parsed(ADD, default_dyn_dim_value=DynamicDim(1, 8, (2, 4)))
    assert dims(program) == [(DYN, 3), (DYN, DYN)]
    with program.ctx:
        text = str(argument_attributes(program.main())[0][DIMS])
    assert "max = 8" in text
    assert "optimals = array<i64: 2, 4>" in text
    assert dims(parsed(ADD, default_dyn_dim_value=DynamicDim(4, 4))) == [(4, 3), (4, 4)]


def test_dim_params() -> None:
    assert dims(parsed(ADD, dim_params={"batch": 7})) == [(7, 3), (7, DYN)]
    found = parsed(ADD, dim_params={"batch": DynamicDim(1, 4), "n": DynamicDim(3, 3)})
    assert dims(found) == [(DYN, 3), (DYN, 3)]


def test_map_input_dims() -> None:
    assert dims(parsed(ADD, map_input_dims={"y": [2, 9]})) == [(DYN, 3), (2, 9)]
    found = parsed(ADD, map_dyn_input_dims={"x": [DynamicDim(1, 4), 3]})
    assert dims(found) == [(DYN, 3), (DYN, DYN)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"map_input_dims": {"q": [1]}}, "dims are given for 'q', which is no input"),
        ({"map_input_dims": {"x": [1]}}, "input 'x' has 2 dims, the option gives 1"),
        ({"map_input_dims": {"x": [-1, 3]}}, "negative dim"),
        ({"dim_params": {"q": 1}}, "a size is given for 'q', which is no symbol"),
    ],
)
def test_wrong_names_and_sizes(options: dict, text: str) -> None:
    with pytest.raises(UsageError) as e:
        parsed(ADD, **options)
    assert text in str(e.value)


def test_options_that_exclude_each_other() -> None:
    with pytest.raises(UsageError):
        OnnxOptions(default_dim_value=1, default_dyn_dim_value=DynamicDim(1, 2))
    with pytest.raises(UsageError):
        OnnxOptions(map_input_dims={"x": [1]}, map_dyn_input_dims={"x": [1]})
    with pytest.raises(UsageError):
        DynamicDim(4, 2)
    with pytest.raises(UsageError):
        DynamicDim(1, 4, (9,))


def test_an_input_without_rank_needs_dims() -> None:
    model = onnx.parser.parse_model(ADD)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    data = model.SerializeToString()
    with pytest.raises(ModelError, match="input 'x' has no rank"):
        parse_onnx_buffer(data)
    found = parse_onnx_buffer(data, OnnxOptions(map_input_dims={"x": [2, 3]}))
    assert dims(found)[0] == (2, 3)


def test_use_debug_symbols() -> None:
    assert DEBUG_SYMBOLS in parsed(ADD, use_debug_symbols=True).module.operation.attributes
    assert DEBUG_SYMBOLS not in parsed(ADD).module.operation.attributes


def test_print_program_on_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = ADD.replace("w = Neg(y)", "v = Neg(x) w = Concat <axis = 9> (y, y)")
    with pytest.raises(ModelError):
        parsed(text, print_program_on_error=True)
    assert "migraphx.relu" in capsys.readouterr().err


def test_unsupported_nodes_are_one_table() -> None:
    text = ADD.replace("w = Neg(y)", "a = Foo(y) b = Foo(a) c = Bar(y)")
    with pytest.raises(UnsupportedModel) as e:
        parsed(text)
    message = str(e.value)
    assert "3 nodes are not supported, of 2 kinds" in message
    assert "Foo (opset 17)  " in message
    assert "2 nodes, first 'Foo_1'" in message
    assert e.value.exit_code == 2


def test_unknown_operators_keep_what_onnx_knows_of_them() -> None:
    found = parsed(ADD.replace("w = Neg(y)", "w = Foo(y)"), skip_unknown_operators=True)
    with found.ctx:
        assert "unknown" not in found.text()  # nobody uses it
    found = parsed(ADD.replace("z = Relu(x)", "z = Foo(x)"), skip_unknown_operators=True)
    assert 'op = "Foo"' in found.text()


def test_recursive_functions_end() -> None:
    text = LOCAL + '\n<domain: "local", opset_import: ["" : 17, "local" : 1]>\n'
    text += "f0 (a) => (b) { b = local.f0(a) }"
    with pytest.raises(ModelError, match="functions nest too deep or too often"):
        parsed(text)


def test_functions_that_double_end() -> None:
    """Thirty functions, each calling the one before twice: a billion nodes."""
    text = LOCAL.replace("f0", "f29")
    for i in range(30):
        body = "b = Neg(a)" if i == 0 else f"c = local.f{i - 1}(a) b = local.f{i - 1}(c)"
        text += '\n<domain: "local", opset_import: ["" : 17, "local" : 1]>\n'
        text += f"f{i} (a) => (b) {{ {body} }}"
    import mgx_mlir.frontends.importer as importer

    most, importer.MAX_NODES = importer.MAX_NODES, 2000
    try:
        with pytest.raises(ModelError, match="functions nest too deep or too often"):
            parsed(text)
    finally:
        importer.MAX_NODES = most


@pytest.mark.parametrize("attribute", [False, True])
def test_sparse_values(attribute: bool) -> None:
    """Sparse values of the graph, or of a Constant."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x) => (float[2,3] y) '
        "{ y = Add(x, s) }"
    )
    sparse = onnx.SparseTensorProto(dims=[2, 3])
    sparse.values.CopyFrom(onnx.numpy_helper.from_array(np.float32([5, 6]), "s"))

    def made(indices: np.ndarray) -> bytes:
        sparse.indices.CopyFrom(onnx.numpy_helper.from_array(indices))
        whole = onnx.ModelProto()
        whole.CopyFrom(model)
        if attribute:
            whole.graph.node.insert(
                0, onnx.helper.make_node("Constant", [], ["s"], sparse_value=sparse)
            )
        else:
            whole.graph.sparse_initializer.append(sparse)
        return whole.SerializeToString()

    for indices in (np.int64([1, 5]), np.int64([[0, 1], [1, 2]])):
        program = parse_onnx_buffer(made(indices))
        run = Interpreter(program.module, program.store).run({"x": np.zeros((2, 3), np.float32)})
        assert run[0].tolist() == [[0, 5, 0], [0, 0, 6]]
    with pytest.raises(ModelError, match="indices out of range"):
        parse_onnx_buffer(made(np.int64([1, 6])))
