"""Cross-origin requests of web pages: refused unless their origin is allowed."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from mgx_mlir.integrations.v2.errors import V2Error

# a page can send text/plain and forms to another origin without a preflight; both are refused
_TYPES = ("application/json", "application/octet-stream")


@dataclass(frozen=True)
class Origins:
    """Pages and hosts that may send requests."""

    # origins of pages whose scripts may send requests, such as "https://a.example"; "*": all
    origins: Sequence[str] = ()
    # names of this server with dots, such as "models.example.com"; addresses, `localhost` and names
    # without a dot are always allowed
    hosts: Sequence[str] = ()

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise V2Error, 403, for a request of a page of another origin.

        Browsers state the page's origin (Origin), and its relation to the server (Sec-Fetch-Site).
        A page whose own name resolves to this server (DNS rebinding) has the same origin, but its
        name stands in Host.
        """
        host = headers.get("host", "")
        origin = headers.get("origin")
        if self.allows(origin):
            return
        if host and not self._is_ours(_name(host)):
            raise V2Error(
                f"the host '{host[:80]}' is no name of this server: --allow-host NAME permits it",
                403,
            )
        if origin is not None and not (host and _place(origin) == host.lower()):
            raise V2Error(
                f"pages of '{origin[:80]}' may not use this server: --allow-origin permits them",
                403,
            )
        site = headers.get("sec-fetch-site", "none").strip().lower()
        if site not in ("none", "same-origin"):
            raise V2Error(
                f"a page of another origin sent the request ({site[:20]}): --allow-origin "
                "permits it",
                403,
            )

    def allows(self, origin: str | None) -> bool:
        """Return whether an origin's scripts are allowed by name."""
        return origin is not None and ("*" in self.origins or origin.lower() in self.origins)

    def granted(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that let a script of an allowed origin read the answer (CORS)."""
        origin = headers.get("origin")
        if origin is None or not self.allows(origin):
            return {}
        return {
            "access-control-allow-origin": origin, "vary": "origin",
            "access-control-allow-methods": "GET, POST",
            "access-control-allow-headers":
                "content-type, authorization, inference-header-content-length",
            "access-control-expose-headers": "inference-header-content-length",
        }  # fmt: skip

    def _is_ours(self, name: str) -> bool:
        if not name or name in self.hosts or name.endswith(".localhost"):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            # no public name has a single label, so no page can be loaded from one
            return "." not in name.rstrip(".")
        return True


def _place(origin: str) -> str:
    """Return host and port of an origin in lower case, "" if it is no URL."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # brackets without an address between them
        return ""


def _name(host: str) -> str:
    """Return a Host header without its port, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def check_type(headers: Mapping[str, str]) -> None:
    """Raise V2Error, 415, for a body whose type is neither JSON nor binary tensors.

    A body without a type is accepted: clients of Triton state none, and pages always state their
    origin.
    """
    stated = headers.get("content-type")
    if stated is None:
        return
    kind = stated.partition(";")[0].strip().lower()
    if kind not in _TYPES:
        raise V2Error(
            f"content-type expected application/json or application/octet-stream, got "
            f"'{stated[:80]}'",
            415,
        )
