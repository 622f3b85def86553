"""Decodes the header of truncated frames.

Law: the row has the captured bytes, and its error says how many there should be.

    truncated frame --header--> Row(status=truncated)
"""

from __future__ import annotations

from ..rows import Row, Status
from .decoding import InFlightRequest, with_header
from .headers import raw_request
from .stream import Mark


def partial_request(frame: bytes, size: int, mark: Mark) -> Row:
    """Decode the header of a truncated request; `frame`: the captured part of its `size` bytes."""
    raw = raw_request(frame, mark)
    error = f"truncated frame: {len(frame)} of {size} bytes"
    row = Row(mark.packet, mark.time_ns, "request", size, Status.TRUNCATED, error, raw=frame)
    return row if raw.request is None else with_header(row, raw.request)


def partial_response(frame: bytes, size: int, mark: Mark, request: InFlightRequest | None) -> Row:
    """Make the row of a truncated response."""
    row = Row(
        mark.packet,
        mark.time_ns,
        "response",
        size,
        Status.TRUNCATED,
        f"truncated frame: {len(frame)} of {size} bytes",
        raw=frame,
    )
    if request is None:
        return row
    return with_header(row, request)._replace(
        request_packet=request.packet, request_time_ns=request.time_ns
    )
