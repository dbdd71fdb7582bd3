"""propagate_constant within its bounds: what grows too much stays, what does not is folded."""

from __future__ import annotations

import numpy as np

import mgx_mlir as migraphx
import mgx_mlir.passes
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.literals import WeightStore, is_aligned, own
from mgx_mlir.core.weight_files import used_keys
from mgx_mlir.rewrite.passes import resolve, run_pipeline
from tests.formats.greedy import long_line, model, n


def folded(data: bytes, growth: int) -> str:
    p = migraphx.parse_onnx_buffer(data)
    found = p.program_ir
    with found.ctx, found.store.active():
        steps = (f"mgx-propagate-constant{{max-growth={growth}}}", "mgx-dead-code-elimination")
        run_pipeline(
            found.module.operation, resolve(f"builtin.module({','.join(steps)})", found.ctx)
        )
    return found.text()


def test_what_grows_stays_once_there_is_no_room() -> None:
    """40 products of 10,000 bytes each; 16 of them fit. Weights that are turned always do."""
    nodes = []
    for i in range(40):
        nodes += [n("Mul", f"a{i},b", f"m{i}"), n("Add", f"m{i},x", f"t{i}")]
    nodes += [n("Transpose", "w", "v", perm=[1, 0]), n("Add", "v,x", "t40")]
    nodes += [n("ReduceSum", f"t{i}", f"s{i}") for i in range(41)]
    nodes.append(n("Sum", ",".join(f"s{i}" for i in range(41))))
    columns = {f"a{i}": long_line(50, 1) + i for i in range(40)}
    data = model(nodes, b=long_line(1, 50), w=long_line(30, 40), **columns)
    text = folded(data, 10_000)
    assert 20 <= text.count('"migraphx.mul"') <= 26
    assert "migraphx.transpose" not in text
    assert folded(data, 1 << 20).count('"migraphx.mul"') == 0


def test_what_lies_between_is_bounded() -> None:
    data = model(
        [n("Mul", "a,b", "c"), n("ReduceSum", "c", "d"), n("Add", "d,x")],
        a=long_line(2000, 1), b=long_line(1, 2000),
    )  # fmt: skip
    assert "migraphx.reduce_sum" not in folded(data, 16 << 20)
    assert "migraphx.reduce_sum" in folded(data, 1 << 20)


def test_the_value_is_that_of_the_ops() -> None:
    """Values that are used twice are computed once and are there for both."""
    nodes = [
        n("Mul", "a,b", "c"), n("Sin", "c", "d"), n("Add", "c,d", "e"), n("Mul", "e,c", "f"),
        n("ReduceMax", "f", "g"), n("Add", "g,x", "h"), n("Add", "e,h"),
    ]  # fmt: skip
    a, b = long_line(200, 1), long_line(1, 300)
    p = migraphx.parse_onnx_buffer(model(nodes, a=a, b=b))
    found = p.program_ir
    with found.ctx, found.store.active():
        run_pipeline(
            found.module.operation,
            resolve("builtin.module(mgx-propagate-constant,mgx-dead-code-elimination)", found.ctx),
        )
    assert "migraphx.sin" not in found.text()
    p.compile(migraphx.get_target("ref"))
    c = a * b
    e = c + np.sin(c)
    got = np.asarray(p.run({"x": np.float32([1])})[0])
    np.testing.assert_allclose(got, e + ((e * c).max() + 1), rtol=1e-6)


def test_a_large_weight_in_another_order_is_not_copied() -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((200, 300)).astype(np.float32)
    nodes = [n("Transpose", "w", "v", perm=[1, 0]), n("Add", "v,x", "y")]
    p = migraphx.parse_onnx_buffer(model(nodes, w=w)).program_ir
    with p.ctx, p.store.active():
        (before,) = (a for _, a in p.store.items())
        steps = "builtin.module(mgx-propagate-constant,mgx-dead-code-elimination)"
        run_pipeline(p.module.operation, resolve(steps, p.ctx))
        (key,) = used_keys(p.module.operation)
        assert np.shares_memory(p.store.seen(key), before)
        np.testing.assert_array_equal(p.store.seen(key), w.T)
        found = p.store.get(key)
        assert found.flags.c_contiguous
        assert not found.flags.writeable
        np.testing.assert_array_equal(found, w.T)
        assert p.store.get(key) is found is p.store.seen(key)


def test_what_is_kept_without_a_copy_has_all_elements_of_a_kept_array() -> None:
    store = WeightStore()
    kept = own(np.arange(60, dtype=np.float32).reshape(3, 4, 5))
    plain = store.add(kept)
    keys = {store.add_reordered(kept.transpose(o)) for o in ((2, 1, 0), (1, 0, 2), (2, 0, 1))}
    assert len(keys | {plain}) == 4
    assert None not in keys
    assert store.add_reordered(kept.transpose(2, 1, 0)) in keys
    for other in (
        kept[:, :, :4],
        kept[::2],
        kept[:, ::-1],
        kept,
        np.broadcast_to(kept, (2, 3, 4, 5)),
    ):
        assert store.add_reordered(other) is None
    assert store.add_reordered(own(np.ones((3, 4), np.float32)).T) is None, "nobody keeps it"


def test_folded_weights_are_aligned_once_they_are_parameters() -> None:
    halves = {f"w{i}": np.random.default_rng(i).random((300, 401), np.float32) for i in range(2)}
    nodes = [n("Concat", "w0,w1", "w", axis=0), n("Add", "w,x", "y")]
    made = migraphx.compile(model(nodes, **halves), "cpu", cache=False)
    assert isinstance(made, IreeProgram)
    assert any(a.size >= 600 * 401 for a in made.params.values())
    assert all(map(is_aligned, made.params.values()))
    found = made.run({"x": np.float32([1])})[0]
    np.testing.assert_array_equal(found, np.concatenate(list(halves.values())) + np.float32(1))
