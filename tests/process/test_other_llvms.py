"""Other libraries that hold an LLVM, and allocators that are not libc's, in one process with us."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("tensorflow", "jax", "numba", "triton", "circt", "torch", "halide", "taichi")

# One matmul and tanh of n x n elements by us and by an engine, each compiled anew for each n.
BESIDE = """
import sys
import numpy as np
from tests.process import engines
order, *names = sys.argv[1:]
flags = sys.getdlopenflags()
users = {"ours": engines.ours, **{n: getattr(engines, n) for n in names}}
first = ["ours", *names] if order == "ours first" else [*names, "ours"]
for n in (5, 7, 9):
    for name in first:
        users[name](n)
assert sys.getdlopenflags() == flags
print("done")
"""


def beside(order: str, *names: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BESIDE, order, *names],
        capture_output=True, text=True, cwd=ROOT,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("order", ["ours first", "theirs first"])
@pytest.mark.parametrize("name", ENGINES)
def test_beside_an_engine(name: str, order: str) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    if name == "torch" and shutil.which("g++") is None:
        pytest.skip("inductor needs g++")
    assert beside(order, name).endswith("done\n")


@pytest.mark.slow
@pytest.mark.parametrize("order", ["ours first", "theirs first"])
def test_beside_several_engines(order: str) -> None:
    """Engines that get along with each other: others end beside TensorFlow, also without us."""
    names = [n for n in ("tensorflow", "jax", "numba") if importlib.util.find_spec(n) is not None]
    if len(names) < 2:
        pytest.skip("fewer than two engines are installed")
    assert beside(order, *names).endswith("done\n")


# An LLVM that ends the process where it is called in place of the bindings' own.
FOREIGN = """
#include <stdlib.h>
void mlirContextCreate(void) { abort(); }
void mlirContextCreateWithRegistry(void) { abort(); }
void mlirModuleCreateParse(void) { abort(); }
void _ZN4llvm2cl6Option11addArgumentEv(void) { abort(); }
"""

# An allocator that ends the process where it is given memory of another one.
ALLOCATOR = """
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define OURS 0x5ca1ab1e0ddba11ULL
static char *cursor, *end;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *taken(size_t size, size_t align) {
  pthread_mutex_lock(&lock);
  if (align < 16) align = 16;
  size_t need = size + align + 32;
  if (!cursor || (size_t)(end - cursor) < need) {
    size_t block = need > (64 << 20) ? need + 4096 : (64 << 20);
    cursor = mmap(0, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    end = cursor + block;
  }
  uintptr_t p = ((uintptr_t)cursor + 32 + align - 1) & ~(uintptr_t)(align - 1);
  ((size_t *)p)[-1] = OURS, ((size_t *)p)[-2] = size;
  cursor = (char *)p + size;
  pthread_mutex_unlock(&lock);
  return (void *)p;
}
static size_t size_of(void *p) {
  if (((size_t *)p)[-1] != OURS) write(2, "foreign memory\\n", 15), _exit(99);
  return ((size_t *)p)[-2];
}
void *malloc(size_t size) { return taken(size, 16); }
void *calloc(size_t n, size_t size) { return taken(n * size, 16); }
void *memalign(size_t align, size_t size) { return taken(size, align); }
void *aligned_alloc(size_t align, size_t size) { return taken(size, align); }
int posix_memalign(void **p, size_t align, size_t size) { *p = taken(size, align); return 0; }
void free(void *p) { if (p) size_of(p); }
size_t malloc_usable_size(void *p) { return p ? size_of(p) : 0; }
void *realloc(void *p, size_t size) {
  void *q = taken(size, 16);
  if (p) memcpy(q, p, size_of(p) < size ? size_of(p) : size);
  return q;
}
"""

PARSE = """
import ctypes, sys
if len(sys.argv) > 1:
    foreign = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import ir, passmanager
try:
    with ir.Context():
        module = ir.Module.parse("module { func.func @f() { return } }")
        passmanager.PassManager.parse("builtin.module(cse)").run(module.operation)
        print(module)
except MgxError as e:
    print(e)
"""

glibc = pytest.mark.skipif(not hasattr(os, "RTLD_DEEPBIND"), reason="the flag is glibc's")
compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def library(folder: Path, name: str, text: str) -> str:
    source, path = folder / f"{name}.c", folder / f"lib{name}.so"
    source.write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", source, "-o", path], check=True)
    return str(path)


def parsed(*args: str, preload: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", PARSE, *args], capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": preload}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


@glibc
@compiler
def test_another_llvm_in_the_global_scope_is_not_called(tmp_path: Path) -> None:
    assert "func.func @f" in parsed(library(tmp_path, "foreign", FOREIGN))


@glibc
@compiler
def test_a_preloaded_allocator_gets_its_own_memory_back(tmp_path: Path) -> None:
    assert "func.func @f" in parsed(preload=library(tmp_path, "allocator", ALLOCATOR))


@glibc
@compiler
def test_both_at_once_are_refused(tmp_path: Path) -> None:
    foreign = library(tmp_path, "foreign", FOREIGN)
    said = parsed(foreign, preload=library(tmp_path, "allocator", ALLOCATOR))
    assert "exports an LLVM, and malloc is not libc's" in said
    assert "compile in another process" in said
