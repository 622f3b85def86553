"""Checks the events of a share consumer's user, before anything changes.

As for a consumer: an invalid event raises at the call and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ...errors import InvalidValue
from ..arguments import INT32, INT64, seconds, topic_names, whole
from ..consumer.checking import partition_of
from ..consumer.events import Close, Poll
from . import events
from .acknowledgements import AcknowledgeType


def type_of(value: object) -> AcknowledgeType:
    """Return the type of an acknowledgement. Raises InvalidValue."""
    if not isinstance(value, AcknowledgeType):
        raise InvalidValue(f"expected an AcknowledgeType, got {value!r}", "type")
    return value


def _subscribe(event: events.Subscribe) -> events.Subscribe:
    return events.Subscribe(topic_names(event.topics))


def _poll(event: Poll) -> Poll:
    if event.max_records is not None:
        whole(event.max_records, "max_records", 1, INT32)
    return event


def _acknowledge(event: events.Acknowledge) -> events.Acknowledge:
    offset = whole(event.offset, "offset", 0, INT64)
    return events.Acknowledge(partition_of(event.partition), offset, type_of(event.type))


def _with_timeout(event: events.Commit | Close) -> events.Commit | Close:
    return replace(event, timeout_s=seconds(event.timeout_s))


CHECKS: Final[Mapping[type, Callable[[Any], Any]]] = {
    events.Subscribe: _subscribe,
    Poll: _poll,
    events.Acknowledge: _acknowledge,
    events.Commit: _with_timeout,
    Close: _with_timeout,
}
"""Event -> its check; other events have nothing to check."""


def checked(event: events.ShareConsumerEvent) -> events.ShareConsumerEvent:
    """Return a checked event. Raises InvalidValue, OutOfRange."""
    check = CHECKS.get(type(event))
    checked_event: events.ShareConsumerEvent = event if check is None else check(event)
    return checked_event
