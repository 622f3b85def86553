"""Keys and values of records as JSON, for display."""

from __future__ import annotations

import json
from typing import Any


def form(data: bytes | None, *, redact: bool) -> Any:
    """Return bytes as JSON, text or hex, whichever fits; if redacted, their size and hash."""
    from kafkawire.capture.jsonl.records import value_text

    return json.loads(value_text(data, redact))


def header_form(name: str, data: bytes | None) -> Any:
    """Return a header as JSON: its key and value, then the bytes of a key that is not UTF-8."""
    from kafkawire.capture.jsonl.records import header_text

    return json.loads(header_text(name, data, False))


def header_name(name: str) -> str:
    """Return the key of a header for a line; the bytes of one that is not UTF-8 follow it."""
    from kafkawire.records.replaced_text import replaced_bytes

    raw = replaced_bytes(name)
    return name if raw is None else f"{name}(0x{raw.hex()})"


def key_bytes(name: str) -> dict[str, Any]:
    """Return the member of a header's JSON object that a key which is not UTF-8 has."""
    from kafkawire.records.replaced_text import replaced_bytes

    raw = replaced_bytes(name)
    return {} if raw is None else {"keyBytes": {"hex": raw.hex()}}
