"""Cases of dynamic extents, compiled once for every size; of lists, calls and effects."""

from __future__ import annotations

import numpy as np
from make_op_cases import Cases, group


@group
def dynamic_batch(g: Cases) -> None:
    raw = g.tf.raw_ops
    x = g.input(g.random.uniform(-1, 1, (3, 6, 6, 4)), "float32", [None, 6, 6, 4])
    w = np.linspace(-1, 1, 3 * 3 * 4 * 2, dtype=np.float32).reshape(3, 3, 4, 2)
    y = g.op("Conv2D", input=x, filter=w, strides=[1, 2, 2, 1], padding="SAME")
    y = g.op("BiasAdd", value=y, bias=np.float32([0.5, -1]))
    y = g.op("Relu6", features=y)
    p = g.op("MaxPool", input=y, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="VALID")
    g.op("AvgPool", value=y, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME")
    n = g.op("Shape", input=p)
    batch = raw.StridedSlice(input=n, begin=[0], end=[1], strides=[1], shrink_axis_mask=1)
    flat = g.op("Reshape", tensor=p, shape=raw.Pack(values=[batch, -1]))
    m = g.op("MatMul", a=flat, b=np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3))
    g.op("Softmax", logits=m)
    g.op("Mean", input=x, axis=[1, 2], keep_dims=True)
    g.op("Tile", input=m, multiples=[1, 2])
    g.op("Fill", dims=raw.Pack(values=[batch, 5]), value=np.float32(0))
    g.op("ResizeNearestNeighbor", images=y, size=[6, 6])
    g.op("ResizeBilinear", images=y, size=[4, 5], half_pixel_centers=True)
    g.op("Pad", input=m, paddings=[[0, 0], [1, 2]])
    g.op("ConcatV2", values=[m, m], axis=1)
    g.op("Pack", values=[m, m], axis=1)
    g.op("Unpack", value=m, num=3, axis=1)
    g.op("Split", axis=1, value=flat, num_split=2)
    g.op("StridedSlice", input=m, begin=[0, 1], end=[0, 3], strides=[1, 1], begin_mask=1,
         end_mask=1)  # fmt: skip
    g.op("StridedSlice", input=m, begin=[-1], end=[0], strides=[1], shrink_axis_mask=1)
    g.op("Slice", input=m, begin=[0, 1], size=[-1, 2])
    g.op("Transpose", x=y, perm=[0, 3, 1, 2])
    g.op("ExpandDims", input=m, axis=1)
    g.op("ArgMax", input=m, dimension=1)
    g.op("OneHot", indices=raw.ArgMax(input=m, dimension=1), depth=3, on_value=np.float32(1),
         off_value=np.float32(0))  # fmt: skip
    g.op("BatchMatMulV2", x=raw.ExpandDims(input=m, axis=1), y=raw.ExpandDims(input=m, axis=2))
    g.op("Einsum", inputs=[m, np.ones((3, 2), np.float32)], equation="ab,bc->ac")
    g.op("BroadcastTo", input=np.float32([[1, 2, 3]]), shape=raw.Pack(values=[batch, 3]))
    g.op("Conv2DBackpropInput", input_sizes=raw.Pack(values=[batch, 6, 6, 4]), filter=w,
         out_backprop=y, strides=[1, 2, 2, 1], padding="SAME")  # fmt: skip
    g.op("Cumsum", x=m, axis=1)
    g.op("TopKV2", input=m, k=2)
    g.op("GatherV2", params=m, indices=np.int32([2, 0]), axis=1)
    g.op(
        "FusedBatchNormV3",
        x=y,
        scale=np.float32([1, 2]),
        offset=np.float32([0, 1]),
        mean=np.float32([0.1, 0.2]),
        variance=np.float32([1, 2]),
        is_training=False,
        keep=[0],
    )
    g.op("DepthToSpace", input=x, block_size=2)
    g.op("Range", start=0, limit=batch, delta=1)
    g.op("Size", input=m)


