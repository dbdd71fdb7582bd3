"""Cases of gathers and scatters."""

from __future__ import annotations

import numpy as np
from make_op_cases import Cases, group


@group
def gathering(g: Cases) -> None:
    x = g.floats(4, 3, 2)
    at = g.input([[0, 3], [2, 1]], "int32")
    g.op("Gather", params=x, indices=at)
    for axis in (0, 1, -1):
        g.op("GatherV2", params=x, indices=g.input([1, 0], "int64"), axis=axis)
    g.op("GatherV2", params=x, indices=g.input(2, "int32"), axis=0)
    g.op("GatherV2", params=x, indices=g.input([[0, 2], [1, 1], [2, 0], [0, 0]], "int32"), axis=1,
         batch_dims=1)  # fmt: skip
    y = g.floats(2, 3, 4, 5)
    pick = g.input([[[0, 3], [1, 2], [2, 2]], [[3, 3], [0, 1], [1, 0]]], "int32")
    g.op("GatherV2", params=y, indices=pick, axis=2, batch_dims=2)
    g.op("GatherV2", params=y, indices=g.ints(2, 2, low=0, high=4), axis=3, batch_dims=1)
    g.op("GatherV2", params=y, indices=g.ints(2, 3, low=0, high=4), axis=-1, batch_dims=-1)
    g.op("GatherNd", params=x, indices=g.input([[0, 1], [3, 2]], "int32"))
    g.op("GatherNd", params=x, indices=g.input([[[0, 1, 1]], [[3, 2, 0]]], "int64"))
    g.op("GatherNd", params=x, indices=g.input(np.zeros((2, 0)), "int32"))
    g.op("GatherNd", params=g.bools(4), indices=g.input([[2]], "int32"))


@group
def scattering(g: Cases) -> None:
    rows = g.input([[1], [3], [1]], "int32")
    up = g.floats(3, 2)
    g.op("ScatterNd", indices=rows, updates=up, shape=[5, 2])
    g.op("ScatterNd", indices=g.input([[0, 1], [2, 2]], "int64"), updates=g.ints(2),
         shape=np.int64([3, 4]))  # fmt: skip
    g.op("ScatterNd", indices=rows, updates=up, shape=g.input([4, 2], "int32"))
    for dtype in ("float32", "int32"):
        x = g.ints(5, 2, dtype=dtype)
        u = g.ints(3, 2, dtype=dtype)
        for name in ("TensorScatterAdd", "TensorScatterSub", "TensorScatterMax",
                     "TensorScatterMin"):  # fmt: skip
            g.op(name, tensor=x, indices=rows, updates=u)
        g.op("TensorScatterUpdate", tensor=x, indices=g.input([[4], [0], [2]], "int32"), updates=u)
    g.op("ScatterNdNonAliasingAdd", input=g.floats(5), indices=rows, updates=g.floats(3))
    x = g.floats(4, 5)
    g.op("TensorStridedSliceUpdate", input=x, begin=[1, 0], end=[3, 5], strides=[1, 2],
         value=g.floats(2, 3))  # fmt: skip
    g.op("DynamicStitch", indices=[[0, 3], [1, 2]], data=[g.floats(2, 2), g.floats(2, 2)])
    g.op("ParallelDynamicStitch", indices=[[0, 1], [2]], data=[g.floats(2, 2), g.floats(1, 2)])
    g.op("DynamicPartition", data=g.floats(5, 2), partitions=g.input([0, 1, 0, 2, 1], "int32"),
         num_partitions=3)  # fmt: skip
    g.op(
        "SparseToDense",
        sparse_indices=g.input([[0, 1], [2, 0]], "int64"),
        output_shape=np.int64([3, 2]),
        sparse_values=g.floats(2),
        default_value=np.float32(-1),
    )
    g.op("SparseToDense", sparse_indices=g.input([1, 3], "int32"), output_shape=[5],
         sparse_values=np.float32(2), default_value=np.float32(0))  # fmt: skip
    rows, ids = g.input([3, 0, 0, 2], "int32"), g.input([0, 0, 2, 2], "int32")
    for name in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
        g.op(name, data=g.floats(4, 3), indices=rows, segment_ids=ids)
        g.op(f"{name}WithNumSegments", data=g.floats(4, 3), indices=rows, segment_ids=ids,
             num_segments=np.int32(5))  # fmt: skip
    g.op("DataFormatDimMap", x=g.input([0, 1, -1, 2], "int32"))
    g.op("DataFormatVecPermute", x=g.input([1, 5, 6, 7], "int32"))
    g.op("DataFormatVecPermute", x=g.input([[1, 2], [3, 4]], "int32"), src_format="NHWC",
         dst_format="NCHW")  # fmt: skip
