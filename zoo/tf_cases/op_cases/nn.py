"""Cases of convolution, pooling, normalisation and activations of a layer."""

from __future__ import annotations

from typing import Any

import numpy as np
from make_op_cases import Cases, group
from tensorflow.python.framework import op_def_library, op_def_registry


@group
def convolutions(g: Cases) -> None:
    x, w = g.floats(2, 9, 8, 4, low=-1, high=1), g.floats(3, 2, 4, 6, low=-1, high=1)
    for padding in ("SAME", "VALID"):
        for s in (1, 2):
            g.op("Conv2D", input=x, filter=w, strides=[1, s, s, 1], padding=padding)
        g.op("Conv2D", input=x, filter=w, strides=[1, 1, 1, 1], padding=padding,
             dilations=[1, 2, 3, 1])  # fmt: skip
    g.op("Conv2D", input=x, filter=w, strides=[1, 2, 1, 1], padding="EXPLICIT",
         explicit_paddings=[0, 0, 1, 2, 3, 0, 0, 0])  # fmt: skip
    g.op("Conv2D", input=x, filter=g.floats(3, 3, 2, 6), strides=[1, 1, 1, 1], padding="SAME")
    constant = np.linspace(-1, 1, 3 * 3 * 4 * 2, dtype=np.float32).reshape(3, 3, 4, 2)
    g.op("Conv2D", input=x, filter=constant, strides=[1, 1, 1, 1], padding="SAME")
    half = g.floats(1, 5, 5, 2, dtype="float16")
    g.op("Conv2D", input=half, filter=g.floats(3, 3, 2, 3, dtype="float16"),
         strides=[1, 1, 1, 1], padding="SAME")  # fmt: skip
    d = g.floats(3, 3, 4, 2, low=-1, high=1)
    for padding in ("SAME", "VALID"):
        g.op("DepthwiseConv2dNative", input=x, filter=d, strides=[1, 2, 2, 1], padding=padding)
    g.op("DepthwiseConv2dNative", input=x, filter=d, strides=[1, 1, 1, 1], padding="EXPLICIT",
         explicit_paddings=[0, 0, 1, 0, 0, 2, 0, 0])  # fmt: skip
    for padding, size, s in (("SAME", 9, 2), ("VALID", 19, 2), ("SAME", 5, 1), ("SAME", 10, 2)):
        rows = -(-size // s) if padding == "SAME" else (size - 3 + s) // s
        back = g.floats(1, rows, rows, 6, low=-1, high=1)
        g.op("Conv2DBackpropInput", input_sizes=np.int32([1, size, size, 4]),
             filter=g.floats(3, 3, 4, 6, low=-1, high=1), out_backprop=back,
             strides=[1, s, s, 1], padding=padding)  # fmt: skip
    g.op("Conv2DBackpropInput", input_sizes=g.input([1, 8, 8, 4], "int32"),
         filter=g.floats(2, 2, 4, 6), out_backprop=g.floats(1, 4, 4, 6), strides=[1, 2, 2, 1],
         padding="SAME")  # fmt: skip
    g.op("DepthwiseConv2dNativeBackpropInput", input_sizes=np.int32([1, 6, 6, 4]), filter=d,
         out_backprop=g.floats(1, 3, 3, 8), strides=[1, 2, 2, 1], padding="SAME")  # fmt: skip
    v, k = g.floats(1, 5, 6, 4, 2, low=-1, high=1), g.floats(2, 3, 2, 2, 3, low=-1, high=1)
    for padding in ("SAME", "VALID"):
        g.op("Conv3D", input=v, filter=k, strides=[1, 2, 1, 1, 1], padding=padding)
    g.op("Conv3DBackpropInputV2", input_sizes=np.int32([1, 4, 6, 4, 2]), filter=k,
         out_backprop=g.floats(1, 2, 3, 2, 3), strides=[1, 2, 2, 2, 1], padding="SAME")  # fmt: skip
    e = g.floats(3, 2, 4)
    for padding in ("SAME", "VALID"):
        g.op("Dilation2D", input=x, filter=e, strides=[1, 2, 1, 1], rates=[1, 1, 2, 1],
             padding=padding)  # fmt: skip


@group
def pooling(g: Cases) -> None:
    x = g.floats(2, 7, 6, 3)
    for padding in ("SAME", "VALID"):
        for k, s in ((2, 2), (3, 1), (3, 2)):
            window = {"ksize": [1, k, k, 1], "strides": [1, s, s, 1], "padding": padding}
            g.op("MaxPool", input=x, **window)
            g.op("AvgPool", value=x, **window)
    g.op("MaxPool", input=x, ksize=[1, 2, 3, 1], strides=[1, 1, 2, 1], padding="EXPLICIT",
         explicit_paddings=[0, 0, 1, 0, 0, 2, 0, 0])  # fmt: skip
    g.op("MaxPoolV2", input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    g.op("MaxPool", input=g.ints(1, 4, 4, 2), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1],
         padding="VALID")  # fmt: skip
    distinct = g.input(g.random.permutation(2 * 5 * 6 * 3).reshape(2, 5, 6, 3), "float32")
    for batch in (False, True):
        g.op("MaxPoolWithArgmax", input=distinct, ksize=[1, 2, 3, 1], strides=[1, 2, 2, 1],
             padding="SAME", include_batch_in_index=batch)  # fmt: skip
    v = g.floats(1, 5, 6, 4, 2)
    for padding in ("SAME", "VALID"):
        window = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 2, 1, 2, 1], "padding": padding}
        g.op("MaxPool3D", input=v, **window)
        g.op("AvgPool3D", input=v, **window)
    g.op("AvgPool", value=g.floats(1, 4, 4, 2, dtype="float16"), ksize=[1, 2, 2, 1],
         strides=[1, 2, 2, 1], padding="SAME")  # fmt: skip
    g.op("AvgPool", value=g.floats(1, 4, 4, 2, dtype="float64"), ksize=[1, 4, 4, 1],
         strides=[1, 1, 1, 1], padding="VALID")  # fmt: skip


