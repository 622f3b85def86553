"""Gets schemas from a registry over HTTP.

An answer is bounded in size and time; credentials go to the registry alone (no redirect is
followed) and into no error.
"""

from __future__ import annotations

import socket
import ssl
import threading
from base64 import b64encode
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import unquote, urlsplit

from ..errors import UnusableSchema

TIMEOUT_S: Final = 10.0
"""How long a response may take, in all."""
CHUNK: Final = 1 << 16
OK: Final = 200
NOT_FOUND: Final = 404
UNAUTHORIZED: Final = frozenset({401, 403})
SERVER_ERROR: Final = 500
TOO_MANY: Final = 429
ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"


class RegistryAddress:
    """The URL of a registry, and how a client authenticates. Raises ValueError for other URLs.

    url: `http://HOST:PORT/PATH`, also with `USER:PASSWORD@`. user: `USER:PASSWORD` for HTTP basic
    authentication. token: for bearer authentication.
    """

    def __init__(self, url: str, user: str | None = None, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected http://HOST:PORT or https://HOST:PORT")
        if parts.query or parts.fragment:
            raise ValueError("expected a URL without a query")
        self.is_tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port
        self.path = parts.path.rstrip("/")
        if user is None and parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        self.authorization: str | None = None
        if token is not None:
            self.authorization = f"Bearer {token}"
        elif user is not None:
            self.authorization = f"Basic {b64encode(user.encode()).decode()}"

    def __repr__(self) -> str:
        scheme = "https" if self.is_tls else "http"
        port = "" if self.port is None else f":{self.port}"
        return f"{scheme}://{self.host}{port}{self.path}"


class RegistryHttp:
    """Gets paths of a registry: a `kafkawire.values.Fetch`."""

    def __init__(self, address: RegistryAddress, timeout_s: float = TIMEOUT_S) -> None:
        self._address = address
        self._timeout_s = timeout_s

    def __call__(self, path: str, most: int) -> bytes | None:
        """Return the body of a path, of at most `most` bytes; None if it is not found."""
        deadline = _Deadline(self._connection(), self._timeout_s)
        try:
            with deadline as connection:
                body = self._body(connection, path, most)
            if deadline.passed:
                raise TimeoutError
            return body
        except UnusableSchema:
            raise
        except (OSError, HTTPException, ValueError) as error:
            late = deadline.passed or isinstance(error, TimeoutError)
            reason = f"no response within {self._timeout_s:g} seconds" if late else _reason(error)
            raise UnusableSchema(f"{self._address!r}: {reason}", "", True) from None

    def _connection(self) -> HTTPConnection:
        host, port = self._address.host, self._address.port
        if self._address.is_tls:
            return HTTPSConnection(
                host, port, timeout=self._timeout_s, context=ssl.create_default_context()
            )
        return HTTPConnection(host, port, timeout=self._timeout_s)

    def _body(self, connection: HTTPConnection, path: str, most: int) -> bytes | None:
        headers = {"Accept": ACCEPT}
        if self._address.authorization is not None:
            headers["Authorization"] = self._address.authorization
        connection.request("GET", self._address.path + path, headers=headers)
        with connection.getresponse() as response:
            if response.status == NOT_FOUND:
                return None
            if response.status != OK:
                raise self._refused(response.status)
            pieces: list[bytes] = []
            size = 0
            while piece := response.read1(CHUNK):
                size += len(piece)
                if size > most:
                    raise UnusableSchema(f"more than {most} bytes")
                pieces.append(piece)
            return b"".join(pieces)

    def _refused(self, status: int) -> UnusableSchema:
        note = " (credentials?)" if status in UNAUTHORIZED else ""
        later = status >= SERVER_ERROR or status == TOO_MANY or status in UNAUTHORIZED
        return UnusableSchema(f"{self._address!r} responds {status}{note}", "", later)


class _Deadline:
    """Closes a connection at the end, or when its time is over, however slowly bytes arrive."""

    def __init__(self, connection: HTTPConnection, timeout_s: float) -> None:
        self.passed = False
        self._connection = connection
        self._timer = threading.Timer(timeout_s, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> HTTPConnection:
        self._timer.start()
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._connection.close()

    def _cut(self) -> None:
        self.passed = True
        connected = self._connection.sock
        if connected is not None:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)


def _reason(error: Exception) -> str:
    """Say why there is no response; the text of an HTTPException or ValueError may be hostile."""
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, OSError) and not isinstance(error, HTTPException):
        return error.strerror or str(error) or type(error).__name__
    return f"invalid response ({type(error).__name__})"
