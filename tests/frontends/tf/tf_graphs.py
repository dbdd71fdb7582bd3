"""GraphDefs of a few nodes, built for tests without TensorFlow."""

from __future__ import annotations

import numpy as np

from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf_buffer

FLOAT, INT32, STRING, VARIANT = 1, 3, 7, 21


class Graph:
    """A GraphDef built node by node."""

    def __init__(self):
        self.proto = schema.Graph()

    def node(self, name, op, *inputs, **attributes):
        made = self.proto.node.add(name=name, op=op, input=inputs)
        for key, value in attributes.items():
            set_attribute(made.attr[key], value)
        return made

    def placeholder(self, name="x", dims=(2, 3), dtype=FLOAT):
        made = self.node(name, "Placeholder")
        made.attr["dtype"].type = dtype
        shape = made.attr["shape"].shape
        shape.SetInParent()
        for d in dims:
            shape.dim.add(size=d)
        return made

    def const(self, name, array):
        made = self.node(name, "Const")
        array = np.asarray(array)
        number = {"float32": 1, "int32": 3, "int64": 9}[array.dtype.name]
        made.attr["dtype"].type = number
        tensor = made.attr["value"].tensor
        tensor.dtype, tensor.tensor_content = number, array.tobytes()
        tensor.tensor_shape.SetInParent()
        for d in array.shape:
            tensor.tensor_shape.dim.add(size=d)
        return made

    def function(self, name, arguments, results):
        made = self.proto.library.function.add()
        made.signature.name = name
        for a in arguments:
            made.signature.input_arg.add(name=a, type=FLOAT)
        for key, ref in results.items():
            made.signature.output_arg.add(name=key, type=FLOAT)
            made.ret[key] = ref
        return made

    def parse(self, **options):
        return parse_tf_buffer(self.proto.SerializeToString(), TfOptions(**options))


def set_attribute(attribute, value):
    if isinstance(value, bool):
        attribute.b = value
    elif isinstance(value, int):
        attribute.i = value
    elif isinstance(value, float):
        attribute.f = value
    elif isinstance(value, str):
        attribute.s = value.encode()
    elif isinstance(value, list):
        part = attribute.list
        (part.f if isinstance(value[0], float) else part.i).extend(value)
    elif isinstance(value, tuple):
        attribute.func.name = value[0]


def small():
    g = Graph()
    g.placeholder()
    g.const("w", np.arange(6, dtype=np.float32).reshape(3, 2))
    g.node("y", "MatMul", "x", "w")
    g.node("z", "Relu", "y")
    return g
