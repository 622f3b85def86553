"""Makes of client, on one footing; those that need no outside tool are in `MAKES`."""

from __future__ import annotations

from typing import Final

from .aio_kafka import AioKafka
from .footing import Make, Member, Part, Reader, Sasl, Seen, Steered, until
from .kafka_python import KafkaPython
from .librdkafka import Confluent

__all__ = ["MAKES", "Make", "Member", "Part", "Reader", "Sasl", "Seen", "Steered", "until"]
MAKES: Final[tuple[Make, ...]] = (Confluent(), KafkaPython(), AioKafka())
"""Clients of other makes in Python."""
