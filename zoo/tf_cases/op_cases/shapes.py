"""Cases of operators that move, cut, join and fill."""

from __future__ import annotations

import numpy as np
from make_op_cases import Cases, group


@group
def reshaping(g: Cases) -> None:
    x = g.floats(2, 3, 4)
    g.op("Reshape", tensor=x, shape=np.int32([6, -1]))
    g.op("Reshape", tensor=x, shape=np.int64([4, 3, 2]))
    g.op("Reshape", tensor=g.floats(1, 1), shape=np.zeros(0, np.int32))
    g.op("Reshape", tensor=g.input(np.zeros((0, 3)), "float32"), shape=np.int32([3, 0]))
    g.op("Reshape", tensor=g.bools(4), shape=np.int32([2, 2]))
    g.op("Transpose", x=x, perm=np.int32([2, 0, 1]))
    g.op("Transpose", x=g.ints(2, 3, dtype="int8"), perm=np.int64([1, 0]))
    g.op("ConjugateTranspose", x=x, perm=np.int32([1, 0, 2]))
    for axis in (0, 1, -1, 3):
        g.op("ExpandDims", input=x, axis=np.int32(axis))
    y = g.floats(1, 3, 1, 2)
    g.op("Squeeze", input=y)
    g.op("Squeeze", input=y, axis=[0])
    g.op("Squeeze", input=y, axis=[-2, 0])
    for out in ("int32", "int64"):
        g.op("Shape", input=x, out_type=out)
        g.op("Size", input=x, out_type=out)
        g.op("ShapeN", input=[x, y], out_type=out)
    g.op("Rank", input=x)
    g.op("EnsureShape", input=x, shape=[2, None, 4])
    for name in ("Identity", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics"):
        key = "tensor" if name == "CheckNumerics" else "input"
        more = {"message": "m"} if name == "CheckNumerics" else {}
        g.op(name, **{key: x}, **more)
    g.op("IdentityN", input=[x, g.ints(3)])
    g.op("DebugGradientIdentity", input=x)
    g.op("PlaceholderWithDefault", input=np.float32([1, 2]), shape=[2])
    g.op("ZerosLike", x=x)
    g.op("OnesLike", x=g.ints(2, 2))
    g.op("ZerosLike", x=g.bools(2, 2))


@group
def cutting(g: Cases) -> None:
    x = g.floats(4, 5, 6)
    slices = (
        (np.s_[1:3], {}), (np.s_[::2, 1], {}), (np.s_[::-1, 3:0:-2], {}),
        (np.s_[..., 2], {}), (np.s_[:, np.newaxis, 1:4, ..., -1], {}),
        (np.s_[0, 0, 0], {}), (np.s_[-1:, :-2], {}), (np.s_[5:2, ...], {}),
        (np.s_[np.newaxis, ..., np.newaxis], {}), (np.s_[1:100, -100:3, ::3], {}),
        (np.s_[-2, ..., ::-1], {}),
    )  # fmt: skip
    for at, _ in slices:
        g.keep(x[at])
    g.keep(g.ints(5, dtype="uint8")[1:4])
    # a shrunk axis ignores its end and stride; an end mask of a shrunk axis too
    g.op("StridedSlice", input=x, begin=[1, 2], end=[0, 0], strides=[1, 1], shrink_axis_mask=3)
    g.op("StridedSlice", input=x, begin=[1, 1], end=[3, 3], strides=[1, 2], begin_mask=1,
         end_mask=2)  # fmt: skip
    g.op("StridedSlice", input=x, begin=[3, 4], end=[0, 0], strides=[-1, -2], begin_mask=2,
         end_mask=1)  # fmt: skip
    g.op("StridedSlice", input=x, begin=np.int64([0, 0, 1]), end=np.int64([0, 0, 2]),
         strides=np.int64([1, 1, 1]), ellipsis_mask=1, new_axis_mask=2)  # fmt: skip
    begin = g.input([1, 0, 2], "int32")
    end = g.input([3, 5, 6], "int32")
    g.op("StridedSlice", input=x, begin=begin, end=end, strides=[1, 1, 1])
    g.op("StridedSlice", input=x, begin=begin, end=end, strides=[1, 2, 1], shrink_axis_mask=4)
    last = g.input([-1], "int32")
    g.op("StridedSlice", input=x, begin=last, end=[0], strides=[1], shrink_axis_mask=1)
    g.op("StridedSlice", input=x, begin=last, end=[0], strides=[-1], end_mask=1)
    g.op("Slice", input=x, begin=[1, 0, 2], size=[2, -1, 3])
    g.op("Slice", input=x, begin=begin, size=[1, 2, -1])
    g.op("Slice", input=x, begin=begin, size=g.input([2, -1, 1], "int32"))
    for axis in (0, -1):
        g.op("Split", axis=axis, value=x, num_split=2)
    g.op("Split", axis=np.int32(1), value=x, num_split=1)
    g.op("SplitV", value=x, size_splits=np.int32([1, -1, 2]), axis=1, num_split=3)
    g.op("SplitV", value=x, size_splits=np.int64([4, 2]), axis=-1, num_split=2)
    g.op("SplitV", value=x, size_splits=g.input([2, 4], "int32"), axis=2, num_split=2)
    g.op("Unpack", value=x, num=5, axis=1)
    g.op("Unpack", value=x, num=6, axis=-1)
    g.op("Unpack", value=g.ints(2), num=2)


@group
def joining(g: Cases) -> None:
    x, y = g.floats(2, 3), g.floats(2, 1)
    g.op("ConcatV2", values=[x, y], axis=1)
    g.op("ConcatV2", values=[x, x], axis=np.int64(-2))
    g.op("ConcatV2", values=[g.ints(2), g.ints(3), g.ints(0)], axis=0)
    g.op("Concat", concat_dim=1, values=[x, y])
    g.op("ConcatOffset", concat_dim=1, shape=[[2, 2, 7], [2, 3, 7], [2, 9, 7]])
    for axis in (0, 1, -1):
        g.op("Pack", values=[x, x, x], axis=axis)
    g.op("Pack", values=[np.int32(3), g.input(4, "int32")])
    g.op("ParallelConcat", values=[g.floats(1, 3), g.floats(1, 3)], shape=[2, 3])
    g.op("Tile", input=x, multiples=[2, 3])
    g.op("Tile", input=x, multiples=g.input([1, 2], "int32"))
    g.op("Tile", input=g.bools(2), multiples=[0])
    paddings = np.int32([[1, 2], [0, 3]])
    g.op("Pad", input=x, paddings=paddings)
    g.op("Pad", input=g.ints(2, 3), paddings=paddings.astype(np.int64))
    g.op("Pad", input=x, paddings=g.input([[1, 0], [0, 2]], "int32"))
    g.op("PadV2", input=x, paddings=paddings, constant_values=np.float32(-1.5))
    g.op("PadV2", input=g.ints(2, 3, dtype="int64"), paddings=paddings,
         constant_values=np.int64(2**60 + 1))  # fmt: skip
    g.op("PadV2", input=x, paddings=paddings, constant_values=g.input(7, "float32"))
    g.op("PadV2", input=g.bools(2, 3), paddings=paddings, constant_values=np.array(True))
    inner = np.int32([[1, 0], [2, 2]])
    g.op("MirrorPad", input=x, paddings=inner, mode="REFLECT")
    g.op("MirrorPad", input=x, paddings=np.int32([[2, 1], [3, 3]]), mode="SYMMETRIC")
    g.op("MirrorPad", input=g.ints(2, 3), paddings=inner, mode="SYMMETRIC")
    g.op("MirrorPad", input=x, paddings=g.input(inner), mode="REFLECT")
    g.op("MirrorPad", input=x, paddings=g.input(inner), mode="SYMMETRIC")
    g.op("BroadcastTo", input=y, shape=[3, 2, 4])
    g.op("BroadcastTo", input=g.bools(1), shape=np.int64([2, 2]))
    g.op("BroadcastTo", input=y, shape=g.input([2, 5], "int32"))
    g.op("BroadcastArgs", s0=np.int32([2, 1, 3]), s1=np.int32([4, 1]))
    g.op("BroadcastArgs", s0=g.input([2, 1, 3], "int64"), s1=g.input([4, 1], "int64"))
    g.op("ReverseV2", tensor=x, axis=[1])
    g.op("ReverseV2", tensor=x, axis=np.int64([0, -1]))
    g.op("Reverse", tensor=x, dims=[True, False])
    seq = g.floats(3, 4, 2)
    lengths = g.input([2, 4, 0], "int32")
    g.op("ReverseSequence", input=seq, seq_lengths=lengths, seq_dim=1, batch_dim=0)
    g.op("ReverseSequence", input=g.floats(2, 4, 3), seq_lengths=g.input([3, 1, 2], "int64"),
         seq_dim=1, batch_dim=2)  # fmt: skip
    g.op("Roll", input=x, shift=1, axis=1)
    g.op("Roll", input=x, shift=[-1, 5], axis=[0, 1])
    g.op("Roll", input=x, shift=g.input([2], "int32"), axis=[1])
    g.op("Roll", input=x, shift=[1, 1], axis=[1, 1])


@group
def blocks(g: Cases) -> None:
    x = g.floats(2, 4, 6, 4)
    for dtype in ("NHWC", "NCHW"):
        if dtype == "NHWC":
            g.op("SpaceToDepth", input=x, block_size=2, data_format=dtype)
            g.op("DepthToSpace", input=x, block_size=2, data_format=dtype)
    g.op("SpaceToDepth", input=g.ints(1, 2, 4, 3, dtype="uint8"), block_size=2)
    g.op("SpaceToBatch", input=x, paddings=[[1, 1], [0, 0]], block_size=2)
    g.op("SpaceToBatchND", input=x, block_shape=[2, 3], paddings=[[0, 0], [1, 2]])
    g.op("SpaceToBatchND", input=g.floats(2, 5, 3), block_shape=[3], paddings=[[0, 1]])
    b = g.floats(8, 2, 3, 1)
    g.op("BatchToSpace", input=b, crops=[[0, 1], [1, 0]], block_size=2)
    g.op("BatchToSpaceND", input=b, block_shape=[2, 2], crops=[[1, 0], [0, 2]])
    g.op("BatchToSpaceND", input=g.floats(6, 2, 3), block_shape=[3], crops=[[0, 0]])


@group
def filling(g: Cases) -> None:
    g.op("Fill", dims=[2, 3], value=np.float32(1.5))
    g.op("Fill", dims=np.int64([2]), value=g.input(7, "int32"))
    g.op("Fill", dims=g.input([2, 2], "int32"), value=np.float32(-1))
    g.op("Fill", dims=np.zeros(0, np.int32), value=True)
    g.op("Empty", shape=[2, 3], dtype="float32", init=True)
    g.op("Range", start=0, limit=10, delta=3)
    g.op("Range", start=np.float32(1), limit=np.float32(2), delta=np.float32(0.3))
    g.op("Range", start=g.input(10, "int32"), limit=g.input(0, "int32"), delta=np.int32(-4))
    g.op("Range", start=np.int64(0), limit=g.input(4, "int64"), delta=np.int64(1))
    g.op("LinSpace", start=np.float32(0), stop=np.float32(1), num=5)
    g.op("LinSpace", start=g.input(-2, "float32"), stop=g.input(3, "float32"), num=np.int64(4))
    g.op("LinSpace", start=np.float64(2), stop=np.float64(3), num=1)
    indices = g.input([[0, 2], [-1, 5]], "int32")
    for axis in (-1, 0, 1):
        g.op("OneHot", indices=indices, depth=4, on_value=np.float32(2),
             off_value=np.float32(-1), axis=axis)  # fmt: skip
    g.op("OneHot", indices=g.input(1, "int64"), depth=3, on_value=True, off_value=False)
    g.op("OneHot", indices=g.input([1, 0], "uint8"), depth=g.input(3, "int32"),
         on_value=np.int64(1), off_value=np.int64(0))  # fmt: skip
    x = g.floats(2, 3, 4)
    for low, high in ((0, -1), (-1, 0), (1, 1), (0, 0), (-1, -1)):
        g.op("MatrixBandPart", input=x, num_lower=low, num_upper=high)
    g.op("MatrixBandPart", input=x, num_lower=g.input(1, "int64"), num_upper=np.int64(-1))
    g.op("Diag", diagonal=g.floats(3))
    g.op("Diag", diagonal=g.ints(2, 2))
    g.op("DiagPart", input=g.floats(2, 2, 2, 2))
    g.op("MatrixDiag", diagonal=g.floats(2, 3))
    g.op("MatrixDiagPart", input=x)
    g.op("MatrixSetDiag", input=x, diagonal=g.floats(2, 3))
    g.op("MatrixDiagV2", diagonal=g.floats(2, 3), k=[1], num_rows=-1, num_cols=-1,
         padding_value=np.float32(9))  # fmt: skip
    g.op("MatrixDiagV3", diagonal=g.floats(2, 3), k=0, num_rows=3, num_cols=5,
         padding_value=np.float32(9))  # fmt: skip
    g.op("MatrixDiagV3", diagonal=g.floats(2, 3, 4), k=[-1, 1], num_rows=-1, num_cols=-1,
         padding_value=np.float32(0))  # fmt: skip
    g.op("MatrixDiagPartV2", input=x, k=[-1], padding_value=np.float32(0))
    for align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"):
        g.op("MatrixDiagPartV3", input=x, k=[-1, 2], padding_value=np.float32(7), align=align)
    g.op("MatrixSetDiagV2", input=x, diagonal=g.floats(2, 3), k=[1])
    g.op("MatrixSetDiagV3", input=x, diagonal=g.floats(2, 3), k=0)
    g.op("MatrixSetDiagV3", input=x, diagonal=g.floats(2, 2, 3), k=[0, 1])
    g.op("InvertPermutation", x=g.input([2, 0, 3, 1], "int32"))
