"""Operators with fused steps, from TensorFlow's optimizer and TensorFlow.js."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.helpers import along
from mgx_mlir.frontends.onnx.ops.activation import gelu_erf, gelu_tanh
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.ops import convolution, linear, math, normalize
from mgx_mlir.frontends.tf.ops.convolution import ConvAttributes
from mgx_mlir.frontends.tf.registry import find, tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

_ACTIVATIONS = ("Relu", "Relu6", "Elu", "Tanh", "Sigmoid")


def _then(
    b: Builder,
    node: Node,
    y: Value,
    args: Sequence[Value],
    steps: Sequence[str],
    epsilon: float,
    alpha: float,
    data_format: str | None,
) -> Value:
    """Apply the steps to `y`; their operands come from `args` in order."""
    rest = list(args)

    def take(count: int, step: str) -> list[Value]:
        if len(rest) < count:
            raise ModelError(f"step '{step}' of fused_ops expected {count} more operands")
        taken = rest[:count]
        del rest[:count]
        return taken

    for step in steps:
        if step == "BiasAdd":
            y = convolution.bias_add(b, node, y, *take(1, step), data_format=data_format)
        elif step == "FusedBatchNorm":
            moments = take(4, step)
            y, *_ = normalize.batch_norm(
                b, node, y, *moments, epsilon=epsilon, data_format=data_format, is_training=False
            )
        elif step == "Add":
            y = b.add(y, *take(1, step))
        elif step == "Prelu":
            [slope] = take(1, step)
            if len(b.dims(slope)) == 1:
                last = node.channels_last(data_format) or len(b.dims(y)) == 2
                slope = along(b, slope, y, len(b.dims(y)) - 1 if last else 1)
            y = b.add(b.max(y, 0), b.mul(b.min(y, 0), slope))
        elif step == "LeakyRelu":
            y = math.leaky_relu(b, node, y, alpha=alpha)
        elif step in _ACTIVATIONS:
            op = find(step)
            assert op is not None
            y = op.function(b, node, y)
        elif step == "GeluExact":
            y = gelu_erf(b, y)
        elif step == "GeluApproximate":
            y = gelu_tanh(b, y)
        else:
            raise NotSupported(f"step '{step[:80]}' of fused_ops")
    if rest:
        raise ModelError(f"the steps of fused_ops leave {len(rest)} operands")
    return y


@tf_op("_FusedConv2D")
def fused_conv(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    *args: Value,
    window: ConvAttributes,
    num_args: int,
    num_host_args: int = 0,
    filter_format: str = "HWIO",
    fused_ops: Sequence[str] = (),
    epsilon: float = 1e-4,
    leakyrelu_alpha: float = 0.2,
) -> Value:
    """Import _FusedConv2D: a Conv2D and its steps."""
    if num_host_args or filter_format != "HWIO":
        raise NotSupported(f"num_host_args={num_host_args}, filter_format={filter_format[:80]}")
    y = convolution.conv(b, node, x, w, window=window)
    return _then(b, node, y, args, fused_ops, epsilon, leakyrelu_alpha, window.data_format)


@tf_op("_FusedDepthwiseConv2dNative")
def fused_depthwise_conv(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    *args: Value,
    window: ConvAttributes,
    num_args: int,
    fused_ops: Sequence[str] = (),
    epsilon: float = 1e-4,
    leakyrelu_alpha: float = 0.2,
) -> Value:
    """Import _FusedDepthwiseConv2dNative: a DepthwiseConv2dNative and its steps."""
    y = convolution.depthwise_conv(b, node, x, w, window=window)
    return _then(b, node, y, args, fused_ops, epsilon, leakyrelu_alpha, window.data_format)


@tf_op("_FusedMatMul")
def fused_mat_mul(
    b: Builder,
    node: Node,
    x: Value,
    y: Value,
    *args: Value,
    transpose_a: bool = False,
    transpose_b: bool = False,
    num_args: int,
    fused_ops: Sequence[str] = (),
    epsilon: float = 1e-4,
    leakyrelu_alpha: float = 0.2,
) -> Value:
    """Import _FusedMatMul: a MatMul and its steps."""
    found = linear.mat_mul(b, node, x, y, transpose_a=transpose_a, transpose_b=transpose_b)
    return _then(b, node, found, args, fused_ops, epsilon, leakyrelu_alpha, None)


@tf_op("_FusedBatchNormEx", outputs=(*normalize.V1, "reserve_space_3"))
def fused_batch_norm_ex(
    b: Builder,
    node: Node,
    x: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
    *side: Value,
    epsilon: float = 1e-4,
    exponential_avg_factor: float = 1.0,
    num_side_inputs: int = 0,
    activation_mode: str = "Identity",
    data_format: str | None = None,
    is_training: bool = True,
) -> Outputs:
    """Import _FusedBatchNormEx: a FusedBatchNormV3, an optional addend, and an activation."""
    if activation_mode not in ("Identity", "Relu"):
        raise NotSupported(f"activation_mode '{activation_mode[:80]}'")
    y, *others = normalize.batch_norm(
        b, node, x, scale, offset, mean, variance, epsilon=epsilon,
        exponential_avg_factor=exponential_avg_factor, data_format=data_format,
        is_training=is_training,
    )  # fmt: skip
    for value in side:
        y = b.add(y, value)
    return (b.max(y, 0) if activation_mode == "Relu" else y, *others)
