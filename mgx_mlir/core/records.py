"""Dataclasses whose methods are made at their first use, for classes that few compiles use.

`dataclasses.dataclass` compiles six methods from text, 0.4 ms for a frozen class: a fifth of the
imports of a compile. Here a class gets them with its first object, or when its fields are read.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mgx_mlir.core import forks, interrupts

T = TypeVar("T")
_making = threading.RLock()  # a class makes its bases first


class _Unmade:
    """An attribute of a class that makes the class when it is read."""

    def __init__(self, name: str, made: _Made) -> None:
        self._name, self._made = name, made

    def __get__(self, instance: object, owner: type) -> Any:
        self._made.make()
        return inspect.signature(owner) if self._name == _SIGNATURE else getattr(owner, self._name)


_SIGNATURE = "__signature__"
_READ = (_SIGNATURE, "__dataclass_fields__", "__dataclass_params__")


class _Made:
    """A class that becomes a dataclass at its first use."""

    def __init__(self, cls: type, options: dict[str, Any]) -> None:
        self._cls, self._options, self._is_made = cls, options, False
        self._places: dict[str, Any] = {name: _Unmade(name, self) for name in _READ}
        self._places["__init__"] = self._first()
        if not hasattr(cls, "__setstate__"):
            self._places["__setstate__"] = self._unpickled()
        for name, value in self._places.items():
            setattr(cls, name, value)

    def make(self) -> None:
        """Make the class a dataclass, once; neither a signal nor a fork comes between.

        Another thread that has the class meanwhile waits here, so `__init__` comes last.
        """
        with interrupts.later(), forks.loading(), _making:
            if self._is_made:
                return
            self._is_made = True
            cls: Any = self._cls
            if not cls.__doc__:
                cls.__doc__ = cls.__name__  # dataclasses would read the signature
            dataclasses.dataclass(**{**self._options, "init": False})(cls)
            cls.__dataclass_params__.init = True
            cls.__init__ = self._init()
            for name in self._places.keys() & {_SIGNATURE, "__setstate__"}:
                delattr(cls, name)

    def _init(self) -> Any:
        """Return the `__init__` of the class's fields.

        `dataclasses` writes it to a class without `__init__` only, so another class lends it.
        """
        cls = self._cls
        own = {field.name for field in dataclasses.fields(cast(Any, cls))}
        fields, types = dict[str, Any](), dict[str, Any]()
        for name, field in cast(Any, cls).__dataclass_fields__.items():
            is_argument_alone = name not in own and "InitVar" in str(field.type)
            if name in own or is_argument_alone:  # the others are class variables
                fields[name] = field
                types[name] = dataclasses.InitVar[Any] if is_argument_alone else field.type
        names = {name: getattr(cls, name) for name in ("__module__", "__doc__")}
        if hasattr(cls, "__post_init__"):
            names["__post_init__"] = None
        other = type(cls.__name__, (), {**names, "__annotations__": types, **fields})
        options = {"eq": False, "repr": False, "match_args": False}
        made: Any = dataclasses.dataclass(**{**self._options, **options, "order": False})(other)
        made.__init__.__qualname__ = f"{cls.__qualname__}.__init__"
        return made.__init__

    def _first(self) -> Any:
        """Return the `__init__` of the first object."""
        made, cls = self, self._cls

        def __init__(self: object, *args: object, **named: object) -> None:
            made.make()
            cast(Any, cls).__init__(self, *args, **named)

        return __init__

    def _unpickled(self) -> Any:
        """Return the `__setstate__` of a first object that is unpickled, without `__init__`."""
        made = self

        def __setstate__(self: object, state: dict[str, object]) -> None:
            made.make()
            vars(self).update(state)

        return __setstate__


def _dataclass(cls: type[T] | None = None, /, **options: Any) -> Any:
    """Do what `dataclasses.dataclass` does, at the first use of the class."""
    if cls is None:
        return functools.partial(_dataclass, **options)
    if "__init__" in vars(cls):
        return dataclasses.dataclass(**options)(cls)
    _Made(cls, options)
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass

__all__ = ["dataclass"]
