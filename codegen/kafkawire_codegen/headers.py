"""Resolves the header version of each version of a request or response.

What a schema says comes first (`headerVersions`), then Kafka's exceptions, then its rule: the
newer header, with tagged fields, belongs to flexible versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .dialect import HeaderVersions, MessageSchema
from .versions import ALL, NEWEST, Versions

_HEADERS: Final = {"request": (1, 2), "response": (0, 1)}
"""The header versions of a request or response without tagged fields, and with them."""

_HEADER_EXCEPTIONS: Final[Mapping[str, HeaderVersions]] = {
    "ControlledShutdownRequest": (
        (Versions(0, 0), 0),
        (Versions(1, 2), 1),
        (Versions(3, NEWEST), 2),
    ),
    "ApiVersionsResponse": ((ALL, 0),),
}
"""Kafka's own exceptions, which its schemas do not write: version 0 of ControlledShutdown has no
client id, and an ApiVersions response is read before its reader knows the version (KIP-511).
"""


def header_versions(schema: MessageSchema) -> HeaderVersions:
    """Return the header version of each valid version; nothing for a message without a header."""
    if schema.type not in _HEADERS:
        return ()
    flexible = schema.flexible_versions & schema.valid_versions
    plain, tagged = _HEADERS[schema.type]
    ranges = schema.header_versions or _HEADER_EXCEPTIONS.get(schema.name)
    if ranges is None:
        before = schema.valid_versions.without(flexible)
        ranges = (*((run, plain) for run in before), (flexible, tagged))
    cut = ((versions & schema.valid_versions, header) for versions, header in ranges)
    return tuple((versions, header) for versions, header in cut if versions)


def header_text(headers: HeaderVersions) -> str:
    """Write where each header version begins: `0:1,12:2`; `-` for a message without a header."""
    starts = sorted((versions.low, header) for versions, header in headers)
    return ",".join(f"{first}:{header}" for first, header in starts) or "-"
