# What this project uses of the bindings' `ext`: dialects whose ops are Python classes.

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from torch_mlir import ir

_T = TypeVar("_T")

class Operand(ir.Value, Generic[_T]): ...
class Result(ir.OpResult, Generic[_T]): ...
class Region(ir.Region): ...
class Pure: ...

class _Operation(ir.OpView):
    Adaptor: ClassVar[type]
    _traits: ClassVar[Sequence[type] | None]
    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        traits: Sequence[type] | None = None,
        dialect: type | None = None,
        **kwargs: Any,
    ) -> None: ...
    @classmethod
    def _attach_traits(cls) -> None: ...

class Dialect:
    # each dialect has a class of its own, the base of its ops
    class Operation(_Operation): ...

    operations: ClassVar[list[type[_Operation]]]
    _mlir_module: ClassVar[ir.Module | None]
    def __init_subclass__(cls, name: str, **kwargs: Any) -> None: ...
    @classmethod
    def load(cls) -> None: ...
