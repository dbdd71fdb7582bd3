"""Errors of the protocol: a text and an HTTP status."""

from __future__ import annotations

import json

from mgx_mlir.core.errors import FileError, MgxError, TargetError

_TEXT = 4000  # longest error in characters


class V2Error(MgxError):
    """A request that is answered with an error; `status` is the HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def error_of(e: Exception) -> V2Error:
    """Return the answer to a request that failed.

    A user's error keeps its text, with status 400. Errors of the device or of files have 503. Of
    any other error the answer has only the type.
    """
    if isinstance(e, V2Error):
        return e
    if isinstance(e, TargetError | FileError):
        return V2Error(str(e), 503)
    if isinstance(e, MgxError):
        return V2Error(str(e), 400)
    if isinstance(e, MemoryError):
        return V2Error("too little memory", 503)
    return V2Error(f"internal error: {type(e).__name__}", 500)


def error_body(e: V2Error) -> bytes:
    """Return the body of an error: its text, which may quote names of the request."""
    return json.dumps({"error": shortened(e)}).encode()


def shortened(e: V2Error) -> str:
    """Return an error's text, cut if it is long."""
    text = str(e)
    return text if len(text) <= _TEXT else f"{text[:_TEXT]} ..."
