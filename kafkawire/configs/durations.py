"""Where reading a partition begins: `share.auto.offset.reset` (KIP-932), `auto.offset.reset`."""

from __future__ import annotations

from re import fullmatch
from typing import Final

LATEST: Final = "latest"
EARLIEST: Final = "earliest"
BY_DURATION: Final = "by_duration:"
DURATION: Final = (
    r"P(?=.)(?:([0-9]{1,19})D)?"
    r"(?:T(?=.)(?:([0-9]{1,19})H)?(?:([0-9]{1,19})M)?(?:([0-9]{1,19})(?:\.([0-9]{0,9}))?S)?)?"
)
"""A duration in the format of ISO 8601 that Java's Duration reads, not negative."""
MOST_SECONDS: Final = (1 << 63) - 1
"""What Java's Duration holds."""


def is_offset_reset(value: str) -> bool:
    """Whether a value of the key is valid."""
    return value in (LATEST, EARLIEST) or duration_seconds(value) is not None


def duration_seconds(value: str) -> float | None:
    """Return the duration of `by_duration:PT1H`; None for what is not of that form."""
    if not value.startswith(BY_DURATION):
        return None
    matched = fullmatch(DURATION, value[len(BY_DURATION) :].upper())
    if matched is None:
        return None
    days, hours, minutes, seconds, fraction = (each or "0" for each in matched.groups())
    whole = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)
    return whole + float(f"0.{fraction}") if whole <= MOST_SECONDS else None
