"""The fields that filters compare, and the values that each may have.

A field is listed once, here; what has fields (messages, exchanges, tables) looks them up by
these names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache, partial
from typing import Final, NamedTuple

from ...protocol.packages import OURS, package_named
from ...whole_numbers import whole_number
from ..rows import Status

HIGHEST_ERROR: Final = 0x7FFF


class Type(StrEnum):
    """Types of fields: how values are written and compared."""

    NAME = "name"
    TEXT = "text"
    NUMBER = "number"
    SIZE = "size"
    DURATION = "duration"
    TIME = "time"


def _no_names() -> Iterable[str]:
    return ()


class Field(NamedTuple):
    """A field.

    names: of a NAME field, its known values. normalised: converts a value to the form in which
    values are compared, for example an API key to a name; None if there is no such value.
    of_exchange: whether both messages of an exchange contribute values. of_body: whether the body
    must be decoded.
    """

    name: str
    type: Type
    description: str
    names: Callable[[], Iterable[str]] = _no_names
    normalised: Callable[[str], str | None] = str.lower
    of_exchange: bool = False
    of_body: bool = False


def api_names(package: str = OURS) -> tuple[str, ...]:
    """Return the names of all APIs of a package, by its import name."""
    return tuple(
        info.name.removesuffix("Request")
        for info in package_named(package).index
        if info.type == "request" and info.api_key is not None
    )


@cache
def _apis(package: str) -> dict[str, str]:
    names = {name.lower(): name.lower() for name in api_names(package)}
    for info in package_named(package).index:
        if info.type == "request" and info.api_key is not None:
            names[str(info.api_key)] = info.name.removesuffix("Request").lower()
    return names


def _api(package: str, text: str) -> str | None:
    """Find an API by name, in any of the usual forms, or key; unknown keys are valid."""
    plain = text.lower().replace("_", "").replace("-", "")
    name = _apis(package).get(plain.removesuffix("request").removesuffix("response"))
    return plain if name is None and plain.isdecimal() else name


def _error_names() -> Iterable[str]:
    from ...protocol.error_code import ErrorCode

    return [code.name for code in ErrorCode]


def _error(text: str) -> str | None:
    """Find an error code by name or number; unknown codes are named `ERROR_<code>`."""
    from ...protocol.error_code import ErrorCode

    plain = text.lower()
    digits = plain.removeprefix("error_").removeprefix("-")
    if whole_number(digits, HIGHEST_ERROR) is not None:
        return ErrorCode.name_of(int(plain.removeprefix("error_"))).lower()
    return plain if plain.upper() in ErrorCode.__members__ else None


def _one_of(names: Callable[[], Iterable[str]]) -> Callable[[str], str | None]:
    return lambda text: text.lower() if text.lower() in set(names()) else None


def _statuses() -> Iterable[str]:
    return [status.value for status in Status]


def _directions() -> Iterable[str]:
    return ("request", "response")


def _answers() -> Iterable[str]:
    return ("yes", "no")


_ALL: Final = (
    Field(
        "api",
        Type.NAME,
        "API by name (`Fetch`) or key (`1`)",
        api_names,
        partial(_api, OURS),
    ),
    Field("client", Type.TEXT, "client id"),
    Field("client_address", Type.TEXT, "address of the client, with or without its port"),
    Field("broker", Type.TEXT, "address of the broker, with or without its port"),
    Field("connection", Type.NUMBER, "number of the TCP connection, from 0"),
    Field("direction", Type.NAME, "`request` or `response`", _directions, _one_of(_directions)),
    Field(
        "error",
        Type.NAME,
        "error codes in the response, by name or number; `NONE` if there are none",
        _error_names,
        _error,
        of_exchange=True,
        of_body=True,
    ),
    Field(
        "status",
        Type.NAME,
        "decoding status (`ok`, `malformed`, ...)",
        _statuses,
        _one_of(_statuses),
        of_body=True,
    ),
    Field(
        "topic",
        Type.TEXT,
        "topics of the exchange, by name or id",
        of_exchange=True,
        of_body=True,
    ),
    Field("partition", Type.NUMBER, "partitions of the exchange", of_exchange=True, of_body=True),
    Field("group", Type.TEXT, "groups of the exchange", of_exchange=True, of_body=True),
    Field("size", Type.SIZE, "size of the message: bytes, or with `kB`, `MB`, `KiB`, `MiB`"),
    Field(
        "latency",
        Type.DURATION,
        "time from request to response: with `us`, `ms`, `s` or `min`",
        of_exchange=True,
    ),
    Field(
        "answered",
        Type.NAME,
        "`yes` if the response is in the capture or none is expected, else `no`",
        _answers,
        _one_of(_answers),
        of_exchange=True,
    ),
    Field(
        "time",
        Type.TIME,
        "when the message was captured: ISO 8601 (UTC unless it has an offset), or `+5s` after "
        "the first packet",
    ),
    Field("packet", Type.NUMBER, "number of the packet that completes the message, from 1"),
    Field("correlation_id", Type.NUMBER, "correlation id"),
    Field("version", Type.NUMBER, "version of the API"),
)

FIELDS: Final[dict[str, Field]] = {field.name: field for field in _ALL}
"""Every field by name."""

ONLY_KAFKA: Final = frozenset({"error", "topic", "partition", "group"})
"""Fields whose values are found by what Kafka's messages mean."""


@cache
def fields_of(package: str) -> Mapping[str, Field]:
    """Return the fields that filters of the messages of a package compare."""
    if package == OURS:
        return FIELDS
    fields = {name: field for name, field in FIELDS.items() if name not in ONLY_KAFKA}
    names, normalised = partial(api_names, package), partial(_api, package)
    fields["api"] = FIELDS["api"]._replace(
        description="API by name or key", names=names, normalised=normalised
    )
    return fields


def addresses(end: str | None) -> tuple[str, ...]:
    """Return the values of an `address:port`: itself, and the address alone."""
    return () if end is None else (end, end.rpartition(":")[0].strip("[]"))
