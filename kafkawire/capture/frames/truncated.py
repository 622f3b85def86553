"""A frame whose end is not in the capture -> a row: what its beginning tells.

Law: the row holds the bytes there are, and says how many there should be.

    frame, cut --header--> Row(status=truncated)
"""

from __future__ import annotations

from ..rows import Row, Status
from .decoding import InFlightRequest, api_name, raw_request
from .stream import Mark


def partial_request(frame: bytes, size: int, mark: Mark) -> Row:
    """Say what a request whose end is missing tells; `frame` holds what there is of its `size`
    bytes.
    """
    sealed = raw_request(frame, mark)
    error = f"only the first {len(frame)} of {size} bytes are there"
    row = Row(mark.packet, mark.time_ns, "request", size, Status.TRUNCATED, error, raw=frame)
    asked = sealed.asked
    if asked is None:
        return row
    return row._replace(
        api_key=asked.api_key,
        api_name=api_name(asked.api_key),
        api_version=asked.api_version,
        correlation_id=asked.correlation_id,
        client_id=asked.client_id,
    )


def partial_response(frame: bytes, size: int, mark: Mark, asked: InFlightRequest | None) -> Row:
    """Say what a response whose end is missing tells."""
    row = Row(
        mark.packet,
        mark.time_ns,
        "response",
        size,
        Status.TRUNCATED,
        f"only the first {len(frame)} of {size} bytes are there",
        raw=frame,
    )
    if asked is None:
        return row
    return row._replace(
        api_key=asked.api_key,
        api_name=api_name(asked.api_key),
        api_version=asked.api_version,
        correlation_id=asked.correlation_id,
        client_id=asked.client_id,
        request_packet=asked.packet,
        request_time_ns=asked.time_ns,
    )
