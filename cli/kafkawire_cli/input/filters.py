"""`--filter FIELD=PATTERN`: which rows a person wants to see.

Law: patterns of one field are alternatives, different fields must all match; a pattern is a shell
glob, upper and lower case alike. Of a field whose values are known beforehand, a pattern that no
value can match is an error, not an empty result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

import typer

from ..render.brief import Facts, facts
from .names import api_key, api_names, suggestion

if TYPE_CHECKING:
    from .inputs import Entry

OPTION: Final = "--filter"
GLOB: Final = frozenset("*?[")


class Field(NamedTuple):
    """What rows can be chosen by. values: those of a row. checked: turns what was written into a
    pattern in lower case; BadParameter where no row can have such a value.
    """

    values: Callable[[Entry], Iterable[str | None]]
    checked: Callable[[str], str] = str.lower


def _facts(entry: Entry) -> Facts:
    row = entry.row
    if row.message is None or row.body_version is None:
        return Facts()
    return facts(row.message, row.body_version)


# -- patterns of fields whose values are known


def _one_of(what: str, known: Callable[[], Iterable[str]]) -> Callable[[str], str]:
    def checked(text: str) -> str:
        pattern, values = text.lower(), list(known())
        if any(fnmatchcase(value.lower(), pattern) for value in values):
            return pattern
        raise typer.BadParameter(
            f"{text!r} matches no {what}{suggestion(text, values)}", param_hint=OPTION
        )

    return checked


def _api(text: str) -> str:
    """Check the name of an API, or its key; a key that no API has may be in a capture."""
    if text.removeprefix("-").isdecimal():
        return text
    if GLOB.isdisjoint(text):
        return str(api_key(text, OPTION))
    return _one_of("API", api_names)(text)


def _statuses() -> Iterable[str]:
    from kafkawire.capture.rows import Status

    return [status.value for status in Status]


def _errors_known() -> Iterable[str]:
    from kafkawire.protocol.error_code import ErrorCode

    return [code.name for code in ErrorCode if code]


def _error(text: str) -> str:
    """Check the name of an error code, or its number; those without a name are `ERROR_<code>`."""
    from kafkawire.protocol.error_code import ErrorCode

    if text.removeprefix("-").isdecimal() and int(text):
        return ErrorCode.name_of(int(text)).lower()
    if re.fullmatch(r"error_-?\d+", text.lower()):
        return text.lower()
    return _one_of("error code", _errors_known)(text)


def _number(text: str) -> str:
    if text and all(character.isdecimal() or character in "*?[]-!" for character in text):
        return text
    raise typer.BadParameter(
        f"{text!r} is not a valid connection: expected its number", param_hint=OPTION
    )


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


def parse(given: list[str]) -> dict[str, list[str]]:
    """Read `FIELD=PATTERN` arguments; a usage error names the fields, or the value meant."""
    wanted: dict[str, list[str]] = {}
    for text in given:
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
        wanted.setdefault(name, []).append(FIELDS[name].checked(pattern))
    return wanted


def keeps(wanted: dict[str, list[str]], entry: Entry) -> bool:
    """Whether every field has a value that matches one of its patterns."""
    return all(
        any(
            value is not None and fnmatchcase(value.lower(), pattern)
            for value in FIELDS[name].values(entry)
            for pattern in patterns
        )
        for name, patterns in wanted.items()
    )
