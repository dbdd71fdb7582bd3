"""Equal results of dispatch regions: merged here, for the compiler mixes up what it merges."""

from __future__ import annotations

import io

import numpy as np
import pytest

from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.iree.equal_results import merge_equal_results
from mgx_mlir.programs.lowered import IOSpec, Lowered
from tests.lowering.programs import execute

X = np.array([-1.25, 0.5, 2.75, 4.0], np.float32)
FLOOR, EXP, SQUARE = np.floor(X), np.exp(X), X * X

# ops that yield each letter from %in; letters of one kind are equal once folded
YIELDS = {
    "a": "%a = math.floor %in : f32",
    "b": "%b = math.exp %in : f32",
    "c": "%c = arith.mulf %in, %in : f32",
    "d": "%d = arith.mulf %in, %in : f32",
    "e": "%no = arith.constant false\n%l = arith.cmpf olt, %in, %z : f32\n"
    "%m = arith.andi %no, %l : i1\n%e = arith.select %m, %in, %z : f32",
    "f": "%t = arith.cmpf olt, %in, %z : f32\n%u = arith.andi %no, %t : i1\n"
    "%f = arith.select %u, %a, %z : f32",
}
WANT = {"a": FLOOR, "b": EXP, "c": SQUARE, "d": SQUARE, "e": 0 * X, "f": 0 * X}


def one_generic(letters: str, dims: str = "4") -> str:
    """A region of one linalg.generic that yields these letters, on tensors of `dims`."""
    n, t = len(letters), f"tensor<{dims}xf32>"
    empty = "tensor.empty(%n)" if dims == "?" else "tensor.empty()"
    types = ", ".join([t] * n)
    outs = ", ".join(f"%e{i}" for i in range(n))
    return f"""
    #m = affine_map<(d0) -> (d0)>
    func.func @main(%x: {t}) -> ({types}) {{
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : {t}
      %r:{n} = "flow.dispatch.region"({", ".join(["%n"] * n if dims == "?" else [])}) ({{
        %z = arith.constant 0.0 : f32
        {"".join(f"%e{i} = {empty} : {t}" + chr(10) for i in range(n))}
        %g:{n} = linalg.generic {{indexing_maps = [{", ".join(["#m"] * (n + 1))}],
            iterator_types = ["parallel"]}} ins(%x : {t}) outs({outs} : {types}) {{
        ^bb0(%in: f32, {", ".join(f"%o{i}: f32" for i in range(n))}):
          {chr(10).join(YIELDS.values())}
          linalg.yield {", ".join("%" + k for k in letters)} : {", ".join(["f32"] * n)}
        }} -> ({types})
        "flow.return"({", ".join(f"%g#{i}" for i in range(n))}) : ({types}) -> ()
      }}, {{
      }}) {{operandSegmentSizes = array<i32: {n if dims == "?" else 0}, 0>}}
        : ({", ".join(["index"] * n if dims == "?" else [])}) -> ({types})
      return {", ".join(f"%r#{i}" for i in range(n))} : {types}
    }}"""


def merged(text: str) -> ir.Module:
    context = new_context()
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        merge_equal_results(module)
        assert module.operation.verify()
        return module


def returned(module: ir.Module) -> list[int]:
    """Return the region's result that each result of the function is."""
    body = module.body.operations[0].regions[0].blocks[0]
    end = body.operations[len(body.operations) - 1]
    return [ir.OpResult(v).result_number for v in end.operands]


