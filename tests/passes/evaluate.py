"""Running modules before and after passes on the same random inputs."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np

import mgx_mlir.dialects
import mgx_mlir.passes  # noqa: F401  (declares the passes)
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.program_ir import argument_names, argument_types, main_function
from mgx_mlir.rewrite.passes import run_pipeline

CONTEXT = new_context()


def random_inputs(module: ir.Module, seed: int, unknown: int = 4) -> dict[str, np.ndarray]:
    """An array for each argument of the main function; dynamic extents are `unknown`."""
    rng = np.random.default_rng(seed)
    function = main_function(module)
    out = {}
    for name, t in zip(argument_names(function), argument_types(function), strict=True):
        dims = [unknown if d < 0 else d for d in t.dims]
        if t.dtype.is_float:
            array = rng.normal(0, 1.5, dims)
        elif t.dtype.is_bool:
            array = rng.integers(0, 2, dims)
        else:
            array = rng.integers(0 if t.dtype.is_unsigned else -5, 6, dims)
        out[name] = array.astype(t.dtype.np)
    return out


def before_and_after(
    module: ir.Module, store: WeightStore, passes: Sequence[str], seed: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Results of the main function before and after `passes` (run on the module itself)."""
    inputs = random_inputs(module, seed)
    before = Interpreter(module, store).run(inputs)
    run_pipeline(module, list(passes), store=store)
    return before, Interpreter(module, store).run(inputs)


def assert_same(before: Sequence[np.ndarray], after: Sequence[np.ndarray], rtol: float) -> None:
    """Equal dims, dtypes and elements; floats within `rtol` of the largest where it is not 0."""
    assert len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if rtol == 0 or a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
            continue
        # a rewrite may round at another place: two steps of the 16- or 8-bit type
        near = max(rtol, 2 * float(ml_dtypes.finfo(a.dtype).eps)) if a.itemsize < 4 else rtol
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(a)
        np.testing.assert_array_equal(a[~finite], b[~finite])
        scale = np.abs(a[finite]).max(initial=1e-3)
        np.testing.assert_allclose(a[finite], b[finite], rtol=near, atol=near * scale)
