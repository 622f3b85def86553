"""Keys and values of records as JSON, for display."""

from __future__ import annotations

import json
from typing import Any


def form(data: bytes | None, *, redact: bool) -> Any:
    """Return bytes as JSON, text or hex, whichever fits; if redacted, their size and hash."""
    from kafkawire.capture.jsonl.records import value_text

    return json.loads(value_text(data, redact))
