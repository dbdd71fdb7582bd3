"""Engines that hold an LLVM of their own: each computes something of size n and checks it."""

from __future__ import annotations

from typing import Any

import numpy as np

# Engines are imported inside functions: a process imports those of its arguments, in their order.


def drawn(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)


def close(found: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-4, atol=1e-4)


def ours(n: int) -> None:
    from onnx import TensorProto, helper

    import mgx_mlir

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [n, n]) for name in "xy"]
    nodes = [helper.make_node("MatMul", ["x", "x"], ["z"]), helper.make_node("Tanh", ["z"], ["y"])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = drawn(n)
    [y] = mgx_mlir.compile(model, "cpu", cache=False).run({"x": x})
    close(y, np.tanh(x @ x))


def tensorflow(n: int) -> None:
    """XLA."""
    import tensorflow as tf

    x = drawn(n)
    f = tf.function(lambda a: tf.tanh(a @ a) + tf.cumsum(a), jit_compile=True)
    close(f(x), np.tanh(x @ x) + np.cumsum(x, 0))


def jax(n: int) -> None:
    import jax

    x = drawn(n)
    close(jax.jit(lambda a: jax.numpy.tanh(a @ a))(x), np.tanh(x @ x))


def torch(n: int) -> None:
    """Inductor."""
    import torch

    x = drawn(n)
    close(torch.compile(lambda a: torch.tanh(a @ a))(torch.from_numpy(x)), np.tanh(x @ x))


def numba(n: int) -> None:
    import numba

    x = drawn(n)
    close(numba.njit(lambda a: np.tanh(a).sum())(x), np.tanh(x).sum())


def triton(n: int) -> None:
    """PTX, which needs no GPU."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tests.process import triton_kernel

    size = {5: 64, 7: 128, 9: 256}[n]
    source = ASTSource(
        fn=triton.jit(triton_kernel.added_sum),
        signature={"a": "*fp32", "n": "i32", "SIZE": "constexpr"},
        constexprs={"SIZE": size},
    )
    made = triton.compile(source, target=GPUTarget("cuda", 80, 32))
    assert ".visible .entry added_sum" in made.asm["ptx"]


def circt(n: int) -> None:
    """Another wheel of MLIR bindings."""
    import circt
    from circt import ir, passmanager

    with ir.Context() as context, ir.Location.unknown():
        circt.register_dialects(context)
        module = ir.Module.parse(
            f"hw.module @a(in %x: i{n}, out y: i{n}) {{ hw.output %x : i{n} }}"
        )
        passmanager.PassManager.parse("builtin.module(cse,canonicalize)").run(module.operation)
        assert f"hw.output %x : i{n}" in str(module)


def halide(n: int) -> None:
    import halide as hl

    x, f = hl.Var("x"), hl.Func("f")
    f[x] = x * 3
    assert f.realize([n])[n - 1] == 3 * (n - 1)


def taichi(n: int) -> None:
    import taichi as ti

    ti.init(arch=ti.cpu)
    a = ti.field(ti.f32, shape=n)

    @ti.kernel
    def fill():
        for i in a:
            a[i] = i * 2.0

    fill()
    assert a[n - 1] == 2 * (n - 1)
