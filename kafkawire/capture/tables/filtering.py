"""Filters the rows of tables by their columns.

A field has the values of every column that states it, so a comparison holds if it does for one
of them: the `size` of an exchange is that of its request and that of its response. A field that no
column of a table states is an error, which names the tables that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...errors import FilterError
from ...protocol.error_code import ErrorCode
from ..filters import Filter, Values
from ..filters.fields import addresses

Get = Callable[[Any], Iterable[Any]]
"""Returns the values of a field in a column's value, which is not null."""


class Source(NamedTuple):
    """A column that states values of a field. get: returns them; also of null, if `of_null`."""

    column: str
    get: Get
    of_null: bool = False


def _one(value: Any) -> Iterable[Any]:
    return (value,)


def _each(values: Any) -> Iterable[Any]:
    return values  # type: ignore[no-any-return]  # a list


def _lower(value: str) -> Iterable[str]:
    return (value.lower(),)


def _text(value: int) -> Iterable[str]:
    return (str(value),)


RECORD_API: Final = {"produce": "produce", "fetch": "fetch", "share_fetch": "sharefetch"}
"""`direction` of a record -> the API that carried it."""


def _record_api(direction: str) -> Iterable[str]:
    return (RECORD_API[direction],)


def _apis(versions: list[dict[str, Any]]) -> Iterable[str]:
    for one in versions:
        yield str(one["api_key"])
        if one["api_name"] is not None:
            yield one["api_name"].lower()


def _codes(codes: list[int] | None) -> Iterable[str]:
    return [ErrorCode.name_of(code).lower() for code in codes or [0]]


def _code(code: int | None) -> Iterable[str]:
    return _codes([code or 0])


def _answered(packet: int | None) -> Iterable[str]:
    return ["no" if packet is None else "yes"]


def _topics(values: list[dict[str, Any]]) -> Iterable[str]:
    return [text for one in values for text in (one["topic"], one["topic_id"]) if text]


def _partitions(values: list[dict[str, Any]]) -> Iterable[int]:
    return [number for one in values for number in one["partitions"]]


def _offset_partitions(values: list[dict[str, Any]]) -> Iterable[int]:
    return [one["partition"] for one in values]


def _columns(*names: str, get: Get = _one) -> tuple[Source, ...]:
    return tuple(Source(name, get) for name in names)


SOURCES: Final[dict[str, tuple[Source, ...]]] = {
    "api": (Source("api_name", _lower), Source("api_key", _text), Source("versions", _apis)),
    "client": (Source("client_id", _one), Source("client_ids", _each)),
    "client_address": _columns("client", get=addresses),
    "broker": _columns("broker", get=addresses),
    "connection": _columns("connection"),
    "direction": _columns("direction"),
    "error": (Source("error_codes", _codes, True), Source("error_code", _code, True)),
    "status": _columns("status", "request_status", "response_status"),
    "topic": (
        *_columns("topic", "topic_id"),
        Source("topics", _each),
        *_columns("partitions", "offsets", get=_topics),
    ),
    "partition": (
        *_columns("partition"),
        Source("partitions", _partitions),
        Source("offsets", _offset_partitions),
    ),
    "group": (Source("group_id", _one), Source("group_ids", _each)),
    "size": _columns("length", "request_bytes", "response_bytes"),
    "latency": _columns("latency_ns"),
    "answered": (Source("response_packet", _answered, True),),
    "time": _columns("time_ns", "response_time_ns", "first_time_ns", "last_time_ns"),
    "packet": _columns("packet", "response_packet", "first_packet", "last_packet"),
    "correlation_id": _columns("correlation_id"),
    "version": _columns("api_version"),
}
"""Field -> the columns that state it, in any table."""

OF_TABLE: Final[dict[tuple[str, str], tuple[Source, ...]]] = {
    ("records", "api"): (Source("direction", _record_api),),
    ("records", "direction"): (),
    ("connections", "size"): (),  # its bytes are sums
}
"""The same for tables where a column of that name states something else."""


def sources(table: str, field: str, columns: Collection[str]) -> list[Source]:
    """Return the columns of a table that state a field."""
    all_sources = OF_TABLE.get((table, field), SOURCES[field])
    return [source for source in all_sources if source.column in columns]


def check(where: Filter, table: str, schemas: Mapping[str, Collection[str]]) -> set[str]:
    """Return the columns that a filter needs. schemas: the columns of every table.

    Raises FilterError if the table lacks a field.
    """
    needed: set[str] = set()
    for comparison in where.comparisons:
        name = comparison.field.name
        usable = sources(table, name, schemas[table])
        if not usable:
            having = [each for each in schemas if sources(each, name, schemas[each])]
            reason = f"table {table} has no {name}; tables that have it: {', '.join(having)}"
            raise FilterError(reason, where.text, comparison.at, len(name))
        needed |= {source.column for source in usable}
    return needed


def filtered(
    batch: pa.RecordBatch, table: str, where: Filter, first_ns: int | None = None
) -> pa.RecordBatch:
    """Return the rows that match. first_ns: time of the first packet, for relative times."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return batch.filter(mask(columns, table, where, first_ns))


def mask(
    columns: Mapping[str, pa.Array], table: str, where: Filter, first_ns: int | None = None
) -> pa.Array:
    """Return which rows match, by columns of the table."""
    by_field = {
        field.name: [
            (columns[source.column].to_pylist(), source)
            for source in sources(table, field.name, columns)
        ]
        for field in where.fields
    }
    row = 0

    def lookup(name: str) -> Values:
        stated: list[Any] = []
        for values, source in by_field[name]:
            value = values[row]
            if value is not None or source.of_null:
                stated += source.get(value)
        return Values(stated)

    matches: list[bool] = []
    for row in range(len(next(iter(columns.values())))):  # noqa: B007 - read by lookup
        matches.append(bool(where.matches(lookup, first_ns)))
    return pa.array(matches, pa.bool_())
