"""Readiness of a Ray Serve application over HTTP: its replicas are up before its route is."""

from __future__ import annotations

import http.client
import json
import time

_LOCAL = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_SECONDS = 30.0  # longest wait for a route; proxies learn of one within a second
_PAUSE = 0.05  # seconds between questions


def wait_for_route(host: str, port: int, name: str) -> None:
    """Wait until this node's proxy routes requests to an application, which `serve.run` does not.

    Raises RuntimeError after half a minute.
    """
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        own = http.client.HTTPConnection(_LOCAL.get(host, host), port, timeout=5)
        try:
            own.request("GET", "/-/routes")
            if name in json.loads(own.getresponse().read()).values():
                return
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass  # the proxy starts, or has no routes yet
        finally:
            own.close()
        time.sleep(_PAUSE)
    raise RuntimeError(f"Ray's proxy at {host}:{port} has no route to '{name}'")
