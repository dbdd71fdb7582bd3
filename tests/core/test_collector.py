"""The collector of cycles rests during compiles, and is as it was behind the last of them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from mgx_mlir import compile as compile_program
from mgx_mlir.core.collector import resting
from mgx_mlir.core.errors import MgxError


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_is_on_again_behind_the_last_of_nested_calls() -> None:
    with resting():
        with resting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_one_that_was_off_stays_off() -> None:
    gc.disable()
    with resting():
        pass
    assert not gc.isenabled()


def test_it_is_on_again_behind_a_compile_that_fails() -> None:
    with pytest.raises(MgxError):
        compile_program(b"no model", "cpu", cache=False)
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_it_is_on_in_a_child_that_is_forked_meanwhile() -> None:
    with resting():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitpid(child, 0)[1] == 0
