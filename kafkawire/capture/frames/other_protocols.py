"""Recognises the protocols other than Kafka that may be on the same ports.

A protocol is named by the first bytes of a stream that no Kafka request begins with; ZooKeeper
by its whole first message, whose first bytes a Kafka request may have.
"""

from __future__ import annotations

import re
from typing import Final

_SIGNATURES: Final = (
    ("TLS", re.compile(rb"\x16\x03[\x00-\x04]")),
    ("HTTP", re.compile(rb"(?:GET|PUT|POST|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE) |HTTP/[12]")),
    ("HTTP/2", re.compile(rb"PRI \* HTTP/2")),
    ("SSH", re.compile(rb"SSH-[12]\.")),
    (
        "PostgreSQL",
        re.compile(
            rb"\x00\x00\x00\x08\x04\xd2\x16[\x2f\x30]|\x00\x00..\x00\x03\x00\x00", re.DOTALL
        ),
    ),
    ("Redis", re.compile(rb"[*$][0-9]+\r\n|\+PONG\r\n|\+OK\r\n|PING\r\n")),
    ("MySQL", re.compile(rb"[\x20-\xff][\x00\x01]\x00\x00\x0a[0-9]+\.[0-9]")),
    ("AMQP", re.compile(rb"AMQP[\x00-\x03]")),
    ("MQTT", re.compile(rb"\x10[\x80-\xff]{0,3}[\x00-\x7f]\x00(?:\x04MQTT|\x06MQIsdp)")),
    (
        "ZooKeeper",
        re.compile(
            rb"\x00\x00\x00[\x28-\x31]\x00\x00\x00\x00\x00\x00\x00\x00"
            rb"|(?:ruok|stat|mntr|srvr|conf|cons|envi|dump|wchs|isro)\n?\Z",
            re.DOTALL,
        ),
    ),
    ("DNS", re.compile(rb"..[^\x00]..[\x01\x81][\x00-\x83]\x00\x01", re.DOTALL)),
)

ZOOKEEPER: Final = "ZooKeeper"
CONNECT_BYTES: Final = 32
"""Bytes of a ConnectRequest of ZooKeeper with its size, up to the length of its password."""

_CONNECT: Final = re.compile(
    rb"\x00\x00\x00(?:[\x2c\x2d]\x00{4}.{20}\x00\x00\x00\x10|[\x1c\x1d]\x00{4}.{20}\x00{4})",
    re.DOTALL,
)
"""The ConnectRequest of ZooKeeper: its size with or without the read-only flag, the version 0, last
zxid (int64), timeout (int32), session id (int64), the length of its password (16 bytes or none).
"""

_CONNECT_HEAD: Final = re.compile(rb"\x00\x00\x00[\x1c\x1d\x2c\x2d]\x00{4}")

_RECORD: Final = re.compile(rb"\x17\x03\x03[\x00-\x48].", re.DOTALL)
RECORD_HEADER: Final = 5


def has_tls_records(data: bytes) -> bool:
    """Whether two TLS records of application data follow each other, anywhere in a stream."""
    for match in _RECORD.finditer(data):
        start = match.start()
        size = data[start + 3] << 8 | data[start + 4]
        if _RECORD.match(data, start + RECORD_HEADER + size):
            return True
    return False


def may_be_zookeeper(data: bytes) -> bool:
    """Whether a stream begins as the ConnectRequest of ZooKeeper does, which looks like Produce."""
    if len(data) < CONNECT_BYTES:
        return _CONNECT_HEAD.match(data) is not None
    return _CONNECT.match(data) is not None


def signature(data: bytes) -> str | None:
    """Return the name of another known protocol that a stream begins with."""
    for name, pattern in _SIGNATURES:
        if pattern.match(data):
            return name
    return ZOOKEEPER if _CONNECT.match(data) else None
