"""Writes rows as JSON lines: the output of `kafkawire decode --format jsonl`.

A row is one line of ASCII; JSON lines omit nothing but what redaction hides.

    capture, packet, time, connection, client, broker | direction, API, ids, length, status, error |
    errors, if any | body | embedded, if any | records, if any
"""

# over 300 lines: one native class with its caches, hot

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple, final

from mypy_extensions import i64

from ...primitives.limits import DEFAULT_LIMITS, FREE_OBJECTS, Limits, elements_within
from ...primitives.structure import Message, Structure
from ...protocol.embedded import carried_bytes
from ...protocol.error_code import ErrorCode
from ...protocol.json_text import to_json_text
from ..frames.apis import Apis
from ..frames.decoding import InFlightRequest, LocatedItem, RawFrame
from ..frames.serialised import SerialisedReader
from ..rows import CLEAN, Row, Status
from .formats import ErrorSteps, Form, Head, raw_text
from .payload_texts import PayloadTexts
from .records import DecodedText, batch_body, counts_of, records_json, records_of, shown_value
from .records_fields import (
    RecordsField,
    counts_json,
    records_fields,
    replace_records,
    summaries,
)
from .writer import Text

SECOND: Final = 1_000_000_000
MAX_CACHED: Final = 1 << 12
"""Connections, or client ids, whose text is cached."""

MAX_CACHED_RESPONSES: Final = 1 << 8
"""ApiVersions responses whose text is cached."""

MAX_CACHED_BYTES: Final = 1 << 12
"""The largest response whose text is cached."""


MAX_SPARE: Final = 8
"""Buffers that are kept for the next texts, while views of others exist."""

SPARE_BYTES: Final = 1 << 21
"""The largest text whose buffer is kept."""


class CachedResponse(NamedTuple):
    """The text of a row from its status on, and whether it was decoded byte for byte."""

    text: str
    clean: bool


