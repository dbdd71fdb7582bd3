"""Text generation on emulated AMD GPUs: the tokens of the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir import text
from mgx_mlir.runtime.graphs import GraphModule
from mgx_mlir.text import Engine, Request, Sampling
from mgx_mlir.text.onnx_folder import OnnxFolder
from mgx_mlir.text.program import ProgramDecoder
from mgx_mlir.text.slots import DeviceSlots
from tests.text.fake import Letters
from tests.text.test_onnx_folder import ROWS, STAYS, reference, write

pytestmark = pytest.mark.emulator
ARCHS = ["gfx942", "gfx1201"]


@pytest.mark.parametrize("arch", ARCHS)
def test_an_onnx_decoder(tmp_path: Path, arch: str, library: Path) -> None:
    """Chunks of prompts, and steps of one and two answers, by one program."""
    write(tmp_path, STAYS)
    folder = OnnxFolder(tmp_path)
    program = mgx_mlir.compile(str(folder.file), "gpu", arch=arch, emulate=True)
    decoder = folder.decoder(program, 2, ROWS)
    with Engine(decoder, Letters, chunk=4) as engine:
        made = [Request([2], 6), Request(list(range(3, 9)), 6, Sampling(0.8, seed=1))]
        alone = [[p.token for p in engine.submit(r)] for r in made]
        together = [engine.submit(r) for r in made]
        assert [[p.token for p in h] for h in together] == alone
        again = [engine.submit(made[1]) for _ in range(2)]  # rows of one slot go to the other
        assert [[p.token for p in h] for h in again] == [alone[1]] * 2
        assert again[1].cached_tokens == 5
    assert isinstance(decoder.held, DeviceSlots)
    tokens = [2]
    for _ in range(6):
        tokens.append(int(np.argmax(reference(tokens)[-1])))
    assert alone[0] == tokens[1:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "weights", "graph"),
    [(arch, w, None) for arch in ARCHS for w in (None, "int4")] + [("gfx942", None, True)],
)
def test_a_checkpoint(
    tmp_path: Path, arch: str, weights: str | None, graph: bool | None, library: Path
) -> None:
    """The CPU's tokens, alone and in a batch; with `graph` steps are launches of a graph."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.text import tiny

    tiny.save(tmp_path)
    how = {"slots": 2, "weights": weights}
    cpu = text.load(tmp_path, **how)  # type: ignore[arg-type]
    gpu = text.load(tmp_path, target="gpu", arch=arch, emulate=True, graph=graph, **how)  # type: ignore[arg-type]
    made = [
        Request(cpu.tokens(prompt), 12, Sampling(0.7 * i, seed=4), stop_tokens=frozenset())
        for i, prompt in enumerate(("the quick brown fox", "lazy dog"))
    ]
    want = [[p.token for p in cpu.engine().submit(r)] for r in made]
    assert len(set(want[0] + want[1])) > 8
    together = [gpu.engine().submit(r) for r in made]
    assert [[p.token for p in h] for h in together] == want
    assert isinstance(gpu.decoder, ProgramDecoder)
    assert isinstance(gpu.decoder.held, DeviceSlots)
    if graph:
        loaded = gpu.decoder.program.load()  # type: ignore[attr-defined]
        assert isinstance(loaded, GraphModule)
        assert loaded.recordings
        assert loaded.launched <= {"main"}  # prompts read lengths of ranges on the host
