"""Building modules, walking them, and what refuses to be built."""

from __future__ import annotations

import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core.errors import MgxError, ShapeError, UsageError

op = migraphx.op


def floats(*lens: int) -> migraphx.shape:
    return migraphx.shape(type="float", lens=list(lens))


def dot_add() -> tuple[migraphx.program, dict[str, migraphx.instruction_ref]]:
    p = migraphx.program()
    m = p.get_main_module()
    found = {"x": m.add_parameter("x", floats(2, 3)), "w": m.add_literal(np.ones((3, 4), "f4"))}
    found["dot"] = m.add_instruction(op("dot"), [found["x"], found["w"]])
    found["bias"] = m.add_parameter("bias", floats(2, 4))
    found["add"] = m.add_instruction(op("add"), [found["dot"], found["bias"]])
    return p, found


def test_walking() -> None:
    p, i = dot_add()
    m = p.get_main_module()
    assert [x.name() for x in m] == ["@literal", "@param", "@param", "dot", "add"]
    assert len(m) == 5
    assert list(m) == [i["w"], i["bias"], i["x"], i["dot"], i["add"]]
    assert i["add"].inputs() == [i["dot"], i["bias"]]
    assert i["dot"].outputs() == [i["add"]]
    assert i["x"].outputs() == [i["dot"]]
    assert i["add"].outputs() == []
    assert len({*m, *m}) == 5
    assert i["x"].op().values() == {"parameter": "x"}
    assert i["w"].get_literal() == migraphx.argument(np.ones((3, 4), "f4"))
    with pytest.raises(ShapeError, match="expected a @literal"):
        i["dot"].get_literal()
    assert i["dot"].shape() == floats(2, 4)
    assert repr(i["add"]) == "@2 = add(@1,bias) -> float_type, {2, 4}, {4, 1}"
    assert repr(m) == repr(p)
    assert m.get_parameter_names() == ["x", "bias"]


def test_returns() -> None:
    p, i = dot_add()
    m = p.get_main_module()
    assert p.get_output_shapes() == [floats(2, 4)]  # without one, the last instruction
    assert "@return" not in repr(p)
    end = m.add_return([i["add"], i["dot"]])
    assert end.name() == "@return"
    assert end.inputs() == [i["add"], i["dot"]]
    assert i["dot"].outputs() == [i["add"], end]
    assert p.get_output_shapes() == [floats(2, 4)] * 2
    with pytest.raises(ShapeError, match="a return already"):
        m.add_return([i["add"]])
    neg = m.add_instruction(op("neg"), [i["dot"]])  # goes ahead of the return
    m.replace_return([neg])
    assert repr(p).splitlines()[-2:] == [
        "@3 = neg(@1) -> float_type, {2, 4}, {4, 1}",
        "@4 = @return(@3)",
    ]
    assert i["add"].shape() == floats(2, 4)  # older references stay


def test_a_program_grows_after_it_was_looked_at() -> None:
    p, i = dot_add()
    m = p.get_main_module()
    p.get_output_shapes()
    y = m.add_instruction(op("relu"), [i["add"]])
    assert y.inputs() == [i["add"]]
    z = m.insert_instruction(y, op("neg"), [i["add"]])
    assert repr(z).startswith("@3 = neg(@2)")
    assert repr(p).splitlines()[-1].startswith("@4 = relu(@2)")
    x = np.ones((2, 3), "f4")
    assert (
        np.array(p.run({"x": x, "bias": -4 * np.ones((2, 4), "f4")})[0]).tolist() == [[0] * 4] * 2
    )


def test_attributes_and_enums() -> None:
    o = op("pooling", mode=op.pooling_mode.lpnorm, lengths=[2, 2])
    assert o.name() == "pooling"
    assert o.values()["mode"] == 2
    assert o.values()["stride"] == [1, 1]
    assert op("convert").values() == {"target_type": 1}
    assert op("dot").values() == {}
    assert op("lstm", direction=op.rnn_direction.reverse).values()["direction"] == 1
    assert op("round").name() == "nearbyint"
    assert op("deconvolution").name() == "convolution_backwards"
    assert op("multibroadcast", output_lens=[2]).values()["out_lens"] == [2]
    assert op("dot", alpha=1, beta=1).values() == {}
    assert op("add") == op("add")
    assert op("softmax", axis=0) != op("softmax", axis=1)
    for wrong, message in (
        (lambda: op("softmx"), "did you mean 'softmax'"),
        (lambda: op("softmax", axs=1), "did you mean 'axis'"),
        (lambda: op("softmax", axis="one"), "expected an integer"),
        (lambda: op("pooling", mode=7), "expected 0 to 2"),
        (lambda: op("transpose", permutation=3), "expected a list"),
        (lambda: op("convert", target_type="flot"), "unknown type"),
        (lambda: op("dot", alpha=2.0), "not supported"),
    ):
        with pytest.raises(ShapeError) as e:
            wrong()
        assert message in str(e.value)


def test_wrong_instructions() -> None:
    p, i = dot_add()
    m = p.get_main_module()
    for what, args, message in (
        (op("add"), [i["dot"]], "expected 2 inputs, got 1"),
        (op("add"), [i["dot"], i["x"]], "equal dims"),
        (op("softmax", axis=5), [i["dot"]], "axis"),
        (op("get_tuple_elem", index=0), [i["dot"]], "expected one tuple"),
        (op("pointwise"), [i["dot"]], "expected 1 modules, got 0"),
    ):
        with pytest.raises(ShapeError, match=message):
            m.add_instruction(what, args)
    with pytest.raises(ShapeError, match="a parameter 'x' already"):
        m.add_parameter("x", floats(1))
    with pytest.raises(UsageError, match="another program"):
        m.add_instruction(op("neg"), [dot_add()[1]["dot"]])
    with pytest.raises(UsageError, match="expected an instruction_ref"):
        m.add_instruction(op("neg"), [3])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="expected an op"):
        m.add_instruction("neg", [i["dot"]])  # type: ignore[arg-type]
    assert len(m) == 5


