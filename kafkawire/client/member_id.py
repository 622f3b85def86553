"""Makes the ids of members that name themselves (KIP-848, KIP-932)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from ..protocol.json_form import uuid_text
from .network.backoff import Rng

UUID_BYTES: Final = 16
FIRST_BYTES: Final = (*range(0xF8), *range(0xFC, 0x100))
"""The first bytes of ids whose text does not begin with a dash, which command lines take for an
option; Java's client has none of these either."""


def new_member_id(rng: Rng) -> str:
    """Return a random UUID (version 4) as Kafka writes it. rng: numbers in [0, 1)."""
    first = FIRST_BYTES[int(rng() * len(FIRST_BYTES))]
    others = (int(rng() * 256) for _ in range(1, UUID_BYTES))
    return uuid_text(UUID(bytes=bytes([first, *others]), version=4).bytes)