@final
class Lines:
    """Writes the rows of one capture.

    secrets: whether secrets are shown (see `protocol.secrets`). records: whether records are
    written, not only their counts. redact: whether keys and values are reduced to size and hash.
    decoded: writes their keys and values a second time, decoded.
    """

    def __init__(
        self,
        capture: str,
        secrets: bool = False,
        records: bool = False,
        redact: bool = False,
        decoded: DecodedText | None = None,
    ) -> None:
        self.capture: str = encode_basestring_ascii(capture)
        self.secrets: bool = secrets
        self.records: bool = records
        self.redact: bool = redact
        self.decoded: DecodedText | None = decoded
        self.quick: bool = not redact and decoded is None  # C writes records without Python
        self.clean: bool = True
        self.second: int = -1
        self.second_text: str = ""
        self.connection: int | None = -1
        self.client: str | None = None
        self.endpoints: str = ""
        self.forms: dict[tuple[type[Message], int, bool], Form] = {}
        self.heads: dict[int, Head] = {}
        field_text = records_of if records else counts_of
        self.payloads: PayloadTexts = PayloadTexts(secrets)
        payload_text: Any = self.payloads.text
        self.make_text: Callable[[], Text] = partial(
            Text, shown_value, field_text, batch_body, records, payload_text
        )
        self.out: Text = self.make_text()
        self.spare: list[Text] = []
        self.endpoint_texts: dict[tuple[int | None, str | None], str] = {}
        self.client_ids: dict[str | None, str] = {}
        self.error_texts: dict[tuple[int, ...], str] = {}
        self.cached_responses: dict[tuple[int, bytes], CachedResponse] = {}
        self.few_elements: int = 0  # of bodies of up to FREE_OBJECTS bytes
        self.start: str = f'{{"capture":{self.capture},"packet":'

    def text(self, items: list[LocatedItem], limits: Limits = DEFAULT_LIMITS) -> bytes:
        """Write items as lines; `clean` becomes false if a row is not decoded byte for byte."""
        return bytes(self.view(items, limits))

    def view(self, items: list[LocatedItem], limits: Limits = DEFAULT_LIMITS) -> memoryview:
        """Do as `text` without a copy; while the view exists, other texts have other buffers."""
        out = self.empty(limits)
        for entry in items:
            if entry.connection != self.connection or entry.client is not self.client:
                self.connect(entry.connection, entry.client, entry.broker)
            item = entry.item
            if not isinstance(item, RawFrame) or not self.put(item, limits):
                self.put_decoded(entry, limits)
        return out.view()

    def view_serialised(
        self, items: SerialisedReader, limits: Limits = DEFAULT_LIMITS
    ) -> memoryview:
        """Do as `view` with items that are only created if they have to be decoded."""
        out = self.empty(limits)
        while items.next():
            if items.other is None:
                if items.connection != self.connection or items.client is not self.client:
                    self.connect(items.connection, items.client, items.broker)
                if self.put_serialised(items, limits):
                    continue
            self.put_decoded(items.item(), limits)
        return out.view()

    def empty(self, limits: Limits) -> Text:
        """Return an empty buffer for the next text."""
        if self.out.is_viewed():
            self.use_another()
        out = self.out
        out.truncate(0)
        self.few_elements = elements_within(limits, 0)
        return out

    def put_decoded(self, entry: LocatedItem, limits: Limits) -> None:
        """Write an item whose body has to be decoded, or whose text is cached."""
        item = entry.item
        if isinstance(item, RawFrame):
            if self.put_cached(item):
                return
            row = item.decode(limits)
            self.cache_response(item, row)
        else:
            row = item
        if row.status not in CLEAN:
            self.clean = False
        self.out.write(self.line(entry.connection, entry.client, entry.broker, row) + "\n")

    def use_another(self) -> None:
        """Write the next texts into a buffer without views."""
        viewed = self.out
        for index, spare in enumerate(self.spare):
            if not spare.is_viewed():
                self.out, self.spare[index] = spare, viewed
                return
        if len(self.spare) < MAX_SPARE and len(viewed) <= SPARE_BYTES:
            self.spare.append(viewed)
        self.out = self.make_text()

    def connect(self, connection: int | None, client: str | None, broker: str | None) -> None:
        """Write the common text of the rows of a connection."""
        self.connection, self.client = connection, client
        cached = self.endpoint_texts.get((connection, client))
        if cached is None:
            if len(self.endpoint_texts) == MAX_CACHED:
                self.endpoint_texts.clear()
            cached = self.endpoint_texts[connection, client] = (
                f'"connection":{or_null(connection)},"client":{text_or_null(client)},'
                f'"broker":{text_or_null(broker)}'
            )
        self.endpoints = cached

    def client_id(self, client_id: str | None) -> str:
        cached = self.client_ids.get(client_id)
        if cached is None:
            if len(self.client_ids) == MAX_CACHED:
                self.client_ids.clear()
            cached = self.client_ids[client_id] = text_or_null(client_id)
        return cached

    def put(self, raw_frame: RawFrame, limits: Limits) -> bool:
        """Write the row of a frame directly from its bytes; False if its body has to be decoded."""
        request = raw_frame.request
        if request is None or raw_frame.body < 0 or raw_frame.error or not self.quick:
            return False
        return self.put_body(
            self.head(request.api_key, request.api_version, raw_frame.is_request, request.apis),
            raw_frame.packet,
            raw_frame.time_ns,
            request.correlation_id,
            request.client_id,
            raw_frame.frame,
            0,
            raw_frame.body,
            len(raw_frame.frame),
            limits,
        )

    def put_serialised(self, items: SerialisedReader, limits: Limits) -> bool:
        """Do as `put` with the current item of a reader."""
        if items.body < 0 or items.error or not self.quick:
            return False
        return self.put_body(
            self.head(items.api_key, items.api_version, items.is_request, items.apis),
            items.packet,
            items.time_ns,
            items.correlation_id,
            items.client_id,
            items.frames,
            items.start,
            items.start + items.body,
            items.end,
            limits,
        )

    def put_body(  # noqa: PLR0913 - as `Text.row` takes them
        self,
        head: Head,
        packet: int,
        time_ns: int,
        correlation_id: int,
        client_id: str | None,
        data: bytes,
        start: i64,
        position: i64,
        end: i64,
        limits: Limits,
    ) -> bool:
        """Write the row of the frame `data[start:end]`, whose body begins at `position`."""
        program = head.program
        if program is None:
            return False
        if head.plain_if_zero and (end - position < 2 or data[position : position + 2] != b"\0\0"):
            return False
        if head.tagged:
            if position >= end or data[position] != 0:
                return False
            position += 1
        size = end - start
        return self.out.row(
            self.start,
            packet,
            time_ns,
            self.endpoints,
            head.text,
            correlation_id,
            self.client_id(client_id),
            data,
            start,
            position,
            end,
            program,
            self.few_elements if size <= FREE_OBJECTS else elements_within(limits, size),
        )

    def head(self, api_key: int, api_version: int, is_request: bool, apis: Apis) -> Head:
        number = (api_key << 16 | api_version & 0xFFFF) << 1 | is_request
        head = self.heads.get(number)
        if head is None:
            head = Head(api_key, api_version, is_request, apis, self.secrets)
            self.heads[number] = head
        return head

    def put_cached(self, raw_frame: RawFrame) -> bool:
        """Write the row of an ApiVersions response from the cache.

        Brokers send all clients the same long response, which ends in tagged fields.
        """
        request = raw_frame.request
        if request is None or not _is_cacheable(raw_frame, request):
            return False
        cached = self.cached_responses.get((request.api_version, raw_frame.frame[raw_frame.body :]))
        if cached is None:
            return False
        if not cached.clean:
            self.clean = False
        head = self.head(request.api_key, request.api_version, False, request.apis)
        self.out.write(
            f"{self.start}{raw_frame.packet},"
            f'"time":{self.time_text(raw_frame.time_ns)},{self.endpoints}'
            f"{head.text}{request.correlation_id},"
            f'"client_id":{self.client_id(request.client_id)},"length":{len(raw_frame.frame)},'
            f"{cached.text}}}\n"
        )
        return True

    def cache_response(self, raw_frame: RawFrame, row: Row) -> None:
        """Cache the text of an ApiVersions response."""
        request = raw_frame.request
        if (
            request is None
            or not _is_cacheable(raw_frame, request)
            or len(raw_frame.frame) > MAX_CACHED_BYTES
        ):
            return
        if len(self.cached_responses) == MAX_CACHED_RESPONSES:
            self.cached_responses.clear()
        cached = CachedResponse(self.outcome(row), row.status is Status.OK)
        self.cached_responses[request.api_version, raw_frame.frame[raw_frame.body :]] = cached

    def line(self, connection: int | None, client: str | None, broker: str | None, row: Row) -> str:
        """Write a row, without the end of the line."""
        if connection != self.connection or client is not self.client:
            self.connect(connection, client, broker)
        # unpacking the tuple is faster than reading its fields
        (
            packet,
            time_ns,
            direction,
            length,
            _,
            _,
            api_key,
            api_name,
            api_version,
            correlation_id,
            client_id,
            _,
            _,
            _,
            _,
            _,
        ) = row
        return (
            f'{{"capture":{self.capture},"packet":{packet},"time":{self.time_text(time_ns)},'
            f'{self.endpoints},"direction":"{direction}","api_key":{or_null(api_key)},'
            f'"api_name":{text_or_null(api_name)},"api_version":{or_null(api_version)},'
            f'"correlation_id":{or_null(correlation_id)},"client_id":{text_or_null(client_id)},'
            f'"length":{length},{self.outcome(row)}}}'
        )

    def outcome(self, row: Row) -> str:
        """Write a row from its status on."""
        if row.message is None or row.body_version is None:
            inner = f'"body":"{raw_text(row, self.secrets, self.redact)}"'
        else:
            doubtful = row.status is not Status.OK
            inner = self.message_text(row.message, row.body_version, doubtful)
        error = encode_basestring_ascii(row.error) if row.error else "null"
        return f'"status":"{row.status}","error":{error},{inner}'

    def time_text(self, time_ns: int) -> str:
        """Format a capture time as ISO 8601 in UTC with nanoseconds; null if unknown."""
        if time_ns <= 0:  # frames without packets, and packets without a time
            return "null"
        second = time_ns // SECOND
        if second != self.second:
            self.second = second
            self.second_text = datetime.fromtimestamp(second, UTC).strftime('"%Y-%m-%dT%H:%M:%S.')
        return f'{self.second_text}{str(time_ns - second * SECOND).zfill(9)}Z"'

    def message_text(self, message: Message, version: int, doubtful: bool = False) -> str:
        """Write body, embedded and records."""
        cls = type(message)
        form = self.forms.get((cls, version, doubtful))
        if form is None:
            form = Form(message, version, self.secrets, doubtful)
            self.forms[cls, version, doubtful] = form
        fields = records_fields(message, version) if form.carries else []
        if self.redact and fields:
            text = f'"body":{self.redacted_text(message, version, fields, doubtful)}'
        else:
            text = f'"body":{form.template.write(message)}'
        if form.errors:
            codes: dict[int, None] = {}
            add_error_codes(message, form.errors, codes)
            if codes:
                text = f'"errors":{self.errors_text(tuple(codes))},{text}'
        if form.embeds:
            parts = [
                f'"{carried.path}":{inner}'
                for carried in carried_bytes(message, version)
                if (inner := self.payloads.text_of(cls, carried)) is not None
            ]
            if parts:
                text += f',"embedded":{{{",".join(parts)}}}'
        if fields:
            if self.records:
                shown = [
                    records_json(field, self.redact, self.secrets, self.decoded) for field in fields
                ]
            else:
                shown = [counts_json(field) for field in fields]
            text += f',"records":[{",".join(shown)}]'
        return text

    def errors_text(self, codes: tuple[int, ...]) -> str:
        """Write the names of error codes as a list; cached."""
        cached = self.error_texts.get(codes)
        if cached is None:
            cached = json.dumps([ErrorCode.name_of(code) for code in codes], separators=(",", ":"))
            if len(self.error_texts) == MAX_CACHED:
                self.error_texts.clear()
            self.error_texts[codes] = cached
        return cached

    def redacted_text(
        self, message: Message, version: int, fields: list[RecordsField], doubtful: bool
    ) -> str:
        """Write a body with summaries instead of its records."""
        text = to_json_text(message, version, secrets=self.secrets, doubtful=doubtful)
        value: Any = replace_records(json.loads(text), type(message), version, summaries(fields))
        return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _is_cacheable(raw_frame: RawFrame, request: InFlightRequest) -> bool:
    """Whether it is a valid ApiVersions response, whose row is then cached."""
    key = request.apis.api_versions
    return request.api_key == key and not raw_frame.is_request and not raw_frame.error


def add_error_codes(struct: Structure, steps: ErrorSteps, codes: dict[int, None]) -> None:
    """Add the error codes other than 0 in a message, in its order."""
    for step in steps:
        value = getattr(struct, step.attribute)
        if not value:
            continue
        if step.use is not None:
            for code in value if isinstance(value, list) else [value]:
                if code:
                    codes[code] = None
        elif isinstance(value, list):
            for one in value:
                add_error_codes(one, step.inner, codes)
        else:
            add_error_codes(value, step.inner, codes)


def or_null(value: int | None) -> str:
    """Write a number, or null."""
    return "null" if value is None else str(value)


def text_or_null(value: str | None) -> str:
    """Write a JSON string, or null."""
    return "null" if value is None else encode_basestring_ascii(value)
