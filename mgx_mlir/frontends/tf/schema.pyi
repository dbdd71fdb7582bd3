# The message classes that schema.py makes of its table, for the type checker.

from collections.abc import MutableMapping, MutableSequence
from typing import TypeVar

from google.protobuf.message import Message as _Message
from typing_extensions import Self

_T = TypeVar("_T")

class _Made(_Message):
    @classmethod
    def FromString(cls, s: bytes) -> Self: ...

class _Messages(MutableSequence[_T]):
    def add(self, **fields: object) -> _T: ...

class Dim(_Made):
    size: int
    name: str

class TensorShape(_Made):
    dim: _Messages[Dim]
    unknown_rank: bool

class Tensor(_Made):
    dtype: int
    tensor_shape: TensorShape
    version_number: int
    tensor_content: bytes
    half_val: MutableSequence[int]
    float_val: MutableSequence[float]
    double_val: MutableSequence[float]
    int_val: MutableSequence[int]
    string_val: MutableSequence[bytes]
    scomplex_val: MutableSequence[float]
    int64_val: MutableSequence[int]
    bool_val: MutableSequence[bool]
    dcomplex_val: MutableSequence[float]
    uint32_val: MutableSequence[int]
    uint64_val: MutableSequence[int]
    float8_val: bytes

class List(_Made):
    s: MutableSequence[bytes]
    i: MutableSequence[int]
    f: MutableSequence[float]
    b: MutableSequence[bool]
    type: MutableSequence[int]
    shape: _Messages[TensorShape]
    tensor: _Messages[Tensor]
    func: _Messages[NameAttrs]

class Attr(_Made):
    s: bytes
    i: int
    f: float
    b: bool
    type: int
    shape: TensorShape
    tensor: Tensor
    list: List
    func: NameAttrs
    placeholder: str

class NameAttrs(_Made):
    name: str
    attr: MutableMapping[str, Attr]

class Node(_Made):
    name: str
    op: str
    input: MutableSequence[str]
    device: str
    attr: MutableMapping[str, Attr]

class Versions(_Made):
    producer: int
    min_consumer: int

class Arg(_Made):
    name: str
    type: int
    type_attr: str
    number_attr: str
    type_list_attr: str

class OpDef(_Made):
    name: str
    input_arg: _Messages[Arg]
    output_arg: _Messages[Arg]
    control_output: MutableSequence[str]

class Function(_Made):
    signature: OpDef
    attr: MutableMapping[str, Attr]
    node_def: _Messages[Node]
    ret: MutableMapping[str, str]
    control_ret: MutableMapping[str, str]

class Library(_Made):
    function: _Messages[Function]

class Graph(_Made):
    node: _Messages[Node]
    library: Library
    versions: Versions
    version: int

class TensorInfo(_Made):
    name: str
    dtype: int
    tensor_shape: TensorShape

class Signature(_Made):
    inputs: MutableMapping[str, TensorInfo]
    outputs: MutableMapping[str, TensorInfo]
    method_name: str

class SaverDef(_Made):
    filename_tensor_name: str
    save_tensor_name: str
    restore_op_name: str
    version: int

class MetaInfo(_Made):
    tags: MutableSequence[str]
    tensorflow_version: str

class MetaGraph(_Made):
    meta_info_def: MetaInfo
    graph_def: Graph
    saver_def: SaverDef
    signature_def: MutableMapping[str, Signature]
    object_graph_def: ObjectGraph

class Child(_Made):
    node_id: int
    local_name: str

class SavedObject(_Made):
    children: _Messages[Child]

class ConcreteFunction(_Made):
    bound_inputs: MutableSequence[int]

class ObjectGraph(_Made):
    nodes: _Messages[SavedObject]
    concrete_functions: MutableMapping[str, ConcreteFunction]

class SavedModel(_Made):
    saved_model_schema_version: int
    meta_graphs: _Messages[MetaGraph]

class VersionDef(_Made):
    producer: int
    min_consumer: int

class SavedTensor(_Made):
    name: str
    full_name: str
    checkpoint_key: str

class Trackable(_Made):
    children: _Messages[Child]
    attributes: _Messages[SavedTensor]

class TrackableGraph(_Made):
    nodes: _Messages[Trackable]

class BundleHeader(_Made):
    num_shards: int
    endianness: int
    version: VersionDef

class Extent(_Made):
    start: int
    length: int

class Slice(_Made):
    extent: _Messages[Extent]

class BundleEntry(_Made):
    dtype: int
    shape: TensorShape
    shard_id: int
    offset: int
    size: int
    crc32c: int
    slices: _Messages[Slice]
