"""The broker end of one connection in tests: reads requests, writes responses."""

from __future__ import annotations

from collections.abc import Sequence

from kafkawire.client.network.transport import Write
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kafkawire.primitives import Message
from kafkawire.protocol.frame import Frame, decode_frame, encode_frame


def frames(effects: Sequence[object]) -> list[Frame]:
    """Decode the requests among the effects."""
    found = []
    for effect in effects:
        if isinstance(effect, Write):
            data = effect.data
            while data:
                size = 4 + int.from_bytes(data[:4], "big")
                found.append(decode_frame(data[:size]))
                data = data[size:]
    return found


def respond(request: Frame, message: Message, *, version: int | None = None) -> bytes:
    """Write the response to a request."""
    requested = request.api_version if version is None else version
    return encode_frame(message, requested, request.correlation_id)


def versions(ranges: dict[ApiKey, tuple[int, int]], error_code: int = 0) -> ApiVersionsResponse:
    """The table of versions of a broker."""
    rows = [
        ApiVersion(api_key=int(key), min_version=first, max_version=last)
        for key, (first, last) in ranges.items()
    ]
    return ApiVersionsResponse(error_code=error_code, api_keys=rows)
