"""`--filter KEY=PATTERN`: which rows a person wants to see.

Law: patterns of one key are alternatives, different keys must all match; a pattern is a shell glob,
upper and lower case alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import typer

from .facts import facts

if TYPE_CHECKING:
    from .inputs import Entry


def _topics(entry: Entry) -> Iterable[str | None]:
    row = entry.row
    if row.message is None or row.body_version is None:
        return ()
    return facts(row.message, row.body_version).topics


def _errors(entry: Entry) -> Iterable[str | None]:
    row = entry.row
    if row.message is None or row.body_version is None:
        return ()
    return facts(row.message, row.body_version).errors


KEYS: Final[dict[str, Callable[[Entry], Iterable[str | None]]]] = {
    "api": lambda e: (e.row.api_name, None if e.row.api_key is None else str(e.row.api_key)),
    "client": lambda e: (e.row.client_id, e.client),
    "broker": lambda e: (e.broker,),
    "connection": lambda e: (None if e.connection is None else str(e.connection),),
    "direction": lambda e: (e.row.direction,),
    "error": _errors,
    "status": lambda e: (e.row.status.value,),
    "topic": _topics,
}


def parse(given: list[str]) -> dict[str, list[str]]:
    """Read `KEY=PATTERN` arguments; a usage error names the keys there are."""
    wanted: dict[str, list[str]] = {}
    for text in given:
        key, equals, pattern = text.partition("=")
        if not equals or key not in KEYS:
            keys = ", ".join(KEYS)
            raise typer.BadParameter(
                f"{text!r} is no KEY=PATTERN; keys: {keys}", param_hint="--filter"
            )
        wanted.setdefault(key, []).append(pattern.lower())
    return wanted


def keeps(wanted: dict[str, list[str]], entry: Entry) -> bool:
    """Whether every key has a value that matches one of its patterns."""
    return all(
        any(
            value is not None and fnmatchcase(value.lower(), pattern)
            for value in KEYS[key](entry)
            for pattern in patterns
        )
        for key, patterns in wanted.items()
    )
