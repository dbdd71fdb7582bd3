"""Dataclasses that are made at their first use."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import threading
from collections.abc import Callable
from dataclasses import InitVar, asdict, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest

from mgx_mlir.core.records import dataclass
from mgx_mlir.passes import PASS_NAMES
from mgx_mlir.rewrite.passes import PASSES, NestedPass


@dataclass(frozen=True)
class Pair:
    first: int
    rest: list[int] = field(default_factory=list)


@dataclass
class Counted:
    number: int = 3

    def __post_init__(self) -> None:
        self.number += 1


@dataclass(frozen=True)
class Longer(Pair):
    last: str = ""


class Plain(Counted):
    def __init__(self) -> None:
        super().__init__(7)


@dataclass(frozen=True)
class Sent:
    first: int


@dataclass(frozen=True)
class Shown:
    first: int
    second: str = "x"


@dataclass(frozen=True)
class Shared:
    first: int


def all_kinds(decorator: Any) -> Any:
    """Return a class with each kind of field."""

    @decorator(frozen=True)
    class Met:
        first: int
        second: list[int] = field(default_factory=list)
        third: int = field(default=5, kw_only=True)
        fourth: int = field(init=False, default=1)
        count: ClassVar[int] = 3

        def __post_init__(self) -> None:
            object.__setattr__(self, "fourth", 7)

    return Met


def is_made(cls: type) -> bool:
    return "__eq__" in vars(cls)


def test_a_class_is_made_by_its_first_object() -> None:
    assert not is_made(Longer)
    made = Longer(1, last="z")
    assert is_made(Longer)
    assert is_made(Pair)  # the base class
    assert made == Longer(1, [], "z") != Longer(2, [], "z")
    assert repr(made) == "Longer(first=1, rest=[], last='z')"
    assert asdict(replace(made, first=5)) == {"first": 5, "rest": [], "last": "z"}
    with pytest.raises(AttributeError):
        setattr(made, "first", 2)  # noqa: B010  (frozen)


def test_a_class_without_init_of_its_own_is_made_through_a_plain_subclass() -> None:
    assert Plain().number == 8
    assert is_made(Counted)


def test_a_class_is_made_where_its_fields_or_its_signature_are_read() -> None:
    assert not is_made(Shown)
    assert list(inspect.signature(Shown).parameters) == ["first", "second"]
    assert is_made(Shown)
    assert is_dataclass(Counted)
    assert [f.name for f in fields(Pair)] == ["first", "rest"]


def test_a_first_object_may_come_from_a_pickle() -> None:
    blank = Sent.__new__(Sent)
    vars(blank)["first"] = 9
    data = pickle.dumps(blank)
    assert not is_made(Sent)
    found = pickle.loads(data)
    assert is_made(Sent)
    assert found == Sent(9) == copy.deepcopy(found)


def test_threads_that_make_one_class_each_get_an_object() -> None:
    start, made = threading.Barrier(8), list[Shared]()

    def work(number: int) -> None:
        start.wait()
        made.append(Shared(number))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(s.first for s in made) == list(range(8))


MEETINGS: dict[str, Callable[[Any], object]] = {
    "object": lambda cls: repr(cls(1, [4], third=6)).split(".")[-1],
    "defaults": lambda cls: hash(cls(1, ())) == hash(cls(1, ())),
    "fields": lambda cls: [(f.name, f.type, f.init, f.kw_only) for f in fields(cls)],
    "signature": lambda cls: str(inspect.signature(cls)),
    "parameters": lambda cls: repr(cls.__dataclass_params__),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_a_class_in_the_making_is_whole_for_other_threads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, started, met = dataclasses.dataclass, threading.Event(), list[object]()
    cls = all_kinds(dataclass)

    def work() -> None:
        started.set()
        met.append(MEETINGS[name](cls))

    def slow(**options: Any) -> Callable[[type], type]:
        def apply(made: type) -> type:
            if not started.is_set():
                other.start()
                started.wait(10)
            other.join(0.05)
            done = plain(**options)(made)
            other.join(0.05)
            return done

        return apply

    other = threading.Thread(target=work)
    monkeypatch.setattr(dataclasses, "dataclass", slow)
    assert cls(2).first == 2
    other.join()
    assert met == [MEETINGS[name](all_kinds(plain))]


def test_arguments_that_are_no_fields_are_taken() -> None:
    @dataclass(frozen=True)
    class Doubled:
        number: int = field(init=False, default=0)
        half: InitVar[int] = 2

        def __post_init__(self, half: int) -> None:
            object.__setattr__(self, "number", 2 * half)

    @dataclass(frozen=True)
    class Shifted(Doubled):
        by: int = 1

    assert Doubled(4).number == 8
    assert Shifted(4, by=2) == Shifted(4, 2)
    assert Shifted(4).number == 8


@pytest.mark.parametrize("name", sorted(PASS_NAMES))
def test_passes_take_their_fields_alone(name: str) -> None:
    """The base class of passes has class variables, of a module that imports ClassVar."""
    cls = PASSES[name]
    made = [f.name for f in fields(cls) if f.init]
    assert list(inspect.signature(cls).parameters) == made


def test_a_nested_pipeline_takes_its_anchor() -> None:
    assert NestedPass("func.func", ()).anchor == "func.func"
