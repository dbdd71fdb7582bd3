"""The pool of workers: crashes, limits of time, lanes, requests that are joined."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

from mgx_mlir.integrations.serve.pool import Pool, PoolSize
from mgx_mlir.integrations.serve.shares import Shares
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.front import Policy
from mgx_mlir.runtime.workers import Workers


class Notes:
    """An observer that counts."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def run(self, model: str, rows: int) -> None:
        self.found[f"rows {rows}"] += 1

    def timeout(self, model: str) -> None:
        self.found["timeout"] += 1

    def replaced(self, why: str) -> None:
        self.found[f"ended: {why}"] += 1


def answers(
    bodies: list[bytes], policy: Policy, size: PoolSize, rows: int = 1
) -> tuple[list[tuple[int, bytes]], Counter[str], list[float]]:
    """Ask for all at once: status and body of each, what the pool noted, seconds of each."""
    notes = Notes()
    model: Any = SimpleNamespace(name="m", version="1", max_batch_size=rows)
    pool = Pool(lambda: Workers("tests.serving.crashing:prepare", {}), policy, size, notes)
    seconds = [0.0] * len(bodies)

    async def ask(i: int) -> tuple[int, bytes]:
        begin = time.monotonic()
        try:
            found = await pool.answer(model, {}, bodies[i])
            return found.status, bytes(found.body)
        except V2Error as e:
            return e.status, str(e).encode()
        finally:
            seconds[i] = time.monotonic() - begin

    async def main() -> list[tuple[int, bytes]]:
        await pool.open()
        try:
            return await asyncio.gather(*(ask(i) for i in range(len(bodies))))
        finally:
            await pool.close()

    return asyncio.run(main()), notes.found, seconds


def test_a_request_that_crashes_costs_the_others_nothing() -> None:
    bodies = [b"crash" if i == 3 else b"%d" % i for i in range(12)]
    for rows in (1, 4):  # alone, and joined
        found, notes, _ = answers(bodies, Policy(), PoolSize(), rows)
        for i, (status, body) in enumerate(found):
            if i == 3:
                assert status == 503
                assert b"by signal 6" in body
            else:
                assert (status, body) == (200, bodies[i])
        assert notes["ended: crash"] == 3 + (rows > 1)  # the joined run was one more


def test_requests_are_joined_up_to_the_limit() -> None:
    bodies = [b"%d" % i for i in range(9)]
    found, notes, _ = answers(bodies, Policy(), PoolSize(batch_wait=0.2), rows=4)
    assert found == [(200, b) for b in bodies]
    assert notes["rows 4"] == 2
    assert notes["rows 1"] == 1


def test_runs_end_at_the_limit_and_others_wait_for_none_of_them() -> None:
    bodies = [b"sleep60"] * 6 + [b"%d" % i for i in range(20)]
    policy = Policy(run_timeout=2.0, wait_timeout=5.0)
    found, notes, seconds = answers(bodies, policy, PoolSize(quantum=0.2))
    assert [status for status, _ in found[:6]] == [504] * 6
    assert found[6:] == [(200, b) for b in bodies[6:]]
    assert notes["timeout"] == 6
    assert max(seconds[6:]) < 12  # two rounds of five quanta are 2 s; the rest is a loaded machine


def test_a_run_that_takes_long_is_answered() -> None:
    """A long run goes on in the long lane, where there is room; two of them one after another."""
    bodies = [b"sleep1.5", b"sleep1.6", *(b"%d" % i for i in range(5))]
    found, notes, _ = answers(bodies, Policy(run_timeout=30.0), PoolSize(quantum=0.1))
    assert found == [(200, b) for b in bodies]
    assert notes["timeout"] == 0


def test_runs_whose_clients_leave_end() -> None:
    """In the short lane, in the long one, and among those that wait for it."""

    async def main() -> Counter[str]:
        notes = Notes()
        model: Any = SimpleNamespace(name="m", version="1", max_batch_size=1)
        size = PoolSize(quantum=0.2)
        pool = Pool(lambda: Workers("tests.serving.crashing:prepare", {}), Policy(), size, notes)
        await pool.open()
        tasks = [asyncio.ensure_future(pool.answer(model, {}, b"sleep60")) for _ in range(4)]
        while pool.counts()["waiting"] < 3 or not pool.counts()["long"]:
            await asyncio.sleep(0.05)
        begin = time.monotonic()
        for t in tasks:
            t.cancel()
        while any(pool.counts()[k] for k in ("waiting", "long", "busy", "starting")):
            assert time.monotonic() - begin < 30, pool.counts()
            await asyncio.sleep(0.05)
        found = await pool.answer(model, {}, b"1")
        assert bytes(found.body) == b"1"
        await pool.close()
        return notes.found

    found = asyncio.run(main())
    assert found["ended: left"] == 1
    assert found["timeout"] == 0


def test_models_share_the_workers() -> None:
    """A model whose runs took long comes behind others, which saved up nothing meanwhile."""
    shares = Shares()
    slow, quick, new = ("slow", "1"), ("quick", "1"), ("new", "1")

    def order() -> list[tuple[str, str]]:
        return shares.ordered([slow, quick, new], lambda key: key)

    assert order() == [slow, quick, new]
    for _ in range(3):
        shares.begin(slow)
        shares.end(slow, 5.0)
    assert order() == [quick, new, slow]
    for _ in range(5):  # at the last begin of `slow` all were equal: it owes 5 s
        shares.begin(quick)
        shares.end(quick, 1.0)
    assert order() == [new, slow, quick]


def test_requests_that_find_no_worker_are_told() -> None:
    policy = Policy(run_timeout=3.0, wait_timeout=0.5)
    found, _, _ = answers([b"sleep2", b"a"], policy, PoolSize(spare=0, quantum=5.0))
    assert found[0] == (200, b"sleep2")
    assert found[1][0] == 503
    assert b"no worker was free within 0.5 s" in found[1][1]
