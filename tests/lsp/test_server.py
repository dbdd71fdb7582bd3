"""The language server, asked over pipes by a client."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from mgx_mlir.tools.lsp.text import Source

URI = "file:///tmp/m.mlir"
TIME = 60  # seconds that an answer may take
TEXT = """\
#map = affine_map<(d0) -> (d0)>
// 😀 %0 is a comment
func.func @f(%arg0: tensor<2x3xf32>, %b: i1) -> tensor<2x3xf32> {
  %0 = "migraphx.softmax"(%arg0) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %x:2 = scf.if %b -> (tensor<2x3xf32>, i1) {
    %c = arith.constant true
    scf.yield %arg0, %c : tensor<2x3xf32>, i1
  } else {
    %c = arith.xori %b, %b : i1
    scf.yield %arg0, %c : tensor<2x3xf32>, i1
  }
  %y = "migraphx.add"(%0, %x#0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
func.func @g(%arg0: tensor<2x3xf32>, %b: i1) -> tensor<2x3xf32> {
  %0 = call @f(%arg0, %b) : (tensor<2x3xf32>, i1) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""
Talk = Callable[["Client"], Awaitable[None]]


class Client(LanguageClient):
    """A client that keeps what is published."""

    def __init__(self) -> None:
        super().__init__("test", "1")
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        @self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def keep(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.put_nowait(params)

        self.kept = keep

    async def open(self, text: str) -> list[lsp.Diagnostic]:
        item = lsp.TextDocumentItem(URI, "mlir", 1, text)
        self.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return [*(await asyncio.wait_for(self.published.get(), TIME)).diagnostics]

    async def change(self, text: str, version: int = 2) -> list[lsp.Diagnostic]:
        self.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(version, URI),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        return [*(await asyncio.wait_for(self.published.get(), TIME)).diagnostics]

    async def hover(self, text: str, what: str, skip: int = 0) -> str | None:
        where = position(text, what, skip)
        found = await self.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier(URI), where)
        )
        if found is None:
            return None
        assert isinstance(found.contents, lsp.MarkupContent)
        return found.contents.value

    async def definition(self, text: str, what: str, skip: int = 0) -> tuple[int, int] | None:
        where = position(text, what, skip)
        found = await self.text_document_definition_async(
            lsp.DefinitionParams(lsp.TextDocumentIdentifier(URI), where)
        )
        if found is None:
            return None
        assert isinstance(found, lsp.Location)
        return found.range.start.line, found.range.start.character

    async def completion(self, text: str, after: str) -> dict[str, str | None]:
        at = text.index(after) + len(after)
        where = lsp.Position(text.count("\n", 0, at), at - text.rfind("\n", 0, at) - 1)
        found = await self.text_document_completion_async(
            lsp.CompletionParams(lsp.TextDocumentIdentifier(URI), where)
        )
        assert isinstance(found, lsp.CompletionList)
        return {i.label: i.insert_text for i in found.items}


def position(text: str, what: str, skip: int) -> lsp.Position:
    """The place `skip` characters behind the start of a part of the text."""
    at = text.index(what) + skip
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return lsp.Position(text.count("\n", 0, at), len(line.encode("utf-16-le")) // 2)


def talk(what: Talk) -> None:
    async def whole() -> None:
        client = Client()
        await client.start_io(sys.executable, "-m", "mgx_mlir.tools.lsp", "--stdio")
        params = lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), process_id=os.getpid())
        await asyncio.wait_for(client.initialize_async(params), TIME)
        client.initialized(lsp.InitializedParams())
        await asyncio.wait_for(what(client), TIME)
        await asyncio.wait_for(client.shutdown_async(None), TIME)
        client.exit(None)
        await asyncio.wait_for(client.stop(), TIME)

    asyncio.run(whole())


def test_a_session() -> None:
    async def session(client: Client) -> None:
        assert await client.open(TEXT) == []
        # hover: an op's documentation, types of values
        said = await client.hover(TEXT, "softmax")
        assert said is not None
        assert said.startswith("**migraphx.softmax**(input) → out")
        assert "e^x over its sum" in said
        assert "| `axis` | an i64 integer | `1` |" in said
        values = [("%0, %x#0", 1, "%0 : tensor<2x3xf32>"), ("%x#0", 1, "%x : tensor<2x3xf32>, i1"),
                  ("%c : tensor<2x3xf32>, i1", 1, "%c : i1"), ("%b ->", 1, "%b : i1")]  # fmt: skip
        for what, skip, shown in values:
            said = await client.hover(TEXT, what, skip)
            assert said is not None, what
            assert f"\n{shown}\n" in said, what
        assert await client.hover(TEXT, "%0 is a comment", 1) is None
        # definitions: the nearest in the scopes around
        assert await client.definition(TEXT, "%0, %x#0", 1) == (3, 2)
        assert await client.definition(TEXT, "%c : tensor<2x3xf32>, i1", 1) == (5, 4)
        last = TEXT.split("} else {")[1]
        assert await client.definition(TEXT, last, last.index("%c :")) == (8, 4)
        assert await client.definition(TEXT, "@f(%arg0, %b)", 1) == (2, 10)
        assert await client.definition(TEXT, "%arg0, %b) :", 1) == (14, 13)
        assert await client.definition(TEXT, "tensor") is None

    talk(session)


def test_diagnostics_follow_the_text() -> None:
    async def session(client: Client) -> None:
        wrong = TEXT.replace("axis = 1", "axis = 9")
        [d] = await client.open(wrong)
        assert d.severity == lsp.DiagnosticSeverity.Error
        assert "axis (9) is out of range" in d.message
        assert (d.range.start.line, d.range.start.character) == (3, 7)
        assert d.range.end.character == 7 + len('"migraphx.softmax"')
        custom = TEXT.replace('"migraphx.softmax"(%arg0)', "migraphx.softmax %arg0")
        [d] = await client.change(custom)
        assert "expected the generic form" in d.message
        assert "note: write it as" in d.message
        assert d.range.start == lsp.Position(3, 7)
        # each input of a split file
        two = f"{TEXT}// -----\n{wrong}"
        [d] = await client.change(two, 3)
        assert d.range.start.line == 3 + TEXT.count("\n") + 1
        assert await client.change(TEXT, 4) == []
        # invalid MLIR does not end the server
        for i, bad in enumerate(("module {" * 5000, "%", "func.func @f(", "é" * 50, "")):
            found = await client.change(bad, 5 + i)
            assert bool(found) == bool(bad)

    talk(session)


def test_completion() -> None:
    line = '  %0 = "migraphx.convolution"(%x, %w) {group = 1 : i64, '

    async def session(client: Client) -> None:
        head = "func.func @f(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) {\n"
        text = f"{head}{line}\n"
        await client.open(text)
        found = await client.completion(text, "i64, ")
        assert "group" not in found
        assert found["stride"] == "stride = array<i64: 1, 1>"
        assert found["padding_mode"] == 'padding_mode = "default_"'
        text = f"{head}{line}padding_mode = \n"
        await client.change(text)
        found = await client.completion(text, "padding_mode = ")
        assert set(found.values()) == {'"default_"', '"same_lower"', '"same_upper"'}
        text = f'{head}  %0 = "migraphx.soft'
        await client.change(text, 3)
        assert {"softmax"} <= set(await client.completion(text, '"migraphx.soft'))
        text = f"{head}  \n"
        await client.change(text, 4)
        assert await client.completion(text, "{\n  ") == {}

    talk(session)


def test_scopes_of_unfinished_text() -> None:
    source = Source('func.func @f(%a: i1) {\n  %0:2, %1 = "x.y"(%a) {\n  "x.z"(%1, %0#1')
    tokens = {source.text[t.start : t.end]: t for t in source.tokens if not t.defines}
    for name in ("%a", "%1", "%0"):
        where = source.definition(tokens[name])
        assert where is not None
        assert where.start == source.text.index(name)
    last = source.definition(tokens["%1"])
    assert last is not None
    op, first, count = source.op_of(last)
    assert (op and op.name, first, count) == ("x.y", 2, 1)


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--help"], 0, "usage: mgx-lsp-server"),
        (["--tcp"], 2, "unknown option '--tcp'"),
        (["--load-plugin=gone.py"], 2, "no such file"),
    ],
)
def test_the_command_line(tmp_path: Path, options: list[str], status: int, said: str) -> None:
    command = [sys.executable, "-m", "mgx_mlir.tools.lsp", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == status
    assert said in done.stdout + done.stderr


def test_without_pygls(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from mgx_mlir.tools.lsp.main import main

    gone: Any = None
    monkeypatch.delitem(sys.modules, "mgx_mlir.tools.lsp.server", raising=False)
    monkeypatch.setitem(sys.modules, "pygls", gone)
    for name in [n for n in sys.modules if n.startswith("pygls.")]:
        monkeypatch.setitem(sys.modules, name, gone)
    assert main(["--stdio"]) == 2
    assert "note: pip install 'pygls" in capsys.readouterr().err
