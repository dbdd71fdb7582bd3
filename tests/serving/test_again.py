"""Streams that go on from a second process where the first one died."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from mgx_mlir.integrations.openai.again import again, with_seed
from mgx_mlir.integrations.openai.answers import ALIVE, DONE
from mgx_mlir.integrations.v2.errors import V2Error

HEAD = (200, {}, True)


class Died(Exception):
    pass


def event(attempt: int, index: int, text: str) -> bytes:
    row = {"id": f"cmpl-{attempt}", "created": attempt, "choices": [{"index": index, "text": text}]}
    return b"data: " + json.dumps(row).encode() + b"\n\n"


def events(attempt: int) -> list[bytes]:
    """Two choices; each attempt has them in another order, and one piece has two events."""
    first = [event(attempt, 0, t) for t in "ABC"]
    second = [event(attempt, 1, t) for t in "XYZ"]
    order = first + second if attempt % 2 else second + first
    return [order[0], ALIVE, order[1] + order[2], *order[3:], DONE]


def given(dies_at: list[int], streamed: bool = True, quietly: bool = False) -> list[Any]:
    """Return a client's events where attempt i dies, or just ends, behind so many parts."""
    attempts = iter(range(len(dies_at) + 1))
    closed = []

    async def ask() -> AsyncGenerator[Any, None]:
        attempt = next(attempts)
        parts = [HEAD, *events(attempt)] if streamed else [(200, {}, False), b"whole"]
        try:
            for i, part in enumerate(parts):
                if attempt < len(dies_at) and i == dies_at[attempt]:
                    if quietly:
                        return
                    raise Died
                yield part
        finally:
            closed.append(attempt)

    async def main() -> list[Any]:
        return [part async for part in again(ask, (Died,), lambda head: head[2])]

    found = asyncio.run(main())
    assert closed == list(range(len(dies_at) + 1))
    return found


@pytest.mark.parametrize("quietly", [False, True])
@pytest.mark.parametrize("dies_at", [[], [0], [1], [4], [6], [3, 5], [7, 0, 1, 2]], ids=str)
def test_each_event_comes_once_and_in_order(dies_at: list[int], quietly: bool) -> None:
    head, *parts = given(dies_at, quietly=quietly)
    assert head == HEAD
    rows = [json.loads(e.removeprefix(b"data: ")) for p in parts if p not in (ALIVE, DONE)
            for e in p.split(b"\n\n") if e]  # fmt: skip
    for index, wanted in ((0, "ABC"), (1, "XYZ")):
        own = [r["choices"][0] for r in rows if r["choices"][0]["index"] == index]
        assert "".join(c["text"] for c in own) == wanted
    assert len({(r["id"], r["created"]) for r in rows}) == 1
    assert parts[-1] == DONE


def test_a_whole_answer_comes_once() -> None:
    for dies_at in ([], [0], [1], [1, 0, 1]):
        assert given(dies_at, streamed=False) == [(200, {}, False), b"whole"]


def test_a_second_process_that_refuses_ends_the_stream() -> None:
    attempts = iter(range(2))

    async def ask() -> AsyncGenerator[Any, None]:
        if next(attempts):
            yield 429, {}, False
            yield b'{"error": {"message": "full"}}'
            return
        yield HEAD
        yield event(0, 0, "A")
        raise Died

    async def main() -> list[Any]:
        return [part async for part in again(ask, (Died,), lambda head: head[2])]

    assert asyncio.run(main())[1:] == [
        event(0, 0, "A"), b'data: {"error": {"message": "full"}}\n\n',
    ]  # fmt: skip


def test_too_many_die() -> None:
    with pytest.raises(V2Error, match="5 processes died") as e:
        given([1] * 5)
    assert e.value.status == 503


def test_a_request_gets_a_seed() -> None:
    drawn = json.loads(with_seed(b'{"prompt": "A"}'))
    assert drawn["prompt"] == "A"
    assert 0 <= drawn["seed"] < 1 << 63
    assert json.loads(with_seed(b'{"seed": 7}')) == {"seed": 7}
    for wrong in (b"{", b"[]", b""):
        assert with_seed(wrong) == wrong
