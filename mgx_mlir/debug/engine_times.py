"""Times of several engines in one process, each in separate blocks, and their ratio.

Interleaved calls of two engines disturb each other. Pool threads of one spin for milliseconds after
its call, and take a core from the next one (findings/onnxruntime-threads-spin.sh). So each engine
is called in blocks, and the process sleeps between blocks until its threads are asleep. Inside its
block an engine runs as it does alone, with its spinning threads, which is what its users see.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Clock = Literal["wall", "cpu"]
Call = Callable[[], object]

# seconds of a batch of short calls: a thousand times the cost of reading the clock
BATCH = 5e-4
# calls that choose the number of a batch, where one is below these seconds: a slice of Linux
_TRIES, _HELD_UP = 4, 0.02
# a thread is asleep if it uses less than this share of a core over a slice in seconds;
# onnxruntime's threads spin for 10 to 50 ms
AWAKE, SLICE, LONGEST_REST = 0.05, 0.01, 2.0
# share of a block that a thread may wait for a core that another process uses. If one of two
# threads waits that long, a call ends later by as much; the aim is a tenth of the ratio.
WAITED = 0.04
WAKING = 5e-5  # seconds that a thread may take to wake up on an idle core
VAGUE = 0.1  # half-width of a ratio's interval, as a share of the ratio, up to which it is printed
LEAST = 6  # fewest rounds whose extremes enclose the median with 95 % probability
HOPELESS = 12  # disturbed rounds without a quiet one, after which the measurement stops
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Block:
    """Consecutive calls of one engine: median seconds of a call, and the disturbance."""

    seconds: float
    calls: tuple[float, ...]
    """Seconds of each call; short calls are timed in batches, and have the batch's mean."""
    waited: float
    """Seconds that threads of this process were ready and had no core, per second of the block."""

    @property
    def quiet(self) -> bool:
        """True if other processes left the block its cores."""
        return self.waited <= WAITED


