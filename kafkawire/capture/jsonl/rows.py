"""Rows as JSON lines: what `kafkawire decode --format jsonl` prints.

Law: one row is one line of ASCII; JSON lines lose nothing, but what they are asked to hide.

    capture, packet, time, connection, client, broker | direction, API, ids, length, status, error |
    body | embedded, where there is any | records, where there are any
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple, final

from ...primitives.limits import DEFAULT_LIMITS, Limits, elements_within
from ...primitives.structure import Message
from ...protocol.embedded import PLACES, Carried, carried_bytes, payload_of
from ...protocol.header import response_header_version
from ...protocol.json_text import Template, template, to_json_text
from ...protocol.secrets import may_hold_secret, placeholder
from ..frames.apis import api
from ..frames.decoding import API_VERSIONS, InFlightRequest, RawFrame
from ..frames.serialised import LocatedItem
from ..rows import Row, Status
from .records import (
    Place,
    batch_body,
    counted,
    counted_place,
    in_words,
    opened,
    opened_place,
    places,
    plan,
    replaced,
    shown_value,
)
from .wire_layouts import program_of
from .writer import Program, Text

SECOND: Final = 1_000_000_000
MOST_KNOWN: Final = 1 << 12
"""Connections, or client ids, whose text is kept."""

MOST_ANSWERS: Final = 1 << 8
"""Answers whose text is kept."""

SHORT: Final = 1 << 12
"""Bytes of an answer, or of a payload, whose text is kept."""


@final
class Form:
    """What is known of a message's class at a version: how it is written, what it may hold."""

    def __init__(self, message: Message, version: int, secrets: bool, doubtful: bool) -> None:
        cls = type(message)
        self.template: Template = template(cls, version, secrets, doubtful)
        self.carries: bool = len(plan(cls, version)) > 0
        self.embeds: bool = cls.__name__ in PLACES


@final
class Head:
    """What the rows of an API's requests or responses at a version begin with, and the program of
    their bodies; None where they are to be opened. tagged: whether the header ends in tagged
    fields; plain_if_zero: an ApiVersions response with an error may be another version's.
    """

    def __init__(self, asked: InFlightRequest, is_request: bool, secrets: bool) -> None:
        key, version = asked.api_key, asked.api_version
        known = api(key)
        side = known.request if is_request else known.response
        direction = "request" if is_request else "response"
        self.program: Program | None = None
        self.tagged: bool = False
        self.plain_if_zero: bool = not is_request and key == API_VERSIONS
        self.text: str = (
            f',"direction":"{direction}","api_key":{key},"api_name":{text_or_null(known.name)},'
            f'"api_version":{version},"correlation_id":'
        )
        if side is None or not side.first <= version <= side.last:
            return
        cls = side.load()
        flexible = side.info.flexible is not None and version >= side.info.flexible
        if cls.__name__ not in PLACES:
            self.program = program_of(cls, version, flexible, secrets)
            self.tagged = not is_request and response_header_version(key, version) == 1


class Answer(NamedTuple):
    """What a row says from its status on, and whether all of it was decoded byte for byte."""

    text: str
    clean: bool


