"""Decodes and encodes messages by name, for callers that know the type only at run time."""

from __future__ import annotations

from ..primitives import DEFAULT_LIMITS, Limits, Message
from .packages import KAFKA, Package


def decode(
    name: str,
    version: int,
    data: bytes,
    *,
    lenient: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    package: Package = KAFKA,
) -> Message:
    """Decode a message body: `decode("FetchRequest", 12, body)`.

    lenient: accept traffic as it is: bytes after the last field, text that is not UTF-8 (kept by
    surrogateescape), known
        tags at versions without them. The message's `bent` lists the deviations, and
        `encode(version, lenient=True)` writes them again.

    Raises DecodeError (with field path and byte offset), UnknownApiKey, UnsupportedVersion.
    """
    cls = package.index.load(name)
    message: Message = cls.decode(data, version, lenient=lenient, limits=limits)
    return message