@group
def dynamic_sizes(g: Cases) -> None:
    raw = g.tf.raw_ops
    x = g.input(g.random.uniform(-1, 1, (2, 6, 8, 4)), "float32", [None, None, None, 4])
    w = np.linspace(-1, 1, 2 * 2 * 4 * 3, dtype=np.float32).reshape(2, 2, 4, 3)
    y = g.op("Conv2D", input=x, filter=w, strides=[1, 2, 2, 1], padding="SAME")
    shape = raw.Shape(input=x)
    g.op(
        "Conv2DBackpropInput",
        input_sizes=shape,
        filter=w,
        out_backprop=y,
        strides=[1, 2, 2, 1],
        padding="SAME",
    )
    inner = raw.StridedSlice(input=shape, begin=[1], end=[3], strides=[1])
    g.op("ResizeBilinear", images=y, size=inner, half_pixel_centers=True)
    g.op("ResizeNearestNeighbor", images=y, size=inner)
    g.op("MaxPool", input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    g.op("AvgPool", value=x, ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="SAME")
    g.op("Mean", input=x, axis=[1, 2])
    g.op("DepthToSpace", input=x, block_size=2)
    g.op("SpaceToDepth", input=x, block_size=2)
    g.op("SpaceToBatchND", input=x, block_shape=[2, 2], paddings=[[0, 0], [0, 0]])
    g.op("MirrorPad", input=x, paddings=[[0, 0], [1, 2], [2, 1], [0, 0]], mode="SYMMETRIC")
    g.op("MirrorPad", input=x, paddings=[[0, 0], [1, 2], [2, 1], [0, 0]], mode="REFLECT")
    g.op("AdjustContrastv2", images=x, contrast_factor=np.float32(1.7))
    g.op("Roll", input=x, shift=[1, -3], axis=[1, 2])
    g.op("ReverseV2", tensor=x, axis=[1, 2])
    for at in (np.s_[:, 1:-1, ::2], np.s_[:, -2:, ::-1], np.s_[..., 0], np.s_[:, None, 2]):
        g.keep(x[at])
    rows = raw.Reshape(tensor=x, shape=[-1, 4])
    g.op("Softmax", logits=rows)
    g.op("MatMul", a=rows, b=rows, transpose_b=True)
    g.op("BiasAdd", value=x, bias=np.float32([1, 2, 3, 4]))
    g.op("LRN", input=x, depth_radius=1)
    g.op("Size", input=x)
    g.op("OnesLike", x=x)
    g.op("MatrixBandPart", input=raw.Transpose(x=x, perm=[0, 3, 1, 2]), num_lower=1, num_upper=0)
    g.op("OneHot", indices=raw.ArgMax(input=x, dimension=3), depth=4, on_value=1, off_value=0)
    g.op("Cumsum", x=x, axis=2)
    g.op("UnsortedSegmentSum", data=rows, segment_ids=raw.Cast(x=rows[:, 0] * 3, DstT="int32"),
         num_segments=np.int32(4))  # fmt: skip
    boxes = np.float32([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9]])
    g.op("CropAndResize", image=x, boxes=boxes, box_ind=np.int32([0, 1]), crop_size=[3, 3])


@group
def dynamic_orders(g: Cases) -> None:
    """Operators with a length known only at run time: sorts, diagonals, blocks, transforms."""
    raw = g.tf.raw_ops
    x = g.input(g.random.permutation(15).reshape(3, 5) / 4 - 2, "float32", [None, None])
    rows, columns = raw.Unpack(value=raw.Shape(input=x), num=2)
    g.op("TopKV2", input=x, k=columns)
    places = g.op("TopKV2", input=raw.Neg(x=x), k=columns)[1]
    g.op("TopKV2", input=x, k=rows)
    g.op("InvertPermutation", x=places[0])
    g.op("MatrixDiag", diagonal=x)
    g.op("MatrixDiagPart", input=x)
    g.op("MatrixSetDiag", input=x, diagonal=x[0, :3])
    flat = raw.Reshape(tensor=x, shape=[-1])
    tall = raw.Reshape(tensor=x, shape=raw.Pack(values=[columns, rows]))
    g.op("MatrixDiagPart", input=tall)
    g.op("MatrixSetDiag", input=tall, diagonal=flat[:rows])
    missing = raw.Pack(values=[0, raw.FloorMod(x=-columns, y=3)])
    blocks = raw.Pack(values=[np.int32([1, 0]), missing])
    image = raw.Reshape(tensor=x, shape=raw.Pack(values=[1, rows, columns, 1]))
    apart = g.op("SpaceToBatchND", input=image, block_shape=[2, 3], paddings=blocks)
    g.op("BatchToSpaceND", input=raw.Relu(features=apart), block_shape=[2, 3], crops=blocks)
    for shape in ([4, 6], raw.Pack(values=[rows, columns])):
        g.op("ImageProjectiveTransformV3", images=g.tf.concat([image, image + 1], 0),
             transforms=np.float32([[1, 0.2, -0.5, 0.1, 0.9, 0.3, 0.01, 0]]), output_shape=shape,
             fill_value=np.float32(0.5), interpolation="BILINEAR", fill_mode="REFLECT",
             atol=1e-5)  # fmt: skip


