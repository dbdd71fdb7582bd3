"""Errors of the protocol: a text and an HTTP status."""

from __future__ import annotations

import json

from mgx_mlir.core.errors import FileError, MgxError, TargetError

_TEXT = 4000  # characters of an error


class V2Error(MgxError):
    """A request that is answered with an error; `status` is HTTP's."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def error_of(e: Exception) -> V2Error:
    """Return the answer to a request that failed.

    A user's error keeps its text, with status 400; one of the device or of files has 503. Of any
    other error only the type is told.
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
    """Return the body of an error: its text, of which names from the request are a part."""
    return json.dumps({"error": shortened(e)}).encode()


def shortened(e: V2Error) -> str:
    """Return the text of an error, cut where it is long."""
    text = str(e)
    return text if len(text) <= _TEXT else f"{text[:_TEXT]} ..."
