"""Recognises the protocols other than Kafka that may be on the same ports.

Law: a protocol is named by the first bytes of a stream that no Kafka request begins with.
"""

from __future__ import annotations

import re
from typing import Final

_SIGNATURES: Final = (
    ("TLS", re.compile(rb"\x16\x03[\x00-\x04]")),
    ("HTTP", re.compile(rb"(?:GET|PUT|POST|HEADER|DELETE|OPTIONS|PATCH|CONNECT|TRACE) |HTTP/[12]")),
    ("HTTP/2", re.compile(rb"PRI \* HTTP/2")),
    ("SSH", re.compile(rb"SSH-[12]\.")),
    (
        "PostgreSQL",
        re.compile(rb"\x00\x00\x00\x08\x04\xd2\x16\x2f|\x00\x00..\x00\x03\x00\x00", re.DOTALL),
    ),
    ("Redis", re.compile(rb"[*$][0-9]+\r\n|\+PONG\r\n|\+OK\r\n")),
    (
        "ZooKeeper",
        re.compile(rb"\x00\x00\x00[\x28-\x31]\x00\x00\x00\x00\x00\x00\x00\x00", re.DOTALL),
    ),
    ("DNS", re.compile(rb"..[^\x00]..[\x01\x81][\x00-\x83]\x00\x01", re.DOTALL)),
)


_RECORD: Final = re.compile(rb"\x17\x03\x03[\x00-\x48].", re.DOTALL)
RECORD_HEADER: Final = 5


def has_tls_records(data: bytes) -> bool:
    """Whether two TLS records of application data follow each other, anywhere in a stream."""
    for found in _RECORD.finditer(data):
        at = found.start()
        size = data[at + 3] << 8 | data[at + 4]
        if _RECORD.match(data, at + RECORD_HEADER + size):
            return True
    return False


def signature(data: bytes) -> str | None:
    """Return the name of another known protocol that a stream begins with."""
    for name, pattern in _SIGNATURES:
        if pattern.match(data):
            return name
    return None
