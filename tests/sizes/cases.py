"""Small ONNX models with dynamic dims: inputs that fit, and inputs that do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import parser

Arrays = tuple[np.ndarray, ...]


def f(*dims: int) -> np.ndarray:
    return (np.arange(np.prod(dims, dtype=int)).reshape(dims) % 7 + 1).astype(np.float32)


def i(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def b(*values: int) -> np.ndarray:
    return np.array(values, np.bool_)


@dataclass(frozen=True)
class Model:
    """inputs, outputs, body: in ONNX's text. legal: inputs that fit; wrong: some that do not."""

    name: str
    inputs: str
    outputs: str
    body: str
    legal: Arrays
    wrong: list[Arrays]
    opset: int = 18

    def onnx(self) -> onnx.ModelProto:
        """The model; its nodes and values have its name in front."""
        text = f"g ({self.inputs}) => ({self.outputs}) {{ {self.body} }}"
        opsets = f'["": {self.opset}, "com.microsoft": 1, "ai.onnx.ml": 2]'
        model = parser.parse_model(f"<ir_version: 8, opset_import: {opsets}> {text}")
        self._rename(model.graph, self.name)
        return model

    def _rename(self, graph: onnx.GraphProto, nodes: str) -> None:
        for at, node in enumerate(graph.node):
            node.name = f"{nodes}.{at}"
            for names in (node.input, node.output):
                for k, v in enumerate(names):
                    names[k] = v and f"{self.name}.{v}"
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    self._rename(attribute.g, node.name)
        for value in (*graph.input, *graph.output):
            value.name = f"{self.name}.{value.name}"
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_param = f"{self.name}.{dim.dim_param}"

    def named(self, arrays: Arrays) -> dict[str, np.ndarray]:
        names = [v.name for v in self.onnx().graph.input]
        return dict(zip(names, arrays, strict=True))


def together(models: list[Model]) -> onnx.ModelProto:
    """One model of all, so that they take one compile."""
    first, *rest = [m.onnx() for m in models]
    for other in rest:
        first.graph.node.extend(other.graph.node)
        first.graph.input.extend(other.graph.input)
        first.graph.output.extend(other.graph.output)
    return first