def test_tuples() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", floats(3, 5))
    top = m.add_instruction(op("topk", k=2, axis=1), [x])
    assert [s.type_string() for s in top.shape().sub_shapes()] == ["float_type", "int64_type"]
    with pytest.raises(ShapeError, match="tuple"):
        m.add_instruction(op("neg"), [top])
    v = m.add_instruction(op("get_tuple_elem", index=0), [top])
    assert v.name() == "get_tuple_elem"
    assert v.op().values() == {"index": 0}
    assert v.inputs() == [top]
    m.add_return([v])
    assert top.outputs() == [v]
    data = np.random.default_rng(0).standard_normal((3, 5)).astype("f4")
    np.testing.assert_array_equal(np.array(p.run({"x": data})[0]), -np.sort(-data, 1)[:, :2])


def test_submodules_of_if_and_loop() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    c = m.add_parameter("c", migraphx.shape(type="bool"))
    x = m.add_parameter("x", floats(3))
    then, other = p.create_module("yes"), p.create_module("no")
    t = then.add_instruction(op("exp"), [x])
    then.add_return([t])
    two = other.add_literal(np.full(3, 2, "f4"))
    other.add_return([other.add_instruction(op("mul"), [x, two])])
    both = m.add_instruction(op("if"), [c], [then, other])
    assert t.inputs() == [x]
    with pytest.raises(ShapeError, match="cannot be an argument"):
        m.add_instruction(op("if"), [c], [then, other])
    y = m.add_instruction(op("get_tuple_elem", index=0), [both])
    body = p.create_module("body")
    body.add_parameter("i", migraphx.shape(type="int64"))
    go = body.add_parameter("go", migraphx.shape(type="bool"))
    state = body.add_parameter("state", floats(3))
    body.add_return([go, body.add_instruction(op("add"), [state, x])])
    n, true = m.add_literal(np.array(4)), m.add_literal(np.array(True))
    loop = m.add_instruction(op("loop", max_iterations=9), [n, true, y], [body])
    assert state.shape() == floats(3)
    assert state.name() == "@param"
    m.add_return([m.add_instruction(op("get_tuple_elem", index=0), [loop])])
    a = np.array([1, 2, 3], "f4")
    for flag, start in ((True, np.exp(a)), (False, 2 * a)):
        got = np.array(p.run({"c": np.array(flag), "x": a})[0])
        np.testing.assert_allclose(got, start + 4 * a, rtol=1e-6)
    text = repr(p)
    assert ", [yes, no] -> [float_type, {3}, {1}]" in text
    assert 'module: "body"' in text
    with pytest.raises(ShapeError, match="a module 'yes' already"):
        p.create_module("yes")


def test_wrong_submodules_leave_the_program_whole() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    c = m.add_parameter("c", migraphx.shape(type="bool"))
    x = m.add_parameter("x", floats(3))
    then, other = p.create_module("yes"), p.create_module("no")
    then.add_return([x])
    other.add_return([x, x])
    with pytest.raises(ShapeError, match="different types"):
        m.add_instruction(op("if"), [c], [then, other])
    m.add_instruction(op("neg"), [x])
    assert np.array(p.run({"c": np.array(True), "x": np.ones(3, "f4")})[0]).tolist() == [-1] * 3


def test_stale_references_raise() -> None:
    p, i = dot_add()
    m = p.get_main_module()
    p.sort()
    for stale in (i["dot"].shape, i["dot"].name, lambda: repr(i["dot"]), lambda: list(m)):
        with pytest.raises(UsageError, match="is stale"):
            stale()
    p.compile(migraphx.get_target("ref"))
    found = list(p.get_main_module())
    assert [x.name() for x in found][-2:] == ["ref::dot", "ref::add"]
    with pytest.raises(UsageError, match="compiled"):
        p.get_main_module().add_parameter("y", floats(1))


def test_sort_puts_uses_behind_definitions() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", floats(2))
    a = m.add_instruction(op("neg"), [x])
    b = m.add_instruction(op("exp"), [x])
    dead = m.add_instruction(op("abs"), [b])
    m.add_instruction(op("relu"), [dead])
    m.add_return([m.add_instruction(op("sub"), [m.add_instruction(op("sin"), [b]), a])])
    before = np.array(p.run({"x": np.ones(2, "f4")})[0])
    p.sort()
    assert [i.name() for i in p.get_main_module()] == [
        "@param", "exp", "sin", "neg", "sub", "abs", "relu", "@return",
    ]  # fmt: skip
    assert np.array_equal(before, np.array(p.run({"x": np.ones(2, "f4")})[0]))


def test_missing_names_say_what_is_missing() -> None:
    p = migraphx.program()
    for call in (
        lambda: migraphx.to_gpu(None),
        lambda: p.run_async({}, 0, "hipStream_t"),
    ):
        with pytest.raises(MgxError):
            call()


def test_every_exported_name_is_there() -> None:
    for name in migraphx.__all__:
        assert getattr(migraphx, name) is not None
    assert set(migraphx.__all__) <= set(dir(migraphx))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        migraphx.nothing  # noqa: B018
