"""Continuous batching: requests join and leave between steps of one batch.

Sequences have slots of one cache. Slots 0 to n - 1 decode together. A slot keeps its rows after an
answer ends, so that a chat's next message computes only new tokens.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.core.errors import UsageError
from mgx_mlir.text.beams import BeamSearch, moves
from mgx_mlir.text.drafts import Drafter
from mgx_mlir.text.requests import Handle, Piece, Request, Top
from mgx_mlir.text.running import Group, Running, Slot, Text, joined
from mgx_mlir.text.sampling import choose, scored

# tokens of a step with guesses, over all answers; one pass over quantised weights serves this many
_ROWS = 8


class Decoder(Protocol):
    """A model with a cache of `slots` sequences, `rows` tokens each."""

    slots: int
    rows: int
    chunk: int  # tokens of prompts that are computed at once
    # padding that takes as long as a call of its own, in tokens; 0: prompts are computed one by one
    padding: int

    def write(self, slot: int, tokens: Sequence[int], start: int) -> None:
        """Write tokens at rows from `start` on."""
        ...

    def prefill(self, slot: int, tokens: Sequence[int], start: int) -> NDArray[Any]:
        """Write tokens at rows from `start` on; return the logits {vocabulary} after the last."""
        ...

    def prefill_together(
        self, slot: int, prompts: Sequence[Sequence[int]], starts: Sequence[int]
    ) -> NDArray[Any]:
        """Write tokens of slots from `slot` on; return the logits {slots, vocabulary} after the
        last of each. Rows behind a shorter prompt are overwritten, up to the longest one's count.
        """
        ...

    def scores(self, slot: int, tokens: Sequence[int], start: int) -> NDArray[Any]:
        """Write tokens as `prefill` does; return the logits {tokens, vocabulary} after each."""
        ...

    def decode(self, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> NDArray[Any]:
        """Write tokens, equally many for each of the first slots; return the logits {sequences,
        tokens, vocabulary} after each.
        """
        ...

    def swap(self, a: int, b: int, rows: int) -> None:
        """Exchange the first rows of two slots."""
        ...

    def copy(self, source: int, target: int, rows: int) -> None:
        """Copy the first rows of a slot to another."""
        ...


class Engine:
    """Answer requests in one batch. Any thread may call any method.

    `stop_tokens` end an answer and are not shown; `text` gives a fresh Text for each answer.
    After `start` a thread runs the steps; else iterating a handle, or `step`, does. Each step
    computes one chunk of `chunk` tokens of a prompt at most (by default the decoder's), so that a
    long prompt does not hold up answers.
    """

    def __init__(
        self,
        decoder: Decoder,
        text: Callable[[], Text],
        *,
        stop_tokens: frozenset[int] = frozenset(),
        chunk: int | None = None,
        max_waiting: int | None = None,
        drafter: Drafter | None = None,
        draft_tokens: int = 4,
    ) -> None:
        self.drafter, self.draft_tokens = drafter, draft_tokens
        self.decoder, self.stop_tokens = decoder, stop_tokens
        self.chunk = decoder.chunk if chunk is None else chunk
        self.max_waiting = max_waiting
        self._text = text
        self._slots = [Slot() for _ in range(decoder.slots)]
        self._decoding = 0  # number of slots, from the first on, that decode together
        # prompts still being computed, in the slots after those, oldest first
        self._filling: deque[Running] = deque()
        self._waiting: deque[Handle] = deque()
        self._reserved = 0  # free slots that beams of prompts being computed will take
        self._clock = 0
        self._working = threading.RLock()  # held through a step
        # held briefly, so that submit and cancel do not wait for a step
        self._changed = threading.Condition()
        self._news = 0  # counts calls that may have added work
        self.listeners: list[Callable[[], None]] = []  # called after each step, on its thread
        self._thread: threading.Thread | None = None
        self._closed = False
        self.steps = 0  # decode steps
        self.decoded_tokens = 0
        self.drafted_tokens = self.accepted_tokens = 0  # guessed tokens, and correct guesses
        self.prompt_tokens = 0  # computed prompt tokens
        self.cached_tokens = 0  # prompt tokens found in the cache

    # ---- called by other threads -------------------------------------------------------------

    def submit(self, request: Request) -> Handle:
        """Queue a request. Raises UsageError if the prompt is too long, or too many requests
        wait.
        """
        if len(request.tokens) >= self.decoder.rows:
            raise UsageError(
                f"the prompt has {len(request.tokens)} tokens, and the model is loaded for "
                f"{self.decoder.rows} with the answer",
                notes=["load it with a larger max_length"],
            )
        if request.beams is not None and request.beams.count > self.decoder.slots:
            raise UsageError(
                f"{request.beams.count} beams need a slot each, and the model is loaded with "
                f"{self.decoder.slots}", notes=["load it with more slots"],
            )  # fmt: skip
        handle = Handle(self, request)
        with self._changed:
            if self._closed:
                raise UsageError("the engine is closed")
            if self.max_waiting is not None and len(self._waiting) >= self.max_waiting:
                raise UsageError(f"{len(self._waiting)} requests are waiting already")
            self._waiting.append(handle)
        self.wake()
        return handle

    @property
    def active(self) -> int:
        """Return the slots in use, and those set aside: one for a request, or for each beam."""
        return self._decoding + len(self._filling) + self._reserved

    @property
    def waiting(self) -> int:
        """Return the requests that wait for a slot."""
        return len(self._waiting)

    @property
    def driven(self) -> bool:
        """Return whether a thread runs the steps."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> Engine:
        """Start a thread that runs the steps until `close`."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._drive, name="text", daemon=True)
                self._thread.start()
        return self

    def close(self) -> None:
        """End all answers as cancelled, and the thread."""
        with self._changed:
            self._closed = True
            thread, self._thread = self._thread, None
        self.wake()
        if thread is not None:
            thread.join()
        with self._working:
            for handle in self._waiting:
                handle.cancelled = True
            for slot in self._slots:
                if slot.running is not None:
                    slot.running.handle.cancelled = True
            self._leave_cancelled()
        self._tell()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wake(self) -> None:
        """Wake the thread to check for work."""
        with self._changed:
            self._news += 1
            self._changed.notify_all()

    def advance(self, handle: Handle) -> None:
        """Wait for a piece of an answer; run a step if no thread does."""
        with self._changed:
            driven = self._thread is not None
            while driven and not (handle.pieces or handle.done):
                self._changed.wait()
                driven = self._thread is not None
        if not driven:
            with self._working:
                if not (handle.pieces or handle.done):
                    self.step()

    def _drive(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                news = self._news
            if not self.step():
                with self._changed:
                    while news == self._news:
                        self._changed.wait()

    def _tell(self) -> None:
        """Notify the threads that wait for pieces."""
        with self._changed:
            self._changed.notify_all()
        for listener in self.listeners:
            listener()

    # ---- a step ----------------------------------------------------------------------------

    def step(self) -> bool:
        """Do one piece of work; return whether there was any."""
        with self._working:
            self._clock += 1
            left = self._leave_cancelled()
            self._admit()
            worked = False
            if self._filling:
                prompts = self._next_prompts()
                self._guarded(lambda: self._fill(prompts), prompts)
                worked = True
            if self._decoding:
                running = [r for s in self._slots[: self._decoding] if (r := s.running) is not None]
                self._guarded(lambda: self._decode(running), running)
                worked = True
        self._tell()
        return worked or left

    def _guarded(self, work: Callable[[], None], concerned: list[Running]) -> None:
        """Run work; its failure ends only the affected answers."""
        try:
            work()
        except Exception as e:
            for running in concerned:
                self._fail(running, e)

    def _fail(self, running: Running, error: Exception) -> None:
        if not running.handle.done:
            running.handle.error = error
            self._leave(running, "error")

    def _leave_cancelled(self) -> bool:
        with self._changed:
            gone = [h for h in self._waiting if h.cancelled]
            for handle in gone:
                self._waiting.remove(handle)
                handle.finish_reason = "cancelled"
        running = [s.running for s in self._slots if s.running is not None]
        over = [r for r in running if r.handle.cancelled]
        for r in over:
            if not r.handle.done:  # another sequence of its beam search may be done
                self._leave(r, "cancelled")
        return bool(gone or over)

    def _admit(self) -> None:
        while self.active < len(self._slots):
            with self._changed:
                if not self._waiting:
                    return
                request = self._waiting[0].request
                beams = 1 if request.beams is None else request.beams.count
                if self.active + beams > len(self._slots):
                    return
                handle = self._waiting.popleft()
            running = self._begun(handle)
            try:
                handle.cached_tokens = self._place(running)
            except Exception as e:  # only the one answer ends
                handle.error, handle.finish_reason = e, "error"
                continue
            if request.beams is not None:
                most = min(request.max_new_tokens, self.decoder.rows - len(request.tokens))
                search = BeamSearch(request.beams, self._ends(request), most)
                running.group = Group(search, running)
                self._reserved += running.group.reserved
            self.cached_tokens += handle.cached_tokens
            self._filling.append(running)

    def _begun(self, handle: Handle) -> Running:
        text = self._text()
        return Running(handle, text.add, text.rest)

    def _ends(self, request: Request) -> frozenset[int]:
        return self.stop_tokens if request.stop_tokens is None else request.stop_tokens

    def _place(self, running: Running) -> int:
        """Assign a free slot to a request; return how many rows of its prompt are cached there."""
        # the last token is always computed, because its logits are needed; for scores all are
        prompt = [] if running.request.score_prompt else running.tokens[:-1]
        common = [_common(slot.tokens, prompt) for slot in self._slots]
        free = [i for i, slot in enumerate(self._slots) if slot.running is None]
        best = max(range(len(common)), key=common.__getitem__)
        own = max(free, key=lambda i: (common[i], -self._slots[i].used))
        slot = source = self._slots[own]
        if common[own] < common[best] or len(slot.tokens) > 2 * common[own]:
            # rows of an active answer, or of a chat that may continue, are copied
            own = self._free()
            slot, source = self._slots[own], self._slots[best]
            if slot is not source:
                slot.tokens = []  # until all rows are copied
        # the slot where it will decode: later, rows of a whole prompt would be moved
        place = self._decoding + len(self._filling)
        self._swap(own, place)
        if slot is not source:
            held = next(i for i, other in enumerate(self._slots) if other is source)
            self.decoder.copy(held, place, common[best])
        slot.tokens, slot.running, slot.used = prompt[: common[best]], running, self._clock
        return common[best]

    def _slot_of(self, running: Running) -> int:
        return next(i for i, slot in enumerate(self._slots) if slot.running is running)

    def _swap(self, a: int, b: int) -> None:
        if a != b:
            rows = max(len(self._slots[a].tokens), len(self._slots[b].tokens))
            self.decoder.swap(a, b, rows)
            self._slots[a], self._slots[b] = self._slots[b], self._slots[a]

    def _next_prompts(self) -> list[Running]:
        """Return the oldest prompt, and others whose ends are computed with its end."""
        prompts = list(self._filling)
        if prompts[0].request.score_prompt:
            return prompts[:1]
        ready = [r for r in prompts if not r.request.score_prompt]
        done = [len(self._slots[self._slot_of(r)].tokens) for r in ready]
        sizes = [(n, len(r.tokens) - n) for r, n in zip(ready, done, strict=True)]
        chosen = joined(sizes, self.chunk, self.decoder.padding, self.decoder.rows)
        return [ready[i] for i in chosen]

    def _fill(self, prompts: Sequence[Running]) -> None:
        """Compute a chunk of a prompt, or the ends of several in slots that follow each other."""
        first, at = prompts[0], self._slot_of(prompts[0])
        if len(prompts) > 1:
            at = self._decoding
            for i, running in enumerate(prompts, at):
                self._swap(self._slot_of(running), i)
        slots = self._slots[at : at + len(prompts)]
        starts = [len(slot.tokens) for slot in slots]
        chunks = [r.tokens[n : n + self.chunk] for r, n in zip(prompts, starts, strict=True)]
        ends, logits = starts[0] + len(chunks[0]) == len(first.tokens), None
        if len(prompts) > 1:
            logits = self.decoder.prefill_together(at, chunks, starts)
        elif first.request.score_prompt:
            rows = self.decoder.scores(at, chunks[0], starts[0])
            for token, row in zip(first.tokens[starts[0] + 1 :], rows, strict=False):
                first.handle.prompt_scores.append(scored(row, token, first.request.logprobs or 0))
            logits = rows[-1:]
        elif ends:
            logits = self.decoder.prefill(at, chunks[0], starts[0])[None]
        else:
            self.decoder.write(at, chunks[0], starts[0])
        for slot, chunk in zip(slots, chunks, strict=True):
            slot.tokens += chunk
            self.prompt_tokens += len(chunk)
        if not ends or logits is None:
            return
        for running in prompts:
            self._filling.remove(running)
            self._join(running)
        for running, row in zip(prompts, logits, strict=True):
            self._guarded(lambda r=running, row=row: self._begin(r, row), [running])

    def _begin(self, running: Running, logits: NDArray[Any]) -> None:
        """Choose the first token of an answer, or of a beam search's sequences."""
        if running.group is None:
            self._take(running, logits, None)
        else:
            self._search(running.group, logits[None])

    def _join(self, running: Running) -> None:
        """Move a slot to the decode batch."""
        self._swap(self._slot_of(running), self._decoding)
        self._decoding += 1

    def _decode(self, running: Sequence[Running]) -> None:
        """Compute a token for each running answer, and more tokens after guesses."""
        slots = self._slots[: len(running)]
        drafts = self._drafts(running)
        length = 1 + max(map(len, drafts))
        tokens = [[r.tokens[-1], *draft] for r, draft in zip(running, drafts, strict=True)]
        padded = [row + [row[-1]] * (length - len(row)) for row in tokens]
        logits = self.decoder.decode(padded, [len(slot.tokens) for slot in slots])
        self.steps += 1
        for slot, row in zip(slots, tokens, strict=True):
            slot.tokens += row
            slot.used = self._clock
        best: list[Any] = [None] * len(running)
        if any(r.likeliest for r in running):
            best = logits.argmax(-1).tolist()
        groups: dict[Group, dict[Running, NDArray[Any]]] = {}
        # the last slot first: when it leaves, no rows move
        for i in reversed(range(len(running))):
            slot, r, draft, rows = slots[i], running[i], drafts[i], logits[i]
            if r.group is not None:
                groups.setdefault(r.group, {})[r] = rows[0]
                continue
            try:
                self._follow(r, draft, rows, best[i])
            except Exception as e:  # ends the one answer
                self._fail(r, e)
            if not r.handle.done:
                del slot.tokens[len(r.tokens) - 1 :]  # rows of wrong guesses are overwritten
        for group, found in groups.items():
            members = np.stack([found[r] for r in group.members])
            self._guarded(lambda g=group, m=members: self._search(g, m), [group.first])
            self.decoded_tokens += len(members)

    def _drafts(self, running: Sequence[Running]) -> list[list[int]]:
        """Return the guessed tokens for each answer."""
        room = min([self.draft_tokens, _ROWS // len(running) - 1,
                    *(self.decoder.rows - len(r.tokens) for r in running)])  # fmt: skip
        if self.drafter is None or room < 1 or any(r.group is not None for r in running):
            return [[] for _ in running]
        found = []
        for i, r in enumerate(running):
            left = r.request.max_new_tokens - len(r.handle.tokens) - 1
            found.append(self.drafter.draft(i, r.tokens, min(room, left)) if left > 0 else [])
        return found

    def _follow(
        self, running: Running, draft: Sequence[int], logits: NDArray[Any], best: list[int] | None
    ) -> None:
        """Choose tokens as long as they equal the guesses. best: likeliest tokens by index."""
        self.drafted_tokens += len(draft)
        for i, row in enumerate(logits):
            self._take(running, row, None if best is None else best[i])
            self.decoded_tokens += 1
            if running.handle.done or i == len(draft) or running.tokens[-1] != draft[i]:
                return
            self.accepted_tokens += 1

    def _take(self, running: Running, logits: NDArray[Any], best: int | None) -> None:
        """Choose a token from logits, and append it to the answer. best: the likeliest, if it is
        known.
        """
        request, grammar = running.request, running.following
        if running.likeliest and best is not None:
            token = best
        else:
            allowed = running.allowed(self._ends(request), len(logits))
            place = len(running.handle.tokens)
            token = choose(logits, request.sampling, place, running.tokens, allowed)
            if grammar is not None:
                grammar.accept(token)
        if request.logprobs is None:
            self._append(running, token)
        else:
            self._append(running, token, *scored(logits, token, request.logprobs))

    def _append(
        self,
        running: Running,
        token: int,
        logprob: float | None = None,
        top: Top = (),
    ) -> None:
        """Append a token to the answer, with its text; end the answer where it ends."""
        request, handle, grammar = running.request, running.handle, running.following
        handle.tokens.append(token)
        reason = None
        if token in self._ends(request):
            text, reason = running.stops.add(running.rest())[0], "stop"
        else:
            text, stopped = running.stops.add(running.stream(token))
            full = len(running.tokens) + 1 >= self.decoder.rows
            if stopped or (grammar is not None and grammar.complete):
                reason = "stop"
            elif len(handle.tokens) >= request.max_new_tokens or full:
                reason = "length"
                more, stopped = running.stops.add(running.rest())
                text += more
        if reason is not None:
            text += running.stops.rest()
        running.tokens.append(token)
        handle.pieces.append(Piece(token, text, logprob, top, reason))
        if reason is not None:
            self._leave(running, reason)

    # ---- beams -----------------------------------------------------------------------------

    def _search(self, group: Group, logits: NDArray[Any]) -> None:
        """Choose the sequences that a beam search follows now, from the logits after each."""
        first, search, old = group.first, group.search, group.members
        request = first.request
        penalty = request.sampling.repetition_penalty
        chosen = search.step(logits, request.tokens, penalty)
        if search.done:
            first.tokens = list(request.tokens)
            for token in search.best.tokens:
                self._append(first, token)
            return
        # one sequence becomes several only behind the prompt, after that there are equally many
        new = [self._begun(first.handle) for _ in range(len(chosen) - len(old))]
        before, members = [list(r.tokens) for r in old], [*old, *new]
        places = moves([source for source, _ in chosen], len(members))
        for (source, token), place in zip(chosen, places, strict=True):
            running = members[place]
            running.group = group
            if place != source:
                self._fork(old[source], running)
            running.tokens = [*before[source], token]
        group.members = [members[place] for place in places]

    def _fork(self, source: Running, target: Running) -> None:
        """Copy the rows of a sequence to another's slot, or to one that was set aside."""
        at = next((i for i, slot in enumerate(self._slots) if slot.running is target), None)
        own = self._free() if at is None else at
        slot, origin = self._slots[own], self._slot_of(source)
        slot.tokens = []  # until all rows are copied
        self.decoder.copy(origin, own, len(self._slots[origin].tokens))
        slot.tokens, slot.used = list(self._slots[origin].tokens), self._clock
        if at is None and target.group is not None:
            slot.running = target
            self._join(target)
            target.group.reserved -= 1
            self._reserved -= 1

    def _free(self) -> int:
        """Return a slot without a request: an unused one, else the one used longest ago."""
        free = [i for i, slot in enumerate(self._slots) if slot.running is None]
        return min(free, key=lambda i: (bool(self._slots[i].tokens), self._slots[i].used))

    # ---- the end of an answer --------------------------------------------------------------

    def _leave(self, running: Running, reason: str) -> None:
        """End an answer; its rows stay in the cache."""
        group = running.group
        if group is None:
            self._vacate(running, reason)
        else:
            for each in [s.running for s in self._slots]:
                if each is not None and each.group is group:
                    self._vacate(each, reason)
            self._reserved -= group.reserved
            group.reserved = 0
        running.handle.finish_reason = reason

    def _vacate(self, running: Running, reason: str) -> None:
        at = self._slot_of(running)
        if at < self._decoding:
            self._swap(at, self._decoding - 1)
            at = self._decoding - 1
            self._decoding -= 1
        else:
            self._filling.remove(running)
        slot = self._slots[at]
        slot.running, slot.used = None, self._clock
        if reason == "error":
            slot.tokens = []  # a failed run may have written any row


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the length of the common prefix of two lists of tokens."""
    if not a or not b or a[0] != b[0]:
        return 0
    size = min(len(a), len(b))
    different = np.flatnonzero(np.asarray(a[:size]) != np.asarray(b[:size]))
    return int(different[0]) if len(different) else size
