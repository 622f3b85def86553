"""The client implementations, behind one interface."""

from __future__ import annotations

from typing import Final

from .aio_kafka import AioKafka
from .interface import (
    Consume,
    ControllableReader,
    Implementation,
    Member,
    Reader,
    Sasl,
    SeenRecord,
    until,
)
from .kafka_python import KafkaPython
from .librdkafka import Confluent

__all__ = [
    "IMPLEMENTATIONS",
    "Implementation",
    "Member",
    "Consume",
    "Reader",
    "Sasl",
    "SeenRecord",
    "ControllableReader",
    "until",
]
IMPLEMENTATIONS: Final[tuple[Implementation, ...]] = (Confluent(), KafkaPython(), AioKafka())
"""Other clients in Python."""
