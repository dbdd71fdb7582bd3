"""Tensors and arrays in one memory; tensors of a GPU, as far as a machine without one can tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mgx_mlir.core.errors import TargetError
from mgx_mlir.integrations.torch import memory
from mgx_mlir.integrations.torch.memory import array_of, tensor_of
from mgx_mlir.runtime import gpu_streams
from mgx_mlir.runtime.gpu_api import CUDA

pytestmark = pytest.mark.slow
KINDS = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
    torch.int16, torch.int32, torch.int64, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_shared_both_ways(kind: torch.dtype) -> None:
    for shape in ((3, 4), (), (0, 5)):
        t = torch.ones(shape).to(kind)
        a = array_of(t)
        back = tensor_of(a)
        assert a.shape == shape
        assert back.dtype is kind
        assert torch.equal(back.double(), t.double())
        if t.numel():
            assert a.ctypes.data == t.data_ptr() == back.data_ptr()


def test_gaps_and_gradients() -> None:
    t = torch.randn(4, 6, requires_grad=True).t()[1:]
    np.testing.assert_array_equal(array_of(t), t.detach().numpy())
    negated = torch.randn(3, dtype=torch.complex64).conj().imag  # a flag that numpy lacks
    np.testing.assert_array_equal(array_of(negated), negated.resolve_neg().numpy())


def test_a_result_keeps_its_memory() -> None:
    t = tensor_of(np.arange(100000, dtype=np.float32))
    assert torch.equal(t, torch.arange(100000, dtype=torch.float32))


def test_the_callers_stream_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        cuda_stream = 77

    class Device:
        index, api = 1, CUDA

    class Tensor:
        """A tensor with gaps, whose copy is asked of the caller's stream."""

        dtype = torch.float32

        def detach(self) -> Tensor:
            return self

        def contiguous(self) -> Tensor:
            seen.append("copy")
            return self

        def get_device(self) -> int:
            return at

    at = 1
    seen: list[Any] = []
    monkeypatch.setattr(torch.cuda, "current_stream", lambda i: Stream)
    monkeypatch.setattr(memory, "stream_synchronize", lambda d, s: seen.append(s))
    monkeypatch.setattr(memory, "note_reader", lambda d, s: seen.append(("reads", s)))
    monkeypatch.setattr(memory, "from_capsule", lambda d, t, kind: (t, kind.name))
    monkeypatch.setattr(memory, "to_dlpack", lambda t: t)
    given = Tensor()
    found = memory.device_tensors_of(Device(), [given])  # type: ignore[arg-type]
    # the copy ahead of the wait: behind it the program could read what is not written
    assert seen == ["copy", 77, ("reads", 77)]
    assert found == [(given, "float_type")]
    at = 0
    with pytest.raises(TargetError, match=r"CUDA device 1, got DLPack device \(2, 0\)"):
        memory.device_tensors_of(Device(), [given])  # type: ignore[arg-type]


def test_streams_that_read_results_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of a dropped result is the next call's, from whatever thread or memory it comes."""
    waited: list[int] = []
    monkeypatch.setattr(gpu_streams, "_readers", {})
    monkeypatch.setattr(gpu_streams, "call", lambda d, name, s: waited.append(s.value))
    device: Any = "a device"
    gpu_streams.wait_for_readers(device)
    assert waited == []
    for stream in (77, 78, 77):
        gpu_streams.note_reader(device, stream)
    gpu_streams.wait_for_readers(device)
    gpu_streams.wait_for_readers("another")  # type: ignore[arg-type]
    assert sorted(waited) == [77, 78]
