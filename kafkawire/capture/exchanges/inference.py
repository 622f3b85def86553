"""Infers the API and version of a response without its request from its content.

No false messages. A response is inferred only if exactly one layout of all responses
decodes it to the last byte, encodes to the same bytes, and has enough plausible values; or if
several layouts fit, and exactly one of them was seen on the same connection.

    frame --> layouts that fit --> plausible, with evidence --> one: inferred
                                                           `--> none or several: unpaired

See `response_layouts`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, final

from ...errors import WireError
from ...primitives import Limits, Message, Reader, Structure
from ...protocol.error_code import ErrorCode
from ...protocol.fields import Field, fields_at
from ...protocol.header import decode_response_header
from ...records import RecordBatches
from ..frames.apis import KAFKA_APIS, Apis
from ..frames.decoding import InFlightRequest, Item, RawFrame
from ..rows import Row, Status
from .response_layouts import Layout, layouts, layouts_of

SIZE: Final = 4

MIN_EVIDENCE: Final = 8
"""Bytes of text or records, and 2 for each array element, that a body must have: less may fit by
chance.
"""

MAX_SEARCHES: Final = 256
"""Responses of a connection that are tried with all layouts; others only with those seen."""

MAX_BYTES: Final = 1 << 20
"""A response larger than this is only tried with layouts seen."""

MAX_UNDECODED_BYTES: Final = 1 << 14
"""Bytes of responses that are buffered before they are decoded to learn their layouts: the first
response of each API and version.
"""

MAX_LISTED: Final = 6
"""Candidates that an error names."""

_CODES: Final = frozenset(int(code) for code in ErrorCode)
_MIN_VALUES: Final = {"throttle_time_ms": 0, "partition_index": 0, "port": -1}
"""The least plausible value of a field of that name."""


class Fit(NamedTuple):
    """A layout that fits a frame, and the decoded message."""

    layout: Layout
    message: Message
    evidence: int


@final
class Inference:
    """Infers the responses of one connection, and remembers the layouts seen on it."""

    def __init__(self, limits: Limits, apis: Apis = KAFKA_APIS) -> None:
        self._limits = limits
        self._apis = apis
        self._seen: set[tuple[int, int]] = set()
        self._last_key = self._last_version = -1  # the last pair found in _seen or _undecoded
        self._layouts: dict[Layout, None] = {}
        self._searches = 0
        self._undecoded: dict[tuple[int, int], RawFrame] = {}
        self._undecoded_bytes = 0

    def infer_unpaired(self, items: list[Item]) -> list[Item]:
        """Learn from paired responses; infer unpaired ones."""
        for index, item in enumerate(items):
            if isinstance(item, RawFrame):
                if not item.is_request and item.request is not None:
                    self.add_response(item, item.request)
            elif item.status is Status.UNPAIRED:
                items[index] = self.infer(item)
        return items

    def add_response(self, response: RawFrame, request: InFlightRequest) -> None:
        """Buffer a paired response; it is decoded only when an unpaired one must be inferred."""
        key, version = request.api_key, request.api_version
        if key == self._last_key and version == self._last_version:
            return
        if (key, version) in self._seen or (key, version) in self._undecoded:
            self._last_key, self._last_version = key, version
            return
        self._undecoded[key, version] = response
        self._undecoded_bytes += len(response.frame)
        if self._undecoded_bytes > MAX_UNDECODED_BYTES:
            self._learn()

    def _learn(self) -> None:
        """Decode the buffered responses, and remember the layouts of valid ones."""
        for (key, version), response in self._undecoded.items():
            if response.decode(self._limits).status is Status.OK:
                self._add_seen(key, version)
        self._undecoded = {}
        self._undecoded_bytes = 0
        self._last_key = self._last_version = -1

    def infer(self, row: Row) -> Row:
        """Infer a response if that is certain; otherwise name the candidates in the row's error."""
        self._learn()
        frame = (row.correlation_id or 0).to_bytes(4, "big", signed=True) + row.raw
        fits = self._fits(frame)
        certain_fits = [fit for fit in fits if fit.evidence >= MIN_EVIDENCE]
        if len(fits) > 1:
            certain_fits = [fit for fit in certain_fits if self._is_seen(fit.layout)]
        if len(certain_fits) != 1:
            error = f"{row.error}; candidates: {_listed(fits)}" if fits else row.error
            return row._replace(error=error)
        layout, message, _ = certain_fits[0]
        self._layouts[layout] = None
        others = [one for one in fits if one.layout is not layout]
        also = f"; its content also fits {_listed(others)}" if others else ""
        return row._replace(
            status=Status.INFERRED,
            error=f"{row.error}; inferred as {layout}{also}",
            api_key=layout.api_key,
            api_name=layout.api_name,
            api_version=self._version(layout),
            body_version=layout.last,
            message=message,
            raw=b"",
        )

    def _fits(self, frame: bytes) -> list[Fit]:
        if self._searches < MAX_SEARCHES and len(frame) <= MAX_BYTES:
            self._searches += 1
            tried = layouts(self._apis)
        else:
            tried = tuple(self._layouts)
        fits = (fit(frame, layout, self._limits, self._apis) for layout in tried)
        return [one for one in fits if one is not None]

    def _add_seen(self, api_key: int, api_version: int) -> None:
        self._seen.add((api_key, api_version))
        self._layouts.update(dict.fromkeys(layouts_of(api_key, api_version, self._apis)))

    def _is_seen(self, layout: Layout) -> bool:
        return layout in self._layouts

    def _version(self, layout: Layout) -> int | None:
        """Return the version, if the layout has only one, or only one of them was seen."""
        if layout.first == layout.last:
            return layout.first
        seen = [version for key, version in self._seen if layout.covers(key, version)]
        return seen[0] if len(seen) == 1 else None