MODELS = [
    Model(
        "add1",
        "float[n] a, float[m] b",
        "float[x] y",
        "y = Add(a,b)",
        (f(5), f(5)),
        [(f(5), f(3)), (f(60000), f(50))],
    ),
    Model(
        "add2",
        "float[n,m] a, float[p,q] b",
        "float[x,z] y",
        "y = Add(a,b)",
        (f(3, 4), f(1, 4)),
        [(f(3, 1000), f(3, 7))],
    ),
    Model(
        "add_static",
        "float[n] a, float[8] b",
        "float[x] y",
        "y = Add(a,b)",
        (f(8), f(8)),
        [(f(5), f(8))],
    ),
    Model(
        "matmul_k",
        "float[n,k] a, float[l,m] b",
        "float[n,m] y",
        "y = MatMul(a,b)",
        (f(3, 4), f(4, 2)),
        [(f(3, 4), f(5, 2)), (f(3, 4000), f(5, 2))],
    ),
    Model(
        "matmul_batch",
        "float[b,n,k] a, float[c,k,m] b",
        "float[x,n,m] y",
        "y = MatMul(a,b)",
        (f(2, 3, 4), f(1, 4, 2)),
        [(f(2, 3, 4), f(3, 4, 2))],
    ),
    Model(
        "matmul_empty",
        "float[b,n,k] a, float[c,l,m] b",
        "float[x,n,m] y",
        "y = MatMul(a,b)",
        (f(2, 3, 1), f(1, 1, 0)),
        [(f(2, 3, 1), f(1, 2, 0)), (f(2, 3, 1), f(3, 1, 0))],
    ),
    Model(
        "gemm_c",
        "float[n,k] a, float[k,m] b, float[q] c",
        "float[n,m] y",
        "y = Gemm(a,b,c)",
        (f(3, 4), f(4, 2), f(2)),
        [(f(3, 4), f(4, 2), f(3)), (f(30000, 4), f(4, 20), f(7))],
    ),
    Model(
        "concat",
        "float[n,m] a, float[p,q] b",
        "float[x,z] y",
        "y = Concat<axis=0>(a,b)",
        (f(3, 4), f(2, 4)),
        [(f(3, 4), f(2, 5)), (f(3, 4000), f(2, 5))],
    ),
    Model(
        "where",
        "bool[n] c, float[m] a, float[k] b",
        "float[x] y",
        "y = Where(c,a,b)",
        (b(1, 0, 1), f(3), f(1)),
        [(b(1, 0, 1), f(4), f(3)), (b(1, 0, 1), f(3), f(2))],
    ),
    Model(
        "einsum",
        "float[n,k] a, float[l,m] b",
        "float[n,m] y",
        'y = Einsum<equation="ij,jk->ik">(a,b)',
        (f(3, 4), f(4, 2)),
        [(f(3, 4), f(5, 2))],
    ),
    Model(
        "layernorm",
        "float[n,c] x, float[s] g",
        "float[n,c] y",
        "y = LayerNormalization<axis=-1>(x,g)",
        (f(4, 8), f(8)),
        [(f(4, 8), f(7)), (f(64, 10000), f(7))],
    ),
    Model(
        "scatternd",
        "float[n,m] x, int64[k,1] i, float[p,q] u",
        "float[n,m] y",
        "y = ScatterND(x,i,u)",
        (f(5, 3), i(1, 2).reshape(2, 1), f(2, 3)),
        [
            (f(5, 3), i(1, 2).reshape(2, 1), f(3, 3)),
            (f(5, 3), i(1, 2).reshape(2, 1), f(2, 2)),
            (f(5, 3), i(1, 7).reshape(2, 1), f(2, 3)),
        ],
    ),
    Model(
        "expand",
        "float[n] x, int64[2] s",
        "float[a,b] y",
        "y = Expand(x,s)",
        (f(3), i(2, 3)),
        [(f(3), i(2, 4)), (f(3), i(-2, 3)), (f(1), i(2, -3))],
    ),
    Model(
        "reshape_rest",
        "float[n] x",
        "float[a,4] y",
        "s = Constant<value_ints=[-1,4]>()\n y = Reshape(x,s)",
        (f(8),),
        [(f(10),)],
    ),
    Model(
        "reshape_fixed",
        "float[n] x",
        "float[2,3] y",
        "s = Constant<value_ints=[2,3]>()\n y = Reshape(x,s)",
        (f(6),),
        [(f(7),), (f(5),)],
    ),
    Model(
        "reshape_run",
        "float[n] x, int64[2] s",
        "float[a,b] y",
        "y = Reshape(x,s)",
        (f(6), i(2, -1)),
        [(f(6), i(4, -1)), (f(6), i(2, 2)), (f(6), i(-1, -1)), (f(6), i(-2, -3)), (f(6), i(4, 4))],
    ),
    Model(
        "split_sizes",
        "float[n] x, int64[2] s",
        "float[a] y, float[b] z",
        "y, z = Split<axis=0>(x,s)",
        (f(5), i(2, 3)),
        [(f(5), i(2, 9)), (f(5), i(2, 1)), (f(5), i(-1, 6))],
    ),
    Model(
        "split_known",
        "float[n] x",
        "float[2] y, float[3] z",
        "s = Constant<value_ints=[2,3]>()\n y, z = Split<axis=0>(x,s)",
        (f(5),),
        [(f(4),), (f(7),)],
    ),
    Model(
        "squeeze",
        "float[n,m] x",
        "float[m] y",
        "s = Constant<value_ints=[0]>()\n y = Squeeze(x,s)",
        (f(1, 4),),
        [(f(3, 4),)],
    ),
    Model(
        "unsqueeze_run",
        "float[n,m] x, int64[1] s",
        "float[q,r,t] y",
        "y = Unsqueeze(x,s)",
        (f(3, 4), i(0)),
        [(f(3, 4), i(5))],
    ),
    Model(
        "gather",
        "float[n,m] x, int64[k] i",
        "float[k,m] y",
        "y = Gather<axis=0>(x,i)",
        (f(5, 3), i(0, -1, 4)),
        [(f(5, 3), i(0, 5, 1)), (f(5, 3), i(0, -6, 1))],
    ),
    Model(
        "gather_static",
        "float[7,m] x, int64[k] i",
        "float[k,m] y",
        "y = Gather<axis=0>(x,i)",
        (f(7, 3), i(0, -1, 4)),
        [(f(7, 3), i(0, 7, 1))],
    ),
    Model(
        "gather_int32",
        "float[7,m] x, int32[k,l] i",
        "float[k,l,m] y",
        "y = Gather<axis=0>(x,i)",
        (f(7, 3), np.array([[0, -7]], np.int32)),
        [(f(7, 3), np.array([[0, 9]], np.int32))],
    ),
    Model(
        "gathernd",
        "float[n,m] x, int64[k,2] i",
        "float[k] y",
        "y = GatherND(x,i)",
        (f(5, 3), i(0, 1, -1, 2).reshape(2, 2)),
        [(f(5, 3), i(0, 3, 1, 2).reshape(2, 2)), (f(5, 3), i(5, 1, 1, 2).reshape(2, 2))],
    ),
    Model(
        "gatherelements",
        "float[n,m] x, int64[k,l] i",
        "float[k,l] y",
        "y = GatherElements<axis=1>(x,i)",
        (f(2, 3), i(0, 1, -1, 2).reshape(2, 2)),
        [(f(2, 3), i(0, 3, 1, 2).reshape(2, 2)), (f(2, 3), np.zeros((3, 2), np.int64))],
    ),
    Model(
        "scatterelements",
        "float[n,m] x, int64[k,l] i, float[p,q] u",
        "float[n,m] y",
        "y = ScatterElements<axis=1>(x,i,u)",
        (f(2, 3), i(0, 1, -1, 2).reshape(2, 2), f(2, 2)),
        [
            (f(2, 3), i(0, 3, 1, 2).reshape(2, 2), f(2, 2)),
            (f(2, 3), i(0, 1, 1, 2).reshape(2, 2), f(2, 1)),
        ],
    ),
    Model(
        "div0",
        "int64[n] a, int64[n] b",
        "int64[n] y",
        "y = Div(a,b)",
        (i(4, 5), i(2, -1)),
        [(i(4, 5), i(2, 0))],
    ),
    Model(
        "mod0",
        "int64[n] a, int64[n] b",
        "int64[n] y",
        "y = Mod(a,b)",
        (i(4, 5), i(2, -1)),
        [(i(4, 5), i(2, 0))],
    ),
    Model(
        "range0",
        "int64 a, int64 b, int64 d",
        "int64[x] y",
        "y = Range(a,b,d)",
        (np.array(0), np.array(5), np.array(2)),
        [(np.array(0), np.array(5), np.array(0)), (np.array(0), np.array(1 << 40), np.array(1))],
    ),
    Model(
        "rangef0",
        "float a, float b, float d",
        "float[x] y",
        "y = Range(a,b,d)",
        (np.array(0, np.float32), np.array(5, np.float32), np.array(2, np.float32)),
        [
            (np.array(0, np.float32), np.array(5, np.float32), np.array(0, np.float32)),
            (np.array(0, np.float32), np.array(np.inf, np.float32), np.array(1, np.float32)),
            (np.array(np.nan, np.float32), np.array(5, np.float32), np.array(1, np.float32)),
        ],
    ),
    Model(
        "slice0",
        "float[n] x, int64[1] s, int64[1] e, int64[1] t",
        "float[z] y",
        "a = Constant<value_ints=[0]>()\n y = Slice(x,s,e,a,t)",
        (f(6), i(0), i(5), i(2)),
        [(f(6), i(0), i(5), i(0))],
    ),
    Model(
        "slice_axes",
        "float[n] x, int64[1] s, int64[1] e, int64[1] a",
        "float[z] y",
        "y = Slice(x,s,e,a)",
        (f(6), i(0), i(5), i(-1)),
        [(f(6), i(0), i(5), i(1))],
    ),
    Model(
        "pad_negative",
        "float[n] x, int64[2] p",
        "float[z] y",
        "y = Pad(x,p)",
        (f(6), i(2, -1)),
        [(f(2), i(-5, 0))],
    ),
    Model(
        "constantofshape",
        "int64[2] s",
        "float[a,b] y",
        "y = ConstantOfShape(s)",
        (i(2, 3),),
        [(i(-2, 3),), (i(1 << 40, 3),)],
    ),
    Model(
        "tile",
        "float[n,m] x, int64[2] r",
        "float[a,b] y",
        "y = Tile(x,r)",
        (f(2, 3), i(2, 1)),
        [(f(2, 3), i(-1, 1)), (f(2, 3), i(1 << 40, 1))],
    ),
    Model(
        "topk",
        "float[n] x",
        "float[3] y, int64[3] z",
        "k = Constant<value_ints=[3]>()\n y, z = TopK<axis=0>(x,k)",
        (f(6),),
        [(f(2),)],
    ),
    Model(
        "topk_run",
        "float[6] x, int64[1] k",
        "float[a] y, int64[a] z",
        "y, z = TopK<axis=0>(x,k)",
        (f(6), i(3)),
        [(f(6), i(7)), (f(6), i(-1))],
    ),
    Model(
        "onehot",
        "int64[n] x, int64 d, float[2] v",
        "float[n,d] y",
        "y = OneHot(x,d,v)",
        (i(0, 1), np.array(3), f(2)),
        [(i(0, 1), np.array(-3), f(2)), (i(0, 1), np.array(0), f(2))],
    ),
    Model(
        "conv_c",
        "float[n,c,h,w] x, float[4,3,3,3] k",
        "float[n,4,p,q] y",
        "y = Conv(x,k)",
        (f(1, 3, 5, 5), f(4, 3, 3, 3)),
        [(f(1, 2, 5, 5), f(4, 3, 3, 3)), (f(1, 3, 2, 5), f(4, 3, 3, 3))],
    ),
    Model(
        "pool",
        "float[n,c,h,w] x",
        "float[n,c,p,q] y",
        "y = MaxPool<kernel_shape=[3,3]>(x)",
        (f(1, 3, 5, 5),),
        [(f(1, 3, 2, 5),)],
    ),
    Model(
        "batchnorm",
        "float[n,c,h] x, float[s] g, float[t] b, float[u] m, float[v] k",
        "float[n,c,h] y",
        "y = BatchNormalization(x,g,b,m,k)",
        (f(1, 3, 5), f(3), f(3), f(3), f(3)),
        [(f(1, 3, 5), f(2), f(3), f(3), f(3)), (f(1, 3, 5), f(3), f(3), f(4), f(3))],
    ),
    Model(
        "prelu",
        "float[n,c] x, float[s] g",
        "float[n,c] y",
        "y = PRelu(x,g)",
        (f(2, 3), f(3)),
        [(f(2, 3), f(2))],
    ),
    Model(
        "resize",
        "float[n,c,h,w] x, int64[4] s",
        "float[a,b,d,e] y",
        'y = Resize<mode="nearest">(x,,,s)',
        (f(1, 2, 3, 3), i(1, 2, 6, 6)),
        [(f(1, 2, 3, 3), i(1, 2, -6, 6))],
    ),
    Model(
        "reduce_axes",
        "float[n,m] x, int64[1] a",
        "float[p,q] y",
        "y = ReduceSum(x,a)",
        (f(2, 3), i(1)),
        [(f(2, 3), i(2))],
    ),
    Model(
        "gridsample",
        "float[n,c,h,w] x, float[m,p,q,2] g",
        "float[n,c,p,q] y",
        "y = GridSample(x,g)",
        (f(2, 1, 3, 3), f(2, 2, 2, 2) * 0),
        [(f(2, 1, 3, 3), f(1, 2, 2, 2) * 0)],
    ),
    Model(
        "revseq",
        "float[t,b] x, int64[c] l",
        "float[t,b] y",
        "y = ReverseSequence(x,l)",
        (f(4, 2), i(2, 3)),
        [(f(4, 2), i(2, 3, 1)), (f(4, 2), i(2, 5)), (f(4, 2), i(-1, 3))],
    ),
    Model(
        "reflect",
        "float[n] x",
        "float[m] y",
        """p = Constant<value_ints=[2,3]>() y = Pad<mode="reflect">(x,p)""",
        (f(4),),
        [(f(3),), (f(0),)],
    ),
    Model(
        "rnn",
        "float[t,b,3] x, float[1,2,3] w, float[1,2,2] r, float[1,d,2] h",
        "float[t,1,b,2] y",
        "y = RNN<hidden_size=2>(x,w,r,,,h)",
        (f(4, 2, 3), f(1, 2, 3), f(1, 2, 2), f(1, 2, 2)),
        [(f(4, 2, 3), f(1, 2, 3), f(1, 2, 2), f(1, 3, 2))],
    ),
    Model(
        "roialign",
        "float[n,c,h,w] x, float[m,4] r, int64[k] b",
        "float[m,c,2,2] y",
        "y = RoiAlign<output_height=2,output_width=2>(x,r,b)",
        (f(1, 1, 9, 9), f(2, 4) * 0 + f(4), i(0, 0)),
        [
            (f(1, 1, 5, 5), f(2, 4) * 0 + f(4), i(0)),
            (f(1, 1, 5, 5), f(2, 4) * 0 + f(4), i(0, 3)),
            (f(1, 1, 5, 5), f(2, 4) * 0 + f(4), i(0, -1)),
        ],
    ),
    Model(
        "branch",
        "bool k, float[n] a, float[m] b",
        "float[x] y",
        """y = If(k) <then_branch = t () => (float[x] u) { u = Add(a,b) },
                      else_branch = e () => (float[x] v) { v = Mul(a,a) }>""",
        (np.array(True), f(5), f(5)),
        [(np.array(True), f(5), f(3)), (np.array(True), f(60000), f(50))],
    ),
    Model(
        "not_taken",
        "bool k, float[n] a, float[m] b",
        "float[x] y",
        """y = If(k) <then_branch = t () => (float[x] u) { u = Add(a,b) },
                      else_branch = e () => (float[x] v) { v = Mul(a,a) }>""",
        (np.array(False), f(5), f(3)),
        [(np.array(True), f(5), f(3))],
    ),
    Model(
        "computed",  # sizes that only a look at the branch's values tells
        "bool k, float[n] a, float[m] b",
        "float[x] y",
        """y = If(k) <then_branch = t () => (float[x] u) {
                          i = NonZero(a) j = Transpose(i) v = GatherND(a,j) r = Relu(v)
                          s = Add(r,b) p = NonZero(b) q = Transpose(p) z = GatherND(b,q)
                          u = Add(s,z) },
                      else_branch = e () => (float[x] w) { w = Mul(a,a) }>""",
        (np.array(True), np.array([1, 0, 2, 3, 0], np.float32), f(3)),
        [
            (np.array(True), f(5), f(3)),
            (np.array(True), f(5), np.array([1, 0, 1, 1, 1], np.float32)),
        ],
    ),
    Model(
        "loop",
        "int64 t, float[n] a, float[m] b",
        "float[x] y",
        """c = Constant<value = bool {1}>()
           y = Loop(t,c,a) <body = q (int64 i, bool g, float[x] s) => (bool h, float[x] z) {
               h = Identity(g) z = Add(s,b) }>""",
        (np.array(3), f(5), f(5)),
        [(np.array(2), f(5), f(3)), (np.array(1), f(60000), f(7))],
    ),
    Model(
        "no_iteration",
        "int64 t, float[n] a, float[m] b",
        "float[x] y",
        """c = Constant<value = bool {1}>()
           y = Loop(t,c,a) <body = q (int64 i, bool g, float[x] s) => (bool h, float[x] z) {
               h = Identity(g) z = Add(s,b) }>""",
        (np.array(0), f(5), f(3)),
        [(np.array(1), f(5), f(3))],
    ),
    Model(
        "branch_in_loop",
        "int64 t, bool k, float[n] a, float[m] b",
        "float[x] y",
        """c = Constant<value = bool {1}>()
           y = Loop(t,c,a) <body = q (int64 i, bool g, float[x] s) => (bool h, float[x] z) {
               h = Identity(g) r = Relu(s)
               o = If(k) <then_branch = t () => (float[x] u) { u = Add(r,b) },
                          else_branch = e () => (float[x] v) { v = Mul(r,r) }>
               z = Add(o,r) }>""",
        (np.array(3), np.array(True), f(5), f(5)),
        [(np.array(3), np.array(True), f(5), f(3))],
    ),
    Model(
        "loop_in_branch",
        "int64 t, bool k, float[n] a, float[m] b",
        "float[x] y",
        """c = Constant<value = bool {1}>()
           y = If(k) <then_branch = t () => (float[x] u) { d = Exp(a)
                   o = Loop(t,c,d) <body = q (int64 i, bool g, float[x] s) => (bool h, float[x] z) {
                       h = Identity(g) z = Add(s,b) }>
                   u = Mul(o,d) },
               else_branch = e () => (float[x] v) { v = Neg(a) }>""",
        (np.array(3), np.array(True), f(5), f(5)),
        [(np.array(3), np.array(True), f(5), f(3))],
    ),
    Model(
        "scanned",  # elements of 1, 2, and then 3 numbers
        "int64 t, float[n] a",
        "float[x,z] y",
        """c = Constant<value = bool {1}>() one = Constant<value_ints=[1]>()
           o = Constant<value_ints=[0]>()
           y = Loop(t,c) <body = q (int64 i, bool g) => (bool h, float[z] s) {
               h = Identity(g) two = Constant<value_int=2>() j = Min(i,two)
               e = Unsqueeze(j,o) l = Add(e,one) s = Slice(a,o,l) }>""",
        (np.array(3), f(1)),
        [(np.array(2), f(5)), (np.array(5), f(5))],
    ),
    Model(
        "scanned_late",  # in a buffer that has grown by then
        "int64 t, bool k, float[n] a",
        "float[x,z] y",
        """one = Constant<value_ints=[1]>() o = Constant<value_ints=[0]>()
           y = Loop(t,k) <body = q (int64 i, bool g) => (bool h, float[z] s) {
               m = Constant<value_int=40>() h = Less(i,m)
               w = Constant<value_int=20>() p = Sub(i,w) n = Constant<value_int=0>()
               j = Max(p,n) e = Unsqueeze(j,o) l = Add(e,one) s = Slice(a,o,l) }>""",
        (np.array(21), np.array(True), f(5)),
        [(np.array(22), np.array(True), f(5)), (np.array(99), np.array(True), f(5))],
    ),
]
