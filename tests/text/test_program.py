"""Steps of a decoder whose caches are in a GPU's memory: which sequences a call has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mgx_mlir.text import program as module
from mgx_mlir.text.program import CacheShape, ProgramDecoder, batch_sizes

ROWS = 16


class Caches:
    """Rows of 8 slots, each the token that was written there; a result is the rows of each."""

    slots, rows, chunk, padding = 8, ROWS, 512, 64

    def __init__(self) -> None:
        self.held = np.full((self.slots, ROWS), -1)
        self.counts: list[int] = []

    def run(self, values: Any, slot: int, count: int, result: str) -> np.ndarray:
        ids, places = values["ids"], values["positions"]
        assert len(ids) == count
        np.testing.assert_array_equal(values["last"], places[:, -1])
        assert values["total"] == places.max() + 1
        np.put_along_axis(self.held[slot : slot + count], places, ids, axis=1)
        self.counts.append(count)
        return np.stack([self.held[slot : slot + count]] * ids.shape[1], axis=1)[:, values["keep"]]

    def swap(self, a: int, b: int, rows: int) -> None:
        self.held[[a, b], :rows] = self.held[[b, a], :rows]

    def copy(self, source: int, target: int, rows: int) -> None:
        self.held[target, :rows] = self.held[source, :rows]


@pytest.fixture
def decoder(monkeypatch: pytest.MonkeyPatch) -> ProgramDecoder:
    caches = Caches()
    monkeypatch.setattr(module, "slots_of", lambda *_: caches)
    names = ["ids", "positions", "last", "total", "keep", "key", "value"]
    program: Any = SimpleNamespace(
        input_names=names, output_names=["logits", "new_key", "new_value"], target="gpu",
        signature=SimpleNamespace(inputs=[SimpleNamespace(name=n, dtype="f16") for n in names]),
    )  # fmt: skip
    return ProgramDecoder(program, CacheShape(1, 1, 1), Caches.slots, ROWS)


def held(decoder: ProgramDecoder) -> Any:
    return decoder.held


def test_a_step_has_a_known_number_of_sequences(decoder: ProgramDecoder) -> None:
    """Three answers are computed as eight, and the rows of other slots stay."""
    for slot in range(5):
        decoder.prefill(slot, [10 * slot + i for i in range(slot + 1)], 0)
    before = held(decoder).held.copy()
    found = decoder.decode([[91], [92], [93]], [1, 2, 3])
    assert found.shape == (3, 1, ROWS)
    assert held(decoder).counts[-1] == 8
    for slot in range(3):
        assert held(decoder).held[slot, slot + 1] == 91 + slot
        np.testing.assert_array_equal(
            held(decoder).held[slot, : slot + 1], before[slot, : slot + 1]
        )
    for slot, rows in ((3, 4), (4, 5)):
        np.testing.assert_array_equal(held(decoder).held[slot, :rows], before[slot, :rows])


def test_prompts_together(decoder: ProgramDecoder) -> None:
    """Logits are computed at the ends alone, and a step does not take padding for rows."""
    found = decoder.prefill_together(2, [[1, 2, 3], [4], [5, 6, 7]], [0, 5, 9])
    assert held(decoder).counts == [3]
    assert found.shape == (3, ROWS)
    assert held(decoder).held[2, :3].tolist() == [1, 2, 3]
    assert held(decoder).held[3, 5] == 4
    assert held(decoder).held[4, 9:12].tolist() == [5, 6, 7]
    decoder.decode([[8], [9]], [0, 0])
    assert held(decoder).counts[-1] == 8
    assert held(decoder).held[3, 6] == 0  # a step writes behind the one row
    assert held(decoder).held[2, :4].tolist() == [1, 2, 3, 0]


def test_one_sequence_is_alone(decoder: ProgramDecoder) -> None:
    decoder.prefill(0, [1, 2], 0)
    decoder.decode([[3]], [2])
    assert held(decoder).counts[-1] == 1


def test_guesses_are_not_filled_up(decoder: ProgramDecoder) -> None:
    """Steps of several tokens have no function of known sizes."""
    decoder.decode([[1, 2], [3, 4]], [0, 0])
    assert held(decoder).counts[-1] == 2


def test_a_full_slot_keeps_its_last_row(decoder: ProgramDecoder) -> None:
    decoder.prefill(5, list(range(ROWS)), 0)
    decoder.decode([[1], [2]], [0, 0])
    assert held(decoder).counts[-1] == 2
    np.testing.assert_array_equal(held(decoder).held[5], range(ROWS))


def test_rows_move_with_their_slot(decoder: ProgramDecoder) -> None:
    """A slot's number of rows goes with it, or a step would write over them."""
    decoder.prefill(6, [1, 2, 3, 4], 0)
    decoder.swap(6, 4, 4)
    decoder.copy(4, 7, 3)
    decoder.decode([[8], [9]], [0, 0])
    assert held(decoder).counts[-1] == 8
    assert held(decoder).held[4, :4].tolist() == [1, 2, 3, 4]
    assert held(decoder).held[7, :3].tolist() == [1, 2, 3]


def test_numbers_of_sequences() -> None:
    assert batch_sizes(1) == (1,)
    assert batch_sizes(4) == (1, 4)
    assert batch_sizes(8) == (1, 8)
    assert batch_sizes(32) == (1, 8, 32)
