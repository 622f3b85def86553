"""Decodes raw frames into rows: the body if it decodes, otherwise the reason.

A row has everything that could be decoded before the first error; content never raises. The
header is decoded first (`framing`), because a conversation needs only that; the body is decoded
later, also in another process, and depends on nothing but the `RawFrame`.

    frame --header--> RawFrame --body--> Row       the header of a response is its correlation id;
                        `-- pickles                its RawFrame also has the request
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, final

from mypy_extensions import i64, mypyc_attr

from ...primitives import DEFAULT_LIMITS, Limits, Message
from ...primitives.reader import Reader
from ..rows import Located, Row, Status
from .apis import KAFKA_APIS, Apis
from .bodies import request_verdict, response_verdict


@final
@mypyc_attr(acyclic=True)
class InFlightRequest:
    """A request without a response so far; the name is that of Kafka's `InFlightRequests`.

    apis: those of its package, which also decodes the response.
    """

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        packet: int,
        time_ns: int,
        apis: Apis = KAFKA_APIS,
    ) -> None:
        self.api_key: int = api_key
        self.api_version: int = api_version
        self.correlation_id: int = correlation_id
        self.client_id: str | None = client_id
        self.packet: int = packet
        self.time_ns: int = time_ns
        self.apis: Apis = apis

    def __reduce__(self) -> tuple[Any, ...]:
        values = (
            self.api_key,
            self.api_version,
            self.correlation_id,
            self.client_id,
            self.packet,
            self.time_ns,
        )
        return InFlightRequest, values if self.apis.is_kafka else (*values, self.apis)


@final
@mypyc_attr(acyclic=True)
class RawFrame:
    """A frame (without its size) with a decoded header and an undecoded body.

    packet, time_ns: as in Row. request: the request itself, or the request of a response; None if
    the header is too short. body: the offset of the body, -1 if the header is malformed.
    error: what is malformed in a request's header, or was decoded leniently.
    """

    def __init__(
        self,
        is_request: bool,
        frame: bytes,
        packet: int,
        time_ns: int,
        request: InFlightRequest | None,
        body: int,
        error: str,
    ) -> None:
        self.is_request: bool = is_request
        self.frame: bytes = frame
        self.packet: int = packet
        self.time_ns: int = time_ns
        self.request: InFlightRequest | None = request
        self.body: int = body
        self.error: str = error

    def __reduce__(self) -> tuple[Any, ...]:
        return RawFrame, (
            self.is_request,
            self.frame,
            self.packet,
            self.time_ns,
            self.request,
            self.body,
            self.error,
        )

    def decode(self, limits: Limits = DEFAULT_LIMITS) -> Row:
        """Decode the body."""
        if self.request is None or self.body < 0:
            return _malformed(self)
        return _request(self, limits) if self.is_request else _response(self, limits)


Item: TypeAlias = Row | RawFrame
"""An output of a conversation: a row, or a raw frame that decodes to one."""


@final
@mypyc_attr(acyclic=True)
class LocatedItem:
    """A row or raw frame, and its connection, as in Located.

    known_at: the packet after which it was reported.
    """

    __slots__ = ("broker", "client", "connection", "item", "known_at")

    def __init__(
        self,
        connection: int | None,
        client: str | None,
        broker: str | None,
        item: Item,
        known_at: i64 = 0,
    ) -> None:
        self.connection: int | None = connection
        self.client: str | None = client
        self.broker: str | None = broker
        self.item: Item = item
        self.known_at: i64 = known_at

    def __reduce__(self) -> tuple[Any, ...]:
        return LocatedItem, (self.connection, self.client, self.broker, self.item, self.known_at)


OK: Final = Status.OK

_make: Final[Any] = tuple.__new__
"""Creates a named tuple from all its values in order, three times as fast as its class."""


def located(entry: LocatedItem, limits: Limits = DEFAULT_LIMITS) -> Located:
    """Decode the body of an item that is a raw frame."""
    item = entry.item
    row = item.decode(limits) if isinstance(item, RawFrame) else item
    result: Located = _make(Located, (entry.connection, entry.client, entry.broker, row))
    return result


def _malformed(raw: RawFrame) -> Row:
    frame, request = raw.frame, raw.request
    row = Row(
        raw.packet,
        raw.time_ns,
        "request",
        len(frame),
        Status.MALFORMED,
        raw.error,
        raw=frame,
    )
    return row if request is None else with_header(row, request)


def with_header(row: Row, request: InFlightRequest) -> Row:
    """Fill in what the header of a request has: its own row, or that of its response."""
    return row._replace(
        api_key=request.api_key,
        api_name=request.apis.api(request.api_key).name,
        api_version=request.api_version,
        correlation_id=request.correlation_id,
        client_id=request.client_id,
    )


def read_body(cls: Any, version: int, frame: bytes, body: int, limits: Limits) -> Message | None:
    """Decode a valid body; None if it is not, and the caller has to find out why."""
    reader = Reader(frame, body, limits=limits)
    try:
        message: Message = cls.decode_from(reader, version)
        message.deviations = reader.finish()
    except (IndexError, ValueError):
        return None
    return message


def _request(raw: RawFrame, limits: Limits) -> Row:
    request, frame, body = raw.request, raw.frame, raw.body
    assert request is not None
    apis = request.apis
    api = apis.api(request.api_key)
    version = request.api_version
    status, error, message = OK, "", None
    written: int | None = version
    side = api.request
    if side is not None and side.first <= version <= side.last:
        message = read_body(side.load(), version, frame, body, limits)
    if message is None:
        verdict = request_verdict(apis, request.api_key, version, frame, body, limits)
        status, error, message, written = verdict
    if raw.error and status is OK:
        status, error = Status.LENIENT, raw.error
    row: Row = _make(
        Row,
        (
            raw.packet,
            raw.time_ns,
            "request",
            len(frame),
            status,
            error,
            request.api_key,
            api.name,
            version,
            request.correlation_id,
            request.client_id,
            written,
            message,
            frame[body:] if message is None else b"",
            None,
            None,
        ),
    )
    return row


# over 40 lines: hot path, one response
def _response(raw: RawFrame, limits: Limits) -> Row:
    request, frame = raw.request, raw.frame
    assert request is not None
    key, version = request.api_key, request.api_version
    apis = request.apis
    api = apis.api(key)
    status, error, message = OK, "", None
    written: int | None = version
    body = 4
    side = api.response
    # an ApiVersions response with an error may be written in another version (KIP-511)
    plain = key != apis.api_versions or frame[4:6] == b"\0\0"
    plain = plain and api.ordinary_response
    if plain and side is not None and side.first <= version <= side.last:
        if version >= api.tagged_response:
            # brokers send no tagged fields in response headers
            body = 5 if frame[4:5] == b"\0" else -1
        if body > 0:
            message = read_body(side.load(), version, frame, body, limits)
    if message is None:
        verdict, body = response_verdict(apis, key, version, frame, limits)
        status, error, message, written = verdict
    row: Row = _make(
        Row,
        (
            raw.packet,
            raw.time_ns,
            "response",
            len(frame),
            status,
            error,
            key,
            api.name,
            version,
            request.correlation_id,
            request.client_id,
            written,
            message,
            frame[body:] if message is None else b"",
            request.packet,
            request.time_ns,
        ),
    )
    return row