class WalkResult(NamedTuple):
    """How far a stream was walked, frame by frame, and whether one frame was certain."""

    end: int
    certain: bool


def walk_responses(data: bytes, start: int, limits: Limits, apis: Apis = KAFKA_APIS) -> WalkResult:
    """Walk a stream without known requests up to the first certain response, which proves the walk.

    It goes from frame to frame by their sizes.
    """
    inference = Inference(limits, apis)
    while len(data) - start >= SIZE:
        size = int.from_bytes(data[start : start + SIZE], "big", signed=True)
        if not SIZE <= size <= min(len(data) - start - SIZE, MAX_BYTES):
            break
        frame = data[start + SIZE : start + SIZE + size]
        start += SIZE + size
        row = Row(0, 0, "response", size, Status.UNPAIRED, raw=frame[SIZE:])
        row = row._replace(correlation_id=int.from_bytes(frame[:SIZE], "big", signed=True))
        if inference.infer(row).status is Status.INFERRED:
            return WalkResult(start, True)
    return WalkResult(start, False)


def _listed(fits: list[Fit]) -> str:
    more = f" or {len(fits) - MAX_LISTED} others" if len(fits) > MAX_LISTED else ""
    return ", ".join(str(fit.layout) for fit in fits[:MAX_LISTED]) + more


# -- fitting


def fit(frame: bytes, layout: Layout, limits: Limits, apis: Apis = KAFKA_APIS) -> Fit | None:
    """Decode a frame (without its size) with a layout; None if it does not fit."""
    start = _body_of(frame, layout, apis)
    if start is None:
        return None
    reader = Reader(frame, start, limits=limits)
    try:
        message = apis.package.index.load(layout.message).decode_from(reader, layout.last)
        reader.finish()
        if message.encode(layout.last) != frame[start:]:
            return None
    except (WireError, IndexError, UnicodeDecodeError):
        return None
    evidence = _evidence(message, layout.last, apis.is_kafka)
    return None if evidence is None else Fit(layout, message, evidence)


def _body_of(frame: bytes, layout: Layout, apis: Apis) -> int | None:
    """Return where the body begins; None if the header does not fit."""
    if apis.package.own_response_header:
        key, version = layout.api_key, layout.last
        try:
            return decode_response_header(frame, key, version, package=apis.package).end
        except WireError:
            return None
    if layout.header_version == 0:
        return SIZE
    # brokers send no tagged fields in response headers
    return SIZE + 1 if frame[SIZE : SIZE + 1] == b"\0" else None


def _evidence(struct: Structure, version: int, is_kafka: bool) -> int | None:
    """Add up the evidence of a structure; None if a value is implausible."""
    if getattr(struct, "unknown_tags", None):
        return None
    evidence = 0
    for field in fields_at(type(struct), version):
        weight = _weigh(field, getattr(struct, field.attribute), version, is_kafka)
        if weight is None:
            return None
        evidence += weight
    return evidence


def _weigh(field: Field, value: Any, version: int, is_kafka: bool) -> int | None:
    if isinstance(value, list):
        weights = [_weigh(field, one, version, is_kafka) for one in value]
        return None if None in weights else sum(w or 0 for w in weights) + 2 * len(value)
    if isinstance(value, Structure):
        return _evidence(value, version, is_kafka)
    if isinstance(value, str):
        return len(value.encode()) if value.isprintable() else None
    if field.element == "records" and value:
        return _weigh_records(value)
    if isinstance(value, int) and is_kafka:
        is_error = field.element == "int16" and field.attribute.endswith("error_code")
        if is_error and value not in _CODES:
            return None
        if value < _MIN_VALUES.get(field.attribute, value):
            return None
    return 0


def _weigh_records(data: bytes) -> int | None:
    try:
        return sum(batch.size for batch in RecordBatches(data) if batch.crc_valid) or None
    except WireError:
        return None
