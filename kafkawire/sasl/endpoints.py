"""URLs from which tokens of OAUTHBEARER, and the keys that they are signed with, are fetched.

file:///PATH, https://HOST/PATH, and http://HOST/PATH on this machine alone: without TLS, anybody on
the way could read a secret, or put keys of their own into the response.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
EXPECTED: Final = "expected file:///PATH, https://HOST/PATH, or http:// and a loopback address"


class FileEndpoint(NamedTuple):
    """A file."""

    path: str


class HttpEndpoint(NamedTuple):
    """A resource of a server. target: its path and query. authority: for the field Host."""

    secure: bool
    host: str
    port: int
    authority: str
    target: str


Endpoint = FileEndpoint | HttpEndpoint


def endpoint(url: str) -> Endpoint:
    """Parse a URL. Raises ValueError, which has no part of it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(EXPECTED) from None
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return FileEndpoint(unquote(parts.path))
    has_user = parts.username is not None or parts.password is not None
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or has_user or not is_plain:
        raise ValueError(EXPECTED)
    secure = parts.scheme == "https"
    if not (secure or is_loopback(parts.hostname)):
        raise ValueError(EXPECTED)
    target = SplitResult("", "", parts.path or "/", parts.query, "").geturl()
    return HttpEndpoint(
        secure, parts.hostname, port or DEFAULT_PORTS[parts.scheme], parts.netloc, target
    )


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its name or address, without resolving it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