@pytest.mark.parametrize("name", ["region", "workgroups"])
def test_extents_of_results_of_one_dispatch(name: str) -> None:
    """Extents of different results are equal where the dispatch states one value for both."""
    given = "%n, %n" if name == "region" else "%x, %n, %n, %n"
    sizes = "2, 0" if name == "region" else "0, 1, 1, 2"
    types = "index, index" if name == "region" else "tensor<?xf32>, index, index, index"
    text = f"""
    #m = affine_map<(d0) -> (d0)>
    #one = affine_map<(d0) -> (0)>
    func.func @main(%x: tensor<?xf32>) -> (tensor<?xindex>, tensor<?xindex>) {{
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      %p:2 = "flow.dispatch.{name}"({given}) ({{
        "test.body"() : () -> ()
      }}, {{
      }}) {{operandSegmentSizes = array<i32: {sizes}>}}
        : ({types}) -> (tensor<?xf32>, tensor<?xf32>)
      %a = tensor.dim %p#0, %c0 : tensor<?xf32>
      %b = tensor.dim %p#1, %c0 : tensor<?xf32>
      %r:2 = "flow.dispatch.region"(%n, %n) ({{
        %e = tensor.empty(%n) : tensor<?xindex>
        %s = tensor.from_elements %a : tensor<1xindex>
        %t = tensor.from_elements %b : tensor<1xindex>
        %g:2 = linalg.generic {{indexing_maps = [#one, #one, #m, #m],
            iterator_types = ["parallel"]}}
            ins(%s, %t : tensor<1xindex>, tensor<1xindex>)
            outs(%e, %e : tensor<?xindex>, tensor<?xindex>) {{
        ^bb0(%i0: index, %i1: index, %o0: index, %o1: index):
          linalg.yield %i0, %i1 : index, index
        }} -> (tensor<?xindex>, tensor<?xindex>)
        "flow.return"(%g#0, %g#1) : (tensor<?xindex>, tensor<?xindex>) -> ()
      }}, {{
      }}) {{operandSegmentSizes = array<i32: 2, 0>}}
        : (index, index) -> (tensor<?xindex>, tensor<?xindex>)
      return %r#0, %r#1 : tensor<?xindex>, tensor<?xindex>
    }}"""
    assert returned(merged(text)) == [0, 0]


@pytest.mark.parametrize("dims", ["4", "?"])
@pytest.mark.parametrize(
    ("letters", "results"),
    [
        ("abc", [0, 1, 2]),
        ("abcd", [0, 1, 2, 2]),
        ("acdb", [0, 1, 1, 2]),
        ("aef", [0, 1, 1]),
        ("eacfdb", [0, 1, 2, 0, 2, 3]),
    ],
)
def test_equal_results_are_one(letters: str, results: list[int], dims: str) -> None:
    assert returned(merged(one_generic(letters, dims))) == results


def test_equal_generics_are_one() -> None:
    part = """%e{0} = tensor.empty() : tensor<4xf32>
        %{0} = linalg.generic {{indexing_maps = [#m, #m], iterator_types = ["parallel"]}}
            ins(%x : tensor<4xf32>) outs(%e{0} : tensor<4xf32>) {{
        ^bb0(%in: f32, %out: f32):
          %v = math.{1} %in : f32
          linalg.yield %v : f32
        }} -> tensor<4xf32>"""
    names = {"a": "floor", "b": "exp", "c": "exp"}
    types = ", ".join(["tensor<4xf32>"] * 3)
    module = merged(f"""
    #m = affine_map<(d0) -> (d0)>
    func.func @main(%x: tensor<4xf32>) -> ({types}) {{
      %r:3 = "flow.dispatch.region"() ({{
        {chr(10).join(part.format(*item) for item in names.items())}
        "flow.return"(%a, %b, %c) : ({types}) -> ()
      }}, {{}}) {{operandSegmentSizes = array<i32: 0, 0>}} : () -> ({types})
      return %r#0, %r#1, %r#2 : {types}
    }}""")
    assert returned(module) == [0, 1, 1]


def test_numbers() -> None:
    """IREE's code is right; without the merge the last result is the first one."""
    letters = "abcdef"
    module = merged(one_generic(letters))
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    spec = [IOSpec("x", "float_type", (4,))]
    outputs = [IOSpec(k, "float_type", (4,)) for k in letters]
    got = execute(Lowered(buffer.getvalue(), {}, spec, outputs, []), [X])
    for letter, found in zip(letters, got, strict=True):
        np.testing.assert_allclose(found, WANT[letter], rtol=1e-6, err_msg=letter)
