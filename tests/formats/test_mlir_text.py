"""Nesting of MLIR text is limited before MLIR's parser, which would overflow the stack."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.mlir_text import checked_text

MAIN = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"


def with_attribute(text: str, ahead: str = "") -> str:
    return f"{ahead}module attributes {{x.a = {text}}} {{ {MAIN} }}"


def with_location(text: str) -> str:
    return f"module {{ {MAIN} }} loc({text})"


def chain(first: str, more: str) -> Callable[[int], str]:
    """`n` aliases, each of which holds the one before."""

    def make(n: int) -> str:
        sigil = first[0]
        lines = [f"{sigil}a0 = {first[1:]}"]
        lines += [f"{sigil}a{i + 1} = {more.replace('@', f'{sigil}a{i}')}" for i in range(n)]
        return with_attribute(f"{sigil}a{n}", "\n".join(lines) + "\n")

    return make


NESTED: dict[str, Callable[[int], str]] = {
    "arrays": lambda n: with_attribute("[" * n + "]" * n),
    "dictionaries": lambda n: with_attribute("{a=" * n + "1" + "}" * n),
    "tuples": lambda n: with_attribute("tuple<" * n + "i32" + ">" * n),
    "functions": lambda n: with_attribute("() -> (" * n + "i32" + ")" * n),
    "dense": lambda n: with_attribute("dense<" + "[" * n + "1" + "]" * n + "> : tensor<1xi32>"),
    "dialect": lambda n: with_attribute("#x.y<" + "<" * n + ">" * n + ">"),
    "closed in strings": lambda n: with_attribute('[")", ' * n + "1" + "]" * n),
    "closed in comments": lambda n: with_attribute("[ // )]}>\n" * n + "]" * n),
    "closed by comparisons": lambda n: with_attribute(
        "[affine_set<(d0) : (d0 > = 0, d0 >= 0)>, " * n + "1" + "]" * n
    ),
    "affine parentheses": lambda n: with_attribute(
        f"affine_map<(d0) -> ({'(' * n}d0{')' * n})>"
    ),
    "affine minus": lambda n: with_attribute(f"affine_map<(d0) -> ({'-' * n}d0)>"),
    "affine minus apart": lambda n: with_attribute(
        "affine_map<(d0) -> (" + "- // ,\n" * n + "d0)>"
    ),
    "affine sums": lambda n: with_attribute(
        "affine_map<(d0) -> (d0" + "".join(f" + (d0 mod {i + 2})" for i in range(n)) + ")>"
    ),
    "affine products": lambda n: with_attribute("affine_map<(d0)[s0] -> (d0" + "* s0" * n + ")>"),
    "affine divisions": lambda n: with_attribute(
        "affine_map<(d0) -> (d0" + " mod 7 floordiv 3" * n + ")>"
    ),
    "call sites": lambda n: with_location('callsite("a" at ' * n + '"b"' + ")" * n),
    "fused locations": lambda n: with_location("fused[" * n + '"b"' + "]" * n),
    "named locations": lambda n: with_location('"a"(' * n + '"b"' + ")" * n),
    "attribute aliases": chain("#1 : i32", "[@]"),
    "aliases over lines": chain("#1 : i32", "\n  dense<1>\n : \n tensor<1xi32, [@]>"),
    "type aliases": chain("!i32", "tuple<@>"),
    "location aliases": chain('#loc("x")', 'loc(callsite("a" at @))'),
    "regions": lambda n: '"x.y"() ({' * n + "}) : () -> ()" * n,
}  # fmt: skip


@pytest.mark.parametrize("name", NESTED)
def test_what_nests_is_refused(name: str) -> None:
    with pytest.raises(FileError, match=r"nested deeper than (1000 levels|200 braces)"):
        checked_text(NESTED[name](20_000).encode(), "f.mlir")


@pytest.mark.parametrize("name", NESTED)
def test_what_nests_a_little_is_taken(name: str) -> None:
    checked_text(NESTED[name](150).encode(), "f.mlir")


def test_the_parser_bears_what_is_taken(tmp_path: Path) -> None:
    """Parse and print each form at nearly the greatest depth that passes the check."""
    files = []
    for i, make in enumerate(NESTED.values()):
        depth = 1200
        while True:
            try:
                checked_text(make(depth).encode(), "f.mlir")
                break
            except FileError:
                depth -= 50
        path = tmp_path / f"{i}.mlir"
        path.write_text(make(depth))
        files.append(str(path))
    code = (
        "import sys, threading\n"
        "from mgx_mlir.frontends.mlir_files import read_mlir\n"
        "from mgx_mlir.core.errors import MgxError\n"
        "def read():\n"
        "    for name in sys.argv[1:]:\n"
        "        try:\n"
        "            p = read_mlir(name)\n"
        "            p.text(); p.module.operation.get_asm(enable_debug_info=True)\n"
        "        except MgxError: pass\n"
        "    print('done')\n"
        "thread = threading.Thread(target=read)\n"
        "thread.start(); thread.join()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *files], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-1000:]


def doubling(n: int) -> str:
    lines = ["#a0 = [1, 2]"] + [f"#a{i + 1} = [#a{i}, #a{i}]" for i in range(n)]
    return with_attribute(f"#a{n}", "\n".join(lines) + "\n")


@pytest.mark.parametrize("text", [
    doubling(40),
    doubling(40).replace("#a", "!a").replace("[", "tuple<").replace("]", ">"),
    doubling(22).replace("x.a = #a22", "x.a = [" + "#a22, " * 50 + "1]"),
    doubling(40).replace("= [", "= \n // x\n [").replace(", ", " , //\n"),
])  # fmt: skip
def test_aliases_that_double_are_refused(text: str) -> None:
    with pytest.raises(FileError, match="nested aliases expand to too much text"):
        checked_text(text.encode(), "f.mlir")


def test_locations_used_ahead_of_their_aliases_are_counted() -> None:
    aliases = "".join(f"#l{i + 1} = loc(fused[#l{i}, #l{i}])\n" for i in range(26))
    op = '"x.y"() : () -> () loc(#l26)'
    text = f'module {{ {MAIN}\n{op} }}\n#l0 = loc("x")\n{aliases}'
    with pytest.raises(FileError, match="nested aliases"):
        checked_text(text.encode(), "f.mlir")


def test_ordinary_text_is_taken() -> None:
    """Many operators, comparisons and aliases side by side are no nesting."""
    ops = "\n".join(
        f'  %{i} = "x.y"(%a#0) {{a = -{i} : i64, b = affine_map<(d0) -> (d0 - 1)>}} '
        f": (tensor<*xf32>) -> tensor<?x?xf32> loc(#loc{i})"
        for i in range(5000)
    )
    locations = "\n".join(f'#loc{i} = loc("n{i}"(callsite("a" at #loc)))' for i in range(5000))
    text = (
        f'#map = affine_map<(d0) -> (d0)>\n#loc = loc("f":1:2)\nmodule {{\n{ops}\n}}\n{locations}\n'
    )
    assert checked_text(text.encode(), "f.mlir") == text


def test_the_line_is_named() -> None:
    with pytest.raises(FileError, match=r"f\.mlir:3: error: nested"):
        checked_text(("\n\n" + "[" * 2000).encode(), "f.mlir")
