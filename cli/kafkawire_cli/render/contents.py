"""Keys and values of records as JSON, for a person."""

from __future__ import annotations

import json
from typing import Any


def form(data: bytes | None, *, redact: bool) -> Any:
    """Show bytes as what they are: JSON, text, or hex; or, redacted, as their size and hash."""
    from kafkawire.capture.jsonl.records import value_text

    return json.loads(value_text(data, redact))
