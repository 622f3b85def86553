"""What is not to be read in the JSON of a message, replaced by its length: credentials.

Law: what proves who somebody is leaves this package only where the caller asks for it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ..protocol.json_text import CREDENTIALS


def redacted(value: Any, hidden: Container[str] = CREDENTIALS) -> Any:
    """Replace texts of hidden fields by their length; everything else is kept as it is."""
    if isinstance(value, dict):
        return {
            key: f"(redacted, {len(inner)} characters)"
            if key in hidden and isinstance(inner, str)
            else redacted(inner, hidden)
            for key, inner in value.items()
        }
    return [redacted(inner, hidden) for inner in value] if isinstance(value, list) else value