@group
def layers(g: Cases) -> None:
    x = g.floats(2, 4, 5, 3)
    scale, offset, mean = g.floats(3, low=0.5), g.floats(3), g.floats(3)
    variance = g.floats(3, low=0.1)
    params = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
    for name in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        g.op(name, x=x, **params, is_training=False, epsilon=0.01, keep=[0])
    g.op("FusedBatchNormV3", x=g.floats(2, 4, 5, 3, dtype="float16"), **params,
         is_training=False, keep=[0])  # fmt: skip
    empty = np.zeros(0, np.float32)
    g.op("FusedBatchNormV3", x=x, scale=scale, offset=offset, mean=empty, variance=empty,
         is_training=True, keep=[0, 1, 2])  # fmt: skip
    g.op("FusedBatchNormV3", x=x, **params, is_training=True, keep=[0, 1, 2],
         exponential_avg_factor=0.25)  # fmt: skip
    bias = g.floats(3)
    g.op("BiasAdd", value=x, bias=bias)
    g.op("BiasAdd", value=g.floats(2, 3, 4, 5), bias=bias, data_format="NCHW")
    g.op("BiasAdd", value=g.floats(2, 3), bias=bias)
    g.op("BiasAdd", value=g.ints(2, 4, 3), bias=g.ints(3))
    g.op("BiasAddV1", value=x, bias=bias)
    c = g.floats(2, 2, 2, 9)
    g.op("LRN", input=c)
    g.op("LRN", input=c, depth_radius=2, bias=2.0, alpha=0.5, beta=0.75)
    y = g.floats(3, 7)
    for name in ("Softmax", "LogSoftmax"):
        g.op(name, logits=y)
        g.op(name, logits=g.floats(2, 3, 4))
        g.op(name, logits=g.floats(2, 4, dtype="float64"))
        g.op(name, logits=g.floats(2, 4, dtype="float16"))
    labels = g.input(np.eye(3, 7) * 0.6 + 0.05, "float32")
    g.op("SoftmaxCrossEntropyWithLogits", features=y, labels=labels)
    g.op("SparseSoftmaxCrossEntropyWithLogits", features=y, labels=g.input([0, 6, 3], "int64"))
    h, i = g.floats(2, 3), g.floats(2, 4)
    block = {
        "x": i,
        "cs_prev": h,
        "h_prev": g.floats(2, 3),
        "w": g.floats(7, 12),
        "wci": g.floats(3),
        "wcf": g.floats(3),
        "wco": g.floats(3),
        "b": g.floats(12),
    }
    g.op("LSTMBlockCell", **block, forget_bias=1.0, cell_clip=-1.0)
    g.op("LSTMBlockCell", **block, forget_bias=0.5, cell_clip=1.0, use_peephole=True)
    g.op("GRUBlockCell", x=i, h_prev=h, w_ru=g.floats(7, 6), w_c=g.floats(7, 3), b_ru=g.floats(6),
         b_c=g.floats(3))  # fmt: skip
    seq = {**block, "x": g.floats(4, 2, 4), "seq_len_max": np.int64(3)}
    g.op("BlockLSTM", **seq, forget_bias=1.0, cell_clip=3.0, use_peephole=False, keep=[1, 6])
    g.op("BlockLSTMV2", **seq, cell_clip=0.0, use_peephole=False, keep=[1, 6])