@final
class Lines:
    """Writes the rows of one capture.

    secrets: whether secrets are shown (see `protocol.secrets`). records: whether the content of
    records is, not only counts. redact: whether keys and values are reduced to size and hash.
    """

    def __init__(
        self, capture: str, secrets: bool = False, records: bool = False, redact: bool = False
    ) -> None:
        self.capture: str = encode_basestring_ascii(capture)
        self.secrets: bool = secrets
        self.records: bool = records
        self.redact: bool = redact
        self.clean: bool = True
        self.second: int = -1
        self.second_text: str = ""
        self.connection: int | None = -1
        self.client: str | None = None
        self.ends: str = ""
        self.forms: dict[tuple[type[Message], int, bool], Form] = {}
        self.heads: dict[int, Head] = {}
        place_text = opened_place if records else counted_place
        self.out: Text = Text(shown_value, place_text, batch_body, records)
        self.known_ends: dict[tuple[int | None, str | None], str] = {}
        self.client_ids: dict[str | None, str] = {}
        self.payloads: dict[tuple[Any, ...], str | None] = {}
        self.answers: dict[tuple[int, bytes], Answer] = {}
        self.start: str = f'{{"capture":{self.capture},"packet":'

    def text(self, told: list[LocatedItem], limits: Limits = DEFAULT_LIMITS) -> bytes:
        """Write the rows that these are when they are opened, with the ends of their lines; `clean`
        becomes false with the first one that is not decoded byte for byte.
        """
        return bytes(self.view(told, limits))

    def view(self, told: list[LocatedItem], limits: Limits = DEFAULT_LIMITS) -> memoryview:
        """Do so, and show what was written where it is: it has to be released before the next."""
        out = self.out
        out.truncate(0)
        for one in told:
            connection, client, broker, item = one.connection, one.client, one.broker, one.item
            if connection != self.connection or client is not self.client:
                self.connect(connection, client, broker)
            if isinstance(item, RawFrame):
                if self.put(item, limits) or self.put_answer(item):
                    continue
                row = item.open(limits)
                if row.status is Status.OK:  # so all nulls that were met may be there
                    out.allow()
                self.keep_answer(item, row)
            else:
                row = item
            if row.status is not Status.OK:
                self.clean = False
            out.write(self.line(connection, client, broker, row) + "\n")
        return out.view()

    def connect(self, connection: int | None, client: str | None, broker: str | None) -> None:
        """Write what rows of a connection have in common."""
        self.connection, self.client = connection, client
        known = self.known_ends.get((connection, client))
        if known is None:
            if len(self.known_ends) == MOST_KNOWN:
                self.known_ends.clear()
            known = self.known_ends[connection, client] = (
                f'"connection":{or_null(connection)},"client":{text_or_null(client)},'
                f'"broker":{text_or_null(broker)}'
            )
        self.ends = known

    def client_id(self, client_id: str | None) -> str:
        known = self.client_ids.get(client_id)
        if known is None:
            if len(self.client_ids) == MOST_KNOWN:
                self.client_ids.clear()
            known = self.client_ids[client_id] = text_or_null(client_id)
        return known

    def put(self, sealed: RawFrame, limits: Limits) -> bool:
        """Write the row of a frame straight from its bytes; False where it has to be opened."""
        asked = sealed.asked
        if asked is None or sealed.body < 0 or sealed.error or self.redact:
            return False
        head = self.head(asked, sealed.is_request)
        program = head.program
        if program is None:
            return False
        frame, at = sealed.frame, sealed.body
        if head.plain_if_zero and frame[at : at + 2] != b"\0\0":
            return False
        if head.tagged:
            if frame[at : at + 1] != b"\0":
                return False
            at += 1
        return self.out.row(
            self.start,
            sealed.packet,
            sealed.time_ns,
            self.ends,
            head.text,
            asked.correlation_id,
            self.client_id(asked.client_id),
            frame,
            at,
            program,
            elements_within(limits, len(frame)),
        )

    def head(self, asked: InFlightRequest, is_request: bool) -> Head:
        number = (asked.api_key << 16 | asked.api_version & 0xFFFF) << 1 | is_request
        head = self.heads.get(number)
        if head is None:
            head = self.heads[number] = Head(asked, is_request, self.secrets)
        return head

    def put_answer(self, sealed: RawFrame) -> bool:
        """Write the row of an ApiVersions response such as was opened before: brokers give all
        clients the same, which is long, and ends in tagged fields.
        """
        asked = sealed.asked
        if asked is None or not _is_answer(sealed, asked):
            return False
        answer = self.answers.get((asked.api_version, sealed.frame[sealed.body :]))
        if answer is None:
            return False
        if not answer.clean:
            self.clean = False
        self.out.write(
            f"{self.start}{sealed.packet},"
            f'"time":{self.time_text(sealed.time_ns)},{self.ends}'
            f"{self.head(asked, False).text}{asked.correlation_id},"
            f'"client_id":{self.client_id(asked.client_id)},"length":{len(sealed.frame)},'
            f"{answer.text}}}\n"
        )
        return True

    def keep_answer(self, sealed: RawFrame, row: Row) -> None:
        """Keep what was said of an ApiVersions response."""
        asked = sealed.asked
        if asked is None or not _is_answer(sealed, asked) or len(sealed.frame) > SHORT:
            return
        if len(self.answers) == MOST_ANSWERS:
            self.answers.clear()
        known = Answer(self.outcome(row), row.status is Status.OK)
        self.answers[asked.api_version, sealed.frame[sealed.body :]] = known

    def line(self, connection: int | None, client: str | None, broker: str | None, row: Row) -> str:
        """Write a row, without the end of the line."""
        if connection != self.connection or client is not self.client:
            self.connect(connection, client, broker)
        # one look at the tuple instead of one for each field
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
            f'{self.ends},"direction":"{direction}","api_key":{or_null(api_key)},'
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
        said = encode_basestring_ascii(row.error) if row.error else "null"
        return f'"status":"{row.status}","error":{said},{inner}'

    def time_text(self, time_ns: int) -> str:
        """Write a capture time as ISO 8601 in UTC with nanoseconds; null where there is none."""
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
        held = places(message, version) if form.carries else []
        if self.redact and held:
            text = f'"body":{self.redacted_text(message, version, held, doubtful)}'
        else:
            text = f'"body":{form.template.write(message)}'
        if form.embeds:
            parts = [
                f'"{carried.path}":{inner}'
                for carried in carried_bytes(message, version)
                if (inner := self.payload_text(cls, carried)) is not None
            ]
            if parts:
                text += f',"embedded":{{{",".join(parts)}}}'
        if held:
            if self.records:
                shown = [opened(place, self.redact, self.secrets) for place in held]
            else:
                shown = [counted(place) for place in held]
            text += f',"records":[{",".join(shown)}]'
        return text

    def payload_text(self, cls: type[Message], carried: Carried) -> str | None:
        """Write what a field carries; members of a group carry the same again and again."""
        said = (cls, carried.attribute, carried.protocol_type, carried.name, carried.value)
        known = self.payloads.get(said, "")
        if known != "":
            return known
        payload = payload_of(carried)
        made = None
        if payload is not None:
            shown = payload.to_json(secrets=self.secrets)
            made = json.dumps(shown, separators=(",", ":"), allow_nan=False)
        if len(carried.value) <= SHORT:
            if len(self.payloads) == MOST_KNOWN:
                self.payloads.clear()
            self.payloads[said] = made
        return made

    def redacted_text(
        self, message: Message, version: int, held: list[Place], doubtful: bool
    ) -> str:
        """Write a body with a few words in the place of its records."""
        text = to_json_text(message, version, secrets=self.secrets, doubtful=doubtful)
        made: Any = replaced(json.loads(text), map(in_words, held))
        return json.dumps(made, separators=(",", ":"), allow_nan=False)


def _is_answer(sealed: RawFrame, asked: InFlightRequest) -> bool:
    """Whether it is a response to ApiVersions whose row says what the request asked for."""
    return asked.api_key == API_VERSIONS and not sealed.is_request and not sealed.error


def raw_text(row: Row, secrets: bool, redact: bool) -> str:
    """Write the bytes of a body that was not decoded, in hex; hidden where they may be secret."""
    raw = row.raw
    if raw and (redact or (not secrets and raw_is_secret(row))):
        return placeholder(len(raw), "byte")
    return raw.hex()


def raw_is_secret(row: Row) -> bool:
    """Whether the bytes of a row that was not decoded may hold a secret."""
    key, version = row.api_key, row.api_version
    if key is None or version is None:
        return True
    known = api(key)
    side = known.request if row.direction == "request" else known.response
    is_known = side is not None and side.first <= version <= side.last
    return may_hold_secret(known.name, is_known, row.raw)


def or_null(value: int | None) -> str:
    return "null" if value is None else str(value)


def text_or_null(value: str | None) -> str:
    return "null" if value is None else encode_basestring_ascii(value)
