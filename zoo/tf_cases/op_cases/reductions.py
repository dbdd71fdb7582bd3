"""Cases of reductions, scans, segments and products."""

from __future__ import annotations

import numpy as np
from make_op_cases import Cases, group


@group
def reductions(g: Cases) -> None:
    x = g.floats(2, 3, 4)
    for name in ("Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"):
        for axes, keep in ((1, False), ([0, -1], True), ([], False), ([0, 1, 2], False)):
            g.op(name, input=x, axis=np.array(axes, np.int32), keep_dims=keep)
        for dtype in ("float64", "float16", "bfloat16", "int32", "int64"):
            y = g.floats(2, 5, dtype=dtype) if "float" in dtype else g.ints(2, 5, dtype=dtype)
            if name == "EuclideanNorm" and "int" in dtype:
                continue
            # sums of 16-bit floats: TensorFlow rounds after every addition or in blocks
            loose = 0.02 if dtype == "bfloat16" and name in ("Sum", "Mean", "Prod") else 0.0
            g.op(name, input=y, axis=np.int64(-1), rtol=loose, atol=loose)
    for name in ("Max", "Min", "Sum", "Prod"):
        for dtype in ("int8", "uint8", "int16"):
            g.op(name, input=g.ints(2, 5, dtype=dtype, low=0, high=90), axis=[1])
    g.op("Max", input=g.input(np.zeros((2, 0)), "float32"), axis=[1])
    g.op("Sum", input=g.input(np.zeros((2, 0)), "float32"), axis=[1])
    p = g.bools(3, 4)
    for name in ("All", "Any"):
        for axes, keep in ((1, False), ([0], True), ([0, 1], False)):
            g.op(name, input=p, axis=np.array(axes, np.int32), keep_dims=keep)
    for dtype in ("float32", "float64", "bfloat16", "int32", "uint8", "int64"):
        y = g.ints(3, 4, dtype=dtype, low=0, high=5)
        for name in ("ArgMax", "ArgMin"):
            g.op(name, input=y, dimension=np.int32(1))
            g.op(name, input=y, dimension=np.int64(-2), output_type="int32")
    g.op("L2Loss", t=x)
    g.op("L2Loss", t=g.floats(7, dtype="float64"))


@group
def scans(g: Cases) -> None:
    x = g.floats(2, 3, 4)
    for exclusive in (False, True):
        for reverse in (False, True):
            for name in ("Cumsum", "Cumprod"):
                g.op(name, x=x, axis=np.int32(1), exclusive=exclusive, reverse=reverse)
                g.op(name, x=g.ints(2, 5, dtype="int64", low=-3, high=3), axis=np.int64(-1),
                     exclusive=exclusive, reverse=reverse)  # fmt: skip
            g.op("CumulativeLogsumexp", x=x, axis=np.int32(2), exclusive=exclusive,
                 reverse=reverse)  # fmt: skip
    ids = g.input([0, 0, 1, 3, 3, 3], "int32")
    for dtype in ("float32", "int32", "float64"):
        y = g.ints(6, 2, dtype=dtype)
        for name in ("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd"):
            if name == "SegmentMean" and dtype == "int32":
                continue
            g.op(name, data=y, segment_ids=np.array([0, 0, 1, 3, 3, 3], np.int32))
        where = g.input([2, 0, -1, 2, 1, 0], "int64")
        for name in ("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin",
                     "UnsortedSegmentProd"):  # fmt: skip
            g.op(name, data=y, segment_ids=where, num_segments=np.int32(4))
        grid = g.input([[1, 0], [0, 3], [2, 1], [1, 1], [3, 3], [0, 2]], "int32")
        g.op("UnsortedSegmentSum", data=y, segment_ids=grid, num_segments=np.int32(5))
    g.op("SegmentSum", data=g.floats(6, 2), segment_ids=ids)
    counted = g.input([1, 3, 3, 0, 7], "int32")
    weights = g.floats(5)
    g.op("Bincount", arr=counted, size=np.int32(5), weights=weights)
    g.op("Bincount", arr=counted, size=np.int32(9), weights=np.zeros(0, np.int32))
    g.op("DenseBincount", input=counted, size=np.int32(9), weights=np.zeros(0, np.float32))
    g.op("DenseBincount", input=counted, size=np.int32(9), weights=np.zeros(0, np.int32),
         binary_output=True)  # fmt: skip
    rows = g.input([[1, 3, 3], [0, 2, 9]], "int64")
    g.op("DenseBincount", input=rows, size=np.int64(5), weights=g.floats(2, 3))
    g.op("DenseBincount", input=rows, size=np.int64(5), weights=np.zeros(0, np.float32))


