"""Rows as JSON lines: what `kafkawire decode --format jsonl` prints.

Law: one row is one line of ASCII; JSON lines lose nothing, but what they are asked to hide.

    capture, packet, time, connection, client, broker | direction, API, ids, length, status, error |
    body | embedded, where there is any | records, where there are any
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii
from typing import Any, Final, final

from ..primitives.limits import DEFAULT_LIMITS, Limits
from ..primitives.structure import Message
from ..protocol.embedded import PLACES, embedded_payloads
from ..protocol.json_form import to_json
from ..protocol.json_text import Template, template
from .parcels import Told
from .reading import Sealed
from .record_text import Place, counted, in_words, opened, places, plan, replaced
from .redaction import redacted
from .rows import Row, Status

SECOND: Final = 1_000_000_000
SECRET_API: Final = "SaslAuthenticate"


@final
class Form:
    """What is known of a message's class at a version: how it is written, what it may hold."""

    def __init__(self, message: Message, version: int, secrets: bool) -> None:
        cls = type(message)
        self.template: Template = template(cls, version, secrets)
        self.carries: bool = len(plan(cls, version)) > 0
        self.embeds: bool = cls.__name__ in PLACES


@final
class Lines:
    """Writes the rows of one capture.

    secrets: whether SASL tokens and passwords are shown. records: whether the content of records
    is, not only counts. redact: whether keys and values are reduced to size and hash.
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
        self.forms: dict[tuple[type[Message], int], Form] = {}

    def text(self, told: list[Told], limits: Limits = DEFAULT_LIMITS) -> str:
        """Write the rows that these are when they are opened, with the ends of their lines; `clean`
        becomes false with the first one that is not decoded byte for byte.
        """
        lines: list[str] = []
        for one in told:
            connection, client, broker, item = one
            row = item.open(limits) if isinstance(item, Sealed) else item
            if row.status is not Status.OK:
                self.clean = False
            lines.append(self.line(connection, client, broker, row))
        lines.append("")
        return "\n".join(lines)

    def line(self, connection: int | None, client: str | None, broker: str | None, row: Row) -> str:
        """Write a row, without the end of the line."""
        if connection != self.connection or client is not self.client:
            self.connection, self.client = connection, client
            self.ends = (
                f'"connection":{or_null(connection)},"client":{text_or_null(client)},'
                f'"broker":{text_or_null(broker)}'
            )
        # one look at the tuple instead of one for each field
        (
            packet,
            time_ns,
            direction,
            length,
            status,
            error,
            api_key,
            api_name,
            api_version,
            correlation_id,
            client_id,
            body_version,
            message,
            _,
            _,
            _,
        ) = row
        if message is None or body_version is None:
            inner = f'"body":"{raw_text(row, self.secrets, self.redact)}"'
        else:
            inner = self.message_text(message, body_version)
        said = encode_basestring_ascii(error) if error else "null"
        return (
            f'{{"capture":{self.capture},"packet":{packet},"time":{self.time_text(time_ns)},'
            f'{self.ends},"direction":"{direction}","api_key":{or_null(api_key)},'
            f'"api_name":{text_or_null(api_name)},"api_version":{or_null(api_version)},'
            f'"correlation_id":{or_null(correlation_id)},"client_id":{text_or_null(client_id)},'
            f'"length":{length},"status":"{status}","error":{said},{inner}}}'
        )

    def time_text(self, time_ns: int) -> str:
        """Write a capture time as ISO 8601 in UTC with nanoseconds; null where there is none."""
        if time_ns <= 0:  # frames without packets, and packets without a time
            return "null"
        second = time_ns // SECOND
        if second != self.second:
            self.second = second
            self.second_text = datetime.fromtimestamp(second, UTC).strftime('"%Y-%m-%dT%H:%M:%S.')
        return f'{self.second_text}{str(time_ns - second * SECOND).zfill(9)}Z"'

    def message_text(self, message: Message, version: int) -> str:
        """Write body, embedded and records."""
        cls = type(message)
        form = self.forms.get((cls, version))
        if form is None:
            form = self.forms[cls, version] = Form(message, version, self.secrets)
        held = places(message, version) if form.carries else []
        if self.redact and held:
            text = f'"body":{self.redacted_text(message, version, held)}'
        else:
            text = f'"body":{form.template.write(message)}'
        if form.embeds:
            found = embedded_payloads(message, version)
            if found:
                made = {payload.path: payload.to_json() for payload in found}
                text += f',"embedded":{json.dumps(made, separators=(",", ":"), allow_nan=False)}'
        if held:
            if self.records:
                shown = [opened(place, self.redact) for place in held]
            else:
                shown = [counted(place) for place in held]
            text += f',"records":[{",".join(shown)}]'
        return text

    def redacted_text(self, message: Message, version: int, held: list[Place]) -> str:
        """Write a body with a few words in the place of its records."""
        made: Any = replaced(to_json(message, version), map(in_words, held))
        made = made if self.secrets else redacted(made)
        return json.dumps(made, separators=(",", ":"), allow_nan=False)


def raw_text(row: Row, secrets: bool, redact: bool) -> str:
    """Write the bytes of a body that was not decoded, in hex; hidden where they may be secret."""
    raw = row.raw
    secret = row.status is Status.SASL_TOKEN or row.api_name == SECRET_API
    if raw and (redact or (secret and not secrets)):
        return f"(redacted, {len(raw)} bytes)"
    return raw.hex()


def or_null(value: int | None) -> str:
    return "null" if value is None else str(value)


def text_or_null(value: str | None) -> str:
    return "null" if value is None else encode_basestring_ascii(value)
