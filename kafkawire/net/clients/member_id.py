"""Makes the ids of members that name themselves (KIP-848, KIP-932)."""

from __future__ import annotations

import secrets
import uuid
from base64 import urlsafe_b64encode
from typing import Final

UUID_BYTES: Final = 16


def new_member_id() -> str:
    """Return a random UUID as Kafka writes it: base64url, without a leading dash."""
    while True:
        random = uuid.UUID(bytes=secrets.token_bytes(UUID_BYTES), version=4)
        text = urlsafe_b64encode(random.bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
