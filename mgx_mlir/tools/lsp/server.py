"""The Language Server Protocol around the answers: documents, positions, notifications."""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument
from pygls.workspace.position_codec import ServerTextPosition, ServerTextRange

from mgx_mlir import __version__
from mgx_mlir.tools.lsp import answers
from mgx_mlir.tools.lsp.text import Source, Token
from mgx_mlir.tools.opt.diagnostics import Diagnostic

_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "remark": lsp.DiagnosticSeverity.Information,
}


class _Documents:
    """State of each open document, for its last version."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, Source, answers.Checked]] = {}

    def of(self, document: TextDocument) -> tuple[Source, answers.Checked]:
        held = self._known.get(document.uri)
        if held is None or held[0] != document.source:
            text = document.source
            held = (text, Source(text), answers.check(text, document.filename or "-"))
            self._known[document.uri] = held
        return held[1], held[2]

    def forget(self, uri: str) -> None:
        self._known.pop(uri, None)


def make_server() -> LanguageServer:
    """Return a server that has not started."""
    server = LanguageServer("mgx-lsp-server", __version__)
    documents = _Documents()

    def tell(uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        _, checked = documents.of(document)
        server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(
                uri, _diagnostics(document, checked.diagnostics), document.version
            )
        )

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        tell(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        tell(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        documents.forget(params.text_document.uri)
        server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(params.text_document.uri, [])
        )

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document = server.workspace.get_text_document(params.text_document.uri)
        source, checked = documents.of(document)
        offset = document.offset_at_position(params.position)
        text = answers.hover(source, checked, offset)
        if text is None:
            return None
        token = source.at(offset)
        return lsp.Hover(
            lsp.MarkupContent(lsp.MarkupKind.Markdown, text),
            None if token is None else _range(document, token),
        )

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        document = server.workspace.get_text_document(params.text_document.uri)
        source, _ = documents.of(document)
        token = source.at(document.offset_at_position(params.position))
        found = None if token is None else source.definition(token)
        return None if found is None else lsp.Location(document.uri, _range(document, found))

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=[".", "{", ",", '"']),
    )
    def completion(params: lsp.CompletionParams) -> lsp.CompletionList:
        document = server.workspace.get_text_document(params.text_document.uri)
        # a text that is being typed is not parsed
        source = Source(document.source)
        offset = document.offset_at_position(params.position)
        items = [
            lsp.CompletionItem(
                p.label,
                kind=lsp.CompletionItemKind.Field,
                detail=p.detail or None,
                documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, p.documentation)
                if p.documentation
                else None,
                insert_text=p.text,
            )
            for p in answers.proposals(source, offset)
        ]
        return lsp.CompletionList(is_incomplete=False, items=items)

    # pygls keeps the functions
    _ = opened, changed, closed, hover, definition, completion
    return server


def _range(document: TextDocument, token: Token) -> lsp.Range:
    text = document.source

    def position(offset: int) -> lsp.Position:
        begin = text.rfind("\n", 0, offset) + 1
        line = ServerTextPosition(text.count("\n", 0, offset), offset - begin)
        return document.position_to_client_units(line)

    return lsp.Range(position(token.start), position(token.end))


def _diagnostics(document: TextDocument, found: list[Diagnostic]) -> list[lsp.Diagnostic]:
    """Convert diagnostics; a note goes with the one that it follows."""
    out: list[lsp.Diagnostic] = []
    for d in found:
        if d.severity == "note":
            if out:
                out[-1].message += f"\nnote: {d.message}"
            continue
        severity = _SEVERITIES.get(d.severity, lsp.DiagnosticSeverity.Information)
        out.append(lsp.Diagnostic(_place(document, d), d.message, severity, source="mgx"))
    return out


def _place(document: TextDocument, d: Diagnostic) -> lsp.Range:
    """Return the word that a diagnostic points at; without a position the first line."""
    lines = document.lines
    row = min(max(d.line - 1, 0), max(len(lines) - 1, 0))
    line = lines[row].rstrip("\r\n") if lines else ""
    if not d.line:
        start, end = 0, len(line)
    else:
        # MLIR counts bytes
        start = len(line.encode()[: max(d.column - 1, 0)].decode(errors="ignore"))
        end = start
        while end < len(line) and not line[end].isspace() and line[end] not in "(){},:":
            end += 1
        end = max(end, min(start + 1, len(line)))
    return document.range_to_client_units(
        ServerTextRange(ServerTextPosition(row, start), ServerTextPosition(row, end))
    )
