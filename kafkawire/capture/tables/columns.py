"""Describes the columns of tables: name, type, description.

Types are those that Spark accepts unchanged: no large or view types, no dictionaries,
timestamps in microseconds UTC. Where microseconds are too coarse, an int64 column of nanoseconds
stands beside them. Types are data: `arrow.schemas` makes Arrow's of them, so that what reads a
capture without making batches, such as a report, does not import pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ..files.blocks import NO_TIME

BOOL: Final = "bool"
INT8: Final = "int8"
INT16: Final = "int16"
INT32: Final = "int32"
INT64: Final = "int64"
FLOAT64: Final = "float64"
TEXT: Final = "string"
BYTES: Final = "binary"
TIME: Final = "timestamp"
"""The types of single values."""

LAST_TIME: Final = 253_402_300_799_999_999
"""The last microsecond of the year 9999: the latest time Python and Spark support."""


class ListOf(NamedTuple):
    """The type of a list without null elements."""

    element: Any


class StructOf(NamedTuple):
    """The type of a struct: names and types of its fields."""

    fields: tuple[tuple[str, Any], ...]


Type: TypeAlias = str | ListOf | StructOf


def list_of(element: Type) -> ListOf:
    """Build the type of a list."""
    return ListOf(element)


def struct_of(**fields: Type) -> StructOf:
    """Build the type of a struct."""
    return StructOf(tuple(fields.items()))


TOPIC_PARTITIONS: Final = list_of(struct_of(topic=TEXT, topic_id=TEXT, partitions=list_of(INT32)))


class Column(NamedTuple):
    """A column: its name, its type, its description.

    The description is one sentence; the value is null where it does not apply. resolve: computes
    the value when the batch is made, for what may be learned after the row.
    """

    name: str
    type: Type
    description: str
    resolve: Callable[[Any], Any] | None = None


Columns = tuple[Column, ...]

BODY_NUMBERS: Final[Columns] = (
    Column("throttle_time_ms", INT32, "Throttle time in the response, in milliseconds."),
    Column(
        "max_wait_ms",
        INT32,
        "Longest time that the broker may wait for records, in milliseconds, from the request.",
    ),
)
"""The columns of `exchanges` that are int32 fields of messages, and have their names."""


def printable(value: Any) -> Any:
    """Escape what is not valid UTF-8 as \\udcXX, at any depth."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [printable(one) for one in value]
    if isinstance(value, dict):
        return {key: printable(one) for key, one in value.items()}
    return value


# -- values


def micros(time_ns: int | None) -> int | None:
    """Convert nanoseconds since the epoch to a timestamp; None if unknown or out of range."""
    if time_ns is None or time_ns == NO_TIME:
        return None
    time_us = time_ns // 1000
    return time_us if 0 <= time_us <= LAST_TIME else None


def known(time_ns: int | None) -> int | None:
    """Return None for the time of a packet without a timestamp."""
    return None if time_ns == NO_TIME else time_ns


def distinct(values: Iterable[Any]) -> list[Any]:
    """Keep the first of equal values, in order."""
    return list(dict.fromkeys(values))


# -- columns that are resolved late


def topic_name(topic: Any) -> str | None:
    """Return the name of a topic, None while it is unknown."""
    name: str | None = topic.name
    return name


def topic_names(topics: Sequence[Any]) -> list[str]:
    """Return the names of topics; the id where the name is unknown."""
    return distinct(topic.name or topic.id_text or "" for topic in topics)


def topic_partitions(groups: Sequence[tuple[Any, list[int]]]) -> list[dict[str, Any]]:
    """Build the value of a TOPIC_PARTITIONS column."""
    return [
        {"topic": topic.name, "topic_id": topic.id_text, "partitions": partitions}
        for topic, partitions in groups
    ]
