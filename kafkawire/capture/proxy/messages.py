"""The messages with which a client, or a proxy, begins a connection that then carries Kafka.

A message is recognised by its structure as far as it arrived; its length is bounded. Names and
passwords are never returned.

    SOCKS5   greeting, method, (user name and password, status,) request, reply
    CONNECT  request headers, response headers
    PROXY    one header of version 1 or 2

Source: the PROXY protocol specification of HAProxy, versions 1 and 2; RFC 1928 and 1929 (SOCKS5);
RFC 9110, section 9.3.6 (CONNECT).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

from ...display import host_and_port

FIRST: Final = frozenset(b"P\r\x05C")
"""The first bytes of these protocols. No ordinary Kafka request begins with one of them."""

INVALID: Final = -1
MAX_HEADERS: Final = 1 << 14
"""Bytes of HTTP headers, and of the body of a response that refuses, at most."""

MAX_V1: Final = 107
SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
V2_HEAD: Final = 16
ADDRESSES: Final = {1: 12, 2: 36, 3: 216}
"""PROXY v2: address family (AF_INET, AF_INET6, AF_UNIX) -> bytes of both addresses."""

UNIX_PATH: Final = 108
_HOST: Final = re.compile(r"[\w.\-]+(?::[0-9]+)?|\[[0-9A-Fa-f:.]+\](?::[0-9]+)?", re.ASCII)
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})[ \r]")
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*\r\n", re.IGNORECASE)
_CONNECT: Final = re.compile(rb"CONNECT [^ \r\n]{1,512} HTTP/1\.[01]\r\n")
_SOCKS_ADDRESS: Final = {1: 4, 4: 16}
"""SOCKS5: type of address -> its bytes."""


class Step(StrEnum):
    """A message of the beginning of a connection."""

    START = "start"
    PROXY_1 = "PROXY protocol v1"
    PROXY_2 = "PROXY protocol v2"
    CONNECT = "HTTP CONNECT"
    CONNECTED = "HTTP CONNECT, response"
    GREETING = "SOCKS5"
    METHOD = "SOCKS5, method"
    PASSWORD = "SOCKS5, user name and password"
    STATUS = "SOCKS5, status"
    REQUEST = "SOCKS5, request"
    REPLY = "SOCKS5, reply"
    END = "end"


FROM_CLIENT: Final = frozenset(
    {Step.PROXY_1, Step.PROXY_2, Step.CONNECT, Step.GREETING, Step.PASSWORD, Step.REQUEST}
)


class Source(NamedTuple):
    """What a PROXY header says. client: `address:port`; None if it has no address."""

    client: str | None
    text: str


def first_step(data: bytes) -> Step | None:
    """Return the message that a stream may begin with; None if it begins otherwise."""
    for step, begin in _BEGIN.items():
        if data.startswith(begin[: len(data)]):
            return step
    return None


_BEGIN: Final = {
    Step.PROXY_1: b"PROXY ",
    Step.PROXY_2: SIGNATURE,
    Step.CONNECT: b"CONNECT ",
    Step.GREETING: b"\x05",
}


def message_bytes(step: Step, data: bytes) -> int:
    """Return the length of the message that data begins with, which may be more than there is.

    It is INVALID if data begins otherwise.
    """
    begin = _BEGIN.get(step, b"")
    return _BYTES[step](data) if data.startswith(begin[: len(data)]) else INVALID


def _proxy_1(data: bytes) -> int:
    end = data.find(b"\r\n", 0, MAX_V1)
    if end < 0:
        return len(data) + 1 if len(data) < MAX_V1 else INVALID
    return end + 2 if source_of(Step.PROXY_1, data[: end + 2]) is not None else INVALID


def _proxy_2(data: bytes) -> int:
    if len(data) < V2_HEAD:
        return V2_HEAD
    is_valid = data[12] >> 4 == 2 and data[12] & 15 <= 1
    return V2_HEAD + int.from_bytes(data[14:16]) if is_valid else INVALID


def _connect(data: bytes) -> int:
    end = data.find(b"\r\n\r\n", 0, MAX_HEADERS)
    if end >= 0:
        return end + 4 if _CONNECT.match(data) else INVALID
    return len(data) + 1 if len(data) < MAX_HEADERS else INVALID


def _connected(data: bytes) -> int:
    if not data.startswith(b"HTTP/1."[: len(data)]):
        return INVALID
    end = data.find(b"\r\n\r\n", 0, MAX_HEADERS)
    if end < 0:
        return len(data) + 1 if len(data) < MAX_HEADERS else INVALID
    status = _STATUS.match(data)
    if status is None:
        return INVALID
    length = None if status[1][:1] == b"2" else _LENGTH.search(data, 0, end + 2)
    body = 0 if length is None else int(length[1])
    return end + 4 + body if body <= MAX_HEADERS else INVALID


def _greeting(data: bytes) -> int:
    if len(data) < 2:
        return 2
    return 2 + data[1] if data[1] else INVALID


def _two(first: int) -> Callable[[bytes], int]:
    return lambda data: 2 if data[:1] in (b"", bytes([first])) else INVALID


def _password(data: bytes) -> int:
    if data[:1] not in (b"", b"\x01"):
        return INVALID
    if len(data) < 2:
        return 2
    name = 2 + data[1]
    return name + 1 + data[name] if len(data) > name else name + 1


def _request(data: bytes) -> int:
    """Return the bytes of a request or a reply, which have the same layout."""
    if not b"\x05".startswith(data[:1]) or data[2:3] not in (b"", b"\0"):
        return INVALID
    if len(data) < 5:
        return 5
    host = 1 + data[4] if data[3] == 3 else _SOCKS_ADDRESS.get(data[3], INVALID)
    return INVALID if host == INVALID else 4 + host + 2


_BYTES: Final[dict[Step, Callable[[bytes], int]]] = {
    Step.PROXY_1: _proxy_1,
    Step.PROXY_2: _proxy_2,
    Step.CONNECT: _connect,
    Step.CONNECTED: _connected,
    Step.GREETING: _greeting,
    Step.METHOD: _two(5),
    Step.PASSWORD: _password,
    Step.STATUS: _two(1),
    Step.REQUEST: _request,
    Step.REPLY: _request,
}


def following(step: Step, message: bytes) -> Step:
    """Return the step behind a message: another header may follow a PROXY header."""
    if step is Step.METHOD:
        return _METHODS.get(message[1], Step.END)
    if step in (Step.STATUS, Step.REPLY) and message[1]:
        return Step.END  # refused
    if step is Step.CONNECTED:
        return Step.END if is_accepted(message) else Step.CONNECT
    return _FOLLOWING[step]


_METHODS: Final = {0: Step.REQUEST, 2: Step.PASSWORD}
_FOLLOWING: Final = {
    Step.PROXY_1: Step.START,
    Step.PROXY_2: Step.START,
    Step.CONNECT: Step.CONNECTED,
    Step.GREETING: Step.METHOD,
    Step.PASSWORD: Step.STATUS,
    Step.STATUS: Step.REQUEST,
    Step.REQUEST: Step.REPLY,
    Step.REPLY: Step.END,
}


def is_accepted(response: bytes) -> bool:
    """Whether the response to CONNECT opens the tunnel."""
    status = _STATUS.match(response)
    return status is not None and status[1][:1] == b"2"


def outcome(step: Step, message: bytes) -> str:
    """Describe where a message wants to connect to, or why it was refused; "" for others."""
    if step is Step.CONNECT:
        return f"to {_safe(message.split(b' ', 2)[1].rpartition(b'@')[2])}"
    if step is Step.REQUEST:
        return f"to {_socks_target(message)}"
    if step is Step.CONNECTED and not is_accepted(message):
        return f"refused with status {message[9:12].decode('ascii')}"
    if step is Step.METHOD and message[1] not in _METHODS:
        return f"method {message[1]} is not supported" if message[1] != 0xFF else "refused"
    if step in (Step.STATUS, Step.REPLY) and message[1]:
        return f"refused with status {message[1]}"
    return ""


def _safe(host: bytes) -> str:
    text = host.decode("latin-1")
    return text if _HOST.fullmatch(text) else "an unknown host"


def _socks_target(message: bytes) -> str:
    kind, port = message[3], int.from_bytes(message[-2:])
    if kind == 3:
        return f"{_safe(message[5:-2])}:{port}"
    return host_and_port(str(ip_address(message[4:-2])), port)


# -- PROXY headers


def source_of(step: Step, header: bytes) -> Source | None:
    """Read the addresses of a PROXY header; None if it is not valid."""
    return _source_1(header) if step is Step.PROXY_1 else _source_2(header)


def _source_1(header: bytes) -> Source | None:
    if header.startswith(b"PROXY UNKNOWN") and header[13:14] in (b" ", b"\r"):
        return Source(None, "UNKNOWN")
    words = header[:-2].split(b" ")
    if len(words) != 6 or words[1] not in (b"TCP4", b"TCP6"):
        return None
    try:
        ends = [ip_address(word.decode("ascii")) for word in words[2:4]]
    except ValueError:
        return None
    ports = [int(word) for word in words[4:] if word.isdigit() and len(word) <= 5]
    version = 4 if words[1] == b"TCP4" else 6
    if any(end.version != version for end in ends) or len(ports) != 2 or max(ports) >> 16:
        return None
    return _addresses(ends, ports)


def _source_2(header: bytes) -> Source:
    if header[12] & 15 == 0:
        return Source(None, "LOCAL")
    family = header[13] >> 4
    size = ADDRESSES.get(family)
    if size is None:
        return Source(None, "UNSPEC")
    body = header[V2_HEAD : V2_HEAD + size]
    if len(body) < size:
        return Source(None, "the addresses are cut off")
    if family == 3:
        paths = [body[:UNIX_PATH], body[UNIX_PATH:]]
        first, second = (path.rstrip(b"\0").decode("utf-8", "replace") for path in paths)
        return Source(None, f"unix:{first} to unix:{second}")
    half = (size - 4) // 2
    ends = [ip_address(body[:half]), ip_address(body[half : 2 * half])]
    return _addresses(ends, [int.from_bytes(body[-4:-2]), int.from_bytes(body[-2:])])


def _addresses(ends: list[IPv4Address | IPv6Address], ports: list[int]) -> Source:
    first, second = map(host_and_port, map(str, ends), ports)
    return Source(first, f"{first} to {second}")
