"""Parses `--filter`, whose expressions `kafkawire.capture.filters` defines.

An invalid expression is a usage error that shows the place.

    unknown API 'Fech'; did you mean Fetch?

      api == Fech and latency > 1s
             ^^^^
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafkawire.display import printable

from ..notes import print_note
from .panels import Panel

if TYPE_CHECKING:
    from kafkawire.capture.filters import Filter
    from kafkawire.capture.filters.unmatched import Unmatched
    from kafkawire.errors import FilterError

OPTION: Final = "--filter"
NOTHING_MATCHES: Final = "nothing matches the filter"

SHOWN_BEFORE: Final = 30
SHOWN_AFTER: Final = 30
"""Characters of an expression that are shown around an invalid part, which is shortened to fit."""

_LAST: Final = re.compile(
    r"(?:(?P<field>\w+)\s*(?:[=!<>~]+\s*|(?:\snot)?\s+in\s*\((?:[^()]*,)?\s*))?(?P<word>\w*)$"
)
"""The last word of an incomplete expression, and the field whose value it is."""


def complete_filter(incomplete: str) -> list[str]:
    """Complete the last word of an expression: the name of a field, or a known value of it.

    `api == Fe` -> `api == Fetch`, `api == FetchSnapshot`
    """
    from kafkawire.capture.filters import FIELDS

    match = _LAST.search(incomplete)
    if match is None:
        return []
    name, word = match["field"], match["word"]
    candidates = FIELDS[name].names() if name in FIELDS else [] if name else FIELDS
    before = incomplete[: match.start("word")]
    return sorted(before + each for each in candidates if each.lower().startswith(word.lower()))


FilterOption = Annotated[
    list[str] | None,
    typer.Option(
        OPTION,
        metavar="EXPRESSION",
        autocompletion=complete_filter,
        help='Only what matches, such as "api == Fetch and latency > 100ms"; repeatable '
        "(docs/capture.md#filters).",
        rich_help_panel=Panel.CAPTURES,
    ),
]


class InvalidFilter(typer.BadParameter):
    """An invalid `--filter`. place: lines that show the invalid part, escaped."""

    def __init__(self, error: FilterError) -> None:
        super().__init__(error.reason, param_hint=OPTION)
        self.place = _place(error) if error.text.strip() else ""


def parse_filter(texts: list[str] | None, package: str | None = None) -> Filter | None:
    """Parse the filters of `--filter`, all of which must match.

    package: the import name of the messages' package; None for Kafka's.
    """
    if not texts:
        return None
    from kafkawire.capture.filters import parse
    from kafkawire.protocol.packages import OURS

    name = package or OURS
    with usage_errors():
        filters = [parse(text, name) for text in texts]
    whole = " and ".join(f"({text})" for text in texts)
    return filters[0] if len(filters) == 1 else parse(whole, name)


def unmatched_by(where: Filter) -> Unmatched:
    """Return what keeps the values that a filter compares in vain, for `note_unmatched`."""
    from kafkawire.capture.filters.unmatched import Unmatched

    return Unmatched(where)


def note_unmatched(unmatched: Unmatched) -> None:
    """Say that nothing has matched, if so, and what may be meant."""
    if not unmatched.matched:
        print_note(f"{NOTHING_MATCHES}{unmatched.hint()}")


@contextmanager
def usage_errors() -> Iterator[None]:
    """Convert errors in filters into usage errors."""
    from kafkawire.errors import FilterError

    try:
        yield
    except FilterError as error:
        raise InvalidFilter(error) from None


def _place(error: FilterError) -> str:
    start = max(0, error.at - SHOWN_BEFORE)
    before = "..." * (start > 0) + printable(error.text[start : error.at])
    invalid = printable(error.text[error.at : error.at + min(error.length, SHOWN_AFTER)])
    after = printable(error.text[error.at + error.length :][:SHOWN_AFTER])
    marks = "^" * max(1, len(invalid))
    return f"\n\n  {before}{invalid}{after}\n  {' ' * len(before)}{marks}"
