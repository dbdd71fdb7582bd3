"""Hash tables of numbers, filled when a SavedModel is loaded: constants of the program."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.helpers import compare, convert, less_equal
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.tf.values import Table
from mgx_mlir.frontends.values import Held, Value
from mgx_mlir.programs.build import Builder


@tf_op("HashTableV2")
def hash_table(
    b: Builder,
    node: Node,
    *,
    key_dtype: DType | int,
    value_dtype: DType | int,
    container: str = "",
    shared_name: str = "",
    use_node_name_sharing: bool = False,
) -> Table:
    """Import HashTableV2, whose contents come from the model's initializer."""
    if not isinstance(key_dtype, DType) or not isinstance(value_dtype, DType):
        raise NotSupported("a table of strings")
    found = node.importer.model.tables.get(node.proto.name) if not node.scope.depth else None
    if found is None:
        raise ModelError(
            "the table has no contents: no initializer of the file states them",
            notes=["read a SavedModel's folder whose tables are constants"],
        )
    keys, values = (v.reshape(-1) for v in found)
    if len(keys) != len(values) or keys.dtype != key_dtype.np or values.dtype != value_dtype.np:
        raise ModelError(
            f"the table expected as many {key_dtype.short} as {value_dtype.short}, got "
            f"{len(keys)} of {keys.dtype} and {len(values)} of {values.dtype}"
        )
    order = np.argsort(keys, kind="stable")
    return Table(keys[order], values[order])


def _table(v: Held) -> Table:
    if not isinstance(v, Table):
        raise ModelError(f"expected a table, got a {getattr(v, 'what', 'tensor')}")
    return v


@tf_op("LookupTableFindV2", raw=True)
def find(b: Builder, node: Node, table: Held, keys: Value, default: Value) -> Value:
    """Import LookupTableFind: each key's value by binary search; `default` for missing keys."""
    held = _table(table)
    if not isinstance(keys, Value) or b.dtype(keys).np != held.keys.dtype:
        raise ModelError(f"expected keys of {held.keys.dtype}")
    count = len(held.keys)
    own = b.literal(held.keys)
    place = convert(b, b.mul(keys, 0), INT64)
    if not count:
        return b.add(convert(b, place, b.dtype(default)), default)
    for bit in reversed(range((count - 1).bit_length())):
        ahead = b.min(b.add(place, 1 << bit), count - 1)
        place = b.where(less_equal(b, b.gather(own, ahead, axis=0), keys), ahead, place)
    hit = compare(b, "equal", b.gather(own, place, axis=0), keys)
    return b.where(hit, b.gather(b.literal(held.values), place, axis=0), default)


@tf_op("LookupTableSizeV2", raw=True)
def size(b: Builder, node: Node, table: Held) -> Value:
    """Import LookupTableSize: the number of keys."""
    return b.literal(len(_table(table).keys), INT64)
