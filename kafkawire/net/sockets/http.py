"""Requests a resource over HTTP, for tokens of OAUTHBEARER and the keys that they are signed with.

Nothing waits in a thread, so a request ends when its task is cancelled; a response is bounded in
size and time. No redirect is followed, and no proxy used: a secret goes to the endpoint alone.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Final, NamedTuple

from ...sasl.endpoints import Endpoint, FileEndpoint, HttpEndpoint

TIMEOUT_S: Final = 10.0
"""How long a connection may take, and then a response, in all."""
MOST: Final = 1 << 20
"""Bytes of a file, or of a response with its header."""
OK: Final = 200
ERROR_CODE: Final = re.compile(r"[\w.\-]{1,60}", re.ASCII)
"""An `error` of RFC 6749 (section 5.2) that an error may show."""


FINAL: Final = frozenset({*range(400, 408), *range(409, 416), 501, 505})
"""Statuses that are the same for the next request, by Java's client; of others it sends another."""


class EndpointFailed(Exception):
    """A resource that could not be read. Its text has no part of a request or a resource.

    status: of the response; 0 for none, or one that is not valid.
    """

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


class Timeouts(NamedTuple):
    """How long a connection may take, and then a response, in seconds; 0 for `TIMEOUT_S`."""

    connect_s: float = 0.0
    read_s: float = 0.0


USUAL: Final = Timeouts()


async def read(
    endpoint: Endpoint,
    fields: Mapping[str, str] = {},
    body: bytes | None = None,
    timeouts: Timeouts = USUAL,
) -> bytes:
    """Return the content of a file or a resource. Raises EndpointFailed.

    fields: of the header. body: of a POST request; None for GET.
    """
    try:
        if isinstance(endpoint, FileEndpoint):
            async with _within(TIMEOUT_S, "content"):
                return await asyncio.to_thread(_file, endpoint.path)
        return _body(await _exchange(endpoint, fields, body, timeouts))
    except ssl.SSLError as error:
        raise EndpointFailed(f"TLS: {error.reason or type(error).__name__}") from None
    except (HTTPException, ValueError) as error:
        raise EndpointFailed(f"invalid response ({type(error).__name__})") from None
    except OSError as error:
        raise EndpointFailed(error.strerror or type(error).__name__) from None


@asynccontextmanager
async def _within(seconds: float, expected: str) -> AsyncIterator[None]:
    """Raise EndpointFailed where the block takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise EndpointFailed(f"no {expected} within {seconds:g} seconds") from None


def _file(path: str) -> bytes:
    with Path(path).open("rb") as file:
        content = file.read(MOST + 1)
    if len(content) > MOST:
        raise EndpointFailed(f"more than {MOST} bytes")
    return content


async def _exchange(
    endpoint: HttpEndpoint, fields: Mapping[str, str], body: bytes | None, timeouts: Timeouts
) -> bytes:
    """Send a request and return all of the response, after which the server closes."""
    tls = ssl.create_default_context() if endpoint.secure else None
    async with _within(timeouts.connect_s or TIMEOUT_S, "connection"):
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=tls)
    header = {
        "Host": endpoint.authority,
        "Connection": "close",
        "Accept": "application/json",
        **({} if body is None else {"Content-Length": str(len(body))}),
        **fields,
    }
    lines = [f"{'GET' if body is None else 'POST'} {endpoint.target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in header.items()]
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        async with _within(timeouts.read_s or TIMEOUT_S, "response"):
            return await _response(reader)
    finally:
        writer.transport.abort()


async def _response(reader: asyncio.StreamReader) -> bytes:
    response = bytearray()
    while piece := await reader.read(MOST):
        response += piece
        if len(response) > MOST:
            raise EndpointFailed(f"more than {MOST} bytes")
    return bytes(response)


class _Received:
    """Bytes in place of the socket from which http.client reads a response."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def _body(data: bytes) -> bytes:
    """Return the body of a response. Raises EndpointFailed for a status other than 200."""
    received: Any = _Received(data)
    response = HTTPResponse(received)
    response.begin()
    body = response.read()
    if response.status != OK:
        reason = f"HTTP status {response.status}{_error_code(body)}"
        raise EndpointFailed(reason, response.status)
    return body


def _error_code(body: bytes) -> str:
    """Return the error code of an OAuth server, if there is one."""
    try:
        code = json.loads(body)["error"]
        return f" ({code})" if ERROR_CODE.fullmatch(code) else ""
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
