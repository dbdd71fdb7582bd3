"""Variables of a SavedModel: their values are constants of the program."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import INT32, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.tf.values import Resource
from mgx_mlir.frontends.values import Held, Value
from mgx_mlir.programs.build import Builder


def array_of(resource: Held) -> np.ndarray:
    """Return the value of the variable that an operand refers to."""
    if not isinstance(resource, Resource):
        raise ModelError(f"expected a variable, got a {getattr(resource, 'what', 'tensor')}")
    return resource.read()


def _found(node: Node, dtype: DType | int) -> Resource:
    name = node.proto.name
    read = node.importer.model.variables.get(name) if not node.scope.depth else None
    if read is None:
        raise ModelError(
            "the variable has no value: no checkpoint holds it",
            notes=["read a SavedModel's folder, or freeze the graph"],
        )

    def checked() -> np.ndarray:
        array = read()
        if isinstance(dtype, DType) and array.dtype != dtype.np:
            raise ModelError(f"variable '{name}' expected {dtype.short}, the checkpoint has "
                             f"{array.dtype}")  # fmt: skip
        return array

    return Resource(name, dtype if isinstance(dtype, DType) else None, checked)


@tf_op("VarHandleOp")
def var_handle(
    b: Builder, node: Node, *, dtype: DType | int, shape: object = None, shared_name: str = ""
) -> Resource:
    return _found(node, dtype)


@tf_op("VariableV2", "Variable")
def variable(
    b: Builder, node: Node, *, dtype: DType | int, shape: object = None, shared_name: str = ""
) -> Value:
    return b.literal(_found(node, dtype).read())


@tf_op("ReadVariableOp", raw=True)
def read_variable(b: Builder, node: Node, resource: Held) -> Value:
    return b.literal(array_of(resource))


@tf_op("VariableShape", raw=True)
def variable_shape(b: Builder, node: Node, resource: Held, *, out_type: DType = INT32) -> Value:
    return b.literal(np.array(array_of(resource).shape, out_type.np))


@tf_op("VarIsInitializedOp", raw=True)
def var_is_initialized(b: Builder, node: Node, resource: Held) -> Value:
    array_of(resource)
    return b.literal(np.bool_(True))


@tf_op("ResourceGather", raw=True)
def resource_gather(
    b: Builder, node: Node, resource: Held, indices: Value, *, batch_dims: int = 0
) -> Value:
    if batch_dims:
        raise NotSupported(f"batch_dims={batch_dims}")
    return b.gather(b.literal(array_of(resource)), indices, axis=0)
