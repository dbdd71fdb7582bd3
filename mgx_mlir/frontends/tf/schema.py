"""TensorFlow's protobuf messages: the parts that define a graph's computation.

The classes are made when this is imported, from a table; no file of TensorFlow's is needed.
Fields that the table leaves out are skipped by the parser.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "mgx_mlir.tf"
_TYPES = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "bool": 8, "string": 9,
    "bytes": 12, "uint32": 13, "fixed32": 7,
}  # fmt: skip
_OPTIONAL, _REPEATED, _MESSAGE = 1, 3, 11

# message: its fields as "name=number type"; [] repeated, {} a map from strings; a type that is no
# scalar is another message; the fields in _ONE_OF form one group
_MESSAGES = {
    "Dim": "size=1 int64, name=2 string",
    "TensorShape": "dim=2 Dim[], unknown_rank=3 bool",
    "Tensor": "dtype=1 int32, tensor_shape=2 TensorShape, version_number=3 int32, "
    "tensor_content=4 bytes, half_val=13 int32[], float_val=5 float[], double_val=6 double[], "
    "int_val=7 int32[], string_val=8 bytes[], scomplex_val=9 float[], int64_val=10 int64[], "
    "bool_val=11 bool[], dcomplex_val=12 double[], uint32_val=16 uint32[], uint64_val=17 uint64[], "
    "float8_val=18 bytes",
    "List": "s=2 bytes[], i=3 int64[], f=4 float[], b=5 bool[], type=6 int32[], "
    "shape=7 TensorShape[], tensor=8 Tensor[], func=9 NameAttrs[]",
    "Attr": "s=2 bytes, i=3 int64, f=4 float, b=5 bool, type=6 int32, shape=7 TensorShape, "
    "tensor=8 Tensor, list=1 List, func=10 NameAttrs, placeholder=9 string",
    "NameAttrs": "name=1 string, attr=2 Attr{}",
    "Node": "name=1 string, op=2 string, input=3 string[], device=4 string, attr=5 Attr{}",
    "Versions": "producer=1 int32, min_consumer=2 int32",
    "Arg": "name=1 string, type=3 int32, type_attr=4 string, number_attr=5 string, "
    "type_list_attr=6 string",
    "OpDef": "name=1 string, input_arg=2 Arg[], output_arg=3 Arg[], control_output=20 string[]",
    "Function": "signature=1 OpDef, attr=5 Attr{}, node_def=3 Node[], ret=4 string{}, "
    "control_ret=6 string{}",
    "Library": "function=1 Function[]",
    "Graph": "node=1 Node[], library=2 Library, versions=4 Versions, version=3 int32",
    "TensorInfo": "name=1 string, dtype=2 int32, tensor_shape=3 TensorShape",
    "Signature": "inputs=1 TensorInfo{}, outputs=2 TensorInfo{}, method_name=3 string",
    "SaverDef": "filename_tensor_name=1 string, save_tensor_name=2 string, "
    "restore_op_name=3 string, version=7 int32",
    "MetaInfo": "tags=4 string[], tensorflow_version=5 string",
    "MetaGraph": "meta_info_def=1 MetaInfo, graph_def=2 Graph, saver_def=3 SaverDef, "
    "signature_def=5 Signature{}, object_graph_def=7 ObjectGraph",
    "Child": "node_id=1 int32, local_name=2 string",
    "SavedObject": "children=1 Child[]",
    "ConcreteFunction": "bound_inputs=2 int32[]",
    "ObjectGraph": "nodes=1 SavedObject[], concrete_functions=2 ConcreteFunction{}",
    "SavedModel": "saved_model_schema_version=1 int64, meta_graphs=2 MetaGraph[]",
    # messages of a checkpoint
    "VersionDef": "producer=1 int32, min_consumer=2 int32",
    "SavedTensor": "name=1 string, full_name=2 string, checkpoint_key=3 string",
    "Trackable": "children=1 Child[], attributes=2 SavedTensor[]",
    "TrackableGraph": "nodes=1 Trackable[]",
    "BundleHeader": "num_shards=1 int32, endianness=2 int32, version=3 VersionDef",
    "Extent": "start=1 int64, length=2 int64",
    "Slice": "extent=1 Extent[]",
    "BundleEntry": "dtype=1 int32, shape=2 TensorShape, shard_id=3 int32, offset=4 int64, "
    "size=5 int64, crc32c=6 fixed32, slices=7 Slice[]",
}  # fmt: skip
_ONE_OF = {"Attr"}  # messages whose fields exclude each other


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="mgx_mlir/tf.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, text in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name in _ONE_OF:
            message.oneof_decl.add(name="value")
        for part in text.split(", "):
            head, kind = part.split()
            field, number = head.split("=")
            _field(message, field, int(number), kind)
            if name in _ONE_OF:
                message.field[-1].oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


def _field(message: Any, name: str, number: int, kind: str) -> None:
    base = kind.rstrip("[]{}")
    field = message.field.add(
        name=name, number=number, label=_REPEATED if kind != base else _OPTIONAL
    )
    if kind.endswith("{}"):
        entry = "".join(p.capitalize() for p in name.split("_")) + "Entry"
        nested = message.nested_type.add(name=entry)
        nested.options.map_entry = True
        _field(nested, "key", 1, "string")
        _field(nested, "value", 2, base)
        field.type, field.type_name = _MESSAGE, f".{_PACKAGE}.{message.name}.{entry}"
    elif base in _TYPES:
        field.type = _TYPES[base]
    else:
        field.type, field.type_name = _MESSAGE, f".{_PACKAGE}.{base}"


globals().update(_classes())  # schema.pyi states them
