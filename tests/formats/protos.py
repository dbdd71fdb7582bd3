"""Damaged protobuf messages: fields of a model changed, so that they still decode."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

NUMBERS = (0, 1, -1, 2, 3, 7, 13, 64, 65, 255, 46341, 2**31 - 1, 2**31, 2**33, 2**40, 2**62,
           2**63 - 1, -(2**63), -(2**31))  # fmt: skip
FLOATS = (0.0, -1.0, 1e-40, 3e38, 1e300, float("inf"), float("-inf"), float("nan"), 0.7)
TEXTS = ("", "x", "@0", "\x1b[31m", "a\0b", "a\nb", "NOTSET", "linear", "SAME_UPPER", "²",
         "9" * 5000, "..", "/etc/passwd", "z" * 3000, "\u202e", "*:0")  # fmt: skip
# ranges of FieldDescriptor.cpp_type; enumerations are int32
_INTEGERS = {1: (-(2**31), 2**31 - 1), 2: (-(2**63), 2**63 - 1), 3: (0, 2**32 - 1),
             4: (0, 2**64 - 1)}  # fmt: skip
Place = tuple[Any, Any]  # a message and the descriptor of a field that is set in it


def damaged_message(kind: Any, data: bytes, rng: random.Random) -> Any:
    """A message of `kind` with one to five fields changed."""
    message = kind.FromString(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        places: list[Place] = []
        _places(message, places, 0)
        if not places:
            break
        # names first, so that a node's field is as likely as one of a tensor's many numbers
        names = sorted({f.name for _, f in places})
        name = rng.choice(names)
        owner, field = rng.choice([p for p in places if p[1].name == name])
        _change(owner, field, rng, places)
    return message


def _places(message: Any, found: list[Place], depth: int) -> None:
    for field, value in message.ListFields():
        found.append((message, field))
        if field.message_type is None or depth > 12:
            continue
        if _is_map(field):
            values = list(value.values()) if field.message_type.fields_by_name[
                "value"].message_type else []  # fmt: skip
        else:
            values = list(value) if field.is_repeated else [value]
        for inner in values[:200]:
            _places(inner, found, depth + 1)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _change(owner: Any, field: Any, rng: random.Random, places: list[Place]) -> None:
    if _is_map(field):
        entries = getattr(owner, field.name)
        if entries and rng.random() < 0.5:
            del entries[rng.choice(sorted(entries))]
    elif field.is_repeated:
        _change_list(getattr(owner, field.name), field, rng, places)
    elif field.message_type is not None:
        if rng.random() < 0.6:
            owner.ClearField(field.name)
        else:
            _copy(getattr(owner, field.name), field, rng, places)
    else:
        setattr(owner, field.name, _value(field, getattr(owner, field.name), rng, places))


def _change_list(values: Any, field: Any, rng: random.Random, places: list[Place]) -> None:
    if not len(values):
        return
    at, kind = rng.randrange(len(values)), rng.randrange(6)
    if kind == 0:
        del values[at]
    elif kind == 1 and len(values) < 1000:
        added = [values[at]] * rng.choice((1, 1, 3, 70))
        values.extend(added)
    elif field.message_type is None:
        values[at] = _value(field, values[at], rng, places)
    elif kind == 2:
        other = values[rng.randrange(len(values))]
        values[at].CopyFrom(other)
    elif kind == 3:
        values[at].Clear()
    else:
        _copy(values[at], field, rng, places)


def _copy(message: Any, field: Any, rng: random.Random, places: list[Place]) -> None:
    """Another message of the same type in its place."""
    same = [(m, f) for m, f in places if f.message_type is field.message_type and not _is_map(f)]
    if same:
        owner, other = rng.choice(same)
        found = getattr(owner, other.name)
        if other.is_repeated:
            found = found[rng.randrange(len(found))] if len(found) else None
        if found is not None and found.ByteSize() < 1 << 16:
            message.ParseFromString(found.SerializeToString())


def _value(field: Any, old: Any, rng: random.Random, places: list[Place]) -> Any:
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        low, high = _INTEGERS.get(field.cpp_type, (-(2**31), 2**31 - 1))
        return min(max(rng.choice((*NUMBERS, old + 1, old - 1, old * 2)), low), high)
    if isinstance(old, float):
        found = rng.choice((*FLOATS, -old, old * 3))
        return found if field.cpp_type == field.CPPTYPE_DOUBLE else _as_float(found)
    others = [getattr(m, f.name) for m, f in places if f.type == field.type and not f.is_repeated]
    if isinstance(old, bytes):
        return _bytes(old, rng, [o for o in others if isinstance(o, bytes)])
    return rng.choice((rng.choice(TEXTS), rng.choice(others or [old]), old + "x", old[:-1]))


def _as_float(value: float) -> float:
    return value if not abs(value) > 3.4e38 else float("inf")


def _bytes(old: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    raw = bytearray(old)
    choices: list[Callable[[], Any]] = [
        lambda: raw[: len(raw) // 2], lambda: raw + b"\0" * 8, lambda: b"-" + bytes(raw),
        lambda: bytes(b ^ 0xFF for b in raw), lambda: b"\xff" * len(raw),
        lambda: rng.choice(others or [old]), lambda: b"",
    ]  # fmt: skip
    return bytes(rng.choice(choices)())