def _fused(g: Cases, name: str, *plain: Any, **kw: Any) -> None:
    """A node that only TensorFlow's optimiser writes, compared with the `plain` operators' results.

    Not every one has a kernel that can be called from a graph.
    """
    for a in op_def_registry.get(name).attr:  # the library wants those that have defaults, too
        if a.HasField("default_value") and a.type != "type" and not a.name.startswith("num_"):
            kind = a.default_value.WhichOneof("value")
            value = getattr(a.default_value, kind)
            kw.setdefault(a.name, list(value.i) if kind == "list" else value)
    found = op_def_library.apply_op(name, name=name[1:], **kw)
    found = found if isinstance(found, tuple) else (found,)
    for made, wanted in zip(found, plain, strict=False):
        g.outputs.append({"name": made.name, "op": name, "rtol": 1e-4, "atol": 1e-5})
        g.tensors.append(wanted)


@group
def fused(g: Cases) -> None:
    nn, raw = g.tf.nn, g.tf.raw_ops
    x, w = g.floats(2, 7, 6, 4, low=-1, high=1), g.floats(3, 2, 4, 8, low=-1, high=1)
    d = g.floats(3, 3, 4, 2, low=-1, high=1)
    bias, wide, slope = g.floats(8), g.floats(8), g.floats(8, low=0, high=1)
    moments = [g.floats(8), g.floats(8), g.floats(8), g.floats(8, low=0.1, high=2)]
    window = {"strides": [1, 2, 1, 1], "padding": "SAME"}
    y = raw.Conv2D(input=x, filter=w, **window)
    z = raw.DepthwiseConv2dNative(input=x, filter=d, strides=[1, 1, 1, 1], padding="VALID")
    side = g.floats(2, 4, 6, 8)
    normed = raw.FusedBatchNormV3(
        x=y, scale=moments[0], offset=moments[1], mean=moments[2], variance=moments[3],
        epsilon=0.01, is_training=False,
    )  # fmt: skip
    activations = {"Relu": nn.relu, "Relu6": nn.relu6, "Elu": nn.elu, "Tanh": g.tf.tanh,
                   "Sigmoid": g.tf.sigmoid,
                   "LeakyRelu": lambda v: nn.leaky_relu(v, 0.3)}  # fmt: skip

    def conv(args: list[Any], steps: list[str], plain: Any) -> None:
        _fused(g, "_FusedConv2D", plain, input=x, filter=w, args=args, host_args=[],
               num_args=len(args),
               fused_ops=steps, epsilon=0.01, leakyrelu_alpha=0.3, **window)  # fmt: skip

    conv([bias], ["BiasAdd"], y + bias)
    conv([bias, side], ["BiasAdd", "Add", "Relu"], nn.relu(y + bias + side))
    conv(moments, ["FusedBatchNorm"], normed[0])
    conv(moments, ["FusedBatchNorm", "Relu6"], nn.relu6(normed[0]))
    conv([bias, slope], ["BiasAdd", "Prelu"], nn.relu(y + bias) + slope * -nn.relu(-y - bias))
    for name, function in activations.items():
        conv([bias], ["BiasAdd", name], function(y + bias))
        _fused(g, "_FusedDepthwiseConv2dNative", function(z + wide), input=x, filter=d,
               args=[wide], strides=[1, 1, 1, 1], padding="VALID", leakyrelu_alpha=0.3,
               fused_ops=["BiasAdd", name])  # fmt: skip
    a, c = g.floats(3, 4), g.floats(8, 4)
    product = g.tf.matmul(a, c, transpose_b=True) + bias
    _fused(g, "_FusedMatMul", product, a=a, b=c, args=[bias], transpose_b=True,
           fused_ops=["BiasAdd"])  # fmt: skip
    for name, function in activations.items():
        _fused(g, "_FusedMatMul", function(product), a=a, b=c, args=[bias], transpose_b=True,
               fused_ops=["BiasAdd", name], leakyrelu_alpha=0.3)  # fmt: skip
    for name, exact in (("GeluExact", False), ("GeluApproximate", True)):
        _fused(g, "_FusedMatMul", nn.gelu(product, exact), a=a, b=c, args=[bias],
               transpose_b=True, fused_ops=["BiasAdd", name])  # fmt: skip
    for sides, mode, plain in (([], "Relu", nn.relu(normed[0])), ([side], "Identity", normed[0] +
                               side), ([side], "Relu", nn.relu(normed[0] + side))):  # fmt: skip
        _fused(g, "_FusedBatchNormEx", plain, x=y, scale=moments[0], offset=moments[1],
               mean=moments[2], variance=moments[3], side_input=sides, activation_mode=mode,
               epsilon=0.01, is_training=False)  # fmt: skip
