"""Validates a record before it is queued.

A valid record can be encoded; no other record ever fails because of it.
"""

from __future__ import annotations

from typing import Any

from ...errors import InvalidValue
from ...records import Headers, ReplacedText
from ..arguments import INT32, INT64, LONGEST_TOPIC, content, pair, text, topic_name, whole
from .events import Send


def checked(record: Send) -> Send:
    """Return the record with mutable values (bytearray, list) copied.

    Raises InvalidValue for a wrong type, OutOfRange for a number that the record format cannot
    represent; both name the argument.
    """
    fields: tuple[Any, ...] = record  # of any types
    token, topic, partition, key, value, timestamp, headers = fields
    if (
        is_plain(topic, partition, key, value, timestamp)
        and topic.isascii()
        and 0 < len(topic) <= LONGEST_TOPIC
        and type(headers) is tuple
        and not headers
    ):
        return record
    return Send(
        token,
        topic_name(topic),
        None if partition is None else whole(partition, "partition", 0, INT32),
        content(key, "key"),
        content(value, "value"),
        whole(timestamp, "timestamp", 0, INT64),
        checked_headers(headers),
    )


def is_plain(
    topic: object, partition: object, key: object, value: object, timestamp: object
) -> bool:
    """Whether nearly all is valid, with immutable values: all but the topic's name, the headers."""
    return (
        type(topic) is str
        and (partition is None or (type(partition) is int and 0 <= partition <= INT32))
        and (key is None or type(key) is bytes)
        and (value is None or type(value) is bytes)
        and type(timestamp) is int
        and 0 <= timestamp <= INT64
    )


def checked_headers(headers: object) -> Headers:
    """Return headers as tuples of (name, value). Raises InvalidValue, OutOfRange."""
    if not isinstance(headers, tuple | list):
        kind = type(headers).__name__
        raise InvalidValue(f"expected a tuple or list of (name, value), got {kind}", "headers")
    pairs = []
    for at, each in enumerate(headers):
        name, value = pair(each, f"headers[{at}]", "(name, value)")
        field = f"headers[{at}]"
        if not isinstance(name, ReplacedText):  # of a consumed record
            name = text(name, f"{field} name", longest=INT32)
        pairs.append((name, content(value, f"{field} value")))
    return tuple(pairs)
