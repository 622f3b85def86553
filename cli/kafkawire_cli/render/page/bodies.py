"""Makes the JSON form of an exchange for the page, with the decoded bodies of its messages.

Secrets are hidden as in `decode`; long bodies and names are shortened, and say so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from kafkawire.display import printable, time_text
from kafkawire.protocol.error_code import ErrorCode

from ...input.inputs import Entry
from ..messages import View, body

if TYPE_CHECKING:
    from kafkawire.capture.exchanges.exchanges import Exchange
    from kafkawire.capture.rows import Row
    from kafkawire.capture.tables.extraction.entities import Entities
    from kafkawire.reports.reading import Reading

MAX_FRAME: Final = 1 << 20
"""Bytes of a message whose body is shown."""

MAX_BODY: Final = 8_000
"""Characters of a body that are shown."""

MAX_TEXT: Final = 200
"""Characters of a name or an error that are shown."""

MAX_LISTED: Final = 12
"""Topics, and errors, of an exchange that are named."""


class Bodies:
    """Renders exchanges. view: what is shown of messages."""

    def __init__(self, captures: Reading, view: View) -> None:
        self._captures = captures
        self._view = view

    def exchange(self, exchange: Exchange, entities: Entities, latency: int) -> dict[str, Any]:
        """Return the JSON form of an exchange."""
        row = exchange.main_row
        return {
            "time": time_text(row.time_ns),
            "latency_ns": latency,
            "api": row.api_name or "unknown",
            "version": row.api_version,
            "client": shown_text(row.client_id or exchange.client.rpartition(":")[0]),
            "address": exchange.client,
            "broker": exchange.broker,
            "topics": [
                shown_text(topic.name or topic.id_text or "")
                for topic in list(entities.topics.values())[:MAX_LISTED]
            ],
            "errors": [ErrorCode.name_of(code) for code in list(entities.error_codes)[:MAX_LISTED]],
            "request": self._message(exchange, exchange.request),
            "response": self._message(exchange, exchange.response),
        }

    def _message(self, exchange: Exchange, row: Row | None) -> dict[str, Any] | None:
        if row is None:
            return None
        file, packet = self._captures.context.traffic.place(row.packet)
        return {
            "file": shown_text(file),
            "packet": packet,
            "bytes": row.length + 4,
            "status": row.status.value,
            "error": shown_text(row.error),
            "body": self._body(Entry(file, None, exchange.client, exchange.broker, row)),
        }

    def _body(self, entry: Entry) -> str:
        if entry.row.length > MAX_FRAME:
            return f"(bodies above {MAX_FRAME:,} bytes are not shown)"
        text = json.dumps(body(entry, self._view), indent=1, ensure_ascii=False)
        text = "\n".join(map(printable, text.split("\n")))
        if len(text) <= MAX_BODY:
            return text
        return f"{text[:MAX_BODY]}\n... ({len(text):,} characters)"


def shown_text(text: str) -> str:
    """Escape untrusted text, and shorten it."""
    shown = printable(text[: MAX_TEXT + 1])
    return shown if len(shown) <= MAX_TEXT else f"{shown[:MAX_TEXT]}…"
