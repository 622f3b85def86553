"""Validates arguments of the clients' public methods: types, ranges, encodable texts.

An invalid value is rejected by the call that passes it, before any state changes, with the
name of the argument; later it would fail requests that carry other callers' values too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Final

from ..errors import InvalidValue, OutOfRange

INT16: Final = 0x7FFF
INT32: Final = 0x7FFF_FFFF
INT64: Final = 0x7FFF_FFFF_FFFF_FFFF
LONGEST_TOPIC: Final = 249
"""Characters of a topic name, as in Kafka's `Topic.MAX_NAME_LENGTH`."""
LONGEST_ID: Final = 0x7FFF
"""Bytes of a group id and of other short texts: some version has an INT16 length for them."""


def text(value: object, name: str, *, longest: int = LONGEST_ID) -> str:
    """Return a text of at most `longest` bytes. Raises InvalidValue, OutOfRange."""
    if not isinstance(value, str):
        raise InvalidValue(f"expected str, got {type(value).__name__}", name)
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidValue(f"not encodable as UTF-8: {error.reason}", name) from None
    if size > longest:
        raise OutOfRange(f"{size} bytes, at most {longest}", name)
    return str.__str__(value)  # of a subclass, the text itself


def texts(value: object, name: str) -> tuple[str, ...]:
    """Return several texts, each as of `text`. Raises InvalidValue, also for one bare str."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidValue(f"expected several str, got {type(value).__name__}", name)
    return tuple(text(item, f"{name}[{position}]") for position, item in enumerate(value))


def topic_name(value: object, name: str = "topic") -> str:
    """Return a topic name that every version of every request can carry.

    Characters that Kafka does not allow are left to the broker: it rejects that topic alone.
    Raises InvalidValue, OutOfRange.
    """
    name_of_topic = text(value, name)
    if not name_of_topic:
        raise InvalidValue("the empty string is not a valid topic name", name)
    if len(name_of_topic) > LONGEST_TOPIC:
        raise OutOfRange(f"{len(name_of_topic)} characters, at most {LONGEST_TOPIC}", name)
    return name_of_topic


def topic_names(value: object, name: str = "topics") -> tuple[str, ...]:
    """Return several topic names. Raises InvalidValue, also for one bare str; OutOfRange."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidValue(f"expected several topic names, got {type(value).__name__}", name)
    return tuple(topic_name(each, f"{name}[{at}]") for at, each in enumerate(value))


def whole(value: object, name: str, lowest: int, highest: int) -> int:
    """Return an integer from lowest to highest. Raises InvalidValue, OutOfRange."""
    if isinstance(value, bool):
        raise InvalidValue("expected int, got bool", name)
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidValue(f"expected int, got {type(value).__name__}", name) from None
    if not lowest <= number <= highest:
        raise OutOfRange(f"{number} is not between {lowest} and {highest}", name)
    return int(number)


def content(value: object, name: str) -> bytes | None:
    """Return bytes or None; mutable buffers are copied. Raises InvalidValue."""
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(memoryview(value))
    raise InvalidValue(
        f"expected bytes, bytearray, memoryview or None, got {type(value).__name__}", name
    )


def pair(value: object, name: str, parts: str) -> tuple[object, object]:
    """Return the two elements of a tuple or list; parts: their names. Raises InvalidValue."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidValue(f"expected a pair {parts}, got {value!r}", name)
    return value[0], value[1]


def topic_partition(value: object, name: str = "partition") -> tuple[str, int]:
    """Return a topic name and a partition number. Raises InvalidValue, OutOfRange."""
    topic, partition = pair(value, name, "(topic, partition)")
    return topic_name(topic, f"{name}.topic"), whole(partition, f"{name}.partition", 0, INT32)


def topic_partitions(value: object, name: str = "partitions") -> tuple[tuple[str, int], ...]:
    """Return several partitions. Raises InvalidValue, also for a bare str; OutOfRange."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidValue(f"expected several partitions, got {type(value).__name__}", name)
    return tuple(topic_partition(each, f"{name}[{at}]") for at, each in enumerate(value))


def settings(value: object, name: str) -> dict[str, str | None]:
    """Return a mapping of config names to values. Raises InvalidValue, OutOfRange."""
    if not isinstance(value, Mapping):
        raise InvalidValue(f"expected a mapping, got {type(value).__name__}", name)
    return {
        text(key, f"{name} key"): None if each is None else text(each, f"{name}[{key!r}]")
        for key, each in value.items()
    }


def seconds(value: object, name: str = "timeout_s") -> float:
    """Return a duration in seconds, not negative. Raises InvalidValue, OutOfRange."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue(f"expected a number of seconds, got {type(value).__name__}", name)
    if not value >= 0:  # NaN, too
        raise OutOfRange(f"{value} is not a valid number of seconds", name)
    return value