@group
def products(g: Cases) -> None:
    a, b, at, bt = g.floats(3, 4), g.floats(4, 5), g.floats(4, 3), g.floats(5, 4)
    g.op("MatMul", a=a, b=b)
    g.op("MatMul", a=at, b=b, transpose_a=True)
    g.op("MatMul", a=a, b=bt, transpose_b=True)
    g.op("MatMul", a=at, b=bt, transpose_a=True, transpose_b=True)
    g.op("MatMul", a=g.ints(3, 4), b=g.ints(4, 5))
    for dtype in ("float64", "float16", "bfloat16"):
        g.op("MatMul", a=g.floats(3, 4, dtype=dtype), b=g.floats(4, 5, dtype=dtype))
    p, q = g.floats(2, 3, 4), g.floats(2, 4, 5)
    g.op("BatchMatMul", x=p, y=q)
    g.op("BatchMatMul", x=g.floats(2, 4, 3), y=g.floats(2, 5, 4), adj_x=True, adj_y=True)
    for name in ("BatchMatMulV2", "BatchMatMulV3"):
        more = {"Tout": "float32"} if name.endswith("3") else {}
        g.op(name, x=g.floats(3, 1, 3, 4), y=q, **more)
        g.op(name, x=p, y=g.floats(5, 4), adj_y=True, **more)
    g.op("BatchMatMulV3", x=g.ints(2, 3, 4, dtype="int8"), y=g.ints(2, 4, 2, dtype="int8"),
         Tout="int32")  # fmt: skip
    for equation, dims in (
        ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
        ("abc,cde->abde", ((2, 3, 4), (4, 2, 3))),
        ("BTNH,BSNH->BNTS", ((2, 3, 2, 4), (2, 5, 2, 4))),
        ("...ij,jk->...ik", ((2, 2, 3, 4), (4, 5))),
        ("ij->ji", ((3, 4),)),
        ("ij->", ((3, 4),)),
        ("ii->i", ((4, 4),)),
        ("i,j->ij", ((3,), (4,))),
        ("ab,bc,cd->ad", ((2, 3), (3, 4), (4, 2))),
    ):
        if len(dims) < 3:  # the kernel takes two; three are split by the Python layer
            g.op("Einsum", inputs=[g.floats(*d) for d in dims], equation=equation)


@group
def sorting(g: Cases) -> None:
    x = g.input([[3, 1, 3, 0, 2], [5, 5, -1, 4, 5]], "float32")
    g.op("TopKV2", input=x, k=3)
    g.op("TopKV2", input=x, k=np.int32(5))
    g.op("TopKV2", input=g.ints(2, 3, 6), k=np.int32(2))
    g.op("TopKV2", input=g.ints(7, dtype="int64"), k=np.int32(1))
    targets = g.input([2, 3], "int32")
    g.op("InTopK", predictions=x, targets=targets, k=2)
    g.op("InTopKV2", predictions=x, targets=targets, k=np.int32(3))
    g.op("NthElement", input=x, n=np.int32(1))
    g.op("NthElement", input=x, n=np.int32(1), reverse=True)
    steps = g.input([[0, 1, 3, 3, 7], [-2, 0, 1, 2, 3]], "float32")
    for name in ("LowerBound", "UpperBound"):
        g.op(name, sorted_inputs=steps, values=g.input([[3, -1, 8], [0, 2.5, 3]], "float32"))
        g.op(name, sorted_inputs=g.input([[0, 2, 5]], "int64"), values=g.ints(1, 6, dtype="int64"),
             out_type="int64")  # fmt: skip
    g.op("Bucketize", input=g.floats(3, 4, low=-5, high=15), boundaries=[0.0, 1.5, 10.0])
    g.op("Bucketize", input=g.ints(3, 4), boundaries=[0.0, 3.0])
    g.op("Unique", x=g.input([4, 1, 1, 7, 4, 2], "int32"))
    g.op("Unique", x=g.input([4, 1, 1, 7, 4, 2], "float32"), out_idx="int64")
    g.op("UniqueV2", x=g.input([[4, 1], [1, 7], [4, 1]], "int64"), axis=np.array([0]))
    g.op("UniqueWithCountsV2", x=g.input([[4, 1], [1, 7], [4, 1]], "int32"), axis=np.array([1]))
    g.op("UniqueWithCounts", x=g.input([4, 1, 1, 7, 4, 2], "int32"))
    g.op("Where", condition=g.bools(3, 4))
    g.op("Where", condition=g.ints(5, low=0, high=1))
    g.op("ListDiff", x=g.input([1, 2, 3, 4, 5, 6], "int32"), y=g.input([1, 3, 5], "int32"))