@dataclass(frozen=True)
class Ratio:
    """Median ratio of two engines' blocks, and the interval around it.

    `low` to `high` enclose the median with a probability of 95 %. With fewer than six rounds they
    are the least and the largest ratio.
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, ratios: Iterable[float]) -> Ratio:
        """Summarise the ratios of rounds; NaN where there are none."""
        found = sorted(ratios)
        if not found:
            return cls(math.nan, math.nan, math.nan)
        left_out = _outside(len(found))
        return cls(statistics.median(found), found[left_out], found[-1 - left_out])

    @property
    def spread(self) -> float:
        """Width of the interval, as a share of the ratio."""
        return (self.high - self.low) / self.value if self.value else math.inf

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def _outside(count: int) -> int:
    """Return how many sorted values an interval around the median leaves out on either side.

    Without k on either side it misses the median with probability 2 * P(Binomial(n, 1/2) <= k).
    """
    left_out, missed = 0, 2 / 2**count
    while missed + 2 * math.comb(count, left_out + 1) / 2**count <= 1 - CONFIDENCE:
        left_out += 1
        missed += 2 * math.comb(count, left_out) / 2**count
    return left_out


@dataclass
class EngineTimes:
    """Blocks of each engine by name, one in each round."""

    clock: Clock
    blocks: dict[str, list[Block]] = field(default_factory=dict[str, list[Block]])

    @property
    def rounds(self) -> list[int]:
        """Rounds that count: all for the CPU clock, else only rounds of quiet blocks."""
        count = min((len(b) for b in self.blocks.values()), default=0)
        rounds = range(count)
        if self.clock == "cpu":  # CPU time stands still while a thread waits
            return list(rounds)
        return [n for n in rounds if all(b[n].quiet for b in self.blocks.values())]

    @property
    def too_busy(self) -> bool:
        """True if too few rounds were quiet: the times include waits for other programs."""
        return len(self.rounds) < max(min(LEAST, self.all_rounds), 1)

    @property
    def all_rounds(self) -> int:
        """Number of rounds, including disturbed ones."""
        return min((len(b) for b in self.blocks.values()), default=0)

    @property
    def waited(self) -> float:
        """Median share of a block that threads waited for a core."""
        found = [b.waited for blocks in self.blocks.values() for b in blocks]
        return statistics.median(found) if found else 0.0

    def seconds(self, name: str) -> float:
        """Return the median seconds of a call over the rounds that count; over all if none does."""
        rounds = self.rounds or range(self.all_rounds)
        return statistics.median(self.blocks[name][n].seconds for n in rounds)

    def calls(self, name: str) -> list[float]:
        """Return the seconds of each call of the rounds that count; of all rounds if none does."""
        rounds = self.rounds or range(self.all_rounds)
        return [s for n in rounds for s in self.blocks[name][n].calls]

    def ratio(self, name: str, other: str) -> Ratio:
        """Return the ratio of two engines' times by round: blocks of a round see the same machine
        load.
        """
        pairs = ((self.blocks[name][n], self.blocks[other][n]) for n in self.rounds)
        return Ratio.of(a.seconds / b.seconds for a, b in pairs if b.seconds)

    def problem(self, name: str, other: str) -> str | None:
        """Return why the ratio of two engines is not meaningful; None if it is."""
        if self.too_busy:
            return (
                f"other programs use the cores: threads waited {self.waited:.2g} s a second for "
                f"one, and {len(self.rounds)} of {self.all_rounds} blocks were quiet"
            )
        ratio = self.ratio(name, other)
        if max(ratio.high - ratio.value, ratio.value - ratio.low) > VAGUE * ratio.value:
            return f"it varies from {ratio.low:.2f} to {ratio.high:.2f} between blocks"
        return None


def time_engines(
    engines: Mapping[str, Call],
    *,
    clock: Clock = "wall",
    block: float = 0.25,
    rounds: int | None = None,
    spread: float = 0.05,
    limit: float = 20.0,
) -> EngineTimes:
    """Time calls of engines: a block of each in every round, in alternating order.

    `clock`: "wall" for wall time, "cpu" for the CPU time of this process. CPU time is fair if every
    engine has one thread, and other processes hardly change it. `block`: seconds of a block.
    `rounds`: number of rounds. None: at least 6 quiet rounds, until the interval of every ratio to
    the first engine is narrower than `spread` of it. It ends early after `limit` seconds, or if the
    first 12 rounds are all disturbed.
    """
    found = EngineTimes(clock, {name: [] for name in engines})
    order = list(engines)
    batches = {name: _batch(call) for name, call in engines.items()}
    start = time.perf_counter()
    while not _enough(found, order, rounds, spread, limit, time.perf_counter() - start):
        for name in order if found.all_rounds % 2 == 0 else reversed(order):
            rest()
            found.blocks[name].append(_timed(engines[name], clock, block, batches[name]))
    return found


def _enough(
    found: EngineTimes,
    order: list[str],
    rounds: int | None,
    spread: float,
    limit: float,
    taken: float,
) -> bool:
    if rounds is not None:
        return found.all_rounds >= rounds
    if found.all_rounds == 0:
        return False
    if taken >= limit or (not found.rounds and found.all_rounds >= HOPELESS):
        return True
    if len(found.rounds) < LEAST:
        return False
    return all(found.ratio(name, order[0]).spread <= spread for name in order[1:])


def rest() -> None:
    """Sleep until the threads of this process sleep too, for two seconds at most."""
    end = time.perf_counter() + LONGEST_REST
    while time.perf_counter() < end:
        start, used = time.perf_counter(), time.process_time()
        time.sleep(SLICE)
        share = (time.process_time() - used) / (time.perf_counter() - start)
        # a spinning thread without a core uses no CPU time either
        if share <= AWAKE and not _running():
            return


def _running() -> bool:
    """Return whether another thread of this process is running or ready (Linux; else False)."""
    own = threading.get_native_id()
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/self/task/{thread}/stat").read_text()
                if int(thread) != own and text.rpartition(")")[2].split()[0] == "R":
                    return True
    return False


def _batch(call: Call) -> int:
    """Warm an engine up; return the number of its calls to time as one batch."""
    call()
    start = before = time.perf_counter()
    # the first calls meet cold caches, and other processes take the core for milliseconds
    shortest, count = math.inf, 0
    while before - start < BATCH or (count < _TRIES and shortest < _HELD_UP):
        call()
        now = time.perf_counter()
        shortest, before, count = min(shortest, now - before), now, count + 1
    return max(1, int(BATCH / max(shortest, 1e-7)))


def _timed(call: Call, clock: Clock, seconds: float, batch: int) -> Block:
    """Run a block: a tenth of it to wake threads and fill caches, then the timed calls."""
    read = time.process_time if clock == "cpu" else time.perf_counter
    end = time.perf_counter() + seconds / 10
    call()
    while time.perf_counter() < end:
        call()
    calls: list[float] = []
    start, waits = time.perf_counter(), _waits()
    while not calls or time.perf_counter() - start < seconds:
        before = read()
        for _ in range(batch):
            call()
        calls.append((read() - before) / batch)
    elapsed = time.perf_counter() - start
    waited = _seconds_waited(waits, _waits()) / elapsed
    return Block(statistics.median(calls), tuple(calls), waited)


Waits = Mapping[str, tuple[int, int]]  # nanoseconds and count of waits for a core, by thread


def _seconds_waited(before: Waits, after: Waits) -> float:
    """Return the seconds that threads were ready to run and had no core.

    A thread that wakes on an idle core waits for `WAKING`, which is not counted.
    """
    total = 0.0
    for thread, (waited, times) in after.items():
        old_waited, old_times = before.get(thread, (0, 0))
        total += max((waited - old_waited) / 1e9 - (times - old_times) * WAKING, 0.0)
    return total


def _waits() -> Waits:
    """Read the waits of this process's threads from their `schedstat` (Linux).

    Without that file the result is empty, and only the spread of the rounds shows a busy machine.
    """
    found: dict[str, tuple[int, int]] = {}
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError, ValueError):
                text = Path(f"/proc/self/task/{thread}/schedstat").read_text()
                _, waited, times = map(int, text.split())
                found[thread] = waited, times
    return found
