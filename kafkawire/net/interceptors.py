"""Calls the interceptors of a client's user (KIP-42): functions that see, or change, its records.

They are called in order, each with the result of the one before. One that raises an exception
is logged and passed over: it never fails a call of the client.

    send ─▶ on_send ─▶ serializers ─▶ broker ─▶ on_acknowledgement
    poll ◀─ on_consume ◀─ deserializers ◀─ broker       commits ─▶ on_commit
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from ..client.consumer import ConsumerRecord, OffsetAndMetadata, TopicPartition
from ..client.producer.serializing import ProducerRecord
from ..client.serialization import KeyT, ValueT
from .producer_session import RecordMetadata

T = TypeVar("T")

OnSend: TypeAlias = Callable[[ProducerRecord[KeyT, ValueT]], ProducerRecord[KeyT, ValueT]]
"""record to send -> record to send"""
OnAcknowledgement: TypeAlias = Callable[
    [ProducerRecord[KeyT, ValueT], RecordMetadata | None, BaseException | None], object
]
"""(record, its position, or why it was not delivered)"""
OnConsume: TypeAlias = Callable[[ConsumerRecord[KeyT, ValueT]], ConsumerRecord[KeyT, ValueT]]
"""record that a poll is about to return -> record that it returns"""
OnCommit: TypeAlias = Callable[[Mapping[TopicPartition, OffsetAndMetadata]], object]
"""(committed offsets), after each commit that succeeded"""


def intercepted(functions: Sequence[Callable[[T], T]], value: T, log: logging.Logger) -> T:
    """Pass a value through interceptors; one that fails leaves it as it is."""
    for each in functions:
        try:
            result = each(value)
        except Exception as error:  # noqa: BLE001 - of the user's function
            _log(log, each, "", error)
            continue
        if isinstance(result, type(value)):
            value = result
        else:
            _log(log, each, f": it returned {type(result).__name__}")
    return value


def notify(functions: Sequence[Callable[..., object]], log: logging.Logger, *values: Any) -> None:
    """Call interceptors whose result does not count."""
    for each in functions:
        try:
            each(*values)
        except Exception as error:  # noqa: BLE001 - of the user's function
            _log(log, each, "", error)


def _log(
    log: logging.Logger,
    function: Callable[..., object],
    reason: str,
    error: Exception | None = None,
) -> None:
    name = getattr(function, "__qualname__", type(function).__name__)
    log.warning("interceptor %s failed%s", name, reason, exc_info=error)
