"""Parses and applies `--filter FIELD=PATTERN`.

Law: a row must match one of the patterns of every field. A pattern is a shell glob, without regard
to case. For a field with a known set of values, a pattern that can match none is a usage error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

import typer

from ..input.names import api_key, api_names, suggestion
from .messages import Facts, facts

if TYPE_CHECKING:
    from ..input.inputs import Entry

OPTION: Final = "--filter"
GLOB: Final = frozenset("*?[")


class Field(NamedTuple):
    """A field that rows can be filtered by.

    values: its values in a row. checked: returns a pattern in lower case; raises BadParameter if no
    row can match it.
    """

    values: Callable[[Entry], Iterable[str | None]]
    checked: Callable[[str], str] = str.lower


def _facts(entry: Entry) -> Facts:
    row = entry.row
    if row.message is None or row.body_version is None:
        return Facts()
    return facts(row.message, row.body_version, row.api_key, row.direction)


# -- fields with a known set of values


def _one_of(what: str, known: Callable[[], Iterable[str]]) -> Callable[[str], str]:
    def checked(text: str) -> str:
        pattern, values = text.lower(), list(known())
        if any(fnmatchcase(value.lower(), pattern) for value in values):
            return pattern
        raise typer.BadParameter(
            f"no {what} matches {text!r}{suggestion(text, values)}", param_hint=OPTION
        )

    return checked


def _api(text: str) -> str:
    """Check the name of an API, or its key; unknown keys may be in a capture."""
    if text.removeprefix("-").isdecimal():
        return text
    if GLOB.isdisjoint(text):
        return str(api_key(text, OPTION))
    return _one_of("API", api_names)(text)


def _statuses() -> Iterable[str]:
    from kafkawire.capture.rows import Status

    return [status.value for status in Status]


def _error_names() -> Iterable[str]:
    from kafkawire.protocol.error_code import ErrorCode

    return [code.name for code in ErrorCode if code]


def _error(text: str) -> str:
    """Check the name or number of an error code; unknown codes are named `ERROR_<code>`."""
    from kafkawire.protocol.error_code import ErrorCode

    if text.removeprefix("-").isdecimal() and int(text):
        return ErrorCode.name_of(int(text)).lower()
    if re.fullmatch(r"error_-?\d+", text.lower()):
        return text.lower()
    return _one_of("error code", _error_names)(text)


def _number(text: str) -> str:
    if text and all(character.isdecimal() or character in "*?[]-!" for character in text):
        return text
    raise typer.BadParameter(f"{text!r} is not a valid connection number", param_hint=OPTION)


FIELDS: Final[dict[str, Field]] = {
    "api": Field(
        lambda e: (e.row.api_name, None if e.row.api_key is None else str(e.row.api_key)), _api
    ),
    "client": Field(lambda e: (e.row.client_id, e.client)),
    "broker": Field(lambda e: (e.broker,)),
    "connection": Field(lambda e: (None if e.connection is None else str(e.connection),), _number),
    "direction": Field(
        lambda e: (e.row.direction,), _one_of("direction", lambda: ("request", "response"))
    ),
    "error": Field(lambda e: _facts(e).errors, _error),
    "status": Field(lambda e: (e.row.status.value,), _one_of("status", _statuses)),
    "topic": Field(lambda e: _facts(e).topics),
}


def parse(arguments: list[str]) -> dict[str, list[str]]:
    """Parse `FIELD=PATTERN` arguments; usage errors list the fields or suggest a value."""
    filters: dict[str, list[str]] = {}
    for text in arguments:
        name, equals, pattern = text.partition("=")
        if not equals:
            raise typer.BadParameter(
                f"{text!r}: expected FIELD=PATTERN; fields: {', '.join(FIELDS)}",
                param_hint=OPTION,
            )
        if name not in FIELDS:
            raise typer.BadParameter(
                f"unknown field {name!r}{suggestion(name, FIELDS)}; fields: {', '.join(FIELDS)}",
                param_hint=OPTION,
            )
        filters.setdefault(name, []).append(FIELDS[name].checked(pattern))
    return filters


def matches(filters: dict[str, list[str]], entry: Entry) -> bool:
    """Return whether every field has a value that matches one of its patterns."""
    return all(
        any(
            value is not None and fnmatchcase(value.lower(), pattern)
            for value in FIELDS[name].values(entry)
            for pattern in patterns
        )
        for name, patterns in filters.items()
    )
