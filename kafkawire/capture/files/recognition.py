"""Checks by its first bytes whether a file is a capture.

Law: `kafkawire decode` and the Spark job reject the same files, because both use this check; a
rejected file has no packets.

    first bytes --> (gzip | zstd)* --> pcap | pcapng: a capture
                                  `--> empty | corrupt | anything else: rejected with the reason
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...errors import BadMagic, CorruptCapture, TruncatedCapture
from ...magic_numbers import is_pcap, is_pcapng
from .source import MAX_NESTING, Unpacked, is_compressed

HEAD: Final = 1 << 12
"""Bytes of a file, as stored, that are checked."""

STEP: Final = 1 << 6
"""Bytes decompressed at a time, so that data before damage is still checked."""


def check_head(head: bytes) -> None:
    """Check the first HEAD bytes of a file, as stored.

    Raises TruncatedCapture if it is empty, CorruptCapture if no byte decompresses, BadMagic if it
    is not a capture.
    """
    content = unpacked_head(head)
    if not content:
        raise TruncatedCapture("empty")
    if not is_pcap(content) and not is_pcapng(content):
        raise BadMagic(f"not a capture file (starts with {content[:8].hex(' ')})")


def unpacked_head(head: bytes) -> bytes:
    """Decompress the first bytes of a file, if they are compressed.

    Raises CorruptCapture if no byte decompresses.
    """
    for _ in range(MAX_NESTING):
        if not is_compressed(head[:4]):
            break
        stream = Unpacked(_slices(head))
        content = b""
        for data in stream:
            content += data[:HEAD]
            if len(content) >= HEAD:
                break
        if not content and isinstance(stream.problem, CorruptCapture):
            raise stream.problem
        head = content
    return head


def _slices(data: bytes) -> Iterator[bytes]:
    return (data[at : at + STEP] for at in range(0, len(data), STEP))
