"""What a target gets from its caller: error codes, and examples of messages.

The generator imports nothing of kafkawire and does not know these; the command line does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..model import Message


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """An error code of a protocol.

    retriable: whether the same request may succeed later. refresh: whether the client's metadata is
    out of date.
    """

    code: int
    name: str
    retriable: bool
    refresh: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """A row of an explained example, for a field or a part of one.

    bytes: in hexadecimal; empty for a row that only groups others. depth: the nesting of the field.
    """

    offset: int
    bytes: str
    depth: int
    field: str
    type: str
    value: str


Examples = Callable[[Message, int], Sequence[ExampleRow]]
"""A message and a version of it -> its example, explained."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """What the caller knows. errors: by code; examples: None if there are none."""

    errors: tuple[ErrorCode, ...] = ()
    examples: Examples | None = None


NOTHING: Final = Supplied()
