"""Explains a frame: its size, its header, its body.

The header's version follows from key and version, and the body begins where the header ends;
a truncated frame is explained up to its end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..display import plural
from ..errors import InvalidLength, Truncated, UnknownApiKey, WireError
from ..messages.api_key import ApiKey
from ..protocol import ErrorCode, request_header_version, response_header_version
from ..protocol.packages import KAFKA, Package
from .codec import parse
from .explain import finished, hide_secrets, message_rows, rest_is_secret
from .rendering import Explanation, Row
from .tree import Node

SIZE: Final = 4
API_KEY: Final = 4
API_VERSION: Final = 6
"""Offsets in a request: key and version follow the size in every header version."""


def explain_frame(
    data: bytes,
    response_to: tuple[int, int] | None = None,
    *,
    secrets: bool = True,
    package: Package = KAFKA,
) -> Explanation:
    """Explain a frame: size, header and body.

    response_to: for a response, the API key and version of its request; None for a request.
    secrets: whether secrets are shown.
    """
    frame_rows = FrameRows(data, secrets, package)
    try:
        frame_rows.explain(response_to)
    except WireError as error:
        frame_rows.error = error
    hidden = not secrets and rest_is_secret(frame_rows.name, data)
    return finished(
        data, frame_rows.rows, tuple(frame_rows.trees), frame_rows.end, frame_rows.error, hidden
    )


class FrameRows:
    """A frame, explained up to its end or an error."""

    def __init__(self, data: bytes, secrets: bool, package: Package) -> None:
        self.data = data
        self.package = package
        self.secrets = secrets
        self.name: str | None = None
        self.rows: list[Row] = []
        self.trees: list[Node] = []
        self.end = 0
        self.error: WireError | None = None

    def explain(self, response_to: tuple[int, int] | None) -> None:
        """Explain the frame; a WireError says where that ended."""
        self.size()
        if response_to is None:
            self.request(self.number(API_KEY), self.number(API_VERSION))
        else:
            self.response(*response_to)

    def request(self, key: int, version: int) -> None:
        info = self.package.index.request(key)
        if info is None:
            self.message("RequestHeader", self.package.usual_header_version, whole=False)
            raise UnknownApiKey(f"unknown API key {key}", "RequestHeader.request_api_key", API_KEY)
        header = request_header_version(key, version, self.package)
        self.message("RequestHeader", header, whole=False)
        self.message(info.name, version, whole=True)

    def response(self, key: int, version: int) -> None:
        info = self.package.index.response(key)
        if info is None:
            raise UnknownApiKey(f"unknown API key {key}")
        header = response_header_version(key, version, self.package)
        self.message("ResponseHeader", header, whole=False)
        versions_of_kafka = self.package.is_kafka and key == ApiKey.API_VERSIONS
        if versions_of_kafka and self.number(self.end) == ErrorCode.UNSUPPORTED_VERSION:
            version = 0  # a broker without that version responds in the oldest (KIP-511)
        self.message(info.name, version, whole=True)

    def size(self) -> None:
        if len(self.data) < SIZE:
            raise Truncated("the data ends inside the size of a frame", "size", len(self.data))
        size = int.from_bytes(self.data[:SIZE], "big", signed=True)
        row = Row(0, self.data[:SIZE], 0, "size", "int32", str(size))
        node = Node("size", "size", "int32", 0, row.raw, size, closed=True)
        self.rows.append(row)
        self.trees.append(node)
        self.end = SIZE
        available = len(self.data) - SIZE
        if size < 0:
            raise InvalidLength(f"a frame of {size} bytes", "size", 0)
        if size != available:
            note = f"truncated: {available} of {size} bytes"
            if available > size:
                note = f"{plural(available - size, 'byte')} after the frame"
            self.rows[-1] = replace(row, notes=(note,))

    def number(self, offset: int) -> int:
        """Read the int16 at an offset; Truncated if the data ends before it."""
        if offset + 2 > len(self.data):
            raise Truncated("the data ends inside the header", "", len(self.data))
        return int.from_bytes(self.data[offset : offset + 2], "big", signed=True)

    def message(self, name: str, version: int, *, whole: bool) -> None:
        package = self.package.name if whole else self.package.header_package(name)
        parsed = parse(name, version, self.data, start=self.end, whole=whole, package=package)
        if whole:
            self.name = name
        if not self.secrets:
            hide_secrets(parsed)
        self.rows += message_rows(parsed)
        self.trees.append(parsed.tree)
        self.end = parsed.end
        if parsed.error is not None:
            raise parsed.error
