"""Kernels: ops with a region whose ops run as one kernel."""

from __future__ import annotations

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import Kernel


class PointwiseKernel(Kernel, name="pointwise"):
    """One kernel of pointwise ops over one iteration space.

    The body holds pointwise ops and broadcasts of its arguments; every yielded value has the
    dims of the kernel. MIGraphX `pointwise` (there the submodule is on scalars).

    ```mlir
    %0 = "migraphx.pointwise"(%x, %y) ({
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %1 = "migraphx.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %2 = "migraphx.relu"(%1) : (tensor<4xf32>) -> tensor<4xf32>
      "migraphx.yield"(%2) : (tensor<4xf32>) -> ()
    }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ```
    """


class FusedReduce(Kernel, name="fused_reduce"):
    """One kernel of reductions over `axes` with the pointwise ops around them.

    MIGraphX `fused_reduce`. Softmax and the normalisations are of this form.

    ```mlir
    %0 = "migraphx.fused_reduce"(%x) ({
    ^bb0(%a: tensor<4x8xf32>):
      %1 = "migraphx.mul"(%a, %a) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %2 = "migraphx.reduce_sum"(%1) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
      "migraphx.yield"(%2) : (tensor<4x1xf32>) -> ()
    }) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    ```
    """

    axes = attr.ints(())


class Group(Kernel, name="group"):
    """One kernel around an anchor (a convolution, a dot, an attention, ...), named by `tag`.

    `extents`, if set, relates dynamic dims: it has each operand's dims as polynomials of sizes d0,
    d1, ..., as in `d0, 12*d1, 64`. MIGraphX `group`, which has no `extents`.

    ```mlir
    %0 = "migraphx.group"(%x, %w) ({
    ^bb0(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>):
      %1 = "migraphx.dot"(%a, %b) : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
      %2 = "migraphx.relu"(%1) : (tensor<4x2xf32>) -> tensor<4x2xf32>
      "migraphx.yield"(%2) : (tensor<4x2xf32>) -> ()
    }) {tag = "dot"} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    ```
    """

    tag = attr.str_("")
    extents = attr.strs(optional=True)


class FusedConcat(Kernel, name="fused_concat"):
    """One kernel of a concatenation along `axis` with the pointwise ops before and after it.

    `extents`, if set, relates dynamic dims as that of `group` does. MIGraphX `fused_concat`, which
    has a submodule per input and one for the ops after it; here one body holds them and the
    `concat`.

    ```mlir
    %0 = "migraphx.fused_concat"(%x, %y) ({
    ^bb0(%a: tensor<2xf32>, %b: tensor<3xf32>):
      %1 = "migraphx.relu"(%a) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "migraphx.concat"(%1, %b) {axis = 0 : i64}
             : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
      "migraphx.yield"(%2) : (tensor<5xf32>) -> ()
    }) {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
    ```
    """

    axis = attr.int_(0)
    extents = attr.strs(optional=True)


class SplitFusedReduce(Kernel, name="split_fused_reduce"):
    """A `fused_reduce` whose reduction is split over workgroups that combine by `assign`.

    MIGraphX `split_fused_reduce`. The values are those of `fused_reduce`; the target chooses how
    the work is split.

    ```mlir
    %0 = "migraphx.split_fused_reduce"(%x) ({
    ^bb0(%a: tensor<4x8xf32>):
      %1 = "migraphx.reduce_sum"(%a) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
      "migraphx.yield"(%1) : (tensor<4x1xf32>) -> ()
    }) {axes = array<i64: 1>, assign = "assign_add"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    ```
    """

    axes = attr.ints()
    assign = attr.enum(("assign_none", "assign_add"), "assign_none")
