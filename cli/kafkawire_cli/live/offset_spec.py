"""Offsets as a user types them: a number, a time, the last N records.

An invalid one is a usage error that lists the forms.

    earliest, latest     the first record, and behind the last one
    1234                 an offset
    -10                  ten records before the end
    2026-01-31T12:00:00Z the first record not older; a time without a zone is local time
    @1769860800000       the same, in milliseconds since 1970
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

import typer

from kafkawire.whole_numbers import whole_number

if TYPE_CHECKING:
    from kafkawire.client.consumer import TopicPartition
    from kafkawire.net.consumer import Consumer

MILLISECONDS: Final = 1000
MAX: Final = (1 << 63) - 1
TIMES: Final = "an ISO 8601 time, or @ and milliseconds since 1970"
DURATION: Final = re.compile(
    r"P(?:(?P<days>\d{1,6})D)?(?:T(?=\d)(?:(?P<hours>\d{1,6})H)?(?:(?P<minutes>\d{1,6})M)?"
    r"(?:(?P<seconds>\d{1,9}(?:\.\d{1,9})?)S)?)?"
)
FORMS: Final = "earliest|latest|OFFSET|-N|TIME"


class OffsetKind(Enum):
    """How an offset is given."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    LAST = "last"
    TIME = "time"


class OffsetSpec(NamedTuple):
    """An offset in any partition; number: an offset, a number of records, or milliseconds."""

    kind: OffsetKind
    number: int = 0

    @property
    def reset(self) -> str | None:
        """The value of auto.offset.reset that begins there; None if there is none."""
        if self.kind is OffsetKind.TIME:
            return f"by_timestamp:{self.number}"
        return self.kind.value if self.kind in (OffsetKind.EARLIEST, OffsetKind.LATEST) else None


def parse_offset(text: str, option: str) -> OffsetSpec:
    """Parse an offset."""
    if text in (OffsetKind.EARLIEST.value, OffsetKind.LATEST.value):
        return OffsetSpec(OffsetKind(text))
    kind = {"@": OffsetKind.TIME, "-": OffsetKind.LAST}.get(text[:1], OffsetKind.OFFSET)
    digits = text if kind is OffsetKind.OFFSET else text[1:]
    number = whole_number(digits, MAX)
    if number is not None:
        return OffsetSpec(kind, number)
    expected = f"earliest, latest, a number, -N for the last N records, {TIMES}"
    return OffsetSpec(OffsetKind.TIME, _iso_8601(text, option, "offset", expected))


def parse_time(text: str, option: str) -> int:
    """Parse a time into milliseconds since 1970."""
    digits = text[1:]
    if text[:1] == "@" and digits.isascii() and digits.isdecimal() and len(digits) < 20:
        return min(int(digits), MAX)
    return _iso_8601(text, option, "time", TIMES)


def _iso_8601(text: str, option: str, what: str, expected: str) -> int:
    """Parse an ISO 8601 time. what, expected: for the error."""
    try:
        at = round(datetime.fromisoformat(text).timestamp() * MILLISECONDS)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"invalid {what} {text!r}: expected {expected}", param_hint=option
        ) from None
    if at < 0:
        raise typer.BadParameter(f"{text} is before 1970", param_hint=option)
    return at


def parse_duration(text: str, option: str) -> int:
    """Parse an ISO 8601 duration into milliseconds."""
    match = DURATION.fullmatch(text)
    parts = {name: float(part) for name, part in match.groupdict().items() if part} if match else {}
    if not parts:
        raise typer.BadParameter(
            f"invalid duration {text!r}: expected ISO 8601 such as PT1H30M or P1D",
            param_hint=option,
        )
    return round(timedelta(**parts).total_seconds() * 1000)


async def find_offsets(
    consumer: Consumer, wanted: OffsetSpec, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Find it in each partition, between its first offset and its end."""
    from kafkawire.net.topic_bounds import Bound, find_offsets

    bound = Bound(
        wanted.number,
        before_end=wanted.kind in (OffsetKind.LAST, OffsetKind.LATEST),
        is_time=wanted.kind is OffsetKind.TIME,
    )
    return await find_offsets(consumer, bound, partitions)