@group
def lists_and_calls(g: Cases) -> None:
    tf, raw = g.tf, g.tf.raw_ops
    x, y = g.floats(2, 3), g.floats(2, 3)
    kinds = {"element_dtype": "float32"}
    h = raw.EmptyTensorList(element_shape=[2, 3], max_num_elements=np.int32(-1), **kinds)
    g.op("TensorListLength", input_handle=h)
    h = raw.TensorListPushBack(input_handle=h, tensor=x)
    h = raw.TensorListPushBack(input_handle=h, tensor=y)
    g.op("TensorListLength", input_handle=h)
    g.op("TensorListElementShape", input_handle=h, shape_type="int32")
    g.op("TensorListElementShape", input_handle=h, shape_type="int64")
    g.op("TensorListStack", input_handle=h, element_shape=[2, 3], num_elements=2, **kinds)
    g.op("TensorListConcatV2", input_handle=h, element_shape=[2, 3],
         leading_dims=np.zeros(0, np.int64), **kinds)  # fmt: skip
    for size in (1, 4):
        r = raw.TensorListResize(input_handle=h, size=size)
        g.op("TensorListLength", input_handle=r)
        g.op("TensorListStack", input_handle=r, element_shape=[2, 3], **kinds)
    g.op("TensorListGetItem", input_handle=h, index=g.input(1, "int32"), element_shape=[2, 3],
         **kinds)  # fmt: skip
    g.op("TensorListGather", input_handle=h, indices=g.input([1, 0, 1], "int32"),
         element_shape=[2, 3], **kinds)  # fmt: skip
    i = g.ints(4, 2, dtype="int64")
    h = raw.TensorListFromTensor(tensor=i, element_shape=[2])
    h = raw.TensorListSetItem(input_handle=h, index=2, item=g.ints(2, dtype="int64"))
    g.op("TensorListStack", input_handle=h, element_shape=[2], element_dtype="int64")
    handle, flow = raw.TensorArrayV3(size=3, dtype="float32")
    g.op("TensorArraySizeV3", handle=handle, flow_in=flow)
    flow = raw.TensorArrayWriteV3(handle=handle, index=1, value=x, flow_in=flow)
    g.op("TensorArrayReadV3", handle=handle, index=1, flow_in=flow, dtype="float32")
    g.op("Print", input=x, data=[y], message="x")

    def function(f, *like):  # a function of the file
        made = tf.function(f, autograph=False).get_concrete_function(
            *(tf.TensorSpec(t.shape, t.dtype) for t in like)
        )
        made.add_to_graph(g.graph)
        return made

    twice = function(lambda a, b: (a * 2.0, a + b), x, y)
    swapped = function(lambda a, b: (b, a - b), x, y)
    out = ["float32", "float32"]
    g.op("PartitionedCall", args=[x, y], Tout=out, f=twice)
    g.op("StatefulPartitionedCall", args=[y, x], Tout=out, f=twice)
    for value in (True, False):
        g.op("If", cond=g.input(value), input=[x, y], Tout=out, then_branch=twice,
             else_branch=swapped)  # fmt: skip
    g.op("StatelessIf", cond=g.input(0.5, "float32"), input=[x, y], Tout=out, then_branch=twice,
         else_branch=swapped)  # fmt: skip
    for at in (0, 1, 7):
        g.op("Case", branch_index=g.input(at, "int32"), input=[x, y], Tout=out,
             branches=[twice, swapped])  # fmt: skip
    going = function(lambda a, b: tf.reduce_sum(a) < 40.0, x, y)
    step = function(lambda a, b: (a + tf.abs(b), b), x, y)
    for name in ("While", "StatelessWhile"):
        g.op(name, input=[x, y], cond=going, body=step)
